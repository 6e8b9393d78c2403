"""The reader that docs/sources.md shows is one."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import corpora.readers
from corpora.errors import BadRecord, ConfigError
from corpora.readers import READERS, open_source
from corpora.readers.registry import _of_files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sources.md"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's module beside those of corpora/readers, its line in their list, and a folder."""
    page = PAGE.read_text(encoding="utf-8")
    (whole,) = [b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "def read(" in b]
    assert '_of_files("notes", "notes with a title", notes)' in page
    (tmp_path / "notes.py").write_text(whole, encoding="utf-8")
    monkeypatch.setattr(corpora.readers, "__path__", [*corpora.readers.__path__, str(tmp_path)])
    module = import_module("corpora.readers.notes")
    monkeypatch.setitem(READERS, "notes", _of_files("notes", "notes with a title", module))
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "mill.note").write_text("The mill\nIt turned.\n\nWe left.", encoding="utf-8")
    (folder / "void.note").write_text("A title alone", encoding="utf-8")
    yield folder
    sys.modules.pop("corpora.readers.notes", None)


def test_the_reader_of_the_page_reads(notes: Path) -> None:
    bad: list[BadRecord] = []
    (document,) = open_source(f"notes:{notes}", on_bad=bad.append)
    assert (document.id, document.title, document.licence) == ("mill", "The mill", "CC0-1.0")
    assert document.text == "It turned.\n\nWe left." and len(document.paragraphs) == 2
    assert [Path(one.where).name for one in bad] == ["void.note"]
    (bare,) = open_source(str(notes / "mill.note"), {"licence": "MIT", "encoding": "latin-1"})
    assert bare.licence == "MIT"


def test_its_options_are_checked(notes: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'encoding'"):
        open_source(f"notes:{notes}", {"encodng": "utf-8"})
