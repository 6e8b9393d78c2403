"""The report as a folder that opens from disk: `index.html`, `report.md`, tables, figures and
examples."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from corpora.audit import built
from corpora.audit.data import Configuration
from corpora.errors import InputError
from corpora.store.atomic import read_json, sha256, write_json
from workflows.report import charts
from workflows.report.blocks import Figure, Section, Table, html, markdown
from workflows.report.blocks import tables as tables_in
from workflows.report.browser import BrowsedDataset, write_data
from workflows.report.data import sections, totals
from workflows.report.markup import Html, escaped, joined, tag
from workflows.report.stages import Made, made_in, ordered
from workflows.results import stage_folder

if TYPE_CHECKING:
    from workflows.papers import Filled

ASSETS = Path(__file__).with_name("assets")
TEMPLATES = Path(__file__).parent.with_name("templates")
TABLES = "tables.json"
"""The file of all tables, in the order of their numbers."""
PAGE, EXAMPLES = TEMPLATES / "page.html", TEMPLATES / "examples.html"
"""The templates of the page, which loads only files beside it, and of its browser of examples."""


def assets_hash() -> str:
    """Return a hash of the style sheet, the script and the templates of a report."""
    return "".join(sha256(path)[:8] for path in (*sorted(ASSETS.iterdir()), PAGE, EXAMPLES))


def write_report(
    name: str,
    stages: Sequence[Made],
    skipped: Sequence[str],
    folder: Path,
    tables: Sequence[Filled] = (),
) -> dict[str, int]:
    """Write the report of a build's stages into `folder`; returns counts for its manifest.

    `skipped` names datasets and models of the build file for which it has no source; `tables` are
    the papers' tables.
    """
    stages = ordered(stages)
    parts = sections(stages, skipped, tables)
    (folder / "figures").mkdir()
    figures = [block for part in parts for block in part.blocks if isinstance(block, Figure)]
    for figure in figures:
        path = folder / "figures" / f"{figure.name}.svg"
        if figure.file:
            shutil.copyfile(figure.file, path)
        else:
            path.write_text(charts.alone(figure.svg), encoding="utf-8", newline="\n")
    all_tables = tables_in(block for part in parts for block in part.blocks)
    write_json(folder / TABLES, [asdict(table) for table in all_tables])
    text = markdown(f"Build `{name}`", parts)
    (folder / "report.md").write_text(text, encoding="utf-8", newline="\n")
    datasets = [
        BrowsedDataset(s.key, built(s.folder, s.manifest["configs"]), _stages_of_pairs(s, stages))
        for s in stages
        if s.stage == "dataset"
    ]
    datasets.sort(key=lambda dataset: not dataset.lineage)  # those of pairs first
    examples = _write_page(folder, f"Build {name}", parts, totals(stages), datasets)
    return {"stages": len(stages), "figures": len(figures), "examples": examples}


def read_table(report: Path, number: int) -> Table:
    """Return the table with a number from the folder of a report.

    Raises `InputError` if there is no such table.
    """
    file = report / TABLES
    if not file.is_file():
        raise InputError(
            "the report has no file of its tables: an earlier version made it",
            where=str(report),
            hint="run discorpora build again, which makes the report anew",
        )
    entries = read_json(file)
    if not 1 <= number <= len(entries):
        raise InputError(
            f"no table {number}", where=str(report), hint=f"it has the tables 1 to {len(entries)}"
        )
    return Table(**entries[number - 1])


def write_browser(dataset: BrowsedDataset, folder: Path) -> int:
    """Write a page with the examples of one dataset into `folder`; returns their number."""
    sizes = {
        f"{config} {split}".removeprefix("default "): f"{part.count_rows():,}"
        for config, configuration in dataset.configurations.items()
        for split, part in configuration.splits.items()
    }
    return _write_page(folder, f"Dataset {dataset.name}", [], sizes, [dataset])


def dataset_at(spec: str, configurations: Mapping[str, Configuration]) -> BrowsedDataset:
    """Return the dataset `spec` (folder or Hub id) for the browser, with its stages if known."""
    folder = stage_folder(Path(spec))
    stage = Made.at(folder)
    if stage is None or stage.stage != "dataset":
        return BrowsedDataset(folder.name if folder.is_dir() else spec, configurations)
    return BrowsedDataset(stage.key, configurations, _stages_of_pairs(stage, made_in(folder)))


def _stages_of_pairs(dataset: Made, stages: Sequence[Made]) -> list[Made]:
    """Return the stages `pairs` that a dataset is made from, and those of their documents."""
    pairs = [s for s in stages if s.stage == "pairs" and f"pairs {s.key}" in dataset.upstream]
    sources = {pair.key.partition("/")[0] for pair in pairs}
    return [*pairs, *(s for s in stages if s.stage == "documents" and s.key in sources)]


def _write_page(
    folder: Path,
    title: str,
    parts: Sequence[Section],
    numbers: Mapping[str, str],
    datasets: Sequence[BrowsedDataset],
) -> int:
    """Write the page with `numbers` at its top, assets and examples; returns their number."""
    for path in ASSETS.iterdir():
        shutil.copyfile(path, folder / path.name)
    examples = write_data(datasets, folder)
    counters = {Table: count(1), Figure: count(1)}
    contents = [(part.id, part.title, html(part.blocks, counters)) for part in parts]
    if examples:
        place = next((i + 1 for i, part in enumerate(parts) if part.id == "datasets"), 0)
        contents.insert(place, ("examples", "Examples", _filled(EXAMPLES)))
    terms = (tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers.items())
    page = _filled(
        PAGE,
        title=escaped(title),
        numbers=tag("dl", *terms, class_="numbers") if numbers else "",
        contents=joined(*(tag("li", tag("a", name, href=f"#{id}")) for id, name, _ in contents)),
        sections=joined(
            *(tag("section", tag("h2", name), body, id=id) for id, name, body in contents)
        ),
    )
    (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return examples


def _filled(template: Path, **values: str) -> Html:
    """Fill markup into a template, on one line: a page would show the spaces between lines."""
    lines = template.read_text(encoding="utf-8").splitlines()
    return Html(Template("".join(map(str.strip, lines))).substitute(values))
