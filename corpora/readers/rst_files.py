"""Files of rhetorical structure trees: `.dis` of the RST Discourse Treebank, trees in brackets, and
`.rs3` and `.rs4` of RSTTool and rstWeb, segments and groups that name a parent."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from corpora.readers.files import read_chunks
from corpora.readers.rst_tree import NESTING_LIMIT, SPAN, Node
from corpora.readers.source import DOCUMENT_LIMIT, Refused
from corpora.readers.xmlguard import GuardedXml

MULTINUCLEAR = "multinuc"
ROLES = ("Root", "Nucleus", "Satellite")
PARAGRAPH_MARK = "<P>"

_TOKEN = re.compile(r"_!(.*?)_!|([()])|([^\s()]+)", re.DOTALL)
_NOISE = re.compile(r"^//TT_ERR.*$", re.MULTILINE)


@dataclass(slots=True)
class _Open:
    """A bracket that is not closed yet: its head and what stands in it."""

    line: int
    head: str = ""
    values: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)


def parse_dis(text: str) -> tuple[Node, list[str]]:
    """The tree of a `.dis` file and its EDUs' texts (with `<P>` at the end of a paragraph).

    Raises `Refused`, with the line number as its place, if the brackets do not close, a node
    has no role, no span and no leaf number, or leaves are not numbered 1 to n.
    """
    text = _NOISE.sub("", text)
    stack: list[_Open] = []
    texts: dict[int, str] = {}
    root: Node | None = None
    for line, quoted, bracket, word in _tokens(text):
        if bracket == "(":
            stack.append(_Open(line))
            # Every level of the tree is one bracket, with one more for a node's attributes.
            if len(stack) > NESTING_LIMIT + 1:
                raise Refused(f"too deep: brackets nested more than {NESTING_LIMIT}", str(line))
        elif not stack:
            raise Refused(f"not a tree: {(word or bracket or quoted)[:40]!r}", str(line))
        elif bracket == ")":
            node = _close(stack, texts)
            if node is not None and root is not None:
                raise Refused("not a tree: a second root", str(line))
            root = node or root
        elif word and not stack[-1].head:
            stack[-1].head = word
        else:
            stack[-1].values.append(word or quoted)
    if stack:
        head, line = stack[-1].head, stack[-1].line
        raise Refused(f"not a tree: the bracket {head!r} is not closed", str(line))
    if root is None:
        raise Refused("no text: the file has no tree", "1")
    if sorted(texts) != list(range(1, len(texts) + 1)):
        raise Refused("bad tree: leaves are not numbered from 1 on without a gap", "1")
    return root, [texts[number] for number in sorted(texts)]


def _tokens(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Line, quoted text, bracket, word: one of the last three is there."""
    line, at = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        yield line, found[1] or "", found[2] or "", found[3] or ""


def _close(stack: list[_Open], texts: dict[int, str]) -> Node | None:
    """Close the innermost bracket; the root, if it was the last one."""
    done = stack.pop()
    if done.head not in ROLES:
        if not stack:
            raise Refused(f"not a tree: expected a root, not {done.head[:40]!r}", str(done.line))
        stack[-1].fields[done.head] = done.values
        return None
    relation = " ".join(done.fields.get("rel2par", [])) or SPAN
    node = Node(done.head != "Satellite", relation, children=done.children)
    leaf = done.fields.get("leaf")
    if leaf is not None or not done.children:
        number = leaf[0] if leaf else ""
        if done.children or not (number.isascii() and number.isdigit() and len(number) < 9):
            reason = f"bad tree: a {done.head} that is neither a leaf nor a span"
            raise Refused(reason, str(done.line))
        if int(number) in texts:
            raise Refused(f"bad tree: the leaf {number} comes twice", str(done.line))
        node.edu = int(number) - 1
        texts[int(number)] = " ".join(done.fields.get("text", []))
    if not stack:
        return node
    stack[-1].children.append(node)
    return None


@dataclass(slots=True)
class _Unit:
    """A segment (`edu` >= 0) or a group, with the units that name it as their parent."""

    edu: int
    type: str
    parent: str
    relation: str
    children: list[_Unit] = field(default_factory=list)


def parse_rs(path: Path) -> tuple[Node, list[str]]:
    """The tree of an `.rs3` or `.rs4` file and its EDUs' texts, in the order of the file.

    The primary tree only: the secondary edges and signals of eRST are not read. Raises
    `Refused` for another structure than one tree, `BadXml` for XML that is not taken.
    """
    units, texts, types = _units(path)
    roots = [unit for unit in units.values() if not unit.parent]
    if len(roots) != 1:
        raise Refused(f"bad tree: {len(roots)} units have no parent, expected one root")
    for unit in units.values():
        if unit.parent:
            if unit.parent not in units:
                raise Refused(f"bad tree: a parent is {unit.parent[:40]!r}, which is not there")
            units[unit.parent].children.append(unit)
    return _node(roots[0], types, True, SPAN, 0), texts


def _units(path: Path) -> tuple[dict[str, _Unit], list[str], dict[str, set[str]]]:
    """Segments and groups by id, the segments' texts, and the types that the header gives each
    relation."""
    xml, size = GuardedXml(read_chunks(path), path), 0
    parser: Any = ElementTree.XMLPullParser(("end",))
    units: dict[str, _Unit] = {}
    texts: list[str] = []
    types: dict[str, set[str]] = defaultdict(set)
    while chunk := xml.read():
        parser.feed(chunk)
        size += len(chunk)
        if size > DOCUMENT_LIMIT:
            raise Refused(f"too long: more than {DOCUMENT_LIMIT >> 20} MiB")
        for _, element in parser.read_events():
            if element.tag == "rel":
                types[element.get("name", "")].add(element.get("type", ""))
            if element.tag not in ("segment", "group"):
                continue
            id, segment = element.get("id", ""), element.tag == "segment"
            if not id or id in units:
                raise Refused(f"bad tree: the unit {id[:40]!r} comes twice, or has no id")
            units[id] = _Unit(
                edu=len(texts) if segment else -1,
                type="segment" if segment else element.get("type", SPAN),
                parent=element.get("parent", ""),
                relation=element.get("relname", SPAN),
            )
            if segment:
                texts.append(" ".join("".join(element.itertext()).split()))
    if not texts:
        raise Refused("no text: the file has no segment")
    return units, texts, types


def _node(
    unit: _Unit, types: Mapping[str, set[str]], nucleus: bool, relation: str, depth: int
) -> Node:
    """A unit with its satellites: a satellite, which names its nucleus, becomes a sibling of it.

    A `span` group stands for its nucleus; satellites of the group stand a level above those of the
    nucleus.
    """
    if depth > NESTING_LIMIT:
        raise Refused(f"too deep: a tree nested more than {NESTING_LIMIT} levels")
    inner: list[Node] = []
    around: list[Node] = []
    for child in unit.children:
        known = types.get(child.relation)
        several = unit.type == MULTINUCLEAR and (not known or MULTINUCLEAR in known)
        within = unit.edu < 0 and (child.relation == SPAN or several)
        node = _node(child, types, within, child.relation, depth + 1)
        (inner if within else around).append(node)
    if unit.edu < 0 and not inner:
        raise Refused("bad tree: a group without a nucleus")
    core = Node(edu=unit.edu, children=inner)
    if not around:
        core.nucleus, core.relation = nucleus, relation
        return core
    return Node(nucleus, relation, children=[core, *around])
