"""Suite `permuted`: a document against its permutations."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import ConfigError
from zoo.declared import Form
from zoo.evaluate import in_hand
from zoo.evaluate.results import Result, finished
from zoo.evaluate.scorers import OfScorers, Scorer, baseline, cut_of, score_both, scores_of
from zoo.evaluate.scores import Outcomes, Ranking, Ties, left_out_note
from zoo.evaluate.table import Rows, percent, rows_of_sets
from zoo.training.data import as_datasets, spread


class Permuted(OfScorers):
    """A document against its permutations: the coherence scorer's own task."""

    version = 2
    name = "permuted"
    paper = "Jwalapuram, Joty and Lin 2022"
    reads = (Form(("document", "orders"), {"documents": ("id", "sentences")}),)
    config = "pairwise"

    ties: Ties = "half"
    """What a tie counts: `half`, or `wrong` (nothing) as in the authors' code."""

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Measure how often the scorer and the rules score a document above its permutations.

        `data` are two datasets: `documents`, and one with the permuted orders of their sentences.
        """
        # Data
        datasets = {each.config: each for each in as_datasets(data)}
        documents = datasets.pop("documents", None)
        if documents is None or len(datasets) != 1:
            raise ConfigError(
                "the data are no documents with their orders",
                where=f"suite {self.name}",
                hint='give {"documents": DATASET, "pairwise": DATASET}',
            )
        [orders] = datasets.values()
        orders, documents = orders.need("document", "orders"), documents.need("id", "sentences")
        tables = documents[split], spread(orders[split], limit)
        # Scores of the model and the rules
        scorers = self.scorers(model, seed)
        model = scorers.pop("")
        # A scorer may cut a document and its permutations alike, as in its training.
        rank_orders = getattr(model, "rank_orders", partial(rank_texts, model))
        ranking: Ranking = rank_orders(*tables)
        about, rules = orders.describe(), ranking.rules(seed)
        metrics = ranking.metrics(seed, self.ties)
        for name, rule in scorers.items():
            rules[name] = rank_texts(rule, *tables).scores
            figure = ranking.figure(rules[name], seed, name, self.ties)
            metrics["baselines"][name] = figure
        # Result
        column, pairs = self.column(about["config"]), len(ranking.documents)
        outcomes = [
            Outcomes(
                column,
                ranking.documents,
                scores.right(self.ties, ranking.same),
                rule=name and f"rule: {name}",
            )
            for name, scores in {"": ranking.scores, **rules}.items()
        ]
        result = Result(
            model=in_hand.about(model),
            dataset=about,
            protocol={"ties": self.ties, "limit": limit},
            examples=pairs,
            metrics=metrics,
            notes=[left_out_note(column, n, pairs)] if (n := ranking.identical) else [],
            outcomes=outcomes,
            more={"cut": cut_of(model)},
        )
        return finished(self, result, model, split, seed)

    @classmethod
    def column(cls, config: str) -> str:
        """The table column of a configuration, with the name of any but `pairwise`."""
        return "permuted accuracy" + ("" if config == cls.config else f" ({config})")

    @classmethod
    def rows(cls, result: Result) -> Rows:
        column = cls.column(result.dataset["config"])
        return rows_of_sets({column: result.metrics}, "accuracy", percent)


def rank_texts(model: Scorer, documents: pa.Table, orders: pa.Table) -> Ranking:
    """Score each document and each of its permutations with any scorer, which gets whole texts.

    `documents` has the columns `id` and `sentences`; `orders` has `document`, an id, and `orders`,
    a list of permutations of the document's sentence numbers.
    """
    sentences = {
        row["id"]: tuple(row["sentences"])
        for row in documents.select(["id", "sentences"]).to_pylist()
    }
    names, texts, permuted = [], [], []
    for row in orders.select(["document", "orders"]).to_pylist():
        text = sentences[row["document"]]
        others = [tuple(text[i] for i in order) for order in row["orders"]]
        names += [row["document"]] * len(others)
        texts += [text] * len(others)
        permuted += others
    coherent, other, same = score_both(model, texts, permuted, "permuted")
    lengths = np.split(scores_of(baseline("longer"), [*texts, *permuted]), 2)
    return Ranking(names, coherent, other, (lengths[0], lengths[1]), same)
