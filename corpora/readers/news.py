"""News: `cnn:` (Hermann et al. 2015) and `wsj:`, the Penn Treebank's raw Wall Street Journal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers.base import Encoding, Reader
from corpora.readers.files import find_files, read_whole
from corpora.readers.layouts import as_document, with_sentences
from corpora.readers.source import Refused, Source, paragraphs_of

START = ".START"
_HIGHLIGHT = "@highlight"


class Cnn(Reader):
    """CNN and Daily Mail .story files, without their highlights."""

    name = "cnn"
    suffixes = (".story", ".story.gz")

    encoding: Encoding = "utf-8"
    """The encoding of the files."""

    def read(self, source: Source) -> Iterator[Document]:
        """A document a file. `@highlight` and the paragraph after it, a point of the summary, are
        dropped."""
        for path in source.files:
            with source.refusing(path):
                record = {"paragraphs": _body(paragraphs_of(read_whole(path, self.encoding)))}
                yield as_document(record, source, source.stem(path, self.suffixes))


def _body(paragraphs: list[str]) -> list[str]:
    body: list[str] = []
    highlight = False
    for paragraph in paragraphs:
        if paragraph.startswith(_HIGHLIGHT):
            # Some files have the point on the line after the mark, without a blank line.
            highlight = paragraph == _HIGHLIGHT
        elif highlight:
            highlight = False
        else:
            body.append(paragraph)
    return body


class Wsj(Reader):
    """The Penn Treebank's raw Wall Street Journal (`raw/wsj/00/wsj_0001`)."""

    name = "wsj"
    suffixes = (".txt",)
    own_licence = "LDC"

    encoding: Encoding = "utf-8"
    """The encoding of the files: `latin-1` where it is needed."""

    @classmethod
    def find(cls, target: str) -> list[Path]:
        """The files `wsj_*` of a folder, or the files that are named."""
        files = find_files(target, ("",), kind=cls.name)
        articles = [path for path in files if path.name.startswith("wsj_")]
        if articles or not Path(target).expanduser().is_dir():
            return articles or files
        raise InputError(
            f"no file wsj_* in folder {target!r}",
            hint="wsj: wants the Penn Treebank's raw text, FOLDER/00/wsj_0001 and so on",
        )

    def read(self, source: Source) -> Iterator[Document]:
        """A document a file. Every line is a sentence (the sentence layer), blank lines separate
        paragraphs, the lines `.START` are dropped."""
        for path in source.files:
            with source.refusing(path):
                lines = [line.strip() for line in self._text(path).split("\n")]
                kept = ["" if line == START else line for line in lines]
                blocks = [list(block) for filled, block in groupby(kept, bool) if filled]
                if not blocks:
                    raise Refused("no text: the file has none")
                text, paragraphs, sentences = with_sentences(blocks)
                yield Document(
                    id=source.stem(path, self.suffixes),
                    text=text,
                    language=source.language,
                    paragraphs=paragraphs,
                    sentences=sentences,
                )

    def _text(self, path: Path) -> str:
        try:
            return read_whole(path, self.encoding)
        except Refused as refusal:
            if not str(refusal).startswith("not UTF-8"):
                raise
            hint = " (a file of the treebank? set encoding to latin-1)"
            raise Refused(f"{refusal}{hint}", refusal.where) from None
