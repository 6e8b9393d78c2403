"""Short names for what was built: `OUTPUT/NAME/datasets/sp` points at its hashed folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflows.stage import StageTask

SHELVES = {
    "dataset": "datasets",
    "model": "models",
    "evaluation": "evaluations",
    "validation": "validation",
}

ALONE = ("report", "division")
"""Of these a build has one each: linked under their own names."""


def results(report: StageTask) -> list[StageTask]:
    """What a build is made for: its datasets, models, evaluations and validations."""
    return [task for task in walk(report) if task.stage in SHELVES]


def link_results(report: StageTask, place: Path) -> None:
    """Link the report's own folder and everything it draws on under `place`, and nothing else."""
    wanted = _wanted(report, place)
    for link in _links(place):
        if link not in wanted:
            link.unlink()
    for link, folder in wanted.items():
        _link(folder, link)


def linked(report: StageTask, place: Path) -> bool:
    """Whether the links under `place` are those of `report`, and no others."""
    wanted = {link: os.path.relpath(to, link.parent) for link, to in _wanted(report, place).items()}
    return wanted == {link: str(link.readlink()) for link in _links(place)}


def _wanted(report: StageTask, place: Path) -> dict[Path, Path]:
    found = {place / task.stage: task.folder for task in walk(report) if task.stage in ALONE}
    return found | {place / SHELVES[task.stage] / task.key: task.folder for task in results(report)}


def _links(place: Path) -> list[Path]:
    shelves = [place / shelf for shelf in SHELVES.values()]
    inside = [path for shelf in shelves if shelf.is_dir() for path in shelf.rglob("*")]
    alone = [place / name for name in ALONE]
    return [path for path in (*alone, *inside) if path.is_symlink()]


def walk(task: StageTask) -> list[StageTask]:
    """`task` and everything upstream of it, each once, upstream first."""
    found: dict[str, StageTask] = {}

    def visit(node: StageTask) -> None:
        if node.task_id not in found:
            for upstream in node.upstream():
                visit(upstream)
            found[node.task_id] = node

    visit(task)
    return list(found.values())


def _link(folder: Path, link: Path) -> None:
    """Point `link` at `folder`, relative, replacing an older link in one step."""
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(folder, link.parent), target_is_directory=True)
    fresh.replace(link)
