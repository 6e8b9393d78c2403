"""The builder that docs/adding-a-stage.md shows is one."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import corpora.tasks
from corpora.document import Document
from corpora.publish import plan_publication
from corpora.sentences import split_document
from corpora.store.atomic import staged
from corpora.tasks import BUILDERS, Builder, find_builder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-stage.md"


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    """The page's module beside those of corpora/tasks, and its line in their list."""
    page = PAGE.read_text(encoding="utf-8")
    whole = next(b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "\nCARD = " in b)
    line = re.search(r'Builder\("openings", "openings"\)', page)
    assert line and "count_licences" in whole
    (tmp_path / "openings.py").write_text(whole, encoding="utf-8")
    monkeypatch.setattr(corpora.tasks, "__path__", [*corpora.tasks.__path__, str(tmp_path)])
    monkeypatch.setitem(BUILDERS, "openings", Builder("openings", "openings"))
    yield find_builder("openings")
    sys.modules.pop("corpora.tasks.openings", None)


def documents(licence: str = "CC0-1.0") -> list[Document]:
    short = Document("short", "The mill stood still.", licence="MIT")
    texts = [f"The mill of place {i} turned. It was {i} o'clock. We left {i}." for i in range(30)]
    made = [Document(f"d{i}", text, licence="CC0-1.0") for i, text in enumerate(texts)]
    made[7] = replace(made[7], licence=licence)
    return [split_document(document) for document in (short, *made)]


def test_the_builder_of_the_page_builds_a_dataset_that_loads(builder, tmp_path, stage, load):
    folder = tmp_path / "openings-made"
    with staged(folder) as partial:
        manifest = builder.build(documents(), partial, builder.settings(), seed=1, stage=stage)
    assert manifest["rejects"] == {"too_short": 1}
    assert manifest["licences"] == {"CC0-1.0": 30} and manifest["languages"] == ["en"]
    assert manifest["details"]["settings"]["min_sentences"] == 3
    assert builder.configurations(builder.settings()) == ("default",)
    data = load(folder)
    assert {s: part.num_rows for s, part in data.items()} == {
        "train": 48,
        "validation": 6,
        "test": 6,
    }
    assert not set(data["train"]["doc"]) & set(data["test"]["doc"])
    first = [row["sentence"] for row in data["test"] if row["label"] == 1]
    assert len(first) == 3 and all(text.startswith("The mill of place") for text in first)


def test_it_keeps_the_licences_of_the_documents(builder, tmp_path, stage):
    """One document of thirty is closed: the dataset is, whatever the build file declares."""
    declared = replace(stage, sources=[{"spec": "jsonl:x", "licence": "CC0-1.0"}])
    with staged(tmp_path / "d") as partial:
        builder.build(documents("LDC"), partial, builder.settings(), seed=1, stage=declared)
    assert not plan_publication(tmp_path / "d", "ana/openings").licence.redistributable
