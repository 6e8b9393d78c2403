"""Scoring for users: long texts, percentiles, alternatives, and where a text breaks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import pydantic.dataclasses
from pydantic import AliasPath, BaseModel, Field, FiniteFloat

from corpora.errors import InputError
from corpora.outside import read_record
from corpora.prose import Quotes
from zoo import file_of, require_extra
from zoo.coherence import SHIPPED
from zoo.coherence.packed import PackedScorer
from zoo.evaluate import scorers
from zoo.evaluate.in_hand import folder_of
from zoo.evaluate.scorers import Scorer
from zoo.packed import is_packed
from zoo.texts import Text, Window, as_sentences, check_texts, windows
from zoo.training.job import RESULTS

if TYPE_CHECKING:
    from zoo.coherence.modeling import CoherenceScorer

log = logging.getLogger("zoo")

REFERENCE = "reference.json"
"""File beside the weights: 101 quantiles of the scores of coherent texts."""
BREAKS = "breaks.json"
"""File beside the weights: the record `Breaks`, how often the model marks the right sentence."""
DAMAGED = "copy or download the file again"
"""The hint for a file that cannot be read."""
EXPLAINED = 10
"""Window of `explain` in sentences, for models without a limit."""


@runtime_checkable
class Model(Scorer, Protocol):
    """What scores in windows: of sentences, or of token ids (`CoherenceScorer`)."""

    config: Any

    def score_windows(self, texts: Sequence[Sequence[str]]) -> list[tuple[float, int]]: ...


def reads_ids(model: Any) -> TypeGuard[CoherenceScorer]:
    """Return True for a `CoherenceScorer`, whose windows are lists of token ids."""
    return hasattr(model, "score_ids")


@pydantic.dataclasses.dataclass(frozen=True)
class Reference:
    """The scores of coherent texts as 101 quantiles, to which the score of a text is compared.

    `of` describes the coherent texts, `texts` is their number.
    """

    of: str
    texts: int
    quantiles: Annotated[tuple[FiniteFloat, ...], Field(min_length=2)]

    @classmethod
    def among(cls, of: str, scores: Sequence[float]) -> Reference:
        """Make a reference from the `scores` of coherent texts, which `of` describes.

        Raises `InputError` if there are no scores.
        """
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
    """Return each text's score, the mean over its windows, with its percentile.

    `reference` are the quantiles of the reference's scores; without it no text has a percentile.
    `model` is a loaded scorer, or a function as `zoo.evaluate.Scores`, which reads a text whole.
    Raises `InputError` for a text without words.
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
    """Return how a scorer's input treats quotation marks: "keep", or "balance" to mend them."""
    return model.config.quotes if isinstance(model, Model) else "keep"


def window_scores(model: Model, parts: Sequence[Sequence[Any]]) -> list[float]:
    """Return the score of each part of a text, a list of sentences: strings, or token ids."""
    if reads_ids(model):
        return model.score_ids([model.encoder.assemble(sentences) for sentences in parts])
    return [score for score, _ in model.score_windows(parts)]


def explain(model: Model, text: Text) -> list[SentenceEffect]:
    """Return for each sentence how the score changes if it is left out, or swapped with the next.

    Only the windows of the text that contain the sentence change; the effect is the mean over all
    windows. Each piece of a long sentence is left out separately.
    """
    # The windows of the text
    check_texts([text])
    sentences = as_sentences(text)
    balanced = as_sentences(text, model.config.quotes)
    if reads_ids(model):
        all_windows = windows(model.encoder, balanced)
    else:
        starts = range(0, max(1, len(balanced) - EXPLAINED // 2), EXPLAINED // 2)
        parts = [balanced[start : start + EXPLAINED] for start in starts]
        all_windows = [Window(p, range(s, s + len(p))) for s, p in zip(starts, parts, strict=True)]
    # Each window unchanged, then all its changes: (kind, number of the sentence, sentences)
    variants: list[tuple[str, int, list[Any]]] = []
    for pieces, numbers in all_windows:
        window = list(pieces)
        variants.append(("unchanged", -1, window))
        for i, number in enumerate(numbers):
            if len(window) > 1:
                variants.append(("left out", number, window[:i] + window[i + 1 :]))
            if i + 1 < len(window):
                swapped = [*window[:i], window[i + 1], window[i], *window[i + 2 :]]
                variants.append(("swapped", number, swapped))
    # The mean change of the score by each change
    scores = window_scores(model, [variant for _, _, variant in variants])
    changes: dict[tuple[str, int], float] = defaultdict(float)
    unchanged = 0.0
    for (kind, number, _), score in zip(variants, scores, strict=True):
        if kind == "unchanged":
            unchanged = score
        else:
            changes[kind, number] += (score - unchanged) / len(all_windows)
    return [
        SentenceEffect(sentence, changes.get(("left out", i)), changes.get(("swapped", i)))
        for i, sentence in enumerate(sentences)
    ]


@dataclass(frozen=True)
class Break:
    """Where a text breaks: the sentence (counted from 1) whose removal increases the score most.

    `margin` is the distance to the next largest increase, in standard deviations of the increases.
    `right` is the share of held-out texts with an intruder, and at least this margin, in which the
    marked sentence was the intruder; None if the model was not measured.
    """

    sentence: int
    margin: float
    right: float | None


def find_break(effects: Sequence[SentenceEffect], measured: Breaks | None) -> Break | None:
    """Return the sentence whose removal increases the score most; None if its margin is too small.
    `effects` is the result of `explain`, `measured` that of `load_breaks`. The first sentence is
    never marked, and no sentence of a text of fewer than four."""
    numbered = enumerate(effects[1:], 2)
    gain_of = {
        number: effect.left_out for number, effect in numbered if effect.left_out is not None
    }
    if len(gain_of) < 3:  # `Breaks` were measured with three sentences or more to choose from
        return None
    gains = np.array([*gain_of.values()])
    place, margin = largest_gain(gains)
    if gains[place] <= 0 or margin < (measured.least if measured else UNMEASURED):
        return None
    right = float(np.interp(margin, measured.margins, measured.right)) if measured else None
    return Break([*gain_of][place], margin, right)


ROUNDING = 1e-6
"""Maximum difference of a text's scores in different batches (about)."""
UNMEASURED = 1.0
"""Minimum margin of a mark, for a model that was not measured."""


def largest_gain(gains: np.ndarray) -> tuple[int, float]:
    """Return the index of the largest gain, and its distance to the second largest in standard
    deviations."""
    place = int(gains.argmax())
    deviation = float(gains.std())
    margin = float(gains[place] - np.delete(gains, place).max())
    return place, margin / deviation if deviation else 0.0


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


def address_of(model: Any) -> str:
    """Return the folder or Hub id of `model`: the object itself, or where it was loaded from."""
    return str(model) if isinstance(model, str | Path) else folder_of(model)


def load_breaks(model: Any) -> Breaks | None:
    """Return how often the marks of a model are right, by its breaks.json; None without that file.
    `model` is a loaded model, a folder or a Hub id."""
    file = file_of(address_of(model), BREAKS)
    return None if file is None else read_record(Breaks, file, DAMAGED)


TEST_ACCURACY = ("metrics", "test", "accuracy")
"""The place of the test accuracy in results.json."""


class TrainingResult(BaseModel):
    """The accuracy of a model on the test pairs of its training, read from results.json."""

    value: float = Field(0.0, validation_alias=AliasPath(*TEST_ACCURACY, "value"))
    ci: tuple[float, float] | None = Field(None, validation_alias=AliasPath(*TEST_ACCURACY, "ci"))


def warn_of_chance(model: str | Path) -> None:
    """Log a warning if the accuracy of a model on its test pairs is not above chance."""
    file = file_of(model, RESULTS)
    accuracy = read_record(TrainingResult, file, DAMAGED) if file else None
    if accuracy and accuracy.ci and accuracy.ci[0] <= 0.5:
        percent = [100 * figure for figure in (accuracy.value, *accuracy.ci)]
        log.warning(
            "%s: tells %.0f of 100 test pairs [%.0f, %.0f], which chance does too: its scores say "
            "nothing about a text",
            model,
            *percent,
        )


def rank(model: Scorer, prompt: Text, alternatives: Sequence[Text]) -> list[tuple[int, float]]:
    """Score each of `alternatives` as the continuation of `prompt`, and rank them. Returns pairs
    `(number, score)`, the best first; alternatives are numbered from 0."""
    check_texts(alternatives)
    quotes = quotes_of(model)
    before = as_sentences(prompt, quotes) if prompt else []
    scores = model.score([[*before, *as_sentences(text, quotes)] for text in alternatives])
    return sorted(enumerate(scores), key=lambda ranked: -ranked[1])


def percentile(score: float, quantiles: Sequence[float]) -> float:
    """Return the percentage of reference texts with a lower score, `0.0` to `100.0`.

    `quantiles` are the reference's scores at 0, 1, ... 100 per cent, ascending. If several equal
    the score, the first counts: ties are not lower. Scores that differ by `ROUNDING` tie too.
    """
    shares = np.linspace(0, 100, len(quantiles))
    place = int(np.searchsorted(quantiles, score - ROUNDING))
    if place < len(quantiles) and quantiles[place] <= score + ROUNDING:
        return float(shares[place])
    return float(np.interp(score, quantiles, shares, left=0, right=100))


def load_reference(model: Any) -> Reference | None:
    """Return the scores of coherent texts in a model's reference.json; None without that file.
    `model` is a loaded model, a folder or a Hub id. Without the file a warning is logged."""
    file = file_of(address_of(model), REFERENCE)
    if file is None:
        log.warning("%s: no reference set, so no percentiles: give --reference", address_of(model))
        return None
    return read_record(Reference, file, DAMAGED)


def load_scorer(model: str | Path = "", *, bf16: bool = False) -> Model:
    """Load a coherence scorer by folder or Hub id; by default the shipped one.

    The shipped one runs on the CPU, without torch. With `bf16` torch runs it in bfloat16, on an
    accelerator if there is one. Raises `InputError` for a model that does not score texts, or that
    does not score in windows, and `DiscorporaError` without the extra `zoo` that other models need.
    """
    model = model or SHIPPED
    if is_packed(model) and not bf16:
        return PackedScorer(model)
    require_extra(
        "to compute in bfloat16" if is_packed(model) else f"to run the model {str(model)!r}"
    )
    scorer: Any = scorers.load_scorer(str(model))
    if not isinstance(scorer, Model):
        raise InputError(
            f"is a {type(scorer).__name__}: percentiles, ranks and explanations are for the "
            "shipped scorer and the models of coherence/contrastive and coherence/full",
            where=str(model),
            hint="judge it with: discorpora evaluate pairwise",
        )
    scorer.bf16 = bf16  # type: ignore[attr-defined]
    return scorer
