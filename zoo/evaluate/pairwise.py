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
from corpora.rng import stream
from corpora.store.atomic import read_json
from zoo.evaluate import bootstrap
from zoo.evaluate.bootstrap import RIGHT, TIE, WRONG, McNemar, mcnemar
from zoo.evaluate.outcomes import PROBES, Outcomes
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import (
    BASELINE,
    Scorer,
    baseline,
    default_encoder,
    encoder_name,
    load_scorer,
)

if TYPE_CHECKING:
    from zoo.evaluate import Request
    from zoo.evaluate.pairwise_sets import TestSet
    from zoo.evaluate.suites import Pairwise

RULES = ("random", "longer", "shorter", "tfidf")


def evaluate(options: Pairwise, request: Request) -> Result:
    """Accuracy on each test set, beside the rules; `against` where a second model is named."""
    from zoo.evaluate.pairwise_sets import open_sets

    found = open_sets(request.data, request.split, request.limit)
    protocol = {"ties": "wrong", "prompt": options.prompt, "limit": request.limit}
    own = {"model": {"name": Path(request.model).name}, "protocol": protocol}
    second = _second(options.against, request.seed, found.sets, own)
    model = load_scorer(request.model, request.seed)
    rules = {name: baseline(name, request.seed) for name in RULES}
    encoder = options.encoder or default_encoder()
    notes = [] if encoder else ["no encoder for the rule cosine: see --encoder"]
    if encoder in ("", "none"):
        encoder = ""
    else:
        rules["cosine"], encoder = baseline(f"cosine:{encoder}"), encoder_name(encoder)
    sets = {
        each.name: evaluate_set(each, model, rules, request.seed, prompt=options.prompt)
        for each in found.sets
    }
    more: dict[str, Any] = {"cut": cut_of(model), "encoder": encoder}
    # The paper gives the probes one by one (table 3).
    probes = [s["accuracy"]["value"] for name, s in sets.items() if name.startswith(PROBES)]
    mean = {"probes": {"value": float(np.mean(probes)), "of": len(probes)}} if probes else {}
    metrics = {"sets": sets, "means": mean, "resampled": "groups"}
    if second is not None:
        kept = {**own, "metrics": metrics}
        more["against"] = _against(second, options, found.sets, kept, request.seed)
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
    found: TestSet, model: Scorer, rules: Mapping[str, Scorer], seed: int, *, prompt: bool = True
) -> dict[str, Any]:
    """Accuracy of `model` and of `rules`, on the same texts, and each pair's outcome."""
    units = [pair.group for pair in found.pairs]
    coherent, other = score_pairs(found, model, prompt)
    beside = {
        name: compare(*score_pairs(found, rule, prompt), units, seed, f"{found.name}.{name}")
        for name, rule in rules.items()
    }
    return {
        "accuracy": compare(coherent, other, units, seed, found.name),
        "pairs": len(found.pairs),
        "identical": found.identical,
        "groups": len(set(units)),
        "baselines": beside,
        "outcomes": outcomes_of(coherent, other),
        "pairs_digest": found.digest,
    }


def score_pairs(
    found: TestSet, scorer: Scorer, prompt: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the coherent and of the other texts; each distinct text is scored once."""
    before = [pair.prompt if prompt else () for pair in found.pairs]
    texts = [(*head, *pair.pos) for head, pair in zip(before, found.pairs, strict=True)]
    texts += [(*head, *pair.neg) for head, pair in zip(before, found.pairs, strict=True)]
    distinct = list(dict.fromkeys(texts))
    scores = dict(zip(distinct, scorer.score([list(text) for text in distinct]), strict=True))
    values = finite(np.array([scores[text] for text in texts], np.float64), found.name)
    return values[: len(found.pairs)], values[len(found.pairs) :]


def finite(scores: np.ndarray, where: str) -> np.ndarray:
    """`scores` as they are. Raises `InputError` if one is NaN or infinite: it would just lose."""
    if not np.isfinite(scores).all():
        raise InputError("the model gives scores that are not finite", where=where)
    return scores


def compare(
    coherent: np.ndarray, other: np.ndarray, units: Sequence[str], seed: int, name: str
) -> dict[str, Any]:
    """How often `coherent[i] > other[i]`; a tie is wrong, and reported.

    `units[i]` is what pair `i` came from (a document): pairs of one unit are not independent,
    so the interval draws whole units.
    """
    wins, ties = coherent > other, coherent == other
    return {
        "value": float(wins.mean()),
        **bootstrap.of_groups(wins, np.asarray(units), seed, name),
        "ties": int(ties.sum()),
    }


def baselines(
    lengths: tuple[np.ndarray, np.ndarray], units: Sequence[str], seed: int
) -> dict[str, Any]:
    """The rules beside a model: `random`, `longer` and `shorter`.

    `lengths` are those of the coherent and of the other texts.
    """
    random, (coherent, other) = stream(seed, "zoo.evaluate.random"), lengths
    return {
        "random": compare(*random.random((2, len(units))), units, seed, "random"),
        "longer": compare(coherent, other, units, seed, "longer"),
        "shorter": compare(-coherent, -other, units, seed, "shorter"),
    }


def describe(name: str, model: Scorer) -> dict[str, str]:
    """What a result says of its model: no path."""
    if name.startswith(BASELINE):
        rule, _, encoder = name.removeprefix(BASELINE).partition(":")
        encoder = encoder or (default_encoder() if rule == "cosine" else "")
        shown = f"{rule} ({encoder_name(encoder)})" if encoder else rule
        return {"name": shown, "type": "baseline"}
    kind = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
    return {"name": Path(name).name, "type": str(kind)}


def cut_of(model: Scorer) -> int:
    """How many of the texts that it scored the model had to cut.

    The coherence scorer reads long texts in windows, and so cuts none.
    """
    return int(getattr(getattr(model, "encoder", model), "cut", 0))


def _second(
    against: str, seed: int, sets: Sequence[TestSet], own: Mapping[str, Any]
) -> Scorer | Mapping[str, Any] | None:
    """What `--against` names, a model or a result; none for an empty text.

    Raises `InputError` before anything is scored: also for a result on other pairs.
    """
    if not against.endswith(".json"):
        return load_scorer(against, seed) if against else None
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


def _against(
    other: Scorer | Mapping[str, Any],
    options: Pairwise,
    sets: Sequence[TestSet],
    result: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """The second model's accuracy, and McNemar, on each set."""
    if isinstance(other, Mapping):
        values = {name: found["accuracy"] for name, found in other["metrics"]["sets"].items()}
        tested = test_results(result, other)
        joined = {name: {**values[name], **test} for name, test in tested.items()}
        return {"model": other["model"], "test": "McNemar, exact", "sets": joined}
    tests = {}
    for found in sets:
        scores = score_pairs(found, other, options.prompt)
        own = result["metrics"]["sets"][found.name]["outcomes"]
        units = [pair.group for pair in found.pairs]
        tests[found.name] = {
            **compare(*scores, units, seed, found.name),
            **mcnemar(own, outcomes_of(*scores)),
        }
    return {"model": describe(options.against, other), "test": "McNemar, exact", "sets": tests}


def outcomes_of(coherent: np.ndarray, other: np.ndarray) -> str:
    """One character a pair: `1` the coherent text scores higher, `0` lower, `=` a tie."""
    signs = np.sign(coherent - other).astype(int)
    return "".join(np.array([WRONG, TIE, RIGHT])[signs + 1])


def test_results(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, McNemar]:
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
