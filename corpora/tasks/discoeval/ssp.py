"""Sentence section prediction (DiscoEval, section 3.5): is a sentence from the abstract?

The headings of a paper tell which of its sections are the abstract and the body.
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
from corpora.tasks.builder import Candidate, Reject
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
"""A heading that ends the body of a paper: any section after it is an appendix."""
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

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the usable sentences of a paper's abstract and body, if it has both."""
        rows: dict[str, list[Candidate]] = {ABSTRACT: [], BODY: []}
        for kind, heading, text in sections_of(document):
            if kind not in rows:
                continue
            reason = why_no_prose(text, self.min_words, self.max_words, self.plain)
            if reason:
                reject(reason)
            else:
                rows[kind].append(Candidate((heading, text), kind))
        if not rows[ABSTRACT]:
            reject("paper_without_abstract")
        elif not rows[BODY]:
            reject("paper_without_body")
        else:
            yield from rows[ABSTRACT] + rows[BODY]

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write equal numbers of rows of both labels for each split, alternating."""
        dataset.reject("exact_duplicate", int(candidates.engine.value(_DROP_IN_BOTH)))
        for split in SPLITS:
            size = getattr(self, split) // 2
            abstract = candidates.count(split, part=ABSTRACT)
            body = candidates.count(split, part=BODY)
            half = min(size, abstract, body)
            if half < size:
                dataset.note(
                    f"{split}: {2 * size:,} rows were asked for; the corpus gives {abstract:,} "
                    f"sentences of abstracts and {body:,} of bodies."
                )
            dataset.reject("not_needed", abstract + body - 2 * half)
            writer = dataset.writer("default", split, SSP, texts=("sentence",))
            values = {"split": split, "half": half}
            candidates.write(writer, candidates.engine.batches(_ALTERNATING, values))


_DROP_IN_BOTH = """
delete from kept where part = 'body' and (doc, number) in (
    select (doc, number) from candidate
    where part = 'body' and key in (select key from candidate where part = 'abstract')
)
"""
"""Deletes a sentence of a body that stands in an abstract too."""

_ALTERNATING = """
select *, if(part = 'abstract', 1, 0) as label from chosen where split = $split
qualify row_number() over (partition by part order by priority, doc, number) <= $half
order by row_number() over (partition by part order by priority, doc, number), part
"""


def sections_of(document: Document) -> Iterator[tuple[str, str, str]]:
    """Yield kind (`abstract`, `body`, `other`), heading and text of each sentence.

    A subsection is of its section's kind. A lead without a heading is `other`, and so are all
    sections after the conclusion or the references of the paper (not of one of its sections).
    Headings in the text are left out; a document without sections gives nothing.
    """
    sections, sentences = document.sections, document.sentences
    if sections is None or sentences is None:
        return
    kinds = list(_section_kinds(sections.heading, sections.level))
    for text, start in zip(document.sentence_texts(), sentences.start, strict=True):
        section = sections.at(start)
        if section is not None:
            yield kinds[section], sections.heading[section], text


def _section_kinds(headings: list[str], levels: list[int]) -> Iterator[str]:
    """Yield the kind of each section in order; subsections of an `other` one are `other` too."""
    other_level = 0  # the level of the `other` section around the current one; 0 outside
    after_conclusion = False
    body_levels = (n for n, heading in zip(levels, headings, strict=True) if _is_body(heading))
    body_level = min(body_levels, default=1)
    for heading, level in zip(headings, levels, strict=True):
        title = _NUMBER.sub("", heading).strip()
        if other_level and level > other_level:
            yield OTHER
            continue
        other_level = 0
        if _ABSTRACT.match(title) and not after_conclusion:
            yield ABSTRACT
        elif after_conclusion or (level <= body_level and _CLOSING.search(title)):
            after_conclusion = True
            yield OTHER
        elif not title or _OUTSIDE.search(heading):
            # A paper's lead (level 1 without a heading) has no subsections.
            other_level = level if title else 0
            yield OTHER
        else:
            yield BODY


def _is_body(heading: str) -> bool:
    """Return whether a heading is that of a body section: not empty, and not the abstract's."""
    title = _NUMBER.sub("", heading).strip()
    return bool(title) and not _ABSTRACT.match(title)


def why_no_prose(text: str, min_words: int, max_words: int, plain: float) -> str:
    """Return the reason why a sentence is not prose, or "" if it is prose.

    `plain` is the minimum share of plain words (letters only) among its words.
    """
    words = text.split()
    if len(words) < min_words:
        return "sentence_too_short"
    if len(words) > max_words:
        return "sentence_too_long"
    if not text.lstrip("\"'“‘([")[:1].isupper() or not _END.search(text):
        return "fragment"
    plain_words = sum(bool(_WORD.match(word)) for word in words)
    if _FORMULA.search(text) or plain_words < plain * len(words):
        return "equation"
    return ""
