"""What shells complete beside options and files: kinds of sources, markers, recipes, suites.

Typer keeps of these the words that begin with what is written.
"""

from __future__ import annotations


def sources() -> list[str]:
    """The kinds of sources, with the colon after them."""
    from corpora.readers import READERS

    return [f"{kind}:" for kind in READERS]


def markers(incomplete: str) -> list[str]:
    """The sets of markers and the markers of English; of a list the last one is completed."""
    from extract.patterns import load_patterns

    table = load_patterns("en")
    done, comma, _ = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in (*table.sets, *table.markers)]


def recipes() -> list[str]:
    """The shipped recipes."""
    from zoo.presets import shipped

    return [*shipped()]


def suites() -> list[str]:
    """The suites of evaluation."""
    from zoo.evaluate import SUITES

    return [*SUITES]
