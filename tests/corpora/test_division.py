"""One division of the documents, which every builder keeps to."""

from __future__ import annotations

from itertools import chain

import pyarrow.parquet as pq
import pytest

from corpora.division import FILE, Division, divide
from corpora.documents import document_sizes, write_documents
from corpora.errors import InputError
from corpora.readers import open_source
from corpora.seen import COLUMNS, rows_seen
from corpora.splits import SPLITS, Shares
from corpora.store import staged
from corpora.tasks import BUILDERS, find_builder
from tests.corpora.test_tasks_load import SETTINGS, SOURCES, inputs

SIZES = [(f"d{i}", f"book{i // 3}", 100 + i) for i in range(120)]
PAIRS = ["dissent", *SOURCES]


def division_of(folder, sizes=SIZES, seed=1):
    folder.mkdir(exist_ok=True)
    return divide(sizes, Shares(0.6, 0.2, 0.2), folder, seed=seed)


def splits_in(folder):
    return dict(zip(*pq.read_table(folder / FILE, columns=["doc", "split"]).columns, strict=True))


def test_whole_groups_come_near_their_shares_whatever_the_order(tmp_path):
    counts = division_of(tmp_path / "one")
    division_of(tmp_path / "two", SIZES[::-1])
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "two" / FILE).read_bytes()
    table = pq.read_table(tmp_path / "one" / FILE).to_pylist()
    assert len({(row["group"], row["split"]) for row in table}) == 40
    assert counts["by"] == "group" and sum(counts["documents"].values()) == 120
    assert 0.16 <= counts["weights"]["test"] / sum(counts["weights"].values()) <= 0.24
    division_of(tmp_path / "other", seed=2)
    assert splits_in(tmp_path / "one") != splits_in(tmp_path / "other")


def test_a_document_that_comes_twice_is_divided_once(tmp_path):
    counts = division_of(tmp_path / "one", [*SIZES, *((n, f"gold of {g}", 5) for n, g, _ in SIZES)])
    division_of(tmp_path / "two")
    assert sum(counts["documents"].values()) == 120
    assert splits_in(tmp_path / "one") == splits_in(tmp_path / "two")


def test_sizes_are_those_of_the_documents(tmp_path, make_document):
    documents = [make_document(f"d{i}", 3 + i, group=f"g{i % 2}") for i in range(5)]
    write_documents(documents, tmp_path, docs_per_shard=2)
    assert list(document_sizes(tmp_path)) == [(d.id, d.group, len(d.text)) for d in documents]


def test_a_part_is_where_the_whole_is_and_a_stranger_is_refused(tmp_path):
    for name, sizes in (("one", SIZES[:60]), ("two", SIZES[60:])):
        division_of(tmp_path / name, sizes)
    division = Division.read([tmp_path / "one", tmp_path / "two"])
    found = splits_in(tmp_path / "one") | splits_in(tmp_path / "two")
    assert {name.as_py(): split.as_py() for name, split in found.items()} == {
        name: division.split_of(f"{name}#7") for name, *_ in SIZES
    }
    assert {division.split_of(name) for name, *_ in SIZES} == set(SPLITS)
    with pytest.raises(InputError, match="'d777' is in no split"):
        division.split_of("d777")


def documents_of(manifest, folder):
    """Document, without the number of a part, and split of each row of a dataset that says it."""
    for config in manifest["configs"]:
        for path in (folder / config).glob("*.parquet"):
            table = pq.read_table(path)
            for column in set(COLUMNS) & set(table.column_names):
                for name in table[column].to_pylist():
                    whole, _, number = name.rpartition("#")
                    yield whole if number.isdigit() else name, path.name.partition("-")[0]


def test_every_builder_that_splits_is_tried():
    assert {n for n, b in BUILDERS.items() if b.reads != "sources"} == set(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
def test_every_builder_keeps_to_the_division(name, tmp_path, stage):
    builder, folder = find_builder(name), tmp_path / "data"
    settings = {k: v for k, v in SETTINGS.get(name, {}).items() if k not in SPLITS}
    if name == "intrusion":  # of half of the stories few are alike
        settings |= {"min_similarity": 0.0, "max_cost": 500}
    source = inputs(name, tmp_path)
    if name == "dissent":
        rows = pq.read_table(source[0], columns=["doc"])["doc"].unique().to_pylist()
    else:
        source = list(source)
        rows = [document.id for document in source]
    # By the number of the document, which no builder would do by itself.
    division = Division({name: SPLITS[i % 2] for i, name in enumerate(sorted(rows))})
    with staged(folder) as partial:
        manifest = builder.build(
            source, partial, builder.settings(**settings), seed=1, stage=stage, division=division
        )
    found = set(documents_of(manifest, folder))
    assert {split for _, split in found} == {"train", "validation"}
    assert all(split == division.split_of(document) for document, split in found)
    details = manifest["details"]["split"]
    for said in details.values() if name == "dc" else [details]:
        assert said["by"] == "division"


def test_conversations_are_in_the_split_of_their_log(tmp_path, stage):
    from corpora.sentences import split_document

    builder, folder = find_builder("dc"), tmp_path / "data"
    logs = [split_document(document) for document in open_source("sample:chat")]
    division = Division({log.id: SPLITS[i % 3] for i, log in enumerate(logs)})
    with staged(folder) as partial:
        manifest = builder.build(
            logs, partial, builder.settings(), seed=1, stage=stage, division=division
        )
    found = set(documents_of(manifest, folder))
    assert found and all(split == division.split_of(log) for log, split in found)


def test_shares_are_told_from_sizes():
    assert find_builder("permuted").shares == SPLITS
    assert find_builder("sp").shares == ()


def test_rows_of_documents_that_were_trained_on_are_counted(tmp_path, stage):
    """Two datasets of the same documents, each divided by itself, and of one division."""
    from corpora.sentences import split_document

    counts = {}
    for shared in (True, False):
        documents = [*map(split_document, chain(open_source("sample:stories")))]
        division = Division({d.id: SPLITS[i % 3] for i, d in enumerate(documents)})
        for name in ("permuted", "sp"):
            with staged(tmp_path / str(shared) / name) as partial:
                find_builder(name).build(
                    documents,
                    partial,
                    find_builder(name).settings(),
                    seed=1,
                    stage=stage,
                    division=division if shared else None,
                )
        trained = [(tmp_path / str(shared) / "permuted", "pairwise")]
        judged = [(tmp_path / str(shared) / "sp", "")]
        counts[shared] = rows_seen(trained, judged, "test")
        assert rows_seen(judged, judged, "train")["rows_seen"] > 10
    assert counts[True]["rows_seen"] == 0 < counts[True]["rows"]
    assert counts[False]["rows_seen"] > 0
