"""Suites of coherence scorers: `permuted`, `pairwise` and `agreement` (Jwalapuram et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from corpora.errors import InputError, require
from corpora.rng import stream
from zoo.evaluate.outcomes import PROBES, Outcomes
from zoo.evaluate.pairwise_sets import PairSet, open_sets
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import (
    RULES,
    Scorer,
    baseline,
    beside,
    cut_of,
    default_encoder,
    describe,
    encoder_name,
    load_scorer,
    scores_of,
)
from zoo.evaluate.scores import (
    RIGHT,
    TIE,
    WRONG,
    McNemar,
    Ranking,
    finite,
    interval,
    mcnemar,
    ranked,
    stated,
    whole_units,
)
from zoo.training.data import open_dataset, split_spec, spread

if TYPE_CHECKING:
    from zoo.evaluate import Request
    from zoo.evaluate.suites import Agreement, Pairwise, Permuted

CODERS = 100
"""Random coders drawn for the comparison."""
MISSING = -1


# `permuted`: a document against its permutations.


@runtime_checkable
class DocumentScorer(Protocol):
    """A scorer that cuts a document and its permutations alike, as in its training."""

    def rank_orders(self, documents: pa.Table, orders: pa.Table) -> Ranking: ...


def evaluate_permuted(suite: Permuted, request: Request) -> Result:
    """Pairwise accuracy on one split (of the suite's configuration, unless `@CONFIG` says else)."""
    folder, config = split_spec(request.data)
    orders = open_dataset(folder, config or suite.config).need("document", "orders")
    documents = open_dataset(folder, "documents").need("id", "sentences")
    tables = documents[request.split], spread(orders[request.split], request.limit)
    rules = beside(suite.beside, request.seed)
    model = load_scorer(request.model, request.seed)
    if isinstance(model, DocumentScorer):
        ranking = model.rank_orders(*tables)
    else:
        ranking = rank_texts(model, *tables)
    metrics, about = ranking.metrics(request.seed), orders.describe()
    for name, rule in rules.items():
        found = rank_texts(rule, *tables)
        both = found.coherent, found.permuted
        metrics["baselines"][name] = ranked(*both, found.documents, request.seed, name)
    right = ranking.coherent > ranking.permuted  # a tie is wrong
    return Result(
        model=describe(request.model, model),
        dataset=about,
        protocol={"limit": request.limit},
        examples=metrics["pairs"],
        metrics=metrics,
        outcomes=[Outcomes(suite.column(about["config"]), ranking.documents, right)],
        more={"cut": cut_of(model)},
    )


def rank_texts(model: Scorer, documents: pa.Table, orders: pa.Table) -> Ranking:
    """Each document against each of its permutations, for any scorer: it gets whole texts."""
    sentences = dict(
        zip(documents["id"].to_pylist(), documents["sentences"].to_pylist(), strict=True)
    )
    names, texts, permuted, identical = [], [], [], 0
    for row in orders.select(["document", "orders"]).to_pylist():
        text = tuple(sentences[row["document"]])
        for order in row["orders"]:
            other = tuple(text[i] for i in order)
            if other == text:
                identical += 1
                continue
            names.append(row["document"])
            texts.append(text)
            permuted.append(other)
    (scores, others), (lengths, other_lengths) = (
        np.split(scores_of(scorer, [*texts, *permuted]), 2)
        for scorer in (model, baseline("longer"))
    )
    return Ranking(names, scores, others, (lengths, other_lengths), identical)


# `pairwise`: which of two texts scores higher.


def evaluate_pairwise(options: Pairwise, request: Request) -> Result:
    """Accuracy on each test set, beside the rules."""
    found = open_sets(request.data, request.split, request.limit)
    model = load_scorer(request.model, request.seed)
    rules = beside((*RULES, *options.beside), request.seed)
    encoder = options.encoder or default_encoder()
    notes = [] if encoder else ["no encoder for the rule cosine: see --encoder"]
    if encoder not in ("", "none"):
        rules["cosine"] = baseline(f"cosine:{encoder}")
    sets = {
        each.name: evaluate_set(each, model, rules, request.seed, prompt=options.prompt)
        for each in found.sets
    }
    # The paper gives the probes one by one (table 3).
    probes = [s["accuracy"]["value"] for name, s in sets.items() if name.startswith(PROBES)]
    mean = {"probes": {"value": float(np.mean(probes)), "of": len(probes)}} if probes else {}
    right = {name: np.array(list(each["outcomes"])) == RIGHT for name, each in sets.items()}
    return Result(
        model=describe(request.model, model),
        dataset=dict(found.description),
        protocol={"ties": "wrong", "prompt": options.prompt, "limit": request.limit},
        examples=sum(each["pairs"] for each in sets.values()),
        metrics={"sets": sets, "means": mean, "resampled": "groups"},
        notes=notes,
        outcomes=[
            Outcomes(each.name, [pair.group for pair in each.pairs], right[each.name])
            for each in found.sets
        ],
        more={
            "cut": cut_of(model),
            "encoder": encoder_name(encoder) if "cosine" in rules else "",
        },
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
        "outcomes": "".join(
            np.array([WRONG, TIE, RIGHT])[np.sign(coherent - other).astype(int) + 1]
        ),
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


def mcnemar_of_sets(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, McNemar]:
    """McNemar for each set that two results of the suite `pairwise` share.

    Raises `InputError` if a set of the same name holds other pairs.
    """
    sets, others = one["metrics"]["sets"], two["metrics"]["sets"]
    found = {}
    for name in (name for name in sets if name in others):
        if sets[name]["pairs_digest"] != others[name]["pairs_digest"]:
            raise InputError(
                "the two results are of different pairs",
                where=f"set {name!r}",
                hint="evaluate both models alike, on the same data",
            )
        found[name] = mcnemar(sets[name]["outcomes"], others[name]["outcomes"])
    return found


# `agreement`: whether the model chooses as people do.


def evaluate_agreement(options: Agreement, request: Request) -> Result:
    """Krippendorff's alpha (nominal) of the votes, with the model's choices as one more annotator.

    The authors' script drops a model's ties, which shifts the choices after them to other pairs;
    here a tie is a missing value. Raises `InputError` where no set has votes.
    """
    found = open_sets(request.data, request.split, request.limit)
    # A set is judged where two annotators preferred a text of one pair, be it the same or not.
    counts = {each.name: vote_counts([pair.votes for pair in each.pairs]) for each in found.sets}
    voted = [each for each in found.sets if (counts[each.name].sum(1) > 1).any()]
    if not voted:
        raise InputError(
            "no test set here has votes of at least two annotators",
            where=request.data,
            hint='give @lmvlm or @summeval, or JSON Lines with "votes": [1, 0, -1]',
        )
    rules = beside(options.beside, request.seed)
    model = load_scorer(request.model, request.seed)

    def agreement(each: PairSet, scorer: Scorer) -> dict[str, Any]:
        return agreement_on(each, *score_pairs(each, scorer, options.prompt), request.seed)

    sets = {each.name: agreement(each, model) for each in voted}
    for each in voted if rules else ():
        alphas = {name: agreement(each, rule)["alpha"] for name, rule in rules.items()}
        sets[each.name]["baselines"] = alphas
    protocol = {"alpha": "nominal", "ties": "missing"}
    return Result(
        model=describe(request.model, model),
        dataset=dict(found.description),
        protocol={**protocol, "prompt": options.prompt, "limit": request.limit},
        examples=sum(each["pairs"] for each in sets.values()),
        metrics={"sets": sets, "resampled": "groups"},
        notes=[
            f"{name}: {each['preferred_pos']:.0%} of the votes are for pos, so alpha has little to "
            "measure; see both_ways"
            for name, each in sets.items()
            if not 0.2 < each["preferred_pos"] < 0.8
        ],
        more={"cut": cut_of(model)},
    )


def agreement_on(
    found: PairSet, coherent: np.ndarray, other: np.ndarray, seed: int
) -> dict[str, Any]:
    """Alpha of the people, with the model, and with a random coder in the model's place.

    Its interval is that when whole groups of pairs are drawn anew; a draw without a pair that two
    people judged has no alpha: such are counted as `skipped`.

    `both_ways` is alpha with each pair counted in both orders, which makes the two values equally
    frequent: where `pos` is the text that most preferred, nearly every vote is 1, and alpha as
    published is low however well the people agree.
    """
    people = vote_counts([pair.votes for pair in found.pairs])
    chosen = np.where(coherent > other, 1, np.where(coherent < other, 0, MISSING))
    model = people + vote_counts([(int(choice),) for choice in chosen])
    random = stream(seed, "zoo.evaluate.coder", found.name)
    coders = [
        alpha(people + np.eye(2, dtype=np.int64)[random.integers(0, 2, len(people))])
        for _ in range(CODERS)
    ]
    majority = np.sign(people[:, 1] - people[:, 0])
    decided = majority != 0
    right = np.sign(coherent - other)[decided] == majority[decided]
    _, group = np.unique([pair.group for pair in found.pairs], return_inverse=True)
    units = int(group.max()) + 1
    drawn = whole_units(units, seed, f"alpha.{found.name}")

    def both_ways(counts: np.ndarray) -> float:
        return alpha(np.concatenate([counts, counts[:, ::-1]]))

    def with_interval(counts: np.ndarray) -> dict[str, Any]:
        comparable = counts.sum(1) > 1
        usable = [times[group] for times in drawn if times[group][comparable].any()]

        def resampled() -> np.ndarray:
            return np.array([alpha(np.repeat(counts, times, axis=0)) for times in usable])

        bounds = stated(units, resampled)
        return {"value": alpha(counts), **bounds, "skipped": len(drawn) - len(usable)}

    return {
        "alpha": with_interval(model),
        "both_ways": both_ways(model),
        "people": {**with_interval(people), "both_ways": both_ways(people)},
        "random": {"value": float(np.mean(coders)), "range": interval(np.array(coders))},
        "majority_accuracy": float(right.mean()) if decided.any() else 0.0,
        "ties": int((chosen == MISSING).sum()),
        "pairs": len(found.pairs),
        "identical": found.identical,
        "annotators": max(len(pair.votes) for pair in found.pairs),
        "preferred_pos": float(people[:, 1].sum() / people.sum()),
    }


def vote_counts(votes: Sequence[Sequence[int]]) -> np.ndarray:
    """How often each pair got a 0 and a 1, `[pairs, 2]`; other votes are missing values."""
    return np.array([[list(row).count(0), list(row).count(1)] for row in votes], np.int64)


def alpha(counts: np.ndarray) -> float:
    """Krippendorff's alpha (nominal) from `counts [pairs, values]`.

    1 where all that can be compared is one value: nobody disagrees. Raises `DiscorporaError`
    without the library krippendorff, `InputError` if no pair has two votes.
    """
    library = require("krippendorff", "eval", "for Krippendorff's alpha")
    comparable = counts[counts.sum(1) > 1]
    if not len(comparable):
        raise InputError("no pair has votes of two annotators: there is no agreement to measure")
    if (comparable.sum(0) > 0).sum() < 2:
        return 1.0
    return float(library.alpha(value_counts=comparable, level_of_measurement="nominal"))
