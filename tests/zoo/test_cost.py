"""The cost of a training from its settings, against the operations that are counted in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.errors import ConfigError
from zoo.presets import read_preset
from zoo.training.cost import H200, cost_of
from zoo.training.throughput import PEAK_TFLOPS, operations

PLACES = {"dataset": "-", "output": "-"}
BERT = "google-bert/bert-base-uncased"


def test_flops_are_six_for_each_weight_and_token() -> None:
    settings = {**PLACES, "backbone": BERT, "epochs": 2, "max_tokens": 100}
    cost = cost_of(read_preset("dissent/transformer").recipe(settings), 1000)
    assert cost.examples == 2000 and cost.weights == 84_934_656
    assert cost.flops == 6 * 84_934_656 * 100 * 2000
    assert cost.hours == pytest.approx(cost.flops / (0.4 * 989e12 * 3600))
    assert PEAK_TFLOPS["H200"][0] * 1e12 == H200


def test_the_weights_are_those_that_a_run_counts(tiny_bert: Path) -> None:
    from transformers import BertModel

    model = BertModel.from_pretrained(tiny_bert, add_pooling_layer=False)
    settings = {**PLACES, "backbone": str(tiny_bert), "max_tokens": 20}
    cost = cost_of(read_preset("dissent/transformer").recipe(settings), 10)
    # Biases and layer norms are left out, which in so small a model are an eighth.
    assert cost.flops == pytest.approx(operations(model, 10, 200), rel=0.15)


@pytest.mark.parametrize(
    ("recipe", "settings", "tokens"),
    [
        ("conpono/full", {"max_steps": 1, "batch_size": 1, "gradient_accumulation": 1}, 33 * 512),
        ("conpono/bso", {"max_steps": 1, "batch_size": 1, "gradient_accumulation": 1}, 32 * 512),
        ("coherence/contrastive", {"backbone": BERT}, 6 * 600),
        ("coherence/contrastive", {"backbone": BERT, "objective": "pairwise"}, 2 * 600),
        ("coherence/full", {"backbone": BERT}, (6 + 2 + 50 / 3) * 600),
        ("coherence/full", {"backbone": BERT, "momentum_weight": 0}, (6 + 50 / 3) * 600),
    ],
)
def test_every_text_of_an_example_counts(
    recipe: str, settings: dict[str, object], tokens: float
) -> None:
    cost = cost_of(read_preset(recipe).recipe({**PLACES, **settings}), 1)
    assert cost.flops == pytest.approx(6 * cost.weights * tokens)


@pytest.mark.parametrize(
    ("recipe", "settings", "message"),
    [
        ("dissent/ngram", {}, "no optimizer steps"),
        ("dissent/transformer", {"backbone": "who/knows"}, "size of the encoder 'who/knows'"),
    ],
)
def test_what_has_no_cost_is_said(recipe: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cost_of(read_preset(recipe).recipe({**PLACES, **settings}), 1)
