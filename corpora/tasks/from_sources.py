"""Builders that read sources themselves: test sets and benchmarks, which are not running text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from corpora.errors import BadRecord, ConfigError, InputError
from corpora.ingest import check_bad_share
from corpora.readers import Reader, open_reader, split_spec
from corpora.readers.source import SeenIds, Source, without_folder
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Target

SourceSpec = tuple[str, Mapping[str, Any]]
"""A source's spec and its options; `licence` and `language` may be among them."""

Opened = tuple[Reader, Source]
"""A source with its reader."""

BAD_SHOWN = 20
"""Bad records that a manifest lists."""

PlacedRows = Iterator[tuple[str, Mapping[str, Any]]]
"""Rows of a configuration, each with its place; `id` must differ in a split."""


class SplitRows(NamedTuple):
    """The rows of one split of a configuration, from one file of a source.

    `schema` is set if the labels are known only from the data; else the columns are those of
    `gives`.
    """

    config: str
    split: str
    licence: str
    rows: PlacedRows
    schema: pa.Schema | None = None


class FromSources(Builder):
    """A builder that takes its rows from sources which already have splits.

    The first configuration that has rows loads without being named.
    """

    reads = "sources"
    default = ""
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of sources that it reads."""
    beside: ClassVar[tuple[str, ...]] = ()
    """More kinds, of texts that complete the rows; sources of these kinds are read last."""
    texts: ClassVar[Mapping[str, tuple[str, ...]]]
    """The columns of text of each configuration: their overlap between splits is counted."""

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[SplitRows]:
        """Yield the rows of the sources, by split; each source comes with its reader.

        Count good records in `source.good`, and those left out by design in `source.skipped`.
        """
        raise NotImplementedError

    def build(self, inputs: Iterable[SourceSpec], target: Target) -> dict[str, Any]:
        """Build the dataset from sources and return its manifest.

        Raises `ConfigError` for a source of another kind or with other labels, and `InputError`
        for an id that comes twice in a split, for a source without a good record, and where more
        than `target.max_bad_share` of a source's records are bad.
        """
        with self.dataset(target) as dataset:
            ids: dict[tuple[str, str], SeenIds] = {}
            filled_configs = set()
            schemas: dict[str, pa.Schema] = {}
            licences: dict[str, set[str]] = {}  # by source; the last source is the one being read
            sources = self._open_sources(inputs, target.max_bad_share, dataset, licences)
            for config, split, licence, rows, schema in self.parts(sources, dataset):
                columns = schema or self.gives[config]
                if not columns.equals(schemas.setdefault(config, columns), check_metadata=True):
                    raise ConfigError(
                        f"it has other labels of {config!r} than the sources before it",
                        where=next(reversed(licences)),
                        hint="make one source of all files: the folder that holds them",
                    )
                writer = dataset.writer(config, split, columns, texts=self.texts[config])
                rows_before = writer.rows
                ids_of_split = ids.setdefault((config, split), SeenIds())
                writer.extend(_check_unique_ids(rows, ids_of_split, f"{config}/{split}"))
                dataset.count_licence(licence, writer.rows - rows_before)
                licences[next(reversed(licences))].add(licence)
                if writer.rows:
                    filled_configs.add(config)
            dataset.name_licences(licences)
            return dataset.finish(
                next((c for c in self.configurations() if c in filled_configs), None)
            )

    def _open_sources(
        self,
        specs: Iterable[SourceSpec],
        max_bad_share: float,
        dataset: DatasetFolder,
        licences: dict[str, set[str]],
    ) -> Iterator[Opened]:
        """Open and yield each source; count its bad records, and list some in the manifest."""

        def on_bad(record: BadRecord) -> None:
            """Count a bad record; list the first `BAD_SHOWN` of them in the manifest's details."""
            dataset.reject("bad_record")
            examples = dataset.details.setdefault("bad_records", [])
            if len(examples) < BAD_SHOWN:
                reason = without_folder(source.target, record.reason)
                examples.append(f"{record.where.rpartition('/')[2]}: {reason}"[:200])

        for spec, options in sorted(
            specs, key=lambda each: split_spec(each[0])[0] not in self.kinds
        ):
            reader, source = open_reader(spec, options, on_bad=on_bad)
            if source.kind not in self.kinds + self.beside:
                raise ConfigError(
                    f"{source.kind}: is not a source of {dataset.name!r}",
                    where=str(options.get("name") or spec),
                    hint=f"it is made from {', '.join(f'{kind}:' for kind in self.kinds)}",
                )
            dataset.languages.add(source.language)
            licences[source.name] = set()
            yield reader, source
            if source.good or source.bad or not source.skipped:
                check_bad_share(spec, source, max_bad_share, "record")


def _check_unique_ids(rows: PlacedRows, ids: SeenIds, where: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows without their places; raises `InputError` for an id that comes twice."""
    for place, row in rows:
        if not ids.add(row["id"]):
            raise InputError(
                f"two rows of {where!r} have the id {row['id']!r}",
                where=place,
                hint="is a source named twice, or are there two files of one name?",
            )
        yield row
