"""Arrays on disk that are made once and mapped into memory by every run and worker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import DiscorporaError
from corpora.store.atomic import MANIFEST, Busy, is_complete, staged, write_json
from zoo.training.job import is_main_process

log = logging.getLogger("zoo")


def made_once(folder: Path, write: Callable[[Path], dict[str, Any]]) -> None:
    """Let `write` fill `folder`, which appears by one rename; what it returns is the manifest.

    Of runs that start side by side one makes it, the others wait, and so do the processes of a
    run but the main one.
    """
    while not is_main_process() and not is_complete(folder):
        time.sleep(0.2)
    told = False
    while not is_complete(folder):
        try:
            with staged(folder) as partial:
                write_json(partial / MANIFEST, write(partial))
        except Busy:
            if not told:
                log.info("another run is making %s: waiting for it", folder)
            told = True
            time.sleep(0.2)
        except DiscorporaError:
            if not is_complete(folder):
                raise


def mapped(path: Path, kind: Any, width: int = 1) -> np.ndarray:
    """The numbers in `path`, `[rows]` or `[rows, width]`, as they lie on the disk."""
    if not path.stat().st_size:
        return np.zeros(0 if width == 1 else (0, width), kind)
    found = np.memmap(path, kind, mode="r")
    return found if width == 1 else found.reshape(-1, width)
