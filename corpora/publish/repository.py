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
from corpora.outside import parse_json, record_of
from corpora.publish.hub import Hub
from corpora.publish.plan import CARD, OURS, Publication, PublishedFile, data_checksums
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
        """Read a revision of the repository, by default the newest.

        Raises `RepositoryNotFoundError`, and `ConfigError` if the repository is public although
        private publication was requested.
        """
        if not revision:
            info = hub.api.repo_info(plan.repo_id, repo_type=plan.kind)
            revision = str(info.sha)
            if not re.fullmatch(r"[0-9a-f]{40}", revision):
                raise InputError(f"the Hub names a revision {revision[:80]!r}", where=plan.repo_id)
            if plan.private and not info.private:
                problem = "the repository exists and is public"
                hint = "make it private in its settings on the Hub, or choose another name"
                raise ConfigError(
                    f"{problem}, but private publication was requested",
                    where=plan.repo_id,
                    hint=hint,
                )
        options: dict[str, Any] = {"repo_type": plan.kind, "revision": revision}
        entries = hub.api.list_repo_tree(plan.repo_id, recursive=True, **options)
        files = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}

        def content(path: str) -> bytes | None:
            # Without the client's cache: the current state of the Hub is compared.
            url = hf_hub_url(plan.repo_id, path, endpoint=hub.api.endpoint, **options)
            return hub.request("GET", url) if path in files else None

        return cls(revision, files, content(MANIFEST), content(CARD))

    def outdated(self, plan: Publication) -> list[str]:
        """Return the data files of the plan that the repository lacks or has in other versions."""

        def is_equal(remote: RepoFile | None, file: PublishedFile) -> bool:
            """Return whether a file on the Hub has the size and the hash of a file of the plan."""
            if remote is None or remote.size != file.bytes:
                return False
            if remote.lfs is not None:
                return remote.lfs.sha256 == file.sha256
            content = plan.content(file.path)
            data = content if isinstance(content, bytes) else content.read_bytes()
            return remote.blob_id == git_hash(data)

        files = plan.data_files
        return [file.path for file in files if not is_equal(self.files.get(file.path), file)]

    def stale(self, plan: Publication) -> list[str]:
        """Return the repository's files of an earlier version, which the plan does not have.

        They are named in its manifest, or matched by our card's globs, `CONFIG/SPLIT-*.parquet`:
        otherwise a dataset that now has fewer shards would be loaded with old ones.
        """
        try:
            old_paths = {
                *data_checksums(record_of(Manifest, parse_json(self.manifest or b"{}"), MANIFEST))
            }
        except InputError:
            old_paths = set()  # the manifest is of another program
        configs = plan.manifest.configs.items()
        prefixes = tuple(f"{config}/{split}-" for config, body in configs for split in body.splits)
        for path in self.files:
            if path.startswith(prefixes) and path.count("/") == 1 and path.endswith(".parquet"):
                old_paths.add(path)
        return sorted((self.files.keys() & old_paths) - {file.path for file in plan.files})


@dataclass
class Push:
    """One publication: the paths written and deleted, and the final revision.

    Data files go to the Hub's storage first, which no reader sees before a commit. `uploads` are
    kept over retries, so that no file is read and hashed twice; a later run sends only files that
    the storage lacks. `changes` is False if the repository has this state already.
    """

    hub: Hub
    plan: Publication
    revision: str = ""
    card: bytes | None = None
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    uploads: dict[str, CommitOperationAdd] = field(default_factory=dict)
    changes: bool = False

    def run(self) -> None:
        """Update the repository to the state of the plan; nothing happens if it has it already.

        Safe to repeat after any failure: it reads the repository first, and so finds a commit whose
        answer was lost. A commit names its parent revision, so that a concurrent push is never
        overwritten.
        """
        hub, plan = self.hub, self.plan
        try:
            remote = Remote.read(hub, plan)
        except RepositoryNotFoundError:
            remote = None
        manifest = (plan.folder / MANIFEST).read_bytes()
        our_files = [file.path for file in plan.files if file.path in OURS]
        if remote and remote.manifest == manifest and remote.files.keys() >= {*our_files}:
            self.revision = remote.revision
            if not remote.stale(plan) and not remote.outdated(plan):
                return
        if not self.changes:
            plan.verify()
            self.changes = True
        options: dict[str, Any] = {"repo_type": plan.kind}
        if remote is None:
            hub.api.create_repo(plan.repo_id, private=plan.private, exist_ok=True, **options)
            remote = Remote.read(hub, plan)
        self.revision = remote.revision
        card = plan.card(None if remote.card is None else remote.card.decode(errors="replace"))
        # The commit would check the card's metadata too, but after all the uploads.
        # `RepoCard.validate` asks the public Hub, whatever the endpoint.
        body = {"content": card, "repoType": plan.kind}
        hub.request("POST", f"{hub.api.endpoint}/api/validate-yaml", json=body)
        changed = remote.outdated(plan)
        self._upload(changed)
        stale = remote.stale(plan)
        operations: list[Operation] = [*map(CommitOperationDelete, stale)]
        operations += [self.uploads[path] for path in changed]
        operations.append(CommitOperationAdd(CARD, card.encode("utf-8")))
        our_files.remove(CARD)
        operations += [CommitOperationAdd(path, plan.folder / path) for path in our_files]
        title = f"Publish {plan.manifest.name or plan.folder.name} with discorpora"
        options |= {"commit_message": title, "parent_commit": self.revision}
        self.revision = str(hub.api.create_commit(plan.repo_id, operations, **options).oid)
        self.card = card.encode("utf-8")
        self.written, self.deleted = (*changed, CARD, *our_files), tuple(stale)

    def _upload(self, paths: list[str]) -> None:
        """Upload the files that are not in `uploads` to the Hub's storage. They go in batches that
        are retried separately: `create_commit` would start over."""
        plan, new_paths = self.plan, [path for path in paths if path not in self.uploads]
        for start in range(0, len(new_paths), FILES_AN_UPLOAD):
            batch_paths = new_paths[start : start + FILES_AN_UPLOAD]
            batch = {name: CommitOperationAdd(name, plan.content(name)) for name in batch_paths}
            options: dict[str, Any] = {"repo_type": plan.kind, "free_memory": False}
            upload = self.hub.api.preupload_lfs_files
            upload_batch = partial(upload, plan.repo_id, batch.values(), **options)
            self.hub.call(f"uploading files of {plan.repo_id}", upload_batch)
            self.uploads |= batch

    def compare(self) -> None:
        """Verify the pushed revision; raise `DiscorporaError` if it differs from what was sent.

        Compares size and hash of every data file and the bytes of manifest and card, and checks
        that no data file of an earlier version is left.
        """
        plan, remote = self.plan, Remote.read(self.hub, self.plan, self.revision)
        paths = [*remote.outdated(plan), *(path for path in self.deleted if path in remote.files)]
        paths += [MANIFEST] * (remote.manifest != (plan.folder / MANIFEST).read_bytes())
        paths += [CARD] * (self.card is not None and remote.card != self.card)
        if paths:
            names = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if paths[5:] else "")
            problem = f"after the push the Hub differs from what was sent: {names}"
            hint = "publish again; if the error remains, check the repository's history"
            raise DiscorporaError(problem, where=f"{plan.repo_id}@{self.revision}", hint=hint)
