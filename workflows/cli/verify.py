"""`discorpora verify`: every damaged file of a build, or of a folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from corpora.errors import InputError
from corpora.store.atomic import MANIFEST, is_complete
from corpora.store.damage import checksums, damages
from workflows.cli.common import Output, planned
from workflows.cli.prune import HASH


def verify(
    what: Annotated[
        str, typer.Argument(metavar="[BUILD|FOLDER]", help="A build file, or a folder of stages.")
    ] = "sample",
    output: Output = "build",
) -> None:
    """Read every file of a build or folder, and name each that is damaged; 1 if one is."""
    place, folders = Path(what), list[Path]()
    if is_complete(place):
        folders = [place]
    elif place.is_dir():
        for path in place.rglob("*"):
            name, beside = path.name.partition(".")[::2]  # what is unfinished, or was set aside
            built = is_complete(path) or HASH.fullmatch(name)
            if built and not beside and path.is_dir() and not path.is_symlink():
                folders.append(path)
    else:
        stages = planned(what, output).lineage
        folders = [stage.folder for stage in stages if stage.folder.is_dir()]
    if not folders:
        raise InputError("holds nothing that is built", where=what, hint="build it first")
    start, files, size, damaged = time.perf_counter(), 0, 0, 0
    for folder in sorted(folders):
        for damage in damages(folder):
            typer.echo(f"damaged: {damage}")
            damaged += 1
        try:
            written = checksums(folder / MANIFEST) or {}
        except InputError:  # it was named above
            continue
        files += len(written) + 1
        size += sum(each.bytes for each in written.values())
    seconds = time.perf_counter() - start
    typer.echo(
        f"{len(folders)} folders, {files:,} files, {size / 2**20:,.1f} MiB in "
        f"{seconds:.1f} s: {damaged or 'nothing'} damaged"
    )
    if damaged:
        typer.echo("the next build sets damaged stages aside when it reads them: or remove them")
        raise typer.Exit(1)
