"""Sentence section prediction (DiscoEval, section 3.5): is a sentence from the abstract?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError
from corpora.schemas import SSP
from corpora.splits import SPLITS, Assignment, Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.discoeval import common
from corpora.tasks.discoeval.papers import ABSTRACT, MIDDLE, prose, sections_of
from corpora.tasks.pool import Pool
from corpora.tasks.target import Target

VERSION = 3

CARD = Card(
    title="Sentence section prediction",
    summary=(
        "Single sentences of papers: is one from the abstract, or from a section in the middle? "
        "The sentence section prediction task (SSP) of DiscoEval, on texts of your own."
    ),
    method=(
        "DiscoEval, section 3.5. Sentences of abstracts, and of sections that are neither "
        "introduction nor conclusion nor what stands after it (nor subsections of these). "
        "Equations and fragments are left out: too few words, no capital at the beginning, no "
        "full stop at the end, signs of formulas, or too few plain words. Both labels are equally "
        "frequent in a split, and both come from the same papers: one without an abstract or "
        "without a section in the middle is left out."
    ),
    fields={
        "doc": "id of the paper",
        "label": "`abstract` (1) or `body` (0)",
        "section": "the heading over the sentence",
        "sentence": "one sentence",
    },
    citation=common.CITATION,
    limits=(
        "Sentences are split by a program; text from PDF files has bad ones that no rule sees.",
        "What a section is for is read from its heading, by English words.",
        "Sentences that point to figures, tables and references stay in, as in the released files: "
        "they are easy.",
    ),
    tags=("discoeval", "sentence-section"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What counts as a sentence, and the sizes in rows, half of them abstract.

    `min_words`, `max_words`: words at white space. `plain`: the share of them that must be plain
    words (letters only but for punctuation around).
    """

    min_words: int = 10
    max_words: int = 100
    plain: float = 0.7
    train: int = 10_000
    validation: int = 4_000
    test: int = 4_000

    def __post_init__(self) -> None:
        if not 1 <= self.min_words <= self.max_words:
            raise ConfigError(
                f"min_words {self.min_words} and max_words {self.max_words} leave no sentence",
                hint="1 <= min_words <= max_words",
            )
        if not 0 <= self.plain <= 1:
            raise ConfigError(f"plain = {self.plain}", hint="a share, 0 to 1")
        Shares(self.train, self.validation, self.test)


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from papers with sections and a sentence layer; returns the manifest."""
    with (
        target.dataset(CARD) as dataset,
        target.pool("abstract") as abstract,
        target.pool("body") as body,
    ):
        for document in documents:
            _add(document, abstract, body, settings, dataset)
        weights = {n: (g, w + body.documents[n][1]) for n, (g, w) in abstract.documents.items()}
        shares = Shares(settings.train, settings.validation, settings.test)
        assignment = target.assign(weights, shares)
        dataset.languages = abstract.languages
        dataset.details |= {"split": assignment.to_dict(), "settings": used(settings, target.seed)}
        _write(abstract, body, assignment, dataset, settings)
        return dataset.finish("default")


def _add(
    document: Document, abstract: Pool, body: Pool, settings: Settings, dataset: DatasetFolder
) -> None:
    """The usable sentences of a paper, if it has some of both kinds."""
    found: dict[str, list[tuple[str, str]]] = {ABSTRACT: [], MIDDLE: []}
    for kind, heading, text in sections_of(document):
        if kind not in found:
            continue
        reason = prose(text, settings.min_words, settings.max_words, settings.plain)
        if reason:
            dataset.reject(reason)
        else:
            found[kind].append((heading, text))
    for kind, reason in ((ABSTRACT, "paper_without_abstract"), (MIDDLE, "paper_without_body")):
        if not found[kind]:
            dataset.reject(reason)
            # An id that comes twice is an error even where neither gives a row.
            found = {ABSTRACT: [], MIDDLE: []}
            break
    for kind, pool in ((ABSTRACT, abstract), (MIDDLE, body)):
        pool.add(document, [[text] for _, text in found[kind]], [h for h, _ in found[kind]])


def _write(
    abstract: Pool, body: Pool, assignment: Assignment, dataset: DatasetFolder, settings: Settings
) -> None:
    """As many rows of one label as of the other, alternating, in each split."""
    ours = abstract.distinct()
    theirs = body.without_texts_of(abstract, body.distinct())
    dataset.reject("exact_duplicate", len(abstract) - ours.size + len(body) - theirs.size)
    for split in SPLITS:
        size = getattr(settings, split) // 2
        one, two = (
            pool.of_split(split, assignment, rows)
            for pool, rows in ((abstract, ours), (body, theirs))
        )
        half = min(size, one.size, two.size)
        if half < size:
            dataset.note(
                f"{split}: {2 * size:,} rows were asked for; the corpus gives {one.size:,} "
                f"sentences of abstracts and {two.size:,} of bodies."
            )
        dataset.reject("not_needed", one.size + two.size - 2 * half)
        writer = dataset.writer("default", split, SSP, texts=("sentence",))
        read = zip(abstract.read(one[:half]), body.read(two[:half]), strict=True)
        for batch in _alternating(read, dataset):
            writer.append(batch)


def _alternating(
    batches: Iterator[tuple[pa.RecordBatch, pa.RecordBatch]], dataset: DatasetFolder
) -> Iterator[pa.RecordBatch]:
    """A sentence of an abstract (label 1), one of a body (label 0), and so on."""
    for one, two in batches:
        both = pa.concat_batches([one, two])
        number = one.num_rows
        both = both.take(pa.array([i + k * number for i in range(number) for k in (0, 1)]))
        dataset.count_licences(both["licence"])
        label = pa.array([1, 0] * number, pa.int64())
        columns = [both["doc"], label, both["id"], both["sentences"].flatten()]
        yield pa.RecordBatch.from_arrays(columns, schema=SSP)
