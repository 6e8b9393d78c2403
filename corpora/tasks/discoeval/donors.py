"""Where the intruders of discourse coherence come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.prose import quoted, words
from corpora.rng import stream
from corpora.tasks.builder import Target
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


class Intruder(NamedTuple):
    """A sentence of another document, and that document's id and licence."""

    sentence: str
    doc: str
    licence: str


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

    def __init__(
        self, table: pa.Table, documents: dict[str, int], kept: Numbers, target: Target, part: str
    ) -> None:
        self.documents, self.kept = list(documents), kept
        self._starts = np.cumsum([0, *documents.values()])
        self._licence, self._sentences = table["licence"], table["sentences"]
        self._known = table["known"]
        self._seed, self._stage = target.seed, target.stage_of(part)

    @classmethod
    @contextmanager
    def of(cls, taken: Candidates, part: str, split: str) -> Iterator[Self]:
        """Those of one part and split; the file is removed at the end."""
        values = {"part": part, "split": split}
        documents = dict(taken.engine.rows(_DOCUMENTS, values))
        with taken.engine.reader(_KEPT, values) as reader:
            kept = reader.read_all()["place"].to_numpy()
        with taken.mapped(_WINDOWS, values) as table:
            yield cls(table, documents, kept, taken.target, part)

    def hosts(self) -> Numbers:
        """The number of the document of each kept window."""
        return np.searchsorted(self._starts, self.kept, side="right") - 1

    def _host(self, row: int) -> int:
        return int(np.searchsorted(self._starts, row, side="right")) - 1

    def window(self, row: int) -> tuple[str, str, list[str]]:
        """Id of the document, licence and sentences."""
        doc = self.documents[self._host(row)]
        return doc, self._licence[row].as_py(), self._sentences[row].as_py()

    def intruder(self, row: int, position: int, choice: Choice, min_words: int) -> Intruder | str:
        """What replaces the sentence at `position` of a window, or the reason why nothing does.

        The intruder stood at the same position of a window of its document: where a sentence
        stands in a paragraph must not tell whether it was replaced. That window has no sentence
        that the document to intrude on has anywhere: it would be a passage that both took over.
        It is speech or narration, as is what it replaces, or its marks would tell it; and both
        have `min_words` or more.
        """
        host = self._host(row)
        first = int(self._starts[host])
        replaced = self._sentences[row][position].as_py()
        if words([replaced]) < min_words:
            return "short_sentence_replaced"
        random = stream(self._seed, self._stage, f"{self.documents[host]}#{row - first}")
        for _ in range(ATTEMPTS if choice.documents else 0):
            donor = choice.documents[int(random.integers(len(choice.documents)))]
            if donor == host:
                continue
            start, end = self._starts[donor : donor + 2].tolist()
            doc, licence, sentences = self.window(start + int(random.choice(end - start)))
            known = self._known[first].values.to_numpy()
            intruder = sentences[position]
            like = quoted(intruder) == quoted(replaced) and words([intruder]) >= min_words
            if like and not np.isin(sentence_keys(sentences), known).any():
                return Intruder(intruder, doc, licence)
        return "no_other_sentence" if choice.documents else "no_similar_document"


def sentence_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """8 bytes for each sentence, letter case aside."""
    return np.fromiter((text_key(text.casefold()) for text in texts), np.uint64, len(texts))


_OF_SPLIT = """
from documents join split using (part, doc) join candidate using (part, doc)
where part = $part and split = $split
"""

_DOCUMENTS = """
select doc, candidates from documents join split using (part, doc)
where part = $part and split = $split and candidates > 0 order by doc_key, doc
"""

_WINDOWS = f"select licence, sentences, known {_OF_SPLIT} order by doc_key, doc, number"

_KEPT = f"""
with placed as (
    select part, doc, number, row_number() over (order by doc_key, doc, number) - 1 as place
    {_OF_SPLIT}
)
select place from kept join placed using (part, doc, number) order by priority, doc, number
"""
