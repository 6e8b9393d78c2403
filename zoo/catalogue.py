"""The list behind `discorpora zoo`: what each recipe trains, read without loading torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corpora.errors import InputError
from corpora.store.atomic import read_json
from zoo.presets import About, read_preset, shipped


@dataclass(frozen=True)
class Entry:
    """One preset: what it says about itself, and the figure measured here where there is one."""

    name: str
    path: Path
    about: About
    measured: str = ""


def catalogue(results: Path | None = None) -> list[Entry]:
    """All recipes, by name. `results` is a folder in which model folders are looked for.

    The figure measured is the `headline` of a model's `results.json` with the recipe's name; of
    several models there are several.
    Raises `InputError` for a folder that is not there, and for results that are not JSON.
    """
    measured = _headlines(results) if results else {}
    return [
        Entry(name, path, read_preset(path).about, measured.get(name, ""))
        for name, path in shipped().items()
    ]


def _headlines(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise InputError(
            "no such folder",
            where=str(folder),
            hint="give a folder of trained models, e.g. build/sample/models",
        )
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("results.json")):
        result = read_json(file)
        if isinstance(result, dict) and "recipe" in result and "headline" in result:
            found.setdefault(result["recipe"], []).append(str(result["headline"]))
    return {recipe: "; ".join(figures) for recipe, figures in found.items()}
