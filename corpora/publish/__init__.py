"""Publishing a finished folder, dataset or model, to the Hugging Face Hub.

    result = publish(folder, "my-name/my-dataset", private=True)

The files are uploaded first; then one commit adds data, card and manifest. An existing card is
merged (`corpora.publish.plan`); the pushed state is read back and compared; nothing is pushed if
the repository already has this state. See docs/how-to/publish.md.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from corpora.publish.plan import Kind, Publication, PublishedFile, plan_publication

if TYPE_CHECKING:
    from corpora.publish.hub import Hub

__all__ = ["Publication", "PublishResult", "PublishedFile", "plan_publication", "publish"]

log = logging.getLogger("corpora.publish")

Status = Literal["published", "unchanged", "dry run"]


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of a publication; a dry run has only a plan and a status.

    `revision` is the repository's commit after the push; `written` and `deleted` are the paths that
    the push changed.
    """

    plan: Publication
    status: Status
    url: str = ""
    revision: str = ""
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return the result as lines of text for the user."""
        head = f"{self.plan.folder} -> {self.plan.repo_id} ({self.plan.kind}): {self.status}"
        if self.status == "dry run":
            return [head, *self.plan.lines()]
        return [head, f"  {self.url} at {self.revision}"]


def publish(
    folder: Path,
    repo_id: str,
    *,
    kind: Kind = "dataset",
    private: bool = False,
    dataset: str = "",
    dry_run: bool = False,
    token: str | None = None,
    hub: Hub | None = None,
) -> PublishResult:
    """Publish `folder` as `repo_id` (`NAMESPACE/NAME`); safe to repeat.

    A dry run lists files, bytes and the licence decision, and needs neither network nor token.
    `dataset` is the repository of the dataset that a model's figures are of (`plan_publication`).
    `hub` is a connection to share between folders, made from `token` if not given; `token` is by
    default that of `hf auth login` or `HF_TOKEN`. With `private`, a new repository is private, and
    an existing public one is an error.

    Raises `DiscorporaError` (or a subclass) with the reason: an unfinished or damaged folder, a
    licence that forbids it, no token, a namespace without write permission, a card on the Hub that
    cannot be merged, or no connection to the Hub.
    """
    plan = plan_publication(Path(folder), repo_id, kind=kind, private=private, dataset=dataset)
    plan.require_no_token()
    if dry_run:
        plan.verify()
        return PublishResult(plan, "dry run")
    plan.require_licence()

    # Imported here: the client takes a third of a second, and a dry run does not need it.
    from corpora.publish.hub import Hub
    from corpora.publish.repository import Push

    hub = hub or Hub(token)
    plan.require_no_token(hub.token)
    hub.require_namespace(repo_id)
    url = f"{hub.api.endpoint}/{'datasets/' if kind == 'dataset' else ''}{repo_id}"
    push = Push(hub, plan)
    hub.call(f"publishing {repo_id}", push.run)
    if not push.changes:
        log.info("%s is up to date, nothing was pushed", repo_id)
        return PublishResult(plan, "unchanged", url, push.revision)
    hub.call(f"reading {repo_id} back", push.compare)
    log.info("%s is published at %s", repo_id, push.revision)
    return PublishResult(plan, "published", url, push.revision, push.written, push.deleted)
