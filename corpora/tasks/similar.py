"""Similar documents, by hashed n-grams or by categories, in time linear in their number.

Words and pairs of words are hashed and weighted by TF-IDF; only the features of a document with
the largest weights stay in memory. They are looked up in an index that leaves out features of too
many documents, so the time grows with the number of documents and not with its square.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from corpora.rng import stable_id

FEATURES = 2**20
FEATURES_PER_TEXT = 48
"""Features of a document that stay in memory: 8 bytes each."""
BYTES_A_PAIR = 16
"""In the file: a feature and its count, each as a float64."""

MAX_FREQUENCY = 1_000
"""A feature of more documents than this is not looked up: it tells little and takes most time."""

ROWS_AT_ONCE = 64

Ranked = tuple[NDArray[np.int64], NDArray[np.float64]]
"""The numbers of rows, and the similarity of each, from the most similar one down."""


def hashed_counts(texts: Sequence[str]) -> Any:
    """Return a sparse matrix [texts, FEATURES] with counts of hashed words and pairs of words.

    It is the same in every process.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        n_features=FEATURES, ngram_range=(1, 2), alternate_sign=False, norm=None
    )
    counts = vectorizer.transform(texts)
    counts.sort_indices()
    return counts


class Profiles:
    """The features of texts, kept in a file until all texts are known and TF-IDF can be computed.

    8 bytes a text are in memory. The file is a temporary one in `folder`; use this as a context
    manager. The weights depend on the texts, not on their order.
    """

    def __init__(self, folder: Path) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115
        self.frequency = np.zeros(FEATURES, np.int64)
        self.rows: dict[str, int] = {}
        self._ends = array("q", [0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, name: str, text: str) -> None:
        """Add one text under a name that no other text has."""
        counts = hashed_counts([text])
        self.frequency[counts.indices] += 1
        self.rows[name] = len(self.rows)
        self._ends.append(self._ends[-1] + counts.nnz)
        pairs = np.stack([counts.indices.astype(np.float64), 1 + np.log(counts.data)], axis=1)
        self._file.write(pairs.tobytes())

    def matrix(self, names: Sequence[str]) -> Any:
        """Return a sparse matrix [names, FEATURES] of unit rows with the features of each text.

        A row has the `FEATURES_PER_TEXT` features of largest weight (TF-IDF).
        """
        from scipy import sparse

        # Inverse document frequencies; a little above 0, so that no text is without features.
        weights = np.log((1 + len(self.rows)) / (1 + self.frequency)) + 0.01
        indices, data, ends = array("i"), array("f"), [0]
        for name in names:
            feature, count = self._read_features(self.rows[name])
            value = count * weights[feature]
            largest = np.sort(np.lexsort((feature, -value))[:FEATURES_PER_TEXT])
            indices.extend(feature[largest].tolist())
            data.extend(value[largest].tolist())
            ends.append(len(indices))
        parts = (np.array(data, np.float32), np.array(indices, np.int32), ends)
        return _scale_rows(sparse.csr_matrix(parts, shape=(len(names), FEATURES)))

    def _read_features(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the features of a text, and the logarithmic count of each, from the file."""
        start, end = self._ends[row], self._ends[row + 1]
        self._file.seek(BYTES_A_PAIR * start)
        data = self._file.read(BYTES_A_PAIR * (end - start))
        pairs = np.frombuffer(data).reshape(-1, 2)
        return pairs[:, 0].astype(np.int64), pairs[:, 1]


class Neighbours:
    """Looks up the rows of a sparse matrix that are most similar to one of its rows.

    `measure` is `cosine` for unit vectors, or `share`: the common features of two binary rows
    divided by all their features. Features in more than `most` rows are not looked up; a `share`
    still counts them among all features. Equally similar rows come in their order.
    """

    def __init__(self, matrix: Any, measure: str = "cosine", most: int = MAX_FREQUENCY) -> None:
        self.matrix, self.measure = matrix, measure
        self._sizes = np.diff(matrix.indptr)
        index = matrix.tocsc(copy=True)
        frequency = np.diff(index.indptr)  # by feature, the number of rows that have it
        too_frequent = np.repeat(frequency > most, frequency)
        index.data[too_frequent] = 0
        index.eliminate_zeros()
        self._index = index.T

    def nearest(self, rows: NDArray[np.int64], number: int) -> Iterator[Ranked]:
        """Yield for each of `rows` the `number` most similar other rows, with their similarity.

        Rows that share no feature with it are left out, so there may be fewer.
        """
        for start in range(0, len(rows), ROWS_AT_ONCE):
            batch = rows[start : start + ROWS_AT_ONCE]
            product = (self.matrix[batch] @ self._index).tocsr()
            product.sort_indices()
            for i, row in enumerate(batch.tolist()):
                entries = slice(product.indptr[i], product.indptr[i + 1])
                others, scores = product.indices[entries], product.data[entries].astype(np.float64)
                is_match = (others != row) & (scores > 0)
                others, scores = others[is_match].astype(np.int64), scores[is_match]
                if self.measure == "share":
                    scores = scores / (self._sizes[row] + self._sizes[others] - scores)
                best = np.lexsort((others, -scores))[:number]
                yield others[best], scores[best]


class Categories:
    """The categories of documents: 8 bytes each in memory."""

    def __init__(self) -> None:
        self._keys: dict[str, array[int]] = {}

    def add(self, name: str, categories: Sequence[str]) -> None:
        """Add the categories of a document, as hashes that ignore letter case."""
        if categories:
            keys = {stable_id(category.strip().casefold()) >> 1 for category in categories}
            self._keys[name] = array("q", sorted(keys))

    def matrix(self, names: Sequence[str]) -> Any:
        """Return a binary sparse matrix with a row for each document and a column a category."""
        from scipy import sparse

        keys, ends = array("q"), [0]
        for name in names:
            keys.extend(self._keys.get(name, ()))
            ends.append(len(keys))
        categories, columns = np.unique(np.array(keys, np.int64), return_inverse=True)
        ones = np.ones(len(columns), np.float32)
        return sparse.csr_matrix((ones, columns, ends), shape=(len(names), max(1, len(categories))))


def _scale_rows(matrix: Any) -> Any:
    """Scale the rows of a sparse matrix to length 1, in place; return the matrix."""
    # The 0 at the end: `indptr` of a last empty row points behind the data.
    squares = np.add.reduceat(np.append(matrix.data**2, 0), matrix.indptr[:-1])
    squares[np.diff(matrix.indptr) == 0] = 1
    matrix.data /= np.repeat(np.sqrt(squares), np.diff(matrix.indptr)).astype(matrix.data.dtype)
    return matrix
