"""Project Gutenberg's header and licence around the text of a book."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpora.readers.files import expect
from corpora.readers.source import Source, blocks_of

OF_GUTENBERG = "paragraph of Project Gutenberg's header or licence"
"""How it is counted in `Source.skipped`."""
GAP = 3
"""Maximum paragraphs of the header in a row that its words do not show, such as a name."""

_SIGNS = ("Gutenberg", "GUTENBERG", "SMALL PRINT", "FULL LICENSE", "for the use of anyone anywhere")
_WORK = r"(?:e-?book|e-?text)"
_MARK = re.compile(
    r"(?:\* ?){2,4}(?i:(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG)\b"
    r"(?:[^*\n]|\n(?!\s*\n)){0,300}+(?:\* ?){2,4}"
    r"|^[ \t]*(?:(?:\* ?){2,4}(?i:(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG)"
    r"|(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG"
    r"|\*+ ?END ?\*? ?THE SMALL PRINT"
    r"|End of (?:[Tt]he |[Tt]his )?Project Gutenberg(?:['’]s\b| E))[^\n]*$",
    re.MULTILINE,
)
_BEGINS = re.compile(r"\W*(?:start of|end\W+the small print)", re.IGNORECASE)
_TITLE = re.compile(
    r"\W*(?:(?:the|an?) )?project gutenberg(?:['’]s)? (?:(?:of )?(?:australia|canada) )?"
    rf"(?:{_WORK}\b.{{0,200}}|.{{1,200}}, by .{{1,80}})(?<![.!?])$"
    rf"|this {_WORK} is for the use of anyone anywhere"
    r"|.{0,600}project gutenberg(?:™|-tm|\(tm\))",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"gutenberg|\be-?texts?\b|\be-?books?\b|small print|proofread|pgdp|90 days of receiving",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\W*(?:titles?|authors?|editor|translator|illustrator|contributor|language|credits?"
    r"|release date|posting date|last updated|most recently updated|character set(?: encoding)?"
    r"|original publication|subject|(?:e-?text )?(?:produced|prepared)|transcribed|scanned)"
    r"\b ?(?::|by\b|from\b)|note: project gutenberg (?:also )?has\b",
    re.IGNORECASE,
)
_LICENCE = re.compile(
    r"\W*(?:updated editions will replace the previous one"
    r"|creating the works from (?:print editions not protected|public domain print editions)"
    r"|start: full licen[cs]e|the full project gutenberg licen[cs]e"
    r"|section 1\. general terms of use and redistributing)",
    re.IGNORECASE,
)


def without_licence(lines: Sequence[str], source: Source) -> Sequence[str]:
    """The lines of a text without the header and licence, whose paragraphs `source` counts.

    They are what stands outside the marks `*** START OF ...` and `*** END OF ...` (also of other
    styles), and where these are lost, the paragraphs that begin as the header or licence does. A
    text that only speaks of Project Gutenberg stays. `Refused` if nothing else is there.
    """
    text = "\n".join(lines)
    if not any(sign in text for sign in _SIGNS):
        return lines
    blocks = blocks_of(_MARK.sub(r"\n\n\g<0>\n\n", text).split("\n"))
    kept: list[list[str]] = []
    unsure: list[list[str]] = []  # of a header: kept, if the header is over
    place, begun = "text", 0  # what a block is, and where in `kept` its book begins
    opened = False  # whether a mark opened the book
    for block in blocks:
        folded = " ".join(block)
        if _MARK.match(folded):
            if _BEGINS.match(folded):
                if not opened or "SMALL PRINT" in folded:
                    del kept[begun:]
                place, opened = "credits", True
            else:
                kept += unsure
                place, opened, begun = "licence", False, len(kept)
            unsure = []
        elif _TITLE.match(folded):
            place = "header"
        elif _LICENCE.match(folded):
            kept += unsure
            place, unsure, begun = "licence", [], len(kept)
        elif place == "licence":
            continue
        elif place != "text" and (
            _FIELD.match(folded) or (place == "header" and _ABOUT.search(folded))
        ):
            unsure = []
        elif place != "text":
            unsure.append(block)
            if len(unsure) > GAP:
                kept += unsure
                place, unsure = "text", []
        else:
            kept.append(block)
    kept += unsure
    left_out = len(blocks) - len(kept)
    expect(kept or not left_out, "no text: only Project Gutenberg's header or licence")
    source.skipped[OF_GUTENBERG] += left_out
    return [line for block in kept for line in (*block, "")] if left_out else lines
