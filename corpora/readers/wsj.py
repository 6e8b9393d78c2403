"""`wsj:` the raw Wall Street Journal of the Penn Treebank (`raw/wsj/00/wsj_0001`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers.files import find_files
from corpora.readers.layouts import with_sentences
from corpora.readers.source import Refused, Source
from corpora.readers.whole import encoding_of, read_whole

SUFFIXES = (".txt",)
OPTIONS = frozenset({"encoding"})
LICENCE = "LDC"

START = ".START"


def find(target: str) -> list[Path]:
    """The files `wsj_*` of a folder (`raw/wsj/00/wsj_0001`), or the files that are named."""
    found = find_files(target, ("",), kind="wsj")
    files = [path for path in found if path.name.startswith("wsj_")]
    if files or not Path(target).expanduser().is_dir():
        return files or found
    raise InputError(
        f"no file wsj_* in folder {target!r}",
        hint="wsj: wants the Penn Treebank's raw text, FOLDER/00/wsj_0001 and so on",
    )


def read(source: Source) -> Iterator[Document]:
    """A document a file of the Penn Treebank's raw Wall Street Journal.

    Every line is a sentence (the sentence layer), blank lines separate paragraphs, the lines
    `.START` are dropped. Id and group are the path below the folder (`00/wsj_0001`).
    """
    encoding = encoding_of(source)
    for path in source.files:
        try:
            yield _article(read_whole(path, encoding), source.stem(path, SUFFIXES), source)
        except Refused as refusal:
            reason = str(refusal)
            if reason.startswith("not UTF-8"):
                reason += " (a file of the treebank? set encoding to latin-1)"
            source.refuse(refusal.where or str(path), reason)


def _article(text: str, name: str, source: Source) -> Document:
    lines = ["" if line.strip() == START else line.strip() for line in text.split("\n")]
    blocks = [list(block) for filled, block in groupby(lines, bool) if filled]
    if not blocks:
        raise Refused("no text: the file has none")
    text, paragraphs, sentences = with_sentences(blocks)
    return Document(
        id=name, text=text, language=source.language, paragraphs=paragraphs, sentences=sentences
    )
