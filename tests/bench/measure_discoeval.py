"""MiniLM on DiscoEval's original files, beside what the released code gives on the same vectors.

    python -m tests.bench.measure_discoeval [--data ../shared/data/discoeval] [--cache FOLDER]
        [--dtype float32] [--seeds 3] [--only SSP BSO DC] [--more] [--jsonl OUT]

The reference figures were given to this project beforehand: the released code, run on the same
model's vectors (validation accuracy, mean of 3 seeds). A row is written as soon as it is there.
The goal is a difference of at most one point. `--more` adds what has no reference: SP, DC wiki
and the protocol `pairs`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zoo.evaluate.discoeval import DiscoEval
from zoo.evaluate.discoeval.data import TaskData, read
from zoo.evaluate.discoeval.protocol import inputs_of, run_task, vectors_of
from zoo.evaluate.encoders import BackboneEncoder, load_encoder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Row:
    """A run; `released` is the reference in per cent, 0 where there is none."""

    name: str
    representation: str
    released: float = 0.0
    hidden: int = -1
    protocol: str = "single"


REFERENCE = (
    Row("SSP abs", "mean", 77.2),
    Row("SSP abs", "cls_mean", 76.1),
    Row("DC chat", "mean", 53.0, hidden=0),
    Row("DC chat", "cls_mean", 53.4, hidden=0),
    Row("BSO wiki", "mean", 61.4),
    Row("BSO wiki", "cls_mean", 61.7),
    Row("BSO arxiv", "mean", 58.1),
    Row("BSO arxiv", "cls_mean", 58.5),
    Row("DC chat", "mean", 57.6),
    Row("DC chat", "cls_mean", 57.4),
)
MORE = (
    *(Row(name, "cls_mean") for name in ("SP wiki", "SP arxiv")),
    *(Row(name, "pooled", protocol="pairs") for name in ("SP wiki", "DC chat", "BSO wiki")),
    Row("DC wiki", "cls_mean"),
)
AT_ONCE = ("mean", "cls_mean", "pooled")
"""Read off one pass and kept, so that no row encodes a text again."""


def measure(
    row: Row, data: TaskData, encoder: BackboneEncoder, options: DiscoEval
) -> dict[str, object]:
    """What the suite finds for a row, with seconds of encoding and of the classifiers."""
    start, before = time.process_time(), encoder.tokens
    inputs = inputs_of(data, options)
    vectors_of(encoder, inputs.texts, AT_ONCE)
    encoded = time.process_time()
    found = run_task(data, encoder, options, "validation", seed=0)
    found.pop("outcomes")
    seconds = {"encoding": encoded - start, "classifiers": time.process_time() - encoded}
    tokens = encoder.tokens - before
    return {**found, "cpu_seconds": seconds, "tokens": tokens, "run": vars(row)}


def lines(row: Row, found: dict[str, object]) -> Iterator[str]:
    ours, deviation = 100 * float(found["value"]), 100 * float(found["sd"])  # type: ignore[arg-type]
    units = "" if row.hidden < 0 else f", {row.hidden} units"
    released = f"{row.released:.1f}" if row.released else ""
    difference = f"{ours - row.released:+.1f}" if row.released else ""
    seconds = found["cpu_seconds"]
    yield f"| {row.name}{units} | {row.protocol} | {row.representation} | {released} "
    yield f"| {ours:.1f} ± {deviation:.1f} | {difference} | {len(found['seeds'])} "  # type: ignore[arg-type]
    yield f"| {seconds['encoding']:.0f} | {seconds['classifiers']:.0f} |\n"  # type: ignore[index]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/discoeval"))
    parser.add_argument("--model", default=MINILM)
    parser.add_argument("--cache", default="build/vectors")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="tasks, such as SSP BSO")
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--jsonl", type=Path)
    chosen = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    encoder = load_encoder(chosen.model, cache=chosen.cache, dtype=chosen.dtype)
    tasks = {data.name: data for data in read(str(chosen.data)).tasks}
    write = sys.stdout.write
    write(f"{chosen.dtype}, seconds of CPU:\n\n| task | protocol | representation | released ")
    write("| here | difference | seeds | encoding | classifiers |\n")
    write("|---|---|---|---:|---:|---:|---:|---:|---:|\n")
    for row in (*REFERENCE, *(MORE if chosen.more else ())):
        if chosen.only and row.name.split()[0] not in chosen.only:
            continue
        options = DiscoEval(
            protocol=row.protocol,  # type: ignore[arg-type]
            representation=row.representation,
            hidden=row.hidden,
            seeds=chosen.seeds,
            second_opinion=row.hidden < 0,
            cache=chosen.cache,
        )
        found = measure(row, tasks[row.name], encoder, options)
        write("".join(lines(row, found)))
        sys.stdout.flush()
        if chosen.jsonl:
            with chosen.jsonl.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
