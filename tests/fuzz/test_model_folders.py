"""Model folders with a damaged file: each loads, or is refused in one message."""

from __future__ import annotations

import json
import random
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch

from zoo import coherence
from zoo.backbones import load_backbone
from zoo.coherence import CoherenceScorer
from zoo.coherence.modeling import CoherenceConfig
from zoo.dissent import SHIPPED, predict
from zoo.evaluate.classification import PairClassifier
from zoo.evaluate.encoders import load_encoder
from zoo.evaluate.scorers import load_scorer
from zoo.modeling import save_model

from .campaign import VALUES, Call, places, run, sizes

TEXTS = ["Anna sang at noon. We took our coats.", "The house was cold."]


def use(loader: str, folder: Path) -> None:
    """What a user does with a model folder."""
    if loader == "encoder":
        load_encoder(str(folder), "mean").encode(TEXTS)
    elif loader == "scorer":
        load_scorer(str(folder)).score(TEXTS)
    elif loader == "windows":
        coherence.load_scorer(folder).score(TEXTS)
    elif loader == "packed":
        predict(folder, [(TEXTS[0], TEXTS[1])])
    elif loader == "marker":
        PairClassifier.load(folder).probabilities([(TEXTS[0], TEXTS[1])])
    else:
        load_backbone(str(folder), {})


def damage(folder: Path, seed: int) -> str:
    """Damage a file of the folder as the seed says; what was done."""
    draw = random.Random(seed)
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".json", ".safetensors", ".onnx"))
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
        "shipped predictor": ("marker", SHIPPED),
        "shipped predictor without torch": ("packed", SHIPPED),
        "shipped scorer": ("windows", coherence.SHIPPED),
        "bilstm encoder": ("encoder", dissent_models["bilstm_tiny"]),
    }


@sizes(60, 3_000)
def test_a_damaged_folder_loads_or_is_refused_in_one_message(
    cases: int, folders: Folders, tmp_path: Path
) -> None:
    folder = tmp_path / "damaged"

    def case(seed: int) -> tuple[str, Call]:
        name = sorted(folders)[seed % len(folders)]
        loader, good = folders[name]
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, folder)
        return f"{name}: {damage(folder, seed)}", partial(use, loader, folder)

    run("model folders", cases, case, forked=True)
