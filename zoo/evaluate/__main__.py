"""The command line of the evaluations."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from corpora.declared import described
from corpora.errors import ConfigError, DiscorporaError
from corpora.processes import stop_with_build
from zoo.evaluate import SUITES, Request
from zoo.evaluate.results import check_place, finished, save
from zoo.presets import parse_options
from zoo.trust import trust_code

log = logging.getLogger("zoo")


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate and write the JSON (to standard output without `--json`); the exit code.

    `--jobs` alone reads several jobs from standard input, a JSON list of lists of words, which
    share the loaded libraries; it writes a JSON list of why each failed ("" for one that did not).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] and not words[0].startswith("-") and {"-h", "--help"} & set(words):
        sys.stdout.write(f"{_parser().format_help()}\n{described(SUITES.find(words[0]))}")
        return 0
    stop_with_build()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if words == ["--jobs"]:
        reasons = [_attempted(each) for each in json.load(sys.stdin)]
        sys.stdout.write(json.dumps(reasons) + "\n")
        return 0
    try:
        _run(words)
    except (DiscorporaError, OSError) as error:
        if "--debug" in words:
            raise
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _attempted(words: Sequence[str]) -> str:
    """Run one of several jobs; why it failed, "" if it did not. The others run all the same."""
    try:
        _run(words)
    except (DiscorporaError, OSError) as error:
        return str(error)
    except Exception as error:
        log.exception("%s", " ".join(words))
        return f"{type(error).__name__}: {error}"
    return ""


def _run(words: Sequence[str]) -> None:
    options, rest = _parser().parse_known_args(words)
    own = {key: _listed(value) for key, value in parse_options(rest).items()}
    suite = SUITES.find(options.suite).of(own, "command line")
    if options.json is not None:
        check_place(options.json)
    if options.trust_remote_code:
        trust_code()
    import torch
    from transformers.utils import logging as transformers_logging

    if not sys.stderr.isatty():
        transformers_logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    shared = {key: getattr(options, key) for key in ("model", "data", "split", "seed", "limit")}
    from zoo.modeling import within_memory

    with within_memory(options.suite, f"lower --batch-size (now {options.batch_size})"):
        result = suite.evaluate(Request(**shared, batch_size=options.batch_size))
    kept = finished(suite, result, split=options.split, seed=options.seed, model=options.model)
    if options.name:
        kept["model"] = {**kept["model"], "name": options.name}
    if options.json is None:
        sys.stdout.write(json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    else:
        save(suite, options.json, kept, result.outcomes)


def _listed(text: Any) -> Any:
    """A list as a build file writes it, `["SP", "BSO"]`; any other value as it is."""
    if not isinstance(text, str) or not text.startswith("["):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise ConfigError(f"{text} is not a list", where="command line") from None


def _at_least(lowest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"{value} is below {lowest}")
        return value

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m zoo.evaluate",
        description=__doc__,
        epilog="--jobs alone: a JSON list of such command lines, as lists, from standard input",
        allow_abbrev=False,
    )
    parser.add_argument("suite", metavar="SUITE", help=", ".join(SUITES.own))
    parser.add_argument("--model", required=True, help="a model folder or Hub id")
    parser.add_argument("--data", required=True, help="a dataset folder or Hub id, @CONFIG")
    parser.add_argument("--json", type=Path, help="where the result goes (default: shown)")
    parser.add_argument("--name", default="", help="of the model in tables (default: its folder's)")
    parser.add_argument("--split", default="test")
    count, positive = _at_least(0), _at_least(1)
    parser.add_argument("--seed", type=count, default=0, help="of the bootstrap and of classifiers")
    parser.add_argument("--threads", type=positive, default=1)
    parser.add_argument(
        "--batch-size",
        type=positive,
        default=64,
        help="rows at a time, where a suite does not fill batches by tokens",
    )
    parser.add_argument("--limit", type=count, default=0, help="so many rows only, spread evenly")
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run the code that comes with the model; it is said what runs",
    )
    parser.add_argument("--debug", action="store_true", help="show a traceback")
    return parser


if __name__ == "__main__":
    sys.exit(main())
