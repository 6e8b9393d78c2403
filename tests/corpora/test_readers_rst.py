"""`rst:`: trees of two formats to one binary form, and the layer on disk."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from corpora.document import Document, RstTree, Spans
from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers import open_source, opened
from corpora.readers.files import Refused
from corpora.readers.rst import Node, binary_tree
from corpora.store.documents import iter_documents, write_documents

TREES = Path(__file__).resolve().parent.parent / "data" / "readers" / "rst"


def tree_of(document: Document) -> RstTree:
    assert document.rst is not None
    return document.rst


def edus(document: Document) -> list[str]:
    tree = tree_of(document)
    return [document.text[a:b] for a, b in zip(tree.start, tree.end, strict=True)]


def bracketed(tree: RstTree, node: int | None = None) -> str:
    """The tree in one line, EDUs by number: `(NS cause 0 1)`."""
    count = len(tree)
    node = count + len(tree.left) - 1 if node is None else node
    if node < count:
        return str(node)
    row = node - count
    left, right = bracketed(tree, tree.left[row]), bracketed(tree, tree.right[row])
    return f"({tree.nuclearity[row]} {tree.relation[row]} {left} {right})"


def node(*children: Node | int, role: str = "N", relation: str = "span") -> Node:
    """A node over nodes; an EDU by number is a nucleus of its own."""
    parts = [Node(edu=c) if isinstance(c, int) else c for c in children]
    return Node(role == "N", relation, children=parts)


def leaf(edu: int, role: str, relation: str = "span") -> Node:
    return Node(role == "N", relation, edu=edu)


def spans(count: int) -> Spans:
    return Spans([3 * i for i in range(count)], [3 * i + 2 for i in range(count)])


SHAPES = {
    "several nuclei branch to the right": (
        node(*(leaf(i, "N", "List") for i in range(4))),
        "(NN List 0 (NN List 1 (NN List 2 3)))",
    ),
    "satellites before are outermost": (
        node(leaf(0, "S", "a"), leaf(1, "S", "b"), leaf(2, "N"), leaf(3, "S", "c")),
        "(SN a 0 (SN b 1 (NS c 2 3)))",
    ),
    "satellites after come one by one": (
        node(leaf(0, "N"), leaf(1, "S", "a"), leaf(2, "S", "b")),
        "(NS b (NS a 0 1) 2)",
    ),
    "a satellite between nuclei goes with the one before": (
        node(leaf(0, "N", "List"), leaf(1, "S", "a"), leaf(2, "N", "List"), leaf(3, "S", "b")),
        "(NS b (NN List (NS a 0 1) 2) 3)",
    ),
    "children are put in order": (
        node(leaf(1, "N"), leaf(0, "S", "a")),
        "(SN a 0 1)",
    ),
    "a node over one child is that child": (node(node(node(0, leaf(1, "S", "a")))), "(NS a 0 1)"),
}


@pytest.mark.parametrize(("root", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_any_node_becomes_binary(root: Node, expected: str) -> None:
    count = expected.count("(") + 1
    assert bracketed(binary_tree(root, spans(count))) == expected


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        (node(0, leaf(2, "S", "a")), "EDU 1 is joined with EDU 3"),
        (node(0, leaf(0, "S", "a"), leaf(1, "S")), "EDU 1 is joined with EDU 1"),
        (node(0, leaf(1, "S", "a")), "covers the EDUs 1 to 2 of 3"),
        (node(leaf(0, "S"), leaf(1, "S"), leaf(2, "S")), "no nucleus"),
    ],
)
def test_what_is_no_tree_is_refused(root: Node, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        binary_tree(root, spans(3))


def test_units_that_name_each_other_without_end_are_refused(tmp_path: Path) -> None:
    groups = (f'<group id="{i}" type="span" parent="{i + 1}" relname="span"/>' for i in range(999))
    units = '<segment id="x" parent="0" relname="span">Text.</segment>' + "".join(groups)
    path = tmp_path / "x.rs4"
    path.write_text(f'<rst><body>{units}<group id="999" type="span"/></body></rst>')
    with pytest.raises(InputError, match="too deep"):
        list(open_source(f"rst:{path}"))


def test_a_tree_of_rst_tool() -> None:
    (ferry,) = open_source(f"rst:{TREES / 'ferry.rs3'}")
    assert edus(ferry)[:2] == ["It had rained all week .", "Although the ferry was late ,"]
    assert ferry.text == " ".join(edus(ferry))
    assert bracketed(tree_of(ferry)) == (
        "(SN background 0 (NN sequence (SN concession 1 (NS cause 2 3)) (NN sequence 4 5)))"
    )
    assert (ferry.id, ferry.licence) == ("ferry", "unknown")


MARKET = "(NS elaboration-additional (NN List 0 (NN List 1 2)) (SN attribution 3 4))"


@pytest.mark.parametrize("text", [None, "raw", "edus", "tree"])
def test_a_tree_of_the_treebank(text: str | None) -> None:
    options = {"text": text} if text else {}
    (market,) = open_source(f"rst:{TREES / 'market.out.dis'}", options)
    assert bracketed(tree_of(market)) == MARKET
    assert edus(market)[2:] == [
        "and the fish was gone by noon.",
        "The keeper says",
        '"it was a good day."',
    ]
    assert market.text.split("\n\n")[1] == 'The keeper says "it was a good day."'
    assert (market.id, market.licence) == ("market", "LDC")


def test_the_texts_beside_a_tree_are_files_of_the_source() -> None:
    names = [path.name for path in opened(f"rst:{TREES}")[1].files]
    assert names == ["ferry.rs3", "market.out", "market.out.dis", "market.out.edus"]
    assert [d.id for d in open_source(f"rst:{TREES}")] == ["ferry", "market"]


def test_the_nodes_know_their_edus() -> None:
    (market,) = open_source(f"rst:{TREES / 'market.out.dis'}", {"licence": "CC0-1.0"})
    tree = tree_of(market)
    covered = [list(tree.edus(number)) for number in range(2 * len(tree) - 1)]
    assert covered[:5] == [[0], [1], [2], [3], [4]]
    assert covered[-1] == [0, 1, 2, 3, 4] and [1, 2] in covered and [3, 4] in covered
    assert market.licence == "CC0-1.0"


def test_the_layer_comes_back_from_disk(tmp_path: Path) -> None:
    documents = [*open_source(f"rst:{TREES}"), Document(id="plain", text="No tree.")]
    write_documents(documents, tmp_path)
    assert list(iter_documents(tmp_path)) == documents


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(TREES, tmp_path / "rst")


def bad(folder: Path, **options: str) -> tuple[list[str], list[BadRecord]]:
    found: list[BadRecord] = []
    ids = [d.id for d in open_source(f"rst:{folder}", options, on_bad=found.append)]
    return ids, found


SPOILT = {
    "open bracket": ("market.out.dis", "\n)\n", "\n", "not a tree", ":1"),
    "second root": ("market.out.dis", "\n)\n", "\n)\n(Root (leaf 6))\n", "not a tree", ":13"),
    "words after the tree": ("market.out.dis", "\n)\n", "\n) more\n", "not a tree", ":12"),
    "leaf twice": ("market.out.dis", "(leaf 2)", "(leaf 1)", "bad tree", ":4"),
    "leaf of words": ("market.out.dis", "(leaf 2)", "(leaf two)", "bad tree", ":4"),
    "leaf of many digits": ("market.out.dis", "leaf 2", f"leaf {'9' * 5000}", "bad tree", ":4"),
    "another number of EDUs": ("market.out.edus", "The keeper says\n", "", "bad EDUs", ".edus"),
    "another raw text": ("market.out", "bakers", "butchers", "EDUs differ", ".dis"),
    "no XML": ("ferry.rs3", "<body>", "<body", "not well-formed XML", ":14"),
    "no parent": ("ferry.rs3", 'parent="21"', 'parent="99"', "bad tree", ".rs3"),
    "two roots": ("ferry.rs3", 'parent="22"', "", "bad tree", ".rs3"),
    "a cycle": ("ferry.rs3", 'id="3" parent="21"', 'id="3" parent="4"', "bad tree", ".rs3"),
    "crossing": ("ferry.rs3", 'id="1" parent="20"', 'id="1" parent="5"', "bad tree", ".rs3"),
    "unit twice": ("ferry.rs3", 'id="5"', 'id="4"', "bad tree", ".rs3"),
    "empty EDU": ("ferry.rs3", "Then it came ,", " ", "no text", ".rs3"),
    "document type": ("ferry.rs3", "<rst>", "<!DOCTYPE rst []><rst>", "XML refused", ":2"),
    "deep": ("ferry.rs3", "<body>", "<body>" + "<a>" * 100_000, "XML refused", ":13"),
}


@pytest.mark.parametrize(
    ("name", "old", "new", "reason", "where"), SPOILT.values(), ids=SPOILT.keys()
)
def test_one_bad_tree_among_good_ones(
    name: str, old: str, new: str, reason: str, where: str, folder: Path
) -> None:
    path = folder / name
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new, 1), encoding="utf-8")
    ids, found = bad(folder)
    assert ids == ["market" if name.startswith("ferry") else "ferry"]
    assert [b.reason.partition(":")[0] for b in found] == [reason]
    assert found[0].where.endswith(where)
    with pytest.raises(InputError):
        list(open_source(f"rst:{folder}"))


def test_a_tree_in_brackets_without_end(folder: Path) -> None:
    (folder / "market.out.dis").write_text("( Root " * 1_000_000)
    ids, found = bad(folder)
    assert ids == ["ferry"] and found[0].reason.startswith("too deep")


def test_a_treebank_in_another_encoding(folder: Path) -> None:
    for path in folder.glob("market*"):
        path.write_bytes(path.read_bytes().replace(b"bakers", b"b\xe2kers"))
    ids, found = bad(folder)
    assert ids == ["ferry"] and found[0].reason.startswith("not UTF-8")
    assert bad(folder, encoding="latin-1")[0] == ["ferry", "market"]


def test_a_text_that_is_not_there(folder: Path) -> None:
    (folder / "market.out").unlink()
    assert bad(folder)[0] == ["ferry", "market"]
    ids, found = bad(folder, text="raw")
    assert ids == ["ferry"] and "no file with its raw" in found[0].reason
    with pytest.raises(ConfigError, match="text = 'row': did you mean 'raw'"):
        list(open_source(f"rst:{folder}", {"text": "row"}))


def test_the_real_trees_read_whole(discorpora_data: Path) -> None:
    gdtb = discorpora_data / "gdtb"
    count = 0
    for document in open_source(f"rst:{gdtb / 'rst'}"):
        tree = tree_of(document)
        raw = (gdtb / "raw" / "00" / document.id).read_text(encoding="utf-8")
        assert document.text == raw == " ".join(edus(document))
        assert len(tree.left) == len(tree) - 1
        assert list(tree.edus(2 * len(tree) - 2)) == list(range(len(tree)))
        for row, (left, right) in enumerate(zip(tree.left, tree.right, strict=True)):
            assert max(left, right) < len(tree) + row
            assert tree.edus(left).stop == tree.edus(right).start
        assert "span" not in tree.relation
        assert set(tree.nuclearity) <= {"NS", "SN", "NN"}
        assert all(a < b for a, b in pairwise(tree.start))
        count += 1
    assert count == len(list((gdtb / "rst").glob("*.rs4")))
