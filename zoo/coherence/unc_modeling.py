"""The unified coherence model (Moon, Mohiuddin, Joty and Xu 2019), the earlier state of the art.

Four parts: a BiLSTM sentence encoder trained with a language-model loss, bilinear layers between
adjacent sentences in both directions, six lightweight convolutions over the document in three
residual blocks, and a linear layer that scores each pair of neighbours from these and the
convolutions' document vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, glu
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from transformers import PretrainedConfig, PreTrainedTokenizerBase
from transformers.utils.generic import ModelOutput

from corpora.errors import ConfigError
from corpora.prose import Quotes
from zoo.coherence.data import pad
from zoo.loading import load_tokenizer
from zoo.modeling import ZooModel, known_to_auto
from zoo.texts import Text, as_sentences

BLOCKS = 3
"""Residual blocks of two convolutions each."""
CHUNK = 512
"""Sentences encoded at a time while scoring."""


@strict
class UncConfig(PretrainedConfig):
    """The sizes of the model, and the setting `quotes` of the dataset that it was trained on.

    `hidden_size` is that of one direction of the BiLSTM, `bilinear_size` that of the comparison of
    two sentences; `kernel_size` and `kernel_heads` are those of the convolutions. A sentence is cut
    after `max_words` words.
    """

    model_type = "discorpora-coherence-unc"

    vocab_size: int = 30000
    embedding_size: int = 300
    hidden_size: int = 256
    bilinear_size: int = 32
    kernel_size: int = 5
    kernel_heads: int = 8
    max_words: int = 64
    pad_token_id: int | None = 0
    quotes: Quotes = "keep"


@dataclass
class UncOutput(ModelOutput):
    """The output: `scores [batch, texts]`, their parts and, in training, `language_loss`.

    `local [batch, texts, positions]` are scores of pairs of neighbouring sentences; `counted` is 1
    where there is a pair, 0 at padding. A text's score is the mean of its counted local scores.
    """

    scores: Tensor | None = None
    local: Tensor | None = None
    counted: Tensor | None = None
    language_loss: Tensor | None = None


class LightweightConv(nn.Module):
    """A depthwise convolution whose kernels are softmax-normalised and shared by the channels of
    a head (Wu et al. 2019), between a gated and a linear projection."""

    def __init__(self, width: int, kernel: int, heads: int) -> None:
        """Make a convolution of `width` channels and `heads` kernels of `kernel` positions each."""
        super().__init__()
        if width % heads:
            raise ConfigError(
                f"{width} channels cannot be divided into {heads} heads",
                where="kernel_heads",
                hint="give a number that divides 2 * hidden_size",
            )
        self.heads, self.kernel = heads, kernel
        self.gate, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.weight = nn.Parameter(torch.empty(heads, kernel))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Convolve `states [texts, sentences, width]`; `mask [texts, sentences]`. Same shape."""
        gated = glu(self.gate(states), dim=-1) * mask.unsqueeze(-1)
        _, sentences, width = gated.shape
        kernels = self.weight.softmax(-1).repeat_interleave(width // self.heads, 0)
        convolved = nn.functional.conv1d(
            gated.transpose(1, 2), kernels.unsqueeze(1), padding=self.kernel // 2, groups=width
        )
        return self.out(convolved.transpose(1, 2)[:, :sentences]) * mask.unsqueeze(-1)


class ConvolutionBlock(nn.Module):
    """A residual block of two convolutions: `x + conv(conv(x))`.

    For `width`, `kernel` and `heads` see `LightweightConv`.
    """

    def __init__(self, width: int, kernel: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = (LightweightConv(width, kernel, heads) for _ in range(2))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Convolve `states [texts, sentences, width]`; returns the same shape."""
        return states + self.second(self.first(states, mask), mask)


class UncModel(ZooModel):
    """Scores texts from the vectors of their sentences; equal sentences are encoded once."""

    config_class = UncConfig
    main_input_name = "input_ids"

    def __init__(self, config: UncConfig, tokenizer: PreTrainedTokenizerBase | None = None) -> None:
        """Without a `tokenizer`, that beside the weights is loaded when texts are scored."""
        super().__init__(config)
        width = 2 * config.hidden_size
        self.embeddings = nn.Embedding(
            config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id
        )
        self.lstm = nn.LSTM(
            config.embedding_size, config.hidden_size, batch_first=True, bidirectional=True
        )
        self.language = nn.Linear(config.hidden_size, config.vocab_size)
        self.following = nn.Bilinear(width, width, config.bilinear_size)
        self.preceding = nn.Bilinear(width, width, config.bilinear_size)
        self.convolutions = nn.ModuleList(
            ConvolutionBlock(width, config.kernel_size, config.kernel_heads) for _ in range(BLOCKS)
        )
        self.score_head = nn.Linear(2 * config.bilinear_size + width, 1)
        if tokenizer is not None:
            self.tokenizer = tokenizer
        self.cut = 0
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation of the modules."""

    def encode(
        self, input_ids: Tensor, attention_mask: Tensor, packed: Any = None
    ) -> tuple[Tensor, Tensor]:
        """Return the states of words, and the sentences' vectors `[sentences, 2 * hidden]`.

        A vector is the last states of both directions. `packed` is an array of the sentences'
        lengths: without it the process waits for the GPU to count them.
        """
        lengths = attention_mask.sum(1) if packed is None else torch.tensor(packed)
        # On a GPU in float32, see `zoo.modeling_discorpora.run_packed`.
        with torch.autocast("cuda", enabled=False):
            packed = pack_padded_sequence(
                self.embeddings(input_ids), lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            output, (last, _) = self.lstm(packed)
        states, _ = pad_packed_sequence(output, batch_first=True, total_length=input_ids.size(1))
        return states, torch.cat([last[0], last[1]], dim=-1)

    def language_loss(self, states: Tensor, input_ids: Tensor, mask: Tensor) -> Tensor:
        """Return the mean cross-entropy of two predictions, in nats per word.

        The forward states predict the next word, the backward states the word before.
        """
        forward, backward = states.chunk(2, dim=-1)
        has_neighbour = (mask[:, 1:] * mask[:, :-1]).bool()
        if not has_neighbour.any():
            return states.sum() * 0.0  # a zero with a gradient
        forward, backward = forward[:, :-1][has_neighbour], backward[:, 1:][has_neighbour]
        following = cross_entropy(self.language(forward), input_ids[:, 1:][has_neighbour])
        preceding = cross_entropy(self.language(backward), input_ids[:, :-1][has_neighbour])
        return (following + preceding) / 2

    def score_vectors(self, vectors: Tensor, texts: Tensor) -> UncOutput:
        """Score `texts [..., sentences]`: row numbers of `vectors [n, width]`, -1 after the end.

        A text's score is the mean over its pairs of neighbouring sentences. A text of one sentence
        has one pair, for which the output of the bilinear layers is zero.
        """
        leading, texts = texts.shape[:-1], texts.reshape(-1, texts.size(-1))
        if texts.size(1) == 1:
            texts = nn.functional.pad(texts, (0, 1), value=-1)
        mask = (texts >= 0).to(vectors.dtype)
        states = vectors[texts.clamp(min=0)] * mask.unsqueeze(-1)
        convolved = states
        for block in self.convolutions:
            convolved = block(convolved, mask)
        document = convolved.sum(1) / mask.sum(1, keepdim=True)
        is_pair = mask[:, 1:]
        alone = (is_pair.sum(1, keepdim=True) == 0).to(mask.dtype)
        left, right = states[:, :-1].contiguous(), states[:, 1:].contiguous()
        relations = torch.cat([self.following(left, right), self.preceding(right, left)], dim=-1)
        relations = relations * is_pair.unsqueeze(-1)
        counted = torch.cat([is_pair[:, :1] + alone, is_pair[:, 1:]], dim=1)
        documents = document.unsqueeze(1).expand(-1, relations.size(1), -1)
        local = self.score_head(torch.cat([relations, documents], dim=-1)).squeeze(-1)
        scores = (local * counted).sum(1) / counted.sum(1)
        return UncOutput(
            scores.reshape(leading), *(part.reshape(*leading, -1) for part in (local, counted))
        )

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, texts: Tensor, **kwargs: object
    ) -> UncOutput:
        """Score `texts [batch, 1 + negatives, sentences]` over the sentences `input_ids`."""
        states, vectors = self.encode(input_ids, attention_mask, kwargs.get("packed"))
        output = self.score_vectors(vectors, texts)
        if self.training:
            output.language_loss = self.language_loss(states, input_ids, attention_mask)
        return output

    @cached_property
    def tokenizer(self) -> Any:
        return load_tokenizer(self.config._name_or_path, self.config)

    def as_read(self, texts: Sequence[Text]) -> list[list[list[int]]]:
        """Return for each text the word ids of its sentences, as the model reads them. Texts with
        equal ids have equal scores."""
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        distinct = list(dict.fromkeys(sentence for text in sentences for sentence in text))
        ids = word_ids(self.tokenizer, distinct, self.config.max_words)
        ids_of = dict(zip(distinct, ids, strict=True))
        return [[ids_of[sentence] for sentence in text] for text in sentences]

    @torch.inference_mode()
    def score(self, texts: Sequence[Text]) -> list[float]:
        """Return a score for each text, the higher the more coherent.

        `cut` counts the texts with a sentence cut at `max_words`.
        """
        if not texts:
            return []
        self.eval()
        # Encode each distinct sentence once.
        rows: dict[str, int] = {}
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        numbered = [[rows.setdefault(s, len(rows)) for s in text] for text in sentences]
        limit = self.config.max_words
        ids = word_ids(self.tokenizer, list(rows), limit + 1)
        long_sentences = {row for row, words in enumerate(ids) if len(words) > limit}
        self.cut += sum(not long_sentences.isdisjoint(text) for text in numbered)
        parts = []
        for start in range(0, len(ids), CHUNK):
            batch = [words[:limit] for words in ids[start : start + CHUNK]]
            words, mask = pad(batch, self.config.pad_token_id or 0)
            parts.append(self.encode(words.to(self.device), mask.to(self.device))[1])
        vectors = torch.cat(parts)
        # Score texts in batches of similar length.
        order = np.argsort([len(text) for text in numbered], kind="stable")
        scores = np.zeros(len(texts))
        for start in range(0, len(order), CHUNK):
            batch_rows = order[start : start + CHUNK]
            padded = pad_rows([numbered[i] for i in batch_rows]).to(self.device)
            batch_scores = self.score_vectors(vectors, padded).scores
            assert batch_scores is not None
            scores[batch_rows] = batch_scores.cpu()
        return scores.tolist()


def word_ids(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], limit: int
) -> list[list[int]]:
    """Return the ids of the first `limit` words of each sentence; without words, the unknown
    word's id."""
    ids = tokenizer(list(sentences), add_special_tokens=False, verbose=False)["input_ids"]
    return [sentence[:limit] or [tokenizer.unk_token_id] for sentence in ids]


def pad_rows(texts: Sequence[Sequence[int]]) -> Tensor:
    """Return lists of sentence numbers as a tensor `[texts, sentences]`, padded with -1."""
    return pad_sequence([torch.tensor(text) for text in texts], batch_first=True, padding_value=-1)


known_to_auto(UncConfig, model=UncModel)
