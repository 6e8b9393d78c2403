"""Suite `permuted`: a document against its permutations (the paper's task of training)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from zoo.evaluate import Request
from zoo.evaluate.outcomes import Outcomes
from zoo.evaluate.pairwise import baselines, compare, cut_of, describe, finite, score_pairs
from zoo.evaluate.pairwise_sets import TestPair, TestSet
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import Longer, Scorer, load_scorer
from zoo.training.data import open_dataset, split_spec, spread

if TYPE_CHECKING:
    from zoo.evaluate.suites import Permuted


class Documents(Protocol):
    """Documents cut to what a model takes, as token ids."""

    def original(self, document: str) -> np.ndarray:
        """The document as it stood, as one text."""
        ...

    def permuted(self, document: str, order: Sequence[int]) -> np.ndarray:
        """The document with its sentences in `order`."""
        ...

    def orders(self, document: str, orders: Sequence[Sequence[int]]) -> list[list[int]]:
        """`orders` over the kept sentences; those whose text is the original are left out."""
        ...


@runtime_checkable
class DocumentScorer(Protocol):
    """A scorer that cuts a document and its permutations alike, as in its training."""

    def documents(self, table: pa.Table) -> Documents:
        """The rows of a table with `id` and `sentences`, cut and encoded."""
        ...

    def score_ids(self, texts: Sequence[Any], batch_tokens: int = 16384) -> list[float]:
        """One score a text of token ids."""
        ...


def evaluate(suite: Permuted, request: Request) -> Result:
    """Pairwise accuracy on one split (of the suite's configuration, unless `@CONFIG` says else)."""
    folder, config = split_spec(request.data)
    orders = open_dataset(folder, config or suite.config).need("document", "orders")
    documents = open_dataset(folder, "documents").need("id", "sentences")
    table = spread(orders[request.split], request.limit)
    model = load_scorer(request.model, request.seed)
    if isinstance(model, DocumentScorer):
        scored = score_documents(model, model.documents(documents[request.split]), table)
    else:
        scored = score_texts(model, permuted_pairs(documents[request.split], table))
    metrics, about = scored.metrics(request.seed), orders.describe()
    return Result(
        model=describe(request.model, model),
        dataset=about,
        protocol={"limit": request.limit},
        examples=metrics["pairs"],
        metrics=metrics,
        outcomes=[Outcomes(suite.column(about["config"]), scored.documents, scored.right)],
        more={"cut": cut_of(model)},
    )


@dataclass(frozen=True)
class Scored:
    """The scores of `documents[pair]` and of a permutation of each, and their lengths."""

    documents: Sequence[str]
    coherent: np.ndarray
    permuted: np.ndarray
    lengths: tuple[np.ndarray, np.ndarray]
    identical: int

    @property
    def right(self) -> np.ndarray:
        """A tie is wrong."""
        return self.coherent > self.permuted

    def metrics(self, seed: int) -> dict[str, Any]:
        """Accuracy, and that of the rules."""
        names = self.documents
        return {
            "accuracy": compare(self.coherent, self.permuted, names, seed, "permuted"),
            "pairs": len(names),
            "documents": len(set(names)),
            "identical": self.identical,
            "baselines": baselines(self.lengths, names, seed),
            "resampled": "documents",
        }


def permuted_pairs(documents: pa.Table, orders: pa.Table) -> TestSet:
    """Each document with each of its permutations, as whole texts."""
    sentences = dict(
        zip(documents["id"].to_pylist(), documents["sentences"].to_pylist(), strict=True)
    )
    pairs = []
    for row in orders.select(["document", "orders"]).to_pylist():
        name, pos = row["document"], tuple(sentences[row["document"]])
        for order in row["orders"]:
            pairs.append(TestPair(name, name, (), pos, tuple(pos[i] for i in order)))
    different = [pair for pair in pairs if not pair.identical]
    if not different:
        raise InputError("no document differs from its permutations", hint="it needs two sentences")
    return TestSet("permuted", different, len(pairs) - len(different))


def text_accuracy(model: Scorer, found: TestSet, seed: int) -> dict[str, Any]:
    """As `pairwise_accuracy`, for any scorer: it gets the texts whole."""
    return score_texts(model, found).metrics(seed)


def score_texts(model: Scorer, found: TestSet) -> Scored:
    """The scores of whole texts."""
    names = [pair.group for pair in found.pairs]
    length = score_pairs(found, Longer())
    return Scored(names, *score_pairs(found, model), length, found.identical)


def pairwise_accuracy(
    model: DocumentScorer,
    documents: Documents,
    orders: pa.Table,
    seed: int,
    batch_tokens: int = 16384,
) -> dict[str, Any]:
    """How often a document scores above a permutation of it; ties count as wrong.

    A document is scored once. Permutations that the cut made equal to the document are left out
    and counted as `identical`.
    """
    return score_documents(model, documents, orders, batch_tokens).metrics(seed)


def score_documents(
    model: DocumentScorer, documents: Documents, orders: pa.Table, batch_tokens: int = 16384
) -> Scored:
    """The scores of documents cut and encoded as in training; each is scored once."""
    names, permuted, identical = [], [], 0
    for document, listed in zip(
        orders["document"].to_pylist(), orders["orders"].to_pylist(), strict=True
    ):
        usable = documents.orders(document, listed)
        identical += len(listed) - len(usable)
        permuted += [documents.permuted(document, order) for order in usable]
        names += [document] * len(usable)
    if not names:
        raise InputError("no document differs from its permutations", hint="it needs two sentences")
    distinct = sorted(set(names))
    originals = [documents.original(document) for document in distinct]
    scores = finite(np.array(model.score_ids([*originals, *permuted], batch_tokens)), "permuted")
    own = dict(zip(distinct, scores[: len(distinct)].tolist(), strict=True))
    coherent = np.array([own[name] for name in names])
    lengths = {name: len(text) for name, text in zip(distinct, originals, strict=True)}
    length = np.array([lengths[name] for name in names]), np.array([len(t) for t in permuted])
    return Scored(names, coherent, scores[len(distinct) :], length, identical)
