"""Baselines for scorers of coherence: language models that were not trained to score texts.

    perplexity:MODEL    minus the log perplexity of the text (natural log)
    conditional:MODEL   the log-likelihood of each sentence given all that precede it: the mean over
                        its tokens, averaged over the sentences from the second on
    nsp:MODEL           the probability that a sentence is the next one, averaged over neighbours

`MODEL` is a folder or Hub id. The first two take what `AutoModelForCausalLM` loads, the third what
`AutoModelForNextSentencePrediction` loads (BERT). Log-probabilities are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoModelForNextSentencePrediction

from corpora.errors import InputError
from zoo.backbones import is_decoder, max_positions
from zoo.evaluate.encoders import load_frozen
from zoo.modeling import best_device
from zoo.texts import Text, TextEncoder, as_sentences, batches_by_length, check_texts

BATCH_TOKENS = 4096
"""The most tokens of a batch, padding included; a longer window is a batch of its own."""
NEXT = 0
"""The number of the class "is the next sentence" in BERT's head."""


def load(kind: Any, name: str) -> tuple[Any, Any, int]:
    """Load a model of the Auto class `kind`, its tokenizer, and its limit of tokens (0: none).

    `name` is a folder or Hub id. Raises `InputError` as `load_frozen` does.
    """
    model, tokenizer, _ = load_frozen(kind, name)
    limits = (max_positions(model.config) or 0, tokenizer.model_max_length)
    # Tokenizers without a limit have a huge number.
    max_tokens = min((limit for limit in limits if 0 < limit < 10**9), default=0)
    return model.to(best_device()), tokenizer, max_tokens


def windows(tokens: int, context: int) -> list[tuple[int, int, int]]:
    """Divide a text of `tokens` ids into windows `(start, scored, end)` of at most `context` ids.

    A window reads the ids from `start` and scores those from `scored` to `end - 1`. Each id but the
    first is scored once. Windows overlap by half a context, so that an id is predicted from all ids
    before it, or from at least `context // 2` of them.
    """
    spans = [(0, 1, min(tokens, context))]
    while (end := spans[-1][2]) < tokens:
        start = end - context // 2
        spans.append((start, end, min(tokens, start + context)))
    return spans


class CausalScorer:
    """Scores a text by the mean log-probability of its tokens under a causal language model.

    The mean is over all tokens (minus the log perplexity), or with `by_sentence` over the means of
    the sentences from the second on. A text starts with the tokenizer's own start, or its
    beginning- or end-of-text token (as in lm-evaluation-harness), so that the first word counts.
    """

    model_type = "baseline"

    def __init__(self, name: str, *, by_sentence: bool) -> None:
        """Load the model of a folder or Hub id; raise `InputError` if it is no causal model."""
        self.by_sentence = by_sentence
        self.name = f"{'conditional' if by_sentence else 'perplexity'} ({Path(name).name})"
        self.model, tokenizer, max_tokens = load(AutoModelForCausalLM, name)
        if not is_decoder(self.model.config):  # it would predict a word from the word itself
            raise InputError(
                f"{self.model.config.model_type} sees the words after a word: no causal model",
                where=name,
                hint="give a language model such as GPT-2; a BERT goes with nsp:MODEL",
            )
        self.context = max_tokens or BATCH_TOKENS
        self.texts = TextEncoder(tokenizer, self.context)
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        start = next((token for token in starts if token is not None), None)
        self.start = self.texts.start if len(self.texts.start) or start is None else [start]
        if not len(self.start):
            raise InputError("its tokenizer has no token to start a text with", where=name)

    def score(self, texts: Sequence[Text]) -> list[float]:
        """Score each text, `[texts]`, in nats a token; a single sentence has its tokens' mean."""
        check_texts(texts)
        ids = [self.texts.sentences(as_sentences(text)) for text in texts]
        whole = [np.concatenate([self.start, *sentences]) for sentences in ids]
        scores = []
        for sentences, values in zip(ids, self.log_probabilities(whole), strict=True):
            tokens = values[len(self.start) - 1 :].astype(np.float64)
            parts = [tokens]
            if self.by_sentence:
                ends = np.cumsum([len(sentence) for sentence in sentences])
                parts = [part for part in np.split(tokens, ends[:-1]) if len(part)]
            scores.append(float(np.mean([part.mean() for part in parts[1:] or parts])))
        return scores

    @torch.inference_mode()
    def log_probabilities(self, texts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The log-probability of each id but the first of `texts`, `[tokens - 1]` a text."""
        values = [np.zeros(len(ids) - 1, np.float32) for ids in texts]
        parts = [
            (text, *window)
            for text, ids in enumerate(texts)
            for window in windows(len(ids), self.context)
        ]
        lengths = [end - start for _, start, _, end in parts]
        for numbers in batches_by_length(lengths, BATCH_TOKENS):
            batch = [parts[number] for number in numbers]
            rows = [
                torch.from_numpy(texts[text][start:end]).long().to(self.model.device)
                for text, start, _, end in batch
            ]
            mask = pad_sequence([torch.ones_like(ids) for ids in rows], batch_first=True)
            ids = pad_sequence(rows, batch_first=True)
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            for row, (text, start, scored, end) in enumerate(batch):
                predicted = logits[row, scored - 1 - start : end - 1 - start].float()
                gold = ids[row, scored - start : end - start]
                loss = cross_entropy(predicted, gold, reduction="none")
                values[text][scored - 1 : end - 1] = -loss.cpu().numpy()
        return values


class NextSentenceScorer:
    """Scores a text by the mean probability that each sentence follows the one before it.

    BERT's next-sentence head gives the probabilities. A text of one sentence has the score 0. `cut`
    counts the distinct pairs longer than the model takes; the end of their longer sentence is cut.
    """

    model_type = "baseline"

    def __init__(self, name: str) -> None:
        self.name = f"nsp ({Path(name).name})"
        self.model, self.tokenizer, self.max_tokens = load(AutoModelForNextSentencePrediction, name)
        self.cut = 0

    def score(self, texts: Sequence[Text]) -> list[float]:
        """The score of each text, `[texts]`, from 0 to 1."""
        neighbours = [list(pairwise(as_sentences(text))) for text in texts]
        distinct = list(dict.fromkeys(pair for pairs in neighbours for pair in pairs))
        probability = dict(zip(distinct, self.probabilities(distinct), strict=True))
        return [float(np.mean([probability[p] for p in pairs] or [0.0])) for pairs in neighbours]

    @torch.inference_mode()
    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability that the second sentence of each pair follows the first, `[pairs]`."""
        if not pairs:
            return []
        first, second = map(list, zip(*pairs, strict=True))
        encoded = self.tokenizer(first, second, verbose=False)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        rows = [{name: encoded[name][row] for name in encoded} for row in range(len(pairs))]
        limit = {"truncation": "longest_first", "max_length": self.max_tokens}
        for row, length in enumerate(lengths):
            if 0 < self.max_tokens < length:
                self.cut += 1
                rows[row] = dict(self.tokenizer(*pairs[row], **limit))
        values = np.zeros(len(pairs))
        for batch in batches_by_length(lengths, BATCH_TOKENS):
            padded = self.tokenizer.pad([rows[row] for row in batch], return_tensors="pt")
            inputs = padded.to(self.model.device)
            values[batch] = self.model(**inputs).logits.double().softmax(-1)[:, NEXT].cpu().numpy()
        return values.tolist()
