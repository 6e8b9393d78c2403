"""CONPONO's paragraphs and the criteria's places: rules, bounds, splits, the order of documents."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from corpora.document import Sections
from corpora.errors import InputError
from corpora.readers import open_source
from corpora.sentences import split_document
from tests.corpora.conftest import rows_of

ALL = {"train": 1, "validation": 0, "test": 0}


@pytest.fixture
def conpono(build):
    return partial(build, "conpono")


@pytest.fixture
def criteria(build):
    return partial(build, "criteria")


@pytest.fixture
def article(make_document):
    """Two paragraphs of three sentences in the lead, two in a subsection."""
    document = make_document("a", 3, 4, title="Mills")
    return replace(document, sections=halves(document.text, 3, "Water"))


def halves(text: str, level: int, heading: str) -> Sections:
    """The first two paragraphs as the lead, the others below a heading."""
    cut = text.index("\n\n", text.index("\n\n") + 1)
    return Sections([1, level], ["", heading], [0, cut + 2], [cut, len(text)])


def lengths(row: dict) -> list[int]:
    assert row["bounds"][0] == 0 and row["bounds"][-1] == len(row["sentences"])
    return [b - a for a, b in zip(row["bounds"], row["bounds"][1:], strict=False)]


@pytest.mark.parametrize("builder", ["conpono", "criteria"])
def test_titles_and_headings_in_the_text_are_no_sentences(build, builder):
    """SDT is to predict them: CoNLL-U has them as paragraphs of the text."""
    source = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour.conllu"
    harbour = next(iter(open_source(f"conllu:{source}", {"licence": "CC-BY-4.0"})))
    more = {"merge_above": 5} if builder == "conpono" else {}
    (row,) = rows_of(build(builder, [harbour], min_sentences=1, **more, **ALL)[0])["train"]
    assert row["sentences"] == ["Don't go (yet).", "She sails and he rows.", "Vamos al mar."]
    if builder == "conpono":
        assert lengths(row) == [2, 1]
    else:
        assert [row["headings"][s] for s in row["section"]] == ["", "", "Boats"]
        assert row["paragraph"] == [0, 0, 1]


def test_short_paragraphs_are_dropped(conpono, make_document):
    documents = [make_document("long", 9, 3), make_document("short", 7, 3)]
    folder, manifest = conpono(documents, **ALL)
    (row,) = rows_of(folder)["train"]
    assert (row["doc"], lengths(row)) == ("long", [9, 9, 9])
    assert manifest["rejects"] == {"paragraph_too_short": 3}
    assert " ".join(row["sentences"]) == " ".join(documents[0].text.split())
    with pytest.raises(InputError, match="not one row"):
        conpono([make_document("d", 3)], "none", **ALL)


def test_paragraphs_are_joined_until_there_are_more_than_ten_sentences(
    conpono, make_document, load
):
    folder, manifest = conpono([make_document("d", 4, 8)], merge_above=10, **ALL)
    assert lengths(rows_of(folder)["train"][0]) == [12, 12, 8]
    assert manifest["details"]["paragraphs"]["train"] == 3
    assert load(folder)["train"][0]["bounds"] == [0, 12, 24, 32]


def test_nothing_is_joined_over_a_section(conpono, make_document):
    document = make_document("d", 5, 4)
    document = replace(document, sections=halves(document.text, 2, "More"))
    folder, _ = conpono([document], merge_above=14, **ALL)
    assert lengths(rows_of(folder)["train"][0]) == [10, 10]


def test_levels_headings_and_positions_are_those_of_the_document(criteria, article, load):
    folder, _ = criteria([article], **ALL)
    (row,) = rows_of(folder)["train"]
    assert row["title"] == "Mills" and len(row["sentences"]) == 12
    assert row["level"] == [1] * 6 + [3] * 6
    assert [row["headings"][i] for i in row["section"]] == [""] * 6 + ["Water"] * 6
    assert row["paragraph"] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert row["sentence_position"] == [0, 1, 2] * 4
    assert row["sentence_bin"] == [0, 6, 13] * 4  # floor(20 * i / 3)
    assert row["paragraph_bin"] == [0] * 3 + [5] * 3 + [10] * 3 + [15] * 3
    assert load(folder)["train"][0]["level"][-1] == 3


def test_the_number_of_bins_is_a_setting(criteria, article):
    (row,) = rows_of(criteria([article], bins=2, **ALL)[0])["train"]
    assert row["sentence_bin"] == [0, 0, 1] * 4 and set(row["paragraph_bin"]) == {0, 1}


@pytest.mark.parametrize("sections", [None, Sections()])
def test_a_document_without_sections_is_all_lead(criteria, make_document, sections):
    folder, manifest = criteria([replace(make_document("a", 4), sections=sections)], **ALL)
    (row,) = rows_of(folder)["train"]
    assert row["level"] == [1] * 4 and row["headings"] == [""] and row["title"] == ""
    assert len(row["sentences"]) == 4 and manifest["details"]["levels"] == {"1": 4}


def test_short_documents_are_counted(criteria, make_document):
    _, manifest = criteria([make_document("a", 2), make_document("b", 4)], **ALL)
    assert manifest["rejects"] == {"too_few_sentences": 1}
    with pytest.raises(InputError, match="not one row"):
        criteria([make_document("a", 2)], "none", **ALL)


def test_shared_articles_keep_their_headings(discorpora_data, criteria):
    spec = f"jsonl:{discorpora_data / 'wiki' / 'articles.jsonl'}"
    folder, _ = criteria(map(split_document, open_source(spec)), **ALL)
    rows = rows_of(folder)["train"]
    assert any(set(row["level"]) == {1, 2} for row in rows)
    assert all(len(row["level"]) == len(row["sentences"]) for row in rows)
