"""Attention in bfloat16: the same numbers as step by step in float32, as far as bfloat16 goes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from zoo.attention import FAMILIES, attention, padding_known
from zoo.backbones import auto_class, load_backbone, set_attention

from .families import CONFIGS

TABLES: dict[str, dict[str, Any]] = {
    kind: {
        "model_type": kind,
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 40,
    }
    for kind in sorted(FAMILIES - {"distilbert"})
}
TABLES["distilbert"] = {
    "model_type": "distilbert",
    "vocab_size": 100,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
}


def inputs(random: torch.Generator) -> tuple[list[Tensor], Tensor]:
    """Queries, keys and values, and a mask that hides the last three places of the first text."""
    parts = [torch.randn(2, 3, 7, 4, generator=random).bfloat16().float() for _ in range(3)]
    mask = torch.zeros(2, 1, 7, 7)
    mask[0, ..., 4:] = torch.finfo(torch.float32).min
    return parts, mask


def plainly(parts: list[Tensor], mask: Tensor, kept: Tensor | float = 1.0) -> Tensor:
    query, key, value = parts
    weights = torch.softmax(query @ key.transpose(2, 3) / 2 + mask, -1) * kept
    return (weights @ value).transpose(1, 2)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_output_and_gradients_are_those_of_the_formula(dropout: float) -> None:
    random = torch.Generator().manual_seed(0)
    parts, mask = inputs(random)
    torch.manual_seed(5)
    drawn = torch.empty(2, 3, 7, 7, dtype=torch.bfloat16).bernoulli_(1 - dropout)
    kept = drawn.float() / (1 - dropout)
    module = nn.Identity().train()
    outputs, gradients = [], []
    toward = torch.randn(2, 7, 3, 4, generator=random)
    for exact in (True, False):
        leaves = [part.clone().requires_grad_() for part in parts]
        torch.manual_seed(5)
        if exact:
            found = plainly(leaves, mask, kept)
        else:
            found, none = attention(module, *leaves, mask, 0.5, dropout)
            assert none is None and found.dtype == torch.float32
        (found * toward).sum().backward()
        outputs.append(found.detach())
        gradients.append(torch.cat([leaf.grad.flatten() for leaf in leaves]))
    for exact, rounded in (outputs, gradients):
        assert (rounded - exact).norm() < 0.01 * exact.norm()


def test_what_is_masked_has_no_part_in_it() -> None:
    parts, mask = inputs(torch.Generator().manual_seed(1))
    changed = [part.clone() for part in parts]
    for part in changed[1:]:
        part[0, :, 4:] = 100.0
    module = nn.Identity().eval()
    first, second = (attention(module, *each, mask, 0.5, 0.9)[0] for each in (parts, changed))
    assert torch.equal(first, second)
    assert torch.isfinite(first).all()


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_every_family_gives_the_states_of_eager_attention(kind: str) -> None:
    torch.manual_seed(0)
    model = load_backbone("", TABLES[kind], 0.0, 0.0).train()
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.2)
    ids = torch.randint(5, 100, (3, 12))
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    toward = torch.randn(3, 12, 32) * mask.unsqueeze(2)
    states, gradients = [], []
    for way in ("eager", "bf16"):
        set_attention(model, way)
        model.zero_grad()
        found = model(input_ids=ids, attention_mask=mask).last_hidden_state
        (found * toward).sum().backward()
        states.append((found * mask.unsqueeze(2)).detach())
        weights = [w.grad.flatten() for w in model.parameters() if w.grad is not None]
        gradients.append(torch.cat(weights))
    for exact, rounded in (states, gradients):
        assert 0 < (rounded - exact).norm() < 0.03 * exact.norm()


@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize("family", CONFIGS)
def test_a_batch_whose_padding_is_known_has_the_same_states(family: str, way: str) -> None:
    kind, sizes = CONFIGS[family]
    torch.manual_seed(0)
    config = kind(vocab_size=100, pad_token_id=0, **sizes)
    model = auto_class(config).from_config(config).eval()
    if way == "eager" or model._supports_sdpa:
        set_attention(model, way)
    ids, mask = torch.randint(5, 100, (3, 40)), torch.ones(3, 40, dtype=torch.long)
    for real in (40, 30):
        mask[1, real:] = 0
        states = []
        for known in (None, real < 40):
            with torch.no_grad(), padding_known(known):
                states.append(model(input_ids=ids, attention_mask=mask).last_hidden_state)
        assert torch.equal(*states)


def test_padding_is_no_longer_known_afterwards() -> None:
    model = load_backbone("", TABLES["bert"]).eval()
    ids, mask = torch.randint(5, 100, (1, 12)), torch.ones(1, 12, dtype=torch.long)
    mask[0, 6:] = 0
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask).last_hidden_state
        with padding_known(False):
            wrong = model(input_ids=ids, attention_mask=mask).last_hidden_state
        again = model(input_ids=ids, attention_mask=mask).last_hidden_state
    assert torch.equal(again, expected) and not torch.allclose(wrong, expected)
