"""Sources that a builder reads itself: test sets and benchmarks, which are no running text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from corpora.errors import BadRecord, ConfigError, InputError
from corpora.ingest import check_bad_share
from corpora.readers import Reader, opened
from corpora.readers.source import SeenIds, Source
from corpora.store.folder import DatasetFolder

Given = tuple[str, Mapping[str, Any]]
"""A source's spec and its options; `licence` and `language` may be among them."""

BAD_SHOWN = 20


def opened_sources(
    given: Iterable[Given],
    kinds: Iterable[str],
    dataset: DatasetFolder,
    max_bad_share: float = 1.0,
) -> Iterator[tuple[Reader, Source, str]]:
    """Each source with its reader and the licence of its rows.

    Bad records are counted and shown in the manifest. Whoever reads a source counts its good
    records in `source.good`, and what it leaves out by design in `source.skipped`. Raises
    `ConfigError` for a source of another kind than `kinds`, as
    `corpora.readers.open_source` does, and, once a source is read, `InputError` if none of its
    records is good or more than `max_bad_share` of them are bad.
    """
    wanted = tuple(kinds)
    for spec, options in given:
        bad = _Bad(dataset)
        reader, source = opened(spec, options, on_bad=bad.add)
        if source.kind not in wanted:
            raise ConfigError(
                f"{source.kind}: is no source of {dataset.name!r}",
                where=str(options.get("name") or spec),
                hint=f"it is made from {', '.join(f'{kind}:' for kind in wanted)}",
            )
        dataset.languages.add(source.language)
        yield reader, source, str(reader.licence or reader.own_licence)
        if source.good or source.bad or not source.skipped:
            check_bad_share(spec, source.good, source.bad, max_bad_share, bad.first, "record")


class _Bad:
    """Counts a source's bad records in the manifest, shows some there and keeps the first."""

    def __init__(self, dataset: DatasetFolder) -> None:
        self.dataset = dataset
        self.first: BadRecord | None = None

    def add(self, record: BadRecord) -> None:
        self.first = self.first or record
        self.dataset.reject("bad_record")
        shown = self.dataset.details.setdefault("bad_records", [])
        if len(shown) < BAD_SHOWN:
            place = record.where.rpartition("/")[2]
            shown.append(f"{place}: {record.reason}"[:200])


class Unique:
    """Refuses an id that comes twice in a configuration."""

    def __init__(self) -> None:
        self._seen: dict[str, SeenIds] = {}

    def check(self, config: str, id: str, where: str) -> str:
        """`id`; raises `InputError` where an earlier row of `config` has it."""
        if not self._seen.setdefault(config, SeenIds()).add(id):
            raise InputError(
                f"two rows of {config!r} have the id {id!r}",
                where=where,
                hint="is a source named twice, or are there two files of one name?",
            )
        return id
