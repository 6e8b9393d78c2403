"""Held-out accuracy for each distance (figure 2), with its plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from torch.utils.data import DataLoader

from corpora.progress import track
from zoo.conpono.examples import Collator, Examples, as_tensors
from zoo.conpono.modeling import ConponoModel
from zoo.conpono.segments import KEPT
from zoo.conpono.training import PARTS
from zoo.evaluate.confusions import save_pictures
from zoo.evaluate.scores import of_ratio


def hits(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of correct answers and of questions, `[examples, distances]`.

    `scores [examples, 2K, candidates]`, `labels [examples, 2K]`: an answer is correct if the target
    scores above every other candidate; ties are wrong. For the ordering baseline `scores` and
    `labels` are `[examples, pairs]`, and the only column counts pairs.
    """
    if scores.ndim == 2:
        right = ((scores > 0) == (labels > 0)).sum(1, keepdims=True)
        return right, np.full_like(right, labels.shape[1])
    asked = labels != KEPT
    place = np.where(asked, labels, 0)[..., None]
    own = np.take_along_axis(scores, place, 2)
    best = (scores >= own).sum(2) == 1
    return (best & asked).astype(np.int64), asked.astype(np.int64)


def by_distance(
    right: np.ndarray, asked: np.ndarray, distances: Sequence[int]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Correct answers and questions of each example, `[examples]`: in all, and at each distance."""
    columns = {"accuracy": (right.sum(1), asked.sum(1))}
    if right.shape[1] == len(distances):
        each = zip(distances, right.T, asked.T, strict=True)
        columns |= {f"accuracy_k{k:+d}": (won, count) for k, won, count in each}
    return columns


def accuracies(
    right: np.ndarray, asked: np.ndarray, distances: Sequence[int], seed: int, name: str
) -> dict[str, Any]:
    """The accuracy over all questions and at each distance, with intervals over examples."""
    figures: dict[str, Any] = {}
    for key, (won, count) in by_distance(right, asked, distances).items():
        won, count = won[count > 0], count[count > 0]
        figures[key] = {"value": None, "n": 0}
        if len(count):
            value = float(won.sum() / count.sum())
            stream = name + key.removeprefix("accuracy").replace("_k", ".")
            drawn = of_ratio(won, count, seed, stream)
            figures[key] = {"value": value, **drawn, "n": int(count.sum())}
    return figures


def validation_metrics(made: Any, distances: Sequence[int]) -> dict[str, float]:
    """Accuracies without intervals, and the parts of the loss, of a Trainer's predictions."""
    scores, parts = made.predictions
    counted = by_distance(*hits(scores, made.label_ids), distances)
    metrics = {key: float(won.sum() / max(count.sum(), 1)) for key, (won, count) in counted.items()}
    return metrics | dict(zip(PARTS, parts.mean(0).tolist(), strict=True))


@torch.inference_mode()
def held_out(
    model: ConponoModel,
    examples: Examples,
    collator: Collator,
    batch: int = 8,
    workers: int = 0,
    *,
    bf16: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """`hits` of a model on `examples`, as sampled in epoch 0; `bf16`: computed in bfloat16.

    Each of several processes takes a part of the examples, and all of them get all hits.
    """
    model.eval()
    state = PartialState()
    numbers = np.arange(len(examples))
    rows = numbers if examples.rows is None else examples.rows
    own = replace(examples, rows=rows[state.process_index :: state.num_processes])
    loader = DataLoader(own, batch, collate_fn=collator, num_workers=workers)
    counts = []
    for inputs in track(loader, "batches", total=len(loader)):
        with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
            scores = model(**as_tensors(inputs, model.device)).scores
        counts.append(hits(scores.float().cpu().numpy(), inputs["labels"]))
    order = np.argsort(np.argsort(numbers % state.num_processes, kind="stable"))
    found = gather_object(counts)
    right, asked = (np.concatenate(part)[order] for part in zip(*found, strict=True))
    return right, asked


def write_plot(path: Path, curves: Mapping[str, Mapping[str, Any]]) -> None:
    """Accuracy over the distance k as an SVG picture; `curves` are `accuracies` by their names."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(
        xlabel="distance k", ylabel="accuracy", title="Held-out accuracy", ylim=(0, 1)
    )
    ticks: set[int] = set()
    for name, figures in curves.items():
        named = {key.partition("_k")[2]: entry for key, entry in figures.items()}
        points = {int(k): entry for k, entry in named.items() if k}
        ticks |= points.keys()
        asked = sorted(k for k, entry in points.items() if entry["n"])
        values = np.array([points[k]["value"] for k in asked])
        # Distances without an interval are left out.
        ends = [points[k]["ci"] or (np.nan, np.nan) for k in asked]
        low, high = np.array(ends).reshape(-1, 2).T
        bars = np.maximum([values - low, high - values], 0.0)
        label = name.replace("_", ", ")
        axes.errorbar(asked, values, bars, marker="o", capsize=3, label=label)
    axes.set_xticks(sorted(ticks), [f"{k:+d}" for k in sorted(ticks)])
    axes.legend()
    save_pictures(figure, path.with_suffix(""), kinds=("svg",))
