"""What the tests of readers and builders share: documents, pairs, a stage, a private cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpora import audit
from corpora.document import Document
from corpora.sentences import split_document
from corpora.splits.division import Division
from corpora.store.atomic import staged
from corpora.store.folder import Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

SUBJECTS = ["The miller", "A tall boat", "Her brother", "This old map", "The second train"]
VERBS = ["carried", "forgot", "followed", "painted", "sold", "counted", "lost"]
OBJECTS = ["the keys to the barn", "nine heavy stones", "a letter from the coast", "some bread"]


def sentence(number: int, name: str = "") -> str:
    """A sentence that differs for each number and name."""
    subject, verb = SUBJECTS[number % 5], VERBS[number % 7]
    return f"{subject} {verb} {OBJECTS[number % 4]} on day {number} of {name or 'May'}."


def write_jsonl(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def paragraphs(document: Document) -> list[str]:
    assert document.paragraphs is not None
    return [document.text[a:b] for a, b in document.paragraphs]


def sections(document: Document) -> list[tuple[int, str, str]]:
    """The level, the heading and the text of each section."""
    layer = document.sections
    assert layer is not None
    rows = zip(layer.level, layer.heading, layer.start, layer.end, strict=True)
    return [(level, heading, document.text[a:b]) for level, heading, a, b in rows]


@pytest.fixture
def make_document() -> Callable[..., Document]:
    """Documents of numbered sentences: `sentences` a paragraph, `paragraphs` of them."""

    def make(
        name: str, sentences: int = 5, paragraphs: int = 1, group: str = "", **fields: Any
    ) -> Document:
        texts = [sentence(i, name) for i in range(sentences * paragraphs)]
        blocks = [texts[i : i + sentences] for i in range(0, len(texts), sentences)]
        text = "\n\n".join(" ".join(block) for block in blocks)
        fields = {"licence": "CC-BY-4.0", **fields}
        return split_document(Document(id=name, text=text, group=group, **fields))

    return make


@pytest.fixture
def stage() -> Stage:
    return Stage("sample-stage", 1, "0012e5", {"size": 3}, {}, [{"spec": "text:x"}])


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    """`datasets.load_dataset` of a folder, with a cache of this test's own."""
    import datasets

    datasets.disable_progress_bars()

    def load(folder: Path, config: str | None = None) -> Any:
        return datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "hub-cache"))

    return load


@pytest.fixture
def folder_bytes() -> Callable[[Path], dict[str, bytes]]:
    """All files under a folder, by relative name."""

    def read(folder: Path) -> dict[str, bytes]:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return read


Built = tuple[Path, dict[str, Any]]


@pytest.fixture
def small_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits read a tenth of the rows that they read elsewhere (`test_audit.py`)."""
    monkeypatch.setattr(audit, "TRAIN", audit.TRAIN // 10)
    monkeypatch.setattr(audit, "TEST", audit.TEST // 10)


@pytest.fixture
def build(tmp_path: Path, stage: Stage, small_audits: None) -> Callable[..., Built]:
    """Builds a dataset of that name with some settings; gives its folder and the manifest."""

    def build(
        builder: str,
        inputs: Iterable[Any],
        name: str = "x",
        *,
        seed: int = 1,
        division: Division | None = None,
        **settings: Any,
    ) -> Built:
        chosen = BUILDERS.find(builder).of(settings)
        folder = tmp_path / name / "data"
        with staged(folder) as partial:
            return folder, chosen.build(inputs, Target(partial, stage, seed, division))

    return build


def rows_of(folder: Path, config: str = "default") -> dict[str, list[dict[str, Any]]]:
    """The rows of each split that has some."""
    files = sorted(folder.glob(f"{config}/*.parquet"))
    return {file.name.split("-")[0]: pq.read_table(file).to_pylist() for file in files}
