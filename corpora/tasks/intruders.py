"""Which sentence of a similar text is put where, so that little tells an intruder.

How similar an intruder is to its new surroundings, and how long it is, is drawn from the sentences
of the corpus in their own places, and over all pairs kept in balance with what is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from corpora.prose import foreign_marks, style
from corpora.readers.source import SeenIds
from corpora.tasks.permutations import codes
from corpora.tasks.similar import FEATURES, MOST, hashed_counts

if TYPE_CHECKING:
    from corpora.tasks.intrusion import Intrusion

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

COMMON = 0.1
"""Words of a larger share of the texts say little of what a text is about."""

COSINES = 3
MEASURES = 7
"""Three mean cosines (`Pool._cosines`) and what `surface` counts."""

BALANCE = 0.01
"""What a step away from balance costs, beside squared differences of quantiles."""

TEXTS_A_BATCH = 128


class Intruder(NamedTuple):
    """Sentence `number` of the text `donor`, at `place` of the text `host`.

    `similarity`: its mean cosine to the other sentences there; `replaced`: the same of the sentence
    that it replaces.
    """

    host: int
    place: int
    donor: int
    number: int
    similarity: float
    replaced: float


class Pool:
    """Texts of one split that give each other intruders; their features are in memory.

    `texts`: the sentences of each. `documents` [texts]: none is taken from a text's own document.
    `said` knows the sentences that have intruded. `balance` [2 * MEASURES] is what intruders of the
    split have had more than what they replace: of each measure the signs and the differences (in
    standard deviations) are summed up. Of those that fit as well, the one is taken that brings
    these sums nearer to zero, as clinical trials allocate patients by minimisation (Pocock and
    Simon 1975).
    """

    def __init__(
        self,
        texts: Sequence[Sequence[str]],
        documents: NDArray[np.uint64],
        settings: Intrusion,
        draw: np.random.Generator,
        said: SeenIds,
        balance: Matrix,
    ) -> None:
        self.sentences = [sentence for text in texts for sentence in text]
        self.documents, self.settings = documents, settings
        self.draw, self.said, self.balance = draw, said, balance
        sizes = np.array([len(text) for text in texts])
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.text = np.repeat(np.arange(len(texts)), sizes)
        counts = hashed_counts(self.sentences).astype(np.float32)
        ones = np.ones(len(self.sentences), np.float32)
        together = sparse.csr_matrix((ones, np.arange(len(ones)), self.starts)) @ counts
        tfidf = TfidfTransformer(sublinear_tf=True).fit(together)
        frequency = np.bincount(together.indices, minlength=FEATURES)
        rarer = _only(frequency <= max(10, COMMON * len(texts)))
        vectors = tfidf.transform(counts)
        self.vectors, self.rarer = _shared(vectors), _shared(normalize(vectors @ rarer))
        telling = _only(frequency <= MOST)
        self.profiles = _shared(normalize(tfidf.transform(together) @ telling))
        self.surface = np.array(list(map(surface, self.sentences)))
        self.words = self.surface[:, 0]
        self.form = np.array(codes(map(form, self.sentences)))
        self.style = np.array(list(map(style, self.sentences)))
        # Not the first or last sentence of a text, and none without a word, such as `* * *`.
        self.usable = (self.words >= settings.min_words) & (np.diff(counts.indptr) > 0)
        self.usable[[*self.starts[:-1], *(self.starts[1:] - 1)]] = False
        # The measures of all sentences in their own places, and which of them may be replaced.
        own = []
        for rows in np.split(np.arange(len(self.sentences)), self.starts[1:-1]):
            means = (weights(len(rows)) * self._cosines(rows, rows)).sum(axis=-1)
            own.append(np.column_stack([means.T, self.surface[rows]]))
        self.own: Matrix = np.concatenate(own)  # [sentences, MEASURES]
        self.may_change = self.usable.copy()
        self.replaceable = np.flatnonzero(self.usable)
        self._sorted = np.sort(self.own[self.replaceable], axis=0)
        self._scale = self.own[self.replaceable].std(axis=0) + 1e-9
        self.quantiles = self._quantiles(self.own)

    def intruders(self) -> Iterator[Intruder]:
        """The intruders of each text, at most `per_text`."""
        for host, donors in enumerate(self.similar()):
            if donors.size:
                yield from islice(self._intruders(host, donors), self.settings.per_text)

    def similar(self) -> Iterator[Numbers]:
        """For each text the most similar texts of other documents, but for copies."""
        across, number = self.profiles.T.tocsr(), self.settings.similar
        for start in range(0, len(self.documents), TEXTS_A_BATCH):
            rows = self.profiles[start : start + TEXTS_A_BATCH] @ across
            for host, similarity in enumerate(rows.toarray(), start):
                fit = (similarity > 0) & (similarity <= self.settings.max_text_similarity)
                found = np.flatnonzero(fit & (self.documents != self.documents[host]))
                if found.size > number:
                    # All that are as similar as the last one: no order of equal numbers counts.
                    least = np.partition(similarity[found], -number)[-number]
                    found = found[similarity[found] >= least]
                yield found

    def _intruders(self, host: int, donors: Numbers) -> Iterator[Intruder]:
        """The best intruder at each place of a text, the places in a random order."""
        host_sentences = np.arange(self.starts[host], self.starts[host + 1])
        guests = np.concatenate([np.arange(*self.starts[donor : donor + 2]) for donor in donors])
        cosines = self._cosines(host_sentences, guests)
        # Nearly a copy of no sentence of the text, the replaced one included.
        fits = cosines[0].max(axis=0) <= self.settings.max_similarity
        foreign = foreign_marks(int(np.bitwise_or.reduce(self.style[host_sentences])))
        fits &= self.style[guests] & foreign == 0
        means = weights(len(host_sentences)) @ cosines
        replaceable = host_sentences[self.may_change[host_sentences]]
        for sentence in self.draw.permutation(replaceable).tolist():
            place = sentence - host_sentences[0]
            alike = fits & self.usable[guests] & (self.form[guests] == self.form[sentence])
            # Longer or shorter by the factor `max_ratio` at most.
            ratio = self.words[guests] / self.words[sentence]
            alike &= np.maximum(ratio, 1 / np.maximum(ratio, 1e-9)) <= self.settings.max_ratio
            some = np.flatnonzero(alike)
            measured = np.column_stack([means[:, place, some].T, self.surface[guests[some]]])
            excess = (measured - self.own[sentence]) / self._scale
            shifts = np.column_stack([np.sign(excess), excess])
            for best in self._order(sentence, measured, shifts):
                guest = guests[some[best]]
                self.usable[guest] = False
                # A text comes once as an intruder, wherever it stands.
                if self.said.add(self.sentences[guest].casefold()):
                    self.balance += shifts[best]
                    donor = int(self.text[guest])
                    number = int(guest - self.starts[donor])
                    similar, replaced = float(measured[best, 0]), float(self.own[sentence, 0])
                    yield Intruder(host, int(place), donor, number, similar, replaced)
                    break

    def _order(self, sentence: int, measured: Matrix, shifts: Matrix) -> Numbers:
        """Guests in the place of a sentence, the best first.

        measured [guests, MEASURES]; shifts [guests, 2 * MEASURES]: what each adds to the balance.
        """
        if self.settings.choose == "random":
            return self.draw.permutation(len(measured))
        # How similar it is to be, a sentence of the corpus says that is drawn at random; how long
        # and of what form, the one that it replaces.
        aim = self.quantiles[sentence].copy()
        aim[:COSINES] = self.quantiles[self.draw.choice(self.replaceable), :COSINES]
        cost = ((self._quantiles(measured) - aim) ** 2).sum(axis=1)
        cost += BALANCE * ((self.balance + shifts) ** 2).sum(axis=1)
        return np.argsort(cost, kind="stable")

    def _cosines(self, rows: Numbers, others: Numbers) -> Matrix:
        """Cosines of sentences [3, rows, others]: by all words, the same again, by rarer words."""
        every = (self.vectors[rows] @ self.vectors[others].T).toarray()
        rarer = (self.rarer[rows] @ self.rarer[others].T).toarray()
        return np.stack([every, every, rarer])

    def _quantiles(self, measured: Matrix) -> Matrix:
        """The share of the corpus's sentences that have less of each measure."""
        columns = zip(self._sorted.T, measured.T, strict=True)
        places = np.column_stack([np.searchsorted(*both) for both in columns])
        return places / max(1, len(self._sorted))


@cache
def weights(size: int) -> Matrix:
    """[3, size, size]: times cosines to the sentences of a text, the means at each place.

    Over all sentences but the one of the place, over those beside it, and over all again.
    """
    rest = 1 - np.eye(size)
    near = np.eye(size, k=1) + np.eye(size, k=-1)
    both = np.stack([rest, near, rest])
    means: Matrix = both / both.sum(axis=-1, keepdims=True)
    return means


def surface(sentence: str) -> tuple[float, ...]:
    """Words, characters a word, capitals and marks."""
    words = len(sentence.split())
    capitals, spaces = sum(map(str.isupper, sentence)), sum(map(str.isspace, sentence))
    marks = len(sentence) - spaces - sum(map(str.isalnum, sentence))
    return words, len(sentence) / max(1, words), capitals, marks


def form(sentence: str) -> tuple[object, ...]:
    """How a sentence ends, how many quotation marks begin and end it, and how many stay open.

    Exchanged for one of another kind, a sentence leaves a quotation open, or closes none.
    """
    begins = len(sentence) - len(sentence.lstrip("“«‘`\"'"))
    ends = len(sentence) - len(sentence.rstrip("”»’\"'"))
    opened = sum(map(sentence.count, ("“", "«", "``")))
    closed = sum(map(sentence.count, ("”", "»", "''")))
    last = sentence.rstrip("”»’\"')] ")[-1:]
    end = last if last in ".?!" else ""
    return end, begins, ends, opened - closed, sentence.count('"') % 2


def _only(features: NDArray[np.bool_]) -> Any:
    """A matrix that leaves only some features."""
    return sparse.diags(features.astype(np.float32))


def _shared(rows: Any) -> Any:
    """Sparse unit vectors without the features that only one of them has: no cosine needs these."""
    return rows[:, np.flatnonzero(np.bincount(rows.indices, minlength=rows.shape[1]) > 1)]
