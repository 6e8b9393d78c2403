"""A suite's result: what it holds, what it says of the model's training, how it is kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora.code import versions
from corpora.errors import ConfigError, InputError
from corpora.outside import read_record, record_of
from corpora.store.atomic import write_json
from corpora.store.manifest import About, Results
from zoo import file_of
from zoo.declared import Suite
from zoo.evaluate.outcomes import Outcomes, place_of, stem_of, write_outcomes
from zoo.evaluate.scores import notes_of
from zoo.training.job import LIBRARIES, RESULTS

log = logging.getLogger("zoo")


@dataclass(frozen=True)
class Result:
    """What a suite found.

    `model` has a name and a type; `dataset` describes one dataset, a list of them, or several by
    name. Two results are compared where dataset and `protocol` are equal. Figures in `metrics`
    are tables with `value`, a share, and perhaps `ci` and `n`. `more`: other keys of the JSON.
    """

    model: Mapping[str, Any]
    dataset: Any
    examples: int
    metrics: Mapping[str, Any]
    protocol: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    outcomes: Sequence[Outcomes] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


def finished(
    suite: Suite, result: Result, *, split: str, seed: int, model: str = ""
) -> dict[str, Any]:
    """The result of a suite as its JSON holds it.

    `model` is the folder or Hub id, of which the result says what it was trained on.
    """
    trained = trained_on(model)
    notes = other_revisions(trained, result.dataset)
    for note in notes:
        log.warning("%s", note)
    return {
        "suite": suite.name or type(suite).__name__,
        "split": split,
        "model": result.model,
        "dataset": result.dataset,
        "protocol": result.protocol,
        "examples": result.examples,
        "metrics": result.metrics,
        **result.more,
        "trained_on": trained,
        "notes": [*result.notes, *notes, *notes_of(result.metrics)],
        "seed": seed,
        "versions": versions(*LIBRARIES),
    }


def check_place(path: Path) -> None:
    """Make the folder of the result `path`: what is in the way is said before the work is done."""
    if path.is_dir():
        raise ConfigError(
            "a folder, where the result should be written", where=str(path), hint="name a file"
        )
    path.parent.mkdir(parents=True, exist_ok=True)


def save(suite: Suite, path: Path, kept: dict[str, Any], outcomes: Sequence[Outcomes]) -> None:
    """Write `path`, the outcomes beside it, and what the suite draws or tabulates."""
    suite.write_files(kept, stem_of(path))
    place_of(path).unlink(missing_ok=True)  # those of an earlier run are not this result's
    write_json(path, kept)
    write_outcomes(path, outcomes)


# What a model was trained on, and whether it is judged on another cut of it: what one revision of a
# dataset holds out, another may train on. A build knows its documents and counts the rows
# (`corpora.splits.seen`); an evaluation by itself has only the names and revisions of both.


def trained_on(model: str) -> list[dict[str, str]]:
    """Name, configuration and revision of the model's dataset, then of those it started from.

    From the results.json that training leaves. A model of which nothing is known, such as a rule
    or another project's, has none.
    """
    path = file_of(model, RESULTS)
    if path is None:
        return []
    with suppress(InputError):  # it may be another project's file of that name
        results = read_record(Results, path)
        if results.recipe and isinstance(results.dataset, Mapping):
            own = record_of(About, results.dataset, str(path))
            return [about.model_dump() for about in (own, *results.started_from)]
    return []


def other_revisions(trained: Sequence[Mapping[str, str]], judged: Any) -> list[str]:
    """A warning for each dataset of training that a result was judged on in another revision.

    `judged` is the result's `dataset`: one description, a list, or several by name.
    """
    notes = [
        f"trained on {one['name']}, revision {one['revision'] or 'unknown'}, judged on revision "
        f"{about['revision'] or 'unknown'}: rows judged here may have been training rows there; "
        "judge the model on the revision that it was trained on, or train it anew"
        for one in trained
        for about in datasets_of(judged).values()
        if about.get("name", "") == one["name"] and str(about["revision"]) != one["revision"]
    ]
    return list(dict.fromkeys(notes))


def datasets_of(dataset: Any) -> dict[str, Mapping[str, Any]]:
    """The datasets that a result's `dataset` describes with a revision, by name.

    It is one description, a list (discoeval), or several by name (senteval).
    """
    if isinstance(dataset, list):
        named: dict[str, Any] = {}
        for about in (each for each in dataset if isinstance(each, Mapping)):
            parts = [str(about[key]) for key in ("task", "domain") if key in about]
            named[" ".join(parts) or str(about.get("name", "?"))] = about
    else:
        named = {str(dataset.get("name", "?")): dataset} if "revision" in dataset else dict(dataset)
    known = (pair for pair in named.items() if isinstance(pair[1], Mapping))
    return {str(name): about for name, about in known if "revision" in about}
