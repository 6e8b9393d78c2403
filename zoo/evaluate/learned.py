"""What a model was trained on, as it says itself, and whether it is judged on another cut of it.

A dataset is divided anew when its sources or its settings change: what one revision holds out,
another may train on. A build knows its documents and counts the rows (`corpora.splits.seen`); an
evaluation by itself has neither the build's division nor the data of the training any more, but
the names and revisions of both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.files import file_of
from zoo.training.job import RESULTS

KEYS = ("name", "config", "revision")


def trained_on(model: str) -> list[dict[str, str]]:
    """Name, configuration and revision of the model's dataset, then of those it started from.

    From the results.json that training leaves. A base counts while its folder is where it was;
    a model of which nothing is known, such as a rule or another project's, has none.
    """
    found: list[dict[str, str]] = []
    place, been = model, set()
    while place not in been and (results := _results(place)):
        been.add(place)
        found.append({key: str(results["dataset"].get(key, "")) for key in KEYS})
        base = str(results.get("settings", {}).get("backbone", ""))
        # A relative path that is gone would be asked for at the Hub.
        place = base if Path(base).is_dir() else ""
    return found


def other_revisions(trained: Sequence[Mapping[str, str]], judged: Any) -> list[str]:
    """A warning for each dataset of training that a result was judged on in another revision.

    `judged` is the result's `dataset`: one description, a list, or several by name.
    """
    there = dict.fromkeys(_described(judged))
    return list(
        dict.fromkeys(
            f"trained on {name}, revision {one['revision'] or 'unknown'}, judged on revision "
            f"{revision or 'unknown'}: rows judged here may have been training rows there; judge "
            "the model on the revision that it was trained on, or train it anew"
            for one in trained
            for name, revision in there
            if name == one["name"] and revision != one["revision"]
        )
    )


def _results(model: str) -> dict[str, Any] | None:
    """The results.json of a model of this zoo."""
    path = file_of(model, RESULTS)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # another project's file of that name
        return None
    ours = isinstance(found, dict) and "recipe" in found and "dataset" in found
    return found if ours else None


def _described(judged: Any) -> Iterator[tuple[str, str]]:
    """The name and the revision of each dataset that a result describes."""
    if isinstance(judged, Mapping) and "revision" in judged:
        yield str(judged.get("name", "")), str(judged["revision"])
    elif isinstance(judged, Mapping):
        for about in judged.values():
            yield from _described(about)
    elif isinstance(judged, Sequence) and not isinstance(judged, str):
        for about in judged:
            yield from _described(about)
