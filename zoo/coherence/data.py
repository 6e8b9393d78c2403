"""Documents and their permutations: a table of sentences, and orders of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from corpora.errors import ConfigError, InputError
from corpora.prose import Quotes
from zoo.declared import BackboneRecipe
from zoo.texts import TextEncoder, as_sentences
from zoo.training.data import Dataset as StoredDataset
from zoo.training.mapped import Part, Texts, bounds_of, mapped, tokenized

Row = tuple[str, list[list[int]]]
"""A document's id and its negatives: each is an order, a list of the numbers of its sentences."""
INTRUDER = "intruder"
"""Column of a table of documents: a sentence of another text, which replaces a document's."""


class Documents:
    """The sentences of a table's documents as token ids, each document cut to the maximum length.

    The arrays are those of `encoded_rows`. Document `i` has the sentences
    `tokens[bounds[i]:bounds[i + 1]]`; `numbers` gives the `i` of an id. If `intruded`, the last of
    them is an intruder: a sentence of another text, for which -1 stands in an order.
    """

    def __init__(self, table: pa.Table, encoder: TextEncoder, arrays: Mapping[str, Any]) -> None:
        self.encoder, self.tokens = encoder, arrays["tokens"]
        self.encoder.cut = int(arrays["cut"].sum())
        self.numbers = {name: number for number, name in enumerate(table["id"].to_pylist())}
        self.bounds = bounds_of(arrays["sizes"])
        self.intruded = INTRUDER in table.column_names

    def sentences(self, document: str) -> list[np.ndarray]:
        """Return a document's sentences as token ids; its intruder, if it has one, comes last."""
        number = self.numbers[document]
        return [self.tokens[i] for i in range(self.bounds[number], self.bounds[number + 1])]

    def size(self, document: str) -> int:
        """Return the number of a document's sentences, without its intruder."""
        number = self.numbers[document]
        return int(self.bounds[number + 1] - self.bounds[number]) - self.intruded

    def length(self, document: str) -> int:
        """Return the number of tokens of all sentences of a document, its intruder's included."""
        return sum(map(len, self.sentences(document)))

    def original(self, document: str) -> np.ndarray:
        """Return the document in its original order, as the token ids of one text."""
        return self.encoder.assemble(self.sentences(document)[: self.size(document)])

    def permuted(self, document: str, order: Sequence[int]) -> np.ndarray:
        """Return the document with its sentences in `order`, as the token ids of one text."""
        sentences = self.sentences(document)
        return self.encoder.assemble([sentences[index] for index in order])

    def row_texts(self, row: Row) -> list[np.ndarray]:
        """Return the token ids of the original text of a row, then those of each negative."""
        document, orders = row
        sentences, assemble = self.sentences(document), self.encoder.assemble
        original = range(self.size(document))
        return [assemble([sentences[index] for index in order]) for order in (original, *orders)]

    def cut_order(self, document: str, order: Sequence[int]) -> list[int]:
        """Return `order` without the numbers of sentences behind the maximum length. An
        intruder (-1) stays if the sentence that it replaces is within it."""
        size = self.size(document)
        return [i for place, i in enumerate(order) if i < size and (i >= 0 or place < size)]

    def orders(
        self, document: str, orders: Sequence[Sequence[int]], *, distinct: bool = False
    ) -> list[list[int]]:
        """Return the `orders` of a document after the cut, except orders that do not change it.

        With `distinct`, only the first of several orders that give equal texts is returned.
        """
        sentences = [ids.tobytes() for ids in self.sentences(document)]
        negatives: list[list[int]] = []
        seen_texts = {tuple(sentences[: self.size(document)])}
        for order in orders:
            new_order = self.cut_order(document, order)
            text = tuple(sentences[index] for index in new_order)
            if text not in seen_texts:
                negatives.append(new_order)
            if distinct:
                seen_texts.add(text)
        return negatives


def encode_documents(table: pa.Table, encoder: TextEncoder, quotes: Quotes = "keep") -> Documents:
    """Return the documents of a table (`id`, `sentences`) as token ids, cut to the maximum length.

    `quotes` is the model's setting for quotation marks, which may differ from the table's.
    """
    check_sentences(table)
    return Documents(table, encoder, encoded_rows(encoder, quotes, table))


def mapped_documents(
    recipe: BackboneRecipe,
    dataset: StoredDataset,
    tables: Mapping[str, pa.Table],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
) -> dict[str, Documents]:
    """Return the documents of each split as token ids, tokenised once a run and mapped from disk.
    `tables` are the documents of each split of `dataset`."""
    for table in tables.values():
        check_sentences(table)
    encoder = TextEncoder(tokenizer, max_tokens)
    columns = [name for name in ("sentences", INTRUDER) if name in tables["train"].column_names]
    folders = tokenized(
        dataset,
        tables,
        tokenizer,
        recipe.output,
        ("documents", max_tokens, columns),
        columns,
        partial(encoded_rows, encoder, "keep"),
        workers=recipe.workers,
    )
    return {
        split: Documents(tables[split], TextEncoder(tokenizer, max_tokens), mapped(folder))
        for split, folder in folders.items()
    }


def check_sentences(table: pa.Table) -> None:
    """Raise `InputError` if a document in the table has no sentences; it names the first one."""
    row = pc.index(pc.list_value_length(table["sentences"]), 0).as_py()
    if row >= 0:
        raise InputError(
            "has no sentences",
            where=f"document {table['id'][row].as_py()!r}",
            hint="mend the data, or leave such documents out",
        )


def encoded_rows(encoder: TextEncoder, quotes: Quotes, rows: pa.RecordBatch | pa.Table) -> Part:
    """Return the sentences of documents as `tokens`, their number in each document as `sizes`.

    A document is cut after the last sentence within the encoder's limit; `cut` is the number of
    documents cut. If the rows have an intruder, a document and its copy with the intruder keep the
    same sentences: those that fit with the intruder in place of the shortest. An intruder that is
    too long by itself is cut, like a first sentence.
    """
    tokens: list[np.ndarray] = []
    sizes, cut_before = [], encoder.cut
    for row in rows.to_pylist():
        cut_before_row = encoder.cut
        sentences = encoder.sentences(as_sentences(row["sentences"], quotes))
        fitting = encoder.truncate(sentences)
        if INTRUDER in row:
            [whole] = encoder.sentences([row[INTRUDER]])
            intruder = whole[: encoder.budget]
            lengths = [len(sentence) for sentence in fitting]
            while len(lengths) > 1 and sum(lengths) - min(lengths) + len(intruder) > encoder.budget:
                lengths.pop()
            fitting = fitting[: len(lengths)]
            is_cut = len(fitting) < len(sentences) or len(intruder) < len(whole)
            encoder.cut = max(encoder.cut, cut_before_row + is_cut)
            fitting.append(intruder)
        sizes.append(len(fitting))
        tokens += fitting
    return {
        "tokens": Texts.of(tokens),
        "sizes": np.array(sizes, np.int64),
        "cut": np.array([encoder.cut - cut_before]),
    }


def intrusion_tables(pairs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return pairs of the intrusion task as a table of documents and a table of orders over them. A
    document is a coherent text with the intruder of its negative text. The order of the negative
    text has -1, the intruder, in the place of the sentence that it replaces."""
    documents, orders = [], []
    for row, pair in enumerate(pairs.select(["doc", "position", "pos", "neg"]).to_pylist()):
        name, place = f"{pair['doc']}#{row}", pair["position"]
        documents.append({"id": name, "sentences": pair["pos"], INTRUDER: pair["neg"][place]})
        order = [-1 if i == place else i for i in range(len(pair["pos"]))]
        orders.append({"document": name, "orders": [order]})
    return pa.Table.from_pylist(documents), pa.Table.from_pylist(orders)


def cut_pairs(
    encoder: TextEncoder,
    quotes: Quotes,
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the pairs of texts `first[i]`, `second[i]` (lists of sentences) as token ids, cut.

    They are cut as in training: a permutation of the first text keeps the same sentences, and so
    does a text in which one sentence was replaced (`encoded_rows`); other texts are cut separately.
    """
    pairs, cut = [], encoder.cut
    for texts in zip(first, second, strict=True):
        positive, negative = (as_sentences(text, quotes) for text in texts)
        order, encoder.cut = order_of(positive, negative), 0
        if order:
            row: dict[str, Any] = {"id": "", "sentences": positive}
            if -1 in order:
                row[INTRUDER] = negative[order.index(-1)]
            documents = encode_documents(pa.Table.from_pylist([row]), encoder)
            permuted = documents.permuted("", documents.cut_order("", order))
            pairs.append((documents.original(""), permuted))
        else:
            pairs.append((encoder.text(positive), encoder.text(negative)))
        cut += encoder.cut
    encoder.cut = cut
    return pairs


def order_of(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """Return the sentences of `second` as their numbers in `first`; -1 stands for a replaced one.

    The list is empty if `second` is no permutation of `first` and differs in several sentences.
    """
    if len(first) == len(second):
        order = [i if sentence == second[i] else -1 for i, sentence in enumerate(first)]
        if order.count(-1) == 1:
            return order
    if sorted(first) != sorted(second):
        return []
    places: dict[str, list[int]] = {}
    for place, sentence in reversed([*enumerate(first)]):
        places.setdefault(sentence, []).append(place)
    return [places[sentence].pop() for sentence in second]


@dataclass
class Instances(Dataset[tuple[list[np.ndarray], int]]):
    """Training instances: the text of a document and those of its negatives, made on demand.

    `counts[i]` is the number of different negatives of row `i`; its other negatives repeat them.
    `dropped` counts the rows left out, since the cut made each negative equal to the document.
    """

    documents: Documents
    rows: list[Row]
    pad_id: int
    counts: list[int]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> tuple[list[np.ndarray], int]:
        return self.documents.row_texts(self.rows[row]), self.counts[row]

    def lengths(self) -> np.ndarray:
        """Return the number of tokens of each row's document, `[rows]`, including permutations."""
        return np.array([self.documents.length(document) for document, _ in self.rows], np.int64)

    def collate(self, rows: Sequence[tuple[list[np.ndarray], int]]) -> dict[str, Any]:
        """Make a batch: `input_ids` and `attention_mask` `[batch, 1 + negatives, tokens]`.

        The original text comes first. `labels [batch]` are `counts`: how many negatives of a row
        are different, and count in a validation. `padded` is true if any text is padded.
        """
        ids, mask = pad([text for texts, _ in rows for text in texts], self.pad_id)
        padded = not mask.all()
        ids, mask = (tensor.view(len(rows), -1, ids.size(1)) for tensor in (ids, mask))
        labels = torch.tensor([count for _, count in rows])
        return {"input_ids": ids, "attention_mask": mask, "padded": padded, "labels": labels}


def instances(documents: Documents, table: pa.Table, negatives: int, pad_id: int) -> Instances:
    """Return the rows of a table of orders as instances, each with the same number of `negatives`.

    If the cut made a negative equal to the original, the row's others are repeated instead.
    Raises `ConfigError` if a row of the table has fewer, `InputError` if no row is left.
    """
    fewest = pc.min(pc.list_value_length(table["orders"])).as_py()
    if fewest is not None and fewest < negatives:
        raise ConfigError(
            f"a row has {fewest} negatives, the recipe needs {negatives}",
            hint=f"set negatives = {fewest}, or build the dataset with more",
            field="negatives",
        )
    rows = usable_rows(documents, table, negatives)
    equal_rows = [(name, list(islice(cycle(orders), negatives))) for name, orders in rows]
    counts = [len(orders) for _, orders in rows]
    return Instances(documents, equal_rows, pad_id, counts, table.num_rows - len(rows))


def candidate_rows(documents: Documents, table: pa.Table, limit: int) -> tuple[list[Row], int, int]:
    """Return the rows of a table of orders, each with its distinct negatives: at most `limit`.

    Also returns how many rows have fewer than `limit`, and how many were left out because no
    negative differs from the document. Raises `InputError` if no row is left.
    """
    rows = usable_rows(documents, table, limit, distinct=True)
    fewer = sum(len(orders) < limit for _, orders in rows)
    return rows, fewer, table.num_rows - len(rows)


def usable_rows(
    documents: Documents,
    table: pa.Table,
    negatives: int,
    *,
    distinct: bool = False,
    split: str = "train",
) -> list[Row]:
    """Return the rows of a table of orders without negatives that equal the document after the cut.
    Only the first `negatives` of a row count; with `distinct`, only one of several equal ones. Rows
    without any are left out. Raises `InputError`, which names the `split`, if no row is left."""
    rows: list[Row] = []
    columns = table["document"].to_pylist(), table["orders"].to_pylist()
    for name, orders in zip(*columns, strict=True):
        if usable := documents.orders(name, orders[:negatives], distinct=distinct):
            rows.append((name, usable))
    if not rows:
        limit = documents.encoder.max_tokens
        raise InputError(
            f"no text differs from its negatives within max_tokens = {limit}",
            where=f"the split {split!r}",
            hint="raise max_tokens: a text needs two sentences within it",
            field="max_tokens",
        )
    return rows


def pad(texts: Sequence[Any], pad_id: int) -> tuple[Tensor, Tensor]:
    """Return token ids as `input_ids` and `attention_mask` `[texts, tokens]`, padded at the end."""
    rows = [torch.as_tensor(text, dtype=torch.long) for text in texts]
    ids = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    return ids, pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)


def on_device(device: torch.device, *tensors: Tensor) -> tuple[Tensor, ...]:
    """Copy `tensors` to the device; to a GPU asynchronously, from pinned memory."""
    if device.type != "cuda":
        return tuple(tensor.to(device) for tensor in tensors)
    return tuple(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors)
