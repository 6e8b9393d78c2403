"""`discorpora inspect`: rows of datasets and files as a person reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import ConfigError
from corpora.outside import split_config
from corpora.splits import division
from corpora.store.atomic import staged
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.store.rows import class_label
from tests.workflows.test_cli import TEXT, run


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", TEXT.encode(), ("a.txt:1", "not JSON")),
        ("a.jsonl", b'{"a": 1}\n{"a": "caf\xe9"}\n', ("a.jsonl:2", "not UTF-8")),
        ("a.parquet", b"PAR1 and no more", ("a.parquet", "cannot be read as Parquet")),
        ("manifest.json", b'{"name": "caf\xe9"}', ("manifest.json", "'utf-8'")),
        ("manifest.json", b"[1, 2]", ("manifest.json", "is no manifest")),
    ],
)
def test_inspect_names_a_file_that_it_cannot_show(
    name: str,
    content: bytes,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_bytes(content)
    shown = tmp_path if name == "manifest.json" else tmp_path / name
    assert run(monkeypatch, "inspect", shown) == 1
    message = capfd.readouterr().err
    for word in words:
        assert word in message


def test_rows_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"marker": ["so", "but", "so"], "b": ["x", "a text", None]})
    pq.write_table(table, tmp_path / "three.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "none.parquet")
    assert run(monkeypatch, "inspect", tmp_path / "none.parquet") == 0
    assert "0 of 0 rows" in capfd.readouterr().out
    assert run(monkeypatch, "inspect", tmp_path / "three.parquet", "-n", "2") == 0
    shown = capfd.readouterr().out
    assert "2 of 3 rows" in shown and "marker so  b x" in shown and "b a text" in shown
    rows = tmp_path / "rows.jsonl"
    for source in ("three.parquet", "rows.jsonl"):
        arguments = ("inspect", tmp_path / source, "--marker", "so", "--json")
        assert run(monkeypatch, *arguments) == 0
        assert read_lines(capfd) == [{"marker": "so", "b": "x"}, {"marker": "so", "b": None}]
        rows.write_text("\n".join(map(json.dumps, table.to_pylist())), encoding="utf-8")


def read_lines(capfd: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset's folder: `books5`, the default (train and test), and `all` (train)."""
    folder = tmp_path_factory.mktemp("data") / "dataset"
    schema = pa.schema([("s1", pa.string()), class_label("label", ["but", "because"])])
    stage, card = Stage("dataset/d", 1, "ab"), Card("D", "d", "d", {}, "none")
    with staged(folder) as partial, DatasetFolder(partial, "d", stage, card) as made:
        for config, split in (("books5", "train"), ("books5", "test"), ("all", "train")):
            rows = [{"s1": f"{config} {split} {n}", "label": n % 2} for n in range(4)]
            made.writer(config, split, schema).extend(rows)
        made.count_licences(pa.array(["MIT"] * 12))
        made.finish("books5")
    return folder


def named(place: Path, options: tuple[str, ...]) -> list[str]:
    """The words of a command: `PLACE@CONFIG` if the first option begins with `@`, then options."""
    at = options[0] if options and options[0].startswith("@") else ""
    return [f"{place}{at}", *options[bool(at) :]]


def test_rows_of_the_part_that_is_asked_for(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = {
        (): "books5 train 0",
        ("@all",): "all train 0",
        ("--split", "test"): "books5 test 0",
        ("@books5", "--split", "test"): "books5 test 0",
        ("--marker", "because"): "books5 train 1",
    }
    for options, first in shown.items():
        assert run(monkeypatch, "inspect", *named(dataset, options), "-n", 2, "--json") == 0
        label = "because" if "--marker" in options else "but"
        assert read_lines(capfd)[0] == {"s1": first, "label": label}


def test_every_command_names_a_configuration_behind_an_at_sign(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for command in ("inspect", "audit", "browse"):
        assert run(monkeypatch, command, f"{dataset}@book5") == 1
        message = capfd.readouterr().err
        assert "no configuration 'book5'" in message and "did you mean 'books5'" in message
    assert run(monkeypatch, "browse", f"{dataset}@all", "--to", tmp_path / "page") == 0
    assert run(monkeypatch, "audit", f"{dataset}@all") == 0
    shown = capfd.readouterr().out
    assert "`all`: " in shown and "`books5`: " not in shown
    assert split_config(f"{dataset}@all", "all") == (str(dataset), "all")
    with pytest.raises(ConfigError, match="two configurations are named: 'all' and 'books5'"):
        split_config(f"{dataset}@all", "books5")


def test_a_dataset_is_readable(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "inspect", dataset, "--marker", "because") == 0
    shown = capfd.readouterr().out
    assert len(shown.splitlines()) < 20
    assert "books5 (default)" in shown and "but, because" in shown and "licence MIT" in shown
    assert "books5/train, because: 2 of 2 rows" in shown
    assert "label because" in shown and "books5 train 3" in shown and "label 1" not in shown


def test_a_file_that_a_dataset_lacks_is_named(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(dataset, tmp_path / "copy")
    (lost := folder / "all" / "train-00000-of-00001.parquet").unlink()
    for command in ("inspect", "audit"):
        assert run(monkeypatch, command, folder) == 1
        assert f"error: {lost}: is missing: the folder is incomplete" in capfd.readouterr().err


def test_a_stage_is_shown_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    about = {"name": "parse/a", "counts": {"tokens": 3334, "skipped": {}}, "settings": {"x": 1}}
    (tmp_path / "manifest.json").write_text(json.dumps(about), encoding="utf-8")
    rows = {"doc": ["a"], "head": [list(range(500))], "text": ["so " * 500]}
    pq.write_table(pa.table(rows), tmp_path / "parses-00000.parquet")
    for number in range(13):
        (tmp_path / f"parses-{number:05}.rejects").write_bytes(b"")
    assert run(monkeypatch, "inspect", tmp_path) == 0
    shown = capfd.readouterr().out
    assert "files   15, " in shown and "... 3 more" in shown
    assert "tokens 3,334" in shown and "... 488 more" in shown and "(1,500 characters)" in shown
    assert len(shown.splitlines()) < 15
    assert run(monkeypatch, "inspect", tmp_path.parent) == 1
    assert "is a folder of" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--split", "t"), ("no split 't'", "test, train")),
        (("--split", "trian"), ("did you mean 'train'",)),
        (("@book5",), ("did you mean 'books5'", "all, books5")),
        (("@all", "--split", "test"), ("no split 'test'", "it has: train")),
        (("--marker", "becuase"), ("did you mean 'because'",)),
    ],
)
def test_inspect_refuses_a_part_that_is_not_there(
    options: tuple[str, ...],
    words: tuple[str, ...],
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "inspect", *named(dataset, options)) != 0
    printed = capfd.readouterr()
    assert not printed.out
    for word in words:
        assert word in printed.err
    file = next(dataset.rglob("*.parquet"))
    assert run(monkeypatch, "inspect", *named(file, options)) != 0
    assert "only a dataset's folder has" in capfd.readouterr().err or "--marker" in options


def test_inspect_names_the_splits_of_a_division(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    columns = [pa.array(["a", "b"]), pa.array([1, 2], pa.uint64()), pa.array([0, 2], pa.int8())]
    path = tmp_path / "division.parquet"
    pq.write_table(pa.Table.from_arrays(columns, schema=division.SCHEMA), path)
    assert run(monkeypatch, "inspect", path, "--json") == 0
    assert [row["split"] for row in read_lines(capfd)] == ["train", "test"]


def test_labels_that_are_numbers_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"label": 0}, {}, {"label": 1}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for name in ("a.parquet", "a.jsonl"):
        assert run(monkeypatch, "inspect", tmp_path / name, "--marker", "1", "--json") == 0
        assert read_lines(capfd) == [{"label": 1}]


def test_a_damaged_page_is_said_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [f"text {n}" for n in range(5000)]}), path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[200:1200] = bytes(1000)
    path.write_bytes(data)
    assert run(monkeypatch, "inspect", path) == 1
    assert f"error: {path}: cannot be read as Parquet" in capfd.readouterr().err
