"""The command line of the evaluations."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from corpora.declared import TomlTable, settings_help
from corpora.errors import COMMAND_LINE, ConfigError, within_memory
from corpora.progress import show_progress
from zoo import options, require_extra
from zoo.declared import Count, Positive, Suite
from zoo.evaluate import SUITES, in_hand
from zoo.evaluate.compare import entry_of, table_of
from zoo.evaluate.opening import open_data, open_model
from zoo.evaluate.results import Result, finished, save
from zoo.evaluate.table import print_result
from zoo.options import SWITCHES, Assignment

USAGE = "discorpora evaluate SUITE --model MODEL --data DATA [--key value ...]"


class Options(TomlTable):
    """The options that all suites have."""

    model: str
    """A model folder or Hub id; for vectors also FILE.py with a function `encode`, or FILE.parquet
    with the columns `text` and `vector`."""
    data: str
    """A dataset folder or Hub id; `@CONFIG` at the end names the configuration."""
    place: str = Field("", alias="json")
    """Also write all figures to this file; `-` prints them instead of the table."""
    name: str = ""
    """The model's name in tables; default: its folder's name."""
    split: str = "test"
    """The split to score."""
    seed: Count = 0
    """The random seed of bootstrap and classifiers."""
    threads: Positive = 1
    """Threads on a CPU."""
    batch_size: Positive = 64
    """The rows of a batch, where a suite does not fill batches by tokens."""
    limit: Count = 0
    """The maximum number of rows, spread evenly over the split (0: all)."""
    tf32: bool = False
    """On a GPU, products of float32 in TF32: faster, three digits instead of seven."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate a model, print a table, and return the exit code; a user's error is one message."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return options.run(arguments, _help, evaluate, evaluate_assignment)


def evaluate(words: Sequence[str]) -> None:
    """Run the evaluation of the command line `words`, a suite and its options; print its result."""
    if not words or words[0].startswith("-"):
        raise ConfigError("no suite given", hint=f"{USAGE}\n  suites: {', '.join(SUITES)}")
    suite = SUITES.find(words[0])
    values = options.parse_flags(words[1:], f"discorpora evaluate {words[0]}", suite, Options)
    suite_values = {key: values.pop(key) for key in values.keys() & suite.model_fields.keys()}
    settings = suite.of(suite_values, COMMAND_LINE).model_dump(mode="json")
    request = Options.of(values, COMMAND_LINE).model_dump(mode="json", by_alias=True)
    result = evaluate_assignment(Assignment(reference=words[0], settings=settings, request=request))
    if request["json"] == "-":
        text = json.dumps(result.as_json(), indent=2, sort_keys=True, ensure_ascii=False)
        sys.stdout.write(f"{text}\n")
    else:
        print_result(table_of([entry_of(result)]))


def evaluate_assignment(assignment: Assignment) -> Result:
    """Run the evaluation of an assignment, write its result if it names a file, and return it."""
    suite = SUITES.find(assignment.reference).of(assignment.settings)
    request = Options.of(assignment.request)
    return judge(suite, request.model, request.data, request, assignment.reference)


def judge(suite: Suite, model: Any, data: Any, request: Options, name: str) -> Result:
    """Evaluate a model on data, write the result if `request` names a file, and return it.

    `model` and `data` are objects, or folders or Hub ids, which are opened here. `name` is the
    suite's name as the user gave it, for messages.
    """
    require_extra("to evaluate a model")
    file = Path(request.place) if request.place not in ("", "-") else None
    if file:  # a file that cannot be written is an error before the work is done
        if file.is_dir():
            problem = "a folder, where the result should be written"
            raise ConfigError(problem, where=str(file), hint="name a file")
        file.parent.mkdir(parents=True, exist_ok=True)
    import torch
    from transformers.utils import logging as transformers_logging

    from zoo.modeling import float32_products

    if not sys.stderr.isatty():
        transformers_logging.disable_progress_bar()
    torch.set_num_threads(request.threads)
    is_path, split, seed = isinstance(model, str | Path), request.split, request.seed
    shown = Path(model).resolve().name if is_path else in_hand.name_of(model)
    memory = within_memory(name, f"lower --batch_size (now {request.batch_size})")
    products = float32_products(tf32=request.tf32)
    with show_progress(f"evaluating {shown} with {name}"), memory, products:
        if isinstance(data, str | Path):  # before the model: a wrong folder is an error at once
            data = open_data(suite, str(data), split)
        if is_path:
            model = open_model(suite, str(model), seed=seed, batch_size=request.batch_size)
        result = suite.evaluate(model, data, split=split, seed=seed, limit=request.limit)
        result = finished(suite, result, model, split, seed)
    if request.name:
        result = replace(result, model={**result.model, "name": request.name})
    if file:
        save(suite, file, result)
    return result


def _help(words: Sequence[str]) -> str:
    """The usage, the list of suites or the options of the suite in `words`, and all options."""
    about = (
        f"suites: {', '.join(SUITES)}\nfor a suite's options: discorpora evaluate SUITE --help\n"
    )
    if not words[0].startswith("-"):
        suite = SUITES.find(words[0])
        suite_options = settings_help(suite) if suite.model_fields else "  none\n"
        about = f"{suite.summary()}\n\noptions of the suite {words[0]}:\n{suite_options}"
    return f"usage: {USAGE}\n\n{about}\noptions:\n{settings_help(Options)}{SWITCHES}"


if __name__ == "__main__":
    sys.exit(main())
