"""Model folders from strangers: no code of them runs, and no size of them is believed."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corpora.errors import DiscorporaError, InputError
from zoo.evaluate.encoders import load_encoder
from zoo.presets import TRUST

from ..fuzz.campaign import REFUSED, of_a_fork
from ..fuzz.test_model_folders import use

EVIL = """
from pathlib import Path

from transformers import BertConfig, BertModel

Path(RAN).write_text("")


class Config(BertConfig):
    model_type = "stranger"


class Model(BertModel):
    config_class = Config
"""


@pytest.fixture
def stranger(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of a type that transformers does not have, with the code for it."""
    folder = tmp_path / "stranger"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    code = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "stranger", "auto_map": code})
    )
    ran = tmp_path / "ran"
    (folder / "evil.py").write_text(EVIL.replace("RAN", repr(str(ran))))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "hf"))
    monkeypatch.setattr("builtins.input", lambda *_: "yes")  # transformers would ask
    monkeypatch.delenv(TRUST, raising=False)
    return folder


@pytest.mark.parametrize("loader", ["encoder", "scorer", "marker", "backbone"])
def test_no_code_of_a_stranger_runs(loader: str, stranger: Path) -> None:
    with pytest.raises(DiscorporaError) as caught:
        use(loader, stranger)
    assert not (stranger.parent / "ran").exists()
    assert str(caught.value).count("\n") <= 1
    if loader in ("encoder", "backbone"):
        assert "code" in str(caught.value) and "--trust-remote-code" in str(caught.value)


def test_code_runs_where_the_user_says_so_and_it_is_said(
    stranger: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(TRUST, "1")
    use("encoder", stranger)
    assert (stranger.parent / "ran").exists()
    assert "running code that came with it: evil.Config, evil.Model" in caplog.text


def test_a_manifest_imports_nothing_that_came_with_the_model(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for name in ("evil", "evil_file"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')\nclass X: ...\n")
    names = ["evil:X", "evil_file.py:X", f"{folder}/evil_file.py:X"]
    plugins = [{"kind": "recipe", "name": name, "requires": "x", "code": ""} for name in names]
    (folder / "manifest.json").write_text(json.dumps({"settings": {"plugins": plugins}}))
    use("encoder", folder)
    assert not (tmp_path / "evil").exists() and not (tmp_path / "evil_file").exists()


def test_weights_beside_the_model_are_not_read(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    (folder / "half-copied.safetensors").write_bytes(b"xx")
    assert len(load_encoder(str(folder)).encode(["It rained."])) == 1


@pytest.mark.parametrize("outside", ["../weights.safetensors", "/etc/hostname", "a/b.safetensors"])
def test_an_index_that_names_files_outside_is_refused(
    outside: str, tiny_bert: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    (folder / "model.safetensors").rename(tmp_path / "weights.safetensors")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": outside}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="names a file outside the folder"):
        load_encoder(str(folder))


@pytest.mark.parametrize(
    "size",
    [
        {"vocab_size": 10**7},
        {"hidden_size": 2 * 10**5},
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 300},
        {"max_position_embeddings": 10**7},
        {"num_labels": 10**7},
        {"num_attention_heads": -1},
        {"intermediate_size": 2**62},
        {"hidden_dropout_prob": float("nan")},
        {"output_hidden_states": "x"},
    ],
    ids=str,
)
def test_a_setting_that_no_such_model_has_takes_neither_time_nor_memory(
    size: dict[str, Any], tiny_bert: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | size))
    ended, said, _ = of_a_fork(partial(use, "encoder", folder))
    assert ended == REFUSED, said


def test_an_adapter_that_names_another_model_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "../other"}')
    with pytest.raises(InputError, match="holds an adapter"):
        load_encoder(str(folder))
