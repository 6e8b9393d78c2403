"""Explicit discourse connectives of English in parsed documents, with their senses.

A lexicon (`lexicon.toml`) gives the candidates, `features` what the tree around each says, and
models fitted to GDTB how likely each is a connective, and which sense of the Penn Discourse
Treebank 3.0 it has (`docs/results/connectives.md`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Span
from corpora.errors import ConfigError
from extract.connectives.features import Columns, Finder, Lexicon, Places, features
from extract.connectives.model import keys, slots
from extract.parse import ParsedDocument, grouped
from extract.patterns import load_patterns
from extract.trees import Batch, CompiledPatterns

MODEL = Path(__file__).with_name("model.npz")
LANGUAGE = "en"
BATCH_TOKENS = 120_000


@dataclass(frozen=True, slots=True)
class Connective:
    """An explicit connective: its tokens and its spans in `Document.text`, and its sense.

    `sentence` is the index of its first token's sentence in the document's sentence layer.
    `tokens` index the columns of the parse. `spans` are several if it is discontinuous. `text` is
    its form in the lexicon (`because`, `if ... then`), `kind` its class there. `sense` has two
    levels of PDTB-3 (`Contingency.Cause`). Both probabilities are from 0 to 1.
    """

    doc: str
    sentence: int
    tokens: tuple[int, ...]
    spans: tuple[Span, ...]
    text: str
    kind: str
    probability: float
    sense: str
    sense_probability: float


@dataclass(frozen=True)
class Model:
    """The fitted weights."""

    detection: NDArray[np.float32]
    bias: float
    threshold: float
    senses: tuple[str, ...]
    common: NDArray[np.float32]
    """How often each connective has each sense [lexicon, senses]."""


@cache
def load_model(path: Path = MODEL) -> Model:
    """Return the shipped model."""
    with np.load(path, allow_pickle=False) as arrays:
        return Model(
            arrays["detection"].astype(np.float32),
            float(arrays["bias"]),
            float(arrays["threshold"]),
            tuple(arrays["senses"].tolist()),
            arrays["common"].astype(np.float32),
        )


def connectives(
    documents: Iterable[Document],
    parses: Iterable[ParsedDocument],
    scheme: str = "ud",
    language: str = LANGUAGE,
    min_probability: float | None = None,
) -> Iterator[list[Connective]]:
    """Yield the connectives of each document, in the order of the text.

    `documents` have the sentence layer that `parses` were made from, in the same order; `scheme` is
    that of the labels. `min_probability` replaces the threshold of the model. Raises `ConfigError`
    for a language other than English.
    """
    if language != LANGUAGE:
        raise ConfigError(
            f"no model of connectives for the language {language!r}; choose from {LANGUAGE}"
        )
    table = load_patterns(language, scheme)
    parsed = zip(documents, parses, strict=True)
    for strings, same in itertools.groupby(parsed, key=lambda item: item[1].strings):
        patterns = CompiledPatterns(table, ["and"], strings)
        for group in grouped(same, lambda item: len(item[1].head), BATCH_TOKENS):
            of_group, trees = zip(*group, strict=True)
            batch = Batch(of_group, trees, patterns)
            second = None
            if any(parse.second for parse in trees):
                second = Batch(of_group, [p.second or p for p in trees], patterns)
            lists: list[list[Connective]] = [[] for _ in of_group]
            shift = np.cumsum([0, *(len(parse.head) for parse in trees)])
            for item in connectives_of(batch, second, min_probability):
                number = int(batch.row_doc[batch.row[item.tokens[0]]])
                tokens = tuple(int(token - shift[number]) for token in item.tokens)
                lists[number].append(replace(item, tokens=tokens))
            yield from lists


def connectives_of(
    batch: Batch, second: Batch | None = None, min_probability: float | None = None
) -> list[Connective]:
    """Return the connectives of a batch in the order of the text; `tokens` index the batch.

    `second` has a second parser's trees of the same tokens.
    """
    model, lexicon = load_model(), Lexicon.english()
    places = Finder(lexicon).find(batch)
    if not len(places):
        return []
    table = keys(features(Columns(batch), places, lexicon), places, lexicon)
    score = model.bias + model.detection[slots(table)].sum(axis=1)
    probability = 1 / (1 + np.exp(-score))
    least = model.threshold if min_probability is None else min_probability
    shares = model.common[places.entry]
    sense = shares.argmax(axis=1)
    return [
        _connective(
            batch,
            places,
            row,
            float(probability[row]),
            model.senses[sense[row]],
            float(shares[row, sense[row]]),
        )
        for row in chosen(places, probability, least)
    ]


def chosen(places: Places, probability: NDArray[np.floating], least: float) -> list[int]:
    """Return the candidates to keep, in the order of the text: if some overlap, the likeliest."""
    used: set[int] = set()
    kept = []
    for row in np.argsort(-probability, kind="stable").tolist():
        if probability[row] < least:
            break
        tokens = places.tokens(row)
        if used.isdisjoint(tokens):
            used.update(tokens)
            kept.append(row)
    return sorted(kept)


def _connective(
    batch: Batch, places: Places, row: int, probability: float, sense: str, share: float
) -> Connective:
    tokens = places.tokens(row)
    spans: list[Span] = []
    for previous, token in zip((None, *tokens), tokens, strict=False):
        start = int(batch.start[token])
        if previous is not None and token == previous + 1:
            start = spans.pop()[0]
        spans.append((start, int(batch.end[token])))
    lexicon, entry = Lexicon.english(), places.entry[row]
    return Connective(
        batch.document(tokens[0]).id,
        int(batch.row_sentence[batch.row[tokens[0]]]),
        tuple(int(token) for token in tokens),
        tuple(spans),
        lexicon.words[entry],
        lexicon.classes[entry],
        probability,
        sense,
        share,
    )
