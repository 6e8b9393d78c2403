"""Scoring for users: long texts, percentiles, alternatives, and where a text breaks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.errors import InputError
from zoo.coherence.texts import TextEncoder, split_sentences

if TYPE_CHECKING:
    from zoo.coherence.modeling import CoherenceScorer

REFERENCE = "reference.json"
"""Beside the weights: 101 quantiles of the scores of texts that are known to be coherent."""

Text = str | Sequence[str]


@dataclass(frozen=True)
class Scored:
    """A text's score; `percentile` says how many reference texts in 100 score lower."""

    score: float
    percentile: float | None
    sentences: int
    windows: int


@dataclass(frozen=True)
class SentenceEffect:
    """How the text's score changes when one sentence is left out, or swapped with the next one.

    A sentence without which the text scores higher, or that fits better after the next one, is
    where the text breaks. `swapped` is None where no window holds the next sentence too.
    """

    sentence: str
    left_out: float | None
    swapped: float | None


@dataclass(frozen=True)
class Windows:
    """A text as runs of whole sentences that the model takes.

    A text that fits is one window. Of a longer one each window takes as many sentences as fit,
    and the next begins halfway through it; the last ends with the text. The text's score is the
    mean of its windows' scores.
    """

    sentences: tuple[np.ndarray, ...]
    bounds: tuple[tuple[int, int], ...]


def windows(encoder: TextEncoder, sentences: Sequence[str]) -> Windows:
    """Cut a text's sentences into windows. A sentence that is too long by itself is cut."""
    ids = [part[: encoder.budget] for part in encoder.sentences(sentences or [""])]
    total = np.concatenate([[0], np.cumsum([len(part) for part in ids])])
    bounds: list[tuple[int, int]] = []
    start = 0
    while True:
        end = int(np.searchsorted(total, total[start] + encoder.budget, side="right")) - 1
        bounds.append((start, end))
        if end >= len(ids):
            return Windows(tuple(ids), tuple(bounds))
        start += max(1, (end - start) // 2)


def score_texts(model: CoherenceScorer, texts: Sequence[Text], batch_tokens: int) -> list[Scored]:
    """Score each text as the mean over its windows."""
    cut = [windows(model.encoder, as_sentences(text)) for text in texts]
    pieces = [
        model.encoder.assemble(text.sentences[start:end])
        for text in cut
        for start, end in text.bounds
    ]
    scores = model.score_ids(pieces, batch_tokens)
    reference = load_reference(model.config._name_or_path)
    found, at = [], 0
    for text in cut:
        mean = float(np.mean(scores[at : at + len(text.bounds)]))
        at += len(text.bounds)
        rank = None if reference is None else percentile(mean, reference)
        found.append(Scored(mean, rank, len(text.sentences), len(text.bounds)))
    return found


def explain(model: CoherenceScorer, text: Text, batch_tokens: int = 16384) -> list[SentenceEffect]:
    """What each sentence does to the score of a text: left out, and swapped with the next one.

    In a long text a change touches the windows that hold the sentence, and counts with their
    share of all windows.
    """
    sentences = as_sentences(text)
    cut = windows(model.encoder, sentences)
    variants: list[tuple[str, int, np.ndarray]] = []
    for start, end in cut.bounds:
        window = list(cut.sentences[start:end])
        variants.append(("as it is", -1, model.encoder.assemble(window)))
        for i in range(len(window)):
            if len(window) > 1:
                rest = window[:i] + window[i + 1 :]
                variants.append(("left out", start + i, model.encoder.assemble(rest)))
            if i + 1 < len(window):
                swapped = [*window[:i], window[i + 1], window[i], *window[i + 2 :]]
                variants.append(("swapped", start + i, model.encoder.assemble(swapped)))
    scores = model.score_ids([ids for _, _, ids in variants], batch_tokens)
    changes: dict[tuple[str, int], float] = {}
    whole = 0.0
    for (kind, sentence, _), score in zip(variants, scores, strict=True):
        if kind == "as it is":
            whole = score
            continue
        key = (kind, sentence)
        changes[key] = changes.get(key, 0.0) + (score - whole) / len(cut.bounds)
    return [
        SentenceEffect(sentence, changes.get(("left out", place)), changes.get(("swapped", place)))
        for place, sentence in enumerate(sentences)
    ]


def rank(
    model: CoherenceScorer, prompt: Text, alternatives: Sequence[Text], batch_tokens: int = 16384
) -> list[tuple[int, float]]:
    """The alternatives' numbers with the scores of prompt and alternative, the best first."""
    before = as_sentences(prompt) if prompt else []
    texts = [[*before, *as_sentences(text)] for text in alternatives]
    scores = [scored.score for scored in score_texts(model, texts, batch_tokens)]
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [(i, scores[i]) for i in order]


def as_sentences(text: Text) -> list[str]:
    """A text's sentences: as given, or split by the project's own splitter."""
    return split_sentences(text) if isinstance(text, str) else list(text)


def percentile(score: float, quantiles: Sequence[float]) -> float:
    """How many texts in 100 of the reference score lower, `0.0` to `100.0`.

    `quantiles` are the reference's scores at 0, 1, ... 100 per cent, ascending.
    """
    return float(np.interp(score, quantiles, np.linspace(0, 100, len(quantiles))))


def quantiles(scores: Sequence[float]) -> list[float]:
    """The 101 quantiles of a reference set's scores. Raises `InputError` for no scores."""
    if not len(scores):
        raise InputError("a reference set without texts", hint="give coherent texts to compare to")
    return [float(value) for value in np.quantile(np.asarray(scores), np.linspace(0, 1, 101))]


def load_reference(folder: str | Path) -> list[float] | None:
    """The reference of a model folder, or None where it has none."""
    path = Path(folder) / REFERENCE
    if not path.is_file():
        return None
    stored = json.loads(path.read_text(encoding="utf-8"))
    return [float(value) for value in stored["quantiles"]]
