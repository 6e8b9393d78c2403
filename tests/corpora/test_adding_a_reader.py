"""The reader that docs/reference/sources.md shows is one, and so is a class of a plug-in."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from corpora import declared
from corpora.errors import BadRecord, ConfigError
from corpora.readers import open_source, parse_spec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "sources.md"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The page's file, and a folder for it to read."""
    page = PAGE.read_text(encoding="utf-8")
    (whole,) = [b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "(Reader)" in b]
    (tmp_path / "notes.py").write_text(whole, encoding="utf-8")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "mill.note").write_text("The mill\nIt turned.\n\nWe left.", encoding="utf-8")
    (folder / "void.note").write_text("A title alone", encoding="utf-8")
    return folder


def test_the_reader_of_the_page_reads(notes: Path) -> None:
    bad: list[BadRecord] = []
    spec = f"{notes.parent / 'notes.py'}:Notes:{notes}"
    (document,) = open_source(spec, on_bad=bad.append)
    assert (document.id, document.title, document.licence) == ("mill", "The mill", "CC0-1.0")
    assert document.text == "It turned.\n\nWe left." and len(document.paragraphs or ()) == 2
    assert document.source == "notes:texts"
    assert [Path(one.where).name for one in bad] == ["void.note"]
    (other,) = open_source(f"{spec}/mill.note", {"licence": "MIT", "encoding": "latin-1"})
    assert other.licence == "MIT"
    with pytest.raises(ConfigError, match="did you mean 'encoding'"):
        open_source(spec, {"encodng": "utf-8"})


def test_a_plugin_gives_its_reader_a_kind(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(notes.parent)
    entry = metadata.EntryPoint("scribbles", "notes:Notes", "discorpora.readers")
    monkeypatch.setattr(declared, "_entry_points", lambda group: (entry,))
    bad: list[BadRecord] = []
    for spec in (f"scribbles:{notes}", f"notes:Notes:{notes}"):
        assert [d.id for d in open_source(spec, on_bad=bad.append)] == ["mill"]
    sys.modules.pop("notes")


@pytest.mark.parametrize(
    ("method", "gave"),
    [
        ("read_file(self, path, stem, source): yield {'text': 'A.'}", "{'text': 'A.'}"),
        ("read_file(self, path, stem, source): pass", "None"),
        ("read(self, source): yield 'A.'", "'A.'"),
        ("read(self, source): return [Document(7, 'A.')]", r"Document\(id=7, "),
    ],
)
def test_a_reader_that_gives_no_document_is_named(tmp_path: Path, method: str, gave: str) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from corpora.document import Document\nfrom corpora.readers.source import Reader\n"
        f"class Own(Reader):\n    suffixes = ('.txt',)\n    def {method}\n",
        encoding="utf-8",
    )
    (tmp_path / "a.txt").touch()
    words = rf"own\.py:5: Own\.read\w* gave {gave}.*, expected a corpora\.document\.Document"
    with pytest.raises(ConfigError, match=words):
        list(open_source(f"{file}:Own:{tmp_path}"))


def test_a_reader_that_is_not_there_is_named(tmp_path: Path) -> None:
    for spec, words in (
        (f"{tmp_path}/gone.py:Notes:x", "no file '.*gone.py'"),
        ("corpora.readers.text:Txt:x", "has no class 'Txt'\n.*did you mean 'Text'"),
        ("corpora.document:Document:x", "is not a subclass of corpora.readers.source.Reader"),
    ):
        with pytest.raises(ConfigError, match=words):
            parse_spec(spec)
