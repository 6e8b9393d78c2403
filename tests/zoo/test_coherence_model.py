"""The scorer: padding, cutting, its folder, and that it learns."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from corpora.errors import InputError
from zoo.backbones import config_from, load_backbone, max_positions
from zoo.coherence import CoherenceConfig, CoherenceScorer, load_scorer
from zoo.coherence.data import (
    candidate_rows,
    cut_pairs,
    encode_documents,
    instances,
    intrusion_tables,
    order_of,
    pad,
)
from zoo.coherence.modeling import score_orders
from zoo.coherence.objectives import ContrastiveMargin, ranking_accuracy
from zoo.modeling import save_model
from zoo.texts import TextEncoder, batches_by_length
from zoo.vocabularies import train_subwords

from .conftest import STORY, orders_of, story_documents

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
BACKBONES: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **SIZES, "intermediate_size": 48},
    "roberta": {
        "model_type": "roberta",
        **SIZES,
        "intermediate_size": 48,
        "max_position_embeddings": 130,
    },
    "xlnet": {"model_type": "xlnet", "d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48},
}


NUMBERED_AFTER_PADDING = ("camembert", "data2vec-text", "esm", "ibert", "longformer", "xmod")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_subwords(STORY, 400)


def scorer(
    kind: str, tokenizer: Any, max_tokens: int = 100, vector: Any = "cls"
) -> CoherenceScorer:
    torch.manual_seed(1)
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    backbone = load_backbone("", BACKBONES[kind] | ids)
    model = CoherenceScorer.from_backbone(backbone, max_tokens, tokenizer.pad_token_id, vector)
    return model.eval()


@pytest.mark.parametrize("vector", ["cls", "mean"])
@pytest.mark.parametrize("kind", BACKBONES)
def test_padding_changes_no_score(kind: str, vector: str, tokenizer: Any) -> None:
    model = scorer(kind, tokenizer, vector=vector)
    encoder = TextEncoder(tokenizer, 100)
    texts = [encoder.text(STORY[:count]) for count in (1, 5, 3, 2)]
    alone = [model(*pad([text], tokenizer.pad_token_id)).scores.item() for text in texts]
    together = model(*pad(texts, tokenizer.pad_token_id)).scores
    torch.testing.assert_close(together, torch.tensor(alone), atol=1e-5, rtol=1e-5)
    wide = pad([*texts, np.full(100, 7)], tokenizer.pad_token_id)
    torch.testing.assert_close(model(*wide).scores[:-1], together, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("limit", [-4, 1, 2])
def test_a_limit_that_leaves_no_word_is_an_error(limit: int, tokenizer: Any) -> None:
    """Of two special tokens beside a text: its score was NaN, or range() failed."""
    with pytest.raises(InputError, match=f"max_tokens = {limit}: no token is left"):
        TextEncoder(tokenizer, limit)


@pytest.mark.parametrize(
    ("name", "keys", "value", "message"),
    [
        (
            *("tokenizer.json", ("post_processor", "single", 0, "SpecialToken", "id"), "gone"),
            r"its tokenizer \(tokenizer.json\): AutoTokenizer cannot load it",
        ),
        ("config.json", ("max_tokens",), "", "max_tokens = '': expected a whole number"),
    ],
)
def test_a_damaged_value_is_refused_when_a_model_is_opened(
    tmp_path: Path, tokenizer: Any, name: str, keys: tuple[Any, ...], value: str, message: str
) -> None:
    save_model(scorer("bert", tokenizer), tokenizer, tmp_path)
    table = inner = json.loads((tmp_path / name).read_text(encoding="utf-8"))
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    (tmp_path / name).write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_scorer(str(tmp_path)).score(["Anna sang."])


def test_the_vector_of_xlnet_is_the_last_real_token(tokenizer: Any) -> None:
    assert scorer("bert", tokenizer).config.pooling == "first"
    model = scorer("xlnet", tokenizer)
    assert model.config.pooling == "last"
    ids, mask = pad([np.array([5, 6, 7]), np.array([5, 6, 7, 8, 9])], 0)
    states = model.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = model.score_head(torch.stack([states[0, 2], states[1, 4]])).squeeze(1)
    torch.testing.assert_close(model(ids, mask).scores, expected)


@pytest.mark.parametrize("kind", BACKBONES)
def test_the_mean_vector_counts_each_real_token_once(kind: str, tokenizer: Any) -> None:
    model = scorer(kind, tokenizer, vector="mean")
    ids, mask = pad([np.array([5, 6, 7]), np.array([5, 6, 7, 8, 9])], 0)
    states = model.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = model.score_head(torch.stack([states[0, :3].mean(0), states[1].mean(0)])).squeeze(1)
    torch.testing.assert_close(model(ids, mask).scores, expected)


def test_rows_of_texts_are_scored_as_single_texts(tokenizer: Any) -> None:
    model = scorer("bert", tokenizer)
    ids, mask = pad([np.arange(3, 9)] * 2 + [np.arange(9, 15)] * 4, 0)
    rows = model(ids.view(2, 3, 6), mask.view(2, 3, 6)).scores
    assert rows.shape == (2, 3)
    torch.testing.assert_close(rows.flatten(), model(ids, mask).scores)


def test_the_pretrained_backbone_is_taken_over_unchanged(tokenizer: Any, tmp_path: Path) -> None:
    torch.manual_seed(5)
    backbone = load_backbone("", BACKBONES["bert"] | {"vocab_size": len(tokenizer)})
    backbone.save_pretrained(tmp_path)
    loaded = load_backbone(str(tmp_path), {})
    model = CoherenceScorer.from_backbone(loaded, 50, 0)
    for name, weights in backbone.state_dict().items():
        assert torch.equal(model.backbone.state_dict()[name], weights), name


def test_the_folder_scores_by_itself(tokenizer: Any, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModel

    model = scorer("bert", tokenizer)
    save_model(model, tokenizer, tmp_path)
    assert [path.name for path in tmp_path.glob("*.safetensors")] == ["model.safetensors"]
    assert isinstance(AutoConfig.from_pretrained(tmp_path), CoherenceConfig)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert isinstance(loaded, CoherenceScorer)
    text = " ".join(STORY).replace("{}", "Anna")
    ids = [TextEncoder(tokenizer, 100).text(text)]
    assert loaded.score([text]) == pytest.approx(model.score_ids(ids), abs=1e-6)


def test_scores_do_not_depend_on_the_batch(tokenizer: Any) -> None:
    model = scorer("bert", tokenizer)
    encoder = TextEncoder(tokenizer, 100)
    texts = [encoder.text(STORY[:count]) for count in (4, 1, 5, 2, 3)]
    together = model.score_ids(texts)
    assert together == pytest.approx(model.score_ids(texts, batch_tokens=1), abs=1e-5)
    assert list(batches_by_length([3, 9, 4], 12)) == [[1], [2, 0]]


@pytest.mark.parametrize("kind", BACKBONES)
def test_the_limit_is_what_the_backbone_takes(kind: str, tokenizer: Any) -> None:
    model = scorer(kind, tokenizer, max_tokens=600)
    expected = {"bert": 512, "roberta": 130 - tokenizer.pad_token_id - 1, "xlnet": 600}
    assert model.config.max_tokens == expected[kind]
    longest = np.full(model.config.max_tokens, 9)
    assert np.isfinite(model.score_ids([longest])).all()
    assert max_positions(config_from(BACKBONES["xlnet"])) is None


@pytest.mark.parametrize("kind", [*NUMBERED_AFTER_PADDING, "mpnet"])
def test_backbones_that_number_positions_after_padding_take_fewer(
    kind: str, tokenizer: Any
) -> None:
    table = {"model_type": kind, **SIZES, "intermediate_size": 48, "max_position_embeddings": 40}
    own = {"longformer": {"attention_window": 8}, "xmod": {"default_language": "en_XX"}}
    ids = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    backbone = load_backbone("", table | own.get(kind, {}) | ids)
    model = CoherenceScorer.from_backbone(backbone, 600, tokenizer.pad_token_id)
    # MPNet's padding index is 1, whatever its tokenizer says.
    assert model.config.max_tokens == 40 - (2 if kind == "mpnet" else tokenizer.pad_token_id + 1)
    longest = np.full(model.config.max_tokens, 9)
    assert np.isfinite(model.score_ids([longest])).all()


def test_weights_stored_in_bfloat16_are_loaded_as_float32(tokenizer: Any, tmp_path: Path) -> None:
    stored = scorer("bert", tokenizer).to(torch.bfloat16)
    stored.backbone.save_pretrained(tmp_path / "backbone")
    backbone = load_backbone(str(tmp_path / "backbone"), {})
    assert backbone.dtype == torch.float32
    model = CoherenceScorer.from_backbone(backbone, 100, tokenizer.pad_token_id)
    text = TextEncoder(tokenizer, 100).text(STORY[:2])
    assert np.isfinite(model.score_ids([text])).all()
    as_stored = load_backbone(str(tmp_path / "backbone"), {}, dtype=torch.bfloat16)
    assert as_stored.dtype == torch.bfloat16
    save_model(stored, tokenizer, tmp_path / "scorer")
    assert CoherenceScorer.from_pretrained(tmp_path / "scorer").dtype == torch.float32


def test_scores_are_told_apart_in_float32_under_autocast(tokenizer: Any) -> None:
    model = scorer("bert", tokenizer)
    vectors = 5 + 1e-4 * torch.arange(8).unsqueeze(1).expand(-1, 32)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found = model.heads(vectors)
    torch.testing.assert_close(found, model.heads(vectors))
    assert len(set(found.tolist())) == 8


def test_a_sentence_alone_gives_the_tokens_it_has_in_the_text(tokenizer: Any) -> None:
    encoder = TextEncoder(tokenizer, 100)
    whole = tokenizer(" ".join(STORY[:3]))["input_ids"]
    assert encoder.text(STORY[:3]).tolist() == whole
    assert (encoder.start.tolist(), encoder.end.tolist()) == ([2], [3])


def test_a_document_and_its_permutations_lose_the_same_sentences(tokenizer: Any) -> None:
    encoder = TextEncoder(tokenizer, 30)
    table = pa.Table.from_pylist([{"id": "d", "sentences": STORY}])
    documents = encode_documents(table, encoder)
    kept = len(documents.sentences("d"))
    assert 1 < kept < len(STORY) and encoder.cut == 1
    assert len(documents.original("d")) <= 30
    orders = documents.orders("d", [[4, 1, 0, 3, 2], [0, 1, 2, 4, 3], [3, 4, 2, 1, 0]])
    assert all(sorted(order) == list(range(kept)) for order in orders)
    for order in orders:
        assert sorted(documents.permuted("d", order)) == sorted(documents.original("d"))


def test_a_document_without_sentences_is_named(tokenizer: Any) -> None:
    rows = [{"id": "whole", "sentences": STORY}, {"id": "empty", "sentences": []}]
    with pytest.raises(InputError, match="document 'empty': has no sentences"):
        encode_documents(pa.Table.from_pylist(rows), TextEncoder(tokenizer, 30))


def test_an_order_that_became_the_original_is_no_negative(tokenizer: Any) -> None:
    table = pa.Table.from_pylist([{"id": "d", "sentences": STORY}])
    documents = encode_documents(table, TextEncoder(tokenizer, 22))
    assert len(documents.sentences("d")) == 2
    rows = pa.Table.from_pylist([{"document": "d", "orders": [[0, 1, 4, 3, 2], [1, 0, 2, 3, 4]]}])
    found = instances(documents, rows, 2, 0)
    assert found.rows == [("d", [[1, 0], [1, 0]])]
    # It stands in the place of the other one, which a validation does not count.
    assert found.collate([found[0]])["labels"].tolist() == found.counts == [1]


def test_a_validation_counts_no_repeated_negative_and_half_of_a_tie() -> None:
    scores = np.array([[2.0, 1.0, 2.0, 3.0], [2.0, 3.0, 3.0, 3.0]])
    prediction = SimpleNamespace(predictions=scores, label_ids=np.array([3, 1]))
    assert ranking_accuracy(prediction) == {"accuracy": (1 + 0.5 + 0 + 0) / 4}
    assert ranking_accuracy(prediction, above_all=True) == {"accuracy": 0}
    scores = np.array([[1.0, 0.5, 0.9], [1.0, 0.5, 2.0], [1.0, 1.0, 0.0], [3.0, 1.0, 1.0]])
    prediction = SimpleNamespace(predictions=scores, label_ids=np.array([2, 2, 2, 1]))
    assert ranking_accuracy(prediction, above_all=True) == {"accuracy": 2 / 4}


def test_a_pair_of_texts_is_cut_as_in_training(tokenizer: Any) -> None:
    """An order or an intruder keeps the sentences of the first text, others are cut alone."""
    encoder = TextEncoder(tokenizer, 30)
    kept = len(encoder.truncate(encoder.sentences(STORY)))
    assert 1 < kept < len(STORY) - 1
    backwards, late = STORY[::-1], [*STORY[:-1], "Rain fell."]
    pairs = cut_pairs(encoder, "keep", [STORY] * 3, [backwards, late, STORY[1:]])
    assert all(one.tolist() == encoder.text(STORY).tolist() for one, _ in pairs)
    assert [sorted(one) == sorted(two) for one, two in pairs] == [True, True, False]
    assert [one.tolist() == two.tolist() for one, two in pairs] == [False, True, False]
    assert pairs[2][1].tolist() == encoder.text(STORY[1:]).tolist()
    assert order_of(["It rained.", "Go.", "Go."], ["Go.", "It rained.", "Go."]) == [1, 0, 2]


def test_a_permutation_that_the_cut_undoes_is_left_out(tokenizer: Any) -> None:
    table = pa.Table.from_pylist([{"id": "d", "sentences": STORY}])
    rows = pa.Table.from_pylist([{"document": "d", "orders": [[0, 1, 4, 3, 2], [1, 0, 2, 3, 4]]}])
    scorer = SimpleNamespace(score_ids=lambda texts, _: [float(text[1]) for text in texts])
    for limit, identical in ((22, 1), (200, 0)):
        found = score_orders(scorer, encode_documents(table, TextEncoder(tokenizer, limit)), rows)  # type: ignore[arg-type]
        assert (list(found.documents), found.identical) == (["d", "d"], identical)
        metrics = found.metrics(1)
        assert (metrics["pairs"], metrics["identical"]) == (2 - identical, identical)
        assert len(found.scores.outcomes.replace("-", "")) == 2 - identical


def test_equal_texts_are_one_negative(tokenizer: Any) -> None:
    """Different orders of five sentences become the same order of the two that fit."""
    table = pa.Table.from_pylist([{"id": "d", "sentences": STORY}])
    documents = encode_documents(table, TextEncoder(tokenizer, 22))
    orders = [[1, 0, 2, 3, 4], [0, 1, 4, 3, 2], [2, 1, 3, 0, 4], [4, 3, 2, 1, 0]]
    assert documents.orders("d", orders) == [[1, 0]] * 3
    assert documents.orders("d", orders, distinct=True) == [[1, 0]]
    twins = pa.Table.from_pylist([{"id": "d", "sentences": ["It rained.", "Go.", "It rained."]}])
    documents = encode_documents(twins, TextEncoder(tokenizer, 100))
    orders = [[1, 0, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]]
    assert documents.orders("d", orders, distinct=True) == [[1, 0, 2], [0, 2, 1]]


@pytest.mark.parametrize("place", [0, 1])
def test_an_intruder_longer_than_the_limit_is_cut(place: int, tokenizer: Any) -> None:
    intruder = " ".join(["counter", "shop", "shelves"] * 30)
    negative = [intruder if i == place else line for i, line in enumerate(STORY)]
    row = {"doc": "d", "position": place, "pos": STORY, "neg": negative}
    documents, orders = intrusion_tables(pa.Table.from_pylist([row]))
    encoder = TextEncoder(tokenizer, 24)
    found = encode_documents(documents, encoder)
    assert encoder.cut == 1
    [name], [listed] = orders["document"].to_pylist(), orders["orders"].to_pylist()
    made = [found.permuted(name, order) for order in found.orders(name, listed)]
    assert len(made) == (place == 0)  # one sentence is kept: another's place was cut off
    assert all(len(text) <= 24 for text in made)


def test_each_row_keeps_its_own_candidates(tokenizer: Any) -> None:
    table = pa.Table.from_pylist(
        [{"id": "short", "sentences": STORY[:3]}, {"id": "long", "sentences": STORY}]
    )
    documents = encode_documents(table, TextEncoder(tokenizer, 200))
    many = [list(order) for order in permutations(range(5))][1:]
    few = [list(order) for order in permutations(range(3))][1:]
    rows = pa.Table.from_pylist(
        [
            {"document": "short", "orders": few},
            {"document": "long", "orders": many},
            {"document": "short", "orders": [[0, 1, 2]]},
        ]
    )
    found, fewer, dropped = candidate_rows(documents, rows, 50)
    assert found == [("short", few), ("long", many[:50])]
    assert (fewer, dropped) == (1, 1)
    with pytest.raises(InputError, match=r"'train': no text differs.*= 200\n.*raise max_tokens"):
        candidate_rows(documents, rows[2:], 50)


def test_a_tiny_model_tells_50_documents_from_their_permutations(tokenizer: Any) -> None:
    documents = story_documents(50, seed=11)
    texts = encode_documents(pa.Table.from_pylist(documents), TextEncoder(tokenizer, 100))
    rows = pa.Table.from_pylist(orders_of(documents, negatives=3))
    data = instances(texts, rows, 3, tokenizer.pad_token_id)
    model = scorer("bert", tokenizer).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    objective, order = ContrastiveMargin(), random.Random(0)
    for _ in range(60):
        batch = data.collate([data[row] for row in order.sample(range(50), 8)])
        optimizer.zero_grad()
        objective(model(**batch).scores).backward()
        optimizer.step()
    batch = data.collate([data[row] for row in range(50)])
    scores = model.eval()(**batch).scores
    assert (scores[:, :1] > scores[:, 1:]).all()
