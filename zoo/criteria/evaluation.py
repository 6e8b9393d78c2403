"""What a model of the criteria has learnt: nats a word, and the classes' accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from zoo.criteria.data import Places
from zoo.criteria.modeling import CriteriaConfig, CriteriaModel
from zoo.evaluate import bootstrap
from zoo.evaluate.classification import report


def part_losses(losses: np.ndarray, config: CriteriaConfig) -> dict[str, float]:
    """The mean loss of each part, from `losses [sentences, parts]`."""
    names = (*config.bags, *config.classes)
    there = ~np.isnan(losses)
    return {
        f"{name}_loss": float(losses[there[:, column], column].mean())
        for column, name in enumerate(names)
        if there[:, column].any()
    }


@torch.inference_mode()
def predictions(
    model: CriteriaModel, places: Places, batch_size: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each part, `[rows, parts]`, and the classes, `[rows, classified]`."""
    model.eval()
    device = model.device
    order = np.argsort(-places.lengths(), kind="stable")
    losses = np.zeros((len(places), len(model.config.bags) + len(places.classes)), np.float32)
    classes = np.zeros((len(places), len(places.classes)), np.int64)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        batch = places.collate([places[int(row)] for row in rows])
        bags = {name: ids.to(device) for name, ids in batch.pop("bags").items()}
        found = model(bags=bags, **{name: value.to(device) for name, value in batch.items()})
        losses[rows] = found.parts.float().cpu().numpy()
        classes[rows] = found.predicted.cpu().numpy()
    return losses, classes


def metrics_of(
    model: CriteriaModel, places: Places, frequency: np.ndarray, seed: int, batch_size: int = 256
) -> dict[str, Any]:
    """Nats a word of each text beside those by the words' frequency; the classes' accuracy."""
    losses, classes = predictions(model, places, batch_size)
    known = frequency.copy()
    known[[places.pad_id, model.config.unk_token_id]] = 0
    # One more of each word: those of the headings stand in no sentence.
    nats = -np.log((known + 1) / (known + 1).sum())
    found: dict[str, Any] = {"sentences": len(places), "nats_a_word": {}, "classes": {}}
    for column, name in enumerate(model.config.bags):
        there = np.flatnonzero(~np.isnan(losses[:, column]))
        if not len(there):
            continue
        values = losses[there, column]
        alone = _by_frequency(places, name, there, nats, model.config.unk_token_id)
        found["nats_a_word"][name] = {
            "sentences": len(there),
            "value": float(values.mean()),
            **_interval(values, places.documents()[there], seed, f"criteria.{name}"),
            "by_frequency": alone,
        }
    gold = places.gold().astype(np.int64)
    for column, (name, size) in enumerate(model.config.classes.items()):
        first = 1 if name == "level" else 0
        names = [str(number) for number in range(first, first + size)]
        found["classes"][name] = report(gold[:, column], classes[:, column], names, seed)
    return found


def _interval(
    values: np.ndarray, documents: np.ndarray, seed: int, name: str
) -> bootstrap.Interval:
    """`ci` of a mean over sentences when whole documents, its `units`, are drawn anew."""
    _, units = np.unique(documents, return_inverse=True)
    sums, counts = np.bincount(units, values), np.bincount(units)
    return bootstrap.of_ratio(sums, counts, seed, name)


def _by_frequency(
    places: Places, name: str, rows: np.ndarray, nats: np.ndarray, unknown: int | None
) -> float:
    """The mean nats a word of these texts, were each word as likely as it is frequent."""
    total = 0.0
    for row in rows.tolist():
        words = places.bag(name, int(places.rows[row]))
        total += float(nats[words[words != unknown]].mean())
    return total / len(rows)
