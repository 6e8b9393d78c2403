"""Do better pairs make better models? DisSent trained on two sets of pairs of the same texts.

    discorpora extract SPEC -o old/NAME.jsonl ...      # by one version of the code and by another
    python -m tests.bench.measure_pairs --old OLD --new NEW --gold pdtb:DIR --output OUT \
        --backbone MINILM

OLD and NEW are folders of JSONL files. Models are trained on both, on all pairs (`all`) and on the
same number of pairs of each marker (`matched`; MiniLM on these alone), and judged on the argument
pairs of the gold's explicit relations whose connective is a marker of the set. OUT/figures.json has
accuracy and macro F1 of each and the difference new - old, with 95 % bootstrap intervals over the
gold's documents.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import accuracy_score, f1_score

from corpora.readers import open_source
from corpora.schemas import MARKERS_ALL, PAIRS
from corpora.store.atomic import is_complete, staged, write_json
from corpora.store.folder import Stage
from corpora.store.rows import write_parquet
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target
from tests.bench.sample_pairs import fits
from zoo.evaluate.classification import PairClassifier

RESAMPLES = 1000
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "n-gram": ("dissent/ngram", {}),
    "MiniLM": (
        "dissent/transformer",
        {
            "learning_rate": 1e-4,
            "max_tokens": 64,
            "max_validation_rows": 600,
            "bf16": "true",
            "attention_dropout": 0,
            "empty_classes": "warn",
        },
    ),
}
Row = dict[str, Any]


def read(folder: Path) -> list[Row]:
    """The pairs of a folder that pass DisSent's filter, each once, in the columns of today."""
    rows: dict[tuple[str, str, str], Row] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.open(encoding="utf-8"):
            row = {"s2_added": "", "confidence": None, **json.loads(line)}
            if fits(row) and row["marker"] in MARKERS_ALL:
                rows.setdefault((row["s1"], row["s2"], row["marker"]), row)
    return list(rows.values())


def matched(rows: Sequence[Row], other: Sequence[Row]) -> list[Row]:
    """As many of `rows` of each marker as both sets have, drawn at random."""
    counts = Counter(row["marker"] for row in rows) & Counter(row["marker"] for row in other)
    mixed = random.Random(0).sample(list(rows), len(rows))
    by_marker: defaultdict[str, list[Row]] = defaultdict(list)
    for row in mixed:
        by_marker[row["marker"]].append(row)
    return [row for marker, n in sorted(counts.items()) for row in by_marker[marker][:n]]


def build(rows: Sequence[Row], folder: Path) -> None:
    """The dataset of some pairs; books stay whole."""
    if is_complete(folder):
        return
    pairs = folder.with_suffix(".parquet")
    write_parquet(pairs, [pa.RecordBatch.from_pylist(list(rows), PAIRS)], PAIRS)
    dissent = BUILDERS.find("dissent").of({"train": 0.9, "validation": 0.05, "test": 0.05})
    with staged(folder) as partial:
        dissent.build([pairs], Target(partial, Stage("dissent", 1, folder.name), 13))


def train(model: str, data: Path, folder: Path, backbone: str, rows: int) -> None:
    if is_complete(folder):
        return
    recipe, settings = MODELS[model]
    if model == "MiniLM":
        settings = {**settings, "backbone": backbone, "max_train_rows": rows}
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    command = [sys.executable, "-m", "zoo.train", recipe, "--dataset", f"{data}@all"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    subprocess.run([*command, "--output", str(folder), *words], env=environment, check=True)


def gold_rows(spec: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Argument pairs of explicit relations, their connectives and their documents."""
    pairs, markers, documents = [], [], []
    for document in open_source(spec):
        for relation in document.relations or ():
            if relation.kind == "Explicit" and relation.connective in MARKERS_ALL:
                sides = (relation.arg1_spans, relation.arg2_spans)
                one, two = (" ".join(document.text[a:b] for a, b in spans) for spans in sides)
                pairs.append((one, two))
                markers.append(relation.connective)
                documents.append(document.id)
    return pairs, markers, documents


def scores(right: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    labels = np.unique(right)
    f1 = f1_score(right, predicted, labels=labels, average="macro", zero_division=0)
    return np.array([accuracy_score(right, predicted), f1])


def compared(gold: np.ndarray, documents: Sequence[str], guesses: Row) -> Row:
    """Accuracy and F1 of both models and their difference, resampled by document."""
    names, number = np.unique(documents, return_inverse=True)
    members = [np.flatnonzero(number == n) for n in range(len(names))]
    rng = np.random.default_rng(0)
    drawn = [
        np.concatenate([members[n] for n in rng.integers(len(names), size=len(names))])
        for _ in range(RESAMPLES)
    ]
    values = {name: scores(gold, guess) for name, guess in guesses.items()}
    spread = {
        name: np.array([scores(gold[rows], guess[rows]) for rows in drawn])
        for name, guess in guesses.items()
    }
    values["new - old"] = values["new"] - values["old"]
    spread["new - old"] = spread["new"] - spread["old"]
    return {
        name: {
            metric: {
                "value": round(float(value[i]), 4),
                "interval": np.quantile(spread[name][:, i], [0.025, 0.975]).round(4).tolist(),
            }
            for i, metric in enumerate(("accuracy", "f1"))
        }
        for name, value in values.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--new", type=Path, required=True)
    parser.add_argument("--gold", required=True, help="pdtb:DIR")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--backbone", default="", help="without one MiniLM is left out")
    parser.add_argument("--rows", type=int, default=0, help="the most training pairs of MiniLM")
    options = parser.parse_args()
    old, new = read(options.old), read(options.new)
    sets = {
        "all": {"old": old, "new": new},
        "matched": {"old": matched(old, new), "new": matched(new, old)},
    }
    pairs, markers, documents = gold_rows(options.gold)
    figures: Row = {"gold": {"relations": len(pairs), "markers": dict(Counter(markers))}}
    for name, versions in sets.items():
        for model in MODELS if options.backbone and name == "matched" else ["n-gram"]:
            guesses = {}
            for version, rows in versions.items():
                data = options.output / f"{name}-{version}"
                build(rows, data)
                folder = options.output / f"{name}-{version}-{model}"
                train(model, data, folder, options.backbone, options.rows)
                classifier = PairClassifier.load(folder)
                chosen = classifier.probabilities(pairs).argmax(axis=1)
                guesses[version] = np.array(classifier.labels)[chosen]
            sizes = {version: len(rows) for version, rows in versions.items()}
            figures[f"{name}, {model}"] = {
                "pairs": sizes,
                **compared(np.array(markers), documents, guesses),
            }
            write_json(options.output / "figures.json", figures)


if __name__ == "__main__":
    main()
