"""Are two scorers different? McNemar's exact test over the outcomes of the same pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corpora.errors import InputError

RIGHT, WRONG, TIE = "1", "0", "="


def outcomes_of(coherent: np.ndarray, other: np.ndarray) -> str:
    """One character a pair: `1` the coherent text scores higher, `0` lower, `=` a tie."""
    signs = np.sign(coherent - other).astype(int)
    return "".join(np.array([WRONG, TIE, RIGHT])[signs + 1])


def mcnemar(one: str, two: str) -> dict[str, Any]:
    """The exact two-sided test (McNemar 1947, binomial form): do both err equally often?

    `one` and `two` are outcomes of the same pairs, a tie counts as wrong. Under the null
    hypothesis the pairs that just one of them gets right are its own with probability 1/2:
    `p = min(1, 2 P(X <= min(b, c)))`, X ~ Binomial(b + c, 1/2). Pairs of one document are taken
    as independent, so p is too small where a document has many.
    """
    from scipy.stats import binomtest

    if len(one) != len(two):
        raise InputError(f"{len(one)} outcomes against {len(two)}: not of the same pairs")
    only_one = sum(a == RIGHT != b for a, b in zip(one, two, strict=True))
    only_two = sum(b == RIGHT != a for a, b in zip(one, two, strict=True))
    discordant = only_one + only_two
    p = float(binomtest(only_one, discordant, 0.5).pvalue) if discordant else 1.0
    return {"only_this": only_one, "only_other": only_two, "p": p}


def test_results(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """McNemar for each set that two results of the suite `pairwise` share (`shared_sets`)."""
    sets, others = one["metrics"]["sets"], two["metrics"]["sets"]
    return {
        name: mcnemar(sets[name]["outcomes"], others[name]["outcomes"])
        for name in shared_sets(one, two)
    }


def shared_sets(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """The names of the sets that two results have.

    Raises `InputError` if there are none, a set of the same name holds other pairs, or the
    protocols differ.
    """
    protocols = one.get("protocol", {}), two.get("protocol", {})
    for key in protocols[0].keys() & protocols[1].keys():
        if protocols[0][key] != protocols[1][key]:
            raise InputError(
                f"{_name(one)} was measured with {key} = {protocols[0][key]}, {_name(two)} with "
                f"{key} = {protocols[1][key]}",
                hint="evaluate both models alike",
            )
    sets, others = one["metrics"]["sets"], two["metrics"]["sets"]
    shared = [name for name in sets if name in others]
    if not shared:
        raise InputError(
            "the two results have no test set in common",
            where=f"{', '.join(sets)} | {', '.join(others)}",
        )
    for name in shared:
        digests = sets[name]["pairs_digest"], others[name]["pairs_digest"]
        if digests[0] != digests[1]:
            raise InputError(
                f"the set {name!r} is not the same in both results: pairs {digests[0]} "
                f"of {_name(one)}, {digests[1]} of {_name(two)}",
                hint="evaluate both models on the same data (and --limit)",
            )
    return shared


test_results.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest


def _name(result: Mapping[str, Any]) -> str:
    model = result.get("model", {})
    return f"{model.get('name', '?')} on {result.get('dataset', {}).get('revision', '?')}"
