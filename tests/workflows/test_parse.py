"""`discorpora parse` and `validate --relations` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflows.test_cli import read_jsonl, run

KILN = "The glaze cracked because the kiln cooled. However, nobody minded | it.\n"
GERMAN = (
    "Der Ofen war kalt, und die Glasur ist nicht fest, weil der Wind aus dem Norden kam. "
    "Aber wir haben es mit den anderen noch einmal versucht, und es war am Ende doch gut.\n"
)


@pytest.fixture
def kiln(tmp_path: Path) -> Path:
    path = tmp_path / "kiln.txt"
    path.write_text(KILN)
    return path


def test_a_text_in_every_format_and_its_scores(
    kiln: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    outputs = {"jsonl": tmp_path / "o.jsonl", "pdtb": tmp_path / "p", "disrpt": tmp_path / "d"}
    for format, output in outputs.items():
        assert run(monkeypatch, "parse", kiln, "-o", output, "--format", format) == 0
        assert "2 explicit relations from 1 document" in capfd.readouterr().out
    because, however = read_jsonl(outputs["jsonl"])
    assert (because["connective"], because["sense"]) == ("because", "Contingency.Cause")
    assert (because["arg1"], because["arg2"]) == ("The glaze cracked", "the kiln cooled")
    assert because["connective_spans"] == [[18, 25]] and 0.5 < because["probability"] <= 1
    assert (however["doc"], however["sentence"]) == ("kiln", 1)
    gold = f"pdtb:{outputs['pdtb']}"
    for relations in (outputs["jsonl"], gold, f"disrpt:{outputs['disrpt']}"):
        arguments = ("validate", kiln, "--gold", gold, "--relations", relations)
        assert run(monkeypatch, *arguments, "--json", tmp_path / "s.json") == 0
        figures = json.loads((tmp_path / "s.json").read_text())["figures"]
        assert {figure["f1"] for figure in figures.values()} == {1.0}, relations
    capfd.readouterr()
    assert run(monkeypatch, "parse", kiln, "-o", "-") == 0
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()][-1] == however


def test_a_connective_in_two_sentences_is_one_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DISRPT's tags alone do not say that two runs of words are one connective."""
    text = "On the one hand, the flat is cheap. It has a bath. On the other hand, it is noisy."
    (tmp_path / "flat.txt").write_text(text)
    outputs = {"jsonl": tmp_path / "o.jsonl", "pdtb": tmp_path / "p", "disrpt": tmp_path / "d"}
    for format, output in outputs.items():
        options = ("-o", output, "--format", format)
        assert run(monkeypatch, "parse", tmp_path / "flat.txt", *options) == 0
    (row,) = read_jsonl(outputs["jsonl"])
    spans = [[0, 15], [51, 68]]
    assert row["connective_spans"] == spans and text[51:68] == "On the other hand"
    assert (row["arg1"], row["arg2"]) == ("the flat is cheap", "it is noisy")
    gold = f"pdtb:{outputs['pdtb']}"
    for relations in (outputs["jsonl"], gold, f"disrpt:{outputs['disrpt']}"):
        arguments = ("validate", tmp_path / "flat.txt", "--gold", gold, "--relations", relations)
        assert run(monkeypatch, *arguments, "--json", tmp_path / "s.json") == 0
        figures = json.loads((tmp_path / "s.json").read_text())["figures"]
        names = ["spans"] if str(relations).startswith("disrpt:") else figures
        assert {figures[name]["f1"] for name in names} == {1.0}, relations


@pytest.mark.slow
def test_workers_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("extract.discourse.CHUNK_WORDS", 10)  # each document is a chunk
    source = tmp_path / "texts.jsonl"
    texts = [KILN, GERMAN, KILN.replace("because", "when")]
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    written, said = [], []
    for workers in (1, 2):
        output = tmp_path / str(workers)
        options = ("-o", output, "--format", "disrpt", "--workers", workers)
        assert run(monkeypatch, "parse", source, *options) == 0
        written.append({path.name: path.read_bytes() for path in output.iterdir()})
        said.append(capfd.readouterr().out.replace(str(output), ""))
    assert written[0] == written[1] and said[0] == said[1]
    assert "4 explicit relations from 3 documents" in said[0]
    assert "in another language than en: 1 document" in said[0]


def test_a_text_in_another_language_has_no_relations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ofen.txt").write_text(GERMAN)
    assert run(monkeypatch, "parse", tmp_path / "ofen.txt", "-o", tmp_path / "o.jsonl") == 0
    said = capfd.readouterr().out
    assert "0 explicit relations" in said and "in another language than en: 1 document" in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("empty.txt", "-o", "o.jsonl"), "no text: there is none in it"),
        (("kiln.txt", "-o", "o.jsonl", "--language", "de"), "for the language 'de'"),
        (("kiln.txt", "-o", "o", "--format", "conll"), "no format 'conll'"),
        (("kiln.txt", "-o", "o"), "must end in .jsonl"),
        (("kiln.txt", "-o", "-", "--format", "pdtb"), "pdtb is a folder, not a stream"),
        (("kiln.txt", "-o", "o.jsonl", "--min-probability", "2"), "expected 0 to 1"),
        (("kiln.txt", "-o", "kiln.txt"), "exists already"),
        (("gone.txt", "-o", "o.jsonl"), "gone.txt"),
    ],
)
def test_what_cannot_be_parsed_is_one_error_and_writes_nothing(
    arguments: tuple[str, ...],
    reason: str,
    kiln: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (kiln.parent / "empty.txt").touch()
    monkeypatch.chdir(kiln.parent)
    assert run(monkeypatch, "parse", *arguments) == 1
    assert reason in capfd.readouterr().err
    assert sorted(path.name for path in kiln.parent.iterdir()) == ["empty.txt", "kiln.txt"]
