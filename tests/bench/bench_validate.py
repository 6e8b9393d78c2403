"""What validation costs: `python tests/bench/bench_validate.py --data DATA`.

CPU seconds of the strict part (reading, alignment, scores, intervals) and of the paper's mode
over all GDTB documents, and the latter against a double loop over the same sequences, with
python-Levenshtein where it is installed (it is no dependency) and rapidfuzz's scalar function.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from corpora.document import Document
from corpora.readers.pdtb import read_gold
from corpora.rng import stream
from extract.pairs import Pair
from extract.validate import strict, validate
from extract.validate.distances import Sequences, measure
from extract.validate.material import Material, gather
from extract.validate.scoring import STAGE, Scoring

ROOT = Path(__file__).resolve().parents[2]
MARKERS = (
    *("after", "also", "although", "and", "as", "because", "before", "but"),
    *("if", "so", "still", "then", "though", "when", "while"),
)
LOOP_PAIRS = 60


def sides(document: Document) -> Iterator[Pair]:
    """Each marker splits its sentence in two: a stand-in for an extractor, of like lengths."""
    marker = re.compile(rf"\b(?:{'|'.join(MARKERS)})\b", re.IGNORECASE)
    for sentence in re.finditer(r"[^.!?]+", document.text):
        start, end = sentence.span()
        for found in marker.finditer(document.text, start, end):
            at, to = found.span()
            spans = ((at, to),), ((start, at),), ((to, end),)
            said = ("", "same_sentence", "s1_first", True, "")
            name = found.group().lower()
            yield Pair(document.id, "", "", "", "en", 0, name, *spans, "", *said)


def cpu(action: Callable[[], object], repeats: int = 3) -> float:
    """The least CPU seconds of some runs."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


def strict_part(folder: Path, pairs: list[Pair], sources: list[Document]) -> Material:
    material = gather(pairs, read_gold(folder), sources, MARKERS)
    weights = strict.draws(len(material.texts), 1000, stream(0, STAGE))
    for policy in strict.POLICIES:
        strict.summary(strict.count(material, MARKERS, policy), MARKERS, weights)
    return material


def double_loop(pairs: Sequences, gold: Sequences, distance: Callable[[str, str], int]) -> float:
    """CPU seconds for a pair of the paper's criterion by a double loop, from some pairs."""

    def loop() -> None:
        step = max(1, len(pairs) // LOOP_PAIRS)
        for s1, s2 in list(zip(pairs.first, pairs.second, strict=True))[::step][:LOOP_PAIRS]:
            best = 1.0
            for g1, g2 in zip(gold.first, gold.second, strict=True):
                d1 = distance(s1, g1) / max(len(s1), len(g1), 1)
                best = min(best, d1, distance(s2, g2) / max(len(s2), len(g2), 1))

    return cpu(loop, 1) / min(LOOP_PAIRS, len(pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    data = parser.parse_args().data
    documents = list(read_gold(data / "gdtb"))
    pairs = [pair for document in documents for pair in sides(document)]
    material = strict_part(data / "gdtb", pairs, documents)
    scoring = Scoring(material, MARKERS)
    measured, gold = scoring.units["characters"]
    say(f"{len(documents)} documents, {len(pairs)} pairs, {len(gold)} gold pairs")
    say(f"strict part: {cpu(lambda: strict_part(data / 'gdtb', pairs, documents)):.2f} s of CPU")
    seconds = cpu(lambda: measure(measured, gold), 1)
    cells = 2 * len(pairs) * len(gold)
    say(f"paper mode in characters, control, both criteria: {seconds:.2f} s of CPU, ", end="")
    say(f"{cells / seconds / 1e6:.0f} M distances/s")
    for name, distance in baselines().items():
        slow = double_loop(measured, gold, distance) * len(pairs)
        say(f"double loop, {name}: {slow:.1f} s, {slow / seconds:.1f} times as long")
    say(f"validate: {cpu(lambda: validate(pairs, documents, documents, MARKERS), 1):.2f} s of CPU")


def baselines() -> dict[str, Callable[[str, str], int]]:
    found: dict[str, Callable[[str, str], int]] = {"rapidfuzz": Levenshtein.distance}
    try:
        import Levenshtein as original
    except ImportError:
        return found
    return {"python-Levenshtein": original.distance, **found}


def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)


if __name__ == "__main__":
    main()
