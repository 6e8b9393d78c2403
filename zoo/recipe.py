"""Reading a recipe: one TOML file beside the module that trains it.

recipe = "dissent.bilstm"       # the module zoo/dissent/bilstm.py
[about]                         # shown by `discorpora zoo`
[settings]                      # fields of the module's `Settings`
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin, get_type_hints

from corpora.errors import ConfigError, nearest

ROOM = Path(__file__).parent
ABOUT = ("title", "paper", "objective", "dataset", "published", "tier")
SECTIONS = ("recipe", "about", "settings")


@dataclass(frozen=True)
class Recipe:
    """A recipe as its file states it; its module is loaded by `load_module` only."""

    path: Path
    module: str
    about: Mapping[str, str]
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """`dissent/bilstm_tiny`: the family and the file's name."""
        return f"{self.module.split('.')[0]}/{self.path.stem}"

    def load_module(self) -> ModuleType:
        """Import the recipe's module (with torch): it has `Settings` and `train`."""
        return import_module(f"zoo.{self.module}")

    def line(self, key: str) -> str:
        """`file:line` of `key`, or the file where the key did not come from it."""
        pattern = re.compile(rf"\s*\[?(settings\.|about\.)?{re.escape(key)}\s*[=\].]")
        lines = self.path.read_text(encoding="utf-8").splitlines()
        found = (number for number, line in enumerate(lines, 1) if pattern.match(line))
        number = next(found, None)
        return f"{self.path}:{number}" if number else str(self.path)


def shipped() -> dict[str, Path]:
    """The recipes of this package by name, `family/file`."""
    files = sorted(ROOM.glob("*/*.toml"))
    return {f"{path.parent.name}/{path.stem}": path for path in files if _is_recipe(path)}


def read_recipe(name: str | Path) -> Recipe:
    """Read a recipe from a path or by its shipped name.

    Raises `ConfigError` for a file that is absent, is no TOML, or has unknown sections.
    """
    path = _find(str(name))
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"is not TOML: {error}", where=str(path)) from error
    module = str(found.get("recipe", ""))
    for section in ("about", "settings"):
        if not isinstance(found.get(section, {}), dict):
            raise ConfigError(
                f"{section} = {found[section]!r} is no table", where=str(path), hint=f"[{section}]"
            )
    recipe = Recipe(path, module, found.get("about", {}), found.get("settings", {}))
    _check_keys(recipe, found, SECTIONS)
    _check_keys(recipe, recipe.about, ABOUT)
    modules = sorted({_module_of(file) for file in shipped().values()} - {""})
    if module not in modules:
        raise ConfigError(
            f"no recipe module {module!r}",
            where=recipe.line("recipe"),
            hint=f"{nearest(module, modules)}the modules are: {', '.join(modules)}",
        )
    return recipe


def parse_options(arguments: Sequence[str]) -> dict[str, Any]:
    """`--key value` and `--key=value` as a dictionary; values are read as TOML where they can.

    `--backbone.hidden_size 64` sets one key of a table.
    """
    options: dict[str, Any] = {}
    queue = list(arguments)
    while queue:
        flag = queue.pop(0)
        key, given, value = flag.removeprefix("--").partition("=")
        if not flag.startswith("--") or not key:
            raise ConfigError(f"expected --key value, found {flag!r}", where="command line")
        if not given:
            if not queue:
                raise ConfigError(f"--{key} has no value", where="command line")
            value = queue.pop(0)
        _put(options, key.replace("-", "_"), value)
    return options


def _put(options: dict[str, Any], key: str, value: str) -> None:
    """Set `a.b` in the table `a` of `options`; `a` is either a table or a value, not both."""
    *tables, last = key.split(".")
    target = options
    for table in tables:
        target = target.setdefault(table, {})
        if not isinstance(target, dict):
            break
    if not isinstance(target, dict) or isinstance(target.get(last), dict):
        raise ConfigError(
            f"--{key} {value}: {key.partition('.')[0]} is given as a value and as a table",
            where="command line",
            hint="give one of them",
        )
    target[last] = value


def make_settings(recipe: Recipe, kind: type, options: Mapping[str, Any]) -> Any:
    """The recipe's `Settings` from its file, with `options` on top.

    Raises `ConfigError` that names an unknown key with the nearest valid one, a missing key, or
    a value of the wrong type, each with its place.
    """
    valid = [field.name for field in fields(kind)]
    _check_keys(recipe, recipe.settings, valid)
    _check_keys(recipe, options, valid, where="command line")
    hints = get_type_hints(kind)
    texts = {key: value for key, value in options.items() if hints[key] is str}
    values = _merge(recipe.settings, {k: v for k, v in options.items() if k not in texts}) | texts
    lists = {name for name, hint in hints.items() if get_origin(hint) is tuple}
    for key in lists & values.keys():
        values[key] = _as_list(values[key])
    return _validate(recipe, kind, values, set(options))


def _validate(recipe: Recipe, kind: type, values: dict[str, Any], given: set[str]) -> Any:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        where = "command line" if key in given else recipe.line(key)
        if first["type"] == "missing":
            hint = f"add --{key} VALUE"
            raise ConfigError(f"{key} is not set", where=where, hint=hint) from error
        message = f"{key} = {first['input']!r}: {first['msg'].lower()}"
        raise ConfigError(message, where=where) from error


def _merge(base: Mapping[str, Any], over: Mapping[str, Any], prefix: str = "--") -> dict[str, Any]:
    """`over` on top of `base`; tables are merged key by key, texts read as TOML values.

    Raises `ConfigError` for a key below a value that is no table.
    """
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping):
            table = merged.get(key) or {}
            if not isinstance(table, Mapping):
                raise ConfigError(
                    f"{prefix}{key}.{next(iter(value), '')}: {key} is no table, but {table!r}",
                    where="command line",
                    hint=f"set it whole: {prefix}{key} VALUE",
                )
            merged[key] = _merge(table, value, f"{prefix}{key}.")
        else:
            merged[key] = _toml_value(value)
    return merged


def _toml_value(text: Any) -> Any:
    """A number, a switch, a list or a table written as in TOML; any other text as it is."""
    if not isinstance(text, str):
        return text
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | list | dict) else text


def _as_list(value: Any) -> Any:
    """A list's only value may stand alone, several may stand in one text: `tensorboard,wandb`."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list | tuple) else [value]


def _check_keys(
    recipe: Recipe, found: Mapping[str, Any], valid: Sequence[str], where: str = ""
) -> None:
    for key in found:
        if key not in valid:
            raise ConfigError(
                f"unknown key {key!r}",
                where=where or recipe.line(key),
                hint=f"{nearest(key, valid)}valid keys: {', '.join(sorted(valid))}",
            )


def _find(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    known = shipped()
    if name.removesuffix(".toml") in known:
        return known[name.removesuffix(".toml")]
    if path.suffix == ".toml":
        raise ConfigError(
            f"no recipe file {name!r}",
            hint=f"{nearest(name.removesuffix('.toml'), known)}looked in {str(Path.cwd())!r}",
        )
    raise ConfigError(
        f"no recipe {name!r}",
        hint=f"{nearest(name, known)}give a TOML file or one of: {', '.join(known)}",
    )


def _is_recipe(path: Path) -> bool:
    return bool(_module_of(path))


def _module_of(path: Path) -> str:
    match = re.search(r'^recipe\s*=\s*"([\w.]+)"', path.read_text(encoding="utf-8"), re.M)
    return match.group(1) if match else ""
