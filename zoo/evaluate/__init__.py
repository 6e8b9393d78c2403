"""Evaluation suites: `python -m zoo.evaluate SUITE --model FOLDER --data FOLDER [--json OUT]`.

A suite is one module with `evaluate(request) -> dict` and, where it draws or tabulates,
`write_files(result, stem) -> list of files`. Options of its own (`--key value`) are the fields of
a frozen dataclass `Options` in it. A result may have `outcomes`, a list of
`zoo.evaluate.outcomes.Outcomes`: with them two models are compared example by example. To add a
suite, write the module and name it here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

from corpora.errors import ConfigError, nearest

SUITES = {
    "discoeval": "zoo.evaluate.discoeval",
    "dissent": "zoo.evaluate.dissent",
    "pdtb": "zoo.evaluate.pdtb",
    "permuted": "zoo.evaluate.permuted",
    "pairwise": "zoo.evaluate.pairwise",
    "agreement": "zoo.evaluate.agreement",
    "superglue": "zoo.evaluate.superglue",
    "senteval": "zoo.evaluate.senteval",
}

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What to evaluate: a model (folder or Hub id) on a dataset (folder or Hub id, `@CONFIG`)."""

    model: str
    data: str
    split: str = "test"
    seed: int = 0
    batch_size: int = 64
    limit: int = 0
    """Use so many rows only, spread evenly over the split (0: all)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The suite's own options by name, as texts or values: `options_of` checks them."""


Evaluator = Callable[[Request], dict[str, Any]]


def suite(name: str) -> ModuleType:
    """The module of a suite. Raises `ConfigError` with the nearest name for an unknown one."""
    if name not in SUITES:
        raise ConfigError(
            f"no suite {name!r}",
            hint=f"{nearest(name, SUITES)}the suites are: {', '.join(sorted(SUITES))}",
        )
    return import_module(SUITES[name])


def options_of(request: Request, kind: type[T]) -> T:
    """The suite's `Options` (a frozen dataclass) from the request's.

    Raises `ConfigError` for an unknown name, with the nearest one, or a value of the wrong type.
    """
    from pydantic import TypeAdapter, ValidationError

    valid = [option.name for option in fields(kind)]  # type: ignore[arg-type]
    for name in request.options:
        if name not in valid:
            raise ConfigError(
                f"this suite has no option {name!r}",
                where="command line",
                hint=f"{nearest(name, valid)}its options: {', '.join(valid) or 'none'}",
            )
    try:
        return TypeAdapter(kind).validate_python(dict(request.options))
    except ValidationError as error:
        first = error.errors()[0]
        message = f"{first['loc'][0]} = {first['input']!r}: {first['msg'].lower()}"
        raise ConfigError(message, where="command line") from error


def check_options(options: Any) -> None:
    """Check the fields of `Options` that were made in Python, as `options_of` checks texts.

    Raises `ConfigError` for a value of the wrong type, or out of its bounds.
    """
    from pydantic import TypeAdapter, ValidationError

    kinds = get_type_hints(type(options), include_extras=True)
    for option in fields(options):
        value = getattr(options, option.name)
        try:
            found = TypeAdapter(kinds[option.name]).validate_python(value)
        except ValidationError as error:
            message = f"{option.name} = {value!r}: {error.errors()[0]['msg'].lower()}"
            raise ConfigError(message, where="options") from error
        object.__setattr__(options, option.name, found)
