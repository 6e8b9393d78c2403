"""Suite `superglue`: RTE, COPA and ReCoRD by fine-tuning (Iter et al. 2020, 3.2 and A.4).

Steps, epochs, learning rates, warm-up and length are the paper's; the batch (32) and the limit of
25 candidates in training are those of its released code, since the paper has none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoTokenizer

from corpora.errors import ConfigError, InputError, nearest
from zoo.backbones import max_positions, pooling_of, warn_of_padding
from zoo.evaluate import bootstrap
from zoo.evaluate.classification import model_type
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.evaluate.superglue_data import (
    TASKS,
    Example,
    Task,
    exact_match,
    examples_of,
    fewer_candidates,
    word_f1,
)
from zoo.evaluate.superglue_train import PairModel, Pairs, choose, fine_tune
from zoo.modeling import best_device, load_backbone, uses_bf16
from zoo.training.data import (
    SPLITS,
    Dataset,
    no_split,
    open_dataset,
    read_manifest,
    split_spec,
    spread,
)

if TYPE_CHECKING:
    from zoo.evaluate import Request
    from zoo.evaluate.suites import SuperGlue

log = logging.getLogger("zoo")


def evaluate(options: SuperGlue, request: Request) -> Result:
    """Accuracy (ReCoRD: exact match and F1 too) on the validation set, as the paper reports."""
    folder, config = split_spec(request.data)
    opened = {name: open_dataset(folder, name) for name in _tasks(folder, config, options.tasks)}
    splits = {name: _split(data, request.split) for name, data in opened.items()}
    found = {
        TASKS[name].name: _task(TASKS[name], data, splits[name], request, options)
        for name, data in opened.items()
    }
    outcomes = [one for task in found.values() for one in task.pop("outcomes")]
    first = next(iter(opened.values()))
    rows = {name: dict(data.describe()["rows"]) for name, data in opened.items()}
    return Result(
        model={"name": Path(request.model).name, "type": model_type(request.model)},
        dataset={**first.describe(), "config": config, "rows": rows},
        protocol=options.model_dump(exclude={"tasks", "bf16"}) | {"limit": request.limit},
        examples=sum(task["examples"] for task in found.values()),
        metrics={"tasks": found, "resampled": "rows"},
        outcomes=outcomes,
        more={"split": " ".join(dict.fromkeys(splits.values()))},
    )


def _tasks(folder: str, config: str, asked: Sequence[str]) -> list[str]:
    """The configurations to evaluate. Raises `ConfigError` for one that is no task."""
    names = [*asked] or [config] * bool(config)
    for name in names:
        if name not in TASKS:
            hint = f"{nearest(name, TASKS)}they are: {', '.join(TASKS)}"
            raise ConfigError(f"no task {name!r}", hint=hint)
    if names:
        return names
    if not Path(folder).is_dir():
        return list(TASKS)
    there = read_manifest(Path(folder))["configs"]
    found = [name for name in TASKS if name in there]
    if not found:
        raise InputError(
            "none of rte, copa, record is in this dataset",
            where=folder,
            hint="build it with the builder superglue",
        )
    return found


def _split(data: Dataset, asked: str) -> str:
    """`asked` if it has labels to be had; the tests of SuperGLUE have none.

    Raises `ConfigError` for a split that no dataset has.
    """
    if asked not in SPLITS:
        raise no_split(asked, data.splits, data.where)
    table = data.splits.get(asked)
    return asked if asked != "test" and table is not None and table.num_rows else "validation"


def _task(
    task: Task, data: Dataset, split: str, request: Request, options: SuperGlue
) -> dict[str, Any]:
    """Train once for each seed, and score."""
    changed = {name: getattr(options, name) for name in ("max_steps", "learning_rate")}
    task = replace(task, **{name: value for name, value in changed.items() if value})
    question = options.copa_question
    train = [
        fewer_candidates(example, options.max_candidates)
        for example in examples_of(task.config, data["train"], copa_question=question)
    ]
    rows = spread(data[split], request.limit)
    examples = examples_of(task.config, rows, copa_question=question)
    runs = [
        _run(task, train, examples, request, options, request.seed + number)
        for number in range(options.seeds)
    ]
    return {"examples": len(examples), **_scores(task, examples, runs, request.seed)}


def _run(
    task: Task,
    train: Sequence[Example],
    examples: Sequence[Example],
    request: Request,
    options: SuperGlue,
    seed: int,
) -> dict[str, Any]:
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(request.model)
    backbone = load_backbone(request.model, {})
    warn_of_padding(backbone)
    limit = max_positions(backbone.config) or options.max_length
    pairs = Pairs(tokenizer, min(options.max_length, limit), task.classes)
    model = PairModel(backbone, pooling_of(backbone.config, tokenizer), task.classes or 1)
    checkpoints = fine_tune(
        model.to(best_device()),
        train,
        examples,
        pairs,
        task,
        seed=seed,
        batch_size=options.batch,
        eval_batch_size=request.batch_size,
        bf16=uses_bf16(options.bf16),
    )
    return {
        "chosen": choose(model, examples, pairs, request.batch_size),
        "checkpoints": checkpoints,
        "seed": seed,
    }


def _scores(
    task: Task, examples: Sequence[Example], runs: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, Any]:
    """The last step's figures; the best checkpoint beside it, picked on these same examples."""
    right = np.array(
        [[c in e.right for c, e in zip(r["chosen"], examples, strict=True)] for r in runs], float
    )
    if len(examples[0].pairs) == 1:  # of the most frequent class
        classes = np.array([example.right[0] for example in examples])
        chance = float(np.bincount(classes).max() / len(classes))
    else:  # of a candidate chosen at random
        chance = float(np.mean([len(set(e.right)) / len(e.pairs) for e in examples]))
    found: dict[str, Any] = {
        "accuracy": _figure(right, seed, task.name),
        "chance": chance,
        "outcomes": [_outcomes(task.name, right)],
    }
    if task.config == "record":
        for name, measure in (("em", exact_match), ("f1", word_f1)):
            each = [
                [measure(e.texts[c], e.answers) for c, e in zip(r["chosen"], examples, strict=True)]
                for r in runs
            ]
            found[name] = _figure(np.array(each), seed, f"{task.name}.{name}")
            found["outcomes"].append(_outcomes(f"{task.name} {name.upper()}", np.array(each)))
    best = [max(point["accuracy"] for point in run["checkpoints"]) for run in runs]
    found["best_checkpoint"] = float(np.mean(best))
    found["runs"] = [{"seed": run["seed"], "checkpoints": run["checkpoints"]} for run in runs]
    return found


def _outcomes(column: str, each: np.ndarray) -> Outcomes:
    return Outcomes(column, numbered(each.shape[1]), each.mean(0))


def _figure(each: np.ndarray, seed: int, name: str) -> dict[str, Any]:
    """Mean over seeds and examples of `each [seeds, examples]`; the interval is over examples."""
    means = each.mean(1)
    ones = np.ones(each.shape[1])
    return {
        "value": float(means.mean()),
        **bootstrap.of_ratio(each.mean(0), ones, seed=seed, name=name),
        "deviation": float(means.std(ddof=1)) if len(means) > 1 else None,
    }
