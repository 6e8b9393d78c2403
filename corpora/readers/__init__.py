"""Readers turn a source spec `kind:PATH_OR_ID` and options into a stream of documents."""

from __future__ import annotations

import glob
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from corpora import licences
from corpora.declared import REFERENCE, Registry
from corpora.document import Document
from corpora.errors import InputError, amount, expand_home, nearest
from corpora.languages import LANGUAGES, is_code
from corpora.readers.files import Refused, expect
from corpora.readers.gutenberg import OF_GUTENBERG
from corpora.readers.source import OnBad, SeenIds, Source, check_id, fail
from corpora.readers.source import Reader as Reader

log = logging.getLogger("discorpora")

_FOLDER = "corpora.readers"
READERS = Registry(
    "reader",
    Reader,
    {
        "text": f"{_FOLDER}.text:Text",
        "jsonl": f"{_FOLDER}.rows:JsonLines",
        "parquet": f"{_FOLDER}.rows:ParquetFiles",
        "conllu": f"{_FOLDER}.conllu:Conllu",
        "wikipedia": f"{_FOLDER}.wikipedia:Wikipedia",
        "pdtb": f"{_FOLDER}.pdtb:Pdtb",
        "rst": f"{_FOLDER}.rst:Rst",
        "irc": f"{_FOLDER}.irc:Irc",
        "peerread": f"{_FOLDER}.text:PeerRead",
        "arxiv": f"{_FOLDER}.text:Arxiv",
        "rocstories": f"{_FOLDER}.stories:RocStories",
        "storycloze": f"{_FOLDER}.stories:StoryCloze",
        "summeval": f"{_FOLDER}.coherence:SummEval",
        "superglue": f"{_FOLDER}.superglue:SuperGlue",
        "senteval": f"{_FOLDER}.senteval:SentEval",
        "cnn": f"{_FOLDER}.text:Cnn",
        "wsj": f"{_FOLDER}.text:Wsj",
        "discoeval": f"{_FOLDER}.discoeval:DiscoEval",
        "coherence": f"{_FOLDER}.coherence:Coherence",
        "discovery": f"{_FOLDER}.released:Discovery",
        "dissent": f"{_FOLDER}.released:DisSent",
        "nli": f"{_FOLDER}.released:Nli",
        "insted": f"{_FOLDER}.released:Insted",
        "disrpt": f"{_FOLDER}.released:Disrpt",
        "gcdc": f"{_FOLDER}.released:Gcdc",
        "cohesentia": f"{_FOLDER}.released:CoheSentia",
        "hub": f"{_FOLDER}.rows:Hub",
        "sample": f"{_FOLDER}.rows:Sample",
    },
)
BARE = ("text", "jsonl", "parquet", "conllu", "wikipedia", "rst", "peerread", "cnn")
"""The kinds that a path without a kind may have: the first one with its suffix."""

_CUSTOM = re.compile(rf"(?P<reference>{REFERENCE.pattern}):(?P<target>.*)", re.DOTALL)
"""`package.module:Class:PATH` or `FILE.py:Class:PATH`."""


def open_source(
    spec: str,
    options: Mapping[str, Any] | None = None,
    *,
    on_bad: OnBad | None = None,
    skipped: Counter[str] | None = None,
) -> Iterator[Document]:
    """Yield the documents of the source `spec` with their layers, in constant memory.

    `spec` is `kind:PATH_OR_ID`, a bare path whose suffix determines the kind, or for a custom
    reader `package.module:Class:PATH` or `FILE.py:Class:PATH`. `options` are the reader's fields
    and `name` (for `Document.source`). A bad record goes to `on_bad`; without `on_bad` it is an
    `InputError`. `skipped` gets the counts of entries that are not documents by design (redirects,
    ...).

    Raises, before the first document, `ConfigError` for unknown options and `InputError` for an
    unknown kind or a missing path; later `InputError` for a file of another format, for a repeated
    id, and for a source without documents.
    """
    reader, source = open_reader(spec, options, on_bad=on_bad)
    if skipped is not None:
        source.skipped = skipped
    return read_documents(reader, source)


def open_reader(
    spec: str, options: Mapping[str, Any] | None = None, *, on_bad: OnBad | None = None
) -> tuple[Reader, Source]:
    """Return the reader of `spec`, made from `options`, and the source, which lists its files.

    Builders that read more from a source than documents use it (`corpora.tasks.coherence_tests`).
    Raises as `open_source` does before the first document.
    """
    kind, target = parse_spec(spec)
    fields = dict(options or {})
    name = str(fields.pop("name", ""))
    reader = kind.of(fields, f"source {kind.name}")
    files = kind.find(target)
    if not name:  # without folders of this machine; a dataset of the Hub has no files here
        exists, parts = expand_home(target).exists(), Path(target).parts
        parts = tuple(part for part in parts if exists or not glob.has_magic(part))
        name = f"{kind.name}:{parts[-1] if files and parts else target}"
    return reader, Source(kind.name, target, files, reader.language, name, on_bad or fail)


def parse_spec(spec: str) -> tuple[type[Reader], str]:
    """Return the reader class of a source spec, and its path or id. Imports only that reader."""
    kind, target = split_spec(spec)
    return READERS.find(kind), target


def split_spec(spec: str) -> tuple[str, str]:
    """Return the kind of a source spec and its path or id: `("text", "books/")` of `text:books/`.

    For a custom reader the kind is its reference, `package.module:Class` or `FILE.py:Class`.
    Raises `InputError` for a spec without a kind.
    """
    kind, colon, target = spec.partition(":")
    if colon and kind in READERS:
        return kind, target
    exists = os.path.exists(spec)  # noqa: PTH110 (a `Path` raises for a text too long for a name)
    if not exists and (custom := _CUSTOM.fullmatch(spec)):
        return custom["reference"], custom["target"]
    kinds = f"kinds are {', '.join(f'{name}:' for name in READERS)}"
    if colon and not {"/", "."} & set(kind) and not exists:
        raise InputError(
            f"unknown kind of source {kind!r} in {spec!r}", hint=nearest(kind, READERS) + kinds
        )
    for bare in BARE:
        if spec.endswith(READERS.find(bare).suffixes):
            return bare, spec
    raise InputError(f"{spec!r} has no kind of source", hint=f"write kind:PATH; {kinds}")


def _licence_id(name: str) -> str:
    """Return the id of the licence that a record names, "" if it names none. Raises `Refused` for
    an unknown licence."""
    id = name and licences.licence_id(name)
    if id is not None:
        return id
    near = nearest(name.lower(), map(str.lower, licences.TABLE))
    advice = "with replace_licences = true the option licence replaces it"
    raise Refused(f"bad licence: {name[:60]!r} is not known: {near}{advice}")


def read_documents(reader: Reader, source: Source) -> Iterator[Document]:
    """Yield the documents that `reader` reads from `source`: ids, language and licence are checked.

    `source` counts documents and bad records. Raises `InputError` for a repeated id and for a
    source without documents.
    """
    seen_ids, spec = SeenIds(), f"{source.kind}:{source.target}"
    for document in reader.documents_only(reader.read(source)):
        where = str(source.where or spec)
        try:
            check_id(document.id)
            check_id(document.group)
            language = document.language  # a code, or its name in English
            document.language = code = LANGUAGES.get(language.lower(), language)
            is_known = not code or is_code(code)
            expect(is_known, f"bad language: {code[:40]!r} is no code such as en")
            document.licence = _licence_id(document.licence) or reader.licence_of()
        except Refused as refusal:
            source.refuse(refusal.record(f"{where}: document {document.id[:80]!r}"))
            continue
        if not seen_ids.add(document.id):
            hint = "ids must be unique in a source: rename or remove one of the files"
            if "id_prefix" in type(reader).model_fields and len(source.files) > 1:
                hint += ', or number each apart: id_prefix = "{file}/"'
            elif reader.name == "conllu" and len(source.files) > 1:
                hint += ", or give each `# newdoc id` in them an id of its own"
            if getattr(reader, "layout", "") is None:
                hint += '; if records with one id are its paragraphs: layout = "paragraph"'
                hint += ', or the turns of a conversation: layout = "turns"'
            raise InputError(f"two documents have the id {document.id!r}", where=where, hint=hint)
        document.source = source.name
        source.good += 1
        yield document
    if left_out := source.skipped[OF_GUTENBERG]:
        warning = "%s: left out %s of Project Gutenberg's header and licence"
        log.warning(warning, source.name, amount(left_out, "paragraph"))
    if source.good:
        for remark, number in (+source.remarks).items():
            log.warning("%s: %s: %s", spec, amount(number, "document"), remark)
        return
    skipped = ", ".join(f"{what} ({n:,})" for what, n in sorted(source.skipped.items()) if n)
    empty = "the source is empty, or in another format than its kind"
    hint = f"skipped: {skipped}" if skipped else empty
    message = "there is no document in it"
    if first_bad := source.first_bad:
        count = f"{source.bad} bad records, the first one" if source.bad > 1 else "a bad record"
        message += f": {count}: {first_bad.where}: {first_bad.reason}"
        hint = f"fix it, or check that it has the format that {source.kind!r} reads"
    raise InputError(message, where=spec, hint=hint)
