"""Explicit discourse connectives of English in parsed documents, with their senses.

A lexicon (`lexicon.toml`) gives the candidates, `features` what the tree around each says, and
models fitted to GDTB how likely each is a connective, and which sense of the Penn Discourse
Treebank 3.0 it has (`docs/results/connectives.md`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from corpora.document import Document, Span
from corpora.errors import ConfigError
from extract.connectives.candidates import Places
from extract.connectives.model import TREES, Candidates, english, load_model
from extract.parse import ParsedDocument, grouped
from extract.patterns import load_patterns
from extract.trees import Batch, CompiledPatterns

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


def connectives(
    documents: Iterable[Document],
    parses: Iterable[ParsedDocument],
    scheme: str = "ud",
    language: str = LANGUAGE,
    min_probability: float | None = None,
    trees: str = "parsed",
) -> Iterator[list[Connective]]:
    """Yield the connectives of each document, in the order of the text.

    `documents` have the sentence layer that `parses` were made from, in the same order; `scheme` is
    that of the labels. `trees` is `gold` for those of a treebank, else `parsed`. `min_probability`
    replaces the threshold of the model. With the trees of a second parser
    (`ParsedDocument.second`) both decide. Raises `ConfigError` for a language other
    than English.
    """
    if trees not in TREES:
        raise ConfigError(f"unknown trees {trees!r}; choose from {', '.join(TREES)}")
    _check_language(language)
    table = load_patterns(language, scheme)
    parsed = zip(documents, parses, strict=True)
    for strings, same in itertools.groupby(parsed, key=lambda item: item[1].strings):
        patterns = CompiledPatterns(table, ["and"], strings)
        for group in grouped(same, lambda item: len(item[1].head), BATCH_TOKENS):
            of_group, parses_of_group = zip(*group, strict=True)
            for document in of_group:
                _check_language(document.language, document.id)
            batch = Batch(of_group, parses_of_group, patterns)
            second = None
            if any(parse.second for parse in parses_of_group):
                second = Batch(of_group, [p.second or p for p in parses_of_group], patterns)
            lists: list[list[Connective]] = [[] for _ in of_group]
            shift = np.cumsum([0, *(len(parse.head) for parse in parses_of_group)])
            for item in connectives_of(batch, second, min_probability, trees):
                number = int(batch.row_doc[batch.row[item.tokens[0]]])
                tokens = tuple(int(token - shift[number]) for token in item.tokens)
                lists[number].append(replace(item, tokens=tokens))
            yield from lists


def _check_language(language: str, document: str = "") -> None:
    """Raise `ConfigError` for a language other than English; a document may name none."""
    if language not in ("", LANGUAGE):
        where = f" of the document {document!r}" if document else ""
        raise ConfigError(
            f"no model of connectives for the language {language!r}{where}",
            hint=f"the connectives of {LANGUAGE} alone are known",
        )


def connectives_of(
    batch: Batch,
    second: Batch | None = None,
    min_probability: float | None = None,
    trees: str = "parsed",
) -> list[Connective]:
    """Return the connectives of a batch in the order of the text; `tokens` index the batch.

    `second` has a second parser's trees of the same tokens; `trees` as in `connectives`.
    """
    model = load_model()
    candidates = Candidates.of([batch] if second is None else [batch, second])
    if not len(candidates.places):
        return []
    probabilities = candidates.probabilities(model, trees)
    least = model.threshold(trees) if min_probability is None else min_probability
    rows = candidates.chosen(probabilities, least)
    senses = candidates.judged(model, rows)
    best = zip(senses.argmax(axis=1).tolist(), senses.max(axis=1).tolist(), strict=True)
    return [
        _connective(batch, candidates.places, row, float(probabilities[row]), model.senses[n], p)
        for row, (n, p) in zip(rows, best, strict=True)
    ]


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
    lexicon, entry = english().lexicon, places.entry[row]
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
