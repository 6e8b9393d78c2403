"""The model card: README.md of a model folder, in the form that the Hub reads."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from corpora.store.atomic import write_text

if TYPE_CHECKING:
    from zoo.presets import About
    from zoo.training.job import Job

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
    results: Mapping[str, Any],
    usage: str,
    pipeline: str = "text-classification",
    languages: Sequence[str] = (),
) -> None:
    """Write the card, then results.json, of the model that is already in `job.folder`.

    `results` are the run's own: model_type, dataset, parameters, metrics, headline_name, headline.
    `languages` are the dataset's: none where it does not say them.
    """
    from zoo.training.job import write_results

    seeded = {
        **results,
        "recipe": job.name,
        "seed": job.recipe.seed,
        "notes": job.notes,
        "trained_on": job.trained_on,
    }
    text = render(job.about, seeded, usage, pipeline, languages)
    write_text(job.folder / "README.md", text)
    write_results(job, results)
    log.info("%s: %s", results["headline_name"], results["headline"])


def render(
    about: About,
    results: Mapping[str, Any],
    usage: str,
    pipeline: str,
    languages: Sequence[str],
) -> str:
    """The card's text from a recipe's `[about]` and the run's results."""
    data = results["dataset"]
    rows = ", ".join(f"{split} {count:,}" for split, count in data["rows"].items())
    notes = "".join(f"- {note}\n" for note in results["notes"])
    return TEMPLATE.format(
        **{key: value or "-" for key, value in about if key not in ("dataset", "tier")},
        pipeline=pipeline,
        languages=yaml.safe_dump([*languages], default_flow_style=True).strip(),
        licence=data["licence_hub"] or data["licence"] or "unknown",
        model_type=results["model_type"],
        recipe=results["recipe"],
        data=f"{data['name']}, configuration {data['config']}, revision `{data['revision']}`",
        rows=rows,
        trained_on=results["trained_on"],
        parameters=results["parameters"],
        seed=results["seed"],
        headline_name=results["headline_name"],
        headline=results["headline"],
        notes=f"Of the run:\n\n{notes}\n" if notes else "",
        usage=usage.strip(),
    )
