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

from corpora.declared import Table, described
from corpora.errors import COMMAND_LINE, ConfigError
from corpora.progress import reported
from zoo import options, require_extra
from zoo.declared import Count, Positive, Suite
from zoo.evaluate import SUITES, in_hand
from zoo.evaluate.compare import entry_of, table_of
from zoo.evaluate.opening import open_data, open_model
from zoo.evaluate.results import Result, finished, save
from zoo.evaluate.table import print_result
from zoo.options import SWITCHES, Assignment

USAGE = "discorpora evaluate SUITE --model MODEL --data DATA [--key value ...]"


class Options(Table):
    """The options that all suites have."""

    model: str
    """A model folder or Hub id."""
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
    """Evaluate and print a table; returns the exit code. An expected error is one short message."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return options.run(arguments, _help, evaluate, evaluate_assignment)


def evaluate(words: Sequence[str]) -> None:
    """Evaluate what `words` (the command line without the program's name) ask for, and print it."""
    if not words or words[0].startswith("-"):
        raise ConfigError("no suite given", hint=f"{USAGE}\n  suites: {', '.join(SUITES)}")
    kind = SUITES.find(words[0])
    values = options.parse_flags(words[1:], f"discorpora evaluate {words[0]}", kind, Options)
    own = {key: values.pop(key) for key in values.keys() & kind.model_fields.keys()}
    settings = kind.of(own, COMMAND_LINE).model_dump(mode="json")
    asked = Options.of(values, COMMAND_LINE).model_dump(mode="json", by_alias=True)
    result = evaluate_assignment(Assignment(reference=words[0], settings=settings, request=asked))
    if asked["json"] == "-":
        text = json.dumps(result.as_json(), indent=2, sort_keys=True, ensure_ascii=False)
        sys.stdout.write(f"{text}\n")
    else:
        print_result(table_of([entry_of(result)]))


def evaluate_assignment(assignment: Assignment) -> Result:
    """The result, which is written where it is asked for."""
    suite = SUITES.find(assignment.reference).of(assignment.settings)
    asked = Options.of(assignment.request)
    return judge(suite, asked.model, asked.data, asked, assignment.reference)


def judge(suite: Suite, model: Any, data: Any, asked: Options, called: str) -> Result:
    """The same of a model and data that are in hand, or named and opened here.

    `called` is what the user calls the suite.
    """
    require_extra("to evaluate a model")
    file = Path(asked.place) if asked.place not in ("", "-") else None
    if file:  # what is in the way is said before the work is done
        if file.is_dir():
            problem = "a folder, where the result should be written"
            raise ConfigError(problem, where=str(file), hint="name a file")
        file.parent.mkdir(parents=True, exist_ok=True)
    import torch
    from transformers.utils import logging as transformers_logging

    from zoo.modeling import float32_products, within_memory

    if not sys.stderr.isatty():
        transformers_logging.disable_progress_bar()
    torch.set_num_threads(asked.threads)
    named, split, seed = isinstance(model, str | Path), asked.split, asked.seed
    shown = Path(model).resolve().name if named else in_hand.name_of(model)
    memory = within_memory(called, f"lower --batch_size (now {asked.batch_size})")
    products = float32_products(tf32=asked.tf32)
    with reported(f"evaluating {shown} with {called}"), memory, products:
        if isinstance(data, str | Path):  # a wrong folder is said before a model is loaded
            data = open_data(suite, str(data), split)
        if named:
            model = open_model(suite, str(model), seed=seed, batch_size=asked.batch_size)
        result = suite.evaluate(model, data, split=split, seed=seed, limit=asked.limit)
        result = finished(suite, result, model, split, seed)
    if asked.name:
        result = replace(result, model={**result.model, "name": asked.name})
    if file:
        save(suite, file, result)
    return result


def _help(words: Sequence[str]) -> str:
    """The usage; with a suite, its own options too."""
    about = (
        f"suites: {', '.join(SUITES)}\nfor a suite's options: discorpora evaluate SUITE --help\n"
    )
    if not words[0].startswith("-"):
        kind = SUITES.find(words[0])
        own = described(kind) if kind.model_fields else "  none\n"
        about = f"{kind.summary()}\n\noptions of the suite {words[0]}:\n{own}"
    return f"usage: {USAGE}\n\n{about}\noptions:\n{described(Options)}{SWITCHES}"


if __name__ == "__main__":
    sys.exit(main())
