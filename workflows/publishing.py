"""Publishing what a build made: one repository a dataset and a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workflows.links import walk

if TYPE_CHECKING:
    from pathlib import Path

    from corpora.publish.hub import Hub
    from corpora.publish.plan import Kind
    from workflows.stage import StageTask

KINDS: dict[str, Kind] = {"dataset": "dataset", "model": "model"}


def publish_build(
    build: StageTask, namespace: str, *, private: bool = False, dry_run: bool = False
) -> None:
    """Publish every dataset and model of `build` as `NAMESPACE/BUILD-NAME`.

    Nothing is pushed unless everything may be: licences are decided first, for all of them.
    """
    from corpora.publish import plan_publication

    folders = list(_folders(build, namespace))
    if not dry_run:
        for folder, repo, kind in folders:
            plan_publication(folder, repo, kind=kind, private=private).require_licence()
    hub = None
    if not dry_run:
        from corpora.publish.hub import Hub

        hub = Hub()
    for folder, repo, kind in folders:
        publish_folder(folder, repo, kind, private=private, dry_run=dry_run, hub=hub)


def publish_folder(
    folder: Path, repo: str, kind: Kind, *, private: bool, dry_run: bool, hub: Hub | None = None
) -> None:
    """Publish one folder and print what was done (or would be)."""
    from corpora.publish import publish

    result = publish(folder, repo, kind=kind, private=private, dry_run=dry_run, hub=hub)
    sys.stdout.write("\n".join(result.lines()) + "\n")


def _folders(build: StageTask, namespace: str) -> Iterator[tuple[Path, str, Kind]]:
    for task in walk(build):
        if kind := KINDS.get(task.stage):
            yield task.folder, f"{namespace}/{build.key}-{task.key}", kind
