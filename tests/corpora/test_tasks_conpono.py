"""CONPONO: the two rules for paragraphs, bounds, splits, that order changes nothing."""

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


@pytest.fixture
def built(build):
    return partial(build, "conpono")


ALL = {"train": 1, "validation": 0, "test": 0}


def lengths(row: dict) -> list[int]:
    assert row["bounds"][0] == 0 and row["bounds"][-1] == len(row["sentences"])
    return [b - a for a, b in zip(row["bounds"], row["bounds"][1:], strict=False)]


def test_short_paragraphs_are_dropped(built, make_document):
    documents = [make_document("long", 9, 3), make_document("short", 7, 3)]
    folder, manifest = built(documents, **ALL)
    (row,) = rows_of(folder)["train"]
    assert (row["doc"], lengths(row)) == ("long", [9, 9, 9])
    assert manifest["rejects"] == {"paragraph_too_short": 3}
    text = " ".join(documents[0].text.split())
    assert " ".join(row["sentences"]) == text


def test_paragraphs_are_joined_until_there_are_more_than_ten_sentences(built, make_document):
    folder, manifest = built([make_document("d", 4, 8)], merge_above=10, **ALL)
    assert lengths(rows_of(folder)["train"][0]) == [12, 12, 8]
    assert manifest["details"]["paragraphs"]["train"] == 3
    folder, _ = built([make_document("d", 11, 2)], "whole", merge_above=10, **ALL)
    assert lengths(rows_of(folder)["train"][0]) == [11, 11]


def test_nothing_is_joined_over_a_section(built, make_document):
    document = make_document("d", 5, 4)
    cut = document.text.index("\n\n", document.text.index("\n\n") + 1)
    ends = [cut, len(document.text)]
    sections = Sections([1, 2], ["", "More"], [0, cut + 2], ends)
    folder, _ = built([replace(document, sections=sections)], merge_above=14, **ALL)
    assert lengths(rows_of(folder)["train"][0]) == [10, 10]


def test_splits_share_no_document_and_order_changes_no_byte(built, make_document, folder_bytes):
    documents = [make_document(f"d{i}", 9, group=f"book{i % 12}") for i in range(36)]
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    one, manifest = built(documents, "one", **shares)
    two, _ = built(documents[::-1], "two", **shares)
    assert folder_bytes(one) == folder_bytes(two)
    found = [{row["doc"] for row in rows} for rows in rows_of(one).values()]
    assert len(found) == 3 and sum(map(len, found)) == len(set.union(*found)) == 36
    assert set(manifest["overlap"]["default"].values()) == {0}


def test_the_folder_loads(built, make_document, load):
    data = load(built([make_document("d", 9, 2)], **ALL)[0])
    assert data["train"][0]["bounds"] == [0, 9, 18]


def test_nothing_long_enough_is_an_error_and_settings_are_checked(built, make_document):
    with pytest.raises(InputError, match="not one row"):
        built([make_document("d", 3)], **ALL)
    for bad in ({"merge_above": -1}, {"min_sentences": 0}):
        with pytest.raises(ConfigError):
            BUILDERS.find("conpono").of(bad)


def test_the_sample_gives_rows(built):
    documents = map(split_document, open_source("sample:articles"))
    folder, _ = built(documents, merge_above=10, **ALL)
    assert all(min(lengths(row)) >= 8 for row in rows_of(folder)["train"])


def test_titles_and_headings_in_the_text_are_in_no_paragraph(built):
    source = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour.conllu"
    harbour = next(iter(open_source(f"conllu:{source}", {"licence": "CC-BY-4.0"})))
    (row,) = rows_of(built([harbour], min_sentences=1, merge_above=5, **ALL)[0])["train"]
    assert row["sentences"] == ["Don't go (yet).", "She sails and he rows.", "Vamos al mar."]
    assert lengths(row) == [2, 1]
