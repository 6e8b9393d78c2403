"""Suite `agreement`: how far a scorer prefers the texts that people prefer, as alpha."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import InputError, require
from corpora.rng import stream
from zoo.declared import Form
from zoo.evaluate import in_hand
from zoo.evaluate.pairwise_sets import PairSet, holds_pairs, open_sets, score_pairs
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scorers import OfScorers, cut_of
from zoo.evaluate.scores import ci_and_units, interval, resampled_counts
from zoo.evaluate.table import Rows, plain, rows_of_sets

CODERS = 100
"""The number of coders who vote at random, with which the model is compared."""
MISSING = -1
"""The choice of a model whose two scores are equal, and of an annotator who prefers neither."""


class Agreement(OfScorers):
    """Whether the model chooses as people do: Krippendorff's alpha with and without the model."""

    name = "agreement"
    paper = "Jwalapuram, Joty and Lin 2022, section 2.2"
    percent = False
    reads = (Form(("pos", "neg", "votes")),)
    all_configs = True

    prompt: bool = True
    """Whether a pair's prompt is part of both texts."""

    def read(self, spec: str) -> Any:
        """The path of a file or folder of pairs; None for a dataset."""
        return Path(spec) if holds_pairs(spec) else None

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Compute Krippendorff's alpha of the votes, with the model as one more annotator.

        The authors' script drops a model's ties, which shifts the choices after them to other
        pairs; here a tie is a missing value. Raises `InputError` where no set has votes.
        """
        pair_sets = open_sets(data, split, limit)
        # A set is judged if at least one pair has two votes or more.
        voted = [each for each in pair_sets.sets if (vote_counts(each.votes).sum(1) > 1).any()]
        if not voted:
            raise InputError(
                "no test set here has votes of at least two annotators",
                where=str(pair_sets.description["name"]),
                hint='give @lmvlm or @summeval, or JSON Lines with "votes": [1, 0, -1]',
            )
        # Alpha with the model, and with each rule in its place
        scorers = self.scorers(model, seed)
        sets: dict[str, dict[str, Any]] = {}
        for each in voted:
            figures = {}
            for name, scorer in scorers.items():
                scores = score_pairs(each, scorer, self.prompt, whole=True)
                figures[name] = agreement_on(each, scores.coherent, scores.other, seed)
            sets[each.name] = figures.pop("")
            if figures:
                alphas = {name: of_rule["alpha"] for name, of_rule in figures.items()}
                sets[each.name]["baselines"] = alphas
        result = Result(
            model=in_hand.about(model),
            dataset=dict(pair_sets.description),
            protocol={"alpha": "nominal", "ties": "missing", "prompt": self.prompt, "limit": limit},
            examples=sum(each["pairs"] for each in sets.values()),
            metrics={"sets": sets, "resampled": "groups"},
            notes=[
                f"{name}: {each['preferred_pos']:.0%} of the votes are for pos, so alpha has "
                "little to measure; see both_ways"
                for name, each in sets.items()
                if not 0.2 < each["preferred_pos"] < 0.8
            ],
            more={"cut": cut_of(model)},
        )
        return finished(self, result, model, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """Rows of alpha: the annotators alone, with a random coder, with the model, with a rule."""
        sets = result.metrics["sets"]
        random = {name: plain(metrics["random"]["value"]) for name, metrics in sets.items()}
        return {
            "": {},
            "annotators alone": {name: plain(metrics["people"]) for name, metrics in sets.items()},
            "annotators and a random coder": random,
            **rows_of_sets(sets, "alpha", plain),
        }


def agreement_on(
    pair_set: PairSet, coherent: np.ndarray, other: np.ndarray, seed: int
) -> dict[str, Any]:
    """Alpha of the annotators alone, with the model, and with a random coder in the model's place.

    The model gives the texts of each pair the scores `coherent [pairs]` and `other [pairs]`, and
    votes for the text with the higher one. The intervals of alpha resample whole groups of pairs. A
    resample without a pair that two annotators judged has no alpha, and is counted as `skipped`.

    `both_ways` is alpha with each pair counted in both orders, so that the votes 1 and 0 are
    equally frequent. Where `pos` is defined as the text that most annotators preferred, nearly all
    votes are 1, and the usual alpha is low however well the annotators agree.
    """
    # Votes of the annotators, with those of the model and of random coders
    people = vote_counts(pair_set.votes)
    model_votes = np.where(coherent > other, 1, np.where(coherent < other, 0, MISSING))
    with_model = people + vote_counts([(int(vote),) for vote in model_votes])
    random = stream(seed, "zoo.evaluate.coder", pair_set.name)
    one_vote = np.eye(2, dtype=np.int64)  # row 0 counts a vote 0, row 1 a vote 1
    by_chance = [
        alpha(people + one_vote[random.integers(0, 2, len(people))]) for _ in range(CODERS)
    ]
    # The model's accuracy where most annotators prefer one text
    majority = np.sign(people[:, 1] - people[:, 0])
    decided = majority != 0
    right = np.sign(coherent - other)[decided] == majority[decided]
    # Bootstrap samples of groups, for the intervals
    _, group = np.unique(pair_set.groups, return_inverse=True)
    units = int(group.max()) + 1
    samples = list(resampled_counts(units, seed, f"alpha.{pair_set.name}"))

    def both_ways(counts: np.ndarray) -> float:
        """Return alpha of votes `counts [pairs, 2]` with each pair in both orders."""
        return alpha(np.concatenate([counts, counts[:, ::-1]]))

    def with_interval(counts: np.ndarray) -> dict[str, Any]:
        """Return alpha of votes `counts [pairs, 2]`, with its interval over resampled groups of
        pairs.
        """
        comparable = counts.sum(1) > 1
        usable = [times[group] for times in samples if times[group][comparable].any()]
        resampled = (alpha(np.repeat(counts, times, axis=0)) for times in usable)
        skipped = len(samples) - len(usable)
        return {"value": alpha(counts), **ci_and_units(units, resampled), "skipped": skipped}

    return {
        "alpha": with_interval(with_model),
        "both_ways": both_ways(with_model),
        "people": {**with_interval(people), "both_ways": both_ways(people)},
        "random": {"value": float(np.mean(by_chance)), "range": interval(np.array(by_chance))},
        "majority_accuracy": float(right.mean()) if decided.any() else 0.0,
        "ties": int((model_votes == MISSING).sum()),
        "pairs": len(pair_set.pairs),
        "identical": pair_set.identical,
        "annotators": max(len(pair.votes) for pair in pair_set.pairs),
        "preferred_pos": float(people[:, 1].sum() / people.sum()),
    }


def vote_counts(votes: Sequence[Sequence[int]]) -> np.ndarray:
    """Count the votes 0 and the votes 1 of each pair, `[pairs, 2]`; other votes are missing."""
    return np.array([[list(row).count(0), list(row).count(1)] for row in votes], np.int64)


def alpha(counts: np.ndarray) -> float:
    """Krippendorff's alpha (nominal) from `counts [pairs, values]`, the votes for each value.

    Pairs with fewer than two votes do not count. Alpha is 1 if all votes are for one value, since
    nobody disagrees. Raises `DiscorporaError` without the library krippendorff.
    """
    library = require("krippendorff", "eval", "for Krippendorff's alpha")
    comparable = counts[counts.sum(1) > 1]
    if (comparable.sum(0) > 0).sum() < 2:
        return 1.0
    return float(library.alpha(value_counts=comparable, level_of_measurement="nominal"))
