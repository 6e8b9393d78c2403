"""Explicit connectives: spans, senses, errors, and a floor on GDTB's development documents."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from corpora.document import Document, Spans
from corpora.errors import ConfigError
from corpora.sentences import split
from extract.connectives import Connective, connectives
from extract.connectives.candidates import Lexicon
from extract.connectives.fit import main, usual_senses
from extract.parsers import get_parser

GUM = Path(os.environ.get("DISCORPORA_DATA", "../shared/data"))


@pytest.fixture(scope="module")
def parser():
    return get_parser("embedded")


def find(parser, *texts: str, **options) -> list[list[Connective]]:
    documents = [
        Document(str(number), text).with_sentences(split(text, Document("", text).paragraphs))
        for number, text in enumerate(texts)
    ]
    return list(connectives(documents, parser.parse(documents), **options))


def words(found: list[Connective]) -> list[str]:
    return [item.text for item in found]


def test_connectives_have_their_places_and_senses(parser):
    text = "Mara stayed indoors because the wind howled. However, her brother went sailing."
    (found,) = find(parser, text)
    assert words(found) == ["because", "however"]
    assert [[text[a:b] for a, b in item.spans] for item in found] == [["because"], ["However"]]
    assert [item.sentence for item in found] == [0, 1]
    assert found[0].sense == "Contingency.Cause"
    assert found[1].sense.startswith("Comparison.")
    assert all(0.3 < item.probability <= 1 for item in found)
    assert all(0.2 < item.sense_probability <= 1 for item in found)


def test_words_that_join_no_clauses_are_no_connectives(parser):
    (found,) = find(parser, "Bread and butter lay on the table. She is as tall as her aunt.")
    assert found == []


@pytest.mark.parametrize(
    ("text", "form", "pieces"),
    [
        ("If the bridge is closed, then we will take the ferry.", "if ... then", ["If", "then"]),
        (
            "She not only sings but also writes the songs.",
            *("not only ... but also", ["not only", "but also"]),
        ),
        (
            "On the one hand the flat is cheap, but on the other hand it is far away.",
            "on the one hand ... on the other hand",
            ["On the one hand", "on the other hand"],
        ),
    ],
)
def test_a_discontinuous_connective_is_one(parser, text, form, pieces):
    (found,) = find(parser, text)
    item = next(item for item in found if item.text == form)
    assert [text[a:b] for a, b in item.spans] == pieces
    assert len(item.tokens) == sum(len(piece.split()) for piece in pieces)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "On the one hand, the flat is cheap. It has a garden. On the other hand, it is noisy.",
            ["On the one hand", "On the other hand"],
        ),
        (
            "On the one hand, the flat is cheap. The street, on the other, is noisy all night.",
            ["On the one hand", "on the other"],
        ),
        ("On the one hand, the flat is cheap. A school is on the other side of the street.", None),
        (
            "On the one hand, it is cheap." + " It is new." * 5 + " On the other hand, it hums.",
            None,
        ),
    ],
)
def test_a_pair_of_adverbials_may_be_in_two_sentences(parser, text, pieces):
    (found,) = find(parser, text)
    pairs = [item for item in found if len(item.spans) > 1]
    assert [[text[a:b] for a, b in item.spans] for item in pairs] == ([pieces] if pieces else [])
    assert all(item.sentence == 0 and item.kind == "correlative" for item in pairs)


def test_no_token_is_in_two_connectives(parser):
    (found,) = find(
        parser,
        "Even though it was late, they went on as if nothing had happened. As a result, they "
        "overslept, and so the train left without them.",
    )
    tokens = [token for item in found for token in item.tokens]
    assert len(tokens) == len(set(tokens)) and len(found) >= 3
    assert "though" not in words(found) and "as if" in words(found)


def test_tokens_index_the_parse_of_their_own_document(parser):
    texts = "It rained, but we left.", "", "She sang while he slept."
    first, empty, last = find(parser, *texts)
    assert (words(first), empty, words(last)) == (["but"], [], ["while"])
    assert last[0].tokens == (2,) and last[0].doc == "2"


def test_a_higher_threshold_gives_fewer(parser):
    text = "So they waited. Then the door opened and a girl came in, since it was cold outside."
    (many,), (few,) = find(parser, text, min_probability=0.1), find(parser, text, min_probability=1)
    assert len(many) >= 3 and few == []


def test_a_second_parser_shares_the_decision():
    checked = get_parser("embedded", check=True)
    (found,) = find(checked, "We left early so that the children could sleep.")
    assert words(found) == ["so that"]


def test_another_language_has_no_model(parser):
    with pytest.raises(ConfigError, match="no model of connectives for the language 'es'"):
        find(parser, "Llueve.", language="es")
    document = Document("d", "Llueve.", language="es", sentences=Spans([0], [7]))
    with pytest.raises(ConfigError, match="'es'"):
        list(connectives([document], parser.parse([document])))


def test_a_word_is_in_one_class():
    lexicon = Lexicon.english()
    assert len(set(lexicon.words)) == len(lexicon.words) > 300
    assert all(word == " ".join(word.lower().split()) for word in lexicon.words)


def test_a_rare_connective_has_the_usual_sense_of_its_class():
    because, since, lest, however = map(
        Lexicon.english().words.index, ("because", "since", "lest", "however")
    )
    entry = np.array([because] * 8 + [since] * 2 + [however] * 9)
    senses = np.eye(2)[[0] * 8 + [1] * 2 + [1] * 9]
    usual = usual_senses(entry, senses, np.array([because, since, lest, however]))
    assert usual.argmax(axis=1).tolist() == [0, 1, 0, 1]
    assert usual[0, 0] > usual[2, 0] > 0
    # Without its own row, one of two rows of "since" knows the other one only.
    (left,) = usual_senses(entry, senses, np.array([since]), own=np.array([[0.0, 1.0]]))
    assert usual[2, 1] < left[1] < usual[1, 1]


def test_fit_and_score_name_what_is_missing(tmp_path, capsys):
    missing = str(tmp_path / "nothing")
    options = ["--treebank", missing, "--gdtb", missing, "--output", str(tmp_path / "report.json")]
    assert main(["score", *options]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "report.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(not (GUM / "gdtb").is_dir(), reason="needs GDTB in DISCORPORA_DATA")
def test_the_figures_on_unseen_documents_hold(tmp_path):
    report = tmp_path / "report.json"
    folders = ["--treebank", str(GUM / "treebank/en_gum"), "--gdtb", str(GUM / "gdtb")]
    assert main(["score", *folders, "--output", str(report)]) == 0
    figures = json.loads(report.read_text(encoding="utf-8"))
    assert figures["gold connectives"] == 482
    assert figures["gold trees"]["f1"] > 0.9
    assert figures["raw text, embedded parser"]["f1"] > 0.86
    senses = figures["gold trees"]["senses of gold connectives"]
    assert senses["level 1"] > 0.87 and senses["level 2"] > 0.775
