"""Small charts as SVG: bars, a histogram, curves, and dots with intervals.

They are drawn about 370 units wide, for a column of text or a telephone. Colours are classes of
the page's style sheet, or of `alone` in a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from workflows.report.markup import Html, tag

WIDTH = 370
LINE = 17
"""The height of a line of text."""
LETTER = 6.1
"""The mean width of a letter."""

STYLE = """
text { font: 11px system-ui, sans-serif; fill: #23282d } .title { font-weight: 600 }
.muted { fill: #56606a } .grid { stroke: #d8dde2; fill: none } .axis { stroke: #56606a; fill: none }
.c0 { fill: #2b6a9b } .c1 { fill: #b06a10 } .c2 { fill: #3d7a46 } .c3 { fill: #9a4a8f }
.c4 { fill: #6b6fb3 } .c5 { fill: #7a6a3a } .c6 { fill: #1f7d7d }
.s0 { stroke: #2b6a9b } .s1 { stroke: #b06a10 } .s2 { stroke: #3d7a46 } .s3 { stroke: #9a4a8f }
.s4 { stroke: #6b6fb3 } .s5 { stroke: #7a6a3a } .s6 { stroke: #1f7d7d }
.line { fill: none; stroke-width: 1.8 }
"""
DOTS = 30


def alone(drawn: Html) -> str:
    """A chart as a file of its own, on white."""
    head, _, rest = drawn.partition(">")
    back = tag("rect", width="100%", height="100%", fill="#fff")
    return f'{head} xmlns="http://www.w3.org/2000/svg">{tag("style", Html(STYLE))}{back}{rest}\n'


def bars(
    title: str, rows: Mapping[str, Sequence[float | None]], series: Sequence[str], unit: str
) -> Html:
    """Horizontal bars from 0 to 1: for each row one of each series. None is drawn as no bar."""
    ticks = _ticks(0, 1)
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
                at = {"y": _n(y + thick * i), "height": thick - 1, "class_": f"c{i}"}
                parts.append(tag("rect", x=left, width=_n(x(value) - left), **at))
                label = {"x": _n(x(value) + 4), "y": _n(y + thick * i + 9), "class_": "muted"}
                parts.append(tag("text", f"{value:.3f}".rstrip("0").rstrip("."), **label))
    said = "; ".join(f"{n}: {', '.join(map(_number, row))}" for n, row in rows.items())
    return _svg(title, f"{' and '.join(series)}, in {unit}. {said}.", bottom + 2 * LINE, parts)


def histogram(title: str, counts: Sequence[int], low: float, high: float, unit: str) -> Html:
    """How many values are in each of equal steps from `low` to `high`."""
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
    said = (f"{low + step * i:.2f}: {count}" for i, count in enumerate(counts))
    about = f"The number of values from each of these lower bounds on: {', '.join(said)}."
    return _svg(title, about, bottom + 2 * LINE, parts)


def curves(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], x_unit: str, y_unit: str
) -> Html:
    """Lines through points `(x, y)`; a line of over 30 points has no dots."""
    points = [point for line in series.values() for point in line]
    ticks = _ticks(min(y for _, y in points), max(y for _, y in points))
    names = series if len(series) > 1 else ()
    left, top = 46, 3 * LINE + LINE * len(names)
    bottom = top + 150
    y = _scale(ticks, bottom, top)
    steps = _ticks(min(at for at, _ in points), max(at for at, _ in points), whole=True)
    x = _scale(steps, left + 8, WIDTH - 16)
    parts = [*_legend(names, left, stacked=True), *_y_axis(ticks, y, left)]
    parts += _x_axis(steps, x, bottom, bottom, x_unit)
    parts.append(tag("text", y_unit, x=4, y=_n(top - 16), class_="muted"))
    for number, line in enumerate(series.values()):
        path = " ".join(f"{_n(x(at))},{_n(y(value))}" for at, value in line)
        parts.append(tag("polyline", points=path, class_=f"line s{number}"))
        for at, value in line if len(line) <= DOTS else ():
            dot = {"cx": _n(x(at)), "cy": _n(y(value)), "r": 2.6, "class_": f"c{number}"}
            parts.append(tag("circle", **dot))
    said = []
    for name, line in series.items():
        shown = line if len(line) <= DOTS else (line[0], line[-1])
        said.append(f"{name}: {', '.join(f'{value:.4g} at {at:g}' for at, value in shown)}")
    return _svg(title, f"{y_unit} by {x_unit}. {'; '.join(said)}.", bottom + 2 * LINE, parts)


def dots(
    title: str,
    rows: Sequence[tuple[str, int, float, tuple[float, float] | None]],
    kinds: Sequence[str],
    unit: str,
) -> Html:
    """A dot and its interval for each row: `(name, number of its kind, value, interval)`."""
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
    said = (f"{name}: {value:.1f}" for name, _, value, _ in rows)
    return _svg(title, f"In {unit}. {'; '.join(said)}.", bottom + 2 * LINE, parts)


def _svg(title: str, about: str, height: float, parts: Iterable[Html]) -> Html:
    size = {"viewBox": f"0 0 {WIDTH} {_n(height)}", "width": WIDTH, "height": _n(height)}
    head = tag("text", title, x=4, y=13, class_="title")
    described = (tag("title", title), tag("desc", about))
    return tag("svg", *described, head, *parts, role="img", aria_label=title, **size)


def _legend(names: Iterable[str], left: float, *, stacked: bool = False) -> list[Html]:
    parts, x, y = [], left, 28
    for number, name in enumerate(names):
        if not name:
            continue
        parts.append(tag("rect", x=_n(x), y=y - 8, width=9, height=9, class_=f"c{number}"))
        parts.append(tag("text", name, x=_n(x + 13), y=y, class_="muted"))
        x, y = (left, y + LINE) if stacked else (x + 13 + LETTER * len(name) + 14, y)
    return parts


def _x_axis(ticks: Sequence[float], x: Any, top: float, bottom: float, unit: str) -> list[Html]:
    parts = []
    for tick in ticks:
        at = _n(x(tick))
        if bottom > top:
            parts.append(tag("line", x1=at, x2=at, y1=_n(top), y2=_n(bottom), class_="grid"))
        place = {"x": at, "y": _n(bottom + 13), "text_anchor": "middle"}
        parts.append(tag("text", _number(tick), **place, class_="muted"))
    ends = {"x1": _n(x(ticks[0])), "x2": _n(x(ticks[-1]))}
    parts.append(tag("line", **ends, y1=_n(bottom), y2=_n(bottom), class_="axis"))
    middle = {"x": _n((x(ticks[0]) + x(ticks[-1])) / 2), "y": _n(bottom + 28)}
    parts.append(tag("text", unit, **middle, text_anchor="middle", class_="muted"))
    return parts


def _y_axis(ticks: Sequence[float], y: Any, left: float) -> list[Html]:
    parts = []
    for tick in ticks:
        at = _n(y(tick))
        parts.append(tag("line", x1=left, x2=WIDTH - 12, y1=at, y2=at, class_="grid"))
        place = {"x": left - 5, "y": _n(y(tick) + 4), "text_anchor": "end"}
        parts.append(tag("text", _number(tick), **place, class_="muted"))
    return parts


def _margin(names: Iterable[str]) -> float:
    """Where bars start: right of the longest name, but in the left half."""
    return min(178.0, 14 + LETTER * max((len(name) for name in names), default=0))


def _name(name: str, left: float, y: float) -> Html:
    room = int((left - 12) / LETTER)
    short = name if len(name) <= room else f"{name[: room - 1]}…"
    return tag("text", short, x=_n(left - 6), y=_n(y + 4), text_anchor="end")


def _scale(ticks: Sequence[float], start: float, end: float) -> Any:
    low, span = ticks[0], (ticks[-1] - ticks[0]) or 1
    return lambda value: start + (value - low) / span * (end - start)


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers from `low` or below to `high` or above, four to seven of them."""
    span = (high - low) or abs(high) or 1
    power = 10 ** floor(log10(span / 4))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if span / (power * n) <= 5)
    step = max(1, ceil(step)) if whole else step
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [round(step * n, 10) for n in range(first, max(last, first + 1) + 1)]


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    whole = value == int(value)
    return f"{int(value):,}" if whole else f"{value:.3g}" if abs(value) < 1 else f"{value:,.4g}"


def _n(value: float) -> str:
    """A coordinate: equal bytes on every machine."""
    return f"{value:.1f}".removesuffix(".0")
