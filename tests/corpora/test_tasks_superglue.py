"""RTE, COPA and ReCoRD: SuperGLUE's own files, and a local folder in the Hub's layout."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.readers.superglue import TASKS
from corpora.store.atomic import staged
from corpora.tasks.builder import Target
from corpora.tasks.superglue import Superglue

PASSAGE = "Ada met Ben in Porto. Ada left.\n@highlight\nBen stayed."
RTE = {"premise": "The ferry sank.", "hypothesis": "A boat sank.", "label": "entailment", "idx": 0}
COPA = {
    "premise": "The glass fell.",
    "question": "effect",
    "choice1": "It broke.",
    "choice2": "It sang.",
    "label": 0,
    "idx": 3,
}
RECORD = {
    "source": "news",
    "passage": {
        "text": PASSAGE,
        "entities": [{"start": 0, "end": 2}, {"start": 8, "end": 10}, {"start": 22, "end": 24}],
    },
    "qas": [
        {
            "query": "@placeholder stayed in Porto.",
            "answers": [{"start": 8, "end": 10, "text": "Ben"}] * 2,
            "idx": 5,
        },
        {"query": "@placeholder left.", "answers": [], "idx": 6},
    ],
    "idx": 2,
}


def write(path: Path, *records: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


@pytest.fixture
def built(tmp_path, stage) -> Callable[..., tuple[dict[str, list[dict]], dict[str, Any]]]:
    def build(spec: str, options: dict | None = None, before: Sequence = (), **settings: Any):
        folder = tmp_path / f"built{len(list(tmp_path.glob('built*')))}" / "data"
        with staged(folder) as partial:
            given = [*before, (spec, options or {})]
            manifest = Superglue.of(settings).build(given, Target(partial, stage, 1))
        paths = folder.glob("*/*.parquet")
        names = {path: f"{path.parent.name}/{path.name.partition('-')[0]}" for path in paths}
        return {name: pq.read_table(path).to_pylist() for path, name in names.items()}, manifest

    return build


@pytest.fixture
def benchmark(tmp_path) -> Path:
    folder = tmp_path / "SuperGLUE"
    write(folder / "RTE" / "train.jsonl", RTE, RTE | {"idx": 1, "label": "not_entailment"})
    write(folder / "RTE" / "test.jsonl", {k: v for k, v in RTE.items() if k != "label"})
    write(folder / "COPA" / "val.jsonl", COPA)
    write(folder / "ReCoRD" / "val.jsonl", RECORD)
    return folder


def test_superglues_own_files(built, benchmark):
    rows, manifest = built(f"superglue:{benchmark}")
    assert {name: len(found) for name, found in rows.items()} == {
        "rte/train": 2,
        "copa/validation": 1,
        "record/validation": 1,
    }
    assert [row["label"] for row in rows["rte/train"]] == [0, 1]
    assert rows["copa/validation"][0] == {k: v for k, v in COPA.items() if k != "idx"} | {"id": "3"}
    assert rows["record/validation"][0] == {
        "id": "2-5",
        "passage": PASSAGE,
        "query": "@placeholder stayed in Porto.",
        "entities": ["Ada", "Ben"],
        "answers": ["Ben"],
    }
    assert manifest["rejects"] == {"label_hidden": 2}
    assert manifest["configs"]["rte"]["features"]["label"]["names"][1] == "not_entailment"


def test_the_hubs_queries_of_one_passage_are_one_document(tmp_path):
    ada = {"passage": PASSAGE, "query": "@placeholder left.", "entities": ["Ada"], "answers": []}
    queries = [ada | {"idx": {"passage": 0, "query": number}} for number in (4, 5)]
    write(tmp_path / "ReCoRD" / "val.jsonl", *queries)
    (document,) = open_source(f"superglue:{tmp_path}")
    assert document.id == "record/validation/0"
    assert document.text == "Ada met Ben in Porto. Ada left.\n\nBen stayed."


@pytest.mark.parametrize("revision", ["main", "refs/convert/parquet"])
def test_a_folder_in_the_layout_of_the_hub(built, tmp_path, revision):
    folder, options = tmp_path / "super_glue", {"revision": revision}
    configs = "\n".join(
        f"- config_name: {task}\n  data_files:\n"
        f"  - split: train\n    path: {task}/train.jsonl\n"
        f"  - split: validation\n    path: {task}/validation.jsonl"
        for task in ("rte", "copa", "record")
    )
    folder.mkdir()
    if revision == "main":  # the Hub's branch of Parquet has none
        (folder / "README.md").write_text(f"---\nconfigs:\n{configs}\n---\n", encoding="utf-8")
    flat = {"passage": PASSAGE, "query": "@placeholder left.", "entities": ["Ada", "Ben", "Ada"]}
    for split in ("train", "validation"):
        write(folder / "rte" / f"{split}.jsonl", RTE | {"label": 1})
        write(folder / "copa" / f"{split}.jsonl", COPA | {"label": 1})
        idx = {"passage": 0, "query": 4}
        write(folder / "record" / f"{split}.jsonl", flat | {"answers": ["Ada"], "idx": idx})
    rows, _ = built(f"hub:{folder}", options)
    assert set(rows) == {f"{t}/{s}" for t in TASKS for s in ("train", "validation")}
    assert rows["record/train"][0]["entities"] == ["Ada", "Ben"]
    assert rows["record/train"][0]["id"] == "0-4"
    rows, _ = built(
        f"hub:{folder}", options | {"config": "copa", "split": "validation"}, tasks=("copa",)
    )
    assert list(rows) == ["copa/validation"] and rows["copa/validation"][0]["label"] == 1
    with pytest.raises(ConfigError, match=r"no config 'rte'\n.*the configs are: copa"):
        built(f"hub:{folder}", options | {"config": "rte"}, tasks=("copa",))


BAD = {
    "RTE": {
        "no hypothesis": {"premise": "One.", "label": "entailment", "idx": 1},
        "another label": RTE | {"label": "maybe"},
        "no id": {k: v for k, v in RTE.items() if k != "idx"},
        "empty": RTE | {"premise": " "},
        "surrogate": RTE | {"premise": "\ud800"},
    },
    "COPA": {"question": COPA | {"question": "why"}, "label": COPA | {"label": 2}},
    "ReCoRD": {
        "span": RECORD | {"passage": {"text": "Ada.", "entities": [{"start": 0, "end": 9}]}},
        "no passage": RECORD | {"passage": 3},
        "no placeholder": RECORD | {"qas": [{"query": "Ada left.", "answers": [], "idx": 1}]},
        "queries are strings": RECORD | {"qas": ["Ada left."]},
        "answers": RECORD | {"qas": [{"query": "@placeholder.", "answers": [3], "idx": 1}]},
    },
}
CASES = [(task, record) for task, records in BAD.items() for record in records.values()]


@pytest.mark.parametrize(
    ("task", "record"), CASES, ids=[f"{t}-{name}" for t, rows in BAD.items() for name in rows]
)
def test_a_bad_record_among_good_ones_is_counted(built, tmp_path, task, record):
    good = {"RTE": RTE | {"idx": 9}, "COPA": COPA, "ReCoRD": RECORD}[task]
    write(tmp_path / task / "train.jsonl", good, record)
    rows, manifest = built(f"superglue:{tmp_path / task}")
    assert len(rows[f"{task.lower()}/train"]) == 1
    assert manifest["rejects"]["bad_record"] == 1


def test_too_many_bad_records_are_an_error(stage, tmp_path):
    write(tmp_path / "ReCoRD" / "val.jsonl", RECORD, {})  # two queries of one record
    given = [(f"superglue:{tmp_path / 'ReCoRD'}", {})]
    with pytest.raises(InputError, match="1 bad record beside 1 good record,"):
        Superglue().build(given, Target(tmp_path / "o", stage, 1, max_bad_share=0.4))


def test_a_source_of_tasks_that_are_not_wanted_is_no_error(built, benchmark):
    rows, _ = built(f"superglue:{benchmark}", tasks=("copa",))
    assert list(rows) == ["copa/validation"]
    given = [(f"superglue:{benchmark / name}", {}) for name in ("RTE", "COPA")]
    rows, _ = built(*given[1], tasks=("copa",), before=given[:1])
    assert list(rows) == ["copa/validation"]


def test_a_query_that_no_entity_answers_is_left_out(built, tmp_path):
    other = {"query": "@placeholder sang.", "answers": [{"text": "Eva"}], "idx": 9}
    write(tmp_path / "ReCoRD" / "val.jsonl", RECORD | {"qas": [*RECORD["qas"], other]})
    rows, manifest = built(f"superglue:{tmp_path / 'ReCoRD'}")
    assert len(rows["record/validation"]) == 1
    assert manifest["rejects"] == {"answer_is_no_entity": 1, "label_hidden": 1}


def test_a_name_that_tells_nothing_asks_for_an_option(built, tmp_path):
    write(tmp_path / "x.jsonl", RTE)
    with pytest.raises(InputError, match="which task and split"):
        built(f"superglue:{tmp_path / 'x.jsonl'}")
    rows, _ = built(f"superglue:{tmp_path / 'x.jsonl'}", {"config": "rte", "split": "dev"})
    assert list(rows) == ["rte/validation"]


def test_wrong_settings_and_sources_are_refused(built, benchmark):
    with pytest.raises(ConfigError, match="'rto': did you mean 'rte'"):
        built(f"superglue:{benchmark}", tasks=("rto",))
    with pytest.raises(ConfigError, match="is not a source of"):
        built(f"jsonl:{benchmark}")
    with pytest.raises(InputError, match="two rows of 'rte/train'"):
        write(benchmark / "RTE" / "train.jsonl", RTE, RTE)
        built(f"superglue:{benchmark}")


def test_premises_and_passages_as_documents(benchmark):
    ids = [document.id for document in open_source(f"superglue:{benchmark}")]
    assert ids[0] == "copa/validation/3" and ids[-1] == "record/validation/2"
    assert ids[1:-1] == ["rte/test/0", "rte/train/0", "rte/train/1"]
