"""Pairs of texts as ids: stored flat, padded only in batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import torch
from pydantic import AfterValidator, Field
from scipy.sparse import hstack
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.outside import read_record
from corpora.store.atomic import write_text
from zoo import file_of
from zoo.declared import StepRecipe
from zoo.labelled import Labelled
from zoo.training.mapped import Part, Texts, bounds_of, joined, mapped, tokenized

CHUNK = 10_000
VOCABULARY = "vocabulary.json"

Row = tuple[list[np.ndarray], np.ndarray | None, int]
"""The sequences of a pair, the segments of its tokens if any, and the label."""
Sides = Literal[1, 2]
"""The sequences of a pair: both texts as one, or each text separately."""


@dataclass
class Pairs(Dataset[Row]):
    """Row `i` has `sides` sequences of ids. `types` are the segments of the tokens.

    `truncated` counts the sequences that were cut. `counted [vocabulary]` are the words that an
    encoder of words does not leave out, where this is known.
    """

    texts: Texts
    types: np.ndarray | None
    labels: np.ndarray
    pad_id: int
    sides: int
    truncated: int
    counted: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, Any],
        tokenizer: PreTrainedTokenizerBase,
        sides: int,
        labels: np.ndarray | None,
    ) -> Pairs:
        """The pairs that `encode` made; without `labels` they have the label 0."""
        texts, types = arrays["tokens"], arrays["types"] if len(arrays["types"]) else None
        gold = np.zeros(len(texts) // sides, np.int64) if labels is None else labels
        return cls(texts, types, gold, tokenizer.pad_token_id, sides, int(arrays["cut"].sum()))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> Row:
        bounds = self.texts.bounds[row * self.sides : (row + 1) * self.sides + 1]
        types = None if self.types is None else self.types[bounds[0] : bounds[-1]]
        sequences = [self.texts.ids[a:b] for a, b in pairwise(bounds)]
        return sequences, types, int(self.labels[row])

    def lengths(self) -> np.ndarray:
        """The tokens of the longest sequence of each row, for padding."""
        return self.texts.lengths().reshape(-1, self.sides).max(axis=1)

    def collate(self, rows: Sequence[Row]) -> dict[str, Any]:
        """`input_ids`, `attention_mask` (and `token_type_ids`), `padded` and `labels [batch]`.

        Ids are `[batch, tokens]`, or `[batch, 2, tokens]` for separate texts. `packed [texts]` are
        the words of each that count, if this is known. The rows may be of another split: only the
        padding and the words that count are taken from this one.
        """
        sequences = [ids for own, *_ in rows for ids in own]
        texts = Texts(np.concatenate(sequences), bounds_of([len(ids) for ids in sequences]))
        ids, real = texts.padded(self.pad_id)
        batch = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
        if rows[0][1] is not None:
            batch["token_type_ids"] = np.zeros_like(ids)
            batch["token_type_ids"][real] = np.concatenate([types for _, types, _ in rows])
        shape = (len(rows), self.sides, -1) if self.sides > 1 else (len(rows), -1)
        shaped: dict[str, Any] = {
            name: torch.from_numpy(v.reshape(shape)) for name, v in batch.items()
        }
        shaped |= {"padded": not real.all()}
        if self.counted is not None:
            shaped["packed"] = (self.counted[ids] & real).sum(1).clip(min=1)
        return {**shaped, "labels": torch.tensor([label for *_, label in rows])}


def encode(
    tokenizer: PreTrainedTokenizerBase, max_tokens: int, sides: Sides, rows: pa.RecordBatch
) -> Part:
    """The ids of pairs in two columns of texts, at most `max_tokens` of each sequence.

    Of both texts as one, the longer loses its end.
    """
    one, two = (column.to_pylist() for column in rows.columns)
    types: Iterable[Iterable[int]] = ()
    if sides == 2:
        texts = list(chain.from_iterable(zip(one, two, strict=True)))
        whole = tokenizer(texts, verbose=False)["input_ids"]
        cut = sum(len(ids) > max_tokens for ids in whole)
        kept = [ids[:max_tokens] or [tokenizer.unk_token_id] for ids in whole]
    else:
        made = tokenizer(one, two, truncation="longest_first", max_length=max_tokens)
        cut = sum(bool(encoding.overflowing) for encoding in made.encodings)
        kept, types = made["input_ids"], made.get("token_type_ids", ())
        # Else what is saved of it would depend on the process that called it.
        tokenizer.backend_tokenizer.no_truncation()
    segments = np.fromiter(chain.from_iterable(types), np.int8)
    return {"tokens": Texts.of(kept), "types": segments, "cut": np.array([cut])}


def encode_pairs(
    one: Sequence[str],
    two: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None = None,
    *,
    sides: Sides = 1,
) -> Pairs:
    """Pairs in memory."""
    if not len(one):
        return Pairs(
            Texts.of([]), None, np.zeros(0, np.int64), tokenizer.pad_token_id, sides, truncated=0
        )
    rows = pa.table({"one": list(one), "two": list(two)}).to_batches(CHUNK)
    parts = [encode(tokenizer, max_tokens, sides, part) for part in rows]
    return Pairs.of(joined(parts), tokenizer, sides, labels)


encode_texts = partial(encode_pairs, sides=2)


def mapped_pairs(
    recipe: StepRecipe,
    data: Labelled,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    sides: Sides,
) -> dict[str, Pairs]:
    """The pairs of each split, tokenised once in a run and mapped from the disk."""
    chosen = recipe.model_dump(include={"classes", "validation_split", "test_split"})
    inputs = tokenizer.model_input_names
    folders = tokenized(
        data.data,
        data.tables,
        tokenizer,
        recipe.output,
        ("pairs", sides, max_tokens, inputs, data.columns, sorted(chosen.items())),
        data.columns,
        partial(encode, tokenizer, max_tokens, sides),
        workers=recipe.workers,
        rows=CHUNK,
    )
    return {
        split: Pairs.of(mapped(folder), tokenizer, sides, data.gold(split))
        for split, folder in folders.items()
    }


def _distinct(ngrams: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(ngrams)) < len(ngrams):
        raise ValueError("one is there twice")
    return ngrams


@dataclass(frozen=True)
class NgramVocabulary:
    """The known n-grams of at most `longest` lower-case words and punctuation marks."""

    longest: Annotated[int, Field(ge=1, le=10)]
    ngrams: Annotated[tuple[str, ...], AfterValidator(_distinct)]

    @classmethod
    def fit(
        cls, texts: Iterable[str], longest: int, *, min_texts: int, limit: int
    ) -> NgramVocabulary:
        """The `limit` most frequent n-grams that are in at least `min_texts` texts.

        Raises `InputError` if there is none.
        """
        counter = _counter(longest, min_df=min_texts, max_features=limit)
        try:
            counter.fit(texts)
        except ValueError as error:
            problem = f"no n-gram is in {min_texts} texts or more"
            hint = "lower --min_texts, or add training pairs"
            raise InputError(problem, hint=hint, field="min_texts") from error
        return cls(longest, tuple(counter.get_feature_names_out().tolist()))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `vocabulary.json`."""
        text = json.dumps(asdict(self), ensure_ascii=False)
        write_text(Path(folder) / VOCABULARY, text + "\n")

    @classmethod
    def from_pretrained(cls, folder: str | Path, config: Any = None) -> NgramVocabulary:
        """Read it from a model folder or from the Hub, for the model of that `config`."""
        path = file_of(folder, VOCABULARY)
        if path is None:
            raise InputError(f"has no {VOCABULARY}", where=str(folder), hint="download it again")
        stored = read_record(cls, path, "copy or download it again")
        if config is not None and config.features != 2 * len(stored.ngrams):
            problem = f"{len(stored.ngrams)} n-grams, and the weights are for {config.features / 2}"
            raise InputError(problem, where=str(path), hint="download the folder again")
        return stored


def encode_ngrams(
    one: Sequence[str],
    two: Sequence[str],
    vocabulary: NgramVocabulary,
    max_tokens: int = 0,
    labels: np.ndarray | None = None,
) -> Pairs:
    """For each pair the distinct known n-grams of s1, then those of s2.

    N-gram `i` is `i` in s1 and `len(ngrams) + i` in s2. `max_tokens` is ignored.
    """
    counter = _counter(vocabulary.longest, vocabulary=vocabulary.ngrams)
    features = hstack([counter.transform(one), counter.transform(two)], format="csr")
    gold = np.zeros(len(one), np.int64) if labels is None else labels
    texts = Texts(features.indices, features.indptr)
    return Pairs(texts, None, gold, pad_id=features.shape[1], sides=1, truncated=0)


def _counter(longest: int, **options: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(ngram_range=(1, longest), token_pattern=r"\w+|[^\w\s]", **options)
