"""The index on disk finds what a full comparison finds, whatever the blocks it was sorted in."""

from __future__ import annotations

import numpy as np
import pytest

from corpora.tasks import postings
from corpora.tasks.postings import Postings


def unit_rows(number: int, features: int) -> np.ndarray:
    """Sparse rows as a dense matrix; some features are frequent, some rows have none."""
    random = np.random.default_rng(3)
    share = 1 / np.arange(1, features + 1)
    dense = random.random((number, features)) * (random.random((number, features)) < share)
    length = np.sqrt((dense**2).sum(axis=1, keepdims=True))
    return (dense / np.where(length == 0, 1, length)).astype(np.float32)


def index(dense: np.ndarray, folder, **settings) -> Postings:
    rows = ((np.flatnonzero(row).astype(np.int32), row[row > 0]) for row in dense)
    return Postings(folder, rows, dense.shape[1], **{"most": 10_000, **settings})


@pytest.mark.parametrize("block", [7, 64, 100_000])
def test_the_nearest_rows_are_those_of_a_full_comparison(tmp_path, block):
    dense = unit_rows(60, 40)
    cosine = dense.astype(np.float64) @ dense.T.astype(np.float64)
    np.fill_diagonal(cosine, 0)
    with index(dense, tmp_path, block=block) as found:
        for row in range(60):
            others, scores = found.nearest(row, 5)
            best = np.sort(cosine[row])[::-1][:5]
            assert np.allclose(scores, best[best > 0])
            assert np.allclose(cosine[row, others], scores) and len(set(others)) == len(others)
    assert list(tmp_path.iterdir()) == []


def test_frequent_features_are_not_looked_up_and_work_is_bounded(tmp_path, monkeypatch):
    dense = np.eye(6, 8, dtype=np.float32)
    dense[:, 7] = 1
    with index(dense, tmp_path, most=5) as found:
        assert found.nearest(0, 3)[0].tolist() == []
    monkeypatch.setattr(postings, "READ", 6)
    with index(dense, tmp_path) as found:  # its own feature and the shared one are 7 postings
        assert found.nearest(0, 3)[0].tolist() == []
    monkeypatch.setattr(postings, "READ", 7)
    with index(dense, tmp_path) as found:
        assert found.nearest(0, 3)[0].tolist() == [1, 2, 3]
