"""Rows a second into a dataset folder: `python tests/bench/bench_store.py`.

Beside them, on the same rows: pyarrow's ParquetWriter fed with Python rows, and
`Dataset.from_generator(...).to_parquet(...)`. The memory of the builders: `bench_tasks.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.schemas import DISSENT
from corpora.store.atomic import staged
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage

CARD = Card("Bench", "Rows.", "None.", {}, "@misc{x}")
BATCH = 16_384
TEXTS = ("s1", "s2")  # as the builder of DisSent: overlaps between splits are counted


def rows(number: int) -> list[dict]:
    """Rows of DisSent with texts of the usual lengths, all different."""
    one = "the old lighthouse keeper climbed the narrow stairs with a lamp in his hand"
    two = "nobody on the island had ever seen the lamp go out before that winter"
    return [
        {
            **{"doc": f"book-{i // 3000}/chapter-{i // 100}", "group": f"book-{i // 3000}"},
            "marker_start": 100 * i,
            **{"s1": f"In year {i} {one}.", "s2": f"By {i + 1} {two}.", "label": i % 15},
            **{"position": "same_sentence", "order": "s1_first", "s2_added": "", "confidence": 0.5},
        }
        for i in range(number)
    ]


def ours(folder: Path, data: list[dict] | list[pa.RecordBatch], overlap: bool) -> None:
    """A whole dataset folder; with `overlap` the texts of its splits are compared."""
    with staged(folder) as partial, DatasetFolder(partial, "d", STAGE, CARD) as dataset:
        names = {"texts": TEXTS} if overlap else {"long": TEXTS}
        size = len(data) // 10
        for split, some in (("train", data[size:]), ("test", data[:size])):
            writer = dataset.writer("all", split, DISSENT, **names)
            if isinstance(data[0], dict):
                writer.extend(some)
            else:
                for batch in some:
                    writer.append(batch)
        dataset.licences["MIT"] += 1
        dataset.finish("all")


def parquet_writer(folder: Path, data: list[dict]) -> None:
    folder.mkdir()
    settings = {"compression": "zstd", "compression_level": 3}
    with pq.ParquetWriter(folder / "x.parquet", DISSENT, **settings) as writer:
        for start in range(0, len(data), BATCH):
            writer.write_batch(pa.RecordBatch.from_pylist(data[start : start + BATCH], DISSENT))


def from_generator(folder: Path, data: list[dict]) -> None:
    import datasets

    datasets.disable_progress_bars()
    # A new generator each time: `datasets` keeps what it made from one it has seen.
    found = datasets.Dataset.from_generator(
        lambda: iter(data), cache_dir=str(folder / "cache"), fingerprint=folder.name
    )
    found.to_parquet(folder / "x.parquet")


def rates(number: int, ways: dict[str, Callable[[Path], None]], repeat: int) -> dict[str, float]:
    """Rows a second of processor time: the best of `repeat` runs, the ways taking turns."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(repeat):
        for name, work in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                start = process_time()
                work(Path(folder) / "d")
                best[name] = min(best[name], process_time() - start)
    return {name: number / seconds for name, seconds in best.items()}


def speed(number: int, repeat: int) -> None:
    data = rows(number)
    batches = pa.Table.from_pylist(data, DISSENT).to_batches(BATCH)
    ways: dict[str, Callable[[Path], None]] = {
        "ours, columns": lambda f: ours(f, batches, False),
        "ours, columns, overlaps counted": lambda f: ours(f, batches, True),
        "ours, Python rows": lambda f: ours(f, data, False),
        "ours, Python rows, overlaps counted": lambda f: ours(f, data, True),
        "pyarrow ParquetWriter, Python rows": lambda f: parquet_writer(f, data),
        "Dataset.from_generator + to_parquet": lambda f: from_generator(f, data),
    }
    found = rates(number, ways, repeat)
    plain, generated = list(found.values())[-2:]
    head = f"| writing {number:,} rows | rows/s | x ParquetWriter | x from_generator |\n"
    sys.stdout.write(head + "|---|--:|--:|--:|\n")
    for name, value in found.items():
        line = f"| {name} | {value:,.0f} | {value / plain:.2f} | {value / generated:.2f} |\n"
        sys.stdout.write(line)


STAGE = Stage("bench", 1, "0", sources=[{"spec": "bench", "licence": "CC0-1.0"}])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    speed(options.rows, options.repeat)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
