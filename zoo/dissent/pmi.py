"""Word vectors from co-occurrence counts: positive PMI and a singular value decomposition.

Levy, Goldberg and Dagan 2015, with their smoothing of the contexts' distribution. For SIF where
no file of pretrained vectors is given.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from corpora.rng import stream

WINDOW = 5
SMOOTHING = 0.75
TOKENS_PER_PART = 2_000_000


def pmi_vectors(
    tokens: np.ndarray, bounds: np.ndarray, vocab_size: int, size: int, seed: int
) -> np.ndarray:
    """Vectors `[vocab_size, size]` of the words in sentences `tokens[bounds[i]:bounds[i + 1]]`.

    A word that occurs with no other one has the vector zero. At most `vocab_size - 1` numbers
    are filled.
    """
    from sklearn.utils.extmath import randomized_svd

    weighted = _positive_pmi(_counts(tokens, bounds, vocab_size))
    rank = min(size, vocab_size - 1)
    random = int(stream(seed, "zoo.dissent.pmi").integers(2**31))
    left, values, _ = randomized_svd(weighted, rank, n_iter=4, random_state=random)
    vectors = np.zeros((vocab_size, size), np.float32)
    vectors[:, :rank] = left * np.sqrt(values)
    return vectors


def _counts(tokens: np.ndarray, bounds: np.ndarray, vocab_size: int) -> csr_matrix:
    """How often two words stand at most `WINDOW` words apart in a sentence; symmetric."""
    sentence = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    shape = (vocab_size, vocab_size)
    total = csr_matrix(shape, dtype=np.float64)
    for start in range(0, len(tokens), TOKENS_PER_PART):
        stop = start + TOKENS_PER_PART
        for distance in range(1, WINDOW + 1):
            one, two = tokens[start:stop], tokens[start + distance : stop + distance]
            one = one[: len(two)]
            near = sentence[start : start + len(two)]
            inside = near == sentence[start + distance : stop + distance]
            ones = np.ones(int(inside.sum()))
            total = total + csr_matrix((ones, (one[inside], two[inside])), shape=shape)
    return total + total.T


def _positive_pmi(counts: csr_matrix) -> csr_matrix:
    """max(0, log p(w, c) / (p(w) p(c)^0.75)), the contexts' shares taken after smoothing."""
    cells = counts.tocoo()
    words = np.asarray(counts.sum(1)).ravel()
    contexts = words**SMOOTHING
    contexts = contexts / max(contexts.sum(), 1e-12)
    pmi = np.log(cells.data / (words[cells.row] * contexts[cells.col]))
    kept = pmi > 0
    return csr_matrix(
        (pmi[kept].astype(np.float32), (cells.row[kept], cells.col[kept])), shape=counts.shape
    )
