"""How `zoo.train` and `zoo.evaluate` are told what to do: by flags, or by the file of a build.

The flags of a command line are the fields of classes. `python -m zoo.train FILE.json` reads the
settings of such classes from a file, and leaves beside it why a job failed.
"""

from __future__ import annotations

import logging
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from corpora.declared import Table
from corpora.errors import COMMAND_LINE, ConfigError, DiscorporaError, nearest
from corpora.outside import read_record
from corpora.processes import collect_rarely, stop_with_build
from corpora.store.atomic import write_json
from zoo.presets import trust_code

log = logging.getLogger("zoo")

TRUST, DEBUG = "--trust-remote-code", "--debug"
SWITCHES = f"""  {TRUST}
      Run the code that comes with a model; a message names that code.
  {DEBUG}
      Show a traceback.
"""


class Assignment(Table):
    """A training or an evaluation for another process."""

    reference: str
    """The recipe or suite: its name, `package.module:Class`, `FILE.py:Class` or a recipe's file."""
    settings: dict[str, Any]
    """All settings of its class."""
    request: dict[str, Any] = {}
    """Of an evaluation: the options that all suites have."""


class Fault(Table):
    """Why an assignment failed."""

    field: str = ""
    """The setting that is wrong or that helps, if there is one."""
    value: Any = None
    problem: str
    hint: str = ""


class Assignments(Table):
    """The file that a process reads."""

    assignments: tuple[Assignment, ...]


class Faults(Table):
    """What it writes beside that file if one failed: of each its fault, or nothing."""

    faults: tuple[Fault | None, ...]


def assign(file: Path, *assignments: Assignment) -> None:
    """Write the file of `python -m zoo.train FILE` and `python -m zoo.evaluate FILE`."""
    _faults_of(file).unlink(missing_ok=True)
    write_json(file, Assignments(assignments=assignments).model_dump(mode="json"))


def faults(file: Path) -> tuple[Fault | None, ...]:
    """Why assignments of `file` failed, in their order; empty if none did, or the process died."""
    place = _faults_of(file)
    return read_record(Faults, place).faults if place.is_file() else ()


def _faults_of(file: Path) -> Path:
    return file.with_name(f"{file.name.partition('.')[0]}.faults.json")


def run(
    arguments: Sequence[str] | None,
    explain: Callable[[Sequence[str]], str],
    by_words: Callable[[Sequence[str]], None],
    by_file: Callable[[Assignment], None],
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
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S"
        )
        if TRUST in words:
            trust_code()
        words = [word for word in words if word not in (TRUST, DEBUG)]
        if len(words) == 1 and words[0].endswith(".json"):
            return 2 * _run_file(Path(words[0]), by_file)
        by_words(words)
    except (DiscorporaError, OSError) as error:
        if debug:
            raise
        shown = error.with_flags() if isinstance(error, DiscorporaError) else error
        sys.stderr.write(f"error: {shown}\n")
        return 2
    return 0


def _run_file(file: Path, by_file: Callable[[Assignment], None]) -> bool:
    """Run what a file asks for, and write why some of it failed; whether any did."""
    found = [_attempt(each, by_file) for each in read_record(Assignments, file).assignments]
    # The processes of one training have the same file: the first that fails says why.
    if any(found) and not _faults_of(file).exists():
        write_json(_faults_of(file), Faults(faults=tuple(found)).model_dump(mode="json"))
    return any(found)


def _attempt(assignment: Assignment, by_file: Callable[[Assignment], None]) -> Fault | None:
    try:
        by_file(assignment)
    except (DiscorporaError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        if not isinstance(error, DiscorporaError):
            return Fault(problem=str(error))
        value = {**assignment.request, **assignment.settings}.get(error.field)
        return Fault(field=error.field, value=value, problem=error.args[0], hint=error.hint)
    except Exception as error:
        log.exception("%s", assignment.reference)
        return Fault(problem=f"{type(error).__name__}: {error}")
    return None


# The flags of a command line.


def flags_of(*kinds: type[BaseModel]) -> dict[str, FieldInfo]:
    """The flags of a command, without `--`, and the fields that they set."""
    fields = [pair for kind in kinds for pair in kind.model_fields.items()]
    return {field.alias or name: field for name, field in fields}


def parse_flags(
    words: Sequence[str], fields: Mapping[str, FieldInfo], command: str
) -> dict[str, Any]:
    """The values of `--key value` and `--key=value`; `--table.key value` sets one key of a table.

    Raises `ConfigError` for a flag that is none of `fields`, with the nearest one, and for one
    without a value.
    """
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
        table: Any = values
        for key in (name, *keys)[:-1]:
            table = table.setdefault(key, {}) if isinstance(table, dict) else None
        last = (name, *keys)[-1]
        if not isinstance(table, dict) or isinstance(table.get(last), dict):
            raise ConfigError(
                f"{flag} {text}: {name} is given as a value and as a table",
                where=COMMAND_LINE,
                hint="give one of them",
            )
        table[last] = text if not keys and _is_text(fields[name], text) else _value(text)
    return values


def _is_text(field: FieldInfo, text: str) -> bool:
    """Whether a field takes `text` as it stands: a folder may be called `2026`."""
    return field.annotation is str or (
        field.annotation == tuple[str, ...] and not text.startswith("[")
    )


def _value(text: str) -> Any:
    """The value that `text` is in TOML, else the text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, too many digits or brackets
        return text
    return value if isinstance(value, bool | int | float | list | dict) else text
