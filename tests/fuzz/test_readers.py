"""Files that chance has spoilt: documents, bad records or an error for people, nothing else."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from pathlib import Path

import pytest

from corpora.errors import BadRecord, InputError
from corpora.readers import open_source
from corpora.store.documents import document_batch
from tests.corpora.test_bad_input import KINDS
from tests.corpora.test_readers_pickles import PAIRS
from tests.corpora.test_tasks_superglue import COPA, RECORD
from tests.fuzz.campaign import Call, run, sizes

ROOT = Path(__file__).resolve().parents[2]
FIXTURES, GOLD = ROOT / "tests" / "data" / "readers", ROOT / "corpora" / "sample" / "gold"
PIECES = (
    *(
        b'"',
        b"\n",
        b"\t",
        b",",
        b"(",
        b")",
        b"<",
        b">",
        b"&",
        b"[[",
        b"{{",
        b"}}",
        b"..",
        b"/",
        b"_!",
    ),
    *(
        b"\xff",
        b"\xed\xa0\x80",
        b"\r",
        b"\x00",
        b"\xe2\x80\xa8",
        b"\\ud800",
        b"&#xD800;",
        b"<![CDATA[",
    ),
    *(b"null", b"[]", b"{}", b"1e999", b"-", b"<P>", b"span", b"</page>", b"<text/>", b"]]>"),
)


SEEDS = [
    *(
        (name.partition(" ")[0], kind.name.format(0), kind.file(*map(kind.good, range(2))))
        for name, kind in KINDS.items()
        if not (kind.beside or kind.whole)
    ),
    *(
        (name.partition(" ")[0], kind.name.format(0), kind.good(0))
        for name, kind in KINDS.items()
        if kind.whole and not kind.beside
    ),
    ("wikipedia", "x.xml", (FIXTURES / "harbour-wiki.xml").read_bytes()),
    ("rst", "x.rs3", (FIXTURES / "rst" / "ferry.rs3").read_bytes()),
    ("rst", "x.dis", (FIXTURES / "rst" / "market.out.dis").read_bytes()),
    *(("coherence", "x.pkl", pickle.dumps(PAIRS, protocol)) for protocol in (0, 2, 4)),
    ("superglue", "ReCoRD/val.jsonl", json.dumps(RECORD).encode() + b"\n"),
    ("superglue", "COPA/val.jsonl", json.dumps(COPA).encode() + b"\n"),
]

EVERY = pytest.mark.parametrize(
    ("kind", "name", "content"), SEEDS, ids=[f"{kind}-{i}" for i, (kind, _, _) in enumerate(SEEDS)]
)


def spoilt(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 10))):
        at, other = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + rng.choice((1, 5, 50))]
            case 2:
                data[at:at] = rng.choice(PIECES)
            case _:
                data[at:at] = data[other : other + rng.choice((3, 20, 100))]
    return bytes(data)


def campaign(kind: str, place: Path, name: str, content: bytes, cases: int) -> None:
    """Read a source with the file `name` in it spoilt, again and again."""
    path = place / name
    spec = f"{kind}:{place if kind == 'pdtb' else path}"
    options = {"context": 0} if kind == "irc" else None

    def read() -> None:
        bad: list[BadRecord] = []
        documents = list(open_source(spec, options, on_bad=bad.append))
        if documents:
            assert document_batch(documents).num_rows == len(documents)
        assert all(record.reason and record.where for record in bad)

    def case(seed: int) -> tuple[str, Call]:
        path.write_bytes(spoilt(content, random.Random(f"{kind} {name} {len(content)} {seed}")))
        return name, read

    run("readers", cases, case)


@sizes(25, 5_000)
@EVERY
def test_a_spoilt_file_is_read_or_refused(
    kind: str, name: str, content: bytes, cases: int, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    campaign(kind, tmp_path, name, content, cases)


@sizes(25, 1_000)
def test_spoilt_relations_of_a_sound_text_are_read_or_refused(cases: int, tmp_path: Path) -> None:
    place = shutil.copytree(GOLD, tmp_path / "gold")
    path = min((place / "gold").glob("*/*"))
    campaign("pdtb", place, str(path.relative_to(place)), path.read_bytes(), cases)


@pytest.mark.parametrize("header", [b'text_idS,",subject,text,labelA', b"text_id,tex\rt,labelA"])
def test_a_damaged_header_is_an_error(header: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(header + b'\n0,S,"A good text.",1\n')
    with pytest.raises(InputError, match="not CSV"):
        list(open_source(f"gcdc:{tmp_path / 'x.csv'}"))
