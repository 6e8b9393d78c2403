"""What the suite `discoeval` runs: every task of a folder on one encoder."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from zoo.evaluate import Request
from zoo.evaluate.discoeval import report
from zoo.evaluate.discoeval.data import Found
from zoo.evaluate.discoeval.protocol import (
    per_layer,
    representation_of,
    run_task,
    split_of,
)
from zoo.evaluate.discoeval.reading import read
from zoo.evaluate.encoders import BackboneEncoder, load_encoder
from zoo.evaluate.results import Result

if TYPE_CHECKING:
    from zoo.evaluate.suites import DiscoEval

log = logging.getLogger("zoo")


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
        cache=options.cache or None,
        dtype=options.dtype,
        batch_tokens=options.batch_tokens,
    )


def evaluate_all(
    encoder: Any, found: Found, options: DiscoEval, split: str, seed: int, limit: int
) -> Result:
    """Every task of `found` on one encoder."""
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
