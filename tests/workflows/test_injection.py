"""Hostile names, ids, texts and licences: through documents, dataset, card and Hub, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from huggingface_hub import RepoCard

from corpora import escape
from corpora.errors import ConfigError
from corpora.publish import publish
from corpora.publish.hub import Hub, PublishSettings
from corpora.publish.plan import BEGIN, END
from corpora.readers import open_source
from corpora.schemas import PERMUTED_DOCUMENTS
from corpora.store.atomic import staged
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.terminal import print_table
from workflows.report.blocks import Section, Table, markdown

from ..hub_server import HubServer

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</details><script>alert(1)</script>",
    "a\n---\nlicense: mit\n---\n# evil",
    "a | b\\| c \\",
    f"{END}\n\nevil {BEGIN}",
    "```\n# out\n```",
    "![x](https://evil.example/track.png)",
    "[click](javascript:alert(1))",
    "&lt;b&gt;",
    "x\u2028y\u202ez\x85\x00",
    "'\"${title}{title}%s",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_stays_text_in_each_language(text: str) -> None:
    shown = escape.markdown(text)
    assert "\n" not in shown and "<img" not in shown and "<!--" not in shown
    assert "](" not in shown and "</" not in shown
    cells = f"| {shown} | b |".replace("\\\\", "").replace("\\|", "")
    assert cells.count("|") == 3
    assert not set('<>"\n') & set(escape.html(text))
    dumped = escape.yaml({"a": text, "b": [text]})
    assert yaml.safe_load(dumped) == {"a": text, "b": [text]} and "\n---" not in dumped
    block = escape.fenced(text, "toml")
    fence = block[: len(block) - len(block.lstrip("`"))]
    assert block.count(f"\n{fence}") == 1 and block.endswith(f"\n{fence}")
    report = markdown(text, [Section("a", text, [Table(text, ["a"], [[text]])])])
    assert "<img" not in report and report.count("\n") == 9


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # tests/zoo sets it
    server = HubServer()
    with server.running():
        server.add_user("hf_anna", "anna")
        yield server


def test_a_text_gives_no_commands_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ["text"], [["[b]red\x1b[31m\x9b1m\x1b]0;title\x07\r"], ["two\nlines"]], title="[t]\x1b"
    )
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x9b", "\x07", "\r"} & {*shown} and "[b]red [31m 1m ]0;title" in shown
    assert shown.startswith("[t]") and re.search(r"two +│\n│ lines", shown)


def test_hostile_texts_go_to_the_hub_and_back(server: HubServer, tmp_path: Path) -> None:
    """The first publication and the next one, which merges the card that the first one left."""
    texts = [f"{text} It rained." for text in HOSTILE[:-2]]
    rows = [{"id": f"{i}: {text}", "sentences": [text]} for i, text in enumerate(texts)]
    rows = [{"group": "g", **row} for row in rows]
    card = Card("t", "a test", "none", {"id": "<img onerror=x>"}, "none")
    source = {"name": HOSTILE[0], "spec": f"text:{HOSTILE[2]}", "licence": "CC0-1.0"}
    source |= {"title": HOSTILE[1], "authors": [HOSTILE[6]], "description": HOSTILE[4]}
    said = {"title": HOSTILE[3], "description": HOSTILE[4]}
    stage = Stage("t", 1, "0" * 16, {}, {}, [source], build=HOSTILE[5], command="luigi\nrm", **said)

    def built(note: str) -> Path:
        folder = tmp_path / note / "data"
        with staged(folder) as partial, DatasetFolder(partial, "data", stage, card) as dataset:
            dataset.writer("default", "train", PERMUTED_DOCUMENTS).extend(rows)
            dataset.licences["CC0-1.0"] += len(rows)
            dataset.note(HOSTILE[1])
            dataset.note(note)
            dataset.rejects[HOSTILE[0]] += 1
            dataset.finish()
        return folder

    hub = Hub("hf_anna", endpoint=server.url, settings=PublishSettings(attempts=1))
    first = built("first")
    for status in ("published", "unchanged"):
        assert publish(first, "anna/data", hub=hub).status == status
    folder = built("second")
    assert publish(folder, "anna/data", hub=hub).status == "published"
    text = server.repository("anna/data").files["README.md"].data.decode()
    assert text.count(BEGIN) == text.count(END) == 1 and "evil" not in text.partition(END)[2]
    there = RepoCard(text)
    assert there.data.license == "cc0-1.0" and "configs" in there.data.to_dict()
    prose = re.sub(r"^(`{3,})[^\n]*\n.*?\n\1$", "", there.text, flags=re.M | re.S)
    for bad in ("<img", "<script", "](https://evil", "\n# evil", "\n# out"):
        assert bad not in prose, bad
    kept = json.loads((folder / "manifest.json").read_text())
    assert kept["sources"][0]["name"] == HOSTILE[0]


@pytest.mark.parametrize("language", ["<b>", "en\nlicense: mit", "x" * 50, "English!", "../en"])
def test_a_language_is_a_code(language: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = {"id": "a", "text": "Anna sang.", "language": "German"}
    lines = [good, {"id": "b", "text": "It rained.", "language": language}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    bad: list[str] = []
    found = list(open_source(f"jsonl:{path}", on_bad=lambda record: bad.append(record.reason)))
    assert [document.language for document in found] == ["de"]
    assert bad[0].startswith("bad language")
    with pytest.raises(ConfigError, match="is not a language code"):
        list(open_source(f"jsonl:{path}", {"language": language}))
