"""A promise of quality: extraction from gold trees against the explicit relations of GDTB.

Occurrence: the extracted marker is the connective of a gold relation. Dice: both arguments' token
sets have a Dice coefficient of .7 or more, punctuation aside. The thresholds lie a little below
what docs/results/extraction.md reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from corpora.document import Document, Relation, Span
from corpora.readers import open_source
from corpora.readers.pdtb import read_gold
from extract import Extractor, Pair
from extract.patterns import resolve_markers

MARKERS = resolve_markers("all15")


_LETTERS: dict[str, list[int]] = {}


def count_letters(text: str) -> None:
    seen, counts = 0, []
    for character in text:
        counts.append(seen)
        seen += character.isalnum()
    _LETTERS[text] = [*counts, seen]


def letters(text: str, spans: Iterable[Span]) -> set[int]:
    """The letters under some spans, by their number in the text."""
    before = _LETTERS[text]
    return {n for start, end in spans for n in range(before[start], before[end])}


def dice(a: set[int], b: set[int]) -> float:
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0


@pytest.fixture(scope="module")
def scores(discorpora_data: Path) -> dict[str, Counter[str]]:
    """Per marker the numbers of extracted pairs, gold relations, hits, and hits by Dice."""
    documents = {
        d.id: d
        for split in ("train", "dev")
        for d in open_source(f"conllu:{discorpora_data / 'treebank' / 'en_gum' / split}")
    }
    gold = {d.id: d for d in read_gold(discorpora_data / "gdtb", documents) if d.id in documents}
    found: dict[str, Counter[str]] = {marker: Counter() for marker in MARKERS}
    relations: dict[tuple[str, frozenset[int]], tuple[Document, Relation]] = {}
    for document in gold.values():
        count_letters(document.text)
        for relation in document.relations or ():
            if relation.kind == "Explicit" and relation.connective in found:
                found[relation.connective]["gold"] += 1
                key = frozenset(letters(document.text, relation.connective_spans))
                relations[document.id, key] = (document, relation)
    for document in documents.values():
        count_letters(document.text)
    for pair in Extractor("gold", mode="recall").pairs(documents.values()):
        found[pair.marker]["extracted"] += 1
        text = documents[pair.doc].text
        hit = relations.get((pair.doc, frozenset(letters(text, pair.marker_spans))))
        if hit:
            found[pair.marker]["hits"] += 1
            found[pair.marker]["alike"] += _alike(pair, text, *hit)
    return found


def _alike(pair: Pair, text: str, document: Document, relation: Relation) -> bool:
    """Whether both arguments have a Dice coefficient of .7 or more, by letters."""
    sides = ((pair.s1_spans, relation.arg1_spans), (pair.s2_spans, relation.arg2_spans))
    return all(dice(letters(text, a), letters(document.text, b)) >= 0.7 for a, b in sides)


def f1(score: Counter[str], hits: str) -> float:
    return 2 * score[hits] / (score["extracted"] + score["gold"])


@pytest.mark.slow
def test_connectives_and_arguments_are_found(scores: dict[str, Counter[str]]) -> None:
    total = sum(scores.values(), Counter())
    assert f1(total, "hits") >= 0.92
    assert f1(total, "alike") >= 0.73


@pytest.mark.slow
@pytest.mark.parametrize("marker", MARKERS)
def test_every_frequent_marker_is_found(scores: dict[str, Counter[str]], marker: str) -> None:
    if scores[marker]["gold"] < 20:
        pytest.skip("fewer than 20 gold relations")
    assert f1(scores[marker], "hits") >= 0.80
