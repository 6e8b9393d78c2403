"""What the suite `discoeval` runs: every task of a folder on one encoder."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import InputError
from zoo.evaluate import Request
from zoo.evaluate.discoeval import report
from zoo.evaluate.discoeval.data import Found, TaskData, read
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
    encoder = load_encoder(
        request.model,
        options.representation,
        cache=options.cache or None,
        dtype=options.dtype,
        batch_tokens=options.batch_tokens,
    )
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
    if isinstance(what, str | Path):
        encoder: Any = load_encoder(
            str(what),
            options.representation,
            cache=options.cache or None,
            dtype=options.dtype,
            batch_tokens=options.batch_tokens,
        )
    else:
        encoder = as_encoder(what, name)
    result = _run(encoder, found, options, split, seed, limit)
    model = str(what) if isinstance(what, str | Path) else ""
    kept = finished(options, result, split=split, seed=seed, model=model)
    if json:
        save(options, Path(json), kept, result.outcomes)
    return kept


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
    return Result(
        model=_describe(encoder, options),
        dataset=[
            {
                "task": data.task.name,
                "labels": list(data.labels),
                **data.describe(),
                "split": split_of(data, split),
            }
            for data in found.tasks
        ],
        protocol=_protocol(options, domains, limit),
        examples=sum(
            one["rows"][one["split"]] for each in domains.values() for one in each.values()
        ),
        metrics=metrics,
        notes=[f"{data.name}: {note}" for data in found.tasks for note in _notes(data, split)],
        outcomes=outcomes,
    )


def _notes(data: TaskData, split: str) -> list[str]:
    """What had to be done for want of a split."""
    if split_of(data, split) == split:
        return list(data.notes)
    return [*data.notes, "no test set: the accuracy is that of the validation set"]


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


def _describe(encoder: Any, options: DiscoEval) -> dict[str, Any]:
    found = {"name": encoder.name, "representation": representation_of(encoder, options)}
    if isinstance(encoder, BackboneEncoder):
        found |= {
            "type": encoder.model.config.model_type,
            "dtype": options.dtype,
            "max_tokens": encoder.max_tokens,
            "truncated": encoder.truncated,
        }
    return found


def _protocol(
    options: DiscoEval, domains: Mapping[str, Mapping[str, Any]], limit: int
) -> dict[str, Any]:
    """What must be equal for two results to stand in one table."""
    kept = {"protocol", "seeds", "hidden", "lower"}
    splits = {one["split"] for found in domains.values() for one in found.values()}
    return {
        **options.model_dump(include=kept),
        "limit": limit,
        "split": ", ".join(sorted(splits)),
    }
