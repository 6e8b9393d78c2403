"""The command lines of `zoo.train` and `zoo.evaluate`: flags, or a JSON file of assignments.

The flags are the fields of the recipe's or suite's class. A build writes the assignments to a file
instead; `python -m zoo.train FILE.json` runs them, and writes into the file why one failed.
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
    """The error of an assignment that failed."""

    field: str = ""
    """The setting that is wrong, or whose change would help; "" if there is none."""
    value: Any = None
    problem: str
    hint: str = ""


class Assignment(TomlTable):
    """A training or an evaluation that another process runs."""

    reference: str
    """The recipe or suite: its name, `package.module:Class`, `FILE.py:Class` or a recipe's file."""
    settings: dict[str, Any]
    """All settings of its class."""
    request: dict[str, Any] = {}
    """For an evaluation, the options that all suites have."""
    fault: Fault | None = None
    """The error, which the other process writes."""


@contextmanager
def assigned(assignments: Sequence[Assignment]) -> Iterator[Path]:
    """Yield a temporary file of `assignments` for `python -m zoo.train` or `zoo.evaluate`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "assignments.json")
        _write(file, assignments)
        yield file


def faults_in(file: Path) -> list[Fault | None]:
    """Return the error of each assignment in a file, None for one that did not fail."""
    return [assignment.fault for assignment in read_record(list[Assignment], file)]


def _write(file: Path, assignments: Sequence[Assignment]) -> None:
    write_json(file, [assignment.model_dump(mode="json") for assignment in assignments])


def run(
    arguments: Sequence[str] | None,
    help_text: Callable[[Sequence[str]], str],
    run_words: Callable[[Sequence[str]], None],
    run_assignment: Callable[[Assignment], object],
) -> int:
    """Run a command line (None: the process's own), and return its exit code.

    An expected error is printed as one short message. If the only word is `FILE.json`,
    `run_assignment` runs each of its assignments. Other words go to `run_words`, without the
    switches, or to `help_text` if `--help` is among them.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in words
    try:
        if {"-h", "--help"} & set(words):
            sys.stdout.write(help_text(words))
            return 0
        stop_with_build()
        collect_rarely()
        logging.basicConfig(level="INFO", format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        if TRUST in words:
            trust_code()
        words = [word for word in words if word not in (TRUST, DEBUG)]
        if len(words) == 1 and words[0].endswith(".json"):
            return 2 if _run_file(Path(words[0]), run_assignment) else 0
        run_words(words)
    except (DiscorporaError, OSError) as error:
        if debug:
            raise
        message = error.with_flags() if isinstance(error, DiscorporaError) else error
        sys.stderr.write(f"error: {message}\n")
        return 2
    return 0


def _run_file(file: Path, run_assignment: Callable[[Assignment], object]) -> bool:
    """Run the assignments of a file and write their errors to it; return True if any failed."""
    assignments = []
    for assignment in read_record(list[Assignment], file):
        fault = None
        try:
            run_assignment(assignment)
        except DiscorporaError as error:
            sys.stderr.write(f"error: {error}\n")
            value = {**assignment.request, **assignment.settings}.get(error.field)
            fault = Fault(field=error.field, value=value, problem=error.args[0], hint=error.hint)
        except Exception as error:
            log.exception("%s", assignment.reference)
            fault = Fault(problem=f"{type(error).__name__}: {error}")
        assignments.append(assignment.model_copy(update={"fault": fault}))
    failed = any(assignment.fault for assignment in assignments)
    # The processes of one training share the file; only the first that fails writes its error.
    if failed and not any(faults_in(file)):
        _write(file, assignments)
    return failed


# The flags of a command line.


def parse_flags(words: Sequence[str], command: str, *kinds: type[BaseModel]) -> dict[str, Any]:
    """Return the values that the flags in `words` give to fields of the classes `kinds`, by name.

    Flags are `--key value`, `--key=value`, and `--table.key value` for one key of a table. Raises
    `ConfigError` for a flag without a value or a field; `command` is the name in its hint.
    """
    fields = {
        field.alias or name: field for kind in kinds for name, field in kind.model_fields.items()
    }
    values: dict[str, Any] = {}
    queue = list(words)
    while queue:
        flag, equals, text = queue.pop(0).partition("=")
        is_flag = re.match("--.", flag)
        value_follows = queue and not re.match("--[a-z]", queue[0])
        if not is_flag or not (equals or value_follows):
            problem = f"{flag!r} {'has no value' if is_flag else 'is no option'}"
            hint = "write --key value; a switch has the value true or false"
            raise ConfigError(problem, where=COMMAND_LINE, hint=hint)
        text = text if equals else queue.pop(0)
        name, *keys = flag[2:].replace("-", "_").split(".")
        if name not in fields:
            known = [f"--{field}" for field in fields]
            raise ConfigError(
                f"no option --{name}; {nearest(f'--{name}', known)}".rstrip("; "),
                where=COMMAND_LINE,
                hint=f"valid here: {', '.join(sorted(known))}\n  {command} --help explains them",
            )
        value = _parse_value(text, dict if keys else fields[name].annotation)
        for key in (*reversed(keys), name):
            value = {key: value}
        values = over(values, value)
    return values


def _parse_value(text: str, kind: Any) -> Any:
    """Return `text` as a TOML value; as a string if it is none, or if `kind` is a type of text."""
    if kind is str or (kind == tuple[str, ...] and not text.startswith("[")):
        return text  # a folder may be called `2026`
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, too many digits or brackets
        return text
    is_string_or_date = not isinstance(value, bool | int | float | list | dict)
    return text if is_string_or_date else value
