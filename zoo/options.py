"""How `zoo.train` and `zoo.evaluate` are told what to do: by flags, or by the file of a build.

The flags of a command line are the fields of classes. `python -m zoo.train FILE.json` reads the
settings of such classes from a file, and writes into it why a job failed.
"""

from __future__ import annotations

import logging
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from corpora.declared import TomlTable
from corpora.errors import COMMAND_LINE, ConfigError, DiscorporaError, nearest
from corpora.outside import read_record
from corpora.processes import collect_rarely, stop_with_build
from corpora.store.atomic import write_json
from zoo.presets import over, trust_code

log = logging.getLogger("zoo")

TRUST, DEBUG = "--trust-remote-code", "--debug"
SWITCHES = f"""  {TRUST}
      Run the code that comes with a model; a message names that code.
  {DEBUG}
      Show a traceback.
"""


class Fault(TomlTable):
    """Why an assignment failed."""

    field: str = ""
    """The setting that is wrong or that helps, if there is one."""
    value: Any = None
    problem: str
    hint: str = ""


class Assignment(TomlTable):
    """A training or an evaluation for another process."""

    reference: str
    """The recipe or suite: its name, `package.module:Class`, `FILE.py:Class` or a recipe's file."""
    settings: dict[str, Any]
    """All settings of its class."""
    request: dict[str, Any] = {}
    """Of an evaluation: the options that all suites have."""
    fault: Fault | None = None
    """Written by the other process."""


@contextmanager
def assigned(assignments: Sequence[Assignment]) -> Iterator[Path]:
    """A file for `python -m zoo.train FILE.json` or `python -m zoo.evaluate FILE.json`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "assignments.json")
        _write(file, assignments)
        yield file


def faults_in(file: Path) -> list[Fault | None]:
    """Why each assignment in a file failed, None for one that did not."""
    return [each.fault for each in read_record(list[Assignment], file)]


def _write(file: Path, assignments: Sequence[Assignment]) -> None:
    write_json(file, [each.model_dump(mode="json") for each in assignments])


def run(
    arguments: Sequence[str] | None,
    explain: Callable[[Sequence[str]], str],
    by_words: Callable[[Sequence[str]], None],
    work: Callable[[Assignment], object],
) -> int:
    """Run a command line, or what the file that it names asks for; returns the exit code.

    An expected error is one short message on standard error.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in words
    try:
        if {"-h", "--help"} & set(words):
            sys.stdout.write(explain(words))
            return 0
        stop_with_build()
        collect_rarely()
        logging.basicConfig(level="INFO", format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        if TRUST in words:
            trust_code()
        words = [word for word in words if word not in (TRUST, DEBUG)]
        if len(words) == 1 and words[0].endswith(".json"):
            return 2 * _run_file(Path(words[0]), work)
        by_words(words)
    except (DiscorporaError, OSError) as error:
        if debug:
            raise
        shown = error.with_flags() if isinstance(error, DiscorporaError) else error
        sys.stderr.write(f"error: {shown}\n")
        return 2
    return 0


def _run_file(file: Path, work: Callable[[Assignment], object]) -> bool:
    """Run what a file asks for, and write there why some of it failed; whether any did."""
    done = []
    for each in read_record(list[Assignment], file):
        fault = None
        try:
            work(each)
        except DiscorporaError as error:
            sys.stderr.write(f"error: {error}\n")
            value = {**each.request, **each.settings}.get(error.field)
            fault = Fault(field=error.field, value=value, problem=error.args[0], hint=error.hint)
        except Exception as error:
            log.exception("%s", each.reference)
            fault = Fault(problem=f"{type(error).__name__}: {error}")
        done.append(each.model_copy(update={"fault": fault}))
    failed = any(each.fault for each in done)
    # The processes of one training have the same file: the first that fails says why.
    if failed and not any(faults_in(file)):
        _write(file, done)
    return failed


# The flags of a command line.


def parse_flags(words: Sequence[str], command: str, *kinds: type[BaseModel]) -> dict[str, Any]:
    """The values that `--key value` and `--key=value` give the fields of `kinds`.

    `--table.key value` sets one key of a table. Raises `ConfigError` for a flag that is no field,
    with the nearest one, and for one without a value.
    """
    pairs = [pair for kind in kinds for pair in kind.model_fields.items()]
    fields = {field.alias or name: field for name, field in pairs}
    values: dict[str, Any] = {}
    queue = list(words)
    while queue:
        flag, equals, text = queue.pop(0).partition("=")
        option = re.match("--.", flag)
        follows = queue and not re.match("--[a-z]", queue[0])
        if not option or not (equals or follows):
            problem = f"{flag!r} {'has no value' if option else 'is no option'}"
            hint = "write --key value; a switch has the value true or false"
            raise ConfigError(problem, where=COMMAND_LINE, hint=hint)
        text = text if equals else queue.pop(0)
        name, *keys = flag[2:].replace("-", "_").split(".")
        if name not in fields:
            known = [f"--{each}" for each in fields]
            raise ConfigError(
                f"no option --{name}; {nearest(f'--{name}', known)}".rstrip("; "),
                where=COMMAND_LINE,
                hint=f"valid here: {', '.join(sorted(known))}\n  {command} --help explains them",
            )
        value = _value(text, dict if keys else fields[name].annotation)
        for key in (*reversed(keys), name):
            value = {key: value}
        values = over(values, value)
    return values


def _value(text: str, kind: Any) -> Any:
    """The value that `text` is in TOML; the text, if it is none or is of `kind` as it stands."""
    if kind is str or (kind == tuple[str, ...] and not text.startswith("[")):
        return text  # a folder may be called `2026`
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, too many digits or brackets
        return text
    return value if isinstance(value, bool | int | float | list | dict) else text
