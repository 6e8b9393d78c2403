"""The prefilter: sentences that may hold a marker, and those before them that may be its S1."""

from __future__ import annotations

import pytest

from corpora.document import Document, Spans
from corpora.sentences import split
from extract import Extractor
from extract.patterns import load_patterns
from extract.prefilter import Prefilter

SENTENCES = (
    "The lamp was lit.",
    "He read because he could not sleep.",
    "A clock struck.",
    "It was cold outside.",
    "But the room was warm.",
    "Sand covered the band.",
    "The floor was also clean.",
    "He had some bread and butter.",
)


def document() -> Document:
    plain = Document(id="d", text=" ".join(SENTENCES))
    return plain.with_sentences(split(plain.text, plain.paragraphs))


@pytest.mark.parametrize(
    ("markers", "previous", "chosen"),
    [
        (("because",), False, [1]),
        (("but", "and"), False, [4, 7]),
        (("but", "and"), True, [3, 4, 7]),
        (("also",), True, [5, 6]),
        (("although",), True, []),
    ],
)
def test_sentences_are_chosen(markers: tuple[str, ...], previous: bool, chosen: list[int]) -> None:
    assert Prefilter(markers, load_patterns(), previous).choose(document()).tolist() == chosen


def test_marks_before_the_first_word_are_no_words() -> None:
    text = "The lamp was lit. A clock struck. ' \" ( - But he left. It rained and rained."
    cuts = ["The lamp was lit.", "A clock struck.", "' \" ( - But he left."]
    starts = [text.index(cut) for cut in cuts]
    spans = Spans(starts, [s + len(cut) for s, cut in zip(starts, cuts, strict=True)])
    found = Prefilter(("but",), load_patterns(), previous=True).choose(
        Document(id="d", text=text, sentences=spans)
    )
    assert found.tolist() == [1, 2]


def test_two_sentences_are_parsed_whole() -> None:
    plain = Document(id="d", text="The lamp was lit. A clock struck.")
    short = plain.with_sentences(split(plain.text, plain.paragraphs))
    assert Prefilter(("and",), load_patterns()).choose(short).tolist() == [0, 1]


def test_a_sentence_layer_is_needed() -> None:
    with pytest.raises(ValueError, match="split it first"):
        Prefilter(("and",), load_patterns()).choose(Document(id="d", text="One and two."))


def test_words_between_underscores_are_found() -> None:
    text = "He wondered. _But_ he said nothing. She smiled _and_ he left. The dog slept. It rained."
    with_it, without = Extractor(), Extractor(prefilter=None)
    found = [
        list(extractor.pairs([Document(id="d", text=text)])) for extractor in (with_it, without)
    ]
    assert [pair.marker for pair in found[0]] == ["but", "and"]
    assert [(p.marker, p.s1, p.s2) for p in found[0]] == [(p.marker, p.s1, p.s2) for p in found[1]]
    assert with_it.reject_counts == without.reject_counts
