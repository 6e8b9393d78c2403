"""DiscoEval's criteria: where each sentence stands, splits, that order changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from corpora.document import Sections
from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.tasks import BUILDERS
from tests.corpora.conftest import rows_of

ALL = {"train": 1, "validation": 0, "test": 0}


@pytest.fixture
def built(build):
    return partial(build, "criteria")


@pytest.fixture
def article(make_document):
    """Two paragraphs of three sentences in the lead, two in a subsection."""
    document = make_document("a", 3, 4, title="Mills")
    cut = document.text.index("\n\n", document.text.index("\n\n") + 1)
    sections = Sections([1, 3], ["", "Water"], [0, cut + 2], [cut, len(document.text)])
    return replace(document, sections=sections)


def test_levels_headings_and_positions_are_those_of_the_document(built, article):
    (row,) = rows_of(built([article], **ALL)[0])["train"]
    assert row["title"] == "Mills" and len(row["sentences"]) == 12
    assert row["level"] == [1] * 6 + [3] * 6
    assert [row["headings"][i] for i in row["section"]] == [""] * 6 + ["Water"] * 6
    assert row["paragraph"] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert row["sentence_position"] == [0, 1, 2] * 4
    assert row["sentence_bin"] == [0, 6, 13] * 4  # floor(20 * i / 3)
    assert row["paragraph_bin"] == [0] * 3 + [5] * 3 + [10] * 3 + [15] * 3


def test_the_number_of_bins_is_a_setting(built, article):
    (row,) = rows_of(built([article], bins=2, **ALL)[0])["train"]
    assert row["sentence_bin"] == [0, 0, 1] * 4 and set(row["paragraph_bin"]) == {0, 1}


def test_a_document_without_sections_is_all_lead(built, make_document):
    folder, manifest = built([make_document("a", 4)], **ALL)
    (row,) = rows_of(folder)["train"]
    assert row["level"] == [1] * 4 and row["headings"] == [""] and row["title"] == ""
    assert manifest["details"]["levels"] == {"1": 4}


def test_splits_share_no_document_and_order_changes_no_byte(built, make_document, folder_bytes):
    documents = [make_document(f"d{i}", 5) for i in range(40)]
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    one, _ = built(documents, "one", **shares)
    assert folder_bytes(one) == folder_bytes(built(documents[::-1], "two", **shares)[0])
    found = [{row["doc"] for row in rows} for rows in rows_of(one).values()]
    assert len(found) == 3 and sum(map(len, found)) == len(set.union(*found)) == 40


def test_short_documents_are_counted_and_settings_checked(built, make_document):
    _, manifest = built([make_document("a", 2), make_document("b", 4)], **ALL)
    assert manifest["rejects"] == {"too_few_sentences": 1}
    with pytest.raises(InputError, match="not one row"):
        built([make_document("a", 2)], "none", **ALL)
    for bad in ({"bins": 0}, {"bins": 200}, {"min_sentences": 0}):
        with pytest.raises(ConfigError):
            BUILDERS.find("criteria").of(bad)


def test_the_folder_loads(built, article, load):
    assert load(built([article], **ALL)[0])["train"][0]["level"][-1] == 3


def test_shared_articles_keep_their_headings(discorpora_data, built):
    spec = f"jsonl:{discorpora_data / 'wiki' / 'articles.jsonl'}"
    folder, _ = built(map(split_document, open_source(spec)), **ALL)
    rows = rows_of(folder)["train"]
    assert any(set(row["level"]) == {1, 2} for row in rows)
    assert all(len(row["level"]) == len(row["sentences"]) for row in rows)


def test_titles_and_headings_in_the_text_are_no_sentences(built):
    """SDT is to predict them: CoNLL-U has them as paragraphs of the text."""
    source = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour.conllu"
    harbour = next(iter(open_source(f"conllu:{source}", {"licence": "CC-BY-4.0"})))
    (row,) = rows_of(built([harbour], min_sentences=1, **ALL)[0])["train"]
    assert row["sentences"] == ["Don't go (yet).", "She sails and he rows.", "Vamos al mar."]
    assert [row["headings"][s] for s in row["section"]] == ["", "", "Boats"]
    assert row["paragraph"] == [0, 0, 1]


def test_a_layer_without_a_section_counts_as_none(built, make_document):
    plain = replace(make_document("a", 4), sections=Sections())
    (row,) = rows_of(built([plain], **ALL)[0])["train"]
    assert len(row["sentences"]) == 4 and set(row["level"]) == {1}
