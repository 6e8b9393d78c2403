"""The shipped scorer: links between sentences, and a model of their order.

The links are the similarity of the sentences' vectors (neighbours, sentences two apart, and all),
each encoded once. Cosines have no direction: a text and its reverse tie. A cue has one, whether
years ascend, and so has the model of order: a `CoherenceScorer` whose encoder is the one of the
links with changed weights, stored as factors of low rank. `zoo.coherence.ship` fits the weights of
the three; `docs/results/coherence.md` says what each adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from itertools import pairwise
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
from zoo.coherence.modeling import ANEW, CoherenceScorer
from zoo.coherence.unc_modeling import pad_rows
from zoo.evaluate.scores import finite
from zoo.loading import load_tokenizer
from zoo.modeling import known_to_auto
from zoo.texts import Text, as_sentences, batches_by_length, check_texts

BATCH_TOKENS = 2048
TEXTS = 256
YEAR = re.compile(r"\b(1\d\d\d|20[0-3]\d)\b")


@strict
class LinkConfig(BackboneConfig):
    """The backbone's configuration, the longest sentence in tokens, and the weights of the links.

    `reaches`: the weight of the mean cosine of sentences 1, 2, ... apart; `others`: that of all;
    `years`: that of ascending years; `order`: that of the model of order, whose changes have the
    rank `order_rank` (0: no such model) and whose windows have `order_tokens`.
    `stored` is the format of the folder's weights (`zoo.compact`); a loaded model has float32.
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

    The sum over the distances d of `reaches[d]` times the mean cosine of sentences that far apart,
    of `others` times the mean cosine of all pairs, of `years` times whether years ascend, and of
    `order` times the score of `ranker`. `forward` sees vectors alone and gives the cosines' part.
    """

    config_class = LinkConfig

    def __init__(self, config: LinkConfig) -> None:
        super().__init__(config)
        self.bf16 = False
        """Whether to encode in bfloat16: faster where the hardware has it."""
        self.cut = 0
        """Number of sentences cut at `max_tokens`."""
        if rank := config.order_rank:
            shapes = {name: tuple(weight.shape) for name, weight in changeable(self.backbone)}
            self.changes = nn.ParameterDict(
                {key: torch.empty(shape) for key, shape in change_shapes(shapes, rank)}
            )
            self.order_head = nn.Linear(self.backbone.config.hidden_size, 1)
        self.post_init()

    def vectors(
        self, input_ids: Tensor, attention_mask: Tensor, padded: bool | None = None
    ) -> Tensor:
        """The vectors `[sentences, size]` of `input_ids [sentences, tokens]`.

        `padded`: whether the mask has a 0, where it is known.
        """
        with padding_known(padded):
            encoded = self.backbone(input_ids=input_ids, attention_mask=attention_mask)
        return pooled(encoded.last_hidden_state, attention_mask, "mean")

    def forward(self, vectors: Tensor, texts: Tensor) -> Tensor:
        """The scores `[texts]` of `texts [texts, sentences]`, rows of `vectors`; -1 is padding."""
        there, ones = texts >= 0, normalize(vectors, dim=-1)
        own = ones[texts.clamp(min=0)] * there.unsqueeze(-1)
        count = there.sum(1)
        scores = torch.zeros(len(texts), device=vectors.device)
        for reach, weight in enumerate(self.config.reaches, 1):
            cosines = (own[:, :-reach] * own[:, reach:]).sum(-1)
            scores = scores + weight * cosines.sum(1) / (count - reach).clamp(min=1)
        total = own.sum(1)
        pairs = (total * total).sum(-1) - (own * own).sum((1, 2))
        return scores + self.config.others * pairs / (count * (count - 1)).clamp(min=1)

    @cached_property
    def tokenizer(self) -> Any:
        return load_tokenizer(self.config._name_or_path, self.config)

    @cached_property
    def ranker(self) -> CoherenceScorer:
        """The model of order: the backbone with `changes`, and `order_head`."""
        backbone, changes = deepcopy(self.backbone), dict(self.changes.items())
        for name, weight in changeable(backbone):
            weight.data += change_of(changes, name)
        pad_id, most = self.config.pad_token_id, self.config.order_tokens
        ranker = CoherenceScorer.from_backbone(backbone, most, pad_id, vector="mean")
        ranker.score_head = self.order_head
        ranker.config._name_or_path = self.config._name_or_path
        return ranker

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """The tokens of each sentence with its special tokens, `max_tokens` at most."""
        found = self.tokenizer(list(sentences), verbose=False)["input_ids"]
        most = self.config.max_tokens
        self.cut += sum(len(ids) > most for ids in found)
        return [[*ids[: most - 1], ids[-1]] if len(ids) > most else ids for ids in found]

    def encode_ids(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """The vectors `[sentences, size]`, in batches of sentences of like length."""
        order, parts = [], []
        for rows in batches_by_length([len(one) for one in ids], BATCH_TOKENS):
            words, mask = pad([ids[row] for row in rows], self.backbone.config.pad_token_id or 0)
            inputs = words.to(self.device), mask.to(self.device)
            parts.append(self.vectors(*inputs, padded=not mask.all()))
            order += rows
        return torch.cat(parts)[torch.as_tensor(np.argsort(order))]

    def score(self, texts: Sequence[Text]) -> list[float]:
        """One score for each text, the higher the more coherent; equal sentences are encoded once.

        A text may be a list of sentences; it may have any length. Raises `InputError` for a text
        without words.
        """
        check_texts(texts)
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        return [score for score, _ in self.score_windows(sentences)]

    def score_windows(self, texts: Sequence[Sequence[str]]) -> list[tuple[float, int]]:
        """The score of each text (its sentences), and the number of windows in which `ranker`
        read it."""
        scores, counts = self.similarities(texts), [1] * len(texts)
        if self.config.years:
            scores += self.config.years * np.array([years_ascend(text) for text in texts])
        if self.config.order:
            self.ranker.bf16 = self.bf16
            found = self.ranker.to(self.device).score_windows(texts)  # type: ignore[arg-type]
            scores += self.config.order * np.array([score for score, _ in found])
            counts = [number for _, number in found]
        return list(zip(scores.tolist(), counts, strict=True))

    @torch.inference_mode()
    def similarities(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """The cosines' part of the scores of texts (their sentences), `[texts]`."""
        rows: dict[str, int] = {}
        numbered = [[rows.setdefault(s, len(rows)) for s in text] for text in texts]
        scores = np.zeros(len(texts))
        if not rows:
            return scores
        self.eval()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            vectors = self.encode_ids(self.ids(list(rows))).float()
        for some in batches_by_length([len(text) for text in numbered], 16 * TEXTS):
            padded = pad_rows([numbered[i] for i in some]).to(self.device)
            scores[some] = self(vectors, padded).float().cpu()
        return finite(scores, "the model gives scores", self.config._name_or_path, ANEW)


def changeable(backbone: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The weights of a backbone that `LinkScorer.changes` changes: all but the pooler's."""
    for name, weight in backbone.named_parameters():
        if not name.startswith("pooler."):
            yield name.replace(".", "-"), weight


def change_shapes(
    shapes: Mapping[str, tuple[int, ...]], rank: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The shapes of the changes of weights: two factors of a matrix above the rank."""
    for name, shape in shapes.items():
        if len(shape) == 2 and min(shape) > rank:
            yield f"{name}-up", (shape[0], rank)
            yield f"{name}-down", (rank, shape[1])
        else:
            yield name, shape


def change_of(changes: Mapping[str, Tensor], name: str) -> Tensor:
    """The change of one weight."""
    if name in changes:
        return changes[name]
    return changes[f"{name}-up"] @ changes[f"{name}-down"]


@torch.no_grad()
def changes_between(one: nn.Module, other: nn.Module, rank: int) -> dict[str, Tensor]:
    """What makes the weights of backbone `one` into nearly those of `other`, by `LinkScorer`'s
    names: of a matrix the factors of the difference's `rank` largest singular values."""
    found: dict[str, Tensor] = {}
    for (name, start), (_, end) in zip(changeable(one), changeable(other), strict=True):
        change = end - start
        if change.dim() == 2 and min(change.shape) > rank:
            up, sizes, down = torch.linalg.svd(change, full_matrices=False)
            roots = sizes[:rank].sqrt()
            found[f"{name}-up"] = up[:, :rank] * roots
            found[f"{name}-down"] = roots.unsqueeze(1) * down[:rank]
        else:
            found[name] = change
    return found


def years_ascend(sentences: Sequence[str]) -> float:
    """Whether years ascend from one dated sentence to the next, from -1 to 1.

    The mean sign of the differences; 0 for a text with fewer than two different years. Of a
    sentence with several years the first counts.
    """
    years = [int(found[0]) for sentence in sentences if (found := YEAR.search(sentence))]
    signs = [np.sign(after - before) for before, after in pairwise(years) if after != before]
    return float(np.mean(signs)) if signs else 0.0


known_to_auto(LinkConfig, model=LinkScorer)
