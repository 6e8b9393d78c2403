"""Settings of extraction and of its stages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpora.declared import Table

Mode = Literal["recall", "standalone"]
WORDS_PER_SHARD = 50_000


class PairShape(Table):
    """What shapes pairs, whatever their language: the table `[extract]` of a build file."""

    markers: str = "all15"
    """Markers and sets of them, parted by commas."""
    mode: Mode = "standalone"
    """`standalone`: both sides can stand alone as sentences (DisSent, section 2); `recall`: all."""
    subjects: Literal["own", "restored", "shared"] = "own"
    """In the mode `standalone`: each side has a subject of its own (`own`), S2 gets a copy of the
    one that it shares with the conjunct before (`restored`), or may lack it (`shared`)."""
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    """Pairs that are less likely to be right are rejected (`extract.confidence`); None: below .5 in
    the mode `standalone`, none in `recall`."""
    text: Literal["written", "tokenised"] = "written"
    """The author's own text, or tokens parted by blanks."""
    patterns: tuple[str, ...] = ()
    """Pattern files that add markers to the table or replace their rows."""


class PairSettings(PairShape):
    """What shapes the pairs of parsed documents."""

    language: str = "en"
    """Which pattern table."""

    @property
    def looks_back(self) -> bool:
        """Whether the parse of the sentence before a marker's is of use."""
        return self.mode != "recall" or self.text == "tokenised"


class ParseSettings(Table):
    """What shapes the parses: all of it belongs to the stage's hash."""

    parser: str = "embedded"
    markers: str | tuple[str, ...] = "all15"
    """Only sentences with one of these are parsed, unless `prefilter` is off."""
    language: str = "en"
    prefilter: bool = True
    previous: bool = True
    """Also parse the sentence before where the marker can look back, for the mode `standalone`."""
    gold_tokens: bool = False
    words_per_shard: int = WORDS_PER_SHARD
    patterns: tuple[str, ...] = ()
    """Pattern files of the user: to a stage's hash belong their contents (`patterns_hash`)."""


class ExtractSettings(PairSettings):
    """What shapes the stored pairs."""

    scheme: str = "ud"
    """That of the parses (`scheme_of(folder)`)."""
    parsed: tuple[str, ...] | None = None
    """The markers that the parses were made for (`markers_of(folder)`), None for all."""
    words_per_shard: int = WORDS_PER_SHARD
