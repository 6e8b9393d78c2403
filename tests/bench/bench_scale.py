"""Documents to datasets at 1, 2, 4, 8 and 16 times a novel: processor time, memory and bytes.

From the rates between the smallest and the largest size it estimates three large corpora.

python tests/bench/bench_scale.py [--books FOLDER] [--sizes 1 2 4 8 16]

The chapters of all novels in the folder are dealt to 16 parts; a size takes the first parts. Each
size runs in a process of its own, with one thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
PARTS = 16
FILES = 100
TOKENS = 1.15
"""Tokens of a parser for a word between blanks."""
SHORT = 300_000
"""Most words of a novel: one that is as long as all others would decide alone."""
STAGES = ("documents", "sentences", "parse", "pairs", "division", "dataset")
BUILD = """
name = "scale"
threads = 1
[[sources]]
name = "novels"
spec = "jsonl:{books}"
licence = "CC0-1.0"
options = {{ layout = "paragraph", group = "book", id = "chapter_id", title = "chapter" }}
datasets = ["dissent", "sp", "bso", "permuted", "intrusion", "conpono"]
[datasets.dissent]
[datasets.sp]
[datasets.bso]
[datasets.permuted]
[datasets.intrusion]
[datasets.conpono]
merge_above = 10
"""


def write(books: Path, size: int, path: Path) -> int:
    """The first `size` of 16 parts of the novels' chapters; returns their words."""
    number = words = 0
    with path.open("w", encoding="utf-8") as out:
        for file in sorted(books.glob("*.jsonl")):
            records = [json.loads(line) for line in file.open(encoding="utf-8")]
            if sum(len(record["text"].split()) for record in records) > SHORT:
                continue
            for _, chapter in itertools.groupby(records, key=lambda record: record["chapter_id"]):
                number += 1
                if number % PARTS < size:
                    for record in chapter:
                        words += len(record["text"].split())
                        out.write(f"{json.dumps(record)}\n")
    return words


def measured(books: Path, size: int) -> dict[str, Any]:
    """Of each stage: processor seconds, peak of memory in MiB, MiB on the disk."""
    from extract.parse import by_words
    from workflows.settings import options
    from workflows.tasks import BuildAll

    with tempfile.TemporaryDirectory() as folder:
        path, config = Path(folder, "novels.jsonl"), Path(folder, "scale.toml")
        found: dict[str, Any] = {"size": size, "words": write(books, size, path)}
        config.write_text(BUILD.format(books=path), encoding="utf-8")
        for stage in STAGES:
            found[stage] = {"seconds": 0.0, "memory": 0.0, "disk": 0.0}
        with options(str(config), str(Path(folder, "out"))):
            for task in BuildAll(config=str(config)).lineage:
                if task.stage not in STAGES:
                    continue
                before = processor()
                task.run()
                sums = found[task.stage]
                sums["seconds"] += processor() - before
                peak = json.loads(task.run_file.read_text())["peak_memory_mib"]
                sums["memory"] = max(sums["memory"], peak)
                files = (path for path in task.folder.rglob("*") if path.is_file())
                sums["disk"] += sum(path.stat().st_size for path in files) / 2**20
                if task.stage == "parse":  # each worker of an engine reads all documents
                    before = processor()
                    for _ in by_words(task.documents(), 50_000):
                        pass
                    found["reading"] = round(processor() - before, 2)
                if task.stage == "sentences":
                    found["sentences split"] = task.manifest()["counts"]["sentences"]
    return found


def processor() -> float:
    """Processor seconds of this process and its children so far."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def exponent(sizes: list[float], values: list[float]) -> float:
    """The slope of the line through the logarithms."""
    x, y = ([math.log(value) for value in each] for each in (sizes, values))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def rows(found: list[dict[str, Any]], of: str, digits: int) -> list[str]:
    """A table of one figure by stage and size; with exponents where it is time or bytes."""
    lines = [
        f"| novels | words | {' | '.join(STAGES)} | together |",
        f"|---:|{'---:|' * (len(STAGES) + 2)}",
    ]
    columns = [[each[stage][of] for each in found] for stage in STAGES]
    whole = max if of == "memory" else sum
    columns.append([whole(values) for values in zip(*columns, strict=True)])
    for number, each in enumerate(found):
        cells = " | ".join(f"{column[number]:,.{digits}f}" for column in columns)
        lines.append(f"| {each['size']} | {each['words']:,} | {cells} |")
    words = [float(each["words"]) for each in found]
    slopes = " | ".join(f"{exponent(words, column):.2f}" for column in columns)
    return [*lines, f"| exponent | | {slopes} |"]


CORPORA = {
    "BookCorpus, 74 M sentences": 985e6,  # words, Kiros et al. 2015
    "English Wikipedia, 4 G tokens": 4e9 / TOKENS,
    "web text, 100 G tokens": 100e9 / TOKENS,
}


def estimates(found: list[dict[str, Any]]) -> list[str]:
    """Hours and bytes of each stage for large corpora, from what a further word cost here.

    A corpus is 100 files, each a source. Documents and sentences: a process a source. Parses and
    pairs: all cores; a task of Slurm or Ray reads all documents of its source. Division: a process.
    Datasets: six processes.
    """
    first, last = found[0], found[-1]
    words = last["words"] - first["words"]
    rates = {
        of: {stage: (last[stage][of] - first[stage][of]) / words for stage in STAGES}
        for of in ("seconds", "disk")
    }
    reading = (last["reading"] - first["reading"]) / words
    lines = [
        "| corpus | stage | processor hours | GB | 64 cores | Slurm, 1,000 | Ray, 256 |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for corpus, size in CORPORA.items():
        whole = [0.0] * 5
        for stage in STAGES:
            hours = rates["seconds"][stage] * size / 3600
            disk = rates["disk"][stage] * size / 1024
            shared = stage in ("parse", "pairs")
            most = {"division": 1, "dataset": 6}.get(stage, FILES)
            again = reading * size / FILES / 3600 if shared else 0.0
            machine, slurm, ray = (
                hours / (cores if shared else min(cores, most)) for cores in (64, 1000, 256)
            )
            figures = [hours, disk, machine, slurm + again, ray + again]
            whole = [a + b for a, b in zip(whole, figures, strict=True)]
            lines.append(row(corpus, stage, figures))
            corpus = ""
        lines.append(row("", "together", whole))
    return lines


def row(corpus: str, stage: str, figures: list[float]) -> str:
    shown = (f"{figure:,.{0 if figure >= 10 else 1 if figure >= 1 else 2}f}" for figure in figures)
    return f"| {corpus} | {stage} | {' | '.join(shown)} |"


def main() -> None:
    """Print a table each of time, memory and bytes, and the estimates."""
    parser = argparse.ArgumentParser(description=__doc__)
    data = os.environ.get("DISCORPORA_DATA", "../shared/data")
    parser.add_argument("--books", type=Path, default=Path(data, "books"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    options = parser.parse_args()
    found = []
    for size in options.sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found.append(pool.submit(measured, options.books.absolute(), size).result())
        sys.stderr.write(f"{found[-1]}\n")
    for title, of, digits in (
        ("Processor seconds", "seconds", 1),
        ("Peak of memory, MiB", "memory", 0),
        ("MiB on the disk", "disk", 1),
    ):
        sys.stdout.write("\n".join(["", f"{title}:", "", *rows(found, of, digits), ""]))
    sys.stdout.write("\n".join(["", "Estimates:", "", *estimates(found), ""]))


if __name__ == "__main__":
    main()
