"""The extractor: documents in, pairs out.

Extractor(parser="embedded", markers="all15", mode="require_clause").pairs(documents)
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, overload

from corpora.document import Document, Spans
from corpora.errors import ConfigError, nearest
from extract.columns import PairColumns
from extract.compiled import CompiledPatterns
from extract.extraction import MODES, TEXTS, extract_batch
from extract.pairs import Pair, Reject
from extract.parse import ParsedDocument, Parser
from extract.parsers import check_language, get_parser
from extract.patterns import load_patterns, resolve_markers
from extract.pool import by_words, in_order
from extract.prefilter import Prefilter

BATCH_TOKENS = 120_000
CHUNK_WORDS = 20_000
OnReject = Callable[[Reject], None]


class Extractor:
    """Extracts pairs with one parser, marker set and mode.

    `mode` is `recall`, `require_clause` (both sides have a finite verb and an overt subject, be it
    shared with the conjunct before) or `own_subjects` (each side has its own);
    `text` is `written` or `tokenised`. `gold_sentences` keeps the sentence layer of the source
    where it has one (else it is split by rules), `gold_tokens` its tokens too. Why candidates
    were no pairs is counted in `reject_counts`; `on_reject` gets each of them.
    """

    def __init__(
        self,
        parser: str | Parser = "embedded",
        markers: str | Iterable[str] = "all15",
        mode: str = "recall",
        language: str = "en",
        text: str = "written",
        gold_sentences: bool = False,
        gold_tokens: bool = False,
        workers: int = 1,
        on_reject: OnReject | None = None,
        **parser_settings: Any,
    ) -> None:
        for name, value, choices in (("mode", mode, MODES), ("text", text, TEXTS)):
            if value not in choices:
                raise ConfigError(
                    f"{name} = {value!r}; {nearest(value, choices)}choose from {', '.join(choices)}"
                )
        if not isinstance(parser, str) and workers > 1:
            raise ConfigError("several workers need a parser by its name, not an object")
        self._again = {
            "parser": parser,
            "markers": markers if isinstance(markers, str) else tuple(markers),
            "mode": mode,
            "language": language,
            "text": text,
            "gold_sentences": gold_sentences,
            "gold_tokens": gold_tokens,
            **parser_settings,
        }
        self.markers = resolve_markers(self._again["markers"], language)
        self.mode, self.language, self.text, self.workers = mode, language, text, workers
        self.gold_tokens = gold_tokens
        self.gold_sentences = gold_sentences or gold_tokens or _keeps_sentences(parser)
        self.on_reject = on_reject
        self.reject_counts: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[Reject]] = defaultdict(list)
        self.parser = self._parser(parser, dict(parser_settings))
        self._patterns: CompiledPatterns | None = None

    def pairs(self, documents: Iterable[Document]) -> Iterator[Pair]:
        """The pairs of all documents, in order; counts are complete when it is exhausted.

        With several `workers` each process loads the parser and takes documents in chunks; pairs
        and rejects come back in the same order.
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
        """The same as columns, a batch of documents each."""
        ready, to_parse = itertools.tee(self._with_sentences(d) for d in documents)
        parsed = self.parser.parse(to_parse)
        for batch in batches(zip(ready, parsed, strict=True)):
            yield self.extract([d for d, _ in batch], [p for _, p in batch])

    def extract(
        self,
        documents: Sequence[Document],
        parses: Sequence[ParsedDocument],
    ) -> PairColumns:
        """The pairs of documents that are parsed already."""
        if self.on_reject is None:
            return self._extract(documents, parses, self.reject_counts, None)
        rejects: list[Reject] = []
        columns = self._extract(documents, parses, self.reject_counts, rejects.append)
        self._hand_over(documents, rejects, self.on_reject)
        return columns

    def _extract(
        self,
        documents: Sequence[Document],
        parses: Sequence[ParsedDocument],
        counts: Counter[str],
        on_reject: OnReject | None,
    ) -> PairColumns:
        return extract_batch(
            documents,
            parses,
            self._compiled(parses[0]),
            mode=self.mode,
            text=self.text,
            counts=counts,
            on_reject=on_reject,
        )

    @overload
    def pairs_in(
        self, sentence: str, previous: str = "", marker: str | None = None
    ) -> list[Pair]: ...

    @overload
    def pairs_in(
        self,
        sentence: str,
        previous: str = "",
        marker: str | None = None,
        *,
        rejects: Literal[True],
    ) -> list[Pair | Reject]: ...

    def pairs_in(
        self,
        sentence: str,
        previous: str = "",
        marker: str | None = None,
        *,
        rejects: bool = False,
    ) -> list[Any]:
        """The pairs of one sentence, `previous` being the sentence before it, in order.

        With `marker`, only its occurrences. With `rejects`, these stand where no pair could be
        made.
        """
        text = f"{previous} {sentence}" if previous else sentence
        start = len(text) - len(sentence)
        spans = (
            Spans([0, start], [len(previous), len(text)]) if previous else Spans([0], [len(text)])
        )
        document = Document(id="", text=text, language=self.language, sentences=spans)
        found: list[Pair | Reject] = []
        parses = list(self.parser.parse([document]))
        columns = self._extract([document], parses, Counter(), found.append)
        found.extend(columns.pairs())
        here = [
            r
            for r in found
            if _begin(r) >= start
            and marker in (None, r.marker)
            and (rejects or isinstance(r, Pair))
        ]
        return sorted(here, key=_begin)

    def _with_sentences(self, document: Document) -> Document:
        if self.gold_sentences and document.sentences is not None:
            return document
        from corpora.sentences import split

        assert document.paragraphs is not None
        return document.with_sentences(
            split(document.text, document.paragraphs, language=self.language)
        )

    def _parser(self, parser: str | Parser, settings: dict[str, Any]) -> Parser:
        if not isinstance(parser, str):
            if settings:
                raise ConfigError(f"{', '.join(settings)}: a parser object has its own settings")
            return parser
        check_language(parser, self.language)
        if parser == "gold":
            return get_parser(parser, **settings)
        previous = self.mode != "recall" or self.text == "tokenised"
        settings.setdefault("prefilter", Prefilter(self.markers, self.language, previous))
        if self.gold_tokens:
            settings["gold_tokens"] = True
        return get_parser(parser, on_skip=self._skipped, **settings)

    def _compiled(self, parsed: ParsedDocument) -> CompiledPatterns:
        if self._patterns is None or self._patterns.strings is not parsed.strings:
            table = load_patterns(self.language, self.parser.scheme)
            self._patterns = CompiledPatterns(table, self.markers, parsed.strings)
        return self._patterns

    def _skipped(self, reject: Reject) -> None:
        """A sentence that the parser left out; it is handed over with its document's others."""
        self.reject_counts[reject.reason] += 1
        if self.on_reject is not None:
            self._waiting[reject.doc].append(reject)

    def _hand_over(
        self, documents: Sequence[Document], rejects: Iterable[Reject], on_reject: OnReject
    ) -> None:
        """The rejects document by document in the order of the text, however they were batched."""
        for reject in rejects:
            self._waiting[reject.doc].append(reject)
        for document in documents:
            mine = self._waiting.pop(document.id, [])
            for reject in sorted(mine, key=lambda r: (r.span, r.marker, r.reason)):
                on_reject(reject)


def batches(
    items: Iterable[tuple[Document, ParsedDocument]], tokens: int = BATCH_TOKENS
) -> Iterator[list[tuple[Document, ParsedDocument]]]:
    """Documents with their parses in groups of about `tokens` tokens that share a string table."""
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


def _keeps_sentences(parser: str | Parser) -> bool:
    """Whether a parser's trees come with their own sentences."""
    from extract.parsers.gold import GoldParser

    return parser == "gold" or isinstance(parser, GoldParser)


_EXTRACTORS: dict[str, Extractor] = {}
"""The extractor that this process works with: a pool's worker makes it once."""


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
