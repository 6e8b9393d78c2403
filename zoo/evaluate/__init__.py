"""Evaluation suites: `python -m zoo.evaluate SUITE --model FOLDER --data FOLDER [--json OUT]`.

A suite is one class, a `zoo.declared.Suite`: what it needs of a model and of data, its options as
fields, and `evaluate(request)`. Ours are one module each; another package's is an entry point
`discorpora.suites`, or is named as `package.module:Class` or `FILE.py:Class`. A suite's module
loads no torch and no transformers before it evaluates: planning reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpora.declared import Registry
from zoo.declared import Suite

SUITES = Registry(
    "suite",
    Suite,
    {
        "dissent": "zoo.evaluate.relations:DisSent",
        "pdtb": "zoo.evaluate.relations:Pdtb",
        "permuted": "zoo.evaluate.permuted:Permuted",
        "pairwise": "zoo.evaluate.pairwise:Pairwise",
        "agreement": "zoo.evaluate.agreement:Agreement",
        "ratings": "zoo.evaluate.ratings:Ratings",
        "discoeval": "zoo.evaluate.discoeval.protocol:DiscoEval",
        "superglue": "zoo.evaluate.superglue:SuperGlue",
        "senteval": "zoo.evaluate.senteval:SentEval",
    },
)


@dataclass(frozen=True)
class Request:
    """What to evaluate: a model (folder or Hub id) on a dataset (folder or Hub id, `@CONFIG`)."""

    model: str
    data: str
    split: str = "test"
    seed: int = 0
    batch_size: int = 64
    limit: int = 0
    """The most rows to use, spread evenly over the split (0: all)."""
