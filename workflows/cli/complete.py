"""What shells complete beside options and files: kinds of sources, markers, recipes, suites."""

from __future__ import annotations

from collections.abc import Iterable


def sources(incomplete: str) -> list[str]:
    """The kinds of sources, with the colon after them."""
    from corpora.readers import READERS

    return _starting(incomplete, (f"{kind}:" for kind in READERS))


def markers(incomplete: str) -> list[str]:
    """The sets of markers and the markers of English; of a list the last one is completed."""
    from extract.patterns import load_patterns

    table = load_patterns("en")
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in _starting(last, (*table.sets, *table.markers))]


def recipes(incomplete: str) -> list[str]:
    """The shipped recipes."""
    from zoo.presets import shipped

    return _starting(incomplete, shipped())


def suites(incomplete: str) -> list[str]:
    """The suites of evaluation."""
    from zoo.evaluate import SUITES

    return _starting(incomplete, SUITES)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
