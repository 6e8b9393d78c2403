"""Does training on connectives help with implicit relations? MiniLM before and after, on GDTB.

    python -m tests.bench.measure_transfer --novels BUILD/datasets --gdtb DATA/gdtb \
        --backbone MINILM --output OUT [--frozen] [--finetune] [--conditions a b c d] \
        [--seeds 3] [--only REGEX]

The task is the level-1 sense of an implicit relation. Documents, not relations, are divided into
folds: each is judged by models that saw no relation of it, and all that is chosen (vectors,
penalty, weights of the classes, epochs, the filter of condition c) is chosen in the other folds.
The conditions are (a) the backbone as it is, and the backbone trained on pairs of novels: (b) to
predict the marker, (c) the same without pairs whose sense shifts once the marker is gone, (d) to
predict the sense of an explicit relation. `chosen` takes in each fold the one of b to d that was
best in the other folds.

Each finished part is a file in OUT/parts and is not run again, so changed settings need another
OUT. OUT/figures.json and OUT/table.md are written from the parts that are there.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corpora.readers import open_source
from corpora.schemas import schema, text_columns
from corpora.store.atomic import is_complete, read_json, staged, write_json, write_text
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from corpora.tasks import BUILDERS
from zoo import train
from zoo.evaluate.classification import PairClassifier
from zoo.evaluate.encoders import BackboneEncoder, load_encoder
from zoo.evaluate.scores import (
    Outcomes,
    ci_and_units,
    confusion_matrix,
    differences,
    macro_f1,
    resampled_counts,
)
from zoo.labelled import load

SENSES = ("Comparison", "Contingency", "Expansion", "Temporal")
CONDITIONS = ("a", "b", "c", "d")
CHOSEN = "chosen"
PROTOCOLS = ("frozen", "finetune")
DATASETS = {"b": "dissent@balanced", "c": "dissent@balanced", "d": "explicit_relations"}
PAIRS, VALIDATION_PAIRS = 4000, 200
"""The most pairs of novels to train on and to validate with."""
PENALTIES, CLASS_WEIGHTS = (1e-4, 1e-3, 1e-2, 1e-1), (None, "balanced")
INNER_FOLDS = 3
COMMON = {
    "pooling": "mean",  # as MiniLM's own vectors
    "max_tokens": 128,
    "learning_rate": 1e-4,
    "attention_dropout": 0,
    "workers": 0,
    "empty_classes": "warn",
}
FINETUNING = {
    "epochs": 3,
    "patience": 0,
    "classes": 0,
    "columns": '["arg1", "arg2"]',
    "bf16": "true",
}
CARD = Card("pairs", "pairs of texts", "none", {}, "none")


@dataclass(frozen=True)
class Relations:
    """Relations of GDTB, one an entry: document, both arguments, connective, number of the sense.

    An argument does not contain the connective.
    """

    docs: np.ndarray
    first: np.ndarray
    second: np.ndarray
    connectives: np.ndarray
    senses: np.ndarray

    @classmethod
    def read(cls, folder: Path, builder: str) -> Relations:
        """Read the relations that a builder of PDTB's takes; the first sense counts, at level 1.

        An implicit relation whose sense is "NoRel" is left out; "Cmparison" is a misprint in GDTB.
        """
        relations: Any = BUILDERS.find(builder).of({"level": 1})
        rows = [
            (document.id, *texts, SENSES.index(sense))
            for document in open_source(f"pdtb:{folder}")
            for (label, *texts, _), *_ in relations.candidates(document, lambda reason: None)
            if (sense := label.replace("Cmparison", "Comparison")) in SENSES
        ]
        docs, first, second, connectives, senses = zip(*rows, strict=True)
        texts = (np.array(column, object) for column in (first, second, connectives))
        return cls(np.array(docs), *texts, np.array(senses))

    def of(self, rows: np.ndarray) -> Relations:
        """Return the relations that `rows` names, by number or by a mask."""
        return Relations(*(column[rows] for column in vars(self).values()))


def folds(relations: Relations, number: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (training rows, test rows) of each fold; a document's rows are in one test fold."""
    splitter = StratifiedGroupKFold(number, shuffle=True, random_state=seed)
    return [*splitter.split(relations.senses, relations.senses, relations.docs)]


def as_pairs(first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    return [*zip(first, second, strict=True)]


def features(encoder: BackboneEncoder, relations: Relations) -> dict[str, np.ndarray]:
    """Return frozen vectors of the relations, `[relations, width]`, by the way they are made.

    `pair` and `below` encode both arguments as one input and take the mean of the last and of the
    last but one layer; `sentences` encodes each alone: [x1, x2, x1 * x2, |x1 - x2|].
    """
    below = f"mean:{encoder.layers - 1}"
    pair = encoder.vectors(as_pairs(relations.first, relations.second), ["mean", below])
    x1, x2 = np.split(encoder.encode([*relations.first, *relations.second]), 2)
    sentences = np.concatenate([x1, x2, x1 * x2, np.abs(x1 - x2)], axis=1)
    return {"pair": pair["mean"], "below": pair[below], "sentences": sentences}


def regression(penalty: float, class_weight: str | None) -> Any:
    """Return a logistic regression on standardised features; `penalty` is scikit-learn's C."""
    logistic = LogisticRegression(C=penalty, class_weight=class_weight, max_iter=200, tol=1e-3)
    return make_pipeline(StandardScaler(), logistic)


def fitted(
    vectors: Mapping[str, np.ndarray], relations: Relations, seed: int
) -> tuple[Any, dict[str, Any]]:
    """Fit the regression whose vectors and settings have the best macro F1 by cross-validation.

    Returns it and what was chosen. The parts of the cross-validation are documents, too.
    """
    inner = folds(relations, INNER_FOLDS, seed)
    best: dict[str, Any] = {"f1": -1.0}
    for name, values in vectors.items():
        for penalty in PENALTIES:
            for weights in CLASS_WEIGHTS:
                model = regression(penalty, weights)
                predicted = cross_val_predict(model, values, relations.senses, cv=inner)
                f1 = f1_of(relations.senses, predicted)
                if f1 > best["f1"]:
                    best = {"f1": f1, "vectors": name, "c": penalty, "class_weight": weights}
    model = regression(best["c"], best["class_weight"])
    return model.fit(vectors[best["vectors"]], relations.senses), best


def f1_of(gold: np.ndarray, predicted: np.ndarray) -> float:
    return macro_f1(confusion_matrix(gold, predicted, len(SENSES)))


def write_pairs(
    folder: Path, labels: Sequence[str], splits: Mapping[str, tuple[Any, Any, Any]]
) -> None:
    """Write a dataset folder of labelled pairs: (first, second, label) columns of each split."""
    columns = schema(label=labels, **text_columns("arg1", "arg2"))
    with (
        staged(folder) as partial,
        DatasetFolder(partial, folder.name, Stage(folder.name, 1, folder.name), CARD) as dataset,
    ):
        for split, (first, second, label) in splits.items():
            rows = zip(first, second, map(int, label), strict=True)
            writer = dataset.writer("default", split, columns)
            writer.extend([{"arg1": one, "arg2": two, "label": sense} for one, two, sense in rows])
            dataset.count_licence("", len(label))
        dataset.finish("default")


def run_recipe(recipe: str, data: str, output: Path, **settings: Any) -> None:
    """Train a recipe unless its model is there already."""
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    train.train([recipe, "--dataset", data, "--output", str(output), *words])


@dataclass(frozen=True)
class Part:
    """A condition judged on one fold: what is kept in one file."""

    protocol: str
    condition: str
    seed: int
    fold: int

    @property
    def name(self) -> str:
        return f"{self.protocol}-{self.condition}-seed{self.seed}-fold{self.fold}"


@dataclass(frozen=True)
class Experiment:
    """The data and folders of all parts; models are trained as parts ask for them."""

    options: argparse.Namespace

    @cached_property
    def relations(self) -> Relations:
        """The implicit relations of all documents."""
        return Relations.read(self.options.gdtb, "pdtb_implicit")

    @cached_property
    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return folds(self.relations, self.options.folds)

    @property
    def output(self) -> Path:
        return Path(self.options.output)

    def parts(self) -> Iterator[Part]:
        """All parts that were asked for, frozen ones first."""
        seeds, numbers = range(self.options.seeds), range(self.options.folds)
        for each in product(PROTOCOLS, seeds, self.options.conditions, numbers):
            protocol, seed, condition, fold = each
            yield Part(protocol, condition, seed, fold)

    def file(self, part: Part) -> Path:
        return self.output / "parts" / f"{part.name}.json"

    def run(self, part: Part) -> None:
        """Write a part's file: the predictions of the fold's relations, and what was chosen."""
        if not self.file(part).is_file():
            rows, _ = self.folds[part.fold]
            seen = set(self.relations.docs[rows])
            assert seen.isdisjoint(self.relations.docs[self.folds[part.fold][1]])
            judge: Callable[[Part], dict[str, Any]] = getattr(self, part.protocol)
            write_json(self.file(part), {**judge(part)})

    def frozen(self, part: Part) -> dict[str, Any]:
        """Train a regression on frozen vectors of the condition's encoder."""
        vectors = features(self.encoder(self.model(part)), self.relations)
        rows, test = self.folds[part.fold]
        training = {name: values[rows] for name, values in vectors.items()}
        model, chosen = fitted(training, self.relations.of(rows), part.seed)
        predicted = model.predict(vectors[chosen["vectors"]][test])
        return {"predicted": predicted.tolist(), "inner": chosen["f1"], "chosen": chosen}

    def finetune(self, part: Part) -> dict[str, Any]:
        """Fine-tune the condition's encoder; a part of the training documents is for validation."""
        rows, test = self.folds[part.fold]
        relations, held = self.relations.of(rows), self.relations.of(test)
        inner_train, inner_validation = folds(relations, 8, part.seed)[0]
        data = self.output / "data" / f"gdtb-seed{part.seed}-fold{part.fold}"
        if not is_complete(data):
            splits = {"train": inner_train, "validation": inner_validation}
            columns = {
                split: (chosen.first, chosen.second, chosen.senses)
                for split, chosen in ((split, relations.of(r)) for split, r in splits.items())
            }
            write_pairs(data, SENSES, columns)
        folder = self.output / "models" / part.name
        settings = {**COMMON, **FINETUNING, "seed": part.seed, "backbone": self.model(part)}
        run_recipe("dissent/pdtb", str(data), folder, **settings)
        results = read_json(folder / "results.json")
        classifier = PairClassifier.load(folder)
        predicted = classifier.predict(classifier.rows(list(held.first), list(held.second)))
        shutil.rmtree(folder)
        chosen = {"step": results["training"]["best_step"]}
        f1 = results["metrics"]["validation"]["f1"]["value"]
        return {"predicted": predicted.tolist(), "inner": f1, "chosen": chosen}

    def encoder(self, model: str) -> BackboneEncoder:
        return load_encoder(model, cache=self.output / "vectors")

    def model(self, part: Part) -> str:
        """Return the encoder of a part's condition, trained now if it is not there yet."""
        if part.condition == "a":
            return str(self.options.backbone)
        seed = part.seed % self.options.pretraining_seeds
        data = f"{self.options.novels}/{DATASETS[part.condition]}"
        name = f"{part.condition}-seed{seed}"
        if part.condition == "c":  # its filter depends on the fold
            data, name = str(self.filtered(data, part.fold)), f"{name}-fold{part.fold}"
        folder = self.output / "models" / name
        if not is_complete(folder):
            sizes = {"max_train_rows": PAIRS, "max_validation_rows": VALIDATION_PAIRS}
            limits = {**sizes, "max_eval_rows": VALIDATION_PAIRS}
            settings = {**COMMON, **limits, "seed": seed, "backbone": self.options.backbone}
            run_recipe("dissent/transformer", data, folder, **settings)
        return str(folder)

    def filtered(self, data: str, fold: int) -> Path:
        """Write the pairs whose sense is predicted alike with and without the marker.

        One regression on the backbone's vectors of both arguments reads the marker in front of the
        second argument, as it stood, the other does not; both are fitted to the explicit relations
        of the training documents of `fold`. After Liu, Wan and Strube (2024).
        """
        folder = self.output / "data" / f"filtered-fold{fold}"
        if is_complete(folder):
            return folder
        novels = load(data, max_train_rows=PAIRS, max_eval_rows=VALIDATION_PAIRS, empty="warn")
        pairs = {split: (*novels.texts(split), novels.gold(split)) for split in novels.tables}
        first, second, gold = pairs["train"]
        marked = [
            f"{novels.labels[label]} {text}" for label, text in zip(gold, second, strict=True)
        ]
        explicit = Relations.read(self.options.gdtb, "pdtb_explicit")
        seen = set(self.relations.docs[self.folds[fold][0]])
        explicit = explicit.of(np.array([doc in seen for doc in explicit.docs]))
        encoder = self.encoder(self.options.backbone)
        answers = []
        for own, theirs in (
            (explicit.second, second),
            (explicit.connectives + " " + explicit.second, marked),
        ):
            values = encoder.encode(as_pairs(explicit.first, own))
            model, _ = fitted({"pair": values}, explicit, seed=0)
            answers.append(model.predict(encoder.encode(as_pairs(first, theirs))))
        kept = np.flatnonzero(answers[0] == answers[1])
        pairs["train"] = ([first[i] for i in kept], [second[i] for i in kept], gold[kept])
        write_pairs(folder, novels.labels, pairs)
        return folder


def collect(experiment: Experiment, protocol: str) -> dict[str, dict[int, np.ndarray]]:
    """Return the predictions for all relations, by condition and seed, where all folds are done."""
    options = experiment.options
    done: dict[Part, dict[str, Any]] = {}
    for condition, seed, fold in product(CONDITIONS, range(options.seeds), range(options.folds)):
        part = Part(protocol, condition, seed, fold)
        if experiment.file(part).is_file():
            done[part] = read_json(experiment.file(part))
    predictions: dict[str, dict[int, np.ndarray]] = {}
    trained = [name for name in CONDITIONS[1:] if any(part.condition == name for part in done)]
    for condition in (*CONDITIONS, CHOSEN):
        for seed in range(options.seeds):
            predicted = np.full(len(experiment.relations.docs), -1)
            for fold, (_, test) in enumerate(experiment.folds):
                names = trained if condition == CHOSEN else [condition]
                found = [done.get(Part(protocol, name, seed, fold)) for name in names]
                if found and all(found):
                    best = max(filter(None, found), key=lambda each: each["inner"])
                    predicted[test] = best["predicted"]
            if (predicted >= 0).all() and (condition != CHOSEN or len(trained) > 1):
                predictions.setdefault(condition, {})[seed] = predicted
    return predictions


def figures(experiment: Experiment) -> list[dict[str, Any]]:
    """Return a row for each protocol and condition: macro F1, accuracy, and the difference to (a).

    The predictions of all seeds count together; intervals draw documents, with all their rows.
    """
    rows, relations = [], experiment.relations
    docs, doc = np.unique(relations.docs, return_inverse=True)
    for protocol in PROTOCOLS:
        predictions = collect(experiment, protocol)
        for condition, by_seed in predictions.items():
            seeds = sorted(set(by_seed) & set(predictions.get("a", {})))
            if not seeds:
                continue
            gold = np.tile(relations.senses, len(seeds))
            one, base = (
                np.concatenate([predictions[name][seed] for seed in seeds])
                for name in (condition, "a")
            )
            size = len(SENSES)
            by_doc = np.zeros((len(docs), size, size))
            np.add.at(by_doc, (np.tile(doc, len(seeds)), gold, one), 1)
            drawn = resampled_counts(len(docs), 0, f"transfer.{protocol}")
            values = (macro_f1(np.tensordot(times, by_doc, 1)) for times in drawn)
            row = {
                "protocol": protocol,
                "condition": condition,
                "seeds": len(seeds),
                "f1": {"value": f1_of(gold, one), **ci_and_units(len(docs), values)},
                "f1_by_seed": [f1_of(relations.senses, by_seed[seed]) for seed in seeds],
                "accuracy": float((gold == one).mean()),
            }
            if condition != "a":
                units = [*np.tile(relations.docs, len(seeds))]
                difference = differences(
                    "transfer",
                    {"F1": {"": Outcomes("F1", units, gold=gold, predicted=base)}},
                    {"F1": {"": Outcomes("F1", units, gold=gold, predicted=one)}},
                )["F1"]
                row |= {"difference": difference.value, "ci": difference.ci}
            rows.append(row)
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures as a table in Markdown, in per cent."""
    lines = ["| protocol | condition | seeds | macro F1 | accuracy | macro F1 over (a) |"]
    lines.append("|---|---|--:|---|--:|---|")
    for row in rows:
        bounds = ", ".join(f"{100 * bound:.1f}" for bound in row["f1"]["ci"] or ())
        shown = f"{100 * row['f1']['value']:.1f} [{bounds}]"
        over = ""
        if "difference" in row:
            limits = ", ".join(f"{bound:+.1f}" for bound in row["ci"] or ())
            over = f"{row['difference']:+.1f} [{limits}]"
        names = f"| {row['protocol']} | {row['condition']} | {row['seeds']} "
        lines.append(f"{names}| {shown} | {100 * row['accuracy']:.1f} | {over} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--novels", help="the folder of the datasets of novels")
    parser.add_argument("--gdtb", type=Path, required=True)
    parser.add_argument("--backbone", required=True, help="the encoder of every condition")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretraining-seeds", type=int, default=1)
    parser.add_argument("--frozen", action="store_true", help="run the frozen parts")
    parser.add_argument("--finetune", action="store_true", help="run the parts with fine-tuning")
    parser.add_argument("--only", default="", help="run the parts whose name this matches")
    options = parser.parse_args(arguments)
    experiment = Experiment(options)
    for part in experiment.parts():
        if getattr(options, part.protocol) and re.search(options.only, part.name):
            experiment.run(part)
    rows = figures(experiment)
    write_json(options.output / "figures.json", rows)
    write_text(options.output / "table.md", table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
