"""Project Gutenberg's header and licence around the text of a book."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from corpora.readers.files import expect
from corpora.readers.source import Source, blocks_of

OF_GUTENBERG = "paragraph of Project Gutenberg's header or licence"
"""The name of such paragraphs in the counts `Source.skipped`."""
MAX_UNSURE = 3
"""Maximum paragraphs in a row that belong to the header without its typical words: a name."""

_SIGNS = ("Gutenberg", "GUTENBERG", "SMALL PRINT", "FULL LICENSE", "for the use of anyone anywhere")
_EBOOK = r"(?:e-?book|e-?text)"
_MARK = re.compile(
    r"(?:\* ?){2,4}(?i:(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG)\b"
    r"(?:[^*\n]|\n(?!\s*\n)){0,300}+(?:\* ?){2,4}"
    r"|^[ \t]*(?:(?:\* ?){2,4}(?i:(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG)"
    r"|(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG"
    r"|\*+ ?END ?\*? ?THE SMALL PRINT"
    r"|End of (?:[Tt]he |[Tt]his )?Project Gutenberg(?:['’]s\b| E))[^\n]*$",
    re.MULTILINE,
)
"""A line such as `*** START OF THE PROJECT GUTENBERG EBOOK EMMA ***`, or `END OF`."""
_BOOK_BEGINS = re.compile(r"\W*(?:start of|end\W+the small print)", re.IGNORECASE)
"""A mark behind which the book begins: the start of it, or the end of the small print."""
_HEADER_TITLE = re.compile(
    r"\W*(?:(?:the|an?) )?project gutenberg(?:['’]s)? (?:(?:of )?(?:australia|canada) )?"
    rf"(?:{_EBOOK}\b.{{0,200}}|.{{1,200}}, by .{{1,80}})(?<![.!?])$"
    rf"|this {_EBOOK} is for the use of anyone anywhere"
    r"|.{0,600}project gutenberg(?:™|-tm|\(tm\))",
    re.IGNORECASE,
)
"""The first paragraph of a header: `The Project Gutenberg EBook of Emma, by Jane Austen`."""
_HEADER_WORDS = re.compile(
    r"gutenberg|\be-?texts?\b|\be-?books?\b|small print|proofread|pgdp|90 days of receiving",
    re.IGNORECASE,
)
_HEADER_FIELD = re.compile(
    r"\W*(?:titles?|authors?|editor|translator|illustrator|contributor|language|credits?"
    r"|release date|posting date|last updated|most recently updated|character set(?: encoding)?"
    r"|original publication|subject|(?:e-?text )?(?:produced|prepared)|transcribed|scanned)"
    r"\b ?(?::|by\b|from\b)|note: project gutenberg (?:also )?has\b",
    re.IGNORECASE,
)
"""A line such as `Title: Emma` or `Produced by A. Bell`."""
_LICENCE_BEGINS = re.compile(
    r"\W*(?:updated editions will replace the previous one"
    r"|creating the works from (?:print editions not protected|public domain print editions)"
    r"|start: full licen[cs]e|the full project gutenberg licen[cs]e"
    r"|section 1\. general terms of use and redistributing)",
    re.IGNORECASE,
)
_LICENCE_WORDS = re.compile(
    r"gutenberg|\be-?(?:book|text)s?\b|electronic work|licen[cs]e|copyright|public domain|trademark"
    r"|distribut|donat|foundation\b",
    re.IGNORECASE,
)
_FIRST_OF_LICENCE = 6
"""The number of paragraphs at the licence's beginning, half of which have its typical words."""


def without_licence(lines: Sequence[str], source: Source) -> Sequence[str]:
    """Return the lines of a text without Project Gutenberg's header and licence.

    The book stands between the marks `*** START OF ...` and `*** END OF ...` (also of other
    styles). Where these are lost, paragraphs that begin as the header or licence does are left out.
    A text that only mentions Project Gutenberg stays unchanged. So does a paragraph that begins as
    the licence does, if the next ones lack the words of a licence. `source` counts the paragraphs
    left out. Raises `Refused` if no paragraph is left.
    """
    text = "\n".join(lines)
    if not any(sign in text for sign in _SIGNS):
        return lines
    blocks = blocks_of(_MARK.sub(r"\n\n\g<0>\n\n", text).split("\n"))
    book_blocks: list[list[str]] = []
    # Blocks that may belong to the header; they go to the book if the header is over.
    unsure_blocks: list[list[str]] = []
    part = "text"  # to which the last block belongs: header, credits, text or licence
    book_start = 0  # where in `book_blocks` the current book begins
    has_start_mark = False  # whether that book began with a mark
    for number, block in enumerate(blocks):
        paragraph = " ".join(block)
        # A mark, or the first paragraph of a header or licence, begins another part.
        if _MARK.match(paragraph):
            if _BOOK_BEGINS.match(paragraph):
                if not has_start_mark or "SMALL PRINT" in paragraph:
                    del book_blocks[book_start:]
                part, has_start_mark = "credits", True
            else:
                book_blocks += unsure_blocks
                part, has_start_mark, book_start = "licence", False, len(book_blocks)
            unsure_blocks = []
        elif _HEADER_TITLE.match(paragraph):
            part = "header"
        elif _LICENCE_BEGINS.match(paragraph) and _is_licence(blocks[number:]):
            book_blocks += unsure_blocks
            part, unsure_blocks, book_start = "licence", [], len(book_blocks)
        elif part == "licence":
            continue
        elif part != "text" and (
            _HEADER_FIELD.match(paragraph) or (part == "header" and _HEADER_WORDS.search(paragraph))
        ):
            unsure_blocks = []
        elif part != "text":
            unsure_blocks.append(block)
            if len(unsure_blocks) > MAX_UNSURE:
                book_blocks += unsure_blocks
                part, unsure_blocks = "text", []
        else:
            book_blocks.append(block)
    book_blocks += unsure_blocks
    left_out = len(blocks) - len(book_blocks)
    expect(book_blocks or not left_out, "no text: only Project Gutenberg's header or licence")
    source.skipped[OF_GUTENBERG] += left_out
    return [line for block in book_blocks for line in (*block, "")] if left_out else lines


def _is_licence(blocks: Sequence[Sequence[str]]) -> bool:
    """Whether the paragraphs before the next mark are the licence, by its typical words."""
    paragraphs = map(" ".join, blocks[:_FIRST_OF_LICENCE])
    first = list(takewhile(lambda paragraph: not _MARK.match(paragraph), paragraphs))
    return 2 * sum(bool(_LICENCE_WORDS.search(paragraph)) for paragraph in first) >= len(first)
