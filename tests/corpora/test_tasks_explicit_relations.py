"""The builder `explicit_relations`: annotated relations, and those found in raw text."""

from __future__ import annotations

import pytest

from corpora.document import Document, Relation
from corpora.errors import ConfigError
from corpora.sentences import split_document
from corpora.tasks import BUILDERS
from extract.relations import ExplicitRelations
from tests.corpora.conftest import rows_of

RAW = (
    "The kiln cracked because the clay was wet. Mary wanted to sell it. However, nobody came. "
    "If the rain stops, then we repair the roof."
)
ALL_TRAIN = {"train": 1.0, "validation": 0.0, "test": 0.0}


def documents() -> list[Document]:
    text = "The lamp went out because the oil was gone. It was cold."
    spans = ((18, 25),), ((0, 17),), ((26, 42),)
    relations = [
        Relation("Explicit", "because", *spans, ("Contingency.Cause.Reason",)),
        Relation("Implicit", "so", (), ((0, 42),), ((44, 55),), ("Contingency.Cause",)),
    ]
    annotated = Document("a", text, licence="CC-BY-4.0", relations=relations)
    raw = Document("b", RAW, licence="CC-BY-4.0")
    return [split_document(annotated), split_document(raw)]


def test_gold_and_predicted_relations_become_rows(build) -> None:
    folder, _ = build("explicit_relations", documents(), min_count=1, **ALL_TRAIN)
    rows = {(r["doc"], r["connective"]): r for r in rows_of(folder)["train"]}
    gold = rows["a", "because"]
    assert (gold["s1"], gold["s2"]) == ("The lamp went out", "the oil was gone")
    assert (gold["origin"], gold["confidence"]) == ("gold", None)
    assert gold["sense"] == "Contingency.Cause"
    found = rows["b", "because"]
    assert (found["s1"], found["s2"]) == ("The kiln cracked", "the clay was wet")
    assert found["origin"] == "predicted" and 0.5 < found["confidence"] <= 1
    assert found["sense"] == "Contingency.Cause"
    assert ("b", "however") in rows
    assert {doc for doc, _ in rows} == {"a", "b"}


def test_any_connective_may_be_a_label(build, load) -> None:
    settings = {"markers": "however,because", "min_count": 1, **ALL_TRAIN}
    folder, _ = build("explicit_relations", documents(), **settings)
    rows = rows_of(folder)["train"]
    assert {row["connective"] for row in rows} == {"however", "because"}
    names = load(folder)["train"].features["label"].names
    assert names == ["however", "because"]
    assert all(names[row["label"]] == row["connective"] for row in rows)


def test_wrong_settings_and_other_languages_are_errors(build) -> None:
    builder = BUILDERS.find("explicit_relations")
    assert builder is ExplicitRelations
    with pytest.raises(ConfigError, match="no connective 'howevr'"):
        builder.of({"markers": "howevr"})
    spanish = split_document(Document("c", "Llueve, pero salimos.", language="es"))
    with pytest.raises(ConfigError, match="English only, not 'es'"):
        build("explicit_relations", [spanish], **ALL_TRAIN)
