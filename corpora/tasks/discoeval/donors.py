"""The intruders of discourse coherence: which documents may give one, and which sentence it is.

A host is the document of a window that gets an intruder; a donor is a document that gives one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.prose import count_words, foreign_marks, style_bits
from corpora.quotes import quotes_at_ends
from corpora.rng import stream
from corpora.tasks.candidates import Candidates, text_key
from corpora.tasks.similar import Categories, Neighbours, Profiles

MAX_TIES = 16
"""Maximum number of documents with an equal share of common categories."""

ATTEMPTS = 32
"""Windows of donors that are tried before a window is left out."""

MAX_COPIES = 20
"""Maximum number of copies of a document that the search for similar documents leaves out."""

Numbers = NDArray[np.int64]


class Choice(NamedTuple):
    """The numbers of the documents that may give an intruder, and the method that found them."""

    documents: Sequence[int]
    found_by: str


Find = Callable[[list[str], Numbers], Iterator[Choice]]
"""Takes the ids of a split's documents and the numbers of some hosts; yields a choice a host."""


def any_other(documents: list[str], hosts: Numbers) -> Iterator[Choice]:
    """Yield for each host a choice of all documents of the split."""
    return repeat(Choice(range(len(documents)), "chance"), len(hosts))


def similar_documents(
    profiles: Profiles,
    categories: Categories,
    number: int,
    max_cosine: float,
    documents: list[str],
    hosts: Numbers,
) -> Iterator[Choice]:
    """Yield for each host the documents with the largest share of common categories.

    `documents` are ids, `hosts` the numbers in them of the documents that get an intruder. For a
    host that shares no category, yields the `number` documents with the most similar texts. A
    document whose text is more similar than `max_cosine` is a copy or another version, and is left
    out.
    """
    texts = Neighbours(profiles.matrix(documents))
    shares = Neighbours(categories.matrix(documents), "share")
    by_text = texts.nearest(hosts, number + MAX_COPIES)
    by_share = shares.nearest(hosts, MAX_TIES + MAX_COPIES)
    matrix = texts.matrix
    host_vector = np.zeros(matrix.shape[1], np.float32)
    for host, (similar, _), (sharing, share) in zip(hosts, by_text, by_share, strict=True):
        features = slice(matrix.indptr[host], matrix.indptr[host + 1])
        # Dense, and reset below: a sparse product would take a pass over all features.
        host_vector[matrix.indices[features]] = matrix.data[features]
        is_no_copy = matrix[sharing] @ host_vector <= max_cosine
        sharing, share = sharing[is_no_copy][:MAX_TIES], share[is_no_copy][:MAX_TIES]
        if sharing.size:
            choice = Choice(sharing[share >= share[0] - 1e-9].tolist(), "categories")
        else:
            is_no_copy = matrix[similar] @ host_vector <= max_cosine
            choice = Choice(similar[is_no_copy][:number].tolist(), "tfidf")
        host_vector[matrix.indices[features]] = 0
        yield choice


class Windows:
    """Random access to all windows of a split's documents, in a memory-mapped file.

    The windows of a document stand together; a window is named by its row. `documents` are the ids
    of the documents, in an order that only these ids determine; `kept` are the rows of the windows
    that are not duplicates, by priority.
    """

    def __init__(self, candidates: Candidates, table: pa.Table, part: str, split: str) -> None:
        """Read the windows of `part` and `split` from `candidates`.

        `table` is the result of the query `WINDOWS` for the same part and split.
        """
        values = {"part": part, "split": split}
        documents = dict(candidates.engine.rows(_DOCUMENTS, values))
        with candidates.engine.reader(_KEPT, values) as reader:
            self.kept = reader.read_all()["place"].to_numpy()
        self.documents = list(documents)
        self._starts = np.cumsum([0, *documents.values()])
        self._table = table
        self._seed, self._stage = candidates.target.seed, candidates.target.stage_of(part)

    def hosts(self, rows: Numbers | int) -> Numbers:
        """Return the number of the document of each window, given by its row."""
        return np.searchsorted(self._starts, np.asarray(rows), side="right") - 1

    def window(self, row: int) -> tuple[str, str, list[str]]:
        """Return the id of a window's document, its licence, and the window's sentences."""
        doc = self.documents[int(self.hosts(row))]
        return doc, self._table["licence"][row].as_py(), self._table["sentences"][row].as_py()

    def intruder(
        self, row: int, position: int, choice: Choice, min_words: int
    ) -> tuple[str, str, str] | str:
        """Return an intruder for `position` of a window, with its document's id and licence.

        If there is none, the reason is returned. The intruder

        - stood at the same position of a window in a document of `choice`, so that its place in a
          paragraph tells nothing;
        - comes from a window that shares no sentence with this document (no common quotation);
        - is speech or narration like the sentence that it replaces, and has quotation marks and
          dashes of the window's style;
        - has `min_words` or more, and so has the replaced sentence.
        """
        host = int(self.hosts(row))
        first_row = int(self._starts[host])
        window = self.window(row)[2]
        replaced = window[position]
        if count_words([replaced]) < min_words:
            return "short_sentence_replaced"
        foreign = foreign_marks(style_bits(" ".join(window)))
        # The keys of all the document's sentences are in its first window only.
        host_keys = self._table["known"][first_row].values.to_numpy()
        random = stream(self._seed, self._stage, f"{self.documents[host]}#{row - first_row}")
        for _ in range(ATTEMPTS if choice.documents else 0):
            donor = choice.documents[int(random.integers(len(choice.documents)))]
            if donor == host:
                continue
            start, end = self._starts[donor : donor + 2].tolist()
            doc, licence, sentences = self.window(start + int(random.choice(end - start)))
            intruder = sentences[position]
            is_alike = (
                quotes_at_ends(intruder) == quotes_at_ends(replaced)
                and not style_bits(intruder) & foreign
            )
            if (
                is_alike
                and count_words([intruder]) >= min_words
                and not np.isin(sentence_keys(sentences), host_keys).any()
            ):
                return intruder, doc, licence
        return "no_other_sentence" if choice.documents else "no_similar_document"


def sentence_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of 64 bits for each sentence, the same for both letter cases."""
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
