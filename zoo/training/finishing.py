"""The end of a recipe: the model, its card and its results in the run's folder."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

from zoo.modeling import parameter_count, save_model
from zoo.training import card
from zoo.training.data import Dataset
from zoo.training.job import Job


def finish(
    job: Job,
    model: PreTrainedModel,
    tokenizer: Any,
    dataset: Dataset,
    usage: str,
    *,
    headline: tuple[str, str],
    pipeline: str = "text-classification",
    **results: Any,
) -> None:
    """Save the trained model, write its card, and results.json last: then the run is finished.

    `headline` is the name and the text of the figure that stands first; `results` are what the
    recipe has measured (metrics), what became of its data (data) and its steps (training).
    """
    save_model(model, tokenizer, job.folder)
    name, text = headline
    found = {
        "model_type": model.config.model_type,
        "dataset": dataset.describe(),
        "parameters": parameter_count(model),
        **results,
        "headline_name": name,
        "headline": text,
    }
    card.finish(job, found, usage, pipeline, dataset.manifest.get("languages", ()))
