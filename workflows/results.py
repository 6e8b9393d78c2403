"""The results of a build under `OUTPUT/NAME/`: folders with short names, each with its stage."""

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
"""The file in `OUTPUT/NAME/` that names the results there, each with the folder of its stage."""


class ResultsRecord(BaseModel):
    """The content of `RECORD`: paths of results, and of stages, below and from its folder."""

    results: Mapping[Inside, str]


def results_at(place: Path) -> dict[Path, Path]:
    """Return the results that a build has put under `place`, each with the folder of its stage.

    Without a record they are the symbolic links to stages, which earlier versions wrote.
    """
    record = place / RECORD
    if record.is_file():
        results = read_record(ResultsRecord, record, "remove it and run the build again").results
        return {
            place / name: Path(os.path.normpath(place / stage)) for name, stage in results.items()
        }
    links = {path: path.resolve() for path in place.rglob("*") if path.is_symlink()}
    return {path: stage for path, stage in links.items() if "stages" in stage.parts}


def stage_folder(path: Path) -> Path:
    """Return the folder of the stage that made the result `path`, or `path` if it is no result."""
    path = path.resolve()
    for place in path.parents:
        if (place / RECORD).is_file():
            stage = results_at(place).get(path, path)
            return stage if stage.is_dir() else path  # a copy may be without the stages
    return path


def put_results(place: Path, results: Mapping[Path, Path]) -> None:
    """Put exactly these results under `place`; each is a copy (hard links) of its stage's folder.

    A result that is up to date stays. A folder that somebody has edited gets another name. Raises
    `DiscorporaError` if a folder of another origin has the name of a result.
    """
    earlier = results_at(place)
    remove_results(place, earlier.keys() - results.keys())
    outdated = {folder: stage for folder, stage in results.items() if not is_linked(stage, folder)}
    for folder in outdated.keys() - earlier.keys():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise DiscorporaError(
                "is in the way of a result: no build has put it there",
                where=str(folder),
                hint="move it away and run again",
            )
    _write_record(place, results)  # first, so that the folders of a killed build are known
    for folder, stage in outdated.items():
        with locked(beside(stage, "lock"), "another process makes this folder"):
            mend(folder)
            _rename_edited(folder)
            replace_by_link(stage, folder)


def remove_results(place: Path, folders: Collection[Path]) -> None:
    """Remove results under `place`; those that somebody has edited get other names."""
    if not folders:
        return
    for folder in folders:
        mend(folder)
        _rename_edited(folder)
        remove_folder(folder)
    _write_record(place, {f: stage for f, stage in results_at(place).items() if f not in folders})


def _rename_edited(folder: Path) -> None:
    """Rename a result's folder to `NAME.edited`, with a warning, if somebody has edited it."""
    if folder.is_symlink() or not folder.is_dir() or not (names := edits(folder)):
        return
    candidates = (folder.with_name(f"{folder.name}.edited{number or ''}") for number in count())
    new_path = folder.replace(next(path for path in candidates if not path.exists()))
    log.warning("%s: was edited (%s): kept as %s", folder, ", ".join(names), new_path.name)


def _write_record(place: Path, results: Mapping[Path, Path]) -> None:
    """Write the record of the results under `place`; remove it if there are none."""
    names = {
        folder.relative_to(place).as_posix(): os.path.relpath(stage, place)
        for folder, stage in results.items()
    }
    if names:
        write_json(place / RECORD, ResultsRecord(results=names).model_dump())
    else:
        (place / RECORD).unlink(missing_ok=True)
