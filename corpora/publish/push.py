"""Bringing a repository on the Hub to the state of a folder: uploads, then one commit.

A reader of the repository sees the old version whole until that commit, and the new one after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from huggingface_hub import CommitOperationAdd, CommitOperationDelete
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    get_session,
    hf_raise_for_status,
)

from corpora.errors import DiscorporaError
from corpora.publish.card import published_card, unfinished_card
from corpora.publish.folder import CARD, Publication, PublishedFile
from corpora.publish.hub import Hub
from corpora.publish.remote import Push, Remote, is_there, look, same, stale
from corpora.store.atomic import MANIFEST

FILES_AN_UPLOAD = 256
"""As many as the client itself puts into a request."""

Operation = CommitOperationAdd | CommitOperationDelete


class Uploads:
    """The data files that went to the Hub's storage, which no reader sees before a commit.

    Kept over the tries of one publication, so that no file is read and hashed twice. A later run
    sends again only what the storage does not have.
    """

    def __init__(self, hub: Hub, plan: Publication) -> None:
        self.hub, self.plan = hub, plan
        self._done: dict[str, CommitOperationAdd] = {}

    def send(self, files: Sequence[PublishedFile]) -> list[CommitOperationAdd]:
        """Upload `files`, each batch a step with tries of its own; what a commit needs of them."""
        new = [file.path for file in files if file.path not in self._done]
        for start in range(0, len(new), FILES_AN_UPLOAD):
            self._upload(new[start : start + FILES_AN_UPLOAD])
        return [self._done[file.path] for file in files]

    def _upload(self, paths: Sequence[str]) -> None:
        batch = {path: CommitOperationAdd(path, self.plan.folder / path) for path in paths}
        self.hub.call(
            f"uploading files of {self.plan.repo_id}",
            lambda: self.hub.api.preupload_lfs_files(
                self.plan.repo_id, batch.values(), repo_type=self.plan.kind, free_memory=False
            ),
        )
        self._done |= batch


def push(hub: Hub, plan: Publication, uploads: Uploads) -> Push:
    """Bring the repository to the state of `plan`.

    Safe to call again after any failure: it looks at the remote first, and a commit that was
    made although its answer was lost is found there. A commit names the revision it was made
    for, so that a push by somebody else in between is never overwritten unseen.
    """
    remote = look(hub, plan) or create(hub, plan)
    if is_there(plan, remote):
        return Push(remote.revision, None, (), ())
    card = published_card(plan, remote.card)
    _validate(hub, plan, card)
    changed = [file for file in plan.data_files if not same(plan, file, remote)]
    deleted = stale(plan, remote)
    operations: list[Operation] = [CommitOperationDelete(path) for path in deleted]
    operations += uploads.send(changed)
    revision = _commits(hub, plan, remote.revision, operations, card)
    written = (*(file.path for file in changed), CARD, MANIFEST)
    return Push(revision, card.encode("utf-8"), written, deleted)


def create(hub: Hub, plan: Publication) -> Remote:
    """Make the repository; returns its first revision."""
    hub.api.create_repo(plan.repo_id, repo_type=plan.kind, private=plan.private, exist_ok=True)
    made = look(hub, plan)
    if made is None:
        raise DiscorporaError(
            "was made, but the Hub does not show it", where=plan.repo_id, hint="publish again"
        )
    return made


def _commits(
    hub: Hub, plan: Publication, revision: str, operations: list[Operation], card: str
) -> str:
    """Commit it all, in one if the Hub takes so many operations; returns the last revision.

    Before the first of several the card is replaced by one that says so and loads nothing.
    """
    name = plan.manifest.get("name") or plan.folder.name

    def commit(parent: str, part: list[Operation], message: str) -> str:
        made = hub.api.create_commit(
            plan.repo_id, part, commit_message=message, repo_type=plan.kind, parent_commit=parent
        )
        return str(made.oid)

    limit = hub.settings.commit_operations
    if len(operations) + 2 > limit:
        unfinished = unfinished_card(plan, card).encode("utf-8")
        revision = commit(
            revision, [CommitOperationAdd(CARD, unfinished)], f"Begin to publish {name}"
        )
    while len(operations) + 2 > limit:
        part, operations = operations[:limit], operations[limit:]
        revision = commit(revision, part, "Publish data files with discorpora")
    last = [
        CommitOperationAdd(CARD, card.encode("utf-8")),
        CommitOperationAdd(MANIFEST, plan.folder / MANIFEST),
    ]
    return commit(revision, [*operations, *last], f"Publish {name} with discorpora")


def _validate(hub: Hub, plan: Publication, card: str) -> None:
    """Let the Hub look at the card's metadata: the commit would, but after all the uploads."""
    response = get_session().post(
        f"{hub.api.endpoint}/api/validate-yaml",
        json={"content": card, "repoType": plan.kind},
        headers=build_hf_headers(token=hub.token),
    )
    hf_raise_for_status(response)
