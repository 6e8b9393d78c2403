"""The unified coherence model: its parts by hand, padding, and that it learns."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn.functional import log_softmax

from corpora.errors import InputError
from tests.zoo.opened import evaluate
from zoo.coherence.data import pad
from zoo.coherence.unc import PermutedDocuments, margin_at_positions
from zoo.coherence.unc_modeling import LightweightConv, UncConfig, UncModel, UncOutput, pad_rows
from zoo.evaluate.permuted import rank_texts
from zoo.evaluate.scorers import cut_of
from zoo.train import train
from zoo.vocabularies import train_words

SIZES = {"vocab_size": 20, "embedding_size": 6, "hidden_size": 4, "bilinear_size": 3}


@pytest.fixture
def model() -> UncModel:
    torch.manual_seed(0)
    return UncModel(UncConfig(**SIZES, kernel_heads=2, kernel_size=3)).eval()


def test_the_light_convolution_by_hand() -> None:
    torch.manual_seed(1)
    layer = LightweightConv(width=4, kernel=3, heads=2)
    states, mask = torch.randn(1, 3, 4), torch.ones(1, 3)
    gated = torch.nn.functional.glu(layer.gate(states), dim=-1)[0]
    kernels = layer.weight.softmax(-1)
    expected = torch.zeros(3, 4)
    for place in range(3):
        for channel in range(4):
            for offset in range(3):
                if 0 <= place + offset - 1 < 3:
                    weight = kernels[channel // 2, offset]
                    expected[place, channel] += weight * gated[place + offset - 1, channel]
    torch.testing.assert_close(layer(states, mask)[0], layer.out(expected))


def test_the_language_loss_by_hand(model: UncModel) -> None:
    ids, mask = pad([[5, 6, 7], [8, 9]], 0)
    states, _ = model.encode(ids, mask)
    forward, backward = states.chunk(2, dim=-1)
    following, preceding = [], []
    for row, words in enumerate([[5, 6, 7], [8, 9]]):
        for place in range(len(words) - 1):
            ahead = log_softmax(model.language(forward[row, place]), -1)
            behind = log_softmax(model.language(backward[row, place + 1]), -1)
            following.append(-ahead[words[place + 1]])
            preceding.append(-behind[words[place]])
    expected = (torch.stack(following).mean() + torch.stack(preceding).mean()) / 2
    torch.testing.assert_close(model.language_loss(states, ids, mask), expected)


def test_on_a_gpu_the_lstm_computes_in_float32(model: UncModel) -> None:
    """There autocast takes float16 for it, whatever it was told."""
    seen = []
    model.lstm.register_forward_pre_hook(lambda *_: seen.append(torch.is_autocast_enabled("cuda")))
    torch.set_autocast_enabled("cuda", True)
    try:
        model.encode(torch.ones(2, 3, dtype=torch.long), torch.ones(2, 3, dtype=torch.long))
        assert torch.is_autocast_enabled("cuda")
    finally:
        torch.set_autocast_enabled("cuda", False)
    assert seen == [False]


def test_padding_changes_no_score(model: UncModel) -> None:
    vectors = torch.randn(6, 8)
    texts = [[0, 1, 2], [3], [5, 4], [0, 1, 2, 3, 4, 5]]
    together = model.score_vectors(vectors, pad_rows(texts)).scores
    alone = [model.score_vectors(vectors, pad_rows([text])).scores.item() for text in texts]
    torch.testing.assert_close(together, torch.tensor(alone))


def test_a_score_is_the_mean_over_neighbours(model: UncModel) -> None:
    vectors = torch.randn(3, 8)
    states, mask = vectors.unsqueeze(0), torch.ones(1, 3)
    for block in model.convolutions:
        states = states + block.second(block.first(states, mask), mask)
    assert len([m for m in model.modules() if isinstance(m, LightweightConv)]) == 6
    local = []
    for one, two in pairwise(vectors):
        features = [model.following(one, two), model.preceding(two, one), states[0].mean(0)]
        local.append(model.score_head(torch.cat(features)))
    found = model.score_vectors(vectors, torch.tensor([[0, 1, 2]]))
    torch.testing.assert_close(found.local[0], torch.cat(local))
    torch.testing.assert_close(found.scores, torch.stack(local).mean().view(1))


def test_the_margin_is_kept_at_each_position() -> None:
    local = torch.tensor([[[3.0, 0.0, 9.0], [1.0, 2.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    counted = torch.tensor([[[1.0, 1.0, 0.0]] * 2, [[1.0, 0.0, 0.0]] * 2])
    loss = margin_at_positions(UncOutput(local=local, counted=counted), margin=1.5)
    # The first text: 0 (a margin of 2) and 3.5; the second: 0.5. What has ended does not count.
    assert loss.item() == pytest.approx(((0 + 3.5) / 2 + 0.5) / 2)


def test_order_matters_and_gradients_reach_every_part(model: UncModel) -> None:
    ids, mask = pad([[5, 6, 7], [8, 9], [10]], 0)
    model.train()
    output = model(ids, mask, torch.tensor([[[0, 1, 2], [2, 0, 1]]]))
    assert output.scores[0, 0] != output.scores[0, 1]
    (output.scores[0, 0] - output.scores[0, 1] + output.language_loss).backward()
    # A bias of the scores cancels in their difference.
    weights = [p for p in model.parameters() if p.dim() > 1]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in weights)


def test_texts_that_lose_words_are_counted() -> None:
    tokenizer = train_words(["It was dark and cold outside .", "She lit a lamp ."], 50)
    sizes = {**SIZES, "vocab_size": len(tokenizer)}
    model = UncModel(UncConfig(**sizes, kernel_heads=2, kernel_size=3, max_words=5))
    model.tokenizer = tokenizer
    cut = ["She lit a lamp.", "It was dark and cold outside."]
    whole, one, other = model.score([["She lit a lamp."], cut, [*cut[:1], "It was dark and cold"]])
    assert one == pytest.approx(other) and one != whole
    assert cut_of(model) == 1
    assert model.score([]) == []


def test_texts_whose_words_are_equal_as_read_are_left_out() -> None:
    """The sentences differ after the last word that the model reads."""
    lines = ["It was dark and cold outside .", "It was dark and cold inside .", "She lit a lamp ."]
    tokenizer = train_words(lines, 50)
    sizes = {**SIZES, "vocab_size": len(tokenizer)}
    model = UncModel(UncConfig(**sizes, kernel_heads=2, kernel_size=3, max_words=5))
    model.tokenizer = tokenizer
    documents = pa.Table.from_pylist([{"id": "d", "sentences": lines}])
    swapped = [{"document": "d", "orders": [order]} for order in ([1, 0, 2], [2, 1, 0])]
    orders = pa.Table.from_pylist(swapped)
    found = rank_texts(model, documents, orders)
    assert found.same.tolist() == [True, False]
    metrics = found.metrics(0)
    assert (metrics["pairs"], metrics["identical"], metrics["accuracy"]["ties"]) == (1, 1, 0)
    rows = PermutedDocuments(documents, orders, tokenizer, 5)
    assert (len(rows), rows.dropped) == (1, 1)
    with pytest.raises(InputError, match="no document differs from its permutation"):
        PermutedDocuments(documents, orders.slice(0, 1), tokenizer, 5)


@pytest.mark.slow
def test_it_learns_stories_and_is_judged_like_the_others(
    permuted_folder: Path, tmp_path: Path
) -> None:
    from zoo.evaluate import SUITES
    from zoo.evaluate.scorers import load_scorer

    output = tmp_path / "unc"
    options: list[Any] = ["--epochs", "6", "--dataset", permuted_folder, "--output", output]
    train(["coherence/unc_tiny", *map(str, options)])
    model = load_scorer(str(output))
    assert isinstance(model, UncModel)
    assert np.isfinite(model.score(["", "One sentence.", "Two. Of them."])).all()
    found = evaluate(SUITES.find("permuted")(), output, permuted_folder, "train")
    assert found.metrics["accuracy"]["value"] > 0.9
