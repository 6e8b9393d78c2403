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
from corpora.readers.records import PlacedRecord, as_document
from corpora.readers.rows import JSON_LINES, json_rows, json_value, parquet_rows, table_rows
from corpora.readers.source import Encoded, Reader, Source
from corpora.rng import stable_id
from corpora.sentences import split
from corpora.splits import split_of
from corpora.store.manifest import label_names

_TAG = re.compile(r"(?:^|\|)(?:(Conn|Seg)=([^|]+)|BeginSeg=Yes)")  # in MISC: Conn=B-conn
_NEW_DOCUMENT = re.compile(r"#\s*newdoc[ _]id\s*=\s*(.*?)\s*$")
_MASKED = re.compile(r"[_\s<*>]*")
"""DISRPT masks texts that it may not distribute with underscores."""

Columns = tuple[str, dict[str, Any]]
"""A configuration and a row of it; the row has `split` if the file's name does not tell."""


class ReleasedRow(NamedTuple):
    """A row of a release: its configuration and split, its columns, and its place, `file:line`.

    A label is given by its name.
    """

    config: str
    split: str
    columns: dict[str, Any]
    where: str


class Release(Reader):
    """The files of a release. A file's name gives its split (default `train`)."""

    digits: ClassVar[int] = 7
    """Digits of a record's number in its id."""

    def records(self, path: Path, source: Source) -> Iterable[PlacedRecord]:
        """Yield the records of a file, each with its place. `Refused` rejects the file."""
        return json_rows(path)

    def columns(self, record: Any, path: Path) -> Iterator[Columns]:
        """Yield the rows of a record. `Refused` rejects the record."""
        raise NotImplementedError

    def licence_of_file(self, path: Path) -> str:
        """Return the licence of a file's rows."""
        return self.licence_of()

    def rows(self, path: Path, stem: str, source: Source) -> Iterator[ReleasedRow]:
        """Yield the rows of a file, with ids that begin with `stem`.

        A bad record goes to `source.refuse`; `Refused` rejects the file.
        """
        # CoheSentia's files are called TrainData and TestData.
        split_of_file = split_of(path.name.replace("Data.", ".")) or "train"
        for where, record in self.records(path, source):
            if isinstance(record, BadRecord):
                source.refuse(record)
                continue
            id = f"{stem}:{where.rpartition(':')[2].zfill(self.digits)}"
            with source.refusing(where, record):
                # A record gives all of its rows or, if one is bad, none.
                for config, columns in list(self.columns(record, path)):
                    split = columns.pop("split", split_of_file)
                    yield ReleasedRow(config, split, {"id": id, **columns}, where)

    def record(self, row: Record) -> Record | None:
        """Return the text of a row as a record for `as_document`; None for a row without text."""
        return {"sentences": [row["s1"], row["s2"]]}

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield a document for each text, with the id of its row."""
        last_place = ""
        for row in self.rows(path, stem, source):
            record = self.record(row.columns)
            if record is not None and row.where != last_place:
                last_place = row.where
                with source.refusing(last_place):
                    document = as_document(record, source, row.columns["id"])
                    document.split = self.split_of_text(row)
                    yield document

    def split_of_text(self, row: ReleasedRow) -> str:
        """Return the split of a document; "" if its file's path says which it is."""
        return ""


def is_held_out(group: str, share: float) -> bool:
    """Return whether a group is among the `share` of all groups that is for validation."""
    return stable_id(f"held_out/{group}") / 2**64 < share


class _MarkedPair(Fields):
    s1: Filled = Field(validation_alias=AliasChoices("s1", "sentence1"))
    s2: Filled = Field(validation_alias=AliasChoices("s2", "sentence2"))
    label: Filled = Field(validation_alias=AliasChoices("y", "label"))


class Discovery(Release):
    """Discovery: adjacent sentences, and the marker that began the second (TSV, or the Hub's
    Parquet)."""

    name = "discovery"
    suffixes: ClassVar[tuple[str, ...]] = (".tsv", ".parquet")
    paper = "Sileo et al. 2019"

    def records(self, path: Path, source: Source) -> Iterable[PlacedRecord]:
        """Yield the rows: columns `s1, s2, y` or `sentence1, sentence2, label`, after a header."""
        is_parquet = path.suffix == ".parquet"
        return _rows_with_labels(path) if is_parquet else table_rows(path, (), quoted=False)

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """Yield the record's one row: `s1`, `s2`, `label`."""
        yield self.name, _MarkedPair.of(record).model_dump()


def _rows_with_labels(path: Path) -> Iterator[PlacedRecord]:
    """Yield the rows of a Parquet file of the Hub, with label names from the file's metadata.
    Raises `InputError` for a label that has no name there."""
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

    def records(self, path: Path, source: Source) -> Iterable[PlacedRecord]:
        """Yield the rows: three fields a line, no header."""
        return table_rows(path, (), quoted=False, header=("s1", "s2", "label"))


class _NliPair(Fields):
    sentence1: Filled
    sentence2: Filled
    gold_label: Literal["entailment", "neutral", "contradiction", "-"]


class Nli(Release):
    """SNLI and MultiNLI: a premise, a hypothesis and the relation that most annotators chose."""

    name = "nli"
    suffixes = JSON_LINES
    paper = "Bowman et al. 2015; Williams et al. 2018"

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """Yield the record's one row; none if the annotators did not agree.

        MultiNLI's test labels are hidden: the mismatched development set is the test split.
        """
        pair = _NliPair.of(record)
        split = {"split": "test"} if "mismatched" in path.name else {}
        texts = {"premise": pair.sentence1, "hypothesis": pair.sentence2}
        if pair.gold_label != "-":
            yield "default", {**texts, "label": pair.gold_label, **split}

    def record(self, row: Record) -> Record | None:
        """Return the premise and the hypothesis as a text."""
        return {"sentences": [row["premise"], row["hypothesis"]]}


class _InstedRecord(Fields):
    """A text of INSteD, `ctx`: a list of sentences, or one text. The sentence `to_be_replaced` is
    number `sen_position` in it (-1: none), and `replace_with` is the intruder."""

    file_id: Filled
    train: Annotated[Literal["0", "1"], BeforeValidator(str)]
    ctx: Texts
    sen_position: Annotated[int, Field(strict=False)]
    to_be_replaced: Text = ""
    replace_with: Text = ""


class Insted(Release):
    """INSteD, training and test: texts, half of them with a sentence of another text."""

    name = "insted"
    version = 2
    suffixes = JSON_LINES
    paper = "Shen et al. 2021"

    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """The share of the training texts, by file, that `splits = "own"` has in validation."""

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """Yield the text to judge (`detection`), and if a sentence intrudes also the pair of texts.

        `position` is the index of the intruding sentence, -1 in a coherent text.
        """
        # The coherent text in sentences, and the place of the intruder
        fields = _InstedRecord.of(record)
        text, position = fields.ctx, max(-1, fields.sen_position)
        if isinstance(record["ctx"], str):
            # The sentence to be replaced stays whole; the text on both sides of it is split.
            target = fields.to_be_replaced.strip() if position >= 0 else ""
            head, sentence, tail = (
                record["ctx"].partition(target) if target else (record["ctx"], "", "")
            )
            before = _split_sentences(head, self.language)
            text = [
                *before,
                *([sentence] if sentence else []),
                *_split_sentences(tail, self.language),
            ]
            position = -1 if position < 0 else len(before)
        expect(any(map(str.strip, text)), "no text: 'ctx' has none")
        split = "train" if fields.train == "1" else "test"
        common_columns = {"doc": fields.file_id, "position": position, "split": split}
        if position < 0:
            yield "detection", common_columns | {"label": "coherent", "sentences": text}
            return
        # The text with the intruder
        replaced = text[position].strip() if position < len(text) else None
        expect(
            replaced == fields.to_be_replaced.strip(),
            f"no sentence: {fields.to_be_replaced[:60]!r} is not sentence {position} of 'ctx'",
        )
        intruder = fields.replace_with.strip()
        expect(intruder, "no text: 'replace_with' is empty")
        intruded = [*text[:position], intruder, *text[position + 1 :]]
        yield "detection", common_columns | {"label": "intruded", "sentences": intruded}
        yield "pairwise", common_columns | {"pos": text, "neg": intruded}

    def record(self, row: Record) -> Record | None:
        """Return the coherent text of a row as a record; None if it has only an intruded one."""
        text = row.get("pos") or (row["sentences"] if row["position"] < 0 else None)
        return text and {"group": row["doc"], "sentences": text}

    def split_of_text(self, row: ReleasedRow) -> str:
        """Return the split of the release, or `validation` for a held-out training text. The same
        texts are held out in the dataset `insted`."""
        held_out = row.split == "train" and is_held_out(row.columns["doc"], self.held_out)
        return "validation" if held_out else row.split


def _split_sentences(text: str, language: str) -> list[str]:
    """Split a text, with its white space folded, into sentences."""
    folded = " ".join(text.split())
    return [folded[a:b] for a, b in split(folded, paragraph_spans(folded), language=language)]


UNITS = ("u1_raw", "u2_raw", "unit1_txt", "unit2_txt")
"""The columns of the two units: as written, and tokenised; releases before 2025 lack the first."""


class _Relation(Fields):
    """A row of DISRPT: two units of the document `doc` in their order, and their relation."""

    arg1: Filled = Field(validation_alias=AliasChoices(*UNITS[::2]))
    arg2: Filled = Field(validation_alias=AliasChoices(*UNITS[1::2]))
    doc: Filled
    label: Filled
    direction: str = Field(validation_alias="dir")
    kind: str = Field("", validation_alias="rel_type")
    original: str = Field("", validation_alias="orig_label")


class _Treebank(Conllu):
    """A reader of CoNLL-U that accepts broken trees, which some of DISRPT's documents have."""

    trees = False


class Disrpt(Release):
    """DISRPT 2019 to 2025: relations (`.rels`), and connectives or discourse units (`.conllu`; in
    2019 `.conll`)."""

    name = "disrpt"
    suffixes = (".rels", ".conllu", ".conll")
    paper = "DISRPT 2025"

    def records(self, path: Path, source: Source) -> Iterable[PlacedRecord]:
        """Yield relations, or tagged sentences. Masked records are counted and left out."""
        columns = ("doc", "unit1_txt", "unit2_txt", "dir", "label")
        records: Iterable[PlacedRecord] = (
            table_rows(path, columns, quoted=False)
            if path.suffix == ".rels"
            else tagged_sentences(path, source)
        )
        for where, record in records:
            if not isinstance(record, BadRecord):
                units = [record[name] for name in UNITS if name in record][:2]
                texts = record.get("surface") or units
                if any(texts) and all(map(_MASKED.fullmatch, texts)):
                    source.skipped[MASKED] += 1
                    continue
            yield where, record

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """Yield the row of a record: a sentence with its tags, or a relation with its two units."""
        corpus = {"corpus": path.stem.rpartition("_")[0] or path.stem}
        if "tokens" in record:
            config = "connectives" if record["kind"] == "Conn" else "units"
            yield config, corpus | {name: record[name] for name in ("doc", "tokens", "tags")}
        else:
            yield "relations", corpus | _Relation.of(record).model_dump()

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """Yield the documents of a `.conllu` file as `conllu:` does, without broken trees.

        A `.rels` file has no documents.
        """
        if path.suffix == ".rels":
            source.skipped["file of relations"] += 1
        else:
            reader = _Treebank(language=self.language, licence=self.licence)
            yield from reader.read_file(path, stem, source)


def tagged_sentences(path: Path, source: Source) -> Iterator[PlacedRecord]:
    """Yield the sentences of a `.conllu` file, each with the number of the line after it.

    A sentence is a record of `doc`, `kind` (`Conn` or `Seg`), `tokens` (the words), their `tags`,
    and `surface` (the text as written, with multiword tokens). A file with tags of both kinds
    gives each sentence twice.
    """
    doc = ""
    misc = (line.rpartition("\t")[2] for line in read_lines(path) if isinstance(line, str))
    kinds = sorted(set(chain.from_iterable(map(_tags_by_kind, misc))))
    # The sentence that is being read
    tokens: list[str] = []
    surface: list[str] = []
    tags: list[dict[str, str]] = []
    covered = 0  # the number of the last word in a multiword token
    bad: BadRecord | None = None
    for number, line in enumerate(chain(read_lines(path), [""]), 1):
        where = f"{path}:{number}"
        if isinstance(line, BadRecord):
            bad = bad or line
        elif line.startswith("#"):
            new_document = _NEW_DOCUMENT.match(line)
            doc = new_document[1] if new_document else doc
        elif line.strip():
            cells = line.split("\t")
            if len(cells) not in (9, 10):  # without DEPS or MISC, which is read last
                reason = f"not CoNLL-U: {amount(len(cells), 'column')}"
                bad = bad or BadRecord(where, reason, line[:200])
            elif cells[0].isdecimal():  # neither a multiword token nor an empty node
                if len(tokens) >= LINES_LIMIT // 10:
                    raise Refused(TOO_LONG, where)
                tokens.append(cells[1])
                if len(tokens) > covered:
                    surface.append(cells[1])
                tags.append(_tags_by_kind(cells[-1]))
            elif (last := cells[0].partition("-")[2]).isdecimal():
                covered = int(last)
                surface.append(cells[1])
        else:
            for kind in kinds if tokens and not bad else ():
                sentence = {"doc": doc, "kind": kind, "tokens": tokens, "surface": surface}
                yield where, {**sentence, "tags": [tag.get(kind, "O") for tag in tags]}
            if bad:
                yield where, bad
            elif tokens and not kinds:
                source.skipped["sentence in a file without Conn, Seg or BeginSeg"] += 1
            tokens, surface, tags, bad, covered = [], [], [], None, 0


def _tags_by_kind(misc: str) -> dict[str, str]:
    """Return the tags in a word's MISC by kind, as DISRPT writes them since 2024.

    An example is `{"Conn": "B-conn"}`. Until 2023 a unit begins at `BeginSeg=Yes`, and connectives
    are `Seg=B-Conn` and `Seg=I-Conn`.
    """
    tags: dict[str, str] = {}
    for match in _TAG.finditer(misc):
        kind, tag = match[1] or "Seg", match[2] or "B-seg"
        place, _, name = tag.partition("-")
        kind, tag = ("Conn", f"{place}-conn") if name == "Conn" else (kind, tag)
        tags.setdefault(kind, tag)
    return tags


Number = Annotated[float, Field(strict=False, allow_inf_nan=False)]


class Ratings(Fields):
    """The annotators' ratings of a text, and the one that they agree on."""

    ratings: Annotated[list[Number], Field(fail_fast=True)]
    rating: Number


class Rated(Release):
    """Texts with ratings of their coherence; those of one `group` are not independent."""

    def record(self, row: Record) -> Record | None:
        """Return the title and text of a row, and the group of its document."""
        return {"group": row.get("group"), "title": row["title"], "text": row["text"]}


class Gcdc(Encoded, Rated):
    """GCDC: texts with ratings of their coherence from 1 to 3, by experts and by crowd workers."""

    name = "gcdc"
    suffixes = (".csv",)
    own_licence = "research-only"
    paper = "Lai and Tetreault 2018"

    def records(self, path: Path, source: Source) -> Iterable[PlacedRecord]:
        """Yield the rows of a file `DOMAIN_SPLIT.csv`; the place of a row is its last line.

        Texts have line breaks. `Refused` rejects a file that is not CSV or lacks columns.
        """
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
        """Yield the text with the experts' ratings (`gcdc`), then the crowd's (`gcdc_crowd`)."""
        complete = None not in record and None not in record.values()
        expect(complete, "wrong number of fields: not as many as the header has")
        shared = {"title": record.get("subject", ""), "text": _RatedText.of(record).text}
        for config, letter in (("gcdc", "A"), ("gcdc_crowd", "M")):
            name = re.compile(rf"rating{letter}\d")
            ratings = [value for column, value in record.items() if name.match(column)]
            if label := record.get(f"label{letter}", "").strip():
                fields = {"ratings": list(filter(str.strip, ratings)), "rating": label}
                yield config, shared | Ratings.of(fields).model_dump()


class _RatedText(Fields):
    text: Filled


class _Scores(Fields):
    scores: dict[str, Number]
    consensus_score: Number


class _Story(Fields):
    """A story of CoheSentia, with ratings of the whole and sentence by sentence."""

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

    def records(self, path: Path, source: Source) -> Iterable[PlacedRecord]:
        """Return the stories of `TrainData.json` or `TestData.json`, an object by their ids."""
        stories = json_value(read_whole(path))
        is_object = isinstance(stories, dict)
        expect(is_object, "no CoheSentia file: expected an object of stories by their ids")
        return ((f"{path}:{name}", story) for name, story in stories.items())

    def columns(self, record: Any, path: Path) -> Iterator[Columns]:
        """Yield a story with its holistic ratings, then with its incremental ratings.

        Stories with one title are a group; a line is a paragraph.
        """
        story = _Story.of(record)
        text = "\n\n".join(filter(None, map(str.strip, story.Text.splitlines())))
        shared = {"group": story.Title, "title": story.Title, "text": text}
        for config, data in (
            ("cohesentia_holistic", story.HolisticData),
            ("cohesentia_incremental", story.IncrementalData),
        ):
            ratings = {"ratings": [*data.scores.values()], "rating": data.consensus_score}
            yield config, shared | ratings
