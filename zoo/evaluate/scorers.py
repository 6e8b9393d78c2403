"""Scorers of coherence: trained models, functions, and simple baseline rules by name.

A scorer is an object with `score(texts) -> list of floats`, higher for the more coherent text. A
text is a string or the list of its sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from corpora.errors import ConfigError, InputError, nearest
from corpora.rng import stable_id
from zoo.declared import SCORES, Suite
from zoo.evaluate.scores import PairScores, finite
from zoo.texts import Text, as_sentences

BASELINE = "baseline:"
"""The prefix of a rule's name where a model is asked for, as in `baseline:shorter`."""

RULES = ("random", "longer", "shorter", "tfidf")
"""The rules that are evaluated beside every model."""

OF_MODELS = ("cosine", "perplexity", "conditional", "nsp")
"""The rules that use an encoder or a language model, as in `perplexity:gpt2`."""


@runtime_checkable
class Scorer(Protocol):
    """An object that gives each text a score, higher for the more coherent text."""

    def score(self, texts: Sequence[Text]) -> list[float]: ...


class OfScorers(Suite):
    """The base class of suites that evaluate coherence scorers, objects with `score(texts)`."""

    needs = frozenset({SCORES})

    beside: tuple[str, ...] = ()
    """More rules beside the model, of language models: `perplexity:MODEL`, `conditional:MODEL`,
    `nsp:MODEL`; each MODEL a folder or Hub id."""

    def scorers(self, model: Any, seed: int, *rules: str) -> dict[str, Scorer]:
        """The model under the name "", and the baseline rules under their names in a result.

        The rules are `rules` and those of the option `beside`. Raises `ConfigError` for a model
        without a method `score`.
        """
        if not isinstance(model, Scorer):
            raise self.unfit(model)
        baselines = {rule_label(name): baseline(name, seed) for name in (*rules, *self.beside)}
        return {"": model, **baselines}


# Rules.


@dataclass(frozen=True)
class Scores:
    """Wraps a function of a list of texts, which returns a number for each, as a scorer.

    The function gets a text as one string, or with `sentences` as the list of its sentences. `name`
    is the scorer's name in results, by default the function's name.
    """

    function: Callable[[list[Any]], Sequence[float]]
    name: str = ""
    sentences: bool = False
    model_type: str = "function"

    def __post_init__(self) -> None:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        object.__setattr__(self, "name", self.name or name)

    def score(self, texts: Sequence[Text]) -> list[float]:
        """The function's number for each text, `[texts]`.

        Raises `InputError` if the function gives another number of scores.
        """
        split = [as_sentences(text) for text in texts]
        scores = self.function(split if self.sentences else [" ".join(text) for text in split])
        numbers = np.asarray(scores, np.float64)
        if numbers.shape != (len(texts),):
            raise InputError(
                f"{len(texts)} texts gave an array of shape {numbers.shape}",
                where=self.name,
                hint="the function must return one number a text",
            )
        return numbers.tolist()


def baseline(name: str, seed: int = 0) -> Scorer:
    """Return the scorer of the rule `name`: one of `RULES`, or a rule that uses a model.

    A rule that uses a model is `cosine:ENCODER`, or one of `zoo.evaluate.language_models`, such as
    `perplexity:MODEL`. `seed` is that of the rule `random`. Raises `ConfigError` for another name.
    """
    rule, _, model = name.partition(":")
    if rule == "random":
        # A hash of the text: a random generator would give every test set the same numbers.
        return _rule(
            lambda texts: [stable_id("\n".join([f"{seed}", *t])) / 2**64 for t in texts], rule
        )
    if sign := {"longer": 1.0, "shorter": -1.0}.get(rule):
        return _rule(lambda texts: [sign * sum(map(len, text)) for text in texts], rule)
    if rule == "tfidf":
        return _rule(adjacent_tfidf, rule)
    if rule not in OF_MODELS:
        names = ", ".join([*RULES, *(f"{name}:MODEL" for name in OF_MODELS)])
        hint = f"{nearest(rule, [*RULES, *OF_MODELS])}they are: {names}"
        raise ConfigError(f"no baseline {rule!r}", hint=hint)
    if not model:
        hint = f"give a folder or Hub id: {rule}:PATH_OR_ID"
        raise ConfigError(f"{rule} names no model", hint=hint)
    if rule == "cosine":
        from zoo.evaluate.encoders import load_encoder

        return adjacent_vectors(load_encoder(model).encode, rule_label(name))
    from zoo.evaluate.language_models import CausalScorer, NextSentenceScorer

    if rule == "nsp":
        return NextSentenceScorer(model)
    return CausalScorer(model, by_sentence=rule == "conditional")


def _rule(function: Callable[[list[list[str]]], list[float]], name: str) -> Scores:
    """Make the baseline `name` from a function that scores texts as lists of sentences."""
    return Scores(function, name, sentences=True, model_type="baseline")


def adjacent_tfidf(texts: list[list[str]]) -> list[float]:
    """Score each text by the mean cosine of the TF-IDF vectors of adjacent sentences, `[texts]`.

    The document frequencies are counted over the distinct sentences of all texts.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    def vectors(sentences: list[str]) -> Any:
        if not any(re.search(r"\w", sentence) for sentence in sentences):
            return csr_array((len(sentences), 1))  # without a word every cosine is 0
        # The pattern takes words of one letter too, such as "I" and "a". Rows have length 1.
        return csr_array(TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(sentences))

    return _mean_cosines(texts, vectors)


def adjacent_vectors(encode: Callable[[Sequence[str]], np.ndarray], name: str = "cosine") -> Scores:
    """Return a scorer by the mean cosine of the vectors of adjacent sentences.

    `encode` returns the vectors of a list of sentences, `[sentences, dim]`.
    """

    def vectors(sentences: list[str]) -> np.ndarray:
        encoded = np.asarray(encode(sentences), np.float64)
        return encoded / np.maximum(np.linalg.norm(encoded, axis=1, keepdims=True), 1e-12)

    return _rule(lambda texts: _mean_cosines(texts, vectors), name)


def _mean_cosines(texts: list[list[str]], vectors: Callable[[list[str]], Any]) -> list[float]:
    """The mean cosine of adjacent sentences in each text; 0 for a text of one sentence.

    `vectors(sentences)` gives rows of length 1; it gets each distinct sentence once.
    """
    row: dict[str, int] = {}
    rows_of_texts = [[row.setdefault(sentence, len(row)) for sentence in text] for text in texts]
    encoded = vectors(list(row))
    first = np.array([i for rows in rows_of_texts for i in rows[:-1]], np.int64)
    second = np.array([i for rows in rows_of_texts for i in rows[1:]], np.int64)
    cosines = (encoded[first] * encoded[second]).sum(1) if len(first) else np.zeros(0)
    ends = np.cumsum([0, *(max(len(rows) - 1, 0) for rows in rows_of_texts)])
    parts = [cosines[start:end] for start, end in pairwise(ends.tolist())]
    # With the exact sum of `fsum` a text ties with its sentences in reverse, whatever the rounding.
    return [math.fsum(part) / len(part) if len(part) else 0.0 for part in parts]


def load_scorer(model: str, seed: int = 0) -> Scorer:
    """Load a trained scorer from a folder or Hub id, or a baseline rule: `baseline:NAME`.

    `seed` is that of the rule `random`. Raises `InputError` for a model whose class has no method
    `score`.
    """
    if model.startswith(BASELINE):
        return baseline(model.removeprefix(BASELINE), seed)
    from transformers import AutoModel

    from zoo.evaluate.encoders import class_with
    from zoo.loading import model_type
    from zoo.modeling import best_device

    kind = class_with("score", AutoModel, model)
    if kind is None:
        raise InputError(
            f"holds a model of type {model_type(model)!r}, which gives no score to a text",
            where=model,
            hint="a coherence scorer is needed: train one with the recipes coherence/..., or name "
            "a rule, baseline:NAME",
        )
    scorer: Scorer = kind.from_pretrained(model).to(best_device())
    return scorer


def score_both(
    scorer: Scorer,
    coherent: Sequence[tuple[str, ...]],
    other: Sequence[tuple[str, ...]],
    where: str = "",
    *,
    whole: bool = False,
) -> PairScores:
    """Score the texts `coherent[i]` and `other[i]` of each pair, each a tuple of sentences.

    A scorer with a method `score_cut` cuts the two texts of a pair at the same place, as in its
    training, unless `whole` is true. Other scorers may have a method `as_read(texts)` that returns
    the texts cut as they read them, so that pairs of equal texts are known. Raises `InputError`,
    with `where` as its place, for a score of NaN or infinity.
    """
    score_cut = None if whole else getattr(scorer, "score_cut", None)
    if score_cut is not None:
        scores = PairScores(*score_cut(coherent, other))
    else:
        as_read: Callable[..., Any] = getattr(scorer, "as_read", list)
        same = [a == b for a, b in zip(as_read(coherent), as_read(other), strict=True)]
        first, second = np.split(scores_of(scorer, [*coherent, *other]), 2)
        scores = PairScores(first, second, np.array(same, bool))
    finite(np.stack(scores[:2]), "the model gives scores", where)
    return scores


def scores_of(scorer: Scorer, texts: Sequence[tuple[str, ...]]) -> np.ndarray:
    """The scores of texts, each a tuple of sentences, `[texts]`; equal texts are scored once."""
    distinct = list(dict.fromkeys(texts))
    scores = scorer.score([list(text) for text in distinct]) if distinct else []
    score = dict(zip(distinct, scores, strict=True))
    return np.array([score[text] for text in texts], np.float64)


# What a result says of a scorer.


def rule_label(name: str) -> str:
    """The name of a rule in a result: "perplexity (gpt2)" for `perplexity:path/to/gpt2`."""
    rule, _, model = name.partition(":")
    return f"{rule} ({Path(model).name})" if model else rule


def cut_of(model: Scorer) -> int:
    """The number of texts that the model has cut to its limit of tokens while it scored.

    The coherence scorer cuts the two texts of a pair at one place in the suites `permuted` and
    `pairwise`; elsewhere it reads long texts in windows, and cuts none.
    """
    return int(getattr(getattr(model, "encoder", model), "cut", 0))
