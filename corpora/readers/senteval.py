"""`senteval:` SentEval's folder, for the suite of that name: labelled sentences, no documents."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from corpora.document import Document
from corpora.readers.source import Reader, Source

log = logging.getLogger(__name__)


class SentEval(Reader):
    """SentEval's `data/`: the suite `senteval` reads it."""

    name = "senteval"
    suffixes = ("",)
    paper = "Conneau and Kiela 2018"

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Nothing: the files hold single sentences, not texts for datasets."""
        source.skipped["file of SentEval"] += 1
        return iter(())
