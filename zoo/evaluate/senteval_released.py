"""SentEval on its own folder and by its own protocol (Conneau and Kiela 2018; the released code).

Vectors are frozen. Each kind of task has its own protocol:

- MR, CR, SUBJ and MPQA train a logistic regression in each of ten stratified folds of their one
  set. Ten inner folds choose its L2, and 5 % of the training rows are held out to stop it.
- TREC and MRPC choose the L2 by ten folds of the training set; SST, SICK-E and the probing tasks
  choose it by the development set.
- SICK-R and STS-B learn the distribution of a score over five bins; the figure is Pearson's r.
- STS 12 to 16 train nothing: Pearson's r of the cosines, the mean over a year's sets.

Pairs have the features `|u - v|, u * v`. Examples are sorted by length before they are divided, as
released, and the folds are drawn with the released seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from corpora.errors import InputError
from corpora.progress import track
from corpora.rng import stream
from zoo.evaluate.discoeval.tasks import TUNED
from zoo.evaluate.scores import finite, mean_figure

SEED = 1111
"""The released seed of the folds."""
FOLDS = 10
BINS = 5
HELD_OUT = 0.05
"""The share of the training rows that is held out to stop a training."""
STS_SETS = {
    12: ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    13: ("FNWN", "headlines", "OnWN"),
    14: ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    15: ("answers-forums", "answers-students", "belief", "headlines", "images"),
    16: ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
SICK_CLASSES = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")

Encode = Callable[[Sequence[str]], np.ndarray]
"""Texts to vectors, `[texts, dim]`."""
Kind = Literal["folds", "train_test", "split", "relatedness", "cosine"]


class Examples(NamedTuple):
    """Sentences `first`, or pairs of `first` and `second`, and their classes or scores `gold`."""

    first: list[str]
    second: list[str]
    gold: np.ndarray

    def features(self, encode: Encode) -> np.ndarray:
        """The vectors of the sentences, or `|u - v|, u * v` of the pairs, `[examples, width]`."""
        u = encode(self.first)
        if not self.second:
            return u
        v = encode(self.second)
        return np.hstack([np.abs(u - v), u * v])


Parts = dict[str, Examples]
"""Examples by part: train, validation, test, or the sets of a year of STS."""


@dataclass(frozen=True)
class Task:
    """A task of SentEval: `kind` is its protocol, `read` reads its files in SentEval's `data/`.

    `column` is its column in DiscoEval's table 2.
    """

    name: str
    column: str
    kind: Kind
    read: Callable[[Path], Parts]


# The files.


def rows(
    path: Path, *fields: int, separator: str = "\t", encoding: str = "utf-8", header: bool = False
) -> Iterator[tuple[str, ...]]:
    """Yield the fields with the numbers `fields` (from 0) of each line that is not empty.

    Without `fields` the whole line is the one field. With `header` the first line is skipped.
    Raises `InputError` for a line that lacks a field.
    """
    try:
        lines = path.read_text(encoding=encoding).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        hint = "give the folder data/ of SentEval, with downstream/ and probing/"
        raise InputError(f"cannot be read: {error}", where=str(path), hint=hint) from error
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r").split(separator) if fields else [line.rstrip("\r")]
        if not line.strip() or (header and number == 1):
            continue
        if max(fields, default=0) >= len(cells):
            expected = f"expected {max(fields) + 1} fields or more, separated by {separator!r}"
            raise InputError(f"{len(cells)} fields; {expected}", where=f"{path}:{number}")
        yield tuple(cells[field] for field in fields or (0,))


def examples(
    path: Path, lines: Iterator[tuple[str, ...]], value: Callable[[str], float]
) -> Examples:
    """Convert lines of `(gold, sentence)` or `(gold, sentence, second sentence)` to examples.

    They are sorted by the number of words, then by gold value, as in the released code.
    `value(gold)` is the class or score; `path` is only named in errors. Raises `InputError` for a
    gold value that `value` refuses, and if there are no lines.
    """
    listed: list[tuple[list[int], float, list[str]]] = []
    for gold, *sentences in lines:
        try:
            words = [sentence.split() for sentence in sentences]
            listed.append(([*map(len, words)], value(gold.strip()), [*map(" ".join, words)]))
        except ValueError as error:
            raise InputError(f"bad label or score {gold!r}: {error}", where=str(path)) from None
    if not listed:
        raise InputError("has no examples", where=str(path))
    listed.sort(key=lambda row: row[:2])
    _, values, texts = zip(*listed, strict=True)
    first, *second = map(list, zip(*texts, strict=True))
    return Examples(first, second[0] if second else [], np.array(values))


def read_classes(name: str, positive: str, negative: str, folder: Path) -> Parts:
    """Read a task with one file of sentences (in latin-1) for class 1 and one for class 0."""
    task_folder = folder / "downstream" / name
    labelled = (
        (label, text)
        for label, file in (("1", positive), ("0", negative))
        for (text,) in rows(task_folder / file, encoding="latin-1")
    )
    return {"all": examples(task_folder, labelled, int)}


def read_sst(folder: Path) -> Parts:
    """Read SST: movie reviews with their sentiment, 0 or 1."""

    def part(name: str) -> Examples:
        path = folder / "downstream/SST/binary" / f"sentiment-{name}"
        return examples(path, ((label, text) for text, label in rows(path, 0, 1)), int)

    return {"train": part("train"), "validation": part("dev"), "test": part("test")}


def read_trec(folder: Path) -> Parts:
    """Read TREC: questions with one of six classes."""

    def part(name: str) -> Examples:
        path = folder / "downstream/TREC" / f"{name}.label"
        lines = (line for (line,) in rows(path, encoding="latin-1"))  # CLASS:subclass question
        split = (line.partition(" ") for line in lines)
        labelled = ((label.partition(":")[0], text) for label, _, text in split)
        return examples(path, labelled, TREC_CLASSES.index)

    return {"train": part("train_5500"), "test": part("TREC_10")}


def read_mrpc(folder: Path) -> Parts:
    """Read MRPC: pairs of sentences, and whether they are paraphrases."""

    def part(name: str) -> Examples:
        path = folder / "downstream/MRPC" / f"msr_paraphrase_{name}.txt"
        return examples(path, rows(path, 0, 3, 4, header=True), int)

    return {"train": part("train"), "test": part("test")}


def read_sick(column: int, value: Callable[[str], float], folder: Path) -> Parts:
    """Read SICK; `value` converts the field `column`, a class (SICK-E) or a score (SICK-R)."""

    def part(name: str) -> Examples:
        path = folder / "downstream/SICK" / f"SICK_{name}.txt"
        return examples(path, rows(path, column, 1, 2, header=True), value)

    parts = {"train": "train", "validation": "trial", "test": "test_annotated"}
    return {key: part(name) for key, name in parts.items()}


def read_sts_benchmark(folder: Path) -> Parts:
    """Read STS-B: pairs of sentences with a score of their similarity."""

    def part(name: str) -> Examples:
        path = folder / "downstream/STS/STSBenchmark" / f"sts-{name}.csv"
        return examples(path, rows(path, 4, 5, 6), float)

    return {"train": part("train"), "validation": part("dev"), "test": part("test")}


def read_sts(year: int, folder: Path) -> Parts:
    """Read the sets of a year of STS; pairs without a score are left out."""

    def part(name: str) -> Examples:
        year_folder = folder / "downstream/STS" / f"STS{year}-en-test"
        path = year_folder / f"STS.input.{name}.txt"
        scores = (year_folder / f"STS.gs.{name}.txt").read_text(encoding="utf-8").splitlines()
        pairs = [*rows(path, 0, 1)]
        if len(pairs) != len(scores):
            problem = f"{len(pairs)} pairs, but {len(scores)} scores in STS.gs.{name}.txt"
            raise InputError(problem, where=str(path), hint="take both files from one release")
        scored = ((score, *pair) for score, pair in zip(scores, pairs, strict=True) if score)
        return examples(path, scored, float)

    return {name: part(name) for name in STS_SETS[year]}


def read_probing(file: str, folder: Path) -> Parts:
    """Read a file of lines `tr|va|te, label, sentence`; labels are numbered alphabetically."""
    path = folder / "probing" / f"{file}.txt"
    lines = [*rows(path, 0, 1, 2)]
    labels = sorted({label for _, label, _ in lines})
    number = {label: index for index, label in enumerate(labels)}.__getitem__
    parts = {"train": "tr", "validation": "va", "test": "te"}
    return {
        name: examples(path, (row[1:] for row in lines if row[0] == mark), number)
        for name, mark in parts.items()
    }


_PROBING = {
    "Length": "sentence_length",
    "WordContent": "word_content",
    "Depth": "tree_depth",
    "TopConstituents": "top_constituents",
    "BigramShift": "bigram_shift",
    "Tense": "past_present",
    "SubjNumber": "subj_number",
    "ObjNumber": "obj_number",
    "OddManOut": "odd_man_out",
    "CoordinationInversion": "coordination_inversion",
}
TASKS = (
    *(Task(f"STS{year}", "USS", "cosine", partial(read_sts, year)) for year in STS_SETS),
    Task("STS-B", "SSS", "relatedness", read_sts_benchmark),
    Task("SICK-R", "SSS", "relatedness", partial(read_sick, 3, float)),
    Task("SICK-E", "SSS", "split", partial(read_sick, 4, SICK_CLASSES.index)),
    Task("MR", "SC", "folds", partial(read_classes, "MR", "rt-polarity.pos", "rt-polarity.neg")),
    Task("CR", "SC", "folds", partial(read_classes, "CR", "custrev.pos", "custrev.neg")),
    Task("MPQA", "SC", "folds", partial(read_classes, "MPQA", "mpqa.pos", "mpqa.neg")),
    Task("SUBJ", "SC", "folds", partial(read_classes, "SUBJ", "subj.objective", "subj.subjective")),
    Task("SST", "SC", "split", read_sst),
    Task("TREC", "SC", "train_test", read_trec),
    Task("MRPC", "SC", "train_test", read_mrpc),
    *(Task(name, "Probing", "split", partial(read_probing, f)) for name, f in _PROBING.items()),
)


# The protocol.


def run(folder: Path, encode: Encode, tasks: Sequence[str] = (), seed: int = SEED) -> Any:
    """Evaluate vectors on the tasks in SentEval's `data/`; return the figures by task.

    `encode` gives the vectors of texts, `tasks` names the tasks (empty: all). A figure is a table
    with `value`, its interval, and the L2 that was chosen. `seed` is that of the classifiers; the
    folds have the released one. Raises `InputError` for a folder that lacks a task's files.
    """
    chosen = [task for task in TASKS if not tasks or task.name in tasks]
    # All files are read first, so that a missing one is an error before any text is encoded.
    data = [(task, task.read(folder)) for task in chosen]
    return {
        task.name: {**evaluate_task(task, parts, encode, seed), "column": task.column}
        for task, parts in track(data, "tasks", total=len(data))
    }


def texts(folder: Path, tasks: Sequence[str] = ()) -> list[str]:
    """The distinct texts of the named `tasks` (empty: all tasks) in SentEval's `data/`."""
    chosen = [task for task in TASKS if not tasks or task.name in tasks]
    parts = [part for task in chosen for part in task.read(folder).values()]
    return list(dict.fromkeys(text for part in parts for text in [*part.first, *part.second]))


def evaluate_task(task: Task, parts: Parts, encode: Encode, seed: int) -> dict[str, Any]:
    """Evaluate vectors on one task: its `value`, interval, metric and number of examples `n`."""
    if task.kind == "cosine":
        return cosines(parts, encode)
    features = {name: part.features(encode) for name, part in parts.items()}
    for name, vectors in features.items():
        finite(vectors, f"{task.name} {name}: features", hint="look at the encoder's vectors")
    gold = {name: part.gold for name, part in parts.items()}
    if task.kind == "relatedness":
        return relatedness(features, gold, seed)
    if task.kind == "folds":
        right, about = by_folds(features["all"], gold["all"], seed)
    elif task.kind == "train_test":
        right, about = by_training_folds(features, gold, seed)
    else:
        right, about = by_development_set(features, gold, seed)
    figure = mean_figure(right.astype(float), np.arange(len(right)), seed, f"senteval.{task.name}")
    return {**figure, "metric": "accuracy", "n": len(right), **about}


def stratified_folds(gold: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Divide examples of the classes `gold [examples]` into ten folds, with the released seed.

    Returns for each fold the numbers of the rows to train on and of those to test on. Raises
    `InputError` if no class has ten examples.
    """
    from sklearn.model_selection import StratifiedKFold

    if np.bincount(gold).max() < FOLDS:
        raise InputError(f"fewer than {FOLDS} examples of every class", where="SentEval's folds")
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(gold, gold))


def by_folds(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Classify each of ten folds with a classifier that is trained on the other nine folds.

    `x [examples, width]` are the features, `y [examples]` the classes. Returns which examples are
    right, `[examples]`, and the L2 of each fold's classifier.
    """
    right, l2_by_fold = np.zeros(len(y), bool), []
    for train, test in stratified_folds(y):
        l2 = best_l2(x[train], y[train], seed)
        probe = train_probe(x[train], y[train], l2, seed, int(y.max()) + 1)
        right[test] = probe.predict(x[test]) == y[test]
        l2_by_fold.append(l2)
    return right, {"l2": l2_by_fold}


def by_training_folds(
    x: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray], seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Classify the test set; ten folds of the training set choose the L2.

    `x` has the features and `y` the classes of the parts `train` and `test`. Returns which test
    examples are right, and the L2, with F1 where there are two classes.
    """
    from sklearn.metrics import f1_score

    l2 = best_l2(x["train"], y["train"], seed)
    probe = train_probe(x["train"], y["train"], l2, seed, int(y["train"].max()) + 1)
    predicted = probe.predict(x["test"])
    about: dict[str, Any] = {"l2": l2}
    if set(y["train"].tolist()) == {0, 1}:
        about["f1"] = float(f1_score(y["test"], predicted))
    return predicted == y["test"], about


def by_development_set(
    x: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray], seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Classify the test set; the development set chooses the L2.

    `x` has the features and `y` the classes of the parts `train`, `validation` and `test`. Returns
    which test examples are right, and the L2.
    """
    from zoo.evaluate.discoeval.probe import fit

    validation = x["validation"], y["validation"]
    classes = 1 + max(int(labels.max()) for labels in y.values())
    probe = fit((x["train"], y["train"]), validation, classes, TUNED, seed)
    return probe.predict(x["test"]) == y["test"], {"l2": probe.l2}


def best_l2(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """The value of L2 with the best mean accuracy over ten folds; the smallest of several.

    Accuracies are compared as released, in per cent with two decimals.
    """
    from zoo.evaluate.discoeval.probe import fit

    classes = int(y.max()) + 1
    grids = [
        fit((x[train], y[train]), (x[test], y[test]), classes, TUNED, seed).grid
        for train, test in stratified_folds(y)
    ]
    means = {l2: round(100 * float(np.mean([grid[l2] for grid in grids])), 2) for l2 in TUNED.l2}
    return max(means, key=means.__getitem__)


def train_probe(x: np.ndarray, y: np.ndarray, l2: float, seed: int, classes: int) -> Any:
    """Train a classifier on 95 % of the examples; a random 5 % decide when it stops."""
    from zoo.evaluate.discoeval.probe import fit

    order = stream(seed, "zoo.senteval.held_out").permutation(len(x))
    held_out, train = np.split(order, [max(1, int(HELD_OUT * len(x)))])
    settings = replace(TUNED, l2=(l2,))
    return fit((x[train], y[train]), (x[held_out], y[held_out]), classes, settings, seed)


def bins(scores: np.ndarray) -> np.ndarray:
    """Convert each score from 1 to 5 to weights of the two whole numbers around it, `[scores, 5]`.

    The score 3.2 has the weights .8 for 3 and .2 for 4 (Tai, Socher and Manning 2015, equation 15).
    A score below 1 (STS-B begins at 0) only gives 1 its fraction, as in the released code.
    """
    weights = np.zeros((len(scores), BINS), np.float32)
    floors = np.floor(scores).astype(int)
    fractions = (scores - floors).astype(np.float32)
    for row, (floor, fraction) in enumerate(zip(floors, fractions, strict=True)):
        if 1 <= floor <= BINS:
            weights[row, floor - 1] = 1 - fraction
        if 0 <= floor < BINS:
            weights[row, floor] = fraction
    return weights


def relatedness(
    x: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray], seed: int
) -> dict[str, Any]:
    """Train a regression on pairs; return Pearson's r of its scores with the gold scores in test.

    `x` has the features and `y` the scores of the parts `train`, `validation` and `test`. The model
    is a softmax over five bins; a pair's score is the expected bin. Squared error, Adam, batches of
    64. Every 50 epochs it is measured on the development set; training ends after more than three
    measurements without a new best, counted in all.
    """
    import torch

    from zoo.evaluate.discoeval.probe import initial
    from zoo.modeling import best_device

    # Data and model
    device, random = best_device(), stream(seed, "zoo.senteval.relatedness")
    inputs = {name: torch.from_numpy(np.float32(each)).to(device) for name, each in x.items()}
    target = torch.from_numpy(bins(y["train"])).to(device)
    weight, bias = (
        start.to(device).requires_grad_() for start in initial(x["train"].shape[1], BINS, 0, random)
    )
    adam = torch.optim.Adam([weight, bias])

    def expected(part: str) -> np.ndarray:
        """Return the expected bin of each pair of a part, as its score."""
        with torch.inference_mode():
            shares = (inputs[part] @ weight.T + bias).softmax(1).cpu().numpy()
        return np.asarray(shares @ np.arange(1, BINS + 1))

    # Train in rounds of 50 epochs.
    best, predicted, worse, epoch = -1.0, expected("test"), 0, 0
    while worse <= 3 and epoch <= 1000:
        for _ in range(50):
            order = torch.from_numpy(random.permutation(len(target))).to(device)
            for batch in order.split(64):
                shares = (inputs["train"][batch] @ weight.T + bias).softmax(1)
                adam.zero_grad()
                torch.nn.functional.mse_loss(shares, target[batch]).backward()
                adam.step()
        epoch += 50
        correlation = pearson(expected("validation"), y["validation"])["value"]
        if correlation > best:
            best, predicted = correlation, expected("test")
        else:
            worse += 1
    return {**pearson(predicted, y["test"]), "metric": "pearson", "validation": best}


def cosines(parts: Parts, encode: Encode) -> dict[str, Any]:
    """Correlate pairs' cosines with gold scores; `value` is the mean r over a year's sets."""
    sets = {}
    for name, part in parts.items():
        u, v = (finite(encode(texts), f"{name}: vectors") for texts in part[:2])
        norms = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
        similar = (u * v).sum(1) / np.where(norms == 0, 1, norms)
        sets[name] = correlations(similar, part.gold)
    sizes = [figures["n"] for figures in sets.values()]
    about: dict[str, Any] = {"metric": "pearson", "n": sum(sizes), "sets": sets}
    for measure, key in (("pearson", "value"), ("spearman", "spearman")):
        values = [figures[measure] for figures in sets.values()]
        about[key] = float(np.mean(values))
        about[f"{measure}_by_size"] = float(np.average(values, weights=sizes))
    return about


def correlations(scores: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """Pearson's and Spearman's correlation; 0 if all scores or all gold scores are equal."""
    from scipy.stats import spearmanr

    varied = len(np.unique(scores)) > 1 and len(np.unique(gold)) > 1
    rank = float(spearmanr(scores, gold).statistic) if varied else 0.0
    return {"pearson": pearson(scores, gold)["value"], "spearman": rank, "n": len(gold)}


def pearson(scores: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """Pearson's r with its 95 % interval (Fisher); 0 for constants and fewer than four pairs."""
    from scipy.stats import pearsonr

    if len(gold) < 4 or len(np.unique(scores)) < 2 or len(np.unique(gold)) < 2:
        return {"value": 0.0, "ci": None, "n": len(gold)}
    correlation = pearsonr(scores, gold)
    low, high = correlation.confidence_interval()
    return {"value": float(correlation.statistic), "ci": [float(low), float(high)], "n": len(gold)}
