"""Damaged files of a build: each is found and named, set aside, and made again."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corpora.errors import DiscorporaError, InputError
from corpora.publish import publish
from corpora.store.atomic import MANIFEST
from corpora.store.damage import damages
from corpora.store.documents import iter_documents
from extract.shards import iter_pairs, iter_parses
from tests.workflows.conftest import luigi_command, luigi_environment
from workflows.cli.app import app
from workflows.settings import options
from workflows.tasks import Dataset, Pairs
from workflows.tasks.build import run_build

KINDS = ("flipped", "cut", "emptied", "lost")


def damage(path: Path, how: str, chance: random.Random) -> None:
    """A bit of `path` turned over, its end cut off, or all of it."""
    data = bytearray(path.read_bytes())
    if how == "lost":
        path.unlink()
        return
    if how == "flipped":
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(
        data[: chance.randrange(len(data))] if how == "cut" else b"" if how == "emptied" else data
    )


def stage_of(path: Path) -> Path:
    """The folder of the stage that a file is in."""
    return next(folder for folder in path.parents if len(folder.name) == 16)


@pytest.fixture(scope="module")
def whole(built: Path) -> Path:
    """The output folder of a build without models."""
    return built.parent


@pytest.fixture
def output(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(whole, tmp_path / "out", symlinks=True))


@pytest.fixture
def config(whole: Path) -> Path:
    return whole.parent / "tiny.toml"


def verify(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", *arguments], catch_exceptions=False)
    return done.exit_code, done.output


def test_verify_finds_nothing_in_a_new_build(output: Path, config: Path) -> None:
    for arguments in ((str(output),), (str(config), "--output", str(output))):
        code, said = verify(*arguments)
        assert code == 0 and ": nothing damaged" in said
    (one,) = (output / "stages" / "dataset" / "sp").glob("?" * 16)
    assert verify(str(one))[1].startswith("1 folder, ")


def test_verify_follows_links_and_finds_folders_with_dots(output: Path, tmp_path: Path) -> None:
    for folder in (output / "tiny", output / "tiny" / "datasets"):
        code, said = verify(str(folder))
        assert code == 0 and "nothing damaged" in said
    assert said.startswith("4 folders, ")
    place = tmp_path / "models"
    for name in ("sp.v2", "sp.partial", ".sp"):
        shutil.copytree(output / "tiny" / "datasets" / "sp", place / name)
        (place / name / "README.md").unlink()
    code, said = verify(str(place))
    assert (
        code == 1 and said.count("damaged: ") == 1 and "sp.v2/README.md" in said.replace("\n", "")
    )


def campaign(whole: Path, number: int) -> None:
    """Of `number` damages, each is found in its file, and all others are sound."""
    files = [path for path in sorted((whole / "stages").rglob("*")) if path.is_file()]
    files = [p for p in files if not p.name.endswith(".run.json") and p.stat().st_size]
    chance = random.Random(20261124)
    silent = []
    for case in range(number):
        path, how = chance.choice(files), KINDS[case % len(KINDS)]
        kept = path.read_bytes()
        damage(path, how, chance)
        try:
            found = [each.path for each in damages(stage_of(path))]
            if path not in found and not (path.exists() and path.read_bytes() == kept):
                silent.append((case, how, path))
            # Of those that change the size, a look at the sizes is enough.
            if how != "flipped" and not any(True for _ in damages(stage_of(path), sums=False)):
                silent.append((case, how, path))
        finally:
            path.write_bytes(kept)
    sys.stderr.write(f"\n{number} damages in {len(files)} files, {len(silent)} not found\n")
    assert silent == []
    assert verify(str(whole))[0] == 0


def test_each_of_sixty_damages_is_found(output: Path) -> None:
    campaign(output, 60)


@pytest.mark.nightly
def test_each_of_two_thousand_damages_is_found(output: Path) -> None:
    campaign(output, 2000)


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("name", ["parses-00000.parquet", MANIFEST])
def test_verify_names_the_file_and_the_next_build_makes_it_again(
    how: str, name: str, output: Path, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = next((output / "stages" / "parse" / "news").rglob(name))
    folder, kept = path.parent, path.read_bytes()
    damage(path, how, random.Random(7))
    code, said = verify(str(config), "--output", str(output))
    assert code == 1 and f"damaged: {path}: " in said.replace("\n", "")
    (pairs,) = (output / "stages" / "pairs" / "news" / "embedded-standalone").glob("?" * 16)
    shutil.rmtree(pairs)
    for dataset in (output / "stages" / "dataset" / "dissent").glob("?" * 16):
        shutil.rmtree(dataset)
    assert run_build(str(config), str(output), workers=1) == 0
    assert path.read_bytes() == kept
    assert (folder.parent / f"{folder.name}.damaged").is_dir()
    assert f"the folder is set aside as {folder.name}.damaged" in caplog.text
    assert verify(str(output))[0] == 0
    done = CliRunner().invoke(app, ["prune", str(config), "--output", str(output), "--remove"])
    assert done.exit_code == 0 and not (folder.parent / f"{folder.name}.damaged").exists()
    assert verify(str(config), "--output", str(output))[0] == 0 and path.read_bytes() == kept


@pytest.mark.parametrize("how", ["cut", "lost"])
def test_a_build_with_nothing_to_do_finds_other_sizes(how: str, output: Path, config: Path) -> None:
    path = next((output / "stages" / "sentences" / "stories").rglob("*.parquet"))
    kept = path.read_bytes()
    damage(path, how, random.Random(7))
    assert run_build(str(config), str(output), workers=1) == 0
    assert path.read_bytes() == kept


def test_a_stage_by_itself_checks_what_it_reads(output: Path, config: Path) -> None:
    """Not as part of a build: it stops, and the next run makes both."""
    with options(str(config), str(output)):
        pairs = Pairs(config=str(config), source="news")
        shutil.rmtree(pairs.folder)
        (parse,) = pairs.upstream
        shard = parse.folder / "parses-00000.parquet"
        damage(shard, "flipped", random.Random(7))
        with pytest.raises(DiscorporaError, match=r"parses-00000.parquet: its sha256 differs"):
            pairs.run()
        assert not pairs.folder.exists() and not parse.complete()


def test_a_shard_that_no_stage_wrote_is_damage(output: Path, config: Path) -> None:
    with options(str(config), str(output)):
        folder = Dataset(config=str(config), name="dissent").upstream[0].folder
    shutil.copy(folder / "pairs-00000.parquet", folder / "pairs-00001.parquet")
    assert [each.path.name for each in damages(folder, sums=False)] == ["pairs-00001.parquet"]


@pytest.mark.parametrize(
    ("stage", "read"),
    [
        ("documents/stories", lambda folder: list(iter_documents(folder))),
        ("sentences/stories", lambda folder: list(iter_documents(folder))),
        ("parse/stories", lambda folder: list(iter_parses(folder))),
        ("pairs/stories", lambda folder: list(iter_pairs([folder]))),
    ],
)
def test_a_page_with_another_byte_is_not_read(stage: str, read: Callable, output: Path) -> None:
    """Between the check and the reading: Parquet's own checksums."""
    path = next((output / "stages" / stage).rglob("*-00000.parquet"))
    kept, found = path.read_bytes(), 0
    footer = int.from_bytes(kept[-8:-4], "little") + 8
    chance = random.Random(stage)
    good = repr(read(path.parent))
    for _ in range(20):
        data = bytearray(kept)
        data[chance.randrange(4, len(data) - footer)] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            assert repr(read(path.parent)) == good, "other rows, silently"
        except InputError as error:
            found += "cannot be read" in str(error)
    assert found >= 15  # the others were in headers, in bits that nobody reads


def test_a_dry_run_of_a_publication_finds_damage(output: Path) -> None:
    (folder,) = (output / "stages" / "dataset" / "sp").glob("?" * 16)
    assert publish(folder, "a/b", dry_run=True).status == "dry run"
    damage(folder / "README.md", "flipped", random.Random(7))
    with pytest.raises(InputError, match=r"README.md: its sha256 differs"):
        publish(folder, "a/b", dry_run=True)


@pytest.mark.nightly
def test_a_build_with_nothing_to_do_takes_three_seconds(whole: Path, config: Path) -> None:
    start = os.times()
    done = subprocess.run(
        luigi_command(config, whole), env=luigi_environment(), capture_output=True, check=False
    )
    used = os.times()
    assert done.returncode == 0 and b"built before" in done.stderr
    seconds = used.children_user + used.children_system
    seconds -= start.children_user + start.children_system
    sys.stderr.write(f"\na build with nothing to do: {seconds:.2f} s of processor time\n")
    assert seconds <= 3


@pytest.mark.nightly
def test_a_gigabyte_is_verified_at_disk_speed(tmp_path: Path) -> None:
    from corpora.store.atomic import staged, write_json

    folder = tmp_path / "big"
    with staged(folder) as partial:
        for number in range(8):
            (partial / f"{number}.bin").write_bytes(os.urandom(128 << 20))
        write_json(partial / MANIFEST, {})
    start = time.process_time()
    assert list(damages(folder)) == []
    rate = (1 << 30) / (time.process_time() - start)
    sys.stderr.write(f"\nverified: {rate / 1e6:.0f} MB a second of processor time\n")
    assert rate >= 500e6
