"""Permuted documents (Jwalapuram, Joty, Lin 2022, section 2.1), stored as orders.

The sentences stand once, in the configuration `documents`; a negative is an order of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.document import Document
from corpora.errors import ConfigError, InputError
from corpora.readers.source import SeenIds
from corpora.schemas import PERMUTED_DOCUMENTS, PERMUTED_ORDERS
from corpora.splits import Shares
from corpora.store.atomic import sha256
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.permutations import LARGEST, document_ids, document_keys
from corpora.tasks.permuted_orders import order_rows
from corpora.tasks.target import Target, split_candidates

VERSION = 1
DOCUMENTS_PER_BATCH = 256
ROWS_PER_GROUP = {"pairwise": 16_384, "contrastive": 8_192, "ranked": 1_024}

CARD = Card(
    title="Permuted documents",
    summary=(
        "Documents and permutations of their sentences, to train and test coherence models: "
        "pairwise (one permutation a positive), contrastive (5) and ranked (50)."
    ),
    method=(
        "Jwalapuram, Joty and Lin 2022, section 2.1. Documents of fewer than 4 sentences are left "
        "out, those of 20 or more are cut into blocks of 10, and each is cut by whole sentences "
        "to at most 600 tokens. A document is repeated up to 20 times with new permutations: "
        "within a configuration no permutation of a document occurs twice, and none is the "
        "original. Where sentences of a document are equal, the permuted texts differ. The "
        "sentences stand once, in `documents`; a negative is "
        "`[sentences[i] for i in order]`."
    ),
    fields={
        "id": "id of a document or block, `DOCUMENT#BLOCK` where it was cut",
        "group": "the book or file it is from",
        "sentences": "the sentences in their original order: the positive",
        "document": "the `id` of the positive",
        "repetition": "which repetition of this positive, from 0",
        "orders": "the negatives, each a permutation of `0 .. n-1`",
    },
    citation="""@inproceedings{jwalapuram-etal-2022-rethinking,
  title = {Rethinking Self-Supervision Objectives for Generalizable Coherence Modeling},
  author = {Jwalapuram, Prathyusha and Joty, Shafiq and Lin, Xiang},
  booktitle = {Proceedings of ACL},
  pages = {6044--6059},
  year = {2022}
}""",
    limits=(
        "Some permutations of independent sentences read as well as the original.",
        "In `ranked` a document with too few permutations for one full row has one row with all "
        "of them.",
    ),
    tags=("coherence", "sentence-ordering"),
    task_categories=("text-classification", "text-ranking"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The paper's numbers, each a setting.

    `min_sentences`: shorter documents (and blocks) are left out. `block_from`: documents of that
    many sentences are cut into blocks of `block_size`. `max_tokens`: a document is cut to that
    many tokens, by whole sentences; `tokenizer`: what counts them, `words` (at white space), the
    path of a `tokenizer.json`, or a Hub id.
    `repetitions`: how often a document is repeated at most. `contrastive`, `ranked`: negatives a
    row. `min_ranked`: a ranked row holds at least so many.
    `train`, `validation`, `test`: shares of the documents. `tokenizer_sha256` is no setting: it
    follows from the tokenizer's file.
    """

    min_sentences: int = 4
    block_from: int = 20
    block_size: int = 10
    max_tokens: int = 600
    tokenizer: str = "words"
    repetitions: int = 20
    contrastive: int = 5
    ranked: int = 50
    min_ranked: int = 5
    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    tokenizer_sha256: str = field(init=False, default="")

    def __post_init__(self) -> None:
        path = Path(self.tokenizer)
        if path.is_file():
            object.__setattr__(self, "tokenizer_sha256", sha256(path))
        if not 2 <= self.min_sentences <= self.block_size < self.block_from <= LARGEST + 1:
            raise ConfigError(
                f"min_sentences {self.min_sentences}, block_size {self.block_size} and "
                f"block_from {self.block_from} do not fit together",
                hint=f"2 <= min_sentences <= block_size < block_from <= {LARGEST + 1}",
            )
        if not 1 <= self.repetitions <= 255:
            raise ConfigError(f"repetitions = {self.repetitions}", hint="1 to 255")
        if min(self.contrastive, self.max_tokens) < 1:
            raise ConfigError(
                f"contrastive = {self.contrastive}, max_tokens = {self.max_tokens}",
                hint="1 or more",
            )
        if not 1 <= self.min_ranked <= self.ranked:
            raise ConfigError(
                f"min_ranked = {self.min_ranked}, ranked = {self.ranked}",
                hint="1 <= min_ranked <= ranked",
            )
        Shares(self.train, self.validation, self.test)

    def rows(self, config: str, distinct: int) -> tuple[int, int]:
        """How many rows a document has in `config`, and how many negatives each.

        `distinct` is the number of its different orders, the original included.
        """
        negatives = {"pairwise": 1, "contrastive": self.contrastive, "ranked": self.ranked}[config]
        rows = min(self.repetitions, (distinct - 1) // negatives)
        if config == "ranked" and not rows and distinct - 1 >= self.min_ranked:
            return 1, distinct - 1
        return rows, negatives


CONFIGS = ("pairwise", "contrastive", "ranked")
CountTokens = Callable[[Sequence[str]], list[int]]


def configurations(settings: Settings) -> Iterable[str]:
    """What `Builder.configurations` gives."""
    return ("documents", *CONFIGS)


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with a sentence layer; returns the manifest."""
    count = _counter(settings.tokenizer)
    with target.dataset(CARD) as dataset, target.pool() as pool:
        ids = SeenIds()
        for document in documents:
            found = dict(blocks(document, settings, count, dataset.reject))
            pool.add(document, list(found.values()), list(found))
            _check_ids(document, found, ids)
        for split, rows in split_candidates(pool, settings, dataset):
            # Made in any case: the card tells of a split without a row.
            dataset.writer("documents", split, PERMUTED_DOCUMENTS, texts=("sentences",))
            for batch in pool.read(rows, DOCUMENTS_PER_BATCH):
                _write(batch, split, dataset, settings, target)
        return dataset.finish("documents")


def _check_ids(document: Document, found: Iterable[str], ids: SeenIds) -> None:
    """Raise `InputError` for a block with the id of another document, or the other way round."""
    for id in found:
        if not ids.add(id):
            raise InputError(
                f"two positives have the id {id!r}",
                where=document.source,
                hint="long documents are cut into blocks DOCUMENT#NUMBER; give the document "
                "that has such an id another one",
            )


def blocks(
    document: Document, settings: Settings, count: CountTokens, reject: Callable[[str], None]
) -> Iterator[tuple[str, list[str]]]:
    """The positives of one document, with their ids: itself, or its blocks where it is long."""
    sentences = [text for text in document.sentence_texts() if text]
    cut = len(sentences) >= settings.block_from
    size = settings.block_size if cut else max(1, len(sentences))
    for number, start in enumerate(range(0, len(sentences), size)):
        block = sentences[start : start + size]
        lengths = accumulate(count(block))
        kept = block[: sum(length <= settings.max_tokens for length in lengths)]
        if len(kept) >= settings.min_sentences:
            yield (f"{document.id}#{number}" if cut else document.id), kept
        else:
            reject("too_few_sentences" if len(kept) == len(block) else "sentences_too_long")


def _write(
    batch: pa.RecordBatch, split: str, dataset: DatasetFolder, settings: Settings, target: Target
) -> None:
    """Write a batch of positives and their orders in all configurations."""
    dataset.count_licences(batch["licence"])
    columns = [batch["id"], batch["group"], batch["sentences"]]
    positives = pa.RecordBatch.from_arrays(columns, schema=PERMUTED_DOCUMENTS)
    dataset.writer("documents", split, PERMUTED_DOCUMENTS, texts=("sentences",)).append(positives)
    ids, sentences = batch["id"].to_pylist(), batch["sentences"].to_pylist()
    words = document_ids(ids)
    for config in CONFIGS:
        keys = document_keys(target.seed, f"{target.stage.name}/{config}", words)
        rows = order_rows(keys, ids, sentences, partial(settings.rows, config))
        if rows is not None:
            writer = dataset.writer(
                config, split, PERMUTED_ORDERS, rows_per_group=ROWS_PER_GROUP[config]
            )
            writer.append(rows)


def _counter(tokenizer: str) -> CountTokens:
    """What counts the tokens of sentences."""
    if tokenizer == "words":
        return lambda texts: [len(text.split()) for text in texts]
    from tokenizers import Tokenizer

    try:
        found = (
            Tokenizer.from_file(tokenizer)
            if Path(tokenizer).is_file()
            else Tokenizer.from_pretrained(tokenizer)
        )
    except Exception as error:  # the library raises bare `Exception` for all its failures
        raise ConfigError(
            f"no tokenizer {tokenizer!r}: {error}",
            hint='"words", the path of a tokenizer.json, or the id of a model on the Hub',
        ) from error
    return lambda texts: [
        len(encoding.ids) for encoding in found.encode_batch(texts, add_special_tokens=False)
    ]
