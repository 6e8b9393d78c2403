"""The embedded parser: a compact English UD pipeline as package data (see CARD.md, LICENSE).

`load()` returns a spaCy pipeline that sets `tag_` (XPOS), `pos_` (UPOS), `dep_` (UD), `head` and,
unless the `Doc` has them, sentence starts. Importing this module loads no spaCy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.language import Language

PATH = Path(__file__).with_name("en_ud_compact")
SECOND = Path(__file__).with_name("en_ud_reversed")
"""The pipeline that checks the first: it reads a sentence from its last word to its first."""
UPOS_FILE = "upos.json"
VERSION = "1.1.1"


def load(path: Path | str = PATH) -> Language:
    """The pipeline at `path` (as `zoo.parser.train` writes it; the shipped one by default).

    Matrix products use NumPy's BLAS, nearly twice as fast here as spaCy's BLIS; the caller limits
    BLAS to one thread a process (`OPENBLAS_NUM_THREADS=1`).
    Raises `FileNotFoundError` if there is no pipeline at `path`.
    """
    path = Path(path)
    if not (path / UPOS_FILE).is_file():
        raise FileNotFoundError(
            f"no compact pipeline at {path}: it lacks {UPOS_FILE}; make one with "
            f"python -m zoo.parser.train --treebank DIR --output {path}"
        )
    import spacy
    from thinc.api import NumpyOps, get_current_ops, set_current_ops

    from extract.embedded import component  # noqa: F401  (registers the factory)

    before = get_current_ops()
    set_current_ops(NumpyOps(use_blis=False))
    try:
        nlp = spacy.load(path)
    finally:
        set_current_ops(before)
    table = json.loads((path / UPOS_FILE).read_text(encoding="utf-8"))
    nlp.add_pipe("discorpora_upos", config={"table": table})
    return nlp


def trained_documents() -> frozenset[str]:
    """Ids of the treebank documents that the shipped pipeline was trained on."""
    lines = Path(__file__).with_name("documents.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line)
