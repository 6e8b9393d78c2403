"""Scoring for users: long texts, percentiles, alternatives, and where a text breaks."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from corpora.errors import InputError
from zoo import file_of
from zoo.coherence.data import Documents
from zoo.evaluate.scores import Ranking
from zoo.texts import Text, TextEncoder, as_sentences

if TYPE_CHECKING:
    from zoo.coherence.modeling import CoherenceScorer

log = logging.getLogger("zoo")

REFERENCE = "reference.json"
"""Beside the weights: 101 quantiles of the scores of texts that are known to be coherent."""


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


def windows(encoder: TextEncoder, text: Text) -> Windows:
    """Cut a text's sentences into windows; a text without any is one window of no tokens."""
    pieces, numbers = [], []
    for number, ids in enumerate(encoder.sentences(as_sentences(text) or [""])):
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
    model: CoherenceScorer, texts: Sequence[Text], reference: Sequence[float] | None = None
) -> list[Scored]:
    """Score each text as the mean over its windows, with its percentile in quantiles `reference`.

    Without a reference no text has a percentile.
    """
    quotes = model.config.quotes
    cut = [windows(model.encoder, as_sentences(text, quotes)) for text in texts]
    parts = [
        model.encoder.assemble(text.pieces[start:end]) for text in cut for start, end in text.bounds
    ]
    scores = iter(model.score_ids(parts))
    scored = []
    for text in cut:
        score = float(np.mean([next(scores) for _ in text.bounds]))
        place = percentile(score, reference) if reference else None
        scored.append(Scored(score, place, text.numbers[-1] + 1, len(text.bounds)))
    return scored


def explain(model: CoherenceScorer, text: Text) -> list[SentenceEffect]:
    """What each sentence does to the score of a text: left out, and swapped with the next one.

    In a long text a change touches the windows that hold the sentence, and counts with their
    share of all windows; of a sentence in pieces each piece is left out where it stands.
    """
    sentences = as_sentences(text)
    cut = windows(model.encoder, as_sentences(text, model.config.quotes))
    # Each window as it is, and every change of it: its kind and the number of the sentence.
    variants: list[tuple[str, int, list[np.ndarray]]] = []
    for start, end in cut.bounds:
        window = list(cut.pieces[start:end])
        variants.append(("as it is", -1, window))
        for i, number in enumerate(cut.numbers[start:end]):
            if len(window) > 1:
                variants.append(("left out", number, window[:i] + window[i + 1 :]))
            if i + 1 < len(window):
                swapped = [*window[:i], window[i + 1], window[i], *window[i + 2 :]]
                variants.append(("swapped", number, swapped))
    texts = [model.encoder.assemble(pieces) for _, _, pieces in variants]
    changes: dict[tuple[str, int], float] = defaultdict(float)
    whole = 0.0
    for (kind, number, _), score in zip(variants, model.score_ids(texts), strict=True):
        if kind == "as it is":
            whole = score
        else:
            changes[kind, number] += (score - whole) / len(cut.bounds)
    return [
        SentenceEffect(sentence, changes.get(("left out", place)), changes.get(("swapped", place)))
        for place, sentence in enumerate(sentences)
    ]


def rank(
    model: CoherenceScorer, prompt: Text, alternatives: Sequence[Text]
) -> list[tuple[int, float]]:
    """The alternatives' numbers with the scores of prompt and alternative, the best first."""
    quotes = model.config.quotes
    before = as_sentences(prompt, quotes) if prompt else []
    scores = model.score([[*before, *as_sentences(text, quotes)] for text in alternatives])
    return sorted(enumerate(scores), key=lambda one: -one[1])


def score_orders(
    model: CoherenceScorer, documents: Documents, orders: pa.Table, batch_tokens: int = 16384
) -> Ranking:
    """Score documents cut and encoded as in training, each once, and permutations of them.

    Permutations that the cut made equal to the document are left out.
    """
    names, permuted, identical = [], [], 0
    for row in orders.select(["document", "orders"]).to_pylist():
        name, usable = row["document"], documents.orders(row["document"], row["orders"])
        identical += len(row["orders"]) - len(usable)
        permuted += [documents.permuted(name, order) for order in usable]
        names += [name] * len(usable)
    distinct = {name: place for place, name in enumerate(sorted(set(names)))}
    at, size = np.array([distinct[name] for name in names], np.int64), len(distinct)
    texts = [*(documents.original(name) for name in distinct), *permuted]
    scores = np.array(model.score_ids(texts, batch_tokens))
    lengths = np.array([len(text) for text in texts])
    return Ranking(names, scores[at], scores[size:], (lengths[at], lengths[size:]), identical)


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
    """The reference of a model (folder or Hub id); None where it has none, which is said."""
    found = file_of(model, REFERENCE)
    if found is None:
        log.warning("%s: no reference set, so no percentiles: give --reference", model)
        return None
    stored = json.loads(found.read_text(encoding="utf-8"))
    return [float(value) for value in stored["quantiles"]]
