"""What a build's folders say, as the sections of its report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from corpora.audit import AUDIT_FILE, RULES
from corpora.licences import shown
from corpora.splits import SPLITS
from corpora.store.atomic import read_json
from extract.pairs import MEANINGS
from workflows.report import charts
from workflows.report.blocks import Block, Cell, Figure, Fold, Heading, Section, Table, Text
from workflows.report.stages import Made, collapsed, table
from zoo.figures import matrices

if TYPE_CHECKING:
    from workflows.papers import Filled
    from zoo.evaluate.table import ScoreTable

STEPS = 20
"""Of a histogram of confidence."""
CLASSES = 30
"""The most classes of a confusion matrix that is shown."""
KINDS = ("model", "rule", "published")
CONTROL = ("gold", "control: gold of other documents")
CRITERIA = {"criterion_paper": "paper: min < .7", "criterion_strict": "strict: max ≤ .3"}
ALIGNED = {
    "figure2_error_rate": ("figure 2", "error_rate", "Extraction error rate", "share not aligned"),
    "figure3_distance": ("figure 3", "distance", "Distance of aligned pairs", "mean distance"),
}
"""Figures 2 and 3 of DisSent (Nie, Bennett and Goodman 2019), by the names of their files."""


def sections(
    stages: Sequence[Made], skipped: Sequence[str], tables: Sequence[Filled] = ()
) -> list[Section]:
    """The sections of a report; `skipped` is what the build file has no source for.

    `tables` are those of papers.
    """

    def of(kind: str) -> list[Made]:
        return [stage for stage in stages if stage.stage == kind]

    models, evaluations = of("model"), of("evaluation")
    parts = [
        Section("sources", "Sources and attribution", [*_sources(stages)]),
        Section("pairs", "Pairs", [*_pairs(of("pairs"))]),
        Section("gold", "Validation against gold", [*_gold(of("validation"))]),
        Section("datasets", "Datasets", [*_datasets(of("dataset"))]),
        Section("training", "Training", [*_training(models)]),
        Section("papers", "Tables of papers", [*_papers(tables)]),
        Section("models", "Models and baselines", [*_evaluations(evaluations)]),
        Section("confusions", "Confusion matrices", [*_confusions(models, evaluations)]),
        Section("cost", "Time and memory", [*_cost(stages, skipped)]),
        Section("versions", "Versions", [*_versions(stages)]),
    ]
    return [section for section in parts if section.blocks]


def totals(stages: Sequence[Made]) -> dict[str, str]:
    """The build in a few numbers."""
    numbers = Counter(sources=len({s["name"] for m in stages for s in m.sources}))
    numbers.update(documents=0, words=0, pairs=0)  # in this order
    used = {title for stage in stages if stage.stage == "dataset" for title in stage.upstream}
    for stage in stages:
        if stage.stage == "documents":
            counts = stage.manifest["counts"]
            numbers.update(documents=counts["documents"], words=counts.get("words", 0))
        elif stage.stage == "pairs" and f"pairs {stage.key}" in used:
            numbers["pairs"] += stage.manifest["counts"]["pairs"]
        elif stage.stage == "dataset":
            configs = stage.manifest["configs"].values()
            rows = sum(split["rows"] for entry in configs for split in entry["splits"].values())
            numbers.update({"datasets": 1, "dataset rows": rows})
        elif stage.stage in ("model", "evaluation"):
            numbers[f"{stage.stage}s"] += 1
    return {name: f"{number:,}" for name, number in numbers.items() if number}


def _papers(tables: Sequence[Filled]) -> Iterator[Block]:
    if tables:
        from workflows.report.papers import blocks  # a build without models needs none of it

        yield from blocks(tables)


def _sources(stages: Sequence[Made]) -> Iterator[Block]:
    read = {stage.key: stage.manifest["counts"] for stage in stages if stage.stage == "documents"}
    datasets = [stage for stage in stages if stage.stage == "dataset"]
    rows: list[Sequence[Cell]] = []
    about: list[Sequence[Cell]] = []
    links = {}
    for name, source in sorted({s["name"]: s for m in stages for s in m.sources}.items()):
        fed = [stage.key for stage in datasets if any(s["name"] == name for s in stage.sources)]
        # Texts of gold relations and of an evaluation's data are in no dataset.
        used = fed or name in read
        licence = shown(source["licence"]) if used or source["licence"] else "in no dataset"
        counts = read.get(name, {})
        size = counts.get("documents"), counts.get("words")
        fingerprint = (source["revision"] or source["sha256"])[:16]
        row = (name, source["kind"], source["place"], licence, *size, ", ".join(fed), fingerprint)
        rows.append(row)
        title, url = source.get("title", ""), source.get("url", "")
        written = title, ", ".join(source.get("authors", ())), source.get("description", ""), url
        if any(written):
            about.append((name, *written))
            links[url] = url
    header = ["source", "kind", "place", "licence", "documents", "words", "datasets", "fingerprint"]
    if rows:
        yield Table("What was read, under which licence, and what it feeds", header, rows)
    if about:
        header = ["source", "title", "authors", "description", "address"]
        yield Table("About the sources", header, about, links=links)
    firsts = (one for stage in datasets for one in stage.manifest["attribution"].get("first", ()))
    if credits := {(one["source"], one["id"]): one for one in firsts}:
        keys = ("source", "title", "author", "licence", "url")
        links = {one["url"]: one["url"] for one in credits.values()}
        listed = [tuple(one[key] for key in keys) for one in credits.values()]
        yield Table("Documents with an author or an address", keys, listed, links=links)
        yield Text("Each dataset's attribution.parquet lists all such documents of its rows.")


def _pairs(stages: Sequence[Made]) -> Iterator[Block]:
    """Pairs by marker, rejects by reason, confidence: over the sources of a parser and mode."""
    groups: dict[str, list[Made]] = {}
    for stage in stages:
        mode = stage.manifest["settings"]["mode"]
        parser = stage.key.rpartition("/")[2].removesuffix(f"-{mode}")
        groups.setdefault(f"{parser} trees, mode {mode}", []).append(stage)
    for number, (title, group) in enumerate(groups.items()):
        markers: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        positions: Counter[str] = Counter()
        for stage in group:
            counts = stage.manifest["counts"]
            markers.update(counts.get("markers", {}))
            reasons.update(counts["rejects"].get("reasons", {}))
            positions.update(counts.get("positions", {}))
        pairs, rejected = markers.total(), reasons.total()
        yield Heading(title)
        where = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in positions.items() if n)
        yield Text(
            f"{pairs:,} pairs of {pairs + rejected:,} candidates, from {len(group)} sources"
            + (f" (S1 in: {where})." if where else ".")
        )
        yield Table("Pairs by marker", ("marker", "pairs"), markers.most_common(), bar="pairs")
        header = ("reason", "candidates", "meaning")
        rows = [(reason, n, MEANINGS[reason]) for reason, n in reasons.most_common()]
        yield Table("Rejected candidates by reason", header, rows, header[1])
        steps = np.zeros(STEPS, np.int64)
        for stage in group:
            for path in sorted(stage.folder.glob("pairs-*.parquet")):
                part = pq.read_table(path, columns=["confidence"], page_checksum_verification=True)
                values = part["confidence"].drop_null()
                steps += np.histogram(values.to_numpy(), STEPS, (0, 1))[0]
        if steps.any():
            first = int(np.flatnonzero(steps)[0])  # from the least confidence on
            heights, low = steps[first:].tolist(), first / STEPS
            unit = "estimated probability that the pair is right"
            drawn = charts.histogram("Pairs by confidence", heights, low, 1, unit)
            yield Figure(f"confidence-{number}", f"Confidence of the pairs ({title})", drawn)


def _gold(stages: Sequence[Made]) -> Iterator[Block]:
    for stage in stages:
        result = read_json(stage.folder / "validation.json")
        yield Heading(stage.key)
        yield from _written((stage.folder / "validation.md").read_text(encoding="utf-8"))
        documents = result["documents"]
        blocks = result["unseen"] if documents["unseen"] else result
        over = documents["unseen"] or documents["seen"]
        for name, (paper, measure, title, unit) in ALIGNED.items():
            for criterion, meaning in CRITERIA.items():
                views = [blocks[view][criterion]["per_marker"] for view in ("paper", "control")]
                rows = {m: [view.get(m, {}).get(measure) for view in views] for m in views[0]}
                drawn = charts.bars(f"{title} ({meaning})", rows, CONTROL, unit)
                caption = (
                    f"{title} ({paper} of DisSent), {meaning}; {over} documents of {stage.key}"
                )
                yield Figure(f"{stage.key}-{name}-{criterion}", caption, drawn)


def _written(text: str) -> Iterator[Block]:
    """The blocks of the Markdown that `validate` writes: headings, tables, lines of text."""
    title, rows = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([_cell(cell.strip()) for cell in line.strip("|").split("|")])
            continue
        if rows:
            header = [str(cell or "") for cell in rows[0]]
            yield Table(title, header, rows[2:])
            rows = []
        if line.startswith("### "):
            title = line.removeprefix("### ")
        elif line.startswith("## "):
            yield Heading(line.removeprefix("## "), 4)
        elif line:
            yield Text(line)


def _cell(text: str) -> Cell:
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d*\.\d+", text):
        return float(text)
    return None if text == "–" else re.sub(r"(?<!\d)\.(?=\d)", "0.", text)


def _datasets(stages: Sequence[Made]) -> Iterator[Block]:
    sizes: list[Sequence[Cell]] = []
    for stage in stages:
        licence = str(stage.manifest["licence"].get("id", ""))
        for config, entry in stage.manifest["configs"].items():
            rows = [entry["splits"].get(split, {}).get("rows", 0) for split in SPLITS]
            sizes.append((stage.key, config, *rows, licence))
    if not sizes:
        return
    header = ("dataset", "configuration", *SPLITS, "licence")
    yield Table("Rows by split", header, sizes)
    yield from _strongest(stages)
    for stage in stages:
        yield Fold(stage.key, [*_dataset(stage)])


def _audit(stage: Made) -> dict[str, Any]:
    path = stage.folder / AUDIT_FILE
    return dict(read_json(path)["configs"]) if path.is_file() else {}


def _strongest(stages: Iterable[Made]) -> Iterator[Block]:
    """Of each configuration the rule that is furthest above chance, and all that are warned of."""
    rows, warned = [], []
    for stage in stages:
        for config, audit in _audit(stage).items():
            warned += [f"{stage.key}, {config}: {warning}" for warning in audit["above"]]
            if audit["rules"]:
                best = max(audit["rules"], key=lambda rule: rule["low"] - rule["chance"])
                interval = f"{best['low']} to {best['high']}"
                figures = best["measure"], str(best["value"]), interval, str(best["chance"])
                rows.append((stage.key, config, best["rule"], *figures))
    if rows:
        header = ("dataset", "configuration", "rule", "measure", "reached", "95 %", "chance")
        yield Table("Scores of rules that read no meaning, in per cent", header, rows)
        yield Text("Of each configuration the rule that is furthest above chance.")
    if warned:
        yield Text("Further above chance than on released data:")
        yield from (Text(warning, strong=True) for warning in warned)


def _dataset(stage: Made) -> Iterator[Block]:
    """Balance, overlaps, what was left out, and the audit of one dataset."""
    manifest, audit = stage.manifest, _audit(stage)
    yield from (Text(note) for note in manifest["notes"])
    balance: list[Sequence[Cell]] = []
    for config, entry in manifest["configs"].items():
        splits = [entry["splits"].get(split, {}).get("labels", {}) for split in SPLITS]
        for column in sorted({column for split in splits for column in split}):
            counts = [split.get(column, {}) for split in splits]
            for name in entry["features"][column]["names"]:
                shown_as = name if column == "label" else f"{column}: {name}"
                balance.append((config, shown_as, *(labels.get(name, 0) for labels in counts)))
    if balance:
        header: tuple[str, ...] = ("configuration", "label", *SPLITS)
        yield Table("Balance: rows by label", header, balance, bar="train")
    overlap = [(c, p, n) for c, pairs in manifest["overlap"].items() for p, n in pairs.items()]
    if overlap:
        header = ("configuration", "splits", "distinct texts in both")
        yield Table("Overlap between splits", header, overlap)
    if manifest["rejects"]:
        yield Table("Left out", ("reason", "candidates"), [*manifest["rejects"].items()])
    rules, shares = [], []
    for config, result in audit.items():
        for one in result["rules"]:
            figures = (one[key] for key in ("measure", "value", "low", "high", "chance"))
            rules.append((config, one["rule"], RULES.get(one["rule"], ""), *figures))
        for one in (*result["labels"], *result["duplicates"]):
            figures = (one[key] for key in ("value", "low", "high"))
            what = config, one["split"], one["what"]
            shares.append((*what, *figures, one["chance"] or None, one["n"]))
    if rules:
        header = ("configuration", "rule", "sees", "measure", "reached", "low", "high", "chance")
        caption = "Audit: per cent correct of rules that read no meaning, with 95 % interval"
        yield Table(caption, header, rules, digits=1)
    if shares:
        header = ("configuration", "split", "rows", "per cent", "low", "high", "chance", "of")
        yield Table("Audit: labels and duplicates, with 95 % interval", header, shares, digits=1)


def _training(stages: Sequence[Made]) -> Iterator[Block]:
    rows: list[Sequence[Cell]] = []
    for stage in stages:
        result = stage.results
        data, training = result.get("dataset", {}), result.get("training", {})
        name = f"{data.get('name', '')} {data.get('config', '')}".strip()
        steps = training.get("steps"), training.get("best_step")
        seen = result.get("trained_on", data.get("rows", {}).get("train"))
        headline = f"{result.get('headline_name', '')}: {result.get('headline', '')}".strip(": ")
        row = (
            stage.key,
            result.get("recipe", ""),
            result.get("parameters"),
            name,
            seen,
            *steps,
            headline,
        )
        rows.append(row)
    if not rows:
        return
    header = ["model", "recipe", "parameters", "dataset", "examples", "steps", "best step"]
    yield Table("What was trained", [*header, "result"], rows)
    for stage in stages:
        training = stage.results.get("training", {})
        validations = training.get("validations", [])
        drawn = []
        for measure in ("loss", "accuracy"):
            points = [(one["step"], one[measure]) for one in validations if measure in one]
            losses = training.get("losses", []) if measure == "loss" else []
            lines = {"training": losses, "validation": points}
            lines = {name: line for name, line in lines.items() if len(line) > 1}
            if lines:
                unit = f"{' and '.join(lines)} {measure}"
                svg = charts.curves(f"{stage.key}: {measure}", lines, "step", unit)
                drawn.append(Figure(f"curve-{stage.key}-{measure}", f"{unit} of {stage.key}", svg))
        if drawn:
            keys = [*dict.fromkeys(["step", *(key for one in validations for key in one)])]
            yield Heading(stage.key)
            yield from drawn
            values = [[one.get(key) for key in keys] for one in validations]
            yield Table(f"Validations of {stage.key}", keys, values)
        yield from _pictures(stage)


def _pictures(stage: Made) -> Iterator[Figure]:
    """The plots that a model or a suite has drawn itself."""
    for plot in sorted(stage.folder.glob("*.svg")):
        name = f"{stage.key}-{plot.stem}".replace("/", "-")
        yield Figure(name, f"{plot.stem} of {stage.key}", file=plot)


def _evaluations(stages: Sequence[Made]) -> Iterator[Block]:
    """One table for the models that are judged alike, with rules and published rows beside them."""
    if not stages:
        return
    from zoo.evaluate.compare import alike, compare  # a build without models needs none of it
    from zoo.evaluate.results import datasets_of

    judged: dict[str, dict[Path, Made]] = {}
    for stage in stages:
        names = ", ".join(datasets_of(stage.results["dataset"]))
        title = f"{stage.results['suite']}: {names}"
        judged.setdefault(title, {})[stage.folder / "results.json"] = stage
    number = 0
    for title, by_file in judged.items():
        tables = alike(by_file)
        for files in tables:
            protocol = read_json(files[0]).get("protocol", {})
            measured = ""
            if len(tables) > 1 and protocol:  # how the results of this table were measured
                measured = f" ({', '.join(f'{key} {value}' for key, value in protocol.items())})"
            yield Heading(title + measured)
            group = [by_file[file] for file in files]
            for compared in compare(files).tables:
                number += 1
                yield from _compared(compared, title, number)
            yield from map(Text, dict.fromkeys(s for m in group for s in left_out(m.results)))
            for stage in group:
                counts = stage.manifest["counts"]
                if seen := counts.get("rows_seen"):
                    yield Text(
                        f"{stage.results['model']['name']} was trained on documents of {seen:,} of "
                        f"the {counts['rows']:,} test rows.",
                        strong=True,
                    )
                if not matrices(stage.results["metrics"]):
                    yield from _pictures(stage)


def _compared(table: ScoreTable, title: str, number: int) -> Iterator[Block]:
    columns, examples = table.columns, table.examples
    rows: list[Sequence[Cell]] = []
    if examples:
        rows.append(("n, examples judged here", *(examples.get(column) for column in columns)))
    for row in table.rows:
        name = f"{row.name} (published: {row.source})" if row.kind == "published" else row.name
        rows.append((name, *(row.cells[c].text if c in row.cells else None for c in columns)))
    yield Table("Test scores with 95 % intervals", ("name", *columns), rows)
    for i, column in enumerate(columns):
        kept = [row for row in table.rows if column in row.cells]
        if 1 < len(kept) <= 24 and len(columns) <= 8:
            cells = [row.cells[column] for row in kept]
            points = [
                (row.name, KINDS.index(row.kind), cell.value, cell.ci)
                for row, cell in zip(kept, cells, strict=True)
            ]
            unit = "per cent" if cells[0].digits < 3 else "value"
            svg = charts.dots(column, points, KINDS, f"{unit}, 95 % interval")
            yield Figure(f"models-{number}-{i}", f"{column} of {title}", svg)
    if table.differences:
        shown = dict.fromkeys(c for by in table.differences.values() for c in by)
        lines = [
            (name, *(by[c].text if c in by else None for c in shown))
            for name, by in table.differences.items()
        ]
        caption = f"Differences from {table.baseline} in points, on the same examples"
        yield Table(
            f"{caption} (paired bootstrap, 95 % intervals; *: without 0)", ("name", *shown), lines
        )
    yield from map(Text, table.notes)


def left_out(results: Mapping[str, Any]) -> list[str]:
    """What the suite `discoeval` found in the data and could not evaluate, a line each."""
    skipped = results["metrics"].get("skipped", {})
    reasons = skipped.items() if isinstance(skipped, dict) else ()
    return [f"{name} is left out: {reason}." for name, reason in reasons]


def _confusions(models: Sequence[Made], evaluations: Sequence[Made]) -> Iterator[Block]:
    """Those of the evaluations, and of the models that no suite has judged on their own data."""
    judged = {stage.key for stage in evaluations}
    not_judged = [stage for stage in models if stage.key not in judged]
    for stage in chain(evaluations, not_judged):
        metrics = stage.results.get("metrics", {})
        if stage.stage == "model":
            metrics = metrics.get("test", {})
        for name, matrix in matrices(metrics).items():
            classes = matrix["classes"]
            if len(classes) <= CLASSES:
                counts = matrix["gold_by_predicted"]
                rows = [(one, *row) for one, row in zip(classes, counts, strict=True)]
                title = f"{stage.key} {name}".strip()
                caption = f"{title}: rows are gold labels, columns are predicted labels; examples"
                yield Table(caption, ("gold", *classes), rows, heat=True)


def _cost(stages: Sequence[Made], skipped: Sequence[str]) -> Iterator[Block]:
    rows = [
        (r.stage, r.key, r.rows, r.unit, r.rejects, r.seconds, r.memory)
        for r in collapsed(table(stages))
    ]
    header = ("stage", "over", "rows", "of", "rejected", "seconds", "peak MiB")
    yield Table("Stages of the build", header, rows, bar="seconds", digits=1)
    runs = [stage.run for stage in stages if stage.run]
    keys = ("platform", "cores", "python")
    machines = sorted({tuple(str(run.get(key, "?")) for key in keys) for run in runs})
    for platform, cores, python in machines:
        yield Text(f"Measured on {platform}, {cores} cores, Python {python}.")
    yield from (Text(f"skipped: no source for {what}") for what in skipped)


def _versions(stages: Sequence[Made]) -> Iterator[Block]:
    versions: dict[str, set[str]] = {}
    for stage in stages:
        about = stage.results if stage.stage in ("model", "evaluation") else stage.manifest
        for name, version in about.get("versions", {}).items():
            versions.setdefault(name, set()).add(version)
    if versions:
        rows = [(name, ", ".join(sorted(versions[name]))) for name in sorted(versions)]
        yield Table("Libraries that made datasets and models", ("library", "version"), rows)
