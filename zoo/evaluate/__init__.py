"""Evaluation suites: `python -m zoo.evaluate SUITE --model FOLDER --data FOLDER [--json OUT]`.

A suite is one class, a `zoo.declared.Suite`. It declares which models and data it takes, has its
options as fields, and evaluates objects with `evaluate(model, data)`:

    from zoo.evaluate import SUITES, Scores, Vectors
    SUITES.find("discoeval")().evaluate(SentenceTransformer("FOLDER"), "path/to/DiscoEval/data")
    SUITES.find("pairwise")().evaluate(Scores(my_function), load_dataset("json", data_files="..."))

Our suites have one module each. A suite of another package is an entry point `discorpora.suites`,
or is named as `package.module:Class` or `FILE.py:Class`. Planning a build imports the suites'
modules, so they import torch and transformers only to evaluate.
"""

from __future__ import annotations

from corpora.declared import Registry
from zoo import lazily
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

__getattr__ = lazily(__name__, {"encoders": ("Vectors",), "scorers": ("Scores",)})
