"""The extractor on raw text with the embedded parser: what a user sees."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from corpora.document import Document, Spans
from corpora.errors import ConfigError, InputError
from corpora.sentences import split_document
from extract import Extractor, Pair, Reject, clauses, match
from extract.extractor import extract
from extract.pairs import MEANINGS
from extract.parsers.gold import GoldParser
from extract.seen import LABEL
from extract.settings import PairSettings

STORY = (
    "Although it was late, Maria walked home because the last bus had gone. She was tired. "
    "But she did not complain.\n\nWhen the rain began, she opened her umbrella and she sang a song."
)


def story(name: str = "story") -> Document:
    return Document(id=name, text=STORY, group="book", source="test", licence="CC0-1.0")


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return list(Extractor(subjects="shared").pairs([story()]))


def test_pairs_carry_their_origin_and_place(pairs: list[Pair]) -> None:
    assert [p.marker for p in pairs] == ["although", "because", "but", "when", "and"]
    assert {(p.doc, p.group, p.source, p.licence) for p in pairs} == {
        ("story", "book", "test", "CC0-1.0")
    }
    assert [p.sentence for p in pairs] == [0, 0, 2, 3, 3]
    assert [p.position for p in pairs].count("previous_sentence") == 1
    for pair in pairs:
        assert " ".join(STORY[a:b] for a, b in pair.marker_spans).lower() == pair.marker


def test_parsed_documents_give_the_same_pairs_without_a_parser() -> None:
    rejects: list[Reject] = []
    extractor = Extractor(on_reject=rejects.append)
    document = split_document(Document("d", f"{STORY} The cats and dogs went out."))
    parses = list(extractor.parser.parse([document]))
    (columns,) = extract([document], parses, PairSettings())
    pairs = list(columns.pairs())
    assert pairs == list(extractor.pairs([document]))
    assert sorted(columns.rejects(), key=lambda reject: reject.span) == rejects != []
    rows = json.loads(json.dumps([asdict(pair) for pair in pairs]))
    assert columns.to_arrow().to_pylist() == rows


def test_texts_are_sentences_in_the_authors_words(pairs: list[Pair]) -> None:
    because = pairs[1]
    assert because.s1 == "Although it was late, Maria walked home."
    assert because.s2 == "The last bus had gone."
    assert pairs[2].s1 == "She was tired."


def test_tokenised_text_parts_the_tokens() -> None:
    found = Extractor(mode="recall", text="tokenised", markers="because").pairs(
        [Document(id="d", text="She didn't wait, because the last bus had gone.")]
    )
    assert [p.s1 for p in found] == ["She did n't wait ."]


def test_one_sentence_at_a_time() -> None:
    extractor = Extractor(mode="recall")
    (pair,) = extractor.pairs_in("But he did not care.", "She told him about it.", "but")
    assert isinstance(pair, Pair)
    assert (pair.s1, pair.s2) == ("She told him about it.", "He did not care.")
    (reject,) = extractor.results_in("They sold apples and pears.")
    assert isinstance(reject, Reject)
    assert (reject.reason, reject.pattern) == ("s2_head", "")
    # Without being asked for them a caller gets pairs alone.
    (pair,) = extractor.pairs_in("I like cats and dogs, but nobody minded.")
    assert (pair.marker, pair.s2) == ("but", "Nobody minded.")
    assert extractor.reject_counts == {}


def test_a_text_is_split_into_sentences_and_paragraphs() -> None:
    text = (
        "Anna stayed inside because it rained. But Bela went out. She made tea when he came back."
        "\n\nThe old house on the hill\n\nSo they sat by the fire. They talked before they slept."
    )
    pairs = Extractor().pairs_in(text)
    assert [p.marker for p in pairs] == ["because", "but", "when", "before"]
    assert (pairs[1].s1, pairs[1].position) == (
        "Anna stayed inside because it rained.",
        "previous_sentence",
    )
    document = Document(id="", text=text)
    assert pairs == list(Extractor().pairs([document]))
    # `results_in` splits nothing.
    assert len(Extractor().results_in("He saw Dr. Low. But Bela went out.")) == 1


def test_a_reject_names_the_row_of_the_table_that_matched() -> None:
    found = Extractor(markers="as").results_in("She is as tall as her brother is.")
    assert ("construction", "as.compared") in {(r.reason, r.pattern) for r in found}


def test_whether_the_sentence_before_is_a_clause_is_known_in_both_modes() -> None:
    for mode in ("recall", "standalone"):
        (pair,) = Extractor(mode=mode).pairs_in("But he did not care.", "She told him about it.")
        assert pair.has_clauses


def test_every_candidate_is_a_pair_or_counted():
    extractor = Extractor(mode="recall")
    found = list(extractor.pairs([Document(id="d", text="Cats and dogs slept so well.")]))
    assert found == []
    assert sum(extractor.reject_counts.values()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "and",
        "and and and but but",
        "👩‍👩‍👧 laughed because the 🐈 fell.",
        "שלום and שלום because עולם.",
        "Zero\u200bwidth and soft\u00adhyphens, because they exist.",
        "And\tthen\n it   was \u00a0 late, so   we left.",
        "(((( and )))) because ]]]]",
    ],
)
def test_odd_text_is_taken(text: str) -> None:
    for pair in Extractor(mode="recall").pairs([Document(id="odd", text=text)]):
        for a, b in (*pair.s1_spans, *pair.s2_spans, *pair.marker_spans):
            assert text[a:b].strip() == text[a:b] != ""


def test_a_monster_sentence_is_left_out_and_counted() -> None:
    line = "the cat and " * 9000
    words = Document(id="w", text="word and " * 450, sentences=Spans([0], [450 * 9 - 1]))
    extractor = Extractor(mode="recall", gold_sentences=True)
    documents = [Document(id="l", text=line, sentences=Spans([0], [len(line)])), words, story()]
    found = list(extractor.pairs(documents))
    assert {p.doc for p in found} == {"story"}
    assert extractor.reject_counts["sentence_too_long"] == 2


@pytest.mark.slow
def test_workers_change_nothing() -> None:
    refused = "It was cold and dark. He came and, as ever, left before noon. So far so good."
    documents = [story(f"d{i}") for i in range(4)]
    documents += [Document(id=f"r{i}", text=refused) for i in range(3)]
    rejects: list[list[Reject]] = [[], []]
    one, two = (
        Extractor(subjects="shared", workers=n, on_reject=rejects[n - 1].append) for n in (1, 2)
    )
    assert list(one.pairs(documents)) == list(two.pairs(documents))
    assert one.reject_counts == two.reject_counts
    assert rejects[0] == rejects[1]


def test_rejects_come_in_the_order_of_the_text() -> None:
    text = "So far so good. It was cold and dark, as well as wet and grey. He sat as if and but."
    rejects: list[Reject] = []
    extractor = Extractor(subjects="shared", on_reject=rejects.append, max_tokens=12)
    list(extractor.pairs([Document(id="a", text=text), Document(id="b", text=text)]))
    assert "sentence_too_long" in {r.reason for r in rejects} and len(rejects) >= 6
    assert [(r.doc, r.span) for r in rejects] == sorted((r.doc, r.span) for r in rejects)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "strict"}, "mode = 'strict'"),
        ({"text": "tokenized"}, "did you mean 'tokenised'"),
        ({"parser": "embeded"}, "did you mean 'embedded'"),
        ({"parser": "spacy"}, "spacy:NAME"),
        ({"language": "es", "markers": "all"}, "parses English only, not 'es'"),
        ({"max_token": 3}, "no setting 'max_token'; did you mean 'max_tokens'"),
        ({"parser": "gold", "max_tokens": 3}, "no setting 'max_tokens'; it has none"),
        ({"parser": GoldParser(), "max_tokens": 3}, "a parser object has its own settings"),
    ],
)
def test_a_wrong_setting_is_an_error_with_the_choices(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Extractor(**settings)


def test_a_pipeline_that_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(InputError, match="python -m spacy download xx_no_such_pipeline"):
        list(Extractor(parser="spacy:xx_no_such_pipeline").pairs([story()]))


def test_a_pipeline_that_spacy_cannot_load_is_an_error_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").write_text('[nlp]\nlang = "xyq"\n')
    whole = '{"lang": "xyq", "name": "x", "version": "1"}'
    for meta, said in (("{}", "No valid 'lang'"), (whole, "Can't import language xyq")):
        (tmp_path / "meta.json").write_text(meta)
        with pytest.raises(InputError, match=f"cannot be read: .*{said}.*\n.*whole pipeline"):
            list(Extractor(parser=f"spacy:{tmp_path}").pairs([story()]))


def test_gold_parsing_needs_gold_trees() -> None:
    with pytest.raises(InputError, match="no gold trees"):
        list(Extractor(parser="gold").pairs([story()]))


def test_the_order_is_that_of_the_texts() -> None:
    """A "but" before S2 that belongs to S1's span alone does not make S1 the first."""
    text = "We waited a while, but if the rain does not stop soon, we will go home without you."
    pairs = Extractor(mode="recall").pairs([Document(id="a", text=text)])
    assert {p.order for p in pairs if p.marker == "if"} == {"s2_first"}


def test_every_reason_of_a_reject_has_a_meaning_and_stands_in_the_reference() -> None:
    reasons = {*match.REASONS, *clauses.REFUSALS[1:]}
    reasons |= {"multiword", "confidence", "language", "sentence_too_long"}
    assert reasons == set(MEANINGS)
    page = Path(__file__).parents[2] / "docs" / "reference" / "extraction.md"
    text = page.read_text(encoding="utf-8")
    assert [reason for reason in MEANINGS if f"`{reason}`" not in text] == []


def test_names_and_numbers_do_not_make_a_text_foreign() -> None:
    """Words are compared with words: marks, numbers and dates are of no language."""
    life = (
        "Johann K. Brandt (12 May 1801 – 3 June 1870) painted mills, bridges, boats, ruins. "
        "After he moved to Munich, he met L. Orr, Anna Falk, W. Bell, Karl Lang."
    )
    german = (
        "Er war müde, als er nach Hause kam, aber das Haus war kalt, und seine Frau schlief "
        "schon, also ging er hinaus zum Fluss, so wie jeden Abend, bevor es dunkel wurde."
    )
    extractor = Extractor()
    documents = [Document(id=text[:4], text=text) for text in (life, german)]
    pairs = list(extractor.pairs(documents))
    assert [(p.doc, p.marker, p.s2) for p in pairs] == [("Joha", "after", "He moved to Munich.")]
    assert extractor.reject_counts["language"] == 2  # "also", "so"


def test_what_a_reader_cannot_see_hides_no_marker() -> None:
    """Soft hyphens in a word, marks of direction around one, and emoji of several characters."""
    text = (
        "The lock was shut be\u00adcause it rained.\u200f \ufeffBut we ate. He came. He sang. "
        "B\u00adut she slept. We moved when I was six \U0001f1e9\U0001f1ea."
    )
    document = Document(id="a", text=text)
    pairs = list(Extractor().pairs([document]))
    assert [(pair.marker, pair.s1, pair.s2) for pair in pairs] == [
        ("because", "The lock was shut.", "It rained."),
        ("but", "The lock was shut be\u00adcause it rained.", "We ate."),
        ("but", "He sang.", "She slept."),
        ("when", "We moved.", "I was six \U0001f1e9\U0001f1ea."),
    ]
    assert [text[slice(*pair.marker_spans[0])] for pair in pairs] == [
        *("be\u00adcause", "But", "B\u00adut", "when")
    ]


def test_citation_marks_without_a_space_break_no_side() -> None:
    """As Wikipedia prints them; the parser would take "rained.[1" for a word."""
    text = "They came when trade grew.[1] The lock[2] held,[3][4] "
    text += "and it holds because it is old.[note 5]"
    pairs = list(Extractor(check="none").pairs([Document(id="a", text=text)]))
    assert [(pair.marker, pair.s1, pair.s2) for pair in pairs] == [
        ("when", "They came.", "Trade grew."),
        ("and", "The lock[2] held.", "It holds because it is old."),
        ("because", "It holds.", "It is old."),
    ]
    assert [text[slice(*pair.s2_spans[0])] for pair in pairs][::2] == ["trade grew", "it is old"]


@pytest.mark.parametrize("mark", ["3", "5,6", "8–10", "²", "[A]", "[^1]", "[3, 4]", "[5-7]"])
def test_marks_of_notes_end_no_side(mark: str) -> None:
    text = f"The gate is old, but it holds.{mark} So nobody mended it."
    pairs = list(Extractor().pairs([Document(id="a", text=text)]))
    assert [(pair.marker, pair.s1, pair.s2) for pair in pairs] == [
        ("but", "The gate is old.", "It holds."),
        ("so", "The gate is old, but it holds.", "Nobody mended it."),
    ]


LABELS = "(a)|b)|(iv)|(C)|(2)|13.|iii.|3.1.2|§ 4.|•|o|→|DR. LANE:|SPEAKER 1 (00:12):|HOLLIN —"
LABELS += "|LONDON (Reuters) -|(CNN) --|Port Elsing, May 4 (AP) —|NEW YORK, Jan. 5 --"


@pytest.mark.parametrize("label", LABELS.split("|"))
def test_what_labels_a_sentence_is_in_no_side(label: str) -> None:
    text = f"{label} The gate is old, but it holds. So nobody mended it."
    pairs = list(Extractor().pairs([Document(id="a", text=text)]))
    assert [(pair.s1, pair.s2) for pair in pairs] == [
        ("The gate is old.", "It holds."),
        ("The gate is old, but it holds.", "Nobody mended it."),
    ]


@pytest.mark.parametrize(
    "words", ["HOWEVER: it", "A. Bell", "3.5 million", "Mr. Orr (Tom) said", "I — we", "1990. It"]
)
def test_words_of_the_sentence_are_no_label(words: str) -> None:
    assert LABEL.match(f"{words} came.") is None


def test_a_long_s_hides_no_marker() -> None:
    """Old prints have it; a font's ligature is no other letter either ("ﬁrst")."""
    text = "The houſe ﬁlled. It was full. He ſtayed becauſe it rained."
    (pair,) = Extractor().pairs([Document(id="a", text=text)])
    assert (pair.marker, pair.s1, pair.s2) == ("because", "He ſtayed.", "It rained.")
    assert text[slice(*pair.marker_spans[0])] == "becauſe"


def test_a_text_of_invisible_characters_alone_gives_nothing() -> None:
    assert list(Extractor().pairs([Document(id="a", text="\u200b\u2060")])) == []


@pytest.mark.parametrize("text", [None, 7, ["It rained."]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(TypeError, match=r"(None|7|\['It rained.'\]) is no text: give a string"):
        Extractor().pairs_in(text)  # type: ignore[arg-type]
