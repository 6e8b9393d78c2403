"""LoRA and recomputed layers: settings of every recipe with an encoder; a plain model is left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import XLNetConfig, XLNetModel

from zoo.backbones import backbone_of
from zoo.coherence.recipes import Contrastive
from zoo.vocabularies import train_subwords

Run = Callable[..., tuple[int, str]]
BACKBONE = {"model_type": "bert", "hidden_size": 24, "num_hidden_layers": 1}


@pytest.mark.parametrize(
    ("recipe", "folder"),
    [
        ("dissent/transformer_tiny", "pairs_folder"),
        ("coherence/full_tiny", "permuted_folder"),
    ],
)
def test_what_lora_leaves_is_a_plain_model(
    recipe: str, folder: str, train_cli: Run, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The same weights by name as without; the encoder's matrices have moved, its table has not."""
    data = ["--dataset", request.getfixturevalue(folder), "--max_train_rows", 32]
    data += ["--max_steps", 6, "--learning_rate", 1e-2]
    if "full" in recipe:
        data += ["--dataset_config", "contrastive", "--candidates", 5, "--mine_every", 12]
    weights = {}
    for name, more in {"start": (0, 1e-12), "lora": (2, 1e-2)}.items():
        rank, rate = more
        options = ["--lora_rank", rank, "--recompute", "true", "--learning_rate", rate]
        if "full" in recipe:
            options += ["--final_learning_rate", rate / 10]
        code, message = train_cli(recipe, *data, *options, "--output", tmp_path / name)
        assert code == 0, message
        weights[name] = load_file(tmp_path / name / "model.safetensors")
    start, lora = weights["start"], weights["lora"]
    assert start.keys() == lora.keys()
    moved = {name for name in start if not torch.allclose(start[name], lora[name], atol=1e-6)}
    encoder = {name for name in moved if name.startswith("backbone.")}
    assert any("query.weight" in name for name in encoder)
    assert all("LayerNorm" not in name and "embeddings" not in name for name in encoder)


def test_peft_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    tokenizer = train_subwords(["a b c"], 300)
    s = Contrastive(dataset="d", output="o", backbone_config=BACKBONE, lora_rank=2)
    with pytest.raises(Exception, match=r"pip install 'discorpora\[lora\]'"):
        backbone_of(s, tokenizer)


def test_an_encoder_that_cannot_recompute_is_refused() -> None:
    if XLNetModel.supports_gradient_checkpointing:
        pytest.skip("this version of XLNet can")
    tokenizer = train_subwords(["a b c"], 300)
    table = XLNetConfig(d_model=16, n_layer=1, n_head=2, d_inner=16).to_diff_dict()
    table = {"model_type": "xlnet", **{k: table[k] for k in ("d_model", "n_layer", "n_head")}}
    s = Contrastive(dataset="d", output="o", backbone_config=table, recompute=True)
    with pytest.raises(Exception, match="xlnet cannot recompute its layers"):
        backbone_of(s, tokenizer)
