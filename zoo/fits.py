"""What each suite reads: told without loading torch.

A build file is checked by this table before anything is built. `tests/zoo/test_fits.py` holds
them against the suites.
"""

from __future__ import annotations

from dataclasses import dataclass

from zoo.declared import CLASSIFIES, ENCODES, GOES_ON, LABELLED, SCORES, Form


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
    "dissent": Suite(frozenset({CLASSIFIES}), LABELLED),
    "pdtb": Suite(frozenset({CLASSIFIES, ENCODES}), (LABELLED[1],)),
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
