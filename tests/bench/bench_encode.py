"""Encoding for DiscoEval: sorted by length against file order padded by batch of 128.

    python -m tests.bench.bench_encode [--data ../shared/data/discoeval] [--model FOLDER]
        [--texts 2000] [--parts SP/wiki SP/arxiv ...] [--threads 1] [--count]

Three ways over the same example texts, in CPU seconds of one process (wall seconds on a GPU):

    file order    every text as it stands in the file, batches of 128 padded to their longest
    sorted        the same texts, repeated ones too, sorted by length, batches of like size
    distinct      sorted, and each distinct text once: what deduplication adds

`--count` encodes nothing: it counts the token ids that the model would see, padding included, and
of all texts (`--texts 0`). No other process disturbs a count.

The texts are whole examples, spread evenly over each file, so that what stands together in an
example (and is repeated in its altered form) stays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from corpora.readers.discoeval import read_discoeval
from zoo.evaluate.encoders import BackboneEncoder, load_encoder
from zoo.texts import batches_by_length

PARTS = ("SP/wiki", "SP/arxiv", "BSO/wiki", "BSO/arxiv", "DC/wiki", "DC/chat", "SSP/abs")
BATCH = 128

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def texts_of(path: Path, task: str, limit: int) -> list[str]:
    """About `limit` sentences (0: all) of whole examples, in file order, whole pairs of lines."""
    examples = list(read_discoeval(task, path))
    pairs = [examples[start : start + 2] for start in range(0, len(examples), 2)]
    width = len(examples[0].sentences) * 2
    size = max(1, min(len(pairs), limit // width)) if limit else len(pairs)
    chosen = np.linspace(0, len(pairs) - 1, size).astype(int)
    return [
        sentence.lower()
        for pair in chosen
        for example in pairs[pair]
        for sentence in example.sentences
    ]


def in_file_order(encoder: BackboneEncoder, texts: Sequence[str]) -> None:
    """Batches of 128 texts as they come, tokenised and padded by the batch."""
    for start in range(0, len(texts), BATCH):
        ids, _ = encoder.tokenize(texts[start : start + BATCH])
        encoder._batch(ids, ["mean"])


def sorted_by_length(encoder: BackboneEncoder, texts: Sequence[str]) -> None:
    ids, _ = encoder.tokenize(texts)
    encoder.encode_ids(ids, ["mean"])


def distinct(encoder: BackboneEncoder, texts: Sequence[str]) -> None:
    encoder.vectors(texts, ["mean"])


WAYS: dict[str, Callable[[BackboneEncoder, Sequence[str]], None]] = {
    "file order": in_file_order,
    "sorted": sorted_by_length,
    "distinct": distinct,
}


def clock(encoder: BackboneEncoder) -> Callable[[], float]:
    """CPU time, which other processes disturb least; on a GPU the wall's."""
    return time.process_time if encoder.model.device.type == "cpu" else time.perf_counter


def measure(encoder: BackboneEncoder, texts: Sequence[str]) -> dict[str, float]:
    """Seconds of each way, the best of two."""
    now = clock(encoder)
    seconds = {}
    for name, way in WAYS.items():
        runs = []
        for _ in range(2):
            start = now()
            way(encoder, texts)
            runs.append(now() - start)
        seconds[name] = min(runs)
    return seconds


def count(encoder: BackboneEncoder, texts: Sequence[str]) -> dict[str, float]:
    """Thousands of ids with padding, each way."""
    lengths = [len(ids["input_ids"]) for ids in encoder.tokenize(texts)[0]]
    once = list(dict(zip(texts, lengths, strict=True)).values())

    def padded(of: Sequence[int]) -> float:
        batches = batches_by_length(of, encoder.batch_tokens)
        return sum(max(of[row] for row in batch) * len(batch) for batch in batches) / 1000

    batches = (lengths[start : start + BATCH] for start in range(0, len(lengths), BATCH))
    plain = sum(max(batch) * len(batch) for batch in batches) / 1000
    return dict(zip(WAYS, (plain, padded(lengths), padded(once)), strict=True))


def rows(
    encoder: BackboneEncoder,
    data: Path,
    parts: Sequence[str],
    limit: int,
    way: Callable[[BackboneEncoder, Sequence[str]], dict[str, float]],
) -> Iterator[tuple[str, list[str], dict[str, float]]]:
    for part in parts:
        path = data / part / "valid.txt"
        if path.is_file():
            texts = texts_of(path, part.split("/")[0], limit)
            yield part, texts, way(encoder, texts)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--data", type=Path, default=Path("../shared/data/discoeval"))
    arguments.add_argument("--model", default=MINILM)
    arguments.add_argument("--texts", type=int, default=2000, help="about so many a part")
    arguments.add_argument("--parts", nargs="+", default=PARTS)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--count", action="store_true", help="count ids, encode nothing")
    chosen = arguments.parse_args()
    import torch

    torch.set_num_threads(chosen.threads)
    encoder = load_encoder(chosen.model, "mean")
    way = count if chosen.count else measure
    unit = "Thousand ids" if chosen.count else "Seconds"
    sorted_by_length(encoder, ["warm up"] * 64)
    total = dict.fromkeys(WAYS, 0.0)
    write = sys.stdout.write
    write(f"{unit}:\n\n| part | texts | distinct | file order | sorted | gain | once | further |\n")
    write("|---|---:|---:|---:|---:|---:|---:|---:|\n")
    for part, texts, seconds in rows(encoder, chosen.data, chosen.parts, chosen.texts, way):
        total = {name: total[name] + seconds[name] for name in WAYS}
        write(_row(part, f"{len(texts):,}", f"{len(set(texts)):,}", seconds))
    write(_row("all", "", "", total))


def _row(part: str, texts: str, kept: str, seconds: dict[str, float]) -> str:
    plain, ordered, once = seconds.values()
    return (
        f"| {part} | {texts} | {kept} | {plain:.1f} | {ordered:.1f} | {plain / ordered:.2f} "
        f"| {once:.1f} | {ordered / once:.2f} |\n"
    )


if __name__ == "__main__":
    main()
