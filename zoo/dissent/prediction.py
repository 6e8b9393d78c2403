"""Predict the marker between two sentences with a trained model of any DisSent type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AliasPath, BaseModel, Field

from corpora.errors import BadRecord, InputError, check_choice
from corpora.outside import read_record
from corpora.readers.files import read_lines
from corpora.readers.rows import JSON_LINES, json_rows
from zoo import file_of, require_extra
from zoo.dissent.packed import PackedClassifier
from zoo.packed import is_packed
from zoo.texts import in_parts
from zoo.training.job import RESULTS

PRIORS = ("equal", "corpus")
"""The assumed frequencies of markers: all equal, or those in the training pairs."""
SENTENCE_LIMIT = 100_000
"""The most characters of a sentence; models read only its first hundreds of words."""


class Classifier(Protocol):
    """A loaded model, such as a `PairClassifier`; `folder` is its folder or Hub id."""

    @property
    def folder(self) -> str: ...
    @property
    def labels(self) -> list[str]: ...
    def probabilities(
        self, pairs: Sequence[tuple[str, str]], batch_size: int | None = None
    ) -> np.ndarray: ...


def load_classifier(model: str | Path) -> Classifier:
    """Load the model in a folder or of a Hub id. Only a model like the one that comes with the
    package runs without the extra `zoo`: any other raises `DiscorporaError` where it is missing."""
    if is_packed(model):
        return PackedClassifier(model)
    require_extra(f"to run the model {str(model)!r}")
    from zoo.evaluate.classification import PairClassifier

    return PairClassifier.load(model)


def predict(
    model: str | Path | Classifier,
    pairs: Iterable[tuple[str, str]],
    batch_size: int | None = None,
    prior: str = "equal",
) -> list[dict[str, float]]:
    """Return for each pair `(s1, s2)` the probability of each marker, the most probable first.

    `model` is a folder, a Hub id, or a loaded `PairClassifier`; `batch_size` is by default the
    model's. A model learns p(marker | pair)
    from a corpus, where some markers are much more frequent than others. The prior `equal` divides
    this by the marker's share of the training pairs, and scales the sum to 1: the probabilities if
    all markers were equally frequent (Saerens, Latinne and Decaestecker 2002, equation 2.4).
    `corpus` gives those at the frequencies of the training pairs. Raises `ConfigError` for another
    prior, and `InputError` for `equal` if the results of the model lack the shares.
    """
    return list(predictions(model, pairs, batch_size, prior))


def predictions(
    model: str | Path | Classifier,
    pairs: Iterable[tuple[str, str]],
    batch_size: int | None = None,
    prior: str = "equal",
) -> Iterator[dict[str, float]]:
    """Yield the probabilities of `predict` pair by pair, for files that do not fit into memory."""
    check_choice("prior", prior, PRIORS)
    classifier = load_classifier(model) if isinstance(model, str | Path) else model
    names = classifier.labels
    weights = _prior_weights(classifier, prior)
    for part in in_parts(pairs, lambda pair: len(pair[0]) + len(pair[1])):
        weighted = classifier.probabilities(part, batch_size) * weights
        for row in weighted / weighted.sum(axis=1, keepdims=True):
            order = np.argsort(-row, kind="stable")
            yield {names[i]: float(row[i]) for i in order}


class _Results(BaseModel):
    """What a model's results.json says of its labels: the number of training rows of each, and the
    shares that its logits assume, if they are not those of the training rows."""

    train_labels: Mapping[str, Annotated[int, Field(ge=0)]] = Field(
        {}, validation_alias=AliasPath("data", "train_labels")
    )
    assumed_shares: Mapping[str, Annotated[float, Field(gt=0)]] = Field(
        {}, validation_alias=AliasPath("data", "assumed_shares")
    )


def _prior_weights(classifier: Classifier, prior: str) -> NDArray[np.float64]:
    """Return the factors `[labels]` of a model's probabilities under a prior; 0 for a label without
    training rows.

    Raises `InputError` if they need the labels' numbers of training pairs, and results.json lacks
    them.
    """
    path = file_of(classifier.folder, RESULTS)
    again = "copy or download it again"
    results = read_record(_Results, path, again) if path else _Results.model_validate({})
    names = classifier.labels
    rows = np.array([results.train_labels.get(name, -1) for name in names], np.float64)
    assumed = np.array([results.assumed_shares.get(name, 0) for name in names], np.float64)
    if prior == "corpus" and not assumed.any():
        return np.ones(len(names))
    if (rows < 0).any() or not rows.any():
        raise InputError(
            f"no {RESULTS} says how many training pairs each marker had, which equal priors need",
            where=classifier.folder,
            hint="train it again, or take the priors of its training pairs: --prior corpus "
            '(in Python prior="corpus")',
        )
    wanted = rows if prior == "corpus" else np.sign(rows)
    if not assumed.all():
        assumed = rows
    weights = np.divide(wanted, assumed, out=np.zeros_like(rows), where=assumed > 0)
    return weights / weights.max()


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a file: JSONL with `s1` and `s2`, or TSV with two columns.

    A header of TSV is skipped. Raises `InputError` with the line of an invalid row, and for a file
    without a pair.
    """
    has_pairs = False
    is_json = path.name.lower().endswith((*JSON_LINES, ".json"))
    form = 'an object with "s1" and "s2"' if is_json else "two columns with a tab between"
    for where, row in json_rows(path) if is_json else _columns(path):
        if isinstance(row, BadRecord):
            raise InputError(row.reason, where=where, hint=f"expected {form}, in UTF-8")
        cells: list[Any] = [row.get("s1"), row.get("s2")] if isinstance(row, Mapping) else row
        expected = form
        if [type(cell) for cell in cells] == [str, str]:
            if all(text.strip() and len(text) <= SENTENCE_LIMIT for text in cells):
                has_pairs = True
                yield cells[0], cells[1]
                continue
            expected = f"two texts that are not empty, of {SENTENCE_LIMIT:,} characters at most"
        raise InputError("is not a pair of sentences", where=where, hint=f"expected {expected}")
    if not has_pairs:
        raise InputError("holds no pair", where=str(path), hint=f"expected {form} a line")


def _columns(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield `FILE:LINE` and the columns of each line that is neither blank nor a header."""
    for number, line in enumerate(read_lines(path), 1):
        if isinstance(line, BadRecord):
            yield line.where, line
        elif line.strip(" ") and line.lower().split() != ["s1", "s2"]:
            yield f"{path}:{number}", line.split("\t")
