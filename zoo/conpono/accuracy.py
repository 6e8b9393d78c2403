"""Held-out accuracy for each distance (figure 2), with its plot."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from corpora.store.atomic import write_text
from zoo.conpono.batches import Collator
from zoo.conpono.examples import Examples
from zoo.conpono.masking import KEPT
from zoo.conpono.modeling import ConponoModel
from zoo.evaluate.bootstrap import of_ratio


def hits(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right answers and questions, `[examples, distances]`.

    `scores [examples, 2K, candidates]`, `labels [examples, 2K]`: right is a target that scores
    above every other candidate, so that equal scores count as wrong. For the ordering baseline
    `scores` and `labels` are `[examples, pairs]`, and the only column counts its pairs.
    """
    if scores.ndim == 2:
        right = ((scores > 0) == (labels > 0)).sum(1, keepdims=True)
        return right, np.full_like(right, labels.shape[1])
    asked = labels != KEPT
    place = np.where(asked, labels, 0)[..., None]
    own = np.take_along_axis(scores, place, 2)
    best = (scores >= own).sum(2) == 1
    return (best & asked).astype(np.int64), asked.astype(np.int64)


def accuracies(
    right: np.ndarray, asked: np.ndarray, distances: Sequence[int], seed: int, name: str
) -> dict[str, Any]:
    """The accuracy over all questions and at each distance, with intervals over examples."""
    found = {"accuracy": _share(right.sum(1), asked.sum(1), seed, name)}
    if right.shape[1] == len(distances):
        for k, won, count in zip(distances, right.T, asked.T, strict=True):
            found[f"accuracy_k{k:+d}"] = _share(won, count, seed, f"{name}.{k:+d}")
    return found


def _share(won: np.ndarray, count: np.ndarray, seed: int, name: str) -> dict[str, Any]:
    rows = np.flatnonzero(count)
    if not len(rows):
        return {"value": None, "n": 0}
    won, count = won[rows], count[rows]
    value = float(won.sum() / count.sum())
    return {"value": value, **of_ratio(won, count, seed, name), "n": int(count.sum())}


def evaluate(
    model: ConponoModel,
    shown: Mapping[str, Examples],
    collator: Collator,
    distances: Sequence[int],
    seed: int,
    workers: int = 0,
) -> dict[str, Any]:
    """`accuracies` on each split of `shown`, as SPLIT_masked and SPLIT_clean.

    With words hidden as in training (the paper's figure 2), and with none hidden.
    """
    found = {}
    for split, part in shown.items():
        for name, rate in {"masked": part.masking.rate, "clean": 0.0}.items():
            examples = replace(part, masking=replace(part.masking, rate=rate))
            right, asked = held_out(model, examples, collator, workers=workers)
            figures = accuracies(right, asked, distances, seed, f"{split}.{name}")
            found[f"{split}_{name}"] = figures
    return found


@torch.inference_mode()
def held_out(
    model: ConponoModel, examples: Examples, collator: Collator, batch: int = 8, workers: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """`hits` of a model on `examples`, as they are drawn in epoch 0."""
    model.eval()
    found = []
    for inputs in DataLoader(examples, batch, collate_fn=collator, num_workers=workers):
        blocks = [
            {k: v.to(model.device) if isinstance(v, torch.Tensor) else v for k, v in block.items()}
            for block in inputs["blocks"]
        ]
        order, labels = inputs["order"].to(model.device), inputs["labels"].to(model.device)
        scores = model(blocks, order, labels).scores
        found.append(hits(scores.float().cpu().numpy(), inputs["labels"].numpy()))
    right, asked = (np.concatenate(part) for part in zip(*found, strict=True))
    return right, asked


def write_plot(path: Path, curves: Mapping[str, Mapping[str, Any]]) -> None:
    """Accuracy over the distance k as an SVG picture; `curves` are those of `evaluate`."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # A fixed salt and no date: the same figures give the same bytes.
    with rc_context({"svg.hashsalt": "discorpora", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(
            xlabel="distance k", ylabel="accuracy", title="Held-out accuracy", ylim=(0, 1)
        )
        for name, found in curves.items():
            points = sorted((int(key[10:]), entry) for key, entry in found.items() if key[10:])
            points = [(k, entry) for k, entry in points if entry["n"]]
            values = [entry["value"] for _, entry in points]
            bars = np.transpose([_bar(entry) for _, entry in points])
            places = [k for k, _ in points]
            axes.errorbar(
                places, values, bars, marker="o", capsize=3, label=name.replace("_", ", ")
            )
        ticks = sorted({int(key[10:]) for found in curves.values() for key in found if key[10:]})
        axes.set_xticks(ticks, [f"{k:+d}" for k in ticks])
        axes.legend()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    write_text(path, text.getvalue())


def _bar(entry: Mapping[str, Any]) -> tuple[float, float]:
    """How far the interval reaches below and above the value; nothing is drawn where none is."""
    low, high = entry["ci"] or (np.nan, np.nan)
    return max(entry["value"] - low, 0.0), max(high - entry["value"], 0.0)
