"""Datasets as their authors released them: labelled or rated texts, in the authors' splits.

`corpora.tasks.released` makes datasets of the rows; as sources of documents these readers give
their texts. The formats follow the releases' documentation and loading code;
docs/reference/sources.md says which released files were tested.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AliasChoices, BeforeValidator, Field

from corpora.document import Document, paragraph_spans
from corpora.errors import BadRecord, InputError, amount
from corpora.readers.conllu import MASKED, Conllu
from corpora.readers.fields import Fields, Filled, Record, Text, Texts
from corpora.readers.files import LINES_LIMIT, TOO_LONG, Refused, expect, read_lines, read_whole
from corpora.readers.records import Place, as_document
from corpora.readers.rows import JSON_LINES, json_rows, json_value, parquet_rows, table_rows
from corpora.readers.source import Encoded, Reader, Source
from corpora.sentences import split
from corpora.splits import split_of
from corpora.store.manifest import label_names

_TAG = re.compile(r"(?:^|\|)(?:(Conn|Seg)=([^|]+)|BeginSeg=Yes)")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc[ _]id\s*=\s*(.*?)\s*$")
_MASKED = re.compile(r"[_\s<*>]*")
"""DISRPT masks texts that it may not distribute with underscores."""

Columns = tuple[str, dict[str, Any]]
"""A configuration and a row of it; the row has `split` if the file's name does not tell."""


class Example(NamedTuple):
    """A row of a release: its configuration and split, the columns (a label by its name), and
    its place."""

    config: str
    split: str
    row: dict[str, Any]
    where: str


class Release(Reader):
    """The files of a release. A file's name gives its split (default `train`)."""

    digits: ClassVar[int] = 7
    """Digits of a record's number in its id."""

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """The records of a file, each with its place. `Refused` rejects the file."""
        return json_rows(path)

    def columns(self, record: Any, path: Path) -> Iterator[Columns]:
        """The rows of a record. `Refused` rejects the record."""
        raise NotImplementedError

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """The rows of a file. A bad record goes to `source.refuse`; `Refused` rejects the file."""
        # CoheSentia's files are called TrainData and TestData.
        of = split_of(path.name.replace("Data.", ".")) or "train"
        for where, record in self.records(path, source):
            if isinstance(record, BadRecord):
                source.refuse(record)
                continue
            id = f"{stem}:{where.rpartition(':')[2].zfill(self.digits)}"
            with source.refusing(where, record):
                # A record gives all of its rows or, if one is bad, none.
                for config, row in list(self.columns(record, path)):
                    yield Example(config, row.pop("split", of), {"id": id, **row}, where)

    def record(self, row: Record) -> Record | None:
        """The document of a row, as `as_document` expects it; None if a row has none."""
        return {"sentences": [row["s1"], row["s2"]]}

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document for each text, with the id of its row."""
        last = ""
        for example in self.examples(path, stem, source):
            record = self.record(example.row)
            if record is not None and example.where != last:
                last = example.where
                with source.refusing(last):
                    yield as_document(record, source, example.row["id"])


class _Marked(Fields):
    s1: Filled = Field(validation_alias=AliasChoices("s1", "sentence1"))
    s2: Filled = Field(validation_alias=AliasChoices("s2", "sentence2"))
    label: Filled = Field(validation_alias=AliasChoices("y", "label"))


class Discovery(Release):
    """Discovery: adjacent sentences, and the marker that began the second (TSV, or the Hub's
    Parquet)."""

    name = "discovery"
    suffixes: ClassVar[tuple[str, ...]] = (".tsv", ".parquet")
    paper = "Sileo et al. 2019"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """Columns `s1, s2, y` or `sentence1, sentence2, label`, after a header."""
        return _named(path) if path.suffix == ".parquet" else table_rows(path, (), quoted=False)

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        yield self.name, _Marked.of(record).model_dump()


def _named(path: Path) -> Iterator[Place]:
    """The rows of a Parquet file of the Hub, with label names from the file's metadata."""
    import pyarrow.parquet as pq

    names: list[str] = []
    for where, row in parquet_rows(path):
        if not isinstance(row, BadRecord) and isinstance(label := row.get("label"), int):
            names = names or label_names(pq.read_schema(path).metadata).get("label", [])
            if not 0 <= label < len(names):
                raise InputError(
                    f"the label {label}, and the file names {amount(len(names), 'label')}",
                    where=where,
                    hint="use the unchanged file from the Hub: its metadata name the labels",
                )
            row = {**row, "label": names[label]}
        yield where, row


class DisSent(Discovery):
    """DisSent's released pairs: S1, S2 and the marker, separated by tabs."""

    name = "dissent"
    suffixes = (".tsv",)
    own_licence = "research-only"  # sentences of BookCorpus
    paper = "Nie, Bennett and Goodman 2019"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """Three fields a line, no header."""
        return table_rows(path, (), quoted=False, header=("s1", "s2", "label"))


class _Judged(Fields):
    """A text of INSteD. `ctx` is a list of sentences, or one text."""

    file_id: Filled
    train: Annotated[Literal["0", "1"], BeforeValidator(str)]
    ctx: Texts
    sen_position: Annotated[int, Field(strict=False)]
    to_be_replaced: Text = ""
    replace_with: Text = ""


class Insted(Release):
    """INSteD, training and test: texts, half of them with a sentence of another text."""

    name = "insted"
    suffixes = JSON_LINES
    paper = "Shen et al. 2021"

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """For each record the text to judge (`detection`), with an intruder also the pair."""
        of = _Judged.of(record)
        text, position = of.ctx, max(-1, of.sen_position)
        if isinstance(record["ctx"], str):
            # One text is split around the sentence.
            old = of.to_be_replaced.strip() if position >= 0 else ""
            head, found, tail = record["ctx"].partition(old) if old else (record["ctx"], "", "")
            before = _split(head, self.language)
            text = [*before, *([found] if found else []), *_split(tail, self.language)]
            position = min(position, len(before)) if position < 0 else len(before)
        expect(any(map(str.strip, text)), "no text: 'ctx' has none")
        about = {"doc": of.file_id, "position": position}
        about["split"] = "train" if of.train == "1" else "test"
        if position < 0:
            yield "detection", about | {"label": "coherent", "sentences": text}
            return
        replaced = text[position].strip() if position < len(text) else None
        expect(
            replaced == of.to_be_replaced.strip(),
            f"no sentence: {of.to_be_replaced[:60]!r} is not sentence {position} of 'ctx'",
        )
        new = of.replace_with.strip()
        expect(new, "no text: 'replace_with' is empty")
        other = [*text[:position], new, *text[position + 1 :]]
        yield "detection", about | {"label": "intruded", "sentences": other}
        yield "pairwise", about | {"pos": text, "neg": other}

    def record(self, row: Record) -> Record | None:
        """The coherent text."""
        text = row.get("pos") or (row["sentences"] if row["position"] < 0 else None)
        return text and {"group": row["doc"], "sentences": text}


def _split(text: str, language: str) -> list[str]:
    folded = " ".join(text.split())
    return [folded[a:b] for a, b in split(folded, paragraph_spans(folded), language=language)]


UNITS = ("u1_raw", "u2_raw", "unit1_txt", "unit2_txt")
"""The text as written; releases before 2025 have only tokenised text."""


class _Relation(Fields):
    arg1: Filled = Field(validation_alias=AliasChoices(*UNITS[::2]))
    arg2: Filled = Field(validation_alias=AliasChoices(*UNITS[1::2]))
    doc: Filled
    label: Filled
    direction: str = Field(validation_alias="dir")
    kind: str = Field("", validation_alias="rel_type")
    original: str = Field("", validation_alias="orig_label")


class _Treebank(Conllu):
    """CoNLL-U of which forms and MISC are needed: some of DISRPT's documents have broken trees."""

    trees = False


class Disrpt(Release):
    """DISRPT 2019 to 2025: relations (`.rels`), and connectives or discourse units (`.conllu`; in
    2019 `.conll`)."""

    name = "disrpt"
    suffixes = (".rels", ".conllu", ".conll")
    paper = "DISRPT 2025"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """Relations, or tagged sentences. Masked ones are counted and left out."""
        columns = ("doc", "unit1_txt", "unit2_txt", "dir", "label")
        relations = path.suffix == ".rels"
        for where, record in (
            table_rows(path, columns, quoted=False) if relations else _tagged(path, source)
        ):
            if not isinstance(record, BadRecord):
                named = [record[name] for name in UNITS if name in record]
                words = record.get("surface") or named[:2]
                if any(words) and all(map(_MASKED.fullmatch, words)):
                    source.skipped[MASKED] += 1
                    continue
            yield where, record

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        about = {"corpus": path.stem.rpartition("_")[0] or path.stem}
        if "tokens" in record:
            config = "connectives" if record["kind"] == "Conn" else "units"
            yield config, about | {name: record[name] for name in ("doc", "tokens", "tags")}
        else:
            yield "relations", about | _Relation.of(record).model_dump()

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The documents of a `.conllu` file, as `conllu:` reads them, but without trees where they
        are broken; a `.rels` file has none."""
        if path.suffix == ".rels":
            source.skipped["file of relations"] += 1
        else:
            reader = _Treebank(language=self.language, licence=self.licence)
            yield from reader.read_file(path, stem, source)


def _tagged(path: Path, source: Source) -> Iterator[Place]:
    """The sentences of a `.conllu` file, each with the number of the line after it.

    `tokens` are the words, `surface` the text as written, with multiword tokens.
    """
    doc = ""
    misc = (line.rpartition("\t")[2] for line in read_lines(path) if isinstance(line, str))
    kind = next((tag[0] for tag in map(_tag, misc) if tag), "")
    tokens: list[str] = []
    surface: list[str] = []
    tags: list[str] = []
    covered = 0
    bad: BadRecord | None = None
    for number, line in enumerate(chain(read_lines(path), [""]), 1):
        where = f"{path}:{number}"
        if isinstance(line, BadRecord):
            bad = bad or line
        elif line.startswith("#"):
            found = _NEW_DOCUMENT.match(line)
            doc = found[1] if found else doc
        elif line.strip():
            cells = line.split("\t")
            if len(cells) not in (9, 10):  # without DEPS or MISC, which is read last
                reason = f"not CoNLL-U: {amount(len(cells), 'column')}"
                bad = bad or BadRecord(where, reason, line[:200])
            elif cells[0].isdecimal():  # neither a multiword token nor an empty node
                tag = _tag(cells[-1])
                if len(tokens) >= LINES_LIMIT // 10:
                    raise Refused(TOO_LONG, where)
                tokens.append(cells[1])
                if len(tokens) > covered:
                    surface.append(cells[1])
                tags.append(tag[1] if tag and tag[0] == kind else "O")
            elif (last := cells[0].partition("-")[2]).isdecimal():
                covered = int(last)
                surface.append(cells[1])
        else:
            if bad or (tokens and kind):
                sentence = {"doc": doc, "kind": kind, "tokens": tokens, "tags": tags}
                yield where, bad or {**sentence, "surface": surface}
            elif tokens:
                source.skipped["sentence in a file without Conn, Seg or BeginSeg"] += 1
            tokens, surface, tags, bad, covered = [], [], [], None, 0


def _tag(misc: str) -> tuple[str, str] | None:
    """The kind of a tag in MISC and the tag, as DISRPT writes them since 2024.

    Until 2023 a unit begins at `BeginSeg=Yes`, and connectives are `Seg=B-Conn` and `Seg=I-Conn`.
    """
    match = _TAG.search(misc)
    if not match:
        return None
    kind, tag = match[1] or "Seg", match[2] or "B-seg"
    place, _, name = tag.partition("-")
    return ("Conn", f"{place}-conn") if name == "Conn" else (kind, tag)


Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]


class Ratings(Fields):
    """The annotators' ratings of a text, and the one that they agree on."""

    ratings: Annotated[list[Number], Field(fail_fast=True)]
    rating: Number


class Rated(Release):
    """Texts with ratings of their coherence; `group` is what a text shares with others."""

    def record(self, row: Record) -> Record | None:
        return {"group": row.get("group"), "title": row["title"], "text": row["text"]}


class Gcdc(Encoded, Rated):
    """GCDC: texts with ratings of their coherence from 1 to 3, by experts and by crowd workers."""

    name = "gcdc"
    suffixes = (".csv",)
    own_licence = "research-only"
    paper = "Lai and Tetreault 2018"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """`DOMAIN_SPLIT.csv`; texts have line breaks, so the place of a row is its last line."""
        rows = csv.DictReader(io.StringIO(read_whole(path, self.encoding)), strict=True)
        try:
            missing = sorted({"text", "labelA"} - set(rows.fieldnames or ()))
            columns = "text, labelA, labelM, ratingA1, ratingM1 and so on"
            reason = f"no GCDC file: no column {', '.join(missing)}; expected {columns}"
            expect(not missing, reason)
            for row in rows:
                yield f"{path}:{rows.line_num}", row
        except csv.Error as error:
            raise Refused(f"not CSV: {error}", f"{path}:{rows.line_num}") from None

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """The experts' ratings (`gcdc`), then the crowd's (`gcdc_crowd`)."""
        whole = None not in record and None not in record.values()
        expect(whole, "wrong number of fields: not as many as the header has")
        about = {"title": record.get("subject", ""), "text": _Texts.of(record).text}
        for config, who in (("gcdc", "A"), ("gcdc_crowd", "M")):
            given = [v for k, v in record.items() if re.match(rf"rating{who}\d", k) and v.strip()]
            if label := record.get(f"label{who}", "").strip():
                ratings = Ratings.of({"ratings": given, "rating": label})
                yield config, about | ratings.model_dump()


class _Texts(Fields):
    text: Filled


class _Scores(Fields):
    scores: dict[str, Number]
    consensus_score: Number


class _Story(Fields):
    Title: Filled
    Text: Filled
    HolisticData: _Scores
    IncrementalData: _Scores


class CoheSentia(Rated):
    """CoheSentia: generated stories, their coherence rated as a whole and sentence by sentence."""

    name = "cohesentia"
    suffixes = (".json",)
    paper = "Maimon and Tsarfaty 2023"
    digits = 0

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """`TrainData.json`, `TestData.json`: an object of stories."""
        stories = json_value(read_whole(path))
        named = isinstance(stories, dict)
        expect(named, "no CoheSentia file: expected an object of stories by their ids")
        return ((f"{path}:{name}", story) for name, story in stories.items())

    def columns(self, record: Any, path: Path) -> Iterator[Columns]:
        """Both ratings of a story; the stories of one title are a group."""
        story = _Story.of(record)
        text = "\n\n".join(filter(None, map(str.strip, story.Text.splitlines())))  # by line
        about = {"group": story.Title, "title": story.Title, "text": text}
        for config, rated in (
            ("cohesentia_holistic", story.HolisticData),
            ("cohesentia_incremental", story.IncrementalData),
        ):
            ratings = {"ratings": [*rated.scores.values()], "rating": rated.consensus_score}
            yield config, about | ratings
