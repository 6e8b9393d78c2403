"""Time of looking up similar texts: `python tests/bench/bench_similar.py --data D [--texts N]`

The texts are windows of six sentences of the shared novels (`D/books`), and copies of them whose
longer words are others in every copy, until there are N. `profiles` is the time of taking in and
weighing all texts, as `dc` does; `nearest` that of looking up the most similar texts of some drawn
at random, among all N; `pool` that of `intrusion`, which looks up among at most 20,000 texts of the
corpus at a time. Milliseconds of a core a text.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from time import process_time

import numpy as np

from corpora.document import paragraph_spans
from corpora.readers.source import SeenIds
from corpora.rng import stream
from corpora.sentences import split
from corpora.tasks.intruders import MEASURES, Pool
from corpora.tasks.intrusion import POOL, Intrusion
from corpora.tasks.similar import Neighbours, Profiles

SIZE, LOOKED_UP, SIMILAR = 6, 2_000, 25
LONG = re.compile(r"\b\w{6,}\b")


def windows(data: Path) -> list[list[str]]:
    """Windows of consecutive sentences of the novels."""
    found = []
    for path in sorted((data / "books").glob("*.jsonl")):
        sentences = []
        with path.open(encoding="utf-8") as file:
            for line in file:
                text = " ".join(json.loads(line)["text"].split())
                sentences += [text[a:b] for a, b in split(text, paragraph_spans(text))]
        found += [sentences[i : i + SIZE] for i in range(0, len(sentences) - SIZE, SIZE)]
    return found


def texts(some: list[list[str]]) -> Iterator[list[str]]:
    """The windows, then copies of them in which longer words end in the number of the copy."""
    for copy in count():
        mark = rf"\g<0>{copy}" if copy else r"\g<0>"
        yield from ([LONG.sub(mark, sentence) for sentence in window] for window in some)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def spent(start: float, some: list[list[str]]) -> float:
    """Milliseconds of a core a text since `start`."""
    return 1000 * (process_time() - start) / len(some)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=1_000_000)
    options = parser.parse_args()
    number, some = options.texts, windows(options.data)
    say(f"{len(some):,} windows of novels, {number:,} texts")

    with tempfile.TemporaryDirectory() as folder, Profiles(Path(folder)) as profiles:
        start = process_time()
        for place, window in enumerate(islice(texts(some), number)):
            profiles.add(str(place), " ".join(window))
        matrix = profiles.matrix([*profiles.rows])
        say(f"profiles {1000 * (process_time() - start) / number:.2f} ms a text")
    start = process_time()
    neighbours = Neighbours(matrix)
    say(f"index {process_time() - start:.1f} s")
    chosen = np.sort(np.random.default_rng(13).permutation(number)[:LOOKED_UP])
    start = process_time()
    found = sum(1 for _ in neighbours.nearest(chosen, SIMILAR))
    say(f"nearest {1000 * (process_time() - start) / found:.2f} ms a text")
    del neighbours, matrix

    draw = random.Random(13)
    places = {*draw.sample(range(number), min(POOL, number))}
    drawn = [window for place, window in enumerate(islice(texts(some), number)) if place in places]
    keys = np.arange(len(drawn), dtype=np.uint64)
    start = process_time()
    pool = Pool(drawn, keys, Intrusion(), stream(13, "bench"), SeenIds(), np.zeros(2 * MEASURES))
    say(f"pool of {len(drawn):,}: made in {spent(start, drawn):.2f} ms a text")
    start = process_time()
    donors = sum(found.size for found in pool.similar_texts())
    say(f"similar {spent(start, drawn):.2f} ms a text, {donors:,} donors")
    start = process_time()
    pairs = sum(1 for _ in pool.intruders())
    say(f"similar, and the pairs: {spent(start, drawn):.2f} ms a text, {pairs:,} pairs")
    say(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
