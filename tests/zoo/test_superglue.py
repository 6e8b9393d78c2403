"""RTE, COPA and ReCoRD: the examples, the ranking loss, the scores, and a small run of each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import torch
from transformers import XLNetConfig, XLNetModel, XLNetTokenizer

from corpora import schemas
from corpora.errors import ConfigError, InputError
from tests.zoo.opened import evaluate
from tests.zoo.outcomes import check_outcomes
from zoo.backbones import pooling_of
from zoo.coherence import CoherenceScorer
from zoo.conpono import ConponoModel
from zoo.evaluate import superglue_training
from zoo.evaluate.__main__ import main
from zoo.evaluate.compare import compare
from zoo.evaluate.superglue import (
    TASKS,
    SuperGlue,
    SuperGlueExample,
    exact_match,
    examples_of,
    fewer_candidates,
    word_f1,
)
from zoo.evaluate.superglue_training import PairCollator, PairModel, Start, choose
from zoo.training.data import open_dataset

from .conftest import SUBJECTS, write_dataset, write_tiny_bert
from .families import write_family

PASSAGE = "Anna met Bela at the fair.\n@highlight\nCarl sold apples there."


def rte(count: int) -> list[dict[str, Any]]:
    """The hypothesis follows where it names the premise's person."""
    return [
        {
            "id": str(i),
            "premise": f"{SUBJECTS[i % 4]} sang.",
            "hypothesis": "Yes, it is so." if i % 2 else "No, never.",
            "label": 0 if i % 2 else 1,
        }
        for i in range(count)
    ]


def copa(count: int) -> list[dict[str, Any]]:
    good, bad = "It was warm and bright.", "A stone lay there."
    return [
        {
            "id": str(i),
            "premise": f"{SUBJECTS[i % 8]} went out.",
            "question": "cause",
            "choice1": bad if i % 2 else good,
            "choice2": good if i % 2 else bad,
            "label": i % 2,
        }
        for i in range(count)
    ]


def record(count: int) -> list[dict[str, Any]]:
    names = SUBJECTS[:4]
    return [
        {
            "id": str(i),
            "passage": PASSAGE,
            "query": "Then @placeholder went home.",
            "entities": names[i % 4 :] + names[: i % 4],
            "answers": [names[0]],
        }
        for i in range(count)
    ]


MADE = {"rte": (rte, schemas.RTE), "copa": (copa, schemas.COPA), "record": (record, schemas.RECORD)}


@pytest.fixture(scope="module")
def superglue_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = {
        (config, split): (make(size), schema)
        for config, (make, schema) in MADE.items()
        for split, size in (("train", 32), ("validation", 8))
    }
    return write_dataset(tmp_path_factory.mktemp("data") / "superglue", "superglue", parts)


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [str(value) for make, _ in MADE.values() for row in make(16) for value in row.values()]
    return write_tiny_bert(tmp_path_factory.mktemp("models") / "tiny", texts)


def test_the_settings_are_those_of_appendix_a4() -> None:
    found = {t.name: (t.learning_rate, t.max_steps, t.epochs, t.checkpoint) for t in TASKS.values()}
    assert found == {
        "RTE": (8e-6, 3240, 0, 750),
        "COPA": (1e-5, 300, 0, 50),
        "ReCoRD": (2e-5, 0, 8, 0),
    }


def test_the_blank_of_record_is_filled_with_each_entity(superglue_folder: Path) -> None:
    found = examples_of("record", open_dataset(f"{superglue_folder}@record")["validation"])
    passage = "Anna met Bela at the fair. Carl sold apples there."
    assert found[1].pairs[0] == (passage, "Then Bela went home.")
    assert found[1].texts[found[1].right[0]] == "Anna"
    copa = open_dataset(f"{superglue_folder}@copa")["train"]
    plain, asked = examples_of("copa", copa), examples_of("copa", copa, copa_question=True)
    assert plain[0].pairs[0] == ("Anna went out.", "It was warm and bright.")
    assert asked[0].pairs[0][0] == "Anna went out. What was the cause?"


def test_a_limit_of_candidates_keeps_a_right_one() -> None:
    pairs = tuple(("p", str(i)) for i in range(5))
    found = fewer_candidates(SuperGlueExample(pairs, (3, 4), tuple("abcde"), ("d", "e")), 3)
    assert found.texts == ("a", "b", "d") and found.right == (2,)
    whole = SuperGlueExample(pairs, (1,), tuple("abcde"))
    assert fewer_candidates(whole, 5) is whole


def test_the_ranking_loss_by_hand() -> None:
    model = PairModel(SimpleNamespace(config=SimpleNamespace(hidden_size=1)), "first", 1)  # type: ignore[arg-type]
    scores = torch.tensor([[1.0], [2.0], [0.0], [3.0], [1.0]])
    model.logits = lambda encoded, contexts: scores  # type: ignore[method-assign]
    sizes, right = torch.tensor([2, 3]), torch.tensor([0, 1, 1, 0, 1])
    first = math.log(math.e + math.e**2) - 2
    second = math.log(1 + math.e**3 + math.e) - math.log(1 + math.e)
    loss = model(sizes, right)["loss"].item()
    assert loss == pytest.approx((first + second) / 2)


@pytest.mark.parametrize("encoder", ["full", "uni"])
def test_copa_is_scored_by_the_matrix_of_the_next_text(
    encoder: str, tiny_bert: Path, superglue_folder: Path, tmp_path: Path
) -> None:
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    backbone = AutoModel.from_pretrained(tiny_bert)
    conpono = ConponoModel.from_backbone(backbone, 64, 0, encoder=encoder, k=2, mlm=False).eval()
    conpono.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    suite = SuperGlue(max_steps=1, batch=4, learning_rate=1e-9)
    notes = evaluate(suite, tmp_path, f"{superglue_folder}@copa").notes
    if encoder == "uni":
        assert Start.load(str(tmp_path)).relation is None
        assert "COPA: the model has no W of k = +1, a new one is trained" in notes
        return
    assert not any("has no W" in note for note in notes)
    examples = examples_of("copa", open_dataset(f"{superglue_folder}@copa")["validation"])[:3]
    collator = PairCollator(tokenizer, 64, 0, contexts=True)
    relation = Start.load(str(tmp_path)).relation
    model = PairModel(conpono.backbone, "first", 1, relation).eval()
    batch = collator(examples)
    anchors, pairs = (
        model.vectors(batch["contexts"]),
        model.vectors(collator.encode(pair for example in examples for pair in example.pairs)),
    )
    vectors = torch.cat([anchors[:, None], pairs.view(3, 2, -1)], 1)
    scores = conpono.relations(vectors)[:, 2]  # distances -2, -1, +1, +2
    expected = torch.nn.functional.cross_entropy(scores, batch["right"].view(3, 2).argmax(1))
    torch.testing.assert_close(model(**batch)["loss"], expected)
    chosen = choose(model, examples, collator, 2)
    assert chosen.tolist() == scores.argmax(1).tolist()


def test_a_batch_gives_what_single_texts_give_where_padding_stands_left() -> None:
    words = ["Anna", "sang", ".", "Bela", "left", "early", "We", "waited", "because", "it"]
    special = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
    vocab = [(piece, 0.0) for piece in special]
    vocab += [(f"\u2581{word}", -2.0) for word in words] + [("\u2581", -3.0)]
    tokenizer = XLNetTokenizer(vocab=vocab, unk_id=0)
    assert tokenizer.padding_side == "left"
    torch.manual_seed(0)
    sizes = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 32}
    backbone = XLNetModel(XLNetConfig(vocab_size=len(tokenizer), pad_token_id=5, **sizes))
    model = PairModel(backbone, pooling_of(backbone.config, tokenizer), 1).eval()
    torch.nn.init.normal_(model.head.weight)
    pairs = PairCollator(tokenizer, 64, 0)
    both = [("Anna sang .", "Bela left early"), (" ".join(words), "We waited because it")]
    examples = [SuperGlueExample((pair,), (0,)) for pair in both]
    alone = torch.cat([model.logits(pairs.encode(example.pairs)) for example in examples])
    torch.testing.assert_close(model.logits(pairs.encode(both)), alone, atol=1e-4, rtol=1e-4)


def test_of_several_gpus_one_is_used(
    on_two_gpus: Callable[[ModuleType], None], tmp_path: Path
) -> None:
    on_two_gpus(superglue_training)
    arguments = superglue_training._arguments(str(tmp_path), TASKS["record"], 0, 32, bf16=False)
    # Two would each get a part of the pairs, and of the examples that these belong to.
    assert arguments.n_gpu == 1 and arguments.train_batch_size == 2


@pytest.mark.parametrize(("batch", "at_once"), [(32, 32), (33, 11), (40, 20), (48, 24)])
def test_a_step_has_as_many_examples_as_the_batch(batch: int, at_once: int, tmp_path: Path) -> None:
    found = superglue_training._arguments(str(tmp_path), TASKS["rte"], 0, batch, bf16=False)
    assert found.per_device_train_batch_size == at_once
    assert at_once * found.gradient_accumulation_steps == batch


def test_a_backbone_without_pad_token(superglue_folder: Path, tmp_path: Path) -> None:
    texts = [str(value) for row in rte(8) for value in row.values()]
    folder = write_family(tmp_path / "gpt2", "gpt2", texts)
    suite = SuperGlue(max_steps=1, batch=4)
    found = evaluate(suite, folder, f"{superglue_folder}@rte")
    assert "RTE" in found.metrics["tasks"]


def test_exact_match_and_f1_by_hand() -> None:
    assert exact_match("The White House", ["white house."]) == 1.0
    assert exact_match("House", ["White House"]) == 0.0
    # One of one word found, one of two to be found: 2 * 1 / 3.
    assert word_f1("House", ["White House", "Rome"]) == pytest.approx(2 / 3)
    assert word_f1("Paris", ["Rome"]) == 0.0


def test_the_suite_learns_each_task(
    tiny_bert: Path, superglue_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, *more: str) -> dict[str, Any]:
        out = tmp_path / f"{name}.json"
        words = ["superglue", "--model", str(tiny_bert), "--data", str(superglue_folder)]
        tried = ["--learning_rate", "0.01", "--batch", "8", "--max_length", "48"]
        assert main([*words, "--json", str(out), *tried, *more]) == 0
        check_outcomes(out)
        return json.loads(out.read_text(encoding="utf-8"))

    found = run("two", "--tasks", "rte,copa", "--max_steps", "55")
    tasks = found["metrics"]["tasks"]
    assert [point["step"] for point in tasks["COPA"]["runs"][0]["checkpoints"]] == [50, 55]
    assert (found["split"], found["examples"], found["protocol"]["batch"]) == ("validation", 16, 8)
    assert "split validation" in " ".join(capsys.readouterr().out.split())
    tasks |= run("record", "--tasks", "record", "--max_steps", "15")["metrics"]["tasks"]
    assert set(tasks) == {"RTE", "COPA", "ReCoRD"}
    assert all(task["accuracy"]["value"] > task["chance"] for task in tasks.values())
    assert tasks["ReCoRD"]["em"]["value"] == tasks["ReCoRD"]["accuracy"]["value"]
    (table,) = compare([tmp_path]).tables
    assert table.columns == ["RTE", "COPA", "ReCoRD", "ReCoRD EM", "ReCoRD F1"]


def test_the_backbone_of_our_own_models_and_several_seeds(
    tiny_bert: Path, superglue_folder: Path, tmp_path: Path
) -> None:
    from transformers import AutoModel, AutoTokenizer

    scorer = CoherenceScorer.from_backbone(AutoModel.from_pretrained(tiny_bert), 64, 0)
    scorer.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
    suite = SuperGlue(max_steps=2, seeds=2, batch=4)
    found = evaluate(suite, tmp_path, f"{superglue_folder}@rte")
    rte = found.metrics["tasks"]["RTE"]
    assert found.model["type"] == scorer.config.model_type
    assert [run["seed"] for run in rte["runs"]] == [0, 1] and rte["accuracy"]["deviation"] >= 0


def test_a_misspelt_split_is_not_taken_for_validation(
    tiny_bert: Path, superglue_folder: Path
) -> None:
    with pytest.raises(ConfigError, match="no split 'validaton'") as caught:
        evaluate(SuperGlue(), tiny_bert, f"{superglue_folder}@rte", "validaton")
    assert "did you mean 'validation'?" in caught.value.hint


def test_bad_input_is_named(tiny_bert: Path, superglue_folder: Path, tmp_path: Path) -> None:
    def run(data: Any, **options: Any) -> None:
        evaluate(SuperGlue.of(options), tiny_bert, data)

    with pytest.raises(ConfigError, match="tasks = 'coppa': did you mean 'copa'"):
        run(superglue_folder, tasks="coppa")
    with pytest.raises(ConfigError, match="tasks names copa, and the data 'rte'"):
        run(f"{superglue_folder}@rte", tasks="copa")
    with pytest.raises(ConfigError, match="batch = 'many'"):
        run(superglue_folder, batch="many")
    for name, low in (("seeds", 0), ("batch", 0), ("max_candidates", 1), ("max_length", -1)):
        with pytest.raises(ConfigError, match=f"{name} = {low}: expected .* or more"):
            run(superglue_folder, **{name: low})
    hidden = pa.Table.from_pylist([{**copa(1)[0], "label": -1}])
    with pytest.raises(InputError, match=r"superglue@copa, row 0: label -1, expected 0 to 1"):
        examples_of("copa", hidden)
    with pytest.raises(InputError, match="no column 'label'"):
        examples_of("copa", hidden.drop_columns(["label"]))
    blank = pa.Table.from_pylist([{**record(1)[0], "query": "Nothing is left out."}])
    with pytest.raises(InputError, match="the query has no @placeholder"):
        examples_of("record", blank)
    none = {("other", "train"): (rte(2), schemas.RTE)}
    with pytest.raises(ConfigError, match="no configuration 'rte'"):
        run(write_dataset(tmp_path / "n", "superglue", none))
    assert SuperGlue().batch == 32
