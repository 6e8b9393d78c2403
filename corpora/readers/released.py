"""Datasets as their authors released them: labelled or rated texts, in the authors' splits.

`corpora.tasks.released` makes datasets of the rows; as sources of documents these readers give
their texts. The formats follow the releases' documentation and loading code;
docs/reference/sources.md says which released files were tested.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from corpora.document import Document, paragraph_spans
from corpora.errors import BadRecord, InputError
from corpora.readers.conllu import Conllu
from corpora.readers.files import LINES_LIMIT, TOO_LONG, Refused, read_lines, read_whole
from corpora.readers.records import Place, Record, as_document, filled, string, strings, wrong_type
from corpora.readers.rows import JSON_LINES, json_rows, json_value, parquet_rows
from corpora.readers.source import Encoded, Reader, Source, rows_of
from corpora.readers.stories import table_rows
from corpora.sentences import split
from corpora.splits.prescribed import split_of
from corpora.store.manifest import label_names

_TAG = re.compile(r"(?:^|\|)(Conn|Seg)=([^|]+)")
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

        def build(record: Any, where: str) -> Iterator[Example]:
            id = f"{stem}:{where.rpartition(':')[2].zfill(self.digits)}"
            for config, row in self.columns(record, path):
                yield Example(config, row.pop("split", of), {"id": id, **row}, where)

        yield from rows_of(self.records(path, source), build, source.refuse)

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


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise Refused(f"no number: {what} is {str(value)[:40]!r}")
    return number


class Discovery(Release):
    """Discovery: adjacent sentences, and the marker that began the second (TSV, or the Hub's
    Parquet)."""

    name = "discovery"
    suffixes = (".tsv", ".parquet")
    paper = "Sileo et al. 2019"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """Columns `s1, s2, y` or `sentence1, sentence2, label`, after a header."""
        return _named(path) if path.suffix == ".parquet" else table_rows(path, (), quoted=False)

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        names = ("s1", "s2", "y") if "s1" in record else ("sentence1", "sentence2", "label")
        s1, s2, label = (filled(record, name) for name in names)
        yield self.name, {"s1": s1, "s2": s2, "label": label}


def _named(path: Path) -> Iterator[Place]:
    """The rows of a Parquet file of the Hub, with label names from the file's metadata."""
    import pyarrow.parquet as pq

    names: list[str] = []
    for where, row in parquet_rows(path):
        if not names:
            names = label_names(pq.read_schema(path).metadata).get("label", [])
        if isinstance(row, Mapping) and isinstance(label := row.get("label"), int):
            if not 0 <= label < len(names):
                raise InputError(
                    f"the label {label}, and the file names {len(names)} labels",
                    where=where,
                    hint="use the unchanged file from the Hub: its metadata name the labels",
                )
            row = {**row, "label": names[label]}
        yield where, row


class DisSent(Release):
    """DisSent's released pairs: S1, S2 and the marker, separated by tabs."""

    name = "dissent"
    suffixes = (".tsv",)
    own_licence = "research-only"  # sentences of BookCorpus
    paper = "Nie, Bennett and Goodman 2019"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """Three fields a line, no header."""
        return table_rows(path, (), quoted=False, header=("s1", "s2", "label"))

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        yield self.name, {name: filled(record, name) for name in record}


class Insted(Release):
    """INSteD, training and test: texts, half of them with a sentence of another text."""

    name = "insted"
    suffixes = JSON_LINES
    paper = "Shen et al. 2021"

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """For each record the text to judge (`detection`), with an intruder also the pair."""
        doc, part = string(record, "file_id"), string(record, "train")
        if not doc or part not in ("0", "1"):
            raise Refused("no INSteD record: expected 'file_id', and 'train' as 0 or 1")
        text, position = _replaced(record, self.language)
        about = {"doc": doc, "position": position, "split": "train" if part == "1" else "test"}
        if position < 0:
            yield "detection", about | {"label": "coherent", "sentences": text}
            return
        other = [*text[:position], filled(record, "replace_with"), *text[position + 1 :]]
        yield "detection", about | {"label": "intruded", "sentences": other}
        yield "pairwise", about | {"pos": text, "neg": other}

    def record(self, row: Record) -> Record | None:
        """The coherent text."""
        text = row.get("pos") or (row["sentences"] if row["position"] < 0 else None)
        return text and {"group": row["doc"], "sentences": text}


def _replaced(record: Record, language: str) -> tuple[list[str], int]:
    """The sentences of a text of INSteD, and the position of the replaced one, or -1.

    `ctx` is a list of sentences, or one text, which is split around the sentence.
    """
    position = max(-1, int(_number(record.get("sen_position"), "'sen_position'")))
    context, old = record.get("ctx"), string(record, "to_be_replaced").strip()
    if isinstance(context, str):
        head, found, tail = context.partition(old) if position >= 0 and old else (context, "", "")
        before = _split(head, language)
        text = [*before, *([found] if found else []), *_split(tail, language)]
        position = position if position < 0 else len(before)
    else:
        text = strings(record, "ctx")
    if not any(map(str.strip, text)):
        raise Refused("no text: 'ctx' has none")
    if position >= 0 and (position >= len(text) or text[position].strip() != old):
        raise Refused(f"no sentence: {old[:60]!r} is not sentence {position} of 'ctx'")
    return text, position


def _split(text: str, language: str) -> list[str]:
    folded = " ".join(text.split())
    return [folded[a:b] for a, b in split(folded, paragraph_spans(folded), language=language)]


class Disrpt(Release):
    """DISRPT 2025: relations (`.rels`), and connectives or discourse units (`.conllu`)."""

    name = "disrpt"
    suffixes = (".rels", ".conllu")
    paper = "DISRPT 2025"

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """Relations, or tagged sentences. Masked ones are counted and left out."""
        columns = ("doc", "unit1_txt", "unit2_txt", "dir", "label")
        relations = path.suffix == ".rels"
        for where, record in (
            table_rows(path, columns, quoted=False) if relations else _tagged(path, source)
        ):
            if not isinstance(record, BadRecord):
                words = record.get("tokens") or [record[name] for name in _units(record)]
                if any(words) and all(map(_MASKED.fullmatch, words)):
                    source.skipped["masked text: see the shared task's process_underscores"] += 1
                    continue
            yield where, record

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        about = {"corpus": path.stem.rpartition("_")[0] or path.stem}
        if "tokens" in record:
            config = "connectives" if record["kind"] == "Conn" else "units"
            yield config, about | {name: record[name] for name in ("doc", "tokens", "tags")}
            return
        arg1, arg2, doc, label = (filled(record, n) for n in (*_units(record), "doc", "label"))
        about |= {"arg1": arg1, "arg2": arg2, "doc": doc, "label": label}
        about |= {"direction": record["dir"], "kind": record.get("rel_type", "")}
        yield "relations", about | {"original": record.get("orig_label", "")}

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The documents of a `.conllu` file, as `conllu:` reads them; a `.rels` file has none."""
        if path.suffix == ".conllu":
            yield from Conllu(language=self.language).read_file(path, stem, source)
        else:
            source.skipped["file of relations"] += 1


def _units(record: Record) -> tuple[str, str]:
    """The columns of the text as written; releases before 2025 have only tokenised text."""
    return ("u1_raw", "u2_raw") if "u1_raw" in record else ("unit1_txt", "unit2_txt")


def _tagged(path: Path, source: Source) -> Iterator[Place]:
    """The sentences of a `.conllu` file, each with the number of the line after it."""
    doc = kind = ""
    tokens: list[str] = []
    tags: list[str] = []
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
            if len(cells) != 10:
                bad = bad or BadRecord(where, f"not CoNLL-U: {len(cells)} columns", line[:200])
            elif cells[0].isdecimal():  # neither a multiword token nor an empty node
                tag = _TAG.search(cells[9])
                kind = tag[1] if tag else kind
                if len(tokens) >= LINES_LIMIT // 10:
                    raise Refused(TOO_LONG, where)
                tokens.append(cells[1])
                tags.append(tag[2] if tag else "O")
        else:
            if bad or (tokens and kind):
                yield where, bad or {"doc": doc, "kind": kind, "tokens": tokens, "tags": tags}
            elif tokens:
                source.skipped["sentence without Conn or Seg"] += 1
            tokens, tags, bad = [], [], None


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
            if missing := sorted({"text", "labelA"} - set(rows.fieldnames or ())):
                columns = "text, labelA, labelM, ratingA1, ratingM1 and so on"
                raise Refused(f"no GCDC file: no column {', '.join(missing)}; expected {columns}")
            for row in rows:
                yield f"{path}:{rows.line_num}", row
        except csv.Error as error:
            raise Refused(f"not CSV: {error}", f"{path}:{rows.line_num}") from None

    def columns(self, record: Record, path: Path) -> Iterator[Columns]:
        """The experts' ratings (`gcdc`), then the crowd's (`gcdc_crowd`)."""
        if None in record or None in record.values():
            raise Refused("wrong number of fields: not as many as the header has")
        about = {"title": record.get("subject", ""), "text": filled(record, "text")}
        for config, who in (("gcdc", "A"), ("gcdc_crowd", "M")):
            given = [v for k, v in record.items() if re.match(rf"rating{who}\d", k) and v.strip()]
            ratings = [_number(value, "a rating") for value in given]
            if label := string(record, f"label{who}").strip():
                rating = _number(label, f"label{who}")
                yield config, {**about, "ratings": ratings, "rating": rating}


class CoheSentia(Rated):
    """CoheSentia: generated stories, their coherence rated as a whole and sentence by sentence."""

    name = "cohesentia"
    suffixes = (".json",)
    paper = "Maimon and Tsarfaty 2023"
    digits = 0

    def records(self, path: Path, source: Source) -> Iterable[Place]:
        """`TrainData.json`, `TestData.json`: an object of stories."""
        stories = json_value(read_whole(path))
        if not isinstance(stories, dict):
            raise Refused("no CoheSentia file: expected an object of stories by their ids")
        return ((f"{path}:{name}", story) for name, story in stories.items())

    def columns(self, record: Any, path: Path) -> Iterator[Columns]:
        """Both ratings of a story; the stories of one title are a group."""
        if not isinstance(record, Mapping):
            raise Refused("no story: expected an object with 'Title' and 'Text'")
        title, lines = filled(record, "Title"), filled(record, "Text").splitlines()
        text = "\n\n".join(filter(None, map(str.strip, lines)))  # a line is a paragraph
        for how in ("Holistic", "Incremental"):
            rated = record.get(f"{how}Data")
            if not isinstance(rated, Mapping) or not isinstance(rated.get("scores"), Mapping):
                raise wrong_type(record, f"{how}Data", "an object with 'scores'")
            row: dict[str, Any] = {"group": title, "title": title, "text": text}
            row["ratings"] = [_number(score, "a score") for score in rated["scores"].values()]
            row["rating"] = _number(rated.get("consensus_score"), "'consensus_score'")
            yield f"cohesentia_{how.lower()}", row
