"""`rst:`: trees of two formats to one binary form, and the layer on disk."""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from corpora.document import Document, RstTree, Spans
from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers import open_reader, open_source
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


def rs3(tmp_path: Path, body: str, header: str = "", *, encoding: str = "utf-8") -> str:
    """The spec of a file: a segment is written `ID PARENT RELATION TEXT`, a group `(ID ...)`."""
    units = []
    for line in body.splitlines():
        id, parent, relation, text = [*line.strip().strip("()").split(" ", 3), "", "", ""][:4]
        up = f' parent="{parent}" relname="{relation}"' if parent not in ("", "-") else ""
        group = f'<group id="{id}"{up} type="{text}"/>'
        units.append(group if "(" in line else f'<segment id="{id}"{up}>{text}</segment>')
    xml = (
        f"<rst><header><relations>{header}</relations></header><body>{''.join(units)}</body></rst>"
    )
    (tmp_path / "x.rs3").write_text(xml, encoding=encoding)
    return f"rst:{tmp_path / 'x.rs3'}"


def relation_types(**types: str) -> str:
    """`contrast="rst multinuc"` is two elements, `contrast=""` one without a type."""
    return "".join(
        f'<rel name="{name}"{kind and f""" type="{kind}" """}/>'
        for name, kinds in types.items()
        for kind in kinds.split() or [""]
    )


GROUP = """1 9 contrast It was late,
2 9 {} the shop,
3 9 {} a small one, was open.
(9 - - multinuc)"""
SATELLITE = "(SN contrast 0 (NN joint 1 2))"


@pytest.mark.parametrize(
    ("second", "types", "expected"),
    [
        ("joint", {"contrast": "rst multinuc", "joint": "multinuc"}, SATELLITE),
        ("joint", {"contrast": "multinuc rst", "joint": "rst multinuc"}, SATELLITE),
        ("joint", {"contrast": "", "joint": ""}, SATELLITE),
        ("joint", {}, SATELLITE),
        ("joint", {"contrast": "multinuc", "joint": "multinuc"}, "(NN contrast 0 (NN joint 1 2))"),
        ("contrast", {"contrast": "rst multinuc"}, "(NN contrast 0 (NN contrast 1 2))"),
        ("contrast", {"contrast": ""}, "(NN contrast 0 (NN contrast 1 2))"),
    ],
)  # fmt: skip
def test_a_relation_that_may_be_either_joins_nuclei_if_no_other_does(
    second: str, types: dict[str, str], expected: str, tmp_path: Path
) -> None:
    spec = rs3(tmp_path, GROUP.format(second, second), relation_types(**types))
    assert bracketed(tree_of(*open_source(spec))) == expected


TITLED = """1 - - Closed for good
2 - - The baker left,
3 2 cause because the rent rose.
4 - - From our reporter
5 2 result The street is quieter."""


def test_of_several_trees_the_largest_is_read_and_the_rest_counted(tmp_path: Path) -> None:
    spec = rs3(tmp_path, TITLED, relation_types(cause="rst", result="rst"))
    with pytest.raises(InputError, match=r"3 units .* '1' over 1 EDU, .* \(unattached = .omit"):
        list(open_source(spec))
    skipped: Counter[str] = Counter()
    (document,) = open_source(spec, {"unattached": "omit"}, skipped=skipped)
    assert document.text == "The baker left, because the rent rose. The street is quieter."
    assert bracketed(tree_of(document)) == "(NS result (NS cause 0 1) 2)"
    assert skipped == {"EDU outside the largest tree": 2}


def test_a_file_without_any_relation_has_no_tree(tmp_path: Path) -> None:
    spec = rs3(tmp_path, "1 - - Closed\n2 - - The baker left.")
    with pytest.raises(InputError, match="no relation joins two EDUs"):
        list(open_source(spec, {"unattached": "omit"}))


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("1 7 cause It rained.", "the node '1' (cause) is '7', not there"),
        (
            "1 - - It rained.\n2 3 cause He left.\n3 2 result So did I.",
            "the node '2' (cause) is in no tree",
        ),
        (
            "1 9 cause It rained.\n(9 - - span)",
            "the node '9' (span) is a group without a nucleus; it has the node '1' (cause)",
        ),
        (
            "1 - - He\n2 3 cause left,\n3 1 result so\n4 1 aim did she.\n5 2 means by bus.",
            "EDU 2 is joined with EDU 5 by the node '2' (span) and the node '5' (means)",
        ),
    ],
)
def test_a_refusal_names_node_and_relation(body: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(open_source(rs3(tmp_path, body)))
    assert named in caught.value.message


FERIA = "1 - - La feria cerró\n2 1 causa porque llovió."


@pytest.mark.parametrize("declared", ["", '<?xml version="1.0"?>', "latin-1", "gb18030"])
def test_the_encoding_of_a_file_is_the_declared_one_else_the_option(
    declared: str, tmp_path: Path
) -> None:
    encoding = declared if "-" in declared or "gb" in declared else "cp1252"
    path = Path(rs3(tmp_path, FERIA, encoding=encoding).removeprefix("rst:"))
    head = f"<?xml version='1.0'\n encoding='{declared}' ?>" if encoding == declared else declared
    path.write_bytes(head.encode() + b"\n" + path.read_bytes() if head else path.read_bytes())
    (document,) = open_source(f"rst:{path}", {"encoding": "cp1252"})
    assert document.text == "La feria cerró porque llovió."


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"", ":1: not UTF-8: byte 0xf3 at column 81"),
        (b"<?xml version='1.0' encoding='utf-8'?>\n", ":2: not UTF-8: byte 0xf3 at column 81"),
        (
            b"<?xml version='1.0' encoding='klingon'?>\n",
            ":1: not well-formed XML: no encoding 'kli",
        ),
    ],
)
def test_a_byte_in_another_encoding_is_named_with_its_line(
    head: bytes, message: str, tmp_path: Path
) -> None:
    path = Path(rs3(tmp_path, FERIA, encoding="latin-1").removeprefix("rst:"))
    path.write_bytes(head + path.read_bytes())
    with pytest.raises(InputError) as caught:
        list(open_source(f"rst:{path}"))
    assert f"{path}{message}" in str(caught.value)


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
    names = [path.name for path in open_reader(f"rst:{TREES}")[1].files]
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
