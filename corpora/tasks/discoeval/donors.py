"""Where the intruders of discourse coherence come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.prose import foreign_marks, quoted, style, words
from corpora.rng import stream
from corpora.tasks.candidates import Candidates, text_key
from corpora.tasks.similar import Categories, Neighbours, Profiles

TIES = 16
"""The most documents of the same share of categories that are drawn from."""

ATTEMPTS = 32
"""How many windows of donors are tried before a window is left out."""

COPIES = 20
"""How many copies of a document are passed over in the search for another one."""

Numbers = NDArray[np.int64]


class Choice(NamedTuple):
    """Documents of a split that a sentence may be taken from, by number, and how they came."""

    documents: Sequence[int]
    found_by: str


Find = Callable[[list[str], Numbers], Iterator[Choice]]
"""Finds donors among the documents of a split for each of some hosts, by number."""


def any_other(documents: list[str], hosts: Numbers) -> Iterator[Choice]:
    """Any other document of the split may give the intruder."""
    return repeat(Choice(range(len(documents)), "chance"), len(hosts))


def similar_documents(
    profiles: Profiles,
    categories: Categories,
    number: int,
    most_alike: float,
    documents: list[str],
    hosts: Numbers,
) -> Iterator[Choice]:
    """Documents with the largest share of common categories, else the `number` most similar texts.

    One whose text is more alike than `most_alike` (cosine) is a copy or another version.
    """
    texts = Neighbours(profiles.matrix(documents))
    shares = Neighbours(categories.matrix(documents), "share")
    by_text = texts.nearest(hosts, number + COPIES)
    by_share = shares.nearest(hosts, TIES + COPIES)
    matrix = texts.matrix
    own = np.zeros(matrix.shape[1], np.float32)
    for host, (similar, _), (sharing, share) in zip(hosts, by_text, by_share, strict=True):
        features = slice(matrix.indptr[host], matrix.indptr[host + 1])
        # A sparse product would cost a pass over all features.
        own[matrix.indices[features]] = matrix.data[features]
        other = matrix[sharing] @ own <= most_alike
        sharing, share = sharing[other][:TIES], share[other][:TIES]
        if sharing.size:
            choice = Choice(sharing[share >= share[0] - 1e-9].tolist(), "categories")
        else:
            other = matrix[similar] @ own <= most_alike
            choice = Choice(similar[other][:number].tolist(), "tfidf")
        own[matrix.indices[features]] = 0
        yield choice


class Windows:
    """All windows of a split's documents in a file: any one is at hand, a document's together.

    `documents`: their ids, in an order that depends on them alone. `kept`: the windows that are no
    duplicates, by priority. A window is known by its row in the file.
    """

    def __init__(self, taken: Candidates, table: pa.Table, part: str, split: str) -> None:
        """`table`: the rows of `WINDOWS`."""
        values = {"part": part, "split": split}
        documents = dict(taken.engine.rows(_DOCUMENTS, values))
        with taken.engine.reader(_KEPT, values) as reader:
            self.kept = reader.read_all()["place"].to_numpy()
        self.documents = list(documents)
        self._starts = np.cumsum([0, *documents.values()])
        self._table = table
        self._seed, self._stage = taken.target.seed, taken.target.stage_of(part)

    def hosts(self, rows: Numbers | int) -> Numbers:
        """The number of the document of each window."""
        return np.searchsorted(self._starts, np.asarray(rows), side="right") - 1

    def window(self, row: int) -> tuple[str, str, list[str]]:
        """Id of the document, licence and sentences."""
        doc = self.documents[int(self.hosts(row))]
        return doc, self._table["licence"][row].as_py(), self._table["sentences"][row].as_py()

    def intruder(
        self, row: int, position: int, choice: Choice, min_words: int
    ) -> tuple[str, str, str] | str:
        """What replaces the sentence at `position` of a window, or the reason why nothing does.

        An intruder comes with the id and the licence of its document. It stood at the same position
        of a window there: where a sentence stands in a paragraph must not tell whether it was
        replaced. That window shares no sentence with the other document, or both quote the same
        passage. The intruder is speech or narration, as is what it replaces, and has marks of the
        window's style, or its marks would tell it; and both have `min_words` or more.
        """
        host = int(self.hosts(row))
        first = int(self._starts[host])
        window = self.window(row)[2]
        replaced = window[position]
        if words([replaced]) < min_words:
            return "short_sentence_replaced"
        foreign = foreign_marks(style(" ".join(window)))
        # The keys of all the document's sentences are in its first window only.
        known = self._table["known"][first].values.to_numpy()
        random = stream(self._seed, self._stage, f"{self.documents[host]}#{row - first}")
        for _ in range(ATTEMPTS if choice.documents else 0):
            donor = choice.documents[int(random.integers(len(choice.documents)))]
            if donor == host:
                continue
            start, end = self._starts[donor : donor + 2].tolist()
            doc, licence, sentences = self.window(start + int(random.choice(end - start)))
            intruder = sentences[position]
            like = quoted(intruder) == quoted(replaced) and words([intruder]) >= min_words
            if (
                like
                and not style(intruder) & foreign
                and not np.isin(sentence_keys(sentences), known).any()
            ):
                return intruder, doc, licence
        return "no_other_sentence" if choice.documents else "no_similar_document"


def sentence_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """8 bytes for each sentence, letter case aside."""
    return np.fromiter((text_key(text.casefold()) for text in texts), np.uint64, len(texts))


_DOCUMENTS = """
select doc, candidates from documents join split using (part, doc)
where part = $part and split = $split and candidates > 0 order by doc_key, doc
"""

WINDOWS = """
select licence, sentences, known
from documents join split using (part, doc) join candidate using (part, doc)
where part = $part and split = $split order by doc_key, doc, number
"""

_KEPT = """
with placed as (
    select part, doc, number, row_number() over (order by doc_key, doc, number) - 1 as place
    from documents join split using (part, doc) join candidate using (part, doc)
    where part = $part and split = $split
)
select place from kept join placed using (part, doc, number) order by priority, doc, number
"""
