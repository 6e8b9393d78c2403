"""The build file of a paper with its overlay, run over the made-up corpora from plan to tables.

`overlays/PAPER.toml` has the tables of the build file with other paths, backbones, sizes, steps and
numbers of rows. Entries of `[[sources]]` and `[[validation]]` are named as tables are, and a name
may be a pattern: `[models."bert*".settings]` changes the settings of all these models.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from tests.workflows.test_papers import in_this_process
from workflows import training
from workflows.cli.app import app
from workflows.cli.common import planned
from workflows.config import config_path
from workflows.papers import Filled, filled

OVERLAYS = Path(__file__).with_name("overlays")
NAMED = ("sources", "validation")
"""Lists of tables whose entries an overlay names."""
CHANGEABLE = {
    *("spec", "gold", "data", "parser", "backbone", "vectors", "cache"),
    *("hidden_size", "projection_size", "embedding_size", "decoder_size"),
    *("hidden", "embedding", "layers", "threads", "workers", "vocabulary"),
    *("max_words", "max_length", "max_tokens", "batch_size"),
    *("max_steps", "epochs", "iterations", "seeds", "save_steps", "eval_steps", "warmup_steps"),
    *("max_train_rows", "max_eval_rows", "limit", "document_lines"),
    *("train", "validation", "test"),
    *("tokenizer", "vocab_size", "mine_every"),
}
"""The last keys that an overlay may have: paths, backbones, sizes, steps, numbers of rows."""


def shipped(paper: str) -> dict[str, Any]:
    """The tables of the shipped build file of a paper."""
    return tables_of(config_path(f"papers/{paper}"))


def overlay(paper: str) -> dict[str, Any]:
    """The tables of its overlay."""
    return tables_of(OVERLAYS / f"{paper}.toml")


def tables_of(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def keys_of(table: Mapping[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    """The keys of an overlay, each with those above it."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from keys_of(value, *above, key)
        else:
            yield (*above, key)


def overlaid(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with the changes. Raises `KeyError` for a name that fits no table."""
    result = dict(tables)
    for pattern, change in changes.items():
        if not isinstance(change, dict):
            result[pattern] = change
            continue
        names = [name for name in result if fnmatchcase(name, pattern)]
        if not names and pattern != "settings":
            raise KeyError(f"the build file has no {pattern!r}")
        for name in names or [pattern]:
            old = result.get(name, {})
            if name in NAMED:
                entries = {entry["name"]: entry for entry in old}
                result[name] = [*overlaid(entries, change).values()]
            else:
                result[name] = overlaid(old, change)
    return result


def toml_of(tables: Mapping[str, Any]) -> str:
    """A build file: each top-level table in a line of its own, lists of tables as inline tables."""
    return "\n".join(f"{json.dumps(key)} = {_value(value)}" for key, value in tables.items()) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def write_build(paper: str, data: Path, folder: Path) -> Path:
    """The overlaid build file of a paper, over the corpora in `data`."""
    tables = overlaid(shipped(paper), overlay(paper)) | {"data": str(data)}
    path = folder / f"{paper}.toml"
    path.write_text(toml_of(tables), encoding="utf-8")
    return path


def run_to_tables(config: Path, output: Path) -> list[Filled]:
    """Plan and build a build file, all trainings in this process; its tables of the paper."""
    with patch.object(training, "_run", in_this_process), patch.dict(os.environ):
        os.environ.pop("DISCORPORA_DATA", None)  # it would replace the build file's `data`
        for command in ("plan", "build"):
            words = [command, "--config", str(config), "--output", str(output)]
            done = CliRunner().invoke(app, words, catch_exceptions=False)
            assert done.exit_code == 0, done.output[-4000:]
        task = planned(str(config), str(output))
        return filled(task.build, task.stages())


def absences(tables: Iterable[Filled]) -> list[str]:
    """The rows and columns without a number of ours, but the published-only rows."""
    lacking = []
    for table in tables:
        name, parts = table.table.name, table.table.parts
        for line in table.lines:
            if line.name in table.table.others:
                continue
            if line.state:
                lacking.append(f"{name}, {line.name}: {line.state}")
            elif table.table.kind == "confusion" and not line.confusions:
                lacking.append(f"{name}, {line.name}: no matrix")
            elif not line.curves:
                of_row = [part for part in parts if any(row[0] == line.name for row in part.rows)]
                columns = {head for part in of_row or parts for head in part.shown_columns}
                lacking += [
                    f"{name}, {line.name}, {c}" for c in sorted(columns) if c not in line.measured
                ]
    return lacking
