"""What the suite `discoeval` runs: every task of a folder on one encoder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import InputError
from zoo.evaluate import Request
from zoo.evaluate.discoeval import report
from zoo.evaluate.discoeval.data import Found, read
from zoo.evaluate.discoeval.protocol import (
    inputs_under,
    per_layer,
    representation_of,
    run_task,
    split_of,
)
from zoo.evaluate.encoders import BackboneEncoder, as_encoder, load_encoder
from zoo.evaluate.results import Result, finished, save
from zoo.evaluate.suites import DiscoEval
from zoo.evaluate.vectors import Text

log = logging.getLogger("zoo")

DEFAULTS = DiscoEval(cache="")


def evaluate(options: DiscoEval, request: Request) -> Result:
    """Every task that the data has."""
    # Read first: a wrong folder is said before a model is loaded.
    found = read(request.data, options.tasks, limit=request.limit)
    encoder = _loaded(request.model, options)
    return _run(encoder, found, options, request.split, request.seed, request.limit)


def run(
    what: Any,
    data: str | Path,
    options: DiscoEval = DEFAULTS,
    *,
    name: str = "",
    split: str = "test",
    seed: int = 0,
    limit: int = 0,
    json: str | Path = "",
) -> dict[str, Any]:
    """Evaluate a model folder, an encoder, a function of texts, or arrays on `data`.

    With `json` the result is written there too, as `discorpora evaluate discoeval --json` does it:
    `discorpora compare` takes it, and tells by how much it differs from another one.

    A function takes a list of texts and returns `[texts, dim]`. Arrays are a mapping from text to
    vector, or one array whose rows are those of `texts(data, options, limit=limit)`.
    """
    found = read(str(data), options.tasks, limit=limit)
    if isinstance(what, np.ndarray):
        what = _by_text(_texts(found, options), what)
    model = str(what) if isinstance(what, str | Path) else ""
    encoder = _loaded(model, options) if model else as_encoder(what, name)
    result = _run(encoder, found, options, split, seed, limit)
    kept = finished(options, result, split=split, seed=seed, model=model)
    if json:
        save(options, Path(json), kept, result.outcomes)
    return kept


def _loaded(model: str, options: DiscoEval) -> BackboneEncoder:
    return load_encoder(
        model,
        options.representation,
        cache=options.cache or None,
        dtype=options.dtype,
        batch_tokens=options.batch_tokens,
    )


def texts(data: str | Path, options: DiscoEval = DEFAULTS, *, limit: int = 0) -> list[Text]:
    """The distinct texts (and, with the protocol `pairs`, pairs) that the suite has encoded."""
    found = read(str(data), options.tasks, limit=limit)
    return _texts(found, options)


def _run(
    encoder: Any, found: Found, options: DiscoEval, split: str, seed: int, limit: int
) -> Result:
    for data in found.tasks:  # all of them before the first is encoded
        split_of(data, split)
    for name, reason in found.skipped.items():
        log.warning("%s is left out: %s", name, reason)
    domains: dict[str, dict[str, Any]] = {}
    outcomes = []
    for data in found.tasks:
        one = run_task(data, encoder, options, split, seed)
        log.info("%s: %.1f (%s)", data.name, 100 * one["value"], one["split"])
        outcomes.append(one.pop("outcomes"))
        domains.setdefault(data.task.name, {})[data.domain] = one
    metrics = {**report.summary(domains), "skipped": found.skipped}
    if options.layers:
        metrics["layers"] = per_layer(found.tasks, encoder, options, split, seed)
    model = {"name": encoder.name, "representation": representation_of(encoder, options)}
    if isinstance(encoder, BackboneEncoder):
        model |= {
            "type": encoder.model.config.model_type,
            "dtype": options.dtype,
            "max_tokens": encoder.max_tokens,
            "truncated": encoder.truncated,
        }
    splits = {data.name: split_of(data, split) for data in found.tasks}
    notes = []
    for data in found.tasks:
        untested = ["no test set: the accuracy is that of the validation set"]
        said = [*data.notes, *(untested if splits[data.name] != split else [])]
        notes += [f"{data.name}: {note}" for note in said]
    return Result(
        model=model,
        dataset=[
            {
                "task": data.task.name,
                "labels": list(data.labels),
                **data.describe(),
                "split": splits[data.name],
            }
            for data in found.tasks
        ],
        protocol={
            **options.model_dump(include={"protocol", "seeds", "hidden", "lower"}),
            "limit": limit,
            "split": ", ".join(sorted(set(splits.values()))),
        },
        examples=sum(len(data.splits[splits[data.name]]) for data in found.tasks),
        metrics=metrics,
        notes=notes,
        outcomes=outcomes,
    )


def _texts(found: Found, options: DiscoEval) -> list[Text]:
    listed: dict[Text, None] = {}
    for data in found.tasks:
        inputs = inputs_under(data, options)
        listed.update(dict.fromkeys([*inputs.singles, *inputs.pairs]))
    return list(listed)


def _by_text(texts: list[Text], vectors: np.ndarray) -> dict[Text, np.ndarray]:
    """The rows of an array by their texts. Raises `InputError` for another number of rows."""
    if vectors.ndim != 2 or len(vectors) != len(texts):
        rows = f"{len(vectors)} vectors" if vectors.ndim == 2 else f"an array {vectors.shape}"
        raise InputError(
            f"{rows} for {len(texts)} texts",
            where="arrays",
            hint="take the rows of discoeval.texts(DATA, options, limit=...), with the same "
            "options and limit as here: [texts, dim]",
        )
    return dict(zip(texts, vectors, strict=True))
