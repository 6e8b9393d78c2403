"""The results of a build: folders of their own, replaced whole, whatever kills a build."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from corpora.errors import DiscorporaError
from corpora.store.atomic import MANIFEST, staged, write_json
from corpora.store.copies import is_linked
from corpora.store.damage import damages
from workflows.results import RECORD, put_results, results_at, stage_folder
from workflows.settings import options
from workflows.tasks.build import lock_output, unlock_output


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An output folder."""
    return tmp_path / "out"


@pytest.fixture
def result(root: Path) -> Path:
    """Where the dataset `sp` of the build `small` stands."""
    return root / "small" / "datasets" / "sp"


def stage(root: Path, name: str) -> Path:
    """A finished stage: a card, a table of labels, two files of data."""
    folder = root / "stages" / "dataset" / "sp" / name
    with staged(folder) as partial:
        (partial / "default").mkdir()
        for split in ("train", "test"):
            (partial / "default" / f"{split}.parquet").write_text(f"{split} {name}")
        (partial / "README.md").write_text(f"The card of {name}.")
        write_json(partial / "labels.json", ["yes", "no"])
        write_json(partial / MANIFEST, {"stage": {"hash": name}})
    return folder


@pytest.fixture
def first(root: Path, result: Path) -> Path:
    """A stage whose result stands there."""
    folder = stage(root, "1" * 16)
    put_results(result.parents[1], {result: folder})
    return folder


@pytest.fixture
def other(root: Path) -> Path:
    return stage(root, "2" * 16)


def test_a_result_is_a_folder_of_its_own(first: Path, result: Path, tmp_path: Path) -> None:
    for path in filter(Path.is_file, first.rglob("*")):
        place = result / path.relative_to(first)
        assert place.read_bytes() == path.read_bytes()
        assert place.samefile(path) == (path.suffix == ".parquet")
    assert list(damages(result)) == [] and stage_folder(result) == first
    (result / "README.md").write_text("my own")
    (result / "labels.json").write_text("{}")
    assert list(damages(first)) == []
    shutil.copytree(result.parents[1], tmp_path / "copy", symlinks=True)
    copied = tmp_path / "copy" / "datasets" / "sp"
    assert stage_folder(copied) == copied
    shutil.rmtree(first)
    assert (copied / "default" / "train.parquet").read_text() == "train 1111111111111111"


def test_what_is_as_it_should_be_is_not_written_again(first: Path, result: Path) -> None:
    (result / "README.md").write_text("my own")
    before = {path: path.stat() for path in result.rglob("*")}
    put_results(result.parents[1], {result: first})
    assert before == {path: path.stat() for path in result.rglob("*")}


@pytest.mark.parametrize("code", [errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK])
def test_where_the_file_system_refuses_a_link_data_are_copied(
    code: int, result: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(code, "no hard link")

    folder = stage(root, "1" * 16)
    monkeypatch.setattr("os.link", refused)
    put_results(result.parents[1], {result: folder})
    data = result / "default" / "train.parquet"
    assert data.stat().st_nlink == 1 and data.read_text() == "train 1111111111111111"
    assert is_linked(folder, result)
    # What was made again is newer: the copy may be of what was damaged.
    later = data.stat().st_mtime_ns + 10**9
    os.utime(folder / "default" / "train.parquet", ns=(later, later))
    assert not is_linked(folder, result)


@pytest.mark.parametrize("lost", ["default/train.parquet", "README.md", MANIFEST, ""])
def test_what_a_result_has_lost_it_gets_again(lost: str, first: Path, result: Path) -> None:
    path = result / lost
    path.unlink() if lost else shutil.rmtree(path)
    put_results(result.parents[1], {result: first})
    assert is_linked(first, result) and list(damages(result)) == []


def test_an_edited_result_is_kept_when_another_takes_its_place(
    first: Path, other: Path, result: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = "sp.edited", "sp.edited1", "sp.edited2"
    for name, chosen in zip(names, ({result: other}, {result: first}, {}), strict=True):
        (result / "README.md").write_text(name)
        (result / "notes.csv").touch()
        put_results(result.parents[1], chosen)
        assert (result.with_name(name) / "README.md").read_text() == name
        assert f"{result}: was edited (README.md, notes.csv): kept as {name}" in caplog.text
        assert result.exists() == bool(chosen)
    assert not (result.parents[1] / RECORD).exists()


STEPS = [
    *((Path, name) for name in ("mkdir", "replace", "unlink")),
    *((os, name) for name in ("link", "fsync")),
    *((shutil, name) for name in ("copyfile", "rmtree")),
]


def killed_at(step: int, act: Callable, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let a process do `act` and be killed before it changes the disk for the nth time."""

    class Killed(BaseException):
        pass

    steps, dead = count(), False

    def counted(of: Callable) -> Callable:
        def call(*arguments: object, **named: object) -> object:
            nonlocal dead
            if dead := dead or next(steps) == step:
                raise Killed
            return of(*arguments, **named)

        return call

    with monkeypatch.context() as patched, suppress(Killed):
        for owner, name in STEPS:
            patched.setattr(owner, name, counted(getattr(owner, name)))
        act()
    return dead


def test_a_result_is_mended_wherever_a_build_is_killed(
    first: Path, other: Path, result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, place = result.parents[2], result.parents[1]
    for chosen in ({result: other}, {}):
        for step in count():
            put_results(place, {result: first})
            assert is_linked(first, result)
            if not killed_at(step, lambda chosen=chosen: put_results(place, chosen), monkeypatch):
                break
            # The next build: as it begins, a whole folder has its name again.
            with options("sample", str(root)):
                lock_output(root)
                unlock_output(root)
            assert not result.exists() or is_linked(first, result) or is_linked(other, result)
            assert result.exists() or not chosen
            put_results(place, {result: other})
            assert is_linked(other, result) and results_at(place) == {result: other}
            assert [path.name for path in result.parent.iterdir()] == ["sp"]
        assert step > (15 if chosen else 2)


def test_a_result_takes_the_place_of_an_empty_folder_or_a_link(
    first: Path, other: Path, result: Path
) -> None:
    """As `evaluations/x/` remains of `[evaluations.x]` where a model `x` has a suite later."""
    place = result.parents[1]
    shutil.rmtree(place)
    result.mkdir(parents=True)
    put_results(place, {result: first})
    shutil.rmtree(place)
    result.parent.mkdir(parents=True)
    result.symlink_to(first)  # as builds wrote them earlier
    assert results_at(place) == {result: first}
    put_results(place, {result: other})
    assert is_linked(other, result) and (first / MANIFEST).is_file()
    inner = result / "inner"
    put_results(place, {inner: first})
    put_results(place, {result: first})
    assert is_linked(first, result)


def test_a_result_takes_the_place_of_nothing_else(first: Path, result: Path) -> None:
    mine = result.with_name("mine")
    mine.mkdir()
    (mine / "thesis.txt").touch()
    with pytest.raises(DiscorporaError, match="mine: is in the way of a result"):
        put_results(result.parents[1], {result: first, mine: first})
    put_results(result.parents[1], {})
    assert (mine / "thesis.txt").is_file() and not result.exists()


def test_no_record_leads_out_of_the_builds_folder(first: Path, result: Path) -> None:
    record = result.parents[1] / RECORD
    record.write_text(record.read_text().replace("datasets/sp", "../../precious"))
    with pytest.raises(DiscorporaError, match=RECORD):
        put_results(result.parents[1], {})
