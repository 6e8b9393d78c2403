"""Fit and measure the confidence of pairs (`extract/confidence.json`).

    python -m extract.calibrate folds --treebank FILE ... --output FOLDS
    python -m zoo.parser.train --treebank FOLDS/train-N.conllu --dev DEV --output FOLDS/parser-N
    python -m extract.calibrate fit FOLDS --ratings FILE --novels SPEC ... --output MODEL.json
    python -m extract.calibrate score MODEL.json --treebank FILE ... --output REPORT.json

The training rows are pairs from the raw text of each fold's treebank documents, parsed by the
parser trained on the other folds. A pair is right if gold trees give it too and both sides have a
word Dice of .7 or more with the gold sides, as in `discorpora validate`. In the mode `standalone`
ratings come first: most pairs that differ from the gold trees' were read. That mode is also trained
on rated pairs of novels (right if most readers called it good), parsed by the embedded parser. Each
mode has one logistic model; its penalty is chosen by cross-validation.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corpora.document import Document
from corpora.errors import InputError, amount
from corpora.outside import read_record
from corpora.readers import open_source
from corpora.readers.fields import Fields
from corpora.readers.files import good_record
from corpora.readers.rows import json_rows
from corpora.readers.source import fail, refusing
from corpora.store.atomic import write_json, write_text
from extract import embedded
from extract.confidence import Model, features
from extract.extractor import Extractor
from extract.pairs import Pair
from extract.parsers.spacy import SpacyParser
from extract.validate.strict import DICE

log = logging.getLogger("extract.calibrate")

FOLDS = 5
PIPELINE = embedded.PATH.name
MODES = ("standalone", "recall")
PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
"""Candidate inverse strengths of the L2 penalty."""
RAREST = 20
"""A marker or pattern with fewer rows has no separate weight."""
NO_VOTES: Mapping[tuple[str, str], bool] = {}
Array = NDArray[np.float64]


def write_folds(options: argparse.Namespace) -> None:
    """Write `train-N.conllu` and `held-N.conllu`: each document is held out of one fold."""
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


class Modes(BaseModel):
    standalone: Model
    recall: Model


class Confidences(BaseModel):
    """The file that `fit` writes."""

    en: Modes


class Observation(NamedTuple):
    """A pair, its features (the model's input), and whether it is right (its label)."""

    pair: Pair
    values: dict[str, float]
    right: bool


def pairs_with_features(
    documents: Iterable[Document], mode: str, model: Model | None = None, **settings: Any
) -> Iterator[tuple[Pair, dict[str, float]]]:
    """Yield all pairs of documents with their features; `model` gives the pairs' confidence."""
    for columns in Extractor(mode=mode, min_confidence=0, **settings).columns(documents):
        inputs = columns.batch, columns.matches, columns.sides.spans
        if model is not None:
            columns.confidence = model.confidences(*inputs)
        values = features(*inputs)
        table = np.stack(list(values.values()), axis=1).tolist()
        for pair, row in zip(columns.pairs(), table, strict=True):
            yield pair, dict(zip(values, row, strict=True))


def against_gold(
    path: Path,
    mode: str,
    parser: SpacyParser,
    model: Model | None = None,
    votes: Mapping[tuple[str, str], bool] = NO_VOTES,
) -> list[Observation]:
    """Return the pairs of a parser from the raw text of a treebank, as observations.

    A pair is right if its readers called it good (`votes`). Without readers the gold trees decide.
    """
    documents = list(open_source(f"conllu:{path}"))
    gold = Extractor("gold", mode=mode, min_confidence=0).pairs(documents)
    gold_by_place = {(pair.doc, pair.marker_spans): pair for pair in gold}
    rows: list[Observation] = []
    for pair, values in pairs_with_features(documents, mode, model, parser=parser):
        agrees_with_gold = agrees(pair, gold_by_place.get((pair.doc, pair.marker_spans)))
        rows.append(Observation(pair, values, votes.get(_key(pair), agrees_with_gold)))
    return rows


def _key(pair: Pair) -> tuple[str, str]:
    """Return the key by which ratings name a pair: its document and the digest of its texts."""
    return pair.doc, hashlib.sha256(f"{pair.s1}\n{pair.s2}".encode()).hexdigest()[:12]


class _RatedPair(Fields):
    doc: str
    texts: str
    ratings: list[str]


def read_votes(ratings: Path) -> dict[tuple[str, str], bool]:
    """Return whether most readers called a pair good, by the pair's key (`_key`)."""
    votes: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for where, record in json_rows(ratings):
        with refusing(fail, where):
            entry = _RatedPair.of(good_record(record))
            votes[entry.doc, entry.texts] += [rating == "good" for rating in entry.ratings]
    return {key: sum(good) * 2 > len(good) for key, good in votes.items()}


def agrees(pair: Pair, gold: Pair | None) -> bool:
    """Whether both sides have a word Dice of at least `DICE` with the gold pair's."""
    if gold is None:
        return False
    for sides in ((pair.s1, gold.s1), (pair.s2, gold.s2)):
        words, gold_words = (Counter(re.findall(r"\w+", side.lower())) for side in sides)
        if 2 * (words & gold_words).total() < DICE * (words.total() + gold_words.total()):
            return False
    return True


def rated_pairs(votes: Mapping[tuple[str, str], bool], novels: Sequence[str]) -> list[Observation]:
    """Return the rated pairs of `novels`, without those whose texts changed since the rating."""
    names = {doc for doc, _ in votes}
    options = {"layout": "paragraph", "group": "book", "id": "chapter_id", "title": "chapter"}
    documents = [d for spec in novels for d in open_source(spec, options) if d.id in names]
    return [
        Observation(pair, values, votes[_key(pair)])
        for pair, values in pairs_with_features(documents, "standalone")
        if _key(pair) in votes
    ]


def fit_model(rows: Sequence[Observation]) -> tuple[dict[str, Any], dict[str, float]]:
    """Fit a model to `rows`; return its weights, and its scores in cross-validation by document.

    Raises `InputError` for fewer than `FOLDS` documents, right pairs or wrong pairs.
    """
    right = np.array([row.right for row in rows], dtype=bool)
    groups = [row.pair.doc for row in rows]
    counts = {"document": len({*groups}), "right pair": right.sum(), "wrong pair": (~right).sum()}
    if min(counts.values()) < FOLDS:
        sums = ", ".join(amount(int(number), noun) for noun, number in counts.items())
        raise InputError(f"{sums}: expected {FOLDS} of each at least", hint="give more documents")
    columns = [
        {**values, f"markers {pair.marker}": 1.0, f"patterns {pair.pattern}": 1.0}
        for pair, values, _ in rows
    ]
    counts_by_name = Counter(name for column in columns for name in column if " " in name)
    common = sorted(name for name, count in counts_by_name.items() if count >= RAREST)
    names = [*rows[0].values, *common]
    table = np.array([[column.get(name, 0.0) for name in names] for column in columns])
    folds = list(GroupKFold(FOLDS).split(table, right, groups))
    model = make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(
            Cs=PENALTIES,
            cv=FOLDS,
            scoring="neg_log_loss",
            max_iter=5000,
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
        ),
    )
    confidence = cross_val_predict(model, table, right, cv=folds, method="predict_proba")[:, 1]
    model.fit(table, right)
    scale, logistic = model[0], model[-1]
    weights = logistic.coef_[0] / scale.scale_
    bias = float(logistic.intercept_[0] - weights @ scale.mean_)
    parts: dict[str, dict[str, float]] = {"numbers": {}, "markers": {}, "patterns": {}}
    for name, weight in zip(names, weights.tolist(), strict=True):
        part, item = name.split(" ", 1) if " " in name else ("numbers", name)
        parts[part][item] = round(weight, 4)
    return {"bias": round(bias, 4), **parts}, measures(right, confidence)


def share_of(right: NDArray[np.bool_]) -> dict[str, float]:
    """Return the share of right pairs, and the number of all."""
    return {"right": round(float(right.mean()), 3), "pairs": len(right)}


def measures(right: NDArray[np.bool_], confidence: Array) -> dict[str, float]:
    """Return how well `confidence` [pairs] predicts which pairs are right: Brier score, AUC, ..."""
    share = right.mean()
    return {
        **share_of(right),
        "mean confidence": round(float(confidence.mean()), 3),
        "Brier": round(float(brier_score_loss(right, confidence)), 4),
        "Brier of the share": round(float(share * (1 - share)), 4),
        "log loss": round(float(log_loss(right, confidence)), 4),
        "AUC": round(float(roc_auc_score(right, confidence)), 3),
    }


def fit(options: argparse.Namespace) -> None:
    """Fit the models of both modes to treebanks and rated novels, and write them to a JSON file."""
    models: dict[str, Any] = {}
    votes = read_votes(options.ratings)
    for mode in MODES:
        rows: list[Observation] = []
        used_votes = votes if mode == "standalone" else NO_VOTES
        for number in range(FOLDS):
            parser = SpacyParser()
            parser.nlp = embedded.load(options.folds / f"parser-{number}" / PIPELINE)
            held_out = options.folds / f"held-{number}.conllu"
            rows += against_gold(held_out, mode, parser, votes=used_votes)
        share = np.mean([row.right for row in rows])
        log.info("%s, treebanks: %d pairs, %.3f right", mode, len(rows), share)
        if mode == "standalone":
            novels = rated_pairs(votes, options.novels)
            share = np.mean([row.right for row in novels])
            log.info("novels: %d rated pairs, %.3f good", len(novels), share)
            rows += novels
        models[mode], scores = fit_model(rows)
        log.info("%s, held-out documents: %s", mode, scores)
    write_json(options.output, {"en": models})


def score(options: argparse.Namespace) -> None:
    """Write for each mode the calibration in ten bins, the Brier score, and precision by yield."""
    models = read_record(Confidences, options.model).en
    report: dict[str, Any] = {}
    for mode in MODES:
        rows: list[Observation] = []
        for path in options.treebank:
            rows += against_gold(path, mode, SpacyParser(), getattr(models, mode))
        confidence = np.array([row.pair.confidence for row in rows])
        right = np.array([row.right for row in rows])
        bins = np.minimum((confidence * 10).astype(int), 9)
        reliability, curve = [], []
        for number in np.unique(bins):
            mean = round(float(confidence[bins == number].mean()), 3)
            reliability.append({"confidence": mean, **share_of(right[bins == number])})
        for least in (step / 20 for step in range(20) if (confidence >= step / 20).any()):
            curve.append({"min_confidence": least, **share_of(right[confidence >= least])})
        report[mode] = {**measures(right, confidence), "reliability": reliability, "curve": curve}
    write_json(options.output, report)


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
    scoring.add_argument("model", type=Path)
    scoring.set_defaults(run=score)
    for command in (folds, scoring):
        command.add_argument("--treebank", type=Path, nargs="+", required=True, help="CoNLL-U")
    for command in (folds, fitting, scoring):
        command.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        options.run(options)
    except (OSError, ValueError) as error:  # a library's error too is one line
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
