"""Datasets as their authors released them: labelled or rated texts, in the authors' splits.

`corpora.tasks.released` makes datasets of the rows; as sources of documents these readers give the
texts behind them. The formats were read off the releases' documentation and loading code; whether
the files of a release themselves were tried is said in docs/sources.md.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from corpora.document import Document, paragraph_spans
from corpora.errors import BadRecord, InputError
from corpora.readers.conllu import Conllu
from corpora.readers.files import Refused, read_lines, read_whole
from corpora.readers.records import Place, Record, as_document, filled, string, strings, wrong_type
from corpora.readers.rows import JSON_LINES, json_rows, json_value, parquet_rows
from corpora.readers.source import Encoding, Reader, Source, rows_of
from corpora.readers.stories import table_rows
from corpora.sentences import split

_SPLIT = re.compile("(?<![a-z])(?:train|valid|val|dev|test)")
_SPLITS = {"train": "train", "test": "test"}
_RATING = re.compile(r"rating([AM])\d+")
_TAG = re.compile(r"(?:^|\|)(Conn|Seg)=([^|]+)")
_MASKED = re.compile(r"[_\s<*>]*")
"""DISRPT writes a text that it may not pass on as underscores."""


class Example(NamedTuple):
    """A row of a release: its configuration and split, the columns (a label by its name), and
    its place."""

    config: str
    split: str
    row: dict[str, Any]
    where: str


class Release(Reader):
    """The files of a release. A file's name says its split; without one it is `train`."""

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """The rows of a file. A bad one goes to `source.refuse`; `Refused` refuses the file."""
        raise NotImplementedError

    def record(self, example: Example) -> Record | None:
        """The document behind a row, as `as_document` takes it; None where a row gives none."""
        row = example.row
        return {"sentences": [row["s1"], row["s2"]]}

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """A document a text, with the id of its row."""
        last = ""
        for example in self.examples(path, stem, source):
            record = self.record(example)
            if record is not None and example.where != last:
                last = example.where
                with source.refusing(last):
                    yield as_document(record, source, example.row["id"])


def split_of(path: Path) -> str:
    """The split that a file's name ends on: `Clinton_train.csv`, `eng.pdtb.gum_dev.rels`."""
    found = _SPLIT.findall(path.name.lower())
    return _SPLITS.get(found[-1], "validation") if found else "train"


def _id(stem: str, where: str) -> str:
    return f"{stem}:{int(where.rpartition(':')[2]):07d}"


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

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """Columns `s1, s2, y` or `sentence1, sentence2, label`, after a header."""

        def build(record: Record, where: str) -> Iterator[Example]:
            names = ("s1", "s2", "y") if "s1" in record else ("sentence1", "sentence2", "label")
            s1, s2, label = (filled(record, name) for name in names)
            row = {"id": _id(stem, where), "s1": s1, "s2": s2, "label": label}
            yield Example("discovery", split_of(path), row, where)

        rows = _named(path) if path.suffix == ".parquet" else table_rows(path, (), quoted=False)
        yield from rows_of(rows, build, source.refuse)


def _named(path: Path) -> Iterator[Place]:
    """The rows of a Parquet file of the Hub, the label by its name: the file's metadata has it."""
    import pyarrow.parquet as pq

    names: list[str] = []
    for where, row in parquet_rows(path):
        if not names:
            about = json.loads((pq.read_schema(path).metadata or {}).get(b"huggingface", b"{}"))
            names = about.get("info", {}).get("features", {}).get("label", {}).get("names", [])
        label = None if isinstance(row, BadRecord) else row.get("label")
        if isinstance(row, Mapping) and isinstance(label, int):
            if not 0 <= label < len(names):
                raise InputError(
                    f"the label {label}, and the file names {len(names)} labels",
                    where=where,
                    hint="take the file as the Hub has it: its metadata name the labels",
                )
            row = {**row, "label": names[label]}
        yield where, row


class DisSent(Release):
    """DisSent's released pairs: S1, S2 and the marker, separated by tabs."""

    name = "dissent"
    suffixes = (".tsv",)
    own_licence = "research-only"  # sentences of BookCorpus
    paper = "Nie, Bennett and Goodman 2019"

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """Three fields a line, no header."""
        columns = ("s1", "s2", "label")

        def build(record: Record, where: str) -> Iterator[Example]:
            row = {"id": _id(stem, where)} | {name: filled(record, name) for name in columns}
            yield Example("dissent", split_of(path), row, where)

        rows = table_rows(path, columns, quoted=False, header=columns)
        yield from rows_of(rows, build, source.refuse)


class Insted(Release):
    """INSteD, training and test: texts, and in half of them a sentence of another one."""

    name = "insted"
    suffixes = JSON_LINES
    paper = "Shen et al. 2021"

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """Of each record the text to judge (`detection`), of one with an intruder also the pair."""

        def build(record: Record, where: str) -> Iterator[Example]:
            doc, part = string(record, "file_id"), string(record, "train")
            if not doc or part not in ("0", "1"):
                raise Refused("no INSteD record: expected 'file_id', and 'train' as 0 or 1")
            about = {"id": _id(stem, where), "doc": doc}
            of = "train" if part == "1" else "test"
            text, position = _replaced(record, source.language)
            other = list(text)
            if position >= 0:
                other[position] = filled(record, "replace_with")
            label = "coherent" if position < 0 else "intruded"
            row = {**about, "label": label, "position": position, "sentences": other}
            yield Example("detection", of, row, where)
            if position >= 0:
                row = {**about, "position": position, "pos": text, "neg": other}
                yield Example("pairwise", of, row, where)

        yield from rows_of(json_rows(path), build, source.refuse)

    def record(self, example: Example) -> Record | None:
        """The coherent text."""
        row = example.row
        if example.config == "pairwise":
            return {"group": row["doc"], "sentences": row["pos"]}
        if row["position"] < 0:
            return {"group": row["doc"], "sentences": row["sentences"]}
        return None


def _replaced(record: Record, language: str) -> tuple[list[str], int]:
    """The sentences of a text of INSteD, and the place of the one to be replaced, or -1.

    `ctx` is a list of sentences; a text in one piece is split around the sentence.
    """
    position = int(_number(record.get("sen_position"), "'sen_position'"))
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
    return text, max(position, -1)


def _split(text: str, language: str) -> list[str]:
    folded = " ".join(text.split())
    return [folded[a:b] for a, b in split(folded, paragraph_spans(folded), language=language)]


class Disrpt(Release):
    """DISRPT 2025: relations (`.rels`), and connectives or discourse units (`.conllu`)."""

    name = "disrpt"
    suffixes = (".rels", ".conllu")
    paper = "DISRPT 2025"

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """Relations, or tagged sentences. Those whose text is masked are counted and left out."""
        corpus = path.stem.rpartition("_")[0] or path.stem
        read = self._relations if path.suffix == ".rels" else self._tagged
        for example in read(path, source):
            row = example.row
            words = row.get("tokens") or (row["arg1"], row["arg2"])
            if all(map(_MASKED.fullmatch, words)):
                source.skipped["masked text: see the shared task's process_underscores"] += 1
            else:
                row |= {"id": _id(stem, example.where), "corpus": corpus}
                yield example

    def _relations(self, path: Path, source: Source) -> Iterator[Example]:
        columns = ("doc", "unit1_txt", "unit2_txt", "dir", "label")

        def build(record: Record, where: str) -> Iterator[Example]:
            raw = "u1_raw" in record  # the text as written; tokenised in the releases before 2025
            units = ("u1_raw", "u2_raw") if raw else ("unit1_txt", "unit2_txt")
            row = {"arg1": filled(record, units[0]), "arg2": filled(record, units[1])}
            row |= {"doc": filled(record, "doc"), "label": filled(record, "label")}
            row |= {"direction": record["dir"], "kind": record.get("rel_type", "")}
            row["original"] = record.get("orig_label", "")
            yield Example("relations", split_of(path), row, where)

        yield from rows_of(table_rows(path, columns, quoted=False), build, source.refuse)

    def _tagged(self, path: Path, source: Source) -> Iterator[Example]:
        doc = kind = ""
        tokens: list[str] = []
        tags: list[str] = []
        bad: BadRecord | None = None
        for number, line in enumerate(chain(read_lines(path), [""]), 1):
            where = f"{path}:{number}"
            if isinstance(line, BadRecord):
                bad = bad or line
            elif line.startswith("#"):
                key, _, value = line[1:].partition("=")
                doc = value.strip() if key.strip() in ("newdoc id", "newdoc_id") else doc
            elif line.strip():
                cells = line.split("\t")
                if len(cells) != 10:
                    bad = bad or BadRecord(where, f"not CoNLL-U: {len(cells)} columns", line[:200])
                elif cells[0].isdecimal():  # neither a multiword token nor an empty node
                    tag = _TAG.search(cells[9])
                    kind = tag[1] if tag else kind
                    tokens.append(cells[1])
                    tags.append(tag[2] if tag else "O")
            else:
                if bad:
                    source.refuse(bad)
                elif tokens and kind:
                    config = "connectives" if kind == "Conn" else "units"
                    row = {"doc": doc, "tokens": tokens, "tags": tags}
                    yield Example(config, split_of(path), row, where)
                elif tokens:
                    source.skipped["sentence without Conn or Seg"] += 1
                tokens, tags, bad = [], [], None

    def read_file(self, path: Path, stem: str, source: Source) -> Iterator[Document]:
        """The documents of a `.conllu` file, as `conllu:` reads them; a `.rels` file has none."""
        if path.suffix == ".conllu":
            yield from Conllu(language=self.language).read_file(path, stem, source)
        else:
            source.skipped["file of relations"] += 1


class Rated(Release):
    """Texts with ratings of their coherence."""

    def record(self, example: Example) -> Record | None:
        """The text, in the group of what it shares with others."""
        return {name: example.row[name] for name in ("group", "title", "text")}


class Gcdc(Rated):
    """GCDC: texts with ratings of their coherence from 1 to 3, by experts and by crowd workers."""

    name = "gcdc"
    suffixes = (".csv",)
    own_licence = "research-only"
    paper = "Lai and Tetreault 2018"

    encoding: Encoding = "utf-8"
    """The encoding of the files."""

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """`DOMAIN_SPLIT.csv`: the experts' ratings (`gcdc`), then the crowd's (`gcdc_crowd`)."""
        lines = read_whole(path, self.encoding)
        rows = csv.DictReader(io.StringIO(lines), strict=True)
        if missing := sorted({"text", "labelA"} - set(rows.fieldnames or ())):
            columns = "text, labelA, labelM, ratingA1, ratingM1 and so on"
            raise Refused(f"no GCDC file: no column {', '.join(missing)}; expected {columns}")

        def build(record: Record, where: str) -> Iterator[Example]:
            if None in record or None in record.values():
                raise Refused("wrong number of fields: not as many as the header has")
            about = {"id": _id(stem, where), "group": _id(stem, where)}
            about |= {"title": record.get("subject", ""), "text": filled(record, "text")}
            for config, who in (("gcdc", "A"), ("gcdc_crowd", "M")):
                given = [v for k, v in record.items() if (m := _RATING.match(k)) and m[1] == who]
                rated = {"ratings": [_number(v, "a rating") for v in given if v.strip()]}
                if label := string(record, f"label{who}").strip():
                    rating = _number(label, f"label{who}")
                    row = {**about, **rated, "rating": rating}
                    yield Example(config, split_of(path), row, where)

        yield from rows_of(_csv_places(rows, path), build, source.refuse)


def _csv_places(rows: csv.DictReader[str], path: Path) -> Iterator[Place]:
    """The rows of a CSV file whose texts have line breaks, each with the line that it ends on."""
    try:
        for row in rows:
            yield f"{path}:{rows.line_num}", row
    except csv.Error as error:
        raise Refused(f"not CSV: {error}", f"{path}:{rows.line_num}") from None


class CoheSentia(Rated):
    """CoheSentia: generated stories, their coherence rated as a whole and sentence by sentence."""

    name = "cohesentia"
    suffixes = (".json",)
    paper = "Maimon and Tsarfaty 2023"

    def examples(self, path: Path, stem: str, source: Source) -> Iterator[Example]:
        """`TrainData.json`, `TestData.json`: an object of stories. Those of one title are a
        group."""
        stories = json_value(read_whole(path))
        if not isinstance(stories, dict):
            raise Refused("no CoheSentia file: expected an object of stories by their ids")

        def build(story: Any, where: str) -> Iterator[Example]:
            if not isinstance(story, Mapping):
                raise Refused("no story: expected an object with 'Title' and 'Text'")
            title, lines = filled(story, "Title"), filled(story, "Text").splitlines()
            text = "\n\n".join(filter(None, map(str.strip, lines)))  # a line is a paragraph
            about = {"id": f"{stem}:{where.rpartition(':')[2]}", "group": title, "title": title}
            for config, field in _METHODS.items():
                rated = story.get(field)
                if not isinstance(rated, Mapping) or not isinstance(rated.get("scores"), Mapping):
                    raise wrong_type(story, field, "an object with 'scores'")
                ratings = [_number(score, "a score") for score in rated["scores"].values()]
                rating = _number(rated.get("consensus_score"), "'consensus_score'")
                row = {**about, "text": text, "ratings": ratings, "rating": rating}
                yield Example(config, split_of(path), row, where)

        places = ((f"{path}:{name}", story) for name, story in stories.items())
        yield from rows_of(places, build, source.refuse)


_METHODS = {"cohesentia_holistic": "HolisticData", "cohesentia_incremental": "IncrementalData"}
