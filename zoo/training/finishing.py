"""The end of a recipe: the model, its card (README.md, as the Hub reads it) and its results."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import RepoCard
from transformers import PreTrainedModel

from corpora import licences
from corpora.code import versions
from corpora.declared import Declared
from corpora.store.atomic import write_json, write_text
from zoo import file_of
from zoo.modeling import parameter_count, save_model
from zoo.training.data import Dataset
from zoo.training.job import LIBRARIES, NAMES_FILES, RESULTS, Job

log = logging.getLogger("zoo")

TEMPLATE = """\
---
library_name: transformers
pipeline_tag: {pipeline}
license: {licence}
language: {languages}
tags: [discourse, discorpora, {model_type}]
---

# {title}

{objective}. Method: {paper}.

| | |
|---|---|
| recipe | `{recipe}` |
| data | {data} |
| rows of the data | {rows} |
| trained on | {trained_on:,} examples |
| parameters | {parameters:,} |
| seed | {seed} |
| {headline_name} | {headline} |
| published by the paper, on its data | {published} |

{notes}## Use

```python
{usage}
```

All figures with their intervals, the settings and the versions are in `results.json`.

## Licence

{verdict}.

| the weights come from | licence |
|---|---|
{origins}
"""


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
    about, described, name = job.about, dataset.describe(), model.config.model_type
    origins = origins_of(job.recipe, dataset)
    combined = licences.combine(id for own in origins.values() for id in own)
    notes = "".join(f"- {note}\n" for note in job.notes)
    text = TEMPLATE.format(
        title=about.title or "-",
        objective=about.objective or "-",
        paper=about.paper or "-",
        published=about.published or "-",
        pipeline=pipeline,
        languages=yaml.safe_dump(
            [*dataset.manifest.get("languages", ())], default_flow_style=True
        ).strip(),
        licence=combined.hub,
        verdict=combined,
        origins="\n".join(f"| {origin} | {', '.join(own)} |" for origin, own in origins.items()),
        model_type=name,
        recipe=job.name,
        data=f"{dataset.name}, configuration {dataset.config}, revision `{dataset.revision}`",
        rows=", ".join(f"{split} {count:,}" for split, count in described["rows"].items()),
        trained_on=job.trained_on,
        parameters=parameter_count(model),
        seed=job.recipe.seed,
        headline_name=headline[0],
        headline=headline[1],
        notes=f"Of the run:\n\n{notes}\n" if notes else "",
        usage=usage.strip(),
    )
    write_text(job.folder / "README.md", text)
    write_json(
        job.folder / RESULTS,
        {
            "recipe": job.name,
            "seed": job.recipe.seed,
            "settings": job.recipe.identity(),
            "notes": job.notes,
            "trained_on": job.trained_on,
            "versions": versions(*LIBRARIES),
            "model_type": name,
            "dataset": described,
            "licences": origins,
            "parameters": parameter_count(model),
            **results,
            "headline_name": headline[0],
            "headline": headline[1],
        },
    )
    log.info("%s: %s", *headline)


def origins_of(recipe: Declared, dataset: Dataset) -> dict[str, list[str]]:
    """What the weights come from, each with its licences: the data, the backbone, word vectors.

    A backbone of this zoo stands for all that it comes from itself. The licence of another, and of
    vectors, is what `license` in the metadata of the README.md beside it says, else unknown.
    """
    manifest = dataset.manifest
    known = manifest.get("licences") or [manifest.get("licence", {}).get("id") or licences.UNKNOWN]
    origins = {f"data {dataset.name}": sorted(known)}
    for setting in NAMES_FILES:
        if name := str(getattr(recipe, setting, "")):
            path = Path(name)
            place = str(path.parent) if path.is_file() else name
            more = _of_results(place)
            more = more or {f"{setting} {path.name if path.exists() else name}": [_of_card(place)]}
            for origin, own in more.items():
                origins[origin] = sorted({*origins.get(origin, ()), *own})
    return origins


def _of_results(model: str) -> dict[str, list[str]]:
    """What a model of this zoo comes from, as its training noted; nothing for another's."""
    path = file_of(model, RESULTS)
    results = json.loads(path.read_text(encoding="utf-8")) if path else {}
    return dict(results.get("licences", {})) if isinstance(results, dict) else {}


def _of_card(model: str) -> str:
    path = file_of(model, "README.md")
    try:
        metadata = RepoCard.load(path, ignore_metadata_errors=True).data if path else {}
    except (yaml.YAMLError, ValueError):  # of another form than the Hub's
        metadata = {}
    return licences.of_card(metadata)
