"""The figures of a validation as Markdown tables, with where the trees come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from corpora.intervals import FEW

Result = Mapping[str, Any]

_STRICT_HEAD = (
    "| marker | extracted | gold | P | R | F1 [95 %] | exact F1 | Dice F1 [95 %] |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
)
_PAPER_HEAD = (
    "| marker | extracted | error, min < .7 | its control | distance "
    "| error, max ≤ .3 | its control | distance |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
)


def to_markdown(result: Result) -> str:
    """The result of `validate` as Markdown: overall and per marker, all and unseen documents.

    A figure with nothing to divide by is shown as a dash.
    """
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    seen, unseen = (result["documents"][key] for key in ("seen", "unseen"))
    trees = result["settings"].get("trees", "trees of a source that was not stated")
    if seen and unseen:
        yield f"## {unseen} documents that the parser was not trained on: {trees}"
        yield from ("", *_section(result["unseen"]))
    told = f", {seen} of them seen in training" if seen else ""
    yield f"## {'All ' if seen and unseen else ''}{seen + unseen} documents{told}: {trees}"
    yield from ("", *_section(result))
    yield from _notes(result["settings"], "unseen" if unseen else "occurrence")


def _section(blocks: Result) -> Iterator[str]:
    yield from ("### Marker and arguments", "", *_STRICT_HEAD)
    for name, row in _rows(blocks["strict"]):
        yield _cells(name, row["extracted"], row["gold"], *_strict_cells(row))
    if any(0 < row["documents"] < FEW for _, row in _rows(blocks["strict"])):
        yield (
            f"\nWhere no interval stands, fewer than {FEW} documents have pairs or gold relations: "
            "it would say nothing."
        )
    yield from ("", "### Alignment as in the paper, with the control beside it", "", *_PAPER_HEAD)
    for name, own in _rows(blocks["paper"]["criterion_paper"]):
        cells = (cell for key in _CRITERIA for cell in _paper_cells(blocks, key, name))
        yield _cells(name, own["extracted"], *cells)
    yield ""


_CRITERIA = ("criterion_paper", "criterion_strict")


def _rows(block: Result) -> Iterator[tuple[str, Result]]:
    yield "all", block["overall"]
    yield from block["per_marker"].items()


def _strict_cells(row: Result) -> Iterator[str]:
    occurrence = row["occurrence"]
    yield from (_number(occurrence["p"]), _number(occurrence["r"]), _with_interval(occurrence))
    yield from (_number(row["exact"]["f1"]), _with_interval(row["dice"]))


def _paper_cells(blocks: Result, criterion: str, name: str) -> Iterator[str]:
    own, control = (dict(_rows(blocks[view][criterion]))[name] for view in ("paper", "control"))
    yield from map(_number, (own["error_rate"], control["error_rate"], own["distance"]))


def _notes(settings: Result, documents: str) -> Iterator[str]:
    multiword = settings["multiword"]
    others = ", ".join(
        f"{name}: {_number(scores['f1'])}" for name, scores in multiword[documents].items()
    )
    yield (
        f"Occurrence F1 by policy for a marker inside a gold connective of several words "
        f"(shown: {multiword['policy']}): {others}."
    )
    yield "\n" + _in_words(settings["paper"]["in_words"])
    empty = settings["empty_connective"]
    if empty["gold"]:
        yield (
            f"\nGold relations whose connective has no span: {empty['gold']}, in no figure above; "
            f"arguments found for {empty['dice']} of them (Dice), {empty['exact']} exactly."
        )
    if settings["left_out"]:
        left_out = (
            f"{reason.replace('_', ' ')}: {n}" for reason, n in settings["left_out"].items()
        )
        yield "\nLeft out: " + ", ".join(left_out) + "."


def _in_words(views: Result) -> str:
    """The other reading of the paper's distance, with its control."""
    said = []
    for criterion, name in zip(_CRITERIA, ("min < .7", "max ≤ .3"), strict=True):
        errors = (_number(views[view][criterion]["error_rate"]) for view in ("paper", "control"))
        said.append(f"{name} {' (control '.join(errors)})")
    return (
        "The distances are counted in characters. Counted in words, the share not aligned is: "
        f"{', '.join(said)}."
    )


def _cells(*values: object) -> str:
    return "| " + " | ".join(str(value) for value in values) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def _with_interval(scores: Result) -> str:
    if scores["ci"] is None:
        return _number(scores["f1"])
    return f"{_number(scores['f1'])} [{_number(scores['ci'][0])}, {_number(scores['ci'][1])}]"
