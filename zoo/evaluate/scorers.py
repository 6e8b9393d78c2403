"""What the evaluations of coherence score with: a trained model, or a trivial rule by name.

A scorer is anything with `score(texts) -> list of floats`, higher for the more coherent text. A
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
"""`baseline:shorter` names a rule where a model is asked for."""

RULES = ("random", "longer", "shorter", "tfidf")
"""Those that stand beside every model."""

OF_MODELS = ("cosine", "perplexity", "conditional", "nsp")
"""Rules of an encoder or a language model: `perplexity:gpt2` (`zoo.evaluate.language_models`)."""


@runtime_checkable
class Scorer(Protocol):
    """Gives one score a text, higher for the more coherent one."""

    def score(self, texts: Sequence[Text]) -> list[float]: ...


class OfScorers(Suite):
    """What the suites of coherence scorers share: their model is anything with `score(texts)`."""

    needs = frozenset({SCORES})

    beside: tuple[str, ...] = ()
    """More rules beside the model, of language models: `perplexity:MODEL`, `conditional:MODEL`,
    `nsp:MODEL`; each MODEL a folder or Hub id."""

    def scorers(self, model: Any, seed: int, *rules: str) -> dict[str, Scorer]:
        """The model, which is called "", and the rules beside it by what a result calls them.

        Raises `ConfigError` for a model in hand without `score`.
        """
        if not isinstance(model, Scorer):
            raise self.unfit(model)
        beside = {shown(name): baseline(name, seed) for name in (*rules, *self.beside)}
        return {"": model, **beside}


# Rules.


@dataclass(frozen=True)
class Scores:
    """A function of a list of texts that returns a number each, as a model for the suites.

    It gets each text as one string, or with `sentences` as the list of its sentences. `name` is
    what results call it, by default the function's.
    """

    function: Callable[[list[Any]], Sequence[float]]
    name: str = ""
    sentences: bool = False
    model_type: str = "function"

    def __post_init__(self) -> None:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        object.__setattr__(self, "name", self.name or name)

    def score(self, texts: Sequence[Text]) -> list[float]:
        """`[texts]`. Raises `InputError` if the function gives another number of scores."""
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
    """The rule of that name: `random`, `longer`, `shorter`, `tfidf`, or a model's.

    Those of models are `cosine:ENCODER` and those of `zoo.evaluate.language_models`.
    Raises `ConfigError` for another name.
    """
    rule, _, model = name.partition(":")
    if rule == "random":
        # By a hash of the text: draws by place would be the same in every test set.
        return _rule(
            lambda texts: [stable_id("\n".join([f"{seed}", *t])) / 2**64 for t in texts], rule
        )
    if sign := {"longer": 1.0, "shorter": -1.0}.get(rule):
        return _rule(lambda texts: [sign * sum(map(len, text)) for text in texts], rule)
    if rule == "tfidf":
        return _rule(adjacent_tfidf, rule)
    if rule not in OF_MODELS:
        they = ", ".join([*RULES, *(f"{name}:MODEL" for name in OF_MODELS)])
        hint = f"{nearest(rule, [*RULES, *OF_MODELS])}they are: {they}"
        raise ConfigError(f"no baseline {rule!r}", hint=hint)
    if not model:
        hint = f"give a folder or Hub id: {rule}:PATH_OR_ID"
        raise ConfigError(f"{rule} names no model", hint=hint)
    if rule == "cosine":
        from zoo.evaluate.encoders import load_encoder

        return adjacent_vectors(load_encoder(model).encode, shown(name))
    from zoo.evaluate.language_models import CausalScorer, NextSentenceScorer

    if rule == "nsp":
        return NextSentenceScorer(model)
    return CausalScorer(model, by_sentence=rule == "conditional")


def _rule(function: Callable[[list[list[str]]], list[float]], name: str) -> Scores:
    return Scores(function, name, sentences=True, model_type="baseline")


def adjacent_tfidf(texts: list[list[str]]) -> list[float]:
    """The mean cosine of adjacent sentences' TF-IDF vectors.

    The document frequencies are those of the distinct sentences that it is given.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    def vectors(sentences: list[str]) -> Any:
        if not any(re.search(r"\w", sentence) for sentence in sentences):
            return csr_array((len(sentences), 1))  # not one word: nothing is alike
        # Words of one letter count too: "I" and "a" are words. Rows have length 1.
        return csr_array(TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(sentences))

    return _adjacent(texts, vectors)


def adjacent_vectors(encode: Callable[[Sequence[str]], np.ndarray], name: str = "cosine") -> Scores:
    """The mean cosine of adjacent sentences' vectors, `encode(sentences) -> [sentences, dim]`."""

    def vectors(sentences: list[str]) -> np.ndarray:
        encoded = np.asarray(encode(sentences), np.float64)
        return encoded / np.maximum(np.linalg.norm(encoded, axis=1, keepdims=True), 1e-12)

    return _rule(lambda texts: _adjacent(texts, vectors), name)


def _adjacent(texts: list[list[str]], vectors: Callable[[list[str]], Any]) -> list[float]:
    """The mean cosine of each text's neighbours; 0 for a text of one sentence.

    `vectors` makes rows of length 1; each distinct sentence is encoded once.
    """
    rows: dict[str, int] = {}
    numbered = [[rows.setdefault(sentence, len(rows)) for sentence in text] for text in texts]
    encoded = vectors(list(rows))
    first = np.array([row for text in numbered for row in text[:-1]], np.int64)
    second = np.array([row for text in numbered for row in text[1:]], np.int64)
    cosines = (encoded[first] * encoded[second]).sum(1) if len(first) else np.zeros(0)
    ends = np.cumsum([0, *(max(len(text) - 1, 0) for text in numbered)])
    parts = [cosines[start:end] for start, end in pairwise(ends.tolist())]
    # An exact sum: a text and the same backwards tie, whatever the rounding.
    return [math.fsum(part) / len(part) if len(part) else 0.0 for part in parts]


def load_scorer(model: str, seed: int = 0) -> Scorer:
    """A trained scorer from a folder or a Hub id, or a rule: `baseline:NAME`.

    The rules are those of `baseline`. A model type is found through the Auto classes, with which
    its family registers it; its class must have `score`. Raises `InputError` for a model that has
    none.
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
    """The scores of pairs of texts, each the tuple of its sentences.

    A scorer that has `score_cut` cuts the two texts of a pair alike, as in its training, unless
    they are to be read `whole`. One that has `as_read` says which texts it reads as one. Raises
    `InputError` for a score of NaN.
    """
    cut = None if whole else getattr(scorer, "score_cut", None)
    if cut is not None:
        scores = PairScores(*cut(coherent, other))
    else:
        read: Callable[..., Any] = getattr(scorer, "as_read", list)
        same = [one == two for one, two in zip(read(coherent), read(other), strict=True)]
        first, second = np.split(scores_of(scorer, [*coherent, *other]), 2)
        scores = PairScores(first, second, np.array(same, bool))
    finite(np.stack(scores[:2]), "the model gives scores", where)
    return scores


def scores_of(scorer: Scorer, texts: Sequence[tuple[str, ...]]) -> np.ndarray:
    """The scores of texts given as their sentences, `[texts]`; each distinct one is scored once."""
    distinct = list(dict.fromkeys(texts))
    found = scorer.score([list(text) for text in distinct]) if distinct else []
    scores = dict(zip(distinct, found, strict=True))
    return np.array([scores[text] for text in texts], np.float64)


# What a result says of a scorer.


def shown(name: str) -> str:
    """What a result calls the rule `perplexity:MODEL`: no path."""
    rule, _, model = name.partition(":")
    return f"{rule} ({Path(model).name})" if model else rule


def cut_of(model: Scorer) -> int:
    """How many of the texts that it scored the model had to cut.

    The coherence scorer cuts the texts of a pair alike in the suites `permuted` and `pairwise`;
    elsewhere it reads long texts in windows, and so cuts none.
    """
    return int(getattr(getattr(model, "encoder", model), "cut", 0))
