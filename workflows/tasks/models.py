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
from corpora.readers import split_spec
from corpora.store.atomic import MANIFEST, is_complete, staged, write_json
from workflows import console, devices, fits, usage
from workflows.sources import Seen, SourceRecord, check_unchanged, files_hash, files_in, seen
from workflows.stage import StageTask, check_reads, reading, set_aside
from workflows.tables import Evaluation, Model
from workflows.tasks.datasets import Dataset, Divide
from workflows.training import Chosen, Judged, chosen_recipe, chosen_suite, evaluate, train

log = logging.getLogger("discorpora")

PLACES = ("backbone", "vectors")
"""Settings of recipes whose value is a file, a folder or a model of the Hub."""


class ModelStage(StageTask):
    name = luigi.Parameter(description="a [models.NAME] table's name")
    resources = {"training": 1}  # a GPU; without a GPU one training runs at a time

    @property
    def entry(self) -> Model:
        return self.build.model(self.name)


class Train(ModelStage):
    """Train one model with its recipe, in a separate process.

    The model's folder does not depend on the code that made its dataset, so a refactoring does not
    train it again. The manifest records that code, and `discorpora plan` says when it has changed.
    """

    stage = "model"
    by_code = False

    def process_resources(self) -> dict[str, int]:
        return {"training": devices.processes(self.chosen.recipe, self.entry.devices)}

    def requires(self) -> list[StageTask]:
        """The dataset, and the model that this one starts from, if any."""
        stages: list[StageTask] = [Dataset(config=self.config, name=self.entry.dataset)]
        if base := self.entry.base:
            stages.append(Train(config=self.config, name=base))
        return stages

    @cached_property
    def files(self) -> dict[Path, dict[Path, Seen]]:
        """The files of a backbone or of vectors as they were hashed, by their place."""
        return {}

    @cached_property
    def chosen(self) -> Chosen:
        """The recipe with the settings that this model uses."""
        return chosen_recipe(self.build, self.name)

    def settings(self) -> dict[str, Any]:
        """The recipe's settings; a file or folder is replaced by the hash of its contents."""
        build, entry, recipe = self.build, self.entry, self.chosen.recipe
        fits.check_training(build, self.name, recipe)
        if entry.base:
            fits.check_base(build, self.name, type(chosen_recipe(build, entry.base).recipe))
        settings = {"version": recipe.version, **self.chosen.table}
        if isinstance(settings.get("objective"), str):
            settings["objective"] = portable(settings["objective"])
        for key in PLACES:
            if (place := str(settings.get(key, ""))) and (path := Path(place)).exists():
                settings[key] = f"{path.name}@sha256:{files_hash(path, self.root)}"
                self.files[path] = seen(files_in(path), self.root)
        return {**settings, "dataset_config": entry.config} if entry.config else settings

    def other_code(self) -> list[str]:
        """Which of data and recipe have changed their code since the model was trained."""
        if not is_complete(self.folder):
            return []
        made = self.manifest()
        now = {
            "data": (made.get("settings", {}).get("dataset_revision"), self.upstream[0].hash),
            "recipe": (made.get("code"), code_hash(type(self.chosen.recipe).__module__)),
        }
        return [what for what, (then, today) in now.items() if then != today]

    def produce(self) -> None:
        dataset, *base = [stage.folder for stage in self.upstream]
        start = base[0] if base else None
        train(self.build, self.name, dataset, start, self.folder, self.chosen)
        try:
            for place, files in self.files.items():
                check_unchanged(files, files_in(place))
        except DiscorporaError:
            set_aside(self.folder)
            raise


class Evaluate(ModelStage):
    """Evaluate a model: on the held-out split of its dataset, or as `[evaluations.ON]` says.

    Luigi batches evaluations of one model that are ready together into one task, whose `on` lists
    their names: they share a process, which loads the libraries once.
    """

    stage = "evaluation"
    version = 6
    also_reads = ("division",)  # it tells the rows that the model has seen
    on = luigi.Parameter(
        default="", batch_method=",".join, description="an [evaluations.NAME] table's name"
    )

    @cached_property
    def parts(self) -> list[Evaluate]:
        """The single evaluations of a batch; empty for a single evaluation."""
        names = self.on.split(",") if "," in self.on else []
        return [self.clone(on=name) for name in names]

    def complete(self) -> bool:
        return all(is_complete(part.folder) for part in self.parts or [self])

    @property
    def key(self) -> str:
        return f"{self.on}/{self.name}" if self.on else self.name

    @cached_property
    def judged(self) -> Evaluation:
        """The `[evaluations.ON]` table, or one made of the model's own `suite` and `dataset`."""
        if self.on:
            return self.build.evaluation(self.on)
        entry = self.entry
        dataset = f"{entry.dataset}@{entry.config}" if entry.config else entry.dataset
        return Evaluation(
            suite=entry.suite, models=(self.name,), dataset=dataset, limit=entry.limit
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """They lead to the table of the build file that names its suite."""
        return ("evaluations", self.on) if self.on else ("models", self.name)

    def judged_on(self) -> list[Dataset]:
        return [Dataset(config=self.config, name=name) for name in self.judged.datasets]

    def learned_from(self) -> list[tuple[Dataset, str]]:
        """The datasets of the model and of all its bases, each with its configuration."""
        models = self.build.with_bases(self.name)
        return [(Dataset(config=self.config, name=m.dataset), m.config) for m in models]

    def requires(self) -> list[StageTask]:
        if self.parts:
            return list(dict.fromkeys(task for part in self.parts for task in part.upstream))
        train = Train(config=self.config, name=self.name)
        # Its training data are read again, and Luigi does not check behind a complete task.
        learned = [task for task, _ in self.learned_from()] if self.judged.datasets else []
        return list(dict.fromkeys([train, *self.judged_on(), *learned]))

    def settings(self) -> dict[str, Any]:
        if self.parts:
            return {}
        build, judged, keys = self.build, self.judged, self.keys
        suite = chosen_suite(build, judged, *keys)
        models, data = ("models", "dataset") if self.on else ("suite", "suite")
        recipe = type(chosen_recipe(build, self.name).recipe)
        fits.check_model(build, suite, self.name, recipe, (*keys, models))
        fits.check_data(build, suite, judged, (*keys, data))
        counts = {"suite", "dataset", "limit", "settings"}
        return {"version": suite.version, **judged.model_dump(include=counts)}

    def sources(self) -> list[SourceRecord]:
        if self.parts or not self.judged.data:
            return []
        spec = self.build.place(self.judged.data)
        return [SourceRecord(f"{self.on}-data", spec, get=self.judged.get)]

    def data(self, shelf: Path) -> str:
        """The folder, file or Hub id that the suite reads, with `@CONFIG`.

        Several datasets get links by name in the new folder `shelf`.
        """
        if self.judged.data:
            return split_spec(self.own_sources[0].spec)[1]
        folders = [stage.folder for stage in self.judged_on()]
        if isinstance(self.judged.dataset, str):
            _, at, config = self.judged.dataset.partition("@")
            return f"{folders[0]}{at}{config}"
        shelf.mkdir()
        for name, folder in zip(self.judged.datasets, folders, strict=True):
            (shelf / name).symlink_to(folder, target_is_directory=True)
        return str(shelf)

    def run(self) -> None:
        """Evaluate; a failed evaluation affects neither the model nor other evaluations."""
        stop_with_build()
        waiting = [part for part in self.parts or [self] if not is_complete(part.folder)]
        for part in waiting:
            log.info("%s", part.title)
            check_reads(part)
        meter, errors = usage.Meter(), dict[str, DiscorporaError]()
        self.root.mkdir(parents=True, exist_ok=True)
        with console.explained(self.root), tempfile.TemporaryDirectory(dir=self.root) as place:
            jobs = []
            for number, part in enumerate(waiting):
                folder = Path(place) / str(number)
                folder.mkdir()
                data = part.data(folder.with_suffix(".data"))
                jobs.append(Judged(part.judged, part.keys, data, folder))
            model = Train(config=self.config, name=self.name).folder
            results = evaluate(jobs, self.name, model, self.build)
            numbers = meter.read()
            for part, job, counts in zip(waiting, jobs, results, strict=True):
                if isinstance(counts, DiscorporaError):
                    errors[part.title] = counts
                    continue
                with staged(part.folder) as partial, reading(part, partial):
                    shutil.copytree(job.folder, partial, dirs_exist_ok=True)
                    about = {**part.record().to_dict(), "counts": {**counts, **part.seen()}}
                    write_json(partial / MANIFEST, about)
                write_json(part.run_file, {**numbers, "evaluations": len(waiting)})
            if made := [part.title for part in waiting if part.title not in errors]:
                log.info("%s: %.1f s", ", ".join(made), numbers["seconds"])
        if errors:
            first, *others = errors
            for title in others:  # Luigi shows one
                log.error("%s: error: %s", title, errors[title])
            raise errors[first]

    def seen(self) -> dict[str, int]:
        """The number of test rows, and of those from documents that the model was trained on."""
        from corpora.splits.division import Division
        from corpora.splits.seen import rows_seen

        tasks = self.judged_on()
        if all(task.direct for task in tasks):
            return {}
        configs = [config for _, config in self.judged.configurations]
        on = [(task.folder, config) for task, config in zip(tasks, configs, strict=True)]
        trained = [(task.folder, config) for task, config in self.learned_from()]
        return rows_seen(trained, on, Division.read(Divide(config=self.config).folder))
