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
    """One stage in the table of a build: `rows` counts `unit`; `seconds` is None before its run.

    A stage that is not done is not `needed` if all stages made from it are done.
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
        """Return the stage of a finished folder `stages/STAGE[/KEY]/HASH`; None for another."""
        parts = folder.parts
        if "stages" not in parts or not is_complete(folder):
            return None
        names = parts[len(parts) - parts[::-1].index("stages") : -1]
        return cls(names[0], "/".join(names[1:]), folder) if names else None


def error_file(folder: Path) -> Path:
    """The file beside a stage's folder that says why the stage failed when it ran last."""
    return folder.with_name(f"{folder.name}.error.txt")


def made_in(folder: Path) -> list[Made]:
    """Return the stages of the results below `folder`, and all stages upstream of them, in order.

    `folder` is `OUTPUT/NAME` of a build, or the folder of one result or stage. For any other folder
    the list is empty.
    """
    stages: dict[Path, Made] = {}

    def add(place: Path) -> None:
        stage = Made.at(place)
        if stage is None or place in stages:
            return
        root = place.parents[len(Path(stage.key).parts) + 1]  # the folder `stages`
        for title, name in stage.upstream.items():
            add(root.joinpath(*title.split(" ", 1), name))
        stages[place] = stage

    for _, place in sorted(results_at(folder.resolve()).items()):
        add(place)
    add(stage_folder(folder))
    return list(stages.values())


def ordered(stages: Iterable[Made]) -> list[Made]:
    """Return the finished stages except the report, in the order of the data."""
    kept = [s for s in stages if s.stage not in ("report", "all") and is_complete(s.folder)]
    places = {stage: place for place, stage in enumerate(ORDER)}
    return sorted(kept, key=lambda stage: (places.get(stage.stage, len(ORDER)), stage.key))


def table(stages: Iterable[Made]) -> list[StageRow]:
    """Return a row for each stage except the report."""
    rows = []
    for stage in stages:
        if stage.stage in ("report", "all"):
            continue
        if not is_complete(stage.folder):
            rows.append(StageRow(stage.stage, stage.key, False))
            continue
        manifest = stage.results if stage.stage == "model" else stage.manifest
        cost = stage.run.get("seconds"), stage.run.get("peak_memory_mib")
        numbers = amounts(stage.stage, manifest)
        rows.append(StageRow(stage.stage, stage.key, True, *numbers, *cost))
    return rows


def collapsed(rows: list[StageRow], most: int = 5) -> list[StageRow]:
    """Return the rows, with one row of sums for a stage that runs over more than `most` sources."""
    groups: dict[tuple[str, str], list[StageRow]] = {}
    for row in rows:
        groups.setdefault((row.stage, row.key.partition("/")[2]), []).append(row)
    shown: list[StageRow] = []
    for (stage, variant), group in groups.items():
        if len(group) <= most or stage not in PER_SOURCE:
            shown += group
            continue
        sums: dict[str, Any] = {}
        for name in ("rows", "rejects", "seconds", "memory"):
            values = [v for row in group if (v := getattr(row, name)) is not None]
            sums[name] = (max if name == "memory" else sum)(values) if values else None
        key = f"{len(group)} sources {variant}".strip()
        not_done = [row for row in group if not row.done]
        needed = not not_done or any(row.needed for row in not_done)
        shown.append(StageRow(stage, key, not not_done, unit=group[0].unit, needed=needed, **sums))
    return shown


def amounts(stage: str, manifest: dict[str, Any]) -> tuple[int | None, str, int | None]:
    """Return a stage's number of rows, their unit, and its rejects, by its manifest or results."""
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
        counted = [entry for entry in configs if entry.get("default")] or configs
        rows = sum(split["rows"] for entry in counted for split in entry["splits"].values())
        rejects = sum(manifest.get("rejects", {}).values())
    elif stage == "model":  # results without `trained_on` have the rows of the dataset only
        rows = manifest.get("trained_on", manifest.get("dataset", {}).get("rows", {}).get("train"))
    return rows, unit, rejects
