"""The spaCy component `discorpora`: `doc._.connectives` and `doc._.pairs` from a pipeline's trees.

nlp.add_pipe("discorpora")

It reads the trees and sentences that the pipeline gives a `Doc`, and changes neither: no text is
parsed again. Pairs are those that `extract` finds in the same trees; connectives are those of
`extract.connectives`. Without spaCy's entry points, importing this module registers the component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from corpora.document import Document, Spans
from corpora.errors import ConfigError, InputError, check_choice
from extract.confidence import threshold
from extract.connectives import Connective, connectives_of
from extract.extractor import BATCH_TOKENS, extract
from extract.pairs import Pair, pair_of
from extract.parse import NAMES, STRINGS_LIMIT, IntArray, ParsedDocument, StringTable, grouped
from extract.patterns import resolve_markers
from extract.patterns.table import SCHEMES
from extract.seen import parser_text
from extract.settings import PairSettings

LANGUAGES = {"en": "spacy", "en_ud": "embedded"}
"""Languages of pipelines; `en_ud` is that of the embedded one."""
MARKS = {"clear": "dobj", "ud": "obj"}
"""A label of direct objects that only one scheme has."""
COLUMNS: list[int | str] = [
    *("ORTH", "POS", "TAG", "MORPH", "DEP"),
    *("HEAD", "SENT_START", "IDX", "LENGTH", "IS_SPACE"),
]
NAME = "discorpora"
CONNECTIVES, PAIRS = "discorpora.connectives", "discorpora.pairs"
"""Keys of `Doc.user_data`. The values are plain lists: spaCy writes these to bytes."""


class Places(NamedTuple):
    """The indices in a `Doc` of the tokens and sentences of its parse."""

    tokens: list[int]
    sentences: list[int]


class Component:
    """Sets `doc._.connectives` and `doc._.pairs` (see `make_component`)."""

    def __init__(
        self,
        vocab: Vocab,
        parser: Any,
        settings: PairSettings,
        scheme: str | None,
        min_probability: float | None,
    ) -> None:
        self.vocab, self.parser, self.settings = vocab, parser, settings
        self.scheme, self.min_probability = scheme, min_probability
        self._renew_strings()

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, docs: Iterable[Doc], batch_size: int = 1000) -> Iterator[Doc]:
        """Annotate a stream of documents; a batch has `batch_size` of them."""
        for batch in minibatch(docs, size=batch_size):
            for group in grouped(batch, len, BATCH_TOKENS):
                self._annotate(group)
            yield from batch

    def _annotate(self, docs: Sequence[Doc]) -> None:
        """Annotate documents that are one batch of `extract` (see `BATCH_TOKENS`)."""
        scheme = self.scheme = self.scheme or scheme_of(self.parser)
        if len(self.strings) > STRINGS_LIMIT:
            self._renew_strings()
        documents, parses, places = zip(*self._parsed(docs), strict=True)
        (columns,) = extract(documents, parses, self.settings, scheme)
        batch = columns.batch
        for doc in docs:
            doc.user_data[CONNECTIVES], doc.user_data[PAIRS] = [], []
        numbers = batch.row_doc[batch.row[columns.matches.first]].tolist()
        for number, row in zip(numbers, columns.to_arrow().to_pylist(), strict=True):
            row["sentence"] = places[number].sentences[row["sentence"]]
            docs[number].user_data[PAIRS].append(row)
        begin = np.cumsum([0, *(len(parse.head) for parse in parses)]).tolist()
        for item in connectives_of(batch, min_probability=self.min_probability):
            number = int(batch.row_doc[batch.row[item.tokens[0]]])
            row = {name: getattr(item, name) for name in Connective.__slots__}
            row["sentence"] = places[number].sentences[item.sentence]
            row["tokens"] = [places[number].tokens[token - begin[number]] for token in item.tokens]
            docs[number].user_data[CONNECTIVES].append(row)

    def _parsed(self, docs: Sequence[Doc]) -> Iterator[tuple[Document, ParsedDocument, Places]]:
        """Yield each `Doc` as a document with its parse, and the places of both in the `Doc`.

        Tokens and sentences of white space are left out; what depends on one depends on its head.
        """
        for doc, (name, maker) in product(docs, (("DEP", "parser"), ("TAG", "tagger"))):
            if len(doc) and not doc.has_annotation(name):
                raise InputError(
                    f"the document {doc.text[:40]!r} has no {name}: no {maker} ran on it",
                    hint=f'enable the {maker}, and put "discorpora" after it',
                )
        # The tokens of all documents, end to end
        array = np.concatenate([doc.to_array(COLUMNS).reshape(-1, len(COLUMNS)) for doc in docs])
        token_bounds = np.cumsum([0, *map(len, docs)])
        number = np.repeat(np.arange(len(docs)), np.diff(token_bounds))
        relative, begins, start, length, space = array[:, 5:].astype(np.int64).T
        sentence = np.cumsum((begins == 1) | (np.diff(number, prepend=-1) > 0)) - 1
        tokens = np.arange(len(array))
        head = tokens + relative
        words = space == 0
        while len(beside := np.flatnonzero(~words[head] & (head[head] != head))):
            head[beside] = head[head[beside]]
        root = (head == tokens) | ~words[head] | (sentence[head] != sentence)
        # The words, and the first one of each sentence that has one
        kept = np.flatnonzero(words)
        first = np.flatnonzero(np.diff(sentence[kept], prepend=-1))
        word_bounds = np.searchsorted(kept, token_bounds)
        sentence_bounds = np.searchsorted(first, word_bounds)
        # The columns, with numbers that begin anew in each document
        start, end = start[kept].astype(np.int32), (start + length)[kept].astype(np.int32)
        place = np.cumsum(words) - 1 - word_bounds[number]
        head = np.where(root, -1, place[head])[kept].astype(np.int32)
        codes = self._codes(array[kept, :5])
        token_numbers = (tokens - token_bounds[number])[kept].tolist()
        sentence_numbers = (sentence - sentence[token_bounds[number]])[kept[first]].tolist()
        starts = start[first].tolist()
        ends = end[np.append(first, len(kept))[1:] - 1].tolist()
        bounds = pairwise(word_bounds.tolist()), pairwise(sentence_bounds.tolist())
        for doc, (a, b), (i, j) in zip(docs, *bounds, strict=True):
            spans = Spans(starts[i:j], ends[i:j])
            document = Document("", doc.text, language="en", sentences=spans)
            parse = ParsedDocument(
                doc="",
                strings=self.strings,
                sentence=np.arange(j - i, dtype=np.int32),
                offsets=(np.append(first[i:j], b) - a).astype(np.int32),
                start=start[a:b],
                end=end[a:b],
                head=head[a:b],
                **{name: column[a:b] for name, column in zip(NAMES, codes, strict=True)},
            )
            yield document, parse, Places(token_numbers[a:b], sentence_numbers[i:j])

    def _codes(self, hashes: NDArray[np.uint64]) -> list[IntArray]:
        """Return the codes in `strings` of the vocabulary's hashes `[tokens, NAMES]`, by column."""
        codes = []
        for name, column in zip(NAMES, hashes.T, strict=True):
            code = self._form if name == "form" else self._name
            values = pa.array(column.astype(np.uint64)).dictionary_encode()
            known = np.array([code(key) for key in values.dictionary.to_pylist()], dtype=np.int32)
            codes.append(known[values.indices.to_numpy()])
        return codes

    def _form(self, key: int) -> int:
        code = self._form_codes.get(key)
        if code is None:
            form = self.vocab.strings[key]
            seen = form if form.isascii() else parser_text(form)[0] or form
            code = self._form_codes[key] = self.strings.code(seen)
        return code

    def _name(self, key: int) -> int:
        code = self._name_codes.get(key)
        if code is None:
            code = self._name_codes[key] = self.strings.code(self.vocab.strings[key])
        return code

    def _renew_strings(self) -> None:
        """Begin a new table of strings, so that memory does not grow with the documents."""
        self.strings = StringTable()
        self._form_codes: dict[int, int] = {}
        self._name_codes: dict[int, int] = {}


@Language.factory(
    NAME,
    requires=["token.dep", "token.head", "token.tag"],
    assigns=["doc._.connectives", "doc._.pairs"],
    default_config={
        "scheme": None,
        "markers": "all15",
        "mode": "standalone",
        "subjects": "own",
        "text": "written",
        "min_confidence": None,
        "min_probability": None,
        "patterns": [],
    },
)
def make_component(
    nlp: Language,
    name: str,
    scheme: str | None,
    markers: str,
    mode: str,
    subjects: str,
    text: str,
    min_confidence: float | None,
    min_probability: float | None,
    patterns: list[str],
) -> Component:
    """Return the component for an English pipeline with a parser and a tagger before it.

    `scheme` names the parser's labels, `ud` or `clear`; without it the labels tell.
    `min_probability` replaces the threshold of connectives; the others are the fields of
    `extract.settings.PairShape`.
    Raises `ConfigError` for another language, a missing parser or tagger, an unknown scheme, and a
    wrong value.
    """
    if nlp.lang not in LANGUAGES:
        raise ConfigError(
            f"discorpora needs an English pipeline, and the language of this one is {nlp.lang!r}",
            hint="add it to a pipeline such as en_core_web_sm, or to extract.embedded.load()",
        )
    parser = _assigning(nlp, "token.head", "parser")
    _assigning(nlp, "token.tag", "tagger")
    if scheme is not None:
        check_choice("scheme", scheme, SCHEMES)
    elif getattr(parser, "labels", ()):  # those of a saved pipeline are loaded after this
        scheme = scheme_of(parser)
    if min_probability is not None and not 0 <= min_probability <= 1:
        raise ConfigError(f"min_probability = {min_probability}", hint="choose from 0 to 1")
    shape = {"markers": markers, "mode": mode, "subjects": subjects, "text": text}
    values = {**shape, "min_confidence": min_confidence, "patterns": tuple(patterns)}
    PairSettings.of(values)  # raises for a wrong value
    minimum = threshold("en", mode, min_confidence, f"{LANGUAGES[nlp.lang]}:{nlp.meta['name']}")
    settings = PairSettings.of({**values, "min_confidence": minimum})
    resolve_markers(markers, "en", settings.patterns)
    return Component(nlp.vocab, parser, settings, scheme, min_probability)


def _assigning(nlp: Language, attribute: str, what: str) -> Any:
    """Return the last active component that sets an attribute; `ConfigError` without one."""
    for name in reversed(nlp.pipe_names):
        if attribute in nlp.get_pipe_meta(name).assigns:
            return nlp.get_pipe(name)
    names = ", ".join(nlp.pipe_names) or "no component"
    raise ConfigError(
        f"the pipeline has no {what} before discorpora; it has {names}",
        hint=f"add or enable a trained {what} first, then discorpora",
    )


def scheme_of(parser: Any) -> str:
    """Return the scheme of a parser's labels; `ConfigError` if they are of neither."""
    labels = tuple(getattr(parser, "labels", ()))
    for scheme in SCHEMES:
        if MARKS[scheme] in labels:
            return scheme
    raise ConfigError(
        f"the parser's labels are neither UD's nor CLEAR's: {', '.join(labels) or 'it has none'}",
        hint='name their scheme: nlp.add_pipe("discorpora", config={"scheme": "ud"}), or "clear"',
    )


def _connectives(doc: Doc) -> list[Connective]:
    """The connectives of a document; `tokens` index the `Doc`."""
    rows = [dict(row) for row in doc.user_data.get(CONNECTIVES, ())]
    for row in rows:
        row["tokens"] = tuple(row["tokens"])
        row["spans"] = tuple(map(tuple, row["spans"]))
    return [Connective(**row) for row in rows]


def _pairs(doc: Doc) -> list[Pair]:
    """The pairs of a document, as objects."""
    return [pair_of(row) for row in doc.user_data.get(PAIRS, ())]


GETTERS: dict[str, Callable[[Doc], Any]] = {"connectives": _connectives, "pairs": _pairs}
for _name, _getter in GETTERS.items():
    Doc.set_extension(_name, getter=_getter)
