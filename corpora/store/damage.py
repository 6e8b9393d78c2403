"""Damage in finished folders: files that differ from their record in the manifest.

`corpora.store.atomic.staged` seals every folder: its manifest holds the size and sha256 of each
file, and its own sha256.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from corpora.errors import InputError
from corpora.outside import read_json, record_of
from corpora.store.atomic import CHECKSUMS, MANIFEST, SEAL, seal_line, sha256
from corpora.store.manifest import Inside

_SEAL = re.compile(seal_line(b"([0-9a-f]{64})"))


class Damage(NamedTuple):
    """A file that is not as it was written."""

    path: Path
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


class Checksum(BaseModel):
    bytes: int
    sha256: str


class Sealed(BaseModel):
    checksums: Mapping[Inside, Checksum]


def damages(
    folder: Path, *, sums: bool = True, hashes: dict[tuple[int, int], str] | None = None
) -> Iterator[Damage]:
    """Yield the damaged files of a finished folder.

    Without `sums`, only lost files and files of another size are found. `hashes` gets the sha256 of
    each file by device and inode, so that a file that several folders share is read once. A Parquet
    file that the manifest does not name counts as damage: a stage that reads all shards would read
    it.
    """
    hashes = {} if hashes is None else hashes
    try:
        written = checksums(folder / MANIFEST)
    except InputError as error:
        yield Damage(folder / MANIFEST, error.message)
        return
    if written is None:
        return
    for name, expected in written.items():
        path = folder / name
        if not path.is_file():
            yield Damage(path, "is missing")
            continue
        status = path.stat()
        inode = status.st_dev, status.st_ino
        if status.st_size != expected.bytes:
            problem = f"has {status.st_size:,} bytes where {expected.bytes:,} were written"
            yield Damage(path, problem)
            continue
        if sums and inode not in hashes:
            hashes[inode] = sha256(path)
        if sums and hashes[inode] != expected.sha256:
            yield Damage(path, "its sha256 differs from the one in the manifest")
    for path in folder.rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in written and "/." not in f"/{name}":
            yield Damage(path, "was not written by the stage")


def checksums(place: Path) -> Mapping[str, Checksum] | None:
    """Return the checksums in the manifest at `place`; None if it was not sealed.

    Raises `InputError` for a lost or damaged manifest.
    """
    value = read_json(place)
    if isinstance(value, dict) and not {CHECKSUMS, SEAL} & value.keys():
        return None
    data = place.read_bytes()
    match = _SEAL.search(data)
    unsealed = data.replace(match[0], seal_line(b"")) if match else b""
    if not match or hashlib.sha256(unsealed).hexdigest().encode() != match[1]:
        raise InputError("is not the manifest that was written")
    return record_of(Sealed, value, str(place)).checksums
