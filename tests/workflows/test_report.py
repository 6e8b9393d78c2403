"""The report of a build: what a reader of it must not miss."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from corpora.schemas import MARKERS_ALL
from tests.workflows.conftest import MODELS
from workflows import usage
from workflows.cli.app import app
from workflows.report import data
from workflows.report.blocks import (
    Block,
    Fold,
    Heading,
    Table,
    Text,
    markdown,
    table_latex,
    with_content,
)
from workflows.report.data import left_out
from workflows.report.markup import escaped, link, script_json, tag
from workflows.report.page import write_report
from workflows.report.stages import Made, made_in


def written(blocks: list[Block]) -> str:
    return markdown("report", [data.Section("part", "part", blocks)])


def test_tasks_that_discoeval_could_not_evaluate_are_named() -> None:
    skipped = {"RST-DT": "its files are pickles"}
    assert left_out({"metrics": {"skipped": skipped}}) == [
        "RST-DT is left out: its files are pickles."
    ]
    for metrics in ({"skipped": {}}, {"skipped": 3}, {}):
        assert left_out({"metrics": metrics}) == []


def test_evaluations_by_two_protocols_have_a_table_each(tmp_path: Path) -> None:
    def stage(name: str, limit: int) -> Made:
        figure = {"value": 0.5, "ci": None}
        sets = {"insted": {"accuracy": figure, "baselines": {}, "outcomes": "10"}}
        sets["insted"]["pairs_digest"] = "d"
        result = {
            "suite": "pairwise",
            "model": {"name": "scorer", "type": "t"},
            "dataset": {"name": "d", "revision": "r"},
            "protocol": {"prompt": True, "limit": limit},
            "encoder": "",
            "metrics": {"sets": sets},
        }
        (tmp_path / name).mkdir()
        for file, value in (("results.json", result), ("manifest.json", {"counts": {}})):
            (tmp_path / name / file).write_text(json.dumps(value), encoding="utf-8")
        return Made("evaluation", name, tmp_path / name)

    one, two, again = stage("one", 0), stage("two", 100), stage("again", 0)
    text = written([*data._evaluations([one, two, again])])
    assert text.count("### ") == 2
    assert "### pairwise: d (prompt True, limit 0)" in text
    assert "### pairwise: d (prompt True, limit 100)" in text
    assert "### pairwise: d\n" in written([*data._evaluations([one, again])])


SOURCES = """
name = "small"

[[sources]]
name = "logs"
spec = "sample:news"
datasets = ["bso"]

[[sources]]
name = "novels"
spec = "text:novels/*/*.txt"
datasets = ["bso"]

[[sources]]
name = "records"
spec = "jsonl:records.jsonl"
datasets = ["bso"]

[[validation]]
name = "check"
sources = ["logs"]
gold = "pdtb:{sample}/gold"

[datasets.bso]
"""


def test_every_source_says_its_licence_or_that_it_is_to_be_set(
    write_config: Callable[[str], Path], run_luigi: Callable, tmp_path: Path
) -> None:
    text = "It rained all day long. We stayed inside the old house. Nobody came to see us."
    (tmp_path / "novels" / "emma").mkdir(parents=True)
    (tmp_path / "novels" / "emma" / "01.txt").write_text(text, encoding="utf-8")
    licences = ("MIT", "CC0-1.0")
    records = [{"id": name, "text": text, "licence": name} for name in licences]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "records.jsonl").write_text(lines, encoding="utf-8")
    done = run_luigi(write_config(SOURCES))
    assert done.returncode == 0, done.stderr
    built = tmp_path / "out" / "small"
    shown = (built / "report" / "report.md").read_text(encoding="utf-8")
    card = (built / "datasets" / "bso" / "README.md").read_text(encoding="utf-8")
    unknown = "unknown: set `licence` of the source |"
    assert "| logs | sample | news | CC-BY-4.0 |" in shown
    assert "| records | jsonl | records.jsonl | CC0-1.0 AND MIT |" in shown
    assert f"| novels-emma-01 | text | emma/01.txt | {unknown}" in shown
    assert "| check-gold | pdtb | check-gold | in no dataset |" in shown
    rows = {line.split(" ")[1]: line for line in card.splitlines() if line.startswith("| ")}
    assert rows["novels-emma-01"].endswith(unknown)
    assert rows["records"].endswith("| CC0-1.0 AND MIT |")
    assert rows["logs"].endswith("| CC-BY-4.0 |")


def test_the_report_shows_the_strongest_rule_of_each_dataset(tmp_path: Path) -> None:
    rule = {"measure": "accuracy", "low": 0.0, "high": 99.0, "chance": 50.0}
    rules = [rule | {"rule": "bag", "value": 60.0, "low": 55.0}]
    rules.append(rule | {"rule": "surface", "value": 70.0, "low": 65.0})
    configs = {
        "default": {"rules": rules, "above": ["surface reaches 70.0"]},
        "few": {"rules": [], "above": []},
    }
    (tmp_path / "audit.json").write_text(json.dumps({"configs": configs}), encoding="utf-8")
    stages = [Made("dataset", "bso", tmp_path), Made("dataset", "sp", tmp_path / "older")]
    shown = written([*data._best_rules(stages)])
    assert "| bso | default | surface | accuracy | 70.0 | 65.0 to 99.0 | 50.0 |" in shown
    assert "few" not in shown and "**bso, default: surface reaches 70.0**" in shown
    assert [*data._best_rules(stages[1:])] == []


HOSTILE = "<img src=x onerror=alert(1)> </script> a|b](javascript:x)\nline"


def test_hostile_texts_stay_texts() -> None:
    assert tag("p", HOSTILE, title='"') == (
        '<p title="&quot;">&lt;img src=x onerror=alert(1)&gt; &lt;/script&gt; '
        "a|b](javascript:x) line</p>"
    )
    assert link("here", "javascript:alert(1)") == "here"
    assert link("here", "https://a.example/?q=<") == '<a href="https://a.example/?q=&lt;">here</a>'
    in_script = script_json([HOSTILE, "\u2028"])
    assert "<" not in in_script and "\u2028" not in in_script
    assert json.loads(in_script) == [HOSTILE, "\u2028"]
    shown = written([Heading(HOSTILE), Text(HOSTILE), Table(HOSTILE, [HOSTILE], [[HOSTILE]])])
    assert "<img" not in shown and "](javascript" not in shown
    assert shown.count("\\|b") == 5 and "\nline" not in shown
    assert escaped(escaped("<")) == "&lt;"


class Checked(HTMLParser):
    """What a page holds: ids, headings, addresses; every element is closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.ids += [about["id"]] if about.get("id") else []
        self.addresses += [about[key] for key in ("src", "href") if about.get(key)]
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(text)


def calls(script: Path) -> list[Any]:
    """The arguments of the call that a script of the examples makes."""
    inside = re.fullmatch(r"discorpora\.\w+\((.*)\);\n", script.read_text(encoding="utf-8"))
    assert inside is not None
    return json.loads(f"[{inside[1]}]")


def examples(page: Path, name: str) -> list[tuple[list[Any], list[list[Any]]]]:
    """The rows that a page shows of a dataset: facets, and lines with their texts."""
    [index] = calls(page / "data" / "index.js")
    number = next(i for i, one in enumerate(index["sets"]) if one["name"] == name)
    facets = index["sets"][number]["facets"]
    rows = []
    for script in sorted((page / "data").glob(f"{number}-*.js")):
        _, _, chunk = calls(script)
        for row, lines in enumerate(chunk["rows"]):
            values = [
                of[column[row]] for (_, of), column in zip(facets, chunk["facets"], strict=True)
            ]
            shown = []
            for title, *parts in lines:
                roles = [index["roles"][role] for role in parts[::2]]
                words = [chunk["texts"][text] for text in parts[1::2]]
                shown.append([title, *zip(roles, words, strict=True)])
            rows.append((values, shown))
    return rows


def test_a_report_holds_every_section_and_names_only_its_own_files(built: Path) -> None:
    page = Checked()
    page.feed((built / "report" / "index.html").read_text(encoding="utf-8"))
    assert page.open == []
    sections = [
        "About this report",
        "Sources and attribution",
        "Pairs",
        "Validation against gold",
        "Datasets",
    ]
    assert page.headings == [*sections, "Examples", "Time and memory", "Versions"]
    assert len(page.ids) == len(set(page.ids))
    for address in page.addresses:
        here, _, place = address.partition("#")
        assert (built / "report" / here).exists() and (not place or place in page.ids), address
    text = (built / "report" / "report.md").read_text(encoding="utf-8")
    pairs = sum(made.manifest["counts"]["pairs"] for made in made_in(built) if "alone" in made.key)
    assert f"{pairs:,} pairs of " in text
    for figure in re.findall(r"\]\((figures/.*?)\)", text):
        assert "<title>" in (built / "report" / figure).read_text(encoding="utf-8")
    gold = json.loads((built / "validation" / "sample" / "validation.json").read_text("utf-8"))
    assert f"| {gold['strict']['overall']['occurrence']['f1']:.3f} [" in text
    assert text.count("Extraction error rate (figure 2 of DisSent)") == 2


def test_figure_3_counts_aligned_pairs_by_distance_and_is_explained(built: Path) -> None:
    gold = json.loads((built / "validation" / "sample" / "validation.json").read_text("utf-8"))
    scores = gold["unseen"] if gold["documents"]["unseen"] else gold
    views = [scores[view]["criterion_strict"]["histogram"] for view in ("paper", "control")]
    counts = "; ".join(f"{low}: {n:,}, {views[1][low]:,}" for low, n in views[0].items())
    figure = built / "report" / "figures" / "sample-figure3_distance-criterion_strict.svg"
    assert sum(views[0].values()) > 0
    assert f"number of aligned pairs. {counts}." in figure.read_text(encoding="utf-8")
    report = (built / "report" / "report.md").read_text(encoding="utf-8")
    assert report.index("3 counts the other, aligned pairs") < report.index("(figure 3 of DisSent)")


def test_an_introduction_says_which_models_are_toys_and_which_code_made_them(
    built: Path, tmp_path: Path
) -> None:
    def model(name: str, **results: Any) -> Made:
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(results), encoding="utf-8")
        (tmp_path / name / "manifest.json").write_text("{}", encoding="utf-8")
        return Made("model", name, tmp_path / name)

    tiny = model("tiny", recipe="dissent/bilstm_tiny", trained_on=50_000)
    few = model("few", recipe="dissent/bilstm", dataset={"rows": {"train": 999}})
    large = model("large", recipe="dissent/bilstm", trained_on=50_000)
    vectors = model("vectors", recipe="vectors")
    assert "**All 2 models are toys. A toy" in written([*data._about([tiny, few])])
    text = written([*data._about([tiny, few, large, vectors])])
    assert "**2 of the 4 models are toys: tiny, few. A toy" in text
    assert "1 of the 4 models were not trained here" in text
    assert "No model is a toy: they were trained on 50,000 examples" in written(
        [*data._about([large])]
    )
    report = (built / "report" / "report.md").read_text(encoding="utf-8")
    assert "models are" not in report
    if usage.commit():
        assert f"commit `{usage.commit()}`." in report


def test_empty_tables_are_left_out_with_their_headings() -> None:
    empty = Table("nothing", ("name", "n"), [("a", None), ("b", "")])
    table = Table("one column", ("name",), [("a",)])
    blocks = [Heading("over nothing"), Heading("over less", 4), empty, Heading("over one"), table]
    blocks += [Fold("empty", [Table("no rows", ("n",), [])]), Heading("last", 4)]
    assert with_content(blocks) == [Heading("over one"), table]
    fold = Fold("full", [Text("a note")])
    assert with_content([Heading("over a fold"), fold, empty]) == [Heading("over a fold"), fold]


def test_any_table_of_the_report_is_printed_as_latex(built: Path) -> None:
    report = (built / "report" / "report.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^Table (\d+)\. (.*):$", report, re.M)
    assert [int(number) for number, _ in numbers] == [*range(1, len(numbers) + 1)]
    page = (built / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("<caption>") == len(numbers) == page.count("<b>Table ")

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, ["report", str(built), "--table", *words])

    number = next(number for number, caption in numbers if caption == "Pairs by marker")
    lines = run(number, "--latex").output.splitlines()
    assert lines[:4] == [
        "% Pairs by marker",
        r"\begin{tabular}{lr}",
        r"\hline",
        r"marker & pairs \\",
    ]
    assert lines[-1] == r"\end{tabular}" and re.fullmatch(r"and & \d+ \\\\", lines[5])
    asked = json.loads(run(number, "--json").output)
    assert asked["caption"] == "Pairs by marker" and asked["rows"][0][0] == "and"
    assert run(number).output.startswith(
        f"Table {number}. Pairs by marker:\n\n| marker | pairs |\n"
    )
    error = run(str(len(numbers) + 1)).exception
    assert f"it has the tables 1 to {len(numbers)}" in str(error)
    hostile = table_latex(Table("a", ("x_y", "`code` 5 %"), [("R&D <1>", "word " * 20)]))
    assert r"\begin{tabular}{lp{6cm}}" in hostile and r"x\_y & code 5 \%" in hostile
    assert r"R\&D \textless{}1\textgreater{}" in hostile


def test_the_examples_are_the_rows_of_the_datasets(built: Path) -> None:
    for config in ("all", "balanced"):
        rows = examples(built / "report", f"dissent, {config}")
        expected = []
        for split in ("train", "validation", "test"):
            file = built / "datasets" / "dissent" / config / f"{split}-00000-of-00001.parquet"
            # The few rows of `balanced` need not be in every split.
            for row in pq.read_table(file).to_pylist() if file.is_file() else ():
                label = MARKERS_ALL[row["label"]]
                expected.append(([split, label, row["position"], row["order"]], row))
        assert [facets for facets, _ in rows] == [facets for facets, _ in expected]
        for (_, [[_, *parts]]), (_, row) in zip(rows, expected, strict=True):
            # In the passage stand the words of both sides, as the document has them.
            for role, text in (("s1", row["s1"]), ("s2", row["s2"])):
                words = " ".join(part for kind, part in parts if kind == role)
                shown, meant = (set(re.findall(r"\w+", t.lower())) for t in (words, text))
                assert len(shown & meant) >= 0.7 * len(meant), (words, text)
            assert {kind for kind, _ in parts} >= {"s1", "marker", "s2"}
    for _, [[_, (_, one), (_, two)]] in examples(built / "report", "bso"):
        assert one and two
    orders = examples(built / "report", "permuted, pairwise")
    for _, [[title, *shuffled], [_, *original]] in orders:
        assert title == "order 1 of 1"
        assert sorted(original) == sorted(shuffled) and original != shuffled


def test_a_report_is_the_same_from_the_folders(built: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    write_report("tiny", made_in(built), [], again)
    for path in sorted(again.rglob("*")):
        if path.is_file():
            there = built / "report" / path.relative_to(again)
            assert path.read_bytes() == there.read_bytes(), path


def test_the_commands_report_and_browse(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
        return done.output.strip()

    config = built.parent.parent / "tiny.toml"
    assert run("report", built) == str(built / "report" / "index.html")
    assert run("report", config, "--output", built.parent) == run("report", built)
    page = run("browse", f"{built / 'datasets' / 'dissent'}@books5")
    assert page == "build/browse/dissent/index.html"
    rows = examples(Path(page).parent, "dissent, books5")
    assert rows == examples(built / "report", "dissent, books5")
    # A copy knows no pairs: its rows are shown without their passages.
    shutil.copytree(built / "datasets" / "dissent", "copy")
    for _, [[_, *parts]] in examples(Path(run("browse", "copy")).parent, "copy, books5"):
        assert [role for role, _ in parts] == ["s1", "marker", "s2"]
    # What is built by now, of a build that lacks a stage.
    config = Path(shutil.copy(config, tmp_path))
    config.write_text(config.read_text() + MODELS, encoding="utf-8")
    page = run("report", config, "--output", built.parent)
    assert page == str(built / "report-by-now" / "index.html")
    assert len(Path(page).read_text(encoding="utf-8")) > 10_000


def test_a_page_replaces_no_other_files(built: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    arguments = ["browse", str(built / "datasets" / "sp"), "--to", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert "was not created by discorpora" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_page_stays_until_the_next_one_is_written(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise ValueError("midway")

    arguments = ["browse", str(built / "datasets" / "sp"), "--to", str(tmp_path / "page")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert CliRunner().invoke(app, arguments).exit_code == 0
    with monkeypatch.context() as patched:
        patched.setattr("workflows.report.page.write_browser", broken)
        assert str(CliRunner().invoke(app, arguments).exception) == "midway"
    assert (tmp_path / "page" / "index.html").is_file()
    (tmp_path / "link").symlink_to("page")
    done = CliRunner().invoke(app, [*arguments[:-1], str(tmp_path / "link")])
    assert "is a link" in str(done.exception) and (tmp_path / "link" / "index.html").is_file()


def test_rows_with_dates_and_lists_of_tokens_are_browsed(tmp_path: Path) -> None:
    rows = {"s1": [["It", "rained"]], "s2": [["We", "stayed"]], "marker": ["so"], "doc": ["a"]}
    table = pa.table({**rows, "day": [date(2026, 11, 28)], "label": [0]})
    (tmp_path / "rows").mkdir()
    pq.write_table(table, tmp_path / "rows" / "train.parquet")
    arguments = ["browse", str(tmp_path / "rows"), "--to", str(tmp_path / "page")]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    text = (tmp_path / "page" / "data" / "0-00000.js").read_text(encoding="utf-8")
    assert "2026-11-28" in text and "It rained" in text


def test_a_folder_below_one_called_stages_is_no_stage(tmp_path: Path) -> None:
    (tmp_path / "stages" / "mine").mkdir(parents=True)
    (tmp_path / "stages" / "mine" / "manifest.json").write_text("{}", encoding="utf-8")
    assert Made.at(tmp_path / "stages" / "mine") is None
