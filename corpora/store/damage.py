"""Damage in finished folders: files that are not as their manifest says, and whose they are.

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
from corpora.store.atomic import CHECKSUMS, MANIFEST, SEAL, sealed, sha256
from corpora.store.manifest import Inside

_SEAL = re.compile(sealed(b"([0-9a-f]{64})"))


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
    folder: Path, *, sums: bool = True, read: dict[tuple[int, int], str] | None = None
) -> Iterator[Damage]:
    """The damaged files of a finished folder; without `sums`, only lost files and other sizes.

    `read` keeps the sums of the files: one that several folders share is read once.
    A Parquet file that the manifest does not name counts as well: a stage that reads all shards of
    a folder would read it.
    """
    read = {} if read is None else read
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
        about = path.stat()
        inode = about.st_dev, about.st_ino
        if about.st_size != expected.bytes:
            problem = f"has {about.st_size:,} bytes where {expected.bytes:,} were written"
            yield Damage(path, problem)
        elif sums and (read.get(inode) or read.setdefault(inode, sha256(path))) != expected.sha256:
            yield Damage(path, "its sha256 differs from the one in the manifest")
    for path in folder.rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in written and "/." not in f"/{name}":
            yield Damage(path, "was not written by the stage")


def checksums(place: Path) -> Mapping[str, Checksum] | None:
    """The checksums in a manifest; None in one that was not sealed.

    Raises `InputError` for a lost or damaged manifest.
    """
    value = read_json(place)
    if isinstance(value, dict) and not {CHECKSUMS, SEAL} & value.keys():
        return None
    data = place.read_bytes()
    found = _SEAL.search(data)
    unsealed = data.replace(found[0], sealed(b"")) if found else b""
    if not found or hashlib.sha256(unsealed).hexdigest().encode() != found[1]:
        raise InputError("is not the manifest that was written")
    return record_of(Sealed, value, str(place)).checksums
