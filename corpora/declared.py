"""Declarations: classes that state their settings once, and registries that find them by name.

A reader, builder, recipe, objective or suite is a subclass of `Declared`. Its settings are typed
fields; planning, validation, help texts, documentation and cards are made from them. A `Registry`
finds a class by name: built-in ones are listed in the package, plug-ins are entry points
(`discorpora.builders` and so on), and others are written as `package.module:Class` or
`FILE.py:Class`. Only the named class is imported.
"""

from __future__ import annotations

import hashlib
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module, metadata, util
from inspect import cleandoc
from pathlib import Path
from types import ModuleType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from corpora.errors import ConfigError, expand_home, nearest

Loc = tuple[int | str, ...]
"""Keys and list positions from the outermost table to a value."""
Where = Callable[[Loc], str]
"""The place of a key, for a message: `build.toml:12`, or `command line`."""

REFERENCE = re.compile(r"(?P<module>[A-Za-z_][\w.]*|.*\.py):(?P<name>[A-Za-z_]\w*)")
"""`package.module:Class` or `FILE.py:Class`."""

WIDTH = 100


class TomlTable(BaseModel):
    """A table of settings: frozen, no unknown keys; the text below a field is its description."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_lists_as_text(cls, table: Any) -> Any:
        """Split a list in one text (`tensorboard,wandb`); refuse `true` in place of a number."""
        if not isinstance(table, Mapping):
            return table
        values = dict(table)
        list_keys = {n for n, f in cls.model_fields.items() if get_origin(f.annotation) is tuple}
        for key in list_keys & values.keys():
            value = values[key]
            if isinstance(value, str):
                values[key] = [part.strip() for part in value.split(",") if part.strip()]
            elif not isinstance(value, list | tuple):
                values[key] = [value]
        for key, field in cls.model_fields.items():
            if field.annotation in (int, float) and isinstance(values.get(key), bool):
                values[key] = str(values[key])  # pydantic refuses "True", but would accept True
        return values

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Give a field that only changes the default the description of the base class's field."""
        for name, field in cls.model_fields.items():
            bases = (getattr(base, "model_fields", {}).get(name) for base in cls.__mro__[1:])
            field.description = field.description or next(
                (base.description for base in bases if base is not None), None
            )

    @classmethod
    def of(
        cls, table: Mapping[str, Any], where: Where | str = "", *, entries: bool = False
    ) -> Self:
        """Return the settings in `table`, checked.

        `where` is the place of the table, or a function that gives the place of a key. `entries`
        says that the place also names the entry of a list, so that a message leaves it out. Raises
        `ConfigError` with the value, its place, what was expected, and the nearest name for an
        unknown key.
        """
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            raise config_error(error, cls, table, where, entries=entries) from None


class Declared(TomlTable):
    """The base class of readers, builders, recipes, objectives and suites.

    A user adds one as a subclass, in a plug-in or a file. The class variables of the subclass say
    what the subclass reads and gives.
    """

    name: ClassVar[str] = ""
    """Its name in build files and on the command line."""
    version: ClassVar[int] = 1
    """Increased when the output changes for equal settings."""
    paper: ClassVar[str] = ""

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return cleandoc(cls.__doc__ or "").partition("\n")[0]


D = TypeVar("D", bound=Declared)


class Registry(Generic[D]):
    """The subclasses of `base`, by name; a class is imported when it is asked for.

    `what` is the kind in messages ("builder"); `built_in` maps a name to `package.module:Class`.
    """

    def __init__(self, what: str, base: type[D], built_in: Mapping[str, str]) -> None:
        self.what, self.base, self.built_in = what, base, built_in
        self.group = f"discorpora.{what.replace(' ', '_')}s"

    def __iter__(self) -> Iterator[str]:
        """Yield the built-in names, then those of installed plug-ins."""
        return iter([*self.built_in, *sorted(self._plugins())])

    def find(self, name: str) -> type[D]:
        """Return the class called `name`, or named as `package.module:Class` or `FILE.py:Class`.

        Raises `ConfigError` for an unknown name (with the nearest one), for a name that is declared
        twice, and for a plug-in that cannot be imported or is of another kind.
        """
        plugins = self._plugins()
        reference = self.built_in.get(name) or (plugins[name].value if name in plugins else name)
        if reference.endswith(".py"):
            raise ConfigError(f"{reference!r} names no class", hint=f"write {reference}:Class")
        if not REFERENCE.fullmatch(reference):
            raise ConfigError(
                f"no {self.what} {name!r}; {nearest(name, self)}".rstrip("; "),
                hint=f"the {self.what}s are: {', '.join(self)}; a custom one is "
                "package.module:Class or FILE.py:Class",
            )
        declaration = import_object(reference)
        if not (isinstance(declaration, type) and issubclass(declaration, self.base)):
            base = f"{self.base.__module__}.{self.base.__name__}"
            raise ConfigError(f"{reference} is not a subclass of {base}")
        return declaration

    def plugin(self, name: str) -> str:
        """Return the origin of a plug-in called `name`; "" for a built-in name.

        It is `DISTRIBUTION VERSION`, or the name of the Python file that has the class.
        """
        if name in self.built_in:
            return ""
        entry = self._plugins().get(name)
        if entry is not None:
            return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        module = name.partition(":")[0]
        if module.endswith(".py"):
            return Path(module).name
        packages = metadata.packages_distributions().get(module.partition(".")[0], ())
        return f"{packages[0]} {metadata.version(packages[0])}" if packages else module

    def _plugins(self) -> dict[str, metadata.EntryPoint]:
        """Return the entry points of this kind by name; `ConfigError` for a name used twice."""
        plugins: dict[str, metadata.EntryPoint] = {}
        for entry in _entry_points(self.group):
            other = plugins.setdefault(entry.name, entry).value
            if entry.name in self.built_in or other != entry.value:
                raise ConfigError(
                    f"two {self.what}s are called {entry.name!r}: "
                    f"{self.built_in.get(entry.name) or other} and {entry.value}",
                    hint=f"rename the entry point in {self.group}, or uninstall one of them",
                )
        return plugins


@cache
def _entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=group))


def with_absolute_path(reference: str, folder: Path) -> str:
    """Return `FILE.py:Class` with FILE made absolute from `folder`; other references unchanged."""
    match = REFERENCE.fullmatch(reference)
    if match is None or not match["module"].endswith(".py"):
        return reference
    path = expand_home(match["module"])
    return f"{path if path.is_absolute() else (folder / path).resolve()}:{match['name']}"


def without_folders(reference: str) -> str:
    """Return `FILE.py:Class` without FILE's folders; other references are returned unchanged."""
    match = REFERENCE.fullmatch(reference)
    return f"{Path(match['module']).name}:{match['name']}" if match else reference


def import_object(reference: str) -> Any:
    """Import the object that `package.module:NAME` or `FILE.py:NAME` refers to.

    Raises `ConfigError` if there is no such file, module or object, or if its code raises.
    """
    place, _, name = reference.rpartition(":")
    try:
        module = _module_of_file(Path(place)) if place.endswith(".py") else import_module(place)
    except Exception as error:  # whatever the plug-in's own code raises
        if place.endswith(".py") and not expand_home(place).is_file():
            raise ConfigError(f"no file {place!r}", where=reference) from None
        not_installed = isinstance(error, ImportError)
        hint = "install its package in this environment" if not_installed else "correct its code"
        problem = str(error) if not_installed else f"{type(error).__name__}: {error}"
        raise ConfigError(f"cannot be imported: {problem}", where=reference, hint=hint) from error
    if not hasattr(module, name):
        what = "class" if name[:1].isupper() else "function"
        names = [n for n, value in vars(module).items() if callable(value)]
        raise ConfigError(f"{place} has no {what} {name!r}", hint=nearest(name, names).strip())
    return getattr(module, name)


def _module_of_file(path: Path) -> ModuleType:
    """Import a Python file once, under a module name made from its path."""
    path = expand_home(path).resolve()
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"discorpora_file_{digest}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(path)
    module = sys.modules[name] = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


# Pydantic's errors in plain words.


def config_error(
    error: ValidationError,
    kind: type[BaseModel],
    table: Any,
    where: Where | str = "",
    *,
    entries: bool = False,
) -> ConfigError:
    """Return pydantic's first problem with `table` as an error in plain words.

    It names the value, its place and what was expected. `kind` is the class that rejected `table`;
    `where` and `entries` are those of `TomlTable.of`.
    """
    errors = error.errors()
    # Every member of a union reports errors: at the first place, the deepest counts.
    start = _keys(table, errors[0])
    with_keys = [(_keys(table, each), each) for each in errors]
    at_first_place = [(keys, each) for keys, each in with_keys if keys[: len(start)] == start]
    keys, first = max(at_first_place, key=lambda pair: len(pair[0]))
    if first["type"] == "missing":  # the key may be in the table under a misspelt name
        unknown = (pair for pair in with_keys if pair[1]["type"] == "extra_forbidden")
        keys, first = next((p for p in unknown if p[0][:-1] == keys[:-1]), (keys, first))
    cause = first.get("ctx", {}).get("error")
    place = where if isinstance(where, str) else where(keys)
    place_names_entry = entries and len(keys) > 2 and isinstance(keys[1], int)
    key = ".".join(map(str, keys[2 if place_names_entry else 0 :]))
    if isinstance(cause, ConfigError):  # a validator of the class itself
        message = ": ".join(filter(None, (cause.where, cause.message)))
        message = f"{key}: {message}" if key and not message.startswith(key) else message
        return ConfigError(message, where=place, hint=cause.hint)
    if first["type"] == "extra_forbidden":
        valid = _fields_at(kind, keys[:-1])
        return ConfigError(
            f"unknown key {key!r}; {nearest(str(keys[-1]), valid)}".rstrip("; "),
            where=place,
            hint=f"valid here: {', '.join(valid) or 'none'}",
        )
    if first["type"] == "missing":
        return ConfigError(f"the key {key!r} is missing", where=place)
    value = f"{key} = {first['input']!r}" if key else repr(first["input"])
    return ConfigError(f"{value}: {_expected(first)}", where=place)


_EXPECTED = {
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "a number above {gt:g}",
    "less_than_equal": "{le:g} or less",
    "less_than": "a number below {lt:g}",
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string_type": "a text in quotes",
    "list": "a list",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
}
"""The expected value of a field, by the beginning of pydantic's error type."""


def _expected(error: Mapping[str, Any]) -> str:
    """Return what a field expects, in plain words, from one of pydantic's errors."""
    context = error.get("ctx", {})
    if error["type"] == "literal_error":
        literals = re.findall(r"'([^']*)'", str(context["expected"]))
        return f"{nearest(str(error['input']), literals)}expected {context['expected']}"
    for start, text in _EXPECTED.items():
        if error["type"].startswith(start):
            return f"expected {text.format_map(context)}"
    return str(error["msg"]).removeprefix("Value error, ")


def _keys(table: Any, error: Mapping[str, Any]) -> Loc:
    """Return the keys in the location of one of pydantic's errors, without the names of types.

    The keys lead from `table` to the wrong value; a missing key is the last one.
    """
    loc: Loc = error["loc"]
    keys: list[int | str] = []
    value: Any = table
    for part in loc:
        in_list = isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)
        if in_list or (isinstance(value, Mapping) and part in value):
            value = value[part]
            keys.append(part)
    return (*keys, loc[-1]) if error["type"] == "missing" else tuple(keys)


def _fields_at(kind: type[BaseModel], keys: Loc) -> list[str]:
    """Return the valid keys of the table at `keys`, in alphabetical order."""
    model: Any = kind
    for part in keys:
        fields = getattr(model, "model_fields", {})
        model = fields[part].annotation if part in fields else model
        tables = [a for a in _all_args(model) if isinstance(a, type) and issubclass(a, BaseModel)]
        model = tables[0] if tables else model
    return sorted(getattr(model, "model_fields", {}))


def _all_args(hint: Any) -> Iterator[Any]:
    """Yield the arguments of a type hint and, after each, the arguments inside it."""
    for argument in get_args(hint):
        yield argument
        yield from _all_args(argument)


# The description of settings for help and the reference pages.


def settings_help(kind: type[BaseModel], values: Mapping[str, Any] | None = None) -> str:
    """Return a help text with the name, value, type and meaning of each setting of a class."""
    lines = []
    for name, field in kind.model_fields.items():
        value = (values or {}).get(name, field.get_default(call_default_factory=True))
        value_text = (
            "required" if field.is_required() and name not in (values or {}) else repr(value)
        )
        lines.append(f"  --{field.alias or name} {value_text}  ({type_name(field.annotation)})")
        text = " ".join((field.description or "").split())
        lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines) + "\n"


def type_name(hint: Any) -> str:
    """Return a setting's type in plain words: `list of: whole number`."""
    names = {int: "whole number", float: "number", bool: "true or false", str: "text"}
    if hint in names:
        return names[hint]
    origin = get_origin(hint)
    arguments = [argument for argument in get_args(hint) if argument not in (..., None, "")]
    if origin is Annotated:
        return type_name(arguments[0])
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if origin in (tuple, list):
        return f"list of: {type_name(arguments[0])}"
    if origin in (Union, UnionType):
        kinds = (type_name(a) for a in arguments if a is not type(None))
        return " or ".join(filter(None, kinds))
    return "table" if origin is dict else getattr(hint, "__name__", str(hint))
