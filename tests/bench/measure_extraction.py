"""Every figure of quality of `docs/results/extraction.md`, as Markdown, in one go.

python -m tests.bench.measure_extraction [--data DIR] [--pipeline DIR] > figures.md

GDTB by halves, with gold trees and the embedded parser; the paper's view with its control;
DisExtract's cases with those that disagree. `--pipeline` names a folder that `zoo.parser.train`
wrote on the checking half only: the choosing half is then parsed with it as well. Speed and memory:
`python -m tests.bench.bench_extract`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.readers import open_source
from corpora.readers.pdtb import read_gold
from extract import Extractor, Pair
from extract.parsers.spacy import SpacyParser
from extract.patterns import resolve_markers
from extract.validate import validate

MARKERS = resolve_markers("all15")
MODES = {
    "standalone, shared": {"subjects": "shared"},
    "standalone": {},
    "recall": {"mode": "recall"},
}
HALVES = {0: "choosing half", 1: "checking half"}


def half_of(document: Document) -> str:
    """Rules are chosen on the train documents whose sha256 of the id ends in an even byte."""
    return HALVES[hashlib.sha256(document.id.encode()).digest()[-1] % 2]


def scored(documents: Sequence[Document], data: Path, extractor: Extractor) -> dict[str, Any]:
    gold = read_gold(data / "gdtb", {document.id for document in documents})
    return validate(extractor.pairs(documents), gold, documents, MARKERS)


def row(name: str, trees: str, result: dict[str, Any]) -> str:
    overall = result["strict"]["overall"]
    occurrence, dice = overall["occurrence"], overall["dice"]
    shown = " / ".join(f"{occurrence[key]:.3f}" for key in ("p", "r", "f1"))
    # Fewer than ten documents have no interval.
    intervals = [
        f"[{x['ci'][0]:.3f}, {x['ci'][1]:.3f}]" if x["ci"] else "" for x in (occurrence, dice)
    ]
    return (
        f"| {name} | {trees} | {shown} {intervals[0]} | {overall['exact']['f1']:.3f} "
        f"| {dice['f1']:.3f} {intervals[1]} |"
    )


def gdtb(data: Path, pipeline: Path | None) -> Iterator[str]:
    """A row of the table for each part of the documents and each source of trees."""
    train, dev = (list(open_source(f"conllu:{data}/treebank/en_gum/{s}")) for s in ("train", "dev"))
    parts = {h: [d for d in train if half_of(d) == h] for h in HALVES.values()}
    yield "| documents | trees | occurrence P / R / F1 | exact F1 | Dice F1 |"
    yield "|---|---|---|---:|---:|"
    everything: dict[str, Any] = {}
    for name, documents in {**parts, "dev": dev, "all": train + dev}.items():
        everything = scored(documents, data, Extractor("gold", MARKERS, "recall"))
        yield row(name, "gold", everything)
    if pipeline:
        unseen = Unseen(pipeline)
        yield row(
            HALVES[0],
            "a parser that has not seen it",
            scored(parts[HALVES[0]], data, Extractor(unseen, MARKERS, "recall", gold_tokens=True)),
        )
    for trees, gold_tokens in (("embedded, gold tokens", True), ("embedded, raw text", False)):
        extractor = Extractor("embedded", MARKERS, "recall", gold_tokens=gold_tokens)
        yield row("dev", trees, scored(dev, data, extractor))
    yield from ("", "By marker, gold trees, all documents:", "", *by_marker(everything))
    yield from ("", *alignment(everything))


def by_marker(result: dict[str, Any]) -> Iterator[str]:
    yield "| marker | gold relations | occurrence F1 | Dice F1 |"
    yield "|---|---:|---:|---:|"
    for marker, scores in result["strict"]["per_marker"].items():
        figures = (scores[key]["f1"] for key in ("occurrence", "dice"))
        yield f"| {marker} | {scores['gold']} | {' | '.join(f'{f:.3f}' for f in figures)} |"


def alignment(result: dict[str, Any]) -> Iterator[str]:
    yield "| aligned, of all pairs | own gold too | control: other documents only |"
    yield "|---|---:|---:|"
    in_words = result["settings"]["paper"]["in_words"]
    for criterion, name in (("criterion_paper", "min < .7"), ("criterion_strict", "max <= .3")):
        for unit, views in (("characters", result), ("words", in_words)):
            shares = []
            for view in ("paper", "control"):
                figures = views[view][criterion]
                shares.append(1 - figures.get("overall", figures)["error_rate"])
            yield f"| {name}, in {unit} | {shares[0]:.4f} | {shares[1]:.4f} |"


def cases(data: Path) -> Iterator[str]:
    """DisExtract's cases by mode, and the ids of those that disagree in the default mode."""
    lines = (data / "disextract_cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    records = [case for case in map(json.loads, lines) if case["marker"] in MARKERS]
    yield "| mode | with an expected pair | without |"
    yield "|---|---:|---:|"
    for mode, settings in MODES.items():
        extractor = Extractor("embedded", MARKERS, **settings)
        agree = {case["id"]: agrees(case, extractor) for case in records}
        shares = []
        for expected in (True, False):
            ids = [case["id"] for case in records if (case["output"] is not None) == expected]
            right = sum(agree[name] for name in ids)
            shares.append(f"{right} of {len(ids)} ({right / len(ids):.0%})")
        yield f"| `{mode}` | {' | '.join(shares)} |"
        wrong = ", ".join(name.removeprefix("case-") for name, ok in agree.items() if not ok)
        yield f"<!-- {mode} disagrees: {wrong} -->"


def agrees(case: dict[str, Any], extractor: Extractor) -> bool:
    """Whether the expected pair is among those found, or none is where none is expected."""
    previous = "" if case["previous_sentence"].strip() in ("NA", ".") else case["previous_sentence"]
    results = extractor.results_in(case["sentence"], previous)
    pairs = [r for r in results if isinstance(r, Pair) and r.marker == case["marker"]]
    texts = [tuple(map(plain, (p.s1, p.s2))) for p in pairs]
    if case["output"] is None:
        return not texts
    return tuple(map(plain, case["output"])) in texts


def plain(text: str) -> str:
    """Without case and punctuation."""
    return re.sub(r"\W+", " ", text.lower().replace("@-@", " ")).strip()


class Unseen(SpacyParser):
    """The parser in a folder that `zoo.parser.train` wrote."""

    def __init__(self, folder: Path) -> None:
        super().__init__(gold_tokens=True)
        from extract import embedded

        self.name, self.nlp = str(folder), embedded.load(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument(
        "--pipeline", type=Path, help="a parser that has not seen the choosing half"
    )
    options = parser.parse_args()
    for title, lines in (
        ("GDTB", gdtb(options.data, options.pipeline)),
        ("DisExtract", cases(options.data)),
    ):
        sys.stdout.write(f"## {title}\n\n")
        for line in lines:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
