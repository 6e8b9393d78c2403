"""What a suite's result shows in a table: its columns, and the rules that stand beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as it is shown: percent, but for alpha and nats; with its interval."""

    value: float
    ci: tuple[float, float] | None = None
    digits: int = 1
    sd: float | None = None
    """Over trainings with several seeds."""
    units: int | None = None
    """Where they are too few for an interval."""
    n: int | None = None
    """Of how many examples it is, where the result says so."""
    of: tuple[str, ...] = ()
    """What it is the mean of: a task's domains, or the probes."""

    @property
    def text(self) -> str:
        shown = f"{self.value:.{self.digits}f}"
        if self.sd is not None:
            return f"{shown} ± {self.sd:.{self.digits}f}"
        if self.units is not None:
            return f"{shown} ({self.units} units)"
        if self.ci is None:
            return shown
        return f"{shown} [{self.ci[0]:.{self.digits}f}, {self.ci[1]:.{self.digits}f}]"


Cells = dict[str, Cell]
Rows = dict[str, Cells]
"""Rows by name; the model's own has the name ""."""


def rows_of(result: Result) -> Rows:
    """The model's row (named "") and those of the rules beside it, from a suite's result."""
    found = SUITES.get(str(result.get("suite")), _any_suite)(result)
    return {name: cells for name, cells in found.items() if cells or not name}


def percent(figure: Any, n: int | None = None) -> Cell:
    """A share of `n` examples, or `{"value": share, "ci": [low, high]}`, in percent."""
    return _cell(figure, 100, 1, n)


def plain(figure: Any, n: int | None = None) -> Cell:
    """A coefficient between -1 and 1, or nats, over `n` examples, with three decimals."""
    return _cell(figure, 1, 3, n)


def _cell(figure: Any, scale: float, digits: int, n: int | None) -> Cell:
    if not isinstance(figure, Mapping):
        return Cell(scale * float(figure), None, digits, n=n)
    ci = figure.get("ci")
    bounds = (scale * ci[0], scale * ci[1]) if ci else None
    few = None if ci else figure.get("units")
    return Cell(scale * float(figure["value"]), bounds, digits, units=few, n=n)


def permuted_column(config: str) -> str:
    """The configuration is in the name, unless it is `pairwise`."""
    return "permuted accuracy" + ("" if config == "pairwise" else f" ({config})")


def pdtb_column(task: str, protocol: str) -> str:
    """Implicit relations (IMP) or marked against unmarked (MVU); `pair`: encoded together."""
    return ("MVU" if task == "marked" else "IMP") + (" (pair)" if protocol == "pair" else "")


def _dissent(result: Result) -> Rows:
    metrics, config = result["metrics"], result["dataset"]["config"]
    majority, rows = metrics["majority"], metrics.get("rows")

    def cells(figures: Mapping[str, Any]) -> Cells:
        return {
            f"{config} F1": percent(figures["f1"], rows),
            f"{config} accuracy": percent(figures["accuracy"], rows),
        }

    return {"": cells(metrics), "rule: majority": cells(majority)}


def _permuted(result: Result) -> Rows:
    metrics, column = result["metrics"], permuted_column(result["dataset"]["config"])
    beside = {f"rule: {name}": {column: percent(f)} for name, f in metrics["baselines"].items()}
    return {"": {column: percent(metrics["accuracy"], metrics.get("pairs"))}, **beside}


def _pairwise(result: Result) -> Rows:
    sets = result["metrics"]["sets"]
    own = {name: percent(found["accuracy"], found.get("pairs")) for name, found in sets.items()}
    rows: Rows = {"": own}
    for name, found in sets.items():
        for rule, figure in found["baselines"].items():
            of = f" ({result['encoder']})" if rule == "cosine" else ""
            rows.setdefault(f"rule: {rule}{of}", {})[name] = percent(figure)
    if means := result["metrics"].get("means", {}):
        probes = [name for name in sets if name.startswith("probe_")]
        for cells in rows.values():
            mean = sum(cells[name].value for name in probes) / len(probes)
            cells[f"mean of {means['probes']['of']} probes"] = Cell(mean, of=tuple(sorted(probes)))
    return rows


def _agreement(result: Result) -> Rows:
    sets = result["metrics"]["sets"]
    return {
        "": {name: plain(found["alpha"], found.get("pairs")) for name, found in sets.items()},
        "annotators alone": {name: plain(found["people"]) for name, found in sets.items()},
        "annotators and a random coder": {
            name: plain(found["random"]["value"]) for name, found in sets.items()
        },
    }


def _discoeval(result: Result) -> Rows:
    """Each task, its domains where it has several, and the average of all seven tasks."""
    alone = result["protocol"].get("seeds") == 1

    def cell(found: Mapping[str, Any], domains: Mapping[str, Mapping[str, Any]]) -> Cell:
        n = sum(one.get("rows", {}).get(one.get("split"), 0) for one in domains.values()) or None
        shown = percent(found) if alone else Cell(100 * found["value"], sd=100 * found["sd"])
        return replace(shown, n=n, of=tuple(sorted(domains)))

    cells, parts = {}, {}
    for task, found in result["metrics"]["tasks"].items():
        domains = found["domains"]
        cells[task] = cell(found, domains)
        if len(domains) > 1:
            parts |= {f"{task} {name}": cell(one, {name: one}) for name, one in domains.items()}
    average = result["metrics"]["average"]
    if average["complete"]:
        cells["avg"] = percent(average)
    return {"": {**cells, **parts}}


def _pdtb(result: Result) -> Rows:
    metrics, task = result["metrics"], result["task"]
    own = {
        pdtb_column(task, name): percent(found["accuracy"], found.get("rows"))
        for name, found in metrics.items()
    }
    majority = percent(next(iter(metrics.values()))["majority"]["accuracy"])
    return {"": own, "rule: majority": dict.fromkeys(own, majority)}


def _superglue(result: Result) -> Rows:
    cells = {}
    for task, found in result["metrics"]["tasks"].items():
        n = found.get("examples")
        cells[task] = percent(found["accuracy"], n)
        if "em" in found:
            cells[f"{task} EM"] = percent(found["em"], n)
            cells[f"{task} F1"] = percent(found["f1"], n)
    return {"": cells}


def _senteval(result: Result) -> Rows:
    columns = result["metrics"]["columns"]
    return {"": {name: percent(found) for name, found in columns.items() if found["complete"]}}


def _criteria(result: Result) -> Rows:
    """Nats a word as they are, with those of the words' frequency beside; the classes' shares."""
    metrics = result["metrics"]
    words = metrics["nats_a_word"]
    own = {f"{name} nats": plain(found, found.get("sentences")) for name, found in words.items()}
    alone = {f"{name} nats": plain(found["by_frequency"]) for name, found in words.items()}
    majority: Cells = {}
    for name, found in metrics["classes"].items():
        n = found.get("rows")
        own[f"{name} accuracy"] = percent(found["accuracy"], n)
        own[f"{name} F1"] = percent(found["f1"], n)
        majority |= {
            f"{name} {shown}": percent(found["majority"][key])
            for key, shown in (("accuracy", "accuracy"), ("f1", "F1"))
        }
    # A model's vocabulary is its own, and with it what the frequency of words gives.
    by_frequency = f"rule: frequency of words ({result['model']['name']})"
    return {"": own, by_frequency: alone, "rule: majority": majority}


def _any_suite(result: Result) -> Rows:
    """Every `{"value": share, ...}` of the metrics, under the names on the way to it."""
    figures = _figures(result["metrics"])
    return {"": {" ".join(path): percent(found, found.get("n")) for path, found in figures}}


def _figures(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not isinstance(tree, Mapping):
        return
    if isinstance(tree.get("value"), int | float):
        yield path, tree
        return
    for key, below in tree.items():
        yield from _figures(below, (*path, str(key)))


SUITES: dict[str, Callable[[Result], Rows]] = {
    "dissent": _dissent,
    "permuted": _permuted,
    "pairwise": _pairwise,
    "agreement": _agreement,
    "discoeval": _discoeval,
    "pdtb": _pdtb,
    "superglue": _superglue,
    "senteval": _senteval,
    "criteria": _criteria,
}
