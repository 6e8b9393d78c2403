"""Suite `pairwise`: which of two texts scores higher, with trivial rules beside every model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corpora.errors import InputError
from corpora.progress import track
from zoo.declared import Form
from zoo.evaluate import Request
from zoo.evaluate.pairwise_sets import PairSet, open_sets, score_pairs
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import RULES, OfScorers, Scorer, baseline, cut_of, describe
from zoo.evaluate.scores import PROBES, RIGHT, TIE, WRONG, McNemar, Outcomes, mcnemar, ranked
from zoo.evaluate.table import Cell, Rows, percent, rows_of_sets


class Pairwise(OfScorers):
    """Which of two texts scores higher, with trivial rules beside every model.

    A tie counts as wrong, for each test set and each probe.
    """

    name = "pairwise"
    paper = "Jwalapuram, Joty and Lin 2022, tables 1 to 3"
    reads = (Form(("pos", "neg")),)
    all_configs = True

    encoder: str = ""
    """Of the rule `cosine`: a folder or Hub id; `none` leaves the rule out without a note."""
    prompt: bool = True
    """Whether a pair's prompt is part of both texts."""

    def evaluate(self, request: Request) -> Result:
        """Accuracy on each test set, beside the rules."""
        found = open_sets(request.data, request.split, request.limit)
        scorers = self.scorers(request, *RULES)
        notes = [] if self.encoder else ["no encoder for the rule cosine: see --encoder"]
        if self.encoder not in ("", "none"):
            scorers["cosine"] = baseline(f"cosine:{self.encoder}")
        sets = {
            each.name: evaluate_set(each, scorers, request.seed, prompt=self.prompt)
            for each in track(found.sets, "sets", total=len(found.sets))
        }
        # The paper gives the probes one by one (table 3).
        probes = [s["accuracy"]["value"] for name, s in sets.items() if name.startswith(PROBES)]
        mean = {"probes": {"value": float(np.mean(probes)), "of": len(probes)}} if probes else {}
        right = {name: np.array(list(each["outcomes"])) == RIGHT for name, each in sets.items()}
        return Result(
            model=describe(request.model, scorers[""]),
            dataset=dict(found.description),
            protocol={"ties": "wrong", "prompt": self.prompt, "limit": request.limit},
            examples=sum(each["pairs"] for each in sets.values()),
            metrics={"sets": sets, "means": mean, "resampled": "groups"},
            notes=notes,
            outcomes=[Outcomes(each.name, each.groups, right[each.name]) for each in found.sets],
            more={
                "cut": cut_of(scorers[""]),
                "encoder": Path(self.encoder).name if "cosine" in scorers else "",
            },
        )

    @classmethod
    def rows(cls, result: Result) -> Rows:
        sets = result.metrics["sets"]
        cosine = "rule: cosine"
        named = {cosine: f"{cosine} ({result.more.get('encoder')})"}
        found = rows_of_sets(sets, "accuracy", percent)
        rows = {named.get(name, name): cells for name, cells in found.items()}
        if means := result.metrics.get("means", {}):
            probes = tuple(sorted(name for name in sets if name.startswith(PROBES)))
            for cells in rows.values():
                mean = sum(cells[name].value for name in probes) / len(probes)
                cells[f"mean of {means['probes']['of']} probes"] = Cell(mean, of=probes)
        return rows

    @classmethod
    def tests(cls, one: Result, two: Result) -> dict[str, McNemar]:
        """McNemar for each set of which two results have the outcomes.

        Raises `InputError` if a set of the same name holds other pairs.
        """
        found = {}
        for name, own in one.metrics["sets"].items():
            other = two.metrics["sets"].get(name, {})
            if not own.keys() & other.keys() >= {"outcomes", "pairs_digest"}:
                continue  # another program's result may lack them
            if own["pairs_digest"] != other["pairs_digest"]:
                raise InputError(
                    "the two results are of different pairs",
                    where=f"set {name!r}",
                    hint="evaluate both models alike, on the same data",
                )
            found[name] = mcnemar(own["outcomes"], other["outcomes"])
        return found


def evaluate_set(
    found: PairSet, scorers: Mapping[str, Scorer], seed: int, *, prompt: bool = True
) -> dict[str, Any]:
    """Accuracy of the model ("") and of the rules on the same texts, and each pair's outcome."""
    figures, outcomes = {}, ""
    for name, scorer in scorers.items():
        coherent, other = score_pairs(found, scorer, prompt)
        drawn = f"{found.name}.{name}" if name else found.name
        figures[name] = ranked(coherent, other, found.groups, seed, drawn)
        if not name:
            signs = np.sign(coherent - other).astype(int)
            outcomes = "".join(np.array([WRONG, TIE, RIGHT])[signs + 1])
    return {
        "accuracy": figures.pop(""),
        "pairs": len(found.pairs),
        "identical": found.identical,
        "groups": len(set(found.groups)),
        "baselines": figures,
        "outcomes": outcomes,
        "pairs_digest": found.digest,
    }
