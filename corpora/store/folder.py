"""Dataset folders: what the Hub takes as it is, and its manifest.

A folder holds `README.md` (the card), `<config>/<split>-00000-of-0000N.parquet` and
`manifest.json`, written last. It holds nothing that changes from run to run.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpora import audit, licences
from corpora.code import versions
from corpora.declared import Declared
from corpora.errors import DiscorporaError, InputError
from corpora.escape import yaml
from corpora.intervals import FEW
from corpora.splits import SPLITS, TOLERANCE, Shares, measure_fit
from corpora.store import card as cards
from corpora.store.atomic import MANIFEST, cleared, read_json, sha256, write_json, write_text
from corpora.store.documents import shards_of
from corpora.store.engine import Engine, parquet
from corpora.store.rows import SplitWriter, write_parquet

log = logging.getLogger(__name__)

CANDIDATES = ".candidates"
"""The folder, inside a partial one, of the candidates that builders collect."""

ATTRIBUTION = "attribution.parquet"
CREDITS = pa.schema(
    [(name, pa.string()) for name in ("source", "id", "title", "author", "url", "licence")]
)
BUILD_FILES = "build_files"
"""The folder with copies of the tables and pattern files that the build file names."""
SHOWN = 50
"""Maximum documents with authors that a card lists; it lists the books of the splits if fewer."""
FEW_ROWS = 50
"""Fewer rows of a label than this, in all splits together, are worth a warning."""
DOCUMENT_COLUMNS = ("doc", "donor", "document", "id")
"""Columns that name a row's document, or a part of it, `DOCUMENT#NUMBER`."""

LIBRARIES = ("discorpora", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True)
class Stage:
    """The record of the stage that makes a target; all of it is known before anything runs.

    - `hash` covers the settings, the upstream stages' hashes and the sources' fingerprints.
    - `upstream` maps stage names to hashes.
    - `sources`: each has `spec` (or `kind` and `place`), `revision` or `sha256`, `licence`, and
      maybe `name`.
    - `extraction`: the settings of the extraction, for a dataset made from pairs.
    - `command` makes the target again, from the build file `build` if there is one.
    - `title`, `description` and `publisher` (`name`, `contact`, `citation`) are for the card.
    """

    name: str
    version: int
    hash: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    upstream: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[Mapping[str, Any]] = ()
    parser: str | None = None
    command: str = ""
    extraction: Mapping[str, Any] = field(default_factory=dict)
    build: str = ""
    title: str = ""
    description: str = ""
    publisher: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def dataset_name(self) -> str:
        """The name of the dataset that the stage makes: the last part of the stage's name."""
        return self.name.rsplit("/", 1)[-1]


@dataclass
class DatasetFolder:
    """Writes one dataset into `folder`, the partial folder that `staged` yields.

    A context manager: an exception closes all open files. Splits are written at the same time, in
    constant memory; the overlap between splits is counted at the end. The files of a broken build
    are removed, except for candidates; a folder with other contents raises `DiscorporaError`.

    The descriptions of the fields of `builder` explain its settings on the card. `documents` are
    the folders of the documents of the rows: those with an author or an address are listed in
    `attribution.parquet`. `build_files` are the tables and pattern files that the build file names:
    their copies are published with the dataset. `extraction_rejects` are reasons with their numbers
    and meanings, `rejects` the numbers of rejected candidates by reason, `licences` the numbers of
    rows by licence. `notes` are sentences for the card, `details` further keys of the manifest.

        with staged(target) as partial, DatasetFolder(partial, "sp", stage, card) as dataset:
            dataset.writer("default", "train", schema, texts=("s1", "s2")).extend(rows)
            dataset.count_licences(licences_of_the_rows)
            manifest = dataset.finish()
    """

    folder: Path
    name: str
    stage: Stage
    card: cards.Card
    builder: type[Declared] | None = None
    documents: Sequence[Path] = ()
    build_files: Sequence[Path] = ()
    extraction_rejects: Sequence[tuple[str, int, str]] = ()
    rows_per_shard: int = 1_048_576
    rows_per_group: int = 16_384
    rejects: Counter[str] = field(default_factory=Counter)
    licences: Counter[str] = field(default_factory=Counter)
    languages: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    shares: Shares | None = None
    """The requested shares of the splits, unless sizes were requested."""
    _writers: dict[tuple[str, str], SplitWriter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cleared(self.folder, keep=CANDIDATES)

    def __enter__(self) -> DatasetFolder:
        return self

    def __exit__(self, *error: object) -> None:
        for writer in self._writers.values():
            with suppress(OSError):
                writer.stop()

    def writer(
        self,
        config: str,
        split: str,
        schema: pa.Schema,
        *,
        texts: Sequence[str] = (),
        long: Sequence[str] = (),
        rows_per_group: int = 0,
    ) -> SplitWriter:
        """Return the writer of one split, the same at each call.

        `texts` are the columns whose overlap between splits is counted; `long` are further columns
        of text, whose overlap another configuration counts. `rows_per_group` can be set lower for
        long rows, since a row group is held in memory.
        """
        if (config, split) not in self._writers:
            self._writers[config, split] = SplitWriter(
                self.folder / config,
                split,
                schema,
                texts=texts,
                long=long,
                rows_per_shard=self.rows_per_shard,
                rows_per_group=rows_per_group or self.rows_per_group,
            )
        return self._writers[config, split]

    def reject(self, reason: str, n: int = 1) -> None:
        """Count `n` candidates that were rejected for `reason`."""
        if n:
            self.rejects[reason] += n

    def count_licences(self, column: pa.Array, rows_each: int = 1) -> None:
        """Count rows by the licence of their document; the dataset's licence follows from them.

        `column` has the licences of a batch, `rows_each` is the number of rows for each entry.
        """
        for entry in column.value_counts().to_pylist():
            self.count_licence(entry["values"], rows_each * entry["counts"])

    def count_licence(self, licence: str, rows: int = 1) -> None:
        """Count rows of documents under one licence; "" counts as unknown."""
        self.licences[licence or licences.UNKNOWN] += rows

    def name_licences(self, licences_by_source: Mapping[str, Iterable[str]]) -> None:
        """Record in the stage which licences the rows of each source have, given by its name."""
        sources = []
        for source in self.stage.sources:
            ids = sorted(licences_by_source.get(str(source.get("name", "")), ()))
            licence = " AND ".join(ids) if ids else source.get("licence", "")
            sources.append({**source, "licence": licence})
        self.stage = replace(self.stage, sources=sources)

    def note(self, text: str) -> None:
        """Add a sentence to the notes on the card, for users of the data."""
        self.notes.append(text)

    def finish(self, default: str | None = None) -> dict[str, Any]:
        """Close the files, write the card, then the manifest; return the manifest.

        `default` is the configuration that loads without being named; if it has no row, the first
        that has. A configuration without rows is left out, and a split without rows has no file;
        the notes say so.
        Raises `InputError` if there is no row at all, and `DiscorporaError` if no row's licence was
        counted: the licence in the build file may differ from those of the documents.
        """
        # The shards of the configurations that have rows
        configs = self._close_writers()
        if not configs:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in self.rejects.most_common())
            raise InputError(
                f"not one row could be made for the dataset {self.name!r}",
                where=", ".join(map(cards.source_name, self.stage.sources)),
                hint=f"rejected candidates: {reasons or 'none, the sources are empty'}",
            )
        if not self.licences.total():
            raise DiscorporaError(
                f"the builder of {self.name!r} counted no licence of the rows that it wrote",
                where=self.stage.name,
                hint="let it call dataset.count_licences with the licences of each batch's "
                "documents: docs/how-to/add-a-stage.md",
            )
        # Figures that need all rows: distinct texts, overlap of the splits, attribution, groups
        self._note_shares(configs)
        if default is not None:
            configs[default if default in configs else next(iter(configs))]["default"] = True
        self._note_labels(configs)
        self._note_few_rows(configs)
        with Engine(self.folder) as engine:
            overlap = {}
            for config, entry in configs.items():
                writers = [w for (name, _), w in self._writers.items() if name == config]
                for writer in writers:
                    entry["splits"][writer.split]["distinct"] = _count_distinct(engine, writer)
                if writers[0].texts:
                    overlap[config] = _count_overlap(engine, writers)
            attribution = self._write_attribution(engine, configs)
            groups = self._rows_by_group(engine, configs)
        files = [ATTRIBUTION] if attribution else []
        for path in self.build_files:
            (self.folder / BUILD_FILES).mkdir(exist_ok=True)
            files.append(f"{BUILD_FILES}/{path.name}")
            shutil.copyfile(path, self.folder / files[-1])
        # The manifest, which is written last
        stage = self.stage.to_dict()
        manifest = {
            "name": self.name,
            "parser": stage.pop("parser"),
            "sources": stage.pop("sources"),
            "stage": stage,
            "licence": asdict(licences.combine(self.licences)),
            "licences": self.licences,
            "languages": sorted(self.languages) or list(self.card.languages),
            "configs": configs,
            "digest": shards_digest(configs),
            "groups": groups,
            "rejects": dict(sorted(self.rejects.items())),
            "extraction_rejects": self.extraction_rejects,
            "overlap": overlap,
            "attribution": attribution,
            "files": {name: sha256(self.folder / name) for name in files},
            "notes": self.notes,
            "details": self.details,
            "versions": versions(*LIBRARIES),
        }
        # The audit, the card and the benchmark's description
        audits = audit.audited(audit.built(self.folder, configs), self.folder)
        write_json(self.folder / audit.AUDIT_FILE, audit.to_json(audits))
        for config, audit_of_config in audits.items():
            for rule in audit_of_config.above:
                name = f"{self.name}, {config}"
                log.warning("%s: further above chance than released: %s", name, rule)
        card = cards.render(manifest, self.card, self.builder, audit.rendered(audits))
        write_text(self.folder / "README.md", card)
        if benchmark := cards.benchmark_of(manifest, self.card):
            write_text(self.folder / cards.EVAL_FILE, yaml(benchmark) + "\n")
        write_json(self.folder / MANIFEST, manifest)
        return dict(read_json(self.folder / MANIFEST))

    def _close_writers(self) -> dict[str, Any]:
        """Close all files; return the manifest's entries of the configurations that have rows. Adds
        a note for a configuration without rows, and for a split without rows."""
        configs: dict[str, Any] = {}
        for (config, split), writer in self._writers.items():
            entry = configs.setdefault(config, {"default": False, "splits": {}})
            entry["splits"][split] = writer.close()
            entry["features"] = writer.features
        for config, entry in list(configs.items()):
            empty = [split for split, body in entry["splits"].items() if not body["rows"]]
            if len(empty) == len(entry["splits"]):
                del configs[config]
                (self.folder / config).rmdir()
                self.note(f"No row for the configuration `{config}`: the corpus is too small.")
            elif empty:
                without = " and no ".join(empty)
                self.note(
                    f"`{config}` has no {without} rows: a share of 0, splits that are prescribed "
                    "without it, or too small a corpus."
                )
        return configs

    def _note_shares(self, configs: Mapping[str, Any]) -> None:
        """Add a note if the shares of the rows differ much from the requested ones."""
        if self.shares is None:
            return
        actual = []
        for config, entry in configs.items():
            rows = [entry["splits"].get(split, {}).get("rows", 0) for split in SPLITS]
            if measure_fit(self.shares.targets(sum(rows)), rows, rows).difference > TOLERANCE:
                percents = ", ".join(f"{100 * number / sum(rows):.0f}" for number in rows)
                actual.append(f"`{config}` {percents} %")
        if actual:
            requested = ", ".join(f"{100 * share:.0f}" for share in self.shares.targets(1))
            split = self.details.get("split", {})
            divisions = [split] if "reason" in split else split.values()
            reasons = "; ".join(dict.fromkeys(division["reason"] for division in divisions))
            self.notes.insert(
                0,
                f"Shares of the rows in {', '.join(SPLITS)}: asked for were {requested} %; there "
                f"are {'; '.join(actual)}. All rows of a document are in one split: {reasons}.",
            )

    def _note_labels(self, configs: Mapping[str, Any]) -> None:
        """Add a note for each split with rows that lacks a label of the default configuration."""
        for entry in configs.values():
            for split, body in entry["splits"].items() if entry["default"] else ():
                for column, numbers in body["labels"].items():
                    unused = [f"`{name}`" for name, number in numbers.items() if not number]
                    if body["rows"] and unused:
                        self.note(f"`{split}` has no row with the {column} {', '.join(unused)}.")

    def _note_few_rows(self, configs: Mapping[str, Any]) -> None:
        """Add a note if configurations have fewer than `FEW_ROWS` rows of some label."""
        parts = []
        for config, entry in configs.items():
            totals: dict[str, Counter[str]] = {}
            for body in entry["splits"].values():
                for column, numbers in body["labels"].items():
                    totals.setdefault(column, Counter()).update(numbers)
            for column, total in totals.items():
                few = {name: number for name, number in total.items() if 0 < number < FEW_ROWS}
                if few:
                    least = min(few, key=few.__getitem__)
                    what = "labels" if column == "label" else f"values of `{column}`"
                    parts.append(
                        f"`{config}` for {len(few)} of {len(total)} {what} (the least, `{least}`, "
                        f"has {few[least]})"
                    )
        if parts:
            self.note(
                "Warning: too few rows to train on or to compare labels (fewer than "
                f"{FEW_ROWS}, all splits together): {'; '.join(parts)}."
            )

    def _rows_by_group(
        self, engine: Engine, configs: Mapping[str, Any]
    ) -> dict[str, dict[str, int]]:
        """Return, by split, the number of rows of each group (book), or else of each document. The
        result is empty if there are `SHOWN` groups or more. Adds a note for an evaluation split
        with fewer than `FEW` groups."""
        # The default configuration, counted by its column of groups or documents
        config = next((name for name in configs if configs[name]["default"]), next(iter(configs)))
        entry = configs[config]
        column = next((name for name in ("group", "doc") if name in entry["features"]), "")
        groups: dict[str, dict[str, int]] = {}
        for split, body in entry["splits"].items() if column else ():
            if body["rows"]:
                rows = parquet(self.folder / config / f"{split}-*.parquet")
                query = f'select "{column}", count(*) from {rows} group by 1 order by 1'
                counts = engine.rows(f"{query} limit {SHOWN}")
                groups[split] = {str(name): number for name, number in counts}
                if split in SPLITS[1:] and len(groups[split]) < FEW:
                    noun = "books or files" if column == "group" else "documents"
                    self.note(
                        f"`{split}` has few {noun} ({len(groups[split])}): a score on its rows may "
                        "not hold for other texts."
                    )
        return groups if sum(map(len, groups.values())) < SHOWN else {}

    def _write_attribution(self, engine: Engine, configs: Mapping[str, Any]) -> dict[str, Any]:
        """Write the documents of the rows that have an author or an address to `ATTRIBUTION`.
        Returns their number and the first of them, for the card; nothing if there are none."""
        names = [
            f'select "{column}" as name from {parquet(self.folder / config / "*.parquet")}'
            for config, entry in configs.items()
            for column in DOCUMENT_COLUMNS
            if entry["features"].get(column, {}).get("dtype") == "string"
        ]
        if not (self.documents and names):
            return {}
        documents = parquet(*shards_of(self.documents))
        query = _DOCUMENTS.format(rows=" union ".join(names), documents=documents)
        path = self.folder / ATTRIBUTION
        number = write_parquet(path, engine.batches(query), CREDITS)
        if not number:
            path.unlink()
            return {}
        return {"documents": number, "first": pq.read_table(path).slice(0, SHOWN).to_pylist()}


def shards_digest(configs: Mapping[str, Any]) -> str:
    """Return a digest of a dataset: schema, label names, configurations, splits, rows in order.

    It is made from the checksums of the shards: equal rows make equal files, which hold the schema.
    """
    lines = [
        f"{config}\0{entry['default']}\0{split}\0{shard['sha256']}\n"
        for config, entry in sorted(configs.items())
        for split, body in sorted(entry["splits"].items())
        for shard in body["shards"]
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _count_overlap(engine: Engine, writers: Sequence[SplitWriter]) -> dict[str, int]:
    """Return the number of distinct texts that are in two splits, for each pair `SPLIT/SPLIT`."""
    overlap = {}
    for first, second in combinations(writers, 2):
        # The smaller split is held in memory, the larger one is streamed.
        few, many = (
            f"select unnest({_texts_sql(writer, writer.texts)}) as text "
            f"from {parquet(writer.files)}"
            for writer in sorted((second, first), key=lambda writer: writer.rows)
        )
        query = f"""
            with many as ({many}), few as (select distinct text from ({few}))
            select count(distinct text) from many join few using (text)
        """
        both_have_rows = first.rows and second.rows
        overlap[f"{first.split}/{second.split}"] = int(engine.value(query)) if both_have_rows else 0
    return overlap


def _texts_sql(writer: SplitWriter, columns: Iterable[str]) -> str:
    """Return SQL for the list of all texts of a row in these columns of strings or lists."""
    fields = map(writer.schema.field, columns)
    lists = (f'"{f.name}"' if pa.types.is_list(f.type) else f'["{f.name}"]' for f in fields)
    return f"flatten([{', '.join(lists)}])"


def _count_distinct(engine: Engine, writer: SplitWriter) -> int:
    """Return the number of rows of a split with different texts, in any order and with any label.
    In a configuration without texts, the first column is compared."""
    texts = _texts_sql(writer, [*writer.texts, *writer.long] or writer.schema.names[:1])
    query = f"select count(distinct hash(list_sort({texts}))) from {parquet(writer.files)}"
    return int(engine.value(query)) if writer.rows else 0


_DOCUMENTS = """
with row_names as ({rows}),
    names as (select name from row_names union select regexp_replace(name, '(#[0-9]+)+$', '')
        from row_names)
select source, id, title, author, url, licence from {documents}
where (author <> '' or url <> '') and id in (select name from names)
order by source, id
"""
