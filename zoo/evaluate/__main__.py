"""The command line of the evaluations."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from corpora.declared import described
from corpora.errors import COMMAND_LINE, ConfigError, DiscorporaError
from corpora.processes import collect_rarely, stop_with_build
from corpora.progress import reported
from zoo import require_extra
from zoo.declared import Suite
from zoo.evaluate import SUITES, Request
from zoo.evaluate.compare import measured, table_of
from zoo.evaluate.results import Result, finished, save
from zoo.evaluate.table import print_result
from zoo.presets import check_options, parse_options, trust_code

log = logging.getLogger("zoo")


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate and print a table; with `--json FILE` also write the JSON. Returns the exit code.

    `--jobs` alone reads several jobs from standard input, a JSON list of lists of words, which
    share the loaded libraries; it prints a JSON list of their error messages ("" for none).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    stop_with_build()
    collect_rarely()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if words == ["--jobs"]:
        reasons = [_attempted(each) for each in json.load(sys.stdin)]
        sys.stdout.write(json.dumps(reasons) + "\n")
        return 0
    try:
        if words[:1] and not words[0].startswith("-") and {"-h", "--help"} & set(words):
            suite = SUITES.find(words[0])
            own = described(suite) if suite.model_fields else "  none\n"
            sys.stdout.write(f"{_parser().format_help()}\noptions of the suite {words[0]}:\n{own}")
            return 0
        place, result = _run(words)
    except (DiscorporaError, OSError) as error:
        if "--debug" in words:
            raise
        told = error.with_flags() if isinstance(error, DiscorporaError) else error
        sys.stderr.write(f"error: {told}\n")
        return 2
    if place == Path("-"):
        text = json.dumps(result.as_json(), indent=2, sort_keys=True, ensure_ascii=False)
        sys.stdout.write(f"{text}\n")
    else:
        print_result(table_of([measured(result)]))
    return 0


def _attempted(words: Sequence[str]) -> str:
    """Run one of several jobs; its error message, "" if it succeeded."""
    try:
        _run(words)
    except (DiscorporaError, OSError) as error:
        return str(error)
    except SystemExit:
        return "its options are wrong: argparse says on standard error which"
    except Exception as error:
        log.exception("%s", " ".join(words))
        return f"{type(error).__name__}: {error}"
    return ""


def _run(words: Sequence[str]) -> tuple[Path | None, Result]:
    """Evaluate, and write what is asked for; the place of the JSON, and the result."""
    if words and not words[0].startswith("-"):
        SUITES.find(words[0])  # an unknown suite is said before options that it lacks
    options, rest = _parser().parse_known_args(words)
    own = {key: _listed(value) for key, value in parse_options(rest).items()}
    kind = SUITES.find(options.suite)
    shared = [name.replace("_", "-") for name in vars(options) if name != "suite"]
    check_options(own, (*kind.model_fields, *shared), f"discorpora evaluate {options.suite}")
    if options.trust_remote_code:
        trust_code()
    asked = ("model", "data", "split", "seed", "limit", "batch_size")
    request = Request(**{key: getattr(options, key) for key in asked})
    kept = options.json if options.json != Path("-") else None
    suite = kind.of(own, COMMAND_LINE)
    return options.json, judge(suite, request, options.name, kept, options.threads)


def judge(
    suite: Suite, request: Request, name: str = "", kept: Path | None = None, threads: int = 1
) -> Result:
    """Evaluate, and write the result with its pictures, tables and outcomes to the file `kept`.

    `name` is what tables call the model. Raises `DiscorporaError` as the suite does, and
    `ConfigError` for a folder where the result should be written.
    """
    require_extra("to evaluate a model")
    if kept:  # what is in the way is said before the work is done
        if kept.is_dir():
            problem = "a folder, where the result should be written"
            raise ConfigError(problem, where=str(kept), hint="name a file")
        kept.parent.mkdir(parents=True, exist_ok=True)
    import torch
    from transformers.utils import logging as transformers_logging

    from zoo.modeling import within_memory

    if not sys.stderr.isatty():
        transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    if Path(request.model).name in ("", ".."):  # no name for the tables
        request = replace(request, model=str(Path(request.model).resolve()))
    called = suite.name or type(suite).__name__
    memory = within_memory(called, f"lower --batch-size (now {request.batch_size})")
    with reported(f"evaluating {Path(request.model).name} with {called}"), memory:
        result = finished(suite, suite.evaluate(request), request, name)
    if kept:
        save(suite, kept, result)
    return result


def _listed(text: Any) -> Any:
    """A list as a build file writes it, `["SP", "BSO"]`; any other value as it is."""
    with suppress(ValueError):
        return json.loads(text) if str(text).startswith("[") else text
    return text


def number(text: str, lowest: int = 0) -> int:
    with suppress(ValueError):
        if int(text) >= lowest:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number from {lowest} on")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="discorpora evaluate",
        description="Evaluate a model with a suite, and print a table of its scores.",
        epilog="`discorpora evaluate SUITE --help` lists the suite's own options too. --jobs alone "
        "reads several such command lines, a JSON list of lists, from standard input",
        allow_abbrev=False,
    )
    parser.add_argument("suite", metavar="SUITE", help=", ".join(SUITES.own))
    add = parser.add_argument
    add("--model", required=True, metavar="MODEL", help="a model folder or Hub id")
    add("--data", required=True, metavar="DATA", help="a dataset folder or Hub id, [@CONFIG]")
    add("--json", type=Path, metavar="FILE", help="also write all figures to FILE; - prints them")
    add("--name", default="", metavar="TEXT", help="the model's name in tables (its folder's name)")
    add("--split", default="test", metavar="TEXT", help="the split to score (test)")
    positive = partial(number, lowest=1)
    said = "the random seed of bootstrap and classifiers (0)"
    add("--seed", type=number, default=0, metavar="NUMBER", help=said)
    add("--threads", type=positive, default=1, metavar="NUMBER", help="threads on a CPU (1)")
    said = "the rows of a batch, where a suite does not fill batches by tokens (64)"
    add("--batch-size", type=positive, default=64, metavar="NUMBER", help=said)
    said = "the maximum number of rows, spread evenly over the split (0: all)"
    add("--limit", type=number, default=0, metavar="NUMBER", help=said)
    said = "run the code that comes with the model; a message names that code"
    add("--trust-remote-code", action="store_true", help=said)
    add("--debug", action="store_true", help="show a traceback")
    return parser


if __name__ == "__main__":
    sys.exit(main())
