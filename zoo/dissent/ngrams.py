"""Pairs of sentences as bags of n-grams, and the linear classifier over them (A.5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding_bag
from torch.utils.data import Dataset
from transformers import PretrainedConfig
from transformers import initialization as init

from corpora.errors import InputError
from corpora.store.atomic import write_text
from zoo.dissent.modeling import MarkerOutput
from zoo.modeling import ZooModel, known_to_auto, label_count

VOCABULARY = "vocabulary.json"
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class NgramVocabulary:
    """The n-grams that are known, `longest` words at most. A pair's features are those of s1,
    then those of s2: feature `i` or `len(self) + i`.
    """

    ngrams: tuple[str, ...]
    longest: int = 3

    @classmethod
    def fit(
        cls, texts: Iterable[str], longest: int, *, min_texts: int, limit: int
    ) -> NgramVocabulary:
        """The `limit` most frequent n-grams that are in at least `min_texts` texts."""
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(
            analyzer=lambda text: list(_ngrams(text, longest)), min_df=min_texts, max_features=limit
        )
        counter.fit(texts)
        return cls(tuple(counter.get_feature_names_out().tolist()), longest)

    def __len__(self) -> int:
        return len(self.ngrams)

    def features(self, sentences: Sequence[str], offset: int) -> list[np.ndarray]:
        """The distinct known n-grams of each sentence, as sorted numbers from `offset`."""
        ids = {ngram: offset + number for number, ngram in enumerate(self.ngrams)}
        return [
            np.array(sorted({ids[g] for g in _ngrams(text, self.longest) if g in ids}), np.int64)
            for text in sentences
        ]

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `vocabulary.json`."""
        content = {"longest": self.longest, "ngrams": self.ngrams}
        write_text(Path(folder) / VOCABULARY, json.dumps(content, ensure_ascii=False) + "\n")

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> NgramVocabulary:
        """Read it from a model folder or from the Hub."""
        from transformers.utils.hub import cached_file

        found = cached_file(str(folder), VOCABULARY)
        assert found is not None  # it raises OSError where there is none
        try:
            content = json.loads(Path(found).read_text(encoding="utf-8"))
            return cls(tuple(content["ngrams"]), int(content["longest"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"is no vocabulary of n-grams: {error}", where=str(found)) from error


@dataclass
class NgramRows(Dataset[tuple[np.ndarray, int]]):
    """Row `i` has the features `features[i]`, all of the same weight."""

    features: list[np.ndarray]
    labels: np.ndarray
    pad_id: int
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, row: int) -> tuple[np.ndarray, int]:
        return self.features[row], int(self.labels[row])

    def lengths(self) -> np.ndarray:
        return np.array([len(found) for found in self.features])

    def collate(self, rows: Sequence[tuple[np.ndarray, int]]) -> dict[str, Any]:
        """`input_ids` and `attention_mask` `[batch, features]`, `labels [batch]`."""
        ids = np.full((len(rows), max(1, *(len(found) for found, _ in rows))), self.pad_id)
        for row, (found, _) in enumerate(rows):
            ids[row, : len(found)] = found
        filled = torch.from_numpy(ids)
        labels = torch.tensor([label for _, label in rows])
        mask = (filled != self.pad_id).long()
        return {"input_ids": filled, "attention_mask": mask, "labels": labels}


def encode_ngrams(
    one: Sequence[str],
    two: Sequence[str],
    vocabulary: NgramVocabulary,
    max_tokens: int = 0,
    labels: np.ndarray | None = None,
) -> NgramRows:
    """The features of pairs; nothing is cut, whatever `max_tokens` is."""
    first, second = vocabulary.features(one, 0), vocabulary.features(two, len(vocabulary))
    features = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    gold = np.zeros(len(one), np.int64) if labels is None else labels
    return NgramRows(features, gold, 2 * len(vocabulary))


@strict
class NgramConfig(PretrainedConfig):
    """`features`: twice the number of n-grams; the id after the last one is padding."""

    model_type = "discorpora-dissent-ngram"

    features: int = 2


class NgramForMarkers(ZooModel):
    """`logits = W x / |x| + b`, where x has a 1 for each n-gram that is there."""

    config_class = NgramConfig
    encode_pairs = staticmethod(encode_ngrams)
    read_tokenizer = staticmethod(NgramVocabulary.from_pretrained)
    main_input_name = "input_ids"

    def __init__(self, config: NgramConfig) -> None:
        super().__init__(config)
        self.num_labels = label_count(config)
        self.weight = nn.Parameter(torch.zeros(config.features + 1, self.num_labels))
        self.bias = nn.Parameter(torch.zeros(self.num_labels))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, NgramForMarkers):
            init.zeros_(module.weight)
            init.zeros_(module.bias)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        **kwargs: object,
    ) -> MarkerOutput:
        """Score the markers from the features `input_ids [batch, features]`."""
        counts = attention_mask.sum(1, keepdim=True).clamp(min=1)
        shares = attention_mask.to(self.weight.dtype) / counts.sqrt()
        summed = embedding_bag(input_ids, self.weight, per_sample_weights=shares, mode="sum")
        logits = summed + self.bias
        loss = None if labels is None else cross_entropy(logits, labels)
        return MarkerOutput(loss=loss, logits=logits)


def _ngrams(text: str, longest: int) -> Iterator[str]:
    """Lower-cased words and punctuation marks, one to `longest` in a row."""
    words = _WORD.findall(text.lower())
    for size in range(1, longest + 1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])


known_to_auto(NgramConfig, classifier=NgramForMarkers)
