"""The parser `gold`: the trees of the treebank itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from corpora.document import Document
from corpora.errors import InputError, amount
from extract.parse import NAMES, STRINGS_LIMIT, ParsedDocument, StringTable


class GoldParser:
    """Reads `Document.tokens`; the sentences must be the treebank's own."""

    name = "gold"
    scheme = "ud"

    def __init__(self) -> None:
        self.strings = StringTable()

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedDocument]:
        """The gold parse of every document; InputError for one without trees."""
        for document in documents:
            if len(self.strings) > STRINGS_LIMIT:
                self.strings = StringTable()
            yield self._parse_document(document)

    def _parse_document(self, document: Document) -> ParsedDocument:
        """Return the gold parse of a document; `InputError` without trees, or with too few."""
        tokens = document.tokens
        if tokens is None:
            raise InputError(
                f"document {document.id!r} has no gold trees",
                hint="parser 'gold' needs a conllu: source; for raw text use --parser embedded",
            )
        rows = len(tokens.offsets) - 1
        if document.sentences is not None and len(document.sentences) != rows:
            raise InputError(
                f"document {document.id!r} has {amount(len(document.sentences), 'sentence')} "
                f"but {amount(rows, 'tree')}; keep its gold sentences with parser 'gold'"
            )
        return ParsedDocument(
            doc=document.id,
            strings=self.strings,
            sentence=np.arange(rows, dtype=np.int32),
            offsets=np.array(tokens.offsets, dtype=np.int32),
            start=np.array(tokens.start, dtype=np.int32),
            end=np.array(tokens.end, dtype=np.int32),
            head=np.array(tokens.head, dtype=np.int32),
            **{name: self.strings.codes(getattr(tokens, name)) for name in NAMES},
        )
