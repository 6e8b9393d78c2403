"""Scoring for users: long texts, percentiles, alternatives, and where a text breaks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses
from pydantic import AliasPath, BaseModel, Field, FiniteFloat

from corpora.errors import InputError
from corpora.outside import read_record
from corpora.prose import Quotes
from zoo import file_of
from zoo.coherence import SHIPPED
from zoo.coherence.links import LinkScorer
from zoo.coherence.modeling import CoherenceScorer
from zoo.evaluate import scorers
from zoo.evaluate.in_hand import folder_of
from zoo.evaluate.scorers import Scorer
from zoo.texts import Text, Window, as_sentences, check_texts, windows
from zoo.training.job import RESULTS

Model = CoherenceScorer | LinkScorer
"""What scores in windows."""

log = logging.getLogger("zoo")

REFERENCE = "reference.json"
"""File beside the weights: 101 quantiles of the scores of coherent texts."""
BREAKS = "breaks.json"
"""File beside the weights: how often the marked sentence was the intruder of held-out texts."""
DAMAGED = "copy or download the file again"
EXPLAINED = 10
"""Window of `explain` in sentences, for models without a limit."""


@pydantic.dataclasses.dataclass(frozen=True)
class Reference:
    """Scores of coherent texts: their description (`of`), number, and 101 quantiles."""

    of: str
    texts: int
    quantiles: Annotated[tuple[FiniteFloat, ...], Field(min_length=2)]

    @classmethod
    def among(cls, of: str, scores: Sequence[float]) -> Reference:
        """The reference of texts with these scores. Raises `InputError` for no scores."""
        if not len(scores):
            raise InputError(
                "the reference set has no texts", hint="give coherent texts to compare to"
            )
        return cls(of, len(scores), tuple(np.quantile(scores, np.linspace(0, 1, 101)).tolist()))


@dataclass(frozen=True)
class Scored:
    """A text's score; `percentile` is the share of reference texts with a lower score.

    A text of one sentence has no percentile.
    """

    score: float
    percentile: float | None
    sentences: int
    windows: int


@dataclass(frozen=True)
class SentenceEffect:
    """The change of a text's score if one sentence is left out, or swapped with the next one.

    The text breaks at a sentence without which it scores higher, or that fits better after the next
    one. `swapped` is None if no window contains the next sentence too.
    """

    sentence: str
    left_out: float | None
    swapped: float | None


def score_texts(
    model: Scorer, texts: Sequence[Text], reference: Sequence[float] | None = None
) -> list[Scored]:
    """Score each text as the mean over its windows, with its percentile in quantiles `reference`.

    `model` is a scorer in hand, or a function as `zoo.evaluate.Scores`, which reads a text whole.
    Without a reference no text has a percentile. Raises `InputError` for a text without words.
    """
    check_texts(texts)
    sentences = [as_sentences(text, quotes_of(model)) for text in texts]
    if isinstance(model, Model):
        scores = model.score_windows(sentences)
    else:
        scores = [(score, 1) for score in model.score(sentences)]
    return [
        Scored(
            score,
            percentile(score, reference) if reference and len(text) > 1 else None,
            len(text),
            number,
        )
        for text, (score, number) in zip(sentences, scores, strict=True)
    ]


def quotes_of(model: Scorer) -> Quotes:
    """How a scorer takes quotation marks."""
    return model.config.quotes if isinstance(model, Model) else "keep"


def scores_of(model: Model, parts: Sequence[Sequence[Any]]) -> list[float]:
    """The scores of sentences together: as texts for a scorer of links, as token ids else."""
    if isinstance(model, LinkScorer):
        return [score for score, _ in model.score_windows(parts)]
    return model.score_ids([model.encoder.assemble(pieces) for pieces in parts])


def explain(model: Model, text: Text) -> list[SentenceEffect]:
    """The effect of each sentence on a text's score: left out, and swapped with the next one.

    In a long text only the windows with the sentence change, which count with their share of all
    windows; each piece of a long sentence is left out in its place.
    """
    check_texts([text])
    sentences = as_sentences(text)
    balanced = as_sentences(text, model.config.quotes)
    if isinstance(model, LinkScorer):
        starts = range(0, max(1, len(balanced) - EXPLAINED // 2), EXPLAINED // 2)
        parts = [balanced[start : start + EXPLAINED] for start in starts]
        cut = [Window(p, range(s, s + len(p))) for s, p in zip(starts, parts, strict=True)]
    else:
        cut = windows(model.encoder, balanced)
    # Each window unchanged, and every change of it: its kind and the number of the sentence.
    variants: list[tuple[str, int, list[Any]]] = []
    for pieces, numbers in cut:
        window = list(pieces)
        variants.append(("as it is", -1, window))
        for i, number in enumerate(numbers):
            if len(window) > 1:
                variants.append(("left out", number, window[:i] + window[i + 1 :]))
            if i + 1 < len(window):
                swapped = [*window[:i], window[i + 1], window[i], *window[i + 2 :]]
                variants.append(("swapped", number, swapped))
    scores = scores_of(model, [some for _, _, some in variants])
    changes: dict[tuple[str, int], float] = defaultdict(float)
    whole = 0.0
    for (kind, number, _), score in zip(variants, scores, strict=True):
        if kind == "as it is":
            whole = score
        else:
            changes[kind, number] += (score - whole) / len(cut)
    return [
        SentenceEffect(sentence, changes.get(("left out", place)), changes.get(("swapped", place)))
        for place, sentence in enumerate(sentences)
    ]


@dataclass(frozen=True)
class Break:
    """Where a text breaks: the sentence (counted from 1) whose removal increases the score most.

    `margin` is the distance to the next largest increase, relative to the effects' spread. `right`
    is the share of held-out intruded texts with at least this margin whose intruder was marked;
    None for a model that was not measured.
    """

    sentence: int
    margin: float
    right: float | None


def find_break(effects: Sequence[SentenceEffect], measured: Breaks | None) -> Break | None:
    """The sentence that stands out among the effects; None if none does.

    The first sentence is never marked, nor any sentence of a text of fewer than four.
    """
    numbered = enumerate(effects[1:], 2)
    told = [(number, one.left_out) for number, one in numbered if one.left_out is not None]
    if len(told) < 3:  # what was measured
        return None
    gains = np.array([gain for _, gain in told])
    place, margin = stands_out(gains)
    if gains[place] <= 0 or margin < (measured.least if measured else UNMEASURED):
        return None
    right = float(np.interp(margin, measured.margins, measured.right)) if measured else None
    return Break(told[place][0], margin, right)


ROUNDING = 1e-6
"""By how much the score of one text differs from batch to batch at most (about)."""
UNMEASURED = 1.0
"""Minimum margin of a mark, for a model that was not measured."""


def stands_out(gains: np.ndarray) -> tuple[int, float]:
    """The index of the largest of `gains`, and its distance to the next in standard deviations."""
    place = int(gains.argmax())
    spread = float(gains.std())
    return place, float(gains[place] - np.delete(gains, place).max()) / spread if spread else 0.0


@pydantic.dataclasses.dataclass(frozen=True)
class Breaks:
    """How often a model marks the intruder of held-out texts (`BREAKS`).

    `right[i]` is the share of texts with a margin of `margins[i]` or more whose intruder was
    marked. Marks need a margin of `least`: `marked_coherent` is the share of coherent texts with a
    mark.
    """

    of: str
    texts: int
    least: float
    marked_coherent: float
    margins: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]
    right: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]


def place_of(model: Any) -> str:
    """The folder or Hub id of a model: it is one, or a model in hand that was loaded from one."""
    return str(model) if isinstance(model, str | Path) else folder_of(model)


def load_breaks(model: Any) -> Breaks | None:
    """The measured quality of a model's marks (in hand, or a folder or Hub id), or None."""
    found = file_of(place_of(model), BREAKS)
    return None if found is None else read_record(Breaks, found, DAMAGED)


TESTED = ("metrics", "test", "accuracy")


class Result(BaseModel):
    """What scoring reads of the results of a training: the accuracy on its test pairs."""

    value: float = Field(0.0, validation_alias=AliasPath(*TESTED, "value"))
    ci: tuple[float, float] | None = Field(None, validation_alias=AliasPath(*TESTED, "ci"))


def warn_of_chance(model: str | Path) -> None:
    """Warn of a model whose accuracy on its own test pairs is not above chance."""
    found = file_of(model, RESULTS)
    accuracy = read_record(Result, found, DAMAGED) if found else None
    if accuracy and accuracy.ci and accuracy.ci[0] <= 0.5:
        percent = [100 * figure for figure in (accuracy.value, *accuracy.ci)]
        log.warning(
            "%s: tells %.0f of 100 test pairs [%.0f, %.0f], which chance does too: its scores say "
            "nothing about a text",
            model,
            *percent,
        )


def rank(model: Scorer, prompt: Text, alternatives: Sequence[Text]) -> list[tuple[int, float]]:
    """The alternatives' numbers with the scores of prompt and alternative, the best first."""
    check_texts(alternatives)
    quotes = quotes_of(model)
    before = as_sentences(prompt, quotes) if prompt else []
    scores = model.score([[*before, *as_sentences(text, quotes)] for text in alternatives])
    return sorted(enumerate(scores), key=lambda one: -one[1])


def percentile(score: float, quantiles: Sequence[float]) -> float:
    """The percentage of reference texts with a lower score, `0.0` to `100.0`.

    `quantiles` are the reference's scores at 0, 1, ... 100 per cent, ascending. If several equal
    the score, the first counts: ties are not lower. A text's score in another batch is a tie too.
    """
    shares = np.linspace(0, 100, len(quantiles))
    place = int(np.searchsorted(quantiles, score - ROUNDING))
    if place < len(quantiles) and quantiles[place] <= score + ROUNDING:
        return float(shares[place])
    return float(np.interp(score, quantiles, shares, left=0, right=100))


def load_reference(model: Any) -> Reference | None:
    """The reference of a model (in hand, or a folder or Hub id); a warning and None without one."""
    found = file_of(place_of(model), REFERENCE)
    if found is None:
        log.warning("%s: no reference set, so no percentiles: give --reference", place_of(model))
        return None
    return read_record(Reference, found, DAMAGED)


def load_scorer(model: str | Path = "") -> Model:
    """A coherence scorer by folder or Hub id; by default the shipped one.

    Raises `InputError` for a model that does not score texts, or not in windows.
    """
    scorer = scorers.load_scorer(str(model or SHIPPED))
    if not isinstance(scorer, Model):
        raise InputError(
            f"is a {type(scorer).__name__}: percentiles, ranks and explanations are for the "
            "shipped scorer and the models of coherence/contrastive and coherence/full",
            where=str(model),
            hint="judge it with: discorpora evaluate pairwise",
        )
    return scorer
