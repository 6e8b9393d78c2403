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
import tempfile
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.declared import anchored, portable
from corpora.errors import ConfigError, DiscorporaError
from corpora.processes import BUILD_VARIABLE
from workflows import devices, usage
from workflows.tables import BuildFile, Evaluation, Model
from zoo.declared import BackboneRecipe, Recipe, Suite
from zoo.evaluate import SUITES
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
LAST_LINES = 1000
"""Of what a program prints: its error message is among them."""
ENVIRONMENT = {
    # Threads that wait for each other must not spin on cores that others use.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    # The recipe says these, whatever the user's own environment says.
    "ACCELERATE_MIXED_PRECISION": "no",
    "ACCELERATE_DYNAMO_BACKEND": "NO",
}
OPTION = re.compile(r"--([a-z_]+)|\b([a-z_]+) = ")
"""The key of an option of a command line, or of a line of a recipe, in a message."""


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


def train(
    model: Model, name: str, dataset: Path, base: Path | None, output: Path, chosen: Chosen
) -> None:
    """Train `model` into the folder `output`; what a killed run left there is taken up again.

    `name` is the model's in the build file, `base` the folder of the model whose encoder it
    starts from. Raises `DiscorporaError` with what the recipe says.
    """
    recipe, preset = chosen.recipe, chosen.preset
    words = [str(preset.file.path) if preset.file else preset.reference]
    words += options({"dataset": str(dataset), "output": str(output)})
    if model.config:
        words += ["--dataset_config", model.config]
    words += options({"seed": recipe.seed, "threads": recipe.threads})
    if base:
        words += ["--backbone", str(base)]
    words += options({key: chosen.table[key] for key in model.settings})
    together = devices.processes(recipe, model.devices)
    if together > 1:
        words += ["--processes", str(together)]
    command, reason, _ = _run("zoo.train", words, recipe.threads, number=together)
    if reason:
        known = type(recipe).model_fields.keys() - OF_THE_BUILD.keys()
        raise _failure(reason, command, f"models.{name}", known)


@dataclass(frozen=True)
class Judged:
    """One evaluation of a model: `plan` on `data`, its result in the folder `folder`."""

    plan: Evaluation
    data: str
    folder: Path


def evaluate(
    jobs: Sequence[Judged], name: str, trained: Path, build: BuildFile
) -> list[dict[str, Any] | DiscorporaError]:
    """Evaluate the trained model `name` in one process, which loads the libraries once.

    Of each job the counts for its manifest, or the `DiscorporaError` with what the suite says: a
    job that fails stops none of the others.
    """
    listed = []
    for job in jobs:
        given = {
            "model": str(trained),
            "name": name,
            "data": job.data,
            "json": str(job.folder / RESULTS),
            "threads": build.threads,
            "seed": build.seed,
            "limit": job.plan.limit,
        }
        suite = anchored(job.plan.suite, build.folder)
        listed.append([suite, *options(given), *options(job.plan.settings)])
    _, reason, answer = _run("zoo.evaluate", ["--jobs"], build.threads, json.dumps(listed))
    reasons = [reason] * len(jobs) if reason else json.loads(answer)
    results: list[dict[str, Any] | DiscorporaError] = []
    for job, words, reason in zip(jobs, listed, reasons, strict=True):
        if reason:
            plans = [key for key, entry in build.evaluations.items() if entry == job.plan]
            table = f"evaluations.{plans[0] if plans else 'NAME'}"
            command = [sys.executable, "-m", "zoo.evaluate", *words]
            results.append(_failure(reason, command, table, SUITES.find(words[0]).model_fields))
        else:
            metrics = json.loads((job.folder / RESULTS).read_text(encoding="utf-8"))
            results.append({"examples": metrics.get("examples")})
    return results


def _run(
    module: str, words: Sequence[str], threads: int, text: str = "", number: int = 1
) -> tuple[list[str], str, str]:
    """Run `python -m MODULE WORDS` with `text` as its standard input; its log goes through.

    It has `number` of the GPUs to itself, where there are any. Returns the command, why it failed
    ("" if it did not), and its standard output.
    """
    command = [sys.executable, "-m", module, *words]
    log.debug("%s", " ".join(command))
    own = {BUILD_VARIABLE: str(os.getpid()), "OMP_NUM_THREADS": str(threads)}
    tail = deque[str](maxlen=LAST_LINES)
    with (
        devices.held(number) as gpus,
        tempfile.TemporaryFile("w+") as source,
        tempfile.TemporaryFile("w+") as answer,
    ):
        source.write(text)
        source.seek(0)
        with subprocess.Popen(
            command,
            env={**os.environ, **ENVIRONMENT, **own, **gpus},
            stdin=source,
            stdout=answer,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("error: "):
                    tail.clear()
                tail.append(line.rstrip())
                if said := LOG_LINE.match(line):
                    log.info("  %s", said[1].rstrip())
            _, status, used = os.wait4(process.pid, 0)  # `wait` does not tell its peak memory
            process.returncode = os.waitstatus_to_exitcode(status)
        usage.note_child(used.ru_maxrss)
        answer.seek(0)
        given = answer.read()
    if not process.returncode:
        return command, "", given
    lines = list(filter(None, tail))
    if not (tail and tail[0].startswith("error: ")):
        lines = lines[-5:]
        if (killed_by := -process.returncode) > 0:
            often = " (often for too little memory)" if killed_by == signal.SIGKILL else ""
            lines.insert(0, f"the process was killed by signal {killed_by}{often}")
    reason = "\n".join(lines).removeprefix("error: ")
    return command, reason or "the process was stopped", given


def _failure(
    reason: str, command: Sequence[str], table: str, own: Collection[str]
) -> DiscorporaError:
    """The cause first, the command last; `table` of the build file holds the settings `own`."""
    cause, *rest = reason.splitlines()
    advice = [line.strip() for line in rest if line.strip()]
    named = dict.fromkeys(option or key for option, key in OPTION.findall("\n".join(advice)))
    if keys := ", ".join(key for key in named if key in own):
        advice.append(f"in the build file: {keys} among the settings of [{table}]")
    shown = shlex.join(["python", *command[1:]])
    hint = "\n  ".join([*advice, f"to see all that it prints: {shown}"])
    return DiscorporaError(cause, hint=hint)


def options(settings: Mapping[str, Any], table: str = "") -> list[str]:
    """Settings as the options of a command line; those of a table one by one, `--table.key`."""
    words: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            words += options(value, f"{table}{key}.")
        else:
            words += [f"--{table}{key}", value if isinstance(value, str) else json.dumps(value)]
    return words
