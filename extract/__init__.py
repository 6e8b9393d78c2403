"""Extraction of sentence pairs joined by a discourse marker, and its validation against gold.

from extract import Extractor
Extractor(parser="embedded", markers="all15", mode="standalone").pairs(documents)

The steps for a sentence: `prefilter` selects it, a parser of `parsers` parses it, `trees` joins the
trees of many documents into columns, `match` finds the markers and the rows of the pattern table
(`patterns`) that they match, `clauses` finds the spans of both sides, `standalone` decides whether
these can stand alone, and `text` makes their texts. `extractor` runs all steps; `stages` runs them
on stored documents and parses.
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
