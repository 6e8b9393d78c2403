"""Memory is bounded by settings, not by files: under 1 GiB for whatever a file holds."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..zoo.conftest import dissent_models, pairs_folder  # noqa: F401 - fixtures

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
MIB, LIMIT = 1 << 20, 1024
"""Bytes of a MiB; the most MiB that a process may ever hold, its libraries included."""
PEAK = """
import atexit, re, runpy, sys
from pathlib import Path
status = Path("/proc/self/status")  # what wait4 says counts the parent's memory at the fork
atexit.register(lambda: print("PEAK", re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
READ = """
import sys
from corpora.errors import InputError
from corpora.readers import open_source
try:
    print(sum(1 for _ in open_source(sys.argv[1], on_bad=lambda bad: print(bad.reason[:200]))))
except InputError as error:
    print(error)
"""
RUN = "from workflows.cli.app import main; main()"
WORD = "7\tword\tword\tNOUN\tNN\t_\t0\troot\t_\t_\n"


def peak(code: str, words: Sequence[str], folder: Path) -> tuple[int, str]:
    """The most memory in MiB of a process that runs Python `code`, and all that it says."""
    (folder / "code.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-c", PEAK, str(folder / "code.py"), *words]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        check=False,
    )
    used = re.findall(r"^PEAK (\d+)$", done.stdout, re.M)
    return int(used[-1]) >> 10, done.stdout


def blocks(text: str, size: int) -> Iterator[bytes]:
    """`text` again and again, `size` bytes in all, some MiB at a time."""
    block = text.encode() * (4 * MIB // len(text.encode()))
    for _ in range(-(-size // len(block))):
        yield block


def fill(path: Path, parts: Sequence[bytes | Iterator[bytes]]) -> Path:
    """A file of these parts; packed if its name ends in `.gz`."""
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        for part in parts:
            for block in (part,) if isinstance(part, bytes) else part:
                file.write(block)
    return path


def conllu(folder: Path) -> list[str]:
    path = fill(folder / "a.conllu.gz", [b"# newdoc id = a\n", blocks(WORD, 2048 * MIB)])
    return [READ, f"conllu:{path}"]


def sentences(folder: Path) -> list[str]:
    """A document without end, of sentences of a word each."""
    sentence = WORD.replace("7", "1", 1) + "\n"
    path = fill(folder / "a.conllu.gz", [b"# newdoc id = a\n", blocks(sentence, 1024 * MIB)])
    return [READ, f"conllu:{path}"]


def cell(folder: Path) -> list[str]:
    path = folder / "a.parquet"
    data = pa.py_buffer(b"word " * (200 * MIB))
    ends = pa.array([0, data.size], pa.int32()).buffers()[1]
    text = pa.StringArray.from_buffers(1, ends, data)
    table = pa.table({"id": ["a"], "text": text})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    return [READ, f"parquet:{path}"]


def irc(folder: Path) -> list[str]:
    path = fill(folder / "a.ascii.txt", [blocks("[12:00] <anna> a word or two\n", 188 * MIB)])
    return [READ, f"irc:{path}"]


def lines(folder: Path) -> list[str]:
    """A text of short lines."""
    path = fill(folder / "a.txt.gz", [blocks("ab\n\n", 512 * MIB)])
    return [READ, f"text:{path}"]


def score_gz(folder: Path) -> list[str]:
    path = fill(
        folder / "a.txt.gz", [blocks("A sentence of some words. ", 1), blocks("a\n", 2**30)]
    )
    return [RUN, "score", str(path)]


def markers(folder: Path) -> list[str]:
    path = fill(folder / "a.jsonl", [b'{"s1": "', blocks("word ", 1024 * MIB), b'", "s2": "b"}\n'])
    return [RUN, "predict-marker", "--model", "{model}", str(path)]


def marker_columns(folder: Path) -> list[str]:
    path = fill(folder / "a.tsv", [blocks("word ", 1024 * MIB), b"\tb\n"])
    return [RUN, "predict-marker", "--model", "{model}", str(path)]


@pytest.mark.parametrize(
    "make",
    [conllu, sentences, cell, irc, lines, score_gz, markers, marker_columns],
    ids=lambda make: make.__name__,
)
def test_a_file_of_any_size_takes_less_than_a_gibibyte(
    make: Callable[[Path], list[str]],
    tmp_path: Path,
    dissent_models: dict[str, Path],  # noqa: F811
) -> None:
    code, *words = make(tmp_path)
    words = [word.replace("{model}", str(dissent_models["ngram"])) for word in words]
    used, said = peak(code, words, tmp_path)
    sys.stderr.write(f"\n{make.__name__}: {used} MiB: {said[-300:]}\n")
    assert used < LIMIT
    assert "Traceback" not in said
    assert any(word in said for word in ("too long", "more than", "longer than", "too many")), said
