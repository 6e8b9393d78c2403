"""Folders that stand by themselves and share their large files with a finished folder.

Data and weights are hard links: they take no space, and a copy of the folder holds them whole.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from corpora.errors import InputError
from corpora.store.atomic import MANIFEST, beside, sha256, sync
from corpora.store.damage import checksums

COPIED = frozenset({".md", ".json", ".html", ".css", ".svg", ".txt", ".py"})
"""Cards, JSON and other texts that a person may edit: an edit must not change the other folder."""
_PARTIAL, _OLD = "partial", "old"


def link_folder(source: Path, target: Path) -> None:
    """Fill `target`, new or empty, with the files of `source`, on the disk when this returns.

    Texts (`COPIED`) are copies. All other files are hard links, or copies if the file system
    refuses a link.
    """
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir()
        elif path.suffix in COPIED or not _linked(path, place):
            shutil.copyfile(path, place)
            sync(place)
    for folder in (*filter(Path.is_dir, target.rglob("*")), target):
        sync(folder)


def _linked(source: Path, target: Path) -> bool:
    """Make a hard link; False if the file system refuses (none, another disk, too many links)."""
    with suppress(OSError):
        os.link(source, target)
        return True
    return False


def is_linked(source: Path, target: Path) -> bool:
    """Whether `target` is what `link_folder` would make of `source` now, with nothing half done.

    Edited texts and further files do not count. Of a file that is no link the size counts, and that
    it is not older: what `source` held before it was made again is.
    """
    try:
        if target.is_symlink() or any(map(os.path.lexists, _half_done(target))):
            return False
        if (source / MANIFEST).read_bytes() != (target / MANIFEST).read_bytes():
            return False
        for path in filter(Path.is_file, source.rglob("*")):
            one, other = path.stat(), (target / path.relative_to(source)).stat()
            as_new = one.st_size == other.st_size and one.st_mtime_ns <= other.st_mtime_ns
            if path.suffix not in COPIED and not as_new:
                return False
    except OSError:  # a file is not there
        return False
    return True


def replace_by_link(source: Path, target: Path) -> None:
    """Let `target` be what `link_folder` makes of `source`, with two renames; see `mend`."""
    mend(target)
    partial, _ = _half_done(target)
    link_folder(source, partial)
    replace_folder(target, partial)


def replace_folder(folder: Path, fresh: Path) -> None:
    """Rename `folder` away, if it is there, and `fresh` to its name; then remove the older one."""
    _, old = _half_done(folder)
    if os.path.lexists(folder):
        folder.replace(old)
    fresh.replace(folder)
    sync(folder.parent)
    _remove(old)


def remove_folder(folder: Path) -> None:
    """Remove a folder or a link; one that is left half removed has another name, see `mend`."""
    partial, _ = _half_done(folder)
    if os.path.lexists(folder):
        folder.replace(partial)
    _remove(partial)


def mend(folder: Path) -> None:
    """Finish what a killed `replace_folder` or `remove_folder` began, or undo it.

    Between the two renames the older folder gets its name back.
    """
    partial, old = _half_done(folder)
    if os.path.lexists(old) and not os.path.lexists(folder):
        old.replace(folder)
    for path in (partial, old):
        _remove(path)


def edits(folder: Path) -> list[str]:
    """The files of a finished folder that somebody has edited or added since it was written."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    names = {name for name in names if "/." not in f"/{name}"}
    try:
        written = checksums(folder / MANIFEST) or {}
    except InputError:
        return sorted(names)
    return sorted(
        name
        for name in names - {MANIFEST}
        if name not in written
        or (Path(name).suffix in COPIED and sha256(folder / name) != written[name].sha256)
    )


def _half_done(folder: Path) -> tuple[Path, Path]:
    """Beside a folder: what becomes of it, or is being removed; and what it was before."""
    return beside(folder, _PARTIAL), beside(folder, _OLD)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
