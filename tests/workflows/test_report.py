"""The report of a build: what a reader of it must not miss."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from workflows import report


def test_tasks_that_discoeval_could_not_evaluate_are_named(tmp_path: Path) -> None:
    def left_out(metrics: dict[str, object]) -> list[str]:
        (tmp_path / "results.json").write_text(json.dumps({"metrics": metrics}), encoding="utf-8")
        return report._left_out(SimpleNamespace(folder=tmp_path))

    assert left_out({"skipped": {"RST-DT": "its files are pickles"}}) == [
        "RST-DT is left out: its files are pickles."
    ]
    assert left_out({"skipped": {}}) == left_out({"skipped": 3}) == left_out({}) == []
