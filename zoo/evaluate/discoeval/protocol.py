"""One task, one encoder: vectors, features, classifiers with several seeds, accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.errors import ConfigError, nearest
from zoo.evaluate import bootstrap
from zoo.evaluate.discoeval.data import TaskData
from zoo.evaluate.discoeval.features import Inputs, features_of, inputs_of
from zoo.evaluate.encoders import AUTO, BackboneEncoder, Encoder
from zoo.evaluate.outcomes import Outcomes

if TYPE_CHECKING:
    from zoo.evaluate.suites import DiscoEval

C_GRID = tuple(2.0**power for power in range(-2, 4))
"""Of scikit-learn's logistic regression, as in the released code; chosen on validation."""


def representation_of(encoder: Encoder, options: DiscoEval) -> str:
    """The representation in full; empty for an encoder that has no choice of them."""
    if not isinstance(encoder, BackboneEncoder):
        return ""
    if options.representation != AUTO or not encoder.layers:
        return encoder.named(options.representation)
    if options.protocol == "single":
        return "cls_mean"
    if encoder.trained_with == "mean":
        return "mean"
    return "pooled" if getattr(encoder.model, "pooler", None) is not None else "cls"


def inputs_under(data: TaskData, options: DiscoEval) -> Inputs:
    """The texts of a task under the protocol."""
    return inputs_of(data, data.task.features[options.protocol], options.lower)


def vectors_of(
    encoder: Encoder, inputs: Inputs, representations: Sequence[str]
) -> dict[str, list[np.ndarray]]:
    """For each representation the vectors of the single texts and of the pairs."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in representations}
    for texts, is_pair in ((inputs.singles, False), (inputs.pairs, True)):
        if not texts:
            continue
        if isinstance(encoder, BackboneEncoder):
            for name, vectors in encoder.vectors(texts, representations).items():
                found[name].append(vectors)
        else:
            vectors = encoder.encode_pairs(texts) if is_pair else encoder.encode(texts)  # type: ignore[arg-type]
            for name in representations:
                found[name].append(np.asarray(vectors, np.float32))
    return found


def split_of(data: TaskData, split: str) -> str:
    """The split to score on: the one asked for, or `validation` where there is no `test`.

    Raises `ConfigError` for another split that the task does not have.
    """
    if split in data.splits:
        return split
    if split == "test":
        return "validation"
    raise ConfigError(
        f"no split {split!r}",
        where=data.name,
        hint=f"{nearest(split, data.splits)}its splits are: {', '.join(data.splits)}",
    )


def score(
    data: TaskData, features: Mapping[str, np.ndarray], options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """Accuracy of the task's classifier on `split`: mean and deviation over the seeds.

    `outcomes` says of each row what share of the seeds has it right.
    Without a test split it is the validation accuracy, as the released harness reports it beside
    the test's; it is a little too good, since it also chose when training stopped.
    """
    from zoo.evaluate.discoeval.probe import fit

    settings = data.task.probes[options.protocol]
    if options.hidden >= 0:
        settings = replace(settings, hidden=options.hidden)
    split = split_of(data, split)
    part = {name: (features[name], data.splits[name].labels) for name in features}
    probes = [
        fit(part["train"], part["validation"], len(data.labels), settings, seed + number)
        for number in range(options.seeds)
    ]
    gold = data.splits[split].labels
    right = np.stack([probe.predict(part[split][0]) == gold for probe in probes])
    units = data.splits[split].units
    found = {
        **_summary(right.mean(1)),
        # Whole units are drawn anew: a text and its altered form.
        **bootstrap.of_groups(right.mean(0), units, seed, f"discoeval.{data.name}"),
        "split": split,
        "l2": [probe.l2 for probe in probes],
        "epochs": [probe.epochs for probe in probes],
        "majority": _majority(data, split),
        "outcomes": Outcomes(
            data.task.name, units.astype(str).tolist(), right.mean(0), part=data.domain
        ),
    }
    if split != "validation":
        found["validation"] = _summary(np.array([probe.accuracy for probe in probes]))
    if options.second_opinion and not settings.hidden:
        found["sklearn"] = second_opinion(part, split, seed)
    return found


def second_opinion(
    part: Mapping[str, tuple[np.ndarray, np.ndarray]], split: str, seed: int
) -> dict[str, float]:
    """scikit-learn's logistic regression, its C chosen on the validation set."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    best: tuple[float, float, Any] = (-1.0, 0.0, None)
    for c in C_GRID:
        model = LogisticRegression(C=c, random_state=seed)
        with warnings.catch_warnings():
            # 100 steps, its default, as in the released code: most runs end before they converge.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(*part["train"])
        accuracy = float(model.score(*part["validation"]))
        if accuracy > best[0]:
            best = accuracy, c, model
    return {"value": float(best[2].score(*part[split])), "c": best[1]}


def per_layer(
    tasks: Sequence[TaskData], encoder: Encoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """The accuracy of each task on each layer's vectors, 0 being the embeddings.

    `accuracy[task]` has a figure a layer, the mean over the task's domains; `best` the layer that
    is best for a task, and `mean_best` their average (table 3).
    """
    if not isinstance(encoder, BackboneEncoder) or not encoder.layers:
        raise ConfigError("this encoder has no layers to look at", where="layers")
    names = [f"{options.layer_vectors}:{layer}" for layer in range(encoder.layers + 1)]
    quick = options.model_copy(update={"second_opinion": False})
    found: dict[str, list[list[float]]] = {}
    for data in tasks:
        how = data.task.features[options.protocol]
        inputs = inputs_under(data, options)
        vectors = vectors_of(encoder, inputs, names)
        column = []
        for name in names:
            features = features_of(inputs, vectors.pop(name), how)
            column.append(score(data, features, quick, split, seed)["value"])
        found.setdefault(data.task.name, []).append(column)
    accuracy = {task: np.mean(columns, axis=0).tolist() for task, columns in found.items()}
    best = {task: int(np.argmax(column)) for task, column in accuracy.items()}
    return {
        "vectors": options.layer_vectors,
        "layers": list(range(encoder.layers + 1)),
        "accuracy": accuracy,
        "best": best,
        "mean_best": float(np.mean(list(best.values()))),
    }


def run_task(
    data: TaskData, encoder: Encoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """Encode, train and score one task in one domain."""
    inputs = inputs_under(data, options)
    name = representation_of(encoder, options)
    vectors = vectors_of(encoder, inputs, [name])[name]
    features = features_of(inputs, vectors, data.task.features[options.protocol])
    return {
        **score(data, features, options, split, seed),
        **data.describe(),
        "classes": len(data.labels),
        "features": int(features["train"].shape[1]),
        "texts": {"asked": inputs.asked, "distinct": len(inputs.singles) + len(inputs.pairs)},
        "notes": list(data.notes),
    }


def _summary(values: np.ndarray) -> dict[str, Any]:
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {"value": float(values.mean()), "sd": deviation, "seeds": values.tolist()}


def _majority(data: TaskData, split: str) -> float:
    """The accuracy of always naming the most frequent class of the training set."""
    most = np.bincount(data.splits["train"].labels).argmax()
    return float((data.splits[split].labels == most).mean())
