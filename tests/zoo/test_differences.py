"""Paired differences: the same examples for both models, whole units, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import InputError
from tests.zoo.test_compare import dataset, dissent, write
from zoo.evaluate.bootstrap import of_ratio
from zoo.evaluate.compare import compare
from zoo.evaluate.outcomes import (
    Outcomes,
    Parts,
    differences,
    joined,
    numbered,
    place_of,
    read_outcomes,
    write_outcomes,
)
from zoo.evaluate.results import save
from zoo.evaluate.scores import confusion_matrix, macro_f1
from zoo.evaluate.suites import Permuted


def shares(column: str, right: np.ndarray, units: list[str] | None = None) -> dict[str, Parts]:
    return {column: {"": Outcomes(column, units or numbered(len(right)), right)}}


def two_models(rows: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Right in 60 %, and the same model with 4 % of its errors mended."""
    random = np.random.default_rng(0)
    one = random.random(rows) < 0.6
    return one.astype(float), (one | (random.random(rows) < 0.1)).astype(float)


def test_the_interval_is_that_of_the_differences_of_single_examples() -> None:
    one, two = two_models()
    found = differences("s", shares("x", one), shares("x", two))["x"]
    assert found.value == pytest.approx(100 * (two.mean() - one.mean()))
    error = 100 * (two - one).std() / np.sqrt(len(one))
    half = (found.ci[1] - found.ci[0]) / 2
    assert half == pytest.approx(1.96 * error, rel=0.1)
    # Each model's own interval is twice as wide, and the two overlap.
    own, its = (of_ratio(x, np.ones(len(x)), 0, "x")["ci"] for x in (one, two))
    assert own[1] > its[0] and found.ci[0] > 0
    assert found.text.endswith("]*") and found.text.startswith("+")
    back = differences("s", shares("x", two), shares("x", one))["x"]
    assert back.value == pytest.approx(-found.value) and back.ci[1] < 0


def test_units_are_drawn_whole() -> None:
    one, two = two_models(300)
    units = [str(unit) for unit in range(300)]
    alone = differences("s", shares("x", one, units), shares("x", two, units))["x"]
    ten = [unit for unit in units for _ in range(10)]
    whole = differences("s", shares("x", one.repeat(10), ten), shares("x", two.repeat(10), ten))
    assert whole["x"] == alone and alone.units == 300


def test_units_of_one_model_alone_are_left_out() -> None:
    one = shares("x", np.array([1.0, 0, 1, 1]), ["a", "a", "b", "c"])
    two = shares("x", np.array([0.0, 1, 1, 0, 0]), ["c", "b", "a", "d", "d"])
    found = differences("s", one, two)["x"]
    # Of a, b, c: 3 of 4 right, and 2 of 3.
    assert found.value == pytest.approx(100 * (2 / 3 - 3 / 4)) and found.units == 3
    assert differences("s", one, shares("x", np.ones(1), ["z"])) == {}
    assert differences("s", one, shares("y", np.ones(4))) == {}


def test_a_column_is_the_mean_of_its_parts_and_tasks_have_a_mean() -> None:
    one, two = two_models(400)

    def model(sp: np.ndarray, wiki: np.ndarray) -> dict[str, Parts]:
        units = numbered(400)
        parts = {"arxiv": Outcomes("BSO", units, wiki, part="arxiv")}
        parts["wiki"] = Outcomes("BSO", units[:100], wiki[:100], part="wiki")
        return {"SP": {"": Outcomes("SP", units, sp)}, "BSO": parts}

    found = differences("discoeval", model(one, one), model(two, two))
    assert list(found) == ["SP", "BSO", "BSO arxiv", "BSO wiki", "mean of 2 tasks"]
    parts = [found[name].value for name in ("BSO arxiv", "BSO wiki")]
    assert found["BSO"].value == pytest.approx(np.mean(parts))
    mean = found["mean of 2 tasks"]
    assert mean.value == pytest.approx((found["SP"].value + found["BSO"].value) / 2)
    # Independent columns: their mean is surer than either.
    widths = [one.ci[1] - one.ci[0] for one in (mean, found["SP"], found["BSO"])]
    assert widths[0] < min(widths[1:])
    whole, fewer = model(one, one), model(two, two)
    fewer["BSO"] = {"wiki": fewer["BSO"]["wiki"]}
    for first, other in ((whole, fewer), (fewer, whole)):
        found = differences("discoeval", first, other)
        assert list(found) == ["SP", "BSO wiki"], "a mean over other parts is another figure"


def test_the_probes_change_the_same_texts_which_are_drawn_once_for_all() -> None:
    one, two = two_models(150)
    units = [f"document {row}" for row in range(150)]

    def model(right: np.ndarray) -> dict[str, Parts]:
        return shares("probe_a", right, units) | shares("probe_b", right, units)

    found = differences("pairwise", model(one), model(two))
    mean, alone = found["mean of 2 probes"], found["probe_a"]
    assert mean.value == pytest.approx(alone.value) and mean.units == 150
    # The second probe says nothing that the first does not: the mean is no surer.
    assert mean.ci is not None and alone.ci is not None
    width = alone.ci[1] - alone.ci[0]
    assert mean.ci[1] - mean.ci[0] == pytest.approx(width, rel=0.1)
    other = model(one) | shares("probe_b", one[::-1], units[::-1])
    assert differences("pairwise", other, other)["mean of 2 probes"].value == 0


def test_of_a_few_units_there_is_no_interval() -> None:
    units = ["a"] * 3 + ["b"]
    first, other = shares("x", np.zeros(4), units), shares("x", np.ones(4), units)
    found = differences("s", first, other)["x"]
    assert (found.ci, found.text) == (None, "+100.0 (2 units)")


def classes(gold: np.ndarray, predicted: np.ndarray) -> dict[str, Parts]:
    return {"F1": {"": Outcomes("F1", numbered(len(gold)), gold=gold, predicted=predicted)}}


def test_f1_is_drawn_by_rows() -> None:
    random = np.random.default_rng(1)
    gold = random.integers(0, 4, 500)
    one = np.where(random.random(500) < 0.5, gold, random.integers(0, 4, 500))
    two = np.where(random.random(500) < 0.3, gold, one)
    found = differences("s", classes(gold, one), classes(gold, two))["F1"]
    own, its = (macro_f1(confusion_matrix(gold, x, 4)) for x in (one, two))
    assert found.value == pytest.approx(100 * (its - own)) and found.ci[0] > 0
    assert found.ci[0] < found.value < found.ci[1]
    same = differences("s", classes(gold, one), classes(gold, one))["F1"]
    assert (same.value, same.ci) == (0, (0, 0)) and not same.text.endswith("*")
    other = gold.copy()
    other[0] = (other[0] + 1) % 4
    assert differences("s", classes(gold, one), classes(other, two)) == {}
    assert differences("s", classes(gold, one), shares("F1", np.ones(500))) == {}


def test_outcomes_lie_beside_the_result(tmp_path: Path) -> None:
    result = tmp_path / "deep" / "a.json"
    right, gold = np.array([1, 0, 1 / 3]), np.array([2, 0, 1])
    found = [
        Outcomes("BSO", ["u", "u", "v"], right, part="wiki"),
        Outcomes("all F1", numbered(3), gold=gold, predicted=gold[::-1]),
    ]
    result.parent.mkdir()
    write_outcomes(result, found)
    assert place_of(result).name == "a.outcomes.parquet"
    back = read_outcomes(result)
    assert list(back) == ["BSO", "all F1"] and back["BSO"]["wiki"].units == ["u", "u", "v"]
    assert back["BSO"]["wiki"].right == pytest.approx(right, abs=1e-7)
    f1 = back["all F1"][""]
    assert f1.right is None and f1.gold is not None and f1.gold.tolist() == [2, 0, 1]
    write_outcomes(result, [])
    assert list(result.parent.iterdir()) == [] and read_outcomes(result) == {}
    pq.write_table(pa.table({"unit": ["a"]}), place_of(result))
    with pytest.raises(InputError, match="its columns are unit"):
        read_outcomes(result)
    place_of(result).write_text("no parquet", encoding="utf-8")
    with pytest.raises(InputError, match="is no table of outcomes"):
        read_outcomes(result)


def test_compare_shows_the_differences_from_the_first_model(tmp_path: Path) -> None:
    one, two = two_models()
    paths = []
    for name, right in (("a", one), ("b", two), ("c", one)):
        path = write(tmp_path / f"{name}.json", dissent(name, float(right.mean())))
        write_outcomes(path, [Outcomes("all accuracy", numbered(len(right)), right)])
        paths.append(path)
    paths.append(write(tmp_path / "d.json", dissent("d", 0.5)))
    found = compare(paths)
    (table,) = found.tables
    assert table.baseline == "a" and list(table.differences) == ["b", "c"]
    text = found.render()
    assert "Differences from a in points, on the same examples" in text
    shown = table.differences["b"]["all accuracy"].text
    assert f"| b | {shown} |" in text and "| c | +0.0 [+0.0, +0.0] |" in text
    rows = list(csv.DictReader(io.StringIO(found.render("csv"))))
    (row,) = [r for r in rows if r["kind"] == "difference" and r["row"] == "b - a"]
    assert float(row["value"]) == pytest.approx(100 * (two - one).mean())
    block = json.loads(found.render("json"))["tables"][0]["differences"]
    assert block["from"] == "a" and block["rows"]["b"]["all accuracy"]["units"] == 2000
    place_of(paths[0]).unlink()
    assert compare(paths).tables[0].baseline == "b"
    place_of(paths[1]).unlink()
    assert compare(paths).tables[0].baseline == "" and "Differences" not in compare(paths).render()


def test_names_with_dots_have_outcomes_of_their_own() -> None:
    names = ("m-0.5", "m-0.7", "m-0.5.json", "a.b.json")
    found = [place_of(Path("x") / name).name for name in names]
    assert found == [f"{n}.outcomes.parquet" for n in ("m-0.5", "m-0.7", "m-0.5", "a.b")]


def test_outcomes_of_another_run_are_refused(tmp_path: Path) -> None:
    one, two = two_models()
    path = write(tmp_path / "a.json", dissent("a", float(one.mean())))
    write_outcomes(path, [Outcomes("all accuracy", numbered(len(two)), two)])
    with pytest.raises(InputError, match=r"a\.outcomes\.parquet: the outcomes say .*another run"):
        compare([path])
    write_outcomes(path, [Outcomes("books5 accuracy", numbered(len(one)), one)])
    with pytest.raises(InputError, match=r"a\.json says nothing"):
        compare([path])


def test_a_result_is_never_beside_the_outcomes_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, units = tmp_path / "a.json", numbered(2)
    result = {"suite": "permuted", "metrics": {}}
    save(Permuted(), path, result, [Outcomes("x", units, np.ones(2))])
    assert place_of(path).is_file()

    def full(path: Path, value: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("zoo.evaluate.results.write_json", full)
    with pytest.raises(OSError, match="no space"):
        save(Permuted(), path, result, [Outcomes("x", units, np.zeros(2))])
    assert path.is_file() and not place_of(path).is_file()


def test_the_baseline_shares_a_column_with_another_model(tmp_path: Path) -> None:
    one, two = two_models()
    paths = []
    for name, right, config in (("a", one, "books5"), ("b", one, "all"), ("c", two, "all")):
        about = {"dataset": dataset("r1", config)}
        path = write(tmp_path / f"{name}.json", dissent(name, float(right.mean()), **about))
        write_outcomes(path, [Outcomes(f"{config} accuracy", numbered(len(right)), right)])
        paths.append(path)
    (table,) = compare(paths).tables
    assert table.baseline == "b" and list(table.differences) == ["c"]


def test_only_trainings_of_one_model_are_joined(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", dissent("m", 0.5))
    bert = dissent("m", 0.6) | {"model": {"name": "m", "type": "bert"}}
    other = write(tmp_path / "b.json", bert)
    with pytest.raises(InputError, match=r"a\.json is of a t, .*b\.json of a bert.*'m'"):
        compare([path, other], seeds=True)
    names = [row.name for row in compare([path, path], seeds=True).tables[0].rows]
    assert names[0] == "m", "the same file twice is one training"
    metrics = dissent("", 0.5)["metrics"] | {"per_class": {}}
    trained = {"recipe": "dissent/x", "model_type": "t", "dataset": dataset("r1")}
    folder = write(tmp_path / "m" / "results.json", {**trained, "metrics": {"test": metrics}})
    (table,) = compare([path, folder.parent], seeds=True).tables
    kinds = [row.kind for row in table.rows]
    assert kinds.count("model") == 2, "a folder may be the same training as a suite's result"


def test_seeds_of_one_name_become_one_row(tmp_path: Path) -> None:
    one, two = two_models()
    rights = {"a-0": one, "a-1": two, "b-0": two, "b-1": two, "c-0": one}
    paths = []
    for name, right in rights.items():
        path = write(tmp_path / f"{name}.json", dissent(name[0], float(right.mean())))
        write_outcomes(path, [Outcomes("all accuracy", numbered(len(right)), right)])
        paths.append(path)
    (table,) = compare(paths, published=False, seeds=True).tables
    rows = {row.name: row.cells["all accuracy"] for row in table.rows if row.kind == "model"}
    assert list(rows) == ["a (2 seeds)", "b (2 seeds)", "c"]
    assert rows["a (2 seeds)"].value == pytest.approx(50 * (one.mean() + two.mean()))
    spread = 100 * (two.mean() - one.mean()) / np.sqrt(2)
    assert rows["a (2 seeds)"].sd == pytest.approx(spread) and rows["b (2 seeds)"].sd == 0
    assert "±" in rows["a (2 seeds)"].text and "[" in rows["c"].text
    found = table.differences["b (2 seeds)"]["all accuracy"]
    assert found.value == pytest.approx(50 * (two.mean() - one.mean())) and found.ci[0] > 0
    (table,) = compare(paths, published=False).tables
    assert len([row for row in table.rows if row.kind == "model"]) == 5


def test_trainings_are_joined_on_the_same_examples_only() -> None:
    units = ["a", "b"]
    one = {"x": {"": Outcomes("x", units, np.array([1.0, 0.0]))}}
    two = {"x": {"": Outcomes("x", units, np.array([1.0, 1.0]))}}
    assert joined([one, two])["x"][""].right.tolist() == [1.0, 0.5]
    assert joined([one, {"x": {"": Outcomes("x", ["b", "a"], np.ones(2))}}]) == {}
    assert joined([one, {}]) == {}
    gold = np.array([0, 1])
    assert joined([{"x": {"": Outcomes("x", units, gold=gold, predicted=gold)}}] * 2) == {}
