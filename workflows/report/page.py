"""The report as a folder that opens from disk: `index.html`, `report.md`, figures, examples."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from corpora.audit import built
from corpora.audit.data import Configuration
from corpora.store.atomic import sha256
from workflows.report import charts
from workflows.report.blocks import Figure, Section, Table, html, markdown
from workflows.report.browser import Shown, write_data
from workflows.report.data import sections, totals
from workflows.report.markup import Html, escaped, joined, tag
from workflows.report.stages import Made, made_in, ordered
from workflows.results import stage_folder

if TYPE_CHECKING:
    from workflows.papers import Filled

ASSETS = Path(__file__).with_name("assets")
TEMPLATES = Path(__file__).parent.with_name("templates")
PAGE, EXAMPLES = TEMPLATES / "page.html", TEMPLATES / "examples.html"
"""The page, which may load nothing but the files beside it, and the browser of its script."""


def assets_hash() -> str:
    """Of the style sheet, the script and the templates, which a report is made of."""
    return "".join(sha256(path)[:8] for path in (*sorted(ASSETS.iterdir()), PAGE, EXAMPLES))


def write_report(
    name: str,
    stages: Sequence[Made],
    skipped: Sequence[str],
    folder: Path,
    tables: Sequence[Filled] = (),
) -> dict[str, int]:
    """Write the report of a build's stages into `folder`; returns counts for its manifest.

    `skipped` is what the build file has no source for, `tables` are the papers' tables.
    """
    stages = ordered(stages)
    found = sections(stages, skipped, tables)
    (folder / "figures").mkdir()
    figures = [b for section in found for b in section.blocks if isinstance(b, Figure)]
    for figure in figures:
        path = folder / "figures" / f"{figure.name}.svg"
        if figure.file:
            shutil.copyfile(figure.file, path)
        else:
            path.write_text(charts.alone(figure.svg), encoding="utf-8", newline="\n")
    text = markdown(f"Build `{name}`", found)
    (folder / "report.md").write_text(text, encoding="utf-8", newline="\n")
    datasets = [
        Shown(made.key, built(made.folder, made.manifest["configs"]), _above(made, stages))
        for made in stages
        if made.stage == "dataset"
    ]
    datasets.sort(key=lambda dataset: not dataset.lineage)  # those of pairs first
    examples = _write(folder, f"Build {name}", found, totals(stages), datasets)
    return {"stages": len(stages), "figures": len(figures), "examples": examples}


def write_browser(dataset: Shown, folder: Path) -> int:
    """Write a page with the examples of one dataset into `folder`; returns how many there are."""
    sizes = {
        f"{config} {split}".removeprefix("default "): f"{part.count_rows():,}"
        for config, one in dataset.configurations.items()
        for split, part in one.splits.items()
    }
    return _write(folder, f"Dataset {dataset.name}", [], sizes, [dataset])


def dataset_at(spec: str, configurations: Mapping[str, Configuration]) -> Shown:
    """A dataset to be browsed: of a built folder, its pairs are shown in their passages."""
    folder = stage_folder(Path(spec))
    made = Made.at(folder)
    if made is None or made.stage != "dataset":
        return Shown(folder.name if folder.is_dir() else spec, configurations)
    return Shown(made.key, configurations, _above(made, made_in(folder)))


def _above(made: Made, stages: Sequence[Made]) -> list[Made]:
    """The stages that a dataset's pairs are from, and those of their documents."""
    pairs = [m for m in stages if m.stage == "pairs" and f"pairs {m.key}" in made.upstream]
    sources = {pair.key.partition("/")[0] for pair in pairs}
    return [*pairs, *(m for m in stages if m.stage == "documents" and m.key in sources)]


def _write(
    folder: Path,
    title: str,
    found: Sequence[Section],
    numbers: Mapping[str, str],
    datasets: Sequence[Shown],
) -> int:
    for path in ASSETS.iterdir():
        shutil.copyfile(path, folder / path.name)
    examples = write_data(datasets, folder)
    counters = {Table: count(1), Figure: count(1)}
    parts = [(one.id, one.title, html(one.blocks, counters)) for one in found]
    if examples:
        before = next((n + 1 for n, part in enumerate(parts) if part[0] == "datasets"), 0)
        parts.insert(before, ("examples", "Examples", _filled(EXAMPLES)))
    figures = (tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers.items())
    page = _filled(
        PAGE,
        title=escaped(title),
        numbers=tag("dl", *figures, class_="numbers") if numbers else "",
        contents=joined(*(tag("li", tag("a", name, href=f"#{id}")) for id, name, _ in parts)),
        sections=joined(
            *(tag("section", tag("h2", name), body, id=id) for id, name, body in parts)
        ),
    )
    (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return examples


def _filled(template: Path, **values: str) -> Html:
    """A template on one line, since space between elements is seen, with markup filled in."""
    lines = template.read_text(encoding="utf-8").splitlines()
    return Html(Template("".join(map(str.strip, lines))).substitute(values))
