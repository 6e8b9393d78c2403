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
    ranked,
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
    """Of the rule `cosine`: a folder or Hub id; `none` leaves the rule out without a note."""
    prompt: bool = True
    """Whether a pair's prompt is part of both texts."""
    ties: Ties = "half"
    """What a tie counts: `half`, or `wrong` (nothing) as in the authors' code."""
    long: Literal["cut", "windows"] = "cut"
    """How a model with a limit reads longer texts: cut as in its training, or whole, in windows."""

    def read(self, spec: str) -> Any:
        return Path(spec) if holds_pairs(spec) else None

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Accuracy on each test set, beside the rules."""
        found = open_sets(data, split, limit)
        scorers = self.scorers(model, seed, *RULES)
        notes = [] if self.encoder else ["no encoder for the rule cosine: see --encoder"]
        if self.encoder not in ("", "none"):
            scorers["cosine"] = baseline(f"cosine:{self.encoder}")
        encoder = Path(self.encoder).name if "cosine" in scorers else ""
        sets: dict[str, dict[str, Any]] = {}
        outcomes: list[Outcomes] = []
        whole = self.long == "windows"
        for each in track(found.sets, "sets", total=len(found.sets)):
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
            for name, own in scores.items():
                row = row_of(name, encoder)
                right = own.right(self.ties, same)
                outcomes.append(Outcomes(each.name, each.groups, right, rule=row))
        # The paper gives the probes one by one (table 3).
        probes = [s["accuracy"]["value"] for name, s in sets.items() if name.startswith(PROBES)]
        mean = {"probes": {"value": float(np.mean(probes)), "of": len(probes)}} if probes else {}
        result = Result(
            model=in_hand.about(model),
            dataset=dict(found.description),
            protocol={
                "ties": self.ties,
                "prompt": self.prompt,
                "long": self.long,
                "limit": limit,
            },
            examples=sum(len(each.pairs) for each in found.sets),
            metrics={"sets": sets, "means": mean, "resampled": "groups"},
            notes=notes,
            outcomes=outcomes,
            more={"cut": cut_of(model), "encoder": encoder},
        )
        return finished(self, result, model, split, seed)

    @classmethod
    def rows(cls, result: Result) -> Rows:
        sets = result.metrics["sets"]
        encoder = str(result.more.get("encoder"))
        found = rows_of_sets(sets, "accuracy", percent)
        rows = {row_of(name.removeprefix("rule: "), encoder): own for name, own in found.items()}
        if means := result.metrics.get("means", {}):
            probes = tuple(sorted(name for name in sets if name.startswith(PROBES)))
            for cells in rows.values():
                mean = sum(cells[name].value for name in probes) / len(probes)
                cells[f"mean of {means['probes']['of']} probes"] = Cell(mean, parts=probes)
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
            ties = one.protocol.get("ties", "wrong")
            found[name] = mcnemar(own["outcomes"], other["outcomes"], ties)
        return found


def row_of(rule: str, encoder: str) -> str:
    """The row of a rule in a table; "" that of the model."""
    named = f" ({encoder})" if rule == "cosine" else ""
    return rule and f"rule: {rule}{named}"


def figures_of(
    found: PairSet, scores: Mapping[str, PairScores], seed: int, ties: Ties = "half"
) -> dict[str, Any]:
    """Accuracy of the model ("") and of the rules on the same pairs, and each pair's outcome.

    Raises `InputError` if the model reads no pair's texts as two.
    """
    model = scores[""]
    if model.same.all():
        raise InputError(
            f"holds no pair of texts that differ within the model's limit, of "
            f"{amount(len(found.pairs), 'pair')}",
            where=f"set {found.name!r}",
            hint="read long texts whole: --long windows",
            field="long",
        )
    judged, figures = ~model.same, {}
    groups = [group for group, one in zip(found.groups, judged, strict=True) if one]
    for name, (coherent, other, _) in scores.items():
        drawn = f"{found.name}.{name}" if name else found.name
        figures[name] = ranked(coherent[judged], other[judged], groups, seed, drawn, ties)
    return {
        "accuracy": figures.pop(""),
        "pairs": len(groups),
        "identical": found.identical + int(model.same.sum()),
        "groups": len(set(groups)),
        "baselines": figures,
        "outcomes": model.outcomes,
        "pairs_digest": found.digest,
    }
