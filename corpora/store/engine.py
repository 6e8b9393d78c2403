"""DuckDB under the builders: queries over Parquet files in bounded memory, equal at every setting.

Nothing random or unstable decides a row: priorities and keys are columns of our own, and every
`order by` ends in a unique key. So the result does not depend on threads or the memory limit.
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
"""What DuckDB holds in memory; the rest is spilled to the output's own folder."""
BATCH = 4096

Values = Mapping[str, Any]
"""The parameters of a query, by name."""


def parquet(*files: Path) -> str:
    """The rows of Parquet files, given as globs, as a query names them.

    Only a file's name is a glob, and adds no column: a folder may be named `[v2]` or `label=1`. The
    library itself would find no files below a folder with a backslash in its name.
    """
    found = (str(one) for path in files for one in sorted(path.parent.glob(path.name)))
    named = (re.sub(r"[\[*?]", r"[\g<0>]", name) for name in found)
    quoted = "', '".join(name.replace("'", "''") for name in named)
    return f"read_parquet(['{quoted}'], hive_partitioning = false)"


class Engine:
    """A database in memory that spills into `folder`; use as a context manager.

    Extensions are neither installed nor loaded: nothing comes from the network.
    """

    def __init__(self, folder: Path, *, threads: int = 1, memory: str = MEMORY) -> None:
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
    def _explained(self) -> Iterator[None]:
        """Say what to do where the memory limit is too low for a query."""
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
        """Run statements that give no rows."""
        self.rows(query, values)

    def rows(self, query: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """All rows of a small result."""
        with self._explained():
            return self._connection.execute(query, values or None).fetchall()

    def value(self, query: str, values: Values | None = None) -> Any:
        """The only value of a result of one row."""
        ((value,),) = self.rows(query, values)
        return value

    def name(self, name: str, rows: Any) -> None:
        """Name the rows of an Arrow table or dataset."""
        self._connection.register(name, rows)

    def insert(self, name: str, rows: pa.Table) -> None:
        """Add rows of Arrow to a table, by the order of its columns."""
        self._connection.register("given", rows)
        self.run(f"insert into {name} select * from given")
        self._connection.unregister("given")

    def reader(
        self, query: str, values: Values | None = None, size: int = BATCH
    ) -> pa.RecordBatchReader:
        """The rows of a result as record batches of about `size` rows, and their schema."""
        cursor = self._connection.cursor()  # results of several queries may be read side by side
        with self._explained():
            return cursor.sql(query, params=values or None).to_arrow_reader(size)

    def batches(
        self, query: str, values: Values | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a result as record batches of exactly `size` rows, but for the last one."""
        return regrouped(self.reader(query, values, size), size)
