"""Train the compact parser from treebanks, and write its folder at the end.

    python -m zoo.parser.train --treebank DIR [--treebank FILE ...] --output DIR [--quick]

The long run takes an hour of one core; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

import argparse
import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from spacy.about import __version__ as spacy_version
from spacy.language import Language
from spacy.training import Example
from spacy.util import dict_to_dot, load_config, load_model_from_config, registry
from thinc.api import Config, NumpyOps, fix_random_seed, set_current_ops

from corpora.errors import ConfigError, DiscorporaError, nearest
from corpora.store.atomic import sha256, write_json, write_text
from zoo.commands import command, log
from zoo.parser.documents import Grouping, batches, examples, reversed_order
from zoo.parser.evaluate import baseline_las, score_gold
from zoo.parser.tokenizer import adapt_tokenizer
from zoo.parser.treebank import Sentence, sentences_of, treebank_files

CONFIG = Path(__file__).with_name("config.cfg")
QUICK_WORDS, QUICK_STEPS = 100_000, 250
QUICK_MARGIN = 15.0  # LAS points above the baseline, which a broken recipe does not reach
STAGES = ("training", "regularisation", "finishing")
NAME = "en_ud_compact"
META = {"name": "ud_compact", "version": "1.1.1", "license": "CC-BY-SA-4.0"}
MIN_COUNT = 3  # tokens of a key in the table of UPOS


def run(options: argparse.Namespace) -> None:
    """Train the pipeline, and write the folder `options.output` by one rename at the end.

    It has the pipeline in `en_ud_compact/`, `documents.txt` and `training.json`.
    """
    logging.getLogger("spacy").setLevel(logging.WARNING)
    known = dict_to_dot(load_config(CONFIG))
    for key, _ in options.set:
        if key not in known:
            hint = f"{nearest(key, known)}{CONFIG} has all"
            raise ConfigError(f"no setting {key!r}", where="--set", hint=hint)
    # Data
    files = treebank_files(options.treebank, "train")
    train, silver = sentences_of(files), sentences_of(options.silver)
    # The first treebank in UD's layout is EWT: its dev split selects the checkpoint.
    layout = "*-ud-dev.conllu"
    ud_dev = [file for path in options.treebank for file in sorted(path.rglob(layout))]
    dev = sentences_of(treebank_files(options.dev, "dev") if options.dev else ud_dev[:1])
    if options.reverse:
        dev = [reversed_order(sentence) for sentence in dev]
    if not dev:
        raise FileNotFoundError(f"no {layout} beneath --treebank: name the file with --dev")
    changes = dict(options.set)
    if options.quick:
        train = first_words(train, QUICK_WORDS)
        changes.setdefault("training.max_steps", QUICK_STEPS)
    config = load_config(CONFIG, overrides=changes).interpolate()
    words = {"gold": sum(map(len, train)), "silver": sum(map(len, silver))}
    log.info("words: %s", words)

    # Model: the labels of `train`, a tokenizer fitted to it
    # spaCy draws initial weights and dropout masks from the global generators only.
    fix_random_seed(options.seed)
    set_current_ops(NumpyOps(use_blis=False))
    rng = np.random.default_rng(options.seed)
    parts = Config({"nlp": config["nlp"], "components": config["components"]})
    nlp = load_model_from_config(parts, auto_fill=True)
    sample = list(
        examples(nlp.vocab, train, Grouping(sentences=1, augment=0.0, reverse=options.reverse), rng)
    )
    nlp.initialize(lambda: sample)
    adapt_tokenizer(nlp, train)

    # Training in stages, each from the best weights so far with its own optimizer
    best: dict[str, Any] = {"las": -1.0}
    for number, name in enumerate(STAGES[:1] if options.quick else STAGES):
        if number:
            fix_random_seed(options.seed + number)
            rng = np.random.default_rng([options.seed, number])
        settings = {**config["recipe"], **config[name]}
        optimizer = registry.resolve({"optimizer": settings["optimizer"]})["optimizer"]
        weights = nlp.to_bytes(exclude=["vocab"])
        start, words_seen = time.perf_counter(), 0
        steps = range(1, settings["max_steps"] + 1)
        training = training_batches(nlp, train, silver, settings, rng, reverse=options.reverse)
        for step, batch in zip(steps, training, strict=False):
            nlp.update(batch, sgd=optimizer, drop=settings["dropout"])
            optimizer.step_schedules()
            words_seen += sum(map(len, batch))
            if step % settings["eval_frequency"] and step < settings["max_steps"]:
                continue
            dev_scores = score_gold(nlp, dev, own_sentences=False)
            scores = {key: dev_scores[key] for key in ("uas", "las", "xpos")}
            rate = words_seen / (time.perf_counter() - start)
            log.info("%s %d: %s, %.0f words/s", name, step, scores, rate)
            if scores["las"] > best["las"]:
                best = {"stage": name, "step": step, **scores}
                weights = nlp.to_bytes(exclude=["vocab"])
        nlp.from_bytes(weights, exclude=["vocab"])
    baseline = baseline_las([reversed_order(s) for s in train] if options.reverse else train, dev)
    log.info("selected: %s; the baseline's LAS: %.1f", best, baseline)
    if options.quick and best["las"] < baseline + QUICK_MARGIN:
        raise DiscorporaError(f"LAS {best['las']} is not {QUICK_MARGIN} above {baseline:.1f}")

    # The folder, with a record of the training
    hashed = [*files, *options.silver]
    record = {
        "seed": options.seed,
        "reverse": options.reverse,
        "config": {section: config[section] for section in ("components", *STAGES, "recipe")},
        "versions": {"spacy": spacy_version, "numpy": np.__version__},
        "files": {f"{file.parent.name}/{file.name}": sha256(file) for file in hashed},
        "words": words,
        "selected": best,
    }
    # The folder also has a table of UPOS, and of the strings only those that loading needs.
    upos = learn_upos(train)
    nlp.meta.update(META)
    labels = {label for name in ("tagger", "parser") for label in nlp.pipe_labels[name]}
    names = labels | {part for key, value in upos.items() for part in (*key.split(" "), value)}
    output: Path = options.output
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        folder = Path(temporary) / output.name
        folder.mkdir()
        nlp.to_disk(folder / NAME)
        # Hashed embeddings need no word list, and the tokenizer adds the strings that it needs.
        write_json(folder / NAME / "vocab/strings.json", sorted(names | {"ROOT", "root", "dep"}))
        write_json(folder / NAME / "upos.json", upos)
        documents = dict.fromkeys(sentence.document for sentence in train)
        write_text(folder / "documents.txt", "\n".join(documents) + "\n")
        write_json(folder / "training.json", record)
        folder.replace(output)


def training_batches(
    nlp: Language,
    train: Sequence[Sentence],
    silver: Sequence[Sentence],
    settings: dict[str, Any],
    rng: np.random.Generator,
    *,
    reverse: bool = False,
) -> Iterator[list[Example]]:
    """Yield training batches without end; their size in words grows by batch, up to a maximum.

    Each epoch has all gold sentences (`train`), and the next part of `silver`, which has
    `settings["silver"]` times as many words: every silver tree is used before one is repeated.
    """
    sizes = settings["group_sentences"], settings["group_words"]
    grouping = Grouping(*sizes, settings["augment"], reverse)
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
    """Yield parts of `silver`, of about `words` words, without end; empty parts if there are none.

    Documents are in random order, and stay whole: their sentences teach where a sentence starts.
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
    yield from repeat([])


def learn_upos(sentences: Iterable[Sentence]) -> dict[str, str]:
    """Return a table from `xpos`, `xpos deprel` or `xpos deprel form` to the most frequent UPOS.

    A word gets the UPOS of its longest key in the table. So a longer key is stored only if its UPOS
    differs from that of the shorter one, and only with at least `MIN_COUNT` tokens.
    """
    votes: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        columns = zip(sentence.xpos, sentence.deprels, sentence.forms, sentence.upos, strict=True)
        for xpos, deprel, form, upos in columns:
            for level in ((xpos,), (xpos, deprel), (xpos, deprel, form.lower())):
                votes[level][upos] += 1
    table: dict[tuple[str, ...], str] = {}
    for key in sorted(votes, key=len):
        counts = votes[key]
        best = min(counts, key=lambda upos: (-counts[upos], upos))
        by_shorter_key = table.get(key[:2], table.get(key[:1]))
        if len(key) == 1 or (counts.total() >= MIN_COUNT and best != by_shorter_key):
            table[key] = best
    return {" ".join(key): table[key] for key in sorted(table, key=" ".join)}


def first_words(sentences: Sequence[Sentence], words: int) -> list[Sentence]:
    """Return the sentences of the first documents that together have at least `words` words."""
    first: list[Sentence] = []
    for _, document in groupby(sentences, key=lambda s: s.document):
        if sum(map(len, first)) >= words:
            break
        first += document
    return first


def parse_change(text: str) -> tuple[str, float | int]:
    """Return the key and the number of `section.key=number`, which changes the configuration."""
    key, _, value = text.partition("=")
    return key, int(value) if value.lstrip("-").isdigit() else float(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the parser that the command line describes; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--treebank", type=Path, action="append", required=True, help="CoNLL-U file or folder")
    add("--silver", type=Path, action="append", default=[], help="CoNLL-U of zoo.parser.silver")
    add("--dev", type=Path, action="append", help="documents that select the checkpoint")
    add("--output", type=Path, required=True, help="the new folder")
    add("--set", type=parse_change, action="append", default=[], metavar="SECTION.KEY=NUMBER")
    add("--quick", action="store_true", help="prove the recipe in a minute on a part of the data")
    add("--reverse", action="store_true", help="read sentences from their last word to the first")
    add("--seed", type=int, default=0)
    return command(run, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
