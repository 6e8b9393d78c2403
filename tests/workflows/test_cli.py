"""The command line as other tools rely on it: options, fields, exit codes, messages."""

from __future__ import annotations

import csv
import io
import json
import logging
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpora.errors import DiscorporaError
from tests.processes import ran
from workflows.cli import app as cli

PAIR_FIELDS = {
    *("doc", "group", "source", "licence", "language", "sentence", "marker", "marker_spans"),
    *(
        "s1_spans",
        "s2_spans",
        "s1",
        "s2",
        "position",
        "order",
        "has_clauses",
        "pattern",
        "s2_added",
        "confidence",
    ),
}
TEXT = (
    "The bridge was closed because the river had risen. Nobody complained.\n\n"
    "When the water fell, the carts came back. But the miller had lost his boat.\n"
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "bridge.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run `discorpora ARGUMENTS` in this process; returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["discorpora", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
        sys.exit(0)
    return int(stop.value.code or 0)


def test_no_pair_of_shuffled_sentences_looks_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = f"conllu:{ROOT}/tests/data/extract/es.conllu", tmp_path / "o.jsonl"
    options = ("--parser", "gold", "--language", "es", "--markers", "all", "-o", out, "--force")
    positions = []
    for flag in ([], ["--no-previous"]):
        assert run(monkeypatch, "extract", source, *options, *flag) == 0
        positions.append({row["position"] for row in read_jsonl(out)})
    assert positions == [{"same_sentence", "previous_sentence"}, {"same_sentence"}]


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rejected_candidates_are_counted_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cats.txt"
    path.write_text("Cats and dogs slept.", encoding="utf-8")
    assert run(monkeypatch, "extract", path, "-o", tmp_path / "o.jsonl") == 0
    said = "s2_head               1  the marker is in a phrase, not in a clause"
    assert said in capsys.readouterr().out


def test_extract_writes_a_record_a_pair(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "pairs.jsonl"
    assert run(monkeypatch, "extract", f"text:{text_file}", "-o", out) == 0
    pairs = read_jsonl(out)
    assert {pair["marker"] for pair in pairs} == {"because", "when", "but"}
    for pair in pairs:
        assert set(pair) == PAIR_FIELDS
        (start, end), *_ = pair["marker_spans"]
        assert TEXT[start:end].lower() == pair["marker"]
    because = next(pair for pair in pairs if pair["marker"] == "because")
    assert because["s1"] == "The bridge was closed."
    assert because["s2"] == "The river had risen."
    when = next(pair for pair in pairs if pair["marker"] == "when")
    assert when["order"] == "s2_first"


def test_parquet_holds_the_same_as_jsonl(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pairs.jsonl", "pairs.parquet"):
        assert run(monkeypatch, "extract", text_file, "-o", tmp_path / name) == 0
    rows = pq.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert json.loads(json.dumps(rows)) == read_jsonl(tmp_path / "pairs.jsonl")


def test_csv_and_standard_output_hold_the_same_as_jsonl(
    text_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = text_file.read_text("utf-8") + '"We wait, Zo\u00eb," he said, because it rained.\n'
    text_file.write_text(text, encoding="utf-8")
    for name in ("pairs.jsonl", "pairs.csv"):
        assert run(monkeypatch, "extract", text_file, "-o", tmp_path / name) == 0
    shown = capfd.readouterr().out
    assert run(monkeypatch, "extract", text_file, "-o", "-") == 0
    printed, counts = capfd.readouterr()
    assert printed == (tmp_path / "pairs.jsonl").read_text("utf-8")
    assert "pairs from 1 document -> -" in counts and "because" in shown
    with (tmp_path / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    pairs = read_jsonl(tmp_path / "pairs.jsonl")
    assert len(rows) == len(pairs) > 3 and "Zo\u00eb" in rows[-1]["s1"]
    for row, pair in zip(rows, pairs, strict=True):
        for key, value in pair.items():
            expected = value if isinstance(value, str) else json.dumps(value)
            assert row[key] == ("" if value is None else expected), key


def test_rejects_are_written_with_their_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("She sells bread and butter. It rained.", encoding="utf-8")
    arguments = ("extract", tmp_path / "a.txt", "-o", tmp_path / "o.jsonl")
    assert run(monkeypatch, *arguments, "--rejects", tmp_path / "r.jsonl") == 0
    (reject,) = read_jsonl(tmp_path / "r.jsonl")
    assert reject["marker"] == "and"
    assert reject["reason"]
    assert reject["span"] == [16, 19]


def test_outputs_that_cannot_be_written_are_refused_before_anything_runs(
    text_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "folder").mkdir()
    for rejects, said in (("pairs.jsonl", "name the same file"), ("folder", "is a folder")):
        arguments = ("-o", tmp_path / "pairs.jsonl", "--rejects", tmp_path / rejects)
        assert run(monkeypatch, "extract", text_file, *arguments) == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "pairs.jsonl").exists()


def test_a_file_that_is_read_is_not_overwritten_by_the_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (source := tmp_path / "texts.jsonl").write_text('{"text": "We left as it rained."}\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    for place in ("texts.jsonl", "jsonl:."):
        for option in ("-o", "--rejects"):
            other = () if option == "-o" else ("-o", "pairs.jsonl")
            assert run(monkeypatch, "extract", place, option, source, *other, "--force") == 1
            assert "is a file of a source" in capsys.readouterr().err
    assert "rained" in source.read_text("utf-8")


def test_existing_output_is_overwritten_only_with_force(
    text_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (out := tmp_path / "pairs.jsonl").write_text("precious", encoding="utf-8")
    arguments = ("extract", text_file, "-o", tmp_path / "new.jsonl", "--rejects", out)
    assert run(monkeypatch, *arguments) == 1
    assert "--force" in capsys.readouterr().err and out.read_text() == "precious"
    assert run(monkeypatch, *arguments, "--force") == 0
    assert all("reason" in reject for reject in read_jsonl(out))


def test_several_sources_in_one_call(
    text_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "old").mkdir()
    other = tmp_path / "old" / text_file.name
    other.write_bytes("The caf\u00e9 shut because it rained.".encode("latin-1"))
    out = tmp_path / "pairs.jsonl"
    sources = (f"text:{text_file}", f"text:{other}")
    assert run(monkeypatch, "extract", *sources, "--encoding", "latin-1", "-o", out) == 0
    found = {(pair["source"], pair["marker"]) for pair in read_jsonl(out)}
    assert {source for source, _ in found} == set(sources), "two files of one name"
    assert "The caf\u00e9 shut." in {pair["s1"] for pair in read_jsonl(out)}
    monkeypatch.chdir(tmp_path)
    for again in (f"text:{text_file}", f"./{text_file.name}", "text:."):
        assert run(monkeypatch, "extract", sources[0], again, "-o", "twice.jsonl") == 1
        said = capsys.readouterr().err
        assert f"{text_file} is named twice, by the sources {sources[0]} and {again}" in said
    with text_file.open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run(monkeypatch, "extract", "-", "text:-", "-o", "twice.jsonl") == 1
    assert "standard input is named twice" in capsys.readouterr().err


def test_some_bad_records_may_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    good = [json.dumps({"id": str(n), "text": "We left because it rained."}) for n in range(9)]
    (tmp_path / "x.jsonl").write_text("\n".join([*good, "{broken"]), encoding="utf-8")
    monkeypatch.setattr(logging.getLogger("discorpora"), "handlers", [])  # of an earlier test
    arguments = ("extract", tmp_path / "x.jsonl", "-o", tmp_path / "pairs.jsonl")
    assert run(monkeypatch, *arguments) == 1
    assert "--max-bad-share" in capfd.readouterr().err
    assert run(monkeypatch, *arguments, "--max-bad-share", "0.05") == 1
    said = capfd.readouterr().err
    assert "1 bad record beside 9 good documents, a share of 0.1 where 0.05 is allowed" in said
    assert run(monkeypatch, *arguments, "--max-bad-share", "0.1") == 0
    assert "left out: " in capfd.readouterr().err and len(read_jsonl(arguments[-1])) == 9


@pytest.mark.parametrize(
    ("source", "written", "doc"),
    [
        ("-", TEXT, "stdin"),
        ("jsonl:-", json.dumps({"id": "note", "text": "We left because it rained."}), "note"),
    ],
)
def test_a_source_on_standard_input(
    source: str, written: str, doc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text(written, encoding="utf-8")
    out = tmp_path / "pairs.jsonl"
    with (tmp_path / "in").open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert run(monkeypatch, "extract", source, "-o", out) == 0
    pairs = read_jsonl(out)
    assert "because" in {pair["marker"] for pair in pairs}
    assert {pair["doc"] for pair in pairs} == {doc}


def test_html_is_warned_of_once_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    html = "<!-- a page -->\n<!DOCTYPE html>\n<html><body><p>We left because it rained.</p>"
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(html, encoding="utf-8")
    (tmp_path / "c.txt").write_text("The tag <html> opens a page.", encoding="utf-8")
    monkeypatch.setattr(logging.getLogger("discorpora"), "handlers", [])  # of an earlier test
    assert run(monkeypatch, "extract", f"text:{tmp_path}", "-o", tmp_path / "p.jsonl") == 0
    said = capfd.readouterr().err
    assert said.count("is HTML") == 1 and "a.txt is HTML" in said and "pandoc" in said


def test_a_folder_of_html_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.html").write_text("<html>", encoding="utf-8")
    assert run(monkeypatch, "extract", f"text:{tmp_path}", "-o", tmp_path / "p.jsonl") == 1
    assert "pandoc" in capfd.readouterr().err


def test_only_the_markers_asked_for(
    text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "pairs.jsonl"
    assert run(monkeypatch, "extract", text_file, "--markers", "but,when", "-o", out) == 0
    assert {pair["marker"] for pair in read_jsonl(out)} == {"but", "when"}


def test_no_marker_in_any_sentence_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rain.txt").write_text("It rained.", encoding="utf-8")
    assert run(monkeypatch, "extract", tmp_path / "rain.txt", "-o", tmp_path / "pairs.jsonl") == 0
    said = capsys.readouterr().out
    assert "no sentence has one of the markers of --language en" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("extract", "text:nowhere", "-o", "o.jsonl"), ("nowhere",)),
        (("extract", "txet:a", "-o", "o.jsonl"), ("txet", "text")),
        (("extract", "a.txt", "-o", "o.tsv"), ("o.tsv", ".jsonl", ".csv")),
        (("extract", "a.txt", "-o", "o.jsonl", "--parser", "embeded"), ("embeded", "embedded")),
        (("extract", "a.txt", "-o", "o.jsonl", "--markers", "wheras"), ("wheras",)),
        (("extract", "a.txt", "-o", "o.jsonl", "--mode", "recal"), ("recal", "recall")),
        (("extract", "a.txt", "-o", "o.jsonl", "--language", "xx"), ("xx", "en")),
        (("extract", "a.txt", "-o", "o.jsonl", "--option", "layout"), ("key=value",)),
        (("extract", "a.txt", "-o", "o.jsonl", "--parser", "spacy:en_nothing"), ("en_nothing",)),
        (("validate", "a.txt", "--gold", "pdtb:nowhere"), ("nowhere",)),
        (("plan", "--config", "nowhere.toml"), ("nowhere.toml", "sample")),
        (("inspect", "nowhere"), ("nowhere",)),
        (("train", "nowhere"), ("nowhere",)),
        (("score", "a.txt", "--model", "m", "--rank", "--explain"), ("--explain", "--rank")),
        (
            ("score", "a.txt", "--model", "m", "--rank", "--reference", "a.txt"),
            ("--reference", "--rank"),
        ),
        (("score", "a.txt", "--model", "m", "--prompt", "nowhere"), ("--prompt", "--rank")),
        (("zoo", "--results", "nowhere"), ("nowhere", "no such folder")),
    ],
)
def test_a_mistake_is_one_short_message(
    arguments: tuple[str, ...],
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    assert run(monkeypatch, *arguments) != 0
    message = capfd.readouterr().err
    assert "Traceback" not in message
    for word in words:
        assert word in message
    assert not list(tmp_path.glob("o.*")), "half-written output"


def test_the_traceback_is_there_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORPORA_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["discorpora", "inspect", "nowhere"])
    with pytest.raises(DiscorporaError):
        cli.main()


def test_ctrl_c_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corpora.fetch.fetch", stopped)
    assert run(monkeypatch, "fetch", "ewt") == 130
    assert "the same command again" in capfd.readouterr().err


def test_validate_writes_the_fixed_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    out, gold = tmp_path / "v.json", ROOT / "corpora" / "sample" / "gold"
    arguments = ("validate", "sample:news", "--gold", f"pdtb:{gold}", "--json", out)
    assert run(monkeypatch, *arguments, "--figures", tmp_path / "figures") == 0
    assert "because" in capfd.readouterr().out
    result = json.loads(out.read_text(encoding="utf-8"))
    blocks = {"strict", "paper", "control", "nearest"}
    assert set(result) == {*blocks, "documents", "unseen", "settings"}
    for part in (result, result["unseen"]):
        assert blocks <= set(part) and set(part["strict"]) == {"overall", "per_marker"}
        overall = part["strict"]["overall"]
        row = {"occurrence", "exact", "dice", "extracted", "gold", "documents"}
        assert set(overall) == row
        for metric in ("occurrence", "exact", "dice"):
            assert set(overall[metric]) == {"p", "r", "f1", "ci"}
        for name in ("paper", "control"):
            assert set(part[name]) == {"criterion_paper", "criterion_strict"}
            for criterion in part[name].values():
                assert set(criterion) == {"overall", "per_marker", "histogram"}
                row = {"extracted", "aligned", "error_rate", "distance"}
                assert set(criterion["overall"]) == row
    assert result["strict"]["overall"]["occurrence"]["f1"] > 0.7
    assert result["documents"]["seen"] == 0
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".png"}


def test_validate_counts_only_the_documents_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = ROOT / "corpora" / "sample" / "gold"
    ids = sorted(path.name for path in (gold / "gold" / "00").iterdir())
    stories = [name for name in ids if name.startswith("sample_story")]
    listed = "".join(f"dev\t{name} \n" for name in stories[:3])
    (tmp_path / "ids").write_text(listed, encoding="utf-8-sig")
    out = tmp_path / "v.json"
    arguments = ("validate", "sample:stories", "--gold", f"pdtb:{gold}", "--json", out)
    assert run(monkeypatch, *arguments, "--documents", tmp_path / "ids") == 0
    assert json.loads(out.read_text(encoding="utf-8"))["documents"]["unseen"] == 3


def test_a_list_of_documents_that_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ids").write_text("My First Book\n", encoding="utf-8")
    gold = ROOT / "corpora" / "sample" / "gold"
    arguments = ("validate", "sample:stories", "--gold", f"pdtb:{gold}")
    assert run(monkeypatch, *arguments, "--documents", tmp_path / "ids") == 1
    assert "lacks 1 listed document, such as 'My First Book'" in capfd.readouterr().err
    (tmp_path / "ids").write_bytes("caf\u00e9\n".encode("latin-1"))
    assert run(monkeypatch, *arguments, "--documents", tmp_path / "ids") == 1
    message = capfd.readouterr().err
    assert str(tmp_path / "ids") in message and "in UTF-8" in message


def test_a_validation_that_cannot_be_reported_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").touch()
    gold = ROOT / "corpora" / "sample" / "gold"
    arguments = ("validate", "sample:stories", "--gold", f"pdtb:{gold}")
    assert run(monkeypatch, *arguments, "--documents", tmp_path / "empty") == 1
    assert f"{tmp_path / 'empty'}: lists no document" in capfd.readouterr().err
    monkeypatch.setattr("extract.commands.score", lambda *_: pytest.fail("extracted first"))
    assert run(monkeypatch, *arguments, "--figures", tmp_path / "empty") == 1
    assert f"{tmp_path / 'empty'}: File exists" in capfd.readouterr().err


def test_the_version_needs_no_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capfd.readouterr().out.startswith("discorpora ")


@pytest.mark.parametrize("command", ["markers", "zoo", "plan"])
def test_commands_that_only_show(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    more = ("--config", "sample") if command == "plan" else ()
    assert run(monkeypatch, command, *more) == 0
    assert len(capfd.readouterr().out.splitlines()) > 10


@pytest.mark.parametrize("command", ["build", "plan", "status", "report", "prune", "verify"])
def test_a_command_takes_the_build_file_of_its_folder(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, command) == 2
    said = capfd.readouterr().err
    for words in ("no build.toml", "--config FILE", "--config sample", "discorpora init"):
        assert words in said
    assert not list(tmp_path.iterdir())
    (tmp_path / "build" / "stages").mkdir(parents=True)
    (tmp_path / "build.toml").write_text(BUILD.replace("sample:stories", "text:nowhere"))
    assert run(monkeypatch, command, "--config", "nowhere.toml") == 1
    assert "no build file 'nowhere.toml'" in capfd.readouterr().err
    assert run(monkeypatch, command) == (command != "status")
    said = "".join(capfd.readouterr())
    assert "nowhere" in said or "small" in said or "build.toml" in said


@pytest.mark.parametrize("command", ["report", "verify"])
def test_a_build_file_is_named_once(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, "open", "--config", "sample") == 2
    assert "both open and --config sample are given" in capfd.readouterr().err


def test_plan_names_what_is_missing_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISCORPORA_DATA", str(tmp_path))
    assert run(monkeypatch, "plan", "--config", "full.toml") == 1
    shown = capfd.readouterr().out
    for word in ("LDC2019T05", "wikimedia/wikipedia", "xlnet/xlnet-base-cased", "input missing"):
        assert word in shown


def test_plan_and_status_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(BUILD.replace("sample:stories", "text:nowhere"))
    assert run(monkeypatch, "plan", "--config", "small.toml", "--json") == 1
    planned = json.loads(capfd.readouterr().out)
    assert planned["stages"][0]["state"] == "input missing"
    assert [each["input"] for each in planned["missing"]] == ["stories"]
    assert run(monkeypatch, "status", "--config", "small.toml", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert found["complete"] is False and found["stages"][0]["stage"] == "documents"


def test_figures_as_json_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gold = ROOT / "corpora" / "sample" / "gold"
    words = ("validate", "sample:news", "--gold", f"pdtb:{gold}", "--json", "-")
    assert run(monkeypatch, *words) == 0
    assert json.loads(capfd.readouterr().out)["strict"]["overall"]["gold"] > 0


@pytest.mark.parametrize("command", ["plan", "inspect", "compare", "score"])
def test_an_unknown_option_is_answered_with_the_valid_ones(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert run(monkeypatch, command, "--jsn") == 2
    said = capfd.readouterr().err
    assert "No such option: --jsn" in said and "--json" in said and "--help" in said


BUILD = """
name = "small"
[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["sp"]
[datasets.sp]
"""


def test_build_builds_and_shows_what_it_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(BUILD, encoding="utf-8")
    for _ in range(2):
        assert run(monkeypatch, "build", "--config", "small.toml", "--output", "out") == 0
        shown = capfd.readouterr().out
        assert "skipped" not in shown and "disk MiB" in shown
        assert "out/small/report/index.html" in shown
    assert (tmp_path / "out" / "small" / "datasets" / "sp" / "manifest.json").is_file()
    assert run(monkeypatch, "status", "--config", "small.toml", "--output", "out", "--json") == 0
    status = json.loads(capfd.readouterr().out)
    sizes = {stage["stage"]: stage["size"] for stage in status["stages"]}
    files = [path for path in (tmp_path / "out").rglob("*/dataset/sp/*/**/*") if path.is_file()]
    assert sizes["dataset"] == sum(path.stat().st_size for path in files) > 0
    assert sum(sizes.values()) < status["size"] < 2 * sum(sizes.values()), "links count once"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_build_that_fails_says_so_at_the_end(workers: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One sentence.", encoding="utf-8")
    text = BUILD.replace("sample:stories", "text:a.txt")
    (tmp_path / "small.toml").write_text(text, encoding="utf-8")
    build = ["build", "--config", "small.toml", "--workers", workers]
    done = ran([sys.executable, "-m", "workflows.cli.app", *build], cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    *_, failed, last = done.stderr.splitlines()
    assert failed.startswith("failed: dataset sp")
    assert last == "the same command continues from here"


def test_status_of_a_build_that_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "status", "--config", "sample") == 0
    assert "not complete" in capfd.readouterr().out


def test_plan_and_status_say_what_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build.toml").write_text(BUILD, encoding="utf-8")
    assert run(monkeypatch, "build") == 0
    stages = tmp_path / "build" / "stages"

    def states() -> dict[str, str]:
        capfd.readouterr()
        assert run(monkeypatch, "plan", "--json") == 0
        plan = json.loads(capfd.readouterr().out)["stages"]
        assert run(monkeypatch, "status") == 0
        shown = [line.split("│") for line in capfd.readouterr().out.splitlines()]
        status = {row[1].strip(): row[4].strip() for row in shown if len(row) > 5}
        said = {each["stage"].split()[0]: each["state"] for each in plan}
        for stage, state in said.items():
            expected = {"to do": "not built", "not needed": "not needed"}.get(state)
            assert expected in (None, status.get(stage, expected)), (stage, status)
        return said

    shutil.rmtree(stages / "sentences")
    assert states()["sentences"] == "not needed"
    assert run(monkeypatch, "build") == 0 and not (stages / "sentences").exists()
    shutil.rmtree(stages / "documents")
    expected = {"documents": "not needed", "sentences": "not needed", "dataset": "done"}
    assert expected.items() <= states().items()
    shutil.rmtree(stages / "dataset")
    expected = {"documents": "to do", "sentences": "to do", "dataset": "to do", "report": "done"}
    assert expected.items() <= states().items()
    assert run(monkeypatch, "build") == 0
    assert set(states().values()) == {"done"}
    assert run(monkeypatch, "plan") == 0
    assert "put at" not in capfd.readouterr().out
    (result,) = (tmp_path / "build").glob("*/datasets/*")
    shutil.rmtree(result)
    assert run(monkeypatch, "plan") == 0
    assert f"not built again, but put at {result}" in capfd.readouterr().out
    assert run(monkeypatch, "build") == 0 and result.is_dir()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_lacks_characters_is_no_crash(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"s1": "Zoë slept — “well”.", "s2": "Она спала.", "label": "and"}
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    for words in (["inspect", rows], ["inspect", rows, "--json"], ["markers", "--language", "zh"]):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
        assert run(monkeypatch, *words) == 0
        sys.stdout.flush()
        assert b"\\u" in written.getvalue()
        if "--json" in words:
            assert json.loads(written.getvalue().decode(encoding)) == row
