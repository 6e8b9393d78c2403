"""Errors for users: the value, its place, what was expected, what to do next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

COMMAND_LINE = "command line"
"""The place of an option."""
_TOML = re.compile(r"\.toml(:|$)")
_COMMAND = re.compile(r"\b(discorpora|python|pip) ")
# `--max-bad-share 0.1`, `--splits "80 10 10"`, `--model FOLDER`
_FLAG = re.compile(
    r"--(?P<key>[a-z][\w-]*)"
    r"(?: (?P<value>\"[^\"]*\"|[A-Z][A-Z_]+\b|true\b|false\b|-?[\d.]*\d|\w+[:/][\w:/.]*\w))?"
)
_SETTING = re.compile(r"\b(?P<key>[a-z][a-z_]*) = (?P<value>\"[^\"]*\"|[\w.-]*\w)")


def as_toml(hint: str) -> str:
    """Return a hint with each `--key value` as `key = value`, unless the hint names a command."""

    def assignment(match: re.Match[str]) -> str:
        key, value = match["key"].replace("-", "_"), match["value"]
        if value and value[0] != '"' and any(mark in value for mark in ":/"):
            value = f'"{value}"'
        return f"{key} = {value}" if value else key

    return hint if _COMMAND.search(hint) else _FLAG.sub(assignment, hint)


def as_flags(hint: str) -> str:
    """Return a hint with each `key = value` written as a flag, unless the hint names a command."""

    def flag(match: re.Match[str]) -> str:
        key, value = match["key"], match["value"]
        return f"--{key} {value if ' ' in value else value.strip(chr(34))}"

    return hint if _COMMAND.search(hint) else _SETTING.sub(flag, hint)


class DiscorporaError(ValueError):
    """An error that the command line shows as one short message, without a traceback.

    `message` gives the value and what was expected, `where` the place (`file:line`, a
    configuration key), `hint` the next step, `field` the setting that is wrong or that helps.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "", field: str = "") -> None:
        self.message, self.where, self.hint, self.field = message, where, hint, field
        place = where or ("" if message.startswith(field) else field)
        super().__init__(": ".join(part for part in (place, message) if part))

    def __str__(self) -> str:
        text = super().__str__()
        hint = as_toml(self.hint) if _TOML.search(self.where) else self.hint
        return f"{text}\n  {hint}" if hint else text

    def with_flags(self) -> DiscorporaError:
        """Return the same error for a command line: its hint names flags, not TOML keys."""
        hint = self.hint if _TOML.search(self.where) else as_flags(self.hint)
        return type(self)(self.message, where=self.where, hint=hint, field=self.field)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the keyword arguments too, so that the error survives a pool of processes."""
        keywords = {"where": self.where, "hint": self.hint, "field": self.field}
        return partial(type(self), self.message, **keywords), ()


class InputError(DiscorporaError):
    """A source is absent, empty, or not in the expected format."""


class ConfigError(DiscorporaError):
    """A build file, a recipe or an option has an invalid key or value."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that a reader rejected; it is counted and kept under `rejects/`."""

    where: str
    reason: str
    value: str = ""


def expand_home(path: str | Path) -> Path:
    """Return `path` with `~` replaced; raises `InputError` for `~NAME` if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        problem = f"no user {str(path).partition('/')[0]!r} has a home folder here"
        raise InputError(problem, where=str(path)) from None


def nearest(value: str, choices: Iterable[str]) -> str:
    """Return `did you mean 'x'? ` for the choice most similar to `value`, or an empty string."""
    matches = difflib.get_close_matches(value, list(choices), n=1, cutoff=0.5)
    return f"did you mean {matches[0]!r}? " if matches else ""


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: `1 pair`, `2,000 pairs`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def unreadable(error: Exception, where: object, hint: str) -> InputError:
    """Return an `InputError` with the first line of a library's error for a file it cannot read."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    return InputError(f"cannot be read: {reason}", where=str(where), hint=hint)


def check_choice(what: str, name: str, names: Iterable[str], where: str = "") -> str:
    """Return `name` if it is one of `names`; else raise `ConfigError` with the nearest one."""
    names = list(names)
    if name in names:
        return name
    hint = f"{nearest(name, names)}the {what}s are: {', '.join(names)}"
    raise ConfigError(f"no {what} {name!r}", where=where, hint=hint)


@contextmanager
def within_memory(where: str, hint: str) -> Iterator[None]:
    """Turn an out-of-memory error inside the block into a `DiscorporaError`. `where` says what ran
    out of memory, `hint` what to do about it."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            raise DiscorporaError("out of memory", where=where, hint=hint) from error
        if "out of memory" not in str(error):
            raise
        raise DiscorporaError("out of memory on the GPU", where=where, hint=hint) from error


def require(module: str, extra: str, purpose: str) -> Any:
    """Import and return `module`, which the optional dependency `extra` installs.

    Raises `DiscorporaError` with the `pip install` line if it is not installed. `purpose` says what
    it is needed for: "to read a Wikipedia dump".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DiscorporaError(
            f"the package {error.name!r} is needed {purpose}, and is not installed",
            hint=f"pip install 'discorpora[{extra}]'",
        ) from None
