"""Sources as stages see them: what they are, and the fingerprint of their bytes."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from corpora.declared import portable
from corpora.errors import DiscorporaError, InputError, expanded
from corpora.readers import parse_spec, split_spec
from corpora.readers.source import path_below
from corpora.store.atomic import MANIFEST, is_complete, read_json, sha256, write_json
from workflows.settings import discorpora
from workflows.tables import SAMPLE, Source

log = logging.getLogger("discorpora")

MISSING = "missing"
FROM_NETWORK = "from the network"
"""The problem of a source that is not on this machine, and need not be."""
COMMIT = re.compile(r"[0-9a-f]{40}")
NOT_UTF_8 = re.compile("[\udc80-\udcff]")
"""What stands in a path for bytes that are not UTF-8."""
SETTLED = 2.0
"""Seconds after its last change from which on a file's times tell of every further one."""

State = tuple[int, ...]
"""What changes with a file: device, inode, size, and the times of its bytes and of the inode."""


@dataclass
class SourceRecord:
    """A source by name and spec; `revision` where the spec names a Hub repository."""

    name: str
    spec: str
    licence: str = ""
    revision: str = ""
    """Of a dataset of the Hub: the build file's branch or commit; once looked at, the commit."""
    get: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    """What its reader gets, the source's name, licence and language included; once looked at, the
    commit of a dataset of the Hub."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What only cards say: title, url, authors, description, how to obtain it."""
    fingerprint: str = MISSING
    """sha256 over the source's kind and files; for the Hub, id and commit."""
    problem: str = ""
    """Why it cannot be read here."""
    files: dict[Path, Seen] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Source) -> SourceRecord:
        """A source of the build file; without a licence there it has its reader's own, if any."""
        said = entry.model_dump(include={"title", "url", "authors", "description", "get"})
        return cls(
            entry.name,
            entry.spec,
            licence=entry.licences or parse_spec(entry.spec)[0].own_licence,
            revision=str(entry.options.get("revision", "")),
            get=entry.get,
            options={"name": entry.name, **entry.reader_options()},
            about={key: value for key, value in said.items() if value},
        )

    @property
    def remote(self) -> bool:
        kind, _, place = self.spec.partition(":")
        return kind == "hub" and not expanded(place).is_dir()

    def look(self, root: Path) -> None:
        """Set `fingerprint` and `problem`.

        Of a file count its path below the source's folder, which documents are named after, and its
        bytes.
        """
        if self.remote:
            self.revision = commit_of(self.spec.partition(":")[2], self.revision, root)
            self.options |= {"revision": self.revision} if self.revision else {}
            self.fingerprint = f"{self.spec}@{self.revision or 'main'}"
            self.problem = FROM_NETWORK
            return
        try:
            reader, target = parse_spec(self.spec)
            files = reader.find(target)
        except InputError as error:
            self.problem = error.message
            return
        if odd := [str(path) for path in files if NOT_UTF_8.search(str(path))]:
            self.problem = f"the file name {odd[0]!r} is not UTF-8: rename it"
            return
        whole = hashlib.sha256(f"{reader.name}\n".encode())
        self.files = seen(files, root)
        for path, one in self.files.items():
            whole.update(f"{path_below(target, path)}\0{one.sha256}\n".encode())
        self.fingerprint = whole.hexdigest()

    def check(self) -> None:
        """Raise `InputError` if a file is another one than when it was hashed."""
        if self.remote and not COMMIT.fullmatch(self.revision):
            raise InputError(
                "its commit on the Hub is not known, so nobody can say later what was read",
                where=self.spec,
                hint="check the name, the network and HF_TOKEN, or give a commit as `revision`",
            )
        if self.files:
            reader, target = parse_spec(self.spec)
            check_unchanged(self.files, reader.find(target))

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
        if not self.remote:  # a folder's name is the user's to choose; a file's says what it is
            inside = place.partition("/./")[2]
            place = inside or (self.name if expanded(place).is_dir() else Path(place).name)
        licence = self.licence
        if documents and is_complete(documents):
            licence = " AND ".join(sorted(read_json(documents / MANIFEST)["counts"]["licences"]))
        return {
            "name": self.name,
            "kind": portable(kind),
            "place": place,
            "licence": licence,
            "revision": self.revision,
            "sha256": "" if self.remote else self.fingerprint,
            **self.about,
        }


def commit_of(dataset: str, revision: str, root: Path) -> str:
    """The commit that a branch of a dataset of the Hub (`main`) is at; `revision` if it is one.

    Without the network it is the one of the last build, which is said; `revision` if there is none.
    """
    if COMMIT.fullmatch(revision):
        return revision
    note = _note(root, f"hub:{dataset}@{revision}")
    try:
        commit = _commit_on_hub(dataset, revision)
    except Exception as error:  # the library raises whatever lies below: network, server, JSON
        known = _noted(note)
        if known:
            log.warning(
                "hub:%s: cannot be asked (%s): taken as of the last build, %s",
                dataset,
                type(error).__name__,
                known,
            )
        return known or revision
    _write_note(note, f"hub:{dataset}", commit)
    return commit


@cache
def _commit_on_hub(dataset: str, revision: str) -> str:
    from huggingface_hub import HfApi

    return str(HfApi().dataset_info(dataset, revision=revision or None, timeout=10).sha)


def files_hash(place: Path, root: Path) -> str:
    """sha256 of a file, or over all files of a folder, their names and bytes."""
    files = seen(files_in(place), root)
    if place in files:
        return files[place].sha256
    whole = hashlib.sha256()
    for path, one in files.items():
        whole.update(f"{path.relative_to(place)}\0{one.sha256}\n".encode())
    return whole.hexdigest()


def files_in(place: Path) -> list[Path]:
    """A file, or all files of a folder but for bytecode, which Python writes when it imports."""
    found = place.rglob("*") if place.is_dir() else [place]
    return sorted(path for path in found if path.is_file() and path.suffix != ".pyc")


@dataclass(frozen=True)
class Seen:
    """A file when it was hashed: sha256, and state; None where that may not tell of a change."""

    sha256: str
    state: State | None


def seen(files: Iterable[Path], root: Path) -> dict[Path, Seen]:
    """The files with their sha256.

    A file is read again if its state has changed, or may not tell of a change; with the setting
    `rehash` in any case. A file that another one replaces has another inode, and a change whose
    time was set back another time of its inode.
    """
    rehash, now = discorpora().rehash, time.time()
    found = {}
    for path in files:
        state = _state_of(path)
        if now - max(state[3:]) / 1e9 < SETTLED:
            found[path] = Seen(sha256(path), None)
        else:
            found[path] = Seen(_known_hash(path.absolute(), state, root, rehash), state)
    return found


def check_unchanged(files: Mapping[Path, Seen], now: Iterable[Path]) -> None:
    """Raise `InputError` if a file of `files` has changed since, or `now` are other ones."""
    there = set(now)
    other = sorted(files.keys() ^ there)
    for path in sorted(files.keys() & there):
        if _state_of(path) != files[path].state and sha256(path) != files[path].sha256:
            other.append(path)
    if other:
        raise InputError(
            "was changed while it was read: nothing of it is kept",
            where=str(other[0]),
            hint="run it again when nothing writes there",
        )


def _state_of(path: Path) -> State:
    about = path.stat()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


@cache
def _known_hash(path: Path, state: State, root: Path, rehash: bool) -> str:
    note = _note(root, f"{path}\0{state}")
    digest = "" if rehash else _noted(note)
    if not digest:
        digest = sha256(path)
        _write_note(note, str(path), digest)
    return digest


def _note(root: Path, about: str) -> Path:
    key = hashlib.sha256(about.encode("utf-8", "surrogateescape")).hexdigest()
    return root / "fingerprints" / key[:2] / key


def _noted(note: Path) -> str:
    """The hash in a note; "" if there is none, or it is damaged."""
    with suppress(OSError, InputError, KeyError, TypeError):
        found = read_json(note)
        if found["check"] == _check(note, found["sha256"]):
            return str(found["sha256"])
    return ""


def _write_note(note: Path, about: str, digest: str) -> None:
    if not discorpora().looking:  # what only looks at a build leaves no trace of it
        with suppress(OSError, DiscorporaError):  # it will be read again
            write_json(note, {"of": about, "sha256": digest, "check": _check(note, digest)})


def _check(note: Path, digest: str) -> str:
    return hashlib.sha256(f"{note.name}{digest}".encode()).hexdigest()[:16]
