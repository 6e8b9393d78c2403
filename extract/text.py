"""The text of a pair: as its author wrote it, with paired quotes, or as the paper's tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise

import numpy as np

from corpora.document import Span
from corpora.sentences.rules import CITATIONS, NOTE, NUMBERS
from extract.pairs import SpanColumn
from extract.parse import BoolArray, Ints
from extract.trees import Batch

TERMINAL = ".!?…。！？"
QUESTIONS = {"。": "？"}
"""The question mark for each full stop, if it is not "?"."""
CLOSERS = "\"'”’»)]}"
OPENERS = "\"'“‘«([{"
EMPHASIS = "_*"
CLOSING = ",.;:!?)]"
"""What follows a closing quote."""
MARKS = frozenset(OPENERS + CLOSERS + EMPHASIS)
NUMBERED = re.compile(r"\(?\d{1,2}[.)]\s+(?=\w)|-(?=[A-Z])|(?:[–—―]|--+)(?=[^\W\d])")
"""The number of an item of a list, or the dash of a speaker, in front of the text."""
SEPARATORS = " ,;:—–"
VARIABLE = re.compile(r"(?<!['’])[b-hj-np-tv-z](?= [^\W\d])")
"""A letter by itself names a variable ("x divides y"), and its case is part of the name. "A", "I",
"O" and "U" are words."""
PARTNERS = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}
QUOTES = {"“": "”", "«": "»", '"': '"', "‘": "’", "'": "'"}
"""Quotation marks. `’` and `'` are often apostrophes: one without its opener stays."""
BRACKETS = {"(": ")", "[": "]", "{": "}"}
ELIDED = r"\d|(?:em|tis|twas|cause|til|n|bout|round)\b"
"""What `‘` stands before as an apostrophe: "‘90s", "‘em"."""
PAIRED = re.compile(rf"[\"“”«»()\[\]{{}}]|‘(?!{ELIDED})|[’'](?!\w)|(?<=[,:] )'", re.IGNORECASE)
PAIRABLE = re.compile(r"[\"“”«»()\[\]{}‘’']")
"""What `PAIRED` begins with; to look for it first is three times as fast."""
OPENED = re.compile(r"(?<!\w)'(?=\w)")
TAGGED = re.compile(r"[,;—–-]+[”\"»]")
INTERJECTED = re.compile(r"[,;].*\w\s*")
ENCLOSED = re.compile(r"\s*,.*,\s*", re.DOTALL)
SINGLE_CLOSED = re.compile(r"’(?!\w)")
_CITED = re.compile(
    rf"(?:(?<=[.!?…\"'”’])|[,;])\s*(?:{CITATIONS.pattern}|{NOTE})$|(?<=[a-z][.!?]){NUMBERS}$"
)
_EMPHASIS = re.compile(r"(?<![_*])(?:_{1,3}|\*{1,3})(?![_*])")
_LONGEST_EMPHASIS = 2_000
_EMPTY = re.compile(r"“[\s,;:—–]*”[\s,;:—–]*|«[\s,;:—–]*»[\s,;:—–]*")
_CLOSED = re.compile(r"[,.;:!?…]?([”»])")


def texts_of(batch: Batch, doc: Ints, column: SpanColumn, text: str, asks: BoolArray) -> list[str]:
    """The text of each row of spans, `written` or `tokenised`; `doc` numbers its document.

    A question ends in a question mark if its own end is not in the text.
    """
    table, strings = batch.patterns.table, batch.patterns.strings.strings
    question, blank = QUESTIONS.get(table.stop, "?"), " " if table.spaces else ""
    sources = [document.text for document in batch.documents]
    bounds = np.cumsum([0, *(len(parse.head) for parse in batch.parses)]).tolist()
    clausal = batch.labelled("subject") | batch.labelled("subordinator")
    clausal |= batch.tagged("verb") | batch.tagged("coordinating")

    def tokens(document: int, span: Span) -> slice:
        """The tokens of a document that begin inside the span."""
        begin, end = bounds[document], bounds[document + 1]
        first, last = np.searchsorted(batch.start[begin:end], span)
        return slice(begin + first, begin + last)

    def opens(document: int, span: Span) -> bool:
        """Whether a stretch has no clausal token: it can only open a clause ("For example")."""
        return not clausal[tokens(document, span)].any()

    texts: list[str] = []
    for d, spans, asking in zip(doc.tolist(), column.lists(), asks.tolist(), strict=True):
        stop = question if asking else table.stop
        if text == "written":
            texts.append(written(sources[d], spans, stop, blank, partial(opens, d)))
            continue
        pieces = chain.from_iterable(_whole_emphasis(sources[d], spans)) if spans else ()
        codes = [code for span in pieces for code in batch.form[tokens(d, span)].tolist()]
        # A previous sentence that was not parsed has no tokens: white space separates its words.
        words = [word for start, end in spans for word in sources[d][start:end].split()]
        texts.append(tokenised([strings[code] for code in codes] or words, stop))
    return texts


def written(
    text: str,
    spans: Sequence[Span],
    stop: str = ".",
    blank: str = " ",
    opens: Callable[[Span], bool] = lambda _: False,
) -> str:
    """The author's own text under `spans`: white space folded, first letter capital, a final stop.

    Parts are joined by `blank`, without one before a closing mark. Quotes and marks of emphasis
    (`_she_`, `**she**`) are paired. A bracket at either end whose partner is outside is removed, as
    is a citation after the stop (`[28]`).

    The marker and commas between parts are left out, which could also remove a closing quote: in
    "“Well, then,” said he" the parts are "“Well" and "said he". A comma stays after a first word
    ("Yes, [but] it might"), where a quotation breaks off ("Sir,” he said, “I"), and behind a phrase
    that `opens` the clause ("For example, [if you ask,] he will go").
    """
    begin = spans[0][0]
    around = text[begin : spans[-1][1]]
    if "_" in around or "*" in around:
        pieces = _whole_emphasis(text, spans)
        parts = ["".join(text[a:b] for a, b in of_span).strip() for of_span in pieces]
    else:
        parts = [text[start:end] for start, end in spans]
    joined = parts[0]
    for part, ((_, end), (start, _)) in zip(parts[1:], pairwise(spans), strict=True):
        gap = text[end:start]
        closed = _CLOSED.search(gap)
        if closed and joined.count(PARTNERS[closed[1]]) > joined.count(closed[1]):
            joined += closed[0]
        elif (
            TAGGED.match(gap)
            or (" " not in joined and INTERJECTED.fullmatch(gap))
            or (ENCLOSED.fullmatch(gap) and opens((begin, end)))
        ):
            joined += ","
        joined += part if part[:1] in TERMINAL else blank + part
    if "  " in joined or not joined.isprintable():
        joined = " ".join(joined.split()) or stop
    if item := NUMBERED.match(joined):
        joined = joined[item.end() :]
    first, final = joined[0], joined[-1]
    at_ends = first in MARKS or final in MARKS or final.isdigit()
    if at_ends or (PAIRABLE.search(joined) and PAIRED.search(joined)):
        return _raised(_with_paired_quotes(_CITED.sub("", joined), stop))
    if not first.isupper():
        joined = _raised(joined)
    return joined if final in TERMINAL else joined + stop


def tokenised(forms: Sequence[str], stop: str = ".") -> str:
    """The tokens separated by spaces, first letter capital, ` .` at the end, as in the paper."""
    text = _raised(" ".join(forms), EMPHASIS + " ")
    return text if _ends(text) else f"{text} {stop}"


def _whole_emphasis(text: str, spans: Sequence[Span]) -> list[list[Span]]:
    """For each span the pieces of it that have both marks of an emphasis, or neither.

    A mark next to a span belongs to it if its partner is in a span: parsers attach one of the two
    to another word ("but _she_ stayed"). Partners are looked for in the paragraph.
    """
    first, last = spans[0][0], spans[-1][1]
    begin = max(text.rfind("\n\n", 0, first) + 1, first - _LONGEST_EMPHASIS)
    behind = text.find("\n\n", last)
    behind = min(len(text) if behind < 0 else behind, last + _LONGEST_EMPHASIS)
    widened, unpaired = list(spans), list[Span]()
    opened: dict[str, Span] = {}
    for mark in _EMPHASIS.finditer(text, begin, behind):
        before, after = (
            text[mark.start() - 1 : mark.start()] if mark.start() else "",
            text[mark.end() : mark.end() + 1],
        )
        if mark[0] in opened and before.strip() and not after.isalnum():
            pair = opened.pop(mark[0]), mark.span()
            outside = [m for m in pair if not any(a <= m[0] < b for a, b in spans)]
            if len(outside) == 1:
                start, end = outside[0]
                beside = [n for n, (a, b) in enumerate(spans) if end == a or start == b]
                for n in beside[:1]:
                    widened[n] = min(start, widened[n][0]), max(end, widened[n][1])
                if not beside:
                    unpaired += [m for m in pair if m not in outside]
        elif after.strip() and not before.isalnum():
            opened[mark[0]] = mark.span()
    pieces = []
    for start, end in widened:
        edges = sorted(edge for mark in unpaired if start <= mark[0] < end for edge in mark)
        pieces.append([*zip([start, *edges[1::2]], [*edges[::2], end], strict=True)])
    return pieces


def _with_paired_quotes(text: str, stop: str) -> str:
    """The text with its quotes and brackets paired, and with a final `stop`.

    A mark at an end whose partner is outside is removed with adjacent separators; so are empty
    quotes and, inside, a closing quote without its opener ("… have done that,” she said"). A quote
    that continues after the text is closed where the text ends. No stop follows a terminal mark; in
    a closing quote it replaces a separator: "“There is your bird,”" ends in "bird.”", "he called it
    “home”" in "“home”.".
    """
    shorter = _strip_once(text)
    while shorter and shorter != text:
        text, shorter = shorter, _strip_once(shorter)
    text, closing = _paired(_EMPTY.sub("", text) or text)
    if _ends(text):
        return text + closing
    if closing:
        text = text.rstrip(SEPARATORS)
        return text + (stop + closing if closing[-1] in QUOTES.values() else closing + stop)
    body = text.rstrip(CLOSERS + " ")
    tail = text[len(body) :].strip()
    if body and tail[:1] in QUOTES.values() and body[-1] in SEPARATORS:
        body = body.rstrip(SEPARATORS)
        return (body if body[-1:] in TERMINAL else body + stop) + tail
    return text + stop


def _ends(text: str) -> bool:
    """Whether a terminal mark ends the text, also in quotes, or in brackets around all of it."""
    body = text.rstrip(CLOSERS + EMPHASIS + " ")
    tail = text[len(body) :]
    inside = text[:1] not in BRACKETS and any(mark in tail for mark in BRACKETS.values())
    return bool(body) and body[-1] in TERMINAL and not inside


def _strip_once(text: str) -> str:
    """The text without one mark at either end whose partner is outside."""
    if text.startswith("''"):  # the quotes of the Penn Treebank: `` and ''
        return text[2:].lstrip(SEPARATORS)
    first, last = text[:1], text[-1:]
    single = first == "‘" and not SINGLE_CLOSED.search(text)
    odd = {mark for mark in '"_' if text.count(mark) % 2}
    open_pairs = {opener for closer, opener in PARTNERS.items() if closer not in text}
    if single or first in PARTNERS or first in odd | open_pairs:
        return text[1:].lstrip(SEPARATORS)
    opens = last in PARTNERS.values() or last == "‘"
    if text[-2:-1] in TERMINAL + SEPARATORS:
        opens |= (last == "’" and "‘" not in text) or (last == "'" and not OPENED.search(text))
    if opens or last in odd or (last in PARTNERS and PARTNERS[last] not in text):
        return text[:-1].rstrip(SEPARATORS)
    return text


def _paired(text: str) -> tuple[str, str]:
    """The text without unopened closing marks, and the marks that close those left open.

    A bracket opens after a space (the one in ":(" does not), a straight quote by its neighbours.
    Unpaired marks stay in "12\" pipe", "1) this" and ":)".
    """
    opened: list[str] = []
    result, position = "", 0
    for match in PAIRED.finditer(text):
        mark, at = match[0], match.start()
        before, after = text[max(at - 1, 0) : at], text[at + 1 : at + 2]
        if mark in BRACKETS:
            opens = not before.strip()
        elif mark == "'" and mark not in opened:
            opens = before == " " and after.isupper()  # "he said, 'Go", not "he said, 'tis"
        elif mark == '"' and mark not in opened:
            closes = before.strip() and (after.isspace() or after in CLOSING)
            opens = bool(after) and not closes
        else:
            opens = mark in QUOTES and mark not in opened
        removable = before == " " if mark in BRACKETS.values() else mark not in BRACKETS
        if opens:
            opened.append((QUOTES | BRACKETS)[mark])
        elif mark in opened:
            while opened.pop() != mark:
                pass
        elif removable and mark not in "’'" and not (mark == '"' and before.isdigit()):
            result, position = (result + text[position:at]).rstrip(" "), at + 1
    return result + text[position:], "".join(reversed(opened))


def _raised(text: str, opening: str = OPENERS + EMPHASIS) -> str:
    """The text with a capital first letter, also behind `opening`; "iPhone" and "x" stay."""
    at = len(text) - len(text.lstrip(opening))
    first, then = text[at : at + 1], text[at + 1 :]
    stays = then[:1].isupper() or VARIABLE.match(text, at)
    return text if stays else text[:at] + first.upper() + then
