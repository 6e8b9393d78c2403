"""A hash of the code that makes an output: part of the hash of a stage.

It covers a module and everything it imports within its top-level package, also inside functions.
Docstrings, comments, type annotations and layout do not count; data files (`DATA`) with the name of
a module do. The hash is the same for every Python version.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LAYOUT = frozenset({"ctx", "kind", "type_comment", "annotation", "returns", "type_ignores"})
"""Fields of syntax trees that do not change what code does."""

DATA = (".toml", ".bib", ".sql", ".json")
"""Suffixes of data files that belong to the module of their name."""


@cache
def code_hash(module: str) -> str:
    """The hash of a module and its imports within the package; for a single file, of the file."""
    room = module.partition(".")[0]
    paths: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in paths and name.partition(".")[0] == room and (path := _path_of(name)):
            paths[name] = path
            waiting += [*_imports(path, name), name.rpartition(".")[0]]
    whole = hashlib.sha256()
    for name, path in sorted(paths.items()):
        whole.update(f"{name}\0{_file_hash(path)}\0".encode())
        for data in map(path.with_suffix, DATA):
            if data.is_file():
                whole.update(data.read_bytes())
    return whole.hexdigest()[:16]


@cache
def _path_of(module: str) -> Path | None:
    """The file of a module; None for other names, such as an imported class.

    Parent packages are not imported: planning may not load torch.
    """
    loaded = sys.modules.get(module)
    if loaded is not None:
        return Path(loaded.__file__) if loaded.__file__ else None
    room, *parts = module.split(".")
    spec = find_spec(room) if room else None
    if spec is None or spec.submodule_search_locations is None:
        return Path(spec.origin) if spec and spec.origin and not parts else None
    places = [Path(folder, *parts) for folder in spec.submodule_search_locations]
    files = (file for place in places for file in (place.with_suffix(".py"), place / "__init__.py"))
    return next(filter(Path.is_file, files), None)


@cache
def _imports(path: Path, module: str) -> tuple[str, ...]:
    """What a file may import when it runs: modules, and names that could be modules."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"), str(path))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            above = parents[: len(parents) - node.level + 1] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            names += [start, *(f"{start}.{alias.name}" for alias in node.names)]
        waiting += ast.iter_child_nodes(node)
    return tuple(names)


@cache
def _file_hash(path: Path) -> str:
    """The nodes of a file's tree, level by level, without empty fields (which differ between Python
    versions) and without fields that do not change what the code does.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if name in LAYOUT:
                setattr(node, name, None)
            elif isinstance(value, list):
                value[:] = [item for item in value if not _is_text(item)]
    whole = hashlib.sha256()
    for node in ast.walk(tree):
        fields = [(name, _shown(value)) for name, value in ast.iter_fields(node)]
        kept = [(name, value) for name, value in fields if value or isinstance(node, ast.Constant)]
        whole.update(repr((type(node).__name__, kept)).encode())
    return whole.hexdigest()


def _shown(value: Any) -> Any:
    """A field of a node: its text, the kind of its node, or the number of its nodes."""
    if isinstance(value, ast.AST):
        return type(value).__name__
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return "" if value is None else f"{type(value).__name__} {value!r}"


def _is_text(node: Any) -> bool:
    """Whether a statement is a docstring or another bare string."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def versions(*libraries: str) -> dict[str, str]:
    """The installed versions of `libraries`."""
    installed = dict.fromkeys(libraries, "not installed")
    for library in libraries:
        with suppress(metadata.PackageNotFoundError):
            installed[library] = metadata.version(library)
    return installed
