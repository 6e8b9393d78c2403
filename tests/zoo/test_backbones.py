"""How a backbone computes its attention: as set, or what is fastest where it runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig

from corpora.errors import ConfigError
from zoo.backbones import (
    HIDE_PADDING,
    backbone_of,
    load_backbone,
    padding_shows,
    pooling_of,
    set_attention,
    training_attention,
    warn_of_padding,
)
from zoo.coherence.modeling import CoherenceScorer
from zoo.declared import BackboneRecipe
from zoo.vocabularies import train_subwords

TABLE = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}

OTHER = TABLE | {"model_type": "albert", "embedding_size": 16}


def ways_of(table: Any = TABLE, **settings: Any) -> tuple[str, str]:
    """How attention is computed while the model trains, and afterwards."""
    s = BackboneRecipe(dataset="", output="", backbone_config=table, **settings)
    tokenizer = train_subwords(["It was dark.", "She lit the lamp."], 300, lower=True)
    backbone = CoherenceScorer.from_backbone(backbone_of(s, tokenizer), 32, 0).backbone
    set_attention(backbone, s.attention)
    with training_attention(backbone, s):
        training = backbone.config._attn_implementation
        ids = torch.arange(5, 13)[None]
        assert backbone(input_ids=ids).last_hidden_state.shape == (1, 8, 16)
    return training, backbone.config._attn_implementation


@pytest.mark.skipif(torch.accelerator.is_available(), reason="the rule is about CPUs")
def test_on_a_cpu_training_in_bfloat16_has_attention_of_its_own() -> None:
    assert ways_of(bf16=True) == ("bf16", "sdpa")
    assert ways_of(OTHER, bf16=True) == ("eager", "sdpa")
    assert ways_of(bf16=True, compile=True) == ("eager", "sdpa")
    assert ways_of(bf16=False) == ("sdpa", "sdpa")
    assert ways_of(bf16=True, attention="sdpa") == ("sdpa", "sdpa")
    assert ways_of(attention="eager") == ("eager", "eager")


def test_attention_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("flash attention may be installed beside a GPU")
    with pytest.raises(ConfigError, match="flash_attention_2"):
        ways_of(attention="flash_attention_2")


@pytest.mark.parametrize("way", ["flash_attention_3", "kernels-community/flash-attn2"])
def test_attention_of_another_library_says_what_it_needs(way: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("it may be installed beside a GPU")
    with pytest.raises(ConfigError, match=f"{way}.*bert cannot: .*install"):
        ways_of(attention=way)


def test_attention_is_any_that_transformers_knows() -> None:
    flex = "flex_attention"  # it is set here, and not run: it does not train on a CPU
    backbone = load_backbone("", TABLE | {"vocab_size": 20}, attention_dropout=0.0)
    set_attention(backbone, flex)
    assert backbone.config._attn_implementation == flex
    with pytest.raises(ConfigError, match=r"which is 0\.1 here\s+set attention_dropout = 0"):
        ways_of(attention=flex)
    with pytest.raises(ConfigError, match="did you mean 'sdpa'"):
        ways_of(attention="sdpaa")


@pytest.mark.parametrize(
    ("kind", "where"),
    [("bert", "first"), ("roberta", "first"), ("xlnet", "last"), ("gpt2", "last")],
)
def test_a_decoder_has_its_vector_at_the_end(kind: str, where: str) -> None:
    tokenizer = train_subwords(["It was dark.", "She lit the lamp."], 300, lower=True)
    assert tokenizer.cls_token_id is not None
    assert pooling_of(AutoConfig.for_model(kind), tokenizer) == where


SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 16}
HEADS = SIZES | {"num_attention_heads": 2, "max_position_embeddings": 64}
OWN = {
    "albert": {"embedding_size": 16},
    "distilbert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16},
    "xlnet": {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16},
}


def drawn(kind: str, **own: Any) -> Any:
    """A small backbone of random weights."""
    torch.manual_seed(0)
    sizes = {} if kind in ("distilbert", "xlnet") else HEADS
    table = {"model_type": kind, "vocab_size": 60, "pad_token_id": 0, **sizes, **own}
    return load_backbone("", {**table, **OWN.get(kind, {})})


@pytest.mark.parametrize("kind", sorted(HIDE_PADDING))
def test_backbones_that_are_not_tried_hide_padding(kind: str) -> None:
    assert not padding_shows(drawn(kind))


def test_a_backbone_that_shows_padding_is_named(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    fnet = load_backbone("", {"model_type": "fnet", "vocab_size": 60, **SIZES}).train()
    CoherenceScorer.from_backbone(drawn("ernie"), 32, 0)
    assert "padding" not in caplog.text
    with caplog.at_level("WARNING", logger="zoo"):
        warn_of_padding(fnet)
    assert "fnet: padding changes the vectors of a text" in caplog.text
    assert fnet.training


def test_a_trial_draws_no_random_numbers() -> None:
    yoso = drawn("yoso").train()
    before = torch.random.get_rng_state()
    assert padding_shows(yoso) and yoso.training
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"hidden_size": "abc"}, "hidden_size"),
        ({"hidden_size": 65, "num_attention_heads": 4}, "hidden size"),
        ({"hidden_act": "gellu"}, "KeyError: 'gellu'"),
        ({"num_attention_heads": 0}, "ZeroDivisionError"),
        ({"vocab_size": -1}, "negative dimension"),
    ],
)
def test_a_wrong_value_of_a_backbone_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=f"backbone_config: .*{named}") as caught:
        load_backbone("", {**TABLE, **wrong})
    assert "correct the setting" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "where", "problem"),
    [
        ({**TABLE, "hiden_size": 8}, "backbone_config", "bert has no setting 'hiden_size'"),
        ({"model_type": "bort"}, "backbone_config", "no model_type 'bort'"),
        ({"model_type": "bart"}, "backbone", "bart has a decoder"),
        ({"model_type": "gpt2"}, "attention_dropout", "gpt2 has none of its own"),
    ],
)
def test_an_error_of_a_backbone_names_its_own_place(
    table: dict[str, Any], where: str, problem: str
) -> None:
    rate = 0.1 if where == "attention_dropout" else -1.0
    with pytest.raises(ConfigError) as caught:
        load_backbone("", table, rate)
    assert caught.value.where == where and caught.value.message.startswith(problem)
    assert "correct the setting" not in caught.value.hint
