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
from zoo.conpono.segments import NO_LABEL
from zoo.conpono.training import PARTS
from zoo.evaluate.confusions import new_figure, save_pictures
from zoo.evaluate.scores import ratio_interval


def hits(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of correct answers and of questions, `[examples, distances]` each.

    A question is the target at a distance, by `labels [examples, 2K]`. It is answered correctly if
    its target's score in `scores [examples, 2K, candidates]` is above all others. For the ordering
    baseline `scores` and `labels` are `[examples, pairs]`, and the only column counts pairs.
    """
    if scores.ndim == 2:
        right = ((scores > 0) == (labels > 0)).sum(1, keepdims=True)
        return right, np.full_like(right, labels.shape[1])
    questions = labels != NO_LABEL
    targets = np.where(questions, labels, 0)[..., None]
    target_scores = np.take_along_axis(scores, targets, 2)
    is_best = (scores >= target_scores).sum(2) == 1
    return (is_best & questions).astype(np.int64), questions.astype(np.int64)


def by_distance(
    right: np.ndarray, questions: np.ndarray, distances: Sequence[int]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the right answers and the questions of each example, in all and at each distance. The
    arrays `right` and `questions` are those of `hits`; the keys are names of figures."""
    columns = {"accuracy": (right.sum(1), questions.sum(1))}
    if right.shape[1] == len(distances):
        each = zip(distances, right.T, questions.T, strict=True)
        columns |= {f"accuracy_k{k:+d}": (won, count) for k, won, count in each}
    return columns


def accuracies(
    right: np.ndarray, questions: np.ndarray, distances: Sequence[int], seed: int, name: str
) -> dict[str, Any]:
    """Return the accuracy over all questions and at each distance, with intervals over examples."""
    figures: dict[str, Any] = {}
    for key, (won, count) in by_distance(right, questions, distances).items():
        won, count = won[count > 0], count[count > 0]
        figures[key] = {"value": None, "n": 0}
        if len(count):
            value = float(won.sum() / count.sum())
            stream = name + key.removeprefix("accuracy").replace("_k", ".")
            interval = ratio_interval(won, count, seed, stream)
            figures[key] = {"value": value, **interval, "n": int(count.sum())}
    return figures


def validation_metrics(prediction: Any, distances: Sequence[int]) -> dict[str, float]:
    """Return accuracies without intervals, and the parts of the loss, of a Trainer's prediction."""
    scores, parts = prediction.predictions
    counts = by_distance(*hits(scores, prediction.label_ids), distances)
    metrics = {key: float(won.sum() / max(count.sum(), 1)) for key, (won, count) in counts.items()}
    return metrics | dict(zip(PARTS, parts.mean(0).tolist(), strict=True))


@torch.inference_mode()
def count_hits(
    model: ConponoModel,
    examples: Examples,
    collator: Collator,
    batch: int = 8,
    workers: int = 0,
    *,
    bf16: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `hits` of a model on `examples`, as they are sampled in epoch 0. Several processes
    divide the examples, and each gets the hits of all. With `bf16` the model computes in
    bfloat16."""
    model.eval()
    state = PartialState()
    numbers = np.arange(len(examples))
    rows = numbers if examples.rows is None else examples.rows
    share = replace(examples, rows=rows[state.process_index :: state.num_processes])
    loader = DataLoader(share, batch, collate_fn=collator, num_workers=workers)
    counts = []
    for inputs in track(loader, "batches", total=len(loader)):
        with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
            scores = model(**as_tensors(inputs, model.device)).scores
        counts.append(hits(scores.float().cpu().numpy(), inputs["labels"]))
    # Process `i` has the rows `i`, `i + n`, ...: this order restores that of the examples.
    order = np.argsort(np.argsort(numbers % state.num_processes, kind="stable"))
    by_process = gather_object(counts)
    right, questions = (np.concatenate(part)[order] for part in zip(*by_process, strict=True))
    return right, questions


def write_plot(path: Path, curves: Mapping[str, Mapping[str, Any]]) -> None:
    """Plot accuracy over the distance k into an SVG file; a curve is a result of `accuracies`."""
    figure, axes = new_figure(
        (4.8, 3.4), xlabel="distance k", ylabel="accuracy", title="Held-out accuracy", ylim=(0, 1)
    )
    ticks: set[int] = set()
    for name, figures in curves.items():
        by_suffix = {key.partition("_k")[2]: accuracy for key, accuracy in figures.items()}
        points = {int(k): accuracy for k, accuracy in by_suffix.items() if k}
        ticks |= points.keys()
        distances = sorted(k for k, accuracy in points.items() if accuracy["n"])
        values = np.array([points[k]["value"] for k in distances])
        # A distance without an interval has no bar.
        bounds = [points[k]["ci"] or (np.nan, np.nan) for k in distances]
        low, high = np.array(bounds).reshape(-1, 2).T
        bars = np.maximum([values - low, high - values], 0.0)
        label = name.replace("_", ", ")
        axes.errorbar(distances, values, bars, marker="o", capsize=3, label=label)
    axes.set_xticks(sorted(ticks), [f"{k:+d}" for k in sorted(ticks)])
    axes.legend(frameon=False)
    save_pictures(figure, path.with_suffix(""), kinds=("svg",))
