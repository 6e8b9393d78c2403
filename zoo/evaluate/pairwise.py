"""Suite `pairwise`: which of two texts scores higher (Jwalapuram et al. 2022, tables 1 to 3).

Accuracy with ties counted as wrong, for each test set and each probe, with trivial rules beside
every model, and McNemar's test against a second one (`--against`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.errors import InputError
from corpora.store.atomic import read_json
from zoo.evaluate.outcomes import PROBES, Outcomes
from zoo.evaluate.pairwise_sets import PairSet, open_sets
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import (
    Scorer,
    baseline,
    cut_of,
    default_encoder,
    describe,
    encoder_name,
    load_scorer,
    scores_of,
)
from zoo.evaluate.scores import RIGHT, TIE, WRONG, McNemar, finite, mcnemar, ranked

if TYPE_CHECKING:
    from zoo.evaluate import Request
    from zoo.evaluate.suites import Pairwise

RULES = ("random", "longer", "shorter", "tfidf")


def evaluate(options: Pairwise, request: Request) -> Result:
    """Accuracy on each test set, beside the rules; `against` where a second model is named."""
    found = open_sets(request.data, request.split, request.limit)
    protocol = {"ties": "wrong", "prompt": options.prompt, "limit": request.limit}
    own = {"model": {"name": Path(request.model).name}, "protocol": protocol}
    # What a second result lacks is said before anything is scored.
    other: Scorer | None = None
    second: Mapping[str, Any] = {}
    if options.against.endswith(".json"):
        second = _second_result(options.against, found.sets, own)
    elif options.against:
        other = load_scorer(options.against, request.seed)
    model = load_scorer(request.model, request.seed)
    rules: dict[str, Scorer] = {name: baseline(name, request.seed) for name in RULES}
    encoder = options.encoder or default_encoder()
    notes = [] if encoder else ["no encoder for the rule cosine: see --encoder"]
    if encoder not in ("", "none"):
        rules["cosine"] = baseline(f"cosine:{encoder}")

    def scored(scorer: Scorer, beside: Mapping[str, Scorer]) -> dict[str, Any]:
        return {
            each.name: evaluate_set(each, scorer, beside, request.seed, prompt=options.prompt)
            for each in found.sets
        }

    sets = scored(model, rules)
    # The paper gives the probes one by one (table 3).
    probes = [s["accuracy"]["value"] for name, s in sets.items() if name.startswith(PROBES)]
    mean = {"probes": {"value": float(np.mean(probes)), "of": len(probes)}} if probes else {}
    metrics = {"sets": sets, "means": mean, "resampled": "groups"}
    more: dict[str, Any] = {"cut": cut_of(model)}
    more["encoder"] = encoder_name(encoder) if "cosine" in rules else ""
    if other is not None:
        about = describe(options.against, other)
        second = {"model": about, "protocol": protocol, "metrics": {"sets": scored(other, {})}}
    if second:
        values = second["metrics"]["sets"]
        tests = mcnemar_of_sets({**own, "metrics": metrics}, second)
        joined = {name: {**values[name]["accuracy"], **test} for name, test in tests.items()}
        more["against"] = {"model": second["model"], "test": "McNemar, exact", "sets": joined}
    outcomes = []
    for each in found.sets:
        right = np.array([letter == RIGHT for letter in sets[each.name]["outcomes"]])
        outcomes.append(Outcomes(each.name, [pair.group for pair in each.pairs], right))
    return Result(
        model=describe(request.model, model),
        dataset=dict(found.description),
        protocol=protocol,
        examples=sum(each["pairs"] for each in sets.values()),
        metrics=metrics,
        notes=notes,
        outcomes=outcomes,
        more=more,
    )


def evaluate_set(
    found: PairSet, model: Scorer, rules: Mapping[str, Scorer], seed: int, *, prompt: bool = True
) -> dict[str, Any]:
    """Accuracy of `model` and of `rules`, on the same texts, and each pair's outcome."""
    units = [pair.group for pair in found.pairs]
    coherent, other = score_pairs(found, model, prompt)
    return {
        "accuracy": ranked(coherent, other, units, seed, found.name),
        "pairs": len(found.pairs),
        "identical": found.identical,
        "groups": len(set(units)),
        "baselines": {
            name: ranked(*score_pairs(found, rule, prompt), units, seed, f"{found.name}.{name}")
            for name, rule in rules.items()
        },
        "outcomes": outcomes_of(coherent, other),
        "pairs_digest": found.digest,
    }


def score_pairs(
    found: PairSet, scorer: Scorer, prompt: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the coherent and of the other texts; each distinct text is scored once."""
    before = [pair.prompt if prompt else () for pair in found.pairs]
    texts = [(*head, *pair.pos) for head, pair in zip(before, found.pairs, strict=True)]
    texts += [(*head, *pair.neg) for head, pair in zip(before, found.pairs, strict=True)]
    coherent, other = np.split(finite(scores_of(scorer, texts), found.name), 2)
    return coherent, other


def outcomes_of(coherent: np.ndarray, other: np.ndarray) -> str:
    """One character a pair: `1` the coherent text scores higher, `0` lower, `=` a tie."""
    signs = np.sign(coherent - other).astype(int)
    return "".join(np.array([WRONG, TIE, RIGHT])[signs + 1])


def _second_result(
    against: str, sets: Sequence[PairSet], own: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The result that `--against` names. Raises `InputError`, also for a result on other pairs."""
    path = Path(against)
    found = read_json(path) if path.is_file() else None
    if not isinstance(found, dict) or found.get("suite") != "pairwise":
        raise InputError("no result of the suite pairwise", where=against)
    digests = {each.name: {"pairs_digest": each.digest} for each in sets}
    try:
        for name in shared_sets({**own, "metrics": {"sets": digests}}, found):
            each = found["metrics"]["sets"][name]
            _ = found["model"], each["accuracy"], each["outcomes"]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"no whole result of the suite pairwise: {error}", where=against) from None
    return found


def mcnemar_of_sets(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, McNemar]:
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
    sets, others = one["metrics"]["sets"], two["metrics"]["sets"]
    shared = [name for name in sets if name in others]
    if not shared:
        raise InputError(
            "the two results have no test set in common",
            where=f"{', '.join(sets)} | {', '.join(others)}",
        )
    here, there = (
        {
            **result.get("protocol", {}),
            **{
                f"the pairs of {name!r}": result["metrics"]["sets"][name]["pairs_digest"]
                for name in shared
            },
        }
        for result in (one, two)
    )
    for key, value in here.items():
        if value != there.get(key, value):
            names = [
                f"{result.get('model', {}).get('name', '?')} on "
                f"{result.get('dataset', {}).get('revision', '?')}"
                for result in (one, two)
            ]
            raise InputError(
                f"{names[0]} was measured with {key} = {value}, {names[1]} with "
                f"{key} = {there[key]}",
                hint="evaluate both models alike, on the same data",
            )
    return shared
