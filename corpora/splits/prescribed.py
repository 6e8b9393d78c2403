"""Splits that a treebank prescribes: by section of the Wall Street Journal, or by a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from corpora.splits import SPLITS, Assignment
from corpora.splits.table import read_table

SECTIONS = {
    "discoeval": {"train": range(2, 15), "validation": range(15, 19), "test": range(19, 24)},
    "dissent": {"train": range(2, 23), "validation": range(2), "test": range(23, 25)},
}
"""DiscoEval 3.1; DisSent A.3."""

_WSJ = re.compile(r"(?:.*/)?wsj_(\d\d)\d\d$", re.IGNORECASE)


def prescribed(
    documents: Mapping[str, tuple[str, int]], sections: str, table: str
) -> Assignment | None:
    """The split of each document (id -> group, weight); one without a split is left out.

    `table`: a file of lines `SPLIT<TAB>DOCUMENT` (`dev` is validation), where it is not empty.
    Else, where every id is that of a Wall Street Journal article, by its section (a name of
    `SECTIONS`; empty where sections mean nothing). Else None: nothing is prescribed. Raises
    `ConfigError` for a table that cannot be read.
    """
    if table:
        split = read_table(Path(table))
        reason = f"as {Path(table).name} says"
    elif sections and documents and all(map(_WSJ.match, documents)):
        parts = SECTIONS[sections]
        section_of = {name: int(name[-4:-2]) for name in documents}
        split = {
            name: part
            for name, n in section_of.items()
            for part, range in parts.items()
            if n in range
        }
        reason = ", ".join(f"{part} sections {r.start}-{r.stop - 1}" for part, r in parts.items())
    else:
        return None
    split = {name: split[name] for name in documents if name in split}
    weights = dict.fromkeys(SPLITS, 0)
    for name, part in split.items():
        weights[part] += documents[name][1]
    return Assignment("document", split, weights, reason)
