"""Extraction of sentence pairs joined by a discourse marker, and its validation against gold.

from extract import Extractor
Extractor(parser="embedded", markers="all15", mode="standalone").pairs(documents)

The way of a sentence: `prefilter` chooses it, a parser of `parsers` makes its tree, `trees` joins
the trees of many documents to columns, `match` finds the markers and the rows of the pattern table
that they match (`patterns`), `clauses` the spans of both sides, `standalone` whether these can
stand alone, `text` their texts. `extractor` runs all of it, `stages` over documents and parses that
are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extract.extractor import Extractor as Extractor
    from extract.pairs import Pair as Pair
    from extract.pairs import Reject as Reject

__all__ = ["Extractor", "Pair", "Reject"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that `import extract` stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'extract' has no attribute {name!r}")
    from extract import extractor

    return getattr(extractor, name)
