"""Extract pairs from documents.

Extractor(parser="embedded", markers="all15", mode="standalone").pairs(documents)
"""

from __future__ import annotations

import itertools
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpora.document import Document, Spans, paragraph_spans
from corpora.errors import ConfigError
from corpora.languages import is_foreign
from corpora.processes import in_order
from corpora.schemas import PAIRS
from corpora.sentences import split
from extract.agreement import Candidates, united
from extract.clauses import REFUSALS, Sides, sides_of
from extract.confidence import load_model, threshold
from extract.match import PREVIOUS, REASONS, Matches, find_candidates, match_rows
from extract.pairs import ORDERS, POSITIONS, Pair, Reject, SpanColumn, pairs_of
from extract.parse import (
    CHUNK_WORDS,
    BoolArray,
    Ints,
    ParsedDocument,
    Parser,
    by_words,
    grouped,
)
from extract.parsers import check_language, get_parser, is_checked
from extract.patterns import load_patterns, resolve_markers
from extract.prefilter import Prefilter
from extract.settings import Check, PairSettings
from extract.standalone import Judge
from extract.text import texts_of
from extract.trees import Batch, CompiledPatterns

BATCH_TOKENS = 120_000
_compile_patterns = lru_cache(maxsize=4)(CompiledPatterns)


@dataclass(slots=True)
class PairColumns:
    """The pairs of one batch as columns [pairs], and its rejected candidates."""

    batch: Batch
    matches: Matches
    sides: Sides
    s1: list[str]
    s2: list[str]
    confidence: NDArray[np.float32] | None
    """None for a language without a model."""
    rejected: list[tuple[Matches, list[str]]]
    """Rejected candidates with a reason for each."""

    @classmethod
    def of(cls, pairs: Candidates, confidence: NDArray[np.float32] | None) -> PairColumns:
        """Return the columns of candidates that are all pairs, with their rejects."""
        texts = pairs.s1, pairs.s2
        return cls(pairs.batch, pairs.matches, pairs.sides, *texts, confidence, [*pairs.rejected])

    def __len__(self) -> int:
        return len(self.matches)

    def to_arrow(self) -> pa.RecordBatch:
        """Return the pairs as rows of `corpora.schemas.PAIRS`, in the order of the text."""
        batch, matches, sides = self.batch, self.matches, self.sides
        table, documents = batch.patterns.table, batch.documents
        row = batch.row[matches.first]
        document = batch.row_doc[row]
        # The marker's spans: one, or two for a correlative.
        first = np.stack([matches.first, matches.second], axis=1).ravel()
        length = np.stack([matches.length, matches.second_length], axis=1).ravel()
        start, end = batch.start[first[length > 0]], batch.end[(first + length - 1)[length > 0]]
        markers = SpanColumn.of(1 + (matches.second_length > 0), start, end)
        # By S1's text, not its span: in "but if he sings, we stay" the span begins with "but".
        s1, s2 = sides.spoken[0], sides.spans[1]
        s1_first = s1.start[s1.offsets[:-1]] < s2.start[s2.offsets[:-1]]

        def by_index(strings: Iterable[str], index: Ints | BoolArray) -> pa.Array:
            return pa.array(strings, pa.string()).take(pa.array(index, pa.int32()))

        added = zip(document, sides.added.lists(), strict=True)
        columns = {
            "doc": by_index([d.id for d in documents], document),
            "group": by_index([d.group for d in documents], document),
            "source": by_index([d.source for d in documents], document),
            "licence": by_index([d.licence for d in documents], document),
            "language": pa.repeat(table.language, len(self)),
            "sentence": batch.row_sentence[row],
            "marker": by_index(batch.patterns.names, matches.sequence),
            "marker_spans": markers.to_arrow(),
            "s1_spans": sides.spans[0].to_arrow(),
            "s2_spans": s2.to_arrow(),
            "s1": self.s1,
            "s2": self.s2,
            "position": by_index(POSITIONS, matches.s1 == PREVIOUS),
            "order": by_index(ORDERS, s1_first),
            "has_clauses": sides.has_clauses,
            "pattern": by_index([pattern.id for pattern in table.patterns], matches.row),
            "s2_added": [" ".join(documents[d].text[a:b] for a, b in spans) for d, spans in added],
            "confidence": [None] * len(self) if self.confidence is None else self.confidence,
        }
        return pa.RecordBatch.from_pydict(columns, schema=PAIRS)

    def pairs(self) -> Iterator[Pair]:
        """The pairs as objects, in the order of the text."""
        return pairs_of(self.to_arrow())

    def rejects(self) -> Iterator[Reject]:
        """The rejected candidates as objects."""
        batch = self.batch
        ids = [*(row.id for row in batch.patterns.table.patterns), ""]  # the row of no match is -1
        for matches, reasons in self.rejected:
            starts, ends = batch.start[matches.first], batch.end[matches.first + matches.length - 1]
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            rows = batch.row[matches.first].tolist()
            columns = (rows, matches.sequence, matches.row, reasons, spans)
            for row, marker, pattern, reason, span in zip(*columns, strict=True):
                name, document = batch.patterns.names[marker], batch.documents[batch.row_doc[row]]
                number = int(batch.row_sentence[row])
                yield Reject(reason, name, span, document.id, number, ids[pattern])


def extract(
    documents: Iterable[Document],
    parses: Iterable[ParsedDocument],
    settings: PairSettings,
    scheme: str = "ud",
) -> Iterator[PairColumns]:
    """Yield the pairs and rejected candidates of each batch of parsed documents.

    A batch has about `BATCH_TOKENS` tokens with one string table. `parses` are those of `documents`
    with their sentence layer, in the same order; `scheme` is that of their labels
    (`Parser.scheme`).
    """
    for first, second in candidates(documents, parses, settings, scheme):
        yield _choose_pairs(first, second, settings)


def candidates(
    documents: Iterable[Document],
    parses: Iterable[ParsedDocument],
    settings: PairSettings,
    scheme: str = "ud",
) -> Iterator[tuple[Candidates, Candidates | None]]:
    """Yield the candidates of each batch by the first parser's trees and by the second's if any."""
    table = load_patterns(settings.language, scheme, settings.patterns)
    markers = resolve_markers(settings.markers, settings.language, settings.patterns)
    modified = settings.mode == "standalone"
    parsed = zip(documents, parses, strict=True)
    for strings, same_table in itertools.groupby(parsed, key=lambda item: item[1].strings):
        patterns = _compile_patterns(table, markers, strings, modified=modified)
        for group in grouped(same_table, lambda item: len(item[1].head), BATCH_TOKENS):
            group_documents, first_parses = zip(*group, strict=True)
            first = candidates_of(Batch(group_documents, first_parses, patterns), settings)
            if not any(parse.second for parse in first_parses):
                yield first, None
                continue
            second_parses = [parse.second or parse for parse in first_parses]
            second = candidates_of(Batch(group_documents, second_parses, patterns), settings)
            yield first, replace(second, second=True)


def candidates_of(batch: Batch, settings: PairSettings) -> Candidates:
    """Return the candidates of a batch that may be pairs, and those that a step rejects."""
    patterns = batch.patterns
    rejected: list[tuple[Matches, list[str]]] = []
    matches = find_candidates(batch)

    def reject_failed(failed: BoolArray, reasons: NDArray[np.str_]) -> Matches:
        """Add the matches marked as failed to `rejected` with their reasons; return the others."""
        rejected.append((matches.take(failed), reasons[failed].tolist()))
        return matches.take(~failed)

    foreign = _foreign_documents(batch)[batch.row_doc[batch.row[matches.first]]]
    connective_only = ~patterns.wanted[matches.sequence]
    matches = reject_failed(foreign | connective_only, np.where(foreign, "language", "multiword"))
    match_rows(batch, matches, whole_clauses=settings.mode != "recall", previous=settings.previous)
    unmatched = matches.first[matches.row < 0]
    matches = reject_failed(matches.row < 0, np.array(REASONS)[matches.stage])
    judge = None
    if settings.mode == "standalone":
        needs = ["finite"] if patterns.table.pro_drop else ["finite", "subject"]
        judge = Judge(batch, ["statement"] if settings.subjects == "shared" else needs)
    sides = sides_of(batch, matches, judge, restore=settings.subjects == "restored")
    failed = sides.rejection > 0
    matches = reject_failed(failed, np.array(REFUSALS)[sides.rejection])
    sides = sides.take(~failed)
    doc = batch.row_doc[batch.row[matches.first]]
    s1, s2 = (
        texts_of(batch, doc, spans, settings.text, asks)
        for spans, asks in zip(sides.spoken, sides.asks, strict=True)
    )
    return Candidates(batch, matches, sides, s1, s2, rejected, unmatched)


def _choose_pairs(
    first: Candidates, second: Candidates | None, settings: PairSettings
) -> PairColumns:
    """Choose the more confident candidate at each marker, if it reaches the minimum confidence."""
    model = load_model(settings.language, settings.mode, checked=second is not None)
    if model is None:
        return PairColumns.of(first, None)
    confidence = model.confidences(first, second)
    pairs = first
    if second is not None:
        both = confidence, model.confidences(second, first)
        pairs, confidence = united(first, second, both)
    failed = confidence < threshold(settings.language, settings.mode, settings.min_confidence)
    if not failed.any():
        return PairColumns.of(pairs, confidence)
    columns = PairColumns.of(pairs.take(~failed), confidence[~failed])
    columns.rejected.append((pairs.matches.take(failed), ["confidence"] * int(failed.sum())))
    return columns


def _foreign_documents(batch: Batch) -> BoolArray:
    """Return for each document whether it is clearly not in the table's language."""
    count = len(batch.documents)
    document = batch.row_doc[batch.row]
    words = np.bincount(document[batch.listed("spelled")], minlength=count)
    frequent = np.bincount(document[batch.listed("frequent")], minlength=count)
    foreign: BoolArray = is_foreign(words, frequent) & bool(batch.patterns.table.frequent)
    return foreign


class Extractor:
    """Extracts pairs with one parser, marker set and mode.

    `mode`, `subjects`, `min_confidence`, `text`, `previous` and `language` are those of
    `PairSettings`; `patterns` is a pattern file, or several. `gold_sentences` keeps the sentences
    of the source if it has any (else rules split it), `gold_tokens` its tokens too. `check`:
    whether a second parser checks the first (`extract.parsers.is_checked`). `reject_counts` counts
    rejected candidates by reason; `on_reject` is called with each, in the order of the text.
    """

    def __init__(
        self,
        parser: str | Parser = "embedded",
        markers: str | Iterable[str] = "all15",
        mode: str = "standalone",
        language: str = "en",
        text: str = "written",
        subjects: str = "own",
        min_confidence: float | None = None,
        gold_sentences: bool = False,
        gold_tokens: bool = False,
        check: Check | None = None,
        workers: int = 1,
        on_reject: Callable[[Reject], object] | None = None,
        patterns: str | Path | Iterable[str | Path] = (),
        previous: bool = True,
        **parser_settings: Any,
    ) -> None:
        files = [patterns] if isinstance(patterns, str | Path) else patterns
        name = parser if isinstance(parser, str) else parser.name
        shape: dict[str, Any] = {"mode": mode, "language": language, "text": text}
        shape |= {"subjects": subjects, "previous": previous}
        shape |= {"markers": markers if isinstance(markers, str) else ",".join(markers)}
        PairSettings.of({**shape, "min_confidence": min_confidence})  # raises for a wrong value
        # Raises for a language without a model.
        minimum = threshold(language, mode, min_confidence, name)
        self.settings = PairSettings.of(
            {**shape, "min_confidence": minimum, "patterns": tuple(map(str, files))}
        )
        if not isinstance(parser, str) and workers > 1:
            raise ConfigError("several workers need a parser by its name, not an object")
        self.workers, self.gold_tokens = workers, gold_tokens
        self.gold_sentences = gold_sentences or gold_tokens or name == "gold"
        layers = {"gold_sentences": gold_sentences, "gold_tokens": gold_tokens}
        self._keywords = {
            **self.settings.model_dump(),
            "parser": parser,
            **layers,
            "check": check,
            **parser_settings,
        }
        self.markers = resolve_markers(self.settings.markers, language, self.settings.patterns)
        self.on_reject = on_reject or (lambda reject: None)
        self.reject_counts: Counter[str] = Counter()
        self._rejects_by_document: defaultdict[str, list[Reject]] = defaultdict(list)
        if is_checked(name, check) and isinstance(parser, str):
            parser_settings["check"] = True
        self.parser = self._parser(parser, dict(parser_settings))

    def pairs(self, documents: Iterable[Document]) -> Iterator[Pair]:
        """The pairs of all documents, in order; `reject_counts` is complete after the last pair."""
        for rows in self.rows(documents):
            yield from pairs_of(rows)

    def rows(self, documents: Iterable[Document]) -> Iterator[pa.RecordBatch]:
        """The pairs of all documents, in order, in batches of rows of `corpora.schemas.PAIRS`.

        With several `workers`, each process loads the parser and takes chunks of documents; the
        pairs and rejects come in the order of the documents all the same.
        """
        if self.workers <= 1:
            for columns in self.columns(documents):
                yield columns.to_arrow()
            return
        keywords = pickle.dumps(self._keywords)
        jobs = ((keywords, chunk) for chunk in by_words(documents, CHUNK_WORDS))
        for rows, rejects in in_order(_extract_chunk, jobs, self.workers):
            self._report_rejects(rejects)
            yield from rows

    def columns(self, documents: Iterable[Document]) -> Iterator[PairColumns]:
        """Yield the pairs and rejected candidates of each batch; report the rejects."""
        for columns in self._extract(map(self._with_sentences, documents)):
            for reject in columns.rejects():
                self._store_reject(reject)
            for document in columns.batch.documents:
                rejects = self._rejects_by_document.pop(document.id, [])
                self._report_rejects(sorted(rejects, key=lambda r: (r.span, r.marker, r.reason)))
            yield columns

    def pairs_in(self, text: str, previous: str = "", marker: str | None = None) -> list[Pair]:
        """The pairs of a text in order; with `marker`, only those of this marker.

        The text is split into sentences, paragraphs at blank lines; `previous` is the sentence
        before it. Raises `TypeError` for what is not a text.
        """
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.80} is no text: give a string")
        paragraphs = paragraph_spans(text)
        sentences = split(text, paragraphs, language=self.settings.language)
        pairs = [r for r in self._results(text, sentences, previous) if isinstance(r, Pair)]
        return [pair for pair in pairs if marker in (None, pair.marker)]

    def results_in(self, sentence: str, previous: str = "") -> list[Pair | Reject]:
        """The pairs and rejects of one sentence, in order.

        The text stays one sentence, even with full stops inside; `previous` is the sentence before.
        """
        return self._results(sentence, Spans([0], [len(sentence)]), previous)

    def _results(self, text: str, sentences: Spans, previous: str) -> list[Pair | Reject]:
        """Return the pairs and rejects of a text with these sentences, `previous` before them."""
        before = f"{previous} " if previous else ""
        spans = Spans([0], [len(previous)]) if previous else Spans()
        for start, end in sentences:
            spans.add(len(before) + start, len(before) + end)
        language = self.settings.language
        document = Document(id="", text=before + text, language=language, sentences=spans)
        (columns,) = self._extract([document])
        results: list[Pair | Reject] = [*columns.rejects(), *columns.pairs()]
        return sorted((r for r in results if _marker_start(r) >= len(before)), key=_marker_start)

    def candidates(
        self, documents: Iterable[Document]
    ) -> Iterator[tuple[Candidates, Candidates | None]]:
        """Yield all candidates of each batch by the first parser and by the second (or None)."""
        return self._parse_and(candidates, map(self._with_sentences, documents))

    def _extract(self, documents: Iterable[Document]) -> Iterator[PairColumns]:
        return self._parse_and(extract, documents)

    def _parse_and(self, step: Callable[..., Iterator[Any]], documents: Iterable[Document]) -> Any:
        """Parse documents; return the results of `step` (`extract` or `candidates`) for them."""
        originals, to_parse = itertools.tee(documents)
        return step(originals, self.parser.parse(to_parse), self.settings, self.parser.scheme)

    def _with_sentences(self, document: Document) -> Document:
        """Return the document with its gold sentences if `gold_sentences`, else split by rules."""
        if self.gold_sentences and document.sentences is not None:
            return document
        assert document.paragraphs is not None
        return document.with_sentences(
            split(document.text, document.paragraphs, language=self.settings.language)
        )

    def _parser(self, parser: str | Parser, settings: dict[str, Any]) -> Parser:
        """Return the parser object, or the parser with that name and these settings."""
        if not isinstance(parser, str):
            if settings:
                raise ConfigError(f"{', '.join(settings)}: a parser object has its own settings")
            return parser
        check_language(parser, self.settings.language)
        if parser == "gold":
            return get_parser(parser, **settings)
        table = load_patterns(self.settings.language, "ud", self.settings.patterns)
        settings.setdefault("prefilter", Prefilter(self.markers, table, self.settings.looks_back))
        settings.setdefault("gold_tokens", self.gold_tokens)
        return get_parser(parser, on_skip=self._store_reject, **settings)

    def _store_reject(self, reject: Reject) -> None:
        """Store a reject until all rejects of its document are reported, in order."""
        self._rejects_by_document[reject.doc].append(reject)

    def _report_rejects(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            self.reject_counts[reject.reason] += 1
            self.on_reject(reject)


@cache
def _extractor(keywords: bytes) -> Extractor:
    """Return the extractor of a worker process, made once from pickled keywords.

    A dict of keywords could not be the cache's key.
    """
    return Extractor(**pickle.loads(keywords))


def _extract_chunk(
    keywords: bytes, documents: list[Document]
) -> tuple[list[pa.RecordBatch], list[Reject]]:
    """Return the pairs (rows of `PAIRS`) and rejects of some documents, in a worker process."""
    rejects: list[Reject] = []
    extractor = _extractor(keywords)
    extractor.on_reject = rejects.append
    return list(extractor.rows(documents)), rejects


def _marker_start(result: Pair | Reject) -> int:
    return result.marker_spans[0][0] if isinstance(result, Pair) else result.span[0]
