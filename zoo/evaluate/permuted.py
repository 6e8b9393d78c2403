"""Suite `permuted`: a document against its permutations (the paper's task of training)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from zoo.evaluate import Request
from zoo.evaluate.outcomes import Outcomes
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import Scorer, baseline, cut_of, describe, load_scorer, scores_of
from zoo.evaluate.scores import Ranking
from zoo.training.data import open_dataset, split_spec, spread

if TYPE_CHECKING:
    from zoo.evaluate.suites import Permuted


@runtime_checkable
class DocumentScorer(Protocol):
    """A scorer that cuts a document and its permutations alike, as in its training."""

    def rank_orders(self, documents: pa.Table, orders: pa.Table) -> Ranking: ...


def evaluate(suite: Permuted, request: Request) -> Result:
    """Pairwise accuracy on one split (of the suite's configuration, unless `@CONFIG` says else)."""
    folder, config = split_spec(request.data)
    orders = open_dataset(folder, config or suite.config).need("document", "orders")
    documents = open_dataset(folder, "documents").need("id", "sentences")
    tables = documents[request.split], spread(orders[request.split], request.limit)
    model = load_scorer(request.model, request.seed)
    if isinstance(model, DocumentScorer):
        ranking = model.rank_orders(*tables)
    else:
        ranking = rank_texts(model, *tables)
    metrics, about = ranking.metrics(request.seed), orders.describe()
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
