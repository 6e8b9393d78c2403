"""Train one recipe: `discorpora train RECIPE --dataset FOLDER --output FOLDER`.

Under `accelerate launch -m zoo.train ...` the same command uses what accelerate provides.
`python -m zoo.train FILE.json` trains what a build wrote there, with all settings.
Running it again resumes from the newest whole checkpoint; a finished run is left as it is.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence

from corpora.declared import described
from corpora.errors import ConfigError, DiscorporaError, require
from zoo import options, require_extra
from zoo.declared import RECIPES, StepRecipe
from zoo.options import SWITCHES, Assignment, assigned, faults_in
from zoo.presets import read_preset, shipped
from zoo.training import job

log = logging.getLogger("zoo")

LAUNCHED = "DISCORPORA_LAUNCHED"
"""Set for the processes that `accelerate launch` starts."""
LESS_MEMORY = "raise gradient_accumulation, lower max_tokens or block_tokens, or set recompute = "
LESS_MEMORY += "true (those that the recipe has); the same command then goes to another --output"
USAGE = "discorpora train RECIPE --dataset FOLDER --output FOLDER [--key value ...]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. An expected error is one short message."""
    return options.run(arguments, _help, train, train_assignment)


def train(words: Sequence[str]) -> None:
    """Train what `words` (the command line without the program's name) ask for."""
    if not words or words[0].startswith("-"):
        raise ConfigError("no recipe given", hint=USAGE)
    preset = read_preset(words[0])
    values = options.parse_flags(words[1:], f"discorpora train {words[0]}", preset.kind)
    settings = preset.recipe(values).model_dump(mode="json")
    train_assignment(Assignment(reference=preset.place, settings=settings))


def train_assignment(assignment: Assignment) -> None:
    """Train what is asked for into its `output`; a finished model is left as it is."""
    preset = read_preset(assignment.reference)
    recipe = preset.kind.of(assignment.settings)
    for name in recipe.report_to if isinstance(recipe, StepRecipe) else ():
        require(name, "report" if name == "tensorboard" else name, f"for report_to = {name}")
    require_extra("to train a model")
    run = job.planned(preset, recipe)
    if job.already_made(run):
        log.info("%s is already made", recipe.output)
        return
    together = recipe.processes if isinstance(recipe, StepRecipe) else 1
    if together > 1 and not {"WORLD_SIZE", LAUNCHED} & os.environ.keys():
        _launch(assignment, together, recipe.threads)
        return
    with job.working(run):
        if not run.finished:
            _prepare_torch(recipe.threads, recipe.deterministic)
            from zoo.modeling import within_memory

            with within_memory(run.name, LESS_MEMORY):
                recipe.train(run)
    log.info("the model is in %s", recipe.output)


def _launch(assignment: Assignment, processes: int, threads: int) -> None:
    """Train in several processes, a GPU each. Raises `DiscorporaError` if they fail."""
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
    # Port 0 is any that is free: a build starts several.
    launch += ["--num_cpu_threads_per_process", str(threads), "--main_process_port", "0"]
    with assigned([assignment]) as file:
        command = ["-m", "accelerate.commands.launch", *launch, "-m", "zoo.train", str(file)]
        environment = {**os.environ, LAUNCHED: "1"}
        if subprocess.run([sys.executable, *command], env=environment, check=False).returncode:
            for fault in filter(None, faults_in(file)):
                raise DiscorporaError(fault.problem, hint=fault.hint, field=fault.field)
            raise DiscorporaError(f"one of the {processes} processes died; above is what it said")


def _help(words: Sequence[str]) -> str:
    """The usage; with a recipe, its settings too."""
    about = f"recipes: {', '.join([*shipped(), *RECIPES])}\n"
    about += "for a recipe's settings: discorpora train RECIPE --help\n"
    if not words[0].startswith("-"):
        preset = read_preset(words[0])
        about = f"{preset.about.title}\n\nsettings:\n{described(preset.kind, preset.settings)}"
    return f"usage: {USAGE}\n\n{about}\noptions:\n{SWITCHES}"


def _prepare_torch(threads: int, deterministic: bool) -> None:
    """Settings of the whole process: the number of threads and deterministic kernels."""
    # Read by cuBLAS when it starts; a fixed work space makes its sums repeatable.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    from transformers.utils import logging as transformers_logging

    if not sys.stderr.isatty():
        transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    # It would write NaN into every new tensor, to make reading one before it is written repeatable
    # too: nothing here does that, and on a CPU it takes up to a quarter of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
