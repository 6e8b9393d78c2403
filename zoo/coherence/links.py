"""A scorer of links between sentences; each sentence is encoded once, whatever the order.

A text's score is the similarity of its sentences' vectors (neighbours, sentences two apart, and
all) and a cue of order, whether years ascend: cosines have no direction, so that a text and its
reverse tie, and years have one. `zoo.coherence.ship` fits its weight; `docs/results/coherence.md`
says why no more is learnt, and which other cues were left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor
from torch.nn.functional import normalize

from corpora.prose import Quotes
from zoo.backbones import BackboneConfig, OverBackbone, pooled
from zoo.coherence.data import pad
from zoo.coherence.unc_modeling import pad_rows
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
    `years`: that of ascending years.
    `stored` is the format of the folder's weights (`zoo.compact`); a loaded model has float32.
    """

    model_type = "discorpora-link-scorer"

    reaches: tuple[float, ...] | list[float] = (3.0, 1.0)
    others: float = 1.0
    years: float = 0.0
    max_tokens: int = 128
    quotes: Quotes = "keep"
    stored: str = "float32"


class LinkScorer(OverBackbone):
    """Scores texts by the cosines of their sentences' vectors (means of tokens).

    The sum over the distances d of `reaches[d]` times the mean cosine of sentences that far apart,
    of `others` times the mean cosine of all pairs, and of `years` times whether years ascend.
    `forward` sees vectors alone and gives the score without years.
    """

    config_class = LinkConfig

    def __init__(self, config: LinkConfig) -> None:
        super().__init__(config)
        self.bf16 = False
        """Whether to encode in bfloat16: faster where the hardware has it."""
        self.cut = 0
        """Number of sentences cut at `max_tokens`."""
        self.post_init()

    def vectors(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The vectors `[sentences, size]` of `input_ids [sentences, tokens]`."""
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
            parts.append(self.vectors(words.to(self.device), mask.to(self.device)))
            order += rows
        return torch.cat(parts)[torch.as_tensor(np.argsort(order))]

    @torch.inference_mode()
    def score(self, texts: Sequence[Text]) -> list[float]:
        """One score for each text, the higher the more coherent; equal sentences are encoded once.

        A text may be a list of sentences; it may have any length. Raises `InputError` for a text
        without words.
        """
        check_texts(texts)
        rows: dict[str, int] = {}
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        numbered = [[rows.setdefault(s, len(rows)) for s in text] for text in sentences]
        if not numbered:
            return []
        self.eval()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            vectors = self.encode_ids(self.ids(list(rows))).float()
        scores = np.zeros(len(texts))
        for some in batches_by_length([len(text) for text in numbered], 16 * TEXTS):
            padded = pad_rows([numbered[i] for i in some]).to(self.device)
            scores[some] = self(vectors, padded).float().cpu()
        if self.config.years:
            scores += self.config.years * np.array([years_ascend(text) for text in sentences])
        return scores.tolist()


def years_ascend(sentences: Sequence[str]) -> float:
    """Whether years ascend from one dated sentence to the next, from -1 to 1.

    The mean sign of the differences; 0 for a text with fewer than two different years. Of a
    sentence with several years the first counts.
    """
    years = [int(found[0]) for sentence in sentences if (found := YEAR.search(sentence))]
    signs = [np.sign(after - before) for before, after in pairwise(years) if after != before]
    return float(np.mean(signs)) if signs else 0.0


known_to_auto(LinkConfig, model=LinkScorer)
