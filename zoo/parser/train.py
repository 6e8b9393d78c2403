"""Train the compact parser: data, model, optimizer, loop, selection, one folder at the end.

    python -m zoo.parser.train --treebank DIR [--treebank FILE ...] --output DIR [--quick]

The long run takes an hour of one core; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.training import Example
from spacy.util import load_config, load_model_from_config, registry
from thinc.api import Config, ConfigValidationError, NumpyOps, fix_random_seed, set_current_ops

from zoo.parser.baseline import baseline_las
from zoo.parser.documents import Grouping, batches, examples
from zoo.parser.evaluate import Tally, score_gold
from zoo.parser.package import provenance, write_output
from zoo.parser.tokenizer import adapt_tokenizer
from zoo.parser.treebank import Sentence, read_treebank, sentences_of, treebank_files

CONFIG = Path(__file__).with_name("config.cfg")
QUICK_WORDS, QUICK_STEPS = 100_000, 250
QUICK_MARGIN = 15.0  # LAS points above the baseline: a broken recipe stays far below
STAGES = ("training", "regularisation", "finishing")
log = logging.getLogger("zoo.parser")


def run(options: argparse.Namespace) -> dict[str, float]:
    """The whole recipe; `options.output` appears by one rename when all is in it."""
    if options.output.exists():
        raise FileExistsError(f"{options.output} exists: remove it or give another --output")
    files = [file for path in options.treebank for file in treebank_files(path, "train")]
    train = sentences_of(files)
    silver = list(read_treebank(options.silver))
    dev = sentences_of(dev_files(options))
    changes = dict(options.set)
    if options.quick:
        train = first_words(train, QUICK_WORDS)
        changes.setdefault("training.max_steps", QUICK_STEPS)
    config = load_config(CONFIG, overrides=changes).interpolate()
    # spaCy draws initial weights and dropout masks from the global generators only.
    fix_random_seed(options.seed)
    set_current_ops(NumpyOps(use_blis=False))
    rng = np.random.default_rng(options.seed)
    for name, sentences in (("gold", train), ("silver", silver)):
        log.info("%s: %d sentences, %d words", name, len(sentences), sum(map(len, sentences)))
    nlp = make_pipeline(config, train, rng)
    best = fit(nlp, config, train, silver, dev, options, rng)
    baseline = baseline_las(train, dev)
    log.info("LAS %.1f, baseline %.1f", best["las"], baseline)
    if options.quick and best["las"] < baseline + QUICK_MARGIN:
        raise RuntimeError(f"LAS {best['las']} is not {QUICK_MARGIN} above {baseline:.1f}")
    words = {"gold": sum(map(len, train)), "silver": sum(map(len, silver))}
    record = {
        **provenance([*files, *options.silver], options.seed, config),
        "words": words,
        "selected": best,
    }
    write_output(nlp, train, record, options.output)
    return best


def make_pipeline(config: Config, train: Sequence[Sentence], rng: np.random.Generator) -> Language:
    """The untrained pipeline with the labels of `train` and a tokenizer fitted to it."""
    parts = Config({"nlp": config["nlp"], "components": config["components"]})
    nlp = load_model_from_config(parts, auto_fill=True)
    sample = list(examples(nlp.vocab, train, Grouping(sentences=1, augment=0.0), rng))
    nlp.initialize(lambda: sample)
    adapt_tokenizer(nlp, train)
    return nlp


def fit(
    nlp: Language,
    config: Config,
    train: Sequence[Sentence],
    silver: Sequence[Sentence],
    dev: Sequence[Sentence],
    options: argparse.Namespace,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Train `nlp` in place, leave it at its best on `dev`, and return the scores of that.

    The stages follow each other, each from the best weights so far with its own optimizer.
    """
    best: dict[str, Any] = {"las": -1.0}
    for number, name in enumerate(STAGES[:1] if options.quick else STAGES):
        if number:
            fix_random_seed(options.seed + number)
            rng = np.random.default_rng([options.seed, number])
        settings = {**config["recipe"], **config[name]}
        batches_of = stream(nlp, train, silver, settings, rng)
        best = run_stage(nlp, name, config[name], batches_of, dev, best)
    return best


def run_stage(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    batches_of: Iterator[list[Example]],
    dev: Sequence[Sentence],
    best: dict[str, Any],
) -> dict[str, Any]:
    """One run through the schedule of `settings`; returns the better of its best and `best`."""
    optimizer = registry.resolve({"optimizer": settings["optimizer"]})["optimizer"]
    weights = nlp.to_bytes(exclude=["vocab"])
    start, words = time.perf_counter(), 0
    for step, batch in zip(range(1, settings["max_steps"] + 1), batches_of, strict=False):
        nlp.update(batch, sgd=optimizer, drop=settings["dropout"])
        optimizer.step_schedules()
        words += sum(map(len, batch))
        if step % settings["eval_frequency"] and step < settings["max_steps"]:
            continue
        scores = headline(score_gold(nlp, dev, own_sentences=False))
        rate = words / (time.perf_counter() - start)
        log.info("%s %d: %s, %.0f words/s", name, step, scores, rate)
        if scores["las"] > best["las"]:
            best = {"stage": name, "step": step, **scores}
            weights = nlp.to_bytes(exclude=["vocab"])
    nlp.from_bytes(weights, exclude=["vocab"])
    return best


def stream(
    nlp: Language,
    train: Sequence[Sentence],
    silver: Sequence[Sentence],
    settings: dict[str, Any],
    rng: np.random.Generator,
) -> Iterator[list[Example]]:
    """Batches without end; their size in words grows with every batch up to its maximum.

    Each epoch has all of `train`, and `settings["silver"]` times as many words of `silver`: its
    next part, so that every silver tree is seen before the first comes again.
    """
    grouping = Grouping(settings["group_sentences"], settings["group_words"], settings["augment"])
    parts = silver_parts(silver, settings["silver"] * sum(map(len, train)), rng)
    words = float(settings["batch_words"])
    while True:
        items = list(examples(nlp.vocab, train, grouping, rng))
        items += examples(nlp.vocab, next(parts), grouping, rng)
        for batch in batches(items, round(words), rng):
            yield batch
            words = min(words * settings["batch_growth"], settings["batch_words_max"])


def silver_parts(
    silver: Sequence[Sentence], words: float, rng: np.random.Generator
) -> Iterator[list[Sentence]]:
    """Parts of `words` words in random order, without end; empty ones where there is nothing.

    Documents stay whole: neighbours are what teaches where a sentence starts.
    """
    blocks = [list(members) for _, members in groupby(silver, key=lambda s: s.document)]
    part: list[Sentence] = []
    total = 0
    while blocks and words > 0:
        for i in rng.permutation(len(blocks)):
            part += blocks[i]
            total += sum(map(len, blocks[i]))
            if total >= words:
                yield part
                part, total = [], 0
    while True:
        yield []


def headline(counts: Tally) -> dict[str, float]:
    return {key: counts.f1(key) for key in ("uas", "las", "xpos")}


def first_words(sentences: Sequence[Sentence], words: int) -> list[Sentence]:
    """Sentences of whole documents from the start until there are `words` words."""
    chosen: list[Sentence] = []
    total = 0
    for sentence in sentences:
        if total >= words and sentence.document != chosen[-1].document:
            break
        chosen.append(sentence)
        total += len(sentence)
    return chosen


def dev_files(options: argparse.Namespace) -> list[Path]:
    """`--dev`, or the `*-ud-dev.conllu` file beneath the first treebank folder that has one."""
    if options.dev:
        return [file for path in options.dev for file in treebank_files(path, "dev")]
    for folder in options.treebank:
        found = sorted(folder.rglob("*-ud-dev.conllu"))
        if found:
            return found[:1]
    raise FileNotFoundError("no *-ud-dev.conllu beneath --treebank: name the file with --dev")


def change(text: str) -> tuple[str, float | int]:
    """`section.key=number` as an override of the configuration."""
    key, _, value = text.partition("=")
    return key, float(value) if "." in value else int(value)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--treebank", type=Path, action="append", required=True, help="CoNLL-U file or folder")
    add("--silver", type=Path, action="append", default=[], help="CoNLL-U of zoo.parser.silver")
    add("--dev", type=Path, action="append", help="documents that select the checkpoint")
    add("--output", type=Path, required=True, help="the new folder")
    add("--set", type=change, action="append", default=[], metavar="SECTION.KEY=NUMBER")
    add("--quick", action="store_true", help="prove the recipe in a minute on a part of the data")
    add("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("spacy").setLevel(logging.WARNING)
    try:
        best = run(parse_arguments(arguments))
    except (OSError, ValueError, RuntimeError, ConfigValidationError) as error:
        log.error("error: %s", error)
        return 2
    log.info("done: %s", best)
    return 0


if __name__ == "__main__":
    sys.exit(main())
