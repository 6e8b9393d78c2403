"""Validation against gold relations: scores by hand, what takes part, tables and figures."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.document import Document, Relation, Span
from corpora.errors import ConfigError, InputError
from corpora.pictures import PALETTE
from corpora.readers import open_source
from corpora.readers.pdtb import read_gold
from corpora.rng import stream
from corpora.vocabulary import WORD
from extract.commands import validate_source
from extract.pairs import Pair
from extract.validate import Validation, plot, to_markdown, tree_source, validate
from extract.validate.material import GoldText, WordMap, last_subsequence
from extract.validate.strict import draws, summary

FIXTURES = Path(__file__).parent.parent / "data" / "validate"
MARKERS = ("because", "although", "if", "though", "and", "but", "when", "so")
ALL15 = (
    *("after", "also", "although", "and", "as", "because", "before", "but"),
    *("if", "so", "still", "then", "though", "when", "while"),
)


@pytest.fixture(scope="module")
def gold() -> list[Document]:
    return list(read_gold(FIXTURES / "pdtb3"))


def pair(
    doc: str,
    marker: str,
    marker_spans: Iterable[Span],
    s1_spans: Iterable[Span],
    s2_spans: Iterable[Span],
) -> Pair:
    spans = (tuple(marker_spans), tuple(s1_spans), tuple(s2_spans))
    said = ("", "same_sentence", "s1_first", True, "")
    return Pair(doc, doc, "", "", "en", 0, marker, *spans, "", *said)


def found(document: Document, marker: str, s1: str, s2: str, *, nth: int = 0) -> Pair:
    """The pair of the texts `s1` and `s2` and of the `nth` occurrence of `marker`."""
    at = [m.span() for m in re.finditer(rf"\b{marker}\b", document.text, re.IGNORECASE)][nth]
    spans = [(document.text.index(s), document.text.index(s) + len(s)) for s in (s1, s2)]
    return pair(document.id, marker, [at], [spans[0]], [spans[1]])


def some_pairs(gold: list[Document]) -> list[Pair]:
    """Seven pairs with every kind of outcome; what they score is worked out in the tests."""
    ferry, market = gold
    return [
        found(ferry, "because", "The ferry was late", "fog"),  # the worse of two at one marker
        found(ferry, "because", "The ferry was late", "the fog had come in"),  # exact
        found(ferry, "although", "she waited", "the captain knew"),  # Dice 1 and .75
        found(ferry, "if", "the crew would sail", "the wind rose"),  # inside "If ... then"
        found(ferry, "and", "They sang", "danced"),  # Dice 1 and .67
        found(market, "but", "The market was full", "the baker had sold out"),  # exact
        found(market, "so", "He went home", "the square grew quiet"),  # Dice .6 and 1
    ]


def gold_pairs(documents: Iterable[Document], markers: Iterable[str]) -> list[Pair]:
    """The gold itself as pairs."""
    return [
        pair(document.id, r.connective, r.connective_spans, r.arg1_spans, r.arg2_spans)
        for document in documents
        for r in document.relations or []
        if r.kind == "Explicit" and r.connective in set(markers) and r.connective_spans
    ]


def scores(row: dict[str, Any], metric: str) -> list[float]:
    return [row[metric][key] for key in ("p", "r", "f1")]


def test_occurrence_exact_and_dice_by_hand(gold: list[Document]) -> None:
    result = validate(some_pairs(gold), gold, gold, MARKERS)
    overall = result["strict"]["overall"]
    # Gold: because, although, and | but, when (two senses, one relation), so. "if then" and
    # "even though" are connectives of their own, and one "and" has no span.
    assert (overall["extracted"], overall["gold"]) == (7, 6)
    assert scores(overall, "occurrence") == pytest.approx([5 / 7, 5 / 6, 10 / 13])
    assert scores(overall, "exact") == pytest.approx([2 / 7, 2 / 6, 4 / 13])
    assert scores(overall, "dice") == pytest.approx([3 / 7, 3 / 6, 6 / 13])


def test_scores_per_marker_by_hand(gold: list[Document]) -> None:
    rows = validate(some_pairs(gold), gold, gold, MARKERS)["strict"]["per_marker"]
    assert list(rows) == list(MARKERS)
    assert scores(rows["because"], "exact") == pytest.approx([1 / 2, 1, 2 / 3])
    assert scores(rows["although"], "dice") == [1, 1, 1]
    assert scores(rows["although"], "exact") == [0, 0, 0]
    assert scores(rows["if"], "occurrence") == [0, None, 0]
    assert scores(rows["when"], "occurrence") == [None, 0, 0]
    assert scores(rows["though"], "occurrence") == [None, None, None]
    assert rows["though"]["occurrence"]["ci"] is None


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("other", [5 / 7, 5 / 6]), ("head", [6 / 7, 6 / 8]), ("ignore", [5 / 6, 5 / 6])],
)
def test_markers_inside_longer_connectives(
    gold: list[Document], policy: str, expected: list[float]
) -> None:
    # "If ... then" and "Even though": the pair of "if" stands inside the first.
    result = validate(some_pairs(gold), gold, gold, MARKERS, multiword=policy)
    assert scores(result["strict"]["overall"], "occurrence")[:2] == pytest.approx(expected)
    multiword = validate(some_pairs(gold), gold, gold, MARKERS)["settings"]["multiword"]
    assert multiword["policy"] == "other" and multiword["gold"] == 2
    shown = multiword["occurrence"][policy]
    assert [shown["p"], shown["r"]] == pytest.approx(expected)


def test_a_longer_connective_that_was_asked_for_is_a_marker(gold: list[Document]) -> None:
    pairs = gold_pairs(gold, ["if then", "even though"])
    overall = validate(pairs, gold, gold, ["if then", "even though"])["strict"]["overall"]
    assert scores(overall, "exact") == [1, 1, 1] and overall["gold"] == 2


def test_a_connective_in_two_places_goes_by_either_name(gold: list[Document]) -> None:
    pairs = [replace(p, marker="if ... then") for p in gold_pairs(gold, ["if then"])]
    assert pairs
    strict = validate(pairs, gold, gold, ["if ... then"])["strict"]
    assert scores(strict["per_marker"]["if ... then"], "exact") == [1, 1, 1]


def test_an_unknown_policy_is_refused_with_the_choices(gold: list[Document]) -> None:
    with pytest.raises(ConfigError, match="did you mean 'head'"):
        validate([], gold, gold, MARKERS, multiword="heads")


BAY = (
    "The old ferry was late again because thick fog had covered the bay. "
    "We waited although it rained."
)


def bay_pair(marker: str, s1: str, s2: str) -> Pair:
    document = Document("bay", BAY)
    return replace(found(document, marker, s1, s2), s1=s1, s2=s2)


def test_the_filters_leave_out_unfit_lengths() -> None:
    ferry, fog = "The old ferry was late again", "thick fog had covered the bay"
    sides = {"because": (ferry, fog), "although": ("We waited", "it rained")}
    pairs = [bay_pair(marker, *texts) for marker, texts in sides.items()]
    pairs.append(bay_pair("although", ferry, fog))  # it fits, and its relation does not
    pairs.append(bay_pair("because", ferry, BAY[37:]))  # twelve words
    relations = [
        Relation("Explicit", p.marker, p.marker_spans, p.s1_spans, p.s2_spans) for p in pairs[:2]
    ]
    gold = [Document("bay", BAY, relations=relations)]
    plain = validate(pairs, gold, gold, MARKERS)
    assert plain["strict"]["overall"]["extracted"] == 4 and "filters" not in plain["settings"]
    result = validate(pairs, gold, gold, MARKERS, filters="dissent")
    overall = result["strict"]["overall"]
    assert (overall["extracted"], overall["gold"]) == (2, 1)
    assert scores(overall, "exact") == pytest.approx([1 / 2, 1, 2 / 3])
    assert result["paper"]["criterion_paper"]["overall"]["extracted"] == 3
    settings = result["settings"]
    assert settings["filters"] == "dissent" and settings["paper"]["gold_pairs"] == 2
    left_out = {"pairs_of_unfit_lengths": 1, "gold_of_unfit_lengths": 1}
    assert left_out.items() <= settings["left_out"].items()
    assert "of fit lengths: 5 to 50 words a side, a ratio of at most 5." in to_markdown(result)
    with pytest.raises(ConfigError, match=r"no filter 'disent'\s+did you mean 'dissent'"):
        validate(pairs, gold, gold, MARKERS, filters="disent")


def test_a_connective_without_span_is_scored_apart(gold: list[Document]) -> None:
    ferry = gold[0]
    apart = found(ferry, "and", "the children sang", "They sang")
    result = validate([apart], gold, gold, MARKERS)
    assert result["settings"]["empty_connective"] == {"gold": 1, "exact": 1, "dice": 1}
    assert result["strict"]["per_marker"]["and"]["gold"] == 1


def test_the_head_of_a_modified_connective_is_what_is_matched(gold: list[Document]) -> None:
    # PDTB 2.0: the span is "Even though", the connective's head "though".
    document = Document("ferry", gold[0].text, relations=list(gold[0].relations or []))
    relations = [r for r in document.relations or [] if r.connective == "even though"]
    modified = type(relations[0])(
        "Explicit",
        "though",
        relations[0].connective_spans,
        relations[0].arg1_spans,
        relations[0].arg2_spans,
    )
    document.relations = [modified]
    extracted = found(document, "though", "the children sang", "it was cold")
    overall = validate([extracted], [document], gold, ["though"])["strict"]["overall"]
    assert scores(overall, "exact") == [1, 1, 1]


def test_white_space_and_tokens_of_the_source_do_not_matter(gold: list[Document]) -> None:
    respaced = [Document(d.id, re.sub(r"\s+", "\n\n", d.text)) for d in gold]
    expected = validate(some_pairs(gold), gold, gold, MARKERS)
    assert validate(_moved(some_pairs(gold), respaced), gold, respaced, MARKERS) == expected


def _moved(pairs: list[Pair], sources: list[Document]) -> list[Pair]:
    from corpora.align import align, map_spans

    gold = {d.id: d for d in read_gold(FIXTURES / "pdtb3")}
    maps = {d.id: align(gold[d.id].text, d.text, where=d.id) for d in sources}
    return [
        pair(
            p.doc,
            p.marker,
            *(map_spans(maps[p.doc], s) for s in (p.marker_spans, p.s1_spans, p.s2_spans)),
        )
        for p in pairs
    ]


def test_the_order_of_the_pairs_does_not_matter(gold: list[Document]) -> None:
    pairs = some_pairs(gold)
    expected = validate(pairs, gold, gold, MARKERS)
    assert validate(pairs[::-1], gold, gold, MARKERS) == expected


def test_a_different_text_is_an_error_with_its_place(gold: list[Document]) -> None:
    sources = [Document(d.id, d.text.replace("baker", "butcher")) for d in gold]
    with pytest.raises(InputError, match=r"document 'market'.*offset 30 \(' but the butcher"):
        validate([], gold, sources, MARKERS)


def test_only_documents_in_both_count_and_the_rest_is_said(gold: list[Document]) -> None:
    elsewhere = Document("elsewhere", "Nothing to see, but plenty to read.")
    pairs = [*some_pairs(gold), found(elsewhere, "but", "Nothing to see", "plenty to read")]
    pairs.append(found(gold[1], "when", "He went home", "the bells rang"))
    result = validate(pairs, gold, [gold[0], elsewhere], ["because", "but"])
    assert result["documents"] == {"seen": 0, "unseen": 1}
    assert result["strict"]["overall"]["extracted"] == 2
    assert result["settings"]["left_out"] == {
        "gold_documents_outside_source": 1,
        "pairs_of_other_markers": 5,
        "pairs_without_gold": 2,
        "source_documents_without_gold": 1,
    }


def test_no_document_in_both_is_an_error(gold: list[Document]) -> None:
    with pytest.raises(InputError, match="the source has 1 document, such as elsewhere"):
        validate([], gold, [Document("elsewhere", "Some text.")], MARKERS)


@pytest.mark.parametrize(
    ("kept", "hint"),
    [(("although",), "although (1)"), ((), "no explicit relation")],
)
def test_many_pairs_without_gold_of_their_markers_are_an_error(
    gold: list[Document], kept: tuple[str, ...], hint: str
) -> None:
    pairs = gold_pairs(gold, ("because", "and", "but", "so", "when"))
    rest = [
        replace(d, relations=[r for r in d.relations or [] if r.connective in kept]) for d in gold
    ]
    markers = ("because", "and", "but", "so", "when")
    with pytest.raises(InputError, match="no explicit gold relation of their markers") as caught:
        validate(pairs, rest, gold, markers)
    assert hint in (caught.value.hint or "")
    assert validate(pairs[:1], rest, gold, markers)["strict"]["overall"]["gold"] == 0


def test_a_pair_from_another_version_of_the_text_is_an_error(gold: list[Document]) -> None:
    wrong = pair("ferry", "but", [(0, 3)], [(4, 9)], [(9, 9_999)])
    with pytest.raises(InputError, match="extract again"):
        validate([wrong], gold, gold, MARKERS)


def test_seen_documents_are_kept_apart(gold: list[Document]) -> None:
    result = validate(some_pairs(gold), gold, gold, MARKERS, seen={"ferry", "unrelated"})
    assert result["documents"] == {"seen": 1, "unseen": 1}
    alone = validate(some_pairs(gold), gold[1:], gold[1:], MARKERS)
    for view in ("strict", "control"):
        assert result["unseen"][view] == alone[view]
    assert result["strict"]["overall"]["extracted"] == 7
    nothing = validate(some_pairs(gold), gold, gold, MARKERS, seen={"ferry", "market"})["unseen"]
    assert nothing["strict"]["overall"]["extracted"] == 0
    assert nothing["paper"]["criterion_paper"]["overall"]["error_rate"] is None


def test_the_intervals_are_the_same_every_time(discorpora_data: Path) -> None:
    documents = list(read_gold(discorpora_data / "gdtb"))[:20]
    pairs = gold_pairs(documents, ALL15)[::2]
    rows = [
        validate(pairs, documents, documents, ALL15)["strict"]["overall"]["occurrence"]
        for _ in range(2)
    ]
    assert rows[0] == rows[1] and rows[0]["ci"]
    assert rows[0]["ci"][0] < rows[0]["f1"] < rows[0]["ci"][1]


def test_pairs_of_a_text_in_a_limited_vocabulary_meet_the_gold(gold: list[Document]) -> None:
    places = {document.id: document for document in gold}
    sources = list(open_source(f"pdtb:{FIXTURES / 'pdtb3'}", {"vocabulary": 12}))
    texts = {document.id: document.text for document in sources}
    assert all("unk" in text and not any(map(str.isupper, text)) for text in texts.values())
    pairs = []
    for one in some_pairs(gold):
        text = places[one.doc].text
        words = [match.span() for match in WORD.finditer(text)]
        moved = dict(zip(words, (m.span() for m in WORD.finditer(texts[one.doc])), strict=True))
        spans = {
            key: tuple(moved[w] for a, b in getattr(one, key) for w in words if a <= w[0] < b)
            for key in ("marker_spans", "s1_spans", "s2_spans")
        }
        pairs.append(replace(one, **spans))
    limited = validate(pairs, gold, sources, MARKERS)
    whole = validate(some_pairs(gold), gold, gold, MARKERS)
    assert {**limited, "settings": 0} == {**whole, "settings": 0}


@pytest.mark.slow
@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_real_gold_as_pairs_scores_one(every: int, discorpora_data: Path) -> None:
    sources = list(open_source(f"conllu:{discorpora_data / 'treebank' / 'en_gum' / 'dev'}"))
    whole = list(read_gold(discorpora_data / "gdtb"))
    documents = whole[::every]
    respaced = [Document(d.id, d.text) for d in documents]
    result = validate(gold_pairs(documents, ALL15), documents, respaced, ALL15)
    overall = result["strict"]["overall"]
    assert overall["extracted"] == overall["gold"] > 0
    for metric in ("occurrence", "exact", "dice"):
        assert scores(overall, metric) == [1, 1, 1]
    assert result["paper"]["criterion_strict"]["overall"]["error_rate"] == 0
    # What makes the control worth having: gold of other documents satisfies only the paper's.
    assert result["control"]["criterion_strict"]["overall"]["aligned"] == 0
    assert result["control"]["criterion_paper"]["overall"]["error_rate"] < 0.01
    in_words = result["settings"]["paper"]["in_words"]
    assert in_words["control"]["criterion_strict"]["aligned"] == 0
    assert in_words["control"]["criterion_paper"]["error_rate"] < 0.8
    assert validate([], whole, sources, ALL15)["documents"]["unseen"] == len(sources)


def test_where_the_trees_come_from_in_words() -> None:
    assert tree_source("gold") == "gold trees"
    assert tree_source("embedded") == "embedded on raw text"
    assert tree_source("embedded", gold_tokens=True) == "embedded on gold tokens"
    both = tree_source("stanza:en", gold_tokens=True, gold_sentences=True)
    assert both == "stanza:en on gold tokens and sentences"


# The unit: words of the gold text.


def words(text: str) -> list[str]:
    return GoldText(0, "doc", text).words


def test_words_leave_punctuation_out() -> None:
    assert words("“He did n't go!” – she said, don’t (3.5 km) …") == [
        *("he", "did", "n't", "go", "she", "said", "don’t", "3.5", "km"),
    ]


def test_scripts_without_spaces_count_by_character() -> None:
    assert words("因为下雨,so 他走了。") == ["因", "为", "下", "雨", "so", "他", "走", "了"]


def test_hard_characters_are_no_trouble() -> None:
    assert words("😀 שלום\u200b 👩‍👩‍👧 a\u0301b") == ["שלום", "a", "b"]
    assert words("") == []


def test_spans_are_read_as_words_of_the_gold_text() -> None:
    gold = GoldText(0, "doc", "We did n't stop , but he did .")
    to_words = WordMap(gold, "We didn't stop, but he did.")
    assert to_words([(3, 9)]) == (1, 2)
    assert to_words([(3, 15), (20, 27)]) == (1, 2, 3, 5, 6)
    assert to_words([(14, 16)]) == ()
    with pytest.raises(IndexError):
        to_words([(3, 99)])


@pytest.mark.parametrize(
    ("wanted", "inside", "expected"),
    [
        (("because",), ["partly", "because"], [1]),
        (("if", "then"), ["if", "then"], [0, 1]),
        (("as",), ["just", "as"], [1]),
        (("but",), ["even", "so"], None),
    ],
)
def test_a_connective_is_found_in_its_span(
    wanted: tuple[str, ...], inside: list[str], expected: list[int] | None
) -> None:
    assert last_subsequence(wanted, inside) == expected


def test_intervals_are_those_of_resampled_documents() -> None:
    counts = np.random.default_rng(3).integers(0, 9, size=(12, 2, 5))
    counts[..., 2:] = np.minimum(counts[..., 2:], counts[..., :2].min(axis=-1, keepdims=True))
    weights = draws(12, 200, stream(5, "test"))
    row = summary(counts, ["but", "so"], weights)["per_marker"]["so"]
    f1 = []
    for sample in weights.astype(int):
        drawn = np.repeat(counts[:, 1], sample, axis=0).sum(axis=0)
        f1.append(2 * drawn[2] / (drawn[0] + drawn[1]))
    assert row["occurrence"]["ci"] == pytest.approx(np.quantile(f1, [0.025, 0.975]))


def test_of_a_few_documents_there_is_no_interval() -> None:
    counts = np.zeros((12, 2, 5), np.int64)
    counts[:9, 0], counts[:, 1] = 1, 2
    found = summary(counts, ["but", "so"], draws(12, 200, stream(5, "test")))
    few, enough = (found["per_marker"][marker] for marker in ("but", "so"))
    assert (few["documents"], enough["documents"], found["overall"]["documents"]) == (9, 12, 12)
    assert few["dice"] == {"p": 1, "r": 1, "f1": 1, "ci": None}
    assert enough["dice"]["ci"] == found["overall"]["dice"]["ci"] == [1, 1]


# Tables and figures.


@pytest.fixture(scope="module")
def result() -> Validation:
    gold = list(read_gold(FIXTURES / "pdtb3"))
    said = {"trees": "embedded on raw text"}
    return validate(some_pairs(gold), gold, gold, MARKERS, seen={"ferry"}, settings=said)


def test_the_table_says_where_the_trees_come_from(result: Validation) -> None:
    text = to_markdown(result)
    assert "## 1 document that the parser was not trained on: embedded on raw text" in text
    assert "## All 2 documents, 1 of them seen in training: embedded on raw text" in text


def test_relations_that_an_adjudicator_rejected_are_counted(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / "pdtb3", tmp_path / "pdtb3")
    row = [*["Explicit", "0..3"], *[""] * 25, "Rejected", *[""] * 6]
    with (folder / "gold" / "00" / "ferry").open("a") as gold:
        gold.write("|".join(row) + "\n")
    result = validate_source(f"pdtb:{folder}", f"pdtb:{folder}", reader_options={})
    assert "relation marked as rejected: 1" in to_markdown(result)


def test_the_table_shows_scores_controls_and_policies(result: Validation) -> None:
    text = to_markdown(result)
    assert "| all | 7 | 6 | .714 | .833 | .769 | " in text  # of two documents no interval
    assert "| though | 0 | 0 | – | – | – | – | – |" in text
    assert "head: " in text and "ignore: " in text
    assert "its control" in text and "In words" in text
    assert "no span: 1" in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert widths == {9, 10}


def test_the_figures_are_written_twice_the_same(result: Validation, tmp_path: Path) -> None:
    first, second = plot(result, tmp_path / "a"), plot(result, tmp_path / "b")
    drawing = first[1].read_text(encoding="utf-8")
    assert all(colour in drawing for colour in PALETTE[:2])  # as in all figures
    assert [path.name for path in first] == [
        *("figure2_error_rate.png", "figure2_error_rate.svg"),
        *("figure3_distance.png", "figure3_distance.svg"),
    ]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes() and one.stat().st_size > 5_000
    assert b"<svg" in first[1].read_bytes()
