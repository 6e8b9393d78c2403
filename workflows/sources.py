"""Sources as stages see them: what they are, and the fingerprint of their bytes."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from corpora.errors import DiscorporaError, InputError
from corpora.readers import parse_spec, source_files
from corpora.readers.source import below
from corpora.store.atomic import MANIFEST, is_complete, read_json, write_json
from workflows.preflight import looking

MISSING = "missing"


@dataclass(frozen=True)
class SourceRecord:
    """A source by name and spec; `revision` where the spec names a Hub repository.

    `documents` is the folder of the stage that reads it, if one does.
    """

    name: str
    spec: str
    licence: str = ""
    revision: str = ""
    get: str = ""
    documents: Path | None = None

    @property
    def remote(self) -> bool:
        return self.spec.startswith("hub:")

    def missing(self) -> str:
        """Why the source cannot be read here, or an empty string."""
        if self.remote:
            return "from the network"
        try:
            source_files(self.spec)
        except InputError as error:
            return error.message
        return ""

    def describe(self, root: Path) -> dict[str, Any]:
        """The source as a manifest names it: nothing that depends on where it lies."""
        kind, _, place = self.spec.partition(":")
        inside = place.partition("/./")[2]
        return {
            "name": self.name,
            "kind": kind,
            "place": place if self.remote else inside or Path(place).name,
            "licence": self._licences(),
            "revision": self.revision,
            "sha256": "" if self.remote else fingerprint(self, root),
        }

    def _licences(self) -> str:
        """Those that the documents turned out to have, as one SPDX expression; before, its own."""
        if self.documents is None or not is_complete(self.documents):
            return self.licence
        counts = read_json(self.documents / MANIFEST)["counts"]
        return " AND ".join(sorted(counts["licences"]))


def fingerprint(source: SourceRecord, root: Path) -> str:
    """sha256 over the source's kind and files; for the Hub, id and revision.

    Of a file count its path below the source's folder, which documents are named after, and its
    bytes.
    """
    if source.remote:
        return f"{source.spec}@{source.revision or 'main'}"
    try:
        reader, target = parse_spec(source.spec)
        files = source_files(source.spec)
    except InputError:
        return MISSING
    whole = hashlib.sha256(f"{reader.name}\n".encode())
    for path in files:
        whole.update(f"{below(target, path)}\0{file_hash(path, root)}\n".encode())
    return whole.hexdigest()


def files_hash(folder: Path, root: Path) -> str:
    """sha256 over all files of `folder`, their names and bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(folder)}\0{file_hash(path, root)}\n".encode())
    return whole.hexdigest()


def file_hash(path: Path, root: Path) -> str:
    """sha256 of a file's bytes; read again only if its size or time has changed."""
    stat = path.stat()
    return _cached_hash(path.absolute(), stat.st_size, stat.st_mtime_ns, root)


@cache
def _cached_hash(path: Path, size: int, mtime_ns: int, root: Path) -> str:
    """A file's sha256; a build keeps it on disk by path, size and time of change."""
    key = hashlib.sha256(f"{path}\0{size}\0{mtime_ns}".encode()).hexdigest()
    note = root / "fingerprints" / key[:2] / key
    if note.is_file():
        kept = json.loads(note.read_text(encoding="utf-8"))
        return str(kept["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not looking():  # what only looks at a build leaves no trace of it
        with suppress(OSError, DiscorporaError):  # it will be read again
            write_json(note, {"file": str(path), "sha256": digest})
    return digest
