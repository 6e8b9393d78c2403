"""What recipes and suites are said to read and to do is what they read and do."""

from __future__ import annotations

from importlib import import_module

import pytest
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

import zoo
from corpora.schemas import DATASETS
from corpora.tasks import BUILDERS
from zoo.criteria.data import COLUMNS
from zoo.declared import CLASSIFIES, LABELLED, RECIPES, SCORES
from zoo.evaluate import SUITES
from zoo.evaluate.discoeval.reading import task_of
from zoo.evaluate.discoeval.tasks import TASKS

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


@pytest.mark.parametrize("name", list(SUITES))
def test_every_suite_can_be_found_and_has_a_builder(name: str) -> None:
    suite = SUITES.find(name)
    assert suite.name == name and suite.needs and suite.summary() and suite.of({})
    assert all(field.description for field in suite.model_fields.values())
    assert {*suite.builders} <= {*BUILDERS}
    for form in suite.reads:
        schemas = [schema for all in DATASETS.values() for schema in all.values()]
        assert any({*form.columns} <= {*schema.names} for schema in schemas) or form in LABELLED


@pytest.mark.parametrize("name", RECIPES.own)
def test_models_can_do_what_their_recipe_says(name: str) -> None:
    zoo.register()
    config = type(AutoConfig.for_model(TYPE_OF[name]))
    model = AutoModel._model_mapping.get(config, None)
    can = RECIPES.find(name).can
    classifier = AutoModelForSequenceClassification._model_mapping.get(config, None)
    assert (SCORES in can) == hasattr(model, "score")
    assert (CLASSIFIES in can) == hasattr(classifier, "encode_pairs")


@pytest.mark.parametrize("builder", BUILDERS)
def test_the_columns_of_every_builder_are_those_of_its_card(builder: str) -> None:
    columns = {name for schema in DATASETS[builder].values() for name in schema.names}
    module = import_module(f"corpora.tasks.{BUILDERS[builder].module}")
    # The module of both kinds of relations makes a card of each from the same fields.
    fields = module.FIELDS if BUILDERS[builder].kind else module.CARD.fields
    assert columns == {name.rpartition(".")[2] for name in fields}


def test_the_tasks_of_discoeval_are_told_by_their_columns() -> None:
    made = {name for name, builder in BUILDERS.items() if builder.module.startswith("discoeval.")}
    assert {task.builder for task in TASKS.values()} == made
    for builder, schemas in DATASETS.items():
        for schema in schemas.values():
            task = task_of(set(schema.names), builder)
            assert (task.builder if task else "") == (builder if builder in made else "")
            if task is not None:
                assert {*task.texts} <= {*schema.names}


def test_the_criteria_read_their_columns() -> None:
    assert RECIPES.find("criteria.bigru").reads[0].columns == COLUMNS
