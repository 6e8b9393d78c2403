"""Evaluation suites: `python -m zoo.evaluate SUITE --model FOLDER --data FOLDER [--json OUT]`.

A suite is one class, a `zoo.declared.Suite`: what it needs of a model and of data, its options as
fields, and `evaluate(request)`. Ours are in `zoo.evaluate.suites`; another package's is an entry
point `discorpora.suites`, or is named as `package.module:Class` or `FILE.py:Class`.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpora.declared import Registry
from zoo.declared import Suite

SUITES = Registry(
    "suite",
    Suite,
    {
        "dissent": "zoo.evaluate.suites:DisSent",
        "pdtb": "zoo.evaluate.suites:Pdtb",
        "permuted": "zoo.evaluate.suites:Permuted",
        "pairwise": "zoo.evaluate.suites:Pairwise",
        "agreement": "zoo.evaluate.suites:Agreement",
        "ratings": "zoo.evaluate.suites:Ratings",
        "discoeval": "zoo.evaluate.suites:DiscoEval",
        "superglue": "zoo.evaluate.suites:SuperGlue",
        "senteval": "zoo.evaluate.suites:SentEval",
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
