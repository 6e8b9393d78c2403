"""Sentence section prediction (DiscoEval, section 3.5): is a sentence from the abstract?

The headings over its sentences say what the parts of a paper are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import pyarrow as pa
from pydantic import Field

from corpora.document import Document
from corpora.schemas import SSP
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Reject, Row
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside
from corpora.tasks.discoeval.order import Sized

ABSTRACT, BODY, OTHER = "abstract", "body", "other"

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


class Ssp(Sized):
    """Sentence section prediction: is a sentence from the abstract, or from the body?

    Half of the rows of a split are from abstracts.
    """

    name, version = "ssp", 4
    paper = "Chen, Chu and Gimpel 2019, section 3.5"
    card = card_beside(__file__, "ssp")
    gives = {"default": SSP}
    columns = pa.schema([SSP.field("section"), SSP.field("sentence")])
    equal = ("sentence",)
    one_split = True

    min_words: Annotated[int, Field(ge=1)] = 10
    """Minimum words of a sentence (the released ones have at least 11 tokens)."""
    plain: Annotated[float, Field(ge=0, le=1)] = 0.7
    """Minimum share of plain words (letters only); a sentence below it, or with signs of formulas,
    is rejected (`equation`)."""

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The usable sentences of a paper in two parts, if it has some of both."""
        rows: dict[str, list[Row]] = {ABSTRACT: [], BODY: []}
        for kind, heading, text in sections_of(document):
            if kind not in rows:
                continue
            reason = why_no_prose(text, self.min_words, self.max_words, self.plain)
            if reason:
                reject(reason)
            else:
                rows[kind].append(Row((heading, text), kind))
        if not rows[ABSTRACT]:
            reject("paper_without_abstract")
        elif not rows[BODY]:
            reject("paper_without_body")
        else:
            yield from rows[ABSTRACT] + rows[BODY]

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """As many rows of one label as of the other, alternating, in each split."""
        dataset.reject("exact_duplicate", int(taken.engine.value(_DROP_IN_BOTH)))
        for split in SPLITS:
            size = getattr(self, split) // 2
            one, two = (taken.count(split, part=part) for part in ("abstract", "body"))
            half = min(size, one, two)
            if half < size:
                dataset.note(
                    f"{split}: {2 * size:,} rows were asked for; the corpus gives {one:,} "
                    f"sentences of abstracts and {two:,} of bodies."
                )
            dataset.reject("not_needed", one + two - 2 * half)
            writer = dataset.writer("default", split, SSP, texts=("sentence",))
            values = {"split": split, "half": half}
            taken.write(writer, taken.engine.batches(_ALTERNATING, values))


_DROP_IN_BOTH = """
delete from kept where part = 'body' and (doc, number) in (
    select (doc, number) from candidate
    where part = 'body' and key in (select key from candidate where part = 'abstract')
)
"""
"""A sentence that stands in an abstract and in a body counts as one of the abstract."""

_ALTERNATING = """
select *, if(part = 'abstract', 1, 0) as label from chosen where split = $split
qualify row_number() over (partition by part order by priority, doc, number) <= $half
order by row_number() over (partition by part order by priority, doc, number), part
"""


def sections_of(document: Document) -> Iterator[tuple[str, str, str]]:
    """Kind (`abstract`, `body`, `other`), heading and text of each sentence.

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
    """The kind of each section, in order: a section left out takes its subsections along."""
    outside = 0  # the level of the section left out that we are in
    closed = False  # behind the conclusion
    top = min((n for n, name in zip(levels, headings, strict=True) if _is_body(name)), default=1)
    for heading, level in zip(headings, levels, strict=True):
        bare = _NUMBER.sub("", heading).strip()
        if outside and level > outside:
            yield OTHER
            continue
        outside = 0
        if _ABSTRACT.match(bare) and not closed:
            yield ABSTRACT
        elif closed or (level <= top and _CLOSING.search(bare)):
            closed = True
            yield OTHER
        elif not bare or _OUTSIDE.search(heading):
            # A paper's lead (level 1 without a heading) has no subsections.
            outside = level if bare else 0
            yield OTHER
        else:
            yield BODY


def _is_body(heading: str) -> bool:
    """Whether a heading is one of the paper's own sections: neither its lead nor its abstract."""
    bare = _NUMBER.sub("", heading).strip()
    return bool(bare) and not _ABSTRACT.match(bare)


def why_no_prose(text: str, min_words: int, max_words: int, plain: float) -> str:
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
