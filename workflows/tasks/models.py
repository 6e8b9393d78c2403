"""The stages over a dataset: models, and their evaluations."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

import luigi

from corpora.declared import portable
from corpora.errors import DiscorporaError
from workflows import fits
from workflows.sources import SourceRecord, file_hash, files_hash
from workflows.stage import StageTask
from workflows.tables import Evaluation, Model
from workflows.tasks.datasets import Dataset, Divide
from workflows.training import Chosen, Judged, chosen_recipe, evaluate, train

PLACES = frozenset({"backbone", "vectors"})
"""Settings of recipes that name a file or folder, or a model of the Hub."""


class ModelStage(StageTask):
    name = luigi.Parameter(description="a [models.NAME] table's name")

    @property
    def key(self) -> str:
        return self.name

    @property
    def entry(self) -> Model:
        """The model's table, with `{data}` filled in."""
        entry = self.build.model(self.name)
        places = {
            key: self.build.place(value) if isinstance(value, str) else value
            for key, value in entry.settings.items()
        }
        return entry.model_copy(update={"settings": places})


class Train(ModelStage):
    """Train one model with its recipe, in a process of its own."""

    stage = "model"
    resources: ClassVar[dict[str, int]] = {"training": 1}

    def requires(self) -> list[StageTask]:
        """The dataset, and the model that this one starts from, if any."""
        stages: list[StageTask] = [Dataset(config=self.config, name=self.entry.dataset)]
        if base := self.entry.base:
            stages.append(Train(config=self.config, name=base))
        return stages

    def settings(self) -> dict[str, Any]:
        """The recipe's settings; a file or folder among them counts by its contents."""
        dataset = Dataset(config=self.config, name=self.entry.dataset)
        dataset.check_configuration(self.entry.config, f"models.{self.name}.config")
        made = self.chosen()
        fits.check_training(self.build, self.name, fits.Data.of(dataset), made.recipe)
        fits.check_base(self.build, self.name)
        chosen = dict(made.table)
        if isinstance(chosen.get("objective"), str):
            chosen["objective"] = portable(chosen["objective"])
        for key in PLACES & chosen.keys():
            chosen[key] = self._contents(str(chosen[key]))
        return {**chosen, "dataset_config": self.entry.config} if self.entry.config else chosen

    def chosen(self) -> Chosen:
        """The recipe with its settings; a model's own win over the build's."""
        build = self.build
        usual = {"seed": build.seed, "threads": build.threads}
        return chosen_recipe(self.entry, build.path, self.name, **usual)

    def _contents(self, value: str) -> str:
        path = Path(value)
        if not value or not path.exists():
            return value
        whole = files_hash(path, self.root) if path.is_dir() else file_hash(path, self.root)
        return f"{path.name}@sha256:{whole}"

    def produce(self) -> None:
        dataset, *base = [stage.folder for stage in self.requires()]
        start = base[0] if base else None
        train(self.entry, self.name, dataset, start, self.folder, self.chosen())


class Evaluate(ModelStage):
    """Evaluate a model: on the held-out split of its dataset, or as `[evaluations.ON]` says."""

    stage = "evaluation"
    version = 6
    on = luigi.Parameter(default="", description="an [evaluations.NAME] table's name")
    resources: ClassVar[dict[str, int]] = {"training": 1}

    @property
    def key(self) -> str:
        return f"{self.on}/{self.name}" if self.on else self.name

    @property
    def table(self) -> str:
        """The table of the build file that asks for it."""
        return f"evaluations.{self.on}" if self.on else f"models.{self.name}"

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
        train = Train(config=self.config, name=self.name)
        # What it learned from is read again, and Luigi does not look behind a complete task.
        learned = [task for task, _ in self.learned_from()] if self.plan.datasets else []
        return [train, *dict.fromkeys([*self.judged_on(), *learned])]

    def settings(self) -> dict[str, Any]:
        plan, where = self.plan, f"{self.build.path}: {self.table}"
        with self.build.at(f"{self.table}.suite"):
            suite = self.build.suite(plan.suite)
        for dataset, (_, config) in zip(self.judged_on(), plan.configurations, strict=True):
            dataset.check_configuration(config, f"{self.table}.dataset")
        models, data = ("models", "dataset") if self.on else ("suite", "suite")
        fits.check_model(self.build, plan.suite, self.name, f"{where}.{models}")
        listed = not isinstance(plan.dataset, str)
        fits.check_data(suite, self.judged(), f"{where}.{data}", listed=listed)
        return self.plan.model_dump(include={"suite", "dataset", "limit", "settings"})

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

    def work(self, folder: Path) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as place:
            data = self.data(Path(place) / "data")
            model = self.requires()[0].folder
            [counts] = evaluate([Judged(self.plan, data, folder)], self.name, model, self.build)
        if isinstance(counts, DiscorporaError):
            raise counts
        return {**counts, **self.seen()}

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

    def judged(self) -> list[tuple[fits.Data, str]]:
        """The datasets that it is judged on, as the build file describes them."""
        configs = (config for _, config in self.plan.configurations)
        return [(fits.Data.of(t), c) for t, c in zip(self.judged_on(), configs, strict=True)]

    def learned_from(self) -> list[tuple[Dataset, str]]:
        """The datasets of the model and of those that it starts from, with configurations."""
        found, entry = [], self.entry
        while True:
            found.append((Dataset(config=self.config, name=entry.dataset), entry.config))
            if not entry.base:
                return found
            entry = self.build.model(entry.base)
