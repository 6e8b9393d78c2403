"""The command line of the evaluations."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from corpora.declared import Table, described
from corpora.errors import COMMAND_LINE, ConfigError
from corpora.progress import reported
from zoo import options
from zoo.declared import Count, Positive, Suite
from zoo.evaluate import SUITES
from zoo.evaluate.compare import measured, table_of
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
    return options.run(arguments, _help, evaluate, evaluate_assigned)


def evaluate(words: Sequence[str]) -> None:
    """Evaluate what `words` (the command line without the program's name) ask for, and print it."""
    if not words or words[0].startswith("-"):
        raise ConfigError("no suite given", hint=f"{USAGE}\n  suites: {', '.join(SUITES)}")
    kind = SUITES.find(words[0])
    shared, fields = options.flags_of(Options), options.flags_of(kind, Options)
    values = options.parse_flags(words[1:], fields, f"discorpora evaluate {words[0]}")
    own = {key: values.pop(key) for key in values.keys() - shared.keys()}
    chosen = Options.of(values, COMMAND_LINE)
    result = _evaluate(kind.of(own, COMMAND_LINE), words[0], chosen)
    if chosen.place == "-":
        text = json.dumps(result.as_json(), indent=2, sort_keys=True, ensure_ascii=False)
        sys.stdout.write(f"{text}\n")
    else:
        print_result(table_of([measured(result)]))


def evaluate_assigned(assignment: Assignment) -> None:
    """Evaluate what another process asks for."""
    suite = SUITES.find(assignment.reference).of(assignment.settings)
    _evaluate(suite, assignment.reference, Options.of(assignment.request))


def _evaluate(suite: Suite, called: str, chosen: Options) -> Result:
    """The result, which is written where it is asked for. `called` is what the user calls the
    suite.
    """
    file = Path(chosen.place) if chosen.place not in ("", "-") else None
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
    torch.set_num_threads(chosen.threads)
    name, split, seed = Path(chosen.model).resolve().name, chosen.split, chosen.seed
    memory = within_memory(called, f"lower --batch_size (now {chosen.batch_size})")
    products = float32_products(tf32=chosen.tf32)
    with reported(f"evaluating {name} with {called}"), memory, products:
        data = open_data(suite, chosen.data, split)  # a wrong folder is said before a model loads
        model = open_model(suite, chosen.model, seed=seed, batch_size=chosen.batch_size)
        result = suite.evaluate(model, data, split=split, seed=seed, limit=chosen.limit)
        result = finished(suite, result, model, split, seed)
    if chosen.name:
        result = replace(result, model={**result.model, "name": chosen.name})
    if file:
        save(suite, file, result)
    return result


def _help(words: Sequence[str]) -> str:
    """The usage; with a suite, its own options too."""
    text = f"usage: {USAGE}\n\n"
    if words[0].startswith("-"):
        text += (
            f"suites: {', '.join(SUITES)}\nfor their options: discorpora evaluate SUITE --help\n"
        )
    else:
        kind = SUITES.find(words[0])
        own = described(kind) if kind.model_fields else "  none\n"
        text += f"{kind.summary()}\n\noptions of the suite {words[0]}:\n{own}"
    return f"{text}\noptions:\n{described(Options)}{SWITCHES}"


if __name__ == "__main__":
    sys.exit(main())
