"""The scorer's figures: training data and objective (tables 1 and 2), sweeps (figures 2a to 2d).

    python tests/bench/measure_coherence.py --permuted FOLDER --intrusion FOLDER --tests DATA \
        --backbone MINILM --output OUT [--size small] [--seeds 3] [--only REGEX] [--baseline]

Trains what is not trained yet, judges each model on the coherence test sets of `--tests` (a folder
of `coherence_tests`, or of JSON Lines), and writes OUT/figures.json and OUT/tables.md from the runs
that are there: mean and deviation over seeds. A run's name says what it is:
`permuted-contrastive-0` has seed 0. Every objective sees as many instances (those of --size, or all
that its configuration has), not the same ones: `pairwise`, `contrastive` and `ranked` are rows of
their own, and one instance has one, five or fifty negatives.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from corpora.store.atomic import is_complete, write_json, write_text

SIZES: dict[str, dict[str, Any]] = {
    # Whether everything runs; its figures say nothing.
    "smoke": {"max_train_rows": 16, "max_eval_rows": 8, "max_tokens": 160},
    # What reached 85 on held-out permutations; pairs take an hour or two of a CPU core.
    "small": {"max_train_rows": 17600, "max_eval_rows": 400, "max_tokens": 512},
    # As many rows as the paper's training set has.
    "full": {"max_train_rows": 46522, "max_eval_rows": 2000, "max_tokens": 512},
}
COMMON = {
    "batch_size": 8,
    "learning_rate": 8e-5,
    "final_learning_rate": 5e-6,
    "anneal_every": 8,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "vector": "mean",
    "attention_dropout": 0,
    "hidden_dropout": 0,
    "eval_steps": 400,
}
FULL = {"momentum_weight": 0.15, "candidates": 50, "queue_size": 1000, "momentum": 0.9999999}
SWEEPS = {
    "candidates": (10, 20, 50),
    "momentum": (0.9, 0.999, 0.9999999),
    "queue_size": (100, 1000, 5000),
}


@dataclass(frozen=True)
class Run:
    """One model: what it is trained on, its recipe and what is changed in that."""

    name: str
    data: str
    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def runs() -> Iterator[Run]:
    """Tables 1 and 2, figure 2a's ablation, and the sweeps of figures 2b to 2d."""
    ranking = "coherence/contrastive"
    yield Run("permuted-pairwise", "permuted", ranking, {"objective": "pairwise"})
    yield Run("permuted-contrastive", "permuted", ranking, {"objective": "contrastive"})
    yield Run("permuted-full", "permuted", "coherence/full", FULL)
    yield Run("intrusion-pairwise", "intrusion", ranking, {"objective": "pairwise"})
    yield Run("permuted-unc", "permuted", "coherence/unc")
    hard = {**FULL, "momentum_weight": 0.0}
    yield Run("permuted-hard-without-momentum", "permuted", "coherence/full", hard)
    for key, values in SWEEPS.items():
        for value in values:
            if value != FULL[key]:
                name = f"permuted-full-{key}-{value}"
                yield Run(name, "permuted", "coherence/full", {**FULL, key: value})


def command(run: Run, seed: int, options: argparse.Namespace, output: Path) -> list[str]:
    """The training command; UNC has its own sizes and no backbone."""
    size = SIZES[options.size]
    if run.recipe == "coherence/unc":
        settings = {key: size[key] for key in ("max_train_rows", "max_eval_rows")}
    else:
        settings = {**COMMON, **size, **run.settings, "backbone": options.backbone}
        steps = size["max_train_rows"] // COMMON["batch_size"]
        settings |= {"bf16": options.bf16, "anneal_calls": steps}
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    base = [sys.executable, "-m", "zoo.train", run.recipe, "--seed", str(seed)]
    return [*base, "--dataset", str(getattr(options, run.data)), "--output", str(output), *words]


def judge(name: str, model: str, tests: str, file: Path) -> list[str]:
    words = ["--model", model, "--name", name, "--data", tests, "--json", str(file)]
    return [sys.executable, "-m", "zoo.evaluate", "pairwise", *words]


def collect(output: Path, seeds: int) -> list[dict[str, Any]]:
    """The accuracies of the runs that are there, a row a run and seed."""
    found = []
    for run in runs():
        for seed in range(seeds):
            name = f"{run.name}-{seed}"
            file, trained = output / f"{name}.json", output / name / "results.json"
            if not (file.is_file() and trained.is_file()):
                continue
            sets = json.loads(file.read_text(encoding="utf-8"))["metrics"]["sets"]
            own = json.loads(trained.read_text(encoding="utf-8"))["metrics"]["test"]["accuracy"]
            accuracies = {key: value["accuracy"]["value"] for key, value in sets.items()}
            found.append({"run": run.name, "seed": seed, "own test": own["value"], **accuracies})
    return found


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: mean and deviation over seeds, in per cent."""
    columns = [key for key in (rows[0] if rows else {}) if key not in ("run", "seed")]
    lines = [f"| model | seeds | {' | '.join(columns)} |", "|---|--:|" + "--:|" * len(columns)]
    for name in dict.fromkeys(row["run"] for row in rows):
        group = [row for row in rows if row["run"] == name]
        cells = []
        for column in columns:
            values = 100 * np.array([row[column] for row in group if column in row])
            cells.append(f"{values.mean():.1f} ± {values.std():.1f}" if len(values) else "")
        lines.append(f"| {name} | {len(group)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--permuted", required=True, help="a dataset folder of `permuted`")
    parser.add_argument("--intrusion", required=True, help="a dataset folder of `intrusion`")
    parser.add_argument("--tests", required=True, help="coherence test sets")
    parser.add_argument("--backbone", required=True, help="a pretrained encoder: folder or Hub id")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bf16", default="auto", help="true also on a CPU that has it")
    parser.add_argument("--only", default="", help="the runs whose name this matches")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for seed in range(options.seeds):
        for run in runs():
            name = f"{run.name}-{seed}"
            model, file = options.output / name, options.output / f"{name}.json"
            if not re.search(options.only, name):
                continue
            if not is_complete(model):
                words = command(run, seed, options, model)
                subprocess.run(words, env=environment, check=True)
            if not file.is_file():
                words = judge(run.name, str(model), options.tests, file)
                subprocess.run(words, env=environment, check=True)
    rows = collect(options.output, options.seeds)
    write_json(options.output / "figures.json", rows)
    write_text(options.output / "tables.md", table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
