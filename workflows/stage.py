"""What every stage shares: its hash, its folder, its record, and a run that is all or nothing.

A stage is a Luigi task with a `stage` name, a `version`, `settings()`, `requires()` and
`work(folder)`, which makes one call into a room. Everything else is here.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import luigi

from corpora.code import code_hash
from corpora.processes import stop_with_build
from corpora.store.atomic import MANIFEST, AlreadyMade, is_complete, staged, write_json
from corpora.store.folder import Stage
from workflows import console, usage
from workflows.config import load_build
from workflows.sources import SourceRecord, fingerprint
from workflows.tables import BuildFile

log = logging.getLogger("discorpora")


class discorpora(luigi.Config):
    """The section `[discorpora]` of `luigi.cfg`."""

    config = luigi.Parameter(default="sample", description="the default build file")
    output = luigi.Parameter(default="build", description="where everything is built")
    debug = luigi.BoolParameter(default=False, description="show tracebacks")


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


class FolderTarget(luigi.Target):
    """A folder that is there when its manifest is: it appears by one rename."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        return is_complete(self.folder)

    def __str__(self) -> str:
        return str(self.folder)


class StageTask(luigi.Task):
    """One stage of a build (over one source, or for one dataset or model)."""

    config = luigi.Parameter(default="", description="a build file: its path or a shipped name")

    stage: ClassVar[str]
    version: ClassVar[int] = 1
    shared: ClassVar[bool] = False
    """Whether the build's engine can share it out: it then has `part`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        console.configure(debug=discorpora().debug)
        _ = self.hash  # every name and setting is checked here, before anything runs

    @cached_property
    def build(self) -> BuildFile:
        return load_build(self.config or discorpora().config)

    # What a stage says of itself

    @property
    def key(self) -> str:
        """What the stage is over: a source's, dataset's or model's name."""
        return ""

    def settings(self) -> dict[str, Any]:
        """Everything that changes the stage's output, but for its upstream and sources."""
        return {}

    def sources(self) -> list[SourceRecord]:
        """The files that the stage reads itself."""
        return []

    def code(self) -> list[str]:
        """The modules whose code makes the output: their hash is part of the stage's."""
        return []

    def work(self, folder: Path) -> dict[str, Any]:
        """Make the stage's output in `folder`; return its counts for the manifest."""
        raise NotImplementedError

    def part(self, folder: Path, rank: int, of: int) -> dict[str, Any]:
        """Make the shards of worker `rank` of `of`; `work` then finds them there."""
        raise NotImplementedError

    # What follows from it

    def upstream(self) -> list[StageTask]:
        return [task for task in luigi.task.flatten(self.requires()) if isinstance(task, StageTask)]

    @cached_property
    def identity(self) -> str:
        """What the stage is made of but for code: settings, version, sources, what is upstream."""
        upstream = sorted(task.identity for task in self.upstream())  # their errors come first
        return _digest(
            {
                "stage": self.stage,
                "key": self.key,
                "version": self.version,
                "settings": self.settings(),
                "upstream": upstream,
                "sources": [[s.name, fingerprint(s, self.root)] for s in self.sources()],
            }
        )

    @cached_property
    def hash(self) -> str:
        """The identity, with the code that makes the output and everything upstream."""
        identity = self.identity  # it checks all names and settings
        upstream = sorted(task.hash for task in self.upstream())
        code = {module: code_hash(module) for module in self.code()}
        return _digest({"identity": identity, "upstream": upstream, "code": code})

    @property
    def root(self) -> Path:
        return Path(discorpora().output).absolute()

    @property
    def folder(self) -> Path:
        """`OUTPUT/stages/STAGE[/KEY]/HASH`."""
        return self.root.joinpath("stages", self.stage, *filter(None, [self.key]), self.hash)

    @property
    def run_file(self) -> Path:
        return self.folder.with_suffix(".run.json")

    @property
    def title(self) -> str:
        return f"{self.stage} {self.key}".strip()

    def output(self) -> FolderTarget:
        return FolderTarget(self.folder)

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))

    def all_sources(self) -> list[SourceRecord]:
        """The sources of the stage and of everything upstream, each once, by name."""
        found: dict[str, SourceRecord] = {}
        for task in (self, *self.upstream()):
            own = task.sources() if task is self else task.all_sources()
            found.update({source.name: source for source in own})
        return [found[name] for name in sorted(found)]

    def record(self) -> Stage:
        """The stage as its manifest shows it."""
        return Stage(
            name=self.stage if not self.key else f"{self.stage}/{self.key}",
            version=self.version,
            hash=self.hash,
            settings=self.settings(),
            upstream={task.title: task.hash for task in self.upstream()},
            sources=[source.describe(self.root) for source in self.all_sources()],
            parser=self.build.parse.parser,
            command=self.command,
        )

    @property
    def command(self) -> str:
        """How to make the stage again, in a folder where the build file lies."""
        given = {key: value for key, value in self.to_str_params().items() if key != "config"}
        options = "".join(f" --{key} {value}" for key, value in given.items() if value)
        module = self.__module__
        module = "workflows" if module.startswith("workflows.") else module
        task = f"{self.task_family} --config {Path(self.build.path).name}{options}"
        return f"luigi --module {module} {task}"

    # Running

    def run(self) -> None:
        stop_with_build()
        if self.output().exists():
            return
        try:
            with self.measured():
                self.produce()
        except AlreadyMade:
            if not self.output().exists():
                raise
            log.info("%s: another build has made it meanwhile", self.title)

    def on_failure(self, exception: BaseException) -> str:
        """Luigi goes on with other stages: what failed is said once more at the end."""
        console.remember_failure(self.title, exception)
        return str(super().on_failure(exception))

    def produce(self) -> None:
        """Make the folder appear, whole, by one rename."""
        with staged(self.folder) as partial:
            if self.shared and self.build.engine.kind != "here":
                from workflows.engines import share_out

                share_out(self, partial)
            counts = self.work(partial)
            if not (partial / MANIFEST).exists():
                write_json(partial / MANIFEST, {**self.record().to_dict(), "counts": counts})

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Log the stage, and keep its time, memory and host beside the folder."""
        log.info("%s", self.title)
        meter = usage.Meter()
        with console.explained(self.folder):
            yield
        numbers = meter.read()
        write_json(self.run_file, numbers)
        log.info("%s: %.1f s, %.0f MiB", self.title, numbers["seconds"], numbers["peak_memory_mib"])
