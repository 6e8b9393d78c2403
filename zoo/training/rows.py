"""A dataset's splits read batch by batch: memory holds one batch, whatever the corpus's size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from zoo.training.data import (
    SPLITS,
    Dataset,
    check_columns,
    choose_config,
    open_dataset,
    read_manifest,
    revision_of,
    split_spec,
)

ROWS_PER_BATCH = 64


@dataclass(frozen=True)
class Shards:
    """The Parquet files of one split; like a table it has `num_rows`."""

    files: tuple[Path, ...]
    num_rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows in order, a few at a time."""
        for path in self.files:
            with pq.ParquetFile(path) as file:
                check_columns(file.schema_arrow.names, columns, str(path))
                yield from file.iter_batches(ROWS_PER_BATCH, columns=list(columns))


def batches(split: Shards | pa.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a split of `open_streamed`, a few at a time."""
    if isinstance(split, Shards):
        return split.batches(columns)
    check_columns(split.column_names, columns, "dataset")
    return iter(split.select(columns).to_batches(ROWS_PER_BATCH))


def open_streamed(spec: str, config: str = "") -> Dataset:
    """As `zoo.training.data.open_dataset`, but the splits of a built folder are `Shards`.

    A dataset of the Hub comes as the tables that its library maps into memory.
    """
    spec, config = split_spec(spec, config)
    if not Path(spec).is_dir():
        return open_dataset(spec, config)
    manifest = read_manifest(Path(spec))
    config = choose_config(manifest, config, spec)
    entries = manifest["configs"][config].get("splits", {})
    found = {
        split: _shards(Path(spec), entries[split]["shards"])
        for split in SPLITS
        if split in entries and entries[split]["shards"]
    }
    name = str(manifest.get("name", Path(spec).name))
    return Dataset(name, config, revision_of(spec), found, manifest)  # type: ignore[arg-type]


def _shards(folder: Path, entries: Sequence[dict]) -> Shards:
    files = tuple(folder / entry["file"] for entry in entries)
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise InputError(
            f"the manifest names a file that is not there: {missing[0].name}",
            where=str(folder),
            hint="the folder was damaged after it was built: remove it and build it again",
        )
    return Shards(files, sum(pq.read_metadata(file).num_rows for file in files))
