"""What the results.json of a training says of the data that made the weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from corpora.errors import InputError
from corpora.outside import read_record, record_of
from corpora.store.manifest import DatasetRecord, Results
from zoo import file_of
from zoo.training.job import RESULTS


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
            own = record_of(DatasetRecord, results.dataset, str(path))
            return [about.model_dump() for about in (own, *results.started_from)]
    return []
