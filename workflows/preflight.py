"""What can be known before anything runs: which sources, parsers and inputs are not here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from corpora.errors import ConfigError, InputError
from workflows import engines
from workflows.tasks.models import Train
from workflows.tasks.sources import Parse

if TYPE_CHECKING:
    from workflows.stage import StageTask


def check(task: StageTask) -> None:
    """Raise `InputError` naming every source of `task`'s graph that is not there.

    And `ConfigError` for an engine that cannot be used, and for a parser that is not installed.
    """
    engines.check(task.build.engine, task.build.path)
    lines = [
        f"{s.name} = {s.spec!r}: {s.problem}{f' (get it: {s.get})' * bool(s.get)}"
        for s in task.all_sources
        if s.problem and not s.remote
    ]
    if lines:
        raise InputError(
            f"{len(lines)} of the sources cannot be read:\n  " + "\n  ".join(lines),
            where=task.build.path,
            hint="set DISCORPORA_DATA or mend the build file; see: discorpora plan --config FILE",
        )
    for stage in task.lineage:
        if isinstance(stage, Parse) and not stage.output().exists():
            problem, how = lacking(stage.parser_name)
            if problem:
                keys = task.build.parser_keys(stage.source, stage.parser_name)
                where = task.build.where(*keys)
                raise ConfigError(f"{stage.parser_name!r}: {problem}", where=where, hint=how)


def missing_inputs(stages: Sequence[StageTask]) -> list[tuple[str, str, str]]:
    """Name, why it is missing, how to get it: for each input that is not on this machine."""
    missing: dict[str, tuple[str, str]] = {}
    for stage in stages:
        for source in stage.own_sources:
            if source.problem:
                missing[source.name] = (f"{source.spec}: {source.problem}", source.get)
        if isinstance(stage, Parse) and (lacks := lacking(stage.parser_name))[0]:
            missing[f"parser {stage.parser_name}"] = lacks
        if isinstance(stage, Train):
            recipe, get = stage.chosen.recipe, stage.entry.get
            backbone, vectors = getattr(recipe, "backbone", ""), getattr(recipe, "vectors", "")
            if backbone and not Path(backbone).is_dir():
                missing[f"{stage.key}, backbone {backbone}"] = ("from the network", get)
            if vectors and not Path(vectors).is_file():
                missing[f"{stage.key}, vectors {vectors}"] = ("no such file", get)
    return [(name, why, get) for name, (why, get) in missing.items()]


def lacking(parser: str) -> tuple[str, str]:
    """What of `parser` is not on this machine, and how to get it; empty where nothing lacks.

    Nothing is loaded: what is there may still be of another version.
    """
    kind, _, name = parser.partition(":")
    if kind == "spacy" and not (_installed(name) or Path(name).exists()):
        return f"no package {name} is installed", f"python -m spacy download {name}"
    if kind != "stanza":
        return "", ""
    download = f"python -c \"import stanza; stanza.download('{name}')\""
    if not _installed("stanza"):
        install = "pip install 'discorpora[stanza]'"
        return "the package stanza is not installed", f"{install}; {download}"
    usual = Path.home() / "stanza_resources"
    models = Path(os.environ.get("STANZA_RESOURCES_DIR", usual)) / name
    return ("", "") if models.is_dir() else (f"no models in {models}", download)


def _installed(package: str) -> bool:
    with suppress(ModuleNotFoundError, ValueError):
        return find_spec(package) is not None
    return False
