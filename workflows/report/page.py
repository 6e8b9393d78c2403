"""The report as a folder that opens from disk: `index.html`, `report.md`, figures, examples."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from string import Template

from corpora.audit import built
from corpora.audit.data import Configuration
from corpora.store.atomic import sha256
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
    markdown,
    numeric,
    shown,
)
from workflows.report.browser import Shown, write_data
from workflows.report.data import sections, totals
from workflows.report.markup import Html, escaped, joined, link, tag
from workflows.report.stages import Made, made_in, ordered

ASSETS = Path(__file__).with_name("assets")
TEMPLATES = Path(__file__).parent.with_name("templates")
PAGE, EXAMPLES = TEMPLATES / "page.html", TEMPLATES / "examples.html"
"""The page, which may load nothing but the files beside it, and the browser of its script."""
SHADES = 10
"""Of the cells of a confusion matrix, from none to all of a row."""


def assets_hash() -> str:
    """Of the style sheet, the script and the templates, which a report is made of."""
    return "".join(sha256(path)[:8] for path in (*sorted(ASSETS.iterdir()), PAGE, EXAMPLES))


def write_report(
    name: str, stages: Sequence[Made], skipped: Sequence[str], folder: Path
) -> dict[str, int]:
    """Write the report of a build's stages into `folder`; returns counts for its manifest.

    `skipped` is what the build file has no source for.
    """
    stages = ordered(stages)
    found = sections(stages, skipped)
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
    folder = Path(spec).resolve()
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
    parts = [(one.id, one.title, joined(*_blocks(one.blocks, counters))) for one in found]
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


def _blocks(blocks: Iterable[Block], counters: Mapping[type, Iterator[int]]) -> Iterator[Html]:
    """The blocks as they follow, with the figures that stand together in one row."""
    for are_figures, group in groupby(blocks, lambda block: isinstance(block, Figure)):
        drawn = [_block(block, counters) for block in group]
        yield tag("div", *drawn, class_="figures") if are_figures else joined(*drawn)


def _block(block: Block, counters: Mapping[type, Iterator[int]]) -> Html:
    """A block; tables and figures are numbered, but for those that are folded."""
    match block:
        case Heading():
            return tag(f"h{block.level}", block.text)
        case Text():
            text = _coded(block.text)
            return tag("p", tag("strong", text) if block.strong else text)
        case Table():
            return _table(block, f"Table {next(counters[Table])}. " if counters else "")
        case Fold():
            summary = tag("summary", tag("h3", block.text))
            return tag("details", summary, *_blocks(block.blocks, {}))
        case Figure():
            number, file = next(counters[Figure]), f"figures/{block.name}.svg"
            image = tag("img", src=file, alt=block.caption) if block.file else block.svg
            said = tag("figcaption", tag("b", f"Figure {number}. "), f"{block.caption}. ")
            address = tag("a", "SVG", href=file, aria_label=f"Figure {number} as SVG")
            return tag("figure", image, said, address)


def _table(table: Table, number: str) -> Html:
    classes = ["number" if numeric(table.rows, i) else "" for i in range(len(table.header))]
    heads = (
        tag("th", name, scope="col", class_=kind or None)
        for name, kind in zip(table.header, classes, strict=True)
    )
    bar = table.header.index(table.bar) if table.bar else -1
    most = max((float(row[bar] or 0) for row in table.rows), default=0) if bar >= 0 else 0
    rows = []
    for row in table.rows:
        sums = sum(cell for cell in row if isinstance(cell, int)) or 1
        cells = []
        for i, (cell, kind) in enumerate(zip(row, classes, strict=True)):
            if table.heat and isinstance(cell, int):
                kind += f" heat h{cell * (SHADES - 1) // sums}"
            kind += " bar" if i == bar else ""
            inside = _cell(cell, table, most if i == bar else 0)
            own = {} if i else {"scope": "row"}
            cells.append(tag("td" if i else "th", inside, class_=kind or None, **own))
        rows.append(tag("tr", *cells))
    said = tag("span", tag("b", number), f"{table.caption}.")
    parts = tag("caption", said), tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    about = {"role": "group", "tabindex": 0, "aria_label": f"{number}{table.caption}"}
    size = "table narrow" if len(table.header) < 3 else "table"
    return tag("div", tag("table", *parts), class_=size, **about)


def _cell(cell: Cell, table: Table, most: float) -> Html:
    text = shown(cell, table.digits)
    if text in table.links:
        return link(text, table.links[text])
    if not most or not isinstance(cell, int | float):
        return _coded(text)
    share = tag("rect", width=f"{100 * cell / most:.1f}%", height="100%")
    return joined(text, tag("svg", share, aria_hidden="true"))


def _coded(text: str) -> Html:
    """A text whose parts between backticks are code, as in Markdown."""
    parts = text.split("`")
    if not len(parts) % 2:
        return escaped(text)
    return joined(*(tag("code", part) if n % 2 else part for n, part in enumerate(parts)))
