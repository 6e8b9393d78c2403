"""Scoring for users: long texts, percentiles, alternatives, and where a text breaks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corpora.errors import InputError
from zoo import file_of
from zoo.texts import TextEncoder, split_sentences

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
    and the next begins halfway through it; the last ends with the text. One that would end where
    the one before ends holds nothing new, and is left out. The text's score is the mean of its
    windows' scores.

    A sentence longer than a window comes in pieces: each but its last is a window by itself, so
    nothing is left out. `numbers` tell each piece's sentence; `bounds` count pieces.
    """

    pieces: tuple[np.ndarray, ...]
    numbers: tuple[int, ...]
    bounds: tuple[tuple[int, int], ...]

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return self.numbers[-1] + 1


def windows(encoder: TextEncoder, sentences: Sequence[str]) -> Windows:
    """Cut a text's sentences into windows; a text without any is one window of no tokens."""
    pieces, numbers = [], []
    for number, ids in enumerate(encoder.sentences(sentences or [""])):
        for start in range(0, max(len(ids), 1), encoder.budget):
            pieces.append(ids[start : start + encoder.budget])
            numbers.append(number)
    total = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    bounds: list[tuple[int, int]] = []
    start = 0
    while True:
        end = int(np.searchsorted(total, total[start] + encoder.budget, side="right")) - 1
        if not bounds or end > bounds[-1][1]:
            bounds.append((start, end))
        if end >= len(pieces):
            return Windows(tuple(pieces), tuple(numbers), tuple(bounds))
        start += max(1, (end - start) // 2)


def score_texts(
    model: CoherenceScorer,
    texts: Sequence[Text],
    batch_tokens: int,
    reference: Sequence[float] | None = None,
) -> list[Scored]:
    """Score each text as the mean over its windows.

    Percentiles are taken in the quantiles `reference`, by default the model's own.
    """
    known = model.reference if reference is None else reference
    return [
        Scored(
            score,
            None if known is None else percentile(score, known),
            text.sentences,
            len(text.bounds),
        )
        for score, text in mean_scores(model, texts, batch_tokens)
    ]


def mean_scores(
    model: CoherenceScorer, texts: Sequence[Text], batch_tokens: int
) -> list[tuple[float, Windows]]:
    """The mean of each text's windows, with the windows."""
    cut = [windows(model.encoder, as_sentences(text)) for text in texts]
    parts = [
        model.encoder.assemble(text.pieces[start:end]) for text in cut for start, end in text.bounds
    ]
    scores = model.score_ids(parts, batch_tokens)
    ends = np.cumsum([len(text.bounds) for text in cut])
    return [
        (float(np.mean(scores[end - len(text.bounds) : end])), text)
        for text, end in zip(cut, ends.tolist(), strict=True)
    ]


def explain(model: CoherenceScorer, text: Text, batch_tokens: int = 16384) -> list[SentenceEffect]:
    """What each sentence does to the score of a text: left out, and swapped with the next one.

    In a long text a change touches the windows that hold the sentence, and counts with their
    share of all windows; of a sentence in pieces each piece is left out where it stands.
    """
    sentences = as_sentences(text)
    cut = windows(model.encoder, sentences)
    variants: list[tuple[str, int, np.ndarray]] = []
    for start, end in cut.bounds:
        window, numbers = list(cut.pieces[start:end]), cut.numbers[start:end]
        variants.append(("as it is", -1, model.encoder.assemble(window)))
        for i, number in enumerate(numbers):
            if len(window) > 1:
                rest = window[:i] + window[i + 1 :]
                variants.append(("left out", number, model.encoder.assemble(rest)))
            if i + 1 < len(window):
                swapped = [*window[:i], window[i + 1], window[i], *window[i + 2 :]]
                variants.append(("swapped", number, model.encoder.assemble(swapped)))
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
    scores = [score for score, _ in mean_scores(model, texts, batch_tokens)]
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [(i, scores[i]) for i in order]


def as_sentences(text: Text) -> list[str]:
    """A text's sentences: as given, or split by the project's own splitter."""
    return split_sentences(text) if isinstance(text, str) else list(text)


def percentile(score: float, quantiles: Sequence[float]) -> float:
    """How many texts in 100 of the reference score lower, `0.0` to `100.0`.

    `quantiles` are the reference's scores at 0, 1, ... 100 per cent, ascending. Of a score that
    several of them have the first counts: what ties is not lower.
    """
    shares = np.linspace(0, 100, len(quantiles))
    place = int(np.searchsorted(quantiles, score))
    if place < len(quantiles) and quantiles[place] == score:
        return float(shares[place])
    return float(np.interp(score, quantiles, shares, left=0, right=100))


def quantiles(scores: Sequence[float]) -> list[float]:
    """The 101 quantiles of a reference set's scores. Raises `InputError` for no scores."""
    if not len(scores):
        raise InputError("a reference set without texts", hint="give coherent texts to compare to")
    return [float(value) for value in np.quantile(np.asarray(scores), np.linspace(0, 1, 101))]


def load_reference(model: str | Path) -> list[float] | None:
    """The reference of a model (folder or Hub id), or None where it has none."""
    found = file_of(model, REFERENCE)
    if found is None:
        return None
    stored = json.loads(found.read_text(encoding="utf-8"))
    return [float(value) for value in stored["quantiles"]]
