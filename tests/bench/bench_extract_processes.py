"""Extraction by whole processes: `python -m tests.bench.bench_extract_processes [--memory]`.

Several processes against one on some novels, by the clock, with their start: wants an idle machine.
With `--memory`, the peak memory of one novel and of ten.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from corpora.readers import open_source

ROOT = Path(__file__).resolve().parents[2]


def novels_of(data: Path, count: int) -> list[Path]:
    return sorted((data / "books").glob("*.jsonl"))[:count]


def worker_times(data: Path, novels: int, workers: int) -> Iterator[str]:
    """Seconds by the clock of whole commands: start, parser, files and all."""
    paths = novels_of(data, novels)
    documents = [d for path in paths for d in open_source(f"jsonl:{path}")]
    words = sum(d.text.count(" ") + 1 for d in documents)
    times = {}
    for n in (1, workers):
        start = perf_counter()
        pairs = _in_process(paths, n)[0]
        times[n] = perf_counter() - start
        yield f"{words:,} words, {n} processes: {times[n]:.1f} s, {pairs} pairs"
    yield f"{workers} processes: {times[1] / times[workers]:.2f} times as fast as one"


def peak_memory(data: Path) -> Iterator[str]:
    """Peak resident memory of a process that extracts one novel, and ten."""
    for count in (1, 10):
        pairs, peak = _in_process(novels_of(data, count), 1)
        yield f"{count} novels: {pairs} pairs, {peak / 1024:.0f} MiB at most"


CHILD = """
import resource, sys
from itertools import chain
from corpora.readers import open_source
from extract import Extractor
if __name__ == "__main__":
    workers, *paths = sys.argv[1:]
    sources = chain.from_iterable(open_source(f"jsonl:{path}") for path in paths)
    pairs = sum(1 for _ in Extractor(workers=int(workers)).pairs(sources))
    print(pairs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _in_process(paths: list[Path], workers: int) -> tuple[int, int]:
    """The number of pairs of some novels, and the peak memory (KiB) of a process of its own."""
    command = [sys.executable, "-c", CHILD, str(workers), *map(str, paths)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    pairs, peak = done.stdout.split()
    return int(pairs), int(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--novels", type=int, default=4)
    parser.add_argument("--memory", action="store_true", help="measure peak memory instead")
    options = parser.parse_args()
    if options.memory:
        lines = peak_memory(options.data)
    else:
        lines = worker_times(options.data, options.novels, options.workers)
    for line in lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
