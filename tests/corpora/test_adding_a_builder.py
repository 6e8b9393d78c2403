"""The builder that docs/how-to/add-a-stage.md shows is one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.publish import plan_publication
from corpora.sentences import split_document
from corpora.store.atomic import staged
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "add-a-stage.md"


@pytest.fixture
def builder(tmp_path: Path) -> str:
    """The page's class, in a file of one's own."""
    page = PAGE.read_text(encoding="utf-8")
    whole = next(b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "\nCARD = " in b)
    assert "openings.py:Openings" in page
    (tmp_path / "openings.py").write_text(whole, encoding="utf-8")
    return f"{tmp_path / 'openings.py'}:Openings"


def documents(licence: str = "CC0-1.0") -> list[Document]:
    short = Document("short", "The mill stood still.", licence="MIT")
    texts = [f"The mill of place {i} turned. It was {i} o'clock. We left {i}." for i in range(30)]
    made = [Document(f"d{i}", text, licence="CC0-1.0") for i, text in enumerate(texts)]
    made[7] = replace(made[7], licence=licence)
    return [split_document(document) for document in (short, *made)]


def test_the_builder_of_the_page_builds_a_dataset_that_loads(builder, build, load):
    folder, manifest = build(builder, documents())
    assert manifest["rejects"] == {"too_short": 1}
    assert manifest["licences"] == {"CC0-1.0": 60} and manifest["languages"] == ["en"]
    assert manifest["details"]["settings"]["min_sentences"] == 3
    assert BUILDERS.find(builder)().configurations() == ("default",)
    data = load(folder)
    assert {s: part.num_rows for s, part in data.items()} == {
        "train": 48,
        "validation": 6,
        "test": 6,
    }
    assert not set(data["train"]["doc"]) & set(data["test"]["doc"])
    first = [row["sentence"] for row in data["test"] if row["label"] == 1]
    assert len(first) == 3 and all(text.startswith("The mill of place") for text in first)


def test_its_settings_are_checked_before_anything_is_read(builder):
    with pytest.raises(ConfigError, match=r"min_sentences = 1: expected 2 or more"):
        BUILDERS.find(builder).of({"min_sentences": 1})
    with pytest.raises(ConfigError, match="unknown key 'min_sentence'; did you mean"):
        BUILDERS.find(builder).of({"min_sentence": 3})


@pytest.mark.parametrize(
    ("line", "wrong", "said"),
    [
        (
            "Candidate((text, int(number == 0)))",
            "Candidate((text,))",
            r"'openings': Candidate\(.*not a candidate\n.*se",
        ),
        (
            "Candidate((text, int(number == 0)))",
            "(text, 1)",
            r"'openings': \('The.*not a candidate\n.*sente",
        ),
        (
            "Candidate((text, int(number == 0)))",
            "{'sentence': text}",
            r"not a candidate\n.*sentence, l",
        ),
        ('equal = ("sentence",)', 'equal = ("sentense",)', "no column 'sentense'\n.*'sentence'"),
    ],
)
def test_a_mistake_in_it_is_said_in_its_own_words(line, wrong, said, builder, build):
    file = Path(builder.removesuffix(":Openings"))
    file.write_text(file.read_text("utf-8").replace(line, wrong), encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        build(builder, documents())


def test_it_keeps_the_licences_of_the_documents(builder, tmp_path, stage):
    """One document of thirty is closed: the dataset is, whatever the build file declares."""
    declared = replace(stage, sources=[{"spec": "jsonl:x", "licence": "CC0-1.0"}])
    with staged(tmp_path / "d") as partial:
        BUILDERS.find(builder)().build(documents("LDC"), Target(partial, declared, 1))
    assert not plan_publication(tmp_path / "d", "ana/openings").licence.redistributable
