"""Section 3.4 for two models: `python -m zoo.conpono.compare ONE TWO --data DISCOEVAL`.

Both models answer DiscoEval's binary sentence ordering (frozen, pairs encoded together); then the
discourse markers are counted in the examples that one alone gets right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from corpora.errors import DiscorporaError, InputError
from zoo.conpono.markers import analyse
from zoo.evaluate.discoeval.data import TaskData, read
from zoo.evaluate.discoeval.probe import fit
from zoo.evaluate.discoeval.protocol import (
    features_of,
    inputs_under,
    representation_of,
    vectors_of,
)
from zoo.evaluate.encoders import AUTO, load_encoder
from zoo.evaluate.suites import DiscoEval

Pair = tuple[str, str]


def compare(
    one: str,
    two: str,
    data: str,
    *,
    domain: str = "wiki",
    representation: str = AUTO,
    limit: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """`markers.analyse` of two models (folders or Hub ids) on BSO in a domain (the paper: wiki).

    `limit` rows of each split (0: all). Without a test split the validation split is answered.
    Raises `InputError` if the data has no such domain.
    """
    found = {task.domain: task for task in read(data, ("BSO",), limit=limit).tasks}
    if domain not in found:
        raise InputError(f"no BSO data of the domain {domain!r}: {', '.join(found)}", where=data)
    task = found[domain]
    split = "test" if "test" in task.splits else "validation"
    right = {name: answers(name, task, split, representation, seed) for name in (one, two)}
    pairs = {part: _pairs(task, part) for part in ("train", split)}
    result = analyse(pairs["train"], pairs[split], right[one], right[two], seed=seed)
    accuracy = {"one": float(right[one].mean()), "two": float(right[two].mean())}
    about = {"domain": domain, "split": split, "rows": len(pairs[split])}
    return {**result, **about, "accuracy": accuracy}


def answers(model: str, task: TaskData, split: str, representation: str, seed: int) -> np.ndarray:
    """Which rows of `split` a frozen model's classifier gets right, `[rows]`."""
    options = DiscoEval(protocol="pairs", representation=representation, cache="")
    encoder = load_encoder(model, representation)
    name = representation_of(encoder, options)
    inputs = inputs_under(task, options)
    vectors = vectors_of(encoder, inputs, [name])[name]
    features = features_of(inputs, vectors, task.task.features["pairs"])
    labels = {part: task.splits[part].labels for part in features}
    probe = fit(
        (features["train"], labels["train"]),
        (features["validation"], labels["validation"]),
        len(task.labels),
        task.task.probes["pairs"],
        seed,
    )
    return probe.predict(features[split]) == labels[split]


def _pairs(task: TaskData, split: str) -> list[Pair]:
    first, second = task.splits[split].slots[:2]
    return [(" ".join(one), " ".join(two)) for one, two in zip(first, second, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the analysis as JSON; errors for people are one short message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one")
    parser.add_argument("two")
    parser.add_argument("--data", required=True)
    parser.add_argument("--domain", default="wiki")
    parser.add_argument("--representation", default=AUTO)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args(arguments))
    try:
        found = compare(options.pop("one"), options.pop("two"), options.pop("data"), **options)
    except (DiscorporaError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
