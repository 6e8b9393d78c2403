"""`rst:` rhetorical structure trees: RST-DT (`.dis`) and rstWeb (`.rs3`, `.rs4`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from corpora.align import align, map_spans
from corpora.document import PARAGRAPH_BREAK, Document, Spans
from corpora.errors import InputError
from corpora.readers.base import Encoding, Reader
from corpora.readers.files import find_files, read_whole
from corpora.readers.rst_files import PARAGRAPH_MARK, parse_dis, parse_rs
from corpora.readers.rst_tree import Node, binary_tree
from corpora.readers.source import Refused, Source, check_unicode, joined, paragraphs_of
from corpora.readers.xmlguard import BadXml

_STEMS = (".out.dis", ".dis", ".rs3", ".rs4")


class Rst(Reader):
    """RST trees: RST-DT .dis, rstWeb .rs3 and .rs4."""

    name = "rst"
    suffixes = (".dis", ".rs3", ".rs4")

    text: Literal["raw", "edus", "tree"] | None = None
    """What the text of `.dis` is taken from; without it from the first of these that is there."""
    encoding: Encoding = "utf-8"
    """The encoding of `.dis` and the files beside it."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """The trees and, for `.dis`, the raw texts and `.edus` beside them."""
        trees = find_files(target, cls.suffixes, kind=cls.name)
        return sorted({*trees, *(file for tree in trees for file in _beside(tree).values())})

    def read(self, source: Source) -> Iterator[Document]:
        """A document a tree: its EDUs and the binary tree in the layer `rst`.

        The text of `.rs3` and `.rs4` are its EDUs, joined by spaces. That of `.dis` comes from
        the raw text beside it, from `.edus`, or from the tree's own texts.
        """
        trees = [path for path in source.files if path.suffix in self.suffixes]
        if not trees:
            raise InputError(f"no tree in {source.target!r}", hint="rst: reads .dis, .rs3 and .rs4")
        for path in trees:
            name = source.stem(path, _STEMS)
            with source.refusing(path):
                try:
                    if path.suffix == ".dis":
                        document = self._from_dis(path, name)
                        document.licence = str(self.licence or "LDC")
                    else:
                        root, texts = parse_rs(path)
                        document = _document(name, root, texts, [[*range(len(texts))]])
                except BadXml as error:
                    raise Refused(error.message, error.where) from None
                except Refused as refusal:
                    if refusal.where.isdigit():
                        refusal.where = f"{path}:{refusal.where}"
                    raise
                document.language = source.language
                yield document

    def _from_dis(self, path: Path, name: str) -> Document:
        root, texts = parse_dis(read_whole(path, self.encoding))
        beside = _beside(path)
        if self.text in ("raw", "edus") and self.text not in beside:
            raise Refused(f"no text: the tree has no file with its {self.text} beside it")
        if "edus" in beside and self.text != "tree":
            lines = read_whole(beside["edus"], self.encoding).split("\n")
            edus = [line.strip() for line in lines if line.strip()]
            if len(edus) != len(texts):
                reason = f"{len(edus)} EDUs, but the tree has {len(texts)} leaves"
                raise Refused(f"bad EDUs: {reason}", str(beside["edus"]))
            marks = [
                PARAGRAPH_MARK if text.rstrip().endswith(PARAGRAPH_MARK) else "" for text in texts
            ]
            texts = [f"{edu}{mark}" for edu, mark in zip(edus, marks, strict=True)]
        if "raw" in beside and self.text in (None, "raw"):
            raw = read_whole(beside["raw"], self.encoding)
            raw = raw.replace(PARAGRAPH_MARK, PARAGRAPH_BREAK)
            return _over_raw(name, root, texts, raw, str(path))
        return _document(name, root, *_paragraphs(texts))


def _beside(tree: Path) -> dict[str, Path]:
    """The raw text (`wsj_0601.out` of `wsj_0601.out.dis`) and the EDUs, those that are there."""
    if tree.suffix != ".dis":
        return {}
    base = tree.with_suffix("")
    files = {"raw": base, "edus": base.with_name(base.name + ".edus")}
    return {name: path for name, path in files.items() if path.is_file()}


def _paragraphs(texts: list[str]) -> tuple[list[str], list[list[int]]]:
    """The EDUs without paragraph marks, and their numbers paragraph by paragraph."""
    paragraphs: list[list[int]] = [[]]
    plain: list[str] = []
    for number, text in enumerate(texts):
        paragraphs[-1].append(number)
        plain.append(" ".join(text.replace(PARAGRAPH_MARK, " ").split()))
        if text.rstrip().endswith(PARAGRAPH_MARK):
            paragraphs.append([])
    return plain, [block for block in paragraphs if block]


def _document(name: str, root: Node, edus: list[str], paragraphs: list[list[int]]) -> Document:
    """A document whose text are its EDUs, with a space between them."""
    if "" in edus:
        raise Refused(f"no text: EDU {edus.index('') + 1} is empty")
    blocks = [" ".join(edus[i] for i in block) for block in paragraphs]
    text, layer = joined(blocks)
    spans = Spans()
    for (at, _), block in zip(layer, paragraphs, strict=True):
        for number in block:
            spans.add(at, at + len(edus[number]))
            at += len(edus[number]) + 1
    tree = binary_tree(root, spans)
    return Document(id=name, text=text, paragraphs=layer, rst=tree)


def _over_raw(name: str, root: Node, texts: list[str], raw: str, where: str) -> Document:
    """A document of the raw text, on which the EDUs are laid: only white space may differ."""
    edus, _ = _paragraphs(texts)
    text, layer = joined(paragraphs_of(raw))
    source = " ".join(edus)
    check_unicode(source)
    at, spans = 0, []
    for edu in edus:
        spans.append((at, at + len(edu)))
        at += len(edu) + 1
    try:
        found = map_spans(align(source, text, where=where), spans)
    except InputError as error:
        raise Refused(f'EDUs differ: {error.message} (text = "edus" reads without it)') from None
    if len(found) != len(edus):
        raise Refused("no text: an EDU is empty")
    rst = Spans([a for a, _ in found], [b for _, b in found])
    tree = binary_tree(root, rst)
    return Document(id=name, text=text, paragraphs=layer, rst=tree)
