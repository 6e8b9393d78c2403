"""One CoNLL-U sentence: ten columns, multiword tokens, empty nodes, a tree."""

from __future__ import annotations

from corpora.document import Tokens
from corpora.readers.source import Refused

_NUMBERS = [str(number) for number in range(1, 513)]


def add_sentence(lines: list[str], at: int, tokens: Tokens) -> tuple[str, bool]:
    """Add the words of a sentence that starts at code point `at` of its document to `tokens`.

    Returns its text and whether no space follows it. Raises `Refused`, its `where` the index of the
    line, for another number of columns, word numbers that are not 1 to n, a missing form, heads
    that are no numbers or lead nowhere, and a tree without a root or with a cycle. Several roots
    are taken. `tokens` are then unchanged.
    """
    rows = [line.split("\t") for line in lines]
    for index, row in enumerate(rows):
        if len(row) != 10:
            raise Refused(f"columns: {len(row)}, expected 10 separated by tabs", str(index))
    numbers = [row[0] for row in rows]
    if len(_NUMBERS) < len(rows):
        _NUMBERS.extend(str(n) for n in range(len(_NUMBERS) + 1, len(rows) + 1))
    if numbers == _NUMBERS[: len(rows)]:
        words = rows
        units = [(row[1], row[9], 1) for row in rows]
    else:
        words, units = _words_and_units(rows)
    columns = list(zip(*words, strict=True))
    form = list(columns[1])
    if not all(form):
        raise Refused("form: a word without one", str(numbers.index(words[form.index("")][0])))
    text, glued, start, end = _laid_out(form, units, at)
    tokens.head.extend(_heads(columns[6], numbers, len(tokens)))
    for column, values in (
        (tokens.upos, columns[3]),
        (tokens.xpos, columns[4]),
        (tokens.feats, columns[5]),
        (tokens.deprel, columns[7]),
    ):
        column.extend(["" if v == "_" else v for v in values] if "_" in values else values)
    tokens.form.extend(form)
    tokens.start.extend(start)
    tokens.end.extend(end)
    tokens.offsets.append(len(tokens.form))
    return text, glued


Unit = tuple[str, str, int]
"""What is written as one piece: surface form, MISC, number of words in it."""


def _words_and_units(rows: list[list[str]]) -> tuple[list[list[str]], list[Unit]]:
    """The rows of words, numbered 1 to n, and the units of the text, multiword tokens as one."""
    words: list[list[str]] = []
    units: list[Unit] = []
    covered = 0
    for index, row in enumerate(rows):
        number = row[0]
        if number == str(len(words) + 1):
            words.append(row)
            if len(words) > covered:
                units.append((row[1], row[9], 1))
        elif "-" in number:
            covered = _last_of_range(number, len(words), covered, index)
            units.append((row[1], row[9], covered - len(words)))
        elif not _is_empty_node(number):
            raise Refused(f"word number: {number!r}, expected {len(words) + 1}", str(index))
    if covered > len(words) or not words:
        raise Refused(f"word number: {len(words) + 1} is missing", str(len(rows) - 1))
    return words, units


def _last_of_range(number: str, before: int, covered: int, index: int) -> int:
    first, _, last = number.partition("-")
    fits = first == str(before + 1) and before >= covered
    if fits and last.isdecimal() and before + 1 < int(last) < before + 100:
        return int(last)
    raise Refused(f"multiword token: {number!r}, expected it to start at {before + 1}", str(index))


def _is_empty_node(number: str) -> bool:
    word, dot, rest = number.partition(".")
    return bool(dot) and word.isdecimal() and rest.isdecimal()


def _laid_out(
    form: list[str], units: list[Unit], at: int
) -> tuple[str, bool, list[int], list[int]]:
    """The text of the units, whether no space follows it, and the spans of the words."""
    pieces: list[str] = []
    start: list[int] = []
    end: list[int] = []
    space = False
    for surface, misc, count in units:
        if count == 1:
            start.append(at)
            end.append(at + len(surface))
        else:
            _place(form[len(start) : len(start) + count], surface, at, start, end)
        at += len(surface)
        space = misc == "_" or (misc != "SpaceAfter=No" and "SpaceAfter=No" not in misc.split("|"))
        pieces.append(surface)
        if space:
            pieces.append(" ")
            at += 1
    if space:
        pieces.pop()
    return "".join(pieces), not space, start, end


def _place(words: list[str], surface: str, at: int, start: list[int], end: list[int]) -> None:
    """The spans of a multiword token's words: their own if they make up its form in order."""
    places: list[int] = []
    after = 0
    for word in words:
        place = surface.find(word, after)
        if place < 0:
            start.extend([at] * len(words))
            end.extend([at + len(surface)] * len(words))
            return
        places.append(place)
        after = place + len(word)
    start.extend(at + place for place in places)
    end.extend(at + place + len(word) for place, word in zip(places, words, strict=True))


def _heads(column: tuple[str, ...], numbers: list[str], base: int) -> list[int]:
    """The heads as token indices of the document, -1 for a root, checked to be a forest."""
    try:
        heads = [int(head) for head in column]
    except ValueError:
        bad = next(i for i, head in enumerate(column) if not head.isdecimal())
        raise Refused(f"head: {column[bad]!r} is no number", _line(bad, numbers)) from None
    count = len(heads)
    if min(heads) < 0 or max(heads) > count:
        bad = next(i for i, head in enumerate(heads) if not 0 <= head <= count)
        reason = f"head: {heads[bad]} of word {bad + 1}, but the sentence has {count} words"
        raise Refused(reason, _line(bad, numbers))
    if 0 not in heads:
        raise Refused("no root: every word has a head", "0")
    marks = [0] * (count + 1)
    marks[0] = -1
    for word in range(1, count + 1):
        node = word
        while not marks[node]:
            marks[node] = word
            node = heads[node - 1]
        if node and marks[node] == word:
            raise Refused(
                f"cycle: the heads of word {node} lead back to it", _line(node - 1, numbers)
            )
    return [base + head - 1 if head else -1 for head in heads]


def _line(word: int, numbers: list[str]) -> str:
    """The index of the line of the word with this index."""
    return str(numbers.index(str(word + 1)))
