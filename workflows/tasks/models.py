"""The stages over a dataset: models, and their evaluations."""

from __future__ import annotations

import logging
import shutil
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import luigi

from corpora.code import code_hash
from corpora.declared import portable
from corpora.errors import DiscorporaError
from corpora.processes import stop_with_build
from corpora.store.atomic import MANIFEST, is_complete, staged, write_json
from workflows import console, fits, usage
from workflows.sources import SourceRecord, file_hash, files_hash
from workflows.stage import StageTask
from workflows.tables import Evaluation, Model
from workflows.tasks.datasets import Dataset, Divide
from workflows.training import Chosen, Judged, chosen_recipe, chosen_suite, evaluate, train

log = logging.getLogger("discorpora")

PLANNED = ("suite", "dataset", "limit", "settings")
PLACES = frozenset({"backbone", "vectors"})
"""Settings of recipes that name a file or folder, or a model of the Hub."""


class ModelStage(StageTask):
    name = luigi.Parameter(description="a [models.NAME] table's name")

    @property
    def key(self) -> str:
        return self.name

    @property
    def entry(self) -> Model:
        return self.build.model(self.name)


class Train(ModelStage):
    """Train one model with its recipe, in a process of its own.

    A refactoring of the code that made a dataset does not lead to another model folder: the path
    leaves that code out. The model's manifest records it, and `discorpora plan` tells.
    """

    stage = "model"
    resources = {"training": 1}  # one at a time

    def requires(self) -> list[StageTask]:
        """The dataset, and the model that this one starts from, if any."""
        stages: list[StageTask] = [Dataset(config=self.config, name=self.entry.dataset)]
        if base := self.entry.base:
            stages.append(Train(config=self.config, name=base))
        return stages

    @cached_property
    def hash(self) -> str:
        return self.identity

    @cached_property
    def chosen(self) -> Chosen:
        """The recipe with the settings that are used."""
        return chosen_recipe(self.build, self.name)

    def settings(self) -> dict[str, Any]:
        """The recipe's settings; a file or folder among them counts by its contents."""
        build, entry, recipe = self.build, self.entry, self.chosen.recipe
        data = fits.Data(entry.dataset, build.builder(entry.dataset), build)
        fits.check_training(self.name, recipe, data)
        if entry.base:
            fits.check_base(build, self.name, type(chosen_recipe(build, entry.base).recipe))
        settings = {"version": recipe.version, **self.chosen.table}
        if isinstance(settings.get("objective"), str):
            settings["objective"] = portable(settings["objective"])
        for key in PLACES & settings.keys():
            settings[key] = self._contents(str(settings[key]))
        return {**settings, "dataset_config": entry.config} if entry.config else settings

    def _contents(self, value: str) -> str:
        path = Path(value)
        if not value or not path.exists():
            return value
        whole = files_hash(path, self.root) if path.is_dir() else file_hash(path, self.root)
        return f"{path.name}@sha256:{whole}"

    def other_code(self) -> list[str]:
        """What of a trained model was made by other code than today's: its data, its recipe."""
        if not self.output().exists():
            return []
        made = self.manifest()
        now = {
            "data": (made.get("settings", {}).get("dataset_revision"), self.requires()[0].hash),
            "recipe": (made.get("code"), code_hash(type(self.chosen.recipe).__module__)),
        }
        return [what for what, (then, today) in now.items() if then != today]

    def produce(self) -> None:
        dataset, *base = [stage.folder for stage in self.requires()]
        start = base[0] if base else None
        train(self.entry, self.name, dataset, start, self.folder, self.chosen)


class Evaluate(ModelStage):
    """Evaluate a model: on the held-out split of its dataset, or as `[evaluations.ON]` says.

    Luigi runs evaluations of one model that are ready together as one task, whose `on` lists
    theirs: they share a process, which loads the libraries once.
    """

    stage = "evaluation"
    version = 6
    on = luigi.Parameter(
        default="", batch_method=",".join, description="an [evaluations.NAME] table's name"
    )
    resources = {"training": 1}  # one at a time

    @property
    def parts(self) -> list[Evaluate]:
        """The single evaluations of a batch; of one that is no batch itself."""
        names = self.on.split(",")
        return [self.clone(on=name) for name in names] if len(names) > 1 else [self]

    def complete(self) -> bool:
        return all(is_complete(part.folder) for part in self.parts)

    @cached_property
    def identity(self) -> str:
        parts = self.parts
        return ",".join(p.identity for p in parts) if len(parts) > 1 else super().identity

    @property
    def key(self) -> str:
        return f"{self.on}/{self.name}" if self.on else self.name

    @property
    def keys(self) -> tuple[str, ...]:
        """The table of the build file that asks for it."""
        return ("evaluations", self.on) if self.on else ("models", self.name)

    @property
    def plan(self) -> Evaluation:
        """What is evaluated on what; a model's own `suite` and `dataset` make one too."""
        if self.on:
            return self.build.evaluation(self.on)
        entry = self.entry
        dataset = f"{entry.dataset}@{entry.config}" if entry.config else entry.dataset
        return Evaluation(
            suite=entry.suite, models=(self.name,), dataset=dataset, limit=entry.limit
        )

    def requires(self) -> list[StageTask]:
        if len(self.parts) > 1:
            return list(dict.fromkeys(task for part in self.parts for task in part.requires()))
        train = Train(config=self.config, name=self.name)
        # What it learned from is read again, and Luigi does not look behind a complete task.
        learned = [task for task, _ in self.learned_from()] if self.plan.datasets else []
        return [train, *dict.fromkeys([*self.judged_on(), *learned])]

    def settings(self) -> dict[str, Any]:
        build, plan = self.build, self.plan
        suite = chosen_suite(build, plan, *self.keys)
        models, data = ("models", "dataset") if self.on else ("suite", "suite")
        recipe = type(chosen_recipe(build, self.name).recipe)
        fits.check_model(build, suite, self.name, recipe, (*self.keys, models))
        fits.check_data(build, suite, plan, (*self.keys, data))
        return {"version": suite.version, **plan.model_dump(include={*PLANNED})}

    def sources(self) -> list[SourceRecord]:
        plan = self.plan
        if not plan.data:
            return []
        return [SourceRecord(f"{self.on}-data", self.build.place(plan.data), get=plan.get)]

    def data(self, shelf: Path) -> str:
        """The folder, file or Hub id that the suite reads, with `@CONFIG`.

        Several datasets are linked by name in the new folder `shelf`.
        """
        plan = self.plan
        if plan.data:
            return self.build.place(plan.data).partition(":")[2]
        folders = [stage.folder for stage in self.judged_on()]
        if isinstance(plan.dataset, str):
            _, at, config = plan.dataset.partition("@")
            return f"{folders[0]}{at}{config}"
        shelf.mkdir()
        for name, folder in zip(plan.datasets, folders, strict=True):
            (shelf / name).symlink_to(folder, target_is_directory=True)
        return str(shelf)

    def run(self) -> None:
        """Evaluate; one that fails leaves the model and the other evaluations."""
        stop_with_build()
        waiting = [part for part in self.parts if not is_complete(part.folder)]
        for part in waiting:
            log.info("%s", part.title)
        meter, errors = usage.Meter(), []
        self.root.mkdir(parents=True, exist_ok=True)
        with console.explained(self.root), tempfile.TemporaryDirectory(dir=self.root) as place:
            jobs = []
            for number, part in enumerate(waiting):
                folder = Path(place) / str(number)
                folder.mkdir()
                jobs.append(Judged(part.plan, part.data(folder.with_suffix(".data")), folder))
            model = Train(config=self.config, name=self.name).folder
            results = evaluate(jobs, self.name, model, self.build)
            numbers = meter.read()
            for part, job, counts in zip(waiting, jobs, results, strict=True):
                if isinstance(counts, DiscorporaError):
                    errors.append(counts)
                    continue
                with staged(part.folder) as partial:
                    shutil.copytree(job.folder, partial, dirs_exist_ok=True)
                    about = {**part.record().to_dict(), "counts": {**counts, **part.seen()}}
                    write_json(partial / MANIFEST, about)
                write_json(part.run_file, {**numbers, "evaluations": len(waiting)})
                log.info("%s: %.1f s", part.title, numbers["seconds"])
        if errors:
            raise errors[0]

    def seen(self) -> dict[str, int]:
        """Rows of the build's datasets, and those of documents that the model was trained on."""
        from corpora.splits.division import Division
        from corpora.splits.seen import rows_seen

        if all(task.direct for task in self.judged_on()):
            return {}
        configs = (config for _, config in self.plan.configurations)
        judged = [(t.folder, c) for t, c in zip(self.judged_on(), configs, strict=True)]
        trained = [(task.folder, config) for task, config in self.learned_from()]
        return rows_seen(trained, judged, Division.read(Divide(config=self.config).folder))

    def judged_on(self) -> list[Dataset]:
        return [Dataset(config=self.config, name=name) for name in self.plan.datasets]

    def learned_from(self) -> list[tuple[Dataset, str]]:
        """The datasets of the model and of those that it starts from, with configurations."""
        found, entry = [], self.entry
        while True:
            found.append((Dataset(config=self.config, name=entry.dataset), entry.config))
            if not entry.base:
                return found
            entry = self.build.model(entry.base)
