"""Train one recipe: `discorpora train RECIPE --dataset FOLDER --output FOLDER`.

`accelerate launch -m zoo.train ...` trains in several processes.
`python -m zoo.train FILE.json` trains the assignments that a build wrote to the file.
The same command again resumes from the newest complete checkpoint, and does nothing after the end.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence

from corpora.declared import settings_help
from corpora.errors import ConfigError, DiscorporaError, require, within_memory
from zoo import options, require_extra
from zoo.declared import RECIPES, StepRecipe
from zoo.options import SWITCHES, Assignment, assigned, faults_in
from zoo.presets import read_preset, shipped
from zoo.training import job

log = logging.getLogger("zoo")

LAUNCHED = "DISCORPORA_LAUNCHED"
"""A variable of the environment, set for the processes that `_launch` starts."""
LESS_MEMORY = "raise gradient_accumulation, lower max_tokens or block_tokens, or set recompute = "
LESS_MEMORY += "true (those that the recipe has); the same command then goes to another --output"
USAGE = "discorpora train RECIPE --dataset FOLDER --output FOLDER [--key value ...]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; an expected error is one short message."""
    return options.run(arguments, _help, train, train_assignment)


def train(words: Sequence[str]) -> None:
    """Train the recipe that `words` name: the command line without the program's name."""
    if not words or words[0].startswith("-"):
        raise ConfigError("no recipe given", hint=USAGE)
    preset = read_preset(words[0])
    values = options.parse_flags(words[1:], f"discorpora train {words[0]}", preset.kind)
    settings = preset.recipe(values).model_dump(mode="json")
    train_assignment(Assignment(reference=preset.place, settings=settings))


def train_assignment(assignment: Assignment) -> None:
    """Train the recipe of `assignment`, and write the model to the recipe's `output`. It does
    nothing if the same model is there already. With several `processes` it starts them."""
    preset = read_preset(assignment.reference)
    recipe = preset.kind.of(assignment.settings)
    for name in recipe.report_to if isinstance(recipe, StepRecipe) else ():
        require(name, "report" if name == "tensorboard" else name, f"for report_to = {name}")
    require_extra("to train a model")
    run = job.planned(preset, recipe)
    if job.already_made(run):
        log.info("%s is already made", recipe.output)
        return
    processes = recipe.processes if isinstance(recipe, StepRecipe) else 1
    if processes > 1 and not {"WORLD_SIZE", LAUNCHED} & os.environ.keys():
        try:
            _launch(assignment, processes, recipe.threads)
        except DiscorporaError:
            job.leave(run)
            raise
        return
    with job.working(run):
        if not run.finished:
            _prepare_torch(recipe.threads, recipe.deterministic)
            with within_memory(run.name, LESS_MEMORY):
                recipe.train(run)
    log.info("the model is in %s", recipe.output)


def _launch(assignment: Assignment, processes: int, threads: int) -> None:
    """Train an assignment in several processes, each on its own GPU, with `accelerate`. Raises
    `ConfigError` for fewer GPUs than processes, and `DiscorporaError` if one process fails."""
    import torch

    gpus = torch.accelerator.device_count()
    if gpus < processes:
        raise ConfigError(
            f"processes = {processes}, and this machine has {gpus} GPUs",
            hint="a process needs a GPU of its own: lower processes",
            field="processes",
        )
    launch = ["--multi_gpu", "--quiet", "--num_machines", "1", "--mixed_precision", "no"]
    launch += ["--dynamo_backend", "no", "--num_processes", str(processes)]
    # Port 0 means any free port: a build starts several trainings.
    launch += ["--num_cpu_threads_per_process", str(threads), "--main_process_port", "0"]
    with assigned([assignment]) as file:
        command = ["-m", "accelerate.commands.launch", *launch, "-m", "zoo.train", str(file)]
        environment = {**os.environ, LAUNCHED: "1"}
        if subprocess.run([sys.executable, *command], env=environment, check=False).returncode:
            for fault in filter(None, faults_in(file)):
                raise DiscorporaError(fault.problem, hint=fault.hint, field=fault.field)
            raise DiscorporaError(f"one of the {processes} processes died; above is what it said")


def _help(words: Sequence[str]) -> str:
    """Return the help text, with the settings of the recipe if `words` start with one."""
    about = f"recipes: {', '.join([*shipped(), *RECIPES])}\n"
    about += "for a recipe's settings: discorpora train RECIPE --help\n"
    if not words[0].startswith("-"):
        preset = read_preset(words[0])
        about = f"{preset.about.title}\n\nsettings:\n{settings_help(preset.kind, preset.settings)}"
    return f"usage: {USAGE}\n\n{about}\noptions:\n{SWITCHES}"


def _prepare_torch(threads: int, deterministic: bool) -> None:
    """Set the number of threads and deterministic kernels for the whole process."""
    # cuBLAS reads it at its start: with a fixed work space its sums are repeatable.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging as transformers_logging

    if not sys.stderr.isatty():
        transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    # By default torch would then fill every new tensor with NaN. That guards against reading memory
    # before it is written, which nothing here does, and takes up to a quarter of a step on a CPU.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
