"""The parts of a paper by the headings over its sentences, and what counts as prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpora.document import Document

ABSTRACT, MIDDLE, OTHER = "abstract", "middle", "other"

_NUMBER = re.compile(r"^\s*(?:[\divxlc]+|[a-z])(?:\.[\da-z]+)*[.):]?\s+", re.I)
_ABSTRACT = re.compile(r"abstract\W*$", re.I)
_OUTSIDE = re.compile(
    r"(?<![a-z])(?:introduction|conclu|summary\b|discussion and future|future (?:work|direction)"
    r"|outlook|acknowledg|references?\b|bibliograph|literature cited|appendi|supplement|funding"
    r"|author contributions?|conflicts? of interest|keywords?\b|index terms)",
    re.I,
)
_CLOSING = re.compile(
    r"\bconclusions?\b|\bconcluding\b|^references?\b|^bibliograph|^literature cited", re.I
)
"""What ends the body of a paper: what stands behind is appendix, whatever its heading."""
_FORMULA = re.compile(r"[=<>≤≥≈≠∈∀∃∑∏∫√∞±→⇒^_\\{}|~]|\$")
_WORD = re.compile(r"[\"'“‘(\[]*[^\W\d_]+(?:['’-][^\W\d_]+)*[\"'”’)\]]*[.,;:!?]*[\"'”’)\]]*$")
_END = re.compile(r"[.!?][\"'”’)\]]*$")


def sections_of(document: Document) -> Iterator[tuple[str, str, str]]:
    """Kind (`abstract`, `middle`, `other`), heading and text of each sentence.

    A subsection of the introduction belongs to it, and all that stands behind the conclusion (or
    the references) of the paper, not of one of its sections, is `other`, as is a lead without a
    heading. Headings that are in the text are left out; a document without sections gives nothing.
    """
    sections, sentences = document.sections, document.sentences
    if sections is None or sentences is None:
        return
    kinds = list(_kinds(sections.heading, sections.level))
    for text, start in zip(document.sentence_texts(), sentences.start, strict=True):
        at = sections.at(start)
        if at is not None:
            yield kinds[at], sections.heading[at], text


def _kinds(headings: list[str], levels: list[int]) -> Iterator[str]:
    outside = 0  # the level of the section left out that we are in
    closed = False
    top = min((n for n, name in zip(levels, headings, strict=True) if _is_body(name)), default=1)
    for heading, level in zip(headings, levels, strict=True):
        bare = _NUMBER.sub("", heading).strip()
        if outside and level > outside:
            yield OTHER
            continue
        outside = 0
        if _ABSTRACT.match(bare):
            yield ABSTRACT
        elif closed or (level <= top and _CLOSING.search(bare)):
            closed = True
            yield OTHER
        elif not bare or _OUTSIDE.search(heading):
            # A paper's lead (level 1 without a heading) has no subsections.
            outside = level if bare else 0
            yield OTHER
        else:
            yield MIDDLE


def _is_body(heading: str) -> bool:
    """Whether a heading is one of the paper's own sections: neither its lead nor its abstract."""
    bare = _NUMBER.sub("", heading).strip()
    return bool(bare) and not _ABSTRACT.match(bare)


def prose(text: str, min_words: int, max_words: int, plain: float) -> str:
    """Why a sentence is no prose, or nothing."""
    words = text.split()
    if len(words) < min_words:
        return "sentence_too_short"
    if len(words) > max_words:
        return "sentence_too_long"
    if not text.lstrip("\"'“‘([")[:1].isupper() or not _END.search(text):
        return "fragment"
    ordinary = sum(bool(_WORD.match(word)) for word in words)
    if _FORMULA.search(text) or ordinary < plain * len(words):
        return "equation"
    return ""
