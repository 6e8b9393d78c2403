"""What recipes and suites are said to read and to do is what they read and do."""

from __future__ import annotations

from importlib import import_module

import pytest
from transformers import AutoConfig, AutoModel

import zoo
from corpora.schemas import DATASETS
from corpora.tasks import BUILDERS
from zoo import evaluate, fits
from zoo.criteria.data import COLUMNS
from zoo.declared import CLASSIFIES, RECIPES, SCORES
from zoo.dissent.prediction import TYPES
from zoo.evaluate.discoeval.data import _task_of

TYPE_OF = {
    "dissent.bilstm": "discorpora-dissent-bilstm",
    "dissent.ngram": "discorpora-dissent-ngram",
    "dissent.sif": "discorpora-dissent-sif",
    "dissent.transformer": "discorpora-dissent-transformer",
    "coherence.contrastive": "discorpora-coherence-scorer",
    "coherence.full": "discorpora-coherence-scorer",
    "coherence.unc": "discorpora-coherence-unc",
    "conpono.conpono": "discorpora-conpono",
    "criteria.bigru": "discorpora-criteria",
}


def test_every_suite_says_what_it_reads() -> None:
    assert set(evaluate.SUITES) == set(fits.SUITES)


@pytest.mark.parametrize("name", RECIPES.own)
def test_models_can_do_what_their_recipe_says(name: str) -> None:
    zoo.register()
    config = type(AutoConfig.for_model(TYPE_OF[name]))
    model = AutoModel._model_mapping.get(config, None)
    can = RECIPES.find(name).can
    assert (SCORES in can) == hasattr(model, "score")
    assert (CLASSIFIES in can) == (TYPE_OF[name] in TYPES)


@pytest.mark.parametrize("builder", BUILDERS)
def test_the_columns_of_every_builder_are_those_of_its_card(builder: str) -> None:
    columns = {name for schema in DATASETS[builder].values() for name in schema.names}
    module = import_module(f"corpora.tasks.{BUILDERS[builder].module}")
    # The module of both kinds of relations makes a card of each from the same fields.
    fields = module.FIELDS if BUILDERS[builder].kind else module.CARD.fields
    assert columns == {name.rpartition(".")[2] for name in fields}


def test_the_suite_discoeval_takes_the_tasks_that_it_knows() -> None:
    forms = fits.SUITES["discoeval"].forms
    for schemas in DATASETS.values():
        for schema in schemas.values():
            if _task_of(set(schema.names), "") is not None:
                assert any({*form.columns} <= {*schema.names} for form in forms)


def test_the_criteria_read_their_columns() -> None:
    assert RECIPES.find("criteria.bigru").reads[0].columns == COLUMNS
