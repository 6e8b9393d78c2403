"""Bad input to every reader: the outcome that the table in docs/reference/sources.md promises.

Each cell is tried: good files, and one file with the bad record between two good ones (or, where a
file is one document, a bad file). The outcome is read off what came through.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import BadRecord, InputError
from corpora.readers import READERS, files, guarded, open_source, pdtb

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "sources.md"
CASES = {
    "empty": "nothing but an empty file",
    "archive": "an archive cut short",
    "foreign": "another format under the name",
    "broken": "a broken record",
    "encoding": "not UTF-8",
    "line": "a line without end",
    "deep": "nested a million deep",
    "id": "an id that leads out",
    "no text": "an article without text",
    "twice": "an id twice",
}
OUTCOMES = ("error", "record", "file", "read", "-")
WORDS = ("harbour", "kettle", "ladder", "meadow")
DEEP = 1_000_000
LONG = 24 << 20
LIMIT = 1 << 20
HOLDS = ("parquet", "coherence (.pkl)", "wikipedia", "rst (.rs3, .rs4)")
"""Readers that must hold a row, a pickle (8 MiB here), or 16 MiB of XML before they can refuse."""


def text(i: int) -> str:
    return f"A good text about a {WORDS[i]}. It ends here."


@dataclass(frozen=True)
class Kind:
    """How the files of a reader look: `good(i)` is a record, `bad` the spoilt ones by case.

    `name` of file `i` (`{}` is the number); a file is `head`, records and `tail`. With `whole`
    a file is one record. `suffix` is that of an archive, where the reader takes one. `beside`:
    a file that goes with each, and what stands in it (`broken`: with one more line). `alone`:
    cases in which the whole file is bad.
    """

    name: str
    good: Callable[[int], bytes]
    bad: Mapping[str, Any] = field(default_factory=dict)
    head: bytes = b""
    tail: bytes = b""
    whole: bool = False
    suffix: str = ""
    pack: Callable[[list[Any]], bytes] | None = None
    beside: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, bytes] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def file(self, *records: Any) -> bytes:
        if self.pack:
            return self.pack(list(records))
        return self.head + b"".join(records) + self.tail


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def parquet(records: list[Any]) -> bytes:
    """Records `(id, text)`; the bytes of a text go in unchecked."""
    texts = [r[1] if isinstance(r[1], bytes) else r[1].encode() for r in records]
    buffers = pa.array(texts, pa.binary()).buffers()
    column = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [r[0] for r in records], "text": column}), file)
    return file.getvalue()


def words(i: int) -> bytes:
    return b"1\t%s\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n" % WORDS[i].encode()


def page(i: int, body: str = "", id: str = "") -> bytes:
    return (
        f"<page><title>{WORDS[i].title()}</title><ns>0</ns><id>{id or i + 1}</id><revision>"
        f"<id>{i + 9}</id><timestamp>2026-01-02T03:04:05Z</timestamp><model>wikitext</model>"
        f"<format>text/x-wiki</format><text>{body or text(i)}</text></revision></page>\n"
    ).encode()


WIKI = (
    b'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">'
    b"<siteinfo><dbname>w</dbname></siteinfo>\n"
)
RS4 = "<rst><header><relations/></header><body>{}</body></rst>"


def tree(i: int) -> bytes:
    return RS4.format(f'<segment id="1">{text(i)}</segment>').encode()


def leaf(i: int) -> bytes:
    first, second = text(i).split(". ")
    return (
        f"( Root (span 1 2)\n  ( Nucleus (leaf 1) (rel2par span) (text _!{first}._!) )\n"
        f"  ( Satellite (leaf 2) (rel2par comment) (text _!{second}_!) )\n)\n"
    ).encode()


def pair(i: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"p{i}", "pos": [text(i), "So."], "neg": [text(i), "No."], **fields}


def summary(i: int, **fields: Any) -> bytes:
    rated = {"id": f"d{i}", "model_id": "M1", "decoded": text(i)}
    return line(**{**rated, "expert_annotations": [{"coherence": 3}], **fields})


def insted(i: int, **fields: Any) -> bytes:
    record = {"file_id": f"f{i}", "ctx": [text(i), "So."], "sen_position": -1, "train": 1}
    return line(**record | fields)


def nli(i: int, **fields: Any) -> bytes:
    pair = {"sentence1": text(i), "sentence2": "So.", "gold_label": "neutral"}
    return line(**pair | fields)


def cohesentia(i: int, **fields: Any) -> tuple[str, dict[str, Any]]:
    rated = {"scores": {"annot0": 3}, "consensus_score": 3}
    story = {"Title": WORDS[i], "Text": text(i), "HolisticData": rated, "IncrementalData": rated}
    return WORDS[i], story | fields


def rte(i: int, **fields: Any) -> bytes:
    return line(
        **{"premise": text(i), "hypothesis": "So.", "label": "entailment", "idx": i} | fields
    )


def story(i: int) -> str:
    return f"One {WORDS[i]}.,Two.,Three.,Four."


ROC = "storyid,storytitle,sentence1,sentence2,sentence3,sentence4,sentence5\n"
CLOZE = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\n"
)
JSON = {"broken": b'{"id": "x", "te\n', "deep": b"[" * DEEP + b"\n", "line": b"x" * LONG + b"\n"}
TABS = {
    "broken": b"One .\n",
    "encoding": b"Caf\xe9 .\tTwo .\tbut\n",
    "line": b"x" * LONG + b"\n",
    "no text": b" \tTwo .\tbut\n",
}
FILE = {"line": b"x" * LONG, "encoding": b"Caf\xe9."}

KINDS = {
    "text": Kind(
        "{}.txt", lambda i: text(i).encode(), FILE | {"no text": b" \n\n"}, whole=True, suffix=".gz"
    ),
    "jsonl": Kind(
        "{}.jsonl",
        lambda i: line(id=WORDS[i], text=text(i)),
        JSON
        | {
            "encoding": b'{"id": "x", "text": "caf\xe9"}\n',
            "id": line(id="../../etc/passwd", text="Text."),
            "no text": line(id="x", text=" "),
            "twice": line(id=WORDS[0], text="Text."),
        },
        suffix=".gz",
    ),
    "parquet": Kind(
        "{}.parquet",
        lambda i: (WORDS[i], text(i)),
        {
            "encoding": ("x", b"caf\xe9"),
            "line": ("x", "x" * LONG),
            "id": ("../x", "Text."),
            "no text": ("x", " "),
            "twice": (WORDS[0], "Text."),
            "archive": True,
        },
        pack=parquet,
    ),
    "conllu": Kind(
        "{}.conllu",
        lambda i: b"# newdoc id = %s\n" % WORDS[i].encode() + words(i),
        {
            "broken": b"# newdoc id = x\n1\tbroken\n\n",
            "encoding": b"# newdoc id = x\n1\tcaf\xe9\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
            "line": b"# newdoc id = x\n" + b"x" * LONG + b"\n\n",
            "id": b"# newdoc id = ../x\n" + words(1),
            "no text": b"# newdoc id = x\n\n",
            "twice": b"# newdoc id = %s\n" % WORDS[0].encode() + words(1),
        },
        suffix=".gz",
    ),
    "wikipedia": Kind(
        "{}.xml",
        page,
        {
            "broken": b"<page><title>X</page>\n",
            "encoding": page(1, "CAFE").replace(b"CAFE", b"caf\xe9"),
            "line": page(1, "x" * LONG),
            "deep": b"<a>" * DEEP,
            "id": page(1, id="../x"),
            "no text": page(1, " "),
            "twice": page(1, id="1"),
        },
        head=WIKI,
        tail=b"</mediawiki>",
        suffix=".gz",
    ),
    "pdtb": Kind(
        "raw/00/d{}",
        lambda i: text(i).encode(),
        FILE | {"no text": b" \n", "broken": text(1).encode()},
        whole=True,
        beside={
            "gold/00/d{}": "|".join(
                ["Implicit", *[""] * 13, "0..6", *[""] * 5, "7..11"] + [""] * 13
            )
        },
    ),
    "rst (.rs3, .rs4)": Kind(
        "{}.rs4",
        tree,
        {
            "broken": b"<rst><body>",
            "encoding": tree(1).replace(b"good", b"caf\xe9"),
            "line": tree(1).replace(b"good", b"x" * LONG),
            "deep": b"<a>" * DEEP,
            "no text": RS4.format("").encode(),
        },
        whole=True,
    ),
    "rst (.dis)": Kind(
        "{}.dis",
        leaf,
        FILE | {"broken": b"( Root (span 1 2)\n", "deep": b"(" * DEEP, "no text": b"( Root )\n"},
        whole=True,
    ),
    "irc": Kind(
        "{}.ascii.txt",
        lambda i: f"[10:00] <ann> {text(i)}\n".encode(),
        {
            "broken": b"no message\n",
            "encoding": b"[10:00] <ann> caf\xe9\n",
            "line": b"[10:00] <ann> " + b"x" * LONG + b"\n",
        },
        alone={"no text": b"=== ann has joined #harbour\n"},
    ),
    "peerread": Kind(
        "{}.pdf.json",
        lambda i: line(metadata={"title": "T", "abstractText": text(i)}),
        JSON | {"encoding": b'{"metadata": "caf\xe9"}', "no text": line(metadata={"title": "T"})},
        whole=True,
    ),
    "arxiv": Kind(
        "{}.json",
        lambda i: line(id=WORDS[i], abstract=text(i)),
        JSON
        | {
            "encoding": b'{"id": "x", "abstract": "caf\xe9"}\n',
            "id": line(id="../x", abstract="Text."),
            "no text": line(id="x", abstract=" "),
            "twice": line(id=WORDS[0], abstract="Text."),
        },
        suffix=".gz",
    ),
    "rocstories": Kind(
        "{}.csv",
        lambda i: f"{WORDS[i]},T,{story(i)},Five.\n".encode(),
        {
            "broken": b"x,T,One.\n",
            "encoding": b"x,T,Caf\xe9.,Two.,Three.,Four.,Five.\n",
            "line": b"x,T," + b"x" * LONG + b"\n",
            "id": b"../x,T,One.,Two.,Three.,Four.,Five.\n",
            "no text": b"x,T, ,Two.,Three.,Four.,Five.\n",
            "twice": f"{WORDS[0]},T,{story(1)},Five.\n".encode(),
        },
        head=ROC.encode(),
    ),
    "storycloze": Kind(
        "{}.csv",
        lambda i: f"{WORDS[i]},{story(i)},Five.,Six.,1\n".encode(),
        {
            "broken": b"x,One.,Two.,Three.,Four.,Five.,Six.,3\n",
            "encoding": b"x,Caf\xe9.,Two.,Three.,Four.,Five.,Six.,1\n",
            "line": b"x," + b"x" * LONG + b"\n",
            "id": b"../x,One.,Two.,Three.,Four.,Five.,Six.,1\n",
            "no text": b"x, ,Two.,Three.,Four.,Five.,Six.,1\n",
            "twice": f"{WORDS[0]},{story(1)},Five.,Six.,1\n".encode(),
        },
        head=CLOZE.encode(),
    ),
    "cnn": Kind(
        "{}.story",
        lambda i: text(i).encode(),
        FILE | {"no text": b"@highlight\n\nA highlight\n"},
        whole=True,
        suffix=".gz",
    ),
    "wsj": Kind(
        "wsj_000{}",
        lambda i: b".START \n\n" + text(i).encode(),
        FILE | {"no text": b".START \n\n"},
        whole=True,
    ),
    "discoeval": Kind(
        "BSO/wiki/{}.txt",
        lambda i: f"{text(i)}\tIt ends .\n".encode(),
        {
            "broken": b"One .\n",
            "encoding": b"Caf\xe9 .\tTwo .\n",
            "line": b"x" * LONG + b"\n",
            "no text": b" \tTwo .\n",
        },
    ),
    "coherence (.jsonl)": Kind(
        "{}.jsonl",
        lambda i: line(**pair(i)),
        JSON
        | {
            "encoding": b'{"pos": ["caf\xe9"], "neg": ["a"]}\n',
            "id": line(**pair(1, id="../x")),
            "no text": line(**pair(1, pos=[" "])),
            "twice": line(**pair(2)),
        },
        suffix=".gz",
    ),
    "coherence (.pkl)": Kind(
        "{}.pkl",
        pair,
        {
            "broken": {"pos": 3},
            "deep": "deep",
            "line": pair(1, pos=["x" * LONG]),
            "id": pair(1, id="../x"),
            "no text": pair(1, pos=[" "]),
            "twice": pair(2),
            "archive": True,
        },
        pack=lambda records: (
            b"\x80\x04" + b"]" * DEEP + b"a" * (DEEP - 1) + b"."
            if "deep" in records
            else pickle.dumps(records)
        ),
    ),
    "summeval": Kind(
        "{}.jsonl",
        summary,
        JSON
        | {
            "encoding": b'{"id": "x", "decoded": "caf\xe9"}\n',
            "id": summary(1, id="../x"),
            "no text": summary(1, decoded=" "),
            "twice": summary(2),
        },
        suffix=".gz",
    ),
    "discovery": Kind(
        "{}.tsv",
        lambda i: f"{text(i)}\tIt ends .\tbut\n".encode(),
        TABS,
        head=b"s1\ts2\ty\n",
    ),
    "dissent": Kind("{}.tsv", lambda i: f"{text(i)}\tIt ends .\tbut\n".encode(), TABS),
    "nli": Kind(
        "{}.jsonl",
        nli,
        JSON
        | {
            "encoding": b'{"sentence1": "caf\xe9"}\n',
            "no text": nli(1, sentence1=" "),
        },
        suffix=".gz",
    ),
    "insted": Kind(
        "{}.jsonl",
        insted,
        JSON
        | {
            "encoding": b'{"file_id": "x", "ctx": ["caf\xe9"]}\n',
            "id": insted(1, file_id="../x"),
            "no text": insted(1, ctx=[" "]),
        },
        suffix=".gz",
    ),
    "disrpt": Kind(
        "{}.conllu",
        lambda i: b"# newdoc id = %s\n" % WORDS[i].encode() + words(i),
        {
            "broken": b"# newdoc id = x\n1\tbroken\n\n",
            "encoding": b"# newdoc id = x\n1\tcaf\xe9\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
            "line": b"# newdoc id = x\n" + b"x" * LONG + b"\n\n",
            "id": b"# newdoc id = ../x\n" + words(1),
            "no text": b"# newdoc id = x\n\n",
            "twice": b"# newdoc id = %s\n" % WORDS[0].encode() + words(1),
        },
    ),
    "gcdc": Kind(
        "{}.csv",
        lambda i: f'{i},S,"{text(i)}",1,1\n'.encode(),
        {"broken": b"x,S\n", "no text": b'x,S," ",1,1\n'},
        head=b"text_id,subject,text,ratingA1,labelA\n",
        alone={"encoding": b"text,labelA\nCaf\xe9.,1\n", "line": b"x" * LONG},
    ),
    "cohesentia": Kind(
        "{}.json",
        cohesentia,
        {
            "broken": ("x", 3),
            "no text": cohesentia(1, Text=" "),
            "id": ("../x", cohesentia(1, Title="../x")[1]),
        },
        pack=lambda records: json.dumps(dict(records)).encode(),
        alone={
            "encoding": b'{"x": "caf\xe9"}',
            "deep": b"[" * DEEP,
            "line": b"x" * LONG,
        },
    ),
    "superglue": Kind(
        "{}/RTE/train.jsonl",
        rte,
        JSON
        | {
            "encoding": b'{"premise": "caf\xe9", "idx": 1}\n',
            "id": rte(1, idx="../x"),
            "no text": rte(1, premise=" "),
            "twice": rte(2),
        },
        suffix=".gz",
    ),
}


def promised() -> dict[tuple[str, str], str]:
    """The table of docs/reference/sources.md: (reader, case) to the outcome."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    start = next(i for i, row in enumerate(lines) if row.startswith("| reader | empty |"))
    names = [cell.strip() for cell in lines[start].strip("|").split("|")][1:]
    found = {}
    for row in lines[start + 2 :]:
        if not row.startswith("|"):
            break
        reader, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        found |= {(reader.strip("`"), n): c for n, c in zip(names, cells, strict=True)}
    return found


def layout(kind: Kind, case: str, folder: Path) -> None:
    """A folder of good files and one bad one (`empty`: of an empty one alone)."""

    def write(number: int, content: bytes, suffix: str = "") -> None:
        path = folder / (kind.name.format(number) + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        for name, row in kind.beside.items():
            path = folder / name.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            more = "Implicit|broken\n" if case == "broken" and number else ""
            path.write_text(f"{row}\n{more}", encoding="utf-8")

    if case == "empty":
        return write(1, b"")
    write(0, kind.file(kind.good(0)))
    between = [kind.good(1)] if kind.whole else [kind.good(2), kind.good(3)]
    if case == "foreign":
        write(1, b"PAR1\x15\x04\x15\x00" * 10 if kind.name != "{}.parquet" else b"%PDF-1.7\n")
    elif case == "archive":
        whole = kind.file(*between)
        write(1, gzip.compress(whole)[:-12] if kind.suffix else whole[:-6], kind.suffix)
    elif case in kind.alone:
        write(1, kind.alone[case])
    elif kind.whole:
        write(1, kind.file(kind.bad[case]))
    else:
        write(1, kind.file(between[0], kind.bad[case], between[1]))


def outcome(name: str, kind: Kind, folder: Path) -> tuple[str, list[BadRecord]]:
    """What became of the files: a word of `OUTCOMES`, and the bad records."""
    bad: list[BadRecord] = []
    try:
        spec = f"{name.partition(' ')[0]}:{folder}"
        documents = list(open_source(spec, dict(kind.options), on_bad=bad.append))
    except InputError as error:
        assert len(str(error)) < 2_000
        if "two documents" in error.message:
            assert re.search(r":\S*\d+$", error.where), "the place of the second one"
        return "error", bad
    texts = " ".join(document.text for document in documents)
    assert WORDS[0] in texts, "the good file"
    if not bad:
        return "read", bad
    rest = (WORDS[1],) if kind.whole else (WORDS[2], WORDS[3])
    return ("record" if all(word in texts for word in rest) else "file"), bad


def applies(kind: Kind, case: str) -> bool:
    given = {"empty", "foreign", *kind.bad, *kind.alone}
    return case in given or (case == "archive" and kind.suffix != "")


CELLS = [(name, case) for name, kind in KINDS.items() for case in CASES if applies(kind, case)]


@pytest.mark.parametrize(("name", "case"), CELLS, ids=[f"{n}-{c}" for n, c in CELLS])
def test_every_cell_of_the_table(
    name: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LINE_LIMIT", LIMIT)
    monkeypatch.setattr("corpora.readers.rows.LINE_LIMIT", LIMIT)
    monkeypatch.setattr(pdtb, "SIZE_LIMIT", LIMIT)
    monkeypatch.setattr(guarded, "SIZE_LIMIT", 8 << 20)
    layout(KINDS[name], case, tmp_path)
    if case in ("line", "deep"):
        tracemalloc.start()
    try:
        found, bad = outcome(name, KINDS[name], tmp_path)
        peak = tracemalloc.get_traced_memory()[1] if tracemalloc.is_tracing() else 0
    finally:
        tracemalloc.stop()
    assert peak < (2 * LONG if name in HOLDS else LONG // 2)
    assert found == promised()[name, case]
    assert all(record.reason and record.where and len(record.value) <= 200 for record in bad)


def test_the_table_is_whole() -> None:
    """Every reader but those that read other ones' formats, every case, nothing made up."""
    table = promised()
    assert {name.partition(" ")[0] for name, _ in table} == set(READERS) - {
        "hub",
        "sample",
        "senteval",  # the suite reads its files
    }
    assert set(table) == {(name, case) for name in KINDS for case in CASES}
    assert set(table.values()) <= set(OUTCOMES)
    for (name, case), found in table.items():
        assert (found == "-") == (not applies(KINDS[name], case)), (name, case)


GIGABYTE = 1 << 30
STREAMED = [
    name
    for name, kind in KINDS.items()
    if "line" in kind.bad and not kind.pack and "wikipedia" not in name and "rs3" not in name
]


@pytest.mark.nightly
@pytest.mark.parametrize("name", STREAMED)
def test_a_line_of_a_gigabyte(name: str, tmp_path: Path) -> None:
    """The limits as they are; the line is a hole in a sparse file."""
    kind = KINDS[name]
    layout(kind, "line", tmp_path)
    path = tmp_path / kind.name.format(1)
    with path.open("wb") as file:
        file.write(kind.head + (kind.good(2).rstrip(b"\n") if kind.whole else kind.good(2)))
        trees = kind.name.endswith(".conllu")
        file.write((b"# newdoc id = x\n" if trees else b"") + b"x" * 10_000)
        file.seek(GIGABYTE, 1)
        file.write(b"\n\n" if trees else b"\n")
        file.write(b"" if kind.whole else kind.good(3))
    tracemalloc.start()
    try:
        found, _ = outcome(name, kind, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == promised()[name, "line"]
    assert peak < 160 << 20
