"""Publishing the results of a build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import luigi

from workflows import console
from workflows.tasks.build import BuildAll

if TYPE_CHECKING:
    from corpora.publish.plan import Kind


class PublishAll(luigi.Task):
    """Publish every dataset and model of a build to the Hugging Face Hub.

    Nothing is pushed unless every licence allows it: all licences are checked first.
    """

    config = luigi.Parameter(default="", description="a build file: its path or a shipped name")
    namespace = luigi.Parameter(description="a user or organisation of the Hub")
    private = luigi.BoolParameter(default=False, description="make new repositories private")
    dry_run = luigi.BoolParameter(
        default=False, description="list files and licence decisions only"
    )

    done = False

    def requires(self) -> BuildAll:
        return BuildAll(config=self.config)

    def complete(self) -> bool:
        """Whether this run has published; what is up to date on the Hub is not pushed again."""
        return self.done

    def run(self) -> None:
        from corpora.publish import plan_publication, publish
        from corpora.publish.hub import Hub

        build, private, hub = self.requires(), self.private, None
        kinds: dict[str, Kind] = {"dataset": "dataset", "model": "model"}
        folders = [
            (task.folder, f"{self.namespace}/{build.key}-{task.key}", kinds[task.stage])
            for task in build.lineage
            if task.stage in kinds
        ]
        with console.explained(Path.cwd()):
            if not self.dry_run:
                for folder, repo, kind in folders:
                    plan_publication(folder, repo, kind=kind, private=private).require_licence()
                hub = Hub()
            for folder, repo, kind in folders:
                done = publish(
                    folder, repo, kind=kind, private=private, dry_run=self.dry_run, hub=hub
                )
                sys.stdout.write("\n".join(done.lines()) + "\n")
        self.done = True
