"""DisSent's models on the 13 novels: table 5 at this size, and each model's learning curve.

    python tests/bench/measure_dissent.py --pairs 'BUILD/stages/pairs/books-*' --output OUT \
        --backbone MINILM [--only REGEX] [--lock FILE]

Builds the dataset from the novels' tables of pairs (shares 0.8, 0.1, 0.1: by book), trains what
is not trained yet, and writes OUT/figures.json, OUT/tables.md and OUT/curve.svg from the runs that
are there. `--lock` takes a lock file for each run, on a machine that is shared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.store.atomic import is_complete, staged, write_json, write_text
from corpora.store.folder import Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target
from zoo.evaluate.confusions import save_pictures

CONFIGS = ("all", "books8", "books5")
SIZES = (1000, 4000, 16000, 0)
BILSTM = {
    "hidden_size": 128,
    "embedding_size": 100,
    "projection_size": 128,
    "train_embeddings": "true",
    "lower": "true",
    "min_frequency": 2,
    "epochs": 5,
    "save_steps": 0,
    "empty_classes": "warn",
}
MINILM = {
    "learning_rate": 1e-4,
    "max_tokens": 64,
    "max_validation_rows": 600,
    "bf16": "true",
    "attention_dropout": 0,
    "save_steps": 100,
    "empty_classes": "warn",
}
MODELS = {
    "sif": ("dissent/sif", {}),
    "ngram": ("dissent/ngram", {}),
    "bilstm": ("dissent/bilstm", BILSTM),
    "minilm": ("dissent/transformer", MINILM),
}
EPOCHS = {("minilm", 1000): 4, ("minilm", 4000): 2}
"""Where one epoch is too few steps; the others have what their recipe or the table above says."""


@dataclass(frozen=True)
class Run:
    """One model trained on so many pairs (0: all) of a configuration."""

    model: str
    config: str
    rows: int

    @property
    def name(self) -> str:
        return f"{self.model}-{self.config}-{self.rows or 'full'}"


def runs() -> Iterator[Run]:
    """Every model on ALL at every size, and on the smaller sets with all pairs; two with 16,000."""
    for size in SIZES:
        yield from (Run(model, "all", size) for model in MODELS)
    for config in CONFIGS[1:]:
        yield from (Run(model, config, 16000) for model in ("ngram", "minilm"))
        yield from (Run(model, config, 0) for model in MODELS)


def build(pairs: Sequence[Path], folder: Path) -> None:
    """The dataset of the novels alone; the open build's has two treebanks too."""
    if is_complete(folder):
        return
    dissent = BUILDERS.find("dissent").of({"train": 0.8, "validation": 0.1, "test": 0.1})
    with staged(folder) as partial:
        dissent.build(pairs, Target(partial, Stage("dissent", 1, "novels"), 13))


def command(run: Run, data: Path, output: Path, backbone: str) -> list[str]:
    """The training command of a run."""
    recipe, settings = MODELS[run.model]
    options = {**settings, "max_train_rows": run.rows}
    if (run.model, run.rows) in EPOCHS:
        options["epochs"] = EPOCHS[run.model, run.rows]
    if run.model == "minilm":
        options["backbone"] = backbone
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    base = [sys.executable, "-m", "zoo.train", recipe, "--dataset", f"{data}@{run.config}"]
    return [*base, "--output", str(output / run.name), *words]


def collect(output: Path) -> list[dict[str, Any]]:
    """The figures of the runs that are there."""
    found = []
    for run in runs():
        file = output / run.name / "results.json"
        if not file.is_file():
            continue
        results = json.loads(file.read_text(encoding="utf-8"))
        metrics = results["metrics"]["test"]
        speed = output / f"{run.name}.train.json"
        used = run.rows or results["dataset"]["rows"]["train"]
        row = {"model": run.model, "config": run.config, "pairs": used, "rows": metrics["rows"]}
        row |= {key: metrics[key] for key in ("accuracy", "f1", "majority")}
        row["epochs"] = results["settings"]["epochs"] if "steps" in results["training"] else None
        row["speed"] = json.loads(speed.read_text(encoding="utf-8")) if speed.is_file() else None
        found.append(row)
    return found


def tables(figures: Sequence[dict[str, Any]]) -> str:
    """Markdown: each configuration's models at their largest size, then the learning curve."""
    lines = []
    for config in CONFIGS:
        rows = [row for row in figures if row["config"] == config]
        if not rows:
            continue
        majority = rows[0]["majority"]
        lines += [
            f"\n{config}, {rows[0]['rows']} test pairs\n",
            "| model | pairs | accuracy | F1 |",
        ]
        lines += ["|---|--:|---|---|"]
        lines += [f"| majority | | {majority['accuracy']:.3f} | {majority['f1']:.3f} |"]
        for row in sorted(rows, key=lambda row: (row["pairs"], list(MODELS).index(row["model"]))):
            shown = [_value(row["accuracy"]), _value(row["f1"])]
            lines.append(f"| {row['model']} | {row['pairs']:,} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _value(found: dict[str, Any]) -> str:
    bounds = ", ".join(f"{bound:.3f}" for bound in found["ci"] or ())
    return f"{found['value']:.3f}" + (f" [{bounds}]" if bounds else "")


def draw(figures: Sequence[dict[str, Any]], path: Path) -> None:
    """The learning curve on ALL: accuracy and F1 against the number of pairs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for place, metric in enumerate(("accuracy", "f1"), 1):
        axes = figure.add_subplot(1, 2, place, xlabel="training pairs", ylabel=metric, xscale="log")
        for model in MODELS:
            rows = [r for r in figures if r["model"] == model and r["config"] == "all"]
            if not rows:
                continue
            values = [row[metric]["value"] for row in rows]
            intervals = [row[metric]["ci"] or (math.nan, math.nan) for row in rows]
            low, high = zip(*intervals, strict=True)
            sizes = [row["pairs"] for row in rows]
            axes.plot(sizes, values, marker="o", label=model)
            axes.fill_between(sizes, low, high, alpha=0.15)
        if figures:
            axes.axhline(figures[0]["majority"][metric], color="black", linestyle=":")
        axes.legend()
    save_pictures(figure, path.with_suffix(""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", required=True, help="a pattern of folders of pairs-*.parquet")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--backbone", default="", help="the pretrained encoder of `minilm`")
    parser.add_argument("--only", default="", help="train the runs whose name this matches")
    parser.add_argument("--lock", default="", help="hold this lock file during a run")
    options = parser.parse_args()
    root = Path(options.pairs)
    pairs = sorted(root.parent.glob(f"{root.name}/**/pairs-*.parquet"))
    data = options.output / "dissent"
    build(pairs, data)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for run in runs():
        if not re.search(options.only, run.name) or is_complete(options.output / run.name):
            continue
        words = command(run, data, options.output, options.backbone)
        lock = ["flock", options.lock] if options.lock else []
        subprocess.run([*lock, *words], env=environment, check=True)
    figures = collect(options.output)
    write_json(options.output / "figures.json", figures)
    write_text(options.output / "tables.md", tables(figures))
    draw(figures, options.output / "curve.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
