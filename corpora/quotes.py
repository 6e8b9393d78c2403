"""Quotation marks of a sentence, paired within it.

The file needs only Python: the folder of the shipped scorer has a copy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CLOSING_OF = {"“": "”", "«": "»", "„": "“", "``": "''", '"': '"', "‘": "’"}
"""The closing mark of each opening quotation mark. `‘` is for `_balance_single_quotes` alone, since
`’` is far more often an apostrophe."""
OPENING_OF = {"”": "“", "“": "„", "»": "«", "''": "``", '"': '"'}
QUOTE_MARKS = re.compile(r"[“”„«»\"]|``|''")
QUOTE_AT_START = re.compile(r"[“„«»\"]|``")
QUOTE_AT_END = re.compile(r"(?:[”“»«\"]|'')$")
CERTAIN_CLOSING = re.compile(r"(?<=[^\w\s‘“])’(?!\w)")
"""`’` after punctuation, which closes a quotation."""
POSSIBLE_CLOSING = re.compile(r"’(?!\w)")
"""`’` at the end of a word, where it may be an apostrophe."""


def balance_quotes(paragraph: Sequence[str]) -> list[str]:
    """Return the sentences of a paragraph, each with paired quotation marks.

    A sentence that is part of a longer quotation gets an opening mark, a closing mark, or both. A
    quotation that the paragraph does not close continues to the end of the paragraph, as in print;
    but if another mark opens first, it ends in its own sentence. Sentences with paired marks stay
    unchanged. Quotations within quotations (`‘ ’`) are treated in the same way.
    """
    sentences = _balance_single_quotes(paragraph)
    unmarked: list[int] = []  # sentences without a mark after an open quotation
    opened = ""
    for number, text in enumerate(sentences):
        missing, open_marks = unpaired_marks(text, opened)
        if not missing and not open_marks and not QUOTE_MARKS.search(text):
            if opened:
                unmarked.append(number)
            continue
        if missing:
            _put_in_quotes(sentences, unmarked, opened or missing[0])
        sentences[number] = "".join(
            [*missing, text, *map(CLOSING_OF.__getitem__, reversed(open_marks))]
        )
        unmarked, opened = [], open_marks[-1] if open_marks else ""
    if opened:
        _put_in_quotes(sentences, unmarked, opened)
    return sentences


def _put_in_quotes(sentences: list[str], numbers: Sequence[int], opening: str) -> None:
    """Put the mark `opening` and its closing mark around some sentences, in place."""
    for number in numbers:
        sentences[number] = f"{opening}{sentences[number]}{CLOSING_OF[opening]}"


def _balance_single_quotes(paragraph: Sequence[str]) -> list[str]:
    """Return the sentences of a paragraph, each with paired single quotation marks. As `’` is also
    an apostrophe, it closes a quotation of another sentence only after punctuation. A `‘` that is
    never closed and precedes a lower-case letter is an apostrophe too (`‘em`)."""
    sentences = list(paragraph)
    unmarked: list[int] = []  # sentences without a mark after an open quotation
    is_open = False  # whether a quotation is open before the sentence
    for number, text in enumerate(sentences):
        head, *quoted = text.split("‘")  # `quoted`: what follows each opening mark
        last = quoted[-1] if quoted else ""
        opens = bool(last) and not POSSIBLE_CLOSING.search(last.split("”")[0]) and last[0].isupper()
        if opens:
            text = _close_single_quote(text, len(text) - len(last))
        if is_open and not (quoted or QUOTE_MARKS.search(text) or CERTAIN_CLOSING.search(text)):
            unmarked.append(number)
            continue
        closes = CERTAIN_CLOSING.search(head)
        if is_open and not QUOTE_AT_START.match(head) and (closes or "”" in head):
            _put_in_quotes(sentences, unmarked, "‘")
            text = f"‘{text if closes else _close_single_quote(text)}"
        sentences[number], unmarked = text, []
        is_open = opens and "”" not in last
    _put_in_quotes(sentences, unmarked, "‘")
    return sentences


def _close_single_quote(text: str, start: int = 0) -> str:
    """Return the text with a `’` before the first `”` from `start` on, or at its end."""
    end = text.find("”", start)
    end = end if end >= 0 else len(text)
    return f"{text[:end]}’{text[end:]}"


def unpaired_marks(text: str, opened: str = "") -> tuple[list[str], list[str]]:
    """Return the opening marks missing at the start of a sentence, and those that it leaves open.

    `opened` is the mark of a quotation that is open before it. A straight mark opens at the
    beginning, after a space, a dash or a bracket; after a digit it may mean inches.
    """
    missing: list[str] = []
    open_marks: list[str] = []
    for match in QUOTE_MARKS.finditer(text):
        mark, before, after = match[0], text[: match.start()][-1:], text[match.end() :][:1]
        if mark == '"':
            opens = (not before or before in " ([—–-") and bool(after.strip())
            if not opens and '"' not in open_marks and opened != '"' and before.isdigit():
                continue
        elif mark == "“":  # in German it closes
            opens = [*opened, *open_marks][-1:] != ["„"]
        else:
            opens = mark in CLOSING_OF
        if opens:
            open_marks.append(mark)
        elif open_marks:
            open_marks.pop()
        else:
            missing.append(opened or OPENING_OF[mark])
    return missing, open_marks


def quotes_at_ends(sentence: str) -> tuple[bool, bool]:
    """Return whether a quotation mark begins the sentence, and whether one ends it.

    Speech has both, speech with "he said" one, narration none.
    """
    return bool(QUOTE_AT_START.match(sentence)), bool(QUOTE_AT_END.search(sentence))
