"""Copies of finished folders that share their large files with the original by hard links.

Data and weights take no space again, and a copy stays whole if the original is removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corpora.errors import InputError
from corpora.store.atomic import MANIFEST, beside, sha256, sync
from corpora.store.damage import checksums

COPIED = frozenset({".md", ".json", ".html", ".css", ".svg", ".txt", ".py"})
"""Cards, JSON and other texts that a person may edit: an edit must not change the other folder."""
_PARTIAL, _OLD = "partial", "old"


def link_folder(source: Path, target: Path) -> None:
    """Fill `target`, a new or empty folder, with the files of `source`, and flush them to the disk.

    Texts (`COPIED`) are copied. All other files are hard links, or copies if the file system
    refuses a link.
    """
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir()
        elif path.suffix in COPIED or not _link(path, place):
            shutil.copyfile(path, place)
            sync(place)
    for folder in (*filter(Path.is_dir, target.rglob("*")), target):
        sync(folder)


def _link(source: Path, target: Path) -> bool:
    """Make a hard link; return False if the file system refuses it (such as on another disk)."""
    with suppress(OSError):
        os.link(source, target)
        return True
    return False


def is_linked(source: Path, target: Path) -> bool:
    """Return whether `target` is what `link_folder` would make of `source` now.

    Edited texts and further files make no difference. A file that is not a link must have the same
    size and may not be older: otherwise it is from before `source` was made again.
    """
    try:
        if target.is_symlink() or any(map(os.path.lexists, _hidden_paths(target))):
            return False
        if (source / MANIFEST).read_bytes() != (target / MANIFEST).read_bytes():
            return False
        for path in filter(Path.is_file, source.rglob("*")):
            original, copy = path.stat(), (target / path.relative_to(source)).stat()
            same_size = original.st_size == copy.st_size
            as_new = same_size and original.st_mtime_ns <= copy.st_mtime_ns
            if path.suffix not in COPIED and not as_new:
                return False
    except OSError:  # a file is missing
        return False
    return True


def replace_by_link(source: Path, target: Path) -> None:
    """Replace `target`, if it exists, by a linked copy of `source`, with two renames."""
    mend(target)
    partial, _ = _hidden_paths(target)
    link_folder(source, partial)
    replace_folder(target, partial)


def replace_folder(folder: Path, replacement: Path) -> None:
    """Rename the folder `replacement` to `folder`; remove the older `folder`, if there is one."""
    _, old = _hidden_paths(folder)
    if os.path.lexists(folder):
        folder.replace(old)
    replacement.replace(folder)
    sync(folder.parent)
    _remove(old)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Yield a linked copy of `folder` to change; it replaces `folder` at the end.

    A file of the copy must be replaced, not written into, since both folders may share it. After
    an exception `folder` is as it was.
    """
    mend(folder)
    partial, _ = _hidden_paths(folder)
    try:
        link_folder(folder, partial)
        yield partial
    except BaseException:
        _remove(partial)
        raise
    replace_folder(folder, partial)


def remove_folder(folder: Path) -> None:
    """Remove a folder or a link, renamed first, so that `mend` can finish a killed removal."""
    partial, _ = _hidden_paths(folder)
    if os.path.lexists(folder):
        folder.replace(partial)
    _remove(partial)


def mend(folder: Path) -> None:
    """Finish a `replace_folder` or `remove_folder` that was killed, or undo it.

    If it was killed between two renames, the older folder gets its name back.
    """
    partial, old = _hidden_paths(folder)
    if os.path.lexists(old) and not os.path.lexists(folder):
        old.replace(folder)
    for path in (partial, old):
        _remove(path)


def edits(folder: Path) -> list[str]:
    """Return the files of a finished folder that were edited or added since it was written."""
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


def _hidden_paths(folder: Path) -> tuple[Path, Path]:
    """Return two paths beside a folder: for its unfinished new version, and for its old one."""
    return beside(folder, _PARTIAL), beside(folder, _OLD)


def _remove(path: Path) -> None:
    """Remove a folder with its contents, a file or a link; nothing happens if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
