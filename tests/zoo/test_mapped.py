"""Tokens made by several processes: the same arrays, whatever the recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.zoo.conftest import SUBJECTS, VERBS, WORDS
from zoo.dissent.data import encode_pairs, mapped_pairs
from zoo.dissent.recipes import Transformer
from zoo.labelled import load
from zoo.training import mapped as room
from zoo.training.mapped import Texts, mapped
from zoo.vocabularies import train_subwords


def arrays(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


def test_processes_change_no_byte(
    pairs_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs in parts of ten rows, by this process and by two; and those made in memory."""
    monkeypatch.setattr("zoo.dissent.data.CHUNK", 10)
    size = load(str(pairs_folder), "all").tables["train"].nbytes
    monkeypatch.setattr(room, "BYTES_A_WORKER", size // 2)
    texts = [*SUBJECTS, *VERBS, *(word for words in WORDS.values() for word in words)]
    tokenizer = train_subwords(texts, 320, max_length=64)
    found: list[dict[str, bytes]] = []
    for workers in (0, 2):
        output = str(tmp_path / f"{workers}" / "model")
        recipe = Transformer(dataset=str(pairs_folder), output=output, workers=workers)
        data = load(str(pairs_folder), "all")
        rows = mapped_pairs(recipe, data, tokenizer, 12, sides=1)
        (folder,) = Path(f"{output}.partial").glob("tokens-*")
        found.append(arrays(folder))
    assert found[0] == found[1] and "train/tokens.bin" in found[0]
    for split, pairs in rows.items():
        plain = encode_pairs(*data.texts(split), tokenizer, 12, data.gold(split))
        assert pairs.truncated == plain.truncated > 0
        for row in range(len(plain)):
            mine, theirs = pairs.collate([pairs[row]]), plain.collate([plain[row]])
            assert mine.keys() == theirs.keys()
            assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)
    data.free_texts()
    assert data.tables["train"].column_names == ["label"] and data.data.describe()["rows"]


def test_texts_and_arrays_follow_one_another(tmp_path: Path) -> None:
    tokenizer: Any = range(70_000)  # its length says how wide ids are
    parts = [
        {"a": Texts.of([[1, 2], []]), "b": np.array([[1, 2]], np.int8)},
        {"a": Texts.of([]), "b": np.zeros((0, 2), np.int8)},
        {"a": Texts.of([[69_999], [3]]), "b": np.array([[3, 4], [5, 6]], np.int8)},
    ]
    with room.Arrays(tmp_path, tokenizer) as written:
        for part in parts:
            written.append(part)
    for found in (mapped(tmp_path), room.joined(parts)):
        assert [list(text) for text in found["a"]] == [[1, 2], [], [69_999], [3]]
        assert found["a"].lengths().tolist() == [2, 0, 1, 1]
        assert found["b"].tolist() == [[1, 2], [3, 4], [5, 6]] and found["b"].dtype == np.int8


def test_few_texts_need_no_other_process() -> None:
    assert room._process_count(-1, 1000) == room._process_count(5, 1000) == 0
    assert room._process_count(-1, 1 << 40) >= 1 and room._process_count(5, 1 << 40) == 5
