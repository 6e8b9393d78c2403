"""Small charts as SVG: bars, a histogram, curves, dots with intervals, and a heat map.

They are drawn about 370 units wide, for a column of text or a telephone. Colours are classes of
the page's style sheet, or of `alone` in a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from statistics import fmean, pstdev
from typing import Any

from corpora.pictures import GRID, MUTED, PALETTE, TEXT
from workflows.report.markup import Html, tag

WIDTH = 370
LINE = 17
"""The height of a line of text."""
LETTER = 6.1
"""The mean width of a letter."""

STYLE = f"""
text {{ font: 11px system-ui, sans-serif; fill: {TEXT} }} .title {{ font-weight: 600 }}
.muted {{ fill: {MUTED} }} .grid {{ stroke: {GRID}; fill: none }}
.axis {{ stroke: {MUTED}; fill: none }} .line {{ fill: none; stroke-width: 1.8 }}
""" + "".join(
    f".c{i} {{ fill: {colour} }} .s{i} {{ stroke: {colour} }}\n" for i, colour in enumerate(PALETTE)
)
DOTS = 30
"""Maximum points of a line that is drawn with dots."""


def alone(chart: Html) -> str:
    """Return a chart as the content of an SVG file of its own, on a white ground."""
    head, _, rest = chart.partition(">")
    back = tag("rect", width="100%", height="100%", fill="#fff")
    return f'{head} xmlns="http://www.w3.org/2000/svg">{tag("style", Html(STYLE))}{back}{rest}\n'


def bars(
    title: str, rows: Mapping[str, Sequence[float | None]], series: Sequence[str], unit: str
) -> Html:
    """Draw horizontal bars from 0 to 1, or further for a larger value.

    Each row has one value for each series (None: no bar).
    """
    ticks = _ticks(0, max([1, *(value for row in rows.values() for value in row if value)]))
    left = _margin(rows)
    x = _scale(ticks, left, WIDTH - 40)
    thick = 11
    height = thick * len(series) + 7
    top = 3 * LINE
    bottom = top + height * len(rows)
    parts = [*_legend(series, 8), *_x_axis(ticks, x, top, bottom, unit)]
    for number, (name, row) in enumerate(rows.items()):
        y = top + height * number + 3.5
        parts.append(_name(name, left, y + thick * len(series) / 2))
        for i, value in enumerate(row):
            if value is not None:
                bar = {"y": _n(y + thick * i), "height": thick - 1, "class_": f"c{i}"}
                parts.append(tag("rect", x=left, width=_n(x(value) - left), **bar))
                label = {"x": _n(x(value) + 4), "y": _n(y + thick * i + 9), "class_": "muted"}
                parts.append(tag("text", _bar_label(value), **label))
    values = "; ".join(f"{name}: {', '.join(map(_number, row))}" for name, row in rows.items())
    description = f"{' and '.join(series)}, in {unit}. {values}."
    return _svg(title, description, bottom + 2 * LINE, parts)


def _bar_label(value: float) -> str:
    """Format the value at the end of a bar: a count, or a share with at most three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")


def histogram(title: str, counts: Sequence[int], low: float, high: float, unit: str) -> Html:
    """Draw the counts of values in equal steps from `low` to `high`."""
    ticks = _ticks(0, max(counts))
    left, top, bottom = 46, 2 * LINE, 190
    y = _scale(ticks, bottom, top)
    x = _scale([low, high], left, WIDTH - 12)
    step = (high - low) / len(counts)
    parts = _y_axis(ticks, y, left)
    for number, count in enumerate(counts):
        start, end = x(low + step * number), x(low + step * (number + 1))
        size = {"width": _n(end - start - 1), "height": _n(bottom - y(count))}
        parts.append(tag("rect", x=_n(start + 0.5), y=_n(y(count)), **size, class_="c0"))
    parts += _x_axis(_ticks(low, high), x, bottom, bottom, unit)
    values = ", ".join(f"{low + step * i:.2f}: {count}" for i, count in enumerate(counts))
    description = f"The number of values from each of these lower bounds on: {values}."
    return _svg(title, description, bottom + 2 * LINE, parts)


def curves(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], x_unit: str, y_unit: str
) -> Html:
    """Draw lines through points `(x, y)`; a line of more than `DOTS` points has no dots."""
    points = [point for line in series.values() for point in line]
    ticks = _ticks(min(y for _, y in points), max(y for _, y in points))
    names = series if len(series) > 1 else ()
    left, top = 46, 3 * LINE + LINE * len(names)
    bottom = top + 150
    y = _scale(ticks, bottom, top)
    x_ticks = _ticks(min(step for step, _ in points), max(step for step, _ in points), whole=True)
    x = _scale(x_ticks, left + 8, WIDTH - 16)
    parts = [*_legend(names, left, stacked=True), *_y_axis(ticks, y, left)]
    parts += _x_axis(x_ticks, x, bottom, bottom, x_unit)
    parts.append(tag("text", y_unit, x=4, y=_n(top - 16), class_="muted"))
    for number, line in enumerate(series.values()):
        path = " ".join(f"{_n(x(step))},{_n(y(value))}" for step, value in line)
        parts.append(tag("polyline", points=path, class_=f"line s{number}"))
        for step, value in line if len(line) <= DOTS else ():
            dot = {"cx": _n(x(step)), "cy": _n(y(value)), "r": 2.6, "class_": f"c{number}"}
            parts.append(tag("circle", **dot))
    values = []
    for name, line in series.items():
        described = line if len(line) <= DOTS else (line[0], line[-1])
        values.append(f"{name}: {', '.join(f'{value:.4g} at {x:g}' for x, value in described)}")
    return _svg(title, f"{y_unit} by {x_unit}. {'; '.join(values)}.", bottom + 2 * LINE, parts)


def dots(
    title: str,
    rows: Sequence[tuple[str, int, float, tuple[float, float] | None]],
    kinds: Sequence[str],
    unit: str,
) -> Html:
    """Draw a dot and an interval for each row `(name, index in `kinds`, value, interval)`."""
    values = [v for _, _, value, interval in rows for v in (value, *(interval or ()))]
    ticks = _ticks(min(values), max(values))
    left = _margin([name for name, *_ in rows])
    x = _scale(ticks, left + 6, WIDTH - 14)
    top = 3 * LINE
    bottom = top + LINE * len(rows)
    used = {kind for _, kind, *_ in rows}
    named = [name if number in used else "" for number, name in enumerate(kinds)]
    parts = [*_legend(named, 8), *_x_axis(ticks, x, top, bottom, unit)]
    for number, (name, kind, value, interval) in enumerate(rows):
        y = top + LINE * number + LINE / 2
        parts.append(_name(name, left, y))
        if interval:
            ends = {"x1": _n(x(interval[0])), "x2": _n(x(interval[1]))}
            parts.append(tag("line", **ends, y1=_n(y), y2=_n(y), class_=f"line s{kind}"))
        parts.append(tag("circle", cx=_n(x(value)), cy=_n(y), r=3.6, class_=f"c{kind}"))
    described = "; ".join(f"{name}: {value:.1f}" for name, _, value, _ in rows)
    return _svg(title, f"In {unit}. {described}.", bottom + 2 * LINE, parts)


def heat(title: str, rows: Mapping[str, Mapping[str, float]], columns: Sequence[str]) -> Html:
    """Draw a square for each number, the darker the further above the mean of its column.

    The shades run over two standard deviations on both sides of the mean.
    """
    left = _margin(rows)
    wide, top = (WIDTH - left - 8) / len(columns), 5 * LINE
    parts = [_name(name, left, top + LINE * (i + 0.5)) for i, name in enumerate(rows)]
    for number, column in enumerate(columns):
        x = left + wide * number
        turned = f"translate({_n(x + wide / 2 + 4)} {top - 5}) rotate(-90)"
        parts.append(tag("text", column, transform=turned, class_="muted"))
        values = [row[column] for row in rows.values() if column in row]
        mean, deviation = (fmean(values), pstdev(values)) if values else (0.0, 0.0)
        for line, row in enumerate(rows.values()):
            if column in row:
                shade = (row[column] - mean) / (4 * deviation) if deviation else 0.0
                size = {"width": _n(wide - 1), "height": LINE - 1}
                opacity = _n(min(1, max(0.05, 0.5 + shade)))
                place = {"x": _n(x), "y": top + LINE * line, "fill_opacity": opacity}
                parts.append(tag("rect", **place, **size, class_="c0"))
    described = "; ".join(
        f"{name}: {', '.join(f'{column} {value:.1f}' for column, value in row.items())}"
        for name, row in rows.items()
    )
    return _svg(title, f"{described}.", top + LINE * len(rows) + 8, parts)


def _svg(title: str, description: str, height: float, parts: Iterable[Html]) -> Html:
    """Put the parts of a chart below its title; `description` is for readers who cannot see it."""
    size = {"viewBox": f"0 0 {WIDTH} {_n(height)}", "width": WIDTH, "height": _n(height)}
    head = tag("text", title, x=4, y=13, class_="title")
    texts = (tag("title", title), tag("desc", description))
    return tag("svg", *texts, head, *parts, role="img", aria_label=title, **size)


def _legend(names: Iterable[str], left: float, *, stacked: bool = False) -> list[Html]:
    """Draw a square and a name for each series, side by side or `stacked`."""
    parts, x, y = [], left, 28
    for number, name in enumerate(names):
        if not name:
            continue
        parts.append(tag("rect", x=_n(x), y=y - 8, width=9, height=9, class_=f"c{number}"))
        parts.append(tag("text", name, x=_n(x + 13), y=y, class_="muted"))
        x, y = (left, y + LINE) if stacked else (x + 13 + LETTER * len(name) + 14, y)
    return parts


def _x_axis(ticks: Sequence[float], x: Any, top: float, bottom: float, unit: str) -> list[Html]:
    """Draw the axis at `bottom` with its unit, and grid lines up to `top`; `x` scales values."""
    parts = []
    for tick in ticks:
        tick_x = _n(x(tick))
        if bottom > top:
            grid = {"x1": tick_x, "x2": tick_x, "y1": _n(top), "y2": _n(bottom)}
            parts.append(tag("line", **grid, class_="grid"))
        place = {"x": tick_x, "y": _n(bottom + 13), "text_anchor": "middle"}
        parts.append(tag("text", _number(tick), **place, class_="muted"))
    ends = {"x1": _n(x(ticks[0])), "x2": _n(x(ticks[-1]))}
    parts.append(tag("line", **ends, y1=_n(bottom), y2=_n(bottom), class_="axis"))
    middle = {"x": _n((x(ticks[0]) + x(ticks[-1])) / 2), "y": _n(bottom + 28)}
    parts.append(tag("text", unit, **middle, text_anchor="middle", class_="muted"))
    return parts


def _y_axis(ticks: Sequence[float], y: Any, left: float) -> list[Html]:
    """Draw a grid line and a number for each tick; `y` gives the coordinate of a value."""
    parts = []
    for tick in ticks:
        tick_y = _n(y(tick))
        parts.append(tag("line", x1=left, x2=WIDTH - 12, y1=tick_y, y2=tick_y, class_="grid"))
        place = {"x": left - 5, "y": _n(y(tick) + 4), "text_anchor": "end"}
        parts.append(tag("text", _number(tick), **place, class_="muted"))
    return parts


def _margin(names: Iterable[str]) -> float:
    """Return the x coordinate where bars start: right of the longest name, but at most 178."""
    return min(178.0, 14 + LETTER * max((len(name) for name in names), default=0))


def _name(name: str, left: float, y: float) -> Html:
    """Draw the name of a row, which ends at `left`; a long one is cut."""
    letters = int((left - 12) / LETTER)
    short = name if len(name) <= letters else f"{name[: letters - 1]}…"
    return tag("text", short, x=_n(left - 6), y=_n(y + 4), text_anchor="end")


def _scale(ticks: Sequence[float], start: float, end: float) -> Any:
    """Return the function from values to coordinates that puts the ticks at `start` to `end`."""
    low, span = ticks[0], (ticks[-1] - ticks[0]) or 1
    return lambda value: start + (value - low) / span * (end - start)


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return four to seven round numbers that span `low` to `high`; `whole`: integers only."""
    span = (high - low) or abs(high) or 1
    power = 10 ** floor(log10(span / 4))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if span / (power * n) <= 5)
    step = max(1, ceil(step)) if whole else step
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(step * n, 10) for n in range(first, max(last, first + 1) + 1)]


def _number(value: float | None) -> str:
    """Format a value of a chart: `1,234`, `0.12`, or `none`."""
    if value is None:
        return "none"
    whole = value == int(value)
    return f"{int(value):,}" if whole else f"{value:.3g}" if abs(value) < 1 else f"{value:,.4g}"


def _n(value: float) -> str:
    """Format a coordinate with one decimal, so that it has equal bytes on every machine."""
    return f"{value:.1f}".removesuffix(".0")
