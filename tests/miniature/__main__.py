"""`python -m tests.miniature FOLDER [--size N]`: write every corpus."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.miniature.backbones import write_backbones
from tests.miniature.hub import write_dump, write_hub
from tests.miniature.penn import write_penn
from tests.miniature.released import (
    write_coherence,
    write_discoeval,
    write_nli,
    write_senteval,
    write_superglue,
)


def write_all(folder: Path, size: int = 1) -> None:
    """Everything that the four build files read, `size` times as much."""
    write_penn(folder, articles=2 * size)
    write_discoeval(folder, examples=24 * size)
    write_senteval(folder, examples=12 * size)
    write_coherence(folder, examples=12 * size)
    write_superglue(folder, examples=8 * size)
    write_nli(folder, examples=12 * size)
    write_hub(folder, documents=40 * size)
    write_dump(folder, documents=40 * size)
    write_backbones(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=1)
    arguments = parser.parse_args()
    write_all(arguments.folder, arguments.size)
