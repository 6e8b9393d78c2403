"""Write explicit discourse relations as JSON Lines, in PDTB-3's folders, and as DISRPT's files."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol

from corpora.document import Document, Span
from corpora.errors import InputError
from corpora.readers.pdtb import SIZE_LIMIT
from corpora.store.atomic import new_folder
from extract.discourse import ExplicitRelation, ParsedText
from extract.parse import ParsedDocument

SECTION = "00"
"""The one section of PDTB folders, as in GDTB."""
CORPUS = "eng.pdtb.discorpora"
"""The name of DISRPT's files."""
LABELS = {
    "Comparison.Concession": "concession",
    "Comparison.Contrast": "contrast",
    "Comparison.Similarity": "mode",
    "Contingency.Cause": "causal",
    "Contingency.Cause+belief": "explanation",
    "Contingency.Condition": "condition",
    "Contingency.Negative-condition": "condition",
    "Contingency.Purpose": "purpose",
    "Expansion.Conjunction": "conjunction",
    "Expansion.Disjunction": "alternation",
    "Expansion.Equivalence": "reformulation",
    "Expansion.Exception": "contrast",
    "Expansion.Instantiation": "elaboration",
    "Expansion.Level-of-detail": "elaboration",
    "Expansion.Manner": "mode",
    "Expansion.Substitution": "contrast",
    "Temporal.Asynchronous": "temporal",
    "Temporal.Synchronous": "temporal",
}
"""The label of DISRPT 2025 for each sense of the model (`mapping_disrpt25.json` there)."""
RELS = (
    *("doc", "unit1_toks", "unit2_toks", "unit1_txt", "unit2_txt", "u1_raw", "u2_raw"),
    *("s1_toks", "s2_toks", "unit1_sent", "unit2_sent", "dir", "rel_type", "orig_label", "label"),
)
"""The columns of DISRPT's `.rels`, 2025."""
_FIELDS = 34
_LONGEST_NAME = 255  # bytes
_UNSAFE = re.compile(r"[%/\\:\x00-\x1f\x7f]|^\.|\.(?=(?:pdtb|pipe|txt)$)")
_UNCOUNTED = re.compile(r"\r(?=\n)|^\ufeff")
_INVISIBLE = "\u200b\u2060\ufeff"
_GAP = "<*>"


class Writer(Protocol):
    """Writes parsed documents one by one; `left_out` counts what its format cannot hold."""

    left_out: Counter[str]

    def write(self, parsed: ParsedText) -> None: ...


class JsonLinesWriter:
    """One relation a line; the fields are those of `rows`."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.left_out = file, Counter[str]()

    def write(self, parsed: ParsedText) -> None:
        """Write the relations of a document."""
        for row in rows(parsed.document, parsed.relations):
            self.file.write(json.dumps(row, ensure_ascii=False) + "\n")


def rows(document: Document, relations: Iterable[ExplicitRelation]) -> Iterator[dict[str, Any]]:
    """Yield the relations of a document as records for JSON.

    Spans are `[start, end]` in code points of `Document.text`; `arg1` and `arg2` are the texts
    under them with single spaces. `sentence` is the index of the connective's sentence.
    """
    for relation in relations:
        mark = relation.connective
        yield {
            "doc": document.id,
            "group": document.group,
            "source": document.source,
            "licence": document.licence,
            "language": document.language,
            "sentence": mark.sentence,
            "connective": mark.text,
            "class": mark.kind,
            "connective_spans": mark.spans,
            "arg1_spans": relation.arg1,
            "arg2_spans": relation.arg2,
            "arg1": _under(document.text, relation.arg1),
            "arg2": _under(document.text, relation.arg2),
            "sense": mark.sense,
            "probability": round(mark.probability, 4),
            "sense_probability": round(mark.sense_probability, 4),
        }


def _under(text: str, spans: Sequence[Span]) -> str:
    return " ".join(" ".join(text[start:end] for start, end in spans).split())


class PdtbWriter:
    """`raw/00/ID` with the text and `gold/00/ID` with a relation a line, in PDTB-3's 34 fields.

    Fields in use (from 0): 0 type, 1 spans of the connective, 7 connective, 8 sense, 14 and 20
    spans of the arguments, 31 offset of the connective, 32 the probabilities. No field holds text
    of the document. `file_name` gives the name of a document's files.
    """

    def __init__(self, folder: Path) -> None:
        self.raw, self.gold = folder / "raw" / SECTION, folder / "gold" / SECTION
        self.left_out = Counter[str]()
        for part in (self.raw, self.gold):
            part.mkdir(parents=True)

    def write(self, parsed: ParsedText) -> None:
        """Write a document. Raises `InputError` for a text or an id that files cannot hold."""
        document = parsed.document
        where = f"{document.source}: document {document.id!r}"
        data = document.text.encode()
        if len(data) > SIZE_LIMIT:
            raise InputError(
                f"longer than a raw file of PDTB may be, {SIZE_LIMIT >> 20} MiB",
                where=where,
                hint="split the text, or write jsonl",
            )
        if bad := _UNCOUNTED.search(document.text):
            raise InputError(
                f"U+{ord(bad[0]):04X} at offset {bad.start()}: readers of PDTB drop this "
                "character, so that all offsets behind it would be wrong",
                where=where,
                hint="remove it from the text, or write jsonl",
            )
        name = file_name(document.id)
        (self.raw / name).write_bytes(data)
        lines = map(pdtb_line, parsed.relations)
        (self.gold / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def file_name(id: str) -> str:
    """Return the name of a document's files: its id, with `%2F` for `/` and so on.

    Escaped are `%`, `/`, `\\`, `:`, a dot at the start, and that of an ending which readers drop.
    Raises `InputError` for a name of more than 255 bytes.
    """
    name = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", id)
    if len(name.encode()) > _LONGEST_NAME:
        raise InputError(
            f"the id is too long for the name of a file: {len(name.encode())} bytes, at most "
            f"{_LONGEST_NAME}",
            where=f"document {id[:80]!r}",
            hint="shorten the id, or write jsonl",
        )
    return name


def pdtb_line(relation: ExplicitRelation) -> str:
    """Return a relation as the 34 fields of a line of PDTB-3."""
    mark = relation.connective
    probabilities = f"{mark.probability:.4f}, sense {mark.sense_probability:.4f}"
    fields = [""] * _FIELDS
    fields[0], fields[1] = "Explicit", _ranges(mark.spans)
    fields[7], fields[8] = relation.name, mark.sense
    fields[14], fields[20] = _ranges(relation.arg1), _ranges(relation.arg2)
    fields[31], fields[32] = str(mark.spans[0][0]), f"discorpora: connective {probabilities}"
    return "|".join(fields)


def _ranges(spans: Iterable[Span]) -> str:
    return ";".join(f"{start}..{end}" for start, end in spans)


@dataclass(slots=True)
class Word:
    """A word of CoNLL-U; `head` is the number of its head in the sentence, 0 for a root.

    `token` is its index in the parse, -1 for text that the parser did not read: a sentence too
    long to parse, the mark of a note, the label before a sentence.
    """

    form: str
    start: int
    end: int
    token: int = -1
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"
    head: int = 0
    deprel: str = "root"
    tag: str = "O"


class DisrptWriter:
    """`.conllu` and `.tok` with the tags `Conn=B-conn`, `I-conn` and `O`, and `.rels`.

    As in the shared task of 2025: each run of words of a connective begins with `B-conn`; the unit
    of Arg2 includes the connective; units are in the order of the text, `dir` is `1<2` if Arg1 is
    the first; token numbers count the words of a document from 1. A relation that lacks an argument
    is in the tags only, and counted in `left_out`. White space in a form is a single space.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.left_out = Counter[str]()
        self.conllu, self.tok, self.rels = (
            stack.enter_context((folder / f"{CORPUS}.{suffix}").open("w", encoding="utf-8"))
            for suffix in ("conllu", "tok", "rels")
        )
        self.rels.write("\t".join(RELS) + "\n")

    def write(self, parsed: ParsedText) -> None:
        """Write a document to the three files."""
        document = parsed.document
        sentences = words_of(document, parsed.parse)
        words = [word for sentence in sentences for word in sentence]
        of_token = {word.token: number for number, word in enumerate(words) if word.token >= 0}
        numbers = [[of_token[t] for t in r.connective.tokens] for r in parsed.relations]
        for marked in numbers:
            for previous, number in zip((-2, *marked), marked, strict=False):
                words[number].tag = "I-conn" if number == previous + 1 else "B-conn"
        self._write_words(document, sentences, words)
        bounds = [0]
        for sentence in sentences:
            bounds.append(bounds[-1] + len(sentence))
        for relation, marked in zip(parsed.relations, numbers, strict=True):
            one = _words_in(words, relation.arg1)
            two = _words_in(words, relation.arg2)
            if not one or not two:
                self.left_out["relation without an argument: not in .rels"] += 1
                continue
            row = _Rows(document, words, bounds).row(relation, one, sorted({*two, *marked}))
            self.rels.write("\t".join(row) + "\n")

    def _write_words(
        self, document: Document, sentences: list[list[Word]], words: list[Word]
    ) -> None:
        """Write the words of a document as sentences with trees, and as one list."""
        follows = {
            id(word): "" if after.start > word.end else "|SpaceAfter=No"
            for word, after in pairwise(words)
        }
        starts = [start for start, _ in document.paragraphs or ()]
        paragraph = 0
        self.conllu.write(f"# newdoc id = {document.id}\n")
        for number, sentence in enumerate(sentences, 1):
            of_sentence = bisect_right(starts, sentence[0].start)
            if number == 1 or of_sentence > paragraph:
                self.conllu.write("# newpar\n")
            paragraph = of_sentence
            text = " ".join(document.text[sentence[0].start : sentence[-1].end].split())
            self.conllu.write(f"# sent_id = {document.id}-{number}\n# text = {text}\n")
            units = _units(sentence)
            for place, word in enumerate(sentence):
                if place in units:
                    last = units[place]
                    end = sentence[last].end
                    surface = " ".join(document.text[word.start : end].split())
                    glue = follows.get(id(sentence[last]), "").removeprefix("|") or "_"
                    span = f"{place + 1}-{last + 1}"
                    self.conllu.write("\t".join([span, surface, *"_______", glue]) + "\n")
                columns = (word.upos, word.xpos, word.feats, str(word.head), word.deprel)
                inside = any(a <= place <= b for a, b in units.items())
                misc = f"Conn={word.tag}{'' if inside else follows.get(id(word), '')}"
                row = (str(place + 1), word.form, "_", *columns, "_", misc)
                self.conllu.write("\t".join(row) + "\n")
            self.conllu.write("\n")
        self.tok.write(f"# newdoc id = {document.id}\n")
        for number, word in enumerate(words, 1):
            row = (str(number), word.form, *"_______", f"Conn={word.tag}")
            self.tok.write("\t".join(row) + "\n")
        self.tok.write("\n")


def _units(sentence: Sequence[Word]) -> dict[int, int]:
    """Return the first and last place of words that share a span: multiword tokens."""
    units: dict[int, int] = {}
    first = 0
    for place, (word, after) in enumerate(pairwise(sentence)):
        if after.start >= word.end:
            first = place + 1
        else:
            units[first] = place + 1
    return units


@dataclass(frozen=True)
class _Rows:
    """The rows of `.rels` of one document; `bounds` are the first words of its sentences."""

    document: Document
    words: Sequence[Word]
    bounds: Sequence[int]

    def row(self, relation: ExplicitRelation, one: list[int], two: list[int]) -> list[str]:
        """Return the row of a relation between two units, given as indices of words."""
        sense = relation.connective.sense
        one, two = self._with_punctuation(one), self._with_punctuation(two)
        units = (one, two) if one < two else (two, one)
        sentences = [self._sentences(unit) for unit in units]
        return [
            self.document.id,
            *map(_token_numbers, units),
            *(self._forms(unit) for unit in units),
            *(self._raw(unit) for unit in units),
            *map(_token_numbers, sentences),
            *map(self._forms, sentences),
            "1<2" if one < two else "1>2",
            "explicit",
            sense.lower(),
            LABELS[sense],
        ]

    def _with_punctuation(self, unit: Sequence[int]) -> list[int]:
        """Return the words of a unit and what is between them if it is only punctuation."""
        filled = [*unit[:1]]
        for previous, number in pairwise(unit):
            gap = range(previous + 1, number)
            if not any(any(map(str.isalnum, self.words[place].form)) for place in gap):
                filled += gap
            filled.append(number)
        return filled

    def _sentences(self, unit: Sequence[int]) -> range:
        """Return the words of the sentences that a unit is in."""
        first = bisect_right(self.bounds, unit[0]) - 1
        last = bisect_right(self.bounds, unit[-1])
        return range(self.bounds[first], self.bounds[last])

    def _forms(self, unit: Sequence[int]) -> str:
        """Return the words of a unit with spaces between them."""
        runs = (" ".join(self.words[number].form for number in run) for run in _runs(unit))
        return f" {_GAP} ".join(runs)

    def _raw(self, unit: Sequence[int]) -> str:
        """Return the text of a unit, with single spaces."""
        spans = ((self.words[run[0]].start, self.words[run[-1]].end) for run in _runs(unit))
        texts = (" ".join(self.document.text[start:end].split()) for start, end in spans)
        return f" {_GAP} ".join(texts)


def _token_numbers(numbers: Sequence[int]) -> str:
    """Return words as numbers from 1, such as `42-43,52`."""
    runs = ((run[0] + 1, run[-1] + 1) for run in _runs(numbers))
    return ",".join(f"{first}-{last}" if first < last else str(first) for first, last in runs)


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Return increasing numbers in runs without a gap."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _words_in(words: Sequence[Word], spans: Iterable[Span]) -> list[int]:
    """Return the indices of the words inside the spans."""
    numbers = []
    for start, end in spans:
        first = bisect_right(words, start - 1, key=lambda word: word.start)
        for number in range(first, len(words)):
            if words[number].start >= end:
                break
            numbers.append(number)
    return sorted(set(numbers))


def words_of(document: Document, parse: ParsedDocument) -> list[list[Word]]:
    """Return the words of each sentence, which together hold all visible characters of the text.

    Text that the parser did not read is divided at white space; these words depend on the first
    root. A sentence without a word is left out.
    """
    text, strings = document.text, parse.strings.strings
    row_of = {int(number): row for row, number in enumerate(parse.sentence)}
    sentences = list(document.sentences or ())
    # Text between two sentences belongs to the second.
    ends = [end for _, end in sentences[:-1]] + [len(text)]
    found, begin = [], 0
    for number, end in enumerate(ends):
        words: list[Word] = []
        row = row_of.get(number)
        tokens = range(*parse.offsets[row : row + 2].tolist()) if row is not None else range(0)
        at = begin
        for token in tokens:
            first, last = int(parse.start[token]), int(parse.end[token])
            words += _unread(text, at, first)
            values = (strings[column[token]] for column in (parse.upos, parse.xpos, parse.feats))
            upos, xpos, feats = (value or "_" for value in values)
            shared = at > first or (token + 1 in tokens and int(parse.start[token + 1]) < last)
            form = strings[parse.form[token]] if shared else text[first:last]
            deprel = strings[parse.deprel[token]] or "_"
            head = int(parse.head[token])
            form = " ".join(form.split())
            words.append(Word(form, first, last, token, upos, xpos, feats, head, deprel))
            at = max(at, last)
        words += _unread(text, at, end)
        begin = end
        if words:
            _number_heads(words)
            found.append(words)
    return found


def _unread(text: str, start: int, end: int) -> Iterator[Word]:
    """Yield the words of a text that the parser did not read."""
    for match in re.finditer(r"\S+", text[start:end]):
        if match[0].strip(_INVISIBLE):
            yield Word(match[0], start + match.start(), start + match.end())


def _number_heads(words: Sequence[Word]) -> None:
    """Turn heads from indices of the parse into numbers of words in the sentence."""
    number_of = {word.token: number for number, word in enumerate(words, 1) if word.token >= 0}
    roots = [n for n, word in enumerate(words, 1) if word.token >= 0 and word.head < 0]
    root = roots[0] if roots else 1
    for number, word in enumerate(words, 1):
        if word.token >= 0:
            word.head = number_of[word.head] if word.head >= 0 else 0
        elif number != root:
            word.head, word.deprel = root, "dep"


FORMATS = ("jsonl", "pdtb", "disrpt")


@contextmanager
def new_writer(folder: Path, format: str) -> Iterator[Writer]:
    """Return a context with a writer of `pdtb` or `disrpt`; the new folder appears at its end."""
    with new_folder(folder) as partial, ExitStack() as stack:
        yield PdtbWriter(partial) if format == "pdtb" else DisrptWriter(partial, stack)
