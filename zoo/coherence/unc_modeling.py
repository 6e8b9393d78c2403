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
    """Sizes (`hidden_size` is one direction's of the BiLSTM), and the dataset's `quotes`."""

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
    """`scores [batch, texts]`, their parts and, in training, `language_loss`.

    `local [batch, texts, positions]` are the scores of neighbours, `counted` marks existing ones: a
    text's score is their mean.
    """

    scores: Tensor | None = None
    local: Tensor | None = None
    counted: Tensor | None = None
    language_loss: Tensor | None = None


class LightweightConv(nn.Module):
    """A depthwise convolution whose kernels are softmax-normalised and shared by the channels of
    a head (Wu et al. 2019), between a gated and a linear projection."""

    def __init__(self, width: int, kernel: int, heads: int) -> None:
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
        """`states [texts, sentences, width]` with `mask [texts, sentences]`: the same shape."""
        gated = glu(self.gate(states), dim=-1) * mask.unsqueeze(-1)
        _, sentences, width = gated.shape
        kernels = self.weight.softmax(-1).repeat_interleave(width // self.heads, 0)
        convolved = nn.functional.conv1d(
            gated.transpose(1, 2), kernels.unsqueeze(1), padding=self.kernel // 2, groups=width
        )
        return self.out(convolved.transpose(1, 2)[:, :sentences]) * mask.unsqueeze(-1)


class ConvolutionBlock(nn.Module):
    """`x + conv(conv(x))`."""

    def __init__(self, width: int, kernel: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = (LightweightConv(width, kernel, heads) for _ in range(2))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """As `LightweightConv`."""
        return states + self.second(self.first(states, mask), mask)


class UncModel(ZooModel):
    """Scores texts; equal sentences are encoded once."""

    config_class = UncConfig
    main_input_name = "input_ids"

    def __init__(self, config: UncConfig, tokenizer: PreTrainedTokenizerBase | None = None) -> None:
        """The default `tokenizer` is the one beside the weights, loaded for scoring."""
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
        """Words `[sentences, words]`: their states, and `[sentences, 2 * hidden]` sentence
        vectors, the last states of both directions.

        `packed` is an array of the sentences' lengths: without it a GPU is waited for.
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
        """The forward states predict the next word, the backward states the one before: the mean
        cross-entropy of both."""
        forward, backward = states.chunk(2, dim=-1)
        both = (mask[:, 1:] * mask[:, :-1]).bool()
        if not both.any():
            return states.sum() * 0.0
        following = cross_entropy(self.language(forward[:, :-1][both]), input_ids[:, 1:][both])
        preceding = cross_entropy(self.language(backward[:, 1:][both]), input_ids[:, :-1][both])
        return (following + preceding) / 2

    def score_vectors(self, vectors: Tensor, texts: Tensor) -> UncOutput:
        """Scores of `texts [..., sentences]`: row numbers of `vectors`, -1 after the end.

        A text's score is the mean over its neighbouring sentences; one sentence alone has the
        bilinear layers' part set to zero.
        """
        leading, texts = texts.shape[:-1], texts.reshape(-1, texts.size(-1))
        if texts.size(1) == 1:
            texts = nn.functional.pad(texts, (0, 1), value=-1)
        mask = (texts >= 0).to(vectors.dtype)
        states = vectors[texts.clamp(min=0)] * mask.unsqueeze(-1)
        read = states
        for block in self.convolutions:
            read = block(read, mask)
        pooled = read.sum(1) / mask.sum(1, keepdim=True)
        between = mask[:, 1:]
        alone = (between.sum(1, keepdim=True) == 0).to(mask.dtype)
        one, two = states[:, :-1].contiguous(), states[:, 1:].contiguous()
        relations = torch.cat([self.following(one, two), self.preceding(two, one)], dim=-1)
        relations = relations * between.unsqueeze(-1)
        counted = torch.cat([between[:, :1] + alone, between[:, 1:]], dim=1)
        everywhere = pooled.unsqueeze(1).expand(-1, relations.size(1), -1)
        local = self.score_head(torch.cat([relations, everywhere], dim=-1)).squeeze(-1)
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
        """The words of each text as the model reads them, by sentence: equal texts tie."""
        split = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        known = list(dict.fromkeys(sentence for text in split for sentence in text))
        ids = dict(zip(known, word_ids(self.tokenizer, known, self.config.max_words), strict=True))
        return [[ids[sentence] for sentence in text] for text in split]

    @torch.inference_mode()
    def score(self, texts: Sequence[Text]) -> list[float]:
        """One score for each text, the higher the more coherent; equal sentences are encoded once.

        `cut` counts the texts with a sentence cut at `max_words`.
        """
        if not texts:
            return []
        self.eval()
        rows: dict[str, int] = {}
        sentences = [as_sentences(text, self.config.quotes) or [""] for text in texts]
        numbered = [[rows.setdefault(s, len(rows)) for s in text] for text in sentences]
        most = self.config.max_words
        ids = word_ids(self.tokenizer, list(rows), most + 1)
        long = {row for row, words in enumerate(ids) if len(words) > most}
        self.cut += sum(not long.isdisjoint(text) for text in numbered)
        parts = []
        for start in range(0, len(ids), CHUNK):
            batch = [words[:most] for words in ids[start : start + CHUNK]]
            words, mask = pad(batch, self.config.pad_token_id or 0)
            parts.append(self.encode(words.to(self.device), mask.to(self.device))[1])
        vectors = torch.cat(parts)
        order = np.argsort([len(text) for text in numbered], kind="stable")
        scores = np.zeros(len(texts))
        for start in range(0, len(order), CHUNK):
            part = order[start : start + CHUNK]
            padded = pad_rows([numbered[i] for i in part]).to(self.device)
            found = self.score_vectors(vectors, padded).scores
            assert found is not None
            scores[part] = found.cpu()
        return scores.tolist()


def word_ids(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], most: int
) -> list[list[int]]:
    """The first `most` words of each sentence as ids; an empty one is one unknown word."""
    found = tokenizer(list(sentences), add_special_tokens=False, verbose=False)["input_ids"]
    return [ids[:most] or [tokenizer.unk_token_id] for ids in found]


def pad_rows(texts: Sequence[Sequence[int]]) -> Tensor:
    """Sentence numbers `[texts, sentences]`, -1 after a text's last."""
    return pad_sequence([torch.tensor(text) for text in texts], batch_first=True, padding_value=-1)


known_to_auto(UncConfig, model=UncModel)
