"""Frozen encoders: what each representation is, one pass, the cache, texts that are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from corpora import progress
from corpora.errors import ConfigError, InputError
from zoo.evaluate import encoders
from zoo.evaluate.discoeval import DiscoEval
from zoo.evaluate.discoeval.protocol import representation_of
from zoo.evaluate.encoders import layers_to_judge, load_encoder
from zoo.evaluate.opening import open_model

TEXTS = ["anna waited", "bela sang and slept and sang again", "carl left .", "anna waited"]


def _direct(model: Path, text: str, other: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Hidden states `[layers, tokens, width]` and pooled vector of one text by itself."""
    inputs = AutoTokenizer.from_pretrained(model)(text, other, return_tensors="pt")
    with torch.no_grad():
        output = AutoModel.from_pretrained(model).eval()(**inputs, output_hidden_states=True)
    return torch.cat(output.hidden_states).numpy(), output.pooler_output[0].numpy()


def test_representations_are_read_off_one_pass(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert), batch_tokens=24)
    names = ["mean", "mean:1", "cls", "cls:0", "cls_mean", "pooled"]
    found = encoder.vectors(TEXTS, names)
    for row, text in enumerate(TEXTS):
        states, pooled = _direct(tiny_bert, text)
        expected = {
            "mean": states[-1].mean(0),
            "mean:1": states[1].mean(0),
            "cls": states[-1, 0],
            "cls:0": states[0, 0],
            "cls_mean": states[:, 0].mean(0),
            "pooled": pooled,
        }
        for name in names:
            np.testing.assert_allclose(found[name][row], expected[name], atol=2e-6, err_msg=name)
    assert (found["mean"][0] == found["mean"][3]).all()
    assert encoder.tokens == sum(len(encoder.tokenizer(t)["input_ids"]) for t in TEXTS[:3])


def test_progress_is_that_of_all_texts(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "SHARD", 2)
    encoder, shown = load_encoder(str(tiny_bert), batch_tokens=8), []
    forward = encoder.model.forward

    def noting(*args: Any, **kwargs: Any) -> Any:
        shown.extend((loop.what, loop.done, loop.total) for loop in progress._loops)
        return forward(*args, **kwargs)

    monkeypatch.setattr(encoder.model, "forward", noting)
    encoder.encode(TEXTS)
    assert shown == [("texts", done, 3) for done in range(3)]


def test_a_pair_is_one_input_with_segments(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert), "pooled")
    found = encoder.encode([(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0])])
    np.testing.assert_allclose(found[0], _direct(tiny_bert, TEXTS[0], TEXTS[1])[1], atol=2e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-5


def test_vectors_come_from_the_cache(tiny_bert: Path, tmp_path: Path) -> None:
    first = load_encoder(str(tiny_bert), "mean", cache=tmp_path)
    found = first.vectors(TEXTS, ["mean", "cls"])
    again = load_encoder(str(tiny_bert), "cls", cache=tmp_path)
    assert (again.encode(TEXTS) == found["cls"]).all() and again.tokens == 0
    more = again.encode([*TEXTS, "a new text"])
    assert (more[:4] == found["cls"]).all() and 0 < again.tokens < first.tokens
    # A pair is not its two texts joined, and another model has vectors of its own.
    assert again.encode([("anna", "waited")]).shape == (1, 16)
    other = load_encoder(str(tiny_bert), "cls", cache=tmp_path, dtype="bfloat16")
    other.encode(TEXTS)
    assert other.tokens == first.tokens and len(list(tmp_path.iterdir())) == 2
    assert not list(tmp_path.rglob("*.partial"))


def test_rules_are_encoders_whose_vectors_tell_texts_apart() -> None:
    for name, width in (("surface", 19), ("words", encoders.HASHED)):
        encoder = open_model(DiscoEval(), f"baseline:{name}")
        found = encoder.vectors([*TEXTS, ""], ["auto"])["auto"]
        assert found.shape == (5, width) and encoder.name == f"baseline:{name}"
        assert (found[0] == found[3]).all() and (found[0] != found[1]).any()
    with pytest.raises(ConfigError, match="did you mean 'words'"):
        open_model(DiscoEval(), "baseline:word")


def test_long_texts_are_cut_and_counted(tiny_bert: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the cache
        encoder = load_encoder(str(tiny_bert), "mean", cache=tmp_path)
        encoder.encode(["anna " * 300, "anna " * 300, "anna", ""])
        assert encoder.truncated == 1 and encoder.max_tokens == 64


def test_a_sentence_encoder_gives_its_own_vector(dissent_models: dict[str, Path]) -> None:
    encoder = load_encoder(str(dissent_models["bilstm_tiny"]))
    found = encoder.encode(["Anna waited.", "Bela sang and slept."])
    assert encoder.representation == "pooled" and found.shape == (2, 64)
    alone = encoder.encode(["Anna waited."])
    np.testing.assert_allclose(alone[0], found[0], atol=1e-6)


def test_a_layer_of_cls_is_judged_only_where_it_knows_the_text(tiny_bert: Path) -> None:
    encoder = load_encoder(str(tiny_bert))
    one, other = encoder.vectors(["anna waited .", "bela sang ."], ["cls:0", "mean:0"]).values()
    assert (one[0] == one[1]).all() and (other[0] != other[1]).any()
    assert [*layers_to_judge(encoder, "mean")] == [0, 1, 2]
    judged = [*layers_to_judge(encoder, "cls")]
    assert judged == [1, 2]
    names = [f"cls:{layer}" for layer in judged]
    found = encoder.vectors(["anna waited .", "bela sang ."], names)
    assert all((vectors[0] != vectors[1]).any() for vectors in found.values())


def test_a_representation_that_is_not_there(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no representation 'cls:9': the model has 2 layers"):
        load_encoder(str(tiny_bert), "cls:9")
    with pytest.raises(ConfigError, match="no representation 'maen'") as caught:
        load_encoder(str(tiny_bert), "maen")
    assert "did you mean 'mean'" in str(caught.value)
    with pytest.raises(InputError, match="no model here"):
        load_encoder(str(tmp_path))


def test_a_pooler_without_weights_is_not_drawn_at_random(tiny_bert: Path, tmp_path: Path) -> None:
    bare = AutoModel.from_pretrained(tiny_bert, add_pooling_layer=False)
    bare.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path), "pooled")
    with pytest.raises(ConfigError, match="no pooled vector"):
        encoder.encode(TEXTS)
    assert representation_of(encoder, DiscoEval(protocol="pairs"), "BSO") == "cls"
    bare.encoder.layer = bare.encoder.layer[:1]
    bare.save_pretrained(tmp_path)
    AutoConfig.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="has no weights for"):
        load_encoder(str(tmp_path))
