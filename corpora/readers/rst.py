"""`rst:` rhetorical structure trees: RST-DT (`.dis`) and rstWeb (`.rs3`, `.rs4`).

A `.dis` file is a tree in brackets; `.rs3` and `.rs4` contain segments and groups that name a
parent. A schema with several satellites or several nuclei is made binary as in conversions of the
RST Discourse Treebank. Satellites before the nucleus are the outermost nodes, the first one at the
top (`S1 (S2 (N ...))`); those after it are attached in their order (`((N S1) S2)`: a
right-branching `(N (S1 S2))` would need a node of two satellites). Several nuclei branch to the
right (`N1 (N2 N3)`, each node `NN` with their relation); a satellite between two nuclei goes with
the one before it, one before or after all of them with the whole.

In `.rs3` and `.rs4` the header says which relations join nuclei. One that it gives both types, or
none, joins nuclei unless another relation of the group has two of them, as in rstWeb (`read_rst`).
"""

from __future__ import annotations

import codecs
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

from corpora.align import align, map_spans
from corpora.document import PARAGRAPH_BREAK, Document, RstTree, Spans
from corpora.errors import ConfigError, InputError, amount
from corpora.readers.files import Refused, expect, find_files, read_chunks, read_whole
from corpora.readers.guarded import BadXml, GuardedXml
from corpora.readers.source import (
    Encoded,
    Source,
    blocks_of,
    join_paragraphs,
    known_encoding,
    text_and_sentences,
)

NESTING_LIMIT = 200
"""Maximum depth of a tree; a newspaper article's has about 20."""
SPAN, MULTINUCLEAR = "span", "multinuc"
EITHER = frozenset(("rst", MULTINUCLEAR))
ROLES = ("Root", "Nucleus", "Satellite")
PARAGRAPH_MARK = "<P>"

_TOKEN = re.compile(r"_!(.*?)_!|([()])|([^\s()]+)", re.DOTALL)
"""A quoted text (`_!But it rained._!`), a bracket or a word of a `.dis` file."""
log = logging.getLogger(__name__)

_DECLARED = re.compile(rb"""<\?xml\b[^<>]*?\bencoding\s*=\s*["']([\w.:-]*)["']""")

_ENCODING = re.compile(r"""(?<=<\?xml)([^<>]*?)\bencoding\s*=\s*["'][\w.:-]*["']""")
"""Both are for `<?xml version="1.0" encoding="latin-1"?>`, in bytes and in text."""
_NOISE = re.compile(r"^//TT_ERR.*$", re.MULTILINE)  # a tool's lines in some files of RST-DT


class Rst(Encoded):
    """RST trees: RST-DT .dis, rstWeb .rs3 and .rs4."""

    name = "rst"
    suffixes = (".out.dis", ".dis", ".rs3", ".rs4")

    text: Literal["raw", "edus", "tree"] | None = None
    """The source of the text of `.dis`; default: the first of these that exists."""
    unattached: Literal["refuse", "omit"] = "refuse"
    """For `.rs3` and `.rs4` of several trees (a title without a parent): `omit` reads the largest
    one, and counts the EDUs of the others."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """Return the trees at `target` and, for `.dis`, the raw texts and `.edus` beside them."""
        trees = find_files(target, cls.suffixes, kind=cls.name)
        return sorted({*trees, *(file for tree in trees for file in _files_beside(tree).values())})

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the document of a tree; its layer `rst` has the EDUs and the binary tree.

        The text of `.rs3` and `.rs4` are its EDUs, joined by spaces. That of `.dis` comes from
        the raw text beside it, from `.edus`, or from the tree's own texts. EDUs that are left
        out (`unattached`) are counted in `source.skipped`.
        """
        if not path.name.endswith(self.suffixes):
            return  # it goes with a tree
        raw, licence = None, ""
        # The tree and the texts of its EDUs
        if path.suffix == ".dis":
            licence = str(self.licence or "LDC")
            root, texts = parse_dis(read_whole(path, self.encoding), path)
            files = _files_beside(path)
            available = self.text in (None, "tree", *files)
            expect(available, f"no text: the tree has no file with its {self.text} beside it")
            if "edus" in files and self.text != "tree":
                lines = read_whole(files["edus"], self.encoding).split("\n")
                edus = [line.strip() for line in lines if line.strip()]
                reason = f"bad EDUs: {len(edus)} EDUs, but the tree has {len(texts)} leaves"
                expect(len(edus) == len(texts), reason, str(files["edus"]))
                ends = (text.rstrip().endswith(PARAGRAPH_MARK) for text in texts)
                texts = [edu + PARAGRAPH_MARK * end for edu, end in zip(edus, ends, strict=True)]
            if "raw" in files and self.text in (None, "raw"):
                raw = read_whole(files["raw"], self.encoding)
                raw = raw.replace(PARAGRAPH_MARK, PARAGRAPH_BREAK)
        else:
            try:
                root, texts, omitted = parse_rs(path, self.encoding, self.unattached)
            except BadXml as error:
                raise Refused(error.message, error.where) from None
            if omitted:
                source.skipped["EDU outside the largest tree"] += omitted
                if not source.warned:
                    count = amount(omitted, "EDU")
                    log.warning("%s: %s outside the largest tree left out", path, count)
                    source.warned = True
        # The document's text: the joined EDUs, or the raw text to which their spans are mapped
        text, spans = _text_and_edus(texts)
        if raw is not None:  # only white space may differ
            raw_text, _ = join_paragraphs(list(map(" ".join, blocks_of(raw.splitlines()))))
            try:
                mapped = map_spans(align(text, raw_text, where=str(path)), list(spans))
            except InputError as error:
                hint = '(text = "edus" reads without it)'
                raise Refused(f"EDUs differ: {error.message} {hint}") from None
            expect(len(mapped) == len(texts), "no text: an EDU is empty")
            text, spans = raw_text, Spans([a for a, _ in mapped], [b for _, b in mapped])
        yield source.document(stem, text, licence=licence, rst=binary_tree(root, spans))


def _files_beside(tree: Path) -> dict[str, Path]:
    """Return the existing files of raw text and EDUs beside a `.dis` file, as `raw` and `edus`.
    They are `wsj_0601.out` and `wsj_0601.out.edus` for `wsj_0601.out.dis`."""
    base = tree.with_suffix("")
    files = {"raw": base, "edus": base.with_name(base.name + ".edus")}
    return {name: path for name, path in files.items() if tree.suffix == ".dis" and path.is_file()}


def _text_and_edus(texts: list[str]) -> tuple[str, Spans]:
    """Return the text of EDUs, joined by spaces, and their spans. A paragraph ends behind an EDU
    with the mark `<P>`. Raises `Refused` for an empty EDU."""
    paragraphs: list[list[str]] = [[]]
    for number, text in enumerate(texts, 1):
        edu = " ".join(text.replace(PARAGRAPH_MARK, " ").split())
        expect(edu, f"no text: EDU {number} is empty")
        paragraphs[-1].append(edu)
        if text.rstrip().endswith(PARAGRAPH_MARK):
            paragraphs.append([])
    return text_and_sentences(paragraphs)


@dataclass(slots=True)
class Node:
    """A node as annotated: an EDU (numbered from 0) or a schema over its children in order.

    `nucleus` and `relation` are its role in its parent; `relation` is `span` for a nucleus whose
    satellite names the relation. `id` is its name in an `.rs3` or `.rs4` file.
    """

    nucleus: bool = True
    relation: str = SPAN
    edu: int = -1
    children: list[Node] = field(default_factory=list)
    id: str = ""

    def __str__(self) -> str:
        return _node_name(self.id, self.relation)


def _node_name(id: str, relation: str) -> str:
    """Return the words for a node in a message: `the node '12' (cause)`."""
    return f"the node {id[:40]!r} ({relation[:40]})" if id else f"a node ({relation[:40]})"


@dataclass(slots=True)
class _Bracket:
    """An open bracket of a `.dis` file: its place, its first word (`head`), and its content so far:
    `values` (words), `fields` (inner brackets with words only) and `children` (nodes)."""

    where: str
    head: str = ""
    values: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def node(self, texts: dict[int, str]) -> Node:
        """Return the node of a complete bracket, and add the text of a leaf to `texts`. Raises
        `Refused` for a leaf without a number, with children or with a number in `texts`."""
        relation = " ".join(self.fields.get("rel2par", [])) or SPAN
        node = Node(self.head != "Satellite", relation, children=self.children)
        leaf = self.fields.get("leaf")
        if leaf is None and self.children:
            return node
        number = leaf[0] if leaf else ""
        is_leaf = re.fullmatch("[0-9]{1,8}", number) and not self.children
        expect(is_leaf, f"bad tree: a {self.head} that is neither a leaf nor a span", self.where)
        expect(int(number) not in texts, f"bad tree: the leaf {number} comes twice", self.where)
        node.edu = int(number) - 1
        texts[int(number)] = " ".join(self.fields.get("text", []))
        return node


def parse_dis(text: str, path: Path) -> tuple[Node, list[str]]:
    """Return the tree of a `.dis` file and its EDUs' texts (with `<P>` at the end of a paragraph).

    Raises `Refused`, with the line as its place, if the brackets do not close, a node
    has no role, no span and no leaf number, or leaves are not numbered 1 to n.
    """
    text = _NOISE.sub("", text)
    stack = [_Bracket(f"{path}:1")]  # what holds the root, then the open brackets
    texts: dict[int, str] = {}
    line, at = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", at, token.start())
        at, where = token.start(), f"{path}:{line}"
        quoted, bracket, word = (part or "" for part in token.groups())
        if bracket == "(":
            stack.append(_Bracket(where))
            # Every level of the tree is one bracket, with one more for a node's attributes.
            shallow = len(stack) <= NESTING_LIMIT + 2
            expect(shallow, f"too deep: brackets nested more than {NESTING_LIMIT}", where)
        elif len(stack) == 1:
            raise Refused(f"not a tree: {(word or bracket or quoted)[:40]!r}", where)
        elif bracket:
            closed = stack.pop()
            if closed.head in ROLES:
                stack[-1].children.append(closed.node(texts))
            else:
                stack[-1].fields[closed.head] = closed.values
            one_root = len(stack) > 1 or (len(stack[0].children) == 1 and not stack[0].fields)
            reason = f"not a tree: expected one root, not {closed.head[:40]!r}"
            expect(one_root, reason, closed.where)
        elif word and not stack[-1].head:
            stack[-1].head = word
        else:
            stack[-1].values.append(word or quoted)
    holder, *unclosed = stack
    if unclosed:
        last = unclosed[-1]
        raise Refused(f"not a tree: the bracket {last.head!r} is not closed", last.where)
    expect(holder.children, "no text: the file has no tree", holder.where)
    no_gap = sorted(texts) == list(range(1, len(texts) + 1))
    expect(no_gap, "bad tree: leaves are not numbered from 1 on without a gap", holder.where)
    return holder.children[0], [texts[number] for number in sorted(texts)]


@dataclass(slots=True)
class _Unit:
    """A segment (`edu` >= 0, its number) or a group of an `.rs3` file.

    `relation` is that to its parent, and `children` are the units that name it as their parent.
    """

    id: str
    edu: int
    type: str
    parent: str
    relation: str
    children: list[_Unit] = field(default_factory=list)

    def __str__(self) -> str:
        return _node_name(self.id, self.relation)


def parse_rs(
    path: Path, encoding: str = "utf-8", unattached: str = "refuse"
) -> tuple[Node, list[str], int]:
    """Return the tree of an `.rs3` or `.rs4` file, its EDUs' texts, and how many EDUs are left out.

    The texts are in the order of the file. Only the primary tree is read, not the secondary edges
    and signals of eRST. `encoding` is used if the file's XML declaration names none. If
    `unattached` is `omit`, the largest of several trees is read (the first of equally large ones).
    Raises `Refused` if the structure is not one tree, `BadXml` for rejected XML.
    """
    units: dict[str, _Unit] = {}
    texts: list[str] = []
    types: dict[str, set[str]] = defaultdict(set)  # the types that the header gives a relation
    for element in _elements(path, encoding):
        if element.tag == "rel" and element.get("type"):
            types[element.get("name", "")].add(element.get("type"))
        if element.tag not in ("segment", "group"):
            continue
        id, segment = element.get("id", ""), element.tag == "segment"
        is_new = id and id not in units
        expect(is_new, f"bad tree: the unit {id[:40]!r} comes twice, or has no id")
        kind = "segment" if segment else element.get("type", SPAN)
        parent, relation = element.get("parent", ""), element.get("relname", SPAN)
        units[id] = _Unit(id, len(texts) if segment else -1, kind, parent, relation)
        if segment:
            texts.append(" ".join("".join(element.itertext()).split()))
    expect(texts, "no text: the file has no segment")
    for unit in units.values():
        if unit.parent:
            has_parent = unit.parent in units
            expect(has_parent, f"bad tree: the parent of {unit} is {unit.parent[:40]!r}, not there")
            units[unit.parent].children.append(unit)
    # Find the tree: the units under the only (or the largest) root.
    trees = {id: _edus_under(unit) for id, unit in units.items() if not unit.parent}
    if len(trees) != 1 and not (trees and unattached == "omit"):
        sizes = ", ".join(f"{id[:40]!r} over {amount(len(t), 'EDU')}" for id, t in trees.items())
        option = ' (unattached = "omit" reads the largest tree)' if trees else ""
        problem = f"{len(trees)} units have no parent, expected one root"
        raise Refused(f"bad tree: {problem}: {sizes[:200]}{option}")
    root, edus = max(trees.items(), key=lambda tree: len(tree[1]))
    edus_in_trees = set[int]().union(*trees.values())
    for unit in units.values():
        reason = f"bad tree: {unit} is in no tree: its parents lead back to themselves"
        expect(unit.edu < 0 or unit.edu in edus_in_trees, reason)
    expect(len(edus) > 1 or len(trees) == 1, "bad tree: no relation joins two EDUs")
    # Number its EDUs from 0.
    numbers = {edu: number for number, edu in enumerate(sorted(edus))}
    for unit in units.values():
        unit.edu = numbers.get(unit.edu, -1)
    omitted = len(texts) - len(edus)
    tree = _node_of_unit(units[root], types, nucleus=True, relation=SPAN, depth=0)
    return tree, [texts[edu] for edu in numbers], omitted


def _elements(path: Path, encoding: str) -> Iterator[Any]:
    """Yield the elements of an XML file, each when it ends. `encoding` is used if the file does not
    name its encoding. Raises `Refused`, with the line, for a byte that is not in the encoding."""
    start = next(read_chunks(path), b"")
    if start.startswith(codecs.BOM_UTF8):
        encoding = "utf-8"
    elif declared := _DECLARED.match(start):
        try:
            encoding = known_encoding(declared[1].decode())
        except ConfigError as error:
            raise Refused(f"not well-formed XML: {error.message}", f"{path}:1") from None
    text = _ENCODING.sub(r"\1", read_whole(path, encoding), count=1)
    xml = GuardedXml([text.encode()], path)
    parser: Any = ElementTree.XMLPullParser(("end",))
    while chunk := xml.read():
        parser.feed(chunk)
        yield from (element for _, element in parser.read_events())


def _edus_under(root: _Unit) -> list[int]:
    """Return the EDUs of a unit and of all units below it."""
    edus, pending = [], [root]
    while pending:
        unit = pending.pop()
        edus += [unit.edu] if unit.edu >= 0 else []
        pending += unit.children
    return edus


def _nuclei(unit: _Unit, types: Mapping[str, set[str]]) -> set[str]:
    """Return the relations whose children are nuclei of a unit; its other children are satellites.
    `types` has the types of each relation in the file's header: `rst`, `multinuc`, or both."""
    if unit.edu >= 0:
        return set()
    counts = Counter(child.relation for child in unit.children if unit.type == MULTINUCLEAR)
    possible = {name for name in counts if MULTINUCLEAR in types.get(name, EITHER)}
    certain = {name for name in possible if types.get(name) == {MULTINUCLEAR}}
    repeated = {name for name in possible if counts[name] > 1}
    # A relation of both types is for satellites if another relation has two nuclei.
    uncertain = set() if repeated & certain else repeated or possible
    return {SPAN} | certain | uncertain


def _node_of_unit(
    unit: _Unit, types: Mapping[str, set[str]], *, nucleus: bool, relation: str, depth: int
) -> Node:
    """Return the node of a unit of an `.rs3` file and of all units below it.

    In the file a satellite names its nucleus as its parent; in the node it is a sibling of the
    nucleus. A `span` group stands for its nucleus; satellites of the group are a level above those
    of the nucleus. `nucleus` and `relation` are the unit's role in its parent, `depth` its level.
    Raises `Refused` for a group without a nucleus.
    """
    shallow = depth <= NESTING_LIMIT
    expect(shallow, f"too deep: a tree nested more than {NESTING_LIMIT} levels at {unit}")
    nucleus_nodes: list[Node] = []
    satellites: list[Node] = []
    nuclei = _nuclei(unit, types)
    for child in unit.children:
        is_nucleus = child.relation in nuclei
        node = _node_of_unit(
            child, types, nucleus=is_nucleus, relation=child.relation, depth=depth + 1
        )
        (nucleus_nodes if is_nucleus else satellites).append(node)
    if unit.edu < 0 and not nucleus_nodes:
        below = f"; it has {', '.join(map(str, satellites))[:200]}" if satellites else ""
        raise Refused(f"bad tree: {unit} is a group without a nucleus{below}")
    if not satellites:
        return Node(nucleus, relation, unit.edu, nucleus_nodes, unit.id)
    nucleus_alone = Node(edu=unit.edu, children=nucleus_nodes, id=unit.id)
    return Node(nucleus, relation, children=[nucleus_alone, *satellites], id=unit.id)


class _Subtree(NamedTuple):
    """A finished subtree: its number in the tree, its `first` and `last` EDU, whether it is a
    nucleus, and the relation to its sibling."""

    number: int
    first: int
    last: int
    nucleus: bool
    relation: str
    name: str
    """The node, for a message."""


def binary_tree(root: Node, edus: Spans) -> RstTree:
    """Return the binary tree of the nodes under `root`; `edus` are the spans of all EDUs.

    Raises `Refused` if the tree does not cover every EDU once and in order, or has a node without
    any nucleus.
    """
    tree = RstTree(list(edus.start), list(edus.end))
    _, first, last, *_ = _add_subtree(tree, root)
    covers_all = (first, last) == (0, len(edus) - 1)
    expect(covers_all, f"bad tree: it covers the EDUs {first + 1} to {last + 1} of {len(edus)}")
    return tree


def _add_subtree(tree: RstTree, node: Node) -> _Subtree:
    """Add the binary nodes of `node` to `tree`; return the subtree. Each nucleus is joined with the
    satellites up to the next nucleus, then the nuclei with each other from the last one on, then
    the result with the satellites after it, at last with those before it. Raises `Refused` for
    several children without a nucleus."""
    if not node.children:
        return _Subtree(node.edu, node.edu, node.edu, node.nucleus, node.relation, str(node))
    parts = [_add_subtree(tree, child) for child in node.children]
    parts.sort(key=lambda part: part.first)
    nuclei = [index for index, part in enumerate(parts) if part.nucleus]
    whole = parts[0]
    if len(parts) > 1:
        names = ", ".join(part.name for part in parts)[:200]
        first = parts[0].first + 1
        expect(nuclei, f"bad tree: no nucleus over the EDUs from {first} on, only {names}")
        wholes: list[_Subtree] = []  # each nucleus with the satellites between it and the next one
        for part in parts[nuclei[0] : nuclei[-1] + 1]:
            if part.nucleus:
                wholes.append(part)
            else:
                wholes[-1] = _join(tree, wholes[-1], part, part.relation, "NS")
        whole = wholes[-1]
        for part in reversed(wholes[:-1]):
            relations = [p.relation for p in (part, whole) if p.relation != SPAN]
            whole = _join(tree, part, whole, relations[0] if relations else SPAN, "NN")
        for part in parts[nuclei[-1] + 1 :]:
            whole = _join(tree, whole, part, part.relation, "NS")
        for part in reversed(parts[: nuclei[0]]):
            whole = _join(tree, part, whole, part.relation, "SN")
    return whole._replace(nucleus=node.nucleus, relation=node.relation, name=str(node))


def _join(
    tree: RstTree, left: _Subtree, right: _Subtree, relation: str, nuclearity: str
) -> _Subtree:
    """Add a binary node over two subtrees; `nuclearity` is `NS`, `SN` or `NN`. Raises `Refused` if
    the second one does not begin where the first one ends."""
    expect(
        left.last + 1 == right.first,
        f"bad tree: EDU {left.last + 1} is joined with EDU {right.first + 1}"
        f" by {left.name} and {right.name}"
        " (a node crosses another one, or an EDU comes twice or never)",
    )
    tree.left.append(left.number)
    tree.right.append(right.number)
    tree.relation.append(relation)
    tree.nuclearity.append(nuclearity)
    number = len(tree) + len(tree.left) - 1
    # For its parent, a nucleus keeps the role it had before it took its satellite.
    role = {"NS": left.relation, "SN": right.relation, "NN": relation}[nuclearity]
    nucleus = right if nuclearity == "SN" else left
    return _Subtree(number, left.first, right.last, True, role, nucleus.name)
