"""What every dataset builder declares, and the way from documents to a dataset folder.

A builder is one class. Its `candidates` are the linguistic part, one document at a time: any
worker can make them. They wait as Parquet shards; `select` and `write` then split, sample and order
them with queries (`corpora.tasks.candidates`) and write the configurations.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from corpora.declared import Declared
from corpora.document import Document
from corpora.errors import ConfigError, check_choice
from corpora.rng import stable_id, stream
from corpora.splits import SPLITS, Shares
from corpora.splits.division import Division
from corpora.splits.prescribed import prescribed_division, table_hash
from corpora.store.card import Card
from corpora.store.documents import documents_in
from corpora.store.engine import MEMORY
from corpora.store.folder import CANDIDATES, DatasetFolder, Stage
from corpora.store.rows import record_batches, write_parquet
from corpora.tasks.candidates import COMMON, DOCUMENTS, REJECTS, Candidates, text_key

DOCUMENTS_PER_SHARD = 4096

Reject = Callable[[str], None]
"""Counts a candidate that is left out; its argument is the reason."""


Size = Annotated[int, Field(ge=0, description="Maximum rows of the split; 0 leaves it out.")]
Part = Annotated[
    float,
    Field(ge=0, description="The split's share of the documents; in a build `[splits]` has them."),
]


def check_markers(markers: tuple[str, ...]) -> tuple[str, ...]:
    """Return `markers`; raises `ConfigError` if there is none, one is empty or one comes twice."""
    if not all(markers) or not 0 < len(markers) == len(set(markers)):
        raise ConfigError(str(list(markers)), hint="name each marker once, and none empty")
    return markers


class Candidate(NamedTuple):
    """One candidate for a row of the dataset: its values of the builder's `columns`.

    `part` is the pool it belongs to, if the builder has several (`text` and `chat`). `doc` is the
    id of the part of the document that it is from, such as a conversation; "" for the document
    itself.
    """

    values: tuple[Any, ...]
    part: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Where and how a builder makes a dataset.

    - `folder`: the partial folder that `corpora.store.atomic.staged` yields.
    - `stage`: the record of the stage for the card; its name and `seed` are part of every random
      stream.
    - `division`: the split of each document; without one a builder splits its documents by the
      shares of its settings.
    - `max_bad_share`: the maximum share of bad records in a source, for builders that read sources.
    - `largest_group`: the maximum share of the training candidates from one group, such as a book;
      with too few groups for that, twice an equal part.
    - `documents`: the folders of the documents that the rows are from; authors are named from them.
    - `build_files`: the tables and pattern files that the build file names.
    - `extraction_rejects`: for pairs, the reasons for rejections, with their numbers and meanings.
    - `threads` and `memory` bound the queries; they do not change the output.
    """

    folder: Path
    stage: Stage
    seed: int
    division: Division | None = None
    max_bad_share: float = 1.0
    largest_group: float = 1.0
    documents: Sequence[Path] = ()
    build_files: Sequence[Path] = ()
    extraction_rejects: Sequence[tuple[str, int, str]] = ()
    threads: int = 1
    memory: str = MEMORY

    def stage_of(self, part: str) -> str:
        """Return the name that seeds the random streams of a part: `STAGE/PART`, or `STAGE`."""
        return f"{self.stage.name}/{part}" if part else self.stage.name


@dataclass(slots=True)
class Shard:
    """The documents of a shard of candidates, as rows of `DOCUMENTS`, and its rejects by reason."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    rejects: Counter[str] = field(default_factory=Counter)


class Builder(Declared):
    """Makes a dataset from documents, pairs or sources; its fields are its settings.

    Settings `train`, `validation` and `test` are shares of the documents if they are floats, and
    the maximum rows of a split if they are integers.
    """

    reads: ClassVar[Literal["documents", "pairs", "sources"]] = "documents"
    """Documents with sentences, Parquet tables of pairs, or sources that the builder reads."""
    card: ClassVar[Card]
    gives: ClassVar[Mapping[str, pa.Schema]]
    """The configurations that the dataset may have, and their columns."""
    default: ClassVar[str] = "default"
    """The configuration that loads without being named; if it has no row, the first that has."""
    columns: ClassVar[pa.Schema] = pa.schema([])
    """The columns of a candidate, beside those of `corpora.tasks.candidates.COMMON`."""
    equal: ClassVar[tuple[str, ...]] = ()
    """Columns of candidates: those with equal values are duplicates, of which one stays."""
    one_split: ClassVar[bool] = False
    """Whether all parts of a document's candidates are in one split; else each part is divided."""
    ascending: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Settings of which none is larger than the next one."""

    title: str = ""
    """The heading of the card, in place of the builder's."""
    description: str = ""
    """A text under the heading."""

    @model_validator(mode="after")
    def _check_settings_fit(self) -> Self:
        """Raise `ConfigError` if settings in a tuple of `ascending` do not ascend (a minimum above
        its maximum), or if the shares of the splits do not add up to 1."""
        for names in self.ascending:
            values = [getattr(self, name) for name in names]
            if values != sorted(values):
                settings = ", ".join(map("{} = {}".format, names, values))
                raise ConfigError(f"{settings} do not fit together", hint=" <= ".join(names))
        if set(SPLITS) <= set(type(self).model_fields):
            self.shares()  # which checks them
        return self

    def configurations(self) -> tuple[str, ...]:
        """Return the names of the configurations that the dataset may have with these settings."""
        return tuple(self.gives)

    def shares(self, part: str = "") -> Shares:
        """Return the shares or sizes of the splits of a part of the candidates."""
        return Shares(*(getattr(self, split) for split in SPLITS))

    @classmethod
    def share_fields(cls) -> tuple[str, ...]:
        """Return the names of settings that are shares of documents, such as `train = 0.8`. In a
        build its `[splits]` replace them."""
        return tuple(
            name
            for name in SPLITS
            if name in cls.model_fields and isinstance(cls.model_fields[name].default, float)
        )

    def identity(self) -> dict[str, Any]:
        """Return the settings that change the dataset as JSON values, for the stage's hash.

        Digests of the files that they name are part of it; `title` and `description` are not.
        """
        return self.model_dump(mode="json", exclude={*Builder.model_fields})

    def candidates(self, document: Document, reject: Reject) -> Iterator[Candidate]:
        """Yield the candidates of one document; call `reject(reason)` for each one left out."""
        raise NotImplementedError

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write all configurations of the dataset from the candidates, whose splits are known."""
        raise NotImplementedError

    def candidate_schema(self) -> pa.Schema:
        """Return the columns of a shard of candidates."""
        return pa.schema([*COMMON, *self.columns])

    def collect_part(
        self, inputs: Iterable[Any], target: Target, rank: int = 0, of: int = 1
    ) -> None:
        """Write a shard of candidates for each input of worker `rank` among `of` workers.

        An input is the path of a Parquet shard of documents with sentences, or of pairs, or it is a
        list of documents. Worker `rank` takes the inputs `rank`, `rank + of` and so on. Finished
        shards are kept, so that a broken build continues.
        """
        for number, documents_or_path in enumerate(inputs):
            path = target.folder / CANDIDATES / f"{number:05d}.documents"
            if number % of == rank and not path.exists():
                shard = Shard()
                rows = self.candidate_batches(documents_or_path, target, shard)
                write_parquet(path.with_suffix(".rows"), rows, self.candidate_schema())
                # Written last: a shard with this file is complete.
                documents = pa.RecordBatch.from_pylist(shard.documents, DOCUMENTS)
                rejects = {REJECTS: json.dumps(shard.rejects)}
                write_parquet(path, [documents], DOCUMENTS, rejects)

    def candidate_batches(
        self, documents: Any, target: Target, shard: Shard
    ) -> Iterator[pa.RecordBatch]:
        """Yield the candidate rows of documents, given as objects or as a path.

        Adds the documents and the rejected candidates to `shard`.
        """
        if isinstance(documents, Path):
            documents = documents_in(documents)
        rows = self._candidate_rows(documents, target, shard)
        return record_batches(rows, self.candidate_schema())

    def _candidate_rows(
        self, documents: Iterable[Document], target: Target, shard: Shard
    ) -> Iterator[dict[str, Any]]:
        """Yield the candidates of documents as rows of `candidate_schema`. Each has a key of its
        texts, and a random priority from the random stream of its document, which other documents
        do not change."""
        # The columns whose values make the key
        columns = self.columns.names
        where = f"builder {self.name!r}"
        names = [check_choice("column", name, columns, where) for name in self.equal]
        equal_columns = [columns.index(name) for name in names]
        for document in documents:
            # The candidates of the document by part
            by_part: dict[tuple[str, str], list[Candidate]] = {}
            for candidate in self.candidates(document, lambda r: shard.rejects.update((r,))):
                values = getattr(candidate, "values", None)
                if not isinstance(values, Sized) or len(values) != len(columns):
                    hint = "yield Candidate((...)) with a value of each of its columns: "
                    problem = f"{str(candidate)[:200]} is not a candidate"
                    raise ConfigError(problem, where=where, hint=hint + ", ".join(columns))
                key_of_part = candidate.part, candidate.doc or document.id
                by_part.setdefault(key_of_part, []).append(candidate)
            # A document without candidates is recorded too: an id that comes twice is an error.
            for (part, doc), candidates in (by_part or {("", document.id): []}).items():
                source_columns = (document.id, document.group, document.source, document.language)
                record = (part, doc, stable_id(doc), *source_columns, len(candidates))
                shard.documents.append(dict(zip(DOCUMENTS.names, record, strict=True)))
                random = stream(target.seed, target.stage_of(part), doc)
                priorities = random.integers(0, 2**63 - 1, size=len(candidates)).tolist()
                prioritised = zip(candidates, priorities, strict=True)
                for number, (candidate, priority) in enumerate(prioritised):
                    values = candidate.values
                    key = text_key([values[i] for i in equal_columns] or [part, doc, number])
                    common = (part, doc, number, document.group, document.licence, priority, key)
                    row = zip([*COMMON.names, *columns], (*common, *values), strict=True)
                    yield dict(row)

    def select(self, candidates: Candidates) -> None:
        """Give each document its split: that in the target's division or, without a division, by
        the builder's shares."""
        candidates.split()

    def dataset(self, target: Target) -> DatasetFolder:
        """Return the dataset folder to write to; use it as a context manager."""
        stage = target.stage
        return DatasetFolder(
            target.folder,
            stage.dataset_name,
            stage,
            self.card,
            builder=type(self),
            documents=target.documents,
            build_files=target.build_files,
            extraction_rejects=target.extraction_rejects,
            details={"settings": {"seed": target.seed, **self.identity()}},
        )

    def build(self, inputs: Iterable[Any], target: Target) -> dict[str, Any]:
        """Build the dataset and return its manifest.

        `inputs` are documents with a sentence layer, or files as for `collect_part`, whose finished
        shards of candidates are used.
        Raises `InputError` if not one row can be made, or if two documents have the same id.
        """
        with self.dataset(target) as dataset:
            if not (isinstance(inputs, Sequence) and inputs and isinstance(inputs[0], Path)):
                # Earlier candidates may come from other documents than these.
                shutil.rmtree(target.folder / CANDIDATES, ignore_errors=True)
                inputs = _document_lists(inputs)
            self.collect_part(inputs, target)
            with Candidates(self, target, dataset) as candidates:
                self.select(candidates)
                self.write(candidates, dataset)
            return dataset.finish(self.default)


def _document_lists(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield the documents in lists of at most `DOCUMENTS_PER_SHARD`; at least one list."""
    iterator = iter(documents)
    yield list(islice(iterator, DOCUMENTS_PER_SHARD))
    yield from iter(lambda: list(islice(iterator, DOCUMENTS_PER_SHARD)), [])


def _check_readable(table: str) -> str:
    """Return `table`, the path of a table of splits; raises `ConfigError` if it cannot be read."""
    table_hash(table)
    return table


class Prescribed(Builder):
    """A builder whose splits a table, or the data themselves, may prescribe."""

    table: Annotated[str, AfterValidator(_check_readable)] = ""
    """A file of lines `SPLIT<TAB>DOCUMENT` (`dev` is validation), or a folder with a list of files
    for each split, that sets the splits. Without one, documents keep the split that their data
    prescribe, if any; the shares divide the others."""

    def identity(self) -> dict[str, Any]:
        """Return the settings as `Builder.identity` does, and a digest of the table."""
        return {**super().identity(), "table_sha256": table_hash(self.table)}

    def prescribed(
        self, documents: Mapping[str, tuple[str, int]], target: Target
    ) -> Division | None:
        """Return the splits that the table or the data prescribe; None if nothing does.

        `documents` maps an id to its group and its number of candidates.
        """
        return prescribed_division(documents, getattr(self, "sections", ""), self.table)

    def select(self, candidates: Candidates) -> None:
        """Give each document its prescribed split; without one, split as `Builder.select` does."""
        candidates.split(self.prescribed)
