"""The end of a recipe: the model, its card (README.md, as the Hub reads it) and its results."""

from __future__ import annotations

import logging
from typing import Any

import yaml
from transformers import PreTrainedModel

from corpora.code import versions
from corpora.store.atomic import write_json, write_text
from zoo.modeling import parameter_count, save_model
from zoo.training.data import Dataset
from zoo.training.job import LIBRARIES, RESULTS, Job

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

All figures with their intervals, the settings and the versions are in `results.json`. The
weights were trained on text under the licence {licence}: see the data's card before you publish.
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
    licence = described["licence_hub"] or described["licence"] or "unknown"
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
        licence=licence,
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
            "parameters": parameter_count(model),
            **results,
            "headline_name": headline[0],
            "headline": headline[1],
        },
    )
    log.info("%s: %s", *headline)
