"""What is built: the stages of a build, found by its tasks or by its folders, and their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from corpora.store.atomic import MANIFEST, is_complete, read_json
from workflows.results import results_at, stage_folder

PER_SOURCE = ("documents", "sentences", "parse", "pairs")
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
"""What the rows of a stage are; of all others, examples."""


@dataclass(frozen=True)
class Row:
    """One stage of a build. `rows` counts `unit`; `seconds` is None for a stage not yet run.

    One that is not done is not `needed` if all that was made from it is done.
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
    """A stage of a build, and the folder of its output, which may not be there yet."""

    stage: str
    key: str
    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return dict(read_json(self.folder / MANIFEST))

    @cached_property
    def results(self) -> dict[str, Any]:
        """What a model or an evaluation says of itself."""
        return dict(read_json(self.folder / "results.json"))

    @cached_property
    def run(self) -> dict[str, Any]:
        """Seconds, memory and machine, which the build keeps beside the folder."""
        path = self.folder.with_suffix(".run.json")
        return dict(read_json(path)) if path.is_file() else {}

    @property
    def sources(self) -> list[dict[str, Any]]:
        """What it was made of; a model does not say it."""
        return list(self.manifest.get("sources", ()))

    @property
    def upstream(self) -> dict[str, str]:
        """The stages that its output was made of, each with its hash."""
        return dict(self.manifest.get("stage", self.manifest).get("upstream", {}))

    @classmethod
    def at(cls, folder: Path) -> Made | None:
        """The stage whose output is in `folder`, `stages/STAGE[/KEY]/HASH`; None for another."""
        parts = folder.parts
        if "stages" not in parts or not is_complete(folder):
            return None
        between = parts[len(parts) - parts[::-1].index("stages") : -1]
        return cls(between[0], "/".join(between[1:]), folder) if between else None


def error_file(folder: Path) -> Path:
    """The file beside a stage's folder that says why the stage failed when it ran last."""
    return folder.with_name(f"{folder.name}.error.txt")


def made_in(folder: Path) -> list[Made]:
    """The stages of the results below `folder`, and all upstream of them, upstream first.

    `folder` is `OUTPUT/NAME` of a build, or that of a result or stage. Nothing for any other.
    """
    found: dict[Path, Made] = {}

    def add(place: Path) -> None:
        made = Made.at(place)
        if made is None or place in found:
            return
        stages = place.parents[len(Path(made.key).parts) + 1]
        for title, name in made.upstream.items():
            add(stages.joinpath(*title.split(" ", 1), name))
        found[place] = made

    for _, place in sorted(results_at(folder.resolve()).items()):
        add(place)
    add(stage_folder(folder))
    return list(found.values())


def ordered(stages: Iterable[Made]) -> list[Made]:
    """The built stages except the report, in the order of the data."""
    kept = [m for m in stages if m.stage not in ("report", "all") and is_complete(m.folder)]
    places = {stage: place for place, stage in enumerate(ORDER)}
    return sorted(kept, key=lambda made: (places.get(made.stage, len(ORDER)), made.key))


def table(stages: Iterable[Made]) -> list[Row]:
    """The rows of all stages except the report."""
    rows = []
    for made in stages:
        if made.stage in ("report", "all"):
            continue
        if not is_complete(made.folder):
            rows.append(Row(made.stage, made.key, False))
            continue
        about = made.results if made.stage == "model" else made.manifest
        cost = made.run.get("seconds"), made.run.get("peak_memory_mib")
        rows.append(Row(made.stage, made.key, True, *amounts(made.stage, about), *cost))
    return rows


def collapsed(rows: list[Row], most: int = 5) -> list[Row]:
    """The rows of a stage that runs over more than `most` sources, added up to one."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.stage, row.key.partition("/")[2]), []).append(row)
    shown: list[Row] = []
    for (stage, variant), group in groups.items():
        if len(group) <= most or stage not in PER_SOURCE:
            shown += group
            continue
        sums: dict[str, Any] = {}
        for name in ("rows", "rejects", "seconds", "memory"):
            values = [v for row in group if (v := getattr(row, name)) is not None]
            sums[name] = (max if name == "memory" else sum)(values) if values else None
        key = f"{len(group)} sources {variant}".strip()
        lacking = [row for row in group if not row.done]
        needed = not lacking or any(row.needed for row in lacking)
        shown.append(Row(stage, key, not lacking, unit=group[0].unit, needed=needed, **sums))
    return shown


def amounts(stage: str, manifest: dict[str, Any]) -> tuple[int | None, str, int | None]:
    """How many of what a manifest counts, and how many were rejected."""
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
        whole = [entry for entry in configs if entry.get("default")] or configs
        rows = sum(s["rows"] for entry in whole for s in entry["splits"].values())
        rejects = sum(manifest.get("rejects", {}).values())
    elif stage == "model":  # the data's rows in results that do not count their examples
        about = manifest.get("dataset", {}).get("rows", {})
        rows = manifest.get("trained_on", about.get("train"))
    return rows, unit, rejects
