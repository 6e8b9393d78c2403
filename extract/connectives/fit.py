"""Fit the models of connectives, and measure them.

    python -m extract.connectives.fit fit --treebank GUM --gdtb GDTB --folds FOLDS --output FILE
    python -m extract.connectives.fit score --treebank GUM --gdtb GDTB --output REPORT

`GUM` has the folders `train` and `dev` of CoNLL-U files, `GDTB` is a folder of relations. Training
rows are the candidates of GDTB's training documents, each in the gold tree and, from raw text, in
the trees of the two parsers that did not see the document (`extract.calibrate folds`). A logistic
regression decides which are connectives, one for each sense which have it.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from corpora.align import align
from corpora.document import Document, Spans
from corpora.readers import open_source
from corpora.readers.pdtb import read_gold
from corpora.sentences import split
from corpora.store.atomic import replacing, write_json
from extract.calibrate import FOLDS, PIPELINE, run_command
from extract.connectives.candidates import Lexicon
from extract.connectives.features import SINGLE, Keys
from extract.connectives.model import (
    BITS,
    SENSE_BITS,
    TREES,
    Candidates,
    Model,
    load_model,
    probability,
    slots,
)
from extract.embedded import load
from extract.parse import Ints, ParsedDocument, Parser
from extract.parsers import get_parser
from extract.parsers.spacy import SpacyParser
from extract.patterns import load_patterns
from extract.trees import Batch, CompiledPatterns

log = logging.getLogger("extract.connectives.fit")
WEIGHTS = (0.4, 0.7, 1.0)
SENSE_WEIGHTS = (0.3, 0.4, 1.0)
"""What a category counts for alone, with the class of the connective, with the connective."""
VIEWS = {"gold": {"gold": 1.0}, "parsed": {"gold": 0.3, "parsed": 2.0}}
"""What a row counts for in the fit for each kind of trees, by its own; those of two parsers share
it."""
COSTS = {"gold": 0.12, "parsed": 0.03}
"""The inverse of the regularisation, by kind of trees."""
SENSE_COST = 0.05
DRAWN = {"class": 5.0, "connective": 2.0}
"""Rows that the senses of all count for in those of a class, and of the class for a connective."""
RAREST = 3
SENSE_RAREST = 2
"""A feature in fewer rows is left out."""
PARTS = 5
"""Parts of the documents in cross-validation, for the threshold."""
Labels = NDArray[np.bool_]
Words = frozenset[int]


@dataclass
class Example:
    """A document's candidates, and the words and senses of its gold connectives."""

    id: str
    candidates: Candidates
    gold: dict[Words, set[str]]
    words: list[Words]
    """The words of the gold text that each candidate covers."""

    @property
    def senses(self) -> list[set[str]]:
        """The gold senses of each candidate; none if it is not a connective."""
        return [self.gold.get(words, set()) for words in self.words]

    @property
    def right(self) -> Labels:
        """Which candidates are connectives."""
        return np.array([words in self.gold for words in self.words], dtype=bool)


def level2(sense: str) -> str:
    """Return the first two levels of a sense."""
    return ".".join(sense.split(".")[:2])


def example(document: Document, parses: Sequence[ParsedDocument], gold: Document) -> Example:
    """Return the candidates of a document in the trees of each parser, with its gold relations."""
    starts = [0, *(i + 1 for i, character in enumerate(gold.text) if character == " ")]

    def words(spans: Iterator[tuple[int, int]] | Sequence[tuple[int, int]]) -> Words:
        edges = [(np.searchsorted(starts, (a, b - 1), side="right") - 1).tolist() for a, b in spans]
        return frozenset(word for first, last in edges for word in range(first, last + 1))

    relations: defaultdict[Words, set[str]] = defaultdict(set)
    for relation in gold.relations or []:
        if relation.kind == "Explicit":
            relations[words(relation.connective_spans)] |= set(map(level2, relation.senses))
    table = load_patterns("en", "ud")
    patterns = CompiledPatterns(table, ["and"], parses[0].strings)
    candidates = Candidates.of([Batch([document], [parse], patterns) for parse in parses])
    offsets = align(document.text, gold.text, where=f"document {document.id!r}")
    spans = np.stack([parses[0].start, parses[0].end - 1], axis=1)
    places = offsets[spans].tolist()
    covered = [
        words([(places[t][0], places[t][1] + 1) for t in candidates.places.tokens(row)])
        for row in range(len(candidates.places))
    ]
    return Example(document.id, candidates, dict(relations), covered)


def examples(
    documents: Sequence[Document], parser: Parser, gold: dict[str, Document], parsers: int
) -> list[Example]:
    """Return the candidates of the documents that have gold relations.

    `parsers`: 1 for the trees of the first parser, 2 for those of the one that checks it too.
    """
    known = [document for document in documents if document.id in gold]
    if parser.name != "gold":
        known = [_split(document) for document in known]
    result = []
    for document, parse in zip(known, parser.parse(known), strict=True):
        both = [parse, parse.second or parse][:parsers]
        result.append(example(document, both, gold[document.id]))
    return result


def _split(document: Document) -> Document:
    return document.with_sentences(split(document.text, document.paragraphs or Spans()))


def fold_parser(folds: Path, number: int) -> SpacyParser:
    """Return the parsers of a fold: the first one, and the second if its folder is there."""
    parser = SpacyParser()
    second = folds / f"second-{number}" / PIPELINE
    parser.check = second.is_dir()
    parser.nlp = load(folds / f"parser-{number}" / PIPELINE)
    if parser.check:
        parser.second = load(second)
        for name in parser.second.vocab.strings:
            parser.nlp.vocab.strings.add(name)
    return parser


def training(treebank: Path, gold: dict[str, Document], folds: Path) -> dict[str, list[Example]]:
    """Return the examples by the trees that they are from."""
    documents = list(open_source(f"conllu:{treebank / 'train'}"))
    views = {"gold": examples(documents, get_parser("gold"), gold, 1)}
    names = {document.id for document in documents}
    views["parsed"] = []
    for number in range(FOLDS):
        parser = fold_parser(folds, number)
        held = list(open_source(f"conllu:{folds / f'held-{number}.conllu'}"))
        held = [document for document in held if document.id in names]
        views["parsed"] += examples(held, parser, gold, 1 + parser.check)
    return views


class Matrix:
    """Hashed features as sparse rows, without those that are rare in the training rows."""

    def __init__(
        self, features: Keys, rarest: int = RAREST, weights: tuple[float, ...] = WEIGHTS
    ) -> None:
        names, counts = np.unique(features, return_counts=True)
        self.names, self.weights = names[counts >= rarest], np.array(weights)

    def rows(self, features: Keys) -> csr_matrix:
        """Return features [rows, features] as a sparse matrix [rows, `names`]."""
        flat = features.ravel()
        column = np.minimum(np.searchsorted(self.names, flat), len(self.names) - 1)
        known = self.names[column] == flat
        row = np.repeat(np.arange(len(features)), features.shape[1])[known]
        value = np.tile(self.weights, len(flat) // len(self.weights))[known].astype(np.float32)
        return csr_matrix((value, (row, column[known])), shape=(len(features), len(self.names)))

    def table(self, weights: NDArray[np.float64], features: Keys, bits: int) -> NDArray[np.float64]:
        """Return weights [`names`, outputs] in a table of 2 to the power of `bits` rows."""
        flat = features.ravel()
        scale = np.tile(self.weights, len(flat) // len(self.weights))
        _, at = np.unique(flat, return_index=True)
        scales = scale[at][np.isin(flat[at], self.names)]
        table = np.zeros((1 << bits, weights.shape[1]))
        np.add.at(table, slots(self.names, bits), weights * scales[:, None])
        return table


def regression(rows: csr_matrix, right: Labels, weight: Any, cost: float) -> LogisticRegression:
    """Fit a logistic regression."""
    fit = LogisticRegression(C=cost, solver="liblinear", max_iter=200, tol=1e-3)
    return fit.fit(rows, right, sample_weight=weight)


def part_of(name: str) -> int:
    """Return the part of a document in cross-validation."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % PARTS


@dataclass
class Rows:
    """Training rows: features, entries of the lexicon, labels, senses, parts and weights."""

    features: Keys
    entry: Ints
    right: Labels
    senses: list[set[str]]
    part: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, views: dict[str, list[Example]], counts: dict[str, float]) -> Rows:
        """Return the rows of views, those of raw text once for each parser.

        `counts` has what the rows of a view count for.
        """
        parts = []
        for view, count in counts.items():
            for item in views[view]:
                tables = item.candidates.features
                parts += [(item, table, count / len(tables)) for table in tables]
        sizes = [len(features) for _, features, _ in parts]
        return cls(
            np.concatenate([features for _, features, _ in parts]),
            np.concatenate([item.candidates.places.entry for item, _, _ in parts]),
            np.concatenate([item.right for item, _, _ in parts]),
            [senses for item, _, _ in parts for senses in item.senses],
            np.repeat([part_of(item.id) for item, _, _ in parts], sizes),
            np.repeat([weight for _, _, weight in parts], sizes),
        )


def f1(members: Sequence[Example], scores: Sequence[Any], least: float) -> dict[str, float]:
    """Return precision, recall and F1 of exact spans (`corpora.align` maps them to the gold's)."""
    right = extracted = gold = 0
    for item, probabilities in zip(members, scores, strict=True):
        rows = item.candidates.chosen(probabilities, least)
        extracted, gold = extracted + len(rows), gold + len(item.gold)
        right += int(item.right[rows].sum()) if rows else 0
    figures = {"p": right / max(extracted, 1), "r": right / max(gold, 1)}
    figures["f1"] = 2 * right / max(extracted + gold, 1)
    return {name: round(value, 4) for name, value in figures.items()}


def best_threshold(members: Sequence[Example], scores: Sequence[Any]) -> float:
    """Return the threshold with the highest F1."""
    steps = [round(0.3 + step / 50, 2) for step in range(20)]
    return max(steps, key=lambda least: f1(members, scores, least)["f1"])


def usual_senses(
    entry: Ints, senses: NDArray[np.float64], asked: Ints, own: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    """Return log-odds [asked, senses] of how usual each sense is for entries of the lexicon.

    `entry` [rows] and `senses` [rows, senses] are those of the training rows. The shares of a
    connective are drawn to those of its class, so that a rare one has some (`DRAWN`). `own` [asked,
    senses] is left out of the counts: a training row must not know its own sense.
    """
    kinds = Lexicon.english().classes
    kind = np.array([sorted(set(kinds)).index(name) for name in kinds])
    counts = np.zeros((len(kinds), senses.shape[1]))
    np.add.at(counts, entry, senses)
    of_class = np.zeros((kind.max() + 1, senses.shape[1]))
    np.add.at(of_class, kind, counts)
    share = (senses.sum(axis=0) + 0.5) / (senses.sum() + 0.5 * senses.shape[1])
    for table, row, drawn in (
        (of_class, kind[asked], DRAWN["class"]),
        (counts, asked, DRAWN["connective"]),
    ):
        rest = np.maximum(table[row] - own, 0)
        share = (rest + drawn * share) / (rest.sum(axis=1, keepdims=True) + drawn)
    result: NDArray[np.float64] = np.log(share / (1 - share))
    return result


def two_columns(right: Labels) -> NDArray[np.float64]:
    """Return labels [rows] as counts of connectives and of others [rows, 2]."""
    return np.stack([right, ~right], axis=1).astype(np.float64)


def with_usual(rows: csr_matrix, usual: NDArray[np.float64]) -> csr_matrix:
    """Return rows with one more feature: the log-odds [rows, 2] of being a connective."""
    return hstack([rows, usual[:, :1]]).tocsr()


def fit_senses(views: dict[str, list[Example]]) -> dict[str, Any]:
    """Fit the senses to the connectives in gold trees; return their fields of `Model`."""
    rows = Rows.of(views, VIEWS["gold"])
    features = rows.features[rows.right][:, SINGLE]
    entry = np.concatenate([e.candidates.places.entry[e.right] for e in views["gold"]])
    gold = [senses for senses, right in zip(rows.senses, rows.right, strict=True) if right]
    names = sorted(set().union(*gold))
    table = np.array([[float(name in senses) for name in names] for senses in gold])
    usual = usual_senses(entry, table, entry, own=table)
    matrix = Matrix(features, SENSE_RAREST, SENSE_WEIGHTS)
    sparse = matrix.rows(features)
    fits = [
        regression(hstack([sparse, usual[:, [k]]]).tocsr(), table[:, k] > 0, None, SENSE_COST)
        for k in range(len(names))
    ]
    weights = np.concatenate([fit.coef_ for fit in fits]).T
    senses, step = stepped(matrix.table(weights[:-1], features, SENSE_BITS))
    every = np.arange(len(Lexicon.english().words))
    return {
        "senses": tuple(names),
        "sense": senses,
        "sense_step": step,
        "sense_bias": np.array([fit.intercept_[0] for fit in fits], dtype=np.float32),
        "sense_usual": (weights[-1] * usual_senses(entry, table, every)).astype(np.float16),
    }


def fit_model(views: dict[str, list[Example]], thresholds: dict[str, float]) -> Model:
    """Fit the detection for each kind of trees, and the senses to gold trees."""
    tables: list[NDArray[np.int8]] = []
    steps: list[float] = []
    biases: list[float] = []
    usual_tables: list[NDArray[np.float64]] = []
    gold = Rows.of(views, VIEWS["gold"])
    counts = two_columns(gold.right)
    every = np.arange(len(Lexicon.english().words))
    for trees in TREES:
        rows = Rows.of(views, VIEWS[trees])
        matrix = Matrix(rows.features)
        usual = usual_senses(gold.entry, counts, rows.entry, two_columns(rows.right))
        sparse = with_usual(matrix.rows(rows.features), usual)
        fitted = regression(sparse, rows.right, rows.weight, COSTS[trees])
        weights = fitted.coef_.T
        table, step = stepped(matrix.table(weights[:-1], rows.features, BITS)[:, 0])
        tables, steps = [*tables, table], [*steps, step]
        biases.append(fitted.intercept_[0])
        usual_tables.append(weights[-1] * usual_senses(gold.entry, counts, every)[:, 0])
    return Model(
        detection=np.stack(tables),
        detection_step=np.array(steps, dtype=np.float32),
        detection_bias=np.array(biases, dtype=np.float32),
        detection_usual=np.array(usual_tables, dtype=np.float16),
        thresholds=np.array([thresholds[trees] for trees in TREES], dtype=np.float32),
        **fit_senses(views),
    )


def stepped(table: NDArray[np.float64]) -> tuple[NDArray[np.int8], float]:
    """Return weights as whole numbers of steps, and the step."""
    step = float(np.abs(table).max()) / 127
    return np.round(table / step).astype(np.int8), step


def cross_validated(views: dict[str, list[Example]], trees: str) -> float:
    """Return the threshold with the best F1 of models that were fitted to other documents."""
    rows, gold = Rows.of(views, VIEWS[trees]), Rows.of(views, VIEWS["gold"])
    members, scores = [], []
    for part in range(PARTS):
        kept, others = rows.part != part, gold.part != part
        known = gold.entry[others], two_columns(gold.right[others])
        matrix = Matrix(rows.features[kept])
        usual = usual_senses(*known, rows.entry[kept], two_columns(rows.right[kept]))
        table = with_usual(matrix.rows(rows.features[kept]), usual)
        fitted = regression(table, rows.right[kept], rows.weight[kept], COSTS[trees])
        for item in (item for item in views[trees] if part_of(item.id) == part):
            usual = usual_senses(*known, item.candidates.places.entry)
            tables = [with_usual(matrix.rows(f), usual) for f in item.candidates.features]
            members.append(item)
            score = np.mean([*map(fitted.decision_function, tables)], axis=0)
            scores.append(item.candidates.joined(probability(score)))
    least = best_threshold(members, scores)
    log.info("cross-validation, %s: %s from %s on", trees, f1(members, scores, least), least)
    return least


def sense_figures(members: Sequence[Example], model: Model) -> dict[str, float]:
    """Return the accuracy of senses of gold connectives at levels 1 and 2.

    A connective with two senses is right with one of them; one that is no candidate has the most
    frequent sense.
    """
    first, second, total = 0, 0, 0
    default = model.senses[int(model.sense_bias.argmax())]
    for item in members:
        rows = np.flatnonzero(item.right).tolist()
        probabilities = item.candidates.judged(model, rows)
        answers = {
            item.words[row]: model.senses[p.argmax()]
            for row, p in zip(rows, probabilities, strict=True)
        }
        for words, senses in item.gold.items():
            answer = answers.get(words, default)
            total += 1
            second += answer in senses
            first += answer.split(".")[0] in {sense.split(".")[0] for sense in senses}
    return {"level 1": round(first / total, 4), "level 2": round(second / total, 4)}


def gold_documents(folder: Path) -> dict[str, Document]:
    """Return the documents of GDTB, with their relations, by id."""
    return {document.id: document for document in read_gold(folder)}


def fit(options: argparse.Namespace) -> None:
    """Fit the models and write them; cross-validation finds the threshold."""
    views = training(options.treebank, gold_documents(options.gdtb), options.folds)
    thresholds = options.thresholds or [cross_validated(views, trees) for trees in TREES]
    save(fit_model(views, dict(zip(TREES, thresholds, strict=True))), options.output)


def save(model: Model, path: Path) -> None:
    """Write a model as `load_model` reads it."""
    arrays = {field.name: np.array(getattr(model, field.name)) for field in fields(Model)}
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def score(options: argparse.Namespace) -> None:
    """Write F1 of exact spans and accuracy of senses, in gold trees and from raw text."""
    gold = gold_documents(options.gdtb)
    documents = list(open_source(f"conllu:{options.treebank / 'dev'}"))
    model = load_model(options.model) if options.model else load_model()
    report: dict[str, Any] = {}
    for name, trees, parser, parsers in (
        ("gold trees", "gold", get_parser("gold"), 1),
        ("raw text, embedded parser", "parsed", get_parser("embedded"), 1),
        ("raw text, both parsers", "parsed", get_parser("embedded", check=True), 2),
    ):
        members = examples(documents, parser, gold, parsers)
        scores = [item.candidates.probabilities(model, trees) for item in members]
        figures = f1(members, scores, model.threshold(trees))
        report[name] = {**figures, "senses of gold connectives": sense_figures(members, model)}
        log.info("%s: %s", name, report[name])
    report["gold connectives"] = sum(len(item.gold) for item in members)
    report["thresholds"] = {trees: round(model.threshold(trees), 2) for trees in TREES}
    write_json(options.output, report)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `fit` or `score`; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    fitting = commands.add_parser("fit", help="fit the models to GDTB's training documents")
    fitting.add_argument("--folds", type=Path, required=True, help="of extract.calibrate folds")
    fitting.add_argument("--thresholds", type=float, nargs=2, metavar=("GOLD", "PARSED"))
    fitting.set_defaults(run=fit)
    scoring = commands.add_parser("score", help="measure a model on GDTB's development documents")
    scoring.add_argument("--model", type=Path, help="instead of the shipped one")
    scoring.set_defaults(run=score)
    for command in (fitting, scoring):
        command.add_argument("--treebank", type=Path, required=True, help="folder with train, dev")
        command.add_argument("--gdtb", type=Path, required=True, help="folder with gold, raw")
        command.add_argument("--output", type=Path, required=True)
    return run_command(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
