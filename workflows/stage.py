"""`StageTask`, the base of all stages: hash, folder, record, and a run that is all or nothing.

A stage is a Luigi task with a `stage` name, a `version`, `settings()`, `requires()` and
`work(folder)`, which makes one call into a room. Everything else is here.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import luigi

from corpora.code import code_hash
from corpora.errors import DiscorporaError
from corpora.processes import stop_with_build
from corpora.store.atomic import (
    MANIFEST,
    AlreadyMade,
    cleared,
    is_complete,
    locked,
    read_json,
    staged,
    write_json,
)
from corpora.store.damage import damages
from corpora.store.folder import Stage
from workflows import console, engines, usage
from workflows.config import DATA_VARIABLE, load_build
from workflows.report.stages import Made, error_file
from workflows.settings import discorpora, options
from workflows.sources import SourceRecord

log = logging.getLogger("discorpora")

FORMAT = 2
"""Raised when the files of all stages change, but no row that a model learns from."""
INPUTS = ".inputs.json"
"""The file in an unfinished folder that records the states of its sources at the start."""
EXTRACTION = {
    "mode": "mode",
    "subjects": "subjects",
    "minimum confidence": "min_confidence",
    "pattern table": "patterns",
}
"""The names that a dataset's manifest gives to some settings of the stage `pairs`."""


class StageTask(luigi.Task):
    """One stage of a build (over one source, or for one dataset or model).

    The constructor computes the hash from `settings()`, `requires()`, `sources()` and `code`. So
    all names and settings are checked before anything runs.

    Luigi calls `run` when the tasks of `requires` are complete. It calls `produce`, which calls
    `work` (or, on each worker of an engine, `part`) to fill a partial folder, and renames that.
    """

    config = luigi.Parameter(default="", description="a build file: its path or a shipped name")

    stage: ClassVar[str]
    version: ClassVar[int] = 1
    shared: ClassVar[bool] = False
    """Whether workers of the build's engine can divide its work: they call `part`."""
    by_code: ClassVar[bool] = True
    """Whether the hash, and so the folder, depends on the code of this stage and those upstream."""
    hands_on: ClassVar[bool] = True
    """Whether stages downstream contain texts of its sources, so that licences apply there."""
    also_reads: ClassVar[tuple[str, ...]] = ()
    """The names of stages further upstream whose files it reads too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Read the build file, construct all stages upstream, and compute this stage's hash."""
        super().__init__(*args, **kwargs)
        run = discorpora()
        console.configure(debug=run.debug)
        self.root = Path(run.output).absolute()
        self.build = load_build(self.config or run.config)
        # The tasks that it requires are constructed here, each with its hash, and so on upstream.
        required = luigi.task.flatten(self.requires())
        self.upstream = [task for task in required if isinstance(task, StageTask)]
        ancestors = [ancestor for stage in self.upstream for ancestor in stage.lineage]
        self.lineage: list[StageTask] = list(dict.fromkeys([*ancestors, self]))
        """All stages upstream and this one, each once, upstream first."""
        self.chosen_settings = self.settings()
        self.own_sources = self.sources()
        for source in self.own_sources:
            source.find_files(self.root)
        text_stages = [stage for stage in self.upstream if stage.hands_on]
        inherited = [source for stage in text_stages for source in stage.all_sources]
        by_name = {source.name: source for source in (*self.own_sources, *inherited)}
        self.all_sources: list[SourceRecord] = [by_name[name] for name in sorted(by_name)]
        """The sources of this stage and of its upstream stages, each once, sorted by name."""
        self.identity: str = digest_of(
            {
                "stage": self.stage,
                "key": self.key,
                "version": self.version,
                "settings": self.chosen_settings,
                "upstream": sorted(stage.identity for stage in self.upstream),
                "sources": [[source.name, source.fingerprint] for source in self.own_sources],
            }
        )
        """The hash of settings, version, sources and upstream identities, but not of code."""
        self.hash = self.identity
        """The hash of the identity and, if `by_code`, of the code of all stages up to this one."""
        if self.by_code:
            code = {module: code_hash(module) for module in self.code}
            hashes = sorted(stage.hash for stage in self.upstream)
            parts = {"identity": self.identity, "upstream": hashes, "code": code, "format": FORMAT}
            if facts := self.card_facts():
                parts["said"] = facts
            self.hash = digest_of(parts)

    # What a stage declares

    @property
    def key(self) -> str:
        """The name of the source, dataset or model that the stage is over."""
        return str(getattr(self, "source", getattr(self, "name", "")))

    def settings(self) -> dict[str, Any]:
        """The values that determine the output, besides the upstream stages and the sources."""
        return {}

    def sources(self) -> list[SourceRecord]:
        """The sources that the stage reads directly, not through a stage upstream."""
        return []

    @property
    def code(self) -> Sequence[str]:
        """The modules whose code makes the output; their hash is part of the stage's hash."""
        return ()

    def card_facts(self) -> dict[str, Any]:
        """Facts that only its card shows: a change makes a new folder, but no new model."""
        return {}

    @property
    def loads(self) -> Sequence[str]:
        """The libraries that its work imports and that take long to load."""
        return ()

    def work(self, folder: Path) -> dict[str, Any]:
        """Make the stage's output in `folder`; return its counts for the manifest."""
        return self.part(folder, 0, 1)

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        """Make the shards of worker `rank` out of `of` workers; `work` then counts them."""
        raise NotImplementedError

    def share(self, folder: Path) -> Share:
        """Return the work for the workers of an engine, which make shards in `folder`."""
        return Share(
            kind=type(self),
            parameters=self.to_str_params(),
            config=self.build.path,
            output=str(self.root),
            folder=str(folder.absolute()),
            data=self.build.data,
            place=str(Path.cwd()),
        )

    # What follows from it

    def deps(self) -> list[luigi.Task]:
        """Return the tasks that Luigi runs before this one.

        Luigi calls it in the process that it later forks for each task, so the stage's libraries
        are imported here, once for all tasks.
        """
        for name in self.loads:
            import_module(name)
        return list(super().deps())

    @property
    def folder(self) -> Path:
        """`OUTPUT/stages/STAGE[/KEY]/HASH`."""
        return self.root / "stages" / self.stage / self.key / self.hash

    @property
    def run_file(self) -> Path:
        return self.folder.with_suffix(".run.json")

    @property
    def reads(self) -> list[StageTask]:
        """The stages whose files it reads: they are checked before it runs."""
        further = (task for task in self.lineage[:-1] if task.stage in self.also_reads)
        return list(dict.fromkeys([*self.upstream, *further]))

    @property
    def title(self) -> str:
        return f"{self.stage} {self.key}".strip()

    def complete(self) -> bool:
        """Tell whether the folder exists with its manifest; it appears by one rename."""
        return is_complete(self.folder)

    def manifest(self) -> dict[str, Any]:
        return read_json(self.folder / MANIFEST)

    def stages(self) -> list[Made]:
        """The stage and all upstream, upstream first, as the report reads them."""
        return [Made(task.stage, task.key, task.folder) for task in self.lineage]

    def record(self) -> Stage:
        """Return the entry of the stage in its manifest, with a `command` that runs it again.

        The licences of a source are those of its documents, if that stage is finished.
        """
        documents = {task.key: task.folder for task in self.lineage if task.stage == "documents"}
        pair_settings = [task.chosen_settings for task in self.upstream if task.stage == "pairs"]
        extraction = {}
        if pair_settings:
            extraction = {name: pair_settings[0][key] for name, key in EXTRACTION.items()}
        parameters = self.to_str_params(only_significant=True)
        parameters.pop("config")
        options = "".join(f" --{key} {value}" for key, value in parameters.items() if value)
        module = "workflows" if self.__module__.startswith("workflows.") else self.__module__
        task = f"{self.task_family} --config {self.build.name}.toml{options}"
        return Stage(
            name=f"{self.stage}/{self.key}".rstrip("/"),
            version=self.version,
            hash=self.hash,
            settings=self.chosen_settings,
            upstream={task.title: task.hash for task in self.upstream},
            sources=[source.describe(documents.get(source.name)) for source in self.all_sources],
            parser=self.build.parse.parser,
            extraction=extraction,
            command=f"luigi --module {module} {task}",
        )

    # Running

    def run(self) -> None:
        """Make the stage's folder, and record time, memory and host in a file beside it."""
        stop_with_build()
        if is_complete(self.folder):
            return
        stages = _build_stages or [self]
        error_file(self.folder).unlink(missing_ok=True)
        number = 1 + sum(is_complete(stage.folder) for stage in stages if stage is not self)
        log.info("stage %d of %d: %s", number, len(stages), self.title)
        meter = usage.Meter()
        check_reads(self)
        try:
            with console.explained(self.folder):
                self.produce()
        except AlreadyMade:
            if not is_complete(self.folder):
                raise
            log.info("%s: another process has made it in the meantime", self.title)
            return
        cost = meter.read()
        write_json(self.run_file, cost)
        log.info("%s: %.1f s, %.0f MiB", self.title, cost["seconds"], cost["peak_memory_mib"])

    def produce(self) -> None:
        """Make the output in a partial folder, with the manifest, then rename it to `folder`."""
        with staged(self.folder) as partial, reading(self, partial):
            if self.shared and self.build.engine.kind != "here":
                engines.share_out(self, partial)
            counts = self.work(partial)
            if not (partial / MANIFEST).exists():
                write_json(partial / MANIFEST, {**self.record().to_dict(), "counts": counts})

    def on_failure(self, exception: BaseException) -> str:
        """Remember the failure for the end of the log, since Luigi goes on with other stages."""
        console.remember_failure(self.title, exception)
        self.note_error(exception)
        return str(super().on_failure(exception))

    def note_error(self, error: BaseException) -> None:
        """Write the error to a file beside its folder, for tables that lack the stage's numbers."""
        with suppress(OSError):
            error_file(self.folder).parent.mkdir(parents=True, exist_ok=True)
            error_file(self.folder).write_text(f"{error or repr(error)}\n", encoding="utf-8")


@dataclass(frozen=True)
class Share:
    """A stage that a worker of an engine can construct again: its class (`kind`) and its
    parameters.

    `config` is the build file, `output` the output's folder, `folder` the partial folder of the
    stage, and `data` the value of `DISCORPORA_DATA`.
    """

    kind: type[StageTask]
    parameters: dict[str, str]
    config: str
    output: str
    folder: str
    data: str = ""
    place: str = "."
    """The current folder of the build, where relative paths of a build file start."""

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> None:
        """Make the shards of worker `rank`."""
        os.chdir(self.place)
        if self.data:
            os.environ[DATA_VARIABLE] = self.data
        # A fork of the build has the task already, with its hash.
        with options(self.config, self.output, fresh=False):
            task = self.kind.from_str_params(self.parameters)
            task.part(Path(self.folder), rank, world_size)


_build_stages: list[StageTask] = []
"""All stages of the current build."""


@StageTask.event_handler(luigi.Event.DEPENDENCY_DISCOVERED)
def _remember_stages(task: StageTask, _: StageTask) -> None:
    """Store the stages of a build in `_build_stages`; Luigi discovers its last stage first."""
    if task not in _build_stages:
        _build_stages[:] = task.lineage


@contextmanager
def reading(task: StageTask, folder: Path) -> Iterator[None]:
    """Check, before and after the context makes a stage in `folder`, that no source has changed.

    First empties the folder if an interrupted run has read other files, or earlier states of them.
    Raises `InputError` for a file that has changed since it was hashed, and empties the folder.
    """
    # Clear what an interrupted run has made from other states of the files.
    sources, inputs = task.own_sources, folder / INPUTS
    files = {path: file for source in sources for path, file in source.files.items()}
    states = {str(path): [file.sha256, *(file.state or ())] for path, file in files.items()}
    earlier_states = read_json(inputs) if files and inputs.is_file() else {}
    if files and earlier_states != states:
        cleared(folder)
        write_json(inputs, states)
    for source in sources:
        source.check()
    # The stage runs here.
    yield
    try:
        for source in sources:
            source.check()
    except DiscorporaError:
        cleared(folder)
        raise
    inputs.unlink(missing_ok=True)


_began = [time.time()]
"""The time at which the current build began."""
_checked_folders: set[Path] = set()
"""The folders whose checksums the build has checked; a fork of the process knows them too."""


def begin_checks() -> None:
    """Begin a build: forget which folders an earlier build of this process has checked."""
    _began[0] = time.time()
    _checked_folders.clear()


def check_reads(task: StageTask) -> None:
    """Check the stages that `task` reads; set damaged ones aside, and raise `DiscorporaError`."""
    if messages := [message for stage in task.reads if (message := set_aside_damaged(stage))]:
        hint = "run it again, to make that again"
        raise DiscorporaError(messages[0], where=task.title, hint=hint)


def set_aside_damaged(task: StageTask, *, sums: bool = True) -> str:
    """Check the folder of a stage; if it is damaged, set it aside and return a message, else "".

    Sizes are checked every time; checksums once in a build, and not in a folder that it has made.
    """
    folder = task.folder
    if not folder.is_dir() or not any(folder.iterdir()):
        return ""
    with suppress(OSError):
        if (folder / MANIFEST).stat().st_mtime >= _began[0]:
            _checked_folders.add(folder)
    damage = next(damages(folder, sums=sums and folder not in _checked_folders), None)
    if damage is None:
        if sums:
            _checked_folders.add(folder)
        return ""
    message = f"{task.title} is damaged: {damage}; the folder is set aside as "
    message += set_aside(folder).name
    log.warning("%s", message)
    return message


def set_aside(folder: Path) -> Path:
    """Rename a stage's folder, so that the stage is made again; returns the new path."""
    with locked(folder.with_name(f".{folder.name}.lock"), "another process makes this folder"):
        names = (f"{folder.name}.damaged{number or ''}" for number in count())
        new_path = next(path for name in names if not (path := folder.with_name(name)).exists())
        return folder.replace(new_path)


def digest_of(values: Mapping[str, Any]) -> str:
    """Return a hash of 16 hexadecimal digits; a value that JSON lacks counts as its text."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
