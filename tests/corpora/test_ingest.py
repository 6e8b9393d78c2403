"""The first stage: documents, counts, and bad records apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpora.errors import InputError
from corpora.ingest import check_bad_share, ingest
from corpora.readers.source import Source
from corpora.store.documents import iter_documents

ROWS = (
    '{"id": "a", "text": "One two.\\n\\nThree."}\n'
    '{"id": "b", "text": "  "}\n'
    "{broken\n"
    '{"id": "c", "text": "Four.", "licence": "MIT"}\n'
)


def test_bad_records_are_counted_and_kept(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(ROWS, encoding="utf-8")
    folder = tmp_path / "out"
    folder.mkdir()
    for _ in range(2):  # a run that goes on keeps no rejects twice
        counts = ingest(
            f"jsonl:{tmp_path / 'x.jsonl'}", {"licence": "CC0-1.0"}, folder, max_bad_share=0.5
        )
        lines = (folder / "rejects" / "records.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["where"][-2:] for line in lines] == [":2", ":3"]
    assert counts == {
        "documents": 2,
        "paragraphs": 3,
        "words": 4,
        "licences": {"CC0-1.0": 1, "MIT": 1},
        "bad_records": 2,
        "bad_reasons": {"no text": 1, "not JSON": 1},
        "no_documents": {},
    }
    assert [document.id for document in iter_documents(folder)] == ["a", "c"]


def test_more_bad_records_than_allowed_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(ROWS, encoding="utf-8")
    with pytest.raises(InputError, match=r"2 bad records beside 2 good .*x\.jsonl:2: no text"):
        ingest(f"jsonl:{tmp_path / 'x.jsonl'}", {}, tmp_path, max_bad_share=0.4)
    with pytest.raises(InputError, match=r"a share of 0\.0001 where 0\.0 is allowed"):
        check_bad_share("text:x", Source("text", "x", [], good=9_999, bad=1), 0.0)


def test_a_source_without_bad_records_has_no_rejects(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("Text.", encoding="utf-8")
    assert ingest(f"text:{tmp_path / 'x.txt'}", {}, tmp_path)["bad_records"] == 0
    assert not (tmp_path / "rejects").exists()


def test_a_file_in_another_encoding_says_how_to_name_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("We left.", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("Café.".encode("latin-1"))
    with pytest.raises(InputError, match=r"not UTF-8.*\n.*options = \{ encoding = .latin-1. \}"):
        ingest(f"text:{tmp_path}", {}, tmp_path / "out", max_bad_share=0.4)


def test_only_what_was_passed_over_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.ascii.txt").write_text("[10:00] <ann> One.\n=== bo joined\n", encoding="utf-8")
    for system, named in ((True, {}), (False, {"system message": 1})):
        folder = tmp_path / str(system)
        folder.mkdir()
        counts = ingest(f"irc:{tmp_path / 'x.ascii.txt'}", {"system": system}, folder)
        assert counts["no_documents"] == named
