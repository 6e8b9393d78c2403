"""The stages over a dataset: models, and their evaluations."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import luigi
from pydantic import BaseModel

from corpora.code import code_hash
from corpora.errors import DiscorporaError
from corpora.outside import read_record
from corpora.processes import stop_with_build
from corpora.readers import split_spec
from corpora.store.atomic import MANIFEST, is_complete, sha256, staged, write_json
from corpora.store.copies import COPIED
from corpora.store.damage import damages
from workflows import console, devices, fits, reuse, usage
from workflows.report.stages import error_file
from workflows.settings import discorpora
from workflows.sources import (
    HashedFile,
    SourceRecord,
    check_unchanged,
    files_hash,
    files_in,
    hashed_files,
)
from workflows.stage import StageTask, check_reads, digest_of, reading, set_aside
from workflows.tables import Evaluation, Model
from workflows.tasks.datasets import Dataset, Divide
from workflows.training import (
    EvaluationJob,
    RecipeChoice,
    chosen_recipe,
    chosen_suite,
    evaluate,
    train,
    with_folders,
)
from zoo.declared import Mark
from zoo.training.data import facts_of
from zoo.training.job import Finished, data_of, identity_of, planned

log = logging.getLogger("discorpora")

TEXTS = ("README.md", "results.json")
"""The files of a model that no evaluation depends on: they change with its dataset's hash."""


class Evaluated(BaseModel):
    """The manifest of a finished evaluation.

    `settings` and `version` are the suite's, `counts` has numbers of rows, `inputs` is the hash of
    all inputs but datasets, `data` has facts of the datasets; `made_by` names another stage with
    the same results.
    """

    settings: dict[str, Any]
    version: int
    counts: dict[str, Any]
    inputs: str
    data: list[dict[str, Any]]
    made_by: str = ""


class ModelStage(StageTask):
    """A stage over a model of the build file: its training, or one of its evaluations."""

    name = luigi.Parameter(description="a [models.NAME] table's name")
    resources = {"training": 1}  # a GPU; without a GPU one training runs at a time

    @property
    def entry(self) -> Model:
        return self.build.model(self.name)

    @property
    def upstream_is_built(self) -> bool:
        return all(is_complete(stage.folder) for stage in self.upstream)


class Train(ModelStage):
    """Train one model with its recipe, in a separate process.

    The model's hash does not depend on the code of its dataset and recipe, so that a refactoring
    does not train it again. Its manifest records their hashes, and `discorpora plan` names changes.
    """

    stage = "model"
    by_code = False

    def process_resources(self) -> dict[str, int]:
        """The number of GPUs that it uses, for Luigi's scheduler."""
        return {"training": devices.process_count(self.choice.recipe, self.entry.devices)}

    def requires(self) -> list[StageTask]:
        """The dataset, and the model that this one starts from, if any."""
        stages: list[StageTask] = []
        if dataset := self.entry.dataset:
            stages.append(Dataset(config=self.config, name=dataset))
        if base := self.entry.base:
            stages.append(Train(config=self.config, name=base))
        return stages

    @cached_property
    def files(self) -> dict[Path, dict[Path, HashedFile]]:
        """The files of each backbone or vectors path, as they were when `settings` hashed them."""
        return {}

    @cached_property
    def choice(self) -> RecipeChoice:
        """The recipe with the settings that this model uses."""
        return chosen_recipe(self.build, self.name)

    def settings(self) -> dict[str, Any]:
        """The recipe's settings; a file or folder is replaced by the hash of its contents."""
        build, entry, recipe = self.build, self.entry, self.choice.recipe
        fits.check_training(build, self.name, recipe)
        if entry.base:
            fits.check_base(build, self.name, type(chosen_recipe(build, entry.base).recipe))
        settings = {"version": recipe.version, **recipe.counted(self.choice.table)}
        for key in recipe.marked(Mark.PLACE):
            value = str(settings.get(key, ""))
            if value and Path(value).exists():  # else it is the id of a model on the Hub
                path = Path(value)
                settings[key] = f"{path.name}@sha256:{files_hash(path, self.root)}"
                self.files[path] = hashed_files(files_in(path), self.root)
        return {**settings, "dataset_config": entry.config} if entry.config else settings

    def changed_code(self) -> list[str]:
        """Return which of "data" and "recipe" have another hash than when the model was trained."""
        if not is_complete(self.folder):
            return []
        manifest = self.manifest()
        hashes = {"recipe": (manifest.get("code"), self.recipe_code())}
        if self.entry.dataset:
            revision = manifest.get("settings", {}).get("dataset_revision")
            hashes = {"data": (revision, self.upstream[0].hash), **hashes}
        return [part for part, (recorded, current) in hashes.items() if recorded != current]

    def recipe_code(self) -> str:
        return code_hash(type(self.choice.recipe).__module__)

    @cached_property
    def reusable(self) -> bool:
        """Whether another model can be reused if the rows, and the base's weights, are equal."""
        return any(True for _ in self.equal_models())

    @property
    def places(self) -> tuple[Path | None, Path | None, Path]:
        """The folders of the dataset (or None), of the base model (or None), and of this model."""
        folders = {stage.stage: stage.folder for stage in self.upstream}
        return folders.get("dataset"), folders.get("model"), self.folder

    def equal_models(self) -> Iterator[tuple[Path, Finished]]:
        """Yield folder and manifest of each finished model with the settings of this one.

        If the stages upstream are built, its rows must be the same, too.
        """
        recipe, preset, built = self.choice.recipe, self.choice.preset, self.upstream_is_built
        identity = {"recipe": preset.name, **recipe.identity()}
        ignored = {"dataset_revision", *recipe.marked(Mark.PLACE)}
        folders = (self.root / "stages" / self.stage).glob("*/*")
        candidates = [
            (folder, model)
            for folder, model in reuse.finished(Finished, folders)
            if model.data
            and model.version == recipe.version
            and reuse.agree(model.settings, identity, identity.keys() - ignored)
        ]
        if not candidates:  # before the files of a backbone are read
            return
        data = list[dict[str, Any]]()
        if built:
            recipe = with_folders(recipe, *self.places)
            data = data_of(recipe)
        identity, ignored = identity_of(preset, recipe), {"dataset_revision"}
        if self.entry.base:
            ignored |= {"backbone"} if built else {"backbone", "backbone_files"}
        required_code = self.recipe_code() if discorpora().retrain else ""
        for folder, model in candidates:
            keys = {*identity, *model.settings} - ignored
            same_settings = reuse.agree(model.settings, identity, keys)
            same_code = required_code in ("", model.code)
            if same_settings and same_code and (not built or reuse.same_rows(model.data, data)):
                yield folder, model

    def produce(self) -> None:
        """Take over an equal model, or train; raise if a file that was hashed has changed."""
        for folder, model in self.equal_models():
            if damage := next(damages(folder), None):
                log.warning("%s: not reused: %s", self.title, damage)
                continue
            self.take_over(folder, model)
            break
        else:
            train(self.build, self.name, *self.places, self.choice)
        try:
            for place, files in self.files.items():
                check_unchanged(files, files_in(place))
        except DiscorporaError:
            set_aside(self.folder)
            raise

    def take_over(self, folder: Path, model: Finished) -> None:
        """Make this stage's folder from the equal `model` in `folder`, without training.

        Texts get the hashes of this stage's data; the manifest names the stage that was trained.
        """
        run = planned(self.choice.preset, with_folders(self.choice.recipe, *self.places))
        hashes = reuse.revisions(model.data, run.data)
        if self.entry.base:
            hashes[model.settings["backbone"]] = run.identity["backbone"]
        trained_by = model.trained_by or folder.relative_to(self.root / "stages").as_posix()
        with staged(self.folder) as partial:
            reuse.take_over(folder, partial, hashes)
            sums = {
                name: sha256(partial / name) if Path(name).suffix in COPIED else checksum
                for name, checksum in model.files.items()
            }
            changes = {"settings": dict(run.identity), "data": run.data, "files": sums}
            finished = model.model_copy(update={**changes, "trained_by": trained_by})
            write_json(partial / MANIFEST, finished.model_dump(mode="json"))
        log.info("  its rows are those of %s: not trained again", trained_by)


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
    def plan(self) -> Evaluation:
        """The `[evaluations.ON]` table, or one made of the model's own `suite` and `dataset`."""
        if self.on:
            return self.build.evaluation(self.on)
        entry = self.entry
        dataset = f"{entry.dataset}@{entry.config}" if entry.config else entry.dataset
        return Evaluation(
            suite=entry.suite, models=(self.name,), dataset=dataset, limit=entry.limit
        )

    @property
    def table_keys(self) -> tuple[str, ...]:
        """The keys of the table of the build file that names its suite."""
        return ("evaluations", self.on) if self.on else ("models", self.name)

    def test_datasets(self) -> list[Dataset]:
        return [Dataset(config=self.config, name=name) for name in self.plan.datasets]

    def training_datasets(self) -> list[tuple[Dataset, str]]:
        """The datasets of the model and of all its bases, each with its configuration."""
        models = self.build.with_bases(self.name)
        return [
            (Dataset(config=self.config, name=model.dataset), model.config)
            for model in models
            if model.dataset
        ]

    def requires(self) -> list[StageTask]:
        """The stages of the model, of the datasets to evaluate on, and of its training datasets.

        A batch requires what its single evaluations (`parts`) require.
        """
        if self.parts:
            return list(dict.fromkeys(task for part in self.parts for task in part.upstream))
        train = Train(config=self.config, name=self.name)
        # `seen_counts` reads the model's training datasets. They are required here, because Luigi
        # does not look at what a complete task requires: not at the datasets of a built model.
        training = [task for task, _ in self.training_datasets()] if self.plan.datasets else []
        return list(dict.fromkeys([train, *self.test_datasets(), *training]))

    def settings(self) -> dict[str, Any]:
        """The suite's version and options; raises `ConfigError` if it does not fit the model."""
        if self.parts:
            return {}
        build, plan, keys = self.build, self.plan, self.table_keys
        suite = chosen_suite(build, plan, *keys)
        models_key, data_key = ("models", "dataset") if self.on else ("suite", "suite")
        recipe = type(chosen_recipe(build, self.name).recipe)
        fits.check_model(build, suite, self.name, recipe, (*keys, models_key))
        fits.check_data(build, suite, plan, (*keys, data_key))
        fields = {"suite", "dataset", "limit", "settings"}
        return {"version": suite.version, **plan.model_dump(include=fields)}

    def sources(self) -> list[SourceRecord]:
        """The data that the evaluation reads from outside the build."""
        if self.parts or not self.plan.data:
            return []
        spec = self.build.place(self.plan.data)
        return [SourceRecord(f"{self.on}-data", spec, get=self.plan.get)]

    def data_path(self, shelf: Path) -> str:
        """Return the folder (or `FOLDER@CONFIG`), file or Hub id that the suite reads.

        For several datasets, or files beside datasets, that is `shelf`, a new folder of links.
        """
        files = split_spec(self.own_sources[0].spec)[1] if self.plan.data else ""
        if files and not self.plan.datasets:
            return files
        folders = [stage.folder for stage in self.test_datasets()]
        if isinstance(self.plan.dataset, str):
            _, at, config = self.plan.dataset.partition("@")
            return f"{folders[0]}{at}{config}"
        shelf.mkdir()
        for name, folder in zip(self.plan.datasets, folders, strict=True):
            (shelf / name).symlink_to(folder, target_is_directory=True)
        if files:
            (shelf / self.own_sources[0].name).symlink_to(Path(files).resolve())
        return str(shelf)

    def inputs(self) -> tuple[str, list[dict[str, Any]]]:
        """Return a digest of all inputs but datasets, and facts of the datasets ([]: not known)."""
        # The model: its settings and weights; its data are among the facts of the datasets.
        train = Train(config=self.config, name=self.name)
        model = read_record(Finished, train.folder / MANIFEST)
        ignored = {"dataset_revision", "backbone"} if train.entry.base else {"dataset_revision"}
        settings = {key: model.settings[key] for key in model.settings.keys() - ignored}
        weights = {name: checksum for name, checksum in model.files.items() if name not in TEXTS}
        values = {
            "version": self.version,
            "settings": self.chosen_settings,
            "sources": [[source.name, source.fingerprint] for source in self.own_sources],
            "run": [self.name, self.build.seed, self.build.threads],
            "model": [settings, weights],
        }
        # The datasets to evaluate on
        data = [facts_of(str(task.folder)) for task in self.test_datasets()]
        for facts, task in zip(data, self.test_datasets(), strict=True):
            facts |= {"rejects": task.manifest().get("rejects", {})} if facts else {}
        is_known = all(data) and (model.data or not train.entry.dataset)
        return digest_of(values), [*data, *model.data] if is_known else []

    def equal_evaluations(self) -> Iterator[tuple[Path, Evaluated]]:
        """Yield folder and manifest of evaluations of equal settings, and inputs if built."""
        built, train = self.upstream_is_built, Train(config=self.config, name=self.name)
        if not (train.complete() or train.reusable):
            return
        inputs, data = self.inputs() if built else ("", [])
        facts = {"settings": self.chosen_settings, "version": self.version}
        for folder, other in reuse.finished(Evaluated, self.folder.parent.glob("*")):
            same_settings = other.data and reuse.agree(other.model_dump(), facts, facts)
            same_inputs = other.inputs == inputs and reuse.same_rows(other.data, data)
            if same_settings and (same_inputs or not built):
                yield folder, other

    @property
    def reusable(self) -> bool:
        """Whether another evaluation can be reused if the rows and weights are equal."""
        return any(True for _ in self.equal_evaluations())

    def take_over_equal(self) -> bool:
        """Make this stage's folder from an equal finished evaluation; False if there is none."""
        for folder, other in self.equal_evaluations():
            if damage := next(damages(folder), None):
                log.warning("%s: not reused: %s", self.title, damage)
                continue
            meter = usage.Meter()
            with staged(self.folder) as partial, reading(self, partial):
                reuse.take_over(folder, partial, reuse.revisions(other.data, self.inputs()[1]))
                stage = folder.relative_to(self.root / "stages").as_posix()
                self.conclude(partial, other.counts, other.made_by or stage)
            write_json(self.run_file, meter.read())
            log.info("  %s: rows and weights are as they were: not evaluated again", self.title)
            return True
        return False

    def conclude(self, partial: Path, counts: Mapping[str, Any], made_by: str = "") -> None:
        """Write the manifest; `made_by` names another stage whose results were taken over."""
        inputs, data = self.inputs()
        facts = {"counts": {**counts, **self.seen_counts()}, "inputs": inputs, "data": data}
        facts |= {"made_by": made_by} if made_by else {}
        write_json(partial / MANIFEST, {**self.record().to_dict(), **facts})

    def run(self) -> None:
        """Evaluate; a failed evaluation affects neither the model nor other evaluations."""
        stop_with_build()
        # The evaluations that are not complete, and equal none that is
        waiting = [part for part in self.parts or [self] if not is_complete(part.folder)]
        for part in waiting:
            log.info("%s", part.title)
            error_file(part.folder).unlink(missing_ok=True)
            check_reads(part)
        waiting = [part for part in waiting if not part.take_over_equal()]
        if not waiting:
            return
        # Evaluate them in one process, and store each result.
        meter, errors = usage.Meter(), dict[str, DiscorporaError]()
        self.root.mkdir(parents=True, exist_ok=True)
        with console.explained(self.root), tempfile.TemporaryDirectory(dir=self.root) as temporary:
            jobs = []
            for number, part in enumerate(waiting):
                folder = Path(temporary) / str(number)
                folder.mkdir()
                data = part.data_path(folder.with_suffix(".data"))
                jobs.append(EvaluationJob(part.plan, part.table_keys, data, folder))
            model = Train(config=self.config, name=self.name).folder
            results = evaluate(jobs, self.name, model, self.build)
            cost = meter.read()
            for part, job, counts in zip(waiting, jobs, results, strict=True):
                if isinstance(counts, DiscorporaError):
                    errors[part.title] = counts
                    part.note_error(counts)
                    continue
                with staged(part.folder) as partial, reading(part, partial):
                    shutil.copytree(job.folder, partial, dirs_exist_ok=True)
                    part.conclude(partial, counts)
                write_json(part.run_file, {**cost, "evaluations": len(waiting)})
            if titles := [part.title for part in waiting if part.title not in errors]:
                log.info("%s: %.1f s", ", ".join(titles), cost["seconds"])
        if errors:
            first, *others = errors
            for title in others:  # Luigi shows one
                log.error("%s: error: %s", title, errors[title])
            raise errors[first]

    def seen_counts(self) -> dict[str, int]:
        """Count the test rows, and those from documents that the model was trained on."""
        from corpora.splits.division import Division
        from corpora.splits.seen import rows_seen

        tasks = self.test_datasets()
        if all(task.direct for task in tasks):  # their documents are not in the division
            return {}
        configs = [config for _, config in self.plan.configurations]
        test = [(task.folder, config) for task, config in zip(tasks, configs, strict=True)]
        training = [(task.folder, config) for task, config in self.training_datasets()]
        return rows_seen(training, test, Division.read(Divide(config=self.config).folder))
