"""PDTB-E, PDTB-I and marked-vs-unmarked: arguments, senses, splits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from corpora.document import Document, Relation
from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.splits.prescribed import prescribed_division, read_table
from corpora.tasks import BUILDERS
from corpora.tasks.relations import argument_text, sense_at, without_edge_marks
from tests.corpora.conftest import rows_of

REASON, THEN = "Contingency.Cause.Reason", "Temporal.Asynchronous.Precedence"


def gold(name: str, number: int = 6) -> Document:
    """`number` explicit relations of reason, each with an implicit one to the next sentence."""
    pieces, places, relations, at = [], [], [], 0
    for i in range(number + 1):
        one, two = f"The mill of {name} stopped {i} times", f"the river {i} by it ran dry"
        text = f"{one} because {two}."
        a, b = (at, at + len(one)), (at + len(one) + 9, at + len(text) - 1)
        places.append((a, b))
        pieces.append(text)
        at += len(text) + 1
    for (a, b), (following, _) in pairwise(places):
        word = (a[1] + 1, a[1] + 8)
        relations.append(Relation("Explicit", "because", (word,), (a,), (b,), (REASON,)))
        relations.append(Relation("Implicit", "then", (), (b,), (following,), (THEN, REASON)))
    relations.append(Relation("EntRel", "", (), ((0, 4),), ((5, 9),)))
    document = Document(name, " ".join(pieces), licence="LDC", relations=relations)
    return split_document(document)


@pytest.fixture
def documents():
    return [gold(f"wsj_{section:02}{number:02}") for section in range(25) for number in range(2)]


@pytest.fixture
def built(build, documents):
    def built(dataset, name="x", documents=documents, **settings):
        return build(dataset, documents, name, **settings)

    return built


def sections(rows: list[dict]) -> set[int]:
    return {int(row["doc"][4:6]) for row in rows}


def test_explicit_relations_have_no_connective_in_their_arguments(built, load):
    folder, manifest = built("pdtb_explicit")
    rows = rows_of(folder)
    assert {split: sections(found) for split, found in rows.items()} == {
        "train": set(range(2, 15)),
        "validation": set(range(15, 19)),
        "test": set(range(19, 24)),
    }
    row = rows["train"][0]
    assert row["arg1"].startswith("The mill of") and row["arg2"].startswith("the river")
    assert row["connective"] == "because" and row["sense"] == REASON
    assert load(folder)["train"].features["label"].names == ["Contingency.Cause"]
    assert manifest["rejects"]["relation_implicit"] == 300
    assert manifest["rejects"]["document_in_no_split"] == 6 * 2 * 3
    assert not manifest["licence"]["redistributable"]


def test_implicit_relations_keep_the_annotated_order(built):
    row = rows_of(built("pdtb_implicit")[0])["train"][0]
    assert row["arg1"].startswith("the river") and row["arg2"].startswith("The mill")
    assert row["sense"] == THEN


def test_all_senses_and_the_most_frequent_classes(built):
    folder, manifest = built("pdtb_implicit", senses="all")
    labels = manifest["configs"]["default"]["splits"]["train"]["labels"]["label"]
    assert set(labels) == {"Contingency.Cause", "Temporal.Asynchronous"}
    assert len(set(labels.values())) == 1
    folder, manifest = built("pdtb_implicit", "dissent", senses="all", classes=1)
    assert {row["label"] for rows in rows_of(folder).values() for row in rows} == {0}
    assert manifest["rejects"]["class_too_rare"] > 0


def test_rare_and_coarse_senses_are_left_out(built, documents):
    first = documents[10]
    coarse = replace(first.relations[0], senses=("Contingency",), arg1_spans=((0, 8),))
    rare = replace(first.relations[0], senses=("Expansion.List",), arg1_spans=((0, 7),))
    first.relations += [coarse, rare]
    _, manifest = built("pdtb_explicit")
    assert manifest["rejects"]["sense_too_coarse"] == 1
    assert manifest["rejects"]["class_too_rare"] == 1
    _, manifest = built("pdtb_explicit", "fine", level=3)
    labels = manifest["configs"]["default"]["splits"]["train"]["labels"]["label"]
    assert list(labels) == [REASON]


def test_marked_and_unmarked_with_the_sections_of_dissent(built, load):
    folder, _ = built("pdtb_marked")
    rows = rows_of(folder)
    assert {split: sections(found) for split, found in rows.items()} == {
        "train": set(range(2, 23)),
        "validation": {0, 1},
        "test": {23, 24},
    }
    assert Counter(row["label"] for row in rows["test"]) == {0: 24, 1: 24}
    for row in rows["train"]:
        assert row["arg1"].startswith("The mill") == (row["label"] == 1)
        assert row["arg2"].startswith("The river") == (row["label"] == 1)
    assert load(folder)["train"].features["label"].names == ["unmarked", "marked"]


def test_marked_rows_are_as_many_as_unmarked_ones_of_like_lengths(built):
    documents = [gold(f"story{i}") for i in range(10)]
    for document in documents[:4]:  # two explicit relations of a short argument, one row each
        for number in (0, 2):
            first = document.relations[number]
            short = ((first.arg2_spans[0][0], first.arg2_spans[0][0] + 11),)
            document.relations.append(replace(first, arg2_spans=short))
    folder, manifest = built("pdtb_marked", documents=documents)
    for rows in rows_of(folder).values():
        assert {row["arg2"] for row in rows}.isdisjoint({"The river 0", "The river 1"})
        assert sum(row["label"] for row in rows) * 2 == len(rows)
    assert manifest["rejects"]["unmatched"] == 8
    folder, manifest = built("pdtb_marked", "paper", documents, arguments="annotated")
    rows = [row for rows in rows_of(folder).values() for row in rows]
    assert (
        sum(row["arg2"] in ("the river 0", "the river 1") for row in rows) == 8 and len(rows) == 128
    )
    assert "unmatched" not in manifest["rejects"]


def test_an_implicit_relation_beside_an_explicit_one_is_not_unmarked(built):
    documents = [gold(f"story{i}") for i in range(10)]
    document = documents[0]
    start, end = document.relations[0].arg2_spans[0]
    beside = replace(document.relations[0], kind="Implicit", arg2_spans=((start - 8, end),))
    document.relations.append(beside)
    folder, manifest = built("pdtb_marked", documents=documents)
    assert manifest["rejects"]["implicit_beside_explicit"] == 1
    assert not any("Because" in r["arg2"] for rows in rows_of(folder).values() for r in rows)


def test_arguments_out_of_order_give_no_row(built):
    documents = [gold(f"story{i}") for i in range(10)]
    first = documents[0].relations[0]
    turned = replace(first, arg1_spans=first.arg2_spans, arg2_spans=first.arg1_spans)
    overlapping = replace(first, arg2_spans=(*first.arg1_spans, *first.arg2_spans))
    documents[0].relations += [turned, overlapping]
    _, manifest = built("pdtb_marked", documents=documents)
    assert manifest["rejects"]["arguments_not_in_order"] == 2


def test_a_fragment_or_another_connective_gives_no_row(built):
    documents = [gold(f"story{i}") for i in range(10)]
    first, last = documents[0].relations[0], documents[0].relations[-3]
    begin = last.arg2_spans[0][0]
    for start, end in ((begin, begin + len("the river")), (begin - len("because "), begin + 20)):
        spans = {"arg1_spans": first.arg1_spans, "arg2_spans": ((start, end),)}
        relation = replace(first, kind="Implicit", connective_spans=(), **spans)
        documents[0].relations.append(relation)
    _, manifest = built("pdtb_marked", documents=documents)
    assert manifest["rejects"]["argument_too_short"] == 1
    assert manifest["rejects"]["another_connective"] == 1


def test_unmarked_rows_do_not_alone_begin_as_infinitives(built):
    documents = [gold(f"story{i}") for i in range(10)]
    for document in documents[:5]:
        text = f"{document.text} To see the mill of {document.id} they came."
        start = text.index("To see")
        relation = replace(document.relations[1], arg2_spans=((start, len(text) - 1),))
        document.text = text
        document.relations.append(relation)
    folder, manifest = built("pdtb_marked", documents=documents)
    rows = [row for rows in rows_of(folder).values() for row in rows]
    assert rows and not any(row["arg2"].startswith("To") for row in rows)
    assert manifest["rejects"]["unmatched"] >= 5


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("he left , and slept .", "He left , and slept"),
        ("-- “ why not ? ”", "“ Why not ? ”"),
        ("3 mills stood", "3 mills stood"),
        ("it closed . [ 8 ]", "It closed"),
        (". . .", ""),
        ("ﬁsh swam", "Fish swam"),  # a ligature
    ],
)
def test_an_argument_begins_with_a_capital_and_ends_without_a_mark(argument, shown):
    assert without_edge_marks(argument) == shown


def test_other_documents_are_split_by_shares_or_by_a_table(built, tmp_path):
    documents = [gold(f"story{i}") for i in range(30)]
    folder, manifest = built("pdtb_marked", documents=documents)
    found = [{row["doc"] for row in rows} for rows in rows_of(folder).values()]
    assert len(found) == 3 and sum(map(len, found)) == 30
    table = tmp_path / "documents.tsv"
    table.write_text("dev\tstory1\ntrain\tstory2\ntrain\tstory3\n", encoding="utf-8")
    folder, manifest = built("pdtb_marked", "table", documents, table=str(table))
    docs = {split: {row["doc"] for row in rows} for split, rows in rows_of(folder).items()}
    assert docs == {"train": {"story2", "story3"}, "validation": {"story1"}}
    assert manifest["details"]["split"]["reason"] == "as documents.tsv says"
    assert manifest["rejects"]["document_in_no_split"] == 27 * 12


@pytest.mark.parametrize("name", ["pdtb_explicit", "pdtb_implicit", "pdtb_marked", "rst"])
def test_settings_change_with_the_contents_of_a_table(tmp_path, name):
    """The stage's hash covers the settings, so a changed table makes another stage."""
    table, kind = tmp_path / "documents.tsv", BUILDERS.find(name)
    found = set()
    for text in ("", "train\ta\n", "dev\ta\n", "dev\ta\n"):
        table.write_text(text, encoding="utf-8")
        found.add(kind(table=str(table)).identity()["table_sha256"])
    assert len(found) == 3 and kind().identity()["table_sha256"] == ""


def test_a_bad_table_names_its_line(tmp_path):
    table = tmp_path / "t.tsv"
    table.write_text("train\ta\ndev b\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"t\.tsv:2"):
        read_table(table)
    with pytest.raises(ConfigError, match="no table of splits"):
        read_table(tmp_path / "none.tsv")


def test_only_articles_of_the_wall_street_journal_have_a_split_by_section():
    found = prescribed_division({"wsj_2301": ("", 3)}, "dissent", "")
    assert found.splits_of(["wsj_2301"]) == ["test"]
    assert prescribed_division({"wsj_2301": ("", 1), "x": ("x", 1)}, "dissent", "") is None


def test_documents_without_gold_relations_are_an_error(built, make_document):
    with pytest.raises(ConfigError, match="is not annotated"):
        built("pdtb_explicit", documents=[make_document("a")])
    with pytest.raises(InputError, match="not one row"):
        built("pdtb_explicit", documents=[replace(gold("wsj_0301"), relations=[])])


def test_the_connective_is_cut_out_of_an_argument():
    text = "He left early, however, and slept."
    assert argument_text(text, [(0, 34)], [(15, 22)]) == "He left early and slept."
    assert argument_text(text, [(15, 34)], [(15, 22)]) == "and slept."
    assert argument_text(text, [(0, 14), (22, 34)], []) == "He left early and slept."
    assert argument_text(text, [(0, 13), (24, 34)], []) == "He left early and slept."
    assert argument_text("They stayed , though .", [(0, 22)], [(14, 20)]) == "They stayed ."
    assert (
        argument_text("It rained ; thus , we left", [(0, 26)], [(12, 16)]) == "It rained ; we left"
    )
    assert argument_text("One , , two", [(0, 11)], []) == "One , , two"


def test_senses_by_level():
    assert sense_at(REASON, 2) == "Contingency.Cause" and sense_at("Expansion", 2) == ""


@pytest.mark.parametrize("dataset", ["pdtb_explicit", "pdtb_implicit", "pdtb_marked"])
def test_the_shared_relations_give_rows_in_their_splits(discorpora_data, built, dataset):
    folder = discorpora_data / "gdtb"
    table = read_table(folder / "documents.tsv")
    documents = map(split_document, open_source(f"pdtb:{folder}"))
    made, _ = built(dataset, documents=documents, table=str(folder / "documents.tsv"))
    for split, rows in rows_of(made).items():
        assert rows and {table[row["doc"]] for row in rows} == {split}
        assert all(row["arg1"] and row["arg2"] for row in rows)
