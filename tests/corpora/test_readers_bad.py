"""Bad input, as the table in docs/sources.md has it: refused with its place, or counted apart."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from corpora.errors import BadRecord, InputError
from corpora.readers import files, open_source
from corpora.readers.source import BAD_FROM_THE_START

NAMES = {"text": "x.txt", "jsonl": "x.jsonl", "conllu": "x.conllu"}
GOOD = {
    "text": b"A good text.\n",
    "jsonl": b'{"id": "good", "text": "A good text."}\n',
    "conllu": b"# newdoc id = good\n1\tGood\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
}
WRONG_FORMAT = {
    "parquet": b"PAR1\x15\x04\x15\x00" * 10,
    "zip": b"PK\x03\x04" + bytes(40),
    "bzip2": b"BZh91AY&SY",
    "gzip": gzip.compress(b"text"),
    "pdf": b"%PDF-1.7\n",
    "binary": b"ab\x00\x01\x02",
    "utf-16": "text".encode("utf-16"),
}


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str, bytes], str]:
    def write(kind: str, content: bytes) -> str:
        (tmp_path / NAMES[kind]).write_bytes(content)
        return f"{kind}:{tmp_path / NAMES[kind]}"

    return write


Write = Callable[[str, bytes], str]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("content", [b"", b"\n\n  \n"], ids=["empty", "blank"])
def test_an_empty_file_is_an_error(kind: str, content: bytes, source: Write) -> None:
    for on_bad in (None, list[BadRecord]().append):
        with pytest.raises(InputError, match=r"no document|no text"):
            list(open_source(source(kind, content), on_bad=on_bad))


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("content", WRONG_FORMAT.values(), ids=WRONG_FORMAT.keys())
def test_another_format_under_the_name_is_an_error(
    kind: str, content: bytes, source: Write
) -> None:
    with pytest.raises(InputError, match=NAMES[kind].replace(".", r"\.")):
        list(open_source(source(kind, content), on_bad=list[BadRecord]().append))


@pytest.mark.parametrize("kind", ["jsonl", "conllu"])
def test_prose_under_the_name_is_an_error_soon(kind: str, source: Write) -> None:
    bad: list[BadRecord] = []
    with pytest.raises(InputError):
        list(open_source(source(kind, b"It was a dark night.\n\n" * 10_000), on_bad=bad.append))
    assert len(bad) <= BAD_FROM_THE_START


@pytest.mark.parametrize("kind", NAMES)
def test_a_truncated_archive_is_an_error(kind: str, source: Write, tmp_path: Path) -> None:
    whole = gzip.compress(GOOD[kind] + bytes(range(32, 127)) * 200)
    path = tmp_path / f"{NAMES[kind]}.gz"
    path.write_bytes(whole[:-12])
    with pytest.raises(InputError, match="ends too early"):
        list(open_source(f"{kind}:{path}", on_bad=list[BadRecord]().append))
    path.write_bytes(b"no archive at all")
    with pytest.raises(InputError, match="damaged"):
        list(open_source(f"{kind}:{path}", on_bad=list[BadRecord]().append))


def record(**fields: object) -> bytes:
    return json.dumps(fields).encode()


BAD_RECORDS = {
    "broken JSON": (b'{"id": "x", "text": ', "not JSON"),
    "two objects": (b'{"text": "a"} {"text": "b"}', "not JSON"),
    "no object": (b'["a", "b"]', "not an object"),
    "a number": (b"3", "not an object"),
    "nested": (b"[" * 1_000_000, "JSON too deep"),
    "huge number": (b'{"text": ' + b"9" * 5_000 + b"}", "not JSON"),
    "wrong encoding": ('{"text": "caf\xe9"}'.encode("latin-1"), "not UTF-8"),
    "no text": (record(id="x"), "no text"),
    "blank text": (record(id="x", text=" \n\t"), "no text"),
    "null text": (record(id="x", text=None), "no text"),
    "text of another type": (record(id="x", text=["a", 1]), "wrong type"),
    "id of another type": (record(id={"a": 1}, text="Text."), "wrong type"),
    "id with ..": (record(id="../../etc/passwd", text="Text."), "bad id"),
    "id with .. and \\": (record(id="a\\..\\b", text="Text."), "bad id"),
    "absolute id": (record(id="/etc/passwd", text="Text."), "bad id"),
    "id with a line break": (record(id="a\nb", text="Text."), "bad id"),
    "long id": (record(id="a" * 1000, text="Text."), "bad id"),
    "half a surrogate pair": (b'{"id": "x", "text": "\\ud83d"}', "not text"),
    "half a pair in the title": (b'{"id": "x", "text": "a", "title": "\\udc00"}', "not text"),
}


@pytest.mark.parametrize(("line", "reason"), BAD_RECORDS.values(), ids=BAD_RECORDS.keys())
def test_one_bad_record_among_good_ones(line: bytes, reason: str, source: Write) -> None:
    spec = source("jsonl", GOOD["jsonl"] + line + b"\n" + GOOD["jsonl"].replace(b'"good', b'"fine'))
    bad: list[BadRecord] = []
    assert [d.id for d in open_source(spec, on_bad=bad.append)] == ["good", "fine"]
    assert len(bad) == 1
    assert bad[0].where.endswith("x.jsonl:2")
    assert bad[0].reason.partition(":")[0] == reason
    assert len(bad[0].value) <= 200
    with pytest.raises(InputError, match=r"x\.jsonl:2: "):
        list(open_source(spec))


BAD_ARTICLES = {
    "no section with text": [{"heading": "A", "paragraphs": []}],
    "sections are strings": ["A", "B"],
    "a level of words": [{"heading": "A", "level": "two", "paragraphs": ["Text."]}],
    "a heading of another type": [{"heading": 3.5, "paragraphs": ["Text."]}],
    "paragraphs are objects": [{"heading": "A", "paragraphs": [{"text": "Text."}]}],
}


@pytest.mark.parametrize("sections", BAD_ARTICLES.values(), ids=BAD_ARTICLES.keys())
def test_a_bad_article_is_counted(sections: object, source: Write) -> None:
    good = record(id="good", sections=[{"heading": "", "paragraphs": ["Text."]}])
    spec = source("jsonl", record(id="bad", sections=sections) + b"\n" + good)
    bad: list[BadRecord] = []
    assert [d.id for d in open_source(spec, on_bad=bad.append)] == ["good"]
    assert len(bad) == 1


@pytest.mark.parametrize("kind", NAMES)
def test_an_absurdly_long_line_is_refused_in_bounded_memory(
    kind: str, source: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(files, "LINE_LIMIT", 4 << 20)
    spec = source(kind, b"")
    with (tmp_path / NAMES[kind]).open("wb") as file:
        file.write(GOOD[kind])
        for _ in range(32):
            file.write(b"x" * (1 << 20))
        file.write(b"\n\n" + GOOD[kind].replace(b"good", b"fine"))
    bad: list[BadRecord] = []
    tracemalloc.start()
    found = [d.id for d in open_source(spec, on_bad=bad.append)] if kind != "text" else []
    if kind == "text":
        with pytest.raises(InputError, match="line too long"):
            list(open_source(spec))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    if kind == "jsonl":
        assert found == ["good", "fine"]
    assert all("line too long" in record.reason for record in bad)


def test_wrong_encoding_of_a_text_names_the_place(source: Write) -> None:
    spec = source("text", "First.\n\nCaf\xe9.\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"x\.txt:3: not UTF-8: byte 0xe9 at column 4"):
        list(open_source(spec))


def test_a_bad_file_among_good_ones_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("caf\xe9".encode("latin-1"))
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.txt").write_bytes(b"Good.")
    bad: list[BadRecord] = []
    assert [d.id for d in open_source(f"text:{tmp_path}", on_bad=bad.append)] == ["c"]
    assert [b.reason.partition(":")[0] for b in bad] == ["not UTF-8", "no text"]


def test_text_in_every_script_is_kept(source: Write) -> None:
    odd = (
        "Emoji \U0001f469\u200d\U0001f467, zero\u200bwidth, \u202eright to left\u202c, שלום, "
        "e\u0301, \ufffd and \u00a0nbsp"
    )
    spec = source("jsonl", json.dumps({"id": "x", "text": odd}).encode())
    (document,) = open_source(spec)
    assert document.text == odd


def test_an_unreadable_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    path.write_text("Text.", encoding="utf-8")

    def denied(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InputError, match=r"x\.txt: cannot read: Permission denied"):
        list(open_source(f"text:{path}"))


def test_a_source_of_bad_records_alone_says_the_reason_and_the_place(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("First.\n\nCaf\xe9.\n".encode("latin-1"))
    bad: list[BadRecord] = []
    with pytest.raises(InputError) as caught:
        list(open_source(f"text:{tmp_path}", on_bad=bad.append))
    only = r"no document in it: its only record is bad: .*x\.txt:3: not UTF-8: byte 0xe9"
    assert caught.match(rf"^text:.*{only}")
    (tmp_path / "y.txt").write_bytes(b"")
    with pytest.raises(InputError, match=r"all 2 records are bad, the first one: .*x\.txt:3: not"):
        list(open_source(f"text:{tmp_path}", on_bad=bad.append))


def test_gold_without_its_text_is_named_where_it_is_all_there_is(tmp_path: Path) -> None:
    for part in ("gold", "raw"):
        (tmp_path / part / "00").mkdir(parents=True)
    (tmp_path / "gold" / "00" / "a").write_text("Explicit\n", encoding="utf-8")
    (tmp_path / "raw" / "00" / "b").write_text("Text.", encoding="utf-8")
    with pytest.raises(InputError, match=r"its only record is bad: .*raw/00/a: the raw text of"):
        list(open_source(f"pdtb:{tmp_path}", on_bad=list[BadRecord]().append))


def test_a_source_of_what_is_no_document_says_what_was_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "SSP" / "abs"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("1\tWe say.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"passed over: file of SSP \(1\)"):
        list(open_source(f"discoeval:{tmp_path}"))
    assert "SSP/abs/train.txt: left out: the examples of SSP are single sentences" in caplog.text
