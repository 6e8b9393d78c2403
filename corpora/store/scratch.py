"""A file beside an output, for what does not fit in memory while that is made."""

from __future__ import annotations

from pathlib import Path
from typing import Self


class Scratch:
    """Use as a context manager; the file is removed at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w+b")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)
