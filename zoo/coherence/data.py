"""Documents and their permutations: one table of sentences, orders over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
"""A document's id and the orders of its negatives."""
INTRUDER = "intruder"
"""The column of a table of documents with a sentence of another text."""


class Documents:
    """The kept sentences of each document of a table, as token ids: the arrays that `kept_of` made.

    Document `i` has the sentences `tokens[bounds[i]:bounds[i + 1]]`; `numbers` has each `i` by id.

    If they are `intruded`, each document has an intruder after its own sentences. An order with -1
    in a sentence's place gives the text with the intruder there.
    """

    def __init__(self, table: pa.Table, encoder: TextEncoder, arrays: Mapping[str, Any]) -> None:
        self.encoder, self.tokens = encoder, arrays["tokens"]
        self.encoder.cut = int(arrays["cut"].sum())
        self.numbers = {name: number for number, name in enumerate(table["id"].to_pylist())}
        self.bounds = bounds_of(arrays["sizes"])
        self.intruded = INTRUDER in table.column_names

    def sentences(self, document: str) -> list[np.ndarray]:
        """The sentences of the document, and its intruder."""
        number = self.numbers[document]
        return [self.tokens[i] for i in range(self.bounds[number], self.bounds[number + 1])]

    def size(self, document: str) -> int:
        """The kept sentences of the document itself."""
        number = self.numbers[document]
        return int(self.bounds[number + 1] - self.bounds[number]) - self.intruded

    def length(self, document: str) -> int:
        """The tokens of all its sentences."""
        return sum(map(len, self.sentences(document)))

    def original(self, document: str) -> np.ndarray:
        """The document in its original order, as one text."""
        return self.encoder.assemble(self.sentences(document)[: self.size(document)])

    def permuted(self, document: str, order: Sequence[int]) -> np.ndarray:
        """The document with its sentences in `order`."""
        kept = self.sentences(document)
        return self.encoder.assemble([kept[index] for index in order])

    def row_texts(self, row: Row) -> list[np.ndarray]:
        """The original and its negatives as token ids."""
        document, orders = row
        own, kept = range(self.size(document)), self.sentences(document)
        return [self.encoder.assemble([kept[index] for index in order]) for order in (own, *orders)]

    def kept(self, document: str, order: Sequence[int]) -> list[int]:
        """`order` over the kept sentences; an intruder takes the place of one of them."""
        size = self.size(document)
        return [i for place, i in enumerate(order) if i < size and (i >= 0 or place < size)]

    def orders(
        self, document: str, orders: Sequence[Sequence[int]], *, distinct: bool = False
    ) -> list[list[int]]:
        """`orders` over the kept sentences, without those that give the original text.

        With `distinct`, only the first of several orders with equal texts stays.
        """
        texts = [ids.tobytes() for ids in self.sentences(document)]
        made: list[list[int]] = []
        seen = {tuple(texts[: self.size(document)])}
        for order in orders:
            kept = self.kept(document, order)
            text = tuple(texts[index] for index in kept)
            if text not in seen:
                made.append(kept)
            if distinct:
                seen.add(text)
        return made


def encode_documents(table: pa.Table, encoder: TextEncoder, quotes: Quotes = "keep") -> Documents:
    """Tokenise each sentence of a `documents` table once, and cut each document.

    `quotes` is the model's setting, which may differ from the table's. See `kept_of`.
    """
    check_sentences(table)
    return Documents(table, encoder, kept_of(encoder, quotes, table))


def mapped_documents(
    recipe: BackboneRecipe,
    dataset: StoredDataset,
    tables: Mapping[str, pa.Table],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
) -> dict[str, Documents]:
    """The documents of each split, tokenised once in a run and mapped from the disk."""
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
        partial(kept_of, encoder, "keep"),
        workers=recipe.workers,
    )
    return {
        split: Documents(tables[split], TextEncoder(tokenizer, max_tokens), mapped(folder))
        for split, folder in folders.items()
    }


def check_sentences(table: pa.Table) -> None:
    """Raise `InputError` for the first document of a table without sentences."""
    row = pc.index(pc.list_value_length(table["sentences"]), 0).as_py()
    if row >= 0:
        raise InputError(
            "has no sentences",
            where=f"document {table['id'][row].as_py()!r}",
            hint="mend the data, or leave such documents out",
        )


def kept_of(encoder: TextEncoder, quotes: Quotes, rows: pa.RecordBatch | pa.Table) -> Part:
    """The kept sentences of some documents, and how many they are.

    A table with the column `intruder` (`intrusion_tables`) gives each document its intruder. The
    same sentences are kept in both texts: those that fit with the intruder in the place of the
    shortest. An intruder that would not fit by itself is cut, like a first sentence.
    """
    kept: list[np.ndarray] = []
    sizes, cut_before = [], encoder.cut
    for row in rows.to_pylist():
        ids, before = encoder.sentences(as_sentences(row["sentences"], quotes)), encoder.cut
        own = encoder.kept(ids)
        if INTRUDER in row:
            [whole] = encoder.sentences([row[INTRUDER]])
            intruder = whole[: encoder.budget]
            lengths = [len(sentence) for sentence in own]
            while len(lengths) > 1 and sum(lengths) - min(lengths) + len(intruder) > encoder.budget:
                lengths.pop()
            own = own[: len(lengths)]
            lost = len(own) < len(ids) or len(intruder) < len(whole)
            encoder.cut = max(encoder.cut, before + lost)
            own.append(intruder)
        sizes.append(len(own))
        kept += own
    return {
        "tokens": Texts.of(kept),
        "sizes": np.array(sizes, np.int64),
        "cut": np.array([encoder.cut - cut_before]),
    }


def intrusion_tables(pairs: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The pairs of the intrusion task as a `documents` table and its orders.

    The order of a pair's negative text has -1 in the place of the sentence that was replaced.
    """
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
    """Pairs of texts, each a list of sentences, as token ids that are cut as in training.

    A permutation keeps the sentences that the first text keeps, and so does a text in which one
    sentence was replaced (`kept_of`); texts that differ otherwise are cut each by itself.
    """
    pairs, cut = [], encoder.cut
    for texts in zip(first, second, strict=True):
        one, two = (as_sentences(text, quotes) for text in texts)
        order, encoder.cut = order_of(one, two), 0
        if order:
            row: dict[str, Any] = {"id": "", "sentences": one}
            if -1 in order:
                row[INTRUDER] = two[order.index(-1)]
            documents = encode_documents(pa.Table.from_pylist([row]), encoder)
            negative = documents.permuted("", documents.kept("", order))
            pairs.append((documents.original(""), negative))
        else:
            pairs.append((encoder.text(one), encoder.text(two)))
        cut += encoder.cut
    encoder.cut = cut
    return pairs


def order_of(first: Sequence[str], second: Sequence[str]) -> list[int]:
    """`second` as an order of the sentences of `first`, -1 for one that was replaced.

    Empty for a text that is no permutation and has not exactly one other sentence.
    """
    if len(first) == len(second):
        order = [-1 if one != second[place] else place for place, one in enumerate(first)]
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
    """Rows of a document and the orders of its negatives; texts are made on demand.

    `counts` has the negatives of each row that differ from its document; others repeat them.
    `dropped` counts the rows whose document was cut so short that no negative differs from it: one
    sentence is left, or the intruder was cut off.
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
        """Tokens of each row's document (and of its permutations)."""
        return np.array([self.documents.length(document) for document, _ in self.rows], np.int64)

    def collate(self, rows: Sequence[tuple[list[np.ndarray], int]]) -> dict[str, Any]:
        """`input_ids` and `attention_mask` `[batch, 1 + negatives, tokens]`, the original first.

        `labels [batch]` are the `counts`: how many of a row's negatives a validation judges.
        `padded`: whether a text is.
        """
        ids, mask = pad([text for texts, _ in rows for text in texts], self.pad_id)
        padded = not mask.all()
        ids, mask = (each.view(len(rows), -1, ids.size(1)) for each in (ids, mask))
        labels = torch.tensor([count for _, count in rows])
        return {"input_ids": ids, "attention_mask": mask, "padded": padded, "labels": labels}


def instances(documents: Documents, table: pa.Table, negatives: int, pad_id: int) -> Instances:
    """The rows of an orders table, with `negatives` orders each.

    If the cut made a negative equal to the original, the row's others are repeated instead.
    Raises `ConfigError` if the table has fewer negatives a row, `InputError` if no row is left.
    """
    fewest = pc.min(pc.list_value_length(table["orders"])).as_py()
    if fewest is not None and fewest < negatives:
        raise ConfigError(
            f"a row has {fewest} negatives, the recipe needs {negatives}",
            hint=f"set negatives = {fewest}, or build the dataset with more",
            field="negatives",
        )
    rows = usable(documents, table, negatives)
    filled = [(name, [orders[i % len(orders)] for i in range(negatives)]) for name, orders in rows]
    counts = [len(orders) for _, orders in rows]
    return Instances(documents, filled, pad_id, counts, table.num_rows - len(rows))


def candidates(documents: Documents, table: pa.Table, most: int) -> tuple[list[Row], int, int]:
    """The rows of an orders table, each with the different negatives among its first `most`.

    Returns the rows, how many of them have fewer than `most`, and how many were dropped because no
    negative differs from the document. Raises `InputError` if no row is left.
    """
    rows = usable(documents, table, most, distinct=True)
    return rows, sum(len(orders) < most for _, orders in rows), table.num_rows - len(rows)


def usable(
    documents: Documents,
    table: pa.Table,
    most: int,
    *,
    distinct: bool = False,
    split: str = "train",
) -> list[Row]:
    """Those rows of which one of the first `most` negatives differs from the document."""
    given = zip(table["document"].to_pylist(), table["orders"].to_pylist(), strict=True)
    made = [
        (name, documents.orders(name, every[:most], distinct=distinct)) for name, every in given
    ]
    rows = [(name, orders) for name, orders in made if orders]
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
    """`input_ids` and `attention_mask` `[texts, tokens]`, padded on the right."""
    rows = [torch.as_tensor(text, dtype=torch.long) for text in texts]
    ids = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    return ids, pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)


def on_device(device: torch.device, *tensors: Tensor) -> tuple[Tensor, ...]:
    """`tensors` on the device; a GPU copies them asynchronously."""
    if device.type != "cuda":
        return tuple(tensor.to(device) for tensor in tensors)
    return tuple(tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors)
