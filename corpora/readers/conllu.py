"""`conllu:` CoNLL-U treebanks: text, paragraphs, headings, gold sentences and gold trees.

The text is rebuilt from the forms and `SpaceAfter=No`; `# text` comments, enhanced dependencies
and the rest of MISC (GUM's `PDTB=` is a gold label) are never read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corpora.document import PARAGRAPH_BREAK, Document, Sections, Spans, Tokens
from corpora.errors import BadRecord, ConfigError
from corpora.readers.base import Reader
from corpora.readers.conllu_sentence import add_sentence
from corpora.readers.files import read_lines
from corpora.readers.source import DOCUMENT_LIMIT, Refused, Source


class Conllu(Reader):
    """CoNLL-U with gold tokens, sentences and trees."""

    name = "conllu"
    suffixes = (".conllu", ".conllu.gz")
    by_genre = True

    def read(self, source: Source) -> Iterator[Document]:
        """The documents of CoNLL-U files.

        The id is `newdoc id`, or the file's path without suffix; the group is the file, or the
        document where it is the only one of its file. A document with a bad sentence is refused
        as a whole: its text would have a hole.
        """
        for path in source.files:
            stem = source.stem(path, self.suffixes)
            held: Document | None = None
            for number, building in enumerate(_of_file(path, stem, source)):
                document = building.document()
                if document is not None:
                    document.licence = self._licence(building)
                if number == 0:
                    held = document
                    continue
                for ready in (held, document):
                    if ready is not None:
                        ready.group = stem
                        yield ready
                held = None
            if held is not None:
                yield held

    def _licence(self, building: _Building) -> str:
        """The licence option, which may be a table by `meta::genre`; "" where there is none."""
        if isinstance(self.licence, str):
            return self.licence
        licence = self.licence.get(building.genre, self.licence.get("default"))
        if licence is None:
            raise ConfigError(
                f"no licence for the genre {building.genre!r} of {building.where}",
                where="source conllu: licence",
                hint='add the genre to the table, or the key "default"',
            )
        return licence


def _of_file(path: Path, stem: str, source: Source) -> Iterator[_Building]:
    """The documents of a file, each whole."""
    building = _Building(stem, f"{path}:1", path, source)
    comments: list[str] = []
    lines: list[str] = []
    count = number = 0
    for number, line in enumerate(read_lines(path), 1):
        if isinstance(line, BadRecord):
            building.refuse(line.where, line.reason, line.value)
        elif not line or line.isspace():
            building.add(comments, lines, number)
            comments, lines = [], []
        elif line[0] != "#":
            lines.append(line)
        elif lines:
            building.refuse(f"{path}:{number}", "comment: between the words of a sentence", line)
        elif line.startswith("# newdoc"):
            if building.begun or count:
                yield building
            count += 1
            name = line.partition("=")[2].strip() or f"{stem}:{count:06d}"
            building = _Building(name, f"{path}:{number}", path, source)
        else:
            comments.append(line)
    building.add(comments, lines, number + 1)
    if building.begun or count:
        yield building


class _Building:
    """A document that grows sentence by sentence."""

    def __init__(self, name: str, where: str, path: Path, source: Source) -> None:
        self.name, self.where, self.path, self.source = name, where, path, source
        self.meta: dict[str, str] = {}
        self.pieces: list[str] = []
        self.at = 0
        self.glued = False
        self.paragraphs, self.sentences, self.tokens = Spans(), Spans(), Tokens()
        self.headings: list[bool] = []
        self.sentence_ids: set[str] = set()
        self.refused = False

    @property
    def begun(self) -> bool:
        return bool(self.pieces) or self.refused or bool(self.meta)

    def refuse(self, where: str, reason: str, value: str = "") -> None:
        """Refuse the document, once."""
        if not self.refused:
            self.refused = True
            reason = f"{reason} (document {self.name!r})"
            self.source.refuse(BadRecord(where, reason, value[:200]))

    def add(self, comments: list[str], lines: list[str], after: int) -> None:
        """Add the sentence of `lines`, the last of which is the one before line `after`."""
        new_paragraph, heading = not self.pieces, False
        for comment in comments:
            key, _, value = comment[1:].partition("=")
            key, value = key.strip(), value.strip()
            if key.startswith("newpar"):
                new_paragraph = True
                heading |= key == "newpar_block" and _is_heading(value)
            elif key.startswith("meta::"):
                self.meta[key.removeprefix("meta::")] = value
            elif key == "sent_id":
                if value in self.sentence_ids:
                    where = f"{self.path}:{after - len(lines)}"
                    self.refuse(where, f"sentence id: {value!r} comes twice")
                self.sentence_ids.add(value)
        if not lines or self.refused:
            return
        gap = PARAGRAPH_BREAK if new_paragraph else "" if self.glued else " "
        at = self.at + (len(gap) if self.pieces else 0)
        try:
            if at > DOCUMENT_LIMIT:
                raise Refused(f"too long: more than {DOCUMENT_LIMIT:,} characters")
            text, self.glued = add_sentence(lines, at, self.tokens)
        except Refused as refusal:
            line = int(refusal.where or 0)
            self.refuse(f"{self.path}:{after - len(lines) + line}", str(refusal), lines[line])
            return
        if self.pieces:
            self.pieces.append(gap)
        self.pieces.append(text)
        self.at = at + len(text)
        self.sentences.add(at, self.at)
        if new_paragraph:
            self.paragraphs.add(at, self.at)
            self.headings.append(heading)
        else:
            self.paragraphs.end[-1] = self.at

    @property
    def genre(self) -> str:
        return self.meta.get("genre", "")

    def document(self) -> Document | None:
        """The finished document, or `None` if it was refused."""
        if not self.pieces:
            self.refuse(self.where, "no text: a document without a sentence")
        if self.refused:
            return None
        text = "".join(self.pieces)
        return Document(
            id=self.name,
            text=text,
            language=self.source.language,
            title=self.meta.get("title", ""),
            url=self.meta.get("sourceURL", ""),
            categories=(self.genre,) if self.genre else (),
            sections=self._sections(text) if any(self.headings) else None,
            paragraphs=self.paragraphs,
            sentences=self.sentences,
            tokens=self.tokens,
        )

    def _sections(self, text: str) -> Sections:
        """Sections between the headings: what stands before them or under the title is the lead.

        A heading's depth is not known: all are of level 2. A span covers the paragraphs below
        the heading, not the heading, which is a paragraph of the text.
        """
        sections = Sections([1], [""], [0], [0])
        title = self.meta.get("title", "").casefold()
        for (start, end), heading in zip(self.paragraphs, self.headings, strict=True):
            if not heading:
                if sections.start[-1] == sections.end[-1]:
                    sections.start[-1] = start
                sections.end[-1] = end
            elif start or text[start:end].casefold() != title:
                sections.level.append(2)
                sections.heading.append(text[start:end])
                sections.start.append(end)
                sections.end.append(end)
        if not sections.end[0]:
            for column in (sections.level, sections.heading, sections.start, sections.end):
                del column[0]
        return sections


def _is_heading(blocks: str) -> bool:
    """Whether a `newpar_block` value (`head rend:::"bold" (1 s) | ...`) names a heading."""
    return any(block.split(None, 1)[0] == "head" for block in blocks.split("|") if block.strip())
