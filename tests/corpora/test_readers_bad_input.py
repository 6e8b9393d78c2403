"""Bad input to the readers: which reason it gets, and where. The outcome of every reader and case
is tried in `test_bad_input`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import BadRecord, InputError
from corpora.readers import open_source
from corpora.readers.source import BAD_FROM_THE_START
from tests.corpora.test_bad_input import KINDS

FOREIGN = {
    "parquet": b"PAR1\x15\x04\x15\x00" * 10,
    "zip": b"PK\x03\x04" + bytes(40),
    "bzip2": b"BZh91AY&SY",
    "gzip": gzip.compress(b"text"),
    "pdf": b"%PDF-1.7\n",
    "binary": b"ab\x00\x01\x02",
    "utf-16": "text".encode("utf-16"),
}
ONE_FILE = [name for name, kind in KINDS.items() if not kind.beside]


def write(path: Path, kind: str, content: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"{kind.partition(' ')[0]}:{path}"


def read(spec: str) -> tuple[list[str], list[BadRecord]]:
    bad: list[BadRecord] = []
    return [d.id for d in open_source(spec, on_bad=bad.append)], bad


@pytest.mark.parametrize("kind", ONE_FILE)
def test_a_blank_file_is_an_error(kind: str, tmp_path: Path) -> None:
    spec = write(tmp_path / KINDS[kind].name.format(0), kind, b"\n\n  \n")
    for on_bad in (None, list[BadRecord]().append):
        with pytest.raises(InputError):
            list(open_source(spec, on_bad=on_bad))


@pytest.mark.parametrize("kind", ONE_FILE)
def test_every_other_format_under_the_name_is_an_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / KINDS[kind].name.format(0)
    for content in FOREIGN.values():
        with pytest.raises(InputError, match=path.name.replace(".", r"\.")):
            read(write(path, kind, content))


@pytest.mark.parametrize(
    "kind", ["jsonl", "conllu", "arxiv", "discoeval", "coherence (.jsonl)", "irc"]
)
def test_prose_under_the_name_is_an_error_soon(kind: str, tmp_path: Path) -> None:
    bad: list[BadRecord] = []
    prose = b"It was a dark night.\n\n" * 10_000
    spec = write(tmp_path / KINDS[kind].name.format(0), kind, prose)
    with pytest.raises(InputError, match=r"bad|word number|columns"):
        list(open_source(spec, on_bad=bad.append))
    assert len(bad) <= BAD_FROM_THE_START


@pytest.mark.parametrize("between", ["", ",\n"])
def test_a_json_list_is_no_json_lines(between: str, tmp_path: Path) -> None:
    """Of such a list only the last line is an object: the others have a comma behind it."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'[\n{{"id": "a", "text": "One."}}{between or ", "}{{"text": "Two."}}\n]')
    with pytest.raises(InputError, match="a JSON list, expected JSON Lines") as error:
        list(open_source(f"jsonl:{path}", on_bad=list[BadRecord]().append))
    assert error.value.where == f"{path}:1" and "jq -c" in (error.value.hint or "")


def test_an_archive_that_is_none_is_damaged(tmp_path: Path) -> None:
    for kind in ("text", "jsonl", "conllu"):
        path = tmp_path / f"{KINDS[kind].name.format(0)}.gz"
        with pytest.raises(InputError, match="damaged"):
            read(write(path, kind, b"no archive at all"))
        packed = gzip.compress(KINDS[kind].good(0) + bytes(range(32, 127)) * 200)
        with pytest.raises(InputError, match="ends too early"):
            read(write(path, kind, packed[:-12]))


@pytest.mark.parametrize("kind", ["rocstories", "storycloze"])
def test_a_table_without_its_header_is_an_error(kind: str, tmp_path: Path) -> None:
    for content in (b"It was a dark night.\n", KINDS[kind].good(0), b'"a\n'):
        with pytest.raises(InputError, match=r"x\.csv:1: no column"):
            read(write(tmp_path / "x.csv", kind, content))


def record(**fields: object) -> bytes:
    return json.dumps(fields).encode()


BAD_JSON = {
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
BAD = {
    "arxiv": {
        "not JSON": b'{"id": "x"',
        "JSON too deep": b"[" * 1_000_000,
        "no abstract": b'{"id": "x"}',
        "wrong type": b'{"id": "x", "abstract": ["a"]}',
        "no text": b'{"id": "x", "abstract": " "}',
        "bad id": b'{"id": "../../etc", "abstract": "Text."}',
        "not text": b'{"id": "x", "abstract": "\\ud800"}',
        "not UTF-8": b'{"id": "x", "abstract": "caf\xe9"}',
    },
    "rocstories": {
        "wrong number of fields": b"x,T,One.,Two.",
        "not CSV": b'x,T,"One.,Two.,Three.,Four.,Five.',
        "no text": b"x,T,One.,Two., ,Four.,Five.",
        "bad id": b"../x,T,One.,Two.,Three.,Four.,Five.",
        "not UTF-8": b"x,T,One.,Two.,Three.,Four.,Caf\xe9.",
    },
    "storycloze": {
        "wrong number of fields": b"x,One.,Two.",
        "no answer": b"x,One.,Two.,Three.,Four.,Five.,Six.,3",
        "no text": b"x,One.,Two.,Three.,Four.,Five.,,1",
        "bad id": b"/x,One.,Two.,Three.,Four.,Five.,Six.,1",
    },
    "discoeval": {
        "wrong number of fields": b"One .\tTwo .\tThree .",
        "no text": b"One .\t ",
        "not UTF-8": b"One .\tCaf\xe9 .",
    },
    "coherence (.jsonl)": {
        "not JSON": b"{",
        "not a pair": b'{"id": "x", "pos": ["a"]}',
        "wrong type": b'{"id": "x", "pos": "a", "neg": ["b"]}',
        "no text": b'{"id": "x", "pos": [" "], "neg": ["b"]}',
        "bad id": b'{"id": "../x", "pos": ["a"], "neg": ["b"]}',
        "not text": b'{"id": "x", "pos": ["\\ud800"], "neg": ["b"]}',
    },
}
CASES = [
    *(("jsonl", name, reason, line) for name, (line, reason) in BAD_JSON.items()),
    *((kind, reason, reason, line) for kind, rows in BAD.items() for reason, line in rows.items()),
]


@pytest.mark.parametrize(
    ("kind", "reason", "line"),
    [(kind, reason, line) for kind, _, reason, line in CASES],
    ids=[f"{kind}-{name}" for kind, name, *_ in CASES],
)
def test_one_bad_record_among_good_ones(
    kind: str, reason: str, line: bytes, tmp_path: Path
) -> None:
    one = KINDS[kind]
    content = one.file(one.good(0), line + b"\n", one.good(1))
    spec, number = write(tmp_path / one.name.format(0), kind, content), one.head.count(b"\n") + 2
    ids, bad = read(spec)
    assert len(ids) == 2
    assert [b.reason.partition(":")[0] for b in bad] == [reason]
    assert bad[0].where.endswith(f":{number}") and len(bad[0].value) <= 200
    with pytest.raises(InputError, match=f":{number}: "):
        list(open_source(spec))


BAD_ARTICLES = {
    "no section with text": [{"heading": "A", "paragraphs": []}],
    "sections are strings": ["A", "B"],
    "a level of words": [{"heading": "A", "level": "two", "paragraphs": ["Text."]}],
    "a heading of another type": [{"heading": 3.5, "paragraphs": ["Text."]}],
    "paragraphs are objects": [{"heading": "A", "paragraphs": [{"text": "Text."}]}],
}


@pytest.mark.parametrize("sections", BAD_ARTICLES.values(), ids=BAD_ARTICLES.keys())
def test_a_bad_article_is_counted(sections: object, tmp_path: Path) -> None:
    good = record(id="good", sections=[{"heading": "", "paragraphs": ["Text."]}])
    path = tmp_path / "x.jsonl"
    path.write_bytes(record(id="bad", sections=sections) + b"\n" + good)
    bad: list[BadRecord] = []
    assert [d.id for d in open_source(f"jsonl:{path}", on_bad=bad.append)] == ["good"]
    assert len(bad) == 1


BAD_FILES = {
    "peerread": {
        "not JSON": b'{"metadata":',
        "JSON too deep": b"[" * 1_000_000,
        "no metadata": b'{"title": "T"}',
        "wrong type": b'{"metadata": {"sections": [3]}}',
        "no text": b'{"metadata": {"abstractText": "017"}}',
        "not UTF-8": b'{"metadata": "caf\xe9"}',
    },
    "cnn": {"no text": b"@highlight\n\nOnly this\n", "not UTF-8": b"Caf\xe9."},
    "wsj": {"no text": b".START \n\n", "not UTF-8": b"Caf\xe9."},
}
FILES = [(kind, reason, text) for kind, rows in BAD_FILES.items() for reason, text in rows.items()]


@pytest.mark.parametrize(
    ("kind", "reason", "content"), FILES, ids=[f"{k}-{r}" for k, r, _ in FILES]
)
def test_a_bad_file_among_good_ones_is_counted(
    kind: str, reason: str, content: bytes, tmp_path: Path
) -> None:
    one = KINDS[kind]
    for number, data in enumerate((one.good(0), content, one.good(1))):
        (tmp_path / one.name.format(number)).write_bytes(data)
    ids, bad = read(f"{kind}:{tmp_path}")
    assert len(ids) == 2
    assert [b.reason.partition(":")[0] for b in bad] == [reason]
    assert one.name.format(1) in bad[0].where


def test_wrong_encoding_of_a_text_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("First.\n\nCaf\xe9.\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"x\.txt:3: not UTF-8: byte 0xe9 at column 4"):
        list(open_source(f"text:{tmp_path}"))


def test_text_in_every_script_is_kept(tmp_path: Path) -> None:
    odd = (
        "Emoji \U0001f469\u200d\U0001f467, zero\u200bwidth, \u202eright to left\u202c, שלום, "
        "e\u0301, \ufffd and \u00a0nbsp"
    )
    (tmp_path / "x.jsonl").write_bytes(json.dumps({"id": "x", "text": odd}).encode())
    (document,) = open_source(f"jsonl:{tmp_path}")
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
    only = r"no document in it: a bad record: .*x\.txt:3: not UTF-8: byte 0xe9"
    assert caught.match(rf"^text:.*{only}")
    (tmp_path / "y.txt").write_bytes(b"")
    with pytest.raises(InputError, match=r"2 bad records, the first one: .*x\.txt:3: not"):
        list(open_source(f"text:{tmp_path}", on_bad=bad.append))


def test_gold_without_its_text_is_named_where_it_is_all_there_is(tmp_path: Path) -> None:
    for part in ("gold", "raw"):
        (tmp_path / part / "00").mkdir(parents=True)
    (tmp_path / "gold" / "00" / "a").write_text("Explicit\n", encoding="utf-8")
    (tmp_path / "raw" / "00" / "b").write_text("Text.", encoding="utf-8")
    with pytest.raises(InputError, match=r"a bad record: .*raw/00/a: no raw text:"):
        list(open_source(f"pdtb:{tmp_path}", on_bad=list[BadRecord]().append))


def test_a_source_of_what_is_no_document_says_what_was_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "SSP" / "abs"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("1\tWe say.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"skipped: file of SSP \(1\)"):
        list(open_source(f"discoeval:{tmp_path}"))
    assert "SSP/abs/train.txt: skipped: its examples are no texts" in caplog.text


def test_bad_lines_and_links_of_a_log(tmp_path: Path) -> None:
    lines = [b"[10:00] <ann> One.", b"caf\xe9", b"neither one nor the other", b"[10:01] <bo> Two."]
    spec = write(tmp_path / "x.ascii.txt", "irc", b"\n".join(lines))
    (tmp_path / "x.annotation.txt").write_bytes(b"0 0 -\n3 0 -\n9 0 -\n1\n-1 0 -\n" + b"9" * 999)
    bad: list[BadRecord] = []
    (log,) = open_source(spec, {"context": 0}, on_bad=bad.append)
    assert log.turns is not None and log.turns.conversation == [0, 0]
    assert [(b.reason.partition(":")[0], b.where.rpartition("/")[2]) for b in bad] == [
        ("not UTF-8", "x.ascii.txt:2"),
        ("not a message", "x.ascii.txt:3"),
        *(("bad link", f"x.annotation.txt:{row}") for row in (3, 4, 5, 6)),
    ]


def test_a_log_that_ends_before_what_was_annotated_says_so(tmp_path: Path) -> None:
    spec = write(tmp_path / "x.ascii.txt", "irc", b"[10:00] <ann> One.\n[10:01] <bo> Two.")
    (tmp_path / "x.annotation.txt").write_bytes(b"0 0 -\n")
    for layout in ("log", "conversation"):
        bad: list[BadRecord] = []
        with pytest.raises(InputError):
            list(open_source(spec, {"layout": layout}, on_bad=bad.append))
        assert [b.reason.partition(":")[0] for b in bad] == ["only context"]
        assert "set context to 0" in bad[0].reason


@pytest.fixture
def table(tmp_path: Path) -> Callable[[pa.Table], str]:
    def write(rows: pa.Table) -> str:
        pq.write_table(rows, tmp_path / "x.parquet")
        return f"parquet:{tmp_path / 'x.parquet'}"

    return write


def test_bad_rows_of_a_parquet_file(
    table: Callable[[pa.Table], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpora.readers.rows.LINE_LIMIT", 1 << 16)
    texts = [b"Good.", b"caf\xe9", b" ", b"x" * (1 << 17), b"\xf0\x9f\x98\x80", None]
    ids = ["a", "b", "c", "d", "../e", "f"]
    buffers = pa.array(texts, pa.binary()).buffers()
    column = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    found, bad = read(table(pa.table({"id": ids, "text": column})))
    assert found == ["a"]
    assert [(b.reason.partition(":")[0], b.where[-2:]) for b in bad] == [
        ("not UTF-8", ":2"),
        ("no text", ":3"),
        ("record too long", ":4"),
        ("bad id", ":5"),
        ("no text", ":6"),
    ]


def test_a_truncated_parquet_file_is_an_error(table: Callable[[pa.Table], str]) -> None:
    spec = table(pa.table({"id": ["a"], "text": ["Good."]}))
    path = Path(spec.partition(":")[2])
    whole = path.read_bytes()
    for content in (whole[:-20], whole[:20], b"PAR1", whole[:30] + bytes(40) + whole[70:]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.parquet: "):
            read(spec)


def test_half_a_surrogate_pair_in_an_id(tmp_path: Path) -> None:
    line = b'{"id": "x\\ud800", "pos": ["One."], "neg": ["Two."]}'
    good = KINDS["coherence (.jsonl)"].good(0)
    ids, bad = read(write(tmp_path / "x.jsonl", "coherence", good + line))
    assert ids == ["x/p0"] and bad[0].reason.startswith("not text")


def test_a_field_nested_deeper_than_any_record(tmp_path: Path) -> None:
    deep: Any = "a"
    for _ in range(400):
        deep = [deep]
    line = json.dumps({"id": "x", "abstract": deep}).encode()
    good = KINDS["arxiv"].good(0)
    ids, bad = read(write(tmp_path / "x.json", "arxiv", good + line))
    assert ids == ["harbour"] and bad[0].reason.startswith("JSON too deep")
