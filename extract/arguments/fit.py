"""Fit the models of arguments, and measure them.

    python -m extract.arguments.fit fit --treebank GUM --gdtb GDTB --folds FOLDS --output MODEL.npz
    python -m extract.arguments.fit score --treebank GUM --gdtb GDTB --output REPORT.json

`GUM` has the folders `train` and `dev` of CoNLL-U files, `GDTB` is a folder of relations, `FOLDS`
that of `extract.calibrate folds`. The training rows are the relations of GDTB's training documents,
each in the gold tree and, from raw text, in those of the two parsers that did not see the document.
The head of a gold argument is the token above most of its words.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from corpora.document import Document, Spans
from corpora.readers import open_source
from corpora.readers.pdtb import read_gold
from corpora.rng import stream
from corpora.sentences import split
from corpora.store.atomic import write_json
from extract.arguments import Model, arguments
from extract.arguments.boosting import DEPTH, Boosted
from extract.arguments.candidates import (
    Candidates,
    first_features,
    first_heads,
    mark_features,
    second_features,
    second_heads,
)
from extract.arguments.spans import child_features, children_of_heads
from extract.arguments.trees import KINDS, NOWHERE, Marks, Trees
from extract.calibrate import FOLDS, run_command
from extract.clauses import S1
from extract.connectives import LANGUAGE, Connective, connectives
from extract.connectives.fit import fold_parser
from extract.connectives.model import english
from extract.parse import Ints, ParsedDocument, Parser
from extract.parsers import get_parser
from extract.patterns import load_patterns
from extract.trees import Batch, CompiledPatterns
from extract.validate import strict
from extract.validate.material import Gold, Item, Material, WordMap, connective, gather

log = logging.getLogger("extract.arguments.fit")
BOOSTING = {
    "max_iter": 120,
    "learning_rate": 0.12,
    "max_depth": DEPTH,
    "max_leaf_nodes": None,
    "min_samples_leaf": 30,
    "l2_regularization": 5.0,
    "max_bins": 64,
}
OTHER = "adverbial"
"""The class of a gold connective that the lexicon lacks."""
STAGE, SEED, RESAMPLES = "arguments.bootstrap", 0, 1000
PRIOR = 5
"""Relations of the average habits that count beside those of a connective."""
Columns = dict[str, NDArray[Any]]


@dataclass
class Relations:
    """Gold relations in parsed documents: their connectives, and the words of each argument as
    tokens (`sides`: Arg1, Arg2), with the heads of these. `documents` are their ids."""

    trees: Trees
    marks: Marks
    documents: list[str]
    sides: tuple[list[set[int]], list[set[int]]]
    heads: tuple[Ints, Ints]


def gold_connectives(
    documents: Sequence[Document], parses: Sequence[ParsedDocument], gold: Mapping[str, Document]
) -> Iterator[list[tuple[Connective, Gold, dict[int, int]]]]:
    """Yield for each document its explicit relations with the connective as one of the parse, and
    the token of each word of the gold text."""
    kinds = _kinds()
    material = gather((), [gold[document.id] for document in documents], documents, ())
    of_document: defaultdict[int, list[Gold]] = defaultdict(list)
    for relation in material.gold:
        of_document[relation.doc].append(relation)
    for document, parse, text in zip(documents, parses, material.texts, strict=True):
        to_words = WordMap(text, document.text)
        token_of: dict[int, int] = {}
        for token, span in enumerate(zip(parse.start.tolist(), parse.end.tolist(), strict=True)):
            for word in to_words([span]):
                token_of.setdefault(word, token)
        found = []
        for relation in of_document[text.index]:
            tokens = tuple(sorted({token_of[w] for w in relation.connective if w in token_of}))
            if tokens:
                kind = kinds.get(relation.marker, OTHER)
                item = Connective(document.id, 0, tokens, (), relation.marker, kind, 1.0, "", 1.0)
                found.append((item, relation, token_of))
        yield found


def relations_in(
    documents: Sequence[Document], parses: Sequence[ParsedDocument], gold: Mapping[str, Document]
) -> Relations:
    """Return the gold relations of parsed documents (Universal Dependencies, one string table)."""
    patterns = CompiledPatterns(load_patterns(LANGUAGE), ["and"], parses[0].strings)
    trees = Trees(Batch(documents, parses, patterns))
    shift = np.cumsum([0, *(len(parse.head) for parse in parses)]).tolist()
    items: list[Connective] = []
    places, ids = [], []
    sides: tuple[list[set[int]], list[set[int]]] = [], []
    by_document = gold_connectives(documents, parses, gold)
    for document, start, found in zip(documents, shift, by_document, strict=False):
        for item, relation, token_of in found:
            items.append(item)
            ids.append(document.id)
            places.append(tuple(token + start for token in item.tokens))
            for side, words in zip(sides, (relation.arg1, relation.arg2), strict=True):
                tokens = {token_of[w] + start for w in words if w in token_of}
                side.append({token for token in tokens if not trees.punct[token]})
    heads = tuple(np.array([_top(trees.head, tokens) for tokens in side]) for side in sides)
    return Relations(trees, Marks.of(trees.batch, items, places), ids, sides, (heads[0], heads[1]))


def _top(head: Ints, tokens: set[int]) -> int:
    """Return the token above most of `tokens`, of those whose head is not one of them."""
    tops: Counter[int] = Counter()
    for token in sorted(tokens):
        top = token
        while int(head[top]) in tokens:
            top = int(head[top])
        tops[top] += 1
    return tops.most_common(1)[0][0] if tops else NOWHERE


def habits_of(relations: Relations) -> dict[str, NDArray[np.float32]]:
    """Return the habits of connectives (`Model.habits`) in some relations."""
    trees, marks, (first, second) = relations.trees, relations.marks, relations.heads
    same = trees.row[first] == trees.row[second]
    rows = np.stack(
        [
            ~same,
            same & (first < second),
            trees.inside(second, first),
            trees.conjunct[second] == first,
        ]
    ).T.astype(float)
    known = (first != NOWHERE) & (second != NOWHERE)
    base = rows[known].mean(axis=0)
    of_text: defaultdict[str, list[NDArray[Any]]] = defaultdict(list)
    for number in np.flatnonzero(known).tolist():
        of_text[marks.text[number]].append(rows[number])
    shares = {
        text: (np.sum(table, axis=0) + PRIOR * base) / (len(table) + PRIOR)
        for text, table in sorted(of_text.items())
    }
    return {text: share.astype(np.float32) for text, share in ({"": base} | shares).items()}


@dataclass
class Rows:
    """Training rows of one model: features by name, labels and weights [rows]."""

    columns: Columns
    label: NDArray[np.bool_]
    weight: NDArray[np.floating]

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts."""
        names = parts[0].columns
        return cls(
            {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
            np.concatenate([part.label for part in parts]),
            np.concatenate([part.weight for part in parts]),
        )


def training_rows(
    relations: Relations, habits: Mapping[str, NDArray[np.float32]]
) -> dict[str, Rows]:
    """Return the rows of each model (`STEPS`) from some relations."""
    trees, marks, (first, second) = relations.trees, relations.marks, relations.heads
    of_marks = mark_features(trees, marks, habits)

    def rows(candidates: Candidates, columns: Columns, heads: Ints) -> Rows:
        label = candidates.head == heads[candidates.mark]
        return Rows(columns, label, np.ones(len(label)))

    seconds = second_heads(trees, marks)
    firsts = first_heads(trees, marks, second)
    children = children_of_heads(trees, marks, first, second)
    label = np.zeros(len(children[0]), dtype=bool)
    size = np.zeros(len(label))
    for row, (number, token, code) in enumerate(zip(*map(Ints.tolist, children), strict=True)):
        edges = range(int(trees.left[token]), int(trees.right[token]) + 1)
        words = [word for word in edges if not trees.punct[word]]
        size[row] = len(words)
        kept = relations.sides[code != S1][number].intersection(words)
        label[row] = 2 * len(kept) >= len(words)
    columns = child_features(trees, marks, of_marks, (first, second), children)
    return {
        "second": rows(seconds, second_features(trees, marks, of_marks, seconds), second),
        "first": rows(firsts, first_features(trees, marks, of_marks, second, firsts), first),
        "child": Rows(columns, label, np.sqrt(size)),
    }


def boosted(rows: Rows) -> Boosted:
    """Fit boosted trees to some rows; features that no tree asks for are left out."""
    names = list(rows.columns)
    table = np.stack([rows.columns[name].astype(np.float32) for name in names], axis=1)
    model = HistGradientBoostingClassifier(**BOOSTING, early_stopping=False, random_state=0)
    model.fit(table, rows.label, rows.weight)
    asked, thresholds, values = [], [], []
    for (predictor,) in model._predictors:
        tree = predictor.nodes
        # scikit-learn's node for each node of the complete tree; a leaf fills the places below it.
        nodes = [0]
        for place in range(2**DEPTH - 1):
            node = nodes[place]
            leaf = tree["is_leaf"][node]
            nodes += (node, node) if leaf else (int(tree["left"][node]), int(tree["right"][node]))
        inner, leaves = nodes[: 2**DEPTH - 1], nodes[2**DEPTH - 1 :]
        asked.append(tree["feature_idx"][inner])
        thresholds.append(tree["num_threshold"][inner])
        values.append(tree["value"][leaves])
    used, index = np.unique(asked, return_inverse=True)
    return Boosted(
        tuple(names[column] for column in used),
        float(np.ravel(model._baseline_prediction)[0]),
        index.reshape(np.shape(asked)).astype(np.int16),
        np.array(thresholds, dtype=np.float32),
        np.array(values, dtype=np.float32),
    )


def fit_model(views: Sequence[Relations]) -> Model:
    """Fit the models to relations; the first view's give the habits."""
    habits = habits_of(views[0])
    rows = [training_rows(view, habits) for view in views]
    models = {}
    for step in rows[0]:
        models[step] = boosted(Rows.joined([of_view[step] for of_view in rows]))
        log.info("fitted the model %r", step)
    return Model(models, habits)


def documents_of(source: Path, gold: Mapping[str, Document]) -> list[Document]:
    """Return the documents of CoNLL-U that have gold relations."""
    return [d for d in open_source(f"conllu:{source}") if d.id in gold]


def raw(documents: Iterable[Document]) -> list[Document]:
    """Return documents with sentences by the rules for raw text."""
    return [
        d.with_sentences(split(d.text, d.paragraphs or Spans(), language=LANGUAGE))
        for d in documents
    ]


def training_views(treebank: Path, folds: Path, gold: Mapping[str, Document]) -> list[Relations]:
    """Return the relations of the training documents in gold trees, and in those of raw text."""
    documents = documents_of(treebank / "train", gold)
    views = [relations_in(documents, list(get_parser("gold").parse(documents)), gold)]
    for number in range(FOLDS):
        parser = fold_parser(folds, number)
        documents = raw(documents_of(folds / f"held-{number}.conllu", gold))
        parses = list(parser.parse(documents))
        views.append(relations_in(documents, parses, gold))
        if parser.check:
            parses = [parse.second or parse for parse in parses]
            views.append(relations_in(documents, parses, gold))
        log.info("parsed the documents of fold %d", number)
    return views


def material(
    documents: Sequence[Document], parser: Parser, gold: Mapping[str, Document], known: bool
) -> Material:
    """Return gold relations and those of the models as the material of `discorpora validate`.

    With `known`, the connectives are the gold ones.
    """
    result = gather((), [gold[document.id] for document in documents], documents, ())
    parses = list(parser.parse(documents))
    items: list[list[Connective]]
    if known:
        of_gold = gold_connectives(documents, parses, gold)
        items = [[item for item, *_ in found] for found in of_gold]
    else:
        trees = "gold" if parser.name == "gold" else "parsed"
        items = list(connectives(documents, parses, trees=trees))
    found = arguments(documents, parses, items)
    columns = zip(result.texts, documents, parses, items, found, strict=True)
    for text, document, parse, marks, sides in columns:
        to_words = WordMap(text, document.text)
        for item, side in zip(marks, sides, strict=True):
            spans = [(int(parse.start[t]), int(parse.end[t])) for t in item.tokens]
            words = map(to_words, (spans, side.arg1, side.arg2))
            result.pairs.append(Item(text.index, connective(item.text), *words))
    return result


def scores(material: Material) -> dict[str, Any]:
    """Return occurrence, exact and Dice of all explicit relations, and by class of connective.

    They are those of `discorpora validate` with every connective as a marker.
    """
    markers = sorted({item.marker for item in (*material.gold, *material.pairs)})
    kinds = _kinds()
    of_kind = np.array([[kinds.get(marker, OTHER) == kind for marker in markers] for kind in KINDS])
    counts = np.einsum("dmc,km->dkc", strict.count(material, markers, "other"), of_kind.astype(int))
    weights = strict.draws(len(counts), RESAMPLES, stream(SEED, STAGE))
    result = strict.summary(counts, KINDS, weights)
    return {"all": result["overall"], **result["per_marker"]}


def _kinds() -> dict[str, str]:
    """Return the class of each connective of the lexicon, as PDTB writes it ("if then")."""
    lexicon = english().lexicon
    return {connective(w): k for w, k in zip(lexicon.words, lexicon.classes, strict=True)}


def fit(options: argparse.Namespace) -> None:
    """Fit the models and write them."""
    gold = {document.id: document for document in read_gold(options.gdtb)}
    fit_model(training_views(options.treebank, options.folds, gold)).save(options.output)


def score(options: argparse.Namespace) -> None:
    """Measure the shipped models on dev, and write a JSON report."""
    gold = {document.id: document for document in read_gold(options.gdtb)}
    documents = documents_of(options.treebank / "dev", gold)
    report = {}
    for trees, texts in (("gold", documents), ("embedded", raw(documents))):
        parser = get_parser(trees, **({"check": True} if trees == "embedded" else {}))
        for known in (True, False):
            name = f"{trees} trees, {'gold' if known else 'predicted'} connectives"
            report[name] = scores(material(texts, parser, gold, known))
            log.info("%s: %s", name, report[name]["all"])
    write_json(options.output, report)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands `fit` and `score`; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    fitting = commands.add_parser("fit", help="fit the models")
    fitting.add_argument("--folds", type=Path, required=True)
    fitting.set_defaults(run=fit)
    scoring = commands.add_parser("score", help="measure the shipped models on dev")
    scoring.set_defaults(run=score)
    for command in (fitting, scoring):
        command.add_argument("--treebank", type=Path, required=True, help="folder of GUM")
        command.add_argument("--gdtb", type=Path, required=True, help="folder of GDTB")
        command.add_argument("--output", type=Path, required=True)
    return run_command(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
