"""RST: nodes as pairs of subtrees, classes, splits, that order changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from corpora.document import Document, RstTree
from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.splits.prescribed import read_table
from corpora.tasks.discoeval.rst import CLASSES, class_of
from tests.corpora.conftest import rows_of


def tree(name: str) -> Document:
    """Four units: ((0 1) (2 3)), an elaboration, a list, and a contrast on top."""
    units = [f"Unit {i} of {name} ends" for i in range(4)]
    starts = [sum(len(u) + 1 for u in units[:i]) for i in range(4)]
    ends = [start + len(unit) for start, unit in zip(starts, units, strict=True)]
    rst = RstTree(
        starts,
        ends,
        left=[0, 2, 4],
        right=[1, 3, 5],
        relation=["elaboration-additional-e", "List", "contrast"],
        nuclearity=["NS", "NN", "SN"],
    )
    return Document(name, " ".join(units), licence="LDC", rst=rst)


@pytest.fixture
def documents():
    training = [tree(f"TRAINING/wsj_{i:04}.out") for i in range(600, 647)]
    return [*training, *(tree(f"TEST/wsj_{i:04}.out") for i in range(1100, 1110))]


@pytest.fixture
def built(build, documents):
    def built(name="x", documents=documents, **settings):
        return build("rst", documents, name, **settings)

    return built


def test_each_inner_node_is_a_row_with_the_units_of_both_subtrees(built, load):
    folder, _ = built(documents=[tree("a")], train=1, validation=0, test=0)
    names = load(folder)["train"].features["label"].names
    rows = rows_of(folder)["train"]
    assert [names[row["label"]] for row in rows] == ["NS-Elaboration", "NN-Joint", "SN-Contrast"]
    assert rows[0]["relation"] == "elaboration-additional-e"
    assert rows[0]["left"] == ["Unit 0 of a ends"] and rows[0]["right"] == ["Unit 1 of a ends"]
    assert [len(rows[2]["left"]), len(rows[2]["right"])] == [2, 2]


def test_the_folders_of_rst_dt_give_the_splits(built):
    folder, manifest = built(validation_documents=7)
    found = {split: {row["doc"] for row in rows} for split, rows in rows_of(folder).items()}
    assert {split: len(docs) for split, docs in found.items()} == {
        "train": 40,
        "validation": 7,
        "test": 10,
    }
    assert all(name.startswith("TEST/") for name in found["test"])
    assert sum(map(len, found.values())) == len(set.union(*found.values()))
    assert not manifest["licence"]["redistributable"]


def test_the_papers_numbers_of_documents_follow_from_rst_dt(built):
    training = [tree(f"TRAINING/wsj_{i:04}.out") for i in range(347)]
    test = [tree(f"TEST/wsj_{i:04}.out") for i in range(1100, 1138)]
    folder, _ = built(documents=[*training, *test])
    counts = {split: len({row["doc"] for row in rows}) for split, rows in rows_of(folder).items()}
    assert counts == {"train": 312, "validation": 35, "test": 38}


def test_other_documents_are_split_by_shares_or_by_a_table(built, tmp_path):
    documents = [tree(f"wsj_{i:04}") for i in range(20)]
    folder, _ = built(documents=documents)
    assert set(rows_of(folder)) == {"train", "validation", "test"}
    table = tmp_path / "t.tsv"
    table.write_text("train\twsj_0001\ntest\twsj_0002\n", encoding="utf-8")
    folder, manifest = built("table", documents, table=str(table))
    found = {split: {row["doc"] for row in rows} for split, rows in rows_of(folder).items()}
    assert found == {"train": {"wsj_0001"}, "test": {"wsj_0002"}}
    assert manifest["rejects"]["document_in_no_split"] == 18 * 3


def test_order_changes_no_byte_and_the_seed_only_the_validation(built, documents, folder_bytes):
    one = built("one")[0]
    assert folder_bytes(one) == folder_bytes(built("two", documents[::-1])[0])
    other = rows_of(built("three", seed=2)[0])
    assert rows_of(one)["test"] == other["test"] and rows_of(one) != other


def test_relations_without_a_class_are_counted_and_named(built):
    document = tree("a")
    odd = replace(document.rst, relation=["elaboration", "span", "wonder"])
    _, manifest = built(documents=[replace(document, rst=odd)], train=1, validation=0, test=0)
    assert manifest["rejects"] == {"relation_without_class": 2}
    assert any("`wonder` has no class" in note for note in manifest["notes"])


def test_documents_without_a_tree_are_an_error(built, make_document):
    with pytest.raises(ConfigError, match="is not annotated"):
        built(documents=[make_document("a")])
    with pytest.raises(InputError, match="not one row"):
        built("none", documents=[])


def test_there_are_18_classes_and_each_relation_is_in_one():
    names = [relation for text in CLASSES.values() for relation in text.split()]
    assert len(CLASSES) == 18 and len(names) == len(set(names))


@pytest.mark.parametrize(
    ("relation", "name"),
    [
        ("elaboration-object-attribute-e", "Elaboration"),
        ("evaluation-s-e", "Evaluation"),
        ("attribution-n", "Attribution"),
        ("TextualOrganization", "Textual-Organization"),
        ("Same-Unit", "Same-Unit"),
        ("joint-list_m", "Joint"),
        ("adversative-concession_r", "Contrast"),
        ("problem-solution-n", "Topic-Comment"),
        ("span", ""),
        ("", ""),
    ],
)
def test_relations_of_both_treebanks_have_a_class(relation, name):
    assert class_of(relation) == name


def test_the_shared_trees_give_every_node_a_class(discorpora_data, built, monkeypatch):
    monkeypatch.setattr("corpora.audit.TRAIN", 10)  # no rules: they take most of the time
    folder = discorpora_data / "gdtb"
    read = list(open_source(f"rst:{folder / 'rst'}"))
    made, manifest = built(documents=read, table=str(folder / "documents.tsv"))
    rows = rows_of(made)
    assert manifest["rejects"] == {}
    assert sum(map(len, rows.values())) == sum(len(d.rst.relation) for d in read)
    table = read_table(folder / "documents.tsv")
    assert all({table[row["doc"]] for row in found} == {s} for s, found in rows.items())
    units = Counter(len(row["left"]) for row in rows["train"])
    assert units[1] > units[2] > 0
