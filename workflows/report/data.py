"""The sections of a build's report, from the manifests and results in its folders."""

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
from workflows.report.blocks import (
    Block,
    Cell,
    Figure,
    Fold,
    Heading,
    Section,
    Table,
    Text,
    with_content,
)
from workflows.report.stages import Made, collapsed, stage_rows
from zoo.figures import matrices

if TYPE_CHECKING:
    from workflows.papers import Filled
    from zoo.evaluate.table import ScoreTable

STEPS = 20
"""The number of bars of a histogram of confidence."""
CLASSES = 30
"""A confusion matrix of more classes is not shown."""
KINDS = ("model", "rule", "published")
"""The kinds of rows in a table of scores."""
CONTROL = ("gold", "control: gold of other documents")
CRITERIA = {"criterion_paper": "paper: min < .7", "criterion_strict": "strict: max ≤ .3"}
ALIGNED = {
    "figure2_error_rate": ("figure 2", "Extraction error rate", "share not aligned"),
    "figure3_distance": ("figure 3", "Distance of aligned pairs", "number of aligned pairs"),
}
"""Figures 2 and 3 of DisSent (Nie, Bennett and Goodman 2019), by the names of their files."""
ALIGNMENT = (
    "The figures are those of the last table, as DisSent draws them. Figure 2 of the paper has by "
    "marker the share of pairs that no gold pair is near enough to: low is good. Its figure 3 "
    "counts the other, aligned pairs by their distance, from each value on (0: both sides equal, "
    "1: nothing in common): the more of them near 0, the better. The control takes gold of other "
    "documents, where nothing should be aligned: where its bars equal the others, the criterion "
    "tells nothing."
)
TOY_EXAMPLES = 1_000
"""A model that was trained on fewer examples than this is a toy."""


def sections(
    stages: Sequence[Made], skipped: Sequence[str], tables: Sequence[Filled] = ()
) -> list[Section]:
    """Return the sections of a report that have any content.

    `skipped` names the datasets and models without a source; `tables` are tables of papers.
    """

    def stages_of(kind: str) -> list[Made]:
        return [stage for stage in stages if stage.stage == kind]

    models, evaluations = stages_of("model"), stages_of("evaluation")
    parts = [
        Section("about", "About this report", [*_about(stages)]),
        Section("sources", "Sources and attribution", [*_sources(stages)]),
        Section("pairs", "Pairs", [*_pairs(stages_of("pairs"))]),
        Section("gold", "Validation against gold", [*_gold(stages_of("validation"))]),
        Section("datasets", "Datasets", [*_datasets(stages_of("dataset"))]),
        Section("training", "Training", [*_training(models)]),
        Section("papers", "Tables of papers", [*_papers(tables)]),
        Section("models", "Models and baselines", [*_evaluations(evaluations)]),
        Section("confusions", "Confusion matrices", [*_confusions(models, evaluations)]),
        Section("cost", "Time and memory", [*_cost(stages, skipped)]),
        Section("versions", "Versions", [*_versions(stages)]),
    ]
    parts = [Section(part.id, part.title, with_content(part.blocks)) for part in parts]
    return [part for part in parts if part.blocks]


def totals(stages: Sequence[Made]) -> dict[str, str]:
    """Return a build's numbers of sources, documents, words, ... as texts, without zeros."""
    numbers = Counter(sources=len({entry["name"] for stage in stages for entry in stage.sources}))
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


def _about(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield what the report is, what its models are, and which code made it."""
    yield Text(
        "What one build made: it read the sources, made pairs and datasets of them, trained models "
        "on the datasets, and scored these on test rows. A part without results is left out."
    )
    models = [stage for stage in stages if stage.stage == "model"]
    trained = [stage for stage in models if _examples(stage)]
    toys = [stage.key for stage in trained if _is_toy(stage)]
    if toys:
        names = "All" if len(toys) == len(models) else f"{len(toys)} of the"
        listed = "" if len(toys) == len(models) else f": {', '.join(toys)}"
        yield Text(
            f"{names} {len(models)} models are toys{listed}. A toy has a recipe for trying things "
            f"out (`tiny` in its name) or fewer than {TOY_EXAMPLES:,} training examples. It shows "
            "that the programs run; its scores say nothing about the method, and stand beside "
            "published ones for their form only.",
            strong=True,
        )
    elif trained:
        least, most = (f"{pick(map(_examples, trained)):,}" for pick in (min, max))
        examples = least if least == most else f"{least} to {most}"
        yield Text(f"No model is a toy: they were trained on {examples} examples each.")
    if models and len(trained) < len(models):
        yield Text(
            f"{len(models) - len(trained)} of the {len(models)} models were not trained here: "
            "encoders or vectors as they are."
        )
    versions = {stage.manifest.get("versions", {}).get("discorpora", "") for stage in stages}
    commits = {stage.run.get("commit", "") for stage in stages}
    code = [f"discorpora {version}" for version in sorted(versions) if version]
    code += [f"commit `{commit}`" for commit in sorted(commits) if commit]
    if code:
        yield Text(f"Made by {', '.join(code)}.")


def _examples(model: Made) -> int:
    """Return the number of examples that a model was trained on; 0 if it was not trained."""
    rows = model.results.get("dataset", {}).get("rows", {}).get("train")
    return int(model.results.get("trained_on", rows) or 0)


def _is_toy(model: Made) -> bool:
    recipe = str(model.results.get("recipe", ""))
    return recipe.endswith(("_tiny", "/tiny")) or _examples(model) < TOY_EXAMPLES


def _papers(tables: Sequence[Filled]) -> Iterator[Block]:
    """Yield the tables of papers with the build's numbers."""
    if tables:
        from workflows.report.papers import blocks  # a build without models needs none of it

        yield from blocks(tables)


def _sources(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield tables of the sources, of facts about them, and of documents to attribute."""
    sizes = {stage.key: stage.manifest["counts"] for stage in stages if stage.stage == "documents"}
    datasets = [stage for stage in stages if stage.stage == "dataset"]
    rows: list[Sequence[Cell]] = []
    about: list[Sequence[Cell]] = []
    links = {}
    by_name = {entry["name"]: entry for stage in stages for entry in stage.sources}
    for name, source in sorted(by_name.items()):
        in_datasets = [s.key for s in datasets if any(e["name"] == name for e in s.sources)]
        # Texts of gold relations and of an evaluation's data are in no dataset.
        has_licence = in_datasets or name in sizes or source["licence"]
        licence = shown(source["licence"]) if has_licence else "in no dataset"
        counts = sizes.get(name, {})
        size = counts.get("documents"), counts.get("words")
        fingerprint = (source["revision"] or source["sha256"])[:16]
        place = source["kind"], source["place"]
        rows.append((name, *place, licence, *size, ", ".join(in_datasets), fingerprint))
        title, url = source.get("title", ""), source.get("url", "")
        facts = title, ", ".join(source.get("authors", ())), source.get("description", ""), url
        if any(facts):
            about.append((name, *facts))
            links[url] = url
    header = ["source", "kind", "place", "licence", "documents", "words", "datasets", "fingerprint"]
    if rows:
        yield Table("What was read, under which licence, and what it feeds", header, rows)
    if about:
        header = ["source", "title", "authors", "description", "address"]
        yield Table("About the sources", header, about, links=links)
    attributions = (stage.manifest["attribution"].get("first", ()) for stage in datasets)
    documents = {
        (entry["source"], entry["id"]): entry for entry in chain.from_iterable(attributions)
    }
    if documents:
        keys = ("source", "title", "author", "licence", "url")
        links = {document["url"]: document["url"] for document in documents.values()}
        cells = [tuple(document[key] for key in keys) for document in documents.values()]
        yield Table("Documents with an author or an address", keys, cells, links=links)
        yield Text("Each dataset's attribution.parquet lists all such documents of its rows.")


def _pairs(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield for each parser and mode the pairs by marker, rejects by reason, and confidences."""
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
        s1_in = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in positions.items() if n)
        yield Text(
            f"{pairs:,} pairs of {pairs + rejected:,} candidates, from {len(group)} sources"
            + (f" (S1 in: {s1_in})." if s1_in else ".")
        )
        yield Table("Pairs by marker", ("marker", "pairs"), markers.most_common(), bar="pairs")
        header = ("reason", "candidates", "meaning")
        rows = [(reason, n, MEANINGS[reason]) for reason, n in reasons.most_common()]
        yield Table("Rejected candidates by reason", header, rows, header[1])
        histogram = np.zeros(STEPS, np.int64)
        for stage in group:
            for path in sorted(stage.folder.glob("pairs-*.parquet")):
                part = pq.read_table(path, columns=["confidence"], page_checksum_verification=True)
                values = part["confidence"].drop_null()
                histogram += np.histogram(values.to_numpy(), STEPS, (0, 1))[0]
        if histogram.any():
            first = int(np.flatnonzero(histogram)[0])  # it starts at the least confidence
            heights, low = histogram[first:].tolist(), first / STEPS
            unit = "estimated probability that the pair is right"
            svg = charts.histogram("Pairs by confidence", heights, low, 1, unit)
            yield Figure(f"confidence-{number}", f"Confidence of the pairs ({title})", svg)


def _gold(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield the tables of each validation against gold, and figures 2 and 3 of DisSent."""
    for stage in stages:
        result = read_json(stage.folder / "validation.json")
        yield Heading(stage.key)
        yield from _markdown_blocks((stage.folder / "validation.md").read_text(encoding="utf-8"))
        documents = result["documents"]
        # Documents that the parser was trained on are left out, unless there are no others.
        scores = result["unseen"] if documents["unseen"] else result
        number = documents["unseen"] or documents["seen"]
        yield Text(ALIGNMENT)
        for name, (paper, title, unit) in ALIGNED.items():
            for criterion, meaning in CRITERIA.items():
                views = [scores[gold][criterion] for gold in ("paper", "control")]
                series = [
                    view["histogram"]
                    if name == "figure3_distance"
                    else {m: row["error_rate"] for m, row in view["per_marker"].items()}
                    for view in views
                ]
                rows = {key: [values.get(key) for values in series] for key in series[0]}
                svg = charts.bars(f"{title} ({meaning})", rows, CONTROL, unit)
                caption = (
                    f"{title} ({paper} of DisSent), {meaning}; {number} documents of {stage.key}"
                )
                yield Figure(f"{stage.key}-{name}-{criterion}", caption, svg)


def _markdown_blocks(text: str) -> Iterator[Block]:
    """Parse the Markdown that `validate` writes into headings, tables and lines of text."""
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
    """Parse a cell: an integer, a fraction, None for "–", or a text, in which .5 becomes 0.5."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d*\.\d+", text):
        return float(text)
    return None if text == "–" else re.sub(r"(?<!\d)\.(?=\d)", "0.", text)


def _datasets(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield the sizes of all datasets, their best rules, and a fold with details of each."""
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
    yield from _best_rules(stages)
    for stage in stages:
        yield Fold(stage.key, [*_dataset(stage)])


def _audit(stage: Made) -> dict[str, Any]:
    """Return the audit of a dataset by configuration; empty if it was not audited."""
    path = stage.folder / AUDIT_FILE
    return dict(read_json(path)["configs"]) if path.is_file() else {}


def _best_rules(stages: Iterable[Made]) -> Iterator[Block]:
    """Yield the rule furthest above chance in each configuration, and the warnings of audits."""
    rows, warnings = [], []
    for stage in stages:
        for config, audit in _audit(stage).items():
            warnings += [f"{stage.key}, {config}: {warning}" for warning in audit["above"]]
            if audit["rules"]:
                best = max(audit["rules"], key=lambda rule: rule["low"] - rule["chance"])
                interval = f"{best['low']} to {best['high']}"
                figures = best["measure"], str(best["value"]), interval, str(best["chance"])
                rows.append((stage.key, config, best["rule"], *figures))
    if rows:
        header = ("dataset", "configuration", "rule", "measure", "reached", "95 %", "chance")
        yield Table("Scores of rules that read no meaning, in per cent", header, rows)
        yield Text("Of each configuration the rule that is furthest above chance.")
    if warnings:
        yield Text("Further above chance than on released data:")
        yield from (Text(warning, strong=True) for warning in warnings)


def _dataset(stage: Made) -> Iterator[Block]:
    """Yield notes, balance of labels, overlap of splits, rejects and audit of one dataset."""
    manifest, audit = stage.manifest, _audit(stage)
    yield from (Text(note) for note in manifest["notes"])
    balance: list[Sequence[Cell]] = []
    for config, entry in manifest["configs"].items():
        splits = [entry["splits"].get(split, {}).get("labels", {}) for split in SPLITS]
        for column in sorted({*chain.from_iterable(splits)}):
            counts_by_split = [split.get(column, {}) for split in splits]
            for label in entry["features"][column]["names"]:
                title = label if column == "label" else f"{column}: {label}"
                balance.append((config, title, *(n.get(label, 0) for n in counts_by_split)))
    if balance:
        header: tuple[str, ...] = ("configuration", "label", *SPLITS)
        yield Table("Balance: rows by label", header, balance, bar="train")
    overlap = [(c, p, n) for c, pairs in manifest["overlap"].items() for p, n in pairs.items()]
    if overlap and not any(number for *_, number in overlap):
        yield Text("No text is in two splits.")
    elif overlap:
        header = ("configuration", "splits", "distinct texts in both")
        yield Table("Overlap between splits", header, overlap)
    if manifest["rejects"]:
        yield Table("Left out", ("reason", "candidates"), [*manifest["rejects"].items()])
    rules, shares = [], []
    for config, result in audit.items():
        for score in result["rules"]:
            figures = (score[key] for key in ("measure", "value", "low", "high", "chance"))
            rules.append((config, score["rule"], RULES.get(score["rule"], ""), *figures))
        for share in (*result["labels"], *result["duplicates"]):
            figures = (share[key] for key in ("split", "what", "value", "low", "high"))
            shares.append((config, *figures, share["chance"] or None, share["n"]))
    if rules:
        header = ("configuration", "rule", "sees", "measure", "reached", "low", "high", "chance")
        caption = "Audit: per cent correct of rules that read no meaning, with 95 % interval"
        yield Table(caption, header, rules, digits=1)
    if shares:
        header = ("configuration", "split", "rows", "per cent", "low", "high", "chance", "of")
        yield Table("Audit: labels and duplicates, with 95 % interval", header, shares, digits=1)


def _training(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield a table of the trained models, and for each its curves, validations and plots."""
    rows: list[Sequence[Cell]] = []
    for stage in stages:
        result = stage.results
        data, training = result.get("dataset", {}), result.get("training", {})
        name = f"{data.get('name', '')} {data.get('config', '')}".strip()
        steps = training.get("steps"), training.get("best_step")
        examples = result.get("trained_on", data.get("rows", {}).get("train"))
        headline = f"{result.get('headline_name', '')}: {result.get('headline', '')}".strip(": ")
        recipe = result.get("recipe", ""), result.get("parameters")
        rows.append((stage.key, *recipe, name, examples, *steps, headline))
    if not rows:
        return
    header = ["model", "recipe", "parameters", "dataset", "examples", "steps", "best step"]
    yield Table("What was trained", [*header, "result"], rows)
    for stage in stages:
        training = stage.results.get("training", {})
        validations = training.get("validations", [])
        figures = []
        for measure in ("loss", "accuracy"):
            points = [(row["step"], row[measure]) for row in validations if measure in row]
            losses = training.get("losses", []) if measure == "loss" else []
            lines = {"training": losses, "validation": points}
            lines = {name: line for name, line in lines.items() if len(line) > 1}
            if lines:
                unit = f"{' and '.join(lines)} {measure}"
                svg = charts.curves(f"{stage.key}: {measure}", lines, "step", unit)
                name = f"curve-{stage.key}-{measure}"
                figures.append(Figure(name, f"{unit} of {stage.key}", svg))
        if figures:
            keys = [*dict.fromkeys(["step", *chain.from_iterable(validations)])]
            yield Heading(stage.key)
            yield from figures
            values = [[row.get(key) for key in keys] for row in validations]
            yield Table(f"Validations of {stage.key}", keys, values)
        yield from _pictures(stage)


def _pictures(stage: Made) -> Iterator[Figure]:
    """Yield the plots that a model or a suite has written into the stage's folder."""
    for plot in sorted(stage.folder.glob("*.svg")):
        name = f"{stage.key}-{plot.stem}".replace("/", "-")
        yield Figure(name, f"{plot.stem} of {stage.key}", file=plot)


def _evaluations(stages: Sequence[Made]) -> Iterator[Block]:
    """Yield the scores of models and published ones, by suite, datasets and protocol."""
    if not stages:
        return
    from zoo.evaluate.compare import alike, compare  # a build without models needs none of it
    from zoo.evaluate.results import datasets_of

    by_title: dict[str, dict[Path, Made]] = {}
    for stage in stages:
        names = ", ".join(datasets_of(stage.results["dataset"]))
        title = f"{stage.results['suite']}: {names}"
        by_title.setdefault(title, {})[stage.folder / "results.json"] = stage
    number = 0
    for title, by_file in by_title.items():
        groups = alike(by_file)
        for files in groups:
            protocol = read_json(files[0]).get("protocol", {})
            measured = ""
            if len(groups) > 1 and protocol:
                measured = f" ({', '.join(f'{key} {value}' for key, value in protocol.items())})"
            yield Heading(title + measured)
            group = [by_file[file] for file in files]
            for table in compare(files).tables:
                number += 1
                yield from _score_blocks(table, title, number)
            notes = chain.from_iterable(left_out(stage.results) for stage in group)
            yield from map(Text, dict.fromkeys(notes))
            for stage in group:
                counts = stage.manifest["counts"]
                if rows_seen := counts.get("rows_seen"):
                    yield Text(
                        f"{stage.results['model']['name']} was trained on documents of "
                        f"{rows_seen:,} of the {counts['rows']:,} test rows.",
                        strong=True,
                    )
                if not matrices(stage.results["metrics"]):
                    yield from _pictures(stage)


def _score_blocks(table: ScoreTable, title: str, number: int) -> Iterator[Block]:
    """Yield a table of scores, a chart of each column (`number` is in its name), differences."""
    columns, examples = table.columns, table.examples
    rows: list[Sequence[Cell]] = []
    if examples:
        rows.append(("n, examples judged here", *(examples.get(column) for column in columns)))
    for row in table.rows:
        name = f"{row.name} (published: {row.source})" if row.kind == "published" else row.name
        rows.append((name, *(row.cells[c].text if c in row.cells else None for c in columns)))
    yield Table("Test scores with 95 % intervals", ("name", *columns), rows)
    for i, column in enumerate(columns):
        scored = [row for row in table.rows if column in row.cells]
        if 1 < len(scored) <= 24 and len(columns) <= 8:
            cells = [row.cells[column] for row in scored]
            points = [
                (row.name, KINDS.index(row.kind), cell.value, cell.ci)
                for row, cell in zip(scored, cells, strict=True)
            ]
            unit = "per cent" if cells[0].digits < 3 else "value"
            svg = charts.dots(column, points, KINDS, f"{unit}, 95 % interval")
            yield Figure(f"models-{number}-{i}", f"{column} of {title}", svg)
    if table.differences:
        measures = [*dict.fromkeys(chain.from_iterable(table.differences.values()))]
        lines = [
            (name, *(cells[m].text if m in cells else None for m in measures))
            for name, cells in table.differences.items()
        ]
        caption = f"Differences from {table.baseline} in points, on the same examples"
        caption += " (paired bootstrap, 95 % intervals; *: without 0)"
        yield Table(caption, ("name", *measures), lines)
    yield from map(Text, table.notes)


def left_out(results: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each task that the suite `discoeval` could not evaluate, and why."""
    skipped = results["metrics"].get("skipped", {})
    reasons = skipped.items() if isinstance(skipped, dict) else ()
    return [f"{name} is left out: {reason}." for name, reason in reasons]


def _confusions(models: Sequence[Made], evaluations: Sequence[Made]) -> Iterator[Block]:
    """Yield the confusion matrices of evaluations, and of models without an evaluation."""
    evaluated = {stage.key for stage in evaluations}
    not_evaluated = [stage for stage in models if stage.key not in evaluated]
    for stage in chain(evaluations, not_evaluated):
        metrics = stage.results.get("metrics", {})
        if stage.stage == "model":
            metrics = metrics.get("test", {})
        for name, matrix in matrices(metrics).items():
            classes = matrix["classes"]
            if len(classes) <= CLASSES:
                counts = matrix["gold_by_predicted"]
                rows = [(label, *row) for label, row in zip(classes, counts, strict=True)]
                title = f"{stage.key} {name}".strip()
                caption = f"{title}: rows are gold labels, columns are predicted labels; examples"
                yield Table(caption, ("gold", *classes), rows, heat=True)


def _cost(stages: Sequence[Made], skipped: Sequence[str]) -> Iterator[Block]:
    """Yield the stages' seconds and memory, the machines, and what was skipped."""
    rows = [
        (row.stage, row.key, row.rows, row.unit, row.rejects, row.seconds, row.memory)
        for row in collapsed(stage_rows(stages))
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
    """Yield the versions of the libraries that made the stages."""
    versions: dict[str, set[str]] = {}
    for stage in stages:
        about = stage.results if stage.stage in ("model", "evaluation") else stage.manifest
        for name, version in about.get("versions", {}).items():
            versions.setdefault(name, set()).add(version)
    if versions:
        rows = [(name, ", ".join(sorted(versions[name]))) for name in sorted(versions)]
        yield Table("Libraries that made datasets and models", ("library", "version"), rows)
