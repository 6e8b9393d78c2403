"""`conllu:` CoNLL-U treebanks: text, paragraphs, headings, gold sentences and gold trees.

The text is rebuilt from the forms and `SpaceAfter=No`; `# text` comments, enhanced dependencies and
the rest of MISC (GUM's `PDTB=` is a gold label) are never read. Consecutive sentences of a speaker
(`# speaker`) are a turn, if the text has several. Written by hand because it is three times as fast
as the package `conllu`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from corpora.document import NO_CHAT, PARAGRAPH_BREAK, Document, Sections, Spans, Tokens, Turns
from corpora.errors import BadRecord, InputError, amount
from corpora.readers.files import DOCUMENT_LIMIT, LINES_LIMIT, TOO_LONG, Refused, expect, read_lines
from corpora.readers.source import Reader, SeenIds, Source

_CAPTION = re.compile(r"\s*caption\b.*\((\d{1,3}) s\)\s*$")
"""A caption in `newpar_block`, with its number of sentences: `caption (2 s)`."""
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")  # the word numbers of a multiword token: 3-4
_LONGEST_MULTIWORD = 99  # words in a multiword token; more are a slip of the number
_EMPTY_NODE = re.compile(r"\d+\.\d+")  # the number of an empty node: 8.1
MASKED = (
    "masked text: underscores stand for the words; the corpus's own script restores them "
    "(DISRPT: process_underscores.py, GUM: get_text.py)"
)
BROKEN = "broken trees: words and sentences are read, no trees"

Unit = tuple[str, str, int]
"""A word, or a multiword token, of the written text: its form, MISC, number of words in it."""


class BrokenTree(Refused):
    """The heads of a sentence do not make a tree."""


class Conllu(Reader):
    """CoNLL-U with gold tokens, sentences and trees."""

    name = "conllu"
    suffixes = (".conllu", ".conllu.gz")
    licence_by = "genre"
    trees: ClassVar[bool] = True
    """Whether a document must have trees: else one with broken trees has text and sentences, and a
    word may have nine columns."""

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the documents of a CoNLL-U file.

        The id is `newdoc id`, or the file's path without suffix; the group is the file, or the
        document if its file has only one. A document with a bad sentence is rejected as a whole:
        its text would have a gap. One whose words are masked by underscores is skipped. Raises
        `InputError` if a document continues after another one began.
        """
        seen_ids = SeenIds()
        first: Document | None = None  # waits until it is known whether another one follows
        for number, builder in enumerate(_document_builders(path, stem, source, self.trees)):
            document = builder.document()
            if document is not None and not seen_ids.add(document.id):
                raise InputError(
                    f"two documents have the id {document.id!r}",
                    where=builder.where,
                    hint="this `newdoc id` stands in the file before, with another one between: "
                    "move its sentences together, or rename one of the two",
                )
            if document is not None:
                document.licence = self.licence_of(builder.meta.get("genre", ""))
            if number == 0:
                first = document
                continue
            for one_of_several in filter(None, (first, document)):
                one_of_several.group = stem
                source.where = path if one_of_several is first else builder.where
                yield one_of_several
            first = None
        if first is not None:
            yield first


def _document_builders(
    path: Path, stem: str, source: Source, trees: bool
) -> Iterator[_DocumentBuilder]:
    """Yield a builder for each document of a file, when it has all of the document's sentences."""
    builder = _DocumentBuilder(stem, f"{path}:1", source, trees)
    comments: list[str] = []
    lines: list[str] = []
    count = size = 0
    for number, line in enumerate(chain(read_lines(path), [""]), 1):
        where = f"{path}:{number}"
        size += len(line) if isinstance(line, str) else 0
        if size > DOCUMENT_LIMIT or builder.lines + len(lines) + len(comments) > LINES_LIMIT:
            builder.refuse(where, TOO_LONG)
            comments, lines, size = [], [], 0  # a rejected document keeps nothing that follows
        if isinstance(line, BadRecord):
            builder.refuse(line.where, line.reason, line.value)
        elif not line or line.isspace():
            builder.add(comments, lines, path, number - len(lines))
            comments, lines, size = [], [], 0
        elif line[0] != "#":
            lines.append(line)
        elif lines:
            builder.refuse(where, "comment: between the words of a sentence", line)
        elif line[1:].lstrip().startswith("newdoc"):
            name = line.partition("=")[2].strip()
            if count and name == builder.name:
                continue  # some corpora repeat the id before each sentence
            if count or builder.has_content:
                yield builder
            count += 1
            builder = _DocumentBuilder(name or f"{stem}:{count:06d}", where, source, trees)
        else:
            comments.append(line)
    if count or builder.has_content:
        yield builder


@dataclass(slots=True)
class _DocumentBuilder:
    """A document to which sentences are added one by one.

    `where` is the place of its first line, for errors. With `trees`, a broken tree rejects the
    document; without, no trees are read from the first broken one (`broken`) on.
    """

    name: str
    where: str
    source: Source
    trees: bool
    broken: bool = False
    meta: dict[str, str] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)  # sentences, and the white space between them
    length: int = 0  # characters in `pieces`
    lines: int = 0
    glued: bool = False  # whether no space follows the last sentence
    refused: bool = False
    paragraphs: Spans = field(default_factory=Spans)
    sentences: Spans = field(default_factory=Spans)
    speakers: list[str] = field(default_factory=list)  # of each sentence; "" if it has none
    tokens: Tokens = field(default_factory=Tokens)
    headings: list[bool] = field(default_factory=list)
    captions: Spans = field(default_factory=Spans)
    in_caption: int = 0  # sentences of the last caption that are still to come
    sentence_ids: set[str] = field(default_factory=set)

    @property
    def has_content(self) -> bool:
        """Whether the document has a sentence or metadata, or was rejected."""
        return bool(self.pieces) or self.refused or bool(self.meta)

    def refuse(self, where: str, reason: str, value: str = "") -> None:
        """Reject the document for `reason`, and drop its sentences; only the first call counts."""
        if not self.refused:
            self.refused = True
            self.pieces, self.tokens, self.lines = [], Tokens(), 0
            reason = f"{reason} (document {self.name!r})"
            self.source.refuse(BadRecord(where, reason, value[:200]))

    def add(self, comments: list[str], lines: list[str], path: Path, first: int) -> None:
        """Add a sentence: its `comments`, and the `lines` of its words from line `first` on."""
        if self.refused:
            return
        self.lines += len(comments) + len(lines)
        # What the comments say: paragraphs, headings, captions, metadata, ids, speakers
        new_paragraph, heading, new_caption = not self.pieces, False, False
        speaker = ""
        for comment in comments:
            key, value = map(str.strip, comment[1:].partition("=")[::2])
            if key.startswith("newpar"):
                new_paragraph = True
                # A value is such as `head rend:::"bold" (1 s) | ...`.
                for block in value.split("|") if key == "newpar_block" else ():
                    heading |= block.split()[:1] == ["head"]
                    if caption := _CAPTION.match(block):
                        new_caption, self.in_caption = True, int(caption[1])
            elif key.startswith("meta::"):
                self.meta[key.removeprefix("meta::")] = value
            elif key == "speaker":
                speaker = value
            elif key == "sent_id":
                if value in self.sentence_ids:
                    self.refuse(f"{path}:{first}", f"sentence id: {value!r} comes twice")
                self.sentence_ids.add(value)
        if not lines or self.refused:
            return
        # Add the words to the document's text.
        gap = PARAGRAPH_BREAK if new_paragraph else "" if self.glued else " "
        start = self.length + (len(gap) if self.pieces else 0)
        try:
            expect(start <= DOCUMENT_LIMIT, TOO_LONG)
            text, self.glued = self._add_words(lines, start)
        except Refused as refusal:
            line = int(refusal.where or 0)
            self.refuse(f"{path}:{first + line}", str(refusal), lines[line])
            return
        self.pieces += [gap, text] if self.pieces else [text]
        self.length = end = start + len(text)
        # Add the sentence to the layers of sentences, captions and paragraphs.
        self.sentences.add(start, end)
        self.speakers.append(speaker)
        if new_caption:
            self.captions.add(start, end)
        elif self.in_caption:
            self.captions.end[-1] = end
        self.in_caption = max(0, self.in_caption - 1)
        if new_paragraph:
            self.paragraphs.add(start, end)
            self.headings.append(heading)
        else:
            self.paragraphs.end[-1] = end

    def _add_words(self, lines: list[str], start: int) -> tuple[str, bool]:
        """Add the words of a sentence that starts at character `start`; return its text and whether
        no space follows it. If the document may lack trees, none are read after a broken one."""
        if self.trees:
            return add_sentence(lines, start, self.tokens)
        lines = [_with_ten_columns(line) for line in lines]
        try:
            return add_sentence(lines, start, self.tokens, tree=not self.broken)
        except BrokenTree:
            self.broken = True
            return add_sentence(lines, start, self.tokens, tree=False)

    def document(self) -> Document | None:
        """Return the finished document, `None` if it was rejected or its words are masked."""
        if not self.pieces:
            self.refuse(self.where, "no text: a document without a sentence")
        if self.refused:
            return None
        text, genre = "".join(self.pieces), self.meta.get("genre", "")
        if is_masked(text):
            self.source.skipped[MASKED] += 1
            self.source.remarks[MASKED] += 1
            return None
        self.source.remarks[BROKEN] += self.broken
        return Document(
            id=self.name,
            text=text,
            language=self.source.language,
            title=self.meta.get("title", ""),
            url=self.meta.get("sourceURL", ""),
            author=self.meta.get("author", ""),
            categories=(genre,) if genre else (),
            sections=self._sections(text) if any(self.headings) or self.captions else None,
            paragraphs=self.paragraphs,
            sentences=self.sentences,
            turns=self._turns(),
            tokens=None if self.broken else self.tokens,
        )

    def _turns(self) -> Turns | None:
        """Return the turns of a text with several speakers; None for one or none."""
        if len({*self.speakers, ""}) <= 2:
            return None
        turns = Turns()
        by_speaker = groupby(zip(self.speakers, self.sentences, strict=True), key=itemgetter(0))
        for speaker, sentences in by_speaker:
            spans = [span for _, span in sentences]
            turns.speaker.append(speaker)
            turns.conversation.append(NO_CHAT)
            turns.start.append(spans[0][0])
            turns.end.append(spans[-1][1])
        return turns

    def _sections(self, text: str) -> Sections:
        """Return the sections between headings; text before them or under the title is the lead.

        A heading's depth is not known: all have level 2. A span covers the paragraphs below the
        heading, but not the heading, which is a paragraph of the text, and not a caption: the text
        behind a caption is another section with the same heading.
        """
        rows: list[tuple[int, str, int, int]] = [(1, "", 0, 0)]  # level, heading, start, end
        title = self.meta.get("title", "").casefold()
        for (start, end), is_heading in zip(self.paragraphs, self.headings, strict=True):
            level, heading, first, last = rows[-1]
            if not is_heading:
                rows[-1] = (level, heading, start if first == last else first, end)
            elif start or text[start:end].casefold() != title:
                rows.append((2, text[start:end], end, end))
        lead_end = rows[0][3]
        if not lead_end:
            del rows[0]
        for start, end in self.captions:
            for index, (level, heading, first, last) in enumerate(rows):
                if first <= start < last:
                    rest = [(a, b) for a, b in ((first, start), (end, last)) if a < b]
                    # The heading of a section that is nothing but a caption stays.
                    sections = [(level, heading, *span) for span in rest or [(end, end)]]
                    rows[index : index + 1] = sections
                    break
        return Sections(*map(list, zip(*rows, strict=True)))


def is_masked(text: str) -> bool:
    """Whether underscores stand for most words, as in releases without the text."""
    words = text.split() if "_" in text else []
    readable = [any(map(str.isalnum, word)) for word in words]
    masked = ["_" in word and not letters for word, letters in zip(words, readable, strict=True)]
    return sum(readable) < sum(masked)


def _with_ten_columns(line: str) -> str:
    """Return the line of a word with an empty column DEPS added if it has only nine columns. The
    last words of DISRPT's Russian documents have nine. Nothing reads DEPS."""
    before, _, last = line.rpartition("\t")
    nine_columns = line.count("\t") == 8
    return f"{before}\t_\t{last}" if nine_columns else line


def add_sentence(
    lines: list[str], start: int, tokens: Tokens, *, tree: bool = True
) -> tuple[str, bool]:
    """Add the words of a sentence that starts at character `start` of its document to `tokens`.

    Returns its text and whether no space follows it. Raises `Refused` if a line does not have ten
    columns, the words are not numbered 1 to n, or a form is missing; the error's `where` is the
    index of the line. Raises `BrokenTree` if a head is not a number or does not exist, or if the
    tree has no root or a cycle; several roots are allowed. In both cases `tokens` stays unchanged.
    Without `tree` the heads are not read: each word is a root.
    """
    rows = [line.split("\t") for line in lines]
    for index, row in enumerate(rows):
        expect(len(row) == 10, f"columns: {len(row)}, expected 10 separated by tabs", str(index))
    numbers = [row[0] for row in rows]
    words, units = _words_and_units(rows)
    columns = list(zip(*words, strict=True))
    forms, head_column = columns[1], columns[6]
    if not all(forms):
        raise Refused("form: a word without one", str(numbers.index(words[forms.index("")][0])))
    heads = _token_heads(head_column, numbers, len(tokens)) if tree else [-1] * len(forms)
    tokens.head.extend(heads)
    tokens.form.extend(forms)
    for name, column in (("upos", 3), ("xpos", 4), ("feats", 5), ("deprel", 7)):
        getattr(tokens, name).extend("" if value == "_" else value for value in columns[column])
    # The text, and the characters of each word in it
    pieces: list[str] = []
    word = 0
    space_after = False
    for surface, misc, count in units:
        for first, last in _word_spans(forms[word : word + count], surface):
            tokens.start.append(start + first)
            tokens.end.append(start + last)
        word += count
        space_after = "SpaceAfter=No" not in misc.split("|")
        pieces += [surface, " "] if space_after else [surface]
        start += len(surface) + space_after
    if space_after:
        pieces.pop()
    tokens.offsets.append(len(tokens.form))
    return "".join(pieces), not space_after


def _words_and_units(rows: list[list[str]]) -> tuple[list[list[str]], list[Unit]]:
    """Return the rows of words, and the units of the text, of which a multiword token is one.

    `rows` are the ten columns of each line of a sentence. Raises `Refused` unless the words are
    numbered 1 to n.
    """
    words: list[list[str]] = []
    units: list[Unit] = []
    covered = 0  # the number of the last word in a multiword token
    for index, row in enumerate(rows):
        number, form, misc, expected = row[0], row[1], row[9], len(words) + 1
        if number == str(expected):
            words.append(row)
            if expected > covered:
                units.append((form, misc, 1))
        elif "-" in number:
            ends = _RANGE.fullmatch(number)
            last = int(ends[2]) if ends and ends[1] == str(expected) else 0
            if ends and ends[1] == ends[2]:
                reason = f"{number!r} covers one word, expected two or more"
                raise Refused(f"multiword token: {reason}", str(index))
            if expected <= covered or not expected < last < expected + _LONGEST_MULTIWORD:
                reason = f"{number!r}, expected it to start at {expected}"
                raise Refused(f"multiword token: {reason}", str(index))
            covered = last
            units.append((form, misc, covered - len(words)))
        elif not _EMPTY_NODE.fullmatch(number):
            raise Refused(f"word number: {number!r}, expected {expected}", str(index))
    complete = words and covered <= len(words)
    expect(complete, f"word number: {len(words) + 1} is missing", str(len(rows) - 1))
    return words, units


def _word_spans(words: Sequence[str], surface: str) -> list[tuple[int, int]]:
    """Return the span of each word in `surface`, the written form of its unit. If the words do not
    occur in it one behind the other (`de le` in `du`), each of them gets the whole span."""
    spans: list[tuple[int, int]] = []
    end = 0
    for word in words:
        start = surface.find(word, end)
        if start < 0:
            return [(0, len(surface))] * len(words)
        end = start + len(word)
        spans.append((start, end))
    return spans


def _token_heads(column: tuple[str, ...], numbers: list[str], base: int) -> list[int]:
    """Return the heads of a sentence's words as token indices of the document, -1 for a root.

    `column` is the column HEAD, `numbers` the column ID of all lines, `base` the index of the first
    word. Raises `BrokenTree` for an unknown head, no root or a cycle.
    """
    count = len(column)
    valid_heads = set(map(str, range(count + 1)))
    for word, head in enumerate(column, 1):
        if head not in valid_heads:
            problem = f"{head[:40]!r} of word {word}, but the sentence has {amount(count, 'word')}"
            raise BrokenTree(f"head: {problem}", str(numbers.index(str(word))))
    if "0" not in column:
        raise BrokenTree("no root: every word has a head", "0")
    heads = list(map(int, column))
    visited_from = [-1] + [0] * count  # the word from which each node was reached; -1 for the root
    for word in range(1, count + 1):
        node = word
        while not visited_from[node]:
            visited_from[node] = word
            node = heads[node - 1]
        if node and visited_from[node] == word:
            reason = f"cycle: the heads of word {node} lead back to it"
            raise BrokenTree(reason, str(numbers.index(str(node))))
    return [base + head - 1 if head else -1 for head in heads]
