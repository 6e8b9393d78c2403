"""The commands for built folders: `verify` names damaged files, `prune` unneeded stages."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from corpora.errors import InputError, amount
from corpora.store.atomic import MANIFEST, Busy, is_complete, locked, partial_path, read_json
from corpora.store.damage import checksums, damages
from workflows.cli.common import Config, Output, build_file, planned

HASH = re.compile(
    r"([0-9a-f]{16})(\.(?:partial|engine|(?:run|train)\.json|error\.txt|logs|damaged\d*))?"
)
"""The names of a stage's paths: its folder `0123456789abcdef`, and with a suffix the folder of an
interrupted run, workers' logs, costs of the stage and of a training, the stage's error, logs of a
training, and damaged folders."""
UNFINISHED = re.compile(r"\..*|.*\.(partial|edited\d*)|[0-9a-f]{16}\..*")
"""The name of a folder that a run has not finished, or that was set aside: `NAME.partial`."""


class StoredStage(NamedTuple):
    """A stage on the disk: its folder, all paths named by its hash, and results linked to it."""

    folder: Path
    paths: list[Path]
    results: list[Path]


def prune(
    configs: Annotated[
        list[str] | None, typer.Argument(metavar="BUILD", help="All build files to keep.")
    ] = None,
    config: Config = "",
    output: Output = "build",
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is listed.")] = False,
) -> None:
    """List, and with --remove delete, stages that none of these build files needs."""
    from workflows.tasks.build import lock_output, unlock_output

    configs = [name for name in (*(configs or ()), config) if name] or [build_file("")]
    root = Path(output).absolute()
    if not (root / "stages").is_dir():
        raise InputError("holds no stages", where=output, hint="name a build's --output folder")
    if remove:
        lock_output(root)
    try:
        needed, unneeded = _stored_stages(root, _needed_folders(configs, output))
        counted = set[tuple[int, int]]()
        for stage in needed:
            count_size((*stage.paths, *stage.results), counted)
        total = 0
        for stage in unneeded:
            total += (size := count_size((*stage.paths, *stage.results), counted))
            results = [str(path.relative_to(root)) for path in stage.results]
            further = f"  (and {', '.join(results)})" if results else ""
            typer.echo(f"{_mib(size)}  {stage.folder.relative_to(root)}{further}")
        typer.echo(f"{_mib(total)}  in all; not needed by {', '.join(configs)}: {len(unneeded)}")
        removed = [_remove(stage, root) for stage in unneeded] if remove else []
        if busy := removed.count(False):
            typer.echo(f"kept, because another process is making them: {busy}")
        elif remove and unneeded:
            typer.echo("removed")
        elif unneeded:
            typer.echo("nothing was removed; --remove removes the listed stages")
    finally:
        unlock_output(root)


def _needed_folders(configs: list[str], output: str) -> set[Path]:
    """Return the folders of all stages of the build files `configs`.

    Raises `InputError` for a missing input, since the names of folders depend on it.
    """
    from workflows.tasks.build import missing_inputs

    needed = set()
    for config in configs:
        task = planned(config, output)
        for missing in (entry for stage in task.lineage for entry in missing_inputs(stage)):
            if missing.stops:
                raise InputError(
                    f"{missing.name}: {missing.problem}",
                    where=missing.where,
                    hint="the stages that a build file needs follow from its inputs: "
                    f"{missing.get or 'bring it back, or correct the build file'}",
                )
        needed |= {stage.folder for stage in task.lineage}
    return needed


def _stored_stages(root: Path, needed: set[Path]) -> tuple[list[StoredStage], list[StoredStage]]:
    """Return the stages in an output folder: those with a folder in `needed`, and the others."""
    from workflows.results import results_at
    from workflows.tables import NO_BUILDS

    paths_of: dict[Path, list[Path]] = {}
    for path in sorted((root / "stages").rglob("*")):
        match = HASH.fullmatch(path.name)
        inside = any(HASH.fullmatch(parent.name) for parent in path.relative_to(root).parents)
        if match and not inside and not path.is_symlink() and _is_ours(path):
            # A damaged folder is listed by itself, since its stage may be needed.
            is_damaged = (match[2] or "").startswith(".damaged")
            paths_of.setdefault(path if is_damaged else path.with_name(match[1]), []).append(path)
    results: dict[Path, list[Path]] = {}
    for place in sorted(root.iterdir()):
        if place.is_dir() and place.name not in NO_BUILDS:
            for path, folder in results_at(place).items():
                results.setdefault(folder, []).append(path)
    stages = [StoredStage(folder, ps, results.get(folder, [])) for folder, ps in paths_of.items()]
    return [s for s in stages if s.folder in needed], [s for s in stages if s.folder not in needed]


def _is_ours(path: Path) -> bool:
    """Tell whether discorpora made a path that `HASH` matches: a manifest repeats the hash."""
    if "." in path.name:
        return True  # no other program names files with 16 digits of a hash and these suffixes
    try:
        manifest: Any = read_json(path / MANIFEST)
    except InputError:  # a missing or damaged manifest, which `verify` reports
        return False
    hashes = (manifest.get("hash"), manifest.get("stage", {}).get("hash"))
    return path.name in hashes or {"code", "files", "settings"} <= manifest.keys()  # a model


def _remove(stage: StoredStage, root: Path) -> bool:
    """Remove a stage and its results; returns False if another process is making the stage.

    If it is interrupted, a partial folder is left.
    """
    from workflows.results import remove_results

    folder = stage.folder
    try:
        with locked(folder.with_name(f".{folder.name}.lock"), "another process makes this folder"):
            for result in stage.results:
                remove_results(root / result.relative_to(root).parts[0], [result])
            partial = partial_path(folder)
            shutil.rmtree(partial, ignore_errors=True)
            if folder in stage.paths:
                folder.replace(partial)
            for path in (partial, *stage.paths):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    except Busy:
        return False
    return True


def count_size(paths: Iterable[Path], counted: set[tuple[int, int]]) -> int:
    """Return the bytes of the files at and below `paths` that are not in `counted`; add them there.

    A file that several folders share, as a stage and its result do, so counts once.
    """
    size = 0
    for path in paths:
        for file in (path, *path.rglob("*")):
            stat = file.lstat() if file.is_file() else None
            if stat and (key := (stat.st_dev, stat.st_ino)) not in counted:
                counted.add(key)
                size += stat.st_size
    return size


def _mib(size: int) -> str:
    return f"{size / 2**20:>10,.1f} MiB"


def verify(
    what: Annotated[
        str, typer.Argument(metavar="BUILD|FOLDER", help="A build file, or a folder of stages.")
    ] = "",
    config: Config = "",
    output: Output = "build",
) -> None:
    """Read every file of a build or folder, and name each that is damaged; 1 if one is."""
    what = build_file(config, what)
    place, folders = Path(what), list[Path]()
    if is_complete(place):
        folders = [place]
    elif place.is_dir():
        folders = _finished_folders(place)
    else:
        stages = planned(what, output).lineage
        folders = [stage.folder for stage in stages if stage.folder.is_dir()]
    if not folders:
        raise InputError("holds nothing that is built", where=what, hint="build it first")
    start, files, size, damaged = time.perf_counter(), 0, 0, 0
    hashes: dict[tuple[int, int], str] = {}
    for folder in sorted(folders):
        for damage in damages(folder, hashes=hashes):
            typer.echo(f"damaged: {damage}")
            damaged += 1
        try:
            entries = checksums(folder / MANIFEST) or {}
        except InputError:  # it was named above
            continue
        files += len(entries) + 1
        size += sum(entry.bytes for entry in entries.values())
    seconds = time.perf_counter() - start
    typer.echo(
        f"{amount(len(folders), 'folder')}, {amount(files, 'file')}, {size / 2**20:,.1f} MiB in "
        f"{seconds:.1f} s: {damaged or 'nothing'} damaged"
    )
    if damaged:
        typer.echo("the next build sets damaged stages aside when it reads them: or remove them")
        raise typer.Exit(1)


def _finished_folders(place: Path) -> list[Path]:
    """Return the finished folders below `place`, and the targets of links there, each once.

    A stage whose manifest is lost counts as finished; a folder that was set aside does not.
    """
    folders: dict[Path, Path] = {}
    paths = filter(Path.is_dir, place.rglob("*"))
    for path in sorted(paths, key=Path.is_symlink):  # links last: their targets may be here too
        target = path.resolve()
        is_finished = is_complete(target) or HASH.fullmatch(target.name)
        if is_finished and not any(map(UNFINISHED.fullmatch, path.relative_to(place).parts)):
            folders.setdefault(target, path)
    return list(folders.values())
