"""Every builder's folder as the Hub sees it: each configuration loads, with its names and types."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from corpora.readers import open_source
from corpora.readers.rows import SAMPLE
from corpora.schemas import MARKERS_ALL, PAIRS
from corpora.sentences import split_document
from corpora.store.rows import write_parquet
from corpora.tasks import BUILDERS
from tests.corpora.test_tasks_dissent import pair

SOURCES = {
    "sp": ("sample:stories", "sample:abstracts"),
    "bso": ("sample:news",),
    "dc": ("sample:articles",),
    "ssp": ("sample:abstracts",),
    "permuted": ("sample:stories",),
    "intrusion": ("sample:stories",),
    "conpono": ("sample:news",),
    "discovery": ("sample:stories", "sample:news"),
    "criteria": ("sample:articles",),
    "pdtb_explicit": (f"pdtb:{SAMPLE / 'gold'}",),
    "pdtb_implicit": (f"pdtb:{SAMPLE / 'gold'}",),
    "pdtb_marked": (f"pdtb:{SAMPLE / 'gold'}",),
    "explicit_relations": (f"pdtb:{SAMPLE / 'gold'}", "sample:abstracts"),
    "rst": (f"rst:{SAMPLE / 'rst'}",),
}
LABELS = {
    "sp": ["0", "1", "2", "3", "4"],
    "bso": ["swapped", "original"],
    "dc": ["incoherent", "coherent"],
    "ssp": ["body", "abstract"],
    "intrusion": ["coherent", "intruded"],
    "pdtb_marked": ["unmarked", "marked"],
    "dissent": list(MARKERS_ALL),
}
ALL_TRAIN = {"train": 1, "validation": 0, "test": 0}
SETTINGS = {
    "intrusion": ALL_TRAIN,
    "conpono": {"merge_above": 7, **ALL_TRAIN},
    "discovery": {"min_count": 1, **ALL_TRAIN},
    "pdtb_explicit": {"min_count": 1},
    "pdtb_implicit": {"min_count": 1},
    "explicit_relations": {"min_count": 1},
}


def inputs(name: str, folder: Path):
    """Documents of the sample, or for `dissent` a table of pairs."""
    if name == "dissent":
        rows = [pair(i, MARKERS_ALL[i % 15]) for i in range(300)]
        batch = pa.RecordBatch.from_pylist(sorted(rows, key=lambda row: row["doc"]), PAIRS)
        write_parquet(folder / "pairs.parquet", [batch], PAIRS)
        return [folder / "pairs.parquet"]
    return map(split_document, chain.from_iterable(map(open_source, SOURCES[name])))


def test_every_builder_is_tried():
    reads = {name for name in BUILDERS if BUILDERS.find(name).reads != "sources"}
    assert reads == {"dissent", *SOURCES}


@pytest.mark.parametrize("name", ["dissent", *SOURCES])
def test_each_configuration_loads_with_its_names_and_types(name, tmp_path, build, load):
    settings = SETTINGS.get(name, {})
    folder, manifest = build(name, inputs(name, tmp_path), **settings)
    builder = BUILDERS.find(name).of(settings)
    assert set(manifest["configs"]) <= set(builder.configurations())
    default = next(entry for entry in manifest["configs"].values() if entry["default"])
    assert (
        default["features"].get("label", {}).get("names") == LABELS.get(name) or name not in LABELS
    )
    for config, entry in manifest["configs"].items():
        found = load(folder, config)
        rows = {split: body["rows"] for split, body in entry["splits"].items() if body["rows"]}
        assert {split: data.num_rows for split, data in found.items()} == rows
        for data in found.values():
            assert data.features.to_dict() == entry["features"]
            for column, feature in data.features.items():
                if names := getattr(feature, "names", None):
                    assert set(data[column]) <= set(range(len(names)))
