"""What the spaCy component adds to `nlp.pipe`: `python -m tests.bench.bench_pipeline`.

The embedded pipeline reads documents of about 500 tokens of a novel, with and without the
component. Time is processor time of one process without the garbage collector. Both ways take turns
at each part of the documents, and the ratio is that of the sums of their best times.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

from threadpoolctl import threadpool_limits

from corpora.readers import open_source
from extract import embedded, pipeline

TOKENS = 500
PART = 125
"""Documents of a part: short, so that the machine changes little within a turn."""


def texts_of(nlp: Any, folder: Path, count: int) -> Iterator[str]:
    """Yield `count` texts of `TOKENS` tokens each from novels, cut between tokens."""
    for novel in sorted(folder.glob("*.jsonl")):
        for document in open_source(f"jsonl:{novel}"):
            doc = nlp.make_doc(document.text)
            for start in range(0, len(doc) - TOKENS + 1, TOKENS):
                if count == 0:
                    return
                count -= 1
                yield doc[start : start + TOKENS].text


def seconds(nlp: Any, texts: list[str]) -> float:
    """Return the processor seconds of `nlp.pipe` over the texts."""
    gc.collect()
    gc.disable()
    begin = process_time()
    for _ in nlp.pipe(texts):
        pass
    gc.enable()
    return process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if not options.data.is_dir():
        sys.stdout.write(f"no data at {options.data}; name its folder with --data\n")
        return
    nlp = embedded.load()
    texts = list(texts_of(nlp, options.data / "books", options.documents))
    nlp.add_pipe(pipeline.NAME)
    threadpool_limits(1, user_api="blas")
    plain = both = 0.0
    for start in range(0, len(texts), PART):
        part = texts[start : start + PART]
        runs: dict[str, list[float]] = {"plain": [], "with": []}
        for _ in range(options.repeat):
            with nlp.select_pipes(disable=pipeline.NAME):
                runs["plain"].append(seconds(nlp, part))
            runs["with"].append(seconds(nlp, part))
        plain, both = plain + min(runs["plain"]), both + min(runs["with"])
    docs = list(nlp.pipe(texts))
    pairs, items = (sum(len(getattr(d._, n)) for d in docs) for n in ("pairs", "connectives"))
    lines = (
        f"{len(texts):,} documents of {TOKENS} tokens: {pairs:,} pairs, {items:,} connectives",
        f"nlp.pipe: {plain:.2f} s; with the component: {both:.2f} s, {both / plain - 1:+.1%}",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
