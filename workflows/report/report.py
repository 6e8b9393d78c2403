"""The report of a build: what was built, from what, how good it is. Markdown with SVG plots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from corpora.licences import shown
from workflows.report import plots, summary
from workflows.tasks.models import Evaluate
from workflows.tasks.sources import Pairs

if TYPE_CHECKING:
    from workflows.stage import StageTask
    from workflows.tasks.sources import Parse


def write_report(report: StageTask, folder: Path) -> dict[str, Any]:
    """Write `report.md` and its plots into `folder`; returns the counts for the manifest."""
    stages = report.lineage[:-1]
    parts = [
        f"# Build `{report.build.name}`",
        _stages(summary.collapsed(summary.table(report)), report.chosen_settings["skipped"]),
        _pairs([t for t in stages if isinstance(t, Pairs)], folder),
        _validation([t for t in stages if t.stage == "validation"], folder),
        _datasets([t for t in stages if t.stage == "dataset"]),
        _evaluations([t for t in stages if isinstance(t, Evaluate)], folder),
        _sources(report),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    return {"stages": len(stages)}


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers are aligned to the right."""
    body = [[_cell(value) for value in row] for row in rows]
    numeric = [
        bool(rows) and all(isinstance(row[i], int | float | None) for row in rows)
        for i in range(len(header))
    ]
    rule = ["---:" if right else "---" for right in numeric]
    lines = [list(header), rule, *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def _stages(rows: Sequence[summary.Row], skipped: Sequence[str]) -> str:
    header = ("stage", "over", "rows", "of", "turned down", "seconds", "peak MiB")
    body = [
        (r.stage, r.key, r.rows, r.unit, r.rejects, r.seconds, r.memory) for r in rows if r.done
    ]
    lines = ["## Stages", "", markdown(header, body)]
    lines += ["", *(f"- skipped: no source for {what}" for what in skipped)] if skipped else []
    return "\n".join(lines)


def _pairs(tasks: Sequence[Pairs], folder: Path) -> str:
    """Pairs by marker and rejects by reason, over the sources that feed datasets."""
    if not tasks:
        return ""
    by_mode: dict[str, list[Pairs]] = {}
    for task in tasks:
        parser = cast("Parse", task.upstream[0]).parser_name
        by_mode.setdefault(f"{parser} trees, mode {task.mode_name}", []).append(task)
    parts = ["## Pairs"]
    for number, (mode, group) in enumerate(by_mode.items()):
        markers, rejects = _summed(group, "markers"), _summed(group, "rejects", "reasons")
        name = f"pairs-{number}.svg"
        plots.bars(markers, folder / name, title=f"Pairs by marker ({mode})", log=True)
        parts += [
            f"### {mode}",
            markdown(("marker", "pairs"), markers.most_common()),
            f"![pairs by marker]({name})",
            "Candidates turned down:",
            markdown(("reason", "candidates"), rejects.most_common()),
        ]
    return "\n\n".join(parts)


def _summed(tasks: Sequence[StageTask], *keys: str) -> Counter[str]:
    """The counts under `keys` of several stages, added up."""
    total: Counter[str] = Counter()
    for task in tasks:
        counts = task.manifest()["counts"]
        for key in keys:
            counts = counts.get(key, {})
        total.update(counts)
    return total


def _validation(tasks: Sequence[StageTask], folder: Path) -> str:
    if not tasks:
        return ""
    parts = ["## Validation against gold"]
    for task in tasks:
        result = _json(task.folder / "validation.json")
        name = f"validation-{task.key}.svg"
        scores = {
            marker: block["occurrence"]["f1"]
            for marker, block in result["strict"]["per_marker"].items()
            if block["gold"]
        }
        plots.bars(Counter(scores), folder / name, title=f"Occurrence F1 ({task.key})")
        table = (task.folder / "validation.md").read_text(encoding="utf-8")
        table = table.replace("\n## ", "\n#### ").replace("# ", "### ", 1)
        parts += [f"### {task.key}", table.strip(), f"![occurrence F1 by marker]({name})"]
    return "\n\n".join(parts)


def _datasets(tasks: Sequence[StageTask]) -> str:
    if not tasks:
        return ""
    rows = []
    for task in tasks:
        manifest = task.manifest()
        for config, entry in manifest["configs"].items():
            sizes = [entry["splits"].get(s, {}).get("rows", 0) for s in summary.SPLITS]
            rows.append((task.key, config, *sizes, str(manifest["licence"].get("id", ""))))
    header = ("dataset", "configuration", *summary.SPLITS, "licence")
    return "## Datasets\n\n" + markdown(header, rows)


def _evaluations(tasks: Sequence[Evaluate], folder: Path) -> str:
    """One table for the models that are judged alike, with the rules beside them."""
    if not tasks:
        return ""
    from zoo.evaluate.compare import alike, compare

    judged: dict[tuple[str, str], dict[Path, Evaluate]] = {}
    for task in tasks:
        data = task.judged.data or ", ".join(task.judged.datasets)
        judged.setdefault((task.judged.suite, data), {})[task.folder / "results.json"] = task
    groups = [
        (suite, data, files, [by_file[file] for file in files])
        for (suite, data), by_file in judged.items()
        for files in alike(by_file)
    ]
    parts = ["## Models"]
    for suite, data, files, group in groups:
        several = sum((suite, data) == other[:2] for other in groups) > 1
        title = f"### {suite}: {data}{_protocol(files[0]) if several else ''}"
        text = compare(files, published=False).render().replace(f"## {suite}", title, 1)
        parts.append(text.strip())
        parts += [line for task in group if (line := _seen(task))]
        parts += list(dict.fromkeys(line for task in group for line in _left_out(task)))
        parts += [_plot(task, plot, folder) for task in group for plot in _plots(task)]
    return "\n\n".join(parts)


def _protocol(file: Path) -> str:
    """How a result was measured, for the title of one of several tables on the same data."""
    found = _json(file).get("protocol", {})
    return f" ({', '.join(f'{key} {value}' for key, value in found.items())})" if found else ""


def _seen(task: Evaluate) -> str:
    """A warning where a model is judged on documents that it was trained on."""
    counts = task.manifest()["counts"]
    if not counts.get("rows_seen"):
        return ""
    seen, rows = f"{counts['rows_seen']:,}", f"{counts['rows']:,}"
    return f"**{task.name} was trained on documents of {seen} of the {rows} test rows.**"


def _left_out(task: StageTask) -> list[str]:
    """What the suite `discoeval` found in the data and could not evaluate, a line each."""
    skipped = _json(task.folder / "results.json")["metrics"].get("skipped", {})
    reasons = skipped.items() if isinstance(skipped, dict) else ()
    return [f"{name} is left out: {reason}." for name, reason in reasons]


def _plots(task: StageTask) -> list[Path]:
    return sorted(task.folder.glob("*.svg"))


def _plot(task: Evaluate, plot: Path, folder: Path) -> str:
    """Copy a plot of an evaluation beside the report, and show it."""
    copy = folder / f"{task.key.replace('/', '-')}-{plot.name}"
    copy.write_bytes(plot.read_bytes())
    return f"![{plot.stem} of {task.name}]({copy.name})"


def _sources(report: StageTask) -> str:
    listed, rows = {source.name for source in report.build.sources}, []
    for s in report.described_sources():
        # Texts of gold relations and of an evaluation's data are in no dataset.
        licence = shown(s["licence"]) if s["name"] in listed else "in no dataset"
        fingerprint = (s["revision"] or s["sha256"])[:16]
        rows.append((s["name"], s["kind"], s["place"], licence, fingerprint))
    header = ("source", "kind", "place", "licence", "fingerprint")
    return "## Sources\n\n" + markdown(header, rows)


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
