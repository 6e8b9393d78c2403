"""Rows a second into a dataset folder, and peak memory: `python tests/bench/bench_store.py`.

Beside them, on the same rows: pyarrow's ParquetWriter fed with Python rows, and
`Dataset.from_generator(...).to_parquet(...)`. Memory: each builder over 1 x and 10 x a corpus, each
in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.document import Document
from corpora.schemas import DISSENT, PAIRS, pairs_to_batch
from corpora.sentences import split_document
from corpora.store.atomic import staged, write_parquet
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

CARD = Card("Bench", "Rows.", "None.", {}, "@misc{x}")
BATCH = 16_384
TEXTS = ("s1", "s2")  # as the builder of DisSent: overlaps between splits are counted
NAMES = ("sp", "bso", "permuted", "dissent")
UNIT = 1000


def rows(number: int) -> list[dict]:
    """Rows of DisSent with texts of the usual lengths, all different."""
    one = "the old lighthouse keeper climbed the narrow stairs with a lamp in his hand"
    two = "nobody on the island had ever seen the lamp go out before that winter"
    return [
        {
            **{"doc": f"book-{i // 3000}/chapter-{i // 100}", "group": f"book-{i // 3000}"},
            **{"s1": f"In year {i} {one}.", "s2": f"By {i + 1} {two}.", "label": i % 15},
            **{"position": "same_sentence", "order": "s1_first"},
        }
        for i in range(number)
    ]


def ours(folder: Path, data: list[dict] | list[pa.RecordBatch], overlap: bool) -> None:
    """A whole dataset folder; with `overlap` its texts are remembered, else only written."""
    with staged(folder) as partial, DatasetFolder(partial, "d", STAGE, CARD) as dataset:
        names = {"texts": TEXTS} if overlap else {"long": TEXTS}
        dataset.writer("all", "train", DISSENT, **names).extend(data)
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


def documents(number: int) -> Iterator[Document]:
    """Chapters of 60 sentences in paragraphs of 6."""
    for i in range(number):
        sentences = [row["s1"] for row in rows(60)]
        text = "\n\n".join(
            " ".join(f"{s[:-1]} of chapter {i}." for s in sentences[j : j + 6])
            for j in range(0, 60, 6)
        )
        yield split_document(Document(f"d{i}", text, f"g{i // 20}", licence="CC0-1.0"))


def pairs(number: int) -> Iterator[pa.RecordBatch]:
    """100 pairs a document."""
    spans, markers = [[0, 5]], BUILDERS.find("dissent")().markers
    shared = {
        **{"source": "s", "licence": "CC0-1.0", "language": "en", "marker_spans": spans},
        **{"s1_spans": spans, "s2_spans": spans, "has_clauses": True, "pattern": "x"},
    }
    for i in range(number):
        yield pairs_to_batch(
            [
                {**row, **shared, "doc": f"d{i}", "sentence": j, "marker": markers[row["label"]]}
                | {"s1": f"{row['s1'][:-1]} {i}."}
                for j, row in enumerate(rows(100))
            ]
        )


def peak(builder: str, size: int) -> int:
    """Peak memory in MB of one builder over `size` documents, measured in this process."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "pairs.parquet", Target(Path(folder) / "d", STAGE, 1)
        made = BUILDERS.find(builder)()
        if builder == "dissent":
            write_parquet(source, pairs(size), PAIRS)
            made.build([source], target)
        else:
            made.build(documents(size), target)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def memory() -> None:
    sys.stdout.write("| builder | 1 x, MB | 10 x, MB | ratio |\n|---|--:|--:|--:|\n")
    for builder in NAMES:
        sizes = []
        for size in (UNIT, 10 * UNIT):
            command = [sys.executable, __file__, "--peak", builder, "--size", str(size)]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            sizes.append(int(run.stdout))
        one, ten = sizes
        sys.stdout.write(f"| {builder} | {one} | {ten} | {ten / one:.2f} |\n")


STAGE = Stage("bench", 1, "0", sources=[{"spec": "bench", "licence": "CC0-1.0"}])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="peak memory instead of speed")
    parser.add_argument("--peak", choices=sorted(NAMES), help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, default=UNIT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.peak:
        sys.stdout.write(str(peak(options.peak, options.size)))
    elif options.memory:
        memory()
    else:
        speed(options.rows, options.repeat)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
