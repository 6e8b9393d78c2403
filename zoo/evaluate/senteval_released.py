"""SentEval on its own folder and by its own protocol (Conneau and Kiela 2018; the released code).

Vectors are frozen. Of the tasks

- MR, CR, SUBJ and MPQA have one set: ten stratified folds, and in each ten inner ones, which choose
  the L2 of a logistic regression; then 5 % of the fold's training set end its training;
- TREC and MRPC choose by ten folds of the training set, SST, SICK-E and probing by the development
  set;
- SICK-R and STS-B learn the distribution of a score over five bins, and are judged by Pearson;
- STS 12 to 16 train nothing: the cosine of two sentences, by Pearson, the mean over a year's sets.

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
    """Sentences, or pairs of them, with a class or a score each."""

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
    """A task: its column in DiscoEval's table 2, how it is judged, and what reads its files."""

    name: str
    column: str
    kind: Kind
    read: Callable[[Path], Parts]


# The files.


def rows(
    path: Path, *fields: int, separator: str = "\t", encoding: str = "utf-8", header: bool = False
) -> Iterator[tuple[str, ...]]:
    """These fields of each line that is not empty. Raises `InputError` for a line that lacks one.

    Without `fields` a line is one field.
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
    """Examples of `(gold, sentence[, second sentence])`, sorted by length as in the released code.

    Raises `InputError` for a gold value that `value` refuses, and for a file without examples.
    """
    listed = []
    for gold, *sentences in lines:
        try:
            texts = [sentence.split() for sentence in sentences]
            listed.append((*map(len, texts), value(gold.strip()), *map(" ".join, texts)))
        except ValueError as error:
            raise InputError(f"bad label or score {gold!r}: {error}", where=str(path)) from None
    if not listed:
        raise InputError("has no examples", where=str(path))
    pairs = len(listed[0]) == 5
    listed.sort(key=lambda row: row[: 3 if pairs else 2])
    columns = list(zip(*listed, strict=True))
    first, second = (columns[3], columns[4]) if pairs else (columns[2], ())
    return Examples([*first], [*second], np.array(columns[2 if pairs else 1]))


def two_files(name: str, ones: str, zeros: str, folder: Path) -> Parts:
    """A file of sentences for each class, in latin-1."""
    place = folder / "downstream" / name
    labelled = (
        (label, text)
        for label, file in (("1", ones), ("0", zeros))
        for (text,) in rows(place / file, encoding="latin-1")
    )
    return {"all": examples(place, labelled, int)}


def sst(folder: Path) -> Parts:
    def part(name: str) -> Examples:
        path = folder / "downstream/SST/binary" / f"sentiment-{name}"
        return examples(path, ((label, text) for text, label in rows(path, 0, 1)), int)

    return {"train": part("train"), "validation": part("dev"), "test": part("test")}


def trec(folder: Path) -> Parts:
    def part(name: str) -> Examples:
        path = folder / "downstream/TREC" / f"{name}.label"
        lines = (line for (line,) in rows(path, encoding="latin-1"))  # CLASS:subclass question
        split = (line.partition(" ") for line in lines)
        labelled = ((label.partition(":")[0], text) for label, _, text in split)
        return examples(path, labelled, TREC_CLASSES.index)

    return {"train": part("train_5500"), "test": part("TREC_10")}


def mrpc(folder: Path) -> Parts:
    def part(name: str) -> Examples:
        path = folder / "downstream/MRPC" / f"msr_paraphrase_{name}.txt"
        return examples(path, rows(path, 0, 3, 4, header=True), int)

    return {"train": part("train"), "test": part("test")}


def sick(column: int, value: Callable[[str], float], folder: Path) -> Parts:
    def part(name: str) -> Examples:
        path = folder / "downstream/SICK" / f"SICK_{name}.txt"
        return examples(path, rows(path, column, 1, 2, header=True), value)

    parts = {"train": "train", "validation": "trial", "test": "test_annotated"}
    return {key: part(name) for key, name in parts.items()}


def sts_benchmark(folder: Path) -> Parts:
    def part(name: str) -> Examples:
        path = folder / "downstream/STS/STSBenchmark" / f"sts-{name}.csv"
        return examples(path, rows(path, 4, 5, 6), float)

    return {"train": part("train"), "validation": part("dev"), "test": part("test")}


def sts(year: int, folder: Path) -> Parts:
    """The sets of a year; pairs without a score are left out."""

    def part(name: str) -> Examples:
        place = folder / "downstream/STS" / f"STS{year}-en-test"
        path = place / f"STS.input.{name}.txt"
        scores = (place / f"STS.gs.{name}.txt").read_text(encoding="utf-8").splitlines()
        pairs = [*rows(path, 0, 1)]
        if len(pairs) != len(scores):
            problem = f"{len(pairs)} pairs, but {len(scores)} scores in STS.gs.{name}.txt"
            raise InputError(problem, where=str(path), hint="take both files from one release")
        scored = ((score, *pair) for score, pair in zip(scores, pairs, strict=True) if score)
        return examples(path, scored, float)

    return {name: part(name) for name in STS_SETS[year]}


def probing(file: str, folder: Path) -> Parts:
    """`tr|va|te, label, sentence`; labels are numbered in the order of the alphabet."""
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
    *(Task(f"STS{year}", "USS", "cosine", partial(sts, year)) for year in STS_SETS),
    Task("STS-B", "SSS", "relatedness", sts_benchmark),
    Task("SICK-R", "SSS", "relatedness", partial(sick, 3, float)),
    Task("SICK-E", "SSS", "split", partial(sick, 4, SICK_CLASSES.index)),
    Task("MR", "SC", "folds", partial(two_files, "MR", "rt-polarity.pos", "rt-polarity.neg")),
    Task("CR", "SC", "folds", partial(two_files, "CR", "custrev.pos", "custrev.neg")),
    Task("MPQA", "SC", "folds", partial(two_files, "MPQA", "mpqa.pos", "mpqa.neg")),
    Task("SUBJ", "SC", "folds", partial(two_files, "SUBJ", "subj.objective", "subj.subjective")),
    Task("SST", "SC", "split", sst),
    Task("TREC", "SC", "train_test", trec),
    Task("MRPC", "SC", "train_test", mrpc),
    *(Task(name, "Probing", "split", partial(probing, file)) for name, file in _PROBING.items()),
)


# The protocol.


def run(folder: Path, encode: Encode, tasks: Sequence[str] = (), seed: int = SEED) -> Any:
    """Each task's figure: a table with `value`, its interval, and what was chosen.

    `seed` is that of the classifiers; the folds have the released one. Raises `InputError` for a
    folder that lacks a task's files.
    """
    chosen = [task for task in TASKS if not tasks or task.name in tasks]
    read = [(task, task.read(folder)) for task in chosen]  # before the first is encoded
    return {
        task.name: {**judge(task, parts, encode, seed), "column": task.column}
        for task, parts in track(read, "tasks", total=len(read))
    }


def texts(folder: Path, tasks: Sequence[str] = ()) -> list[str]:
    """The distinct texts of the tasks in SentEval's `data/`, all if none are named."""
    parts = [
        p for task in TASKS if not tasks or task.name in tasks for p in task.read(folder).values()
    ]
    return list(dict.fromkeys(text for part in parts for text in [*part.first, *part.second]))


def judge(task: Task, parts: Parts, encode: Encode, seed: int) -> dict[str, Any]:
    """The figure of one task."""
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
        right, about = by_development(features, gold, seed)
    figure = mean_figure(right.astype(float), np.arange(len(right)), seed, f"senteval.{task.name}")
    return {**figure, "metric": "accuracy", "n": len(right), **about}


def folds(gold: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ten stratified folds with the released seed, as rows to train on and to test on.

    Raises `InputError` if no class has ten examples.
    """
    from sklearn.model_selection import StratifiedKFold

    if np.bincount(gold).max() < FOLDS:
        raise InputError(f"fewer than {FOLDS} examples of every class", where="SentEval's folds")
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(gold, gold))


def by_folds(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Which examples are right when each fold is tested by a classifier of the others."""
    right, chosen = np.zeros(len(y), bool), []
    for train, test in folds(y):
        l2 = best_l2(x[train], y[train], seed)
        right[test] = (
            trained(x[train], y[train], l2, seed, int(y.max()) + 1).predict(x[test]) == (y[test])
        )
        chosen.append(l2)
    return right, {"l2": chosen}


def by_training_folds(
    x: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray], seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Which test examples are right; folds of the training set choose the L2."""
    from sklearn.metrics import f1_score

    l2 = best_l2(x["train"], y["train"], seed)
    probe = trained(x["train"], y["train"], l2, seed, int(y["train"].max()) + 1)
    predicted = probe.predict(x["test"])
    about: dict[str, Any] = {"l2": l2}
    if set(y["train"].tolist()) == {0, 1}:
        about["f1"] = float(f1_score(y["test"], predicted))
    return predicted == y["test"], about


def by_development(
    x: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray], seed: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Which test examples are right; the development set chooses the L2."""
    from zoo.evaluate.discoeval.probe import fit

    held = x["validation"], y["validation"]
    classes = 1 + max(int(labels.max()) for labels in y.values())
    probe = fit((x["train"], y["train"]), held, classes, TUNED, seed)
    return probe.predict(x["test"]) == y["test"], {"l2": probe.l2}


def best_l2(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """The L2 of the best mean accuracy over ten folds; of equals the smallest.

    Accuracies are compared as released, in per cent with two decimals.
    """
    from zoo.evaluate.discoeval.probe import fit

    classes = int(y.max()) + 1
    grids = [
        fit((x[train], y[train]), (x[test], y[test]), classes, TUNED, seed).grid
        for train, test in folds(y)
    ]
    means = {l2: round(100 * float(np.mean([grid[l2] for grid in grids])), 2) for l2 in TUNED.l2}
    return max(means, key=means.__getitem__)


def trained(x: np.ndarray, y: np.ndarray, l2: float, seed: int, classes: int) -> Any:
    """A classifier whose training ends by 5 % of the examples, drawn at random."""
    from zoo.evaluate.discoeval.probe import fit

    order = stream(seed, "zoo.senteval.held_out").permutation(len(x))
    held, train = np.split(order, [max(1, int(HELD_OUT * len(x)))])
    settings = replace(TUNED, l2=(l2,))
    return fit((x[train], y[train]), (x[held], y[held]), classes, settings, seed)


def bins(scores: np.ndarray) -> np.ndarray:
    """Each score from 1 to 5 as weights of the two whole numbers around it, `[scores, 5]`.

    Tai, Socher and Manning 2015, equation 15. A score below 1 (STS-B begins at 0) has the weight
    of its fraction on 1, as in the released code.
    """
    weights = np.zeros((len(scores), BINS), np.float32)
    below = np.floor(scores).astype(int)
    fraction = (scores - below).astype(np.float32)
    for row, (floor, part) in enumerate(zip(below, fraction, strict=True)):
        if 1 <= floor <= BINS:
            weights[row, floor - 1] = 1 - part
        if 0 <= floor < BINS:
            weights[row, floor] = part
    return weights


def relatedness(
    x: Mapping[str, np.ndarray], y: Mapping[str, np.ndarray], seed: int
) -> dict[str, Any]:
    """Pearson's correlation of the expected score with the gold one on the test set.

    Softmax over five bins, squared error, Adam, batches of 64. The development set is looked at
    every 50 epochs; after more than three looks without a new best in all training ends.
    """
    import torch

    from zoo.evaluate.discoeval.probe import initial
    from zoo.modeling import best_device

    device, random = best_device(), stream(seed, "zoo.senteval.relatedness")
    inputs = {name: torch.from_numpy(np.float32(each)).to(device) for name, each in x.items()}
    target = torch.from_numpy(bins(y["train"])).to(device)
    weight, bias = (
        start.to(device).requires_grad_() for start in initial(x["train"].shape[1], BINS, 0, random)
    )
    adam = torch.optim.Adam([weight, bias])

    def expected(part: str) -> np.ndarray:
        with torch.inference_mode():
            shares = (inputs[part] @ weight.T + bias).softmax(1).cpu().numpy()
        return np.asarray(shares @ np.arange(1, BINS + 1))

    best, predicted, worse, epoch = -1.0, expected("test"), 0, 0
    while worse <= 3 and epoch <= 1000:
        for _ in range(50):
            order = torch.from_numpy(random.permutation(len(target))).to(device)
            for chosen in order.split(64):
                shares = (inputs["train"][chosen] @ weight.T + bias).softmax(1)
                adam.zero_grad()
                torch.nn.functional.mse_loss(shares, target[chosen]).backward()
                adam.step()
        epoch += 50
        if (held := pearson(expected("validation"), y["validation"])["value"]) > best:
            best, predicted = held, expected("test")
        else:
            worse += 1
    return {**pearson(predicted, y["test"]), "metric": "pearson", "validation": best}


def cosines(parts: Parts, encode: Encode) -> dict[str, Any]:
    """The mean over a year's sets of the cosines' correlation with the gold scores."""
    sets = {}
    for name, part in parts.items():
        u, v = (finite(encode(texts), f"{name}: vectors") for texts in part[:2])
        norms = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
        similar = (u * v).sum(1) / np.where(norms == 0, 1, norms)
        sets[name] = correlations(similar, part.gold)
    sizes = [found["n"] for found in sets.values()]
    about: dict[str, Any] = {"metric": "pearson", "n": sum(sizes), "sets": sets}
    for measure, key in (("pearson", "value"), ("spearman", "spearman")):
        values = [found[measure] for found in sets.values()]
        about[key] = float(np.mean(values))
        about[f"{measure}_by_size"] = float(np.average(values, weights=sizes))
    return about


def correlations(scores: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """Pearson and Spearman; 0 where one side is constant."""
    from scipy.stats import spearmanr

    varied = len(np.unique(scores)) > 1 and len(np.unique(gold)) > 1
    rank = float(spearmanr(scores, gold).statistic) if varied else 0.0
    return {"pearson": pearson(scores, gold)["value"], "spearman": rank, "n": len(gold)}


def pearson(scores: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """Pearson's correlation with its 95 % interval (Fisher); 0 where one side is constant."""
    from scipy.stats import pearsonr

    if len(gold) < 4 or len(np.unique(scores)) < 2 or len(np.unique(gold)) < 2:
        return {"value": 0.0, "ci": None, "n": len(gold)}
    found = pearsonr(scores, gold)
    low, high = found.confidence_interval()
    return {"value": float(found.statistic), "ci": [float(low), float(high)], "n": len(gold)}
