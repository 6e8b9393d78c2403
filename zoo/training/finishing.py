"""The end of a recipe: the model, its card (README.md, as the Hub reads it) and its results."""

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
"""What figures are called on the Hub."""


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
    """Save the trained model, write its card, and results.json last: then the run is finished.

    `headline` is the name and the text of the figure that stands first, `metrics` what was measured
    by split; `results` say what became of the data (data) and of the steps (training).
    """
    save_model(model, tokenizer, job.folder)
    about, described, name = job.about, dataset.describe(), model.config.model_type
    origins = origins_of(job.recipe, dataset)
    combined = licences.combine(known for own in origins.values() for known in licences.known(own))
    settings = {key: job.identity.get(key, own) for key, own in job.recipe.identity().items()}
    base = str(settings.get("backbone", ""))
    family = family_of(model.config)
    figures = figures_of(metrics, dataset, family.task)
    metadata = ModelCardData(
        library_name=family.library,
        pipeline_tag=family.task,
        license=combined.hub,
        license_name=combined.id.lower() if combined.hub == "other" else None,
        language=[code for code in dataset.manifest.get("languages", ()) if is_code(code)],
        base_model=base or None,
        datasets=[dataset.name],
        metrics=sorted({figure.metric_type for figure in figures}),
        tags=["discourse", "discorpora", name],
        model_name=about.title or job.name,
        eval_results=figures,
    )
    sums = " (a folder: manifest.json has the sums of its files)"
    folder = sums if "backbone_files" in job.identity else ""
    text = TEMPLATE.format(
        metadata=yaml_of(metadata.to_dict()),
        title=about.title or "-",
        objective=about.objective or "-",
        paper=about.paper or "-",
        published=about.published or "-",
        verdict=combined,
        origins="\n".join(
            f"| {markdown(origin)} | {markdown(', '.join(own))} |"
            for origin, own in origins.items()
        ),
        recipe=job.name,
        backbone=f"| backbone | `{markdown(base)}`{folder} |\n" if base else "",
        data=f"{markdown(dataset.name)}, configuration {markdown(dataset.config)}, revision "
        f"`{markdown(dataset.revision)}`",
        rows=", ".join(f"{split} {count:,}" for split, count in described["rows"].items()),
        trained_on=job.trained_on,
        parameters=parameter_count(model),
        seed=job.recipe.seed,
        headline_name=headline[0],
        headline=headline[1],
        differs=_listed("Different from the paper", (*job.recipe.differs, *about.differs)),
        notes=_listed("Of the run", job.notes),
        usage=usage(model.config),
    )
    write_text(job.folder / "README.md", text)
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
    """The test accuracy of a scorer with the pairs that it is of; those left out are noted too.

    `metrics` are those of `zoo.evaluate.scores.Ranking`, by split.
    """
    lost = {split: part["identical"] for split, part in metrics.items()}
    job.note_counts("pairs left out of the figures, whose two texts the cut made equal", lost)
    test = metrics["test"]
    accuracy, identical = test["accuracy"], test["identical"]
    beside = [f"{amount(identical, 'pair')} identical after the cut left out"] if identical else []
    if accuracy["ties"]:
        beside.append(f"{amount(accuracy['ties'], 'tie')} counted one half")
    more = f" ({', '.join(beside)})" if beside else ""
    return f"{accuracy['value']:.3f} over {amount(test['pairs'], 'pair')}{more}"


def _listed(what: str, lines: Sequence[str]) -> str:
    listed = "".join(f"- {markdown(line)}\n" for line in lines)
    return f"{what}:\n\n{listed}\n" if lines else ""


def figures_of(metrics: Mapping[str, Any], dataset: Dataset, task: str | None) -> list[EvalResult]:
    """The figures for the card's model-index: of the test, or of validation where it is judged."""
    judged = [split for split in metrics if not split.startswith("validation")] or [*metrics]
    return [
        EvalResult(
            task_type=task or "text-classification",
            dataset_type=dataset.name,
            dataset_name=dataset.name,
            dataset_config=dataset.config,
            dataset_revision=dataset.revision,
            dataset_split=split.partition("_")[0],
            metric_type=kind,
            metric_name=f"{split} {name}",
            metric_value=round(figure["value"], 6),
        )
        for split in judged
        for name, figure in every_figure(metrics[split])
        if (kind := next((kind for kind in KINDS if kind in name), "")) and "baselines" not in name
    ]


def origins_of(recipe: Recipe, dataset: Dataset | None = None) -> dict[str, list[str]]:
    """What the weights come from, each with its licences: the data, the backbone, word vectors.

    A backbone of this zoo stands for all that it comes from itself. The licence of another, and of
    vectors, is what `license` in the metadata of the README.md beside it says, else unknown.
    """
    origins: dict[str, list[str]] = {}
    if dataset is not None:
        manifest = dataset.manifest
        own = manifest.get("licence") or {}
        known = manifest.get("licences") or [own.get("id") or licences.UNKNOWN]
        origins[f"data {dataset.name}"] = sorted(known)
    for setting in recipe.marked(Mark.PLACE):
        if name := str(getattr(recipe, setting, "")):
            path = Path(name)
            place = str(path.parent) if path.is_file() else name
            called = path.absolute().name if path.exists() else name
            more = _of_results(place) or {f"{setting} {called}": [_of_card(place)]}
            for origin, own in more.items():
                origins[origin] = sorted({*origins.get(origin, ()), *own})
    return origins


def _of_results(model: str) -> dict[str, list[str]]:
    """What a model of this zoo comes from, as its training noted; nothing for another's."""
    with suppress(InputError):  # it may be another project's file of that name
        if path := file_of(model, RESULTS):
            found = read_record(Results, path).licences
            return {origin: [*own] for origin, own in found.items()}
    return {}


def _of_card(model: str) -> str:
    path = file_of(model, "README.md")
    try:
        metadata = RepoCard.load(path, ignore_metadata_errors=True).data if path else {}
    except (yaml.YAMLError, ValueError):  # of another form than the Hub's
        metadata = {}
    return licences.of_card(metadata)
