"""The extractor: documents in, pairs out.

Extractor(parser="embedded", markers="all15", mode="standalone").pairs(documents)
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Spans
from corpora.errors import ConfigError
from corpora.processes import in_order
from corpora.sentences import split
from extract.clauses import REFUSALS, Sides, sides_of
from extract.confidence import load_model, threshold
from extract.match import PREVIOUS, REASONS, Matches, find_candidates, match_rows
from extract.pairs import Pair, PairColumns, Reject, SpanColumn
from extract.parse import BoolArray, Ints, ParsedDocument, Parser
from extract.parsers import check_language, get_parser
from extract.patterns import load_patterns, resolve_markers
from extract.pool import by_words
from extract.prefilter import Prefilter
from extract.settings import PairSettings
from extract.standalone import Judge
from extract.text import texts_of
from extract.trees import Batch, CompiledPatterns

BATCH_TOKENS = 120_000
CHUNK_WORDS = 20_000
FEW_WORDS = 30
"""The language of a shorter document is not checked."""
FREQUENT = 0.1
"""Minimum share of frequent words: English prose has .3 to .5, German .02."""
OnReject = Callable[[Reject], object]


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
        self.gold_sentences = (
            gold_sentences
            or gold_tokens
            or (parser if isinstance(parser, str) else parser.name) == "gold"
        )
        self._again = {
            **self.settings.model_dump(),
            "parser": parser,
            "gold_sentences": gold_sentences,
            "gold_tokens": gold_tokens,
            **parser_settings,
        }
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
        jobs = ((self._again, chunk) for chunk in by_words(documents, CHUNK_WORDS))
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
        """The pairs of parsed documents.

        Rejects come document by document in the order of the text.
        """
        if self.on_reject is None:
            return self._extract(documents, parses, self.reject_counts, None)
        rejects: list[Reject] = []
        columns = self._extract(documents, parses, self.reject_counts, rejects.append)
        for reject in rejects:
            self._waiting[reject.doc].append(reject)
        for document in documents:
            mine = self._waiting.pop(document.id, [])
            for reject in sorted(mine, key=lambda r: (r.span, r.marker, r.reason)):
                self.on_reject(reject)
        return columns

    def pairs_in(self, sentence: str, previous: str = "", marker: str | None = None) -> list[Pair]:
        """The pairs of one sentence in order; with `marker`, only those of this marker.

        `previous` is the previous sentence.
        """
        results = self.results_in(sentence, previous)
        pairs = [result for result in results if isinstance(result, Pair)]
        return [pair for pair in pairs if marker in (None, pair.marker)]

    def results_in(self, sentence: str, previous: str = "") -> list[Pair | Reject]:
        """The pairs and rejects of one sentence, in order."""
        text = f"{previous} {sentence}" if previous else sentence
        start = len(text) - len(sentence)
        spans = (
            Spans([0, start], [len(previous), len(text)]) if previous else Spans([0], [len(text)])
        )
        document = Document(id="", text=text, language=self.settings.language, sentences=spans)
        results: list[Pair | Reject] = []
        parses = list(self.parser.parse([document]))
        columns = self._extract([document], parses, Counter(), results.append)
        results.extend(columns.pairs())
        return sorted((r for r in results if _begin(r) >= start), key=_begin)

    def _extract(
        self,
        documents: Sequence[Document],
        parses: Sequence[ParsedDocument],
        counts: Counter[str],
        on_reject: OnReject | None,
    ) -> PairColumns:
        """All pairs of some documents, whose parses share one string table.  `counts` counts
        rejected candidates by reason; `on_reject` is called with each.
        """
        patterns = self._compiled(parses[0])
        batch = Batch(documents, parses, patterns)

        def refuse(matches: Matches, why: Ints, reasons: Sequence[str]) -> None:
            for number, n in enumerate(np.bincount(why, minlength=1).tolist()):
                if n:
                    counts[reasons[number]] += n
            if on_reject is not None:
                for reject in _rejects(batch, matches, [reasons[k] for k in why.tolist()]):
                    on_reject(reject)

        matches = find_candidates(batch)
        asked = patterns.wanted[matches.sequence]
        foreign = _foreign(batch)[batch.row_doc[batch.row[matches.first]]]
        for marked, reason in ((foreign, "language"), (~asked & ~foreign, "multiword")):
            others = matches.take(marked)
            refuse(others, np.zeros(len(others), np.int32), [reason])
        matches = matches.take(asked & ~foreign)
        match_rows(batch, matches, whole_clauses=self.settings.mode != "recall")
        failed = matches.row < 0
        refuse(matches.take(failed), matches.stage[failed], REASONS)
        matches = matches.take(~failed)
        judge = None
        if self.settings.mode == "standalone":
            own = ["finite"] if patterns.table.pro_drop else ["finite", "subject"]
            needs = ["statement"] if self.settings.subjects == "shared" else own
            judge = Judge(batch, needs)
        restore = self.settings.subjects == "restored"
        sides = sides_of(batch, matches, judge, restore=restore)
        refused = sides.refused > 0
        refuse(matches.take(refused), sides.refused[refused], REFUSALS)
        matches, sides = matches.take(~refused), sides.take(~refused)
        if self.model is None:
            return self._columns(batch, matches, sides, None)
        sure = self.model.confidences(batch, matches, sides.spans)
        doubtful = sure < self.threshold
        others = matches.take(doubtful)
        refuse(others, np.zeros(len(others), np.int32), ["confidence"])
        return self._columns(batch, matches.take(~doubtful), sides.take(~doubtful), sure[~doubtful])

    def _columns(
        self, batch: Batch, matches: Matches, sides: Sides, sure: NDArray[np.float32] | None
    ) -> PairColumns:
        rows = batch.row[matches.first]
        doc = batch.row_doc[rows]
        (s1, s2), text = sides.spans, self.settings.text
        # "but if he sings, we stay": the "but" is in S1's span, its text begins after S2.
        begin = sides.spoken[0]
        # The marker's spans: one, or two for a correlative.
        first = np.stack([matches.first, matches.second], axis=1).ravel()
        length = np.stack([matches.length, matches.second_length], axis=1).ravel()
        last = (first + length - 1)[length > 0]
        counts = (1 + (matches.second_length > 0)).astype(np.int32)
        written = [d.text for d in batch.documents]
        copies = [
            " ".join(written[d][a:b] for a, b in spans)
            for d, spans in zip(doc.tolist(), sides.added.lists(), strict=True)
        ]
        return PairColumns(
            documents=batch.documents,
            markers=batch.patterns.names,
            patterns=[row.id for row in batch.patterns.table.patterns],
            language=self.settings.language,
            doc=doc,
            sentence=batch.row_sentence[rows],
            marker=matches.sequence,
            pattern=matches.row,
            previous=matches.s1 == PREVIOUS,
            s1_first=begin.start[begin.offsets[:-1]] < s2.start[s2.offsets[:-1]],
            has_clauses=sides.has_clauses,
            marker_spans=SpanColumn.of(counts, batch.start[first[length > 0]], batch.end[last]),
            s1_spans=s1,
            s2_spans=s2,
            s1=texts_of(batch, doc, sides.spoken[0], text, sides.asks[0]),
            s2=texts_of(batch, doc, sides.spoken[1], text, sides.asks[1]),
            s2_added=copies,
            confidence=sure,
        )

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
        if self.gold_tokens:
            settings["gold_tokens"] = True
        return get_parser(parser, on_skip=self._skipped, **settings)

    def _compiled(self, parsed: ParsedDocument) -> CompiledPatterns:
        if self._patterns is None or self._patterns.strings is not parsed.strings:
            language, files = self.settings.language, self.settings.patterns
            table = load_patterns(language, self.parser.scheme, files)
            self._patterns = CompiledPatterns(
                table,
                self.markers,
                parsed.strings,
                modified=self.settings.mode == "standalone",
            )
        return self._patterns

    def _skipped(self, reject: Reject) -> None:
        """A sentence that the parser skipped, to be reported with its document's rejects."""
        self.reject_counts[reject.reason] += 1
        if self.on_reject is not None:
            self._waiting[reject.doc].append(reject)


def _foreign(batch: Batch) -> BoolArray:
    """Which documents are clearly not in the table's language."""
    n = len(batch.documents)
    document = batch.row_doc[batch.row]
    words = np.bincount(document, minlength=n)
    frequent = np.bincount(document[batch.listed("frequent")], minlength=n)
    known = bool(batch.patterns.table.frequent)
    return known & (words >= FEW_WORDS) & (frequent < FREQUENT * words)


def batches(
    items: Iterable[tuple[Document, ParsedDocument]], tokens: int = BATCH_TOKENS
) -> Iterator[list[tuple[Document, ParsedDocument]]]:
    """Documents with their parses, in groups of about `tokens` tokens that share a string table."""
    group: list[tuple[Document, ParsedDocument]] = []
    filled = 0
    for document, parsed in items:
        if group and (filled >= tokens or parsed.strings is not group[0][1].strings):
            yield group
            group, filled = [], 0
        group.append((document, parsed))
        filled += len(parsed.head)
    if group:
        yield group


def _rejects(batch: Batch, matches: Matches, reasons: Sequence[str]) -> Iterator[Reject]:
    """The candidates as `Reject` objects."""
    rows = batch.row[matches.first].tolist()
    starts, ends = batch.start[matches.first], batch.end[matches.first + matches.length - 1]
    names = [batch.patterns.names[s] for s in matches.sequence.tolist()]
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    for row, name, reason, span in zip(rows, names, reasons, spans, strict=True):
        document = batch.documents[batch.row_doc[row]].id
        yield Reject(reason, name, span, document, int(batch.row_sentence[row]))


_EXTRACTORS: dict[str, Extractor] = {}
"""This process's extractor; a worker makes it once."""


def _extract_chunk(
    settings: dict[str, Any], documents: list[Document]
) -> tuple[list[Pair], list[Reject]]:
    extractor = _EXTRACTORS.get(repr(settings))
    if extractor is None:
        extractor = _EXTRACTORS[repr(settings)] = Extractor(**settings)
    rejects: list[Reject] = []
    extractor.on_reject = rejects.append
    return list(extractor.pairs(documents)), rejects


def _begin(result: Pair | Reject) -> int:
    return result.marker_spans[0][0] if isinstance(result, Pair) else result.span[0]
