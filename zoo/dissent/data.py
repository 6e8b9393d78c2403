"""Pairs of texts as token ids, which are padded only in batches, or as ids of n-grams."""

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
"""The number of pairs that are tokenised at a time."""
VOCABULARY = "vocabulary.json"

EncodedPair = tuple[list[np.ndarray], np.ndarray | None, int]
"""The token sequences of a pair, the segment of each token if the model has any, and the label."""
Sides = Literal[1, 2]
"""The token sequences of a pair: 1 if both texts are one sequence, 2 if each is its own."""


@dataclass
class EncodedPairs(Dataset[EncodedPair]):
    """Pairs of texts as token ids: each row has `sides` sequences, one after another in `texts`.

    `types` are the segments of the tokens (`token_type_ids`), if any; `truncated` is the number of
    sequences that were cut. `counted [vocabulary]`, if set, is true for the words to encode.
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
    ) -> EncodedPairs:
        """Make pairs of the arrays that `encode` returned; without `labels` each has label 0."""
        texts = arrays["tokens"]
        types = arrays["types"] if len(arrays["types"]) else None
        gold = np.zeros(len(texts) // sides, np.int64) if labels is None else labels
        return cls(texts, types, gold, tokenizer.pad_token_id, sides, int(arrays["cut"].sum()))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> EncodedPair:
        bounds = self.texts.bounds[row * self.sides : (row + 1) * self.sides + 1]
        types = None if self.types is None else self.types[bounds[0] : bounds[-1]]
        sequences = [self.texts.ids[a:b] for a, b in pairwise(bounds)]
        return sequences, types, int(self.labels[row])

    def lengths(self) -> np.ndarray:
        """Return the number of tokens in the longest sequence of each row, `[rows]`."""
        return self.texts.lengths().reshape(-1, self.sides).max(axis=1)

    def collate(self, rows: Sequence[EncodedPair]) -> dict[str, Any]:
        """Return a batch of rows: the arguments of the model's `forward`, with `labels [batch]`.

        `input_ids`, `attention_mask` and perhaps `token_type_ids` are `[batch, tokens]`, or
        `[batch, 2, tokens]` for separate texts. `padded` is true if any padding was needed.
        `packed [texts]` is the number of words of each text that count, if `counted` is set.
        """
        # Pad all texts to one length.
        sequences = [ids for row_sequences, *_ in rows for ids in row_sequences]
        texts = Texts(np.concatenate(sequences), bounds_of([len(ids) for ids in sequences]))
        ids, real = texts.padded(self.pad_id)
        batch = {"input_ids": ids, "attention_mask": real.astype(np.int64)}
        if rows[0][1] is not None:
            batch["token_type_ids"] = np.zeros_like(ids)
            batch["token_type_ids"][real] = np.concatenate([types for _, types, _ in rows])
        # Give each row one text or two, and make tensors.
        shape = (len(rows), self.sides, -1) if self.sides > 1 else (len(rows), -1)
        tensors: dict[str, Any] = {
            name: torch.from_numpy(array.reshape(shape)) for name, array in batch.items()
        }
        tensors["padded"] = not real.all()
        if self.counted is not None:
            tensors["packed"] = (self.counted[ids] & real).sum(1).clip(min=1)
        return {**tensors, "labels": torch.tensor([label for *_, label in rows])}


def encode(
    tokenizer: PreTrainedTokenizerBase, max_tokens: int, sides: Sides, rows: pa.RecordBatch
) -> Part:
    """Tokenise pairs, two columns of texts, into sequences of at most `max_tokens` ids.

    With `sides` 1 both texts are one sequence, whose longer text is cut; with 2 each is its own.
    Returns the arrays `tokens` (the sequences), `types` (the segments) and `cut` (the number of
    sequences that were cut).
    """
    first, second = (column.to_pylist() for column in rows.columns)
    types: Iterable[Iterable[int]] = ()
    if sides == 2:
        texts = list(chain.from_iterable(zip(first, second, strict=True)))
        whole = tokenizer(texts, verbose=False)["input_ids"]
        cut = sum(len(ids) > max_tokens for ids in whole)
        sequences = [ids[:max_tokens] or [tokenizer.unk_token_id] for ids in whole]
    else:
        encoded = tokenizer(first, second, truncation="longest_first", max_length=max_tokens)
        cut = sum(bool(encoding.overflowing) for encoding in encoded.encodings)
        sequences, types = encoded["input_ids"], encoded.get("token_type_ids", ())
        # The tokenizer must not be saved with the truncation of this call.
        tokenizer.backend_tokenizer.no_truncation()
    segments = np.fromiter(chain.from_iterable(types), np.int8)
    return {"tokens": Texts.of(sequences), "types": segments, "cut": np.array([cut])}


def encode_pairs(
    first: Sequence[str],
    second: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None = None,
    *,
    sides: Sides = 1,
) -> EncodedPairs:
    """Tokenise the pairs `first[i], second[i]` in memory; `labels [pairs]` are their labels."""
    if not len(first):
        return EncodedPairs(
            Texts.of([]), None, np.zeros(0, np.int64), tokenizer.pad_token_id, sides, truncated=0
        )
    rows = pa.table({"first": list(first), "second": list(second)}).to_batches(CHUNK)
    parts = [encode(tokenizer, max_tokens, sides, part) for part in rows]
    return EncodedPairs.of(joined(parts), tokenizer, sides, labels)


encode_texts = partial(encode_pairs, sides=2)


def mapped_pairs(
    recipe: StepRecipe,
    data: Labelled,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    sides: Sides,
) -> dict[str, EncodedPairs]:
    """Return the pairs of each split, tokenised once in a run and memory-mapped from disk."""
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
        split: EncodedPairs.of(mapped(folder), tokenizer, sides, data.gold(split))
        for split, folder in folders.items()
    }


def _check_distinct(ngrams: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(ngrams)) < len(ngrams):
        raise ValueError("one is there twice")
    return ngrams


@dataclass(frozen=True)
class NgramVocabulary:
    """The n-grams that a model knows, of at most `longest` lower-case words and marks."""

    longest: Annotated[int, Field(ge=1, le=10)]
    ngrams: Annotated[tuple[str, ...], AfterValidator(_check_distinct)]

    @classmethod
    def fit(
        cls, texts: Iterable[str], longest: int, *, min_texts: int, limit: int
    ) -> NgramVocabulary:
        """Return the `limit` most frequent n-grams that are in at least `min_texts` texts.

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
        """Write the n-grams to `vocabulary.json` in a folder."""
        text = json.dumps(asdict(self), ensure_ascii=False)
        write_text(Path(folder) / VOCABULARY, text + "\n")

    @classmethod
    def from_pretrained(cls, folder: str | Path, config: Any = None) -> NgramVocabulary:
        """Read the n-grams of a model (folder or Hub id); they must fit its `config`, if given."""
        path = file_of(folder, VOCABULARY)
        if path is None:
            raise InputError(f"has no {VOCABULARY}", where=str(folder), hint="download it again")
        stored = read_record(cls, path, "copy or download it again")
        if config is not None and config.features != 2 * len(stored.ngrams):
            problem = f"{len(stored.ngrams)} n-grams, and the weights are for {config.features / 2}"
            raise InputError(problem, where=str(path), hint="download the folder again")
        return stored


def encode_ngrams(
    first: Sequence[str],
    second: Sequence[str],
    vocabulary: NgramVocabulary,
    max_tokens: int = 0,
    labels: np.ndarray | None = None,
) -> EncodedPairs:
    """Encode each pair as the ids of its known n-grams: those of the first text, then the second.

    N-gram `i` has the id `i` in the first text and `len(ngrams) + i` in the second; each is listed
    once. `max_tokens` is ignored.
    """
    counter = _counter(vocabulary.longest, vocabulary=vocabulary.ngrams)
    features = hstack([counter.transform(first), counter.transform(second)], format="csr")
    gold = np.zeros(len(first), np.int64) if labels is None else labels
    texts = Texts(features.indices, features.indptr)
    return EncodedPairs(texts, None, gold, pad_id=features.shape[1], sides=1, truncated=0)


def _counter(longest: int, **options: Any) -> Any:
    """Return scikit-learn's counter of n-grams of words and punctuation marks."""
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(ngram_range=(1, longest), token_pattern=r"\w+|[^\w\s]", **options)
