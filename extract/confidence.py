"""The probability that a pair is right, by boosted decision trees over features of its parse.

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
HEAD_CLASSES = ("main_clause", "conjunct", "reported_clause", "adverbial_clause")
MAX_DEPTH = 20
DEPTH = 3
"""Questions that each decision tree asks."""
DEFAULT_THRESHOLD = 0.8
"""On novels of held-out documents readers called 93 of 100 pairs good from here on
(`docs/results/confidence.md`)."""
OTHER_PARSERS = ("spacy:", "stanza:")
"""Parsers with other errors than those that the model was fitted on."""
NOWHERE = -1
"""Stands for the index of a missing token, which has no tag."""


class Model(TomlTable):
    """Boosted decision trees that give the probability that a candidate is right.

    Each tree is complete and has `DEPTH` levels of questions. `asked` and `thresholds` have a row
    for each tree: node n asks whether feature `asked[n]` (an index into `names`) is above
    `thresholds[n]`; the next node is 2n + 1 if not, 2n + 2 if so. `values` are those of the leaves.
    The sum of `bias` and one leaf of each tree is the log-odds that the candidate is right.
    """

    names: tuple[str, ...]
    """Features: those of `Candidates.features`, `marker NAME` and `pattern ID`."""
    bias: float
    asked: tuple[tuple[int, ...], ...]
    thresholds: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]

    @cached_property
    def _questions(self) -> tuple[Ints, Floats, Ints]:
        """The distinct questions, so that each is answered once.

        Returns their features and thresholds, and the index of each node's question [trees, nodes].
        """
        nodes = np.stack([np.array(self.asked), np.array(self.thresholds)])
        questions, index = np.unique(nodes.reshape(2, -1), axis=1, return_inverse=True)
        thresholds = questions[1].astype(np.float32)[:, None]
        return questions[0].astype(np.int32), thresholds, index.reshape(nodes.shape[1:])

    def confidences(
        self, candidates: Candidates, other: Candidates | None = None
    ) -> NDArray[np.float32]:
        """Return the probability that each candidate is right, from 0 to 1 [candidates].

        `other` has the candidates of the other parser, if two parsers are used.
        """
        patterns, matches = candidates.batch.patterns, candidates.matches
        pattern_ids = [row.id for row in patterns.table.patterns]
        table = np.zeros((len(self.names), len(candidates)), dtype=np.float32)
        columns = candidates.features(other)
        for number, name in enumerate(self.names):
            kind, _, item = name.partition(" ")
            if kind == "marker":
                if item in patterns.names:
                    table[number] = matches.sequence == patterns.names.index(item)
            elif kind == "pattern":
                if item in pattern_ids:
                    table[number] = matches.row == pattern_ids.index(item)
            else:
                table[number] = columns[name]
        return self.of_table(table)

    def of_table(self, table: NDArray[Any]) -> NDArray[np.float32]:
        """Return the probabilities [candidates] from a table of features [`names`, candidates]."""
        feature, threshold, question = self._questions
        answers = table[feature] > threshold  # [questions, candidates]
        tree_count, node_count = question.shape
        node = np.zeros((tree_count, table.shape[1]), dtype=np.int8)  # where each candidate is
        for level in range(DEPTH):
            first = 2**level - 1
            answer = answers[question[:, first]]
            for number in range(first + 1, 2 * first + 1):
                answer = np.where(node == number, answers[question[:, number]], answer)
            node = 2 * node + 1 + answer
        leaf = node.astype(np.intp) - node_count
        score = self.bias + np.take_along_axis(np.array(self.values), leaf, axis=1).sum(axis=0)
        return (1 / (1 + np.exp(-score))).astype(np.float32)


@cache
def load_model(language: str, mode: str, checked: bool = False) -> Model | None:
    """Return the confidence model of a language and mode; None if the language has none.

    With `checked`, it is the model for pairs of one parser that a second parser checks.
    """
    models = json.loads(MODEL.read_text(encoding="utf-8"))
    weights = models.get(language, {}).get(f"{mode}_checked" if checked else mode)
    return None if weights is None else Model.of(weights, str(MODEL))


def threshold(language: str, mode: str, minimum: float | None, parser: str = "embedded") -> float:
    """Return the minimum confidence of a pair: `minimum`, or the default if `minimum` is None.

    The default is .8 in the mode `standalone` with a parser that the language's model was fitted
    on, else 0. Raises `ConfigError` for a minimum above 0 in a language without a model.
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
    """Return features of matches by name, as columns [matches]: lengths, distances, depths, tags.

    `spans` are those of S1 and of S2. A number n (words, distance, depth, ...) is given as
    `log(1 + n)`; all other features are 0 or 1.
    """
    comma, clause_break = batch.listed("comma"), batch.listed("clause_break")
    word = ~batch.labelled("punctuation")
    # Flags to count in sentences and in sides
    counted = {
        "words": word,
        "clauses": batch.tagged("clause") & word,
        "commas": comma,
        "breaks": clause_break,
        "parataxis": batch.labelled("main_clause") & (batch.head >= 0),
        "oddities": _oddities(batch),
    }
    # Sums over the tokens before each token: a difference counts the flags in a range of tokens.
    sums = {name: np.concatenate([[0], np.cumsum(flag)]) for name, flag in counted.items()}
    # The sentence of each marker, as the tokens `begin:end`
    back = matches.s1 == PREVIOUS
    row = batch.row[matches.first]
    begin, end = batch.offsets[row], batch.offsets[row + 1]
    # The tokens of a span are looked up by document (the high bits) and place in its text.
    keys = (batch.row_doc[batch.row].astype(np.int64) << 32) + batch.start
    document = batch.row_doc[row].astype(np.int64) << 32
    bounds: list[
        Ints
    ] = []  # of each side, the first token of every span and the one after its last
    ends: list[Ints] = []  # of each side, its first and its last token
    for column in spans:
        owner = np.repeat(document, column.counts)
        bounds.append(np.searchsorted(keys, owner + np.stack([column.start, column.end])))
        first = bounds[-1][0, column.offsets[:-1]]
        last = bounds[-1][1, column.offsets[1:] - 1] - 1
        # A previous sentence that is not parsed has no tokens.
        ends.append(np.where(first <= last, np.stack([first, last]), NOWHERE))
    # Counts in the sentence and in each side
    counts: dict[str, Ints] = {}
    for name, total in sums.items():
        counts[f"sentence_{name}"] = total[end] - total[begin]
        for side, column, (first, behind) in zip(("s1", "s2"), spans, bounds, strict=True):
            by_span = total[behind] - total[first]
            counts[f"{side}_{name}"] = np.add.reduceat(by_span, column.offsets[:-1])
    # Counts around the marker and between the heads (a previous sentence has no head here)
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
    # Flags: order and punctuation
    before = np.maximum(matches.first - 1, 0)
    inside = matches.first > begin
    xpos = batch.column("xpos")
    flags = {
        "previous": back,
        "s2_before_s1": (s2_first < s1_first) & ~back,
        "comma_before": inside & comma[before],
        "break_before": inside & clause_break[before],
        "quotes": batch.rows_with(batch.listed("quote"))[row],
        "no_mark_between": (s2_first < s1_first) & ~back & word[np.maximum(s1_first - 1, 0)],
        "same_tag": ~back & (xpos[s1] == xpos[matches.s2]),
    }
    # Flags: the kind of word at each place, by UPOS
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
        has_kind = np.zeros(len(strings) + 1, dtype=bool)  # the last value is that of NOWHERE
        has_kind[codes] = True
        for place, token in places.items():
            flags[f"{place}={kind}"] = has_kind[upos[token]]
    for side, head in (("s1", s1), ("s2", matches.s2)):
        for name in HEAD_CLASSES:
            flags[f"{side}_{name}"] = batch.labelled(name)[head] & ~(back & (side == "s1"))
    return values | {name: flag.astype(np.float64) for name, flag in flags.items()}


def _oddities(batch: Batch) -> BoolArray:
    """Mark tokens with dependencies that show a wrong English tree.

    They are a second subject of a word, a preposition or an auxiliary of a subject, and a
    subordinator of the root.
    """
    subject, head = batch.labelled("plain_subject"), np.maximum(batch.head, 0)
    subjects = np.flatnonzero(subject & (batch.head >= 0))
    # Sorted by head, a second subject follows one with the same head.
    by_head = subjects[np.argsort(batch.head[subjects], kind="stable")]
    odd = np.zeros(len(batch), dtype=bool)
    odd[by_head[1:][np.diff(batch.head[by_head]) == 0]] = True
    before_head = batch.head > batch.tokens
    odd |= before_head & subject[head] & (batch.labelled("case") | batch.labelled("auxiliary"))
    return odd | (before_head & batch.labelled("subordinator") & (batch.head[head] < 0))


def _depth(batch: Batch, tokens: Ints) -> Ints:
    """Return the number of ancestors of each token, at most `MAX_DEPTH`."""
    depth, ancestor = np.zeros(len(tokens), dtype=np.int32), batch.head[tokens]
    for _ in range(MAX_DEPTH):
        depth += ancestor >= 0
        ancestor = np.where(ancestor >= 0, batch.head[ancestor], -1)
    return depth
