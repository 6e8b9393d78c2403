"""Targets appear by one rename or not at all; dataset folders load as they would from the Hub."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import DiscorporaError, InputError
from corpora.store import atomic
from corpora.store.atomic import MANIFEST, is_complete, partial_path, sha256, staged, write_json
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.store.rows import class_label, write_parquet

CARD = Card("Test", "What it is.", "How it was made.", {"text": "a text"}, "@misc{x}")
SCHEMA = pa.schema([pa.field("text", pa.string()), class_label("label", ["no", "yes"])])


def rows(word: str, number: int) -> list[dict]:
    return [{"text": f"{word} {i}", "label": i % 2} for i in range(number)]


def make(folder: Path, stage: Stage, word: str = "row", number: int = 10, **settings) -> dict:
    with staged(folder) as partial, DatasetFolder(partial, "d", stage, CARD, **settings) as data:
        data.writer("one", "train", SCHEMA, texts=("text",)).extend(rows(word, number))
        data.writer("one", "test", SCHEMA, texts=("text",)).extend(rows(word, 4))
        data.writer("two", "train", SCHEMA).extend(rows(word, 2))
        data.count_licences(pa.array([""] * (number + 6)))
        data.reject("too_short", 7)
        return data.finish("one")


# --- staged folders ---------------------------------------------------------------------------


def test_a_target_appears_whole_and_leaves_nothing_beside_it(tmp_path):
    target = tmp_path / "deep" / "target"
    with staged(target) as partial:
        write_json(partial / MANIFEST, {"b": 1, "a": 2})
        assert not target.exists()
    assert is_complete(target)
    assert [p.name for p in target.parent.iterdir()] == ["target"]


def test_after_an_error_finished_parts_are_kept_and_found_again(tmp_path):
    target = tmp_path / "target"
    with pytest.raises(ZeroDivisionError), staged(target) as partial:
        (partial / "shard-0").write_text("done")
        raise ZeroDivisionError
    assert not target.exists()
    with staged(target) as partial:
        assert (partial / "shard-0").read_text() == "done"
        write_json(partial / MANIFEST, {})
    assert (target / "shard-0").exists()


def test_a_stage_that_forgets_its_manifest_makes_no_target(tmp_path):
    with pytest.raises(InputError, match=r"manifest\.json"), staged(tmp_path / "target"):
        pass
    assert not (tmp_path / "target").exists()


def test_a_second_maker_is_told_who_the_first_is(tmp_path):
    with staged(tmp_path / "target") as partial:
        with (
            pytest.raises(DiscorporaError, match=f"process {os.getpid()} on .* since 20"),
            staged(tmp_path / "target"),
        ):
            pass
        write_json(partial / MANIFEST, {})
    assert is_complete(tmp_path / "target")


def test_what_this_program_did_not_make_is_not_overwritten(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "thesis.txt").write_text("precious")
    with pytest.raises(DiscorporaError, match="in the way"), staged(target):
        pass
    assert (target / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize("name", ["", ".", "..", "/", "made/.."])
def test_an_output_has_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DiscorporaError, match="name of an output"), staged(Path(name)):
        pass
    assert not [*tmp_path.iterdir()]


def test_a_killed_run_leaves_no_target_and_the_next_one_succeeds(tmp_path):
    code = f"""
        import os, signal
        from pathlib import Path
        from corpora.store.atomic import staged
        with staged(Path({str(tmp_path / "target")!r})) as partial:
            (partial / "shard-0").write_text("done")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert not (tmp_path / "target").exists()
    with staged(tmp_path / "target") as partial:
        assert (partial / "shard-0").exists()
        write_json(partial / MANIFEST, {})
    assert is_complete(tmp_path / "target")


# --- a disk that does not let itself be written -------------------------------------------------


def test_a_file_where_a_folder_is_expected(tmp_path):
    (tmp_path / "build").write_text("a file")
    with pytest.raises(DiscorporaError) as caught, staged(tmp_path / "build" / "target"):
        pass
    assert str(tmp_path / "build") in str(caught.value) and "folder" in caught.value.hint


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_a_write_that_the_system_refuses(tmp_path, monkeypatch, number):
    def refuse(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic.os, "fsync", refuse)
    with pytest.raises(DiscorporaError, match="manifest") as caught:
        write_json(tmp_path / "manifest.json", {})
    assert os.strerror(number) in str(caught.value) and caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_really_full(tmp_path):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    batch = pa.RecordBatch.from_pylist(rows("row", 4000), SCHEMA)

    def write() -> None:
        with atomic.replacing(tmp_path / "x.parquet") as partial:
            partial.symlink_to(full)
            with pq.ParquetWriter(partial, SCHEMA) as writer:
                writer.write_batch(batch)

    with pytest.raises(DiscorporaError, match="No space left") as caught:
        write()
    assert "disk is full" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_folder_where_a_file_goes_is_named_as_the_user_did(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with (
        pytest.raises(DiscorporaError, match=r"/here: cannot write it: Is a directory"),
        atomic.replacing(tmp_path / "here") as partial,
    ):
        partial.write_text("x", encoding="utf-8")


def test_of_two_processes_that_write_a_file_the_last_one_wins(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    with atomic.replacing(path) as first:
        first.write_text("first", encoding="utf-8")
        monkeypatch.setattr("os.getpid", lambda: 1)
        with atomic.replacing(path) as second:
            second.write_text("2", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "2"
    assert path.read_text(encoding="utf-8") == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(path := tmp_path / "pipe")
    reader = os.open(path, os.O_RDWR)
    atomic.write_json(path, {"a": 1})
    assert path.is_fifo() and json.loads(os.read(reader, 99)) == {"a": 1}
    os.close(reader)


def test_what_killed_processes_left_is_removed_but_in_partial_folders(tmp_path):
    (tmp_path / "stage.partial").mkdir()
    left, waited_for = tmp_path / ".run.json.17.partial", tmp_path / "stage.partial/.x.17.partial"
    left.touch()
    waited_for.touch()
    atomic.remove_unfinished(tmp_path)
    assert waited_for.exists() and not left.exists()


def test_what_a_killed_process_left_is_not_sealed(tmp_path):
    with atomic.staged(tmp_path / "data") as partial:
        (partial / ".rows.parquet.17.partial").touch()
        atomic.write_json(partial / "manifest.json", {})
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["manifest.json"]


def test_a_source_that_may_not_be_read_is_not_taken_for_the_target(tmp_path):
    with pytest.raises(PermissionError), staged(tmp_path / "target"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/corpus.txt")


# --- Parquet -----------------------------------------------------------------------------------


def test_the_bytes_depend_on_the_rows_and_not_on_the_batches(tmp_path):
    table = pa.Table.from_pylist(rows("row", 1000), SCHEMA)
    for name, size in (("a", 1000), ("b", 7), ("c", 333)):
        batches = table.to_batches(max_chunksize=size)
        number = write_parquet(tmp_path / name, batches, SCHEMA, rows_per_group=100)
        assert number == 1000
    assert len({sha256(tmp_path / name) for name in "abc"}) == 1
    assert pq.ParquetFile(tmp_path / "a").num_row_groups == 10
    assert pq.read_table(tmp_path / "a").to_pylist() == table.to_pylist()


def test_an_error_in_between_leaves_no_file(tmp_path):
    def broken():
        yield pa.RecordBatch.from_pylist(rows("row", 3), SCHEMA)
        raise ValueError("a broken batch")

    with pytest.raises(ValueError, match="a broken batch"):
        write_parquet(tmp_path / "x.parquet", broken(), SCHEMA)
    assert list(tmp_path.iterdir()) == []


# --- dataset folders -----------------------------------------------------------------------------


def test_a_folder_loads_with_label_names_and_splits(tmp_path, stage, load):
    make(tmp_path / "d", stage)
    data = load(tmp_path / "d")
    assert data["train"].features["label"].names == ["no", "yes"]
    assert data["train"][3] == {"text": "row 3", "label": 1}
    assert {split: part.num_rows for split, part in data.items()} == {"train": 10, "test": 4}
    assert load(tmp_path / "d", "two")["train"].num_rows == 2


def test_two_builds_of_one_name_are_not_confused_by_the_cache(tmp_path, load):
    first, second = Stage("s", 1, "aaaa"), Stage("s", 1, "bbbb")
    make(tmp_path / "one" / "d", first, "first")
    make(tmp_path / "two" / "d", second, "other")
    assert load(tmp_path / "one" / "d")["train"][0]["text"] == "first 0"
    assert load(tmp_path / "two" / "d")["train"][0]["text"] == "other 0"
    assert load(tmp_path / "one" / "d")["train"][0]["text"] == "first 0"


def test_the_manifest_says_what_is_in_the_folder(tmp_path, stage):
    manifest = make(tmp_path / "d", stage)
    assert manifest.items() <= json.loads((tmp_path / "d" / MANIFEST).read_text()).items()
    train = manifest["configs"]["one"]["splits"]["train"]
    assert train["rows"] == 10 and train["labels"] == {"label": {"no": 5, "yes": 5}}
    for shard in train["shards"]:
        assert shard["sha256"] == sha256(tmp_path / "d" / shard["file"])
    assert manifest["overlap"]["one"] == {"train/test": 4}
    assert manifest["rejects"] == {"too_short": 7}
    assert manifest["stage"]["hash"] == stage.hash
    assert manifest["licence"]["id"] == "unknown" and not manifest["licence"]["redistributable"]


def test_texts_in_two_splits_are_counted_once(tmp_path, stage):
    listed = pa.schema([pa.field("text", pa.string()), pa.field("s", pa.list_(pa.string()))])
    splits = {
        "train": [{"text": "a", "s": ["b", "a"]}, {"text": "a", "s": []}],
        "validation": [{"text": "x", "s": ["a", "b", "a"]}],
        "test": [{"text": "it's b", "s": ["x", "x", "b"]}],
    }
    folder = tmp_path / "it's" / "d"
    with staged(folder) as partial, DatasetFolder(partial, "d", stage, CARD) as data:
        for split, some in splits.items():
            data.writer("one", split, listed, texts=("text", "s")).extend(some)
        data.count_licences(pa.array(["MIT"]))
        overlap = data.finish("one")["overlap"]
    assert overlap == {"one": {"train/validation": 2, "train/test": 1, "validation/test": 2}}


def test_many_shards_are_numbered_of_their_number(tmp_path, stage, load):
    make(tmp_path / "d", stage, number=1000, rows_per_shard=300, rows_per_group=100)
    names = sorted(p.name for p in (tmp_path / "d" / "one").glob("train*"))
    assert names == [f"train-0000{i}-of-00004.parquet" for i in range(4)]
    assert load(tmp_path / "d")["train"]["text"][:] == [f"row {i}" for i in range(1000)]


def test_the_same_rows_give_the_same_bytes(tmp_path, stage, folder_bytes):
    make(tmp_path / "one" / "d", stage)
    make(tmp_path / "two" / "d", stage)
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


def test_what_a_broken_build_left_does_not_get_into_the_next(tmp_path, stage, folder_bytes):
    make(tmp_path / "one" / "d", stage)
    partial = partial_path(tmp_path / "two" / "d")
    (partial / "one").mkdir(parents=True)
    (partial / "one" / "train-00000-of-00009.parquet").write_bytes(b"half")
    make(tmp_path / "two" / "d", stage)
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


def test_a_folder_with_other_contents_is_never_emptied(tmp_path, stage):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("precious")
    with pytest.raises(DiscorporaError, match="in the way"):
        DatasetFolder(tmp_path / "home", "d", stage, CARD)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "precious"


def test_a_dataset_has_its_own_name_and_a_stage_proposes_one(tmp_path):
    stage = Stage("dataset/sp", 1, "ab")
    assert stage.dataset_name == "sp"
    assert make(tmp_path / "hash", stage)["name"] == "d"


def test_empty_splits_and_configurations_are_said_and_the_rest_loads(tmp_path, stage, load):
    with staged(tmp_path / "d") as partial, DatasetFolder(partial, "d", stage, CARD) as data:
        data.writer("one", "train", SCHEMA).extend(rows("row", 3))
        data.writer("one", "validation", SCHEMA).extend([])
        for split in ("train", "test"):
            data.writer("two", split, SCHEMA, texts=("text",)).extend([])
        data.count_licences(pa.array(["MIT"] * 3))
        manifest = data.finish("one")
    assert list(load(tmp_path / "d")) == ["train"]
    assert list(manifest["configs"]) == ["one"] and "two" not in manifest["overlap"]
    assert "validation" in " ".join(manifest["notes"]) and "`two`" in " ".join(manifest["notes"])


def test_a_dataset_without_any_row_is_an_error_that_says_why(tmp_path, stage):
    with (
        pytest.raises(InputError, match="not one row") as caught,
        staged(tmp_path / "d") as partial,
        DatasetFolder(partial, "d", stage, CARD) as data,
    ):
        data.writer("one", "train", SCHEMA).extend([])
        data.reject("too_short", 12)
        data.finish("one")
    assert "too_short" in caught.value.hint
    assert not (tmp_path / "d").exists()


def test_a_builder_that_counts_no_licence_is_refused(tmp_path):
    declared = Stage("dataset/d", 1, "ab", sources=[{"spec": "jsonl:x", "licence": "CC0-1.0"}])
    with (
        pytest.raises(DiscorporaError, match="counted no licence") as caught,
        staged(tmp_path / "d") as partial,
        DatasetFolder(partial, "d", declared, CARD) as data,
    ):
        data.writer("one", "train", SCHEMA).extend(rows("row", 3))
        data.finish("one")
    assert "count_licences" in caught.value.hint
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_that_is_no_class_is_refused(tmp_path, stage, label):
    with (
        pytest.raises(InputError, match=f"label {label} is none of the 2 classes of 'label'"),
        staged(tmp_path / "d") as partial,
        DatasetFolder(partial, "d", stage, CARD) as data,
    ):
        data.writer("one", "train", SCHEMA).extend([*rows("row", 3), {"text": "x", "label": label}])
    assert not (tmp_path / "d").exists()
