"""Fine-tuning on pairs: DisSent's markers, NLI, the PDTB tasks, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from corpora import schemas
from corpora.errors import InputError
from tests.zoo.outcomes import check_outcomes
from zoo.criteria.modeling import CriteriaConfig, CriteriaModel
from zoo.dissent.data import encode_pairs
from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers
from zoo.evaluate.__main__ import main
from zoo.labelled import load
from zoo.logistic import fit_logistic
from zoo.modeling import best_device
from zoo.presets import read_preset, shipped
from zoo.training import trainer
from zoo.training.data import open_dataset
from zoo.training.finishing import origins_of
from zoo.training.throughput import operations, peak
from zoo.vocabularies import train_subwords

from .conftest import MARKERS, STORY, pair_rows, write_dataset

Run = Callable[..., tuple[int, str]]
TINY = ["dissent/transformer_tiny", "--vocab_size", "400", "--backbone_config.hidden_size", "32"]
NLI = ["entailment", "neutral", "contradiction"]
SMALL = """
[settings.backbone_config]
model_type = "bert"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 16
"""
SENSES = ["Cause", "Concession", "Conjunction", "Rare"]


def relation_rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of `pdtb_implicit`; the label 3 is seldom."""
    rows = []
    for index, row in enumerate(pair_rows(count, seed)):
        label = 3 if index % 16 == 5 else row["label"]
        texts = {"arg1": row["s1"], "arg2": row["s2"]}
        sense = SENSES[label]
        rows.append({"doc": row["doc"], "label": label, **texts, "connective": "", "sense": sense})
    return rows


@pytest.fixture(scope="module")
def relations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = {"train": 64, "validation": 24, "test": 24}
    parts = {
        ("default", split): (relation_rows(size, seed), schemas.pdtb(SENSES))
        for seed, (split, size) in enumerate(sizes.items())
    }
    return write_dataset(tmp_path_factory.mktemp("data") / "pdtb", "pdtb_implicit", parts)


def test_a_batch_is_what_the_tokenizer_makes_of_the_pairs() -> None:
    tokenizer = train_subwords(STORY, 300)
    one, two = STORY[:3], ["Yes.", STORY[4], STORY[3]]
    pairs = encode_pairs(one, two, tokenizer, 40, np.array([2, 0, 1]))
    batch = pairs.collate([pairs[row] for row in range(3)])
    expected = tokenizer(one, two, padding=True, return_tensors="pt")
    for name, values in expected.items():
        assert torch.equal(batch[name], values), name
    assert batch["labels"].tolist() == [2, 0, 1] and pairs.truncated == 0
    assert pairs.lengths().tolist() == expected["attention_mask"].sum(1).tolist()


def test_the_trainer_validates_the_rows_that_it_says(
    train_cli: Run, pairs_folder: Path, tmp_path: Path
) -> None:
    """Once it has learnt the markers' words, validation says so, as the test does."""
    options = [*TINY[1:], "--dataset", pairs_folder, "--output", tmp_path / "m"]
    code, message = train_cli(TINY[0], *options, "--epochs", "10")
    assert code == 0, message
    results = json.loads((tmp_path / "m" / "results.json").read_text(encoding="utf-8"))
    assert results["training"]["validations"][-1]["accuracy"] > 0.9
    assert results["metrics"]["test"]["accuracy"]["value"] > 0.9


def test_pairs_that_are_cut_are_counted_once() -> None:
    tokenizer = train_subwords(STORY, 300)
    whole = encode_pairs(STORY, STORY, tokenizer, 500).lengths()
    limit = int(np.sort(whole)[2])
    cut = encode_pairs(STORY, STORY, tokenizer, limit)
    assert cut.truncated == int((whole > limit).sum()) > 0
    assert cut.lengths().max() == limit


def nli_rows(count: int) -> list[dict[str, Any]]:
    rows = pair_rows(count, 1)
    return [{"premise": r["s1"], "hypothesis": r["s2"], "label": r["label"]} for r in rows]


def test_nli_from_a_folder(train_cli: Run, tmp_path: Path) -> None:
    label = schemas.class_label("label", NLI)
    schema = pa.schema([("premise", pa.string()), ("hypothesis", pa.string()), label])
    parts = {("default", split): (nli_rows(48), schema) for split in ("train", "validation")}
    folder = write_dataset(tmp_path / "nli", "nli", parts)
    nli = shipped()["dissent/nli"]
    own = tmp_path / "recipe.toml"
    text = nli.read_text(encoding="utf-8")
    text = text.replace('backbone = "google-bert/bert-base-uncased"', "vocab_size = 400")
    own.write_text(text + SMALL, encoding="utf-8")
    output = tmp_path / "model"
    options = ["--dataset", folder, "--output", output, "--epochs", "1"]
    code, message = train_cli(own, *options, "--validation_split", "validation")
    assert code == 0, message
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["headline_name"].startswith("validation")  # no test split is there
    assert results["labels"] == NLI


def test_nli_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """SNLI's and MNLI's ways: no label is -1, the validation split has a name of its own."""
    import datasets

    kinds = {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string")}
    features = datasets.Features({**kinds, "label": datasets.ClassLabel(names=NLI)})
    rows = [*nli_rows(9), {**nli_rows(1)[0], "label": -1}]
    part = datasets.Dataset.from_list(rows, features=features)
    found = datasets.DatasetDict({"train": part, "validation_matched": part})
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **kwargs: found)
    monkeypatch.setattr("zoo.training.data._hub_revision", lambda name: "commit")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # no tries for the card
    data = load("owner/nli", splits={"validation": "validation_matched", "test": "none"})
    assert data.labels == NLI and data.columns == ("premise", "hypothesis")
    assert set(data.tables) == {"train", "validation"} and len(data.gold("train")) == 9
    assert "train: 1 row without a label" in data.notes


def test_base_then_markers_then_relations(
    dissent_models: dict[str, Path], relations: Path, train_cli: Run, tmp_path: Path
) -> None:
    output = tmp_path / "model"
    code, message = train_cli(
        "dissent/pdtb",
        *("--dataset", relations, "--output", output, "--classes", "3", "--epochs", "2"),
        *("--backbone", dissent_models["transformer_tiny"], "--learning_rate", "1e-3"),
    )
    assert code == 0, message
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["labels"] == SENSES[:3]
    assert any("rows of rarer labels left out" in note for note in results["notes"])
    # The base was trained on another dataset.
    data = {f"data {name}": ["CC0-1.0"] for name in (results["dataset"]["name"], "dissent")}
    assert results["licences"] == data
    assert str(tmp_path) not in (output / "config.json").read_text(encoding="utf-8")
    out = tmp_path / "pdtb.json"
    words = ["pdtb", "--model", str(output), "--data", str(relations), "--classes", "3"]
    assert main([*words, "--json", str(out)]) == 0
    check_outcomes(out)
    found = json.loads(out.read_text(encoding="utf-8"))["metrics"]["fine_tuned"]
    assert found["accuracy"] == results["metrics"]["test"]["accuracy"]


@pytest.mark.parametrize(
    ("card", "licence"),
    [("---\nlicense: apache-2.0\n---\n# B\n", "Apache-2.0"), ("---\n: [\n---\n", "unknown")],
)
def test_another_projects_backbone_has_the_licence_of_its_card(
    card: str,
    licence: str,
    tmp_path: Path,
    pairs_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preset, data = read_preset("dissent/transformer"), open_dataset(str(pairs_folder), "all")
    needed = {"dataset": "d", "output": "o", "backbone": "."}
    monkeypatch.chdir(tmp_path)
    assert origins_of(preset.recipe(needed), data)[f"backbone {tmp_path.name}"] == ["unknown"]
    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    found = origins_of(preset.recipe(needed), data)
    assert found == {"data dissent": ["CC0-1.0"], f"backbone {tmp_path.name}": [licence]}
    (tmp_path / "vectors.txt").write_text("a 0 1\n", encoding="utf-8")
    (tmp_path / "results.json").write_text('["another project\'s"]', encoding="utf-8")
    vectors = {"dataset": "d", "output": "o", "vectors": str(tmp_path / "vectors.txt")}
    found = origins_of(read_preset("dissent/bilstm").recipe(vectors), data)
    assert found["vectors vectors.txt"] == [licence]


@pytest.mark.parametrize("name", ["bilstm_tiny", "transformer_tiny", "sif"])
def test_frozen_vectors_and_logistic_regression(
    name: str, dissent_models: dict[str, Path], relations: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pdtb.json"
    words = ["pdtb", "--model", str(dissent_models[name]), "--data", str(relations)]
    assert main([*words, "--json", str(out), "--classes", "3"]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["task"] == "implicit" and set(found["metrics"]) == {"sentences", "pair"}
    majority = found["metrics"]["sentences"]["majority"]["accuracy"]
    assert found["metrics"]["sentences"]["accuracy"]["value"] > majority
    assert found["metrics"]["sentences"]["rows"] < 24  # the rare label's rows are left out
    assert (tmp_path / "pdtb.pair.csv").is_file()
    assert found["protocol"] == {"classes": 3, "limit": 0, "representation": "auto"}
    assert found["examples"] == found["metrics"]["pair"]["rows"]
    check_outcomes(out)


@pytest.mark.parametrize("suite", ["pdtb", "dissent"])
def test_a_split_whose_labels_are_hidden(
    suite: str, dissent_models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, schema = (
        (relation_rows, schemas.pdtb(SENSES))
        if suite == "pdtb"
        else (pair_rows, schemas.dissent(MARKERS))
    )
    parts = {("default", split): (make(16, 1), schema) for split in ("train", "validation", "test")}
    folder = write_dataset(tmp_path / "hidden", "hidden", parts)
    (file,) = folder.rglob("test*.parquet")
    table = pq.read_table(file)
    hidden = pa.array([-1] * table.num_rows, pa.int64())
    column = table.column_names.index("label")
    pq.write_table(table.set_column(column, table.schema.field("label"), hidden), file)
    words = [suite, "--model", str(dissent_models["bilstm_tiny"]), "--data", str(folder)]
    assert main(words) != 0
    said = capsys.readouterr().err
    assert "no row of the split 'test' has a label" in said and "--split validation" in said
    assert main([*words, "--split", "validation"]) == 0


def test_of_equal_accuracies_the_strongest_penalty_is_taken() -> None:
    features, labels = np.array([[-1.0], [1.0]] * 6), np.array([0, 1] * 6)
    held = 1 - labels[:3]
    held[2] = labels[2]  # one of three is right: 0.333..., which is kept as 0.33333
    fitted = fit_logistic(
        (features, labels), (features[:3], held), 2, grid=(1.0, 0.1, 10.0), iterations=50
    )
    assert set(fitted.accuracy.values()) == {0.33333} and fitted.c == 0.1


def test_a_training_split_of_one_label_is_refused() -> None:
    rows = np.ones((4, 2)), np.ones(4, np.int64)
    with pytest.raises(InputError, match="rows of one label only"):
        fit_logistic(rows, rows, 2, grid=(1.0,), iterations=5)


def test_a_model_without_vectors_or_labels(
    dissent_models: dict[str, Path], relations: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pdtb", "--model", str(dissent_models["ngram"]), "--data", str(relations)]) != 0
    assert "error:" in capsys.readouterr().err


def test_out_of_memory_says_what_to_lower(
    train_cli: Run, pairs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    def full_cpu(*args: object, **kwargs: object) -> None:
        torch.empty(1 << 50)

    options = [*TINY[1:], "--dataset", pairs_folder, "--output", tmp_path / "m"]
    for forward, where in ((full, "out of memory on the GPU"), (full_cpu, "out of memory\n")):
        monkeypatch.setattr("zoo.dissent.modeling.PairTransformer.forward", forward)
        code, message = train_cli(TINY[0], *options)
        assert code == 2 and where in message
        assert "raise gradient_accumulation" in message and "max_tokens" in message


def test_bf16_where_the_gpu_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trainer.uses_bf16("auto") is (torch.cuda.is_available() and trainer.uses_bf16(True))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    # As torch answers on a GPU that only imitates it.
    def supported(including_emulation: bool = True) -> bool:
        return including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert not trainer.uses_bf16("auto") and trainer.uses_bf16(True)


def test_a_torch_built_for_a_gpu_finds_the_cpu_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built_for = torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: built_for)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert best_device() == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert best_device() == built_for


def test_operations_of_a_step_and_of_a_gpu() -> None:
    config = BiLstmConfig(vocab_size=50, embedding_size=4, hidden_size=3, projection_size=2)
    model = BiLstmForMarkers(config)
    lstm = sum(p.numel() for p in model.encoder.lstm.parameters())
    last = sum(p.numel() for m in (model.projection, model.classifier) for p in m.parameters())
    assert operations(model, examples=5, tokens=70) == 6 * (70 * lstm + 5 * last)
    assert peak("NVIDIA H200", half=True) == 989e12
    assert peak("NVIDIA L4", half=True) != peak("NVIDIA L40S", half=True)
    assert peak("NVIDIA H100 PCIe", half=True) < peak("NVIDIA H100 80GB HBM3", half=True)
    assert peak("Tesla V100-SXM2-16GB", half=False) == 15.7e12
    # Training in float32 uses TF32.
    assert peak("NVIDIA A100-SXM4-80GB", half=False) == 156e12
    for other in ("a GPU of tomorrow", "NVIDIA RTX A1000", "NVIDIA L40", "NVIDIA T400"):
        assert peak(other, half=True) is None
    criteria = CriteriaModel(CriteriaConfig(vocab_size=50, embedding_size=4, hidden_size=3))
    gru = sum(p.numel() for p in criteria.encoder.gru.parameters())
    last = sum(p.numel() for p in criteria.decoders.parameters())
    assert operations(criteria, examples=5, tokens=70) == 6 * (70 * gru + 5 * last)


def test_the_most_frequent_labels_are_numbered_anew(relations: Path) -> None:
    data = load(str(relations), classes=2)
    assert len(data.labels) == 2 and "Rare" not in data.labels
    for split in data.tables:
        assert set(data.gold(split)) == {0, 1}
    assert load(str(relations)).labels == SENSES
