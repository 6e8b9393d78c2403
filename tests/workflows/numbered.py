"""A stage whose shards cost nothing, for the simulation of a large Slurm array."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import luigi
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.store.rows import write_parquet
from workflows.stage import StageTask

SCHEMA = pa.schema([("number", pa.int64())])


class Numbered(StageTask):
    """Shard `n` holds the number `n`; some tasks are killed, at the start or before the end."""

    stage = "numbered"
    shared = True
    shards = luigi.IntParameter()
    killed = luigi.FloatParameter(significant=False)
    slow = luigi.FloatParameter(significant=False)

    def settings(self) -> dict[str, Any]:
        return {"shards": self.shards}

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        paths = [folder / f"shard-{number:05d}.parquet" for number in range(rank, self.shards, of)]
        draw = random.Random()
        fate = draw.random() if of > 1 else 1
        if fate < self.killed / 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if fate > 1 - self.slow:
            time.sleep(draw.uniform(1, 3))
        for number, path in zip(range(rank, self.shards, of), paths, strict=True):
            if not path.is_file():
                rows = pa.RecordBatch.from_pydict({"number": [number]}, schema=SCHEMA)
                write_parquet(path, [rows], SCHEMA, {})
                with Path(os.environ["DISCORPORA_MADE"]).open("a") as made:
                    made.write(f"{number} {of}\n")
        if fate < self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"shards": len(paths), "rows": sum(pq.read_metadata(p).num_rows for p in paths)}
