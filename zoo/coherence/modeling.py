"""The scorer: a backbone's [cls] vector and one linear layer (section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils.generic import ModelOutput

from corpora.prose import Quotes
from zoo.attention import padding_known
from zoo.backbones import BackboneConfig, OverBackbone, Pooling, pooled, uses_last_token
from zoo.coherence.data import Documents, cut_pairs, encode_documents, on_device, pad
from zoo.evaluate.scores import Ranking, finite
from zoo.loading import load_tokenizer
from zoo.modeling import known_to_auto
from zoo.texts import (
    Text,
    TextEncoder,
    as_sentences,
    batches_by_length,
    check_texts,
    windows,
)

DAMAGED_WEIGHTS = "its weights are damaged: copy, download or train the model again"
CPU_TOKENS = 2048
"""Tokens scored at once by a CPU thread: more would not fit its caches."""


@strict
class CoherenceConfig(BackboneConfig):
    """The backbone's configuration, the position of its [cls] token, and the longest text.

    `quotes` is the setting of its training dataset: texts get the same marks.
    """

    model_type = "discorpora-coherence-scorer"

    pooling: Pooling = "first"
    max_tokens: int = 600
    quotes: Quotes = "keep"


@dataclass
class ScoreOutput(ModelOutput):
    """The output of a scorer: `scores` in the shape of the input without the dimension of tokens.

    `vectors [texts, dim]`, if requested, are the input of the linear layer.
    """

    scores: Tensor | None = None
    vectors: Tensor | None = None


class CoherenceScorer(OverBackbone):
    """Scores texts: `f(d) = w h_cls + b`."""

    config_class = CoherenceConfig

    def __init__(self, config: CoherenceConfig) -> None:
        super().__init__(config)
        self.score_head = nn.Linear(self.backbone.config.hidden_size, 1)
        self.bf16 = False
        """Whether to score in bfloat16: faster on suitable hardware, exact to three digits."""
        self.post_init()

    @classmethod
    def from_backbone(
        cls,
        backbone: PreTrainedModel,
        max_tokens: int = 600,
        pad_token_id: int | None = 0,
        vector: Literal["cls", "mean"] = "cls",
        **settings: Any,
    ) -> Self:
        """Build a scorer around a backbone, as `OverBackbone.from_backbone` does.

        `vector` is the input of the linear layer: the state of the [cls] token (the last token of a
        decoder), or the mean of all tokens.
        """
        at_cls: Pooling = "last" if uses_last_token(backbone.config) else "first"
        settings["pooling"] = "mean" if vector == "mean" else at_cls
        return super().from_backbone(backbone, max_tokens, pad_token_id, **settings)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        with_vectors: bool = False,
        padded: bool | None = None,
        **kwargs: object,
    ) -> ScoreOutput:
        """Score `input_ids [..., tokens]`, padded on the right: `scores [...]`.

        `[batch, tokens]` gives one score for each text, `[batch, 1 + negatives, tokens]` a row of
        scores for each positive text and its negatives. `padded` tells whether the mask contains a
        0: without it the process waits for the GPU to find out.
        """
        *leading, tokens = input_ids.shape
        ids, mask = input_ids.reshape(-1, tokens), attention_mask.reshape(-1, tokens)
        vectors = self.vectors(ids, mask, padded=padded)
        scores = self.heads(vectors).reshape(leading)
        return ScoreOutput(scores=scores, vectors=vectors if with_vectors else None)

    def vectors(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        backbone: nn.Module | None = None,
        padded: bool | None = None,
    ) -> Tensor:
        """Return the linear layer's input `[texts, dim]` for `input_ids [texts, tokens]`.

        `backbone`, such as the momentum encoder, takes the place of the model's.
        """
        encoder = self.backbone if backbone is None else backbone
        with padding_known(padded):
            states = encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return pooled(states, attention_mask, self.config.pooling)

    def heads(self, vectors: Tensor) -> Tensor:
        """Return the scores `[texts]` of vectors `[texts, dim]`.

        They have the layer's precision, also under autocast: in bfloat16 many texts would tie.
        """
        with torch.autocast(vectors.device.type, enabled=False):
            return self.score_head(vectors.to(self.score_head.weight.dtype)).squeeze(-1)

    @cached_property
    def encoder(self) -> TextEncoder:
        """Turns texts into ids with the tokenizer saved beside the weights."""
        tokenizer = load_tokenizer(self.config._name_or_path, self.config)
        return TextEncoder(tokenizer, self.config.max_tokens)

    def score(self, texts: Sequence[Text]) -> list[float]:
        """Return a score for each text (a string or its sentences), the higher the more coherent.

        A text beyond the model's limit is scored in overlapping windows of whole sentences
        (`zoo.texts.windows`): its score is their mean. Padding changes no score, unless the
        backbone does not hide it. Raises `InputError` for a text without words.
        """
        check_texts(texts)
        sentences = [as_sentences(text, self.config.quotes) for text in texts]
        return [score for score, _ in self.score_windows(sentences)]

    def score_windows(self, texts: Sequence[Sequence[str]]) -> list[tuple[float, int]]:
        """Return for each text (a list of sentences) the mean score and the number of its windows.
        Windows overlap; each has as many whole sentences as the model can read at once."""
        by_text = [windows(self.encoder, text) for text in texts]
        ids = [self.encoder.assemble(pieces) for text in by_text for pieces, _ in text]
        scores = iter(self.score_ids(ids))
        return [(float(np.mean([next(scores) for _ in text])), len(text)) for text in by_text]

    def score_cut(
        self, coherent: Sequence[Sequence[str]], other: Sequence[Sequence[str]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score pairs of texts (lists of sentences), cut to the maximum length as in training.
        Returns three arrays `[pairs]`: the scores of `coherent` and of `other`, and whether the cut
        made the two texts equal."""
        check_texts([*coherent, *other])
        pairs = cut_pairs(self.encoder, self.config.quotes, coherent, other)
        texts = {text.tobytes(): text for pair in pairs for text in pair}
        scores = dict(zip(texts, self.score_ids([*texts.values()]), strict=True))
        keys = [[text.tobytes() for text in pair] for pair in pairs]
        table = np.array([[scores[key] for key in pair] for pair in keys])
        return table[:, 0], table[:, 1], np.array([first == second for first, second in keys])

    def rank_orders(self, documents: pa.Table, orders: pa.Table) -> Ranking:
        """Score documents (a table with `id`, `sentences`) and the permutations in `orders`."""
        texts = encode_documents(documents, self.encoder, self.config.quotes)
        return score_orders(self, texts, orders)

    @torch.inference_mode()
    def score_ids(
        self, texts: Sequence[Any], batch_tokens: int = 16384, *, bf16: bool | None = None
    ) -> list[float]:
        """Score texts that are token ids with special tokens; return one score for each text.

        Batches have texts of similar length, at most `batch_tokens` (fewer on a CPU, which is
        faster there). `bf16` overrides the model's setting. Raises `InputError` for a NaN score.
        """
        self.eval()
        bf16 = self.bf16 if bf16 is None else bf16
        if self.device.type == "cpu":
            batch_tokens = min(batch_tokens, CPU_TOKENS * torch.get_num_threads())
        scores = np.zeros(len(texts))
        order: list[int] = []
        batch_scores: list[Tensor] = []
        for rows in batches_by_length([len(text) for text in texts], batch_tokens):
            ids, mask = pad([texts[row] for row in rows], self.config.pad_token_id or 0)
            padded = not mask.all()
            with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
                inputs = on_device(self.device, ids, mask)
                batch_scores.append(self(*inputs, padded=padded).scores.float())
            order += rows
        if batch_scores:  # copied once: a GPU computes while the next batch is made
            scores[order] = torch.cat(batch_scores).cpu()
        path = self.config._name_or_path
        return finite(scores, "the model gives scores", path, DAMAGED_WEIGHTS).tolist()


def score_orders(
    model: CoherenceScorer, documents: Documents, orders: pa.Table, batch_tokens: int = 16384
) -> Ranking:
    """Score documents and their permutations, both cut to the same sentences. A row of `orders`
    names a document and lists its permutations. A permutation that the cut made equal to the
    document is marked as identical, and gets the document's score."""
    names: list[str] = []
    permuted: list[np.ndarray] = []
    for row in orders.select(["document", "orders"]).to_pylist():
        name = row["document"]
        cut_orders = [documents.cut_order(name, order) for order in row["orders"]]
        permuted += [documents.permuted(name, order) for order in cut_orders]
        names += [name] * len(cut_orders)
    distinct, original = np.unique(np.array(names, object), return_inverse=True)
    size = len(distinct)
    texts = [*(documents.original(name) for name in distinct), *permuted]
    scores = np.array(model.score_ids(texts, batch_tokens))
    lengths = np.array([len(text) for text in texts])
    coherent, others = scores[original], scores[size:]
    equal = [np.array_equal(texts[i], text) for i, text in zip(original, permuted, strict=True)]
    identical = np.array(equal, bool)
    others[identical] = coherent[identical]  # two batches may give one text two roundings
    return Ranking(names, coherent, others, (lengths[original], lengths[size:]), identical)


known_to_auto(CoherenceConfig, model=CoherenceScorer)
