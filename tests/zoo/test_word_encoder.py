"""The two ways of leaving padding out give the same states and gradients."""

from __future__ import annotations

import pytest
import torch

from zoo.modeling_discorpora import GROUP, run_in_groups, run_packed


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
@pytest.mark.parametrize("rows", [1, 5, GROUP + 7])
def test_groups_equal_packed_sequences(rows: int, kind: type) -> None:
    torch.manual_seed(rows)
    layer = kind(4, 3, batch_first=True, bidirectional=True)
    vectors = torch.randn(rows, 9, 4, requires_grad=True)
    lengths = torch.randint(1, 9, (rows,))
    states, gradients = [], []
    for run in (run_packed, run_in_groups):
        found = run(layer, vectors, lengths)
        states.append(found)
        weights = torch.arange(found.numel()).reshape(found.shape) / found.numel()
        wanted = [vectors, *layer.parameters()]
        gradients.append(torch.autograd.grad((found * weights).sum(), wanted))
    torch.testing.assert_close(states[0], states[1])
    assert not states[1][0, lengths[0] :].any()
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


def test_autocast_does_not_reach_the_layer() -> None:
    torch.manual_seed(0)
    layer = torch.nn.GRU(4, 3, batch_first=True, bidirectional=True)
    vectors, lengths = torch.randn(5, 9, 4), torch.randint(1, 9, (5,))
    with torch.autocast("cpu", torch.bfloat16):
        found = run_packed(layer, vectors, lengths)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, run_packed(layer, vectors, lengths), atol=0, rtol=0)
