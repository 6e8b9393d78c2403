"""Sources as stages see them: what they are, and the fingerprint of their bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from corpora.declared import portable
from corpora.errors import DiscorporaError, InputError
from corpora.readers import parse_spec, split_spec
from corpora.readers.source import below
from corpora.store.atomic import MANIFEST, is_complete, read_json, write_json
from workflows.settings import looking
from workflows.tables import SAMPLE

MISSING = "missing"
FROM_NETWORK = "from the network"
"""The problem of a source that is not on this machine, and need not be."""


@dataclass
class SourceRecord:
    """A source by name and spec; `revision` where the spec names a Hub repository."""

    name: str
    spec: str
    licence: str = ""
    revision: str = ""
    get: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What only cards say: title, url, authors, description, how to obtain it."""
    fingerprint: str = MISSING
    """sha256 over the source's kind and files; for the Hub, id and revision."""
    problem: str = ""
    """Why it cannot be read here."""

    @property
    def remote(self) -> bool:
        return self.spec.startswith("hub:")

    def look(self, root: Path) -> None:
        """Set `fingerprint` and `problem`.

        Of a file count its path below the source's folder, which documents are named after, and its
        bytes.
        """
        if self.remote:
            self.fingerprint = f"{self.spec}@{self.revision or 'main'}"
            self.problem = FROM_NETWORK
            return
        try:
            reader, target = parse_spec(self.spec)
            files = reader.find(target)
        except InputError as error:
            self.problem = error.message
            return
        whole = hashlib.sha256(f"{reader.name}\n".encode())
        for path in files:
            whole.update(f"{below(target, path)}\0{file_hash(path, root)}\n".encode())
        self.fingerprint = whole.hexdigest()

    def portable_spec(self) -> str:
        """The spec with `{data}` or `{sample}` for what depends on the machine."""
        kind, place = split_spec(self.spec)
        if self.remote or kind == "sample":
            return self.spec
        inside = Path(place)
        if inside.is_relative_to(SAMPLE):
            return f"{portable(kind)}:{{sample}}/{inside.relative_to(SAMPLE)}"
        return f"{portable(kind)}:{{data}}/{self.describe()['place']}"

    def describe(self, documents: Path | None = None) -> dict[str, Any]:
        """The source as a manifest names it: nothing that depends on where it lies.

        Once it is read into `documents` its licences are those that these turned out to have.
        """
        kind, place = split_spec(self.spec)
        licence = self.licence
        if documents and is_complete(documents):
            licence = " AND ".join(sorted(read_json(documents / MANIFEST)["counts"]["licences"]))
        return {
            "name": self.name,
            "kind": portable(kind),
            "place": place if self.remote else place.partition("/./")[2] or Path(place).name,
            "licence": licence,
            "revision": self.revision,
            "sha256": "" if self.remote else self.fingerprint,
            **self.about,
        }


def files_hash(place: Path, root: Path) -> str:
    """sha256 of a file, or over all files of a folder, their names and bytes."""
    if place.is_file():
        return file_hash(place, root)
    whole = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        if path.is_file():
            whole.update(f"{path.relative_to(place)}\0{file_hash(path, root)}\n".encode())
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
        return str(json.loads(note.read_text(encoding="utf-8"))["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not looking():  # what only looks at a build leaves no trace of it
        with suppress(OSError, DiscorporaError):  # it will be read again
            write_json(note, {"file": str(path), "sha256": digest})
    return digest
