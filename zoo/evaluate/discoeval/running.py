"""The suite `discoeval`: every task of a folder on one encoder, from the command line or Python."""

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
    model = str(what) if isinstance(what, str | Path) else ""
    if isinstance(what, np.ndarray):
        rows = _texts(found, options)
        if what.ndim != 2 or len(what) != len(rows):
            given = f"{len(what)} vectors" if what.ndim == 2 else f"an array {what.shape}"
            raise InputError(
                f"{given} for {len(rows)} texts",
                where="arrays",
                hint="take the rows of discoeval.texts(DATA, options, limit=...), with the same "
                "options and limit as here: [texts, dim]",
            )
        what = dict(zip(rows, what, strict=True))
    encoder = load(model, options) if model else as_encoder(what, name)
    result = evaluate_all(encoder, found, options, split, seed, limit)
    kept = finished(options, result, split=split, seed=seed, model=model)
    if json:
        save(options, Path(json), kept, result.outcomes)
    return kept


def texts(data: str | Path, options: DiscoEval = DEFAULTS, *, limit: int = 0) -> list[Text]:
    """The distinct texts (and, with the protocol `pairs`, pairs) that the suite has encoded."""
    return _texts(read(str(data), options.tasks, limit=limit), options)


def _texts(found: Found, options: DiscoEval) -> list[Text]:
    inputs = [inputs_under(data, options) for data in found.tasks]
    return list(dict.fromkeys(text for each in inputs for text in (*each.singles, *each.pairs)))


def evaluate(options: DiscoEval, request: Request) -> Result:
    """Every task that the data has."""
    # Read first: a wrong folder is said before a model is loaded.
    found = read(request.data, options.tasks, limit=request.limit)
    encoder = load(request.model, options)
    return evaluate_all(encoder, found, options, request.split, request.seed, request.limit)


def load(model: str, options: DiscoEval) -> BackboneEncoder:
    """The encoder of a model folder or Hub id under the options."""
    return load_encoder(
        model,
        options.representation,
        cache=options.cache,
        dtype=options.dtype,
        batch_tokens=options.batch_tokens,
    )


def evaluate_all(
    encoder: Any, found: Found, options: DiscoEval, split: str, seed: int, limit: int
) -> Result:
    """Every task of `found` on one encoder."""
    splits = [split_of(data, split) for data in found.tasks]  # before the first is encoded
    for name, reason in found.skipped.items():
        log.warning("%s is left out: %s", name, reason)
    domains: dict[str, dict[str, Any]] = {}
    outcomes, about, notes = [], [], []
    for data, scored in zip(found.tasks, splits, strict=True):
        one = run_task(data, encoder, options, split, seed)
        log.info("%s: %.1f (%s)", data.name, 100 * one["value"], one["split"])
        outcomes.append(one.pop("outcomes"))
        domains.setdefault(data.task.name, {})[data.domain] = one
        labels = {"task": data.task.name, "labels": list(data.labels)}
        about.append({**labels, **data.describe(), "split": scored})
        untested = "no test set: the accuracy is that of the validation set"
        said = [*data.notes, *([untested] if scored != split else [])]
        notes += [f"{data.name}: {note}" for note in said]
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
    return Result(
        model=model,
        dataset=about,
        protocol={
            **options.model_dump(include={"protocol", "seeds", "hidden", "lower"}),
            "limit": limit,
            "split": ", ".join(sorted(set(splits))),
        },
        examples=sum(each["rows"][each["split"]] for each in about),
        metrics=metrics,
        notes=notes,
        outcomes=outcomes,
    )
