"""Model folders from strangers: nothing of them runs, and what is damaged is named in one message.

Each damaged folder is loaded in a process of its own, with a limit of time and memory.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from corpora.errors import DiscorporaError, InputError
from zoo.coherence import CoherenceScorer
from zoo.coherence.modeling import CoherenceConfig
from zoo.evaluate.classification import PairClassifier
from zoo.evaluate.encoders import load_encoder
from zoo.evaluate.scorers import load_scorer
from zoo.modeling import load_backbone, save_model
from zoo.trust import TRUST

TEXTS = ["Anna sang at noon. We took our coats.", "The house was cold."]
SECONDS, MEMORY = 20, 1 << 30
"""What a folder may take: seconds, and bytes beyond what the process has."""
OK, SAID, TRACEBACK, MEMORY_GONE = 0, 3, 4, 5
NAMES = {OK: "loaded", SAID: "one message", TRACEBACK: "traceback", MEMORY_GONE: "out of memory"}


def use(loader: str, folder: Path) -> None:
    """What a user does with a model folder."""
    if loader == "encoder":
        load_encoder(str(folder), "mean").encode(TEXTS)
    elif loader == "scorer":
        load_scorer(str(folder)).score(TEXTS)
    elif loader == "marker":
        PairClassifier.load(folder).probabilities([(TEXTS[0], TEXTS[1])])
    else:
        load_backbone(str(folder), {})


def outcome(loader: str, folder: Path) -> tuple[str, str]:
    """How a process that uses the folder ends, and what it says."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code, said = OK, ""
        try:
            os.close(reader)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            used = int(Path("/proc/self/statm").read_text().split()[5]) * 4096  # its data
            resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 2)
            use(loader, folder)
        except DiscorporaError as error:
            code, said = SAID, str(error)
        except MemoryError:
            code = MEMORY_GONE
        except BaseException as error:
            code, said = TRACEBACK, f"{type(error).__name__}: {error}"
            if "memory" in said:
                code = MEMORY_GONE
        os.write(writer, said[:2000].encode("utf-8", "replace"))
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return ("hang" if name == "SIGALRM" else name), said
    return NAMES[os.waitstatus_to_exitcode(status)], said


VALUES: list[Any] = [
    *(0, -1, 1, 3, 7, 10**6, 10**9, 2**31, 2**63, 10**30, 1.5, 1e300, float("nan")),
    *("", "x", "gelu", "../../x", None, True, [], {}, [1, 2], {"a": 1}, "\ud800", ["x"] * 3),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a JSON value are, a thousand at most of each list or table."""
    if at:
        yield at
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in islice(parts, 1000):
            yield from places(inner, (*at, key))


def damage(folder: Path, seed: int) -> str:
    """Damage a file of the folder as the seed says; what was done."""
    draw = random.Random(seed)
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".json", ".safetensors"))
    path = draw.choice(files)
    data = path.read_bytes()
    ways = ["cut", "flip", "empty", "delete", "json", "json", "json", "json"]
    way = draw.choice(ways if path.suffix == ".json" else ways[:4])
    at = draw.randrange(len(data) or 1)
    if way == "cut":
        path.write_bytes(data[:at])
    elif way == "flip":
        at = draw.choice([at, min(at, draw.randrange(2000))])
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :])
    elif way == "empty":
        path.write_bytes(b"")
    elif way == "delete":
        path.unlink()
    else:
        value = json.loads(data)
        place = draw.choice(list(places(value)) or [()])
        new = draw.choice(VALUES)
        inner = value
        for key in place[:-1]:
            inner = inner[key]
        if place:
            inner[place[-1]] = new
        else:
            value = new
        path.write_text(json.dumps(value))
        return f"{path.name}: {place} = {new!r}"
    return f"{path.name}: {way} at {at} of {len(data)}"


Folders = dict[str, tuple[str, Path]]


@pytest.fixture(scope="module")
def folders(
    tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path, dissent_models: dict[str, Path]
) -> Folders:
    """A folder of each kind, with what loads it."""
    from transformers import AutoTokenizer

    scorer = tmp_path_factory.mktemp("scorer") / "model"
    scorer.mkdir()
    backbone = load_backbone(str(tiny_bert), {})
    torch.manual_seed(0)
    model = CoherenceScorer(CoherenceConfig(backbone_config=backbone.config, max_tokens=64))
    save_model(model, AutoTokenizer.from_pretrained(tiny_bert), scorer)
    kinds = {name: ("marker", path) for name, path in dissent_models.items()}
    return kinds | {
        "encoder": ("encoder", tiny_bert),
        "backbone": ("backbone", tiny_bert),
        "scorer": ("scorer", scorer),
        "bilstm encoder": ("encoder", dissent_models["bilstm_tiny"]),
    }


def campaign(
    folders: Folders, work: Path, seeds: Iterable[int], told: Callable[[str], object]
) -> Counter[str]:
    """Damage a folder for each seed, and use it; how it ended."""
    found: Counter[str] = Counter()
    for seed in seeds:
        name = sorted(folders)[seed % len(folders)]
        loader, good = folders[name]
        folder = work / "damaged"
        shutil.copytree(good, folder)
        done = damage(folder, seed)
        ended, said = outcome(loader, folder)
        shutil.rmtree(folder)
        found[ended] += 1
        if ended not in ("loaded", "one message"):
            told(f"seed {seed}: {name}: {done}: {ended}: {said[:300]}\n")
        elif ended == "one message" and said.count("\n") > 2:
            told(f"seed {seed}: {name}: {done}: {said.count(chr(10))} lines: {said[:600]}\n")
    return found


@pytest.mark.parametrize(
    "cases", [60, pytest.param(2000, marks=pytest.mark.nightly)], ids=["sample", "campaign"]
)
def test_a_damaged_folder_loads_or_is_refused_in_one_message(
    cases: int, folders: Folders, tmp_path: Path
) -> None:
    bad: list[str] = []
    start = int(os.environ.get("DISCORPORA_SEED", "0"))
    chosen = os.environ.get("DISCORPORA_SEEDS", "")
    seeds = map(int, chosen.split()) if chosen else range(start, start + cases)
    found = campaign(folders, tmp_path, seeds, bad.append)
    sys.stderr.write(f"{dict(found)}\n{''.join(bad)}")
    assert not bad


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
        {"intermediate_size": 2**62},
    ],
    ids=str,
)
def test_a_size_that_the_weights_have_not_takes_neither_time_nor_memory(
    size: dict[str, int], tiny_bert: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | size))
    ended, said = outcome("encoder", folder)
    assert ended == "one message", said


def test_an_adapter_that_names_another_model_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "../other"}')
    with pytest.raises(InputError, match="holds an adapter"):
        load_encoder(str(folder))
