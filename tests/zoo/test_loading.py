"""A trained folder loads where its users are: its card's examples, without this project."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForSequenceClassification

import zoo
from corpora.schemas import CONPONO
from tests.processes import ran
from zoo.coherence import SHIPPED as SCORER
from zoo.coherence import CoherenceScorer, load_scorer
from zoo.dissent import SHIPPED, PairClassifier, predict
from zoo.evaluate.encoders import load_encoder
from zoo.folders import FAMILIES
from zoo.loading import load_tokenizer
from zoo.modeling import save_model
from zoo.train import main, train
from zoo.training.results import trained_on

from .conftest import write_dataset
from .conpono.conftest import rows
from .test_criteria import write as write_criteria

ROOT = Path(__file__).resolve().parents[2]
VECTORS = {  # how our own encoder is told to take the vector that the model was trained with
    "transformer_tiny": "cls",
    "bilstm_tiny": "pooled",
    "sif": "pooled",
    "scorer": "cls",
    "mean": "mean",
    "conpono": "pooled",
    "criteria": "pooled",
}
NEEDS_CODE = ("bilstm_tiny", "sif", "criteria")
TEXTS = ["Anna sang at noon.", "We took our coats, since the house was cold and it was late."]
STORIES = [
    "In 1848 the mill burned down. By 1851 it stood again, and Mr. Bell ran it.",
    "The house was “dark. Nobody spoke.\n\n“Why not?” he asked. It was cold",
    ["The ferry left at noon.", "She had missed it,” he said.", "", "In 1902 it sank."],
    " ".join(f"Part {i} of the road was long, and in 1{i % 9}00 it was cold." for i in range(30)),
    "It was " + "very " * 400 + "late. Then they slept.",
    "The [SEP] of a text. [CLS] It has marks.",
]
"""Texts with years, open quotations, an empty sentence, several windows, and special tokens."""
FENCE = re.compile(r"```python\n(.*?)```", re.S)
ELSEWHERE = """
import json, os, sys
from importlib.util import find_spec
from pathlib import Path

root, folders, texts, stories, out = json.loads(sys.argv[1])
sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(root)]
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder).lower()]
assert find_spec("zoo") is None and find_spec("corpora") is None
from transformers import AutoModel

found = {}
for name, (folder, example) in folders.items():
    os.chdir(folder)
    made = {}
    exec(example, made)  # as the card prints it
    model = AutoModel.from_pretrained(folder, trust_remote_code=True)
    found[name] = {"model": type(model).__name__}
    if "encoder" in made:
        made["encoder"].save_pretrained(f"{out}.{name}")
        saved = type(made["encoder"])(f"{out}.{name}", trust_remote_code=True)
        found[name] |= {
            "vectors": made["encoder"].encode([*texts, texts[0]]).tolist(),
            "saved": saved.encode([*texts, texts[0]]).tolist(),
            "shape": list(made["vectors"].shape),
        }
    if "label" in made:
        found[name]["label"] = made["label"]
    if "labels" in made:
        pairs = [{"text": text, "text_pair": texts[0]} for text in texts] * 2
        found[name]["labels"] = made["classify"](pairs, batch_size=3)
    if "results" in made:  # the shipped scorer
        found[name]["stories"] = made["model"].score(stories)
        strings = [text for text in stories if isinstance(text, str)]
        batches = made["classify"](strings, batch_size=2)
        found[name]["piped"] = [result["score"] for result in batches]
        pairs = [(text, "") for text in strings]
        found[name]["crossed"] = made["scorer"].predict(pairs).tolist()
        continue
    if "scorer" in made:
        predict = made["scorer"].predict
        assert made["scores"].shape == (len(made["texts"]),)
        found[name]["scores"] = predict([(text, "") for text in [*texts, texts[0]]]).tolist()
        found[name]["single"] = [float(predict(text)) for text in texts]
Path(out).write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def models(
    tmp_path_factory: pytest.TempPathFactory,
    dissent_models: dict[str, Path],
    permuted_folder: Path,
    tiny_bert: Path,
) -> dict[str, Path]:
    """A model of each family, by name: of few steps, two from the same local backbone."""
    folder = tmp_path_factory.mktemp("models")
    parts = {
        ("default", split): (rows(3, 3, 9, split), CONPONO)
        for split in ("train", "validation", "test")
    }
    conpono = write_dataset(folder / "data" / "conpono", "conpono", parts)
    scorer = ["--dataset", str(permuted_folder), "--backbone", str(tiny_bert)]
    words = {
        "scorer": ["coherence/contrastive_tiny", *scorer, "--backbone_config", "{}"],
        "mean": ["coherence/contrastive_tiny", *scorer, "--backbone_config", "{}", "--vector=mean"],
        "unc": ["coherence/unc_tiny", "--dataset", str(permuted_folder), "--eval_batch_size", "1"],
        "conpono": ["conpono/tiny", "--dataset", str(conpono), "--targets", "1"],
        "criteria": ["criteria/bigru_tiny", "--dataset", str(write_criteria(folder / "d"))],
    }
    for name, own in words.items():
        train([*own, "--output", str(folder / name), "--max_steps", "2"])
    return {**dissent_models, **{name: folder / name for name in words}}


def examples(folder: Path) -> list[str]:
    """The examples of a card: those that run anywhere first, then those with this project."""
    return FENCE.findall((folder / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def packed(dissent_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of pairs whose weights are stored in four bits."""
    folder = tmp_path_factory.mktemp("packed")
    classifier = PairClassifier.load(dissent_models["transformer_tiny"])
    save_model(classifier.model, classifier.tokenizer, folder, packed=True)
    return folder


@pytest.fixture(scope="module")
def elsewhere(
    models: dict[str, Path], packed: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What a process without this project gets from each folder."""
    work = tmp_path_factory.mktemp("elsewhere")
    folders = {name: (str(models[name]), examples(models[name])[0]) for name in VECTORS}
    folders["packed"] = (str(packed), examples(SHIPPED)[0])
    folders["shipped"] = (str(SHIPPED), examples(SHIPPED)[0])
    folders["shipped scorer"] = (str(SCORER), "".join(examples(SCORER)[:2]))
    asked = json.dumps([str(ROOT), folders, TEXTS, STORIES, str(work / "found.json")])
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"HF_HOME": str(work / "hf"), "HF_HUB_OFFLINE": "1"}
    done = ran([sys.executable, "-c", ELSEWHERE, asked], cwd=work, env=environment)
    assert done.returncode == 0, "\n".join(line[:300] for line in done.stderr.splitlines()[-40:])
    found: dict[str, dict[str, Any]] = json.loads((work / "found.json").read_text())
    return found


@pytest.mark.parametrize("name", VECTORS)
def test_sentence_transformers_gives_the_vectors_that_we_give(
    name: str, models: dict[str, Path], elsewhere: dict[str, dict[str, Any]]
) -> None:
    own = load_encoder(str(models[name]), VECTORS[name]).encode([*TEXTS, TEXTS[0]])
    assert np.abs(own - np.array(elsewhere[name]["vectors"])).max() < 1e-5
    assert np.abs(own - np.array(elsewhere[name]["saved"])).max() < 1e-5
    assert elsewhere[name]["shape"] == [2, own.shape[1]]
    code = [line for line in examples(models[name])[0].splitlines() if "SentenceT" in line][-1]
    assert ("trust_remote_code=True" in code) == (name in NEEDS_CODE)
    assert elsewhere[name]["model"].endswith("Encoder")  # by AutoModel, with the folder's code


@pytest.mark.parametrize("name", ["scorer", "mean"])
def test_a_cross_encoder_gives_the_scores_that_we_give(
    name: str, models: dict[str, Path], elsewhere: dict[str, dict[str, Any]]
) -> None:
    own = CoherenceScorer.from_pretrained(models[name]).score(TEXTS)
    assert elsewhere[name]["scores"] == pytest.approx([*own, own[0]], abs=1e-5)
    assert elsewhere[name]["single"] == pytest.approx(own, abs=1e-5)


def test_a_pipeline_gives_the_label_that_we_give(
    models: dict[str, Path], elsewhere: dict[str, dict[str, Any]]
) -> None:
    (own,) = predict(models["transformer_tiny"], [("It rained all day.", "We stayed inside.")])
    label, probability = next(iter(own.items()))
    found = elsewhere["transformer_tiny"]["label"]
    found = found[0] if isinstance(found, list) else found
    assert found["label"] == label and found["score"] == pytest.approx(probability, abs=1e-5)


def test_weights_of_four_bits_need_only_their_folder(
    packed: Path, elsewhere: dict[str, dict[str, Any]]
) -> None:
    for name, folder in (("packed", packed), ("shipped", SHIPPED)):
        model = PairClassifier.load(folder)
        own = model.probabilities([(text, TEXTS[0]) for text in TEXTS])
        for row, found in zip([*own, *own], elsewhere[name]["labels"], strict=True):
            scores = {one["label"]: one["score"] for one in found}
            assert [scores[label] for label in model.labels] == pytest.approx(row, abs=1e-5)
        assert elsewhere[name]["model"] == "PairEncoder"
    stored = load_file(packed / "model.safetensors")
    assert {str(stored[name].dtype) for name in stored if f"{name}.scale" in stored} == {
        "torch.uint8"
    }
    assert not (packed / "modules.json").exists()  # with it no code of the folder would run


def test_the_shipped_scorer_needs_only_its_folder(elsewhere: dict[str, dict[str, Any]]) -> None:
    own, found = load_scorer().score(STORIES), elsewhere["shipped scorer"]
    assert found["model"] == "LinkScorer"
    assert found["stories"] == pytest.approx(own, abs=1e-5)
    whole = [score for score, text in zip(own, STORIES, strict=True) if isinstance(text, str)]
    assert found["piped"] == pytest.approx(whole, abs=1e-5)
    assert found["crossed"] == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize("folder", [SHIPPED, SCORER], ids=["predictor", "scorer"])
def test_a_shipped_folder_has_copies_of_the_code(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    family = FAMILIES[config["model_type"]]
    sources = [Path(str(module.__file__)) for module in family.code]
    assert {path.name for path in folder.glob("*.py")} == {path.name for path in sources}
    for source in sources:
        assert (folder / source.name).read_bytes() == source.read_bytes()
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert {key: tokenizer.get(key) for key in family.tokenizer} == family.tokenizer


def test_a_model_that_starts_from_the_shipped_scorer_has_a_plain_tokenizer(
    packed: Path, tmp_path: Path
) -> None:
    model = PairClassifier.load(packed).model
    save_model(model, load_tokenizer(str(SCORER)), tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert "auto_map" not in settings and "sentence_words" not in settings


def test_the_examples_with_this_project_run_as_printed(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, folder in models.items():
        monkeypatch.chdir(folder)
        own = [example for example in examples(folder) if "from zoo" in example]
        assert own or name == "criteria"
        for example in own:
            exec(compile(example, name, "exec"), {})


def test_the_auto_classes_need_no_code_of_the_folder_here(models: dict[str, Path]) -> None:
    zoo.register()
    for name, folder in models.items():
        kind = AutoModelForSequenceClassification if name == "ngram" else AutoModel
        assert type(kind.from_pretrained(folder)).__module__.startswith("zoo."), name


def test_nothing_tells_where_a_model_was_made(models: dict[str, Path], tiny_bert: Path) -> None:
    for folder in models.values():
        for path in (path for path in folder.rglob("*") if path.is_file()):
            content = path.read_bytes()
            assert str(folder.parent).encode() not in content, path
            assert str(tiny_bert.parent).encode() not in content, path
    settings = json.loads((models["scorer"] / "manifest.json").read_text())["settings"]
    assert settings["backbone"] == "bert" and "model.safetensors" in settings["backbone_files"]


def test_a_backbone_is_known_by_its_name_and_contents(
    models: dict[str, Path], permuted_folder: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    words = ["coherence/contrastive_tiny", "--dataset", str(permuted_folder), "--max_steps", "2"]
    words += ["--backbone_config", "{}", "--output", str(models["scorer"])]
    moved = shutil.copytree(tiny_bert, tmp_path / "elsewhere" / "bert")
    assert main([*words, "--backbone", str(moved)]) == 0  # already made
    with (moved / "config.json").open("a") as file:
        file.write("\n")
    assert main([*words, "--backbone", str(moved)]) == 2


def test_the_metadata_of_a_card(models: dict[str, Path]) -> None:
    for name, folder in models.items():
        data = ModelCard.load(folder / "README.md").data
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        assert data.language == ["en"] and data.datasets == [results["dataset"]["name"]]
        assert data.base_model == ("bert" if name in ("scorer", "mean") else None)
        assert (data.library_name == "discorpora") == (name in ("ngram", "unc"))
        assert data.eval_results and data.metrics
        for figure in data.eval_results:
            at: Any = results["metrics"]
            for key in figure.metric_name.split(" "):
                at = at[key]
            assert at["value"] == pytest.approx(figure.metric_value, abs=1e-6)
            assert figure.metric_type in data.metrics and figure.dataset_split == "test"
            assert figure.dataset_revision == results["dataset"]["revision"]


def test_what_a_model_started_from_is_in_its_results(
    models: dict[str, Path], permuted_folder: Path, tmp_path: Path
) -> None:
    words = ["--dataset", str(permuted_folder), "--backbone", str(models["transformer_tiny"])]
    words += ["--backbone_config", "{}", "--max_steps", "1", "--output", str(tmp_path / "next")]
    train(["coherence/contrastive_tiny", *words])
    assert [one["name"] for one in trained_on(str(tmp_path / "next"))] == ["permuted", "dissent"]
