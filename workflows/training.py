"""Training and evaluation, each in a process of its own: `python -m zoo.train`, `zoo.evaluate`."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.declared import Where, with_absolute_path, without_folders
from corpora.errors import ConfigError, DiscorporaError, as_toml
from corpora.processes import BUILD_VARIABLE
from workflows import console, devices, usage
from workflows.tables import BuildFile, Evaluation
from zoo.declared import BackboneRecipe, Recipe, Suite
from zoo.evaluate import SUITES
from zoo.options import Assignment, Fault, assigned, faults_in
from zoo.presets import Preset, over, read_preset, shipped

log = logging.getLogger("discorpora")

SET_BY_BUILD = {
    "dataset": "`dataset` of the model",
    "dataset_config": "`config` of the model",
    "output": "discorpora build --output",
    "processes": "`devices` of the model",
}
"""Settings that the table `settings` of a model may not have, and where each comes from."""

RESULTS = "results.json"

LOG_LINE = re.compile(r"\d\d:\d\d:\d\d (.*)")
"""A line of discorpora's own log, which the build shows; it hides what libraries print."""
ENVIRONMENT = {
    # Threads that wait for each other must not spin on cores that others use.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    # The recipe says these, whatever the user's own environment says.
    "ACCELERATE_MIXED_PRECISION": "no",
    "ACCELERATE_DYNAMO_BACKEND": "NO",
}


@dataclass(frozen=True)
class RecipeChoice:
    """A model's recipe with all settings; `table` has only those of a preset or build file."""

    preset: Preset
    recipe: Recipe
    table: Mapping[str, Any]


def chosen_recipe(build: BuildFile, name: str) -> RecipeChoice:
    """Return the recipe of the model `name` of a build file, with its settings.

    The build's seed and threads replace those of the preset, and the model's settings replace both.
    Raises `ConfigError` for an unknown recipe or setting, for a value that the recipe's class
    rejects, and for a setting that only the build may set. Loads no torch.
    """
    model, keys = build.model(name), ("models", name)
    with build.at(*keys, "recipe"):
        preset = read_preset(model.recipe, build.folder)
    if model.base and not issubclass(preset.kind, BackboneRecipe):
        raise ConfigError(
            f"{model.base!r}: the recipe {model.recipe} starts from no other model",
            where=build.where(*keys, "base"),
            hint="leave out `base`, or take a recipe with the setting `backbone`",
        )
    _check_dataset(build, name, preset.kind)
    # Check and complete the settings.
    settings = {key: build.placed(value) for key, value in model.settings.items()}
    for key in settings:
        if key in SET_BY_BUILD or (key == "backbone" and model.base):
            raise ConfigError(
                f"{key!r} cannot be among the settings of the recipe {model.recipe}",
                where=build.where(*keys, "settings"),
                hint=f"it follows from {SET_BY_BUILD.get(key, '`base` of the model')}",
            )
    if isinstance(settings.get("objective"), str):
        settings["objective"] = with_absolute_path(settings["objective"], build.folder)
    defaults = {"seed": build.seed, "threads": build.threads}
    places = {"dataset": "-" if model.dataset else "", "output": "-"}
    if model.config:
        places["dataset_config"] = model.config
    recipe = preset.recipe({**defaults, **settings, **places}, build.where(*keys, "settings"))
    # A user's class of the same name makes another model, so the module is part of the identity.
    module = {} if preset.name in shipped() else {"module": without_folders(preset.reference)}
    table = over({**preset.settings, **defaults}, settings)
    return RecipeChoice(preset, recipe, {"recipe": preset.name, **module, **table})


def _check_dataset(build: BuildFile, name: str, kind: type[Recipe]) -> None:
    """Raise `ConfigError` if the recipe trains and the model has no dataset, or vice versa."""
    model = build.model(name)
    if kind.trains and not model.dataset:
        raise ConfigError(
            f"no dataset to train on, which the recipe {model.recipe} needs",
            where=build.where("models", name),
            hint=f'give dataset = "NAME", one of: {", ".join(build.datasets) or "none here"}',
        )
    keys = [key for key in ("dataset", "config", "base", "suite") if getattr(model, key)]
    if not kind.trains and keys:
        raise ConfigError(
            f"the recipe {model.recipe} trains nothing, so it takes no `{keys[0]}`",
            where=build.where("models", name, keys[0]),
            hint="remove the key; to judge the model, name it in [evaluations.NAME]",
        )


def chosen_suite(build: BuildFile, plan: Evaluation, *keys: str) -> Suite:
    """Return the suite of an evaluation with its options; `keys` lead to the table that names it.

    Raises `ConfigError` for an unknown suite or option, for a value that the suite's class rejects,
    and for datasets that do not fit the options.
    """
    with build.at(*keys, "suite"):
        kind = SUITES.find(with_absolute_path(plan.suite, build.folder))
    suite = kind.of(plan.settings, build.whereabouts(*keys, "settings"))
    with build.at(*keys):
        if not plan.data:
            suite.check_data({name: build.builder(name).name for name in plan.datasets})
    return suite


def with_folders(recipe: Recipe, dataset: Path | None, base: Path | None, output: Path) -> Recipe:
    """Return the recipe with the folders of its dataset, of its base model, and for its output."""
    places = {"dataset": str(dataset or ""), "output": str(output)}
    if base:
        places["backbone"] = str(base)
    return recipe.of({**recipe.model_dump(mode="json"), **places})


def train(
    build: BuildFile,
    name: str,
    dataset: Path | None,
    base: Path | None,
    output: Path,
    choice: RecipeChoice,
) -> None:
    """Train the model `name` of a build file into the folder `output`, in a process of its own.

    `base` is the folder of the model whose encoder it starts from. A killed run is continued from
    its checkpoints. Raises `DiscorporaError` with the recipe's message and the setting's line.
    """
    settings = with_folders(choice.recipe, dataset, base, output).model_dump(mode="json")
    gpus = devices.process_count(choice.recipe, build.model(name).devices)
    settings |= {"processes": gpus} if gpus > 1 else {}
    assignment = Assignment(reference=choice.preset.place, settings=settings)
    (fault,) = _run("zoo.train", [assignment], choice.recipe.threads, gpus=gpus)
    if fault:
        subtable = () if fault.field in SET_BY_BUILD else ("settings",)
        raise _failure(fault, build.whereabouts("models", name, *subtable))


@dataclass(frozen=True)
class EvaluationJob:
    """One evaluation of a model, by the suite of `plan`; its result goes into `folder`.

    `data` is the path or Hub id that the suite reads. `keys` lead to the table of the build file
    that names the suite.
    """

    plan: Evaluation
    keys: tuple[str, ...]
    data: str
    folder: Path


def evaluate(
    jobs: Sequence[EvaluationJob], name: str, trained: Path, build: BuildFile
) -> list[dict[str, Any] | DiscorporaError]:
    """Evaluate the model `name`, trained into the folder `trained`, in one process for all jobs.

    Returns for each job the counts for its manifest, or a `DiscorporaError` with the suite's
    message: the other jobs run all the same. One process loads the libraries only once.
    """
    assignments = []
    file = chosen_recipe(build, name).recipe.file
    for job in jobs:
        request = {
            "model": str(trained / file),
            "name": name,
            "data": job.data,
            "json": str(job.folder / RESULTS),
            "threads": build.threads,
            "seed": build.seed,
            "limit": job.plan.limit,
        }
        reference = with_absolute_path(job.plan.suite, build.folder)
        settings = chosen_suite(build, job.plan, *job.keys).model_dump(mode="json")
        assignments.append(Assignment(reference=reference, settings=settings, request=request))
    results: list[dict[str, Any] | DiscorporaError] = []
    faults = _run("zoo.evaluate", assignments, build.threads)
    for job, assignment, fault in zip(jobs, assignments, faults, strict=True):
        if fault:
            subtable = ("settings",) if fault.field in assignment.settings else ()
            results.append(_failure(fault, build.whereabouts(*job.keys, *subtable)))
        else:
            metrics = json.loads((job.folder / RESULTS).read_text(encoding="utf-8"))
            results.append({"examples": metrics.get("examples")})
    return results


def _run(
    module: str, assignments: Sequence[Assignment], threads: int, gpus: int = 1
) -> list[Fault | None]:
    """Run `python -m MODULE FILE.json`, with `gpus` GPUs for itself, and pass on its log lines.

    FILE.json holds the assignments. Returns for each why it failed, or None if it did not.
    """
    # Start the process, and pass on its log.
    variables = {BUILD_VARIABLE: str(os.getpid()), "OMP_NUM_THREADS": str(threads)}
    tail = deque[str](maxlen=5)
    with (
        assigned(assignments) as file,
        devices.locked_gpus(gpus) as gpu_variables,
        subprocess.Popen(
            [sys.executable, "-m", module, str(file)],
            env={**os.environ, **ENVIRONMENT, **variables, **gpu_variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stderr is not None
        for line in map(str.rstrip, process.stderr):
            tail.extend([line] if line else [])
            match = LOG_LINE.match(line)
            if match or console.debugging():
                log.info("  %s", match[1] if match else line)
        _, status, usage_of_process = os.wait4(
            process.pid, 0
        )  # `wait` does not tell its peak memory
        process.returncode = os.waitstatus_to_exitcode(status)
        usage.note_child(usage_of_process.ru_maxrss)
        faults = faults_in(file)
    if any(faults) or not process.returncode:
        return faults
    # A process that fails without saying why: its last lines are the reason.
    lines = list(tail)
    if (killed_by := -process.returncode) > 0:
        often = " (often for too little memory)" if killed_by == signal.SIGKILL else ""
        lines.insert(0, f"the process was killed by signal {killed_by}{often}")
    return [Fault(problem="\n".join(lines) or "the process was stopped")] * len(assignments)


def _failure(fault: Fault, where: Where) -> DiscorporaError:
    """Return the error for a fault; `where` gives the line of the build file that sets a field."""
    problem, *more = fault.problem.splitlines()
    if fault.field and not problem.startswith(f"{fault.field} ="):
        problem = f"{fault.field} = {fault.value!r}: {problem.removeprefix(f'{fault.field}: ')}"
    advice = as_toml(fault.hint) or "to see all of its log: discorpora --debug build ..."
    place = where((fault.field,)) if fault.field else ""
    return DiscorporaError(problem, where=place, hint="\n  ".join([*more, advice]))
