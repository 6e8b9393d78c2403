"""`compare`: one table, published rows labelled, nothing mixed, and paired differences."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import ConfigError, InputError
from zoo.evaluate import SUITES
from zoo.evaluate.compare import compare
from zoo.evaluate.permuted import Permuted
from zoo.evaluate.published import paper_tables, papers, parts_of
from zoo.evaluate.relations import task_of
from zoo.evaluate.results import Result, place_of, read_outcomes, save, write_outcomes
from zoo.evaluate.scores import (
    Columns,
    Outcomes,
    confusion_matrix,
    differences,
    independent_units,
    macro_f1,
    mean_outcomes,
    ratio_interval,
)
from zoo.evaluate.table import Cell
from zoo.labelled import Labelled
from zoo.training.data import Dataset


def dataset(revision: str, config: str = "all", name: str = "dissent") -> dict[str, Any]:
    return {"name": name, "config": config, "revision": revision, "rows": {"test": 100}}


def figure(value: float) -> dict[str, Any]:
    return {"value": value, "ci": [value - 0.1, value + 0.1]}


def dissent(model: str, value: float, **about: Any) -> dict[str, Any]:
    return {
        "suite": "dissent",
        "split": "test",
        "model": {"name": model, "type": "t"},
        "dataset": dataset("r1"),
        "examples": 100,
        "metrics": {
            "rows": 1200,
            "accuracy": figure(value),
            "f1": figure(value / 2),
            "majority": {"accuracy": 0.4, "f1": 0.1},
        },
        **about,
    }


def pairwise(model: str, outcomes: str, **about: Any) -> dict[str, Any]:
    share = outcomes.count("1") / len(outcomes)
    found = {
        "accuracy": {**figure(share), "ties": 0},
        "baselines": {"shorter": {**figure(0.9), "ties": 0}},
        "outcomes": outcomes,
        "pairs_digest": "d",
    }
    return {
        "suite": "pairwise",
        "split": "test",
        "model": {"name": model, "type": "t"},
        "dataset": dataset("c1", "", "coherence"),
        "protocol": {"ties": "wrong", "prompt": True},
        "examples": len(outcomes),
        "metrics": {
            "sets": {"probe_to_negation": found},
            "means": {"probes": {"value": share, "of": 1}},
        },
        **about,
    }


def agreement(model: str) -> dict[str, Any]:
    found = {"alpha": figure(0.5), "people": figure(0.8), "random": {"value": 0.4}}
    return {
        "suite": "agreement",
        "model": {"name": model},
        "dataset": dataset("c1", "", "coherence"),
        "metrics": {"sets": {"lmvlm": found}},
    }


def write(path: Path, result: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result), encoding="utf-8")
    return path


def test_models_rules_and_published_rows_in_one_table(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", dissent("bilstm", 0.5))
    two = write(tmp_path / "b.json", dissent("minilm", 0.6))
    (table,) = compare([one, two]).tables
    assert list(table.columns) == ["all F1", "all accuracy"]
    shown = {(row.kind, row.name): row.cells for row in table.rows}
    assert shown["model", "minilm"]["all accuracy"].text == "60.0 [50.0, 70.0]"
    assert shown["rule", "rule: majority"]["all accuracy"] == Cell(40.0, n=1200)
    assert shown["published", "BERT"]["all accuracy"] == Cell(77.5)
    text = compare([one, two]).render()
    assert "| BERT (published: Nie, Bennett and Goodman 2019, table 5) | 60.1 | 77.5 |" in text
    assert "| *n, examples judged here* | 1,200 | 1,200 |\n| bilstm |" in text
    assert json.loads(compare([one]).render("json"))["tables"][0]["examples"]["all F1"] == 1200
    assert {line["n"] for line in csv.DictReader(io.StringIO(compare([one]).render("csv")))} == {
        "1200",
        "",
    }
    assert "BookCorpus" in text and "revision r1, split test" in text
    assert all(row.kind != "published" for row in compare([one], published=False).tables[0].rows)


def test_configurations_of_one_model_share_a_row(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", dissent("m", 0.5))
    two = write(tmp_path / "b.json", dissent("m", 0.7, dataset=dataset("r1", "books8")))
    rows = [row for row in compare([one, two]).tables[0].rows if row.kind == "model"]
    assert [(row.name, len(row.cells)) for row in rows] == [("m", 4)]
    # The same figure twice (two seeds): two rows, told apart by their files.
    again = write(tmp_path / "c.json", dissent("m", 0.6))
    names = [row.name for row in compare([one, again]).tables[0].rows if row.kind == "model"]
    assert names == [f"m ({one})", f"m ({again})"]


def test_two_models_of_one_name_do_not_share_a_row(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", dissent("model", 0.5, trained_on=[{"revision": "r1"}]))
    books8 = dataset("r1", "books8")
    for number, about in enumerate(
        ({"model": {"name": "model", "type": "other"}}, {"trained_on": [{"revision": "r2"}]})
    ):
        two = write(tmp_path / f"{number}.json", dissent("model", 0.7, dataset=books8) | about)
        names = [row.name for row in compare([one, two]).tables[0].rows if row.kind == "model"]
        assert names == [f"model ({one})", f"model ({two})"]


def test_a_rule_that_hangs_on_the_model_has_a_row_for_each(tmp_path: Path) -> None:
    def result(name: str, longer: float) -> Path:
        baselines = {"random": figure(0.5), "longer": figure(longer)}
        metrics = {"accuracy": figure(0.9), "pairs": 100, "baselines": baselines}
        about = dissent(f"{name}|x", 0.5) | {"suite": "permuted", "metrics": metrics}
        return write(tmp_path / f"{name}.json", about | {"dataset": dataset("r1", "pairwise")})

    (table,) = compare([result("a", 0.6), result("b", 0.7)]).tables
    rules = {r.name: r.cells["permuted accuracy"].value for r in table.rows if r.kind == "rule"}
    assert rules == {"rule: random": 50.0, "rule: longer": 60.0, "rule: longer (b|x)": 70.0}
    assert "| rule: longer (b\\|x) | 70.0 [60.0, 80.0] |" in compare([tmp_path]).render()
    third = write(tmp_path / "c.json", json.loads(result("b", 0.8).read_text()))
    (table,) = compare([tmp_path / "a.json", result("b", 0.7), third]).tables
    rules = {r.name: r.cells["permuted accuracy"].value for r in table.rows if r.kind == "rule"}
    assert rules["rule: longer (b|x)"] == 70.0 and rules[f"rule: longer ({third})"] == 80.0


def test_two_revisions_are_refused_and_both_named(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", dissent("a", 0.5))
    two = write(tmp_path / "b.json", dissent("b", 0.5, dataset=dataset("r2")))
    with pytest.raises(InputError, match=r"a\.json .*revision r1.*b\.json .*revision r2"):
        compare([one, two])
    other = write(tmp_path / "c.json", dissent("b", 0.5, dataset=dataset("r1", name="mine")))
    with pytest.raises(InputError, match=r"dissent, revision r1.*mine, revision r1"):
        compare([one, other])
    fewer = write(tmp_path / "d.json", dissent("b", 0.5, examples=10))
    with pytest.raises(InputError, match=r"100 examples.*10 examples"):
        compare([one, fewer])
    split = write(tmp_path / "e.json", dissent("b", 0.5, split="validation"))
    with pytest.raises(InputError, match=r"split test.*split validation"):
        compare([one, split])


def test_pairwise_models_are_tested_against_each_other(tmp_path: Path) -> None:
    one = write(tmp_path / "a.json", pairwise("a", "100000" + "1111"))
    two = write(tmp_path / "b.json", pairwise("b", "011111" + "1111"))
    (table,) = compare([one, two]).tables
    assert table.columns == ["probe_to_negation", "mean of 1 probes"]
    (note,) = [note for note in table.notes if "McNemar" in note]
    assert "a does better on 1, b on 5 pairs; McNemar exact p = 0.22" in note
    published = {row.name: row.cells for row in table.rows if row.kind == "published"}
    assert published["Our - Full Model"]["probe_to_negation"].value == 78.0
    other = pairwise("c", "1111111111")  # of another program, without each pair's outcome
    for key in ("pairs_digest", "outcomes"):
        del other["metrics"]["sets"]["probe_to_negation"][key]
        (table,) = compare([one, write(tmp_path / "c.json", other)]).tables
        assert not [note for note in table.notes if "McNemar" in note]


def test_several_suites_and_the_three_formats(tmp_path: Path) -> None:
    folder = tmp_path / "evaluation"
    write(folder / "pairs.json", pairwise("a", "1100"))
    write(folder / "votes.json", agreement("a"))
    write(folder / "run.json", {"seconds": 3})
    found = compare([folder])
    assert [table.suite for table in found.tables] == ["pairwise", "agreement"]
    assert "| a | 0.500 [0.400, 0.600] |" in found.render()
    assert "| annotators alone (published: Jwalapuram, Joty and Lin 2022" in found.render()
    lines = list(csv.DictReader(io.StringIO(found.render("csv"))))
    own = next(line for line in lines if line["kind"] == "model" and line["suite"] == "agreement")
    assert (own["row"], own["column"], own["value"]) == ("a", "lmvlm", "0.5")
    tables = json.loads(found.render("json"))["tables"]
    kinds = {row["kind"] for table in tables for row in table["rows"]}
    assert kinds == {"model", "rule", "published"}
    with pytest.raises(ConfigError, match="no format 'makdown'"):
        found.render("makdown")


def test_a_model_folder_and_the_suite_on_it_share_columns(tmp_path: Path) -> None:
    metrics = dissent("", 0.5)["metrics"] | {"per_class": {}}
    trained = {
        "recipe": "dissent/bilstm",
        "model_type": "t",
        "dataset": dataset("r1"),
        "metrics": {"validation": metrics, "test": metrics},
    }
    folder = write(tmp_path / "bilstm" / "results.json", trained).parent
    other = write(tmp_path / "b.json", dissent("minilm", 0.6))
    (table,) = compare([folder, other]).tables
    assert [row.name for row in table.rows if row.kind == "model"] == ["bilstm", "minilm"]
    # The test's labels are hidden: the training was judged on the validation split.
    write(folder / "results.json", trained | {"metrics": {"validation": metrics}})
    with pytest.raises(InputError, match=r"split validation; .*split test"):
        compare([folder, other])
    assert "split validation" in compare([folder]).render()


def test_the_notes_of_all_seeds_are_kept(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{seed}.json", dissent("m", 0.5, notes=["said of all", f"seed {seed}"]))
        for seed in (0, 1)
    ]
    (table,) = compare(paths, seeds=True).tables
    assert table.notes[1:4] == [
        f"m (2 seeds): {what}" for what in ("said of all", "seed 0", "seed 1")
    ]


def test_a_path_that_comes_twice_counts_once_in_its_first_place(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{m}.json", dissent(m, 0.5)) for m in "abc"]
    rows = compare([paths[1], tmp_path], published=False).tables[0].rows
    assert [row.name for row in rows if row.kind == "model"] == ["b", "a", "c"]


def test_a_note_of_several_models_is_shown_once(tmp_path: Path) -> None:
    notes = {"a": ["of all", "of two"], "b": ["of all", "of two"], "c": ["of all"]}
    paths = [write(tmp_path / f"{m}.json", dissent(m, 0.5, notes=notes[m])) for m in notes]
    (table,) = compare(paths).tables
    assert table.notes[1:3] == ["all models: of all", "a, b: of two"]


def test_nats_are_shown_as_they_are_and_classes_in_percent(tmp_path: Path) -> None:
    level = {
        "accuracy": figure(0.75),
        "f1": figure(0.5),
        "majority": {"accuracy": 0.6, "f1": 0.2, "class": "1"},
        "per_class": {"1": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "gold": 3}},
    }
    words = {"next": {**figure(5.7), "by_frequency": 5.9, "sentences": 26}}
    trained = {
        "recipe": "criteria/bigru",
        "model_type": "t",
        "dataset": dataset("r1", "default", "criteria"),
        "metrics": {"test": {"sentences": 27, "nats_a_word": words, "classes": {"level": level}}},
    }
    (table,) = compare([write(tmp_path / "gru" / "results.json", trained).parent]).tables
    assert table.columns == ["next nats", "level accuracy", "level F1"]
    shown = {row.name: [cell.text for cell in row.cells.values()] for row in table.rows}
    assert shown == {
        "gru": ["5.700 [5.600, 5.800]", "75.0 [65.0, 85.0]", "50.0 [40.0, 60.0]"],
        "rule: frequency of words (gru)": ["5.900"],
        "rule: majority": ["60.0", "20.0"],
    }


def test_a_suite_that_compare_does_not_know_shows_all_its_figures(tmp_path: Path) -> None:
    tasks = {"SP": {"accuracy": figure(0.4)}, "BSO": {"accuracy": figure(0.6), "rows": 3}}
    result = {"suite": "new", "model": {"name": "m"}, "dataset": {}, "metrics": {"tasks": tasks}}
    (table,) = compare([write(tmp_path / "n.json", result)]).tables
    assert table.columns == ["tasks SP accuracy", "tasks BSO accuracy"]


def test_discoeval_shows_the_rows_of_its_own_protocol(tmp_path: Path) -> None:
    domains = {"arxiv": {"value": 0.5, "sd": 0.01}, "wiki": {"value": 0.6, "sd": 0.02}}
    data = [{"task": "BSO", "domain": name, "revision": "r1"} for name in ("arxiv", "wiki")]

    def result(protocol: str) -> dict[str, Any]:
        return {
            "suite": "discoeval",
            "model": {"name": "m"},
            "dataset": data,
            "protocol": {"protocol": protocol},
            "metrics": {
                "tasks": {"BSO": {"value": 0.55, "sd": 0.01, "domains": domains}},
                "average": {"value": 0.55, "complete": False},
            },
        }

    one = write(tmp_path / "a.json", result("single"))
    (table,) = compare([one]).tables
    assert table.columns == ["BSO", "BSO wiki", "BSO arxiv"]
    names = {row.name for row in table.rows if row.kind == "published"}
    assert "BERT-Base" in names and not any("CONPONO" in name for name in names)
    assert "| m | 55.0 ± 1.0 | 60.0 ± 2.0 | 50.0 ± 1.0 |" in compare([one]).render()
    with pytest.raises(InputError, match=r"protocol = single.*protocol = pairs"):
        compare([one, write(tmp_path / "b.json", result("pairs"))])


@pytest.mark.parametrize("other", ["wiki", "chat"])
def test_means_over_other_domains_are_refused(other: str, tmp_path: Path) -> None:
    def result(name: str, *domains: str) -> Path:
        found = {domain: {"value": 0.5, "sd": 0.0} for domain in domains}
        data = [{"task": "DC", "domain": domain, "revision": "r1"} for domain in domains]
        sp = {"value": 0.3, "sd": 0.0, "domains": {"wiki": {"value": 0.3, "sd": 0.0}}}
        tasks = {"SP": sp, "DC": {"value": 0.5, "sd": 0.0, "domains": found}}
        data.append({"task": "SP", "domain": "wiki", "revision": "r1"})
        metrics = {"tasks": tasks, "average": {"value": 0.5, "complete": False}}
        about = {"suite": "discoeval", "model": {"name": name}, "protocol": {}}
        return write(tmp_path / f"{name}.json", {**about, "dataset": data, "metrics": metrics})

    first = result("a", "wiki", "arxiv")
    with pytest.raises(InputError, match=rf"DC \(arxiv, wiki\).*DC \({other}\)"):
        compare([first, result("b", other)])
    compare([first, result("c", "arxiv", "wiki")])


def test_means_over_other_probes_are_refused(tmp_path: Path) -> None:
    paths = []
    for name, probe in (("a", "probe_to_negation"), ("b", "probe_conjunction_flip")):
        found = pairwise(name, "1100")
        found["metrics"]["sets"] = {probe: found["metrics"]["sets"]["probe_to_negation"]}
        paths.append(write(tmp_path / f"{name}.json", found))
    with pytest.raises(InputError, match=r"\(probe_to_negation\).*\(probe_conjunction_flip\)"):
        compare(paths)


def test_pdtb_shows_the_papers_columns(tmp_path: Path) -> None:
    result = {
        "suite": "pdtb",
        "task": "implicit",
        "model": {"name": "m"},
        "dataset": dataset("r1", name="pdtb_implicit"),
        "metrics": {
            name: {"accuracy": figure(0.4), "majority": {"accuracy": 0.3}}
            for name in ("sentences", "pair")
        },
    }
    (table,) = compare([write(tmp_path / "p.json", result)]).tables
    assert table.columns == ["IMP", "IMP (pair)"]
    shown = {row.name: row.cells for row in table.rows}
    assert shown["BERT"]["IMP"].value == 52.7 and shown["rule: majority"]["IMP"].value == 30.0


@pytest.mark.parametrize(
    ("arguments", "column", "published"),
    [("annotated", "MVU", 80.5), ("matched", "marked", None), (None, "marked", None)],
)
def test_matched_arguments_never_stand_beside_the_papers_figures(
    arguments: str | None, column: str, published: float | None, tmp_path: Path
) -> None:
    settings = {"arguments": arguments} if arguments else {}
    data = Dataset("pdtb_marked", "default", "r1", {}, {"details": {"settings": settings}})
    task = task_of(Labelled(data, ("arg1", "arg2"), ["unmarked", "marked"], {}))
    scores = {"accuracy": figure(0.4), "majority": {"accuracy": 0.3}}
    result = {
        "suite": "pdtb",
        "task": task,
        "model": {"name": "m"},
        "dataset": dataset("r1", name="pdtb_marked"),
        "metrics": {"fine_tuned": scores},
    }
    (table,) = compare([write(tmp_path / "p.json", result)]).tables
    assert table.columns == [column]
    shown = {row.name: row.cells for row in table.rows}
    assert (shown["BERT"][column].value if "BERT" in shown else None) == published


def test_what_is_no_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        compare([tmp_path / "none.json"])
    with pytest.raises(InputError, match="no result here"):
        compare([tmp_path])
    broken = tmp_path / "x.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="is not JSON"):
        compare([broken])
    write(broken, {"suite": "pairwise", "metrics": {}})
    with pytest.raises(InputError, match="no result of the suite 'pairwise'"):
        compare([broken])
    for wrong in ({"dataset": None}, {"dataset": "d"}, {"model": "m"}, {"protocol": 3}):
        write(broken, {"suite": "other", "metrics": {}, **wrong})
        with pytest.raises(InputError, match=rf"x\.json: is no result: {next(iter(wrong))} = "):
            compare([broken])


def test_the_published_tables_are_whole() -> None:
    for table in paper_tables().values():
        assert table.title and table.called and {*table.others} <= {*table.rows}
        for part in table.parts:
            assert part.paper in papers() and (part.path or part.suite in SUITES)
            assert len(part.shown_columns) == len(part.columns)
            for name, *values in part.rows:
                assert isinstance(name, str) and len(values) in (0, len(part.columns))
            counted = part.kind == "histogram" or part.suite == "dataset" or part.table == "8"
            printed = [n for row in part.printed.values() for n in row.values()]
            assert counted or all(-1 <= number <= 100 for number in printed)
    averaged = [part for part in parts_of("discoeval") if part.columns[-1] == "avg"]
    for *tasks, average in ([*map(float, row[1:])] for part in averaged for row in part.rows):
        assert sum(tasks) / len(tasks) == pytest.approx(average, abs=0.11)


def shares(column: str, right: np.ndarray, units: list[str] | None = None) -> Columns:
    return {column: {"": Outcomes(column, units or independent_units(len(right)), right)}}


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
    own, its = (ratio_interval(x, np.ones(len(x)), 0, "x")["ci"] for x in (one, two))
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

    def model(sp: np.ndarray, wiki: np.ndarray) -> Columns:
        units = independent_units(400)
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

    def model(right: np.ndarray) -> Columns:
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


def classes(gold: np.ndarray, predicted: np.ndarray) -> Columns:
    return {
        "F1": {"": Outcomes("F1", independent_units(len(gold)), gold=gold, predicted=predicted)}
    }


def test_f1_is_drawn_by_units() -> None:
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
    # Documents of 25 equal rows are drawn whole: 20 independent units, and a wider interval
    units = [str(row // 25) for row in range(500)]
    parts = [
        {"F1": {"": Outcomes("F1", units, gold=gold[:20].repeat(25), predicted=x[:20].repeat(25))}}
        for x in (one, two)
    ]
    by_document = differences("s", *parts)["F1"]
    by_row = differences("s", *(classes(p["F1"][""].gold, p["F1"][""].predicted) for p in parts))
    assert (by_document.units, by_document.value) == (20, by_row["F1"].value)
    assert by_document.ci[1] - by_document.ci[0] > 3 * (by_row["F1"].ci[1] - by_row["F1"].ci[0])
    other = gold.copy()
    other[0] = (other[0] + 1) % 4
    assert differences("s", classes(gold, one), classes(other, two)) == {}
    assert differences("s", classes(gold, one), shares("F1", np.ones(500))) == {}


def test_outcomes_lie_beside_the_result(tmp_path: Path) -> None:
    result = tmp_path / "deep" / "a.json"
    right, gold = np.array([1, 0, 1 / 3]), np.array([2, 0, 1])
    found = [
        Outcomes("BSO", ["u", "u", "v"], right, part="wiki"),
        Outcomes("all F1", independent_units(3), gold=gold, predicted=gold[::-1]),
    ]
    result.parent.mkdir()
    write_outcomes(result, found)
    assert place_of(result).name == "a.outcomes.parquet"
    back = read_outcomes(result)
    assert list(back) == ["BSO", "all F1"] and back["BSO"]["wiki"].units == ["u", "u", "v"]
    assert back["BSO"]["wiki"].right == pytest.approx(right, abs=1e-7)
    f1 = back["all F1"][""]
    assert f1.right is None and f1.gold is not None and f1.gold.tolist() == [2, 0, 1]
    place_of(result).unlink()
    assert read_outcomes(result) == {}
    pq.write_table(pa.table({"unit": ["a"]}), place_of(result))
    with pytest.raises(InputError, match="is no table of outcomes"):
        read_outcomes(result)
    place_of(result).write_text("no parquet", encoding="utf-8")
    with pytest.raises(InputError, match="is no table of outcomes"):
        read_outcomes(result)


def test_compare_shows_the_differences_from_the_first_model(tmp_path: Path) -> None:
    one, two = two_models()
    paths = []
    for name, right in (("a", one), ("b", two), ("c", one)):
        path = write(tmp_path / f"{name}.json", dissent(name, float(right.mean())))
        write_outcomes(path, [Outcomes("all accuracy", independent_units(len(right)), right)])
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
    write_outcomes(path, [Outcomes("all accuracy", independent_units(len(two)), two)])
    with pytest.raises(InputError, match=r"a\.outcomes\.parquet: the outcomes say .*another run"):
        compare([path])
    write_outcomes(path, [Outcomes("books5 accuracy", independent_units(len(one)), one)])
    with pytest.raises(InputError, match=r"a\.json says nothing"):
        compare([path])


def test_a_result_is_never_beside_the_outcomes_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, units = tmp_path / "a.json", independent_units(2)
    result = Result({}, {}, 2, {}, suite="permuted")
    save(Permuted(), path, replace(result, outcomes=[Outcomes("x", units, np.ones(2))]))
    assert place_of(path).is_file()

    def full(path: Path, value: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("zoo.evaluate.results.write_json", full)
    with pytest.raises(OSError, match="no space"):
        save(Permuted(), path, replace(result, outcomes=[Outcomes("x", units, np.zeros(2))]))
    assert path.is_file() and not place_of(path).is_file()


def test_the_baseline_shares_a_column_with_another_model(tmp_path: Path) -> None:
    one, two = two_models()
    paths = []
    for name, right, config in (("a", one, "books5"), ("b", one, "all"), ("c", two, "all")):
        about = {"dataset": dataset("r1", config)}
        path = write(tmp_path / f"{name}.json", dissent(name, float(right.mean()), **about))
        write_outcomes(path, [Outcomes(f"{config} accuracy", independent_units(len(right)), right)])
        paths.append(path)
    (table,) = compare(paths).tables
    assert table.baseline == "b" and list(table.differences) == ["c"]


def test_only_trainings_of_one_model_are_joined(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", dissent("m", 0.5))
    bert = dissent("m", 0.6) | {"model": {"name": "m", "type": "bert"}}
    other = write(tmp_path / "b.json", bert)
    names = [row.name for row in compare([path, other], seeds=True).tables[0].rows]
    assert names[:2] == [f"m ({path})", f"m ({other})"], "two types of model, one training each"
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
        write_outcomes(path, [Outcomes("all accuracy", independent_units(len(right)), right)])
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
    assert mean_outcomes([one, two])["x"][""].right.tolist() == [1.0, 0.5]
    assert mean_outcomes([one, {"x": {"": Outcomes("x", ["b", "a"], np.ones(2))}}]) == {}
    assert mean_outcomes([one, {}]) == {}
    gold = np.array([0, 1])
    assert mean_outcomes([{"x": {"": Outcomes("x", units, gold=gold, predicted=gold)}}] * 2) == {}


def test_models_that_left_out_other_rows_are_compared_on_those_of_both(tmp_path: Path) -> None:
    """Where no outcomes say which those are, they stand in no table together."""
    units, nan = independent_units(20), np.nan
    paths = []
    for name, right in (("a", [nan] * 6 + [1.0] * 14), ("b", [0.0] * 10 + [0.5] * 8 + [nan] * 2)):
        left_out = int(np.isnan(right).sum())
        accuracy = {**figure(float(np.nanmean(right))), "ties": right.count(0.5)}
        rule = {"accuracy": figure(0.5), "ties": 0}["accuracy"]
        metrics = {"accuracy": accuracy, "pairs": 20 - left_out, "baselines": {"shorter": rule}}
        about = {"name": "d", "config": "pairwise", "revision": "r1"}
        result = Result({"name": name}, about, 20, metrics, {"ties": "half"}, suite="permuted")
        column = Permuted.column("pairwise")
        outcomes = [
            Outcomes(column, units, np.array(right)),
            Outcomes(column, units, np.where(np.isnan(right), nan, 1.0), rule="rule: shorter"),
        ]
        paths.append(tmp_path / f"{name}.json")
        save(Permuted(), paths[-1], replace(result, outcomes=outcomes))
    (table,) = compare(paths, published=False).tables
    rows = {row.name: row.cells["permuted accuracy"] for row in table.rows}
    assert [(round(cell.value, 1), cell.n) for cell in rows.values()] == [
        (100.0, 12),
        (33.3, 12),
        (100.0, 12),
    ]
    assert rows["b"].text.endswith("8 ties")
    assert table.differences["b"]["permuted accuracy"].value == pytest.approx(-200 / 3)
    assert any("b: permuted accuracy: the figures are over the 12 of 20" in n for n in table.notes)
    place_of(paths[1]).unlink()
    with pytest.raises(InputError, match=r"on 14 examples.*on 18 examples"):
        compare(paths)
