"""The report as a folder that opens from disk: `index.html`, `report.md`, figures, examples."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any

from corpora.audit import built
from corpora.audit.data import Configuration
from corpora.store.atomic import sha256
from workflows.report import charts
from workflows.report.blocks import (
    Block,
    Cell,
    Figure,
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
POLICY = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:"
"""What the page may load: the files beside it, and nothing else."""
SHADES = 10
"""Of the cells of a confusion matrix, from none to all of a row."""


def assets_hash() -> str:
    """Of the style sheet and the script, which are part of what a report is made of."""
    return "".join(sha256(path)[:8] for path in sorted(ASSETS.iterdir()))


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
    for path in sorted(ASSETS.iterdir()):
        shutil.copyfile(path, folder / path.name)
    examples = write_data(datasets, folder)
    counters = {Table: count(1), Figure: count(1)}
    parts = [(one.id, one.title, _blocks(one.blocks, counters)) for one in found]
    if examples:
        before = next((n + 1 for n, part in enumerate(parts) if part[0] == "datasets"), 0)
        parts.insert(before, ("examples", "Examples", _browser()))
    page = _page(title, numbers, parts)
    (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return examples


def _page(title: str, numbers: Mapping[str, str], parts: Sequence[tuple[str, str, Html]]) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", f"{title}: discorpora"),
        tag("link", rel="stylesheet", href="report.css"),
        tag("script", src="report.js"),
        tag("script", src="data/index.js", defer=True),
    )
    figures = (tag("div", tag("dt", name), tag("dd", value)) for name, value in numbers.items())
    top = tag(
        "header",
        tag("p", "discorpora", class_="kicker"),
        tag("h1", title),
        tag("dl", *figures, class_="numbers") if numbers else "",
        tag("button", "Theme: system", id="theme", type="button", hidden=True),
    )
    entries = (tag("li", tag("a", name, href=f"#{id}")) for id, name, _ in parts)
    contents = tag("nav", tag("ol", *entries), aria_label="Contents")
    bodies = (tag("section", tag("h2", name), body, id=id) for id, name, body in parts)
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    body = tag("body", skip, top, contents, tag("main", *bodies, id="main", tabindex=-1))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _blocks(blocks: Sequence[Block], counters: Mapping[type, Iterator[int]]) -> Html:
    """The blocks as they follow; those under a heading that folds in an element that opens."""
    parts: list[Html] = []
    into, summary = parts, Html("")
    for are_figures, group in groupby(blocks, lambda block: isinstance(block, Figure)):
        if are_figures:
            figures = (one for one in group if isinstance(one, Figure))
            drawn = (_figure(one, next(counters[Figure])) for one in figures)
            into.append(tag("div", *drawn, class_="figures"))
            continue
        for one in group:
            if isinstance(one, Heading) and one.level == 3:
                if into is not parts:
                    parts.append(tag("details", tag("summary", summary), *into))
                into, summary = [] if one.fold else parts, tag("h3", one.text)
                if one.fold:
                    continue
            into.append(_block(one, counters if into is parts else {}))
    if into is not parts:
        parts.append(tag("details", tag("summary", summary), *into))
    return joined(*parts)


def _block(block: Block, counters: Mapping[type, Iterator[int]]) -> Html:
    if isinstance(block, Heading):
        return tag(f"h{block.level}", block.text)
    if isinstance(block, Table):
        return _table(block, f"Table {next(counters[Table])}. " if counters else "")
    assert isinstance(block, Text)
    text = _coded(block.text)
    return tag("p", tag("strong", text) if block.strong else text)


def _figure(figure: Figure, number: int) -> Html:
    file = f"figures/{figure.name}.svg"
    image = tag("img", src=file, alt=figure.caption) if figure.file else figure.svg
    said = tag("figcaption", tag("b", f"Figure {number}. "), f"{figure.caption}. ")
    return tag(
        "figure", image, said, tag("a", "SVG", href=file, aria_label=f"Figure {number} as SVG")
    )


def _table(table: Table, number: str) -> Html:
    right = [numeric(table.rows, i) for i in range(len(table.header))]
    heads = (
        tag("th", name, scope="col", class_=_right(is_right))
        for name, is_right in zip(table.header, right, strict=True)
    )
    bar = table.header.index(table.bar) if table.bar else -1
    most = max((float(row[bar] or 0) for row in table.rows), default=0) if bar >= 0 else 0
    rows = []
    for row in table.rows:
        sums = sum(cell for cell in row if isinstance(cell, int)) or 1
        cells = []
        for i, cell in enumerate(row):
            classes = _right(right[i]) or ""
            if table.heat and isinstance(cell, int):
                classes += f" heat h{cell * (SHADES - 1) // sums}"
            if i == bar:
                classes += " bar"
            inside = _cell(cell, table, most if i == bar else 0)
            own = {"scope": "row"} if i == 0 else {}
            cells.append(tag("td" if i else "th", inside, class_=classes or None, **own))
        rows.append(tag("tr", *cells))
    said = tag("span", tag("b", number), f"{table.caption}.")
    parts = tag("caption", said), tag("thead", tag("tr", *heads)), tag("tbody", *rows)
    name = f"{number}{table.caption}"
    kind = "table narrow" if len(table.header) < 3 else "table"
    return tag("div", tag("table", *parts), class_=kind, role="group", tabindex=0, aria_label=name)


def _right(is_right: bool) -> str | None:
    return "number" if is_right else None


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
    whole = len(parts) % 2
    coded = (tag("code", part) if n % 2 and whole else part for n, part in enumerate(parts))
    return joined(*coded) if whole else escaped(text)


def _browser() -> Html:
    """The controls of the example browser, which its script fills."""

    def labelled(text: str, control: Html, **attributes: Any) -> Html:
        return tag("label", tag("span", text), control, **attributes)

    number = {"type": "number", "min": 0, "max": 1, "step": 0.05}
    orders = ("as built", "most confident first", "least confident first")
    controls = tag(
        "form",
        labelled("Dataset", tag("select", id="set")),
        labelled("Search", tag("input", id="query", type="search", autocomplete="off")),
        tag("div", id="facets"),
        tag(
            "div",
            labelled("Confidence from", tag("input", id="least", value=0, **number)),
            labelled("to", tag("input", id="most", value=1, **number)),
            labelled("Sort", tag("select", *(tag("option", o) for o in orders), id="order")),
            id="confidence",
        ),
        role="search",
        aria_label="Filter the examples",
    )
    marks = (("s1", "S1"), ("marker", "marker"), ("s2", "S2"), ("changed", "changed sentence"))
    legend = (tag("mark", name, class_=kind) for kind, name in marks)
    panes = tag(
        "div",
        tag("div", id="list", role="listbox", tabindex=0, aria_label="Examples"),
        tag("div", id="detail", role="region", tabindex=0, aria_label="The chosen example"),
        class_="panes",
    )
    hint = "All words that you search for are in an example; a “quoted phrase” is found as it is. "
    keys = "In the list the arrow keys, Page Up, Page Down, Home and End choose an example."
    return joined(
        tag("p", hint, keys, class_="note"),
        tag("div", controls, tag("p", id="count", role="status"), id="browser", hidden=True),
        tag("p", *legend, class_="legend"),
        panes,
        tag("noscript", tag("p", "The examples need JavaScript, which this browser does not run.")),
    )
