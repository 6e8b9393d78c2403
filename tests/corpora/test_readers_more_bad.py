"""Bad input to the readers of named corpora, as the table in docs/sources.md has it."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import pickletools
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import BadRecord, InputError
from corpora.readers import files, open_source, plain_pickle
from corpora.readers.coherence import read_pairs
from corpora.readers.plain_pickle import load_plain

ROC = b"storyid,storytitle,sentence1,sentence2,sentence3,sentence4,sentence5\n"
CLOZE = (
    b"InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    b"RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)
NAMES = {
    "irc": "x.ascii.txt",
    "peerread": "x.pdf.json",
    "arxiv": "x.json",
    "rocstories": "x.csv",
    "storycloze": "x.csv",
    "cnn": "x.story",
    "wsj": "wsj_0001",
    "discoeval": "BSO/wiki/x.txt",
    "coherence": "x.jsonl",
    "rst": "x.dis",
    "wikipedia": "x.xml",
    "parquet": "x.parquet",
}
GOOD = {
    "irc": b"[10:00] <ann> Good morning.\n",
    "peerread": b'{"metadata": {"title": "T", "abstractText": "Good text."}}',
    "arxiv": b'{"id": "good", "abstract": "Good text."}\n',
    "rocstories": ROC + b"good,T,One.,Two.,Three.,Four.,Five.\n",
    "storycloze": CLOZE + b"good,One.,Two.,Three.,Four.,Five.,Six.,1\n",
    "cnn": b"Good text.\n",
    "wsj": b".START \n\nGood text.\n",
    "discoeval": b"Good text .\tMore text .\n",
    "coherence": b'{"id": "good", "pos": ["Good.", "Text."], "neg": ["Bad.", "Text."]}\n',
}
TEXT_KINDS = tuple(GOOD)
LINE_KINDS = ("arxiv", "rocstories", "storycloze", "discoeval", "coherence")
Write = Callable[..., str]


@pytest.fixture
def source(tmp_path: Path) -> Write:
    def write(kind: str, content: bytes, suffix: str = "") -> str:
        path = tmp_path / (NAMES[kind] + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"{kind}:{path}"

    return write


def read(spec: str) -> tuple[list[str], list[BadRecord]]:
    bad: list[BadRecord] = []
    return [d.id for d in open_source(spec, on_bad=bad.append)], bad


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_the_good_ones_are_good(kind: str, source: Write) -> None:
    ids, bad = read(source(kind, GOOD[kind]))
    assert len(ids) == 1 and not bad


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("content", [b"", b"\n\n  \n"], ids=["empty", "blank"])
def test_an_empty_file_is_an_error(kind: str, content: bytes, source: Write) -> None:
    spec = source(kind, content)
    for on_bad in (None, list[BadRecord]().append):
        with pytest.raises(InputError):
            list(open_source(spec, on_bad=on_bad))


FOREIGN = {
    "parquet": b"PAR1\x15\x04\x15\x00" * 10,
    "zip": b"PK\x03\x04" + bytes(40),
    "gzip": gzip.compress(b"text"),
    "pdf": b"%PDF-1.7\n",
    "binary": b"ab\x00\x01\x02",
    "utf-16": "text".encode("utf-16"),
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_another_format_under_the_name_is_an_error(
    kind: str, content: bytes, source: Write
) -> None:
    with pytest.raises(InputError, match=NAMES[kind].replace(".", r"\.")):
        list(open_source(source(kind, content), on_bad=list[BadRecord]().append))


@pytest.mark.parametrize("kind", ["arxiv", "discoeval", "coherence", "irc"])
def test_prose_under_the_name_is_an_error_soon(kind: str, source: Write) -> None:
    with pytest.raises(InputError, match="are all bad"):
        read(source(kind, b"It was a dark night.\n" * 10_000))


@pytest.mark.parametrize("kind", ["rocstories", "storycloze"])
def test_a_table_without_its_header_is_an_error(kind: str, source: Write) -> None:
    for content in (b"It was a dark night.\n", GOOD[kind].split(b"\n")[1], b'"a\n'):
        with pytest.raises(InputError, match=r"x\.csv:1: no column"):
            read(source(kind, content))


@pytest.mark.parametrize("kind", ["arxiv", "coherence"])
def test_a_truncated_archive_is_an_error(kind: str, source: Write) -> None:
    name = ".gz"
    packed = gzip.compress(GOOD[kind] + os.urandom(4000).hex().encode())
    with pytest.raises(InputError, match="ends too early"):
        read(source(kind, packed[:-12], name))


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
    "coherence": {
        "not JSON": b"{",
        "not a pair": b'{"id": "x", "pos": ["a"]}',
        "wrong type": b'{"id": "x", "pos": "a", "neg": ["b"]}',
        "no text": b'{"id": "x", "pos": [" "], "neg": ["b"]}',
        "bad id": b'{"id": "../x", "pos": ["a"], "neg": ["b"]}',
        "not text": b'{"id": "x", "pos": ["\\ud800"], "neg": ["b"]}',
    },
}
CASES = [(kind, reason, line) for kind, rows in BAD.items() for reason, line in rows.items()]


@pytest.mark.parametrize(("kind", "reason", "line"), CASES, ids=[f"{k}-{r}" for k, r, _ in CASES])
def test_one_bad_record_among_good_ones(kind: str, reason: str, line: bytes, source: Write) -> None:
    *header, good = GOOD[kind].rstrip(b"\n").split(b"\n")
    spec = source(kind, b"\n".join([*header, good, line, good.replace(b"good", b"fine"), b""]))
    ids, bad = read(spec)
    assert len(ids) == 2
    assert [b.reason.partition(":")[0] for b in bad] == [reason]
    assert bad[0].where.endswith(f":{len(header) + 2}") and len(bad[0].value) <= 200
    with pytest.raises(InputError, match=f":{len(header) + 2}: "):
        list(open_source(spec))


BAD_FILES = {
    "peerread": {
        "not JSON": b'{"metadata":',
        "JSON too deep": b"[" * 1_000_000,
        "no paper": b"[1, 2]",
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
    for stem, data in (("0001", GOOD[kind]), ("0002", content), ("0003", GOOD[kind])):
        name = f"wsj_{stem}" if kind == "wsj" else NAMES[kind].replace("x", stem, 1)
        (tmp_path / name).write_bytes(data)
    ids, bad = read(f"{kind}:{tmp_path}")
    assert len(ids) == 2
    assert [b.reason.partition(":")[0] for b in bad] == [reason]
    assert "0002" in bad[0].where


@pytest.mark.parametrize("kind", LINE_KINDS)
def test_an_absurdly_long_line_is_refused_in_bounded_memory(
    kind: str, source: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LINE_LIMIT", 4 << 20)
    spec = source(kind, GOOD[kind] + b"x" * (32 << 20) + b"\n")
    tracemalloc.start()
    ids, bad = read(spec)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert len(ids) == 1
    assert [b.reason.partition(":")[0] for b in bad] == ["line too long"]


def test_bad_lines_and_links_of_a_log(source: Write, tmp_path: Path) -> None:
    lines = [b"[10:00] <ann> One.", b"caf\xe9", b"neither one nor the other", b"[10:01] <bo> Two."]
    spec = source("irc", b"\n".join(lines))
    (tmp_path / "x.annotation.txt").write_bytes(b"0 0 -\n3 0 -\n9 0 -\n1\n-1 0 -\n" + b"9" * 999)
    bad: list[BadRecord] = []
    (log,) = open_source(spec, {"context": 0}, on_bad=bad.append)
    assert log.turns is not None and log.turns.conversation == [0, 0]
    assert [(b.reason.partition(":")[0], b.where.rpartition("/")[2]) for b in bad] == [
        ("not UTF-8", "x.ascii.txt:2"),
        ("not a message", "x.ascii.txt:3"),
        *(("bad link", f"x.annotation.txt:{row}") for row in (3, 4, 5, 6)),
    ]


def test_a_log_that_ends_before_what_was_annotated_says_so(source: Write, tmp_path: Path) -> None:
    spec = source("irc", b"[10:00] <ann> One.\n[10:01] <bo> Two.")
    (tmp_path / "x.annotation.txt").write_bytes(b"0 0 -\n")
    for layout in ("log", "conversation"):
        bad: list[BadRecord] = []
        with pytest.raises(InputError):
            list(open_source(spec, {"layout": layout}, on_bad=bad.append))
        assert [b.reason.partition(",")[0] for b in bad] == ["all 2 messages are context"]
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
    monkeypatch.setattr("corpora.readers.parquet.LINE_LIMIT", 1 << 16)
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


PAIRS = [{"pos": ["One.", "Two."], "neg": ["One.", "Six."], "reference_file": 7}]


def pickled(path: Path, value: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(value, protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_authors_pickles_are_read(protocol: int, tmp_path: Path) -> None:
    (pair,) = read_pairs(pickled(tmp_path / "probe.pkl", PAIRS, protocol))
    assert (pair.id, pair.pos, pair.neg[1]) == ("probe-0000", ("One.", "Two."), "Six.")
    assert pair.reference == "7"
    values = [{"a": (1, 2.5, None), "b": [True, -(2**70)]}, (), {}, "é", -1, 70_000]
    assert load_plain(pickled(tmp_path / "v.pkl", values, protocol)) == values


def test_a_pickle_with_several_negatives(tmp_path: Path) -> None:
    record = {"pos": ["One.", "Two."], "negs": [["Two.", "One."], ["Six."]]}
    path = pickled(tmp_path / "train.pkl", [record])
    assert [(p.id, p.text, p.neg[0]) for p in read_pairs(path)] == [
        ("train-0000:0", "train-0000", "Two."),
        ("train-0000:1", "train-0000", "Six."),
    ]
    (document,) = open_source(f"coherence:{path}")
    assert document.sentence_texts() == ["One.", "Two."]


class Command:
    """What a hostile pickle would hold."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_a_command_is_refused_and_named(protocol: int, tmp_path: Path) -> None:
    path = pickled(tmp_path / "x.pkl", [{"pos": Command(tmp_path / "ran")}], protocol)
    with pytest.raises(InputError, match=r"it refers to \w+\.system"):
        load_plain(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", 1j, range(3), Path("x"), BadRecord("a", "b")])
def test_other_values_are_refused_and_named(value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a pickle refused: it (refers to|holds the instr)"):
        load_plain(pickled(tmp_path / "x.pkl", [value]))


def test_a_pickle_cannot_ask_for_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    hostile = {
        b"\x80\x04]r\xff\xff\xff\x7f.": "absurd memo",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x00a.": "not a whole pickle",
        b"\x80\x04\x8b\xff\xff\xff\x7f\x01.": "not a whole pickle",
        b"I" + b"9" * 100_000 + b"\n.": "not a whole pickle",
        b"\x80\x04P1\n.": "PERSID",
        b"\x80\x04\x82\x01.": "EXT1",
        b"a.": "damaged",
        b"h\x05.": "damaged",
    }
    for content, reason in hostile.items():
        path.write_bytes(content)
        tracemalloc.start()
        with pytest.raises(InputError, match=reason):
            load_plain(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_every_instruction_is_known_or_refused() -> None:
    """A pickle protocol to come adds nothing to what is admitted."""
    names = {operation.name for operation in pickletools.opcodes}
    assert names >= plain_pickle._PLAIN
    dangerous = {"REDUCE", "BUILD", "OBJ", "INST", "NEWOBJ", "NEWOBJ_EX", "GLOBAL", "STACK_GLOBAL"}
    assert not dangerous & plain_pickle._PLAIN


def test_a_damaged_or_foreign_pickle_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pickled(tmp_path / "x.pkl", PAIRS)
    whole = path.read_bytes()
    for content in (whole[:-1], whole[: len(whole) // 2], b"PAR1 no", b"It was a dark night."):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.pkl"):
            list(read_pairs(path))
    with pytest.raises(InputError, match="expected a list of pairs"):
        list(read_pairs(pickled(path, {"pos": 1})))
    monkeypatch.setattr(plain_pickle, "SIZE_LIMIT", 8)
    with pytest.raises(InputError, match="too large"):
        list(read_pairs(path))


def test_lists_in_lists_without_end(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    for depth, reason in ((9_000, "not a pair"), (50_000, "nested too deep")):
        path.write_bytes(b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b".")
        with pytest.raises(InputError, match=reason):
            list(read_pairs(path))
    many = [{"pos": [[] for _ in range(30_000)], "neg": [""]}]
    with pytest.raises(InputError, match="wrong type"):
        list(read_pairs(pickled(path, many)))
    doubled: list[Any] = ["a"]
    for _ in range(200):
        doubled = [doubled, doubled]
    bad: list[BadRecord] = []
    pairs = [{"pos": doubled, "neg": doubled}, *PAIRS]
    assert len(list(read_pairs(pickled(path, pairs), bad.append))) == 1
    assert [b.reason.partition(":")[0] for b in bad] == ["wrong type"]


def test_half_a_surrogate_pair_in_an_id(source: Write) -> None:
    line = b'{"id": "x\\ud800", "pos": ["One."], "neg": ["Two."]}'
    ids, bad = read(source("coherence", GOOD["coherence"] + line))
    assert ids == ["x/good"] and bad[0].reason.startswith("bad id")


def test_a_field_nested_as_deep_as_json_allows(source: Write) -> None:
    deep: Any = "a"
    for _ in range(400):
        deep = [deep]
    line = json.dumps({"id": "x", "abstract": deep}).encode()
    ids, bad = read(source("arxiv", GOOD["arxiv"] + line))
    assert ids == ["good"] and bad[0].reason.startswith("wrong type")
