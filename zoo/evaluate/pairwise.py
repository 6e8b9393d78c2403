"""Suite `pairwise`: which of two texts scores higher, with trivial rules beside every model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from corpora.errors import InputError, amount
from corpora.progress import track
from zoo.declared import Form
from zoo.evaluate import in_hand
from zoo.evaluate.pairwise_sets import PairSet, holds_pairs, open_sets, score_pairs
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scorers import RULES, OfScorers, baseline, cut_of
from zoo.evaluate.scores import (
    PROBES,
    McNemar,
    Outcomes,
    PairScores,
    Ties,
    left_out_note,
    mcnemar,
    ranking_accuracy,
)
from zoo.evaluate.table import Cell, Rows, percent, rows_of_sets


class Pairwise(OfScorers):
    """Which of two texts scores higher, with trivial rules beside every model.

    Pairs whose texts the model's cut makes equal are left out and counted, for the rules too.
    """

    version = 2
    name = "pairwise"
    paper = "Jwalapuram, Joty and Lin 2022, tables 1 to 3"
    reads = (Form(("pos", "neg")),)
    all_configs = True

    encoder: str = ""
    """The encoder of the rule `cosine`, a folder or Hub id; `none`: no rule, and no note."""
    prompt: bool = True
    """Whether a pair's prompt is part of both texts."""
    ties: Ties = "half"
    """What a tie counts: `half`, or `wrong` (nothing) as in the authors' code."""
    long: Literal["cut", "windows"] = "cut"
    """How a model with a limit reads longer texts: cut as in its training, or whole, in windows."""

    def read(self, spec: str) -> Any:
        """The path of a file or folder of pairs; None for a dataset."""
        return Path(spec) if holds_pairs(spec) else None

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Measure how often the scorer and the rules score the coherent text of a pair higher."""
        # Test sets and scorers
        pair_sets = open_sets(data, split, limit)
        scorers = self.scorers(model, seed, *RULES)
        notes = [] if self.encoder else ["no encoder for the rule cosine: see --encoder"]
        if self.encoder not in ("", "none"):
            scorers["cosine"] = baseline(f"cosine:{self.encoder}")
        encoder = Path(self.encoder).name if "cosine" in scorers else ""
        # Figures, notes and outcomes of each set
        sets: dict[str, dict[str, Any]] = {}
        outcomes: list[Outcomes] = []
        whole = self.long == "windows"
        for each in track(pair_sets.sets, "sets", total=len(pair_sets.sets)):
            scores = {
                name: score_pairs(each, scorer, self.prompt, whole=whole)
                for name, scorer in scorers.items()
            }
            sets[each.name] = figures_of(each, scores, seed, self.ties)
            if each.identical:
                notes.append(
                    f"{each.name}: {amount(each.identical, 'pair')} of equal texts left out"
                )
            same = scores[""].same
            if same.any():
                notes.append(left_out_note(each.name, int(same.sum()), len(same)))
            for name, of_scorer in scores.items():
                right = of_scorer.right(self.ties, same)
                row = row_name(name, encoder)
                outcomes.append(Outcomes(each.name, each.groups, right, rule=row))
        # The paper gives the probes one by one (table 3); their mean is ours.
        probes = [s["accuracy"]["value"] for name, s in sets.items() if name.startswith(PROBES)]
        mean = {"probes": {"value": float(np.mean(probes)), "of": len(probes)}} if probes else {}
        result = Result(
            model=in_hand.about(model),
            dataset=dict(pair_sets.description),
            protocol={"ties": self.ties, "prompt": self.prompt, "long": self.long, "limit": limit},
            examples=sum(len(each.pairs) for each in pair_sets.sets),
            metrics={"sets": sets, "means": mean, "resampled": "groups"},
            notes=notes,
            outcomes=outcomes,
            more={"cut": cut_of(model), "encoder": encoder},
        )
        return finished(self, result, model, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """A row of the model and one of each rule: a column for each set, and the probes' mean."""
        sets = result.metrics["sets"]
        encoder = str(result.more.get("encoder"))
        rows = {
            row_name(name.removeprefix("rule: "), encoder): cells
            for name, cells in rows_of_sets(sets, "accuracy", percent).items()
        }
        if means := result.metrics.get("means", {}):
            probes = tuple(sorted(name for name in sets if name.startswith(PROBES)))
            for cells in rows.values():
                mean = sum(cells[name].value for name in probes) / len(probes)
                cells[f"mean of {means['probes']['of']} probes"] = Cell(mean, parts=probes)
        return rows

    @classmethod
    def tests(cls, one: Result, two: Result) -> dict[str, McNemar]:
        """McNemar's test for each set whose outcomes both results have.

        Raises `InputError` if a set of the same name holds other pairs.
        """
        tests = {}
        for name, first in one.metrics["sets"].items():
            second = two.metrics["sets"].get(name, {})
            if not first.keys() & second.keys() >= {"outcomes", "pairs_digest"}:
                continue  # another program's result may lack them
            if first["pairs_digest"] != second["pairs_digest"]:
                raise InputError(
                    "the two results are of different pairs",
                    where=f"set {name!r}",
                    hint="evaluate both models alike, on the same data",
                )
            ties = one.protocol.get("ties", "wrong")
            tests[name] = mcnemar(first["outcomes"], second["outcomes"], ties)
        return tests


def row_name(rule: str, encoder: str) -> str:
    """The name of a rule's table row, with the encoder of `cosine`; "" for the model (rule "")."""
    if not rule:
        return ""
    return f"rule: cosine ({encoder})" if rule == "cosine" else f"rule: {rule}"


def figures_of(
    pair_set: PairSet, scores: Mapping[str, PairScores], seed: int, ties: Ties = "half"
) -> dict[str, Any]:
    """The metrics of a test set: accuracy of the model and of the rules, and each pair's outcome.

    `scores` has the model's scores under "" and those of each rule under its name. Only pairs count
    whose texts still differ after the model cut them to its limit of tokens. Raises `InputError` if
    none do.
    """
    model = scores[""]
    if model.same.all():
        raise InputError(
            f"holds no pair of texts that differ within the model's limit, of "
            f"{amount(len(pair_set.pairs), 'pair')}",
            where=f"set {pair_set.name!r}",
            hint="read long texts whole: --long windows",
            field="long",
        )
    judged, figures = ~model.same, {}
    groups = [group for group, marked in zip(pair_set.groups, judged, strict=True) if marked]
    for name, (coherent, other, _) in scores.items():
        bootstrap = f"{pair_set.name}.{name}" if name else pair_set.name
        figures[name] = ranking_accuracy(
            coherent[judged], other[judged], groups, seed, bootstrap, ties
        )
    return {
        "accuracy": figures.pop(""),
        "pairs": len(groups),
        "identical": pair_set.identical + int(model.same.sum()),
        "groups": len(set(groups)),
        "baselines": figures,
        "outcomes": model.outcomes,
        "pairs_digest": pair_set.digest,
    }
