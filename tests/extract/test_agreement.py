"""A second parser checks the first: what both give, and which pair is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpora.document import Document
from corpora.errors import ConfigError
from extract import Extractor
from extract.agreement import Candidates, agreement, partners, united
from extract.extractor import candidates
from extract.parse import NAMES, ParsedDocument
from extract.parsers import get_parser, is_checked
from extract.patterns import load_patterns
from extract.prefilter import Prefilter
from extract.settings import PairSettings, ParseSettings
from extract.shards import iter_parses
from extract.stages import parse
from tests.extract.trees import document

GARDEN = (
    "The gardener watered the roses because the soil was dry. Nobody came before noon. "
    "When the rain began, the children ran home, but the dog stayed under the tree."
)
# The dog barks as the cat sleeps, or the rain falls: what does "and" join?
ONE = (
    "The/DET/det/2 cat/N=NN/nsubj/3 slept/V=VBD/root/0 because/SCONJ=IN/mark/6 it/P=PRP/nsubj/6 "
    "rained/V=VBD/advcl/3 and/CCONJ=CC/cc/10 the/DET/det/9 dog/N=NN/nsubj/10 barked/V=VBD/conj/3 "
    "./PUNCT/punct/3"
)
OTHER = ONE.replace("barked/V=VBD/conj/3", "barked/V=VBD/conj/6")
FLAT = ONE.replace("because/SCONJ=IN/mark/6", "because/SCONJ=IN/dep/3")


def of_trees(first: str, second: str) -> tuple[Candidates, Candidates]:
    """The candidates that two trees of one sentence give, in the mode `recall`."""
    source = document(first)
    one, other = (
        next(iter(get_parser("gold").parse([document(tree)]))) for tree in (first, second)
    )
    names = {name: one.strings.codes(_strings(other, name)) for name in NAMES}
    one.second = replace(one, head=other.head, **names)
    ((own, checking),) = candidates([source], [one], PairSettings(mode="recall"))
    assert checking is not None
    return own, checking


def _strings(parse: ParsedDocument, name: str) -> list[str]:
    return [parse.strings.strings[code] for code in getattr(parse, name).tolist()]


def test_agreement_is_measured_for_each_candidate() -> None:
    own, other = of_trees(ONE, OTHER)
    assert own.s1 == ["The cat slept.", "The cat slept because it rained."]
    assert other.s1 == ["The cat slept.", "It rained."]
    values = agreement(own, other)
    assert values["agrees"].tolist() == [0, 0]
    # "because": the same S1; of S2 two words of two and of six. "and": S1 shares three of six and
    # of three words ("because it rained"), and S2 is the same.
    assert values["s1_shared"] == pytest.approx([1, 2 / 3])
    assert values["s2_shared"].tolist() == [0.5, 1]
    assert values["same_s2_head"].tolist() == [1, 0]
    assert values["same_heads"] == pytest.approx([10 / 11] * 2)
    own, same = of_trees(ONE, ONE)
    assert agreement(own, same)["agrees"].tolist() == [1, 1]
    own, none = of_trees(ONE, FLAT)
    alone = agreement(own, none)
    assert alone["unmatched"].tolist() == [1, 0] and alone["s1_shared"].tolist() == [0, 1]
    assert alone["same_marker_head"].tolist() == [0, 1]


def test_the_more_certain_pair_of_a_marker_is_taken() -> None:
    own, other = of_trees(ONE, OTHER)
    sure = [np.array([0.9, 0.3], np.float32), np.array([0.2, 0.8], np.float32)]
    both, confidence = united(own, other, sure)
    assert list(zip(both.s1, both.s2, strict=True)) == [
        (own.s1[0], own.s2[0]),
        (other.s1[1], other.s2[1]),
    ]
    assert confidence.tolist() == pytest.approx([0.9, 0.8])


def test_what_only_the_second_parser_finds_is_no_reject() -> None:
    own, other = of_trees(FLAT, ONE)
    assert sum(len(matches) for matches, _ in own.rejected) == 1
    both, _ = united(own, other, [np.full(1, 0.5, np.float32), np.full(2, 0.4, np.float32)])
    assert both.s2 == [other.s2[0], own.s2[0]]
    assert sum(len(matches) for matches, _ in both.rejected) == 0


def test_a_word_is_in_one_marker_only() -> None:
    """The second parser's marker of two words holds the "and" of another marker of the first."""
    own, other = of_trees(ONE, ONE)
    wide = other.take(np.array([1]))
    wide.matches.first[:], wide.matches.length[:] = 5, 2
    sure = [np.full(2, 0.1, np.float32), np.full(1, 0.9, np.float32)]
    both, _ = united(own, wide, sure)
    assert both.matches.first.tolist() == own.matches.first.tolist()
    wide.matches.length[:] = 1
    both, _ = united(own, wide, sure)
    assert both.matches.first.tolist() == [3, 5, 6]


def test_markers_are_known_by_their_first_token() -> None:
    first, others = np.array([2, 5, 9]), np.array([5, 7])
    assert partners(first, others).tolist() == [-1, 0, -1]
    assert partners(first, np.array([], dtype=int)).tolist() == [-1, -1, -1]


def test_a_check_can_be_turned_off() -> None:
    texts = [Document(id="garden", text=GARDEN)]
    ((_, second),) = Extractor(min_confidence=0).candidates(texts)
    assert second is not None and second.second
    ((_, second),) = Extractor(min_confidence=0, check="none").candidates(texts)
    assert second is None
    assert is_checked("embedded", None) and not is_checked("stanza:en", None)
    with pytest.raises(ConfigError, match="the second parser checks the embedded one, not 'gold'"):
        Extractor("gold", check="second")
    with pytest.raises(ConfigError, match="unknown check 'secnd'; choose from second, none"):
        Extractor(check="secnd")  # type: ignore[arg-type]


def test_the_second_parser_reads_only_sentences_with_a_marker() -> None:
    """A sentence that is parsed as the one before a marker's keeps the first parser's tree."""
    text = "It was a wide grey lake of many names. But nobody had ever sailed on it. All slept."
    document = next(Extractor()._with_sentences(d) for d in [Document(id="lake", text=text)])
    prefilter = Prefilter(("but",), load_patterns(), previous=True)
    parser = get_parser("embedded", check=True, prefilter=prefilter)
    (parsed,) = parser.parse([document])
    assert parsed.sentence.tolist() == [0, 1] and parsed.second is not None
    border = parsed.offsets[1]
    assert (parsed.second.head[:border] == parsed.head[:border]).all()
    heads = parsed.second.head[border:]
    assert (heads == -1).sum() == 1 and heads[heads >= 0].min() >= border


def test_both_trees_are_stored(tmp_path: Path) -> None:
    """With one worker or two, the shards give back both parsers' trees."""
    documents = [Extractor()._with_sentences(Document(id=f"d{i}", text=GARDEN)) for i in range(6)]
    settings = ParseSettings(words_per_shard=60)
    stored = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        parse(documents, folder, settings, workers=workers)
        stored.append(list(iter_parses(folder)))
    for one, two in zip(*stored, strict=True):
        assert one.second is not None and two.second is not None
        assert one.second.head.tolist() == two.second.head.tolist()
        assert _strings(one.second, "deprel") == _strings(two.second, "deprel")
        assert _strings(one.second, "form") == _strings(one, "form")
    parse(documents, tmp_path / "none", ParseSettings(check="none"))
    assert {p.second for p in iter_parses(tmp_path / "none")} == {None}


def test_pairs_do_not_depend_on_workers() -> None:
    documents = [Document(id=f"d{i}", text=GARDEN) for i in range(8)]
    one, two = (
        [(p.doc, p.s1, p.s2, p.confidence) for p in Extractor(workers=n).pairs(documents)]
        for n in (1, 2)
    )
    assert one == two and len(one) >= 8
