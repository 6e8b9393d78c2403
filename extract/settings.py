"""Settings of extraction and of its stages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpora.declared import TomlTable

Mode = Literal["recall", "standalone"]
Check = Literal["second", "none"]
Filters = Literal["", "dissent"]
WORDS_PER_SHARD = 50_000


class PairShape(TomlTable):
    """Settings of pairs in any language: the table `[extract]` of a build file."""

    markers: str = "all15"
    """Markers and sets of markers, separated by commas: `all15`, `because,but,so`."""
    mode: Mode = "standalone"
    """`standalone`: both sides can stand alone as sentences (DisSent, section 2); `recall`: all."""
    subjects: Literal["own", "restored", "shared"] = "own"
    """In the mode `standalone`: each side has its own subject (`own`), S2 gets a copy of a subject
    that it shares with the previous conjunct (`restored`), or may lack it (`shared`)."""
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    """Pairs of lower confidence are rejected; by default .8 in the mode `standalone`, 0 in
    `recall` and with stanza and spaCy, on whose errors it was not fitted."""
    text: Literal["written", "tokenised"] = "written"
    """The author's text, or tokens separated by spaces."""
    previous: bool = True
    """Whether S1 may be the sentence before the marker's; false for a treebank whose sentences are
    not in the order of a text, such as UD's GSD treebanks."""
    patterns: tuple[str, ...] = ()
    """Pattern files that add markers to the table or replace their rows; `dissent2019`: the shipped
    file of DisSent's patterns."""


class PairSettings(PairShape):
    """Settings of the pairs of parsed documents."""

    language: str = "en"
    """The language of the pattern table."""

    @property
    def looks_back(self) -> bool:
        """Whether the parse of the sentence before a marker's is used."""
        return self.previous and (self.mode != "recall" or self.text == "tokenised")


class ParseSettings(TomlTable):
    """Settings of the parses; all belong to the stage's hash."""

    parser: str = "embedded"
    markers: str | tuple[str, ...] = "all15"
    """Only sentences with one of these are parsed, unless `prefilter` is off."""
    language: str = "en"
    prefilter: bool = True
    previous: bool = True
    """Also parse the previous sentence if the marker can look back, for the mode `standalone`."""
    gold_tokens: bool = False
    check: Check | None = None
    """Whether a second parser also parses the sentences with a marker; by default `second` with the
    embedded parser, else `none`."""
    words_per_shard: int = WORDS_PER_SHARD
    patterns: tuple[str, ...] = ()
    """The user's pattern files; a stage's hash contains their contents (`patterns_hash`)."""
