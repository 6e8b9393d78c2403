"""DiscoEval: features, data, protocols, classifiers, and every kind of encoder."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from corpora import schemas
from corpora.errors import ConfigError, InputError
from corpora.rng import stream
from tests.zoo.outcomes import check_outcomes
from zoo.evaluate import discoeval
from zoo.evaluate.__main__ import main
from zoo.evaluate.compare import compare
from zoo.evaluate.discoeval import DiscoEval, probe
from zoo.evaluate.discoeval.data import DiscoEvalData, Split, TaskData, divide, read
from zoo.evaluate.discoeval.probe import fit
from zoo.evaluate.discoeval.protocol import (
    COMBINE,
    as_published,
    features_of,
    inputs_of,
    representation_of,
    vectors_of,
)
from zoo.evaluate.discoeval.tasks import L2_GRID, TASKS, ProbeSettings
from zoo.evaluate.encoders import Vectors, load_encoder
from zoo.evaluate.results import read_outcomes

from .conftest import SUBJECTS, VERBS, write_dataset

PAIRS = DiscoEval(protocol="pairs")
QUICK = DiscoEval(seeds=2, cache="", second_opinion=False, tasks=("SP", "BSO", "SSP"))


def words(count: int, seed: int) -> list[str]:
    """Short sentences, most of them distinct."""
    random = np.random.default_rng(seed)
    return [
        f"{random.choice(SUBJECTS)} {random.choice(VERBS)} {random.choice(VERBS)} {index} ."
        for index in range(count)
    ]


def letters(texts: list[str]) -> np.ndarray:
    """An encoder that sees only the mark `#`: how many of them a sentence has, as one of six.

    Each number stands there a hundred times, since so few rows make few steps.
    """
    marks = np.eye(6, dtype=np.float32)[[text.count("#") for text in texts]]
    return np.tile(marks, 100)


@pytest.fixture(scope="module")
def original_layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DiscoEval's own layout: SP without training data, DC with, BSO and SSP; no test files."""
    folder = tmp_path_factory.mktemp("original")
    texts = iter(words(4000, 3))

    def write(name: str, lines: list[list[str]]) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")

    def sp(label: int) -> list[str]:
        return [str(label), "#" * label + " " + next(texts), *(next(texts) for _ in range(4))]

    def dc() -> list[list[str]]:
        six = [next(texts) for _ in range(6)]
        return [["0", *six[:3], "## " + next(texts), *six[4:]], ["1", *six]]

    write("SP/wiki/valid.txt", [sp(i % 5) for i in range(80)])
    for name, size in (("train", 40), ("valid", 20)):
        write(f"DC/chat/{name}.txt", [line for _ in range(size) for line in dc()])
        write(f"BSO/wiki/{name}.txt", [["# " + next(texts), next(texts)] for _ in range(size)])
        ssp = [[str(i % 2), "#" * (i % 2) + " " + next(texts)] for i in range(size)]
        write(f"SSP/abs/{name}.txt", ssp)
    return folder


def test_every_task_is_declared_in_full() -> None:
    for task in TASKS.values():
        for protocol in ("single", "pairs"):
            features, probe = task.features[protocol], task.probes[protocol]
            assert features.combine in COMBINE
            slots = {slot for group in features.inputs for slot in group}
            assert slots == set(range(task.slots))
            tuned = protocol == "single" and task.name in ("SP", "BSO")
            assert (probe.l2 == L2_GRID) == tuned
            pooled = protocol == "pairs" and task.name in ("SP", "BSO", "DC")  # section 3.1
            assert features.vectors == ("pooled" if pooled else "cls_mean")
    hidden = [task.name for task in TASKS.values() if task.probes["single"].hidden]
    assert hidden == ["DC"]


def test_features_are_those_of_the_paper() -> None:
    a, b, c = (np.array([[float(n), 2.0 * n]]) for n in (1, 3, 7))
    assert COMBINE["position"]([a, b, c]).tolist() == [[1, 2, -2, -4, -6, -12]]
    assert COMBINE["order"]([a, b]).tolist() == [[1, 2, 3, 6, -2, -4]]
    assert COMBINE["relation"]([a, b]).tolist() == [[1, 2, 3, 6, 3, 12, 2, 4]]
    assert COMBINE["concatenate"]([a, b, c]).tolist() == [[1, 2, 3, 6, 7, 14]]


def _data(task: str, columns: list[list[list[str]]]) -> TaskData:
    rows = len(columns[0])
    split = Split(tuple(columns), np.arange(rows) % 2, np.arange(rows))
    return TaskData(TASKS[task], "test", ("a", "b"), {"train": split})


@pytest.mark.parametrize(
    ("task", "representation", "vectors", "published"),
    [
        ("SP", "auto", "pooled", True),
        ("BSO", "auto", "pooled", True),
        ("DC", "auto", "pooled", True),
        ("SSP", "auto", "cls_mean", True),
        ("RST-DT", "auto", "cls_mean", True),
        ("RST-DT", "pooled", "pooled", False),
    ],
)
def test_the_pair_protocol_pools_three_tasks_alone(
    task: str, representation: str, vectors: str, published: bool, tiny_bert: Path
) -> None:
    options = DiscoEval(protocol="pairs", representation=representation)
    encoder = load_encoder(str(tiny_bert))
    assert representation_of(encoder, options, task) == vectors
    assert as_published(encoder, options) == published  # else there is no average
    if representation == "auto":
        assert representation_of(encoder, DiscoEval(), task) == "cls_mean"


def test_a_subtree_is_the_mean_of_its_units_or_one_text() -> None:
    data = _data("RST-DT", [[["A", "ccc"], ["a"]], [["bb"], ["bb", "a", "ccc"]]])
    sizes = Vectors(lambda texts: np.array([[len(text)] for text in texts]))
    inputs = inputs_of(data, DiscoEval())
    assert inputs.texts == ["a", "ccc", "bb"] and inputs.asked == 7
    found = features_of(inputs, vectors_of(sizes, inputs.texts, ["x"])["x"])
    assert found["train"].tolist() == [[2, 2, 4, 0], [1, 2, 2, 1]]
    inputs = inputs_of(data, PAIRS)
    assert inputs.texts == ["a ccc", "a", "bb", "bb a ccc"]
    found = features_of(inputs, vectors_of(sizes, inputs.texts, ["x"])["x"])
    assert found["train"].tolist() == [[5, 2, 10, 3], [1, 8, 8, 7]]


def test_the_pair_protocol_encodes_sentences_together() -> None:
    columns = [
        [[text.format(row)] for row in (1, 2)] for text in ("A{}", "B{}", "C{}", "D{}", "E{}")
    ]
    data = _data("SP", columns)
    inputs = inputs_of(data, PAIRS)
    pairs = [("a1", "b1"), ("a2", "b2"), ("a1", "c1")]
    assert inputs.texts[:5] == ["a1", "a2", *pairs] and len(inputs.texts) == 10
    vectors = np.array([1.0, 2.0, *np.arange(10.0, 18)])[:, None]
    found = features_of(inputs, vectors)
    assert found["train"].tolist() == [[1, 10, 12, 14, 16], [2, 11, 13, 15, 17]]
    assert inputs_of(_data("BSO", columns[:2]), PAIRS).texts[0] == ("a1", "b1")
    cased = DiscoEval(protocol="pairs", lower=False)
    dc = inputs_of(_data("DC", [*columns, columns[0]]), cased)
    assert dc.texts[0] == ("A1", "B1") and len(dc.texts) == 6


def test_coherent_and_altered_texts_stay_together(original_layout: Path) -> None:
    found = read(str(original_layout), ["DC"])
    split = found.tasks[0].splits["validation"]
    train, held = divide(split, seed=5)
    assert len(train) == 30 and len(held) == 10
    assert not set(train.units) & set(held.units)
    for part in (train, held):
        assert (np.bincount(part.units)[np.unique(part.units)] == 2).all()
        assert part.labels.mean() == 0.5
    again, _ = divide(split, seed=5)
    assert again.units.tolist() == train.units.tolist()
    assert divide(split, seed=6)[0].units.tolist() != train.units.tolist()


def test_the_original_layout(original_layout: Path) -> None:
    tasks = {data.name: data for data in read(str(original_layout)).tasks}
    assert list(tasks) == ["SP wiki", "BSO wiki", "DC chat", "SSP abs"]
    sp, bso = tasks["SP wiki"], tasks["BSO wiki"]
    assert {name: len(split) for name, split in sp.splits.items()} == {
        "train": 60,
        "validation": 20,
    }
    assert "no training set" in sp.notes[0] and not bso.notes
    first, second = (slot[:2] for slot in bso.splits["train"].slots)
    assert first == second[::-1] and bso.splits["train"].labels[:4].tolist() == [1, 0, 1, 0]


def test_a_folder_without_the_files_is_passed_over(original_layout: Path, tmp_path: Path) -> None:
    shutil.copytree(original_layout, tmp_path / "data")
    (tmp_path / "data" / "SP" / ".ipynb_checkpoints").mkdir()
    names = [data.name for data in read(str(tmp_path / "data")).tasks]
    assert names == [data.name for data in read(str(original_layout)).tasks]


def test_a_limit_keeps_whole_units(original_layout: Path) -> None:
    for data in read(str(original_layout), ["DC", "BSO"], limit=10).tasks:
        assert {name: len(split) for name, split in data.splits.items()} == {
            "train": 10,
            "validation": 10,
        }
        assert (np.bincount(data.splits["train"].units) % 2 == 0).all()


def test_a_limit_keeps_the_shares_of_the_classes() -> None:
    texts = [[str(row)] for row in range(400)]
    alternating = Split((texts,), np.arange(400) % 2, np.arange(400))  # as SSP's rows are
    splits = {"train": alternating, "validation": alternating}
    data = TaskData(TASKS["SSP"], "abs", ("body", "abstract"), splits)
    for limit in (100, 200):
        (limited,) = read(DiscoEvalData([data]), limit=limit).tasks
        for split in limited.splits.values():
            assert np.bincount(split.labels).tolist() == [limit // 2, limit // 2]
            assert np.diff(split.units).max() < 10  # from all of the split


def test_a_function_is_evaluated(original_layout: Path) -> None:
    found = discoeval.run(letters, original_layout, QUICK)
    metrics = found["metrics"]
    ssp = metrics["tasks"]["SSP"]["domains"]["abs"]
    assert ssp["split"] == "validation" and ssp["value"] == 1.0 and ssp["ci"] == [1.0, 1.0]
    assert ssp["rows"] == {"train": 40, "validation": 20} and len(ssp["seeds"]) == 2
    assert metrics["tasks"]["BSO"]["value"] == metrics["tasks"]["SP"]["value"] == 1.0
    assert metrics["average"]["complete"] is False
    sizes = [
        d["rows"]["validation"] for t in metrics["tasks"].values() for d in t["domains"].values()
    ]
    assert found["examples"] == sum(sizes) > 20
    assert found == discoeval.run(letters, original_layout, QUICK)


def test_arrays_give_what_the_function_gives(original_layout: Path) -> None:
    options = DiscoEval(seeds=1, cache="", tasks=("BSO", "SSP"), protocol="pairs")
    texts = discoeval.texts(original_layout, options)
    assert any(isinstance(text, tuple) for text in texts) and len(texts) == len(set(texts))
    array = letters([text if isinstance(text, str) else " ".join(text) for text in texts])
    by_array = discoeval.run(array, original_layout, options)
    assert by_array == discoeval.run(torch.from_numpy(array), original_layout, options)
    with pytest.raises(InputError, match="1 vectors for"):
        discoeval.run([[1.0, 2.0]], original_layout, options)
    by_function = discoeval.run(letters, original_layout, options)
    assert by_array["metrics"] == by_function["metrics"]
    assert by_array["metrics"]["tasks"]["SSP"]["domains"]["abs"]["sklearn"]["value"] == 1.0
    with pytest.raises(InputError, match="no vector for the text"):
        discoeval.run({"one": array[0]}, original_layout, options)


def test_tensors_with_gradients_are_vectors_too(original_layout: Path) -> None:
    def tensors(texts: list[str]) -> torch.Tensor:
        return torch.tensor(letters(texts), requires_grad=True)

    options = QUICK.model_copy(update={"tasks": ("SSP",), "seeds": 1})
    by_tensor, by_array = (
        discoeval.run(function, original_layout, options)["metrics"]
        for function in (tensors, letters)
    )
    assert by_tensor == by_array


def test_without_layers_nothing_is_encoded(original_layout: Path) -> None:
    def never(texts: list[str]) -> np.ndarray:
        raise AssertionError("encoded before the options were checked")

    with pytest.raises(ConfigError, match="no layers to look at"):
        discoeval.run(never, original_layout, QUICK.model_copy(update={"layers": True}))


def test_a_folder_has_the_name_that_it_is_given(original_layout: Path, tiny_bert: Path) -> None:
    options = QUICK.model_copy(update={"tasks": ("SSP",), "seeds": 1})
    found = discoeval.run(tiny_bert, original_layout, options, name="mine")
    assert found["model"]["name"] == "mine"


def test_a_function_must_give_one_vector_a_text(original_layout: Path) -> None:
    with pytest.raises(InputError, match=r"gave an array of shape \(1, 600\)"):
        discoeval.run(lambda texts: letters(texts[:1]), original_layout, QUICK)
    with pytest.raises(InputError, match="NaN"):
        discoeval.run(lambda texts: letters(texts) * np.nan, original_layout, QUICK)


def test_built_folders_are_recognised_by_their_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = words(12, 1)
    rows: dict[str, tuple[Any, Callable[[int], dict[str, Any]]]] = {
        "sp": (schemas.SP, lambda i: {"sentences": texts[:5]}),
        "bso": (schemas.BSO, lambda i: {"sentence1": texts[i], "sentence2": texts[i + 2]}),
        "dc_chat": (
            schemas.DC,
            lambda i: {
                "pair": i // 2,
                "position": 1,
                "donor": "",
                "found_by": "",
                "sentences": texts[:6],
            },
        ),
        "ssp": (schemas.SSP, lambda i: {"section": "", "sentence": texts[i]}),
        "pdtb_explicit": (
            schemas.pdtb(["x", "y"]),
            lambda i: {"arg1": texts[i], "arg2": "so", "connective": "", "sense": "x"},
        ),
        "rst": (
            schemas.rst(["x", "y"]),
            lambda i: {"relation": "x", "left": texts[: i + 1], "right": texts[-2:]},
        ),
        "pdtb_marked": (schemas.PDTB_MARKED, lambda i: {"arg1": texts[i], "arg2": "so"}),
    }
    for name, (schema, row) in rows.items():
        listed = [{"doc": "d", "label": i % 2, **row(i)} for i in range(4)]
        parts = {("default", split): (listed, schema) for split in ("train", "validation", "test")}
        write_dataset(tmp_path / name, name, parts)
    (tmp_path / "notes.txt").write_text("no dataset", encoding="utf-8")
    found = read(str(tmp_path))
    assert [data.name for data in found.tasks] == [
        "SP sp",
        "BSO bso",
        "DC dc_chat",
        "SSP ssp",
        "PDTB-E pdtb_explicit",
        "RST-DT rst",
    ]
    one = read(str(tmp_path / "bso"))
    assert one.tasks[0].revision == "hash-of-bso"
    assert one.tasks[0].splits["test"].units.tolist() == [0, 0, 1, 1]
    monkeypatch.chdir(tmp_path / "bso")
    assert [data.name for data in read(".").tasks] == ["BSO bso"]
    options = DiscoEval(
        seeds=1, cache="", tasks=("PDTB-E", "RST-DT", "PDTB-I"), second_opinion=False
    )
    metrics = discoeval.run(letters, tmp_path, options)["metrics"]
    assert metrics["skipped"] == {"PDTB-I": "no data of it there"}
    assert "PDTB-I is left out: no data of it there" in caplog.text
    result = metrics["tasks"]
    rst = result["RST-DT"]["domains"]["rst"]
    assert rst["split"] == "test" and rst["features"] == 2400 and "validation" in rst


def test_the_builder_tells_explicit_from_implicit_relations(tmp_path: Path) -> None:
    """Not the word: it may stand in the command, as a build file's name."""
    schema = schemas.pdtb(["x", "y"])
    row = {"doc": "d", "arg1": "One.", "arg2": "so", "connective": "", "sense": "x"}
    rows = [{**row, "label": i % 2} for i in range(4)]
    parts = {("default", split): (rows, schema) for split in ("train", "validation", "test")}

    def task_of(name: str, **stage: Any) -> str:
        folder = write_dataset(tmp_path / name, name, parts)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        manifest["stage"] |= stage
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        return read(str(folder)).tasks[0].task.name

    command = "luigi --module workflows Dataset --config explicit_and_implicit.toml"
    assert task_of("pdtb_implicit", command=command) == "PDTB-I"
    assert task_of("relations", settings={"builder": "pdtb_explicit"}) == "PDTB-E"
    assert task_of("not_explicit", settings={"builder": "pdtb_implicit"}) == "PDTB-I"


def test_another_builder_s_pairs_are_not_taken_for_bso(tmp_path: Path) -> None:
    row = {"doc": "d", "sentence1": "One.", "sentence2": "Two."}
    rows = [{**row, "label": i % 2} for i in range(4)]
    parts = {("default", split): (rows, schemas.BSO) for split in ("train", "validation", "test")}
    folder = write_dataset(tmp_path / "follows", "follows", parts)
    assert read(str(folder)).tasks[0].task.name == "BSO"  # of no builder that is known
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["stage"]["settings"] = {"builder": "follows"}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match="no rows of any task"):
        read(str(folder))
    # Beside other datasets it is not even opened: it may be large.
    write_dataset(tmp_path / "bso", "bso", parts)
    for shard in folder.glob("default/*.parquet"):
        shard.write_bytes(b"")
    found = read(str(tmp_path))
    assert [data.name for data in found.tasks] == ["BSO bso"] and not found.skipped


def test_a_built_dataset_without_labels_or_rows_is_refused(tmp_path: Path) -> None:
    rows = [
        {"doc": "d", "label": i % 2, "section": "", "sentence": f"It is {i}."} for i in range(8)
    ]
    parts = {("default", split): (rows, schemas.SSP) for split in ("train", "validation", "test")}
    folder = write_dataset(tmp_path / "ssp", "ssp", parts)
    (shard,) = folder.glob("default/test-*.parquet")
    table = pq.read_table(shard)
    hidden = pa.array([-1] * len(table), table.schema.field("label").type)
    at = table.column_names.index("label")
    pq.write_table(table.set_column(at, table.schema.field("label"), hidden), shard)
    with pytest.raises(InputError, match="row 0 of the split 'test' has a label that is none"):
        read(str(folder))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for split in manifest["configs"]["default"]["splits"].values():
        split["shards"] = []
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match="no rows of any task"):
        read(str(folder))


def test_an_array_must_have_a_row_for_each_text(original_layout: Path) -> None:
    options = DiscoEval(seeds=1, cache="", tasks=("SSP",), second_opinion=False)
    count = len(discoeval.texts(original_layout, options, limit=8))
    with pytest.raises(InputError, match=f"3 vectors for {count} texts") as caught:
        discoeval.run(np.zeros((3, 2), np.float32), original_layout, options, limit=8)
    assert "discoeval.texts(DATA, options, limit=...)" in caught.value.hint
    with pytest.raises(InputError, match=r"gave an array of shape \(\d+,\)"):
        discoeval.run(np.zeros(count, np.float32), original_layout, options, limit=8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol": "singel"}, "protocol = 'singel': did you mean 'single'"),
        ({"tasks": "BS0"}, "tasks = 'BS0'"),
        ({"hidden": -7}, "hidden = -7: expected -1 or more"),
        ({"dtype": "floot"}, "dtype = 'floot'"),
        ({"seeds": 0}, "seeds = 0: expected 1 or more"),
        ({"batch_tokens": "many"}, "batch_tokens = 'many': expected a whole number"),
    ],
)
def test_options_are_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DiscoEval.of(given)
    with pytest.raises(ValueError, match=next(iter(given))):
        DiscoEval(**given)
    assert DiscoEval.of({"seeds": "2", "tasks": "SP, BSO"}).tasks == ("SP", "BSO")


def test_what_is_wrong_with_the_data_is_said(original_layout: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tasks\.0 = 'BS0'") as caught:
        DiscoEval.of({"tasks": ["BS0"]})
    assert "did you mean 'BSO'" in str(caught.value)
    with pytest.raises(InputError, match="holds no rows of RST-DT"):
        read(str(original_layout), ["RST-DT"])
    with pytest.raises(InputError, match="any task"):
        read(str(tmp_path))
    for folder in (original_layout, tmp_path):
        with pytest.raises(ConfigError, match="no configuration 'wiki': it is a folder of several"):
            read(f"{folder}@wiki")
    broken = tmp_path / "DC" / "chat"
    broken.mkdir(parents=True)
    line = "\t".join(["1", *"abcdef"])
    (broken / "valid.txt").write_text(f"{line}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"DC chat: its training set has 1 class"):
        read(str(tmp_path))


def _relations(folder: Path, lines: str | bytes, labels: str = "Cause\nContrast") -> Path:
    """A folder in the original layout with PDTB's files; `labels` without a last line end."""
    place = folder / "PDTB" / "Implicit"
    place.mkdir(parents=True, exist_ok=True)
    (place / "labelset.txt").write_bytes(labels.encode())
    (place / "valid.txt").write_bytes(lines.encode() if isinstance(lines, str) else lines)
    return folder


def test_relations_of_the_original_layout(tmp_path: Path) -> None:
    lines = "".join(f"{i % 2}\tone {i}\u2028more\ttwo\n" for i in range(8)) + "\n"
    (task,) = read(str(_relations(tmp_path, lines))).tasks
    assert task.labels == ("Cause", "Contrast")
    assert sum(len(split) for split in task.splits.values()) == 8
    assert "\u2028" in task.splits["train"].slots[0][0][0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "0\ta\tb\n2\ta\tb\n",
            r"valid.txt:2: expected a label number from 0 to 1",
        ),
        (b"0\ta\tb\n1\tcaf\xe9\tb\n", r"valid.txt:2: not UTF-8: byte 0xe9"),
        ("0\ta\tb\n\u00b2\ta\tb\n", r"valid.txt:2: expected a label number"),
        ("", "has no examples"),
    ],
)
def test_bad_relations_are_named(lines: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(str(_relations(tmp_path, lines)))


TREES = [
    ["NS-elaboration", ["It rained ,", "so we stayed"], ["inside ."]],
    ["NN-list", ["We read"], ["and wrote ."]],
    ["NS-elaboration", ["She waved"], ["because he left ,", "at last ."]],
]


def write_trees(folder: Path, rows: Any = TREES, below: str = "RST/py3") -> Path:
    """A folder in the original layout with the pickles of RST-DT."""
    (folder / below).mkdir(parents=True, exist_ok=True)
    for split in ("TRAIN", "DEV", "TEST"):
        (folder / below / f"RST_{split}.pkl").write_bytes(pickle.dumps(rows, protocol=2))
    return folder


@pytest.mark.parametrize("below", ["RST", "RST/py3"])
def test_the_released_pickles_of_rst_are_read(tmp_path: Path, below: str) -> None:
    (task,) = read(str(write_trees(tmp_path, below=below)), ["RST-DT"]).tasks
    assert task.name == "RST-DT rst" and task.labels == ("NN-list", "NS-elaboration")
    assert task.splits.keys() == {"train", "validation", "test"}
    assert task.splits["test"].labels.tolist() == [1, 0, 1]
    assert task.splits["test"].slots[0][0] == ["It rained ,", "so we stayed"]
    assert task.revision.startswith("files ")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*TREES, ["NN-list", [], ["nothing"]]], "RST_TRAIN.pkl: row 3: expected a label and two"),
        ([["NN-list", ["one"], "two"]], r"row 0: expected a label and two lists of texts: .\['NN"),
        ({"rows": TREES}, "row 0: expected a label"),
        ([], "RST_TRAIN.pkl: has no examples"),
        ([Path("a")], "a pickle refused: it refers to pathlib"),
    ],
)
def test_bad_pickles_of_rst_are_named(tmp_path: Path, rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(str(write_trees(tmp_path, rows)))


def test_released_files_and_a_built_dataset_are_evaluated_together(
    original_layout: Path, tmp_path: Path
) -> None:
    released = write_trees(shutil.copytree(original_layout, tmp_path / "data/released"))
    shutil.rmtree(released / "SP")
    row = {"doc": "d", "label": 0, "relation": "x", "left": ["one"], "right": ["two"]}
    parts = {
        ("default", split): ([row, {**row, "label": 1}], schemas.rst(["x", "y"]))
        for split in ("train", "validation", "test")
    }
    write_dataset(tmp_path / "data/rst", "rst", parts)
    tasks = [(data.name, data.dataset) for data in read(str(tmp_path / "data")).tasks]
    assert tasks == [("BSO wiki", ""), ("DC chat", ""), ("SSP abs", ""), ("RST-DT rst", "rst")]


def test_sp_is_also_judged_without_its_context(original_layout: Path) -> None:
    (data,) = read(str(original_layout), ["SP"]).tasks
    alone = QUICK.model_copy(update={"context": False, "tasks": ("SP",)})
    inputs = inputs_of(data, alone)
    first = [text.lower() for split in data.splits.values() for (text,) in split.slots[0]]
    assert inputs.texts == first
    result = discoeval.run(letters, original_layout, alone)
    assert result["protocol"]["context"] is False
    assert result["metrics"]["tasks"]["SP"]["domains"]["wiki"]["features"] == 600


def test_the_limit_is_part_of_the_protocol(original_layout: Path, tmp_path: Path) -> None:
    options = DiscoEval(seeds=1, cache="", second_opinion=False, tasks=("SSP",))
    paths = []
    for limit in (0, 10):
        found = discoeval.run(letters, original_layout, options, limit=limit)
        assert found["protocol"]["limit"] == limit
        paths.append(tmp_path / f"{limit}.json")
        paths[-1].write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(InputError, match=r"limit = 0.*limit = 10"):
        compare(paths)


def test_the_result_of_run_is_kept_and_compared(original_layout: Path, tmp_path: Path) -> None:
    options = DiscoEval(seeds=2, cache="", second_opinion=False, tasks=("SP", "BSO"))

    def blind(texts: list[str]) -> np.ndarray:
        return np.ones((len(texts), 4), np.float32)

    paths = [tmp_path / name for name in ("letters.json", "blind.json")]
    for path, function in zip(paths, (letters, blind), strict=True):
        found = discoeval.run(function, original_layout, options, name=path.stem, json=path)
        assert json.loads(path.read_text(encoding="utf-8")) == found
        check_outcomes(path)
    (table,) = compare(paths).tables
    found = table.differences["blind"]
    rows = {row.name: row.cells for row in table.rows}
    for column, one in found.items():
        if column in rows["blind"]:
            value = rows["blind"][column].value - rows["letters"][column].value
            assert one.value == pytest.approx(value, abs=1e-4)
    mean = found["mean of 2 tasks"]
    assert mean.ci[0] < mean.value < mean.ci[1] < 0
    said = "\n".join(table.notes)
    assert "split validation" in said and "split test" not in said
    assert "all models: SP wiki: no training set: 60 rows of the validation set train" in said
    assert "all models: BSO wiki: no test set: the accuracy is that of the validation set" in said


def test_other_files_are_another_revision(original_layout: Path, tmp_path: Path) -> None:
    options = DiscoEval(seeds=1, cache="", second_opinion=False, tasks=("SSP",))
    changed = shutil.copytree(original_layout, tmp_path / "changed")
    (path,) = (changed / "SSP").glob("*/valid.txt")
    first, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*rest, first]), encoding="utf-8")
    for name, folder in (("a", original_layout), ("b", changed)):
        discoeval.run(letters, folder, options, json=tmp_path / f"{name}.json")
    with pytest.raises(
        InputError, match=r"revision files [0-9a-f]{12}, split validation; .*b\.json"
    ):
        compare([tmp_path / "a.json", tmp_path / "b.json"])


def test_every_seed_scores_the_same_rows(original_layout: Path, tmp_path: Path) -> None:
    options = DiscoEval(seeds=1, cache="", second_opinion=False, tasks=("SP",))
    paths = [tmp_path / f"{seed}.json" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        found = discoeval.run(letters, original_layout, options, seed=seed, json=path)
        notes = found["metrics"]["tasks"]["SP"]["domains"]["wiki"]["notes"]
        assert "no training set" in notes[0]
    one, two = ([o.units for o in read_outcomes(path)["SP"].values()] for path in paths)
    assert one == two


def test_only_an_absent_test_split_falls_back(original_layout: Path) -> None:
    with pytest.raises(ConfigError, match="no split 'tset'") as caught:
        discoeval.run(letters, original_layout, QUICK, split="tset")
    assert "it has: validation, train" in str(caught.value)


def test_run_passes_batch_tokens(original_layout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def load(model: str, representation: str, **options: Any) -> Vectors:
        asked.update(options)
        return Vectors(letters, "letters")

    monkeypatch.setattr("zoo.evaluate.encoders.load_encoder", load)
    options = DiscoEval(seeds=1, cache="", second_opinion=False, tasks=("SSP",), batch_tokens=77)
    discoeval.run("model", original_layout, options)
    assert asked["batch_tokens"] == 77


def test_the_command_line_writes_result_and_heat_map(
    original_layout: Path, tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found.json"
    command = ["discoeval", "--model", str(tiny_bert), "--data", str(original_layout)]
    own = ["--tasks", "SP,SSP", "--seeds", "1", "--layers", "true"]
    files = ["--json", str(out), "--cache", str(tmp_path / "vectors"), "--limit", "40"]
    assert main([*command, *own, *files]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["model"]["representation"] == "cls_mean" and found["protocol"]["seeds"] == 1
    layers = found["metrics"]["layers"]
    assert layers["layers"] == [1, 2] and len(layers["accuracy"]["SP"]) == 2
    assert set(layers["best"].values()) <= {1, 2}
    csv = (tmp_path / "found.layers.csv").read_text(encoding="utf-8").splitlines()
    assert csv[0] == "layer,SP,SSP" and len(csv) == 3
    assert (tmp_path / "found.layers.png").stat().st_size > 1000
    assert "Accuracy of each layer" in (tmp_path / "found.layers.svg").read_text(encoding="utf-8")
    compared = compare([out])
    ci = found["metrics"]["tasks"]["SP"]["domains"]["wiki"]["ci"]
    assert compared.tables[0].rows[0].cells["SP"].ci == pytest.approx([100 * x for x in ci])
    shown = compared.render()
    assert "BERT-Base (published" in shown and "accuracy is that of the validation set" in shown
    check_outcomes(out)
    before = out.read_bytes()
    assert main([*command, *own, *files]) == 0
    assert out.read_bytes() == before
    assert main([*command, "--protokol", "pairs"]) == 2
    assert "did you mean '--protocol'" in capsys.readouterr().err


def _separable(
    rows: int, seed: int, width: int = 6, classes: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    return random.normal(size=(rows, width)).astype(np.float32) + 8 * np.eye(width)[labels].astype(
        np.float32
    ), labels


def test_training_ends_after_too_many_looks_without_a_new_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter([0.5, 0.4, 0.6, 0.6, 0.1, 0.9, 0.9, 0.9, 0.9])
    monkeypatch.setattr(probe, "_accuracies", lambda *_: [next(looks)])
    sets = _separable(70, 1), _separable(20, 2)
    # Looks 2, 4 and 5 brought nothing new: the third of them ends it, though not in a row.
    best = fit(*sets, 3, ProbeSettings(tenacity=2, epoch_size=4), seed=0)
    assert (best.accuracy, best.epochs, next(looks)) == (0.6, 12, 0.9)
    # After 4, 8 and 12 epochs: the bound is inclusive, as in the released code.
    looks = iter([0.1, 0.2, 0.3, 0.4])
    best = fit(*sets, 3, ProbeSettings(epoch_size=4, max_epochs=10), seed=0)
    assert (best.epochs, next(looks)) == (12, 0.4)


def test_members_of_the_grid_are_as_if_trained_alone() -> None:
    train, validation = _separable(200, 4), _separable(80, 5)
    settings = ProbeSettings(l2=(1e-5, 1e-1), epoch_size=1, max_epochs=6)
    both = fit(train, validation, 3, settings, seed=3)
    alone = [fit(train, validation, 3, replace(settings, l2=(l2,)), seed=3) for l2 in settings.l2]
    assert both.grid == {one.l2: one.accuracy for one in alone}
    same = next(one for one in alone if one.l2 == both.l2)
    for mine, its in zip(both.parameters, same.parameters, strict=True):
        torch.testing.assert_close(mine, its, atol=1e-6, rtol=1e-4)


def _by_the_book(
    train: tuple[np.ndarray, np.ndarray],
    held: tuple[np.ndarray, np.ndarray],
    settings: ProbeSettings,
    seed: int,
) -> tuple[torch.nn.Module, float]:
    """The released code's loop with torch's own layers and Adam, from the same random draws."""
    random = stream(seed, "zoo.discoeval.probe")
    width, hidden = train[0].shape[1], settings.hidden
    drawn = probe.initial(width, 3, hidden, random)
    linear = torch.nn.Linear
    parts = [linear(width, hidden), torch.nn.Sigmoid(), linear(hidden, 3)] if hidden else None
    model = torch.nn.Sequential(*(parts or [linear(width, 3)]))
    for parameter, value in zip(model.parameters(), drawn, strict=True):
        parameter.data.copy_(value)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=settings.l2[0])
    (x, y), (held_x, held_y) = ((torch.tensor(a), torch.tensor(b)) for a, b in (train, held))
    best, count, epochs, stop, state = -1.0, 0, 0, False, None
    while not stop and epochs <= settings.max_epochs:
        for _ in range(settings.epoch_size):
            order = random.permutation(len(x))
            for start in range(0, len(x), 64):
                rows = order[start : start + 64]
                loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
                adam.zero_grad()
                loss.backward()
                adam.step()
        epochs += settings.epoch_size
        accuracy = float((model(held_x).argmax(1) == held_y).double().mean())
        if accuracy > best:
            best, state = accuracy, copy.deepcopy(model.state_dict())
        else:
            stop = count >= settings.tenacity
            count += 1
    model.load_state_dict(state)
    return model, best


@pytest.mark.parametrize("hidden", [0, 12])
def test_the_classifier_is_that_of_the_released_code(hidden: int) -> None:
    settings = ProbeSettings(hidden=hidden, l2=(1e-2,), tenacity=2, epoch_size=2, max_epochs=60)
    random = np.random.default_rng(8)
    noise = [random.normal(size=(rows, 6)).astype(np.float32) * 6 for rows in (150, 90)]
    train, held = (
        (x + e, y) for (x, y), e in zip((_separable(150, 6), _separable(90, 7)), noise, strict=True)
    )
    found = fit(train, held, 3, settings, seed=4)
    model, accuracy = _by_the_book(train, held, settings, seed=4)
    assert found.accuracy == pytest.approx(accuracy) and accuracy < 0.95
    for mine, its in zip(found.parameters, model.parameters(), strict=True):
        torch.testing.assert_close(mine, its.detach(), atol=1e-5, rtol=1e-3)


def test_one_seed_gives_one_classifier() -> None:
    sets = _separable(150, 6), _separable(60, 7)
    settings = ProbeSettings(hidden=8, max_epochs=8)
    first, again, other = (fit(*sets, 3, settings, seed=seed) for seed in (1, 1, 2))
    assert all(map(torch.equal, first.parameters, again.parameters))
    assert not torch.equal(first.parameters[0], other.parameters[0])


def test_vectors_that_are_no_numbers_are_refused() -> None:
    features, labels = _separable(20, 1)
    features[3, 2] = np.nan
    with pytest.raises(InputError, match="NaN"):
        fit((features, labels), (features, labels), 3, ProbeSettings(), seed=0)
    whole = _separable(20, 1)
    probe = fit(whole, whole, 3, ProbeSettings(max_epochs=1), seed=0)
    with pytest.raises(InputError, match="NaN"):
        probe.predict(features)  # the first class would be its answer
