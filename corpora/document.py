"""A document and its layers.

A `Document` is a text (paragraphs joined by one blank line) and optional *layers* of plain
columns over it. All spans are `[start, end)` in code points of `Document.text`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

PARAGRAPH_BREAK = "\n\n"
NO_CHAT = -2
"""The conversation of all turns of a text with several speakers, such as an interview."""

Span = tuple[int, int]


@dataclass(slots=True)
class Spans:
    """Parallel columns `start`, `end`: one span in each row, in the order of the text."""

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Span]:
        return iter(zip(self.start, self.end, strict=True))

    def __getitem__(self, index: int) -> Span:
        return self.start[index], self.end[index]

    def add(self, start: int, end: int) -> None:
        self.start.append(start)
        self.end.append(end)


@dataclass(slots=True)
class Sections:
    """Sections in order: level (1 = lead, 2 = `==`), heading ("" for the lead), span."""

    level: list[int] = field(default_factory=list)
    heading: list[str] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.level)

    def at(self, start: int) -> int | None:
        """Return the index of the section that contains the offset `start`.

        Returns None before the first section and between two sections: a title or heading may stand
        there as a paragraph of the text. Sections cover the whole text if it has no headings.
        """
        number = bisect_right(self.start, start) - 1
        return number if number >= 0 and start < self.end[number] else None


@dataclass(slots=True)
class Turns:
    """Turns: speaker, conversation id (-1 if unknown, `NO_CHAT` if there is none), span."""

    speaker: list[str] = field(default_factory=list)
    conversation: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.speaker)


@dataclass(slots=True)
class Tokens:
    """Gold tokens and trees. Sentence `i` holds the tokens `offsets[i]:offsets[i + 1]`.

    `head` is the index of the head within the whole document's tokens, -1 for a root.
    Words of one multiword token that are not substrings of it share its span.
    """

    form: list[str] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    xpos: list[str] = field(default_factory=list)
    feats: list[str] = field(default_factory=list)
    deprel: list[str] = field(default_factory=list)
    head: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=lambda: [0])

    def __len__(self) -> int:
        return len(self.form)


@dataclass(slots=True)
class RstTree:
    """A binary rhetorical structure tree over elementary discourse units (EDUs).

    EDU `i` of `n` has the span `start[i]:end[i]`; the EDUs are in the order of the text. Row `k` of
    the other columns is an inner node: `left[k]` and `right[k]` are its children, an EDU if the
    number is below `n`, else the inner node `number - n`. Children precede their parent, so the
    last row is the root; there are `n - 1` rows. `nuclearity` is `NS` (the left child is the
    nucleus), `SN` or `NN`; `relation` is the satellite's, or the one that the nuclei share, as the
    annotators named it.
    """

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    relation: list[str] = field(default_factory=list)
    nuclearity: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of EDUs."""
        return len(self.start)

    def edus(self, node: int) -> range:
        """Return the EDUs that a node covers, numbered as in `left` and `right`."""
        first = last = node
        while first >= len(self):
            first = self.left[first - len(self)]
        while last >= len(self):
            last = self.right[last - len(self)]
        return range(first, last + 1)


@dataclass(frozen=True, slots=True)
class Relation:
    """One gold discourse relation; each part is a list of spans, possibly empty.

    `kind` is `Explicit`, `Implicit`, `AltLex`, ...; `connective` is the annotated head, or the text
    under its spans, in lower case, `senses` are PDTB senses such as `Contingency.Cause.Reason`;
    `where` is `file:line`.
    """

    kind: str
    connective: str
    connective_spans: tuple[Span, ...]
    arg1_spans: tuple[Span, ...]
    arg2_spans: tuple[Span, ...]
    senses: tuple[str, ...] = ()
    where: str = ""


@dataclass(slots=True)
class Document:
    """A text and its metadata and layers; `None` for a layer that its source lacks.

    `group` is the unit that splits keep together (a book, a file). `licence` is an SPDX identifier
    or another id of the table of `corpora.licences`. `author` names the authors, `; ` between them.
    `split` is the split that the path of its file names: train, validation, test or "". `sentences`
    are the source's gold sentences, if any, until a splitter's result replaces them.
    """

    id: str
    text: str
    group: str = ""
    source: str = ""
    licence: str = ""
    language: str = "en"
    title: str = ""
    url: str = ""
    author: str = ""
    split: str = ""
    categories: tuple[str, ...] = ()
    sections: Sections | None = None
    paragraphs: Spans | None = None
    sentences: Spans | None = None
    turns: Turns | None = None
    tokens: Tokens | None = None
    relations: list[Relation] | None = None
    rst: RstTree | None = None

    def __post_init__(self) -> None:
        if not self.group:
            self.group = self.id
        if self.paragraphs is None:
            self.paragraphs = paragraph_spans(self.text)

    @property
    def is_chat(self) -> bool:
        """Whether the document is a log of conversations; an interview has turns, but is none."""
        return self.turns is not None and self.turns.conversation[:1] != [NO_CHAT]

    def sentence_texts(self) -> list[str]:
        """Return the text of each sentence, with white space folded to single spaces.

        Raises `ValueError` for a document whose sentences were not split.
        """
        if self.sentences is None:
            raise ValueError(f"document {self.id!r} has no sentence layer; split it first")
        return [" ".join(self.text[a:b].split()) for a, b in self.sentences]

    def with_sentences(self, sentences: Spans) -> Document:
        """Return a copy of the document with this layer of sentences."""
        return replace(self, sentences=sentences)


def paragraph_spans(text: str) -> Spans:
    """Return the spans of the paragraphs of `text`, which are separated by one blank line."""
    spans, start = Spans(), 0
    for paragraph in text.split(PARAGRAPH_BREAK):
        if paragraph:
            spans.add(start, start + len(paragraph))
        start += len(paragraph) + len(PARAGRAPH_BREAK)
    return spans
