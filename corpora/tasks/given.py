"""Sources that a builder reads itself: test sets and benchmarks, which are no running text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers import opened
from corpora.readers.source import SeenIds, Source
from corpora.store import DatasetFolder

Given = tuple[str, Mapping[str, Any]]
"""A source's spec and its options; `licence` and `language` may be among them."""

BAD_SHOWN = 20


def opened_sources(
    given: Iterable[Given], kinds: Iterable[str], dataset: DatasetFolder
) -> Iterator[tuple[Source, str]]:
    """Each source and the licence of its rows; bad records are counted and shown in the manifest.

    Raises `ConfigError` for a source of another kind than `kinds`, and as
    `corpora.readers.open_source` does.
    """
    wanted = tuple(kinds)

    def on_bad(record: BadRecord) -> None:
        dataset.reject("bad_record")
        shown = dataset.details.setdefault("bad_records", [])
        if len(shown) < BAD_SHOWN:
            place = record.where.rpartition("/")[2]
            shown.append(f"{place}: {record.reason}"[:200])

    for spec, options in given:
        reader, source = opened(spec, options, on_bad=on_bad)
        if source.kind not in wanted:
            raise ConfigError(
                f"{source.kind}: is no source of {dataset.name!r}",
                where=str(options.get("name") or spec),
                hint=f"it is made from {', '.join(f'{kind}:' for kind in wanted)}",
            )
        dataset.languages.add(source.language)
        yield source, str(source.options.get("licence") or reader.licence)


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
