"""Errors for users: the value, its place, what was expected, what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any


class DiscorporaError(ValueError):
    """An error that the command line shows as one short message, without a traceback.

    `message` gives the value and what was expected, `where` the place (`file:line`, a
    configuration key), `hint` the next step.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.message, self.where, self.hint = message, where, hint
        super().__init__(": ".join(part for part in (where, message) if part))

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.where, self.message) if part)
        return f"{text}\n  {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with keyword arguments, for pools of processes."""
        return partial(type(self), self.message, where=self.where, hint=self.hint), ()


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


def expanded(path: str | Path) -> Path:
    """A path with `~` filled in. Raises `InputError` for `~NAME` where nobody is called so."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        problem = f"no user {str(path).partition('/')[0]!r} has a home folder here"
        raise InputError(problem, where=str(path)) from None


def nearest(value: str, choices: Iterable[str]) -> str:
    """`did you mean 'x'? ` for the choice most like `value`, or an empty string."""
    alike = difflib.get_close_matches(value, list(choices), n=1, cutoff=0.5)
    return f"did you mean {alike[0]!r}? " if alike else ""


def require(module: str, extra: str, purpose: str) -> Any:
    """Import `module`; `DiscorporaError` with the `pip install` line for `extra` without it.

    `purpose` says what cannot be done: "to read a Wikipedia dump".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DiscorporaError(
            f"the package {error.name!r} is needed {purpose}, and is not installed",
            hint=f"pip install 'discorpora[{extra}]'",
        ) from None
