"""The extractor: documents in, pairs out.

Extractor(parser="embedded", markers="all15", mode="standalone").pairs(documents)
"""

from __future__ import annotations

import itertools
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Spans, paragraph_spans
from corpora.errors import ConfigError
from corpora.languages import is_foreign
from corpora.processes import in_order
from corpora.sentences import split
from extract.clauses import REFUSALS, Sides, sides_of
from extract.confidence import load_model, threshold
from extract.match import PREVIOUS, REASONS, Matches, find_candidates, match_rows
from extract.pairs import ORDERS, POSITIONS, Pair, Reject, SpanColumn
from extract.parse import BoolArray, ParsedDocument, Parser, by_words, grouped
from extract.parsers import check_language, get_parser
from extract.patterns import load_patterns, resolve_markers
from extract.prefilter import Prefilter
from extract.settings import PairSettings
from extract.standalone import Judge
from extract.text import texts_of
from extract.trees import Batch, CompiledPatterns

BATCH_TOKENS = 120_000
CHUNK_WORDS = 20_000
OnReject = Callable[[Reject], object]
Rejected = list[tuple[Matches, list[str]]]
"""Rejected candidates with a reason for each."""


@dataclass(slots=True)
class PairColumns:
    """The pairs of one batch as columns: their matches, sides, texts and confidences."""

    batch: Batch
    matches: Matches
    sides: Sides
    s1: list[str]
    s2: list[str]
    confidence: NDArray[np.float32] | None
    """None for a language without a model."""

    def __len__(self) -> int:
        return len(self.matches)

    def pairs(self) -> Iterator[Pair]:
        """The pairs as objects, in the order of the text."""
        batch, matches, sides = self.batch, self.matches, self.sides
        patterns = batch.patterns
        # The marker's spans: one, or two for a correlative.
        first = np.stack([matches.first, matches.second], axis=1).ravel()
        length = np.stack([matches.length, matches.second_length], axis=1).ravel()
        start, end = batch.start[first[length > 0]], batch.end[(first + length - 1)[length > 0]]
        markers = SpanColumn.of(1 + (matches.second_length > 0), start, end)
        # "but if he sings, we stay": the "but" is in S1's span, its text begins after S2.
        begin, s2 = sides.spoken[0], sides.spans[1]
        s1_first = begin.start[begin.offsets[:-1]] < s2.start[s2.offsets[:-1]]
        columns = (markers, *sides.spans, sides.added)
        for i, spans in enumerate(zip(*(column.lists() for column in columns), strict=True)):
            row = batch.row[matches.first[i]]
            document = batch.documents[batch.row_doc[row]]
            marker_spans, s1_spans, s2_spans, added = spans
            yield Pair(
                doc=document.id,
                group=document.group,
                source=document.source,
                licence=document.licence,
                language=patterns.table.language,
                sentence=int(batch.row_sentence[row]),
                marker=patterns.names[matches.sequence[i]],
                marker_spans=tuple(marker_spans),
                s1_spans=tuple(s1_spans),
                s2_spans=tuple(s2_spans),
                s1=self.s1[i],
                s2=self.s2[i],
                position=POSITIONS[int(matches.s1[i] == PREVIOUS)],
                order=ORDERS[int(s1_first[i])],
                has_clauses=bool(sides.has_clauses[i]),
                pattern=patterns.table.patterns[matches.row[i]].id,
                s2_added=" ".join(document.text[a:b] for a, b in added),
                confidence=None if self.confidence is None else float(self.confidence[i]),
            )


class Extractor:
    """Extracts pairs with one parser, marker set and mode.

    `mode`, `subjects`, `min_confidence`, `text` and `language` are those of `PairSettings`;
    `patterns` is a pattern file, or several. `gold_sentences` keeps the sentences of the
    source if it has any (else rules split it), `gold_tokens` its tokens too. `reject_counts` counts
    rejected candidates by reason; `on_reject` is called with each.
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
        workers: int = 1,
        on_reject: OnReject | None = None,
        patterns: str | Path | Iterable[str | Path] = (),
        **parser_settings: Any,
    ) -> None:
        files = [patterns] if isinstance(patterns, str | Path) else patterns
        self.settings = PairSettings.of(
            {
                "markers": markers if isinstance(markers, str) else ",".join(markers),
                "language": language,
                "mode": mode,
                "subjects": subjects,
                "min_confidence": min_confidence,
                "text": text,
                "patterns": tuple(map(str, files)),
            }
        )
        if not isinstance(parser, str) and workers > 1:
            raise ConfigError("several workers need a parser by its name, not an object")
        self.workers, self.gold_tokens = workers, gold_tokens
        name = parser if isinstance(parser, str) else parser.name
        self.gold_sentences = gold_sentences or gold_tokens or name == "gold"
        again = {"parser": parser, "gold_sentences": gold_sentences, "gold_tokens": gold_tokens}
        self._again = {**self.settings.model_dump(), **again, **parser_settings}
        self.markers = resolve_markers(self.settings.markers, language, self.settings.patterns)
        self.model = load_model(language, mode)
        self.threshold = threshold(language, mode, min_confidence)
        self.on_reject = on_reject
        self.reject_counts: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[Reject]] = defaultdict(list)
        self.parser = self._parser(parser, dict(parser_settings))
        self._patterns: CompiledPatterns | None = None

    def pairs(self, documents: Iterable[Document]) -> Iterator[Pair]:
        """The pairs of all documents, in order; counts are complete when it is exhausted.

        With several `workers`, each process loads the parser and takes chunks of documents; the
        order of pairs and rejects stays the same.
        """
        if self.workers <= 1:
            for columns in self.columns(documents):
                yield from columns.pairs()
            return
        again = pickle.dumps(self._again)
        jobs = ((again, chunk) for chunk in by_words(documents, CHUNK_WORDS))
        for pairs, rejects in in_order(_extract_chunk, jobs, self.workers):
            for reject in rejects:
                self.reject_counts[reject.reason] += 1
                if self.on_reject is not None:
                    self.on_reject(reject)
            yield from pairs

    def columns(self, documents: Iterable[Document]) -> Iterator[PairColumns]:
        """The same pairs as columns, one set for each batch of documents."""
        ready, to_parse = itertools.tee(self._with_sentences(d) for d in documents)
        parsed = self.parser.parse(to_parse)
        for batch in batches(zip(ready, parsed, strict=True)):
            yield self.extract([d for d, _ in batch], [p for _, p in batch])

    def extract(
        self, documents: Sequence[Document], parses: Sequence[ParsedDocument]
    ) -> PairColumns:
        """The pairs of parsed documents, whose parses share one string table.

        Rejects come document by document in the order of the text.
        """
        columns, rejected = self._extract(documents, parses)
        for _, reasons in rejected:
            self.reject_counts.update(reasons)
        if self.on_reject is not None:
            for reject in _rejects(columns.batch, rejected):
                self._waiting[reject.doc].append(reject)
            for document in documents:
                mine = self._waiting.pop(document.id, [])
                for reject in sorted(mine, key=lambda r: (r.span, r.marker, r.reason)):
                    self.on_reject(reject)
        return columns

    def pairs_in(self, text: str, previous: str = "", marker: str | None = None) -> list[Pair]:
        """The pairs of a text in order; with `marker`, only those of this marker.

        The text is split into sentences, paragraphs at blank lines; `previous` is the sentence
        before it.
        """
        paragraphs = paragraph_spans(text)
        sentences = split(text, paragraphs, language=self.settings.language)
        pairs = [r for r in self._results(text, sentences, previous) if isinstance(r, Pair)]
        return [pair for pair in pairs if marker in (None, pair.marker)]

    def results_in(self, sentence: str, previous: str = "") -> list[Pair | Reject]:
        """The pairs and rejects of one sentence, in order.

        Nothing is split, whatever stops it has; `previous` is the previous sentence.
        """
        return self._results(sentence, Spans([0], [len(sentence)]), previous)

    def _results(self, text: str, sentences: Spans, previous: str) -> list[Pair | Reject]:
        """The pairs and rejects of a text with these sentences, `previous` before them."""
        before = f"{previous} " if previous else ""
        spans = Spans([0], [len(previous)]) if previous else Spans()
        for start, end in sentences:
            spans.add(len(before) + start, len(before) + end)
        language = self.settings.language
        document = Document(id="", text=before + text, language=language, sentences=spans)
        columns, rejected = self._extract([document], list(self.parser.parse([document])))
        results: list[Pair | Reject] = [*_rejects(columns.batch, rejected), *columns.pairs()]
        return sorted((r for r in results if _begin(r) >= len(before)), key=_begin)

    def _extract(
        self, documents: Sequence[Document], parses: Sequence[ParsedDocument]
    ) -> tuple[PairColumns, Rejected]:
        """The pairs of some documents, and the rejected candidates with a reason for each."""
        settings = self.settings
        if self._patterns is None or self._patterns.strings is not parses[0].strings:
            table = load_patterns(settings.language, self.parser.scheme, settings.patterns)
            self._patterns = CompiledPatterns(
                table, self.markers, parses[0].strings, modified=settings.mode == "standalone"
            )
        patterns = self._patterns
        batch = Batch(documents, parses, patterns)
        rejected: Rejected = []
        matches = find_candidates(batch)

        def without(failed: BoolArray, reasons: NDArray[np.str_]) -> Matches:
            """Keep the failed candidates with their reasons; returns the others."""
            rejected.append((matches.take(failed), reasons[failed].tolist()))
            return matches.take(~failed)

        foreign = _foreign(batch)[batch.row_doc[batch.row[matches.first]]]
        unasked = ~patterns.wanted[matches.sequence]
        matches = without(foreign | unasked, np.where(foreign, "language", "multiword"))
        match_rows(batch, matches, whole_clauses=settings.mode != "recall")
        matches = without(matches.row < 0, np.array(REASONS)[matches.stage])
        judge = None
        if settings.mode == "standalone":
            needs = ["finite"] if patterns.table.pro_drop else ["finite", "subject"]
            judge = Judge(batch, ["statement"] if settings.subjects == "shared" else needs)
        sides = sides_of(batch, matches, judge, restore=settings.subjects == "restored")
        failed = sides.refused > 0
        matches, sides = without(failed, np.array(REFUSALS)[sides.refused]), sides.take(~failed)
        confidence = None
        if self.model is not None:
            confidence = self.model.confidences(batch, matches, sides.spans)
            failed = confidence < self.threshold
            matches = without(failed, np.full(len(failed), "confidence"))
            sides, confidence = sides.take(~failed), confidence[~failed]
        doc = batch.row_doc[batch.row[matches.first]]
        s1, s2 = (
            texts_of(batch, doc, spans, settings.text, asks)
            for spans, asks in zip(sides.spoken, sides.asks, strict=True)
        )
        return PairColumns(batch, matches, sides, s1, s2, confidence), rejected

    def _with_sentences(self, document: Document) -> Document:
        if self.gold_sentences and document.sentences is not None:
            return document
        assert document.paragraphs is not None
        return document.with_sentences(
            split(document.text, document.paragraphs, language=self.settings.language)
        )

    def _parser(self, parser: str | Parser, settings: dict[str, Any]) -> Parser:
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
        return get_parser(parser, on_skip=self._skipped, **settings)

    def _skipped(self, reject: Reject) -> None:
        """A sentence that the parser skipped, to be reported with its document's rejects."""
        self.reject_counts[reject.reason] += 1
        if self.on_reject is not None:
            self._waiting[reject.doc].append(reject)


def _foreign(batch: Batch) -> BoolArray:
    """Which documents are clearly not in the table's language."""
    n = len(batch.documents)
    document = batch.row_doc[batch.row]
    words = np.bincount(document[batch.listed("spelled")], minlength=n)
    frequent = np.bincount(document[batch.listed("frequent")], minlength=n)
    known = bool(batch.patterns.table.frequent)
    foreign: BoolArray = known & is_foreign(words, frequent)
    return foreign


def batches(
    items: Iterable[tuple[Document, ParsedDocument]], tokens: int = BATCH_TOKENS
) -> Iterator[list[tuple[Document, ParsedDocument]]]:
    """Documents with their parses, in groups of about `tokens` tokens that share a string table."""
    for _, same in itertools.groupby(items, key=lambda item: item[1].strings):
        yield from grouped(same, lambda item: len(item[1].head), tokens)


def _rejects(batch: Batch, rejected: Rejected) -> Iterator[Reject]:
    """The rejected candidates as objects."""
    ids = [*(row.id for row in batch.patterns.table.patterns), ""]  # the row of no match is -1
    for matches, reasons in rejected:
        starts, ends = batch.start[matches.first], batch.end[matches.first + matches.length - 1]
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        rows = batch.row[matches.first].tolist()
        columns = (rows, matches.sequence, matches.row, reasons, spans)
        for row, marker, pattern, reason, span in zip(*columns, strict=True):
            name, document = batch.patterns.names[marker], batch.documents[batch.row_doc[row]]
            sentence = int(batch.row_sentence[row])
            yield Reject(reason, name, span, document.id, sentence, ids[pattern])


@cache
def _extractor(settings: bytes) -> Extractor:
    """A worker's extractor, made once; pickled settings may be a key, a dict among them may not."""
    return Extractor(**pickle.loads(settings))


def _extract_chunk(settings: bytes, documents: list[Document]) -> tuple[list[Pair], list[Reject]]:
    rejects: list[Reject] = []
    extractor = _extractor(settings)
    extractor.on_reject = rejects.append
    return list(extractor.pairs(documents)), rejects


def _begin(result: Pair | Reject) -> int:
    return result.marker_spans[0][0] if isinstance(result, Pair) else result.span[0]
