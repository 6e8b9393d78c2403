"""Training and evaluation in processes of their own, started as a user would start them."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.declared import Where, anchored, portable
from corpora.errors import ConfigError, DiscorporaError, as_toml
from corpora.processes import BUILD_VARIABLE
from workflows import devices, usage
from workflows.tables import BuildFile, Evaluation
from zoo.declared import BackboneRecipe, Recipe, Suite
from zoo.evaluate import SUITES
from zoo.options import Assignment, Fault, assign, faults
from zoo.presets import Preset, read_preset, shipped

log = logging.getLogger("discorpora")

OF_THE_BUILD = {
    "dataset": "`dataset` of the model",
    "dataset_config": "`config` of the model",
    "output": "discorpora build --output",
    "processes": "`devices` of the model",
}
"""Settings of a recipe that its model's table says in another place."""

RESULTS = "results.json"

LOG_LINE = re.compile(r"\d\d:\d\d:\d\d (.*)")
"""A line of the program's own log, which is passed on: what libraries print is not."""
LAST_LINES = 5
"""Of what a program prints, where it dies without a word."""
ENVIRONMENT = {
    # Threads that wait for each other must not spin on cores that others use.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    # The recipe says these, whatever the user's own environment says.
    "ACCELERATE_MIXED_PRECISION": "no",
    "ACCELERATE_DYNAMO_BACKEND": "NO",
}


@dataclass(frozen=True)
class Chosen:
    """A model's recipe with all settings; `table`, those that a preset or the build file sets."""

    preset: Preset
    recipe: Recipe
    table: Mapping[str, Any]


def chosen_recipe(build: BuildFile, name: str) -> Chosen:
    """The recipe of the model `name` of a build file, with its settings.

    The build's seed and threads go over the preset's, the model's own settings over both. Raises
    `ConfigError` for a recipe or a setting that is not there, a value that its class rejects, and
    a setting that is the build's to choose. Loads no torch.
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
    own = {key: build.placed(value) for key, value in model.settings.items()}
    for key in own:
        if key in OF_THE_BUILD or (key == "backbone" and model.base):
            raise ConfigError(
                f"{key!r} cannot be among the settings of the recipe {model.recipe}",
                where=build.where(*keys, "settings"),
                hint=f"it follows from {OF_THE_BUILD.get(key, '`base` of the model')}",
            )
    if isinstance(own.get("objective"), str):
        own["objective"] = anchored(own["objective"], build.folder)
    usual = {"seed": build.seed, "threads": build.threads}
    places = {"dataset": "-", "output": "-"}
    if model.config:
        places["dataset_config"] = model.config
    recipe = preset.recipe({**usual, **own, **places}, build.where(*keys, "settings"))
    # A table among the settings goes over the preset's key by key.
    merged = {
        key: getattr(recipe, key)
        for key, value in own.items()
        if isinstance(value, Mapping) and isinstance(preset.settings.get(key), Mapping)
    }
    # Another class behind the same name, as in a user's file, is another model.
    module = {} if preset.name in shipped() else {"module": portable(preset.reference)}
    over = {**preset.settings, **usual, **own, **merged}
    return Chosen(preset, recipe, {"recipe": preset.name, **module, **over})


def chosen_suite(build: BuildFile, plan: Evaluation, *keys: str) -> Suite:
    """The suite of an evaluation with its options; `keys` lead to the table that names it.

    Raises `ConfigError` for a suite or an option that is not there, a value that its class
    rejects, and datasets that it was not told to evaluate.
    """
    with build.at(*keys, "suite"):
        kind = SUITES.find(anchored(plan.suite, build.folder))
    suite = kind.of(plan.settings, build.whereabouts(*keys, "settings"))
    with build.at(*keys):
        suite.check_data({name: build.builder(name).name for name in plan.datasets})
    return suite


def placed(recipe: Recipe, dataset: Path, base: Path | None, output: Path) -> Recipe:
    """A recipe with the folders that it reads and writes."""
    places = {"dataset": str(dataset), "output": str(output)}
    if base:
        places["backbone"] = str(base)
    return recipe.of({**recipe.model_dump(mode="json"), **places})


def train(
    build: BuildFile, name: str, dataset: Path, base: Path | None, output: Path, chosen: Chosen
) -> None:
    """Train the model `name` of a build file into the folder `output`, in a process of its own.

    `base` is the folder of the model whose encoder it starts from. What a killed run left is taken
    up again. Raises `DiscorporaError` with what the recipe says, and the line of the setting.
    """
    settings = placed(chosen.recipe, dataset, base, output).model_dump(mode="json")
    together = devices.processes(chosen.recipe, build.model(name).devices)
    settings |= {"processes": together} if together > 1 else {}
    file = kept_settings(output)
    assign(file, Assignment(reference=chosen.preset.place, settings=settings))
    fault, *_ = _run("zoo.train", file, chosen.recipe.threads, 1, gpus=together)
    if fault:
        inside = () if fault.field in OF_THE_BUILD else ("settings",)
        raise _failure(fault, "zoo.train", file, build.whereabouts("models", name, *inside))
    file.unlink()


def kept_settings(folder: Path) -> Path:
    """Where the settings of a stage that failed are kept, to run it again."""
    return folder.with_name(f"{folder.name}.settings.json")


@dataclass(frozen=True)
class Judged:
    """One evaluation of a model: `plan` on `data`, its result in the folder `folder`.

    `keys` lead to the table of the build file that names its suite; `settings` is where its
    settings are kept if it fails.
    """

    plan: Evaluation
    suite: Suite
    keys: tuple[str, ...]
    data: str
    folder: Path
    settings: Path


def evaluate(
    jobs: Sequence[Judged], name: str, trained: Path, build: BuildFile
) -> list[dict[str, Any] | DiscorporaError]:
    """Evaluate the trained model `name` in one process, which loads the libraries once.

    Of each job the counts for its manifest, or the `DiscorporaError` with what the suite says: a
    job that fails stops none of the others.
    """
    asked = []
    for job in jobs:
        request = {
            "model": str(trained),
            "name": name,
            "data": job.data,
            "json": str(job.folder / RESULTS),
            "threads": build.threads,
            "seed": build.seed,
            "limit": job.plan.limit,
        }
        suite = anchored(job.plan.suite, build.folder)
        options = job.suite.model_dump(mode="json")
        asked.append(Assignment(reference=suite, settings=options, request=request))
    file = jobs[0].folder.with_suffix(".json")
    assign(file, *asked)
    results: list[dict[str, Any] | DiscorporaError] = []
    answers = _run("zoo.evaluate", file, build.threads, len(jobs))
    for job, assignment, fault in zip(jobs, asked, answers, strict=True):
        job.settings.unlink(missing_ok=True)
        if fault:
            request = {**assignment.request, "json": ""}
            assign(job.settings, assignment.model_copy(update={"request": request}))
            inside = ("settings",) if fault.field in assignment.settings else ()
            where = build.whereabouts(*job.keys, *inside)
            results.append(_failure(fault, "zoo.evaluate", job.settings, where))
        else:
            metrics = json.loads((job.folder / RESULTS).read_text(encoding="utf-8"))
            results.append({"examples": metrics.get("examples")})
    return results


def _run(
    module: str, file: Path, threads: int, assignments: int, gpus: int = 1
) -> Sequence[Fault | None]:
    """Run `python -m MODULE FILE` with `gpus` of the GPUs to itself; its log goes through.

    Returns why each of the `assignments` in `file` failed, None for one that did not.
    """
    command = [sys.executable, "-m", module, str(file)]
    log.debug("%s", " ".join(command))
    own = {BUILD_VARIABLE: str(os.getpid()), "OMP_NUM_THREADS": str(threads)}
    tail = deque[str](maxlen=LAST_LINES)
    with (
        devices.held(gpus) as held,
        subprocess.Popen(
            command,
            env={**os.environ, **ENVIRONMENT, **own, **held},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip():
                tail.append(line.rstrip())
            if message := LOG_LINE.match(line):
                log.info("  %s", message[1].rstrip())
        _, status, used = os.wait4(process.pid, 0)  # `wait` does not tell its peak memory
        process.returncode = os.waitstatus_to_exitcode(status)
    usage.note_child(used.ru_maxrss)
    if not process.returncode:
        return [None] * assignments
    if answers := faults(file):
        return answers
    lines = list(tail)
    if (killed_by := -process.returncode) > 0:
        often = " (often for too little memory)" if killed_by == signal.SIGKILL else ""
        lines.insert(0, f"the process was killed by signal {killed_by}{often}")
    return [Fault(problem="\n".join(lines) or "the process was stopped")] * assignments


def _failure(fault: Fault, module: str, file: Path, where: Where) -> DiscorporaError:
    """A fault with the line of the build file that sets the value; the command comes last."""
    problem, *more = fault.problem.splitlines()
    if fault.field and not problem.startswith(fault.field):
        problem = f"{fault.field} = {fault.value!r}: {problem}"
    command = shlex.join(["python", "-m", module, str(file)])
    advice = [as_toml(fault.hint)] if fault.hint else []
    hint = "\n  ".join([*more, *advice, f"to see all that it prints: {command}"])
    return DiscorporaError(problem, where=where((fault.field,)) if fault.field else "", hint=hint)
