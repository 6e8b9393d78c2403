"""Make the texts of S1 and S2: as the author wrote them, with paired quotes, or as tokens."""

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
EMPHASIS_SIGNS = "_*"
AFTER_CLOSING_QUOTE = ",.;:!?)]"
"""What follows a closing quote."""
MARKS = frozenset(OPENERS + CLOSERS + EMPHASIS_SIGNS)
ITEM_NUMBER = re.compile(r"\(?\d{1,2}[.)]\s+(?=\w)|-(?=[A-Z])|(?:[–—―]|--+)(?=[^\W\d])")
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
QUOTE_OR_BRACKET = re.compile(
    rf"[\"“”«»()\[\]{{}}]|‘(?!{ELIDED})|[’'](?!\w)|(?<=[,:] )'", re.IGNORECASE
)
QUOTE_OR_BRACKET_SIGN = re.compile(r"[\"“”«»()\[\]{}‘’']")
"""What `QUOTE_OR_BRACKET` begins with; to look for it first is three times as fast."""
OPENING_APOSTROPHE = re.compile(r"(?<!\w)'(?=\w)")
SPEECH_BREAK = re.compile(r"[,;—–-]+[”\"»]")
COMMA_AND_WORD = re.compile(r"[,;].*\w\s*")
ENCLOSED = re.compile(r"\s*,.*,\s*", re.DOTALL)
SINGLE_CLOSED = re.compile(r"’(?!\w)")
_CITED = re.compile(
    rf"(?:(?<=[.!?…\"'”’])|[,;])\s*(?:{CITATIONS.pattern}|{NOTE})$|(?<=[a-z][.!?]){NUMBERS}$"
)
_EMPHASIS = re.compile(r"(?<![_*])(?:_{1,3}|\*{1,3})(?![_*])")
_LONGEST_EMPHASIS = 2_000
_EMPTY_QUOTES = re.compile(r"“[\s,;:—–]*”[\s,;:—–]*|«[\s,;:—–]*»[\s,;:—–]*")
_CLOSING_QUOTE = re.compile(r"[,.;:!?…]?([”»])")


def texts_of(batch: Batch, doc: Ints, column: SpanColumn, text: str, asks: BoolArray) -> list[str]:
    """Return the text of each row of spans in `column`, by the function that `text` names.

    `text` is `written` or `tokenised`. `doc` has the number of each row's document in the batch. A
    row of `asks` ends in a question mark if its spans have no mark at the end.
    """
    table, strings = batch.patterns.table, batch.patterns.strings.strings
    question, blank = QUESTIONS.get(table.stop, "?"), " " if table.spaces else ""
    sources = [document.text for document in batch.documents]
    bounds = np.cumsum([0, *(len(parse.head) for parse in batch.parses)]).tolist()
    clausal = batch.labelled("subject") | batch.labelled("subordinator")
    clausal |= batch.tagged("verb") | batch.tagged("coordinating")

    def tokens(document: int, span: Span) -> slice:
        """Return the slice of the batch's tokens that begin inside a span of a document."""
        begin, end = bounds[document], bounds[document + 1]
        first, last = np.searchsorted(batch.start[begin:end], span)
        return slice(begin + first, begin + last)

    def opens(document: int, span: Span) -> bool:
        """Return whether a span can only be the opening of a clause, without verb or subject."""
        return not clausal[tokens(document, span)].any()

    texts: list[str] = []
    for number, spans, is_question in zip(doc.tolist(), column.lists(), asks.tolist(), strict=True):
        source, stop = sources[number], question if is_question else table.stop
        if text == "written":
            texts.append(written(source, spans, stop, blank, partial(opens, number)))
            continue
        pieces = chain.from_iterable(_spans_with_whole_emphasis(source, spans)) if spans else ()
        codes = [code for span in pieces for code in batch.form[tokens(number, span)].tolist()]
        # A previous sentence that was not parsed has no tokens: white space separates its words.
        words = [word for start, end in spans for word in source[start:end].split()]
        texts.append(tokenised([strings[code] for code in codes] or words, stop))
    return texts


def written(
    text: str,
    spans: Sequence[Span],
    stop: str = ".",
    blank: str = " ",
    opens: Callable[[Span], bool] = lambda _: False,
) -> str:
    """Return the author's text under `spans` of `text` as one sentence.

    It begins with a capital and ends in a terminal mark, `stop` if there is none. White space
    becomes one blank. The parts under the spans are joined by `blank`, or nothing before a closing
    mark. Quotes and marks of emphasis (`_she_`, `**she**`) are paired. A bracket at either end
    whose partner is outside is removed, and so is a citation after the stop (`[28]`).

    What stands between two parts (the marker, commas) is left out, except a closing quote: in
    "“Well, then,” said he" the parts are "“Well" and "said he". A comma stays after a first word
    ("Yes, [but] it might"), where a quotation breaks off ("Sir,” he said, “I"), and behind a span
    for which `opens` is true ("For example, [if you ask,] he will go").
    """
    # The parts, with whole pairs of marks of emphasis
    begin = spans[0][0]
    around = text[begin : spans[-1][1]]
    if "_" in around or "*" in around:
        pieces = _spans_with_whole_emphasis(text, spans)
        parts = ["".join(text[a:b] for a, b in of_span).strip() for of_span in pieces]
    else:
        parts = [text[start:end] for start, end in spans]
    # Join them; what stands between two parts decides about a quote or comma.
    joined = parts[0]
    for part, ((_, end), (start, _)) in zip(parts[1:], pairwise(spans), strict=True):
        gap = text[end:start]
        closed = _CLOSING_QUOTE.search(gap)
        if closed and joined.count(PARTNERS[closed[1]]) > joined.count(closed[1]):
            joined += closed[0]
        elif (
            SPEECH_BREAK.match(gap)
            or (" " not in joined and COMMA_AND_WORD.fullmatch(gap))
            or (ENCLOSED.fullmatch(gap) and opens((begin, end)))
        ):
            joined += ","
        joined += part if part[:1] in TERMINAL else blank + part
    if "  " in joined or not joined.isprintable():
        joined = " ".join(joined.split()) or stop
    if item := ITEM_NUMBER.match(joined):
        joined = joined[item.end() :]
    # Quotes of the Penn Treebank, of which one of a pair is outside
    penn = joined.count("``") != joined.count("''") and "“" not in joined
    if penn and ("``" in text or joined.startswith("''")):
        curly = joined.replace("``", "“").replace("''", "”")
        paired = _capitalised(_with_paired_quotes(_CITED.sub("", curly), stop))
        return paired.replace("“", "``").replace("”", "''")
    # Repair both ends. The usual text needs no pairing of quotes, which is slow.
    first, final = joined[0], joined[-1]
    at_ends = first in MARKS or final in MARKS or final.isdigit()
    if at_ends or (QUOTE_OR_BRACKET_SIGN.search(joined) and QUOTE_OR_BRACKET.search(joined)):
        return _capitalised(_with_paired_quotes(_CITED.sub("", joined), stop))
    if not first.isupper():
        joined = _capitalised(joined)
    return joined if final in TERMINAL else joined + stop


def tokenised(forms: Sequence[str], stop: str = ".") -> str:
    """Return tokens as a sentence, separated by spaces: a capital first, ` .` last (DisSent)."""
    text = _capitalised(" ".join(forms), EMPHASIS_SIGNS + " ")
    return text if _ends_in_terminal(text) else f"{text} {stop}"


def _spans_with_whole_emphasis(text: str, spans: Sequence[Span]) -> list[list[Span]]:
    """Return each span as pieces without unpaired marks of emphasis, such as the `_` of "_she".

    A mark next to a span is added to it if its partner is in a span: parsers attach one of the two
    to another word ("but _she_ stayed"). Partners are looked for in the paragraph.
    """
    # Pair the marks in the paragraph; widen spans to marks beside them.
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
            both = opened.pop(mark[0]), mark.span()
            outside = [m for m in both if not any(a <= m[0] < b for a, b in spans)]
            if len(outside) == 1:
                start, end = outside[0]
                adjacent = [n for n, (a, b) in enumerate(spans) if end == a or start == b]
                for n in adjacent[:1]:
                    widened[n] = min(start, widened[n][0]), max(end, widened[n][1])
                if not adjacent:
                    unpaired += [m for m in both if m not in outside]
        elif after.strip() and not before.isalnum():
            opened[mark[0]] = mark.span()
    # Cut the unpaired marks out of the spans.
    pieces = []
    for start, end in widened:
        edges = sorted(edge for mark in unpaired if start <= mark[0] < end for edge in mark)
        pieces.append([*zip([start, *edges[1::2]], [*edges[::2], end], strict=True)])
    return pieces


def _with_paired_quotes(text: str, stop: str) -> str:
    """Return the text with its quotes and brackets paired, and with a final `stop`.

    A mark at an end whose partner is outside is removed with adjacent separators; so are empty
    quotes and, inside, a closing quote without its opener ("… have done that,” she said"). A quote
    that continues after the text is closed where the text ends. No stop follows a terminal mark; in
    a closing quote it replaces a separator: "“There is your bird,”" ends in "bird.”", "he called it
    “home”" in "“home”.".
    """
    shorter = _without_outer_mark(text)
    while shorter and shorter != text:
        text, shorter = shorter, _without_outer_mark(shorter)
    text, closing = _pair_marks(_EMPTY_QUOTES.sub("", text) or text)
    if _ends_in_terminal(text):
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


def _ends_in_terminal(text: str) -> bool:
    """Return whether a terminal mark ends the text, also in quotes or in brackets around it all."""
    body = text.rstrip(CLOSERS + EMPHASIS_SIGNS + " ")
    tail = text[len(body) :]
    inside = text[:1] not in BRACKETS and any(mark in tail for mark in BRACKETS.values())
    return bool(body) and body[-1] in TERMINAL and not inside


def _without_outer_mark(text: str) -> str:
    """Return the text without its first or last mark, if the mark's partner is outside the text."""
    # At the beginning: an opening mark without its closing one, or the other way round
    first, last = text[:1], text[-1:]
    unclosed_single = first == "‘" and not SINGLE_CLOSED.search(text)
    odd = {mark for mark in '"_' if text.count(mark) % 2}
    unclosed = {opener for closer, opener in PARTNERS.items() if closer not in text}
    if unclosed_single or first in PARTNERS or first in odd | unclosed:
        return text[1:].lstrip(SEPARATORS)
    # At the end; an apostrophe there belongs to its word, except behind a stop or comma.
    unpaired = last in PARTNERS.values() or last == "‘" or last in odd
    if text[-2:-1] in TERMINAL + SEPARATORS:
        unpaired |= last == "’" and "‘" not in text
        unpaired |= last == "'" and not OPENING_APOSTROPHE.search(text)
    if unpaired or (last in PARTNERS and PARTNERS[last] not in text):
        return text[:-1].rstrip(SEPARATORS)
    return text


def _pair_marks(text: str) -> tuple[str, str]:
    """Return the text without closing marks that have no opener, and the marks to close it with.

    A bracket opens after a space (not in ":("); a straight quote opens or closes by its neighbours.
    Unpaired marks stay in "12\" pipe", "1) this" and ":)".
    """
    opened: list[str] = []
    result, position = "", 0
    for match in QUOTE_OR_BRACKET.finditer(text):
        mark, at = match[0], match.start()
        # Whether the mark opens, by its neighbours and the marks that are open
        before, after = text[max(at - 1, 0) : at], text[at + 1 : at + 2]
        if mark in BRACKETS:
            opens = not before.strip()
        elif mark == "'" and mark not in opened:
            opens = before == " " and after.isupper()  # "he said, 'Go", not "he said, 'tis"
        elif mark == '"' and mark not in opened:
            closes = before.strip() and (after.isspace() or after in AFTER_CLOSING_QUOTE)
            opens = bool(after) and not closes
        else:
            opens = mark in QUOTES and mark not in opened
        # Whether the mark is removed if it closes nothing
        removable = before == " " if mark in BRACKETS.values() else mark not in BRACKETS
        if opens:
            opened.append((QUOTES | BRACKETS)[mark])
        elif mark in opened:
            while opened.pop() != mark:
                pass
        elif removable and mark not in "’'" and not (mark == '"' and before.isdigit()):
            result, position = (result + text[position:at]).rstrip(" "), at + 1
    return result + text[position:], "".join(reversed(opened))


def _capitalised(text: str, opening: str = OPENERS + EMPHASIS_SIGNS) -> str:
    """Return the text with its first letter behind `opening` marks capital; "iPhone", "x" stay."""
    at = len(text) - len(text.lstrip(opening))
    first, rest = text[at : at + 1], text[at + 1 :]
    stays = rest[:1].isupper() or VARIABLE.match(text, at)
    return text if stays else text[:at] + first.upper() + rest
