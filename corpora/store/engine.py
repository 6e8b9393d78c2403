"""DuckDB for the builders: queries over Parquet files in bounded memory.

Results do not depend on threads or the memory limit: priorities and keys are columns, not random
functions of the database, and every `order by` ends in a unique key.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from corpora.errors import DiscorporaError
from corpora.store.rows import regrouped

MEMORY = "256MB"
"""The memory limit of DuckDB; the rest is spilled to the output's folder."""
BATCH = 4096

Values = Mapping[str, Any]
"""The parameters of a query, by name."""


def parquet(*files: Path) -> str:
    """Return SQL for the rows of Parquet files, to be used as a table.

    The name of a file may be a glob, `train-*.parquet`. The name of a folder is not a pattern and
    adds no column: it may be `[v2]` or `label=1`. Written by hand, because DuckDB finds no files
    below a folder with a backslash in its name.
    """
    paths = (str(match) for path in files for match in sorted(path.parent.glob(path.name)))
    escaped = (re.sub(r"[\[*?]", r"[\g<0>]", path) for path in paths)
    quoted = "', '".join(path.replace("'", "''") for path in escaped)
    return f"read_parquet(['{quoted}'], hive_partitioning = false)"


class Engine:
    """A DuckDB database in memory that spills into `folder`; use it as a context manager.

    Extensions are neither installed nor loaded, so nothing comes from the network.
    """

    def __init__(self, folder: Path, *, threads: int = 1, memory: str = MEMORY) -> None:
        """Open the database with `threads` threads and the memory limit `memory`, such as "4GB"."""
        import duckdb  # 0.1 s: only where a dataset is built

        self._spill = folder / ".spill"
        self._connection = duckdb.connect(
            ":memory:",
            config={
                "threads": threads,
                "memory_limit": memory,
                "temp_directory": str(self._spill),
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "preserve_insertion_order": False,
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    @contextmanager
    def _explain_out_of_memory(self) -> Iterator[None]:
        """Turn DuckDB's error for too little memory into one that says what to do."""
        from duckdb import OutOfMemoryException

        try:
            yield
        except OutOfMemoryException as error:
            raise DiscorporaError(
                f"a query needs more than the memory limit: {str(error).splitlines()[0]}",
                hint="take fewer threads (`threads` of the build file), or free space on the disk "
                "of the output, where the rest of it is written",
            ) from error

    def run(self, query: str, values: Values | None = None) -> None:
        """Run statements whose rows, if any, are not needed."""
        self.rows(query, values)

    def rows(self, query: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a query; for a small result."""
        with self._explain_out_of_memory():
            return self._connection.execute(query, values or None).fetchall()

    def value(self, query: str, values: Values | None = None) -> Any:
        """Return the only value of a query with one row and one column."""
        ((value,),) = self.rows(query, values)
        return value

    def name(self, name: str, rows: Any) -> None:
        """Make an Arrow table or dataset available to queries under a name."""
        self._connection.register(name, rows)

    def insert(self, name: str, rows: pa.Table) -> None:
        """Add the rows of an Arrow table to the table `name`; columns match by their order."""
        self._connection.register("new_rows", rows)
        self.run(f"insert into {name} select * from new_rows")
        self._connection.unregister("new_rows")

    def reader(
        self, query: str, values: Values | None = None, size: int = BATCH
    ) -> pa.RecordBatchReader:
        """Return a reader of a query's rows, in record batches of about `size` rows."""
        cursor = self._connection.cursor()  # results of several queries may be read side by side
        with self._explain_out_of_memory():
            return cursor.sql(query, params=values or None).to_arrow_reader(size)

    def batches(
        self, query: str, values: Values | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """Yield a query's rows as record batches of exactly `size` rows, except for the last."""
        return regrouped(self.reader(query, values, size), size)
