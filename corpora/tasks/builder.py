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
from corpora.errors import ConfigError, chosen
from corpora.rng import stable_id, stream
from corpora.splits import SPLITS, Shares
from corpora.splits.division import Division
from corpora.splits.prescribed import prescribed, table_hash
from corpora.store.card import Card
from corpora.store.documents import documents_in
from corpora.store.engine import MEMORY
from corpora.store.folder import CANDIDATES, DatasetFolder, Stage
from corpora.store.rows import record_batches, write_parquet
from corpora.tasks.candidates import COMMON, DOCUMENTS, REJECTS, Candidates, text_key

DOCUMENTS_PER_SHARD = 4096

Reject = Callable[[str], None]
"""Takes the reason why a candidate is left out."""


Size = Annotated[int, Field(ge=0, description="Maximum rows of the split; 0 leaves it out.")]
Part = Annotated[
    float,
    Field(ge=0, description="The split's share of the documents; in a build `[splits]` has them."),
]


def each_once(markers: tuple[str, ...]) -> tuple[str, ...]:
    """The markers of a setting, checked: at least one, no empty one, none twice."""
    if not all(markers) or not 0 < len(markers) == len(set(markers)):
        raise ConfigError(str(list(markers)), hint="name each marker once, and none empty")
    return markers


class Row(NamedTuple):
    """One candidate: its values of the builder's `columns`.

    `part`: which pool it is in, where a builder has several. `doc`: the id of the part of the
    document that it is from, such as a conversation; "" for the document itself.
    """

    values: tuple[Any, ...]
    part: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A dataset that is to be made.

    `folder`: the partial folder that `corpora.store.atomic.staged` yields. `stage`: what the card
    says made it; its name and `seed` are part of every random stream. `division`: the split of
    each document; without one a builder splits its documents by the shares of its settings.
    `max_bad_share`: the share of a source's records that may be bad, for builders that read
    sources. `largest_group`: the most that a group, such as a book, gives of the candidates for
    training; where there are too few groups for that, twice an equal part. `documents`:
    the folders of the documents that the rows are from, for the list of those to be named.
    `extraction_rejects`: of pairs, the reasons of rejected candidates, their numbers and meanings.
    `threads` and `memory` bound the queries; they change no byte.
    """

    folder: Path
    stage: Stage
    seed: int
    division: Division | None = None
    max_bad_share: float = 1.0
    largest_group: float = 1.0
    documents: Sequence[Path] = ()
    extraction_rejects: Sequence[tuple[str, int, str]] = ()
    threads: int = 1
    memory: str = MEMORY

    def stage_of(self, part: str) -> str:
        """The name of the random streams of a part."""
        return f"{self.stage.name}/{part}" if part else self.stage.name


@dataclass(slots=True)
class Shard:
    """What is noted of a shard beside its rows: its documents, and what was left out and why."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    rejects: Counter[str] = field(default_factory=Counter)


class Builder(Declared):
    """A dataset's builder; its fields are its settings.

    Settings `train`, `validation` and `test` are shares of the documents where they are floats,
    and otherwise the most rows of a split.
    """

    reads: ClassVar[Literal["documents", "pairs", "sources"]] = "documents"
    """Documents with sentences, Parquet tables of pairs, or sources that the builder reads."""
    card: ClassVar[Card]
    gives: ClassVar[Mapping[str, pa.Schema]]
    """The configurations that the dataset may have, and their columns."""
    default: ClassVar[str] = "default"
    """The configuration that loads without being named; where it has no row, the first that has."""
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
    def _fit_together(self) -> Self:
        for names in self.ascending:
            values = [getattr(self, name) for name in names]
            if values != sorted(values):
                said = ", ".join(map("{} = {}".format, names, values))
                raise ConfigError(f"{said} do not fit together", hint=" <= ".join(names))
        if set(SPLITS) <= set(type(self).model_fields):
            self.shares()  # which checks them
        return self

    def configurations(self) -> tuple[str, ...]:
        """The configurations that the dataset may have with these settings."""
        return tuple(self.gives)

    def shares(self, part: str = "") -> Shares:
        """The shares, or the sizes, of the splits of a part."""
        return Shares(*(getattr(self, split) for split in SPLITS))

    @classmethod
    def share_fields(cls) -> tuple[str, ...]:
        """The settings that are shares of the documents: a division stands in for them."""
        return tuple(
            name
            for name in SPLITS
            if name in cls.model_fields and isinstance(cls.model_fields[name].default, float)
        )

    def identity(self) -> dict[str, Any]:
        """The settings as JSON values, and the contents of files that they name.

        Without what only the card says: `title` and `description`.
        """
        return self.model_dump(mode="json", exclude={*Builder.model_fields})

    def candidates(self, document: Document, reject: Reject) -> Iterator[Row]:
        """The candidates of one document; what is left out is told to `reject`."""
        raise NotImplementedError

    def write(self, taken: Candidates, dataset: DatasetFolder) -> None:
        """Write all configurations from the candidates, which are split."""
        raise NotImplementedError

    def candidate_schema(self) -> pa.Schema:
        """The columns of a shard of candidates."""
        return pa.schema([*COMMON, *self.columns])

    def collect_part(
        self, inputs: Iterable[Any], target: Target, rank: int = 0, of: int = 1
    ) -> None:
        """Make each `of`th shard of candidates from `rank` on, one for each of `inputs`.

        They are Parquet shards of documents with sentences, or of pairs, or lists of documents.
        Shards that are there are kept, so that several workers share them out and a broken build
        goes on.
        """
        for number, some in enumerate(inputs):
            path = target.folder / CANDIDATES / f"{number:05d}.documents"
            if number % of == rank and not path.exists():
                shard = Shard()
                rows = self.collected(some, target, shard)
                write_parquet(path.with_suffix(".rows"), rows, self.candidate_schema())
                # With this file the shard is whole.
                documents = pa.RecordBatch.from_pylist(shard.documents, DOCUMENTS)
                rejects = {REJECTS: json.dumps(shard.rejects)}
                write_parquet(path, [documents], DOCUMENTS, rejects)

    def collected(self, some: Any, target: Target, shard: Shard) -> Iterator[pa.RecordBatch]:
        """The candidate rows of an input; `shard` notes its documents and the rejects."""
        documents = documents_in(some) if isinstance(some, Path) else some
        return record_batches(
            self._candidate_rows(documents, target, shard), self.candidate_schema()
        )

    def _candidate_rows(
        self, documents: Iterable[Document], target: Target, shard: Shard
    ) -> Iterator[dict[str, Any]]:
        """The candidates of documents, with random priorities and the keys of their texts.

        A priority comes from the random stream of its document: neither other documents nor their
        order change it.
        """
        own_names = self.columns.names
        names = [*COMMON.names, *own_names]
        where = f"builder {self.name!r}"
        equal = [own_names.index(chosen("column", name, own_names, where)) for name in self.equal]
        for document in documents:
            parts: dict[tuple[str, str], list[Row]] = {}
            for row in self.candidates(document, lambda reason: shard.rejects.update((reason,))):
                values = getattr(row, "values", None)
                if not isinstance(values, Sized) or len(values) != len(own_names):
                    hint = "yield Row((...)) with a value of each of its columns: "
                    said = f"{str(row)[:200]} is not a candidate"
                    raise ConfigError(said, where=where, hint=hint + ", ".join(own_names))
                parts.setdefault((row.part, row.doc or document.id), []).append(row)
            # A document without candidates stays known: an id that comes twice is an error anyway.
            for (part, doc), own in (parts or {("", document.id): []}).items():
                whole = (document.id, document.group, document.source, document.language)
                noted = (part, doc, stable_id(doc), *whole, len(own))
                shard.documents.append(dict(zip(DOCUMENTS.names, noted, strict=True)))
                random = stream(target.seed, target.stage_of(part), doc)
                priorities = random.integers(0, 2**63 - 1, size=len(own)).tolist()
                for number, (row, priority) in enumerate(zip(own, priorities, strict=True)):
                    key = text_key([row.values[i] for i in equal] or [part, doc, number])
                    about = (part, doc, number, document.group, document.licence, priority, key)
                    yield dict(zip(names, (*about, *row.values), strict=True))

    def select(self, taken: Candidates) -> None:
        """Split the documents: as the division says, or without one by the shares."""
        taken.split()

    def dataset(self, target: Target) -> DatasetFolder:
        """The folder to write to; use as a context manager."""
        stage = target.stage
        return DatasetFolder(
            target.folder,
            stage.dataset_name,
            stage,
            self.card,
            builder=type(self),
            documents=target.documents,
            extraction_rejects=target.extraction_rejects,
            details={"settings": {"seed": target.seed, **self.identity()}},
        )

    def build(self, inputs: Iterable[Any], target: Target) -> dict[str, Any]:
        """Build the dataset; returns the manifest.

        `inputs`: documents with a sentence layer, or the files that `collect_part` takes; what
        it has made of them is used as it is.
        Raises `InputError` if not one row can be made, or if two documents have one id.
        """
        with self.dataset(target) as dataset:
            if not (isinstance(inputs, Sequence) and inputs and isinstance(inputs[0], Path)):
                # Of documents nobody knows whether earlier candidates are from them.
                shutil.rmtree(target.folder / CANDIDATES, ignore_errors=True)
                inputs = in_shards(inputs)
            self.collect_part(inputs, target)
            with Candidates(self, target, dataset) as taken:
                self.select(taken)
                self.write(taken, dataset)
            return dataset.finish(self.default)


def in_shards(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in lists, of which there is at least one."""
    rest = iter(documents)
    yield list(islice(rest, DOCUMENTS_PER_SHARD))
    yield from iter(lambda: list(islice(rest, DOCUMENTS_PER_SHARD)), [])


def _readable(table: str) -> str:
    table_hash(table)  # an unreadable one is refused here, not when all documents have been read
    return table


class Prescribed(Builder):
    """A builder whose documents a table, or the data themselves, may divide."""

    table: Annotated[str, AfterValidator(_readable)] = ""
    """A file of lines `SPLIT<TAB>DOCUMENT` (`dev` is validation), or a folder with a list of files
    for each split, that sets the splits. Without one, documents keep the split that their data
    prescribe, if any; the shares divide the others."""

    def identity(self) -> dict[str, Any]:
        """The settings, and the contents of the table."""
        return {**super().identity(), "table_sha256": table_hash(self.table)}

    def prescribed(
        self, documents: Mapping[str, tuple[str, int]], target: Target
    ) -> Division | None:
        """Splits that the table or the data prescribe (id -> group, candidates); None where
        nothing does."""
        return prescribed(documents, getattr(self, "sections", ""), self.table)

    def select(self, taken: Candidates) -> None:
        """Split the documents as is prescribed, else as all others."""
        taken.split(self.prescribed)
