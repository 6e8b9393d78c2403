"""The end of a training: the model's files, its card (README.md) and its results.json."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCardData, RepoCard
from transformers import PreTrainedModel

from corpora import licences
from corpora.code import versions
from corpora.errors import InputError, amount
from corpora.escape import markdown
from corpora.escape import yaml as yaml_of
from corpora.languages import is_code
from corpora.outside import read_record
from corpora.store.atomic import write_json, write_text
from corpora.store.manifest import Results
from zoo import file_of
from zoo.declared import Mark, Recipe
from zoo.figures import every_figure
from zoo.folders import family_of, usage
from zoo.modeling import parameter_count, save_model
from zoo.training.data import Dataset
from zoo.training.job import LIBRARIES, RESULTS, Job
from zoo.training.results import trained_on

log = logging.getLogger("zoo")

TEMPLATE = """\
---
{metadata}
---

# {title}

{objective}. Method: {paper}.

| | |
|---|---|
| recipe | `{recipe}` |
{backbone}| data | {data} |
| rows of the data | {rows} |
| trained on | {trained_on:,} examples |
| parameters | {parameters:,} |
| seed | {seed} |
| {headline_name} | {headline} |
| published by the paper, on its data | {published} |

{differs}{notes}## Use

{usage}

All figures with their intervals, the settings and the versions are in `results.json`.

## Licence

{verdict}.

| the weights come from | licence |
|---|---|
{origins}
"""
KINDS = ("accuracy", "f1", "nats_a_word")
"""The Hub's metrics; a figure is one of them if its name contains the metric's."""


def finish(
    job: Job,
    model: PreTrainedModel,
    tokenizer: Any,
    dataset: Dataset,
    *,
    headline: tuple[str, str],
    metrics: Mapping[str, Any],
    **results: Any,
) -> None:
    """Write the trained model, its card and, last, results.json, which marks the run as finished.

    All go into `job.folder`. `headline` is the name and the text of the most important figure,
    `metrics` are all figures by split, and `results` are further entries of results.json, such as
    `data` and `training`.
    """
    # The weights and the tokenizer
    save_model(model, tokenizer, job.folder)
    about, described, name = job.about, dataset.describe(), model.config.model_type
    origins = origins_of(job.recipe, dataset)
    combined = licences.combine(
        licence for names in origins.values() for licence in licences.known(names)
    )
    settings = {key: job.identity.get(key, value) for key, value in job.recipe.identity().items()}
    backbone = str(settings.get("backbone", ""))
    family = family_of(model.config)
    figures = figures_of(metrics, dataset, family.task)
    # The card, with metadata for the Hub
    metadata = ModelCardData(
        library_name=family.library,
        pipeline_tag=family.task,
        license=combined.hub,
        license_name=combined.id.lower() if combined.hub == "other" else None,
        language=[code for code in dataset.manifest.get("languages", ()) if is_code(code)],
        base_model=backbone or None,
        datasets=[dataset.name],
        metrics=sorted({figure.metric_type for figure in figures}),
        tags=["discourse", "discorpora", name],
        model_name=about.title or job.name,
        eval_results=figures,
    )
    is_folder = "backbone_files" in job.identity
    remark = " (a folder: manifest.json has the sums of its files)" if is_folder else ""
    text = TEMPLATE.format(
        metadata=yaml_of(metadata.to_dict()),
        title=about.title or "-",
        objective=about.objective or "-",
        paper=about.paper or "-",
        published=about.published or "-",
        verdict=combined,
        origins="\n".join(
            f"| {markdown(origin)} | {markdown(', '.join(names))} |"
            for origin, names in origins.items()
        ),
        recipe=job.name,
        backbone=f"| backbone | `{markdown(backbone)}`{remark} |\n" if backbone else "",
        data=f"{markdown(dataset.name)}, configuration {markdown(dataset.config)}, revision "
        f"`{markdown(dataset.revision)}`",
        rows=", ".join(f"{split} {count:,}" for split, count in described["rows"].items()),
        trained_on=job.trained_on,
        parameters=parameter_count(model),
        seed=job.recipe.seed,
        headline_name=headline[0],
        headline=headline[1],
        differs=_bullets("Different from the paper", (*job.recipe.differs, *about.differs)),
        notes=_bullets("Of the run", job.notes),
        usage=usage(model.config),
    )
    write_text(job.folder / "README.md", text)
    # The results
    write_json(
        job.folder / RESULTS,
        {
            "recipe": job.name,
            "seed": job.recipe.seed,
            "settings": settings,
            "notes": job.notes,
            "trained_on": job.trained_on,
            "started_from": trained_on(str(getattr(job.recipe, "backbone", ""))),
            "versions": versions(*LIBRARIES),
            "model_type": name,
            "dataset": described,
            "licences": origins,
            "parameters": parameter_count(model),
            "metrics": metrics,
            **results,
            "headline_name": headline[0],
            "headline": headline[1],
        },
    )
    log.info("%s: %s", *headline)


def ranking_headline(job: Job, metrics: Mapping[str, Any]) -> str:
    """Return the text of a scorer's test accuracy: `0.912 over 300 pairs (2 ties ...)`. `metrics`
    are the figures of `Ranking.metrics` by split. `job` notes how many pairs were left out, since
    the cut at the maximum length made their texts equal."""
    identical_by_split = {split: part["identical"] for split, part in metrics.items()}
    note = "pairs left out of the figures, whose two texts the cut made equal"
    job.note_counts(note, identical_by_split)
    test = metrics["test"]
    accuracy, identical = test["accuracy"], test["identical"]
    remarks = [f"{amount(identical, 'pair')} identical after the cut left out"] if identical else []
    if accuracy["ties"]:
        remarks.append(f"{amount(accuracy['ties'], 'tie')} counted one half")
    in_brackets = f" ({', '.join(remarks)})" if remarks else ""
    return f"{accuracy['value']:.3f} over {amount(test['pairs'], 'pair')}{in_brackets}"


def _bullets(title: str, lines: Sequence[str]) -> str:
    """Return a Markdown list under a title; "" if there are no lines."""
    bullets = "".join(f"- {markdown(line)}\n" for line in lines)
    return f"{title}:\n\n{bullets}\n" if lines else ""


def figures_of(metrics: Mapping[str, Any], dataset: Dataset, task: str | None) -> list[EvalResult]:
    """Return the figures of test splits for the card's model-index; without one, of all splits.
    `task` is the Hub's name of the model's task. Figures of baselines are left out."""
    splits = [split for split in metrics if not split.startswith("validation")] or [*metrics]
    return [
        EvalResult(
            task_type=task or "text-classification",
            dataset_type=dataset.name,
            dataset_name=dataset.name,
            dataset_config=dataset.config,
            dataset_revision=dataset.revision,
            dataset_split=split.partition("_")[0],
            metric_type=_hub_metric(name),
            metric_name=f"{split} {name}",
            metric_value=round(figure["value"], 6),
        )
        for split in splits
        for name, figure in every_figure(metrics[split])
        if _hub_metric(name) and "baselines" not in name
    ]


def _hub_metric(name: str) -> str:
    """Return the Hub's metric that the name of a figure contains; "" if it contains none."""
    return next((kind for kind in KINDS if kind in name), "")


def origins_of(recipe: Recipe, dataset: Dataset | None = None) -> dict[str, list[str]]:
    """Return the licences of what a model's weights come from: data, backbone and word vectors.

    The keys are names such as `data NAME`. In place of a backbone of this zoo stand its own
    origins. The licence of another backbone or of vectors is `license` in the metadata of the
    README.md beside them, or unknown.
    """
    origins: dict[str, list[str]] = {}
    # Data
    if dataset is not None:
        manifest = dataset.manifest
        licence = manifest.get("licence") or {}
        data_licences = manifest.get("licences") or [licence.get("id") or licences.UNKNOWN]
        origins[f"data {dataset.name}"] = sorted(data_licences)
    # Models and vectors that it starts from
    for setting in recipe.marked(Mark.PLACE):
        if name := str(getattr(recipe, setting, "")):
            path = Path(name)
            model = str(path.parent) if path.is_file() else name
            label = f"{setting} {path.absolute().name if path.exists() else name}"
            model_origins = _origins_in_results(model) or {label: [_licence_in_card(model)]}
            for origin, names in model_origins.items():
                origins[origin] = sorted({*origins.get(origin, ()), *names})
    return origins


def _origins_in_results(model: str) -> dict[str, list[str]]:
    """Return the licences by origin in the results.json of a model; empty without such a file."""
    with suppress(InputError):  # it may be another project's file of that name
        if path := file_of(model, RESULTS):
            origins = read_record(Results, path).licences
            return {origin: [*names] for origin, names in origins.items()}
    return {}


def _licence_in_card(model: str) -> str:
    """Return the licence that the card of a model (folder or Hub id) states, or unknown."""
    path = file_of(model, "README.md")
    try:
        metadata = RepoCard.load(path, ignore_metadata_errors=True).data if path else {}
    except (yaml.YAMLError, ValueError):  # not a card of the Hub's form
        metadata = {}
    return licences.of_card(metadata)
