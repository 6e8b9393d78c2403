"""The example browser's data: rows of datasets as scripts, which a page on a disk can load.

`data/index.js` says what there is; `data/NUMBER-00000.js` and on hold the rows of one
configuration in columns. A row is a list of lines `[title, role, text, role, text, ...]`, where a
text is a number in the list of the script's texts: a sentence that many rows share is there once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora.audit.data import Configuration
from workflows.report.markup import script_json
from workflows.report.stages import Made

ROWS = 100_000
"""The most rows of a configuration that are shown: those of a longer one are spread over it."""
BYTES = 48_000_000
"""About the most bytes of a configuration's rows."""
READ = 500
CHUNK, BYTES_A_CHUNK = 5_000, 8_000_000
"""Rows that are read at a time; the rows of a script, and about the most bytes of them."""
AROUND = 120
"""Characters of a passage that are shown before and after a pair."""
ORDERS = 2
"""The number of orders shown of a permuted text."""

ROLES = ("text", "s1", "marker", "s2", "changed")
SIDES = {
    **{"s1": "s1", "arg1": "s1", "sentence1": "s1", "premise": "s1", "left": "s1"},
    **{"s2": "s2", "arg2": "s2", "sentence2": "s2", "hypothesis": "s2", "right": "s2"},
    **{"marker": "marker", "connective": "marker"},
}
"""The roles of the columns that are a side of a pair or its marker."""
FACETS = ("marker", "connective", "sense", "relation", "position", "order", "source", "question")
"""Columns of text that a filter offers, beside the split and the labels."""
MOST_VALUES = 300
ABOUT = {
    *("doc", "document", "id", "group", "donor", "licence", "section", "found_by"),
    "title",
    "url",
}
"""Columns of text that say where a row is from: they are small print."""

Line = list[Any]
"""A title, then roles and texts in turn: parts of one text if the title is None."""
Key = tuple[str, ...]
KEY = ("doc", "marker", "s1", "s2")
"""What a row of a dataset and one of the pairs that it was made of have in common."""
SPANS = ("marker_spans", "s1_spans", "s2_spans")


class Shown(NamedTuple):
    """A dataset to be browsed: its configurations, and the stages `pairs` and `documents` that it
    was made of, if known.
    """

    name: str
    configurations: Mapping[str, Configuration]
    lineage: Sequence[Made] = ()


def write_data(datasets: Sequence[Shown], folder: Path) -> int:
    """Write the rows of `datasets` to `folder/data`; returns how many there are."""
    data = folder / "data"
    data.mkdir()
    index: list[dict[str, Any]] = []
    for dataset in datasets:
        passages = Passages(dataset.lineage)
        for config, configuration in dataset.configurations.items():
            name = dataset.name if config == "default" else f"{dataset.name}, {config}"
            about = _write_rows(configuration, passages, len(index), data)
            index.append({"name": name, **about})
    text = f"discorpora.index({script_json({'roles': ROLES, 'sets': index})});\n"
    (data / "index.js").write_text(text, encoding="utf-8", newline="\n")
    return sum(entry["shown"] for entry in index)


def _write_rows(
    configuration: Configuration, passages: Passages, number: int, data: Path
) -> dict[str, Any]:
    """Write the scripts of the configuration `number`; returns what the index says of it."""
    schema, names = configuration.schema, configuration.schema.names
    choices = _choices(configuration)
    small = [n for n in names if n not in choices and n != "confidence"]
    small = [n for n in small if n in ABOUT or pa.types.is_primitive(schema.field(n).type)]
    lines = _Lines(configuration, {*small, *choices} - {*SIDES}, passages)
    if any(passages.files.values()) and {"doc", "label"} <= {*names} and lines.has_pairs():
        passages.look(map(lines.key, chain.from_iterable(_batches(configuration))))
    roles: set[int] = set()
    shown = files = 0
    for batch in _batches(configuration):
        chunk = {
            "facets": [[_place(row[name], of) for row in batch] for name, of in choices.items()],
            "confidence": [_short(row["confidence"]) for row in batch if "confidence" in names],
            "about": [[_short(row[name]) for row in batch] for name in small],
            **_numbered(lines.of(batch), roles),
        }
        path = data / f"{number}-{files:05d}.js"
        call = f"discorpora.add({number},{files},{script_json(chunk)});\n"
        path.write_text(call, encoding="utf-8", newline="\n")
        files, shown = files + 1, shown + len(batch)
    titles = {"label": "marker"} if {"s1", "s2"} <= {*names} and "marker" not in names else {}
    return {
        "facets": [[titles.get(column, column), [*of]] for column, of in choices.items()],
        "about": small,
        "roles": sorted(roles),
        "confidence": "confidence" in names,
        "files": files,
        "shown": shown,
        "total": sum(part.count_rows() for part in configuration.splits.values()),
    }


def _choices(configuration: Configuration) -> dict[str, dict[str, int]]:
    """The columns that filters offer, and the numbers of their values; labels keep their own."""
    found = {"split": [*configuration.splits], **configuration.classes}
    for field in configuration.schema:
        if field.name in FACETS and pa.types.is_string(field.type):
            parts = (p.to_table([field.name])[0] for p in configuration.splits.values())
            values = {value for part in parts for value in pc.unique(part).to_pylist() if value}
            if 1 < len(values) <= MOST_VALUES:
                found[field.name] = sorted(values)
    return {column: {v: i for i, v in enumerate(values)} for column, values in found.items()}


def _place(value: Any, numbers: Mapping[str, int]) -> int:
    """The number of a value, or of a label, which is one already; -1 where there is none."""
    return value if isinstance(value, int) else numbers.get(value, -1)


def _short(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def _numbered(rows: Iterable[Sequence[Line]], roles: set[int]) -> dict[str, list[Any]]:
    """Rows whose texts are numbers in a list; the roles that occur are added to `roles`."""
    texts: dict[str, int] = {}
    numbered: list[list[Line]] = []
    for lines in rows:
        numbered.append([])
        for title, *parts in lines:
            roles.update(parts[::2])
            words = (texts.setdefault(text, len(texts)) for text in parts[1::2])
            ids = chain.from_iterable(zip(parts[::2], words, strict=True))
            numbered[-1].append([title, *ids])
    return {"texts": [*texts], "rows": numbered}


def _batches(configuration: Configuration) -> Iterator[list[dict[str, Any]]]:
    """The rows in lists for a script each; of too many as many as are shown, evenly spread."""
    parts = configuration.splits.values()
    first = next(iter(parts)).head(READ)
    rows = sum(part.count_rows() for part in parts)
    size = rows * first.nbytes / max(first.num_rows, 1)
    share = min(1.0, ROWS / max(rows, 1), BYTES / max(size, 1))
    waiting: list[dict[str, Any]] = []
    held = 0
    for split, part in configuration.splits.items():
        start = 0
        for batch in part.to_batches(batch_size=READ):
            places = np.floor(np.arange(start, start + len(batch) + 1) * share)
            kept = batch.take(pa.array(np.flatnonzero(np.diff(places))))
            start += len(batch)
            waiting += [{**row, "split": split} for row in kept.to_pylist()]
            held += kept.nbytes
            if len(waiting) >= CHUNK or held > BYTES_A_CHUNK:
                yield waiting
                waiting, held = [], 0
    if waiting:
        yield waiting


class _Lines:
    """Makes the lines of rows, by the columns that their configuration has."""

    def __init__(
        self, configuration: Configuration, left_out: set[str], passages: Passages
    ) -> None:
        self.configuration, self.passages = configuration, passages
        self.names = configuration.schema.names
        self.left_out = left_out
        self.labels = dict(enumerate(configuration.classes.get("label", ())))
        ways = (
            *[(("s1", "s2"), self.pair)] * self.has_pairs(),
            (("sentences", "position"), self.changed),
            (("pos", "neg"), self.two),
            (("sentences", "bounds"), self.paragraphs),
            (("sentences", "headings", "section"), self.headings),
            (("tokens", "tags"), self.tokens),
        )
        fitting = (way for columns, way in ways if {*columns} <= {*self.names})
        self.way = next(fitting, self.texts)

    def has_pairs(self) -> bool:
        """Whether S1 and S2 are texts: a dataset of others may have lists of tokens."""
        schema = self.configuration.schema
        sides = [schema.field(name).type for name in ("s1", "s2") if name in self.names]
        return len(sides) == 2 and all(map(pa.types.is_string, sides))

    def of(self, batch: list[dict[str, Any]]) -> Iterator[list[Line]]:
        if {"document", "orders"} <= {*self.names}:
            yield from self.orders(batch)
        else:
            yield from map(self.way, batch)

    def texts(self, row: dict[str, Any]) -> list[Line]:
        """The columns of text as they are, the sides of a pair and its marker on one line."""
        sides: Line = [""]
        named = (name for name in SIDES if name in self.names)
        for name in sorted(named, key=lambda name: ROLES.index(SIDES[name])):
            text = row[name]
            sides += [ROLES.index(SIDES[name]), " ".join(text) if isinstance(text, list) else text]
        lines = [sides] if len(sides) > 1 else []
        for name in self.names:
            parts = [row[name]] if isinstance(row[name], str) else row[name]
            if name in self.left_out or name in SIDES or not isinstance(parts, list):
                continue
            if parts and all(isinstance(part, str) for part in parts):
                lines.append([name, *_sentences(parts)])
        return lines

    def pair(self, row: dict[str, Any]) -> list[Line]:
        key = self.key(row)
        return [self.passages.lines.get(key, ["", 1, row["s1"], 2, key[1], 3, row["s2"]])]

    def key(self, row: dict[str, Any]) -> Key:
        marker = row["marker"] if "marker" in row else self.label(row)
        return str(row.get("doc")), marker, row["s1"], row["s2"]

    def label(self, row: dict[str, Any]) -> str:
        """The name of a row's label; none for a hidden one."""
        return self.labels.get(row.get("label", -1), "")

    def changed(self, row: dict[str, Any]) -> list[Line]:
        same = self.label(row) == "coherent"
        return [["", *_sentences(row["sentences"], () if same else {row["position"]})]]

    def two(self, row: dict[str, Any]) -> list[Line]:
        pos, neg = row["pos"], row["neg"]
        differ = {i for i, (one, two) in enumerate(zip_longest(pos, neg)) if one != two}
        prompt = row.get("prompt") or []
        lines: list[Line] = [["prompt", *_sentences(prompt)]] if prompt else []
        coherent = ["coherent", *_sentences(pos, differ)]
        return [*lines, coherent, ["less coherent", *_sentences(neg, differ)]]

    def paragraphs(self, row: dict[str, Any]) -> list[Line]:
        parts = enumerate(pairwise(row["bounds"]), 1)
        return [[f"¶ {n}", *_sentences(row["sentences"][a:b])] for n, (a, b) in parts]

    def headings(self, row: dict[str, Any]) -> list[Line]:
        lines: dict[int, Line] = {}
        names = dict(enumerate(row["headings"]))
        for section, text in zip(row["section"], row["sentences"], strict=True):
            lines.setdefault(section, [names.get(section, "")]).extend([0, text])
        return [[row.get("title", "")], *lines.values()]

    def tokens(self, row: dict[str, Any]) -> list[Line]:
        marked = {i for i, tag in enumerate(row["tags"]) if tag not in ("O", "_")}
        return [["", *_sentences(row["tokens"], marked)]]

    def orders(self, batch: list[dict[str, Any]]) -> Iterator[list[Line]]:
        """The first orders of a text, and the text, if the dataset has the texts."""
        ids = pa.array(sorted({row["document"] for row in batch}), pa.string())
        texts: dict[str, list[str]] = {}
        for part in self.configuration.documents.values():
            chosen = part.to_table(columns=["id", "sentences"], filter=pc.field("id").isin(ids))
            texts |= zip(*chosen.to_pydict().values(), strict=True)
        for row in batch:
            text, lines = texts.get(row["document"], []), []
            for number, order in enumerate(row["orders"][:ORDERS], 1):
                shuffled = [text[i] for i in order] if text else [*map(str, order)]
                lines.append([f"order {number} of {len(row['orders'])}", *_sentences(shuffled)])
            if text:
                lines.append(["original", *_sentences(text)])
            yield lines


def _sentences(texts: Sequence[str], changed: Collection[int] = ()) -> list[Any]:
    """Roles and texts in turn."""
    parts = ((4 if place in changed else 0, text) for place, text in enumerate(texts))
    return [*chain.from_iterable(parts)]


class Passages:
    """Where the pairs of a dataset stand in their documents, as the stages before it say."""

    def __init__(self, lineage: Sequence[Made]) -> None:
        self.files: dict[str, list[Path]] = {"pairs": [], "documents": []}
        for made in lineage:
            self.files[made.stage] += sorted(made.folder.glob("*.parquet"))
        self.lines: dict[Key, Line] = {}
        """The passages that were looked for and found, by the keys of their pairs."""

    def look(self, keys: Iterable[Key]) -> None:
        """Find the passages of pairs."""
        wanted = {key for key in keys if key not in self.lines}
        ids = pa.array(sorted({key[0] for key in wanted}), pa.string())

        def read(stage: str, name: str, *columns: str) -> Iterator[pa.Table]:
            chosen = pc.field(name).isin(ids)
            options = {"columns": [name, *columns], "page_checksum_verification": True}
            return (pq.read_table(p, filters=chosen, **options) for p in self.files[stage])

        spans: dict[str, dict[Key, dict[str, Any]]] = {}
        for part in read("pairs", *KEY, *SPANS):
            found = [*zip(*(part[name].to_pylist() for name in KEY), strict=True)]
            places = [place for place, key in enumerate(found) if key in wanted]
            rows = part.select(SPANS).take(pa.array(places, pa.int64())).to_pylist()
            for place, row in zip(places, rows, strict=True):
                spans.setdefault(found[place][0], {}).setdefault(found[place], row)
        for part in read("documents", "id", "text"):
            for name, text in zip(*part.to_pydict().values(), strict=True):
                for key, row in spans.get(name, {}).items():
                    self.lines[key] = [None, *_marked(text, row)]


def _marked(text: str, spans: Mapping[str, Sequence[Sequence[int]]]) -> Line:
    """The passage of a pair, cut into its sides, its marker, and what is around them."""
    marks = [(*s, ROLES.index(name.removesuffix("_spans"))) for name in spans for s in spans[name]]
    marks.sort()
    first = text.rfind("\n\n", 0, marks[0][0])
    start = max(marks[0][0] - AROUND, 0 if first < 0 else first + 2)
    end = max(stop for _, stop, _ in marks)
    last = text.find("\n\n", end)
    stop = min(end + AROUND, len(text) if last < 0 else last)
    line: Line = []
    at = start
    for begin, finish, role in marks:
        if begin > at:
            line += [0, text[at:begin]]
        line += [role, text[max(begin, at) : finish]]
        at = max(at, finish)
    if stop > at:
        line += [0, text[at:stop]]
    if start and not text[:start].endswith("\n\n") and line[0] == 0:
        line[1] = f"… {line[1].partition(' ')[2]}"
    if stop < len(text) and not text[stop:].startswith("\n\n") and line[-2] == 0:
        line[-1] = f"{line[-1].rpartition(' ')[0]} …"
    return line
