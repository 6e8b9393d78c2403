"""The repository on the Hub: what it holds, and whether that is what was to be published."""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from huggingface_hub import hf_hub_url
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    get_session,
    hf_raise_for_status,
)

from corpora.errors import ConfigError, DiscorporaError
from corpora.publish.card import NOTICE
from corpora.publish.folder import CARD, Publication, PublishedFile, owned_files
from corpora.publish.hub import Hub
from corpora.store.atomic import MANIFEST


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a revision: its size, its git blob id, and its sha256 if it is a large file."""

    bytes: int
    blob_id: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    """One revision of a repository on the Hub."""

    revision: str
    files: Mapping[str, RemoteFile]
    manifest: Mapping[str, Any] | None
    card: str | None


@dataclass(frozen=True, slots=True)
class Push:
    """What a push did: the revision it left, the card and the paths it wrote and deleted.

    `card` is None if an earlier try had done it all, its answer lost.
    """

    revision: str
    card: bytes | None
    written: tuple[str, ...]
    deleted: tuple[str, ...]


def is_there(plan: Publication, remote: Remote | None) -> bool:
    """Whether the remote has this manifest, all its files, a whole card, and no stale file."""
    return (
        remote is not None
        and remote.manifest == plan.manifest
        and remote.card is not None
        and NOTICE not in remote.card
        and not stale(plan, remote)
        and all(same(plan, file, remote) for file in plan.data_files)
    )


def look(hub: Hub, plan: Publication) -> Remote | None:
    """The repository's newest revision; None if there is no such repository.

    Raises `ConfigError` if it is public, and was to be published privately.
    """
    try:
        info = hub.api.repo_info(plan.repo_id, repo_type=plan.kind)
    except RepositoryNotFoundError:
        return None
    _require_private(plan, bool(info.private))
    revision = str(info.sha)
    files = tree(hub, plan, revision)
    manifest = _read(hub, plan, MANIFEST, revision) if MANIFEST in files else None
    card = _read(hub, plan, CARD, revision) if CARD in files else None
    text = None if card is None else card.decode("utf-8", errors="replace")
    return Remote(revision, files, _parsed(manifest), text)


def tree(hub: Hub, plan: Publication, revision: str) -> dict[str, RemoteFile]:
    """All files of one revision."""
    entries = hub.api.list_repo_tree(
        plan.repo_id, recursive=True, revision=revision, repo_type=plan.kind
    )
    return {
        entry.path: RemoteFile(entry.size, entry.blob_id, entry.lfs.sha256 if entry.lfs else None)
        for entry in entries
        if isinstance(entry, RepoFile)
    }


def same(plan: Publication, file: PublishedFile, remote: Remote) -> bool:
    """Whether the remote holds a data file as the folder does, by size and hash."""
    found = remote.files.get(file.path)
    if found is None or found.bytes != file.bytes:
        return False
    if found.sha256 is not None:
        return found.sha256 == file.sha256
    return found.blob_id == git_blob_id((plan.folder / file.path).read_bytes())


def compare(hub: Hub, plan: Publication, done: Push) -> None:
    """Read the pushed revision back; raise `DiscorporaError` if it is not what was sent.

    Compared: size and hash of every data file, the manifest's content, the card's bytes, and
    that no data file of an earlier version is left.
    """
    remote = Remote(done.revision, tree(hub, plan, done.revision), None, None)
    wrong = [file.path for file in plan.data_files if not same(plan, file, remote)]
    wrong += [path for path in done.deleted if path in remote.files]
    if _parsed(_read(hub, plan, MANIFEST, done.revision)) != plan.manifest:
        wrong.append(MANIFEST)
    if done.card is not None and _read(hub, plan, CARD, done.revision) != done.card:
        wrong.append(CARD)
    if wrong:
        raise DiscorporaError(
            f"after the push the Hub holds something else than was sent: {', '.join(wrong[:5])}"
            + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""),
            where=f"{plan.repo_id}@{done.revision}",
            hint="publish again; if it stays so, look at the repository's history",
        )


def git_blob_id(data: bytes) -> str:
    """The id that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def stale(plan: Publication, remote: Remote) -> tuple[str, ...]:
    """Remote files of an earlier version: those its manifest names, those our card would load.

    A dataset that now has fewer shards would otherwise be read with the old ones among the new.
    """
    try:
        owned = owned_files(remote.manifest or {})
    except ValueError:
        owned = set()
    patterns = [
        f"{glob.escape(config)}/{split}-*.parquet"
        for config, body in plan.manifest.get("configs", {}).items()
        for split in body["splits"]
    ]
    ours = {file.path for file in plan.files}
    # A star of the Hub's stays in its folder, one of `fnmatch` does not.
    loaded = {
        path
        for path in remote.files
        if path.count("/") == 1 and any(fnmatch.fnmatchcase(path, p) for p in patterns)
    }
    return tuple(path for path in sorted(remote.files) if path in (owned | loaded) - ours)


def _require_private(plan: Publication, private: bool) -> None:
    if plan.private and not private:
        raise ConfigError(
            "the repository is there and public, but it was to be published privately",
            where=plan.repo_id,
            hint="make it private in its settings on the Hub, or choose another name",
        )


def _read(hub: Hub, plan: Publication, path: str, revision: str) -> bytes:
    """The bytes of a small remote file, past the client's cache."""
    url = hf_hub_url(
        plan.repo_id, path, repo_type=plan.kind, revision=revision, endpoint=hub.api.endpoint
    )
    response = get_session().get(url, headers=build_hf_headers(token=hub.token))
    hf_raise_for_status(response)
    return bytes(response.content)


def _parsed(manifest: bytes | None) -> Mapping[str, Any] | None:
    """A manifest's content; None for what is none of ours."""
    try:
        value = json.loads(manifest) if manifest else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
