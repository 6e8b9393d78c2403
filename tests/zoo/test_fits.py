"""What recipes and suites are said to read and to do is what they read and do."""

from __future__ import annotations

import pytest
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

import zoo
from corpora.tasks import BUILDERS
from zoo.criteria.data import COLUMNS
from zoo.declared import CLASSIFIES, LABELLED, RECIPES, SCORES
from zoo.evaluate import SUITES
from zoo.evaluate.discoeval.data import RELEASED, task_of
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
        schemas = [s for name in BUILDERS.built_in for s in BUILDERS.find(name).gives.values()]
        assert any({*form.columns} <= {*schema.names} for schema in schemas) or form in LABELLED


@pytest.mark.parametrize("name", TYPE_OF)
def test_models_can_do_what_their_recipe_says(name: str) -> None:
    zoo.register()
    config = type(AutoConfig.for_model(TYPE_OF[name]))
    model = AutoModel._model_mapping.get(config, None)
    can = RECIPES.find(name).can
    classifier = AutoModelForSequenceClassification._model_mapping.get(config, None)
    assert (SCORES in can) == hasattr(model, "score")
    assert (CLASSIFIES in can) == hasattr(classifier, "encode_pairs")


def test_the_tasks_of_discoeval_are_told_by_their_columns() -> None:
    made = {RELEASED, *(task.builder for task in TASKS.values())}
    assert made >= {name for name, place in BUILDERS.built_in.items() if ".discoeval." in place}
    assert made >= {"pdtb_explicit", "pdtb_implicit", "rst"}
    for builder in BUILDERS.built_in:
        for config, schema in BUILDERS.find(builder).gives.items():
            task = task_of(set(schema.names), builder)
            expected = config.partition("_")[0] if builder == RELEASED else builder
            assert (task.builder if task else "") == (expected if builder in made else "")
            if task is not None:
                assert {*task.texts} <= {*schema.names}


def test_the_criteria_read_their_columns() -> None:
    assert RECIPES.find("criteria.bigru").reads[0].columns == COLUMNS
