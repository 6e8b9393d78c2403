"""Silver trees: running text parsed by the teacher, as CoNLL-U for `zoo.parser.train --silver`.

    python -m zoo.parser.silver TEACHER --source SPEC WORDS [--source SPEC WORDS ...] --output FILE

About WORDS words (0: all) of each source (`corpora.readers`) are taken, in blocks of neighbouring
sentences spread evenly over it, each sentence once. The sentences of which the teacher is least
sure are left out (`--keep`).
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import numpy as np
from spacy.tokenizer import Tokenizer

from corpora.errors import ConfigError, amount
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.store.atomic import replacing
from zoo.commands import command, log
from zoo.parser.biaffine import Encoding, Teacher, load, parse
from zoo.parser.evaluate import loader
from zoo.parser.treebank import sentences_of, treebank_files

SHORTEST, LONGEST = 3, 80  # words of a sentence: shorter ones are headings and lists
QUOTES = {"``": '"', "''": '"'}
CHUNK, BLOCK = 512, 8  # blocks that are parsed together, and sentences of a block


def blocks_of(spec: str, words: int) -> list[list[str]]:
    """Return the sentences of a source in blocks of neighbours, each sentence once.

    If `words` is not 0, only blocks at even distances are returned, of about that many words.
    """
    seen: set[str] = set()
    blocks: list[list[str]] = []
    total = 0
    for document in open_source(spec, on_bad=lambda bad: log.warning("left out: %s", bad)):
        if document.sentences is None:
            document = split_document(document)
        block: list[str] = []
        for text in document.sentence_texts():
            length = len(text.split())
            if text in seen or not SHORTEST <= length <= LONGEST:
                continue
            seen.add(text)
            total += length
            if not block or len(block) == BLOCK:
                blocks.append(block := [])
            block.append(text)
    if words and total > words:
        count = max(1, round(len(blocks) * words / total))
        blocks = [blocks[int(i)] for i in np.linspace(0, len(blocks) - 1, count)]
    log.info("%s: %s", spec, amount(len(blocks), "block"))
    return blocks


def key_of(forms: Sequence[str]) -> str:
    """Return a sentence in lower case without blanks, to recognise it in another tokenisation."""
    return "".join(forms).lower()


def annotate(
    blocks: list[list[str]],
    tokenizer: Tokenizer,
    teacher: tuple[Teacher, Encoding],
    keep: float,
    excluded: set[str],
) -> Iterator[list[str]]:
    """Parse blocks of sentences, and yield the CoNLL-U rows of each; an empty row ends a sentence.

    From every `CHUNK` blocks, only the share `keep` of sentences is yielded of which the teacher is
    most confident, and none whose `key_of` is in `excluded`. A block becomes a document.
    """
    for start in range(0, len(blocks), CHUNK):
        chunk = blocks[start : start + CHUNK]
        forms = [
            [QUOTES.get(token.text, token.text) for token in tokenizer(text) if not token.is_space]
            for block in chunk
            for text in block
        ]
        trees = parse(*teacher, forms)
        confidences = [tree.confidence for tree in trees if tree] or [0.0]
        floor = float(np.quantile(confidences, 1.0 - keep))
        pairs = iter(zip(forms, trees, strict=True))
        for block in chunk:
            rows = []
            for words, tree in islice(pairs, len(block)):
                if tree and tree.confidence >= floor and key_of(words) not in excluded:
                    columns = zip(words, tree.xpos, tree.heads, tree.deprels, strict=True)
                    for i, (form, xpos, head, deprel) in enumerate(columns, 1):
                        rows.append(f"{i}\t{form}\t_\t_\t{xpos}\t_\t{head + 1}\t{deprel}\t_\t_")
                    rows.append("")
            if rows:
                yield rows


def run(options: argparse.Namespace) -> None:
    """Parse all sources, and write their trees to `options.output` by one rename at the end."""
    # A parser must not learn from sentences of the treebank on which it is scored.
    dev = sentences_of(treebank_files(options.exclude, "dev"))
    excluded = {key_of(sentence.forms) for sentence in dev}
    for spec, words in options.source:
        if not words.isdecimal():
            raise ConfigError(f"--source {spec} {words}: expected a number of words, or 0 for all")
    sources = [blocks_of(spec, int(words)) for spec, words in options.source]
    tokenizer = loader(options.tokens)().tokenizer
    teacher = load(options.teacher)
    start, total = time.perf_counter(), 0
    with replacing(options.output) as path, path.open("w", encoding="utf-8") as file:
        for place, blocks in enumerate(sources):
            annotated = annotate(blocks, tokenizer, teacher, options.keep, excluded)
            for number, rows in enumerate(annotated, 1):
                file.write("\n".join([f"# newdoc id = silver{place}-{number}", *rows, ""]))
                total += sum(map(bool, rows))
            log.info("%d words, %.0f/s", total, total / (time.perf_counter() - start))


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the sources that the command line names; return the exit code."""
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
    return command(run, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
