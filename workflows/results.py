"""The results of a build under `OUTPUT/NAME/`: folders of their own, and which stage each is of."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path

from pydantic import BaseModel

from corpora.errors import DiscorporaError
from corpora.outside import read_record
from corpora.store.atomic import beside, locked, write_json
from corpora.store.copies import edits, is_linked, mend, remove_folder, replace_by_link
from corpora.store.manifest import Inside

log = logging.getLogger("discorpora")

RECORD = ".results.json"
"""In `OUTPUT/NAME/`: the results there, each with the folder of its stage."""


class Recorded(BaseModel):
    results: Mapping[Inside, str]


def results_at(place: Path) -> dict[Path, Path]:
    """The results that a build has put under `place`, each with the folder of its stage.

    Where there is no record: the symbolic links to stages that builds wrote earlier.
    """
    record = place / RECORD
    if record.is_file():
        results = read_record(Recorded, record, "remove it and run the build again").results
        return {
            place / name: Path(os.path.normpath(place / stage)) for name, stage in results.items()
        }
    links = {path: path.resolve() for path in place.rglob("*") if path.is_symlink()}
    return {path: stage for path, stage in links.items() if "stages" in stage.parts}


def stage_folder(path: Path) -> Path:
    """The folder of the stage whose output is in `path`, which may be a result; else `path`."""
    path = path.resolve()
    for place in path.parents:
        if (place / RECORD).is_file():
            stage = results_at(place).get(path, path)
            return stage if stage.is_dir() else path  # a copy may be without the stages
    return path


def put_results(place: Path, results: Mapping[Path, Path]) -> None:
    """Let exactly these results stand under `place`, each with the folder of its stage.

    What is there as it should be is not written again. A folder that somebody has edited is kept
    under another name.
    Raises `DiscorporaError` if something stands there that no build has put there.
    """
    before = results_at(place)
    remove_results(place, before.keys() - results.keys())
    wanted = {folder: stage for folder, stage in results.items() if not is_linked(stage, folder)}
    for folder in wanted.keys() - before.keys():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise DiscorporaError(
                "is in the way of a result: no build has put it there",
                where=str(folder),
                hint="move it away and run again",
            )
    _record(place, results)  # before they are there: what a killed build leaves is a build's
    for folder, stage in wanted.items():
        with locked(beside(stage, "lock"), "another process makes this folder"):
            mend(folder)
            _keep_edited(folder)
            replace_by_link(stage, folder)


def remove_results(place: Path, folders: Collection[Path]) -> None:
    """Remove results under `place`; those that somebody has edited get other names."""
    if not folders:
        return
    for folder in folders:
        mend(folder)
        _keep_edited(folder)
        remove_folder(folder)
    _record(place, {f: stage for f, stage in results_at(place).items() if f not in folders})


def _keep_edited(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir() or not (names := edits(folder)):
        return
    others = (folder.with_name(f"{folder.name}.edited{number or ''}") for number in count())
    kept = folder.replace(next(path for path in others if not path.exists()))
    log.warning("%s: was edited (%s): kept as %s", folder, ", ".join(names), kept.name)


def _record(place: Path, results: Mapping[Path, Path]) -> None:
    """Write which results stand under `place`."""
    names = {
        folder.relative_to(place).as_posix(): os.path.relpath(stage, place)
        for folder, stage in results.items()
    }
    if names:
        write_json(place / RECORD, Recorded(results=names).model_dump())
    else:
        (place / RECORD).unlink(missing_ok=True)
