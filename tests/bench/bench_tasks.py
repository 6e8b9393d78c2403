"""Peak memory and time of all builders: `python tests/bench/bench_tasks.py [--books DATA]`

Each builder over 1 x and 10 x a made-up corpus, or over the shared novels, in a process of its own.
`--builders a,b` takes some of them. The folder of the novels comes from `DATA/books`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from corpora.document import Document, Relation, RstTree, Sections, paragraph_spans
from corpora.readers import open_source
from corpora.rng import stream
from corpora.schemas import PAIRS
from corpora.sentences import split_document
from corpora.store.atomic import staged, write_parquet
from corpora.store.folder import Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

UNIT = 300
SETTINGS: dict[str, dict[str, Any]] = {
    "dissent": {},
    "sp": {},
    "bso": {},
    "dc": {},
    "ssp": {},
    "permuted": {},
    "intrusion": {"take": "windows"},
    "conpono": {"merge_above": 10},
    "criteria": {},
    "pdtb_explicit": {},
    "pdtb_implicit": {},
    "pdtb_marked": {},
    "rst": {},
}
WITHOUT_GOLD = ("sp", "bso", "dc", "permuted", "intrusion", "conpono", "criteria")
"""The builders that need nothing but text and so can read the novels."""

HEADINGS = ("Abstract", "Introduction", "Methods", "Results", "Conclusion")
SENSES = ("Contingency.Cause.Reason", "Comparison.Contrast", "Temporal.Asynchronous.Precedence")
EDUS = 30
LEXICON = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in ("a", "e", "io", "u") for c in "klmnrstvz"]


def made_up(number: int) -> Iterator[Document]:
    """Chapters of 60 sentences in paragraphs of 12, on topics: some words are a topic's own."""
    share = 1 / np.arange(1, len(LEXICON) + 1)
    for i in range(number):
        random = stream(1, "bench", f"d{i}")
        words = random.choice(LEXICON, (60, 9), p=share / share.sum())
        topic = random.choice(LEXICON, (60, 3))
        lines = [
            f"The {' '.join(line)} of {i % 97}{a} {b}{i % 89} {c} {j}."
            for j, (line, (a, b, c)) in enumerate(zip(words, topic, strict=True))
        ]
        text = "\n\n".join(" ".join(lines[j : j + 12]) for j in range(0, 60, 12))
        topics = (f"topic {i % 97}", f"area {i % 13}")
        document = Document(f"d{i}", text, f"g{i // 20}", licence="CC0-1.0", categories=topics)
        yield split_document(document)


def gold(documents: Iterable[Document]) -> Iterator[Document]:
    """The same with sections, 30 relations of each kind and a tree of 30 units."""
    for document in documents:
        spans = list(document.sentences or ())
        starts, ends = map(list, zip(*paragraph_spans(document.text), strict=True))
        sections = Sections([2] * len(starts), list(HEADINGS[: len(starts)]), starts, ends)
        relations = [
            Relation(kind, "and", (), (one,), (two,), (SENSES[i % 3],))
            for kind in ("Explicit", "Implicit")
            for i, (one, two) in enumerate(pairwise(spans[: EDUS + 1]))
        ]
        yield replace(document, sections=sections, relations=relations, rst=_tree(spans[:EDUS]))


def _tree(spans: list[tuple[int, int]]) -> RstTree:
    """A tree that branches to the right, as elaborations mostly do."""
    n = len(spans)
    starts, ends = map(list, zip(*spans, strict=True))
    left, right = list(range(n - 2, -1, -1)), [n - 1, *range(n, 2 * n - 2)]
    names = [("elaboration", "contrast", "list")[i % 3] for i in range(n - 1)]
    kinds = [("NS", "SN", "NN")[i % 3] for i in range(n - 1)]
    return RstTree(starts, ends, left, right, names, kinds)


def novels(data: Path) -> Iterator[Document]:
    options = {"layout": "paragraph", "group": "book", "id": "chapter_id", "title": "chapter"}
    specs = [f"jsonl:{path}" for path in sorted((data / "books").glob("*.jsonl"))]
    return map(split_document, chain.from_iterable(open_source(s, options) for s in specs))


def inputs(name: str, size: int, books: Path | None, folder: Path) -> Any:
    """What a builder reads: documents, or for `dissent` a file of pairs."""
    if name == "dissent":
        from bench_store import pairs

        write_parquet(folder / "pairs.parquet", pairs(size), PAIRS)
        return [folder / "pairs.parquet"]
    documents = novels(books) if books else made_up(size)
    return documents if name in WITHOUT_GOLD else gold(documents)


def measured(name: str, size: int, books: Path | None) -> tuple[int, float, int]:
    """Peak memory in MB, processor seconds and rows of one builder."""
    start = process_time()
    stage = Stage(name, 1, "0", sources=[{"spec": "bench", "licence": "CC0-1.0"}])
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder) / "d") as partial:
        source = inputs(name, size, books, Path(folder))
        settings = {} if books and name == "intrusion" else SETTINGS[name]
        manifest = BUILDERS.find(name).of(settings).build(source, Target(partial, stage, 1))
    splits = [s for config in manifest["configs"].values() for s in config["splits"].values()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return memory, process_time() - start, sum(split["rows"] for split in splits)


def in_a_process(name: str, size: int, books: Path | None) -> tuple[int, float, int]:
    command = [sys.executable, __file__, "--only", name, "--size", str(size)]
    command += ["--books", str(books)] if books else []
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    memory, seconds, rows = found.split()
    return int(memory), float(seconds), int(rows)


def table(names: list[str], unit: int, books: Path | None) -> None:
    columns = "| builder | documents | peak MB | processor s | rows | memory, x the first |\n"
    sys.stdout.write(columns + "|---|--:|--:|--:|--:|--:|\n")
    for name in names:
        first = 0
        for size in [0] if books else [unit, 10 * unit]:
            memory, seconds, rows = in_a_process(name, size, books)
            first = first or memory
            documents = f"{size:,}" if size else "the novels"
            line = f"| {name} | {documents} | {memory} | {seconds:.1f} | {rows:,} |"
            sys.stdout.write(f"{line} {memory / first:.2f} |\n")
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--books", type=Path, help="the folder of real data")
    parser.add_argument("--builders", default="", help="some of them, with commas between")
    parser.add_argument("--size", type=int, default=UNIT, help="documents of 1 x")
    parser.add_argument("--only", choices=sorted(SETTINGS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        found = measured(options.only, options.size, options.books)
        sys.stdout.write(" ".join(map(str, found)))
        return
    names = list(WITHOUT_GOLD) if options.books else list(SETTINGS)
    table(options.builders.split(",") if options.builders else names, options.size, options.books)


if __name__ == "__main__":
    main()
