"""Suites evaluate what one has in hand: a model, a `SentenceTransformer` or a function, on data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForSequenceClassification

import discorpora
from corpora.errors import ConfigError, InputError
from tests.zoo.opened import evaluate
from zoo.evaluate import SUITES, Scores, Vectors
from zoo.evaluate.classification import PairClassifier
from zoo.evaluate.encoders import as_encoder, load_encoder
from zoo.evaluate.relations import DisSent
from zoo.loading import load_tokenizer
from zoo.training.data import as_dataset, open_dataset

from .conftest import pair_rows

ENDINGS = [
    {"pos": ["Ida packed.", "She left at nine."], "neg": ["Ida packed.", "Tin melts."]},
    {
        "pos": ["It froze.", "We lit the stove."],
        "neg": ["It froze.", "Stoves are of iron."],
    },
    {"pos": ["He rang.", "Nobody came."], "neg": ["He rang.", "Nobody, nobody, nobody came."]},
]
RELATIONS = datasets.Features(
    {
        "arg1": datasets.Value("string"),
        "arg2": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["because", "but", "so"]),
    }
)


def shortness(texts: list[str]) -> list[float]:
    return [-float(len(text)) for text in texts]


def letters(texts: list[str]) -> np.ndarray:
    return np.array([[text.count("e"), len(text)] for text in texts], np.float32)


def relations(**sizes: int) -> datasets.DatasetDict:
    def rows(size: int, seed: int) -> datasets.Dataset:
        pairs = pair_rows(size, seed)
        listed = [{"arg1": r["s1"], "arg2": r["s2"], "label": r["label"]} for r in pairs]
        return datasets.Dataset.from_list(listed, features=RELATIONS)

    return datasets.DatasetDict(
        {split: rows(size, seed) for seed, (split, size) in enumerate(sizes.items())}
    )


@pytest.fixture(scope="module")
def sentences(tiny_bert: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(tiny_bert), device="cpu")


def test_a_function_that_scores_is_judged_as_the_rule_of_the_command_line(tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list(ENDINGS)
    file = tmp_path / "endings.jsonl"
    rows.to_json(file)
    suite = SUITES.find("pairwise")()
    found = suite.evaluate(Scores(shortness), {"endings": rows})
    other = evaluate(suite, "baseline:shorter", file)
    assert found.metrics["sets"].keys() == other.metrics["sets"].keys()
    for key in ("accuracy", "outcomes", "pairs_digest"):
        assert found.metrics["sets"]["endings"][key] == other.metrics["sets"]["endings"][key]
    assert dict(found.model) == {"name": "shortness", "type": "function"}
    assert (found.suite, found.seed, found.split) == ("pairwise", 0, "test")
    named = discorpora.evaluate("pairwise", Scores(shortness), {"endings": rows}, name="mine")
    assert named.metrics == found.metrics
    assert "| mine |" in discorpora.compare(named, found).render("markdown")
    assert discorpora.score(["One.", "Two, three."], Scores(shortness)) == [-4, -11]


def test_a_sentence_transformer_is_judged_as_its_function(sentences: Any) -> None:
    suite = SUITES.find("pdtb")(protocol="sentences")
    data = relations(train=24, validation=9, test=9)
    one = suite.evaluate(sentences, data)
    two = suite.evaluate(Vectors(sentences.encode, "mine"), data, limit=0)
    assert one.metrics == two.metrics and one.examples == 9
    assert (one.model["name"], two.model["name"]) == ("SentenceTransformer", "mine")
    assert str(one.dataset["revision"]).startswith("rows ")
    assert suite.evaluate(sentences, data, limit=4, split="validation").examples == 4


def test_discoeval_takes_datasets_in_hand(sentences: Any) -> None:
    suite = SUITES.find("discoeval")(seeds=1, tasks=("BSO",), cache="", second_opinion=False)
    pairs = relations(train=24, validation=9, test=9)
    renamed = pairs.rename_columns({"arg1": "sentence1", "arg2": "sentence2"})
    data = {"shore": renamed}
    found = suite.evaluate(sentences, data)
    assert [*found.metrics["tasks"]["BSO"]["domains"]] == ["shore"]
    assert suite.evaluate(Vectors(sentences.encode), data).metrics == found.metrics


def test_a_trained_model_in_hand_has_the_figures_of_its_folder(
    dissent_models: dict[str, Path], pairs_folder: Path
) -> None:
    folder = str(dissent_models["transformer_tiny"])
    expected = evaluate(DisSent(), folder, pairs_folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    data = open_dataset(str(pairs_folder))
    assert DisSent().evaluate(model, data).as_json() == expected.as_json()
    alone = DisSent().evaluate(PairClassifier(model, load_tokenizer(folder)), data)
    assert alone.metrics == expected.metrics and alone.model["name"] == "PairTransformer"
    loaded = datasets.load_dataset(str(pairs_folder), "all")
    assert DisSent().evaluate(model, loaded).metrics == expected.metrics
    validation = evaluate(DisSent(), folder, pairs_folder, "validation")
    again = DisSent().evaluate(model, data, split="validation")
    assert again.as_json() == validation.as_json() != expected.as_json()


def test_the_encoder_of_a_model_in_hand_is_that_of_its_folder(
    tiny_bert: Path, dissent_models: dict[str, Path]
) -> None:
    for folder in (tiny_bert, dissent_models["transformer_tiny"], dissent_models["bilstm_tiny"]):
        encoder = as_encoder(AutoModel.from_pretrained(folder))
        texts = ["The old house was cold.", "Anna waited."]
        assert encoder is not None
        assert np.array_equal(encoder.encode(texts), load_encoder(str(folder)).encode(texts))


def test_documents_and_orders_in_hand(permuted_folder: Path) -> None:
    data = {
        config: datasets.load_dataset(str(permuted_folder), config)
        for config in ("documents", "pairwise")
    }
    suite = SUITES.find("permuted")()
    expected = evaluate(suite, "baseline:shorter", permuted_folder)
    assert suite.evaluate(Scores(shortness), data).metrics == expected.metrics
    with pytest.raises(ConfigError, match="no documents with their orders"):
        suite.evaluate(Scores(shortness), data["pairwise"])


def test_fine_tuning_leaves_the_model_in_hand_as_it_is(sentences: Any, tiny_bert: Path) -> None:
    rows = datasets.Dataset.from_list(
        [{"premise": "It rained.", "hypothesis": "It was wet.", "label": n % 2} for n in range(4)],
        features=datasets.Features(
            {
                "premise": datasets.Value("string"),
                "hypothesis": datasets.Value("string"),
                "label": datasets.ClassLabel(names=["entailment", "not_entailment"]),
            }
        ),
    )
    suite = SUITES.find("superglue")(max_steps=1, batch=2, bf16=False)
    data = {"rte": datasets.DatasetDict({"train": rows, "validation": rows})}
    for model in (AutoModel.from_pretrained(tiny_bert), sentences):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        found = suite.evaluate(model, data)
        assert found.split == "validation" and "RTE" in found.metrics["tasks"]
        after = model.state_dict()
        assert all(torch.equal(value.cpu(), after[name].cpu()) for name, value in before.items())


@pytest.mark.parametrize(
    ("suite", "model", "what"),
    [
        ("discoeval", Scores(shortness), "gives vectors of texts; this is a Scores"),
        ("pairwise", Vectors(letters), "scores a text; this is a Vectors"),
        ("dissent", Vectors(letters), "predicts the label of two texts; this is a Vectors"),
        ("pdtb", Scores(shortness), "this is a Scores"),
        ("superglue", letters, "backbone that a training can start from; this is a function"),
        ("pairwise", "models/mine", "scores a text; this is a str"),
    ],
)
def test_a_model_of_another_kind_is_refused(suite: str, model: Any, what: str) -> None:
    data: dict[str, Callable[[], Any]] = {
        "pairwise": lambda: datasets.Dataset.from_list(ENDINGS),
        "superglue": lambda: {},
    }
    with pytest.raises(ConfigError, match=what) as caught:
        rows = data.get(suite, lambda: relations(train=9, validation=9, test=9))()
        SUITES.find(suite)().evaluate(model, rows)
    assert "open_model" in caught.value.hint or "Vectors(function)" in caught.value.hint


def test_what_is_no_data_and_no_scores_is_named() -> None:
    with pytest.raises(ConfigError, match="a list is no dataset"):
        DisSent().evaluate(Vectors(letters), [1])
    with pytest.raises(InputError, match="2 texts gave an array of shape"):
        Scores(lambda texts: [1.0]).score(["One.", "Two."])


def test_the_revision_of_rows_in_hand_is_theirs() -> None:
    one, same = (as_dataset(relations(train=9)) for _ in range(2))
    assert one.revision == same.revision != as_dataset(relations(train=8)).revision
    assert as_dataset(relations(test=9)["test"], "mine").where == "mine@default"
