"""Sentence intrusion (Shen et al. 2021; Jwalapuram, Joty and Lin 2022, section 2.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from corpora.document import Document
from corpora.prose import Quotes, count_words, lead, passages_of, prose
from corpora.readers.source import SeenIds
from corpora.rng import stream
from corpora.schemas import INTRUSION_DETECTION, INTRUSION_PAIRWISE
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.tasks.builder import Builder, Candidate, Part, Reject
from corpora.tasks.candidates import Candidates
from corpora.tasks.cards import card_beside

POOL = 20_000
"""Texts of a split that give each other intruders: a bound on memory and on work."""

ROWS_PER_GROUP = 2_048


class Intrusion(Builder):
    """Texts, and the same with one sentence replaced by one of a similar text."""

    name, version = "intrusion", 11
    paper = "Shen et al. 2021; Jwalapuram, Joty and Lin 2022, section 2.3"
    card = card_beside(__file__, "intrusion")
    gives = {"detection": INTRUSION_DETECTION, "pairwise": INTRUSION_PAIRWISE}
    default = "detection"
    columns = pa.schema([INTRUSION_DETECTION.field("sentences"), ("quoted", pa.int32())])
    equal = ("sentences",)
    ascending = (("min_sentences", "max_sentences"),)

    take: Literal["lead", "windows"] = "windows"
    """`windows`: each unit of a document is cut into texts; `lead`: the lead section (the whole
    document if it has no sections), as in INSteD."""
    within: Literal["paragraph", "section", "document"] = "section"
    """The unit that is cut into texts; a chapter of a book is a document."""
    min_sentences: Annotated[int, Field(ge=3)] = 3
    """Minimum sentences of a text; the first and the last one are not replaced."""
    max_sentences: Annotated[int, Field(le=127)] = 8
    """Maximum sentences of a text; a lead is cut to them."""
    min_words: int = 5
    """Minimum words of an intruder and of the sentence it replaces: a short reply fits nearly
    everywhere."""
    mean_words: Annotated[float, Field(ge=0)] = 10
    """Minimum words a sentence, averaged over a text (`too_few_words`)."""
    quotes: Quotes = "balance"
    """`balance`: each sentence gets paired quotation marks, since unpaired ones show the intruder;
    `keep`: as written."""
    similar: Annotated[int, Field(ge=1)] = 50
    """The number of most similar texts from which the intruder may come."""
    same_book: bool = False
    """The intruder comes from the same book (the same group)."""
    names: Literal["known", "any"] = "known"
    """`known`: people and places that the intruder names are named elsewhere in its new book (a
    group of several documents), since another book's names give it away; `any`: no check."""
    max_text_similarity: float = 0.8
    """A text with a higher similarity is a copy, and cannot be the donor."""
    max_similarity: Annotated[float, Field(gt=0, lt=1)] = 0.6
    """Maximum similarity (cosine of TF-IDF) of the intruder to any sentence of the text; above it
    it is nearly a copy."""
    max_ratio: Annotated[float, Field(ge=1)] = 2.0
    """Maximum ratio of the lengths of intruder and replaced sentence."""
    per_text: Annotated[int, Field(ge=1)] = 1
    """Maximum pairs of one text, each with the intruder at another position (more than one: for
    training)."""
    choose: Literal["matched", "random"] = "matched"
    """`matched`: an intruder about as similar to the text as its own sentences are; `random`:
    any within the bounds, which is easier."""
    train: Part = 0.8
    validation: Part = 0.1
    test: Part = 0.1

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the texts of a document, each with its number of sentences that got quotes."""
        sentences, originals = prose(document, self.quotes), set(prose(document))
        if self.take == "windows":
            passages = list(passages_of(document, sentences, self.within))
        else:
            passages = [lead(document, sentences)[: self.max_sentences]]
        for passage in passages:
            passage = [sentence for sentence in passage if sentence]
            for start in range(0, len(passage), self.max_sentences):
                text = passage[start : start + self.max_sentences]
                if len(text) < self.min_sentences:
                    reject("too_few_sentences")
                elif count_words(text) < self.mean_words * len(text):
                    reject("too_few_words")
                else:
                    yield Candidate((text, sum(sentence not in originals for sentence in text)))

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write each text and its changed copy as one row of `pairwise` and two of `detection`."""
        from corpora.tasks.intruders import MEASURES

        candidates.note_quoted()
        used_sentences = SeenIds()
        with candidates.memory_mapped(_TEXTS, {"same_book": self.same_book}) as texts:
            start = 0
            for split in SPLITS:
                of_split = texts.slice(start, candidates.count(split))
                start += len(of_split)
                detection = dataset.writer(
                    "detection",
                    split,
                    INTRUSION_DETECTION,
                    texts=("sentences",),
                    rows_per_group=2 * ROWS_PER_GROUP,
                )
                # Not checked for overlap: its texts are those of `detection`.
                pairwise = dataset.writer(
                    "pairwise",
                    split,
                    INTRUSION_PAIRWISE,
                    long=("pos", "neg"),
                    rows_per_group=ROWS_PER_GROUP,
                )
                balance = np.zeros(2 * MEASURES)
                for pool in pool_bounds(of_split["book"].to_numpy()):
                    pairs = self._pairs(of_split.slice(*pool), candidates, used_sentences, balance)
                    pairwise.extend(pairs)
                    detection.extend(row for pair in pairs for row in _detection_rows(pair))

    def _pairs(
        self,
        texts: pa.Table,
        candidates: Candidates,
        used_sentences: SeenIds,
        balance: NDArray[np.float64],
    ) -> list[dict[str, Any]]:
        """Return the pairs of a pool of texts as rows of `pairwise`; count their licences."""
        from corpora.tasks.intruders import Pool

        ids, licences = texts["id"].to_pylist(), texts["licence"].to_pylist()
        sentences = texts["sentences"].to_pylist()
        random = stream(candidates.target.seed, candidates.target.stage.name, ids[0])
        documents, books = texts["doc_key"].to_numpy(), texts["named_in"].to_numpy()
        pool = Pool(sentences, documents, books, self, random, used_sentences, balance)
        pairs = []
        for intruder in pool.intruders():
            host, donor = intruder.host, intruder.donor
            changed = list(sentences[host])
            changed[intruder.place] = sentences[donor][intruder.number]
            for licence in {licences[host], licences[donor]}:
                candidates.dataset.count_licence(licence)
            pairs.append(
                {
                    "doc": ids[host],
                    "donor": ids[donor],
                    "position": intruder.place,
                    "similarity": intruder.similarity,
                    "replaced_similarity": intruder.replaced,
                    "pos": sentences[host],
                    "neg": changed,
                }
            )
        candidates.dataset.reject(
            "no_fitting_sentence", len(ids) - len({pair["doc"] for pair in pairs})
        )
        return pairs


def _detection_rows(pair: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the two rows of `detection` for a row of `pairwise`."""
    originals = {"doc": pair["doc"], "label": 0, "position": -1, "sentences": pair["pos"]}
    yield originals
    yield originals | {"label": 1, "position": pair["position"], "sentences": pair["neg"]}


def pool_bounds(books: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the start and length of each pool of texts; a pool has the texts of one book.

    `books` [texts] has the number of each text's book; the texts of a book stand together. They
    are divided evenly into pools of `POOL` at most.
    """
    starts = np.flatnonzero(books[1:] != books[:-1]) + 1
    for book in np.split(np.arange(len(books)), starts):
        number = -(-len(book) // POOL) or 1  # rounded up
        for pool in np.array_split(book, number):
            if len(pool):
                yield int(pool[0]), len(pool)


_TEXTS = """
select
    doc || '#' || number as id, doc_key, licence, sentences,
    dense_rank() over (order by case when $same_book then chosen."group" end) as book,
    dense_rank() over (order by chosen."group") as named_in
from chosen join documents using (part, doc)
order by
    case split when 'train' then 0 when 'validation' then 1 else 2 end,
    book, sha256(id), doc, number
"""
