"""Run `discorpora extract` and `discorpora validate` on sources: write pairs, or score them."""

from __future__ import annotations

import csv
import json
import logging
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TextIO

import pyarrow as pa

from corpora.document import Document
from corpora.errors import (
    BadRecord,
    ConfigError,
    DiscorporaError,
    InputError,
    amount,
    expand_home,
    unreadable,
)
from corpora.ingest import check_bad_share
from corpora.progress import track
from corpora.readers import (
    READERS,
    open_reader,
    open_source,
    parse_spec,
    read_documents,
    split_spec,
)
from corpora.readers.pdtb import read_gold
from corpora.schemas import PAIRS
from corpora.store.atomic import replacing, write_json, write_text
from corpora.store.rows import write_parquet
from extract.embedded import trained_documents
from extract.extractor import Extractor
from extract.pairs import Pair
from extract.patterns import resolve_markers
from extract.shards import iter_pairs
from extract.validate import Validation, plot, to_markdown, tree_source, validate

FORMATS = (".jsonl", ".csv", ".parquet")
STDOUT = Path("-")
"""Stands for standard output, where rows are written as JSON Lines."""
log = logging.getLogger("discorpora")


class Extracted(NamedTuple):
    """Numbers of documents and pairs, of pairs by marker, and of rejected candidates by reason."""

    documents: int
    pairs: int
    markers: dict[str, int]
    rejects: dict[str, int]


def extract_to_file(
    sources: Sequence[str],
    output: Path,
    *,
    reader_options: Mapping[str, Any],
    rejects: Path | None = None,
    max_bad_share: float = 0.0,
    **settings: Any,
) -> Extracted:
    """Write the pairs of `sources` to `output` (.jsonl, .csv or .parquet).

    The file appears when it is complete. The output `-` is standard output, as JSON Lines; lists
    in a CSV file are JSON. The source `-` is a text on standard input, `jsonl:-` JSON Lines there,
    and so on. `settings` are those of `Extractor`. Raises `ConfigError` for an output that cannot
    be written or that a source reads, and for a file that two sources read; `InputError` as
    `corpora.readers.open_source` does, and where more than `max_bad_share` of a source's records
    are bad.
    """
    # Check the output files.
    if output != STDOUT and output.suffix not in FORMATS:
        raise ConfigError(
            f"the output {str(output)!r} must end in one of {', '.join(FORMATS)}",
            hint="choose the format by the file's ending, or - for JSON Lines on standard output",
        )
    if rejects is not None and rejects.resolve() == output.resolve():
        raise ConfigError(
            f"--output and --rejects name the same file, {str(output)!r}", hint="name two files"
        )
    for target in filter(None, (output, rejects)):
        if target.is_dir():
            raise ConfigError(
                f"the output {str(target)!r} is a folder, not a file", hint="name a file in it"
            )
    # What is read and counted while the pairs are written
    document_count, markers = 0, Counter[str]()

    def on_bad(record: BadRecord) -> None:
        """Warn of a bad record, or raise `InputError` if none is allowed."""
        if not max_bad_share:
            hint = "mend it, or leave out some bad records: --max-bad-share 0.01"
            encoded = any("encoding" in type(reader).model_fields for reader, _ in readers)
            if encoded and record.reason.startswith("not UTF-8"):
                hint += "; for a source in another encoding: --encoding latin-1"
            raise InputError(record.reason, where=record.where, hint=hint)
        log.warning("left out: %s: %s", record.where, record.reason)

    def documents() -> Iterator[Document]:
        """Read all sources, and count their documents."""
        nonlocal document_count
        for spec, (reader, source) in zip(specs, readers, strict=True):
            for document in read_documents(reader, source):
                document_count += 1
                yield document
            check_bad_share(spec, source, max_bad_share)

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in extractor.rows(track(documents(), f"extracting from {', '.join(sources)}")):
            markers.update(batch["marker"].to_pylist())
            yield batch

    # Open the sources (each file at most once), then write the pairs.
    with ExitStack() as stack:
        specs = [_as_file(source, stack) if source.endswith("-") else source for source in sources]
        with_names = _with_names(specs, reader_options)
        readers = [open_reader(*spec_options, on_bad=on_bad) for spec_options in with_names]
        read_by: dict[Path, str] = {}
        for spec, source_name, (_, source) in zip(specs, sources, readers, strict=True):
            stands_for = source.target if spec == source_name else "standard input"
            files = source.files if spec == source_name else []
            for file in {path.resolve() for path in files} or {Path(stands_for)}:
                if file in read_by:
                    raise ConfigError(
                        f"{file} is named twice, by the sources {read_by[file]} and {source_name}",
                        hint="leave one of them out",
                    )
                read_by[file] = source_name
        for target in filter(None, (output, rejects)):
            if target.exists() and target.resolve() in read_by:
                raise ConfigError(
                    f"the output {str(target)!r} is a file of a source", hint="name another file"
                )
        on_reject = stack.enter_context(_json_lines(rejects)) if rejects else None
        extractor = Extractor(on_reject=on_reject, **settings)
        if output.suffix == ".parquet":
            write_parquet(output, rows(), PAIRS)
        else:
            writer = _csv_rows if output.suffix == ".csv" else _json_lines
            write = stack.enter_context(writer(output))
            for batch in rows():
                for row in batch.to_pylist():
                    write(row)
    rejected = dict(extractor.reject_counts)
    return Extracted(document_count, sum(markers.values()), dict(markers), rejected)


def _with_names(
    specs: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each source with its options; sources of one file name get their paths as `name`."""
    names = [Path(spec.partition(":")[2] or spec).name for spec in specs]
    for spec, name in zip(specs, names, strict=True):
        clash = names.count(name) > 1 and "name" not in options
        yield spec, {**options, "name": spec} if clash else options


def _as_file(source: str, stack: ExitStack) -> str:
    """Return the source, or for `-` and `KIND:-` a file with the text from standard input.

    Readers need a file, not a pipe. The file exists until `stack` is closed.
    """
    kind, target = split_spec("text:-" if source == "-" else source)
    if target != "-":
        return source
    suffix = next(iter(READERS.find(kind).suffixes), "")
    path = Path(stack.enter_context(TemporaryDirectory(prefix="discorpora-"))) / f"stdin{suffix}"
    stack.enter_context(_as_standard_input(path))
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return f"{kind}:{path}"


@contextmanager
def _as_standard_input(path: Path) -> Iterator[None]:
    """Return a context in which errors name standard input instead of `path`, which holds it."""
    try:
        yield
    except DiscorporaError as error:
        where = error.where.replace(str(path), "standard input")
        raise type(error)(error.message, where=where, hint=error.hint) from None


@contextmanager
def _json_lines(path: Path) -> Iterator[Callable[[object], object]]:
    """Return a context that gives a function: it writes a record to `path` as a line of JSON.

    The file takes its name when it is complete.
    """
    to_json = json.JSONEncoder(ensure_ascii=False, default=asdict).encode
    with _text_file(path) as file:
        yield lambda record: file.write(f"{to_json(record)}\n")


@contextmanager
def _csv_rows(path: Path) -> Iterator[Callable[[Mapping[str, Any]], object]]:
    """Return a context that gives a function: it writes a row of pairs to a CSV file.

    Lists and truth values are JSON. The file takes its name when it is complete.
    """

    def cell(value: Any) -> Any:
        return json.dumps(value) if isinstance(value, list | bool) else value

    with _text_file(path) as file:
        writer = csv.DictWriter(file, PAIRS.names, lineterminator="\n")
        writer.writeheader()
        yield lambda row: writer.writerow({key: cell(value) for key, value in row.items()})


@contextmanager
def _text_file(path: Path) -> Iterator[TextIO]:
    """Open a file that takes its name when it is complete, or standard output, both in UTF-8."""
    if path == STDOUT:
        with open(sys.stdout.fileno(), "w", encoding="utf-8", newline="\n", closefd=False) as file:
            yield file
    else:
        with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file


def validate_source(
    source: str,
    gold: str,
    *,
    reader_options: Mapping[str, Any],
    document_list: Path | None = None,
    figures: Path | None = None,
    **settings: Any,
) -> Validation:
    """Score the extraction on `source` against `gold` (`pdtb:DIR`); `figures` is a folder.

    `settings` are those of `Extractor`.
    """
    if figures:
        figures.mkdir(parents=True, exist_ok=True)  # fails before the work, not after it
    ids = None
    if document_list:
        try:
            lines = document_list.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            hint = "write one document id a line, in UTF-8"
            raise unreadable(error, document_list, hint) from error
        # The id is the last column of each line, as in a table of splits; it may have blanks.
        ids = {line.strip().rpartition("\t")[2] for line in lines if line.strip()}
        if not ids:
            hint = "write one document id a line, or leave out --documents"
            raise InputError("lists no document", where=str(document_list), hint=hint)
    documents = [
        document
        for document in track(open_source(source, reader_options), f"reading {source}")
        if ids is None or document.id in ids
    ]
    if ids is not None and (missing := ids - {document.id for document in documents}):
        raise InputError(
            f"{source} lacks {amount(len(missing), 'listed document')}, such as {min(missing)!r}",
            where=str(document_list),
        )
    extractor = Extractor(**settings)
    pairs = extractor.pairs(track(documents, "extracting", total=len(documents)))
    result = score(pairs, documents, gold, settings)
    if figures:
        plot(result, figures)
    return result


def validate_stage(
    documents: Iterable[Document],
    pair_folders: Sequence[Path],
    gold: str,
    folder: Path,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Score stored pairs: `validation.json`, `validation.md` and the figures go into `folder`.

    Returns the counts of extracted pairs and gold relations that were compared.
    """
    result = score(iter_pairs(pair_folders), list(documents), gold, settings)
    write_json(folder / "validation.json", result)
    write_text(folder / "validation.md", to_markdown(result) + "\n")
    plot(result, folder)
    overall = result["strict"]["overall"]
    return {"extracted": overall["extracted"], "gold": overall["gold"]}


def score(
    pairs: Iterable[Pair], documents: Sequence[Document], gold: str, settings: Mapping[str, Any]
) -> Validation:
    """Run `extract.validate.validate` on pairs that were extracted with `settings`.

    `gold` is `pdtb:DIR`. Documents that the embedded parser was trained on count as seen; with gold
    trees or another parser no document does.
    """
    reader, target = parse_spec(gold)
    if reader.name != "pdtb":
        raise ConfigError(f"cannot read gold relations from {gold!r}", hint="write pdtb:DIR")
    parser = settings.get("parser", "embedded")
    layers = {key: settings.get(key, False) for key in ("gold_tokens", "gold_sentences")}
    spec, language = settings.get("markers", "all15"), settings.get("language", "en")
    markers = resolve_markers(spec, language, settings.get("patterns", ()))
    skipped = Counter[str]()
    ids = {document.id for document in documents}
    relations = read_gold(expand_home(target), ids=ids, skipped=skipped)
    facts = {**settings, "gold": Path(target).name, "trees": tree_source(parser, **layers)}
    seen = trained_documents() if parser == "embedded" else frozenset()
    filters = settings.get("filters", "")
    result = validate(
        pairs, relations, documents, markers, seen=seen, settings=facts, filters=filters
    )
    result["settings"]["left_out"].update(skipped)
    return result
