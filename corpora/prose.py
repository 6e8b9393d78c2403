"""The prose of a document, with quotation marks that do not reveal the order of sentences.

A heading, or a quotation that opens in one sentence and closes in another, reveals the place of a
sentence to a model that understands nothing. Builders of ordering tasks read texts through this
module.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, groupby, repeat
from operator import itemgetter
from typing import Literal

from corpora.document import Document, Sections
from corpora.quotes import CLOSING_OF, QUOTE_AT_START, QUOTE_MARKS, balance_quotes

Quotes = Literal["keep", "balance"]

CLOSING = "\"'”’»›)]}*_"
"""Marks that may follow the punctuation at the end of a sentence."""
NOT_FINAL = "%&#@/\\§†‡•·"
"""Unicode punctuation that does not end a sentence."""
CITATION_AT_END = re.compile(r"(?:\s*\[[^\[\]]{1,20}\])+$")
FOOTNOTE = re.compile(
    r"\s*(?:\(\s?)?\[\s?(?:\d{1,3}|[a-z]|note \d{1,2}|[a-z ]{3,30}needed)\s?\](?:\s?\))?"
    r"|\s*\((?:citation|clarification) needed\)"
)
"""The mark of a note or reference, as in Wikipedia: its number reveals the order of sentences."""
LIST_ENTRY = re.compile(
    r"\d{1,2}[.)]?\s+(?=[^\W\d_])(?=[^a-z])"
    r"|(?:[^\W\d_a-z][\w’'-]*\s?(?:(?:of|de|del|do|du|des|la|le|les|the|and)\s)?){1,5}:\s"
)
"""The beginning of an entry of a list: its number, or a name and a colon."""
CAPTION = re.compile(
    r"(?:Figure|Fig\.|Table|Listing|Plate|Photo|Image|Map|Chart|Box|Scheme|Extract)"
    r" ?\d+(?:[.\d-]*\d)?[a-z]?(?:[.:]|$)"
)

ADDRESS = re.compile(
    r"[☎☏✆✉]|@(?<=\S@)\w+\.\w|:(?://|(?<=\b[Tt]el:)|(?<=\b[Ee]mail:))|\.(?<=www\.)\w"
    r"|\+\d{6}|-(?<=\d{3}-)(?<!\d{4}-)\d{4}(?!\d)"
)
"""A line with a telephone number or an address is an entry of a directory. (Each alternative begins
with its rarest sign, which is seven times as fast.)"""
SMALL_WORDS = {"a", "an", "and", "at", "by", "de", "du", "for", "in", "la", "of", "on", "the", "to"}
"""Words that are not capitalised in a title."""
LINE_OF_VERSE = re.compile(
    r"(?<=[\w,;:’'][ —])(?:A|An|And|Are|As|At|But|By|For|From|If|In|Into|Is|It|Like|My|No|Nor|Not"
    r"|Of|On|Or|That|The|Then|There|They|Though|Till|To|Upon|Was|We|Were|What|When|Where|Which"
    r"|While|Who|Whose|With|Yet)(?= [^\W\d_A-Z])"
)
"""A function word with a capital inside a sentence. Not `He` or `You`, which may be a god's."""
WORDS_OF_A_LINE = 14
"""Maximum words of a line of verse, on average."""
ANNOUNCES = re.compile(r"(?::|—|–|--)$")
"""The end of a sentence that the next one completes: `He replied:`, `and she said—`."""

STYLES = ('"', "[“”„]", "'", "[‘’]", "--", "—", r"\.\.\.|\. \. \.", "…")
"""Marks in pairs: a typesetter uses one of each pair for the other (`STRAIGHT`: the first ones)."""
STRAIGHT = 0b01010101


def ends_in_punctuation(sentence: str) -> bool:
    """Return whether a sentence ends in punctuation, ignoring brackets, quotes and citations.

    Lines that do not are headings, captions, author or date lines, or list items.
    """
    if sentence.endswith("]"):
        sentence = CITATION_AT_END.sub("", sentence)
    end = sentence.rstrip(CLOSING)[-1:]
    return bool(end) and end not in NOT_FINAL and unicodedata.category(end).startswith("P")


def prose(document: Document, quotes: Quotes = "keep") -> list[str | None]:
    """Return the text of each sentence: "" if it is not prose, None if it is joined to the next.

    Not prose are text outside the sections, captions, entries of lists and directories, verse,
    titles, sentences with an unpaired bracket, and those without final punctuation; turns of a
    conversation need no punctuation. Marks of notes (`[8]`) are removed. If `quotes` is "balance",
    `balance_quotes` pairs the quotation marks of each sentence within its paragraph. A sentence
    that announces the next one (`He replied:`) is joined to it, since it reveals their order.
    """
    texts, sections = document.sentence_texts(), document.sections
    assert document.sentences is not None
    results: list[str | None] = []
    # `announcement`: the sentence that announces the next one, "" if the last one announced none
    announcement, section = "", None
    for paragraph in passages_of(document, texts, "paragraph"):
        is_no_prose = any(kind.match(paragraph[0]) for kind in (CAPTION, LIST_ENTRY))
        is_no_prose |= is_verse(" ".join(paragraph))
        with_quotes = balance_quotes(paragraph) if quotes == "balance" else paragraph
        for text, sentence in zip(paragraph, with_quotes, strict=True):
            start, section_before = document.sentences.start[len(results)], section
            section = sections.at(start) if sections else 0
            is_prose = (
                ends_in_punctuation(text) and not is_no_prose and not is_fragment_or_title(text)
            )
            is_rejected = section is None or not (document.is_chat or is_prose)
            if "[" in sentence or "(" in sentence:  # faster than a search
                sentence = FOOTNOTE.sub("", sentence)
            sentence = "" if is_rejected else sentence.strip()
            if announcement and (is_rejected or section != section_before):
                results[-1] = announcement = ""  # nothing follows that it could be joined to
            sentence = _join_announcement(announcement, sentence) if announcement else sentence
            announces_next = ANNOUNCES.search(text) and not document.is_chat
            announcement = sentence if announces_next else ""
            results.append(None if announcement else sentence)
    if announcement:
        results[-1] = ""
    return results


def _join_announcement(first: str, second: str) -> str:
    """Join two sentences, without the quotation marks that `balance_quotes` put between them."""
    while CLOSING_OF.get(second[:1], "no mark") == first[-1:]:
        first, second = first[:-1], second[1:]
    return f"{first} {second}"


def is_fragment_or_title(sentence: str) -> bool:
    """Return whether a sentence is a fragment, an entry of a directory, or a title with a stop."""
    if sentence.count("(") != sentence.count(")") or sentence.count("[") != sentence.count("]"):
        return True
    if ADDRESS.search(sentence):
        return True
    if not sentence.endswith(".") or QUOTE_AT_START.match(sentence):
        return False
    title = sentence.split()
    has_small = any(word[0].islower() and word not in SMALL_WORDS for word in title)
    return len(title) > 2 and not has_small and any(word[0].isupper() for word in title)


def is_verse(paragraph: str) -> bool:
    """Return whether a paragraph is verse whose lines were joined.

    English verse begins each line with a capital, also in the middle of a sentence, where prose
    writes a function word with a small letter. So a function word with a capital begins a line if
    the word before it has a small letter. If that word has a capital too, both belong to a title
    ("The Fall Of Rome").
    """
    texts_before = (paragraph[: word.start() - 1] for word in LINE_OF_VERSE.finditer(paragraph))
    words_before = (text.split(" ")[-1].split("—")[-1] for text in texts_before)
    lines = sum(word[:1].islower() for word in words_before)
    return lines > 1 and count_words([paragraph]) <= WORDS_OF_A_LINE * (lines + 1)


def lead(document: Document, texts: Sequence[str | None]) -> list[str]:
    """Return the sentences of the lead: the first section, or the text before the first heading.

    `texts` are those of the document's sentences, as `prose` returns them. Without sections, a
    paragraph of one sentence that does not end in punctuation counts as a heading. A title before
    the lead is not part of it; in a text without headings, all sentences are the lead.
    """
    if document.sections and document.sentences is not None:
        if document.sections.level[0] != 1:
            return []
        sections = map(document.sections.at, document.sentences.start)
        # A caption cuts the lead in parts, which have no heading either.
        headings = document.sections.heading
        parts = {n for n, heading in enumerate(headings) if n == 0 or heading == headings[0] == ""}
        pairs = zip(texts, sections, strict=True)
        return [text for text, section in pairs if section in parts and text is not None]
    # Without sections: the paragraphs before the first heading that has some
    paragraphs = passages_of(document, texts, "paragraph")

    def is_heading(paragraph: list[str]) -> bool:
        return len(paragraph) == 1 and not ends_in_punctuation(paragraph[0])

    for are_headings, group in groupby(paragraphs, is_heading):
        if not are_headings:
            return [text for paragraph in group for text in paragraph]
    return []


def passages_of(
    document: Document, texts: Sequence[str | None], within: str, *, one_speaker: bool = False
) -> Iterator[list[str]]:
    """Yield the sentences of each unit of a document: a paragraph, a section, or all of it.

    `texts` are those of the document's sentences; None is left out. `within` is the unit,
    `paragraph`, `section` or `document`; text outside the sections (a title, or a heading between
    two) is in no section. With `one_speaker` a unit also ends where the speaker changes: in print,
    where a paragraph of speech follows another one.
    """
    if document.sentences is None:
        yield [text for text in texts if text is not None]
        return
    bounds = document.paragraphs if within == "paragraph" else document.sections
    unit_of: list[int | None] = [0] * len(texts)
    if bounds and within != "document":
        unit_at = bounds.at if isinstance(bounds, Sections) else partial(bisect_right, bounds.start)
        unit_of = [unit_at(start) for start in document.sentences.start]
    # A number that grows where the speaker changes
    speakers = (
        accumulate(_speaker_changes(document, texts)) if one_speaker else repeat(0, len(texts))
    )
    rows = zip(unit_of, speakers, texts, strict=True)
    for (unit, _), group in groupby(rows, itemgetter(0, 1)):
        if unit is not None:
            yield [text for _, _, text in group if text is not None]


def _speaker_changes(document: Document, texts: Sequence[str | None]) -> Iterator[bool]:
    """Yield for each sentence whether it begins a paragraph of speech that follows a speech."""
    assert document.sentences is not None and document.paragraphs is not None
    paragraphs, previous = set(document.paragraphs.start), ""
    for start, text in zip(document.sentences.start, texts, strict=True):
        speaks = bool(QUOTE_AT_START.match(text or "")) and bool(QUOTE_MARKS.search(previous))
        yield start in paragraphs and speaks
        previous = text or ""


def count_words(texts: Iterable[str]) -> int:
    """Return the number of words in all texts, separated by white space."""
    return sum(len(text.split()) for text in texts)


def style_bits(text: str) -> int:
    """Return an integer with a bit set for each mark of `STYLES` in the text."""
    return sum(bool(re.search(mark, text)) << bit for bit, mark in enumerate(STYLES))


def foreign_marks(surroundings: int) -> int:
    """Return the marks, as bits of `STYLES`, that would be foreign in a text.

    `surroundings` are the marks that the text has (`style_bits`). A mark is foreign if the text has
    the other mark of its pair only: a straight apostrophe among typographic ones reveals that a
    sentence came from another text.
    """
    alternatives = (surroundings & STRAIGHT) << 1 | (surroundings >> 1) & STRAIGHT
    return alternatives & ~surroundings
