"""Files and folders that appear by one rename, or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corpora.errors import DiscorporaError
from corpora.outside import read_json as read_json

MANIFEST = "manifest.json"
CHECKSUMS, SEAL = "checksums", "seal"
"""Keys of a manifest: size and sha256 of every other file; sha256 of the manifest without it."""
_PARTIAL = ".partial"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG}
_IN_THE_WAY = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}
_HINTS = {
    **dict.fromkeys(_FULL, "the disk is full: free some space and run again (parts are kept)"),
    **dict.fromkeys(_REFUSED, "it is read-only, or not yours: choose another folder or name"),
    **dict.fromkeys(_IN_THE_WAY, "move away what stands there, or choose another folder"),
}


class Busy(DiscorporaError):
    """Another process holds the lock."""


class AlreadyMade(DiscorporaError):
    """The folder is already finished."""


def is_complete(folder: Path) -> bool:
    """Return whether `folder` is finished: its manifest is written last."""
    return (folder / MANIFEST).is_file()


def beside(path: Path, suffix: str) -> Path:
    """Return a hidden path beside `path`, such as that of its lock: `.NAME.lock`."""
    return path.with_name(f".{path.name}.{suffix}")


def partial_path(folder: Path) -> Path:
    """Return the path of the partial folder, in which `folder` is made; the same on every run.

    Raises `DiscorporaError` for a path that ends in no name, such as `.` and `/`.
    """
    if folder.name in ("", ".."):
        hint = "give the folder that will be made by its name, such as build/model"
        raise DiscorporaError("this cannot be the name of an output", where=str(folder), hint=hint)
    return folder.with_name(folder.name + _PARTIAL)


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Make the target `folder`: yield the partial folder beside it, and rename it at the end.

    The caller has checked `is_complete(folder)` and writes `manifest.json` last, into the yielded
    folder. The files of an earlier, broken run are still in the partial folder, so that finished
    shards can be reused; after an exception they are kept again.

    Raises `DiscorporaError` if another process is making the folder (`Busy`) or has made it
    (`AlreadyMade`), or if it cannot be written (full disk, no permission, a file in the way).
    """
    partial = partial_path(folder)
    lock = beside(folder, "lock")
    with _explain_os_errors(folder), locked(lock, "another process makes this folder"):
        _check_free(folder)
        partial.mkdir(parents=True, exist_ok=True)
        yield partial
        remove_unfinished(partial)
        seal(partial)
        for path in (*partial.rglob("*"), partial):
            sync(path)
        partial.replace(folder)
        sync(folder.parent)


def cleared(folder: Path, keep: str = "") -> None:
    """Create `folder`; if it is the partial folder of a broken run, remove all in it but `keep`.

    Raises `DiscorporaError` for a folder that is not empty and not a partial folder.
    """
    with _explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not folder.name.endswith(_PARTIAL):
            _check_free(folder)
        for path in folder.iterdir():
            if path.name != keep:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; rename it to `path` at the end, remove it on error.

    If two processes write `path` at the same time, the last one wins. A pipe or a device is
    yielded itself.
    """
    partial = _unfinished(path)
    with _explain_os_errors(path):
        # As root a rename would replace `/dev/stdout`, which may lead to a file.
        if path.absolute().parent == Path("/dev") or path.is_fifo():
            yield path
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            sync(partial)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path`; rename it to `path` at the end, remove it on error.

    It gets no manifest. Raises `DiscorporaError` if `path` is a file or a folder with files.
    """
    if path.name in ("", "..") or (
        path.exists() and not (path.is_dir() and not any(path.iterdir()))
    ):
        raise DiscorporaError(
            "is in the way: expected the name of a new folder",
            where=str(path),
            hint="move it away, or name another folder",
        )
    partial = _unfinished(path)
    with _explain_os_errors(path):
        try:
            partial.mkdir(parents=True)
            yield partial
            for file in (*partial.rglob("*"), partial):
                sync(file)
            partial.replace(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def remove_unfinished(folder: Path) -> None:
    """Remove the files below `folder` that killed processes had not finished.

    Files in the partial folders of stages stay: another worker may still write there.
    """
    for path in folder.rglob(f".*{_PARTIAL}"):
        parents = path.relative_to(folder).parts[:-1]
        if path.is_file() and not any(part.endswith(_PARTIAL) for part in parents):
            path.unlink(missing_ok=True)


def _unfinished(path: Path) -> Path:
    """Return the path at which this process writes the file `path` before it is renamed."""
    return beside(path, f"{os.getpid()}{_PARTIAL}")


def write_text(path: Path, text: str) -> None:
    """Write `text` in UTF-8; `path` appears by one rename."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON with sorted keys; `path` appears by one rename."""
    write_text(path, _json(value))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def seal(folder: Path) -> None:
    """Add the checksums of all files, and its own, to a folder's manifest, to detect damage."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    sums = {
        name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for name, path in files.items()
        if path.is_file() and name != MANIFEST
    }
    manifest = {**read_json(folder / MANIFEST), CHECKSUMS: sums, SEAL: ""}
    text = _json(manifest).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    write_text(folder / MANIFEST, text.replace(seal_line(b""), seal_line(digest)).decode())


def seal_line(digest: bytes) -> bytes:
    """Return the line of a manifest with its seal; no other line begins like it."""
    return b'\n  "%s": "%s"' % (SEAL.encode(), digest)


def sha256(path: Path) -> str:
    """Return the hexadecimal sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _explain_os_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` from writing `path` into a `DiscorporaError` that says what to do."""
    try:
        yield
    except OSError as error:
        hint, target = _HINTS.get(error.errno or 0), path.absolute()
        if hint is None:
            raise
        if error.filename is not None:
            failed = Path(os.fsdecode(error.filename)).absolute()
            written = (target, partial_path(target), _unfinished(target), beside(target, "lock"))
            if failed not in target.parents and not any(map(failed.is_relative_to, written)):
                raise  # it came from reading a source meanwhile
        where, reason = str(error.filename or path), os.strerror(error.errno or 0)
        if Path(where).absolute() == _unfinished(target):  # the user named another
            where = str(path)
        raise DiscorporaError(f"cannot write it: {reason}", where=where, hint=hint) from error


@contextmanager
def locked(path: Path, message: str) -> Iterator[None]:
    """Hold the lock file `path` until the block ends.

    Raises `Busy` with `message` if another process holds it, and names that process: its number,
    host, command, and when it took the lock.
    """
    with _explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    while True:
        with path.open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise Busy(
                    f"{message}: {file.read().strip() or 'it has not said yet which'}",
                    where=str(path),
                    hint="wait until that process has finished, or stop it, then run again",
                ) from None
            if not os.fstat(file.fileno()).st_nlink:
                continue  # its former holder has just removed it: take a new one
            try:
                with _explain_os_errors(path):
                    file.truncate(0)
                    os.write(file.fileno(), _this_process().encode())
                yield
            finally:
                # Removed while still held, so that no other process can take this very file.
                path.unlink(missing_ok=True)
            return


def _this_process() -> str:
    """Return number, host, start of the lock and command of this process, for a lock file."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    command = shlex.join([name, *sys.argv[1:]])
    return f"process {os.getpid()} on {socket.gethostname()}, since {since}: {command}"


def _check_free(folder: Path) -> None:
    """Raise `DiscorporaError` if `folder` is finished, or holds files of another program."""
    if is_complete(folder):
        raise AlreadyMade(
            "is already made", where=str(folder), hint="remove the folder to make it again"
        )
    is_empty_folder = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not is_empty_folder:
        raise DiscorporaError(
            f"is in the way: it holds no {MANIFEST}, so it was not made by this program",
            where=str(folder),
            hint="move it away and run again",
        )


def sync(path: Path) -> None:
    """Flush a file or folder to the disk, so that a rename never outlives its contents."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
