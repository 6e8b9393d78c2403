"""Readers: a source spec `kind:PATH_OR_ID` and options to a stream of documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.registry import READERS, Reader
from corpora.readers.source import OnBad, Refused, SeenIds, Source, check_id

__all__ = ["READERS", "OnBad", "Reader", "open_source", "opened", "parse_spec", "source_files"]

COMMON_OPTIONS = frozenset({"licence", "language", "name"})


def open_source(
    spec: str,
    options: Mapping[str, Any] | None = None,
    *,
    on_bad: Callable[[BadRecord], None] | None = None,
    skipped: Counter[str] | None = None,
) -> Iterator[Document]:
    """The documents of the source `spec`, with the layers that it has, in constant memory.

    `spec` is `kind:PATH_OR_ID`, or a bare path whose suffix tells the kind. `options` are the
    reader's (`READERS[kind].options`) and, for all, `licence`, `language` and `name` (what
    `Document.source` says). A bad record goes to `on_bad`, and without one is an `InputError`.
    `skipped` is filled with counts of what is no document by design (redirects, ...).

    Raises, before the first document is asked for, `ConfigError` for an unknown option and
    `InputError` for an unknown kind or a missing path; later `InputError` for a file of
    another format, for an id that comes twice, and for a source without any document.
    """
    reader, source = opened(spec, options, on_bad=on_bad)
    if skipped is not None:
        source.skipped = skipped
    return _documents(reader, source)


def opened(
    spec: str,
    options: Mapping[str, Any] | None = None,
    *,
    on_bad: Callable[[BadRecord], None] | None = None,
) -> tuple[Reader, Source]:
    """The reader of `spec` and the source, its files found and its options checked.

    For what reads more from a source than documents (`corpora.tasks.coherence_tests`). Raises
    as `open_source` does before the first document.
    """
    reader, target = parse_spec(spec)
    options = dict(options or {})
    _check_options(reader, options)
    return reader, Source(reader.kind, target, reader.find(target), options, on_bad)


def source_files(spec: str) -> list[Path]:
    """The files that `spec` reads, sorted; none for a dataset of the Hub."""
    reader, target = parse_spec(spec)
    return reader.find(target)


def parse_spec(spec: str) -> tuple[Reader, str]:
    """The reader of a source spec, and its path or id."""
    kind, colon, target = spec.partition(":")
    if colon and kind in READERS:
        return READERS[kind], target
    kinds = f"kinds are {', '.join(f'{name}:' for name in READERS)}"
    # A file's own name may have a colon.
    named = bool(colon) and not {"/", "."} & set(kind) and not Path(spec).exists()
    for reader in READERS.values():
        if reader.suffixes and spec.endswith(reader.suffixes) and not named:
            return reader, spec
    if named:
        raise InputError(
            f"unknown kind of source {kind!r} in {spec!r}", hint=nearest(kind, READERS) + kinds
        )
    raise InputError(
        f"{spec!r} does not say what kind of source it is", hint=f"write kind:PATH; {kinds}"
    )


def _check_options(reader: Reader, options: Mapping[str, Any]) -> None:
    known = reader.options | COMMON_OPTIONS
    for key in options:
        if key not in known:
            raise ConfigError(
                f"unknown option {key!r}",
                where=f"source {reader.kind}:",
                hint=f"{nearest(key, known)}options are {', '.join(sorted(known))}",
            )
    licence = options.get("licence", "")
    if not isinstance(licence, str) and reader.kind != "conllu":
        raise ConfigError(
            f"{licence!r} is no licence",
            where=f"source {reader.kind}: licence",
            hint="give an SPDX identifier such as CC-BY-4.0; a table by genre is for conllu:",
        )


def _documents(reader: Reader, source: Source) -> Iterator[Document]:
    seen = SeenIds()
    licence = source.options.get("licence", reader.licence)
    for document in reader.read(source):
        try:
            check_id(document.id)
            check_id(document.group)
        except Refused as refusal:
            source.refuse(f"{reader.kind}:{source.target}", str(refusal))
            continue
        if not seen.add(document.id):
            hint = "ids must be unique in a source: name it apart or take one file out"
            if "paragraph" in reader.options and "layout" not in source.options:
                hint += '; if records with one id are its paragraphs: layout = "paragraph"'
            raise InputError(
                f"two documents have the id {document.id!r}",
                where=f"{reader.kind}:{source.target}",
                hint=hint,
            )
        document.source = source.name
        if not document.licence and isinstance(licence, str):
            document.licence = licence
        source.good += 1
        yield document
    if not source.good:
        raise _no_document(source)


def _no_document(source: Source) -> InputError:
    """Why a source gave none: nothing is in it, or nothing that can be taken or is a document."""
    spec, first = f"{source.kind}:{source.target}", source.first_bad
    if first:
        many = (
            f"all {source.bad} records are bad, the first one"
            if source.bad > 1
            else "its only record is bad"
        )
        return InputError(
            f"no document in it: {many}: {first.where}: {first.reason}",
            where=spec,
            hint=f"mend it; or is it in another format than the one that {source.kind!r} reads?",
        )
    passed = ", ".join(f"{what} ({n:,})" for what, n in sorted(source.skipped.items()) if n)
    empty = "the source is empty, or in another format than it is said to be"
    return InputError(
        "no document in it", where=spec, hint=f"passed over: {passed}" if passed else empty
    )
