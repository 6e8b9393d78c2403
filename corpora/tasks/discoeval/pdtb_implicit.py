"""Implicit discourse relations and their senses (DiscoEval, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corpora.division import Division
from corpora.document import Document
from corpora.store import Stage
from corpora.tasks.discoeval import pdtb

VERSION = 1

Settings = pdtb.Settings

CARD = pdtb.card("Implicit", "PDTB-I")


def build(
    documents: Iterable[Document],
    folder: Path,
    settings: Settings,
    *,
    seed: int,
    stage: Stage,
    division: Division | None = None,
) -> dict[str, Any]:
    """Build the dataset from documents with gold relations; see `corpora.tasks.discoeval.pdtb`."""
    return pdtb.build(
        "Implicit",
        documents,
        folder,
        settings,
        card=CARD,
        seed=seed,
        stage=stage,
        division=division,
    )
