"""The choice of intruders: a sentence of a similar text replaces one that it hardly differs from.

The similarity of an intruder to its new surroundings is drawn from that of the corpus's sentences
in their original places. Over all pairs, intruders are kept in balance with what they replace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from corpora.prose import foreign_marks, style_bits
from corpora.readers.source import SeenIds
from corpora.tasks.names import name_counts
from corpora.tasks.permutations import codes_by_occurrence
from corpora.tasks.similar import FEATURES, MAX_FREQUENCY, hashed_counts

if TYPE_CHECKING:
    from corpora.tasks.intrusion import Intrusion

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

COMMON = 0.1
"""A word in a larger share of the texts tells little about the topic of a text."""

COSINES = 3
MEASURES = 7
"""The measures of a sentence: three mean cosines (`Pool._cosines`), and the four numbers of
`surface_measures`."""

BALANCE = 0.01
"""The cost of a squared step away from balance; that of a squared difference of quantiles is 1."""

TEXTS_A_BATCH = 128


class Intruder(NamedTuple):
    """Sentence `number` of the text `donor`, put at `place` of the text `host`.

    `similarity` is its mean cosine to the other sentences of the host, `replaced` that of the
    sentence that it replaces.
    """

    host: int
    place: int
    donor: int
    number: int
    similarity: float
    replaced: float


class Pool:
    """Texts of one split that give each other intruders; their features are in memory.

    A host is the text that gets an intruder, a donor the text that gives it.

    - `texts`: the sentences of each text.
    - `documents` [texts]: the document of each text; no intruder comes from the same document.
    - `books` [texts]: the number of the book of each text, whose people and places an intruder may
      name.
    - `used`: the sentences that have been intruders already.
    - `balance` [2 * MEASURES]: by how much the intruders of the split have exceeded the sentences
      that they replace: for each measure the sum of the signs and that of the differences, in
      standard deviations. Of intruders that fit equally, the one that brings these sums nearer to
      zero is chosen, as clinical trials allocate patients by minimisation (Pocock and Simon 1975).
    """

    def __init__(
        self,
        texts: Sequence[Sequence[str]],
        documents: NDArray[np.uint64],
        books: Numbers,
        settings: Intrusion,
        random: np.random.Generator,
        used: SeenIds,
        balance: Matrix,
    ) -> None:
        self.sentences = [sentence for text in texts for sentence in text]
        self.documents, self.books, self.settings = documents, books, settings
        self.random, self.used, self.balance = random, used, balance
        sizes = np.array([len(text) for text in texts])
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.text = np.repeat(np.arange(len(texts)), sizes)
        counts = hashed_counts(self.sentences).astype(np.float32)
        ones = np.ones(len(self.sentences), np.float32)
        text_counts = sparse.csr_matrix((ones, np.arange(len(ones)), self.starts)) @ counts
        tfidf = TfidfTransformer(sublinear_tf=True).fit(text_counts)
        frequency = np.bincount(text_counts.indices, minlength=FEATURES)
        only_rarer = _feature_mask(frequency <= max(10, COMMON * len(texts)))
        vectors = tfidf.transform(counts)
        self.vectors = _without_unshared_features(vectors)
        self.rarer = _without_unshared_features(normalize(vectors @ only_rarer))
        not_frequent = _feature_mask(frequency <= MAX_FREQUENCY)
        self.profiles = _without_unshared_features(
            normalize(tfidf.transform(text_counts) @ not_frequent)
        )
        self.surface = np.array(list(map(surface_measures, self.sentences)))
        self.words = self.surface[:, 0]
        self.form = np.array(codes_by_occurrence(map(punctuation_form, self.sentences)))
        self.style = np.array(list(map(style_bits, self.sentences)))
        pairs = {*zip(books.tolist(), documents.tolist(), strict=True)}
        self.chapters = Counter(book for book, _ in pairs)
        self.names: Any = None
        if settings.names == "known":
            self.names = name_counts(self.sentences)  # [sentences, names]
            of_book = (ones, (self.books[self.text], np.arange(len(ones))))
            self.book_names = sparse.csr_matrix(of_book) @ self.names
        # Not the first or last sentence of a text, and none without a word, such as `* * *`.
        self.usable = (self.words >= settings.min_words) & (np.diff(counts.indptr) > 0)
        self.usable[[*self.starts[:-1], *(self.starts[1:] - 1)]] = False
        # The measures of all sentences in their original places; which of them may be replaced.
        measures = []
        for rows in np.split(np.arange(len(self.sentences)), self.starts[1:-1]):
            means = (mean_weights(len(rows)) * self._cosines(rows, rows)).sum(axis=-1)
            measures.append(np.column_stack([means.T, self.surface[rows]]))
        self.measures: Matrix = np.concatenate(measures)  # [sentences, MEASURES]
        self.may_change = self.usable.copy()
        self.replaceable = np.flatnonzero(self.usable)
        self._sorted = np.sort(self.measures[self.replaceable], axis=0)
        self._scale = self.measures[self.replaceable].std(axis=0) + 1e-9
        self.quantiles = self._quantiles(self.measures)

    def intruders(self) -> Iterator[Intruder]:
        """Yield the intruders of each text, at most `per_text`."""
        for host, donors in enumerate(self.similar_texts()):
            if donors.size:
                yield from islice(self._intruders_in(host, donors), self.settings.per_text)

    def similar_texts(self) -> Iterator[Numbers]:
        """Yield for each text the numbers of the most similar texts from other documents.

        Copies, which are more similar than `max_text_similarity`, are left out.
        """
        columns, number = self.profiles.T.tocsr(), self.settings.similar
        for start in range(0, len(self.documents), TEXTS_A_BATCH):
            rows = self.profiles[start : start + TEXTS_A_BATCH] @ columns
            for host, similarity in enumerate(rows.toarray(), start):
                fits = (similarity > 0) & (similarity <= self.settings.max_text_similarity)
                donors = np.flatnonzero(fits & (self.documents != self.documents[host]))
                if donors.size > number:
                    # Texts as similar as the last one stay too, so that ties need no order.
                    least = np.partition(similarity[donors], -number)[-number]
                    donors = donors[similarity[donors] >= least]
                yield donors

    def _intruders_in(self, host: int, donors: Numbers) -> Iterator[Intruder]:
        """Yield the best intruder for each place of the text `host`, the places in random order."""
        host_sentences = np.arange(self.starts[host], self.starts[host + 1])
        guests = np.concatenate([np.arange(*self.starts[donor : donor + 2]) for donor in donors])
        cosines = self._cosines(host_sentences, guests)
        # Not nearly a copy of any sentence of the text, the replaced one included.
        fits = cosines[0].max(axis=0) <= self.settings.max_similarity
        foreign = foreign_marks(int(np.bitwise_or.reduce(self.style[host_sentences])))
        fits &= self.style[guests] & foreign == 0
        # An article is no book: nearly each of its sentences has names of its own.
        if self.names is not None and self.chapters[int(self.books[host])] > 1:
            unknown = np.ones(self.names.shape[1], np.float32)
            unknown[self.book_names[self.books[host]].indices] = 0
            fits &= self.names[guests] @ unknown == 0
        means = mean_weights(len(host_sentences)) @ cosines
        replaceable = host_sentences[self.may_change[host_sentences]]
        for sentence in self.random.permutation(replaceable).tolist():
            place = sentence - host_sentences[0]
            fits_here = fits & self.usable[guests] & (self.form[guests] == self.form[sentence])
            # Longer or shorter by the factor `max_ratio` at most.
            ratio = self.words[guests] / self.words[sentence]
            fits_here &= np.maximum(ratio, 1 / np.maximum(ratio, 1e-9)) <= self.settings.max_ratio
            indices = np.flatnonzero(fits_here)
            measures = np.column_stack([means[:, place, indices].T, self.surface[guests[indices]]])
            excess = (measures - self.measures[sentence]) / self._scale
            shifts = np.column_stack([np.sign(excess), excess])
            for best in self._rank_guests(sentence, measures, shifts):
                guest = guests[indices[best]]
                self.usable[guest] = False
                # The same words intrude only once, whichever text they are from.
                if self.used.add(self.sentences[guest].casefold()):
                    self.balance += shifts[best]
                    donor = int(self.text[guest])
                    number = int(guest - self.starts[donor])
                    similarity = float(measures[best, 0])
                    replaced = float(self.measures[sentence, 0])
                    yield Intruder(host, int(place), donor, number, similarity, replaced)
                    break

    def _rank_guests(self, sentence: int, measures: Matrix, shifts: Matrix) -> Numbers:
        """Return the indices of possible intruders for the place of a sentence, the best first.
        `measures` [guests, MEASURES] are the measures of each guest in that place; `shifts`
        [guests, 2 * MEASURES] is what each guest would add to the pool's `balance` if it intruded
        there."""
        if self.settings.choose == "random":
            return self.random.permutation(len(measures))
        # The aim: as similar as a random sentence of the corpus is to its text, and of the same
        # surface as the replaced sentence.
        aim = self.quantiles[sentence].copy()
        aim[:COSINES] = self.quantiles[self.random.choice(self.replaceable), :COSINES]
        cost = ((self._quantiles(measures) - aim) ** 2).sum(axis=1)
        cost += BALANCE * ((self.balance + shifts) ** 2).sum(axis=1)
        return np.argsort(cost, kind="stable")

    def _cosines(self, rows: Numbers, others: Numbers) -> Matrix:
        """Return the cosines [3, rows, others] of sentences: by all words for the first two means
        of `mean_weights`, by rarer words for the third one."""
        all_words = (self.vectors[rows] @ self.vectors[others].T).toarray()
        rarer = (self.rarer[rows] @ self.rarer[others].T).toarray()
        return np.stack([all_words, all_words, rarer])

    def _quantiles(self, measures: Matrix) -> Matrix:
        """Return for each measure the share of the replaceable sentences that have less of it."""
        columns = zip(self._sorted.T, measures.T, strict=True)
        ranks = np.column_stack([np.searchsorted(*pair) for pair in columns])
        return ranks / max(1, len(self._sorted))


@cache
def mean_weights(size: int) -> Matrix:
    """Return weights [3, size, size] for three mean cosines at each place of a text.

    The first mean is over all sentences but the one at the place, the second over its neighbours,
    the third is like the first. Use: `mean_weights(size) @ cosines` with cosines [3, size, others].
    """
    others = 1 - np.eye(size)
    neighbours = np.eye(size, k=1) + np.eye(size, k=-1)
    selections = np.stack([others, neighbours, others])
    means: Matrix = selections / selections.sum(axis=-1, keepdims=True)
    return means


def surface_measures(sentence: str) -> tuple[float, ...]:
    """Return the numbers of words, of characters a word, of capitals and of punctuation marks."""
    words = len(sentence.split())
    capitals, spaces = sum(map(str.isupper, sentence)), sum(map(str.isspace, sentence))
    marks = len(sentence) - spaces - sum(map(str.isalnum, sentence))
    return words, len(sentence) / max(1, words), capitals, marks


def punctuation_form(sentence: str) -> tuple[object, ...]:
    """Return a key of a sentence's punctuation: only sentences of equal form are exchanged.

    It has the final mark, the numbers of quotation marks at the beginning and at the end, the
    number of quotations that stay open, and 1 if the number of straight quotation marks is odd.
    With other forms an exchange would leave a quotation open.
    """
    begins = len(sentence) - len(sentence.lstrip("“«‘`\"'"))
    ends = len(sentence) - len(sentence.rstrip("”»’\"'"))
    opened = sum(map(sentence.count, ("“", "«", "``")))
    closed = sum(map(sentence.count, ("”", "»", "''")))
    last = sentence.rstrip("”»’\"')] ")[-1:]
    end = last if last in ".?!" else ""
    return end, begins, ends, opened - closed, sentence.count('"') % 2


def _feature_mask(is_kept: NDArray[np.bool_]) -> Any:
    """Return a diagonal matrix D: `vectors @ D` keeps the features marked True; others become 0."""
    return sparse.diags(is_kept.astype(np.float32))


def _without_unshared_features(rows: Any) -> Any:
    """Return sparse vectors without features that only one has, which no cosine needs."""
    return rows[:, np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]) > 1)]
