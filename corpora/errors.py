"""Errors made for people: the value, where it stood, what was expected, what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


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
        """Survive the trip between the processes of a pool, keyword arguments included."""
        return _rebuild, (type(self), self.message, self.where, self.hint)


class InputError(DiscorporaError):
    """A source is absent, empty, or not in the format that it was said to be in."""


class ConfigError(DiscorporaError):
    """A build file, a recipe or an option holds a key or value that does not fit."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """One record that a reader could not take; counted and kept under `rejects/`."""

    where: str
    reason: str
    value: str = ""


def nearest(value: str, choices: Iterable[str]) -> str:
    """`did you mean 'x'? ` for the choice most like `value`, or an empty string."""
    found = difflib.get_close_matches(value, list(choices), n=1, cutoff=0.5)
    return f"did you mean {found[0]!r}? " if found else ""


def _rebuild(kind: type[DiscorporaError], message: str, where: str, hint: str) -> DiscorporaError:
    return kind(message, where=where, hint=hint)
