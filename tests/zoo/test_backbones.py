"""How a backbone computes its attention: as set, or what is fastest where it runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from corpora.errors import ConfigError
from zoo.backbones import backbone_of, set_attention
from zoo.coherence.modeling import CoherenceScorer
from zoo.settings import BackboneSettings
from zoo.vocabularies import train_subwords

TABLE = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


def way_of(**settings: Any) -> str:
    s = BackboneSettings(dataset="", output="", backbone_config=TABLE, **settings)
    tokenizer = train_subwords(["It was dark.", "She lit the lamp."], 300, lower=True)
    model = CoherenceScorer.from_backbone(backbone_of(s, tokenizer), 32, 0)
    set_attention(model.backbone, s)
    ids = torch.arange(5, 13)[None]
    assert model.backbone(input_ids=ids).last_hidden_state.shape == (1, 8, 16)
    return model.backbone.config._attn_implementation


@pytest.mark.skipif(torch.accelerator.is_available(), reason="the rule is about CPUs")
def test_on_a_cpu_attention_is_eager_in_bfloat16_only() -> None:
    assert way_of(bf16=True) == "eager"
    assert way_of(bf16=False) == "sdpa"
    assert way_of(bf16=True, attention="sdpa") == "sdpa"
    assert way_of(attention="eager") == "eager"


def test_attention_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("flash attention may be installed beside a GPU")
    with pytest.raises(ConfigError, match="flash_attention_2"):
        way_of(attention="flash_attention_2")
