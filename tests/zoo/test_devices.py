"""Training steps of the families on `meta`, which stands in for a GPU where there is none.

A tensor of `meta` has no values: what reads one (`item`, `tolist`, `cpu`, `if mask.all()`) fails
here, and would wait for a GPU at every step. What mixes it with tensors of the CPU fails too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import BertConfig

from zoo import modeling_discorpora
from zoo.backbones import Pooling, set_attention
from zoo.coherence.modeling import CoherenceConfig, CoherenceScorer
from zoo.coherence.objectives import (
    ContrastiveMargin,
    MomentumContrast,
    MomentumEncoder,
    NegativeQueue,
)
from zoo.coherence.unc import margin_at_positions
from zoo.coherence.unc_modeling import UncConfig, UncModel
from zoo.conpono.modeling import ConponoConfig, ConponoModel
from zoo.criteria.modeling import CriteriaConfig, CriteriaModel
from zoo.dissent.modeling import (
    BiLstmConfig,
    BiLstmForMarkers,
    PairTransformer,
    PairTransformerConfig,
)

from .families import CONFIGS

BOTH_WAYS = ("bert", "roberta", "modernbert", "gpt2", "qwen", "t5")
"""Families whose attention transformers can choose."""
POOLINGS = ["first", "last", "mean"]
WIDTH = 8


class OneDevice(TorchDispatchMode):
    """Refuses operations on tensors of several devices; numbers without dimensions may mix."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.dim()]
        if len({t.device for t in tensors}) > 1:
            raise AssertionError(f"{func} mixes devices")
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def one_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # there is none
    monkeypatch.setattr(modeling_discorpora, "run_packed", _states)  # `meta` has no such layer
    with OneDevice():
        yield


def _states(layer: nn.LSTM | nn.GRU, vectors: Tensor, lengths: Tensor) -> Tensor:
    lengths.cpu().tolist()  # as packing does
    return vectors.sum(2, keepdim=True).expand(-1, -1, 2 * layer.hidden_size)


def bert() -> BertConfig:
    sizes = {"hidden_size": WIDTH, "intermediate_size": WIDTH, "max_position_embeddings": 16}
    return BertConfig(vocab_size=20, num_hidden_layers=1, num_attention_heads=2, **sizes)


def ids(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.long, device="meta")


def trained(model: nn.Module, loss: Tensor) -> None:
    """Whether the loss has reached some weight, in the precision and place that it should."""
    loss.backward()
    assert loss.dtype == torch.float32 and loss.device.type == "meta"
    assert any(p.grad is not None for p in model.parameters())


def test_devices_that_are_mixed_are_told() -> None:
    with pytest.raises(AssertionError, match="mixes devices"):
        ids(3) + torch.ones(3)


def test_an_unknown_padding_is_looked_for() -> None:
    model = CoherenceScorer(CoherenceConfig(backbone_config=bert())).to("meta")
    with pytest.raises(RuntimeError, match="meta"):
        model(ids(2, 9), ids(2, 9))


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_coherence_scorer(pooling: Pooling, padded: bool) -> None:
    config = CoherenceConfig(backbone_config=bert(), pooling=pooling)
    model = CoherenceScorer(config).to("meta").train()
    trained(model, ContrastiveMargin()(model(ids(2, 3, 9), ids(2, 3, 9), padded=padded).scores))


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("family", CONFIGS)
def test_a_backbone_of_every_family(family: str, attention: str, padded: bool) -> None:
    kind, sizes = CONFIGS[family]
    config = kind(vocab_size=20, pad_token_id=0, **sizes)
    model = PairTransformer(PairTransformerConfig(backbone_config=config, num_labels=3))
    set_attention(model.backbone, attention if family in BOTH_WAYS else "eager")
    model.to("meta").train()
    trained(model, model(ids(2, 9), ids(2, 9), ids(2), padded=padded).loss)


def test_the_momentum_encoder() -> None:
    model = CoherenceScorer(CoherenceConfig(backbone_config=bert())).to("meta").train()
    momentum = MomentumEncoder(model.backbone, 0.9)
    queue = NegativeQueue(5, WIDTH, "meta")
    own = model.vectors(ids(2, 9), ids(2, 9), padded=True)
    with torch.no_grad():
        followed = model.vectors(ids(2, 7), ids(2, 7), momentum.encoder, padded=False)
        queue.push(followed)
    trained(model, MomentumContrast()(own, followed, queue()))
    momentum.update(model.backbone)


def test_unc() -> None:
    sizes = {"vocab_size": 20, "embedding_size": 4, "hidden_size": 4, "bilinear_size": 3}
    model = UncModel(UncConfig(**sizes, kernel_heads=2, kernel_size=3)).to("meta")
    vectors = torch.ones(6, 8, device="meta")
    trained(model, margin_at_positions(model.score_vectors(vectors, ids(2, 2, 3)), 1.0))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_dissent(pooling: Pooling) -> None:
    config = PairTransformerConfig(backbone_config=bert(), pooling=pooling, num_labels=3)
    model = PairTransformer(config).to("meta").train()
    types = ids(2, 9)
    trained(model, model(ids(2, 9), ids(2, 9), ids(2), token_type_ids=types, padded=True).loss)


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_models_of_words(pooling: Any) -> None:
    sizes = {"vocab_size": 20, "embedding_size": 4, "hidden_size": 4, "pooling": pooling}
    pairs = BiLstmForMarkers(BiLstmConfig(**sizes, projection_size=5, num_labels=3)).to("meta")
    packed = np.array([5, 4, 3, 5])
    trained(pairs, pairs(ids(2, 2, 5), ids(2, 2, 5), ids(2), packed=packed).loss)
    config = CriteriaConfig(**sizes, decoder_size=5, criteria=["nl", "spp", "sdt"])
    criteria = CriteriaModel(config).to("meta")
    bags = {name: ids(2, 4) for name in config.bags}
    labels = ids(2, len(config.classes))
    trained(criteria, criteria(ids(2, 5), ids(2, 5), bags, labels, packed=packed[:2]).loss)


@pytest.mark.parametrize("vector", ["cls", "mean"])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_conpono(vector: Any, attention: str) -> None:
    model = ConponoModel(ConponoConfig(backbone_config=bert(), k=1, vector=vector)).to("meta")
    set_attention(model.backbone, attention)
    plan = np.array([[2, 6, 3, 1]] * 2)  # two blocks
    trained(model, model.train()(ids(24), ids(2, 6), plan, ids(4), ids(1, 2)).loss)
