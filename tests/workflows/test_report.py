"""The report of a build: what a reader of it must not miss."""

from __future__ import annotations

import json
from collections.abc import Callable
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


def test_evaluations_by_two_protocols_have_a_table_each(tmp_path: Path) -> None:
    def task(name: str, limit: int) -> SimpleNamespace:
        figure = {"value": 0.5, "ci": None}
        sets = {"insted": {"accuracy": figure, "baselines": {}, "outcomes": "10"}}
        sets["insted"]["pairs_digest"] = "d"
        result = {
            "suite": "pairwise",
            "model": {"name": "scorer", "type": "t"},
            "dataset": {"name": "d", "revision": "r"},
            "protocol": {"prompt": True, "limit": limit},
            "encoder": "",
            "metrics": {"sets": sets},
        }
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(result), encoding="utf-8")
        return SimpleNamespace(
            name="scorer",
            key=name,
            folder=tmp_path / name,
            judged=SimpleNamespace(suite="pairwise", data="", datasets=["d"]),
            manifest=lambda: {"counts": {}},
        )

    one, two, again = task("one", 0), task("two", 100), task("again", 0)
    text = report._evaluations([one, two, again], tmp_path)
    assert text.count("### ") == 2
    assert "### pairwise: d (prompt True, limit 0)" in text
    assert "### pairwise: d (prompt True, limit 100)" in text
    assert "### pairwise: d\n" in report._evaluations([one, again], tmp_path)


SOURCES = """
name = "small"

[[sources]]
name = "logs"
spec = "sample:news"
datasets = ["bso"]

[[sources]]
name = "novels"
spec = "text:novels/*/*.txt"
datasets = ["bso"]

[[sources]]
name = "records"
spec = "jsonl:records.jsonl"
datasets = ["bso"]

[[validation]]
name = "check"
sources = ["logs"]
gold = "pdtb:{sample}/gold"

[datasets.bso]
"""


def test_every_source_says_its_licence_or_that_it_is_to_be_set(
    write_config: Callable[[str], Path], run_luigi: Callable, tmp_path: Path
) -> None:
    text = "It rained all day long. We stayed inside the old house. Nobody came to see us."
    (tmp_path / "novels" / "emma").mkdir(parents=True)
    (tmp_path / "novels" / "emma" / "01.txt").write_text(text, encoding="utf-8")
    licences = ("MIT", "CC0-1.0")
    records = [{"id": name, "text": text, "licence": name} for name in licences]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "records.jsonl").write_text(lines, encoding="utf-8")
    done = run_luigi(write_config(SOURCES))
    assert done.returncode == 0, done.stderr
    built = tmp_path / "out" / "small"
    shown = (built / "report" / "report.md").read_text(encoding="utf-8")
    card = (built / "datasets" / "bso" / "README.md").read_text(encoding="utf-8")
    unknown = "unknown: set `licence` of the source |"
    assert "| logs | sample | news | CC-BY-4.0 |" in shown
    assert "| records | jsonl | records.jsonl | CC0-1.0 AND MIT |" in shown
    assert f"| novels-emma-01 | text | emma/01.txt | {unknown}" in shown
    assert "| check-gold | pdtb | gold | in no dataset |" in shown
    rows = {line.split(" ")[1]: line for line in card.splitlines() if line.startswith("| ")}
    assert rows["novels-emma-01"].endswith(unknown)
    assert rows["records"].endswith("| CC0-1.0 AND MIT |")
    assert rows["logs"].endswith("| CC-BY-4.0 |")


def test_the_report_shows_the_strongest_rule_of_each_dataset(tmp_path: Path) -> None:
    rule = {"measure": "accuracy", "low": 0.0, "high": 99.0, "chance": 50.0}
    rules = [rule | {"rule": "bag", "value": 60.0, "low": 55.0}]
    rules.append(rule | {"rule": "surface", "value": 70.0, "low": 65.0})
    configs = {
        "default": {"rules": rules, "above": ["surface reaches 70.0"]},
        "few": {"rules": [], "above": []},
    }
    (tmp_path / "audit.json").write_text(json.dumps({"configs": configs}), encoding="utf-8")
    tasks = [
        SimpleNamespace(folder=tmp_path, key="bso"),
        SimpleNamespace(folder=tmp_path / "older", key="sp"),
    ]
    shown = report._audits(tasks)  # type: ignore[arg-type]
    assert "| bso | default | surface | accuracy | 70.0 | 65.0 to 99.0 | 50.0 |" in shown
    assert "few" not in shown and "- **bso, default: surface reaches 70.0**" in shown
    assert report._audits(tasks[1:]) == ""  # type: ignore[arg-type]
