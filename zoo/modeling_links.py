"""The link scorer (`zoo.coherence.links`) in files that need only torch and transformers.

The scorer's folder has copies of this file and of those that it imports:

    AutoModel.from_pretrained(FOLDER, trust_remote_code=True).score(["A text.", "Another one."])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer, PretrainedConfig
from transformers.modeling_outputs import SequenceClassifierOutput

from .modeling_discorpora import ONE_SCORE, StoredModel, backbone_of, pooled
from .windows import window_bounds

BATCH_TOKENS = 2048
"""Tokens that are encoded at once."""


def changeable_weights(backbone: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield name and weight of each parameter that `LinkScorer.changes` may change. These are all
    parameters but the pooler's. Names have "-" in place of "."."""
    for name, weight in backbone.named_parameters():
        if not name.startswith("pooler."):
            yield name.replace(".", "-"), weight


def change_shapes(
    shapes: Mapping[str, tuple[int, ...]], rank: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and shape of each tensor that stores changes to a model's weights.

    `shapes` has the shape of each weight by its name. The change of a matrix whose sides are both
    longer than `rank` is stored as two factors, `NAME-up` and `NAME-down`, any other one as it is.
    """
    for name, shape in shapes.items():
        if len(shape) == 2 and min(shape) > rank:
            yield f"{name}-up", (shape[0], rank)
            yield f"{name}-down", (rank, shape[1])
        else:
            yield name, shape


def weight_change(changes: Mapping[str, Tensor], name: str) -> Tensor:
    """Return the tensor to add to the weight `name`, from `changes`: one tensor or two factors."""
    if name in changes:
        return changes[name]
    return changes[f"{name}-up"] @ changes[f"{name}-down"]


def mean_cosines(sentences: Tensor, count: Tensor, reaches: int) -> Tensor:
    """Return mean cosines of each text, `[texts, reaches + 1]`: of sentences 1, 2, ..., `reaches`
    apart, and of all pairs.

    `sentences [texts, most sentences, size]` are vectors of length 1, and zeros for padding;
    `count [texts]` is the number of sentences.
    """
    means = []
    for reach in range(1, reaches + 1):
        cosines = (sentences[:, :-reach] * sentences[:, reach:]).sum((1, 2))
        means.append(cosines / (count - reach).clamp(min=1))
    # The square of a sum of vectors holds the products of all pairs, and of each with itself.
    total = sentences.sum(1)
    pairs = (total * total).sum(-1) - (sentences * sentences).sum((1, 2))
    return torch.stack([*means, pairs / (count * (count - 1)).clamp(min=1)], 1)


class LinkConfig(PretrainedConfig):
    model_type = "discorpora-link-scorer"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, **ONE_SCORE})


class LinkScorer(StoredModel):
    """Scores texts by the cosines of their sentences' vectors, ascending years, and a model of
    order, whose weights are those of the backbone and `changes`."""

    config_class: type[PretrainedConfig] = LinkConfig
    base_model_prefix = ""
    main_input_name = "input_ids"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.backbone = backbone_of(config)
        if rank := config.order_rank:
            shapes = {name: tuple(part.shape) for name, part in changeable_weights(self.backbone)}
            self.changes = nn.ParameterDict(
                {key: torch.empty(shape) for key, shape in change_shapes(shapes, rank)}
            )
            self.order_head = nn.Linear(self.backbone.config.hidden_size, 1)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        years: Tensor,
        **kwargs: object,
    ) -> SequenceClassifierOutput:
        """Return `logits [texts, 1]` for the tensors that `SentenceTokenizer` returns."""
        # The sentences of each text, with their special tokens
        texts = []
        for ids, mask, types in zip(input_ids, attention_mask, token_type_ids, strict=True):
            size = int(mask.sum())
            starts = types[:size].diff().nonzero().flatten() + 1
            texts.append(ids[:size].tensor_split(starts.tolist()))
        counts = [len(sentences) for sentences in texts]
        # The cosines
        limit = self.config.max_tokens
        weights: dict[str, Tensor] = dict(self.backbone.named_parameters())
        cut = [
            torch.cat([sentence[: limit - 1], sentence[-1:]]) if len(sentence) > limit else sentence
            for sentences in texts
            for sentence in sentences
        ]
        vectors = normalize(self.vectors(cut, weights), dim=-1).split(counts)
        numbers = torch.tensor(counts, device=self.device)
        padded = pad_sequence(list(vectors), batch_first=True)
        config = self.config
        cosines = mean_cosines(padded, numbers, len(config.reaches))
        scores = cosines @ cosines.new_tensor([*config.reaches, config.others])
        scores = scores + config.years * years.flatten()
        # The order: the mean over the windows of a text
        if self.config.order_rank:
            windows = [self.windows(sentences) for sentences in texts]
            changes = dict(self.changes.items())
            for name in weights:
                if not name.startswith("pooler."):
                    change = weight_change(changes, name.replace(".", "-"))
                    weights[name] = weights[name] + change
            states = self.vectors([window for text in windows for window in text], weights)
            order = self.order_head(states).squeeze(-1).split([len(text) for text in windows])
            scores = scores + self.config.order * torch.stack([part.mean() for part in order])
        return SequenceClassifierOutput(logits=scores.unsqueeze(-1))

    def windows(self, sentences: Sequence[Tensor]) -> list[Tensor]:
        """Return the windows of a text of whole sentences, as ids with special tokens.

        A sentence that is longer than a window is divided into pieces.
        """
        budget = self.config.order_tokens - 2
        first, last = sentences[0][:1], sentences[0][-1:]
        pieces = [piece for sentence in sentences for piece in sentence[1:-1].split(budget)]
        bounds = window_bounds([len(piece) for piece in pieces], budget)
        return [torch.cat([first, *pieces[start:end], last]) for start, end in bounds]

    def vectors(self, texts: Sequence[Tensor], weights: dict[str, Tensor]) -> Tensor:
        """Return the means of the tokens' states, `[texts, size]`, for texts as ids.

        `weights` are the backbone's by name. A batch has texts of similar length.
        """
        order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
        parts, first = [], 0
        while first < len(order):
            size = max(1, BATCH_TOKENS // len(texts[order[first]]))
            batch = [texts[number] for number in order[first : first + size]]
            ids = pad_sequence(batch, True, float(self.backbone.config.pad_token_id or 0))
            mask = pad_sequence([torch.ones_like(text) for text in batch], True)
            inputs = {"input_ids": ids, "attention_mask": mask}
            states = functional_call(self.backbone, weights, kwargs=inputs).last_hidden_state
            parts.append(pooled(states, mask, "mean"))
            first += size
        return torch.cat(parts)[torch.tensor(order, device=self.device).argsort()]

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the folder or Hub id that the model was loaded from."""
        return AutoTokenizer.from_pretrained(self.config._name_or_path, trust_remote_code=True)

    @torch.inference_mode()
    def score(self, texts: Sequence[str | Sequence[str]], batch_size: int = 32) -> list[float]:
        """Return a score for each text, the higher the more coherent.

        A text is a string, or a list of its sentences. Raises `ValueError` for a text without
        words.
        """
        self.eval()
        scores: list[float] = []
        for first in range(0, len(texts), batch_size):
            batch = texts[first : first + batch_size]
            for number, text in enumerate(batch, first + 1):
                if not "".join(text).strip():
                    raise ValueError(f"text {number} holds no text")
            sentences = [self.tokenizer.sentences(text) for text in batch]
            inputs = self.tokenizer.encode_sentences(sentences).to(self.device)
            scores += self(**inputs).logits.flatten().tolist()
        return scores
