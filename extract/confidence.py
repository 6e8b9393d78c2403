"""How likely a pair is right: boosted decision trees over features that extraction computes anyway.

`confidence.json` has the trees, fitted by `python -m extract.calibrate` for English text parsed
by the embedded parser; `docs/results/confidence.md` describes the training data and calibration.
"""

from __future__ import annotations

import json
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corpora.declared import TomlTable
from corpora.errors import ConfigError
from extract.match import PREVIOUS, Matches
from extract.pairs import SpanColumn
from extract.parse import BoolArray, Ints
from extract.trees import Batch

if TYPE_CHECKING:
    from extract.agreement import Candidates

MODEL = Path(__file__).with_name("confidence.json")
Floats = NDArray[np.float64]
KINDS = {
    "nominal": ("NOUN", "PROPN", "NUM"),
    "pronoun": ("PRON",),
    "verbal": ("VERB", "AUX"),
    "modifier": ("ADJ", "ADV"),
    "function": ("ADP", "DET", "SCONJ", "CCONJ", "PART"),
}
"""Parts of speech (UPOS) of the words at the ends of both sides and around the marker."""
CLASSES = ("main_clause", "conjunct", "reported_clause", "adverbial_clause")
MAX_DEPTH = 20
DEPTH = 3
"""Questions that each decision tree asks."""
DEFAULT_THRESHOLD = 0.7
"""About as many pairs of novels pass as without the second parser (`docs/results`)."""
SURE = 0.9
"""In `standalone` a pair of the second parser is taken from here on: below, two readers called
fewer good than of the pairs that it would replace (`docs/results/pairs.md`)."""
OTHER_PARSERS = ("spacy:", "stanza:")
"""Parsers with other errors than those that the model was fitted on."""
NOWHERE = -1
"""Stands for a missing token, which has no tag."""


class Model(TomlTable):
    """Boosted decision trees: each asks `DEPTH` questions about a candidate, and adds to a score.

    Node n of a tree asks whether a feature (its number in `names`) is above a threshold; 2n + 1 is
    the next node if not, 2n + 2 if so. `values` belong to the answers below the last nodes. The
    score, `bias` and one value of each tree, is the log-odds that the candidate is right.
    """

    names: tuple[str, ...]
    """Features: those of `Candidates.numbers`, `marker NAME` and `pattern ID`."""
    bias: float
    asked: tuple[tuple[int, ...], ...]
    thresholds: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]

    @cached_property
    def _questions(self) -> tuple[Ints, Floats, Ints]:
        """The different questions (features, thresholds), and the one of each node [trees, 7]."""
        pairs = np.stack([np.array(self.asked), np.array(self.thresholds)])
        questions, place = np.unique(pairs.reshape(2, -1), axis=1, return_inverse=True)
        thresholds = questions[1].astype(np.float32)[:, None]
        return questions[0].astype(np.int32), thresholds, place.reshape(pairs.shape[1:])

    def confidences(self, own: Candidates, other: Candidates | None = None) -> NDArray[np.float32]:
        """The probability [candidates] that each of `own` is right, from 0 to 1.

        `other` has the candidates of the other parser, if two parsers are used.
        """
        patterns, matches = own.batch.patterns, own.matches
        rows = [row.id for row in patterns.table.patterns]
        table = np.zeros((len(self.names), len(own)), dtype=np.float32)
        numbers = own.numbers(other)
        for place, name in enumerate(self.names):
            kind, _, item = name.partition(" ")
            if kind == "marker":
                if item in patterns.names:
                    table[place] = matches.sequence == patterns.names.index(item)
            elif kind == "pattern":
                if item in rows:
                    table[place] = matches.row == rows.index(item)
            else:
                table[place] = numbers[name]
        return self.of_table(table)

    def of_table(self, table: NDArray[Any]) -> NDArray[np.float32]:
        """The probability [candidates] of features [`names`, candidates]."""
        feature, threshold, place = self._questions
        answers = table[feature] > threshold
        node = np.zeros((len(place), table.shape[1]), dtype=np.int8)
        for level in range(DEPTH):
            first = 2**level - 1
            answer = answers[place[:, first]]
            for number in range(first + 1, 2 * first + 1):
                answer = np.where(node == number, answers[place[:, number]], answer)
            node = 2 * node + 1 + answer
        ends = node.astype(np.intp) - place.shape[1]
        score = self.bias + np.take_along_axis(np.array(self.values), ends, axis=1).sum(axis=0)
        return (1 / (1 + np.exp(-score))).astype(np.float32)


@cache
def load_model(language: str, mode: str, checked: bool = False) -> Model | None:
    """Return the confidence model of a language and mode, None for a language without one.

    `checked`: the model for pairs that a second parser checks.
    """
    models = json.loads(MODEL.read_text(encoding="utf-8"))
    weights = models.get(language, {}).get(f"{mode}_checked" if checked else mode)
    return None if weights is None else Model.of(weights, str(MODEL))


def threshold(language: str, mode: str, minimum: float | None, parser: str = "embedded") -> float:
    """Return the minimum confidence of a pair: `minimum`, or the default if it is None.

    The default is .7 in `standalone` if the language has a model and the parser is the one that it
    was fitted on, else 0. Raises `ConfigError` for a threshold above 0 without a model.
    """
    model = load_model(language, mode)
    if minimum is None:
        fitted = model is not None and not parser.startswith(OTHER_PARSERS)
        return DEFAULT_THRESHOLD if fitted and mode == "standalone" else 0.0
    if minimum > 0 and model is None:
        raise ConfigError(
            f"min_confidence = {minimum}: no confidence model for the language {language!r}",
            hint="leave min_confidence out",
        )
    return minimum


def features(
    batch: Batch, matches: Matches, spans: tuple[SpanColumn, SpanColumn]
) -> dict[str, Floats]:
    """Return the model's features by name [pairs]: lengths in words, distances, depths, tags.

    Lengths, distances and counts are `log(1 + n)`, all others 0 or 1.
    """
    comma, clause_break = batch.listed("comma"), batch.listed("clause_break")
    word = ~batch.labelled("punctuation")
    flags = {
        "words": word,
        "clauses": batch.tagged("clause") & word,
        "commas": comma,
        "breaks": clause_break,
        "parataxis": batch.labelled("main_clause") & (batch.head >= 0),
        "oddities": _oddities(batch),
    }
    sums = {name: np.concatenate([[0], np.cumsum(flag)]) for name, flag in flags.items()}
    back = matches.s1 == PREVIOUS
    row = batch.row[matches.first]
    begin, end = batch.offsets[row], batch.offsets[row + 1]
    # Spans find their tokens by document and place in the text.
    keys = (batch.row_doc[batch.row].astype(np.int64) << 32) + batch.start
    document = batch.row_doc[row].astype(np.int64) << 32
    bounds: list[Ints] = []
    ends: list[Ints] = []
    for column in spans:
        owner = np.repeat(document, column.counts)
        # The first token of every span, and the one after its last.
        bounds.append(np.searchsorted(keys, owner + np.stack([column.start, column.end])))
        first = bounds[-1][0, column.offsets[:-1]]
        last = bounds[-1][1, column.offsets[1:] - 1] - 1
        # A previous sentence may not be parsed.
        ends.append(np.where(first <= last, np.stack([first, last]), NOWHERE))
    counts: dict[str, Ints] = {}
    for name, total in sums.items():
        counts[f"sentence_{name}"] = total[end] - total[begin]
        for side, column, (first, behind) in zip(("s1", "s2"), spans, bounds, strict=True):
            of_spans = total[behind] - total[first]
            counts[f"{side}_{name}"] = np.add.reduceat(of_spans, column.offsets[:-1])
    (s1_first, s1_last), (s2_first, s2_last) = ends
    words = sums["words"]
    after = np.minimum(matches.first + matches.length, len(batch))
    before_marker = np.where(back, begin, np.where(s1_last < matches.first, s1_last + 1, begin))
    counts["words_before_marker"] = words[matches.first] - words[before_marker]
    counts["words_after_marker"] = np.maximum(words[np.maximum(s2_first, after)] - words[after], 0)
    counts["s1_pieces"], counts["s2_pieces"] = (column.counts - 1 for column in spans)
    s1 = np.where(back, matches.s2, matches.s1)
    counts["distance"] = np.abs(s1 - matches.s2)
    counts["s1_depth"], counts["s2_depth"] = _depth(batch, s1), _depth(batch, matches.s2)
    uncovered = counts["sentence_words"] - counts["s2_words"] - ~back * counts["s1_words"]
    counts["words_of_neither"] = np.maximum(uncovered, 0)
    values = {name: np.log1p(np.maximum(n, 0).astype(np.float64)) for name, n in counts.items()}
    mark = np.maximum(matches.first - 1, 0)
    inside = matches.first > begin
    xpos = batch.column("xpos")
    other = {
        "previous": back,
        "s2_before_s1": (s2_first < s1_first) & ~back,
        "comma_before": inside & comma[mark],
        "break_before": inside & clause_break[mark],
        "quotes": batch.rows_with(batch.listed("quote"))[row],
        "no_mark_between": (s2_first < s1_first) & ~back & word[np.maximum(s1_first - 1, 0)],
        "same_tag": ~back & (xpos[s1] == xpos[matches.s2]),
    }
    places = {
        "s1_head": s1,
        "s2_head": matches.s2,
        "s1_first": s1_first,
        "s1_last": s1_last,
        "s2_first": s2_first,
        "s2_last": s2_last,
        "word_before": np.where(inside, matches.first - 1, NOWHERE),
        "word_after": np.where(after < end, after, NOWHERE),
    }
    strings, upos = batch.patterns.strings, np.append(batch.column("upos"), NOWHERE)
    for kind, tags in KINDS.items():
        codes = strings.codes(tags)
        among = np.zeros(len(strings) + 1, dtype=bool)  # the last value is that of NOWHERE
        among[codes] = True
        for place, token in places.items():
            other[f"{place}={kind}"] = among[upos[token]]
    for side, head in (("s1", s1), ("s2", matches.s2)):
        for name in CLASSES:
            other[f"{side}_{name}"] = batch.labelled(name)[head] & ~(back & (side == "s1"))
    return values | {name: flag.astype(np.float64) for name, flag in other.items()}


def _oddities(batch: Batch) -> BoolArray:
    """Mark the tokens that no correct English tree has.

    They are a second subject of a word, a preposition or an auxiliary of a subject, and a
    subordinator of the root.
    """
    subject, below = batch.labelled("plain_subject"), np.maximum(batch.head, 0)
    subjects = np.flatnonzero(subject & (batch.head >= 0))
    by_head = subjects[np.argsort(batch.head[subjects], kind="stable")]
    odd = np.zeros(len(batch), dtype=bool)
    odd[by_head[1:][np.diff(batch.head[by_head]) == 0]] = True
    depends = batch.head > batch.tokens
    odd |= depends & subject[below] & (batch.labelled("case") | batch.labelled("auxiliary"))
    return odd | (depends & batch.labelled("subordinator") & (batch.head[below] < 0))


def _depth(batch: Batch, tokens: Ints) -> Ints:
    """Return how many heads are above each token, at most `MAX_DEPTH`."""
    depth, ancestor = np.zeros(len(tokens), dtype=np.int32), batch.head[tokens]
    for _ in range(MAX_DEPTH):
        depth += ancestor >= 0
        ancestor = np.where(ancestor >= 0, batch.head[ancestor], -1)
    return depth
