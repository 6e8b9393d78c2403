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
from typing import Any, NamedTuple

LAYOUT = frozenset({"ctx", "kind", "type_comment", "annotation", "returns", "type_ignores"})
"""Fields of syntax trees that do not change what code does."""

DATA = (".toml", ".bib", ".sql", ".json")
"""Suffixes of data files that belong to the module of their name."""


@cache
def code_hash(module: str) -> str:
    """Return the hash of the code of a module and of all that it imports within its package."""
    package = module.partition(".")[0]
    paths: dict[str, Path] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        if name not in paths and name.partition(".")[0] == package and (path := _module_path(name)):
            paths[name] = path
            pending += [*_read_code(path, name).imports, name.rpartition(".")[0]]
    digest = hashlib.sha256()
    for name, path in sorted(paths.items()):
        digest.update(f"{name}\0{_read_code(path, name).hash}\0".encode())
        for data in map(path.with_suffix, DATA):
            if data.is_file():
                digest.update(data.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _module_path(module: str) -> Path | None:
    """Return the file of a module; None for a name that is not a module, such as an imported class.
    Parent packages are not imported: planning may not load torch."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        return Path(loaded.__file__) if loaded.__file__ else None
    package, *parts = module.split(".")
    spec = find_spec(package) if package else None
    if spec is None or spec.submodule_search_locations is None:
        return Path(spec.origin) if spec and spec.origin and not parts else None
    stems = [Path(folder, *parts) for folder in spec.submodule_search_locations]
    files = (file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py"))
    return next(filter(Path.is_file, files), None)


class _File(NamedTuple):
    """The hash of a file's code, and the names that it may import when it runs. An imported name
    counts as a module, since it could be one."""

    imports: tuple[str, ...]
    hash: str


@cache
def _read_code(path: Path, module: str) -> _File:
    return parse_code(path.read_text(encoding="utf-8"), path, module)


@cache
def parse_code(text: str, path: Path, module: str) -> _File:
    """Read the syntax tree of a file's text, level by level, for its hash and its imports. The hash
    is of the tree's nodes without empty fields (which differ between Python versions) and without
    the fields of `LAYOUT`."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    nodes: list[ast.AST] = [ast.parse(text, str(path))]
    imports: list[str] = []
    for_types: set[ast.AST] = set()
    hashed: list[str] = []
    for node in nodes:
        hashed.append("")
        # Imports under `if TYPE_CHECKING` do not run.
        guard = node.test if isinstance(node, ast.If) else None
        guarded = isinstance(guard, ast.Name) and guard.id == "TYPE_CHECKING"
        for name in node._fields:
            value = getattr(node, name, None)
            if name in LAYOUT or (value is None and name != "value"):
                continue
            items = value if isinstance(value, list) else [value]
            items = [item for item in items if not _is_text(item)]
            children = [item for item in items if isinstance(item, ast.AST)]
            nodes += children
            if guarded or node in for_types:
                for_types.update(children)
            if items:
                texts = (type(i).__name__ if isinstance(i, ast.AST) else repr(i) for i in items)
                hashed += [name, *texts]
        if node not in for_types:
            imports += _imported_names(node, package)
    return _File(tuple(imports), hashlib.sha256("\0".join(hashed).encode()).hexdigest())


def _imported_names(node: ast.AST, package: str) -> list[str]:
    """Return the full names that an import statement of `package` names; none for other nodes."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parents = package.split(".")
    above = parents[: len(parents) - node.level + 1] if node.level else []
    start = ".".join([*above, *filter(None, [node.module])])
    return [start, *(f"{start}.{alias.name}" for alias in node.names)]


def _is_text(node: Any) -> bool:
    """Return whether a statement is a docstring or another bare string."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def versions(*libraries: str) -> dict[str, str]:
    """Return the installed version of each library by its name, or `not installed`."""
    installed = dict.fromkeys(libraries, "not installed")
    for library in libraries:
        with suppress(metadata.PackageNotFoundError):
            installed[library] = metadata.version(library)
    return installed
