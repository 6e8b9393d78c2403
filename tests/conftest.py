"""Shared fixtures: where the real data is, if it is anywhere."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Torch, transformers and spaCy leave millions of objects that each full collection walks through.
gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="module", autouse=True)
def _imports_are_no_garbage() -> None:
    """Collections leave out what there is before a file's tests, such as all modules and tests.

    Each training begins with a full collection, and would walk through all that.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """A process that is killed leaves what it wrote without a flush too; only a machine does not.

    A training or a build flushes a hundred files and folders, for milliseconds each.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session")
def discorpora_data() -> Path:
    """The folder of real data (`DISCORPORA_DATA`, default `../shared/data`), or a skip."""
    folder = Path(os.environ.get("DISCORPORA_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set DISCORPORA_DATA to a folder laid out like it")
    return folder.resolve()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the nightly campaigns too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Long files first: the last ones are short, and end at the same time for all workers.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, "zoo" not in item.path.parts))
    if config.getoption("--nightly"):
        return
    skip = pytest.mark.skip(reason="a nightly campaign: run it with `make nightly`")
    for item in items:
        if "nightly" in item.keywords:
            item.add_marker(skip)
