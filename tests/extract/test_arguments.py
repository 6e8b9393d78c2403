"""Arg1 and Arg2 of connectives: of small trees written by hand, and of GUM's dev documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.document import Document, Span
from corpora.readers.pdtb import read_gold
from extract.arguments import MODEL, arguments, load_model
from extract.arguments.fit import documents_of, material, scores
from extract.arguments.trees import KINDS, NOWHERE, Trees
from extract.connectives import Connective
from extract.parse import ParsedDocument
from extract.parsers import get_parser
from extract.patterns import load_patterns
from extract.trees import Batch, CompiledPatterns
from extract.validate.material import Material
from tests.extract.trees import document

RAIN = (
    "We/P/nsubj/2 stayed/V!=VBD/root/0 inside/R/advmod/2 because/SCONJ/mark/6 it/P/nsubj/6 "
    "rained/V!=VBD/advcl/2 ././punct/2"
)
WHEN = (
    "When/SCONJ/mark/3 she/P/nsubj/3 called/V!=VBD/advcl/6 ,/,/punct/3 we/P/nsubj/6 "
    "left/V!=VBD/root/0 ././punct/6"
)
AND = (
    "Anna/N/nsubj/2 opened/V!=VBD/root/0 the/DET/det/4 door/N/obj/2 and/CCONJ/cc/7 Ben/N/nsubj/7 "
    "closed/V!=VBD/conj/2 the/DET/det/9 window/N/obj/7 ././punct/2"
)
FULL = "The/DET/det/2 hall/N/nsubj/4 was/X!=VBD/cop/4 full/A/root/0 ././punct/4"
HOWEVER = (
    "However/R/advmod/4 ,/,/punct/1 nobody/P/nsubj/4 clapped/V!=VBD/root/0 all/DET/det/6 "
    "night/N/obl/4 ././punct/4"
)
IF = (
    "If/SCONJ/mark/3 you/P/nsubj/3 ask/V!=VBP/advcl/7 ,/,/punct/3 then/R/advmod/7 they/P/nsubj/7 "
    "answer/V!=VBP/root/0 ././punct/7"
)
DESPITE = (
    "They/P/nsubj/2 walked/V!=VBD/root/0 home/R/advmod/2 despite/ADP/case/6 the/DET/det/6 "
    "storm/N/obl/2 ././punct/2"
)


def mark(parsed: ParsedDocument, text: str, kind: str, *tokens: int) -> Connective:
    spans = tuple((int(parsed.start[t]), int(parsed.end[t])) for t in tokens)
    return Connective(parsed.doc, 0, tokens, spans, text, kind, 1.0, "", 1.0)


def texts(source: Document, spans: Sequence[Span]) -> str:
    return " ... ".join(source.text[start:end] for start, end in spans)


def found(
    source: Document, text: str, kind: str, *tokens: int, scheme: str = "ud"
) -> tuple[str, str]:
    """The texts of Arg1 and Arg2 of the connective at these tokens."""
    (parsed,) = get_parser("gold").parse([source])
    ((sides,),) = arguments([source], [parsed], [[mark(parsed, text, kind, *tokens)]], scheme)
    return texts(source, sides.arg1), texts(source, sides.arg2)


ONE = (
    "On/ADP/case/4 the/DET/det/4 one/NUM/nummod/4 hand/N/obl/7 it/P/nsubj/7 is/X!=VBZ/cop/7 "
    "cheap/A/root/0 ././punct/7"
)
OTHER = (
    "On/ADP/case/4 the/DET/det/4 other/A/amod/4 hand/N/obl/7 it/P/nsubj/7 is/X!=VBZ/cop/7 "
    "noisy/A/root/0 ././punct/7"
)


@pytest.mark.parametrize(
    ("sentences", "text", "kind", "tokens", "arg1", "arg2"),
    [
        ([RAIN], "because", "subordinator", [3], "We stayed inside", "it rained"),
        ([WHEN], "when", "subordinator", [0], "we left", "she called"),
        ([AND], "and", "coordinator", [4], "Anna opened the door", "Ben closed the window"),
        (
            [FULL, HOWEVER],
            *("however", "adverbial", [5], "The hall was full", "nobody clapped all night"),
        ),
        ([IF], "if ... then", "correlative", [0, 4], "they answer", "you ask"),
        ([DESPITE], "despite", "preposition", [3], "They walked home", "the storm"),
        (
            [ONE, FULL, OTHER],
            "on the one hand ... on the other hand",
            *("correlative", [0, 1, 2, 3, 13, 14, 15, 16], "it is cheap", "it is noisy"),
        ),
    ],
)
def test_arguments_by_class(
    sentences: list[str], text: str, kind: str, tokens: list[int], arg1: str, arg2: str
) -> None:
    assert found(document(*sentences), text, kind, *tokens) == (arg1, arg2)


@pytest.mark.parametrize(
    ("sentence", "text", "kind", "token", "arg1", "arg2"),
    [
        (
            "Anna/N/nsubj/2 sang/V!=VBD/ROOT/0 but/CCONJ/cc/2 Ben/N/nsubj/5 slept/V!=VBD/conj/2 "
            "././punct/2",
            *("but", "coordinator", 2, "Anna sang", "Ben slept"),
        ),
        (
            "They/P/nsubj/2 walked/V!=VBD/ROOT/0 home/R/advmod/2 despite/ADP/prep/2 the/DET/det/6 "
            "storm/N/pobj/4 ././punct/2",
            *("despite", "preposition", 3, "They walked home", "the storm"),
        ),
    ],
)
def test_labels_of_clear(
    sentence: str, text: str, kind: str, token: int, arg1: str, arg2: str
) -> None:
    assert found(document(sentence), text, kind, token, scheme="clear") == (arg1, arg2)


def test_an_argument_around_the_connective_has_two_spans() -> None:
    clause = "Nobody/P/nsubj/4 ,/,/punct/3 however/R/advmod/4 clapped/V!=VBD/root/0 ././punct/4"
    sides = found(document(FULL, clause), "however", "adverbial", 7)
    assert sides == ("The hall was full", "Nobody ... clapped")


def test_a_connective_without_a_sentence_before_has_no_first_argument() -> None:
    assert found(document(HOWEVER), "however", "adverbial", 0) == ("", "nobody clapped all night")


def test_a_word_that_heads_nothing_and_is_nowhere_attached_has_no_arguments() -> None:
    assert found(document("However/R/root/0"), "however", "adverbial", 0) == ("", "")


def test_arg1_is_not_in_a_sentence_of_another_document() -> None:
    documents = [document(FULL, name="a"), document(HOWEVER, name="b")]
    parses = list(get_parser("gold").parse(documents))
    marks = [[], [mark(parses[1], "however", "adverbial", 0)]]
    assert [len(sides) for sides in arguments(documents, parses, marks)] == [0, 1]
    (_, (sides,)) = arguments(documents, parses, marks)
    assert sides.arg1 == ()
    assert texts(documents[1], sides.arg2) == "nobody clapped all night"


def test_documents_do_not_change_each_others_arguments() -> None:
    documents = [document(AND, name="a"), document(FULL, HOWEVER, name="b")]
    parses = list(get_parser("gold").parse(documents))
    marks = [
        [mark(parses[0], "and", "coordinator", 4)],
        [mark(parses[1], "however", "adverbial", 5)],
    ]
    together = list(arguments(documents, parses, marks))
    apart = [
        next(arguments([one], [parse], [items]))
        for one, parse, items in zip(documents, parses, marks, strict=True)
    ]
    assert together == apart
    assert all(sides.arg1 and sides.arg2 for of_document in together for sides in of_document)


def test_a_sentence_that_was_not_parsed_is_not_taken_for_the_one_before_it() -> None:
    source = document(AND, FULL, HOWEVER)
    (parsed,) = get_parser("gold").parse([source])
    # Without the middle sentence's tree, the sentence before it is two back.
    middle = slice(*parsed.offsets[1:3].tolist())
    columns = ("start", "end", "head", "form", "upos", "xpos", "feats", "deprel")
    values: dict[str, Any] = {name: np.delete(getattr(parsed, name), middle) for name in columns}
    size = middle.stop - middle.start
    values["head"] = np.where(values["head"] >= middle.stop, values["head"] - size, values["head"])
    offsets = np.array([0, middle.start, len(values["head"])], dtype=np.int32)
    partial = replace(parsed, sentence=np.array([0, 2], dtype=np.int32), offsets=offsets, **values)
    patterns = CompiledPatterns(load_patterns("en"), ["and"], parsed.strings)
    trees = Trees(Batch([source], [partial], patterns))
    token = np.array([middle.start])
    assert [int(trees.root_before(token, back)[0]) for back in (1, 2, 3)] == [NOWHERE, 1, NOWHERE]


def test_a_document_without_connectives_has_no_arguments() -> None:
    source = document(FULL)
    assert list(arguments([source], get_parser("gold").parse([source]), [[]])) == [[]]


def test_as_many_lists_as_documents() -> None:
    source = document(FULL)
    with pytest.raises(ValueError, match="zip"):
        list(arguments([source], get_parser("gold").parse([source]), []))


def test_the_model_is_small() -> None:
    assert MODEL.stat().st_size < 500_000
    assert set(load_model().boosted) == {"second", "first", "child"}


@pytest.fixture(scope="module")
def dev(discorpora_data: Path) -> Material:
    """GUM's dev documents in gold trees: gold relations, and the arguments of their connectives."""
    gold = {one.id: one for one in read_gold(discorpora_data / "gdtb")}
    documents = documents_of(discorpora_data / "treebank" / "en_gum" / "dev", gold)
    return material(documents, get_parser("gold"), gold, known=True)


def test_dice_of_gold_connectives(dev: Material) -> None:
    figures = scores(dev)
    assert figures["all"]["occurrence"]["f1"] == 1
    assert figures["all"]["dice"]["f1"] >= 0.77
    assert sum(figures[kind]["gold"] for kind in KINDS) == figures["all"]["gold"] == 482


def test_arguments_and_connective_share_nothing(dev: Material) -> None:
    for item in dev.pairs:
        words = [*item.connective, *item.arg1, *item.arg2]
        assert len(words) == len(set(words)), item
