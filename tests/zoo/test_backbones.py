"""How a backbone computes its attention: as set, or what is fastest where it runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig

from corpora.errors import ConfigError
from zoo.backbones import backbone_of, pooling_of, set_attention, training_attention
from zoo.coherence.modeling import CoherenceScorer
from zoo.conpono.modeling import ConponoModel
from zoo.settings import BackboneSettings
from zoo.vocabularies import train_subwords

TABLE = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}

GPT2 = {"n_embd": 16, "n_layer": 1, "n_head": 2}
OTHER = TABLE | {"model_type": "albert", "embedding_size": 16}


def ways_of(table: Any = TABLE, **settings: Any) -> tuple[str, str]:
    """How attention is computed while the model trains, and afterwards."""
    s = BackboneSettings(dataset="", output="", backbone_config=table, **settings)
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
    assert ways_of(bf16=False) == ("sdpa", "sdpa")
    assert ways_of(bf16=True, attention="sdpa") == ("sdpa", "sdpa")
    assert ways_of(attention="eager") == ("eager", "eager")


def test_attention_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("flash attention may be installed beside a GPU")
    with pytest.raises(ConfigError, match="flash_attention_2"):
        ways_of(attention="flash_attention_2")


@pytest.mark.parametrize(
    ("kind", "where"),
    [("bert", "first"), ("roberta", "first"), ("xlnet", "last"), ("gpt2", "last")],
)
def test_a_decoder_has_its_vector_at_the_end(kind: str, where: str) -> None:
    tokenizer = train_subwords(["It was dark.", "She lit the lamp."], 300, lower=True)
    assert tokenizer.cls_token_id is not None
    assert pooling_of(AutoConfig.for_model(kind), tokenizer) == where


def test_a_decoder_has_no_first_token_for_conpono() -> None:
    s = BackboneSettings(dataset="", output="", backbone_config={"model_type": "gpt2", **GPT2})
    tokenizer = train_subwords(["It was dark.", "She lit the lamp."], 300, lower=True)
    backbone = backbone_of(s, tokenizer)
    with pytest.raises(ConfigError, match="first token of gpt2"):
        ConponoModel.from_backbone(backbone, mlm=False)
    assert ConponoModel.from_backbone(backbone, mlm=False, vector="mean")
