"""Report a validation: Markdown tables, and plots like figures 2 and 3 of the DisSent paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.errors import amount
from corpora.escape import markdown
from corpora.intervals import FEW
from corpora.lengths import MAX_RATIO, MAX_WORDS, MIN_WORDS
from corpora.pictures import MATPLOTLIB
from extract.validate.distances import PAPER, STRICT, Aligned
from extract.validate.scoring import Blocks, Validation
from extract.validate.strict import Score

_STRICT_HEAD = (
    "| marker | extracted | gold | P | R | F1 [95 %] | exact F1 | Dice F1 [95 %] |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
)
_PAPER_HEAD = (
    "| marker | extracted | error, min < .7 | its control | distance "
    "| error, max ≤ .3 | its control | distance | error, max < .7 in words, same marker |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)
_ALIGNMENT = (
    "How near pairs come to gold pairs. `error` is the share of pairs that no gold pair is near "
    "enough to, by the distances of both sides (Levenshtein's over the length of the longer text: "
    "0 is equal, 1 has nothing in common): the smaller one below .7, as the paper words it, or "
    "the larger one at most .3. `its control` is the same with gold of other documents, where it "
    "should be 1: near 0, the criterion accepts anything, and its error tells nothing. `distance` "
    "is the mean of the pairs that are near enough."
)
_PANELS = {PAPER: "paper's criterion: min < .7", STRICT: "strict criterion: max ≤ .3"}
Heights = Mapping[str, float | None]
"""The height of each bar, by the marker or distance below it."""


def _error_rates(view: Aligned) -> Heights:
    """Return the share of pairs that are not aligned by marker (figure 2)."""
    return {name: row["error_rate"] for name, row in view["per_marker"].items()}


def _distances(view: Aligned) -> Heights:
    """Return the number of aligned pairs by the lower end of their distance's tenth (figure 3)."""
    return view["histogram"]


_FIGURES: tuple[tuple[str, Callable[[Aligned], Heights], str, str], ...] = (
    ("figure2_error_rate", _error_rates, "Extraction error rate", "share not aligned"),
    ("figure3_distance", _distances, "Aligned pairs by distance in characters", "aligned pairs"),
)
_VIEWS = ("gold of all documents", "gold of other documents only (control)")


def to_markdown(result: Validation) -> str:
    """Return the result of `validate` as Markdown: overall and by marker, all and unseen documents.

    An undefined figure (denominator 0) is shown as a dash.
    """
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Validation) -> Iterator[str]:
    """Yield the lines of the report: tables over unseen and over all documents, and notes."""
    seen, unseen = (result["documents"][key] for key in ("seen", "unseen"))
    trees = result["settings"].get("trees", "trees of an unknown source")
    if seen and unseen:
        yield f"## {amount(unseen, 'document')} that the parser was not trained on: {trees}"
        yield from ("", *_tables(result["unseen"]))
    remark = f", {seen} of them seen in training" if seen else ""
    count = amount(seen + unseen, "document")
    yield f"## {'All ' if seen and unseen else ''}{count}{remark}: {trees}"
    yield from ("", *_tables(result))
    yield from _notes(result["settings"], "unseen" if unseen else "occurrence")


def _tables(blocks: Blocks) -> Iterator[str]:
    """Yield the lines of two tables: strict scores by marker, and the paper's alignment."""
    yield from ("### Marker and arguments", "", *_STRICT_HEAD)
    rows = {"all": blocks["strict"]["overall"], **blocks["strict"]["per_marker"]}
    for name, row in rows.items():
        occurrence = row["occurrence"]
        yield cells(
            name,
            row["extracted"],
            row["gold"],
            decimal(occurrence["p"]),
            decimal(occurrence["r"]),
            with_interval(occurrence),
            decimal(row["exact"]["f1"]),
            with_interval(row["dice"]),
        )
    if any(0 < row["documents"] < FEW for row in rows.values()):
        yield (
            f"\nWhere no interval stands, fewer than {FEW} documents have pairs or gold relations: "
            "it would say nothing."
        )
    yield from ("", "### Alignment as in the paper, with its control", "", _ALIGNMENT, "")
    yield from _PAPER_HEAD
    for name in rows:
        values: list[object] = [name, rows[name]["extracted"]]
        for criterion in (PAPER, STRICT):
            paper, control = (
                {"all": view[criterion]["overall"], **view[criterion]["per_marker"]}[name]
                for view in (blocks["paper"], blocks["control"])
            )
            values += map(decimal, (paper["error_rate"], control["error_rate"], paper["distance"]))
        nearest = blocks["nearest"]
        aligned = nearest["overall"] if name == "all" else nearest["per_marker"][name]
        yield cells(*values, decimal(aligned["error_rate"]))
    yield ""


def _notes(settings: dict[str, Any], documents: str) -> Iterator[str]:
    """Yield the lines under the tables: connectives of several words, and what was left out."""
    multiword = settings["multiword"]
    policies = ", ".join(
        f"{name}: {decimal(scores['f1'])}" for name, scores in multiword[documents].items()
    )
    yield (
        f"Occurrence F1 by policy for a marker inside a gold connective of several words "
        f"(shown: {multiword['policy']}): {policies}."
    )
    views, shares = settings["paper"]["in_words"], []
    for criterion, name in ((PAPER, "min < .7"), (STRICT, "max ≤ .3")):
        errors = (decimal(views[view][criterion]["error_rate"]) for view in ("paper", "control"))
        shares.append(f"{name} {' (control '.join(errors)})")
    yield f"\nDistances are in characters. In words, the share not aligned is: {', '.join(shares)}."
    empty = settings["empty_connective"]
    if empty["gold"]:
        yield (
            f"\nGold relations whose connective has no span: {empty['gold']}, in no figure above; "
            f"arguments found for {empty['dice']} of them (Dice), {empty['exact']} exactly."
        )
    if settings.get("filters"):
        words = f"{MIN_WORDS} to {MAX_WORDS} words a side, a ratio of at most {MAX_RATIO:g}"
        yield f"\nPairs, and relations of the strict scores, of fit lengths: {words}."
    if settings["left_out"]:
        counts = (f"{why.replace('_', ' ')}: {n}" for why, n in settings["left_out"].items())
        yield "\nLeft out: " + ", ".join(counts) + "."


def cells(*values: object) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(map(markdown, values)) + " |"


def decimal(value: float | None) -> str:
    """Return a share with three decimals, `.512` or `1.000`, or a dash for None."""
    if value is None:
        return "–"
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def with_interval(scores: Score) -> str:
    """Return F1 as text, with its interval if it has one."""
    if scores["ci"] is None:
        return decimal(scores["f1"])
    return f"{decimal(scores['f1'])} [{decimal(scores['ci'][0])}, {decimal(scores['ci'][1])}]"


def plot(result: Validation, folder: Path) -> list[Path]:
    """Write both plots, each with its control beside it, as SVG and PNG; return their paths.

    They show the unseen documents if there are any, else all. The same result gives the same bytes
    with one version of matplotlib. Raises `OSError` if a file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    seen, unseen = (result["documents"][key] for key in ("seen", "unseen"))
    blocks: Blocks = result["unseen"] if unseen else result
    over = f"{unseen or seen} {'unseen ' if seen and unseen else ''}documents"
    trees = result["settings"].get("trees")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with rc_context(MATPLOTLIB):
        for name, heights, title, unit in _FIGURES:
            figure = Figure(figsize=(10, 4.2), layout="constrained")
            # Without pyplot: no window system, and no state shared between plots.
            FigureCanvasAgg(figure)
            axes = figure.subplots(1, len(_PANELS), sharey=True)
            for axis, (criterion, label) in zip(axes, _PANELS.items(), strict=True):
                views = (blocks["paper"][criterion], blocks["control"][criterion])
                _bars(axis, [heights(view) for view in views])
                axis.set_title(label)
            axes[0].set_ylabel(unit)
            figure.suptitle(f"{title}, {over}" + (f", {trees}" if trees else ""), fontsize=10)
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
            for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                paths.append(folder / f"{name}.{suffix}")
                figure.savefig(paths[-1], format=suffix, metadata=metadata, dpi=120)
                figure.set_layout_engine("none")  # both have one layout, which takes long
    return paths


def _bars(axis: Any, views: Sequence[Heights]) -> None:
    """Draw a group of bars for each marker or distance: one bar for each of the `views`."""
    names, width = list(views[0]), 0.4
    for number, (heights, label) in enumerate(zip(views, _VIEWS, strict=True)):
        places = [place + (number - 0.5) * width for place in range(len(names))]
        # A marker without pairs gets no bar, rather than one of height 0.
        values = [float("nan") if heights[name] is None else heights[name] for name in names]
        axis.bar(places, values, width, label=label)
    axis.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axis.set_ylim(bottom=0)
