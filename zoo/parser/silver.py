"""Silver trees: running text parsed by the teacher, as CoNLL-U for `zoo.parser.train --silver`.

    python -m zoo.parser.silver TEACHER --source SPEC WORDS [--source SPEC WORDS ...] --output FILE

Each source (`corpora.readers`) gives about WORDS words (0: all) in blocks of neighbouring
sentences spread evenly over it, each sentence once. Those that the teacher is least sure of are
left out (`--keep`).
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from corpora.errors import DiscorporaError
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.store.atomic import replacing
from zoo.parser.biaffine import Tree, load, parse
from zoo.parser.evaluate import loader
from zoo.parser.treebank import read_treebank, treebank_files

SHORTEST, LONGEST = 3, 80  # words: headings and lists apart, and what a tree is worth learning from
QUOTES = {"``": '"', "''": '"'}
CHUNK, BLOCK = 512, 8  # blocks parsed at a time, sentences of a block
log = logging.getLogger("zoo.parser")


def blocks_of(spec: str) -> Iterator[list[str]]:
    """The sentences of a source in blocks of neighbours, each sentence once; split by rule."""
    seen: set[int] = set()
    for document in open_source(spec, on_bad=lambda bad: log.warning("left out: %s", bad)):
        if document.sentences is None:
            document = split_document(document)
        block: list[str] = []
        for text in document.sentence_texts():
            key = hash(text)
            if key not in seen and SHORTEST <= len(text.split()) <= LONGEST:
                seen.add(key)
                block.append(text)
            if len(block) == BLOCK:
                yield block
                block = []
        if block:
            yield block


def sample(blocks: Sequence[list[str]], words: int) -> list[list[str]]:
    """About `words` blank-separated words in blocks at even distances; all for 0."""
    total = sum(len(text.split()) for block in blocks for text in block)
    if not words or total <= words:
        return list(blocks)
    count = max(1, round(len(blocks) * words / total))
    return [blocks[int(i)] for i in np.linspace(0, len(blocks) - 1, count)]


def rows(forms: Sequence[str], tree: Tree) -> Iterator[str]:
    for i, form in enumerate(forms):
        head, deprel, xpos = tree.heads[i] + 1, tree.deprels[i], tree.xpos[i]
        yield "\t".join((str(i + 1), form, "_", "_", xpos, "_", str(head), deprel, "_", "_"))


def known(paths: Sequence[Path]) -> frozenset[str]:
    """The sentences of dev treebanks: a parser that learnt their silver trees has seen them."""
    files = [file for path in paths for file in treebank_files(path, "dev")]
    return frozenset(key_of(sentence.forms) for sentence in read_treebank(files))


def key_of(forms: Sequence[str]) -> str:
    return "".join(forms).lower()


@dataclass
class Annotator:
    """Parses blocks and keeps what the teacher is sure of and no dev treebank has."""

    teacher: Path
    keep: float
    excluded: frozenset[str]
    tokens: str

    def __post_init__(self) -> None:
        self.model, self.encoding = load(self.teacher)
        self.tokenizer = loader(self.tokens)().tokenizer

    def forms(self, text: str) -> list[str]:
        return [QUOTES.get(t.text, t.text) for t in self.tokenizer(text) if t.text.strip()]

    def annotate(self, blocks: Iterable[list[str]], name: str) -> Iterator[tuple[str, int]]:
        """CoNLL-U of each block with its number of words; a block is a document.

        Of every `CHUNK` blocks the share `keep` of sentences that the teacher is surest of.
        """
        stream, number = iter(blocks), 0
        while chunk := list(islice(stream, CHUNK)):
            forms = [self.forms(text) for block in chunk for text in block]
            trees = parse(self.model, self.encoding, forms)
            sure = [tree.confidence for tree in trees if tree] or [0.0]
            floor = float(np.quantile(sure, 1.0 - self.keep))
            pairs = iter(zip(forms, trees, strict=True))
            for block in chunk:
                kept = [
                    (words, tree)
                    for words, tree in islice(pairs, len(block))
                    if tree and tree.confidence >= floor and key_of(words) not in self.excluded
                ]
                if kept:
                    number += 1
                    text = "".join("\n".join(rows(*pair)) + "\n\n" for pair in kept)
                    yield f"# newdoc id = {name}-{number}\n{text}", sum(len(w) for w, _ in kept)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("teacher", type=Path, help="what zoo.parser.teacher wrote")
    add("--source", nargs=2, action="append", required=True, metavar=("SPEC", "WORDS"))
    add("--output", type=Path, required=True)
    add("--exclude", type=Path, action="append", default=[], help="dev treebank: not its sentences")
    add(
        "--tokens",
        default="extract.embedded:load",
        metavar="MODULE:FUNCTION",
        help="loads the pipeline whose tokenizer splits the text into UD's words",
    )
    add("--keep", type=float, default=0.85, help="share of sentences, by the teacher's confidence")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    start, total = time.perf_counter(), 0
    try:
        sources = [(spec, int(words)) for spec, words in options.source]
        excluded = known(options.exclude)
        with replacing(options.output) as path, path.open("w", encoding="utf-8") as file:
            annotator: Annotator | None = None
            for place, (spec, words) in enumerate(sources):
                blocks = sample(list(blocks_of(spec)), words)
                log.info("%s: %d blocks", spec, len(blocks))
                annotator = annotator or Annotator(
                    options.teacher, options.keep, excluded, options.tokens
                )
                for text, count in annotator.annotate(blocks, f"silver{place}"):
                    file.write(text)
                    total += count
                log.info("%d words, %.0f/s", total, total / (time.perf_counter() - start))
    except (DiscorporaError, OSError, ValueError) as error:
        log.error("error: %s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
