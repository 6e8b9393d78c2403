"""Gather pairs and gold relations of the same documents, as words of the gold text, for scoring.

Spans of the source and of the gold both become sets of words of the *gold* text. So gold trees, a
parser on gold tokens and a parser on raw text are scored in one unit, whatever their tokens are,
and punctuation never counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from corpora.align import align
from corpora.document import Document, Relation, Span
from corpora.errors import InputError, amount
from corpora.lengths import unfit_lengths
from corpora.vocabulary import NUMBER, UNKNOWN, WORD
from extract.pairs import Pair

DESCRIPTION = "words of the gold text (letters and digits, apostrophes inside), no punctuation"
Words = tuple[int, ...]
"""Indices of words in their document, increasing."""


class GoldText:
    """A gold document's text as words; `index` numbers the documents of one validation."""

    def __init__(self, index: int, id: str, text: str) -> None:
        matches = list(WORD.finditer(text))
        self.index, self.id, self.text = index, id, text
        self.words = [match.group().lower() for match in matches]
        self.starts = [match.start() for match in matches]

    def under(self, spans: Iterable[Span]) -> str:
        """The text under `spans`, joined by spaces."""
        return " ".join(self.text[start:end] for start, end in spans)


class WordMap:
    """Maps spans of a text to words of the gold text: those whose first character is in a span."""

    def __init__(self, gold: GoldText, source: str | None = None) -> None:
        """Take spans of `source` (default: of the gold text itself).

        Raises `InputError` where the two texts have different characters; but the source may have a
        limited vocabulary (`corpora.vocabulary.limit_vocabulary`).
        """
        starts = gold.starts
        if source is None:
            offsets = np.arange(len(gold.text) + 1)
        elif limited := _starts_in_limited(source, gold.words):
            offsets, starts = np.arange(len(source) + 1), limited
        else:
            offsets = align(source, gold.text, where=f"document {gold.id!r}, source and gold")
        # The number of words that start before each offset: a span has the words between two.
        self._words_before: list[int] = np.searchsorted(starts, offsets).tolist()

    def __call__(self, spans: Iterable[Span]) -> Words:
        """Return the words in `spans`, in order. Raises `IndexError` outside the text."""
        before = self._words_before
        ranges = [range(before[start], before[end]) for start, end in spans]
        if len(ranges) == 1:
            return tuple(ranges[0])
        return tuple(sorted({word for words in ranges for word in words}))


def _starts_in_limited(source: str, words: list[str]) -> list[int] | None:
    """Return where `words` begin in a source with a limited vocabulary; None for another source."""
    matches = list(WORD.finditer(source))
    if len(matches) != len(words) or not source.replace(NUMBER, "").islower():
        return None
    pairs = zip((match.group() for match in matches), words, strict=True)
    replacements = {source_word for source_word, word in pairs if source_word != word}
    return [match.start() for match in matches] if replacements <= {UNKNOWN, NUMBER} else None


@dataclass(frozen=True, slots=True)
class Item:
    """An extracted pair (S1, S2) or a gold relation (Arg1, Arg2), as words of the gold text.

    `doc` is the index of its document, `connective` the words of the marker itself.
    """

    doc: int
    marker: str
    connective: Words
    arg1: Words
    arg2: Words


@dataclass(frozen=True, slots=True)
class Gold(Item):
    """A gold relation. `marker` is the connective as annotated; `names` are its words, lower case.

    `connective` has the words in its span that are `names`: of "partly because", annotated as
    `because`, only the second.
    """

    names: tuple[str, ...] = ()
    fits: bool = True
    """Whether its arguments have lengths that the filters allow."""


@dataclass(slots=True)
class Material:
    """The gold texts, gold relations and pairs to score; `left_out` counts others by reason."""

    texts: list[GoldText] = field(default_factory=list)
    gold: list[Gold] = field(default_factory=list)
    pairs: list[Item] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def connective(marker: str) -> str:
    """Return a marker as PDTB writes the connective: `if then` for `if ... then`."""
    return marker.replace(" ... ", " ")


def gather(
    pairs: Iterable[Pair],
    gold: Iterable[Document],
    sources: Iterable[Document],
    markers: Collection[str],
    filters: str = "",
) -> Material:
    """Read the gold of the source's documents, and the pairs of `markers`, as words of the gold.

    With the `filters` "dissent" pairs of unfit lengths (`corpora.lengths`) are left out, and
    relations of unfit lengths marked; words are counted at white space.

    Each iterable is read once, `sources` first, then `gold`, then `pairs`. Raises `InputError`
    if no document is in both, if two texts differ (with the place), or if a pair's spans are
    outside its document.
    """
    # The gold of the documents that the source has, with maps from offsets to gold words
    texts = {document.id: document.text for document in sources}
    material, left_out = Material(), Counter[str]()
    maps: dict[str, tuple[int, WordMap]] = {}
    for document in gold:
        if document.id not in texts:
            left_out["gold_documents_outside_source"] += 1
            continue
        text = GoldText(len(material.texts), document.id, document.text)
        maps[document.id] = text.index, WordMap(text, texts[document.id])
        material.texts.append(text)
        material.gold.extend(_relations(text, document.relations or [], left_out, filters))
    if not maps:
        ids = f", such as {', '.join(sorted(texts)[:3])}" if texts else ""
        raise InputError(
            "no document of the gold is in the source",
            where="validate",
            hint=f"documents match by id; the source has {amount(len(texts), 'document')}{ids}",
        )
    left_out["source_documents_without_gold"] += len(texts) - len(maps)
    # The pairs, as words of the gold
    connectives = set(map(connective, markers))
    for pair in pairs:
        if connective(pair.marker) not in connectives:
            left_out["pairs_of_other_markers"] += 1
        elif pair.doc not in maps:
            left_out["pairs_without_gold"] += 1
        elif filters and not _fit(pair.s1, pair.s2):
            left_out["pairs_of_unfit_lengths"] += 1
        else:
            doc, to_words = maps[pair.doc]
            try:
                spans = map(to_words, (pair.marker_spans, pair.s1_spans, pair.s2_spans))
                material.pairs.append(Item(doc, connective(pair.marker), *spans))
            except IndexError:
                raise InputError(
                    f"the spans of the pair of {pair.marker!r} in sentence {pair.sentence} "
                    "are outside the document",
                    where=pair.doc,
                    hint="the pairs were extracted from another version of the source; "
                    "extract again",
                ) from None
    material.left_out = +left_out
    return material


def _relations(
    text: GoldText, relations: Iterable[Relation], left_out: Counter[str], filters: str
) -> Iterator[Gold]:
    """Yield the explicit relations of a text; one with two senses in two rows comes once."""
    to_words = WordMap(text)
    seen = set()
    for relation in relations:
        if relation.kind != "Explicit":
            continue
        names = tuple(relation.connective.lower().split())
        covered = to_words(relation.connective_spans)
        positions = last_subsequence(names, [text.words[i] for i in covered])
        sides = (text.under(spans) for spans in (relation.arg1_spans, relation.arg2_spans))
        item = Gold(
            doc=text.index,
            marker=" ".join(names),
            connective=tuple(covered[i] for i in positions) if positions else covered,
            arg1=to_words(relation.arg1_spans),
            arg2=to_words(relation.arg2_spans),
            names=names,
            fits=not filters or _fit(*sides),
        )
        if item in seen and item.connective:
            left_out["gold_rows_of_a_second_sense"] += 1
            continue
        seen.add(item)
        left_out["gold_of_unfit_lengths"] += not item.fits
        yield item


def _fit(one: str, other: str) -> bool:
    """Whether two texts have lengths that the filters of DisSent allow, in words at white space."""
    return not any(unfit_lengths(len(one.split()), len(other.split())).values())


def last_subsequence(sequence: tuple[str, ...], words: list[str]) -> list[int] | None:
    """Return the positions of the last subsequence of `words` equal to `sequence`; None if none."""
    places: list[int] = []
    at = len(words)
    for word in reversed(sequence):
        at = next((i for i in range(at - 1, -1, -1) if words[i] == word), -1)
        if at < 0:
            return None
        places.append(at)
    return places[::-1]
