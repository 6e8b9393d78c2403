"""Dataset folders: what the Hub takes as it is, and its manifest (DESIGN.md, item 5).

A folder holds `README.md` (the card), `<config>/<split>-00000-of-0000N.parquet` and
`manifest.json`, written last. It holds nothing that changes from run to run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora import licences
from corpora.code import versions
from corpora.declared import Declared
from corpora.errors import DiscorporaError, InputError
from corpora.splits import SPLITS
from corpora.store import card as cards
from corpora.store.atomic import MANIFEST, cleared, read_json, write_json, write_text
from corpora.store.engine import Engine
from corpora.store.rows import SplitWriter

CANDIDATES = ".candidates"
"""What builders collect in a partial folder, maybe before `DatasetFolder` is made there."""

LIBRARIES = ("discorpora", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True)
class Stage:
    """What made a target: all of it is known before anything runs.

    `hash` covers the settings, the upstream stages' hashes and the sources' fingerprints.
    `upstream` maps stage names to hashes. Each of `sources` is a record with `spec` (or `kind` and
    `place`), `revision` or `sha256`, `licence`, and maybe `name`. `extraction` are the
    settings of the pairs that a dataset is made of. `command` makes it again.
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

    @property
    def dataset_name(self) -> str:
        """The last part of the stage's name: what a dataset that it makes is called."""
        return self.name.rsplit("/", 1)[-1]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class DatasetFolder:
    """Writes one dataset into `folder`, the partial folder that `staged` yields.

    A context manager: an exception closes all open files. Splits are written side by side, in
    constant memory; the overlap between splits is counted at the end. What a broken build left in
    a partial folder is removed, but for candidates; a folder with other contents is refused with a
    `DiscorporaError`. The fields of `builder` say on the card what its settings mean.

        with staged(target) as partial, DatasetFolder(partial, "sp", stage, card) as dataset:
            dataset.write("default", "train", rows, schema, texts=("s1", "s2"))
            dataset.count_licences(licences_of_the_rows)
            manifest = dataset.finish()
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        stage: Stage,
        card: cards.Card,
        *,
        builder: type[Declared] | None = None,
        rows_per_shard: int = 1_048_576,
        rows_per_group: int = 16_384,
    ) -> None:
        self.folder, self.name, self.stage, self.card = folder, name, stage, card
        self.builder = builder
        self.rows_per_shard, self.rows_per_group = rows_per_shard, rows_per_group
        self.rejects: Counter[str] = Counter()
        self.licences: Counter[str] = Counter()
        self.languages: set[str] = set()
        self.notes: list[str] = []
        self.details: dict[str, Any] = {}
        self._writers: dict[tuple[str, str], SplitWriter] = {}
        self._texts: dict[str, tuple[str, ...]] = {}
        cleared(folder, keep=CANDIDATES)

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
        """The writer of one split; `texts` are the columns whose overlap is counted.

        `long`: further columns of text, counted in another configuration. `rows_per_group`:
        fewer for long rows, as a row group is held in memory.
        """
        if split not in SPLITS:
            raise ValueError(f"split {split!r} is none of {', '.join(SPLITS)}")
        self._texts[config] = tuple(texts)
        if (config, split) not in self._writers:
            self._writers[config, split] = SplitWriter(
                self.folder / config,
                split,
                schema,
                texts=(*texts, *long),
                rows_per_shard=self.rows_per_shard,
                rows_per_group=rows_per_group or self.rows_per_group,
            )
        return self._writers[config, split]

    def write(
        self,
        config: str,
        split: str,
        rows: Iterable[Mapping[str, Any]],
        schema: pa.Schema,
        *,
        texts: Sequence[str] = (),
    ) -> int:
        """Write all `rows` of one split; returns their number."""
        writer = self.writer(config, split, schema, texts=texts)
        writer.extend(rows)
        return writer.rows

    def reject(self, reason: str, n: int = 1) -> None:
        """Count `n` candidates that were left out for `reason`."""
        if n:
            self.rejects[reason] += n

    def count_licences(self, column: pa.Array, rows_each: int = 1) -> None:
        """Count the rows of a batch by the licence of their document: the dataset's follows.

        `rows_each`: the rows that each entry of the column gives.
        """
        for entry in column.value_counts().to_pylist():
            self.count_licence(entry["values"], rows_each * entry["counts"])

    def count_licence(self, licence: str, rows: int = 1) -> None:
        """Count rows of documents under one licence; an empty one is not known."""
        self.licences[licence or licences.UNKNOWN] += rows

    def name_licences(self, found: Mapping[str, Iterable[str]]) -> None:
        """Say of sources, by name, which licences their rows turned out to have."""
        said = {name: " AND ".join(sorted(ids)) for name, ids in found.items() if ids}
        sources = [
            {**source, "licence": said.get(str(source.get("name", "")), source.get("licence", ""))}
            for source in self.stage.sources
        ]
        self.stage = replace(self.stage, sources=sources)

    def note(self, text: str) -> None:
        """Say something on the card that a user of the data should know."""
        self.notes.append(text)

    def finish(self, default: str | None = None) -> dict[str, Any]:
        """Close the files, write the card, then the manifest; returns the manifest.

        `default` is the configuration that loads without being named; where it has no row, the
        first that has. A configuration without rows is left out, a split without rows has no
        file; both are said in the notes.
        Raises `InputError` if there is no row at all, `DiscorporaError` if no row's licence was
        counted: what the build file declares is not what the documents say.
        """
        configs: dict[str, Any] = {}
        for (config, split), writer in self._writers.items():
            entry = configs.setdefault(config, {"default": False, "splits": {}})
            entry["splits"][split] = writer.close()
            entry["features"] = writer.features
        for config, entry in list(configs.items()):
            none = [split for split, body in entry["splits"].items() if not body["rows"]]
            if len(none) == len(entry["splits"]):
                del configs[config]
                (self.folder / config).rmdir()
                self.note(f"No row for the configuration `{config}`: the corpus is too small.")
            elif none:
                without = " and no ".join(none)
                self.note(f"`{config}` has no {without} rows: a share of 0, or too small a corpus.")
        if not configs:
            raise InputError(
                f"not one row could be made for the dataset {self.name!r}",
                where=", ".join(map(cards.source_name, self.stage.sources)),
                hint=f"left out: {dict(self.rejects) or 'nothing, the sources are empty'}",
            )
        if not self.licences.total():
            raise DiscorporaError(
                f"the builder of {self.name!r} counted no licence of the rows that it wrote",
                where=self.stage.name,
                hint="let it call dataset.count_licences with the licences of each batch's "
                "documents: docs/adding-a-stage.md",
            )
        if default is not None:
            configs[default if default in configs else next(iter(configs))]["default"] = True
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
            "rejects": dict(sorted(self.rejects.items())),
            "overlap": self._overlap(configs),
            "notes": self.notes,
            "details": self.details,
            "versions": versions(*LIBRARIES),
        }
        write_text(self.folder / "README.md", cards.render(manifest, self.card, self.builder))
        write_json(self.folder / MANIFEST, manifest)
        return dict(read_json(self.folder / MANIFEST))

    def _overlap(self, configs: Iterable[str]) -> dict[str, dict[str, int]]:
        """Distinct texts in more than one split, by configuration and pair of splits."""

        def texts(writer: SplitWriter, columns: Sequence[str]) -> str:
            files = str(writer.folder / f"{writer.split}-*.parquet").replace("'", "''")
            queries = []
            for name in columns:
                listed = pa.types.is_list(writer.schema.field(name).type)
                text = f'unnest("{name}")' if listed else f'"{name}"'
                queries.append(f"select {text} as text from read_parquet('{files}')")
            return " union all ".join(queries)

        overlap: dict[str, dict[str, int]] = {}
        with Engine(self.folder) as engine:
            for config in filter(self._texts.__getitem__, configs):
                columns = self._texts[config]
                own = [writer for (name, _), writer in self._writers.items() if name == config]
                for one, two in combinations(own, 2):
                    # The smaller of the two is held in memory, the other one passes by.
                    few, many = sorted((two, one), key=lambda writer: writer.rows)
                    query = f"""
                        with many as ({texts(many, columns)}),
                            few as (select distinct text from ({texts(few, columns)}))
                        select count(distinct text) from many join few using (text)
                    """
                    number = int(engine.value(query)) if few.rows else 0
                    overlap.setdefault(config, {})[f"{one.split}/{two.split}"] = number
        return overlap
