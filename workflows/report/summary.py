"""What was built: one row a stage, from the manifests and run records on disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpora.store.atomic import MANIFEST

if TYPE_CHECKING:
    from workflows.stage import StageTask


PER_SOURCE = ("documents", "sentences", "parse", "pairs")
SPLITS = ("train", "validation", "test")


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
    folder: str = ""


def table(task: StageTask) -> list[Row]:
    """The rows of `task` and everything upstream of it, upstream first."""
    return [_row(t) for t in task.lineage if t.stage not in ("report", "all")]


def collapsed(rows: list[Row], most: int = 5) -> list[Row]:
    """The rows of a stage that runs over more than `most` sources, added up to one."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        _, _, variant = row.key.partition("/")
        groups.setdefault((row.stage, variant), []).append(row)
    shown: list[Row] = []
    for (_, variant), group in groups.items():
        many = len(group) > most and group[0].stage in PER_SOURCE
        shown += [_total(group, variant)] if many else group
    return shown


def _total(group: list[Row], variant: str) -> Row:
    def add(name: str) -> Any:
        values = [getattr(row, name) for row in group if getattr(row, name) is not None]
        return sum(values) if values else None

    memory = [row.memory for row in group if row.memory is not None]
    return Row(
        group[0].stage,
        f"{len(group)} sources {variant}".strip(),
        all(row.done for row in group),
        add("rows"),
        group[0].unit,
        add("rejects"),
        add("seconds"),
        max(memory, default=None),
    )


def _row(task: StageTask) -> Row:
    done = task.output().exists()
    if not done:
        return Row(task.stage, task.key, done, folder=str(task.folder))
    about = "results.json" if task.stage == "model" else MANIFEST
    rows, unit, rejects = amounts(task.stage, _read(task.folder / about))
    run = _read(task.run_file)
    return Row(
        task.stage,
        task.key,
        done,
        rows,
        unit,
        rejects,
        run.get("seconds"),
        run.get("peak_memory_mib"),
        str(task.folder),
    )


def amounts(stage: str, manifest: dict[str, Any]) -> tuple[int | None, str, int | None]:
    """How many of what a manifest counts, and how many were turned down."""
    counts = manifest.get("counts", {})
    if stage == "documents":
        return counts.get("documents"), "documents", counts.get("bad_records")
    if stage == "division":
        return sum(counts.get("documents", {}).values()), "documents", None
    if stage in ("sentences", "parse"):
        return counts.get("sentences"), "sentences", sum(counts.get("skipped", {}).values())
    if stage == "pairs":
        return counts.get("pairs"), "pairs", sum(counts["rejects"].get("reasons", {}).values())
    if stage == "validation":
        return counts.get("gold"), "gold relations", None
    if stage == "dataset":
        return _rows(manifest), "rows", sum(manifest.get("rejects", {}).values())
    if stage == "model":
        return trained_on(manifest), "training examples", None
    return counts.get("examples"), "examples", None


def trained_on(results: dict[str, Any]) -> int | None:
    """The examples of a model's `results.json`; the data's rows in those that do not count them."""
    return results.get("trained_on", results["dataset"]["rows"].get("train"))


def _rows(manifest: dict[str, Any]) -> int:
    """The rows of all configurations and splits of a dataset folder."""
    splits = [s for entry in manifest["configs"].values() for s in entry["splits"].values()]
    return sum(split["rows"] for split in splits)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
