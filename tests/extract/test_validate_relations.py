"""Explicit relations against gold: scores by hand, outputs and gold that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.document import Document, Relation, Span
from corpora.errors import InputError
from extract.validate.relations import (
    METRICS,
    Relations,
    read_relations,
    to_markdown,
    validate_relations,
)

TEXT = "If fog comes, then boats wait. Ann sang because Bo sang, and so we left. Still, Cy slept."


def at(*parts: str) -> tuple[Span, ...]:
    starts = [TEXT.index(part) for part in parts]
    return tuple((start, start + len(part)) for start, part in zip(starts, parts, strict=True))


def relation(
    connective: str, marks: tuple[Span, ...], arg1: str, arg2: str, *senses: str
) -> Relation:
    sides = (at(side) if side else () for side in (arg1, arg2))
    return Relation("Explicit", connective, marks, *sides, senses)


def document(*relations: Relation, id: str = "pier", text: str = TEXT) -> Document:
    return Document(id, text, relations=list(relations))


GOLD = (
    relation("if then", at("If", "then"), "boats wait", "fog comes", "Contingency.Condition.Arg2"),
    relation("because", at("because"), "Ann sang", "Bo sang", "Contingency.Cause.Reason"),
    # Annotated twice: a second sense of the same connective.
    relation("and", at("and"), "Ann sang because Bo sang", "we left", "Expansion.Conjunction"),
    relation("and", at("and"), "Ann sang because Bo sang", "we left", "Contingency.Cause.Result"),
    relation("still", at("Still"), "we left", "Cy slept", "Comparison.Concession"),
    Relation("Implicit", "then", (), at("we left"), at("Cy slept"), ("Temporal.Asynchronous",)),
)
PREDICTED = (
    # Only "if": a run of the gold connective, but not the connective.
    relation("if", at("If"), "boats wait", "fog comes", "Contingency.Condition"),
    # All right; the comma does not count.
    relation("because", at("because"), "Ann sang", "Bo sang,", "Contingency.Cause"),
    # The gold's second sense; Arg1 is too short (Dice 2 * 2 / (2 + 5)).
    relation("and", at("and"), "Ann sang", "we left", "Contingency.Cause"),
    # The sense has the right level 1 only; no Arg1.
    relation("still", at("Still"), "", "Cy slept", "Comparison.Contrast"),
    # No connective of the gold.
    relation("so", at("so"), "Ann sang", "we left", "Contingency.Cause"),
)


def scored(predicted: Document, gold: Document) -> Relations:
    return validate_relations([predicted], [gold], [predicted])


def test_every_metric_by_hand() -> None:
    result = scored(document(*PREDICTED), document(*GOLD))
    figures = result["figures"]
    right = {metric: figures[metric]["right"] for metric in METRICS}
    assert right == {
        **{"connectives": 3, "spans": 4, "sense1": 3, "sense2": 2},
        **{"exact": 1, "dice": 1, "arg1": 1, "arg2": 3},
    }
    connectives = figures["connectives"]
    assert (connectives["predicted"], connectives["gold"]) == (5, 4)
    assert (connectives["p"], connectives["r"]) == (3 / 5, 3 / 4)
    assert connectives["f1"] == pytest.approx(6 / 9) and connectives["ci"] is None
    assert (figures["spans"]["predicted"], figures["spans"]["gold"]) == (5, 5)
    assert result["accuracy"] == {"sense1": 1, "sense2": pytest.approx(2 / 3)}
    assert result["per_connective"]["if then"]["right"] == 0
    assert result["per_connective"]["and"]["sense2"] == 1
    table = to_markdown(result)
    assert "| connective | 5 | 4 | .600 | .750 | .667 |" in table
    assert "levels 1 and 2: 1.000, .667." in table


def test_gold_without_senses_and_arguments_has_no_figures_for_them() -> None:
    bare = [relation(r.connective, r.connective_spans, "", "") for r in GOLD]
    result = scored(document(*PREDICTED), document(*bare[1:3]))
    assert result["figures"]["connectives"]["right"] == 2
    assert result["figures"]["sense2"]["f1"] is None and result["figures"]["dice"]["f1"] is None
    assert result["accuracy"]["sense2"] is None


def test_white_space_may_differ_and_characters_may_not() -> None:
    other = document(*GOLD, text=TEXT)
    spread = Document("pier", TEXT.replace(" ", "  "), relations=[])
    shifted = [
        Relation("Explicit", "because", ((start, start + 7),), (), (), ("Contingency.Cause",))
        for start in [spread.text.index("because")]
    ]
    spread.relations = shifted
    assert scored(spread, other)["figures"]["connectives"]["right"] == 1
    with pytest.raises(InputError, match="differ at offset 3"):
        scored(document(text=TEXT.replace("fog", "mist")), other)


def test_documents_without_predictions_count_and_others_do_not() -> None:
    gold = [document(*GOLD), document(*GOLD, id="quay"), document(*GOLD, id="elsewhere")]
    sources = [document(), document(id="quay"), document(id="new")]
    result = validate_relations([document(*GOLD)], gold, sources, seen={"pier"})
    assert result["figures"]["connectives"]["r"] == 0.5
    assert result["unseen"] and result["unseen"]["figures"]["connectives"]["r"] == 0
    assert result["settings"]["left_out"] == {
        "gold_documents_outside_source": 1,
        "source_documents_without_gold": 1,
    }
    with pytest.raises(InputError, match="no document of the gold is in the source"):
        validate_relations([], gold, [document(id="new")])


ROW = {
    **{"doc": "pier", "connective": "because", "sense": "Contingency.Cause"},
    **{"connective_spans": [[40, 47]], "arg1_spans": [[31, 39]], "arg2_spans": []},
}


def test_json_lines_are_read_with_the_texts_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    (read,) = read_relations(str(path), [document()])
    (because,) = read.relations or []
    assert read.text[slice(*because.connective_spans[0])] == "because"
    assert because.arg2_spans == ()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"doc": "mole"}, "'mole' is not in the source"),
        ({"arg1_spans": [[31, 400]]}, r"bad span \[31, 400\]"),
        ({"arg1_spans": [[9, 3]]}, r"bad span \[9, 3\]"),
        ({"sense": None}, "wrong type: field 'sense' is null"),
    ],
)
def test_a_bad_row_is_an_error_with_its_line(
    fields: dict[str, object], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{json.dumps(ROW | fields)}\n")
    with pytest.raises(InputError, match=rf"out\.jsonl:2: .*{reason}"):
        list(read_relations(str(path), [document()]))


def test_another_kind_of_relations_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read relations from 'rst:trees'"):
        list(read_relations("rst:trees", []))
    with pytest.raises(InputError, match="no such file"):
        list(read_relations(str(tmp_path / "none.jsonl"), []))


RELS = "doc\tunit1_toks\tunit2_toks\tdir\trel_type\torig_label\tlabel\n"


@pytest.mark.parametrize("units", ["1-2\t3-9", "1-2\tx", "2-1\t3-4"])
def test_token_numbers_of_disrpt_that_do_not_fit_are_an_error(units: str, tmp_path: Path) -> None:
    words = zip(("Ann", "sang", "so", "we", "left"), ("O", "O", "B-conn", "O", "O"), strict=True)
    lines = [
        f"{number}\t{word}\t_\tX\tX\t_\t{number - 1}\tdep\t_\tConn={tag}"
        for number, (word, tag) in enumerate(words, 1)
    ]
    (tmp_path / "eng.pdtb.x_dev.conllu").write_text(
        "# newdoc id = pier\n" + "\n".join(lines) + "\n"
    )
    row = "1-2\t3-5\t1<2\texplicit\tcontingency.cause.result\tcausal\n"
    rels = tmp_path / "eng.pdtb.x_dev.rels"
    rels.write_text(RELS + f"pier\t{row}")
    (read,) = read_relations(f"disrpt:{tmp_path}", [])
    (so,) = read.relations or []
    assert (so.connective, so.senses) == ("so", ("contingency.cause.result",))
    assert (so.arg1_spans, so.arg2_spans) == (((0, 8),), ((12, 19),))
    rels.write_text(RELS + f"pier\t{row}pier\t{row.replace(row[:7], units, 1)}")
    with pytest.raises(InputError, match=r"dev\.rels:3: bad token numbers"):
        list(read_relations(f"disrpt:{tmp_path}", []))
