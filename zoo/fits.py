"""What each recipe reads, and what its models can do: told without loading torch.

A build file is checked by this table before anything is built. `tests/zoo/test_fits.py` holds
it against the recipes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zoo.declared import CLASSIFIES, ENCODES, GOES_ON, INTRUDED, LABELLED, PERMUTED, SCORES, Form
from zoo.training.data import SPLITS


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
    "dissent.bilstm": Recipe((LABELLED[0],), frozenset({CLASSIFIES, ENCODES})),
    "dissent.ngram": Recipe(LABELLED, frozenset({CLASSIFIES}), splits=_TRAINED_ON),
    "dissent.sif": Recipe(LABELLED, frozenset({CLASSIFIES, ENCODES}), splits=_TRAINED_ON),
    "dissent.transformer": Recipe(
        LABELLED, frozenset({CLASSIFIES, ENCODES, GOES_ON}), splits=_TRAINED_ON
    ),
    "coherence.contrastive": Recipe(
        (PERMUTED, INTRUDED),
        frozenset({SCORES, ENCODES, GOES_ON}),
        config="contrastive",
        config_from="objective",
    ),
    "coherence.full": Recipe(
        (PERMUTED, INTRUDED), frozenset({SCORES, ENCODES, GOES_ON}), config="ranked"
    ),
    "coherence.unc": Recipe((PERMUTED,), frozenset({SCORES}), config="pairwise"),
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
