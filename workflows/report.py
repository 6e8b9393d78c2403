"""What was built: rows of a table from manifests and run records, and the report of a build.

The report is Markdown with SVG plots: what was built, from what, how good it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from corpora import escape
from corpora.audit import AUDIT_FILE
from corpora.licences import shown
from corpora.splits import SPLITS
from corpora.store.atomic import MANIFEST, is_complete, read_json
from workflows.stage import StageTask
from workflows.tasks.models import Evaluate
from workflows.tasks.sources import Pairs, Parse
from zoo.evaluate.compare import alike, compare

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


def write_report(report: StageTask, folder: Path) -> dict[str, Any]:
    """Write `report.md` and its plots into `folder`; returns the counts for the manifest."""
    stages = report.lineage[:-1]
    parts = [
        f"# Build `{report.build.name}`",
        _stages(report),
        _pairs([t for t in stages if isinstance(t, Pairs)], folder),
        _validation([t for t in stages if t.stage == "validation"], folder),
        _datasets([t for t in stages if t.stage == "dataset"]),
        _audits([t for t in stages if t.stage == "dataset"]),
        _evaluations([t for t in stages if isinstance(t, Evaluate)], folder),
        _sources(report),
    ]
    text = "\n\n".join(filter(None, parts)) + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    return {"stages": len(stages)}


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers are aligned to the right."""
    numeric = [bool(rows)] * len(header)
    body = []
    for row in rows:
        cells = []
        for i, value in enumerate(row):
            if isinstance(value, float):
                cells.append(f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}")
            elif isinstance(value, int | None):
                cells.append("" if value is None else f"{value:,}")
            else:
                cells.append(escape.markdown(value))
                numeric[i] = False
        body.append(cells)
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *body])


def bars(values: Counter[str], path: Path, *, title: str, log: bool = False) -> None:
    """Horizontal bars, the largest first, each with its number: the same SVG on every run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names, numbers = [*zip(*values.most_common(), strict=True)] or ((), ())
    with mpl.rc_context({"svg.hashsalt": "discorpora", "svg.fonttype": "none"}):
        figure, axes = plt.subplots(figsize=(7, 0.6 + 0.3 * max(len(names), 1)), layout="tight")
        drawn = axes.barh(names, numbers, color="#33658a")
        axes.bar_label(
            drawn, fmt="{:,.2f}" if max(numbers, default=2) <= 1 else "{:,.0f}", padding=3
        )
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        if log and numbers:
            axes.set_xscale("log")
        axes.margins(x=0.12)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _stages(report: StageTask) -> str:
    header = ("stage", "over", "rows", "of", "turned down", "seconds", "peak MiB")
    rows = [
        (r.stage, r.key, r.rows, r.unit, r.rejects, r.seconds, r.memory)
        for r in collapsed(table(report))
        if r.done
    ]
    lines = ["## Stages", "", markdown(header, rows)]
    if skipped := report.chosen_settings["skipped"]:
        lines += ["", *(f"- skipped: no source for {what}" for what in skipped)]
    return "\n".join(lines)


def _pairs(tasks: Sequence[Pairs], folder: Path) -> str:
    """Pairs by marker and rejects by reason, over the sources that feed datasets."""
    markers: dict[str, Counter[str]] = {}
    rejects: dict[str, Counter[str]] = {}
    for task in tasks:
        parser = cast(Parse, task.upstream[0]).parser_name
        mode, counts = f"{parser} trees, mode {task.mode_name}", task.manifest()["counts"]
        markers.setdefault(mode, Counter()).update(counts.get("markers", {}))
        rejects.setdefault(mode, Counter()).update(counts.get("rejects", {}).get("reasons", {}))
    parts = ["## Pairs"] if tasks else []
    for number, mode in enumerate(markers):
        name = f"pairs-{number}.svg"
        bars(markers[mode], folder / name, title=f"Pairs by marker ({mode})", log=True)
        parts += [
            f"### {mode}",
            markdown(("marker", "pairs"), markers[mode].most_common()),
            f"![pairs by marker]({name})",
            "Candidates turned down:",
            markdown(("reason", "candidates"), rejects[mode].most_common()),
        ]
    return "\n\n".join(parts)


def _validation(tasks: Sequence[StageTask], folder: Path) -> str:
    parts = ["## Validation against gold"] if tasks else []
    for task in tasks:
        by_marker = read_json(task.folder / "validation.json")["strict"]["per_marker"]
        scores = {m: block["occurrence"]["f1"] for m, block in by_marker.items() if block["gold"]}
        name = f"validation-{task.key}.svg"
        bars(Counter(scores), folder / name, title=f"Occurrence F1 ({task.key})")
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
            sizes = [entry["splits"].get(s, {}).get("rows", 0) for s in SPLITS]
            rows.append((task.key, config, *sizes, str(manifest["licence"].get("id", ""))))
    header = ("dataset", "configuration", *SPLITS, "licence")
    return "## Datasets\n\n" + markdown(header, rows)


def _audits(tasks: Sequence[StageTask]) -> str:
    """Of each configuration the rule that is furthest above chance, and all that are warned of."""
    rows, warned = [], []
    for task in tasks:
        path = task.folder / AUDIT_FILE
        for config, found in read_json(path)["configs"].items() if path.is_file() else ():
            warned += [f"- **{task.key}, {config}: {said}**" for said in found["above"]]
            if found["rules"]:
                best = max(found["rules"], key=lambda rule: rule["low"] - rule["chance"])
                interval = f"{best['low']} to {best['high']}"
                figures = best["rule"], best["measure"], best["value"], interval, best["chance"]
                rows.append((task.key, config, *map(str, figures)))
    if not rows:
        return ""
    header = ("dataset", "configuration", "rule", "measure", "reached", "95 %", "chance")
    table = markdown(header, rows)
    if warned:
        table += "\n\nFurther above chance than on released data:\n\n" + "\n".join(warned)
    return "## What rules that read nothing reach\n\n" + table


def _evaluations(tasks: Sequence[Evaluate], folder: Path) -> str:
    """One table for the models that are judged alike, with the rules beside them."""
    if not tasks:
        return ""
    judged: dict[tuple[str, str], dict[Path, Evaluate]] = {}
    for task in tasks:
        data = task.judged.data or ", ".join(task.judged.datasets)
        judged.setdefault((task.judged.suite, data), {})[task.folder / "results.json"] = task
    parts = ["## Models"]
    for (suite, data), by_file in judged.items():
        tables = list(alike(by_file))
        for files in tables:
            title = f"### {suite}: {data}"
            protocol = read_json(files[0]).get("protocol", {})
            if len(tables) > 1 and protocol:  # how the results of this table were measured
                title += f" ({', '.join(f'{key} {value}' for key, value in protocol.items())})"
            text = compare(files, published=False).render()
            parts.append(text.replace(f"## {suite}", title, 1).strip())
            group = [by_file[file] for file in files]
            for task in group:
                counts = task.manifest()["counts"]
                if seen := counts.get("rows_seen"):
                    parts.append(
                        f"**{task.name} was trained on documents of {seen:,} of the "
                        f"{counts['rows']:,} test rows.**"
                    )
            parts += dict.fromkeys(line for task in group for line in _left_out(task))
            for task in group:
                for plot in sorted(task.folder.glob("*.svg")):
                    copy = folder / f"{task.key.replace('/', '-')}-{plot.name}"
                    copy.write_bytes(plot.read_bytes())
                    parts.append(f"![{plot.stem} of {task.name}]({copy.name})")
    return "\n\n".join(parts)


def _left_out(task: StageTask) -> list[str]:
    """What the suite `discoeval` found in the data and could not evaluate, a line each."""
    skipped = read_json(task.folder / "results.json")["metrics"].get("skipped", {})
    reasons = skipped.items() if isinstance(skipped, dict) else ()
    return [f"{name} is left out: {reason}." for name, reason in reasons]


def _sources(report: StageTask) -> str:
    rows = []
    for s in report.described_sources():
        # Texts of gold relations and of an evaluation's data are in no dataset.
        licence = shown(s["licence"]) if s["name"] in report.build.by_name else "in no dataset"
        fingerprint = (s["revision"] or s["sha256"])[:16]
        rows.append((s["name"], s["kind"], s["place"], licence, fingerprint))
    header = ("source", "kind", "place", "licence", "fingerprint")
    return "## Sources\n\n" + markdown(header, rows)
