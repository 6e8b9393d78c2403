"""The BiLSTM: pooling, padding, its folder, and that it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from corpora.errors import InputError
from zoo.dissent import BiLstmConfig, BiLstmForMarkers
from zoo.dissent.data import EncodedPairs, encode_texts
from zoo.dissent.modeling import pair_features
from zoo.evaluate.classification import predict
from zoo.vocabularies import load_vectors, read_glove, train_words

from .conftest import MARKERS, pair_rows


def encoded(count: int, seed: int, max_tokens: int) -> tuple[EncodedPairs, int]:
    """EncodedPairs by a tokenizer trained on them, and the size of its vocabulary."""
    rows = pair_rows(count, seed)
    one, two = ([row[side] for row in rows] for side in ("s1", "s2"))
    tokenizer = train_words([*one, *two], 500)
    labels = np.array([row["label"] for row in rows])
    return encode_texts(one, two, tokenizer, max_tokens, labels), len(tokenizer)


def tiny(**changes: object) -> BiLstmForMarkers:
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "embedding_size": 12, "hidden_size": 8, "projection_size": 6}
    labels = dict(enumerate(MARKERS))
    return BiLstmForMarkers(BiLstmConfig(**{**sizes, "id2label": labels, **changes})).eval()


def test_features_of_equation_2() -> None:
    s1, s2 = torch.tensor([[2.0, 4.0]]), torch.tensor([[6.0, 1.0]])
    assert pair_features(s1, s2).tolist() == [[2, 4, 6, 1, 4, 2.5, -4, 3, 12, 4]]


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_padding_changes_nothing(pooling: str) -> None:
    encoder = tiny(pooling=pooling).encoder
    ids = torch.tensor([[5, 7, 9]])
    alone = encoder(ids).pooler_output
    padded = torch.tensor([[5, 7, 9, 0, 0], [4, 4, 4, 4, 4]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    together = encoder(padded, mask).pooler_output
    torch.testing.assert_close(together[:1], alone)


def test_max_pooling_takes_the_real_tokens_only_even_if_all_are_negative() -> None:
    encoder = tiny().encoder
    output = encoder(torch.tensor([[3, 8, 0, 0]]), torch.tensor([[1, 1, 0, 0]]))
    states = output.last_hidden_state[0, :2]
    torch.testing.assert_close(output.pooler_output[0], states.max(0).values)
    assert (output.pooler_output < 0).any()


def test_a_tiny_model_learns_64_pairs_by_heart() -> None:
    pairs, words = encoded(64, seed=5, max_tokens=20)
    model = tiny(vocab_size=words, hidden_size=32, projection_size=32).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = pairs.collate([pairs[row] for row in range(len(pairs))])
    for _ in range(200):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    assert (predict(model, pairs, batch_size=7) == pairs.labels).all()


def test_words_are_lower_cased_and_unknown_ones_have_id_1() -> None:
    tokenizer = train_words(["The cat. The dog!"], 100)
    assert tokenizer.tokenize("the CAT.") == ["the", "cat", "."]
    assert tokenizer("zebra")["input_ids"] == [1]
    assert tokenizer.pad_token_id == 0


def test_glove_vectors_of_the_words_that_the_file_has(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("cat 1 2 3\n. . . 7 8 9\ndog 4 5 6\n", encoding="utf-8")
    vocabulary = {"[PAD]": 0, "dog": 1, "bird": 2, "cat": 3, ". . .": 4}
    ids, vectors = read_glove(file, vocabulary)
    assert ids.tolist() == [1, 3, 4]
    assert vectors.tolist() == [[4, 5, 6], [1, 2, 3], [7, 8, 9]]
    # The text form of word2vec, and fastText's.
    file.write_text("3 3\ncat 1 2 3 \n. . . 7 8 9 \ndog 4 5 6 \n", encoding="utf-8")
    again = read_glove(file, vocabulary)
    assert (again[0] == ids).all() and (again[1] == vectors).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cat 1 2 3\ndog 4 x 6\n", "vectors.txt:2"),
        ("dog 1 2 3\ncat 4 5\n", "txt:2"),
        ("bird 1 2 3\n", "no word"),
    ],
)
def test_a_bad_vector_file_is_named(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        read_glove(file, {"cat": 0, "dog": 1})


def test_words_without_a_vector_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("cat 1 2 3\nsat 4 5 6\n<s> 7 8 9\n", encoding="utf-8")
    tokenizer = train_words(["the cat sat", "the dog"], 50, ends=True)
    assert tokenizer.decode(tokenizer("the cat sat")["input_ids"]) == "<s> the cat sat </s>"
    encoder = tiny(vocab_size=len(tokenizer), embedding_size=3, drop_unknown=True).encoder
    load_vectors(encoder.embeddings, tokenizer, file, deviation=1.0, drop_unknown=True)
    batch = tokenizer(["the cat sat", "cat sat", "a dog"], padding=True, return_tensors="pt")
    vectors = encoder(batch["input_ids"], batch["attention_mask"]).pooler_output
    torch.testing.assert_close(vectors[0], vectors[1])
    only_ends = tokenizer([""], return_tensors="pt")["input_ids"]
    torch.testing.assert_close(vectors[2:], encoder(only_ends).pooler_output)


def test_the_released_settings(train_cli: Any, pairs_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("we 1 2 3\nbell 4 5 6\n", encoding="utf-8")
    options = ["dissent/bilstm_tiny", "--dataset", pairs_folder, "--output", tmp_path / "m"]
    options += ["--max_steps", "1", "--linear_layers", "3", "--drop_unknown", "true"]
    code, message = train_cli(*options)
    assert code == 2 and "drop_unknown = true needs word vectors" in message
    options += ["--vectors", file, "--embedding_size", "3"]
    code, message = train_cli(*options)
    assert code == 2 and "--sentence_ends true" in message
    assert train_cli(*options, "--sentence_ends", "true")[0] == 0
    model = BiLstmForMarkers.from_pretrained(tmp_path / "m")
    assert isinstance(model.middle, torch.nn.Linear) and model.config.drop_unknown
    assert AutoTokenizer.from_pretrained(tmp_path / "m")("we")["input_ids"][0] == 2
