"""Update a repository on the Hub to the state of a folder: uploads, one commit, verification.

Readers of the repository see the complete old version until that commit, and the new one after it:
`HfApi.create_commit` makes one commit, where `upload_folder` may make several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, hf_hub_url
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.sha import git_hash

from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.outside import parsed, record_of
from corpora.publish.hub import Hub
from corpora.publish.plan import CARD, OURS, Publication, PublishedFile, named
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import Manifest

FILES_AN_UPLOAD = 256
"""The batch size of the client's own requests."""

Operation = CommitOperationAdd | CommitOperationDelete


@dataclass(frozen=True, slots=True)
class Remote:
    """One revision of a repository on the Hub; `card` and `manifest` are None if it has none."""

    revision: str
    files: Mapping[str, RepoFile]
    manifest: bytes | None
    card: bytes | None

    @classmethod
    def read(cls, hub: Hub, plan: Publication, revision: str = "") -> Self:
        """A revision of the repository, by default the newest.

        Raises `RepositoryNotFoundError`, and `ConfigError` if the repository is public although
        private publication was requested.
        """
        if not revision:
            info = hub.api.repo_info(plan.repo_id, repo_type=plan.kind)
            revision = str(info.sha)
            if not re.fullmatch(r"[0-9a-f]{40}", revision):
                raise InputError(f"the Hub names a revision {revision[:80]!r}", where=plan.repo_id)
            if plan.private and not info.private:
                said = "the repository exists and is public, but private publication was requested"
                hint = "make it private in its settings on the Hub, or choose another name"
                raise ConfigError(said, where=plan.repo_id, hint=hint)
        at: dict[str, Any] = {"repo_type": plan.kind, "revision": revision}
        entries = hub.api.list_repo_tree(plan.repo_id, recursive=True, **at)
        files = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}

        def content(path: str) -> bytes | None:
            # Without the client's cache: the current state of the Hub is compared.
            url = hf_hub_url(plan.repo_id, path, endpoint=hub.api.endpoint, **at)
            return hub.request("GET", url) if path in files else None

        return cls(revision, files, content(MANIFEST), content(CARD))

    def lacks(self, plan: Publication) -> list[str]:
        """The data files of the folder that the repository has not, by size and hash."""

        def same(there: RepoFile, file: PublishedFile) -> bool:
            if there.lfs is not None:
                return there.lfs.sha256 == file.sha256
            return there.blob_id == git_hash((plan.folder / file.path).read_bytes())

        return [
            file.path
            for file in plan.data_files
            if (there := self.files.get(file.path)) is None
            or there.size != file.bytes
            or not same(there, file)
        ]

    def stale(self, plan: Publication) -> list[str]:
        """Files of an earlier version: named in its manifest, or matched by our card's globs,
        `CONFIG/SPLIT-*.parquet`.

        Otherwise a dataset that now has fewer shards would be loaded with old ones.
        """
        try:
            old = {*named(record_of(Manifest, parsed(self.manifest or b"{}"), MANIFEST))}
        except InputError:
            old = set()  # the manifest is of another program
        configs = plan.manifest.configs.items()
        loaded = tuple(f"{config}/{split}-" for config, body in configs for split in body.splits)
        for path in self.files:
            if path.startswith(loaded) and path.count("/") == 1 and path.endswith(".parquet"):
                old.add(path)
        return sorted((self.files.keys() & old) - {file.path for file in plan.files})


@dataclass
class Push:
    """One publication: the paths written and deleted, and the final revision.

    Data files go to the Hub's storage first, which no reader sees before a commit. `uploads` are
    kept over retries, so that no file is read and hashed twice; a later run sends only files that
    the storage lacks. `tried`: whether there was anything to do.
    """

    hub: Hub
    plan: Publication
    revision: str = ""
    card: bytes | None = None
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    uploads: dict[str, CommitOperationAdd] = field(default_factory=dict)
    tried: bool = False

    def run(self) -> None:
        """Update the repository to the state of the plan.

        Safe to repeat after any failure: it reads the remote first, and finds a commit whose answer
        was lost. A commit names its parent revision, so that a concurrent push is never
        overwritten.
        """
        hub, plan = self.hub, self.plan
        try:
            remote = Remote.read(hub, plan)
        except RepositoryNotFoundError:
            remote = None
        manifest = (plan.folder / MANIFEST).read_bytes()
        own = [file.path for file in plan.files if file.path in OURS]
        if remote and remote.manifest == manifest and remote.files.keys() >= {*own}:
            self.revision = remote.revision
            if not remote.stale(plan) and not remote.lacks(plan):
                return
        if not self.tried:
            plan.verify()
            self.tried = True
        of_kind: dict[str, Any] = {"repo_type": plan.kind}
        if remote is None:
            hub.api.create_repo(plan.repo_id, private=plan.private, exist_ok=True, **of_kind)
            remote = Remote.read(hub, plan)
        self.revision = remote.revision
        card = plan.card(None if remote.card is None else remote.card.decode(errors="replace"))
        # The commit would check the card's metadata too, but after all the uploads.
        # `RepoCard.validate` asks the public Hub, whatever the endpoint.
        about = {"content": card, "repoType": plan.kind}
        hub.request("POST", f"{hub.api.endpoint}/api/validate-yaml", json=about)
        changed = remote.lacks(plan)
        self._upload(changed)
        stale = remote.stale(plan)
        operations: list[Operation] = [*map(CommitOperationDelete, stale)]
        operations += [self.uploads[path] for path in changed]
        operations.append(CommitOperationAdd(CARD, card.encode("utf-8")))
        own.remove(CARD)
        operations += [CommitOperationAdd(path, plan.folder / path) for path in own]
        title = f"Publish {plan.manifest.name or plan.folder.name} with discorpora"
        above = {"commit_message": title, "parent_commit": self.revision, **of_kind}
        self.revision = str(hub.api.create_commit(plan.repo_id, operations, **above).oid)
        self.card = card.encode("utf-8")
        self.written, self.deleted = (*changed, CARD, *own), tuple(stale)

    def _upload(self, paths: list[str]) -> None:
        """In batches that are retried separately: `create_commit` would start over."""
        new = [path for path in paths if path not in self.uploads]
        for start in range(0, len(new), FILES_AN_UPLOAD):
            part = new[start : start + FILES_AN_UPLOAD]
            batch = {path: CommitOperationAdd(path, self.plan.folder / path) for path in part}
            how: dict[str, Any] = {"repo_type": self.plan.kind, "free_memory": False}
            send = partial(
                self.hub.api.preupload_lfs_files, self.plan.repo_id, batch.values(), **how
            )
            self.hub.call(f"uploading files of {self.plan.repo_id}", send)
            self.uploads |= batch

    def compare(self) -> None:
        """Verify the pushed revision; raise `DiscorporaError` if it differs from what was sent.

        Compares size and hash of every data file and the bytes of manifest and card, and checks
        that no data file of an earlier version is left.
        """
        plan, remote = self.plan, Remote.read(self.hub, self.plan, self.revision)
        wrong = [*remote.lacks(plan), *(path for path in self.deleted if path in remote.files)]
        wrong += [MANIFEST] * (remote.manifest != (plan.folder / MANIFEST).read_bytes())
        wrong += [CARD] * (self.card is not None and remote.card != self.card)
        if wrong:
            some = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if wrong[5:] else "")
            said = f"after the push the Hub differs from what was sent: {some}"
            hint = "publish again; if the error remains, check the repository's history"
            raise DiscorporaError(said, where=f"{plan.repo_id}@{self.revision}", hint=hint)
