"""The stages of a build, from its tasks or from its folders, and a table of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from corpora.store.atomic import MANIFEST, is_complete, read_json
from workflows.results import results_at, stage_folder

PER_SOURCE = ("documents", "sentences", "parse", "pairs")
"""The stages that run once for each source."""
ORDER = (*PER_SOURCE, "validation", "division", "dataset", "model", "evaluation")
UNITS = {
    "documents": "documents",
    "division": "documents",
    "sentences": "sentences",
    "parse": "sentences",
    "pairs": "pairs",
    "validation": "gold relations",
    "dataset": "rows",
    "model": "training examples",
}
"""The unit in which the rows of a stage are counted; "examples" for other stages."""


@dataclass(frozen=True)
class StageRow:
    """A stage as a row in the table of a build; `rows` is a number of `unit`, `memory` in MiB,
    `size` in bytes on the disk.

    Numbers are None before the stage has run. A stage that is not done is not `needed` if all
    stages made from it are done.
    """

    stage: str
    key: str
    done: bool
    rows: int | None = None
    unit: str = ""
    rejects: int | None = None
    seconds: float | None = None
    memory: float | None = None
    needed: bool = True
    size: int | None = None


@dataclass(frozen=True)
class Made:
    """A stage of a build with the folder of its output, which may not exist yet."""

    stage: str
    key: str
    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return dict(read_json(self.folder / MANIFEST))

    @cached_property
    def results(self) -> dict[str, Any]:
        """The results of a model or an evaluation."""
        return dict(read_json(self.folder / "results.json"))

    @cached_property
    def run(self) -> dict[str, Any]:
        """Seconds, memory and machine of its run, from the file beside the folder."""
        path = self.folder.with_suffix(".run.json")
        return dict(read_json(path)) if path.is_file() else {}

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The sources of its documents; empty for a model, whose manifest does not name them."""
        return list(self.manifest.get("sources", ()))

    @property
    def upstream(self) -> dict[str, str]:
        """The titles of the stages that its output was made from, each with its hash."""
        return dict(self.manifest.get("stage", self.manifest).get("upstream", {}))

    @classmethod
    def at(cls, folder: Path) -> Made | None:
        """Return the stage of a finished folder `stages/STAGE[/KEY]/HASH`; else None."""
        parts = folder.parts
        if "stages" not in parts or not is_complete(folder):
            return None
        start = len(parts) - parts[::-1].index("stages")  # after the last folder `stages`
        stage, *key = parts[start:-1] or [""]
        return cls(stage, "/".join(key), folder) if stage else None


def error_file(folder: Path) -> Path:
    """The file beside a stage's folder that says why the stage failed when it ran last."""
    return folder.with_name(f"{folder.name}.error.txt")


def made_in(folder: Path) -> list[Made]:
    """Return the stages of the results below `folder`, and all stages upstream, upstream first.

    `folder` is `OUTPUT/NAME` of a build, or the folder of one result or stage. For any other folder
    the list is empty.
    """
    stages: dict[Path, Made] = {}

    def add(path: Path) -> None:
        """Add the stage in the folder `path`, after all stages upstream of it."""
        stage = Made.at(path)
        if stage is None or path in stages:
            return
        root = path.parents[len(Path(stage.key).parts) + 1]  # the folder `stages`
        for title, stage_hash in stage.upstream.items():
            add(root.joinpath(*title.split(" ", 1), stage_hash))
        stages[path] = stage

    for _, path in sorted(results_at(folder.resolve()).items()):
        add(path)
    add(stage_folder(folder))
    return list(stages.values())


def ordered(stages: Iterable[Made]) -> list[Made]:
    """Return the finished stages except the report, in the order of the data."""
    finished = [s for s in stages if s.stage not in ("report", "all") and is_complete(s.folder)]
    ranks = {stage: rank for rank, stage in enumerate(ORDER)}
    return sorted(finished, key=lambda stage: (ranks.get(stage.stage, len(ORDER)), stage.key))


def stage_rows(stages: Iterable[Made]) -> list[StageRow]:
    """Return a row for each stage except the report and the whole build."""
    rows = []
    for stage in stages:
        if stage.stage in ("report", "all"):
            continue
        if not is_complete(stage.folder):
            rows.append(StageRow(stage.stage, stage.key, False))
            continue
        manifest = stage.results if stage.stage == "model" else stage.manifest
        cost = stage.run.get("seconds"), stage.run.get("peak_memory_mib")
        rows.append(StageRow(stage.stage, stage.key, True, *amounts(stage.stage, manifest), *cost))
    return rows


def collapsed(rows: list[StageRow], most: int = 5) -> list[StageRow]:
    """Return the rows; one row of sums replaces those of a stage over more than `most` sources."""
    groups: dict[tuple[str, str], list[StageRow]] = {}
    for row in rows:
        variant = row.key.partition("/")[2]  # parser and mode; the key begins with the source
        groups.setdefault((row.stage, variant), []).append(row)
    shown: list[StageRow] = []
    for (stage, variant), group in groups.items():
        if len(group) <= most or stage not in PER_SOURCE:
            shown += group
            continue
        sums: dict[str, Any] = {}
        for name in ("rows", "rejects", "seconds", "memory", "size"):
            values = [getattr(row, name) for row in group if getattr(row, name) is not None]
            combine = max if name == "memory" else sum
            sums[name] = combine(values) if values else None
        key = f"{len(group)} sources {variant}".strip()
        not_done = [row for row in group if not row.done]
        needed = not not_done or any(row.needed for row in not_done)
        shown.append(StageRow(stage, key, not not_done, unit=group[0].unit, needed=needed, **sums))
    return shown


def amounts(stage: str, manifest: dict[str, Any]) -> tuple[int | None, str, int | None]:
    """Return rows, their unit, and rejects from a stage's manifest (of a model, its results)."""
    counts, unit, rejects = manifest.get("counts", {}), UNITS.get(stage, "examples"), None
    rows = counts.get("gold" if stage == "validation" else unit)
    if stage == "documents":
        rejects = counts.get("bad_records")
    elif stage == "division":
        rows = sum(counts.get("documents", {}).values())
    elif stage in ("sentences", "parse"):
        rejects = sum(counts.get("skipped", {}).values())
    elif stage == "pairs":
        rejects = sum(counts["rejects"].get("reasons", {}).values())
    elif stage == "dataset":
        configs = manifest["configs"].values()
        # Most other configurations are parts of the default one, or made from it.
        main = [entry for entry in configs if entry.get("default")] or configs
        rows = sum(split["rows"] for entry in main for split in entry["splits"].values())
        rejects = sum(manifest.get("rejects", {}).values())
    elif stage == "model":  # results without `trained_on` have the rows of the dataset only
        rows = manifest.get("trained_on", manifest.get("dataset", {}).get("rows", {}).get("train"))
    return rows, unit, rejects
