"""Pairs of texts as ids: stored flat, padded only in batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import torch
from pydantic import AfterValidator, BaseModel, Field
from scipy.sparse import hstack
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.outside import read_record
from corpora.store.atomic import write_text
from zoo import file_of
from zoo.declared import StepRecipe
from zoo.labelled import Labelled
from zoo.training.mapped import Part, Texts, joined, mapped, tokenized

CHUNK = 10_000
VOCABULARY = "vocabulary.json"

Row = tuple[list[np.ndarray], np.ndarray | None, int]
"""The sequences of a pair, the segments of its tokens if any, and the label."""


@dataclass
class Pairs(Dataset[Row]):
    """Row `i` has `sides` sequences of ids: both texts as one, or each text separately.

    `types` are the segments of the tokens. `truncated` counts the sequences that were cut.
    """

    texts: Texts
    types: np.ndarray | None
    labels: np.ndarray
    pad_id: int
    sides: int
    truncated: int

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, Any],
        tokenizer: PreTrainedTokenizerBase,
        sides: int,
        labels: np.ndarray | None = None,
    ) -> Pairs:
        """The pairs of a part, or of all parts; without `labels` they have the label 0."""
        texts, types = arrays["tokens"], arrays["types"]
        if labels is None:
            labels = np.zeros(len(texts) // sides, np.int64)
        cut = int(arrays["cut"].sum())
        types = types if len(types) else None
        return cls(texts, types, labels.astype(np.int64), tokenizer.pad_token_id, sides, cut)

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
        """`input_ids`, `attention_mask` (and `token_type_ids`) and `labels [batch]`.

        Ids are `[batch, tokens]`, or `[batch, 2, tokens]` for separate texts. The rows may be of
        another split: only the padding is taken from this one.
        """
        width = max(1, *(len(ids) for sequences, *_ in rows for ids in sequences))
        ids = np.full((len(rows), self.sides, width), self.pad_id, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, (sequences, segments, _) in enumerate(rows):
            for side, sequence in enumerate(sequences):
                ids[row, side, : len(sequence)] = sequence
                mask[row, side, : len(sequence)] = 1
            if segments is not None:
                types[row, 0, : len(segments)] = segments
        batch = {"input_ids": ids, "attention_mask": mask}
        if rows[0][1] is not None:
            batch["token_type_ids"] = types
        labels = torch.tensor([label for *_, label in rows])
        shaped = {k: torch.from_numpy(v if self.sides > 1 else v[:, 0]) for k, v in batch.items()}
        return {**shaped, "labels": labels}


NONE: Part = {
    "tokens": Texts.of([]),
    "types": np.zeros(0, np.int8),
    "cut": np.zeros(0, np.int64),
}
"""An empty part."""


def each_text(
    tokenizer: PreTrainedTokenizerBase, max_tokens: int, one: Sequence[str], two: Sequence[str]
) -> Part:
    """The part of some pairs: each text separately, cut at `max_tokens`."""
    texts = list(chain.from_iterable(zip(one, two, strict=True)))
    rows = tokenizer(texts, verbose=False)["input_ids"]
    cut = sum(len(ids) > max_tokens for ids in rows)
    kept = Texts.of([ids[:max_tokens] or [tokenizer.unk_token_id] for ids in rows])
    return {"tokens": kept, "types": np.zeros(0, np.int8), "cut": np.array([cut])}


def both_texts(
    tokenizer: PreTrainedTokenizerBase, max_tokens: int, one: Sequence[str], two: Sequence[str]
) -> Part:
    """The part of some pairs: both texts as one; beyond `max_tokens` the longer loses its end."""
    texts = list(one), list(two)
    made = tokenizer(*texts, truncation="longest_first", max_length=max_tokens)
    full = [row for row, ids in enumerate(made["input_ids"]) if len(ids) >= max_tokens]
    cut = 0
    if full:
        again = ([side[row] for row in full] for side in texts)
        whole = tokenizer(*again, truncation=False, verbose=False)["input_ids"]
        cut = sum(len(ids) > max_tokens for ids in whole)
    segments = made.get("token_type_ids", ()) if _segmented(tokenizer) else ()
    types = np.fromiter(chain.from_iterable(segments), np.int8)
    return {"tokens": Texts.of(made["input_ids"]), "types": types, "cut": np.array([cut])}


def _segmented(tokenizer: PreTrainedTokenizerBase) -> bool:
    return "token_type_ids" in tokenizer.model_input_names


def encode_texts(
    one: Sequence[str],
    two: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None = None,
) -> Pairs:
    """Pairs in memory, each text separately (`each_text`)."""
    return _in_memory(each_text, 2, one, two, tokenizer, max_tokens, labels)


def encode_pairs(
    one: Sequence[str],
    two: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None = None,
) -> Pairs:
    """Pairs in memory, both texts as one (`both_texts`)."""
    return _in_memory(both_texts, 1, one, two, tokenizer, max_tokens, labels)


def _in_memory(
    encode: Callable[..., Part],
    sides: int,
    one: Sequence[str],
    two: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    labels: np.ndarray | None,
) -> Pairs:
    parts = [
        encode(tokenizer, max_tokens, one[at : at + CHUNK], two[at : at + CHUNK])
        for at in range(0, len(one), CHUNK)
    ]
    return Pairs.of(joined([NONE, *parts]), tokenizer, sides, labels)


def mapped_pairs(
    recipe: StepRecipe,
    data: Labelled,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    sides: Literal[1, 2],
) -> dict[str, Pairs]:
    """The pairs of each split, tokenised once in a run and mapped from the disk."""
    encode = both_texts if sides == 1 else each_text
    chosen = recipe.model_dump(include={"classes", "validation_split", "test_split"})
    folders = tokenized(
        data.data,
        data.tables,
        tokenizer,
        recipe.output,
        (encode.__name__, max_tokens, _segmented(tokenizer), data.columns, sorted(chosen.items())),
        data.columns,
        partial(_of_columns, encode, tokenizer, max_tokens),
        workers=recipe.workers,
        rows=CHUNK,
    )
    return {
        split: Pairs.of(mapped(folder), tokenizer, sides, data.gold(split))
        for split, folder in folders.items()
    }


def _of_columns(
    encode: Callable[..., Part],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    rows: pa.RecordBatch,
) -> Part:
    return encode(tokenizer, max_tokens, *(column.to_pylist() for column in rows.columns))


def _distinct(ngrams: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(ngrams)) < len(ngrams):
        raise ValueError("one is there twice")
    return ngrams


class StoredNgrams(BaseModel):
    """`vocabulary.json`."""

    ngrams: Annotated[tuple[str, ...], AfterValidator(_distinct)]
    longest: Annotated[int, Field(ge=1, le=10)]


@dataclass(frozen=True)
class NgramVocabulary:
    """The known n-grams of at most `longest` lower-case words and punctuation marks."""

    ngrams: tuple[str, ...]
    longest: int = 3

    @classmethod
    def fit(
        cls, texts: Iterable[str], longest: int, *, min_texts: int, limit: int
    ) -> NgramVocabulary:
        """The `limit` most frequent n-grams that are in at least `min_texts` texts."""
        counter = _counter(longest, min_df=min_texts, max_features=limit).fit(texts)
        return cls(tuple(counter.get_feature_names_out().tolist()), longest)

    def __len__(self) -> int:
        return len(self.ngrams)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `vocabulary.json`."""
        content = {"longest": self.longest, "ngrams": self.ngrams}
        write_text(Path(folder) / VOCABULARY, json.dumps(content, ensure_ascii=False) + "\n")

    @classmethod
    def from_pretrained(cls, folder: str | Path, config: Any = None) -> NgramVocabulary:
        """Read it from a model folder or from the Hub, for the model of that `config`."""
        path = file_of(folder, VOCABULARY)
        if path is None:
            raise InputError(f"has no {VOCABULARY}", where=str(folder), hint="download it again")
        stored = read_record(StoredNgrams, path, "copy or download it again")
        if config is not None and config.features != 2 * len(stored.ngrams):
            problem = f"{len(stored.ngrams)} n-grams, and the weights are for {config.features / 2}"
            raise InputError(problem, where=str(path), hint="download the folder again")
        return cls(stored.ngrams, stored.longest)


def encode_ngrams(
    one: Sequence[str],
    two: Sequence[str],
    vocabulary: NgramVocabulary,
    max_tokens: int = 0,
    labels: np.ndarray | None = None,
) -> Pairs:
    """For each pair the distinct known n-grams of s1, then those of s2.

    N-gram `i` is `i` in s1 and `len(vocabulary) + i` in s2. `max_tokens` is ignored.
    """
    counter = _counter(vocabulary.longest, vocabulary=vocabulary.ngrams)
    features = hstack([counter.transform(one), counter.transform(two)], format="csr")
    gold = np.zeros(len(one), np.int64) if labels is None else labels
    padding = 2 * len(vocabulary)
    texts = Texts(features.indices, features.indptr)
    return Pairs(texts, None, gold, padding, sides=1, truncated=0)


def _counter(longest: int, **options: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(ngram_range=(1, longest), token_pattern=r"\w+|[^\w\s]", **options)
