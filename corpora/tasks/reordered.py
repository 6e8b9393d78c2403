"""Rows in an order of their own, for tables that do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IN_MEMORY = 1 << 14
"""Rows that are sorted at a time."""

FILES = 128
"""At most so many are open at a time: of more rows more are sorted at a time."""

PLACE = pa.field("place", pa.int64())


class Reordered:
    """Takes rows as they come, each with its place, and gives them back by their places.

    They wait in files beside the output, each of a range of places. Use as a context manager; the
    files are removed at the end.
    """

    def __init__(self, folder: Path, schema: pa.Schema, rows: int) -> None:
        self.schema = schema
        self._size = max(IN_MEMORY, -(-rows // FILES))
        self._paths = [folder / f".rows-{n}" for n in range(-(-rows // self._size))]
        self._open = ExitStack()
        self._writers = [
            self._open.enter_context(pa.ipc.new_stream(path, schema.append(PLACE)))
            for path in self._paths
        ]

    def __enter__(self) -> Reordered:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()
        for path in self._paths:
            path.unlink(missing_ok=True)

    def add(self, batch: pa.RecordBatch, places: NDArray[np.int64]) -> None:
        """Take in rows; `places` (from 0 on, no two equal) are where they are to stand."""
        files = places // self._size
        order = np.argsort(files, kind="stable")
        starts = np.flatnonzero(np.diff(files[order], prepend=-1))
        columns = [batch[field.name].cast(field.type) for field in self.schema]
        whole = pa.record_batch([*columns, pa.array(places)], self.schema.append(PLACE))
        for a, b in pairwise([*starts, order.size]):
            some = whole.take(pa.array(order[a:b]))
            self._writers[files[order[a]]].write_batch(some)

    def read(self) -> Iterator[pa.RecordBatch]:
        """All rows in the order of their places, as batches of the schema."""
        self._open.close()
        for path in self._paths:
            with pa.ipc.open_stream(path) as stream:
                table = stream.read_all()
            rows = table.sort_by(PLACE.name).select(self.schema.names)
            yield from rows.combine_chunks().to_batches()
            path.unlink()
