"""Evaluations: the figures, their intervals, and the command line."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.metrics import precision_recall_fscore_support

from corpora.errors import ConfigError, InputError
from corpora.rng import stream
from tests.zoo.outcomes import check_outcomes
from zoo.evaluate import SUITES, scores
from zoo.evaluate.__main__ import main
from zoo.evaluate.classification import report
from zoo.evaluate.compare import compare as compare_results
from zoo.evaluate.results import other_revisions
from zoo.evaluate.scores import Ranking, confusion_matrix, macro_f1, per_class, ranking_accuracy
from zoo.evaluate.table import Cell, ScoreRow, ScoreTable, percent, print_result
from zoo.train import train
from zoo.training.data import Dataset, label_names, open_dataset, spread, tables_of
from zoo.training.results import trained_on

from .conftest import MARKERS, STORY, SUBJECTS


@pytest.fixture(scope="module")
def marker_model(dissent_models: dict[str, Path]) -> Path:
    return dissent_models["bilstm_tiny"]


@pytest.fixture(scope="module")
def scorer_model(tmp_path_factory: pytest.TempPathFactory, permuted_folder: Path) -> Path:
    output = tmp_path_factory.mktemp("models") / "texts"
    train(
        ["coherence/contrastive_tiny", "--dataset", str(permuted_folder), "--output", str(output)]
    )
    return output


def test_scores_agree_with_scikit_learn() -> None:
    random = np.random.default_rng(0)
    gold, predicted = random.integers(0, 4, 300), random.integers(0, 4, 300)
    confusion = confusion_matrix(gold, predicted, 5)
    found = per_class(confusion, list("abcde"))
    expected = precision_recall_fscore_support(gold, predicted, labels=range(5), zero_division=0.0)
    for i, name in enumerate("abcde"):
        scores = [found[name][key] for key in ("precision", "recall", "f1", "gold")]
        assert scores == pytest.approx([column[i] for column in expected])
    assert macro_f1(confusion) == pytest.approx(expected[2][:4].mean())


@pytest.mark.parametrize(
    ("option", "value", "shown", "expected"),
    [
        ("--limit", "-1", "-1", "0 or more"),
        ("--threads", "0", "0", "1 or more"),
        ("--batch-size", "0", "0", "1 or more"),
        ("--seed", "-1", "-1", "0 or more"),
        ("--threads", "two", "'two'", "a whole number"),
        ("--limit", "1.5", "1.5", "a whole number"),
        ("--limit", "9" * 5000, f"'{'9' * 5000}'", "a whole number"),
    ],
)
def test_what_is_no_number_within_the_bounds_is_refused(
    option: str, value: str, shown: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dissent", "--model", "m", "--data", "d", option, value]) == 2
    key = option[2:].replace("-", "_")
    assert f"{key} = {shown}: expected {expected}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["folder", "file/out.json"])
def test_a_place_that_cannot_be_written_is_said_first(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    words = ["dissent", "--model", "none", "--data", "none", "--json", str(tmp_path / name)]
    assert main(words) == 2
    assert str(tmp_path / name.partition("/")[0]) in capsys.readouterr().err


def test_the_result_is_a_table_and_json_where_asked_for(
    marker_model: Path, pairs_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dissent", "--model", str(marker_model), "--data", str(pairs_folder)]
    file = tmp_path / "r.json"
    assert main([*words, "--json", str(file)]) == 0
    shown, kept = capsys.readouterr().out, json.loads(file.read_text())
    for part in ("metric", "95 % interval", "baselines", "majority", "BERT 77.5", "table 5"):
        assert part in shown
    assert f"{100 * kept['metrics']['accuracy']['value']:.1f}" in shown
    assert main([*words, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == kept["metrics"]


@pytest.mark.parametrize("model", [".", "../model", "x/.."])
def test_the_model_in_the_current_folder_has_the_folder_s_name(
    model: str,
    marker_model: Path,
    pairs_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, file = tmp_path / "model", tmp_path / "r.json"
    shutil.copytree(marker_model, folder)
    (folder / "x").mkdir()
    monkeypatch.chdir(folder)
    assert (
        main(["dissent", "--model", model, "--data", str(pairs_folder), "--json", str(file)]) == 0
    )
    assert json.loads(file.read_text())["model"]["name"] == "model"
    (table,) = compare_results([model], published=False).tables
    assert table.rows[0].name == "model"


def test_a_deviation_over_seeds_is_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    row = ScoreRow("m", "model", {"SP": Cell(50.0, sd=1.5), "DC": Cell(40.0, (30.0, 50.0))})
    print_result(ScoreTable("discoeval", ["SP", "DC"], [row], [], "", {}))
    lines = [[c.strip() for c in x.split("│")] for x in capsys.readouterr().out.splitlines()]
    assert [x[2:4] for x in lines if "SP" in x or "DC" in x] == [
        ["50.0 ± 1.5", ""],
        ["40.0", "30.0, 50.0"],
    ]


def test_the_help_of_a_suite_lists_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pairwise", "--help"]) == 0
    shown = capsys.readouterr().out
    for name in SUITES.find("pairwise").model_fields:
        assert f"--{name}" in shown
    assert "--batch_size 64  (whole number)" in shown and "(text)" in shown


def test_an_unknown_option_is_answered_with_the_valid_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["dissent", "--model", "m", "--data", "d", "--splt", "test"]) == 2
    shown = capsys.readouterr().err
    assert "no option --splt; did you mean '--split'?" in shown and "--batch_size" in shown
    with pytest.raises(ConfigError, match="no option --hiden; did you mean '--hidden_size'"):
        train(["dissent/bilstm_tiny", "--hiden", "3"])


def test_many_classes_take_little_memory() -> None:
    random = np.random.default_rng(0)
    gold, predicted = random.integers(0, 200, (2, 500))
    tracemalloc.start()
    try:
        report(gold, predicted, [str(number) for number in range(200)], seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6


def test_many_units_take_little_memory_and_are_drawn_as_before() -> None:
    wins = np.random.default_rng(0).integers(0, 3, 20_000)
    counts = np.full(20_000, 2)
    tracemalloc.start()
    try:
        found = scores.ratio_interval(wins, counts, 0, "test")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6
    few = slice(50)
    random = stream(0, "zoo.bootstrap.test")
    drawn = random.multinomial(50, np.full(50, 1 / 50), size=scores.RESAMPLES)
    expected = scores.interval((drawn @ wins[few]) / (drawn @ counts[few]))
    assert scores.ratio_interval(wins[few], counts[few], 0, "test")["ci"] == expected
    assert found["units"] == 20_000


def test_the_report_of_a_constant_answer_is_the_majority_baseline() -> None:
    gold = np.array([0] * 6 + [1] * 3 + [2])
    found = report(gold, np.zeros(10, np.int64), MARKERS, seed=1)
    assert found["accuracy"]["value"] == found["majority"]["accuracy"] == 0.6
    assert found["f1"]["value"] == pytest.approx(found["majority"]["f1"]) == pytest.approx(0.25)
    low, high = found["accuracy"]["ci"]
    assert low < 0.6 < high
    assert report(gold, np.zeros(10, np.int64), MARKERS, seed=1) == found


def test_the_interval_has_about_the_width_of_theory() -> None:
    confusion = np.array([[300, 100], [0, 0]])
    found = scores.figure_of_confusion(
        confusion, lambda c: c[..., 0, 0] / c.sum((-2, -1)), 0, "test"
    )
    low, high = found["ci"]
    assert found["units"] == 400
    deviation = (0.75 * 0.25 / 400) ** 0.5
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


def test_a_tie_is_one_half_or_wrong_and_counted() -> None:
    coherent, other = np.array([2.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 3.0])
    found = ranking_accuracy(coherent, other, ["a", "a", "b", "b"], 0, "test")
    assert (found["value"], found["ties"]) == (0.625, 1)
    found = ranking_accuracy(coherent, other, ["a", "a", "b", "b"], 0, "test", "wrong")
    assert (found["value"], found["ties"]) == (0.5, 1)


def test_whole_documents_are_drawn_for_the_interval() -> None:
    # Ten documents of 50 pairs, half of them all right: drawing pairs would hide the spread.
    units = np.repeat(list("abcdefghij"), 50).tolist()
    coherent = np.repeat([0.0, 1.0], 250)
    low, high = ranking_accuracy(coherent, np.full(500, 0.5), units, 0, "test")["ci"]
    assert low <= 0.2 and high >= 0.8


def test_of_a_few_units_no_interval_is_given_and_the_result_says_why() -> None:
    units = np.repeat(list("abc"), 50).tolist()
    few = ranking_accuracy(np.ones(150), np.zeros(150), units, 0, "test")
    assert (few["value"], few["ci"], few["units"]) == (1.0, None, 3)
    assert percent(few).text == "100.0 (3 units)"
    rows = report(np.array([0, 1]), np.array([0, 1]), ["a", "b"], seed=0)
    (note,) = scores.notes_of({"sets": {"one": {"accuracy": few}, "other": rows}})
    assert "fewer than 10 units" in note and "here 2 to 3" in note
    enough = ranking_accuracy(np.ones(10), np.zeros(10), list("abcdefghij"), 0, "test")
    assert enough["ci"] == [1.0, 1.0] and scores.notes_of({"accuracy": enough}) == []


def test_length_alone_says_nothing_about_permutations() -> None:
    length = np.array([5.0, 7.0, 9.0])
    ranking = Ranking(["a", "b", "c"], length, length, (length, length), np.zeros(3, bool))
    found = ranking.metrics(0)["baselines"]
    assert found["longer"]["ties"] == found["shorter"]["ties"] == 3
    assert found["longer"]["value"] == 0.5
    assert set(found) == {"random", "longer", "shorter"}


def test_the_suite_dissent_repeats_the_figures_of_training(
    marker_model: Path, pairs_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "dissent.json"
    assert _evaluate("dissent", marker_model, pairs_folder, out) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    trained = json.loads((marker_model / "results.json").read_text(encoding="utf-8"))
    assert found["metrics"] == trained["metrics"]["test"]
    assert found["dataset"]["revision"] == "hash-of-dissent"
    assert found["metrics"]["accuracy"]["value"] > 0.8
    csv = (tmp_path / "dissent.confusion.csv").read_text(encoding="utf-8").splitlines()
    assert csv[0].split(",")[1:] == MARKERS and len(csv) == 4
    svg = (tmp_path / "dissent.confusion.svg").read_text(encoding="utf-8")
    assert "<svg" in svg and "because" in svg
    check_outcomes(out)
    again = tmp_path / "again.json"
    assert _evaluate("dissent", marker_model, pairs_folder, again) == 0
    assert again.read_bytes() == out.read_bytes()
    assert (tmp_path / "again.confusion.svg").read_text(encoding="utf-8") == svg
    assert main([*_words("dissent", marker_model, pairs_folder, again), "--limit", "9"]) == 0
    assert json.loads(again.read_text(encoding="utf-8"))["protocol"] == {"limit": 9}
    with pytest.raises(InputError, match=r"limit = 0.*limit = 9"):
        compare_results([out, again])


def test_another_revision_of_the_models_own_data_is_told(
    marker_model: Path, pairs_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "result.json"
    assert _evaluate("dissent", marker_model, pairs_folder, out) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    own = {"name": "dissent", "config": "all", "revision": "hash-of-dissent"}
    assert found["trained_on"] == [own] and found["notes"] == []
    other = shutil.copytree(pairs_folder, tmp_path / "other")
    manifest = other / "manifest.json"
    text = manifest.read_text(encoding="utf-8").replace("hash-of-dissent", "hash-of-another")
    manifest.write_text(text, encoding="utf-8")
    caplog.clear()
    assert _evaluate("dissent", marker_model, other, out) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["trained_on"] == [own]
    (note,) = found["notes"]
    assert "hash-of-dissent, judged on revision hash-of-another: rows judged here may" in note
    assert note in caplog.text
    assert note in compare_results([out]).render()


def test_what_a_model_starts_from_counts_as_its_training(tmp_path: Path) -> None:
    first, second = ({"name": name, "config": "all", "revision": "1"} for name in "ab")
    (tmp_path / "model").mkdir()
    found = {"recipe": "a/b", "dataset": second | {"rows": {}}, "started_from": [first]}
    (tmp_path / "model" / "results.json").write_text(json.dumps(found), encoding="utf-8")
    trained = trained_on(str(tmp_path / "model"))
    assert trained == [second, first]
    tasks = [{"task": "SP", "name": name, "revision": "2"} for name in ("sp", "a", "a")]
    assert len(other_revisions(trained, tasks)) == 1
    assert other_revisions(trained, {"name": "a", "revision": "1"}) == []
    assert other_revisions(trained, {"STS12": {"revision": "2"}}) == []
    copied = {"recipe": "pretrained", "trained_on": 0}  # an encoder as it is
    (tmp_path / "model" / "results.json").write_text(json.dumps(copied), encoding="utf-8")
    assert trained_on(str(tmp_path / "model")) == []
    (tmp_path / "model" / "results.json").write_text("[]", encoding="utf-8")
    for name in ("baseline:cosine:some/where", "", str(tmp_path), str(tmp_path / "model")):
        assert trained_on(name) == []


def test_the_suite_permuted(scorer_model: Path, permuted_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "permuted.json"
    assert _evaluate("permuted", scorer_model, permuted_folder, out) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    trained = json.loads((scorer_model / "results.json").read_text(encoding="utf-8"))
    # Other batches than in training's own evaluation: equal up to rounding, so not a bit more.
    for key in ("pairs", "documents", "identical", "baselines"):
        assert found["metrics"][key] == trained["metrics"]["test"][key]
    assert found["examples"] == found["metrics"]["pairs"] == 24
    check_outcomes(out)
    assert _evaluate("permuted", scorer_model, f"{permuted_folder}@contrastive", out) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["examples"] == 60
    check_outcomes(out)
    # The model folder and the suite's result on the same data stand in one column.
    assert _evaluate("permuted", scorer_model, permuted_folder, out) == 0
    (table,) = compare_results([scorer_model, out]).tables
    assert [row.kind for row in table.rows][:2] == ["model", "model"]
    assert table.columns == ["permuted accuracy"]


@pytest.mark.parametrize("suite", ["dissent", "permuted"])
def test_a_model_that_gives_nan_has_no_figure(
    suite: str,
    marker_model: Path,
    scorer_model: Path,
    pairs_folder: Path,
    permuted_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, data = {
        "dissent": (marker_model, pairs_folder),
        "permuted": (scorer_model, permuted_folder),
    }[suite]
    broken = Path(shutil.copytree(source, tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    nan = {name: np.full_like(values, np.nan) for name, values in weights.items()}
    save_file(nan, broken / "model.safetensors", metadata={"format": "pt"})
    assert _evaluate(suite, broken, data, tmp_path / "out.json") == 2
    said = capsys.readouterr().err
    assert "NaN" in said or "not finite" in said
    assert not (tmp_path / "out.json").exists()


def test_the_suite_pairwise_with_a_trained_scorer(scorer_model: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "stories.jsonl", tmp_path / "pairwise.json"
    texts = [[line.format(name) for line in STORY] for name in SUBJECTS[:4]]
    rows = [{"pos": text, "neg": text[::-1]} for text in texts]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    # The rule cosine takes the scorer's own backbone.
    words = ["pairwise", "--model", str(scorer_model), "--data", str(data), "--json", str(out)]
    assert main([*words, "--encoder", str(scorer_model)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    stories = found["metrics"]["sets"]["stories"]
    assert found["model"]["type"] == "discorpora-coherence-scorer"
    assert set(stories["baselines"]) == {"random", "longer", "shorter", "tfidf", "cosine"}
    assert stories["accuracy"]["value"] == stories["outcomes"].count("1") / 4
    # A text read backwards has the same neighbours, and as many characters.
    assert stories["baselines"]["tfidf"]["ties"] == stories["baselines"]["longer"]["ties"] == 4
    check_outcomes(out)


def test_the_wrong_model_or_suite_is_named(
    marker_model: Path, pairs_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["permuted", "--model", str(marker_model), "--data", str(pairs_folder)]) != 0
    for words in (["disent", "--model", "m", "--data", "d"], ["disent", "--help"]):
        assert main(words) == 2
        assert "did you mean 'dissent'" in capsys.readouterr().err


def test_a_model_with_other_labels_than_the_dataset(
    marker_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from corpora import schemas

    from .conftest import pair_rows, write_dataset

    schema = schemas.dissent(MARKERS[::-1])
    folder = write_dataset(tmp_path / "d", "d", {("all", "test"): (pair_rows(9, 1), schema)})
    assert main(["dissent", "--model", str(marker_model), "--data", str(folder)]) != 0
    assert "order differs" in capsys.readouterr().err


def test_a_misspelt_split_is_named(
    marker_model: Path, pairs_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["dissent", "--model", str(marker_model), "--data", str(pairs_folder)]
    assert main([*command, "--split", "tset"]) == 2
    err = capsys.readouterr().err
    assert "no split 'tset'" in err and "did you mean 'test'?" in err
    assert all(name in err.rpartition("it has: ")[2] for name in ("train", "validation", "test"))


def test_a_dataset_folder_is_read_as_it_was_written(pairs_folder: Path) -> None:
    data = open_dataset(f"{pairs_folder}@all")
    assert data.labels() == MARKERS == label_names(data["test"].schema, "")
    assert data.describe()["rows"] == {"train": 96, "validation": 24, "test": 24}
    assert data.describe()["licence"] == "CC0-1.0"


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"label": ["so"]}, "the column 'label' has no names of labels"),
        ({"s1": ["It rained."]}, "it has no column 'label'"),
    ],
)
def test_a_dataset_without_named_labels_is_named(columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=rf"^mine@pairs: {problem}"):
        Dataset("mine", "pairs", "", {"train": pa.table(columns)}).labels()


def test_the_library_datasets_gives_the_same_tables(pairs_folder: Path, tmp_path: Path) -> None:
    import datasets

    found = datasets.load_dataset(str(pairs_folder), "all", cache_dir=str(tmp_path))
    tables, own = tables_of(found), open_dataset(str(pairs_folder))
    assert label_names(tables["train"].schema, "") == MARKERS
    assert {name: table.to_pylist() for name, table in tables.items()} == {
        name: table.to_pylist() for name, table in own.splits.items()
    }


def _evaluate(suite: str, model: Path, data: Path | str, out: Path) -> int:
    return main(_words(suite, model, data, out))


def _words(suite: str, model: Path, data: Path | str, out: Path) -> list[str]:
    return [suite, "--model", str(model), "--data", str(data), "--json", str(out)]


@pytest.mark.parametrize("labels", [[0, 1] * 50, [0] * 90 + [1] * 10, ["no", "yes"] * 50])
def test_some_rows_of_a_table_keep_the_shares_of_its_labels(labels: list[Any]) -> None:
    table = pa.table({"number": range(100), "label": labels})
    for rows in (50, 20, 10):
        part = spread(table, rows)
        assert part.num_rows == rows
        shares = [part["label"].to_pylist().count(label) / rows for label in set(labels)]
        expected = [labels.count(label) / 100 for label in set(labels)]
        assert shares == pytest.approx(expected, abs=1 / rows)
        numbers = part["number"].to_numpy()
        assert (np.diff(numbers) > 0).all() and numbers[0] < 10 and numbers[-1] >= 90
    assert spread(table, 0) is spread(table, 100) is table
