"""`discorpora verify`: every damaged file of a build, or of a folder."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from corpora.errors import InputError
from corpora.store.atomic import MANIFEST, is_complete
from corpora.store.damage import checksums, damages
from workflows.cli.common import Output, planned
from workflows.cli.disk import HASH

UNFINISHED = re.compile(r"\..*|.*\.partial|[0-9a-f]{16}\..*")
"""The name of a folder that a run has not finished, or that was set aside."""


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
        folders = _built(place)
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


def _built(place: Path) -> list[Path]:
    """The finished folders below `place`, and those that links there lead to, each once.

    A stage that lost its manifest is one too; what is unfinished, or was set aside, is not.
    """
    found: dict[Path, Path] = {}
    there = filter(Path.is_dir, place.rglob("*"))
    for path in sorted(there, key=Path.is_symlink):  # what a link leads to may be there too
        real = path.resolve()
        built = is_complete(real) or HASH.fullmatch(real.name)
        if built and not any(map(UNFINISHED.fullmatch, path.relative_to(place).parts)):
            found.setdefault(real, path)
    return list(found.values())
