"""What each recipe and each suite reads, and what its models can do: told without loading torch.

A build file is checked by these tables before anything is built. `tests/zoo/test_fits.py` holds
them against the recipes and suites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zoo.training.data import SPLITS

CLASSIFIES, SCORES, ENCODES, GOES_ON = (
    "tells the label of two texts",
    "scores a text",
    "gives vectors of texts",
    "has a backbone to go on from",
)
"""What a model can do."""

TEXTS = (("s1", "s2"), ("arg1", "arg2"), ("premise", "hypothesis"), ("sentence1", "sentence2"))
"""Names that the columns of the two texts of a labelled pair go by, looked for in this order."""


@dataclass(frozen=True)
class Form:
    """One form that data may have: columns, and those of the configurations read beside it."""

    columns: tuple[str, ...]
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_LABELLED = tuple(Form((*two, "label")) for two in TEXTS)
_PERMUTED = Form(
    ("document", "orders"),
    {"documents": ("id", "sentences"), "pairwise": ("document", "orders")},
)
_INTRUDED = Form(("doc", "position", "pos", "neg"))


@dataclass(frozen=True)
class Recipe:
    """What a recipe's module reads, and what the models can do that it trains.

    `config` is the configuration that it takes where none is named ("": the dataset's default
    one), or the value of its setting `config_from`. `splits` must have rows.
    """

    forms: tuple[Form, ...]
    can: frozenset[str]
    config: str = ""
    config_from: str = ""
    splits: tuple[str, ...] = SPLITS

    def configuration(self, settings: Mapping[str, Any]) -> str:
        """The configuration that is read with these settings ("": the dataset's default one)."""
        own = str(settings.get(self.config_from) or self.config)
        return str(settings.get("dataset_config") or own)

    def forms_with(self, settings: Mapping[str, Any]) -> tuple[Form, ...]:
        """The forms of data that are read with these settings: `columns` names the texts."""
        named = settings.get("columns")
        return (Form((*named, "label")),) if named else self.forms


_TRAINED_ON = ("train", "validation")
"""Splits of a recipe that does without a test split."""

RECIPES = {
    "dissent.bilstm": Recipe((_LABELLED[0],), frozenset({CLASSIFIES, ENCODES})),
    "dissent.ngram": Recipe(_LABELLED, frozenset({CLASSIFIES}), splits=_TRAINED_ON),
    "dissent.sif": Recipe(_LABELLED, frozenset({CLASSIFIES, ENCODES}), splits=_TRAINED_ON),
    "dissent.transformer": Recipe(
        _LABELLED, frozenset({CLASSIFIES, ENCODES, GOES_ON}), splits=_TRAINED_ON
    ),
    "coherence.contrastive": Recipe(
        (_PERMUTED, _INTRUDED),
        frozenset({SCORES, ENCODES, GOES_ON}),
        config="contrastive",
        config_from="objective",
    ),
    "coherence.full": Recipe(
        (_PERMUTED, _INTRUDED), frozenset({SCORES, ENCODES, GOES_ON}), config="ranked"
    ),
    "coherence.unc": Recipe((_PERMUTED,), frozenset({SCORES}), config="pairwise"),
    "conpono.conpono": Recipe(
        (Form(("doc", "sentences", "bounds")),), frozenset({ENCODES, GOES_ON})
    ),
    "criteria.bigru": Recipe(
        (
            Form(
                (
                    *("doc", "title", "sentences", "section", "headings", "level"),
                    *("sentence_bin", "paragraph_bin"),
                )
            ),
        ),
        frozenset({ENCODES}),
    ),
}
"""By module, as a recipe's file names it."""


@dataclass(frozen=True)
class Suite:
    """What a suite asks of a model (one of `needs`) and of a dataset of a build.

    Without a `config` of its own it takes the dataset's default one, or with `all_configs`
    those of its configurations that have a form of `forms`. `several`: it takes a list of
    datasets. Without `forms` it reads no dataset of a build. `splits` must have rows. `builders`:
    it takes the datasets of these alone, whoever else has the same columns.
    """

    needs: frozenset[str]
    forms: tuple[Form, ...]
    config: str = ""
    all_configs: bool = False
    several: bool = False
    splits: tuple[str, ...] = ("test",)
    builders: tuple[str, ...] = ()


_TASKS = (
    Form(("left", "right", "relation", "label")),
    Form(("arg1", "arg2", "sense", "label")),
    Form(("sentence1", "sentence2", "label")),
    Form(("sentence", "section", "label")),
    Form(("sentences", "donor", "found_by", "label")),
    Form(("doc", "label", "sentences")),
)
"""RST, PDTB, BSO, SSP, DC and SP of DiscoEval."""

SUITES = {
    "dissent": Suite(frozenset({CLASSIFIES}), _LABELLED),
    "pdtb": Suite(frozenset({CLASSIFIES, ENCODES}), (_LABELLED[1],)),
    "permuted": Suite(
        frozenset({SCORES}),
        (Form(("document", "orders"), {"documents": ("id", "sentences")}),),
        config="pairwise",
    ),
    "pairwise": Suite(frozenset({SCORES}), (Form(("pos", "neg")),), all_configs=True),
    "agreement": Suite(frozenset({SCORES}), (Form(("pos", "neg", "votes")),), all_configs=True),
    "discoeval": Suite(
        # Without a test split it takes the validation split, and trains on a part of it.
        frozenset({ENCODES}),
        _TASKS,
        all_configs=True,
        several=True,
        splits=("validation",),
        builders=("sp", "bso", "dc", "ssp", "pdtb_explicit", "pdtb_implicit", "rst"),
    ),
    "superglue": Suite(
        frozenset({GOES_ON}),
        (
            Form(("premise", "hypothesis", "label")),
            Form(("premise", "question", "choice1", "choice2", "label")),
            Form(("passage", "query", "entities", "answers")),
        ),
        all_configs=True,
    ),
    "senteval": Suite(frozenset({ENCODES}), ()),
}
"""By the names of `zoo.evaluate.SUITES`."""
