"""What was built: one row a stage, from the manifests and run records on disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from corpora.splits import SPLITS
from corpora.store.atomic import MANIFEST, is_complete, read_json

if TYPE_CHECKING:
    from workflows.stage import StageTask

__all__ = ["SPLITS", "Row", "amounts", "collapsed", "table"]

PER_SOURCE = ("documents", "sentences", "parse", "pairs")
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
    """One stage of a build. `rows` counts `unit`; `seconds` is None for a stage not yet run."""

    stage: str
    key: str
    done: bool
    rows: int | None = None
    unit: str = ""
    rejects: int | None = None
    seconds: float | None = None
    memory: float | None = None


def table(task: StageTask) -> list[Row]:
    """The rows of `task` and everything upstream of it, upstream first."""
    rows = []
    for each in task.lineage:
        if each.stage in ("report", "all"):
            continue
        row = Row(each.stage, each.key, is_complete(each.folder))
        if row.done:
            about = each.folder / ("results.json" if each.stage == "model" else MANIFEST)
            made, unit, rejects = amounts(each.stage, read_json(about))
            run = read_json(each.run_file) if each.run_file.is_file() else {}
            row = replace(row, rows=made, unit=unit, rejects=rejects)
            row = replace(row, seconds=run.get("seconds"), memory=run.get("peak_memory_mib"))
        rows.append(row)
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
        done = all(row.done for row in group)
        shown.append(Row(stage, key, done, unit=group[0].unit, **sums))
    return shown


def amounts(stage: str, manifest: dict[str, Any]) -> tuple[int | None, str, int | None]:
    """How many of what a manifest counts, and how many were turned down."""
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
        splits = [s for entry in manifest["configs"].values() for s in entry["splits"].values()]
        rows, rejects = sum(s["rows"] for s in splits), sum(manifest.get("rejects", {}).values())
    elif stage == "model":  # the data's rows in results that do not count their examples
        rows = manifest.get("trained_on", manifest["dataset"]["rows"].get("train"))
    return rows, unit, rejects
