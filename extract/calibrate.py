"""Fit and measure the confidence of pairs (`extract/confidence.json`).

    python -m extract.calibrate folds --treebank FILE ... --output FOLDS
    python -m zoo.parser.train --treebank FOLDS/train-N.conllu --dev DEV --output FOLDS/parser-N
    python -m zoo.parser.train --reverse ... --output FOLDS/second-N
    python -m extract.calibrate fit FOLDS --ratings FILE --novels SPEC ... --output MODEL.json
    python -m extract.calibrate score --treebank FILE ... --output REPORT.json

The training rows are candidates from the raw text of each fold's treebank documents, parsed by the
two parsers that were trained on the other fold. Each mode has two models: one of the first parser's
candidates, and one of both parsers' candidates with features of their agreement. In the mode
`recall` a candidate is right if gold trees give it too, and both sides have a word Dice of .7 or
more with the gold sides, as in `discorpora validate`. In the mode `standalone` readers decide
(`right_probabilities`), and rated pairs of novels are added, parsed by the embedded parsers.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import logging
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold

from corpora.document import Document
from corpora.errors import InputError, amount
from corpora.readers import open_source
from corpora.readers.fields import Fields
from corpora.readers.files import good_record
from corpora.readers.rows import json_rows
from corpora.readers.source import fail, refusing
from corpora.store.atomic import write_json, write_text
from extract import embedded
from extract.confidence import DEPTH
from extract.extractor import Extractor, PairColumns
from extract.pairs import Pair
from extract.parsers.spacy import SpacyParser
from extract.validate.strict import DICE

log = logging.getLogger("extract.calibrate")

FOLDS = 2
"""Parts of the treebank, each parsed by parsers that were trained on the others."""
CROSS_FOLDS = 5
"""Folds of the cross-validation of a model, each of whole documents."""
PIPELINE = embedded.PATH.name
MODES = ("standalone", "recall")
BOOSTING = {"n_estimators": 60, "learning_rate": 0.15, "min_samples_leaf": 30, "subsample": 0.7}
RATED_WEIGHT = 3.0
"""The weight of a candidate that readers rated, in the fit of a model; the others weigh 1."""
MIN_ROWS = 20
"""A marker or pattern is a feature if at least this many training rows have it."""
Array = NDArray[np.float64]


def write_folds(options: argparse.Namespace) -> None:
    """Write treebank files as `train-N.conllu` and `held-N.conllu`, a document held out once."""
    parts: list[list[str]] = [[] for _ in range(FOLDS)]
    for path in options.treebank:
        for text in re.split(r"(?m)^(?=# newdoc id)", path.read_text(encoding="utf-8")):
            if name := re.match(r"# newdoc id = (.*)", text):
                digest = hashlib.sha256(name[1].encode()).hexdigest()
                parts[int(digest, 16) % FOLDS].append(text)
            elif "\t" in text:
                expected = "expected '# newdoc id = NAME' before the first sentence"
                raise InputError(expected, where=str(path), hint="a fold holds whole documents")
    options.output.mkdir(parents=True, exist_ok=True)
    for number, fold in enumerate(parts):
        training = [text for other, part in enumerate(parts) if other != number for text in part]
        write_text(options.output / f"held-{number}.conllu", "".join(fold))
        write_text(options.output / f"train-{number}.conllu", "".join(training))


class Observation(NamedTuple):
    """A candidate with its features and two judgements of it.

    `gold` is `agreement_with_gold`, "" in a text without gold trees. `good` is whether most readers
    called the pair good, None for a candidate that nobody rated.
    """

    pair: Pair
    features: dict[str, float]
    gold: str
    good: bool | None


def pairs_with_features(
    documents: Iterable[Document], mode: str, parser: SpacyParser
) -> Iterator[tuple[Pair, dict[str, float]]]:
    """Yield all candidates of documents as pairs, with their features.

    If a second parser checks the parser, the candidates of both are yielded.
    """
    extractor = Extractor(parser, mode=mode, min_confidence=0)
    for first, second in extractor.candidates(documents):
        for own, other in ((first, second), (second, first)) if second else ((first, None),):
            columns = own.features(other)
            table = np.stack(list(columns.values()), axis=1).tolist()
            for pair, row in zip(PairColumns.of(own, None).pairs(), table, strict=True):
                yield pair, dict(zip(columns, row, strict=True))


def read_with_gold_pairs(path: Path, mode: str) -> tuple[list[Document], dict[Any, Pair]]:
    """Return the documents of a treebank file, and the pairs from its gold trees by marker."""
    documents = list(open_source(f"conllu:{path}"))
    gold = Extractor("gold", mode=mode, min_confidence=0).pairs(documents)
    return documents, {_marker_key(pair): pair for pair in gold}


def observe_treebank(
    path: Path, mode: str, parser: SpacyParser, votes: Mapping[tuple[str, str], bool]
) -> list[Observation]:
    """Return a parser's candidates from a treebank's raw text, each with its agreement with gold
    and the readers' `votes`."""
    documents, gold = read_with_gold_pairs(path, mode)
    rows = []
    for pair, features in pairs_with_features(documents, mode, parser):
        agreement = agreement_with_gold(pair, gold.get(_marker_key(pair)))
        rows.append(Observation(pair, features, agreement, votes.get(_rating_key(pair))))
    return rows


def _marker_key(pair: Pair) -> tuple[str, Any]:
    return pair.doc, pair.marker_spans


def _rating_key(pair: Pair) -> tuple[str, str]:
    """Return the key of a pair in the ratings: its document's id and the digest of its texts."""
    return pair.doc, hashlib.sha256(f"{pair.s1}\n{pair.s2}".encode()).hexdigest()[:12]


class _RatedPair(Fields):
    doc: str
    texts: str
    ratings: list[str]


def read_votes(ratings: Path) -> dict[tuple[str, str], bool]:
    """Read ratings (JSON Lines): whether most readers called each pair good, by `_rating_key`."""
    votes: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for where, record in json_rows(ratings):
        with refusing(fail, where):
            entry = _RatedPair.of(good_record(record))
            votes[entry.doc, entry.texts] += [rating == "good" for rating in entry.ratings]
    return {key: sum(good) * 2 > len(good) for key, good in votes.items()}


def agreement_with_gold(pair: Pair, gold: Pair | None) -> str:
    """Compare a pair with the gold pair of the same marker: `same`, `other`, or `none` without one.

    `same`: each side has a word Dice of at least `DICE` with the gold side.
    """
    if gold is None:
        return "none"
    for sides in ((pair.s1, gold.s1), (pair.s2, gold.s2)):
        words, gold_words = (Counter(re.findall(r"\w+", side.lower())) for side in sides)
        if 2 * (words & gold_words).total() < DICE * (words.total() + gold_words.total()):
            return "other"
    return "same"


def observe_rated_pairs(
    votes: Mapping[tuple[str, str], bool], novels: Sequence[str], parser: SpacyParser
) -> list[Observation]:
    """Return the rated pairs in the sources `novels`, except pairs whose texts have changed."""
    ids = {doc for doc, _ in votes}
    options = {"layout": "paragraph", "group": "book", "id": "chapter_id", "title": "chapter"}
    documents = [d for spec in novels for d in open_source(spec, options) if d.id in ids]
    return [
        Observation(pair, features, "", votes[_rating_key(pair)])
        for pair, features in pairs_with_features(documents, "standalone", parser)
        if _rating_key(pair) in votes
    ]


def right_probabilities(rows: Sequence[Observation], mode: str) -> Array:
    """Return the probability that each observation is right [rows]: the labels of the model.

    In the mode `recall` it is 1 or 0 by the gold trees, in `standalone` by the readers. A candidate
    that nobody rated gets the share of good candidates among rated candidates with the same `gold`.
    """
    if mode == "recall":
        return np.array([float(row.gold == "same") for row in rows])
    votes_by_gold: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.good is not None:
            votes_by_gold[row.gold].append(row.good)
    shares = {gold: float(np.mean(votes)) for gold, votes in votes_by_gold.items()}
    log.info("good by readers: %s", {gold: round(share, 3) for gold, share in shares.items()})
    return np.array(
        [shares.get(row.gold, 0.5) if row.good is None else float(row.good) for row in rows]
    )


def fit_model(rows: Sequence[Observation], mode: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Fit a model to `rows`; return its trees, and its `quality` in cross-validation by document.

    In the mode `standalone` only rated candidates count in the quality. Raises `InputError` for
    fewer than `CROSS_FOLDS` documents, right pairs or wrong pairs.
    """
    # Labels and weights
    label, groups = right_probabilities(rows, mode), [row.pair.doc for row in rows]
    rated = np.array([mode == "standalone" and row.good is not None for row in rows], dtype=bool)
    weight = np.where(rated, RATED_WEIGHT, 1.0)
    right, wrong = (label > 0.5).sum(), (label <= 0.5).sum()
    counts = {"document": len({*groups}), "right pair": right, "wrong pair": wrong}
    if min(counts.values()) < CROSS_FOLDS:
        sums = ", ".join(amount(int(number), noun) for noun, number in counts.items())
        raise InputError(
            f"{sums}: expected {CROSS_FOLDS} of each at least", hint="give more documents"
        )
    # The table of features, with markers and patterns that occur often
    feature_rows = [
        {**row.features, f"marker {row.pair.marker}": 1.0, f"pattern {row.pair.pattern}": 1.0}
        for row in rows
    ]
    counts_by_name = Counter(name for row in feature_rows for name in row if " " in name)
    common = sorted(name for name, count in counts_by_name.items() if count >= MIN_ROWS)
    names = [*rows[0].features, *common]
    table = np.array([[row.get(name, 0.0) for name in names] for row in feature_rows])
    # The quality in cross-validation; then the model of all rows
    confidence = np.zeros(len(rows))
    for train, held_out in GroupKFold(CROSS_FOLDS).split(table, label, groups):
        model = fit_trees(table[train], label[train], weight[train])
        confidence[held_out] = model.predict_proba(table[held_out])[:, 1]
    decided = (label == 0) | (label == 1)
    scores = quality(label[decided] == 1, confidence[decided])
    return to_json_trees(fit_trees(table, label, weight), names), scores


def fit_trees(table: Array, label: Array, weight: Array) -> GradientBoostingClassifier:
    """Fit boosted trees that predict from features whether a pair is right.

    `table` has the features [rows, names], `label` the probability that a row is right [rows], and
    `weight` the weight of a row [rows]. A row that is right with probability p counts p times as
    right and 1 - p times as wrong.
    """
    model = GradientBoostingClassifier(**BOOSTING, max_depth=DEPTH, random_state=0)
    weights = np.concatenate([weight * label, weight * (1 - label)])
    answers = np.repeat([1, 0], len(label))
    used = weights > 0
    return model.fit(np.concatenate([table, table])[used], answers[used], weights[used])


def to_json_trees(model: GradientBoostingClassifier, names: Sequence[str]) -> dict[str, Any]:
    """Return a fitted model in the form of `extract.confidence.Model`: complete trees of `DEPTH`.

    `names` are the features, the columns of the table; features that no tree uses are left out.
    """
    share = model.init_.class_prior_[1]
    asked, thresholds, values = [], [], []
    for (regressor,) in model.estimators_:
        tree = regressor.tree_
        # scikit-learn's node for each node of the complete tree; a leaf fills the places below it.
        nodes = [0]
        for place in range(2**DEPTH - 1):
            node = nodes[place]
            left, right = tree.children_left[node], tree.children_right[node]
            nodes += (node, node) if left < 0 else (left, right)
        inner, leaves = nodes[: 2**DEPTH - 1], nodes[2**DEPTH - 1 :]
        asked.append([max(int(tree.feature[node]), 0) for node in inner])
        thresholds.append([round(float(tree.threshold[node]), 5) for node in inner])
        steps = [float(tree.value[leaf, 0, 0]) * model.learning_rate for leaf in leaves]
        values.append([round(step, 5) for step in steps])
    # Number only the features that are used.
    used = sorted({column for tree in asked for column in tree})
    return {
        "names": [names[column] for column in used],
        "bias": round(float(np.log(share / (1 - share))), 5),
        "asked": [[used.index(column) for column in tree] for tree in asked],
        "thresholds": thresholds,
        "values": values,
    }


def precision_of(right: NDArray[np.bool_]) -> dict[str, float]:
    """Return the share of right pairs and the number of pairs, from flags [pairs]."""
    return {"right": round(float(right.mean()), 3), "pairs": len(right)}


def quality(right: NDArray[np.bool_], confidence: Array) -> dict[str, float]:
    """Return how well `confidence` [pairs] predicts `right` [pairs]: Brier score, AUC, ..."""
    share = right.mean()
    return {
        **precision_of(right),
        "mean confidence": round(float(confidence.mean()), 3),
        "Brier": round(float(brier_score_loss(right, confidence)), 4),
        "Brier of the share": round(float(share * (1 - share)), 4),
        "log loss": round(float(log_loss(right, confidence)), 4),
        "AUC": round(float(roc_auc_score(right, confidence)), 3),
    }


def fit(options: argparse.Namespace) -> None:
    """Fit two models for each mode, without and with a second parser; write them to a JSON file."""
    models: dict[str, Any] = {}
    votes = read_votes(options.ratings)
    for mode, checked in itertools.product(MODES, (False, True)):
        rows: list[Observation] = []
        for number in range(FOLDS):
            parser = _parser(options.folds / f"parser-{number}", options.folds / f"second-{number}")
            parser.check = checked
            rows += observe_treebank(options.folds / f"held-{number}.conllu", mode, parser, votes)
        if mode == "standalone":
            rows += observe_rated_pairs(votes, options.novels, SpacyParser(check=checked))
        name = f"{mode}_checked" if checked else mode
        models[name], scores = fit_model(rows, mode)
        log.info("%s: %d candidates; held-out documents: %s", name, len(rows), scores)
    write_text(options.output, json.dumps({"en": models}, separators=(",", ":")) + "\n")


def _parser(first: Path, second: Path) -> SpacyParser:
    """Return a parser with a first and a second pipeline from folders of `zoo.parser.train`."""
    parser = SpacyParser()
    parser.second = embedded.load(second / PIPELINE)
    parser.nlp = embedded.load(first / PIPELINE)
    for name in parser.second.vocab.strings:
        parser.nlp.vocab.strings.add(name)
    return parser


def score(options: argparse.Namespace) -> None:
    """Measure the shipped models on treebank files, and write a JSON report.

    It has for each model its `quality`, the precision in ten bins of confidence (`reliability`),
    and the precision and number of pairs above each threshold (`curve`).
    """
    report: dict[str, Any] = {}
    for mode, checked in itertools.product(MODES, (False, True)):
        extractor = Extractor(SpacyParser(check=checked), mode=mode, min_confidence=0)
        scored: list[tuple[float, bool]] = []
        for path in options.treebank:
            documents, gold = read_with_gold_pairs(path, mode)
            for pair in extractor.pairs(documents):
                agreement = agreement_with_gold(pair, gold.get(_marker_key(pair)))
                scored.append((pair.confidence or 0.0, agreement == "same"))
        confidence, right = np.array(scored).T
        right = right.astype(bool)
        bins = np.minimum((confidence * 10).astype(int), 9)
        reliability, curve = [], []
        for number in np.unique(bins):
            mean = round(float(confidence[bins == number].mean()), 3)
            reliability.append({"confidence": mean, **precision_of(right[bins == number])})
        for least in (step / 20 for step in range(20) if (confidence >= step / 20).any()):
            curve.append({"min_confidence": least, **precision_of(right[confidence >= least])})
        name = f"{mode}_checked" if checked else mode
        report[name] = {**quality(right, confidence), "reliability": reliability, "curve": curve}
    write_json(options.output, report)


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Run the command that `arguments` name (`None`: those of the process), and log its progress.

    `run` is the command's function in the parsed options. Returns the exit status: 2 for an error
    of input or output, which is written to stderr as one line.
    """
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        options.run(options)
    except (OSError, ValueError) as error:  # a library's error too is one line
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands `folds`, `fit` and `score`; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    folds = commands.add_parser("folds", help="write the documents of each fold")
    folds.set_defaults(run=write_folds)
    fitting = commands.add_parser("fit", help="fit the models of both modes")
    fitting.add_argument("folds", type=Path, help="folder with held-N.conllu and parser-N")
    fitting.add_argument("--ratings", type=Path, required=True, help="ratings.jsonl")
    fitting.add_argument("--novels", nargs="+", required=True, metavar="SPEC")
    fitting.set_defaults(run=fit)
    scoring = commands.add_parser("score", help="measure a model on documents with gold trees")
    scoring.set_defaults(run=score)
    for command in (folds, scoring):
        command.add_argument("--treebank", type=Path, nargs="+", required=True, help="CoNLL-U")
    for command in (folds, fitting, scoring):
        command.add_argument("--output", type=Path, required=True)
    return run_command(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
