"""Our evaluations as tasks of mteb: the figures of our own suites, for our models and others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.errors import InputError
from corpora.store.atomic import staged
from corpora.store.folder import Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target
from zoo.evaluate import discoeval
from zoo.evaluate.__main__ import main
from zoo.evaluate.discoeval import DiscoEval

from .conftest import SUBJECTS, VERBS
from .test_bad_input import hub_like

mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed")
POINT = 0.01
QUICK = DiscoEval(cache="", representation="mean", second_opinion=False, seeds=2)


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DiscoEval's layout with BSO, SSP and SP of short made-up sentences."""
    folder = tmp_path_factory.mktemp("layout")
    random = np.random.default_rng(4)

    def text(*first: str) -> str:
        words = [*first, random.choice(SUBJECTS), *random.choice(VERBS, 3), str(random.integers(9))]
        return " ".join(map(str, words)) + " ."

    def write(name: str, lines: list[list[str]]) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")

    for name, size in (("train", 60), ("valid", 30), ("test", 30)):
        write(f"BSO/wiki/{name}.txt", [[text("first"), text("then")] for _ in range(size)])
        marks = [["after"] * (i % 2) for i in range(size)]
        write(f"SSP/abs/{name}.txt", [[str(len(mark)), text(*mark)] for mark in marks])
        rows = [[str(i % 5), *(text("at last") for _ in range(5))] for i in range(size)]
        write(f"SP/wiki/{name}.txt", rows)
    return folder


def run(model: Any, tasks: Any) -> dict[str, float]:
    """The main scores of an evaluation as mteb's users run it."""
    found = mteb.evaluate(model, tasks, cache=None, show_progress_bar=False)
    return {
        result.task_name: float(rows[0]["main_score"])
        for result in found.task_results
        for rows in result.scores.values()
    }


def test_discoeval_has_the_figures_of_our_suite(layout: Path, tiny_bert: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    from zoo.evaluate import mteb_tasks

    own = discoeval.run(str(tiny_bert), layout, QUICK)["metrics"]["tasks"]
    expected = {
        f"DiscoEvalSingle{task}{domain.capitalize()}": one["value"]
        for task, found in own.items()
        for domain, one in found["domains"].items()
    }
    assert len(expected) == 3
    tasks = mteb_tasks.discoeval(layout, QUICK)
    ours = run(mteb_tasks.encoder(tiny_bert, "mean"), tasks)
    assert ours == pytest.approx(expected, abs=POINT)
    # Any other model of mteb: here the same backbone with mean pooling, which is the same vectors.
    word = Transformer(str(tiny_bert))
    other = SentenceTransformer(modules=[word, Pooling(16, "mean")], device="cpu")
    assert run(other, tasks) == pytest.approx(expected, abs=POINT)


def test_released_rows_that_were_built_are_tasks_too(layout: Path, tmp_path: Path) -> None:
    from zoo.evaluate import mteb_tasks

    stage = Stage("discoeval", 1, "0012e5", {"builder": "discoeval"})
    with staged(tmp_path / "discoeval") as folder:
        builder = BUILDERS.find("discoeval").of({"tasks": ["sp_wiki", "bso_wiki"]})
        builder.build([(f"discoeval:{layout}", {})], Target(folder, stage, seed=1))
    tasks = mteb_tasks.discoeval(tmp_path / "discoeval", QUICK)
    assert [task.metadata.name for task in tasks] == [
        "DiscoEvalSingleSPWiki",
        "DiscoEvalSingleBSOWiki",
    ]
    tasks[0].load_data()
    assert tasks[0].dataset
    assert tasks[0].dataset["default"]["test"]["label"][:6] == [0, 1, 2, 3, 4, 0]


def test_pairs_go_together_and_a_function_is_a_model(layout: Path) -> None:
    from zoo.evaluate import mteb_tasks

    seen: set[str] = set()

    def letters(texts: list[str]) -> np.ndarray:
        seen.update(texts)
        places = [[text.find("first"), text.find("then")] for text in texts]
        return np.tile(np.array(places, np.float32) / 50, 50)

    options = QUICK.model_copy(update={"protocol": "pairs", "tasks": ("BSO",)})
    found = run(mteb_tasks.encoder(letters), mteb_tasks.discoeval(layout, options))
    assert found == {"DiscoEvalPairsBSOWiki": 1.0}
    assert all("first" in text and "then" in text for text in seen)


def test_markers_are_predicted_as_in_the_suite_pdtb(pairs_folder: Path, tiny_bert: Path) -> None:
    from zoo.evaluate import mteb_tasks, relations
    from zoo.evaluate.encoders import load_encoder
    from zoo.labelled import load

    (task,) = mteb_tasks.dissent(f"{pairs_folder}@all")
    data = load(f"{pairs_folder}@all")
    predicted, _ = relations.probe(load_encoder(str(tiny_bert)), data, "sentences")
    found = run(mteb_tasks.encoder(tiny_bert), [task])
    right = float((predicted == data.gold("test")).mean())
    assert found == {"DissentAll": pytest.approx(right, abs=POINT)}
    assert task.metadata.type == "Classification"
    (task,) = mteb_tasks.dissent(f"{pairs_folder}@all", split="validation")
    assert task.metadata.eval_splits == ["validation"]
    data = load(f"{pairs_folder}@all", splits={"test": "validation"})
    predicted, _ = relations.probe(load_encoder(str(tiny_bert)), data, "sentences")
    right = float((predicted == data.gold("validation")).mean())
    found = run(mteb_tasks.encoder(tiny_bert), [task])
    assert found == {"DissentAll": pytest.approx(right, abs=POINT)}


def test_a_split_whose_labels_are_hidden_is_named(tmp_path: Path) -> None:
    from zoo.evaluate import mteb_tasks

    folder = hub_like(tmp_path / "data", {"test": {row: {"label": -1} for row in range(9)}})
    with pytest.raises(InputError, match="no row of the split 'test' has a label"):
        mteb_tasks.dissent(f"{folder}@all")


@pytest.mark.parametrize(
    ("name", "vector"), [("transformer_tiny", "cls"), ("bilstm_tiny", "pooled")]
)
def test_a_trained_folder_as_sentence_transformers_loads_it(
    name: str, vector: str, dissent_models: dict[str, Path], pairs_folder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    from zoo.evaluate import mteb_tasks

    folder = dissent_models[name]
    both = zip(SUBJECTS, VERBS, strict=False)
    rows = [{"pos": [f"{a}.", f"{b}."], "neg": [f"{b}.", f"{a}."]} for a, b in both]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = [
        *mteb_tasks.dissent(f"{pairs_folder}@all"),
        *mteb_tasks.insted(str(tmp_path / "pairs.jsonl")),
    ]
    loaded = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
    assert run(loaded, tasks) == run(mteb_tasks.encoder(folder, vector), tasks)
    # mteb's cache goes by the model's name, which a folder has only when it is told.
    loaded.model_card_data.model_name = f"me/{name}"
    found = mteb.evaluate(loaded, tasks, cache=None, show_progress_bar=False)
    assert found.model_name == f"me/{name}"


def test_a_scorer_ranks_texts_as_in_the_suite_pairwise(tmp_path: Path) -> None:
    from zoo.evaluate import mteb_tasks

    random = np.random.default_rng(0)
    rows = []
    for number in range(40):
        pos = [f"{random.choice(SUBJECTS)} {random.choice(VERBS)} {number}." for _ in range(4)]
        intruder = "Nobody " + " ".join(random.choice(VERBS, random.integers(1, 4))) + "."
        rows.append({"pos": pos, "neg": [*pos[:2], intruder, pos[3]]})
    data, out = tmp_path / "intruders.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["pairwise", "--model", "baseline:longer", "--data", str(data), "--encoder", "none"]
    assert main([*words, "--json", str(out)]) == 0
    own = json.loads(out.read_text())["metrics"]["sets"]["intruders"]["accuracy"]
    tasks = mteb_tasks.insted(str(data))
    found = run(mteb_tasks.scorer("baseline:longer"), tasks)
    half = own["ties"] / len(rows) / 2
    # mteb has no ties: it puts one text first.
    assert abs(found["CoherentTextIntruders"] - own["value"]) <= half + POINT
    assert 0.1 < own["value"] < 0.9

    def about(texts: list[str]) -> np.ndarray:  # an encoder that sees the intruder's word
        return np.array([[1.0, text.count("Nobody")] for text in texts])

    assert run(mteb_tasks.encoder(about), tasks) == {"CoherentTextIntruders": 1.0}


def test_a_sample_of_the_shared_discoeval(tiny_bert: Path) -> None:
    from zoo.evaluate import mteb_tasks

    folder = os.environ.get("DISCORPORA_DATA")
    if not folder:
        pytest.skip("DISCORPORA_DATA is not set")
    data = Path(folder) / "discoeval"
    options = QUICK.model_copy(update={"tasks": ("SSP",), "seeds": 1})
    own = discoeval.run(str(tiny_bert), data, options, limit=60)["metrics"]["tasks"]
    tasks = mteb_tasks.discoeval(data, options, limit=60)
    found = run(mteb_tasks.encoder(tiny_bert, "mean"), tasks)
    assert found == {"DiscoEvalSingleSSPAbs": pytest.approx(own["SSP"]["value"], abs=POINT)}
