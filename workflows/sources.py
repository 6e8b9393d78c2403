"""The sources of stages: their descriptions for manifests, and fingerprints of their files."""

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

from corpora.declared import without_folders
from corpora.errors import DiscorporaError, InputError, expand_home
from corpora.readers import parse_spec, split_spec
from corpora.readers.source import path_below
from corpora.store.atomic import MANIFEST, is_complete, read_json, sha256, write_json
from workflows.settings import discorpora
from workflows.tables import SAMPLE, Source

log = logging.getLogger("discorpora")

MISSING = "missing"
FROM_NETWORK = "from the network"
"""The `problem` of a source that a build downloads."""
COMMIT = re.compile(r"[0-9a-f]{40}")
NOT_UTF_8 = re.compile("[\udc80-\udcff]")
"""Characters that stand in a path for bytes that are not UTF-8."""
SETTLED = 2.0
"""Seconds after a change, from which on a further change is certain to give other times."""

State = tuple[int, ...]
"""The state of a file: device, inode, size, and the times of its bytes and of the inode."""


@dataclass
class SourceRecord:
    """A source by name and spec; `revision` where the spec names a Hub repository."""

    name: str
    spec: str
    licence: str = ""
    revision: str = ""
    """For a dataset of the Hub a branch or commit; after `find_files` the commit, if known."""
    get: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    """The options of its reader, with the source's name, licence and language; after `find_files`
    also the commit of a dataset of the Hub."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Facts that only cards show: title, url, authors, description, how to obtain it."""
    fingerprint: str = MISSING
    """sha256 over the source's kind and files; for the Hub, id and commit."""
    problem: str = ""
    """Why it cannot be read here."""
    files: dict[Path, HashedFile] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Source) -> SourceRecord:
        """Make the record of a source of the build file; without a licence it has its reader's."""
        facts = entry.model_dump(include={"title", "url", "authors", "description", "get"})
        return cls(
            entry.name,
            entry.spec,
            licence=entry.licences or parse_spec(entry.spec)[0].own_licence,
            revision=str(entry.options.get("revision", "")),
            get=entry.get,
            options={"name": entry.name, **entry.reader_options()},
            about={key: value for key, value in facts.items() if value},
        )

    @property
    def remote(self) -> bool:
        """Whether the source is read from the Hub."""
        kind, _, place = self.spec.partition(":")
        return kind == "hub" and not expand_home(place).is_dir()

    def find_files(self, root: Path) -> None:
        """Find the source's files, and set `fingerprint` or `problem`; `root` stores their hashes.

        The fingerprint depends on the bytes of each file, and on its path below the source's
        folder, since the ids of documents contain it.
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
        if bad_names := [str(path) for path in files if NOT_UTF_8.search(str(path))]:
            self.problem = f"the file name {bad_names[0]!r} is not UTF-8: rename it"
            return
        digest = hashlib.sha256(f"{reader.name}\n".encode())
        self.files = hashed_files(files, root)
        for path, file in self.files.items():
            digest.update(f"{path_below(target, path)}\0{file.sha256}\n".encode())
        self.fingerprint = digest.hexdigest()

    def check(self) -> None:
        """Raise `InputError` if a file has changed since it was hashed, or a commit is unknown."""
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
        """Return the spec with `{data}` or `{sample}` in place of folders of this machine."""
        kind, place = split_spec(self.spec)
        if self.remote or kind == "sample":
            return self.spec
        path = Path(place)
        if path.is_relative_to(SAMPLE):
            return f"{without_folders(kind)}:{{sample}}/{path.relative_to(SAMPLE)}"
        return f"{without_folders(kind)}:{{data}}/{self.describe()['place']}"

    def describe(self, documents: Path | None = None) -> dict[str, Any]:
        """Return the entry of a manifest, which must not depend on where the source's folder lies.

        The licences are those of the documents, if `documents`, their stage's folder, is finished.
        """
        kind, place = split_spec(self.spec)
        if not self.remote:  # users name folders as they like; a file's name tells what it is
            shown_path = place.partition("/./")[2]
            place = shown_path or (self.name if expand_home(place).is_dir() else Path(place).name)
        licence = self.licence
        if documents and is_complete(documents):
            licence = " AND ".join(sorted(read_json(documents / MANIFEST)["counts"]["licences"]))
        return {
            "name": self.name,
            "kind": without_folders(kind),
            "place": place,
            "licence": licence,
            "revision": self.revision,
            "sha256": "" if self.remote else self.fingerprint,
            **self.about,
        }


def commit_of(dataset: str, revision: str, root: Path) -> str:
    """Return the commit of a branch (`revision`; "" is `main`) of a dataset of the Hub.

    If the Hub cannot be asked, it is that of the last build, with a warning, or else `revision`.
    """
    if COMMIT.fullmatch(revision):
        return revision
    note = _note_path(root, f"hub:{dataset}@{revision}")
    try:
        commit = _commit_on_hub(dataset, revision)
    except Exception as error:  # the library raises errors of network, server and JSON as they are
        last_commit = _read_note(note)
        if last_commit:
            log.warning(
                "hub:%s: cannot be asked (%s): taken as of the last build, %s",
                dataset,
                type(error).__name__,
                last_commit,
            )
        return last_commit or revision
    _write_note(note, f"hub:{dataset}", commit)
    return commit


@cache
def _commit_on_hub(dataset: str, revision: str) -> str:
    from huggingface_hub import HfApi

    return str(HfApi().dataset_info(dataset, revision=revision or None, timeout=10).sha)


def files_hash(place: Path, root: Path) -> str:
    """Return the sha256 of a file, or of a folder: over the names and bytes of all its files."""
    files = hashed_files(files_in(place), root)
    if place in files:
        return files[place].sha256
    digest = hashlib.sha256()
    for path, file in files.items():
        digest.update(f"{path.relative_to(place)}\0{file.sha256}\n".encode())
    return digest.hexdigest()


def files_in(place: Path) -> list[Path]:
    """Return a file in a list, or all files of a folder except bytecode, which imports write."""
    paths = place.rglob("*") if place.is_dir() else [place]
    return sorted(path for path in paths if path.is_file() and path.suffix != ".pyc")


@dataclass(frozen=True)
class HashedFile:
    """A file's sha256 and state; the state is None if a change right now might not show in it."""

    sha256: str
    state: State | None


def hashed_files(files: Iterable[Path], root: Path) -> dict[Path, HashedFile]:
    """Return the files with their sha256, which the folder `root` stores for later builds.

    A file is read again if its state has changed, if its last change was just now, or with the
    setting `rehash`. The inode shows that a file was replaced; the time of the inode shows a change
    after which somebody set back the file's own time.
    """
    rehash, now = discorpora().rehash, time.time()
    hashed = {}
    for path in files:
        state = _state_of(path)
        if now - max(state[3:]) / 1e9 < SETTLED:
            hashed[path] = HashedFile(sha256(path), None)
        else:
            hashed[path] = HashedFile(_stored_hash(path.absolute(), state, root, rehash), state)
    return hashed


def check_unchanged(files: Mapping[Path, HashedFile], current: Iterable[Path]) -> None:
    """Raise `InputError` if a hashed file was changed or removed, or `current` has a new one."""
    paths = set(current)
    changed = sorted(files.keys() ^ paths)
    for path in sorted(files.keys() & paths):
        if _state_of(path) != files[path].state and sha256(path) != files[path].sha256:
            changed.append(path)
    if changed:
        raise InputError(
            "was changed while it was read: nothing of it is kept",
            where=str(changed[0]),
            hint="run it again when nothing writes there",
        )


def _state_of(path: Path) -> State:
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@cache
def _stored_hash(path: Path, state: State, root: Path, rehash: bool) -> str:
    """Return the sha256 of a file from its note below `root`, or hash it and write the note."""
    note = _note_path(root, f"{path}\0{state}")
    digest = "" if rehash else _read_note(note)
    if not digest:
        digest = sha256(path)
        _write_note(note, str(path), digest)
    return digest


def _note_path(root: Path, subject: str) -> Path:
    """The path of the note with the hash of `subject`: a file and its state, or a Hub branch."""
    key = hashlib.sha256(subject.encode("utf-8", "surrogateescape")).hexdigest()
    return root / "fingerprints" / key[:2] / key


def _read_note(note: Path) -> str:
    """Return the sha256 or commit in a note; "" if there is no note, or it is damaged."""
    with suppress(OSError, InputError, KeyError, TypeError):
        content = read_json(note)
        if content["check"] == _check_sum(note, content["sha256"]):
            return str(content["sha256"])
    return ""


def _write_note(note: Path, subject: str, digest: str) -> None:
    if not discorpora().looking:  # commands that only plan a build write nothing
        with suppress(OSError, DiscorporaError):  # the file will be read again
            write_json(note, {"of": subject, "sha256": digest, "check": _check_sum(note, digest)})


def _check_sum(note: Path, digest: str) -> str:
    return hashlib.sha256(f"{note.name}{digest}".encode()).hexdigest()[:16]
