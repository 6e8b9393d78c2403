"""The whole build: its report, `BuildAll`, and `PublishAll`."""

from __future__ import annotations

import logging
from collections.abc import Container
from functools import cached_property
from pathlib import Path
from typing import Any

import luigi

from corpora.store.atomic import MANIFEST, write_json
from workflows import console, links, preflight
from workflows.stage import StageTask
from workflows.tasks.datasets import Dataset, Validate
from workflows.tasks.models import Evaluate, Train
from workflows.tasks.sources import Sentences

log = logging.getLogger("discorpora")


class Report(StageTask):
    """The table and plots of a whole build, in Markdown."""

    stage = "report"

    @property
    def key(self) -> str:
        return self.build.name

    def requires(self) -> list[StageTask]:
        build, config = self.build, self.config
        fed = [name for name in build.datasets if any(name in s.datasets for s in build.sources)]
        stages: list[StageTask] = [Validate(config=config, name=v.name) for v in build.validation]
        stages += [Dataset(config=config, name=name) for name in fed]
        usable = {name for name in build.models if self.trainable(name, fed)}
        for name in build.models:
            if name in usable:
                judged = bool(build.models[name].suite)
                stages.append((Evaluate if judged else Train)(config=config, name=name))
        for on, plan in build.evaluations.items():
            if plan.data or set(fed).issuperset(plan.datasets):
                stages += [
                    Evaluate(config=config, name=name, on=on)
                    for name in plan.models
                    if name in usable
                ]
        used = {source.name for source in build.sources if source.datasets}
        used |= {name for check in build.validation for name in check.sources}
        unused = [source.name for source in build.sources if source.name not in used]
        return stages + [Sentences(config=config, source=name) for name in unused]

    def trainable(self, name: str, fed: Container[str]) -> bool:
        """Whether a model's dataset has a source, and that of the model it starts from."""
        model = self.build.models[name]
        return model.dataset in fed and (not model.base or self.trainable(model.base, fed))

    def skipped(self) -> list[str]:
        """What the build file has no source for, a line each."""
        build = self.build
        fed = {name for source in build.sources for name in source.datasets}
        lines = [f"dataset {name}" for name in build.datasets if name not in fed]
        lines += [f"model {name}" for name in build.models if not self.trainable(name, fed)]
        lines += [
            f"evaluation {name}"
            for name, plan in build.evaluations.items()
            if not fed.issuperset(plan.datasets)
        ]
        return lines

    def settings(self) -> dict[str, Any]:
        return {"name": self.build.name, "skipped": self.skipped()}

    def work(self, folder: Path) -> dict[str, Any]:
        from workflows.report.report import write_report

        return write_report(self, folder)


class BuildAll(StageTask):
    """Run every stage of a build file, then link what it built under `OUTPUT/NAME/`.

    It is complete when every result is there and the links are those of this very build file, so
    a result that was removed is made again, and going back to older settings shows their results.
    """

    stage = "all"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        preflight.check(self)

    @property
    def key(self) -> str:
        return self.build.name

    @cached_property
    def report(self) -> Report:
        return Report(config=self.config)

    def requires(self) -> list[StageTask]:
        """The report, and each result by itself: Luigi does not look behind a complete task."""
        return [self.report, *links.results(self.report)]

    @property
    def place(self) -> Path:
        """Where the results have short names."""
        return self.root / self.build.name

    def complete(self) -> bool:
        there = all(task.output().exists() for task in (self, *self.requires()))
        return there and links.linked(self.report, self.place)

    def run(self) -> None:
        super().run()
        with console.explained(self.folder):
            links.link_results(self.report, self.place)
        log.info("%s: built, see %s", self.key, self.place / "report" / "report.md")

    def work(self, folder: Path) -> dict[str, Any]:
        write_json(folder / MANIFEST, self.record().to_dict())
        return {}


@BuildAll.event_handler(luigi.Event.DEPENDENCY_PRESENT)
def _say_that_it_is_there(task: BuildAll) -> None:
    """A second run has nothing to do: Luigi ends without a word."""
    log.info("%s: built before, see %s", task.key, task.place / "report" / "report.md")


class PublishAll(luigi.Task):
    """Publish every dataset and model of a build to the Hugging Face Hub."""

    config = luigi.Parameter(default="", description="a build file: its path or a shipped name")
    namespace = luigi.Parameter(description="a user or organisation of the Hub")
    private = luigi.BoolParameter(default=False, description="make new repositories private")
    dry_run = luigi.BoolParameter(default=False, description="only list files and decisions")

    done = False

    def requires(self) -> BuildAll:
        return BuildAll(config=self.config)

    def complete(self) -> bool:
        """Whether this run has published: the Hub itself knows what is up to date."""
        return self.done

    def run(self) -> None:
        from workflows.publishing import publish_build

        with console.explained(Path.cwd()):
            publish_build(
                self.requires(), self.namespace, private=self.private, dry_run=self.dry_run
            )
        self.done = True
