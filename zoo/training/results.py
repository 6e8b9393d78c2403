"""The datasets that a model was trained on, by the results.json of its training."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from corpora.errors import InputError
from corpora.outside import read_record, record_of
from corpora.store.manifest import DatasetRecord, Results
from zoo import file_of
from zoo.training.job import RESULTS


def trained_on(model: str) -> list[dict[str, str]]:
    """Return the name, configuration and revision of each dataset that a model was trained on.

    First comes the dataset of its own training, then those of the model from which it started. The
    list is empty for a model without our results.json, such as a rule or another project's model.
    """
    path = file_of(model, RESULTS)
    if path is None:
        return []
    with suppress(InputError):  # it may be another project's file of that name
        results = read_record(Results, path)
        if results.recipe and isinstance(results.dataset, Mapping):
            dataset = record_of(DatasetRecord, results.dataset, str(path))
            datasets = (dataset, *results.started_from)
            # An encoder that was copied as it is has no dataset.
            return [about.model_dump() for about in datasets if about.name]
    return []
