"""Shared fixtures: where the real data is, if it is anywhere."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Torch, transformers and spaCy leave millions of objects that each full collection walks through.
gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def discorpora_data() -> Path:
    """The folder of real data (`DISCORPORA_DATA`, default `../shared/data`), or a skip."""
    folder = Path(os.environ.get("DISCORPORA_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set DISCORPORA_DATA to a folder laid out like it")
    return folder.resolve()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="run the nightly campaigns too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--nightly"):
        return
    skip = pytest.mark.skip(reason="a nightly campaign: run it with `make nightly`")
    for item in items:
        if "nightly" in item.keywords:
            item.add_marker(skip)
