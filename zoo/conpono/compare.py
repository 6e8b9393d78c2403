"""Compare two models by discourse markers, as in section 3.4 and table 6 of the paper.

    python -m zoo.conpono.compare ONE TWO --data DISCOEVAL [--examples 2]

Both models solve DiscoEval's binary sentence ordering (frozen, pairs encoded together); then the
discourse markers are counted in the examples that only one gets right. The paper's models are
CONPONO and BERT-Base.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from corpora.errors import InputError
from corpora.rng import stream
from zoo.commands import command
from zoo.evaluate.discoeval import DiscoEval
from zoo.evaluate.discoeval.data import read
from zoo.evaluate.discoeval.protocol import run_task
from zoo.evaluate.encoders import AUTO
from zoo.evaluate.opening import open_model
from zoo.evaluate.published import paper_table

MARKERS = (
    "but", "when", "if", "before", "because", "while", "though", "after", "so", "although",
    "then", "also", "still",
)  # fmt: skip
"""The paper's markers; it leaves out "and" and "as"."""
PUBLISHED = "conpono:section-3.4"
SAMPLES = 1000
"""Number of random sets of examples that the change of rate is compared with."""

SentencePair = tuple[str, str]
WORDS = CountVectorizer(vocabulary=MARKERS, token_pattern=r"\b\w+\b")


def compare(
    one: str,
    two: str,
    data: str,
    *,
    domain: str = "wiki",
    representation: str = AUTO,
    examples: int = 0,
    limit: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare two models (folders or Hub ids) on binary sentence ordering (BSO), by `analyse`.

    `data` is DiscoEval's folder, `domain` one of BSO's. It takes `limit` rows of each split (0:
    all), and the validation split if there is no test split. The result also has `published`, the
    paper's changes in %, and for each model up to `examples` pairs that only it gets right. Raises
    `InputError` if the data has no such domain.
    """
    domains = {task.domain: task for task in read(data, ("BSO",), limit=limit).tasks}
    if domain not in domains:
        hint = f"give --domain {' or '.join(domains)}"
        raise InputError(f"no BSO data of the domain {domain!r}", where=data, hint=hint)
    # Which rows each model gets right
    task = domains[domain]
    options = DiscoEval(
        protocol="pairs", representation=representation, cache="", seeds=1, second_opinion=False
    )
    scores = [
        run_task(task, open_model(options, name), options, "test", seed) for name in (one, two)
    ]
    right = [score["outcomes"].right == 1 for score in scores]
    # Compare by the texts of the pairs.
    split = scores[0]["split"]
    pairs: dict[str, list[SentencePair]] = {}
    for part in ("train", split):
        slots = zip(*task.splits[part].slots[:2], strict=True)
        pairs[part] = [(" ".join(first), " ".join(second)) for first, second in slots]
    result = analyse(pairs["train"], pairs[split], *right, seed=seed)
    if examples:
        labels = task.splits[split].labels
        result["examples"] = {
            name: examples_of(pairs[split], labels, rows, examples, seed)
            for name, rows in _only_one_right(*right).items()
        }
    # The paper's figures
    table = paper_table(PUBLISHED)
    result["published"] = {row: table.printed(row) for row in table.rows}
    accuracy = {"one": float(right[0].mean()), "two": float(right[1].mean())}
    data_used = {"domain": domain, "split": split, "rows": len(pairs[split])}
    return {**result, **data_used, "accuracy": accuracy}


def _only_one_right(right_one: np.ndarray, right_two: np.ndarray) -> dict[str, np.ndarray]:
    """Return masks `[examples]` of what only model one gets right, and of what only two does."""
    return {"one": right_one & ~right_two, "two": right_two & ~right_one}


def examples_of(
    pairs: Sequence[SentencePair], labels: np.ndarray, rows: np.ndarray, count: int, seed: int = 0
) -> list[dict[str, Any]]:
    """Return a random sample of `count` of the `pairs` that the mask `rows` selects, as in table 6.

    Only pairs in the order of the text (`labels` 1) with a marker in the first sentence are
    sampled, all if they are fewer. Each has its two `sentences` and their `markers`.
    """
    in_first = WORDS.transform([first for first, _ in pairs]).toarray().any(1)
    candidates = np.flatnonzero(rows & in_first & (labels == 1))
    chosen = stream(seed, "zoo.conpono.examples").permutation(candidates)[:count]
    analyse_words = WORDS.build_analyzer()
    return [
        {
            "sentences": pairs[row],
            "markers": [word for word in analyse_words(" ".join(pairs[row])) if word in MARKERS],
        }
        for row in chosen.tolist()
    ]


def analyse(
    training: Sequence[SentencePair],
    examples: Sequence[SentencePair],
    right_one: np.ndarray,
    right_two: np.ndarray,
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare the examples that only model one gets right with those that only two gets right.

    `training` and `examples` are the sentence pairs of BSO; `right_one`, `right_two` `[examples]`
    mark the correct ones. Returns for each set and each place of the markers (`both` sentences, the
    `first`, the `second`): the weighted change of rate (`rate_change`), each marker's change, and
    the mean and standard deviation of the change in random samples of the same size.

    Raises `InputError` if no marker occurs in the training data.
    """
    sets = _only_one_right(right_one, right_two)
    result: dict[str, Any] = {name: {"n": int(rows.sum())} for name, rows in sets.items()}
    for place, sentences in {"both": slice(2), "first": slice(1), "second": slice(1, 2)}.items():
        base, counts = (
            WORDS.transform([" ".join(pair[sentences]) for pair in pairs]).toarray()
            for pairs in (training, examples)
        )
        if not base.any():
            raise InputError("no marker occurs in the training data", hint="give its BSO pairs")
        for name, rows in sets.items():
            if not rows.any():
                continue
            change, marker_changes = rate_change(counts[rows], base)
            random = stream(seed, f"zoo.conpono.markers.{name}.{place}")
            samples = (random.choice(len(rows), rows.sum(), replace=False) for _ in range(SAMPLES))
            random_changes = [rate_change(counts[sample], base)[0] for sample in samples]
            result[name][place] = {
                "change": change,
                "random_mean": float(np.mean(random_changes)),
                "random_deviation": float(np.std(random_changes)),
                "markers": dict(zip(MARKERS, marker_changes.tolist(), strict=True)),
            }
    return result


def rate_change(counts: np.ndarray, base: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the weighted mean change of the markers' rates, and each marker's change, `[markers]`.

    `counts` and `base` (the training data) are occurrences `[examples, markers]`. A marker's change
    is rate(counts) / rate(base) - 1, where a rate is occurrences per example; the mean over markers
    is weighted by their counts in the training data.
    """
    total = base.sum(0)
    occurs = total > 0
    changes = np.zeros(len(total))
    changes[occurs] = counts.mean(0)[occurs] / base.mean(0)[occurs] - 1
    return float((changes * total).sum() / total.sum()), changes


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the two models that the command line names; print the analysis as JSON."""

    def run(options: argparse.Namespace) -> None:
        sys.stdout.write(json.dumps(compare(**vars(options)), indent=2) + "\n")

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one")
    parser.add_argument("two")
    parser.add_argument("--data", required=True)
    parser.add_argument("--domain", default="wiki")
    parser.add_argument("--representation", default=AUTO)
    parser.add_argument("--examples", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    return command(run, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
