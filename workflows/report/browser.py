"""The data of the example browser: rows of datasets as scripts, which a page can load from disk.

`data/index.js` lists the configurations; `data/NUMBER-00000.js`, `data/NUMBER-00001.js`, ... hold
the rows of one configuration in columns. A row is a list of lines `[title, role, text, role, text,
...]`, where a text is an index into the script's list of texts: a sentence that many rows share is
written once.
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
"""Maximum rows shown of a configuration; of a longer one they are a sample, evenly spread."""
BYTES = 48_000_000
"""Maximum bytes of a configuration's rows (about)."""
READ = 500
"""Number of rows that are read at a time."""
CHUNK, BYTES_A_CHUNK = 5_000, 8_000_000
"""Maximum rows of a script, and their maximum bytes (about)."""
AROUND = 120
"""Characters of a passage that are shown before and after a pair."""
ORDERS = 2
"""Maximum orders shown of a permuted text."""

ROLES = ("text", "s1", "marker", "s2", "changed")
SIDES = {
    **{"s1": "s1", "arg1": "s1", "sentence1": "s1", "premise": "s1", "left": "s1"},
    **{"s2": "s2", "arg2": "s2", "sentence2": "s2", "hypothesis": "s2", "right": "s2"},
    **{"marker": "marker", "connective": "marker"},
}
"""The roles of the columns that are a side of a pair or its marker."""
FACETS = ("marker", "connective", "sense", "relation", "position", "order", "source", "question")
"""Columns of text that get a filter in the page, as the split and the labels do."""
MOST_VALUES = 300
"""Maximum number of values of a filter."""
ABOUT = {
    *("doc", "document", "id", "group", "donor", "licence", "section", "found_by"),
    "title",
    "url",
}
"""Columns of text that name the origin of a row; the page shows them in small print."""

Line = list[Any]
"""A title, then roles and texts in turn; if the title is None, the texts are parts of one text."""
Key = tuple[str, ...]
"""The values of `KEY`."""
KEY = ("doc", "marker", "s1", "s2")
"""Columns that identify a pair, both in a dataset and in the stage `pairs`."""
SPANS = ("marker_spans", "s1_spans", "s2_spans")


class BrowsedDataset(NamedTuple):
    """A dataset for the browser: its configurations, and the stages `pairs` and `documents` that it
    was made from, if they are known.
    """

    name: str
    configurations: Mapping[str, Configuration]
    lineage: Sequence[Made] = ()


def write_data(datasets: Sequence[BrowsedDataset], folder: Path) -> int:
    """Write the rows of `datasets` to `folder/data`; returns the number of rows."""
    data = folder / "data"
    data.mkdir()
    index: list[dict[str, Any]] = []
    for dataset in datasets:
        passages = Passages(dataset.lineage)
        for config, configuration in dataset.configurations.items():
            name = dataset.name if config == "default" else f"{dataset.name}, {config}"
            entry = _write_rows(configuration, passages, len(index), data)
            index.append({"name": name, **entry})
    text = f"discorpora.index({script_json({'roles': ROLES, 'sets': index})});\n"
    (data / "index.js").write_text(text, encoding="utf-8", newline="\n")
    return sum(entry["shown"] for entry in index)


def _write_rows(
    configuration: Configuration, passages: Passages, number: int, data: Path
) -> dict[str, Any]:
    """Write the scripts of a configuration, whose `number` names them; returns its index entry."""
    schema, names = configuration.schema, configuration.schema.names
    facets = _facet_values(configuration)
    about = [n for n in names if n not in facets and n != "confidence"]
    about = [n for n in about if n in ABOUT or pa.types.is_primitive(schema.field(n).type)]
    lines = _Lines(configuration, {*about, *facets} - {*SIDES}, passages)
    if any(passages.files.values()) and {"doc", "label"} <= {*names} and lines.has_pairs():
        passages.read(map(lines.key, chain.from_iterable(_batches(configuration))))
    roles: set[int] = set()
    shown = files = 0
    for batch in _batches(configuration):
        chunk = {
            "facets": [[_number(row[c], ids) for row in batch] for c, ids in facets.items()],
            "confidence": [_rounded(row["confidence"]) for row in batch if "confidence" in names],
            "about": [[_rounded(row[name]) for row in batch] for name in about],
            **_with_text_numbers(lines.of_rows(batch), roles),
        }
        path = data / f"{number}-{files:05d}.js"
        call = f"discorpora.add({number},{files},{script_json(chunk)});\n"
        path.write_text(call, encoding="utf-8", newline="\n")
        files, shown = files + 1, shown + len(batch)
    titles = {"label": "marker"} if {"s1", "s2"} <= {*names} and "marker" not in names else {}
    return {
        "facets": [[titles.get(column, column), [*numbers]] for column, numbers in facets.items()],
        "about": about,
        "roles": sorted(roles),
        "confidence": "confidence" in names,
        "files": files,
        "shown": shown,
        "total": sum(part.count_rows() for part in configuration.splits.values()),
    }


def _facet_values(configuration: Configuration) -> dict[str, dict[str, int]]:
    """Return the columns that have a filter, each with a number for each of its values."""
    values_of = {"split": [*configuration.splits], **configuration.classes}
    for field in configuration.schema:
        if field.name in FACETS and pa.types.is_string(field.type):
            parts = (p.to_table([field.name])[0] for p in configuration.splits.values())
            values = {value for part in parts for value in pc.unique(part).to_pylist() if value}
            if 1 < len(values) <= MOST_VALUES:
                values_of[field.name] = sorted(values)
    return {column: {v: i for i, v in enumerate(values)} for column, values in values_of.items()}


def _number(value: Any, numbers: Mapping[str, int]) -> int:
    """Return the number of a value; a label is its own number; -1 for an unknown value."""
    return value if isinstance(value, int) else numbers.get(value, -1)


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def _with_text_numbers(rows: Iterable[Sequence[Line]], roles: set[int]) -> dict[str, list[Any]]:
    """Return all texts, and the rows with indices in place of texts; add the roles to `roles`."""
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
    """Yield the rows in lists, one for each script; too many rows are sampled evenly."""
    parts = configuration.splits.values()
    first = next(iter(parts)).head(READ)
    rows = sum(part.count_rows() for part in parts)
    size = rows * first.nbytes / max(first.num_rows, 1)
    share = min(1.0, ROWS / max(rows, 1), BYTES / max(size, 1))
    waiting: list[dict[str, Any]] = []
    bytes_waiting = 0
    for split, part in configuration.splits.items():
        start = 0
        for batch in part.to_batches(batch_size=READ):
            sampled_before = np.floor(np.arange(start, start + len(batch) + 1) * share)
            sample = batch.take(pa.array(np.flatnonzero(np.diff(sampled_before))))
            start += len(batch)
            waiting += [{**row, "split": split} for row in sample.to_pylist()]
            bytes_waiting += sample.nbytes
            if len(waiting) >= CHUNK or bytes_waiting > BYTES_A_CHUNK:
                yield waiting
                waiting, bytes_waiting = [], 0
    if waiting:
        yield waiting


class _Lines:
    """Makes the lines of a configuration's rows, by the method that fits its columns."""

    def __init__(
        self, configuration: Configuration, left_out: set[str], passages: Passages
    ) -> None:
        self.configuration, self.passages = configuration, passages
        self.names = configuration.schema.names
        self.left_out = left_out
        self.labels = dict(enumerate(configuration.classes.get("label", ())))
        methods = (
            *[(("s1", "s2"), self.pair)] * self.has_pairs(),
            (("sentences", "position"), self.intruded),
            (("pos", "neg"), self.text_pair),
            (("sentences", "bounds"), self.paragraphs),
            (("sentences", "headings", "section"), self.headings),
            (("tokens", "tags"), self.tokens),
        )
        fitting = (method for columns, method in methods if {*columns} <= {*self.names})
        self.lines_of_row = next(fitting, self.texts)

    def has_pairs(self) -> bool:
        """Whether S1 and S2 are texts: a foreign dataset may have lists of tokens there."""
        schema = self.configuration.schema
        sides = [schema.field(name).type for name in ("s1", "s2") if name in self.names]
        return len(sides) == 2 and all(map(pa.types.is_string, sides))

    def of_rows(self, batch: list[dict[str, Any]]) -> Iterator[list[Line]]:
        """Yield, for each row of a batch, the list of lines that the page shows for the row."""
        if {"document", "orders"} <= {*self.names}:
            # The rows are permutations of documents, whose texts are read for the whole batch.
            yield from self.orders(batch)
        else:
            yield from map(self.lines_of_row, batch)

    def texts(self, row: dict[str, Any]) -> list[Line]:
        """Return a line for the sides of a pair with its marker, and one for each list of texts."""
        sides: Line = [""]
        columns = (name for name in SIDES if name in self.names)
        for name in sorted(columns, key=lambda name: ROLES.index(SIDES[name])):
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
        """Return the passage of a pair or, if it is unknown, its sides and its marker."""
        key = self.key(row)
        return [self.passages.lines.get(key, ["", 1, row["s1"], 2, key[1], 3, row["s2"]])]

    def key(self, row: dict[str, Any]) -> Key:
        """Return a row's values of `KEY`; without a column of markers the label is the marker."""
        marker = row["marker"] if "marker" in row else self.label(row)
        return str(row.get("doc")), marker, row["s1"], row["s2"]

    def label(self, row: dict[str, Any]) -> str:
        """Return the name of a row's label; "" for a row without a label."""
        return self.labels.get(row.get("label", -1), "")

    def intruded(self, row: dict[str, Any]) -> list[Line]:
        """Return a text; unless it is coherent, the sentence that replaces another is marked."""
        coherent = self.label(row) == "coherent"
        return [["", *_sentences(row["sentences"], () if coherent else {row["position"]})]]

    def text_pair(self, row: dict[str, Any]) -> list[Line]:
        """Return a coherent text and a less coherent one; sentences that differ are marked."""
        pos, neg = row["pos"], row["neg"]
        differ = {i for i, (first, second) in enumerate(zip_longest(pos, neg)) if first != second}
        prompt = row.get("prompt") or []
        lines: list[Line] = [["prompt", *_sentences(prompt)]] if prompt else []
        coherent = ["coherent", *_sentences(pos, differ)]
        return [*lines, coherent, ["less coherent", *_sentences(neg, differ)]]

    def paragraphs(self, row: dict[str, Any]) -> list[Line]:
        """Return a line for each paragraph of a document."""
        bounds = enumerate(pairwise(row["bounds"]), 1)
        return [[f"¶ {n}", *_sentences(row["sentences"][a:b])] for n, (a, b) in bounds]

    def headings(self, row: dict[str, Any]) -> list[Line]:
        """Return the title of a document, and for each section a line with its heading."""
        lines: dict[int, Line] = {}
        names = dict(enumerate(row["headings"]))
        for section, text in zip(row["section"], row["sentences"], strict=True):
            lines.setdefault(section, [names.get(section, "")]).extend([0, text])
        return [[row.get("title", "")], *lines.values()]

    def tokens(self, row: dict[str, Any]) -> list[Line]:
        """Return the tokens of a sentence; those with a tag are marked."""
        marked = {i for i, tag in enumerate(row["tags"]) if tag not in ("O", "_")}
        return [["", *_sentences(row["tokens"], marked)]]

    def orders(self, batch: list[dict[str, Any]]) -> Iterator[list[Line]]:
        """Yield for each row the first permutations of a text, and the text, if it is known."""
        ids = pa.array(sorted({row["document"] for row in batch}), pa.string())
        texts: dict[str, list[str]] = {}
        for part in self.configuration.documents.values():
            table = part.to_table(columns=["id", "sentences"], filter=pc.field("id").isin(ids))
            texts |= zip(*table.to_pydict().values(), strict=True)
        for row in batch:
            text, lines = texts.get(row["document"], []), []
            for number, order in enumerate(row["orders"][:ORDERS], 1):
                shuffled = [text[i] for i in order] if text else [*map(str, order)]
                lines.append([f"order {number} of {len(row['orders'])}", *_sentences(shuffled)])
            if text:
                lines.append(["original", *_sentences(text)])
            yield lines


def _sentences(texts: Sequence[str], changed: Collection[int] = ()) -> list[Any]:
    """Return role and text of each sentence in turn; those at `changed` have the role "changed"."""
    parts = ((4 if place in changed else 0, text) for place, text in enumerate(texts))
    return [*chain.from_iterable(parts)]


class Passages:
    """The passages of documents around the pairs of a dataset, from the stages of its lineage."""

    def __init__(self, lineage: Sequence[Made]) -> None:
        self.files: dict[str, list[Path]] = {"pairs": [], "documents": []}
        for stage in lineage:
            self.files[stage.stage] += sorted(stage.folder.glob("*.parquet"))
        self.lines: dict[Key, Line] = {}
        """The passages that `read` has read, as lines by the keys of their pairs."""

    def read(self, keys: Iterable[Key]) -> None:
        """Read the passages of pairs; a pair that the stages do not have gets none."""
        missing = {key for key in keys if key not in self.lines}
        ids = pa.array(sorted({key[0] for key in missing}), pa.string())

        def tables(stage: str, name: str, *columns: str) -> Iterator[pa.Table]:
            """Yield, for each file of a stage, its rows of the documents with missing pairs.

            The column `name` has the id of a row's document.
            """
            rows = pc.field(name).isin(ids)
            options = {"columns": [name, *columns], "page_checksum_verification": True}
            return (pq.read_table(p, filters=rows, **options) for p in self.files[stage])

        spans: dict[str, dict[Key, dict[str, Any]]] = {}
        for table in tables("pairs", *KEY, *SPANS):
            table_keys = [*zip(*(table[name].to_pylist() for name in KEY), strict=True)]
            places = [place for place, key in enumerate(table_keys) if key in missing]
            rows = table.select(SPANS).take(pa.array(places, pa.int64())).to_pylist()
            for place, row in zip(places, rows, strict=True):
                key = table_keys[place]
                spans.setdefault(key[0], {}).setdefault(key, row)
        for table in tables("documents", "id", "text"):
            for name, text in zip(*table.to_pydict().values(), strict=True):
                for key, row in spans.get(name, {}).items():
                    self.lines[key] = [None, *_passage(text, row)]


def contexts(lineage: Sequence[Made], keys: Sequence[Key]) -> list[str]:
    """Return the passage of each pair with the marker in `[[ ]]`; "" where it is unknown."""
    passages = Passages(lineage)
    if all(passages.files.values()):
        passages.read(keys)
    texts, marker = [], ROLES.index("marker")
    for key in keys:
        _, *parts = passages.lines.get(key, [None])
        roles = zip(parts[::2], parts[1::2], strict=True)
        texts.append("".join(f"[[{text}]]" if role == marker else text for role, text in roles))
    return texts


def _passage(text: str, spans: Mapping[str, Sequence[Sequence[int]]]) -> Line:
    """Return a pair as a line: the texts at its `spans`, and up to `AROUND` characters around."""
    marks = [(*s, ROLES.index(name.removesuffix("_spans"))) for name in spans for s in spans[name]]
    marks.sort()
    paragraph_break = text.rfind("\n\n", 0, marks[0][0])
    start = max(marks[0][0] - AROUND, 0 if paragraph_break < 0 else paragraph_break + 2)
    end = max(mark_end for _, mark_end, _ in marks)
    paragraph_end = text.find("\n\n", end)
    stop = min(end + AROUND, len(text) if paragraph_end < 0 else paragraph_end)
    line: Line = []
    position = start
    for mark_start, mark_end, role in marks:
        if mark_start > position:
            line += [0, text[position:mark_start]]
        line += [role, text[max(mark_start, position) : mark_end]]
        position = max(position, mark_end)
    if stop > position:
        line += [0, text[position:stop]]
    if start and not text[:start].endswith("\n\n") and line[0] == 0:
        line[1] = f"… {line[1].partition(' ')[2]}"
    if stop < len(text) and not text[stop:].startswith("\n\n") and line[-2] == 0:
        line[-1] = f"{line[-1].rpartition(' ')[0]} …"
    return line
