"""The released checkpoint's names; TensorFlow itself where it is installed."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig

import zoo
from corpora.errors import ConfigError, DiscorporaError, InputError
from workflows.cli import app as cli
from zoo.conpono import convert as conversion
from zoo.conpono.convert import convert, to_model

CONFIG = {
    "vocab_size": 12,
    "hidden_size": 4,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 6,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]


def variables(k: int = 4) -> dict[str, np.ndarray]:
    """The names and shapes of the released code (BERT's modeling.py, bilin_model_builder.py)."""
    shapes: dict[str, tuple[int, ...]] = {
        "bert/embeddings/word_embeddings": (12, 4),
        "bert/embeddings/position_embeddings": (16, 4),
        "bert/embeddings/token_type_embeddings": (2, 4),
        "bert/embeddings/LayerNorm/gamma": (4,),
        "bert/embeddings/LayerNorm/beta": (4,),
        "bert/pooler/dense/kernel": (4, 4),
        "bert/pooler/dense/bias": (4,),
        "cls/predictions/transform/dense/kernel": (4, 4),
        "cls/predictions/transform/dense/bias": (4,),
        "cls/predictions/transform/LayerNorm/gamma": (4,),
        "cls/predictions/transform/LayerNorm/beta": (4,),
        "cls/predictions/output_bias": (12,),
        "cls/seq_relationship/output_weights": (2, 4),
        "cpc_loss/cpc_weights": (2 * k, 4, 4),
        "cpc_loss/cpc_weights/adam_m": (2 * k, 4, 4),
        "global_step": (1,),
    }
    for layer in range(2):
        at = f"bert/encoder/layer_{layer}"
        for part in ("attention/self/query", "attention/self/key", "attention/self/value"):
            shapes |= {f"{at}/{part}/kernel": (4, 4), f"{at}/{part}/bias": (4,)}
        for part, (one, two) in {
            "attention/output/dense": (4, 4),
            "intermediate/dense": (4, 6),
            "output/dense": (6, 4),
        }.items():
            shapes |= {f"{at}/{part}/kernel": (one, two), f"{at}/{part}/bias": (two,)}
        for part in ("attention/output/LayerNorm", "output/LayerNorm"):
            shapes |= {f"{at}/{part}/gamma": (4,), f"{at}/{part}/beta": (4,)}
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


class Stored:
    """What TensorFlow's reader offers, over arrays."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(array.shape) for name, array in self.arrays.items()}

    def get_tensor(self, name: str) -> np.ndarray:
        return self.arrays[name]


def test_every_weight_finds_its_place() -> None:
    arrays = variables()
    model = to_model(Stored(arrays), BertConfig(**CONFIG), "full", "here").eval()
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    assert model.config.k == 4 and model.config.mlm
    layer = "bert/encoder/layer_1"
    for ours, theirs in {
        "relations.weight": arrays["cpc_loss/cpc_weights"],
        "masked_words.bias": arrays["cls/predictions/output_bias"],
        "masked_words.norm.weight": arrays["cls/predictions/transform/LayerNorm/gamma"],
        "backbone.pooler.dense.weight": arrays["bert/pooler/dense/kernel"].T,
        "backbone.embeddings.LayerNorm.bias": arrays["bert/embeddings/LayerNorm/beta"],
        "backbone.encoder.layer.1.intermediate.dense.weight": arrays[
            f"{layer}/intermediate/dense/kernel"
        ].T,
        "backbone.encoder.layer.1.attention.self.key.bias": arrays[
            f"{layer}/attention/self/key/bias"
        ],
    }.items():  # fmt: skip
        assert np.array_equal(state[ours], theirs), ours
    used = sum(a.size for n, a in arrays.items() if not conversion.LEFT_OUT.search(n))
    assert sum(array.size for array in state.values()) == used


def test_isolated_and_uni_encoders_are_told_apart() -> None:
    arrays = variables()
    assert to_model(Stored(arrays), BertConfig(**CONFIG), "isolated", "").config.encoder == (
        "isolated"
    )
    del arrays["cpc_loss/cpc_weights"]
    weights = np.arange(32, dtype=np.float32).reshape(4, 8)  # [width, 2K] in the released code
    arrays["cpc_loss/softmax_weights"] = weights
    arrays["cpc_loss/softmax_weights/adam_v"] = weights
    uni = to_model(Stored(arrays), BertConfig(**CONFIG), "full", "")
    assert (uni.config.encoder, uni.config.k) == ("uni", 4)
    assert np.array_equal(uni.relations.weight.detach(), weights.T)
    with pytest.raises(ConfigError, match="uni-encoder, not the isolated"):
        to_model(Stored(arrays), BertConfig(**CONFIG), "isolated", "")


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(InputError, match=r'Unexpected key.*"another\.variable"'):
        more = {**variables(), "another/variable": np.zeros(2, np.float32)}
        to_model(Stored(more), BertConfig(**CONFIG), "full", "here")
    arrays = variables()
    del arrays["bert/pooler/dense/bias"]
    with pytest.raises(InputError, match=r'Missing key.*"backbone\.pooler\.dense\.bias"'):
        to_model(Stored(arrays), BertConfig(**CONFIG), "full", "here")
    arrays = variables()
    with pytest.raises(InputError, match="word_embeddings"):
        to_model(Stored(arrays), BertConfig(**{**CONFIG, "vocab_size": 13}), "full", "here")
    flat = {**variables(), "cpc_loss/cpc_weights": np.zeros((8, 4), np.float32)}
    with pytest.raises(InputError, match=r"relations\.weight.*\[8, 4\].*\[8, 4, 4\]"):
        to_model(Stored(flat), BertConfig(**CONFIG), "full", "here")
    plain = {name: array for name, array in arrays.items() if "cpc" not in name}
    with pytest.raises(InputError, match="not a CONPONO model"):
        to_model(Stored(plain), BertConfig(**CONFIG), "full", "here")


@pytest.mark.skipif(find_spec("tensorflow") is not None, reason="TensorFlow is installed")
def test_without_tensorflow_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiscorporaError, match=r"discorpora\[tensorflow\]"):
        conversion.open_checkpoint(tmp_path / "model.ckpt")


def beside(folder: Path) -> None:
    (folder / "bert_config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")


def test_missing_files_are_named(tmp_path: Path) -> None:
    for name in ("bert_config.json", "vocab.txt"):
        with pytest.raises(InputError, match=re.escape(name)):
            convert(tmp_path / "model.ckpt-1", tmp_path / "out")
        beside(tmp_path)
        (tmp_path / "vocab.txt").unlink()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bert_config.json", '{"vocab_size": 12', "is not JSON"),
        ("bert_config.json", "[12]", "is not a configuration of BERT"),
        ("bert_config.json", '{"vocab_size": "many"}', "is not a configuration of BERT"),
        (
            "vocab.txt",
            "\n".join(WORDS[:-1]),
            "11 words, 11 different ones",
        ),
        ("vocab.txt", "\n".join([*WORDS, "h"]), "13 words, 13 different ones"),
        ("vocab.txt", "\n".join([*WORDS[:-1], "a"]), "12 words, 11 different ones"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    beside(tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        convert(tmp_path / "model.ckpt-1", tmp_path / "out")
    assert said in str(caught.value) and name in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_may_hold_line_separators(tmp_path: Path) -> None:
    words = [*WORDS[:-1], "\u2028"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    assert list(conversion.read_vocabulary(tmp_path / "vocab.txt", 12)) == words


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/reference/conpono.md has it."""
    monkeypatch.setattr(conversion, "open_checkpoint", lambda path: Stored(variables()))
    beside(tmp_path)
    text = (Path(__file__).parents[3] / "docs" / "reference" / "conpono.md").read_text(
        encoding="utf-8"
    )
    words = re.search(r"`discorpora (convert conpono CHECKPOINT .*?)`", text).group(1)  # type: ignore[union-attr]
    words = words.replace("CHECKPOINT", str(tmp_path / "model.ckpt-1"))
    command = words.replace("FOLDER", str(tmp_path / "out")).split()
    assert run(monkeypatch, [*command, "--encoder", "isolatd"]) == 1
    assert "did you mean 'isolated'" in capsys.readouterr().err
    assert run(monkeypatch, [*command, "--encoder", "isolated"]) == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert config["encoder"] == "isolated"


def run(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> int:
    monkeypatch.setattr(sys, "argv", ["discorpora", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
        sys.exit(0)
    return int(stop.value.code or 0)


def test_folder_loads_with_its_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "open_checkpoint", lambda path: Stored(variables()))
    beside(tmp_path)
    about = convert(tmp_path / "model.ckpt-1", tmp_path / "out")
    assert about["k"] == 4
    zoo.register()
    model = AutoModel.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer("a g")["input_ids"] == [2, 5, 11, 3]
    assert torch.equal(
        model.relations.weight, torch.from_numpy(variables()["cpc_loss/cpc_weights"])
    )


def test_a_checkpoint_written_by_tensorflow(tmp_path: Path) -> None:
    tensorflow = pytest.importorskip("tensorflow", reason="the extra tensorflow is not installed")
    v1 = tensorflow.compat.v1
    arrays = variables()
    with v1.Graph().as_default(), v1.Session() as session:
        for name, array in arrays.items():
            v1.get_variable(name, initializer=array)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), global_step=7)
    beside(tmp_path)
    convert(tmp_path / "model.ckpt-7", tmp_path / "out")
    zoo.register()
    model = AutoModel.from_pretrained(tmp_path / "out")
    assert np.array_equal(model.relations.weight.detach(), arrays["cpc_loss/cpc_weights"])
