"""The shipped scorer: links between sentences, and a model of their order.

The links are the similarity of the sentences' vectors (neighbours, sentences two apart, and all),
each encoded once. Cosines have no direction: a text and its reverse tie. A cue has one, whether
years ascend, and so has the model of order: a `CoherenceScorer` whose encoder is the one of the
links with changed weights, stored as factors of low rank. `zoo.coherence.ship` fits the weights of
the three; `docs/results/coherence.md` says what each adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import normalize

from corpora.prose import Quotes
from zoo.attention import padding_known
from zoo.backbones import BackboneConfig, OverBackbone, pooled
from zoo.coherence.data import pad
from zoo.coherence.modeling import DAMAGED_WEIGHTS, CoherenceScorer
from zoo.coherence.unc_modeling import pad_rows
from zoo.evaluate.scores import finite
from zoo.loading import load_tokenizer
from zoo.modeling import known_to_auto
from zoo.modeling_links import (
    change_shapes,
    changeable_weights,
    mean_cosines,
    weight_change,
)
from zoo.texts import Text, as_sentences, batches_by_length, check_texts
from zoo.windows import years_ascend

BATCH_TOKENS = 2048
"""Tokens of sentences encoded at once."""
BATCH_SENTENCES = 4096
"""Sentences of texts scored at once from their vectors."""


@strict
class LinkConfig(BackboneConfig):
    """The backbone's configuration, the maximum tokens of a sentence, and the weights of the score.

    `reaches[i]` is the weight of the mean cosine of sentences `i + 1` apart, `others` that of the
    mean cosine of all pairs, `years` that of ascending years, `order` that of the model of order.
    The changes of that model have the rank `order_rank` (0: there is no such model), and its
    windows `order_tokens`. `stored` is the format of the folder's weights (`zoo.compact`); a loaded
    model has float32.
    """

    model_type = "discorpora-link-scorer"

    reaches: tuple[float, ...] | list[float] = (3.0, 1.0)
    others: float = 1.0
    years: float = 0.0
    order: float = 0.0
    order_rank: int = 0
    order_tokens: int = 256
    max_tokens: int = 128
    quotes: Quotes = "keep"
    stored: str = "float32"


class LinkScorer(OverBackbone):
    """Scores texts by the cosines of their sentences' vectors (means of tokens), and their order.

    The score is a sum: the mean cosine of sentences at each distance times its weight in `reaches`,
    the mean cosine of all pairs times `others`, `years_ascend` times `years`, and the score of
    `ranker` times `order`. `forward` computes the mean cosines, from vectors.
    """

    config_class = LinkConfig

    def __init__(self, config: LinkConfig) -> None:
        """Make the backbone and, with `order_rank`, the changes and head of the model of order."""
        super().__init__(config)
        self.bf16 = False
        """Whether to encode in bfloat16: faster where the hardware has it."""
        self.cut = 0
        """Number of sentences cut at `max_tokens`."""
        if rank := config.order_rank:
            shapes = {
                name: tuple(weight.shape) for name, weight in changeable_weights(self.backbone)
            }
            self.changes = nn.ParameterDict(
                {key: torch.empty(shape) for key, shape in change_shapes(shapes, rank)}
            )
            self.order_head = nn.Linear(self.backbone.config.hidden_size, 1)
        self.post_init()

    def vectors(
        self, input_ids: Tensor, attention_mask: Tensor, padded: bool | None = None
    ) -> Tensor:
        """Return the vectors `[sentences, size]` of `input_ids [sentences, tokens]`.

        `padded` tells whether the mask contains a 0 (None: unknown).
        """
        with padding_known(padded):
            encoded = self.backbone(input_ids=input_ids, attention_mask=attention_mask)
        return pooled(encoded.last_hidden_state, attention_mask, "mean")

    def forward(self, vectors: Tensor, texts: Tensor) -> Tensor:
        """Return the mean cosines of each text (`mean_cosines`), `[texts, reaches + 1]`.

        `texts [texts, sentences]` are row numbers of `vectors [n, size]`, -1 for padding.
        """
        real, directions = texts >= 0, normalize(vectors, dim=-1)
        sentences = directions[texts.clamp(min=0)] * real.unsqueeze(-1)
        return mean_cosines(sentences, real.sum(1), len(self.config.reaches))

    @cached_property
    def tokenizer(self) -> Any:
        return load_tokenizer(self.config._name_or_path, self.config)

    @cached_property
    def ranker(self) -> CoherenceScorer:
        """The model of order: the backbone with `changes`, and `order_head`."""
        backbone, changes = deepcopy(self.backbone), dict(self.changes.items())
        for name, weight in changeable_weights(backbone):
            weight.data += weight_change(changes, name)
        pad_id, max_tokens = self.config.pad_token_id, self.config.order_tokens
        ranker = CoherenceScorer.from_backbone(backbone, max_tokens, pad_id, vector="mean")
        ranker.score_head = self.order_head
        ranker.config._name_or_path = self.config._name_or_path
        return ranker

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each sentence, at most `max_tokens`; `cut` counts longer ones."""
        ids = self.tokenizer(list(sentences), verbose=False)["input_ids"]
        limit = self.config.max_tokens
        self.cut += sum(len(sentence) > limit for sentence in ids)
        return [[*row[: limit - 1], row[-1]] if len(row) > limit else row for row in ids]

    def encode_ids(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Return the vectors `[sentences, size]` of token ids; each batch has similar lengths."""
        order, parts = [], []
        for rows in batches_by_length([len(sentence) for sentence in ids], BATCH_TOKENS):
            words, mask = pad([ids[row] for row in rows], self.backbone.config.pad_token_id or 0)
            inputs = words.to(self.device), mask.to(self.device)
            parts.append(self.vectors(*inputs, padded=not mask.all()))
            order += rows
        return torch.cat(parts)[torch.as_tensor(np.argsort(order))]

    def score(self, texts: Sequence[Text]) -> list[float]:
        """Return a score for each text, the higher the more coherent.

        A text may be a list of sentences; it may have any length. Raises `InputError` for a text
        without words.
        """
        check_texts(texts)
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        return [score for score, _ in self.score_windows(sentences)]

    def score_windows(self, texts: Sequence[Sequence[str]]) -> list[tuple[float, int]]:
        """Return for each text (a list of sentences) its score and the number of its windows. Only
        the model of order, `ranker`, reads a text in windows; without it there is one window."""
        parts, counts = self.parts(texts)
        return list(zip((parts @ self.weights).tolist(), counts, strict=True))

    @property
    def weights(self) -> list[float]:
        """The weights of the columns of `parts`."""
        config = self.config
        return [*config.reaches, config.others, config.years, config.order]

    def parts(self, texts: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[int]]:
        """Return the parts of the scores of texts (lists of sentences), `[texts, parts]`, before
        their weights: the mean cosines at each distance and of all pairs, whether years ascend, and
        the order (0 without a model of order). Also returns the number of windows of each text."""
        years = np.array([years_ascend(text) for text in texts])
        order, counts = np.zeros(len(texts)), [1] * len(texts)
        if self.config.order_rank:
            self.ranker.bf16 = self.bf16
            ranked = self.ranker.to(self.device).score_windows(texts)  # type: ignore[arg-type]
            order = np.array([score for score, _ in ranked])
            counts = [windows for _, windows in ranked]
        return np.column_stack([self.cosines(texts), years, order]), counts

    @torch.inference_mode()
    def cosines(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the mean cosines of texts (lists of sentences), `[texts, reaches + 1]`."""
        rows: dict[str, int] = {}
        numbered = [[rows.setdefault(s, len(rows)) for s in text] for text in texts]
        means = np.zeros((len(texts), len(self.config.reaches) + 1))
        if not rows:
            return means
        self.eval()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            vectors = self.encode_ids(self.ids(list(rows))).float()
        for batch in batches_by_length([len(text) for text in numbered], BATCH_SENTENCES):
            padded = pad_rows([numbered[i] for i in batch]).to(self.device)
            means[batch] = self(vectors, padded).float().cpu()
        path = self.config._name_or_path
        return finite(means, "the model gives scores", path, DAMAGED_WEIGHTS)


@torch.no_grad()
def changes_between(start: nn.Module, end: nn.Module, rank: int) -> dict[str, Tensor]:
    """Return the changes of weights from backbone `start` to backbone `end`, by name. The change of
    a matrix is approximated by its `rank` largest singular values, as two factors `NAME-up` and
    `NAME-down`; the change of any other weight is stored as it is."""
    changes: dict[str, Tensor] = {}
    weights = zip(changeable_weights(start), changeable_weights(end), strict=True)
    for (name, before), (_, after) in weights:
        change = after - before
        if change.dim() == 2 and min(change.shape) > rank:
            up, sizes, down = torch.linalg.svd(change, full_matrices=False)
            roots = sizes[:rank].sqrt()
            changes[f"{name}-up"] = up[:, :rank] * roots
            changes[f"{name}-down"] = roots.unsqueeze(1) * down[:rank]
        else:
            changes[name] = change
    return changes


known_to_auto(LinkConfig, model=LinkScorer)
