"""Pickles of strangers: plain values are read, anything else is refused and never run."""

from __future__ import annotations

import os
import pickle
import pickletools
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from corpora.errors import BadRecord, InputError
from corpora.readers import guarded, open_source
from corpora.readers.coherence import read_pairs
from corpora.readers.guarded import load_plain

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
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x00a.": "not a complete pickle",
        b"\x80\x04\x8b\xff\xff\xff\x7f\x01.": "not a complete pickle",
        b"I" + b"9" * 100_000 + b"\n.": "not a complete pickle",
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
    assert names >= guarded.PLAIN
    dangerous = {"REDUCE", "BUILD", "OBJ", "INST", "NEWOBJ", "NEWOBJ_EX", "GLOBAL", "STACK_GLOBAL"}
    assert not dangerous & guarded.PLAIN


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
    monkeypatch.setattr(guarded, "SIZE_LIMIT", 8)
    with pytest.raises(InputError, match="too large"):
        list(read_pairs(path))


def test_lists_in_lists_without_end(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    for depth, reason in ((9_000, "expected an object"), (50_000, "nested too deep")):
        path.write_bytes(b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b".")
        with pytest.raises(InputError, match=reason):
            list(read_pairs(path))
    many = [{"pos": [[] for _ in range(30_000)], "neg": ["x"]}]
    with pytest.raises(InputError, match="wrong type"):
        list(read_pairs(pickled(path, many)))
    doubled: list[Any] = ["a"]
    for _ in range(200):
        doubled = [doubled, doubled]
    bad: list[BadRecord] = []
    pairs = [{"pos": doubled, "neg": doubled}, *PAIRS]
    assert len(list(read_pairs(pickled(path, pairs), bad.append))) == 1
    assert [b.reason.partition(":")[0] for b in bad] == ["wrong type"]
