"""Peak memory and time of all builders: `python tests/bench/bench_tasks.py [--sizes 20000,200000]`

Each builder over made-up documents of 200 words, of which there are as many as each of the sizes
says (multiples of 20,000; above it they are copies with other words), or over the shared novels
(`--books DATA`, from `DATA/books`), in a process of its own. The documents (for `dissent`: pairs,
eight a document) are written as Parquet shards before, and divided as a build divides them. Memory
is what the process holds itself: pages of mapped files, which the system may drop, are not counted.
`--builders a,b` takes some of them. The bounds are those of issue 24.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, pairwise
from pathlib import Path
from threading import Event, Thread
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.compute import binary_join_element_wise, replace_substring

from corpora.document import Document, Relation, RstTree, Sections, Spans, paragraph_spans
from corpora.readers import open_source
from corpora.rng import stable_id, stream
from corpora.schemas import MARKERS_ALL, PAIRS
from corpora.sentences import split_document
from corpora.splits.division import Division
from corpora.store.atomic import staged
from corpora.store.documents import DocumentSizes, write_documents
from corpora.store.folder import Stage
from corpora.store.rows import write_parquet
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

SIZES = (200_000, 2_000_000)
GROWTH = 1.2
"""The most memory over the second size, times that over the first."""
MILLISECONDS = {"intrusion": 4.0}
"""Of a core, a document of 200 words; 1 for the others."""

SETTINGS: dict[str, dict[str, Any]] = {"conpono": {"merge_above": 10}}
WITHOUT_GOLD = ("sp", "bso", "dc", "permuted", "intrusion", "conpono", "criteria")
"""The builders that need nothing but text and so can read the novels."""
NAMES = ("dissent", *WITHOUT_GOLD, "ssp", "pdtb_explicit", "pdtb_implicit", "pdtb_marked", "rst")

HEADINGS = ("Abstract", "Methods")
SENSES = ("Contingency.Cause.Reason", "Comparison.Contrast", "Temporal.Asynchronous.Precedence")
LEXICON = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in ("a", "e", "io", "u") for c in "klmnrstvz"]
SENTENCES = 16
DRAWN, DRAWN_AT_MOST, SHARD = 1024, 20_000, 1024
PAIRS_EACH = 8


def made_up(number: int) -> Iterator[Document]:
    """Documents of 200 words in two paragraphs, on topics: some words are its own."""
    share = np.cumsum(1 / np.arange(1, len(LEXICON) + 1))
    lexicon = np.array(LEXICON)
    for first in range(0, number, DRAWN):
        random = stream(1, "bench", f"d{first}")
        drawn = random.random((DRAWN, SENTENCES, 6)) * share[-1]
        words = lexicon[np.searchsorted(share, drawn)].tolist()
        topic = lexicon[random.integers(0, len(LEXICON), (DRAWN, SENTENCES, 3))].tolist()
        for i in range(first, min(first + DRAWN, number)):
            spans, text = Spans(), ""
            for j in range(SENTENCES):
                one, (a, b, c) = " ".join(words[i - first][j]), topic[i - first][j]
                line = f"The {one} of {i % 97}{a} {b}{i % 89} {c} {j}."
                text += "\n\n" if j == SENTENCES // 2 else " " * bool(j)
                spans.add(len(text), len(text) + len(line))
                text += line
            topics = (f"topic {i % 997}", f"area {i % 113}")
            document = Document(f"d{i}", text, f"g{i // 20}", licence="CC0-1.0", categories=topics)
            yield replace(document, sentences=spans)


def gold(documents: Iterable[Document]) -> Iterator[Document]:
    """The same with sections, a relation of each kind between sentences, and a tree."""
    for document in documents:
        spans = list(document.sentences or ())
        starts, ends = map(list, zip(*paragraph_spans(document.text), strict=True))
        sections = Sections([2] * len(starts), list(HEADINGS[: len(starts)]), starts, ends)
        relations = [
            Relation(kind, "and", (), (one,), (two,), (SENSES[i % 3],))
            for kind in ("Explicit", "Implicit")
            for i, (one, two) in enumerate(pairwise(spans))
        ]
        yield replace(document, sections=sections, relations=relations, rst=_tree(spans))


def _tree(spans: list[tuple[int, int]]) -> RstTree:
    """A tree that branches to the right, as elaborations mostly do."""
    n = len(spans)
    starts, ends = map(list, zip(*spans, strict=True))
    left, right = list(range(n - 2, -1, -1)), [n - 1, *range(n, 2 * n - 2)]
    names = [("elaboration", "contrast", "list")[i % 3] for i in range(n - 1)]
    kinds = [("NS", "SN", "NN")[i % 3] for i in range(n - 1)]
    return RstTree(starts, ends, left, right, names, kinds)


def pairs(documents: Iterable[Document]) -> Iterator[pa.RecordBatch]:
    """Pairs of neighbouring sentences, each document's in a batch."""
    for number, document in enumerate(documents):
        texts = document.sentence_texts()
        shared = {
            **{"doc": document.id, "group": document.group, "source": "s", "licence": "CC0-1.0"},
            **{"language": "en", "marker_spans": [[0, 3]], "s1_spans": [], "s2_spans": []},
            **{"position": "same_sentence", "order": "s1_first", "has_clauses": True},
            **{"s2_added": "", "confidence": 0.75},
        }
        yield pa.RecordBatch.from_pylist(
            [
                {
                    **shared,
                    "sentence": i,
                    "marker": MARKERS_ALL[(number + i) % 15],
                    "s1": texts[2 * i],
                    "s2": texts[2 * i + 1],
                    "pattern": "x",
                }
                for i in range(PAIRS_EACH)
            ],
            PAIRS,
        )


def novels(data: Path) -> Iterator[Document]:
    options = {"layout": "paragraph", "group": "book", "id": "chapter_id", "title": "chapter"}
    specs = [f"jsonl:{path}" for path in sorted((data / "books").glob("*.jsonl"))]
    return map(split_document, chain.from_iterable(open_source(s, options) for s in specs))


def write_inputs(size: int, books: Path | None, folder: Path) -> None:
    """Shards of documents, of the same with gold annotation, and of pairs."""
    if books:
        write_documents(novels(books), folder / "plain", docs_per_shard=SHARD)
        return
    drawn = min(size, DRAWN_AT_MOST)
    write_documents(made_up(drawn), folder / "plain", docs_per_shard=SHARD)
    write_documents(gold(made_up(drawn)), folder / "gold", docs_per_shard=SHARD)
    batches = pairs(made_up(drawn))
    for number in range(-(-drawn // SHARD)):
        path = folder / "dissent" / f"pairs-{number:05d}.parquet"
        write_parquet(path, islice(batches, SHARD), PAIRS)
    for path in sorted(folder.glob("*/*.parquet")):
        for copy in range(1, size // drawn):
            write_copy(path, copy)


def write_copy(path: Path, number: int) -> None:
    """The same documents or pairs with other ids and, at the same places, other words."""
    table = pq.read_table(path)
    changes = {
        **dict.fromkeys(("id", "doc", "group"), lambda c: binary_join_element_wise(c, ending, "")),
        **dict.fromkeys(("text", "s1", "s2"), lambda c: replace_substring(c, "The ", word)),
    }
    ending, word = f"-{number}", f"T{number:02} "
    for place, field in enumerate(table.schema):
        if field.name in changes:
            column = changes[field.name](table[field.name])
            table = table.set_column(place, field, column.cast(field.type))
    copy = path.with_name(f"{path.stem}-{number:03d}.parquet")
    size = 64 if "text" in table.schema.names else 16_384
    pq.write_table(table, copy, compression="zstd", row_group_size=size)


def measured(name: str, folder: Path) -> tuple[float, float, int]:
    """Peak memory in MB, processor seconds and rows of one builder, of this process."""
    builder = BUILDERS.find(name).of(SETTINGS.get(name, {}))
    stage = Stage(name, 1, "0", sources=[{"spec": "bench", "licence": "CC0-1.0"}])
    inputs = "dissent" if name == "dissent" else "plain" if name in WITHOUT_GOLD else "gold"
    files = sorted((folder / inputs).glob("*.parquet"))
    ids = [name for name, *_ in DocumentSizes(folder / "plain")]
    keys = np.fromiter(map(stable_id, ids), np.uint64, len(ids))
    division = Division(keys, np.arange(len(ids)) % 10 // 8, {"by": "document", "reason": "bench"})
    del ids
    done, peaks = Event(), [0.0]
    watch = Thread(target=_watch, args=(done, peaks), daemon=True)
    watch.start()
    start = process_time()
    with tempfile.TemporaryDirectory(dir=folder) as out, staged(Path(out) / "d") as partial:
        target = Target(partial, stage, 1, division)
        manifest = builder.build(files, target)
    seconds = process_time() - start
    done.set()
    watch.join()
    splits = [s for config in manifest["configs"].values() for s in config["splits"].values()]
    return peaks[0], seconds, sum(split["rows"] for split in splits)


def _watch(done: Event, peaks: list[float]) -> None:
    """Keep the most memory of this process that is no file's."""
    while not done.wait(0.02):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        held = sum(map(int, re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", status)))
        peaks[0] = max(peaks[0], held / 1024)


def in_a_process(*arguments: str) -> str:
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def table(names: list[str], sizes: list[int], books: Path | None, folder: Path) -> None:
    columns = "| builder | documents | peak MB | x the first | ms a document | rows | bounds |\n"
    sys.stdout.write(columns + "|---|--:|--:|--:|--:|--:|---|\n")
    for size in sizes:
        for kind in ("plain", "gold", "dissent"):
            (folder / str(size) / kind).mkdir(parents=True)
        given = ["--books", str(books)] if books else []
        in_a_process("--make", str(folder / str(size)), "--sizes", str(size), *given)
    for name in names:
        first = 0.0
        for size in sizes:
            found = in_a_process("--only", name, "--make", str(folder / str(size)))
            memory, seconds, rows = map(float, found.split())
            first = first or memory
            each = 1000 * seconds / size if size else float("nan")
            kept = memory <= GROWTH * first and not each > MILLISECONDS.get(name, 1.0)
            documents = f"{size:,}" if size else "the novels"
            sys.stdout.write(
                f"| {name} | {documents} | {memory:.0f} | {memory / first:.2f} | {each:.2f} "
                f"| {rows:,.0f} | {'kept' if kept else 'NOT KEPT'} |\n"
            )
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--books", type=Path, help="the folder of real data")
    parser.add_argument("--builders", default="", help="some of them, with commas between")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of documents")
    parser.add_argument("--only", choices=NAMES, help=argparse.SUPPRESS)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        sys.stdout.write(" ".join(map(str, measured(options.only, options.make))))
        return
    sizes = [0] if options.books else list(map(int, options.sizes.split(",")))
    if options.make:
        write_inputs(sizes[0], options.books, options.make)
        return
    names = list(WITHOUT_GOLD if options.books else NAMES)
    with tempfile.TemporaryDirectory() as folder:
        chosen = options.builders.split(",") if options.builders else names
        table(chosen, sizes, options.books, Path(folder))


if __name__ == "__main__":
    main()
