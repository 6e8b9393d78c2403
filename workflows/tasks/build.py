"""The whole build: checks before it runs, its report, `BuildAll`, `PublishAll`."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import luigi
from luigi.interface import core

import zoo
from corpora.errors import InputError
from corpora.store.atomic import is_complete, locked, partial_path, remove_unfinished, sha256
from corpora.store.copies import is_linked, mend
from corpora.store.damage import damages
from workflows import console, devices, engines
from workflows.report.page import assets_hash, write_report
from workflows.results import RECORD, put_results, results_at
from workflows.settings import discorpora, options
from workflows.sources import FROM_NETWORK
from workflows.stage import StageTask, begin_checks, set_aside, set_aside_damaged
from workflows.tables import NO_BUILDS
from workflows.tasks.datasets import Dataset, Validate
from workflows.tasks.models import Evaluate, ModelStage, Train
from workflows.tasks.sources import Parse, Sentences, parser_problem
from zoo.evaluate.published import PUBLISHED

if TYPE_CHECKING:
    from corpora.publish.plan import Kind

log = logging.getLogger("discorpora")

LOCK = ".build.lock"
"""The lock file of an output folder: one build at a time writes there."""
_locks: dict[Path, ExitStack] = {}
"""The output folders that this process has locked, each with its lock."""

SHELVES = {
    "dataset": "datasets",
    "model": "models",
    "evaluation": "evaluations",
    "validation": "validation",
}
"""The folder below `OUTPUT/NAME/` for the results of each kind of stage."""
HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")
"""The id of a model on the Hub, such as `google/bert_uncased_L-2_H-128_A-2`."""
ALONE = ("report", "division")
"""The stages that a build has only once: their result folders have their names."""


class Report(StageTask):
    """The report of a whole build: a page that opens from disk, and the same in Markdown."""

    stage = "report"
    version = 3
    also_reads = ("division", "dataset", "validation", "evaluation")
    code = ("workflows.report.page",)

    @property
    def key(self) -> str:
        return self.build.name

    def requires(self) -> list[StageTask]:
        """The stages of all results, and the sentences of sources that no result is made from."""
        build, config, skipped = self.build, self.config, {*self.build.skipped}
        stages: list[StageTask] = [Validate(config=config, name=v.name) for v in build.validation]
        for name in build.datasets:
            if f"dataset {name}" not in skipped:
                stages.append(Dataset(config=config, name=name))
        for name, model in build.models.items():
            if f"model {name}" not in skipped:
                stages.append((Evaluate if model.suite else Train)(config=config, name=name))
        for evaluation, plan in build.evaluations.items():
            if f"evaluation {evaluation}" not in skipped:
                usable = [name for name in plan.models if f"model {name}" not in skipped]
                stages += [Evaluate(config=config, name=name, on=evaluation) for name in usable]
        # Sources that nothing reads
        validated = {name for check in build.validation for name in check.sources}
        for source in build.sources:
            if not source.datasets and source.name not in validated:
                stages.append(Sentences(config=config, source=source.name))
        return stages

    def settings(self) -> dict[str, Any]:
        """The name of the build, what it skips, and its tables of papers."""
        build = self.build
        tables = [shown.model_dump() for shown in build.tables]
        settings = {"name": build.name, "skipped": build.skipped}
        return {**settings, "tables": tables} if tables else settings

    def card_facts(self) -> dict[str, Any]:
        tables = {"published": sha256(PUBLISHED)} if self.build.tables else {}
        return {"assets": assets_hash(), **tables}

    def work(self, folder: Path) -> dict[str, Any]:
        from workflows.papers import filled  # a build without models needs none of it

        stages, build = self.stages(), self.build
        tables = filled(build, stages) if build.tables else []
        return dict(write_report(self.key, stages, build.skipped, folder, tables))


class BuildAll(StageTask):
    """Run every stage of a build file, then put the results under `OUTPUT/NAME/`.

    It is complete when each result folder exists and is an up-to-date copy of its stage's folder.
    So a removed result is put back, and so are the results of a build with earlier settings.
    """

    stage = "all"
    rehash = luigi.BoolParameter(
        default=False, significant=False, description="read every source, whatever its times say"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Check the inputs, and set damaged stages aside.

        File sizes are checked in all stages, checksums in those that a missing stage will read.
        """
        self.damaged: list[StageTask] = []
        """The stages that were set aside: they are made again, also if no result is missing."""
        if kwargs.get("rehash"):
            luigi.configuration.get_config().set("discorpora", "rehash", "true")
        super().__init__(*args, **kwargs)
        if not discorpora().looking:
            check_inputs(self)
            begin_checks()
            folders = [task.folder for task in self.lineage if task.folder.is_dir()]
            is_damaged = any(True for folder in folders for _ in damages(folder, sums=False))
            if is_damaged or not self.complete():
                lock_output(self.root)
                # Downstream first: a stage that is set aside here will read stages upstream again.
                for task in reversed(self.lineage):
                    self.damaged += [task] if set_aside_damaged(task, sums=False) else []
                    inputs = () if task.complete() else task.reads
                    self.damaged += [stage for stage in inputs if set_aside_damaged(stage)]

    @property
    def key(self) -> str:
        return self.build.name

    def requires(self) -> list[StageTask]:
        """The report and every result, since Luigi does not look upstream of a complete task."""
        report = Report(config=self.config)
        results = [task for task in report.lineage if {task.stage} & {*SHELVES, *ALONE}]
        return list(dict.fromkeys([report, *results, *self.damaged]))

    @property
    def place(self) -> Path:
        """The folder where the results have short names."""
        return self.root / self.build.name

    def results(self) -> dict[Path, Path]:
        """Return the result folders that belong under `place`, each with its stage's folder."""
        results = {}
        for task in self.lineage:
            if task.stage in ALONE or task.stage in SHELVES:
                shelf = SHELVES.get(task.stage)
                folder = self.place / shelf / task.key if shelf else self.place / task.stage
                results[folder] = task.folder
        return results

    def outdated(self) -> dict[Path, Path]:
        """Return the result folders to write, each with its stage's folder, as `results` does.

        A result folder is written if it is missing or no up-to-date copy of its stage's folder.
        """
        results = self.results()
        return {result: stage for result, stage in results.items() if not is_linked(stage, result)}

    def complete(self) -> bool:
        """Tell whether all stages are complete, and all results are in their places."""
        return (
            all(is_complete(task.folder) for task in (self, *self.upstream, *self.damaged))
            and results_at(self.place).keys() == self.results().keys()
            and not self.outdated()
        )

    def to_do(self) -> list[StageTask]:
        """Return the stages that a build would run: missing ones that a missing result needs.

        As in Luigi, stages upstream of a complete stage are not looked at.
        """
        missing, waiting = set[StageTask](), [self, *self.damaged]
        while waiting:
            task = waiting.pop()
            if task not in missing and not task.complete():
                missing.add(task)
                waiting += task.upstream
        return [task for task in self.lineage if task in missing]

    def run(self) -> None:
        """Complete the stage `all`, and put the results of all stages under `place`."""
        super().run()
        with console.explained(self.folder):
            put_results(self.place, self.results())
        log.info("%s: built, see %s", self.key, self.place / "report" / "index.html")

    def work(self, folder: Path) -> dict[str, Any]:
        return {}


@BuildAll.event_handler(luigi.Event.DEPENDENCY_PRESENT)
def _log_complete(task: BuildAll) -> None:
    """Log where the results are if the build is complete already: Luigi prints nothing then."""
    log.info("%s: built before, see %s", task.key, task.place / "report" / "index.html")


def lock_output(root: Path) -> None:
    """Lock an output folder against other builds until `unlock_output`, or the process ends.

    Also removes the unfinished folders of interrupted builds. A central scheduler keeps its workers
    apart, so that it needs no lock. Raises `Busy`, which names the process that builds there.
    """
    if root not in _locks and core().local_scheduler:
        stack = ExitStack()
        stack.enter_context(locked(root / LOCK, "another build writes into this folder"))
        _locks[root] = stack
        atexit.register(unlock_output, root)
        for name in NO_BUILDS:  # elsewhere another command may be writing, such as `extract`
            remove_unfinished(root / name)
        for record in root.glob(f"*/{RECORD}"):
            for folder in results_at(record.parent):
                mend(folder)


def unlock_output(root: Path) -> None:
    """Unlock an output folder that `lock_output` has locked."""
    if stack := _locks.pop(root, None):
        stack.close()


class Missing(NamedTuple):
    """An input that is not on this machine, its place in the build file, and how to get it."""

    name: str
    problem: str
    where: str
    get: str

    @property
    def stops(self) -> bool:
        """Whether a build fails without it; an input from the network will be downloaded."""
        return not self.problem.endswith(FROM_NETWORK)

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}" if self.stops else self.problem


def check_inputs(task: BuildAll) -> None:
    """Raise `InputError` with every missing input of the stages that the build would run.

    Raises `ConfigError` for an engine that cannot be used.
    """
    engines.check(task.build.engine, task.build.path)
    entries = (entry for stage in task.to_do() for entry in missing_inputs(stage) if entry.stops)
    if missing := {entry.name: entry for entry in entries}:  # several models may read one file
        lines = (f"{name}: {entry}" for name, entry in missing.items())
        steps = dict.fromkeys(entry.get for entry in missing.values() if entry.get)
        raise InputError(
            f"{len(missing)} of the inputs are not here:\n  " + "\n  ".join(lines),
            where=task.build.path,
            hint="\n  ".join(["set DISCORPORA_DATA, correct the build file, or get them:", *steps]),
        )


def missing_inputs(stage: StageTask) -> list[Missing]:
    """Return the sources, parsers, packages and models of a stage that are not on this machine."""
    build, missing = stage.build, []
    for source in stage.own_sources:
        if source.problem:
            in_file = source.name in build.by_name
            where = build.where(*build.source(source.name).loc, "spec") if in_file else build.path
            problem = f"{source.spec}: {source.problem}"
            missing.append(Missing(source.name, problem, where, source.get))
    if isinstance(stage, Parse):
        where = build.where(*build.parser_keys(stage.source, stage.parser_name))
        problem, get = parser_problem(stage.parser_name)
        if problem:
            missing.append(Missing(f"parser {stage.parser_name}", problem, where, get))
    if isinstance(stage, ModelStage) and not stage.complete() and (packages := zoo.lacking()):
        problem = f"{', '.join(packages)} not installed: models are trained with the extra zoo"
        get = "pip install 'discorpora[zoo]', or remove the models from the build file"
        missing.append(Missing("models", problem, build.path, get))
    if isinstance(stage, Train):
        recipe, where = stage.choice.recipe, build.where("models", stage.name, "recipe")
        backbone, vectors = getattr(recipe, "backbone", ""), getattr(recipe, "vectors", "")
        if backbone and not stage.entry.base and not Path(backbone).is_dir():
            problem = FROM_NETWORK if HUB_ID.fullmatch(backbone) else "no such folder"
            missing.append(Missing(f"backbone {backbone}", problem, where, stage.entry.get))
        if vectors and not Path(vectors).is_file():
            name = f"vectors {vectors}"
            missing.append(Missing(name, "no such file", where, stage.entry.get))
    return missing


def remove_outdated(task: StageTask) -> None:
    """Remove the models whose code or data have changed, and all stages made from them.

    Stages downstream are removed first, so that a run after an interrupted removal finds the rest.
    """
    outdated: list[StageTask] = []
    for stage in task.lineage:
        has_changed = isinstance(stage, Train) and bool(stage.changed_code())
        if has_changed:
            log.info("%s: its code or data have changed, it is trained again", stage.title)
        if has_changed or not set(outdated).isdisjoint(stage.upstream):
            outdated.append(stage)
    for stage in reversed(outdated):
        shutil.rmtree(partial_path(stage.folder), ignore_errors=True)  # made from the old model
        if stage.folder.is_dir():
            shutil.rmtree(set_aside(stage.folder))


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
        """Tell whether this run has published; what is up to date on the Hub is not pushed."""
        return self.done

    def run(self) -> None:
        """Check the licences of all datasets and models, then publish each of them."""
        from corpora.publish import plan_publication, publish
        from corpora.publish.hub import Hub

        build, private, hub = self.requires(), self.private, None
        kinds: dict[str, Kind] = {"dataset": "dataset", "model": "model"}
        tasks = [task for task in build.lineage if task.stage in kinds]
        # A model without a dataset was not trained, so there is nothing of it to publish.
        repository = f"{self.namespace}/{build.key}-".__add__
        folders = [
            (
                task.folder,
                repository(task.key),
                kinds[task.stage],
                repository(task.entry.dataset) if isinstance(task, Train) else "",
            )
            for task in tasks
            if not isinstance(task, Train) or task.entry.dataset
        ]
        with console.explained(Path.cwd()):
            if not self.dry_run:
                for folder, repo, kind, _ in folders:
                    plan_publication(folder, repo, kind=kind, private=private).require_licence()
                hub = Hub()
            for folder, repo, kind, dataset in folders:
                publication = publish(
                    folder,
                    repo,
                    kind=kind,
                    private=private,
                    dataset=dataset,
                    dry_run=self.dry_run,
                    hub=hub,
                )
                sys.stdout.write("\n".join(publication.lines()) + "\n")
        self.done = True


def run_build(
    config: str, output: str, workers: int, *, retrain: bool = False, rehash: bool = False
) -> int:
    """Build everything that `config` names; returns 0 if all results exist at the end.

    `retrain` first removes the models whose code or data have changed since their training, and
    all stages made from them. `rehash` reads every source, also if its files seem unchanged.
    """
    with options(config, output, workers, rehash=rehash, retrain=retrain):
        task = BuildAll(config=config)
        if retrain:
            lock_output(task.root)
            remove_outdated(task)
        workers = max(workers, len(devices.available_gpus()))  # a training on each
        try:
            done = task.complete() or luigi.build([task], local_scheduler=True, workers=workers)
        finally:
            unlock_output(task.root)
    return 0 if done else 1
