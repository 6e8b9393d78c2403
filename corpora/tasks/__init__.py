"""Dataset builders by name; `BUILDERS.find(name)` gives the class: its fields are the settings."""

from __future__ import annotations

from corpora.declared import Registry
from corpora.tasks.builder import Builder

BUILDERS = Registry(
    "builder",
    Builder,
    {
        "dissent": "corpora.tasks.dissent:Dissent",
        "sp": "corpora.tasks.discoeval.order:Sp",
        "bso": "corpora.tasks.discoeval.order:Bso",
        "dc": "corpora.tasks.discoeval.dc:Dc",
        "ssp": "corpora.tasks.discoeval.ssp:Ssp",
        "pdtb_explicit": "corpora.tasks.relations:PdtbExplicit",
        "pdtb_implicit": "corpora.tasks.relations:PdtbImplicit",
        "pdtb_marked": "corpora.tasks.relations:PdtbMarked",
        "explicit_relations": "extract.relations:ExplicitRelations",
        "rst": "corpora.tasks.discoeval.rst:Rst",
        "permuted": "corpora.tasks.permuted:Permuted",
        "intrusion": "corpora.tasks.intrusion:Intrusion",
        "conpono": "corpora.tasks.pretraining:Conpono",
        "criteria": "corpora.tasks.pretraining:Criteria",
        "coherence_tests": "corpora.tasks.coherence_tests:CoherenceTests",
        "discovery": "corpora.tasks.discovery:Discovery",
        "discoeval": "corpora.tasks.discoeval.released:DiscoEval",
        "marker_pairs": "corpora.tasks.released:MarkerPairs",
        "nli": "corpora.tasks.released:NaturalInference",
        "insted": "corpora.tasks.released:Insted",
        "disrpt": "corpora.tasks.released:Disrpt",
        "rated": "corpora.tasks.released:Ratings",
        "superglue": "corpora.tasks.superglue:Superglue",
    },
)
