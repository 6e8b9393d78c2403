"""One division of documents into splits, for all datasets that are made of them.

A model that was trained on one dataset may be evaluated on another. If each dataset divided the
documents anew, the test split of one would have training documents of another. So a build divides
its documents once, and every builder uses that division (docs/decisions/032-one-division.md).

`corpora.splits.stratification` decides which document goes where; this module writes and reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.rng import Words, stable_id
from corpora.schemas import INT8, STRING, schema
from corpora.splits import MIN_GROUPS, SPLITS, TOLERANCE, Shares
from corpora.splits.stratification import Codes, DocumentTable, Served, stratify
from corpora.store.atomic import replacing
from corpora.store.rows import PARQUET

VERSION = 2
"""Increased when `divide` puts the same documents into other splits."""

FILE = "division.parquet"
SCHEMA = schema(doc=STRING, key=pa.uint64(), split=INT8)
ROWS_PER_GROUP = 65_536
PLACES = (*SPLITS, "")
"""What a code of the column `split` means; the last one is that of a document in no split."""
NOWHERE = PLACES.index("")


@dataclass(frozen=True, slots=True)
class DivisionSummary:
    """A summary of a division: how many documents each split has, and how they were divided.

    `by`: what was kept together, `group` or `document`. `kept`: how many documents stayed in the
    split of an earlier division, None without one.
    """

    by: str
    reason: str
    documents: dict[str, int]
    kept: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def divide(
    sources: Sequence[Served],
    shares: Shares,
    folder: Path,
    *,
    seed: int,
    names: Sequence[str] = (),
    kept: Division | None = None,
    prescribed: Mapping[str, str] | None = None,
    prescribed_words: str = "",
) -> DivisionSummary:
    """Divide the documents of sources into splits, and write `folder/division.parquet`.

    Each source comes with the datasets that draw on it; its documents are iterated twice. Groups
    are kept whole. But if a dataset then misses its shares by more than 20 %, or has fewer than
    three groups in a split, its documents are divided one by one. A document that is in two
    sources, as text and annotated, counts once, and its groups are one group. The split of a
    document does not depend on the order of sources or documents.

    Documents of `kept`, an earlier division, stay in its splits, and new documents of their groups
    go there too. Other documents in `prescribed` go to the split that it names ("" for no
    split); all that are in neither fill the splits up to their shares. `prescribed_words` is a text
    about the prescribed splits, which is added to the reason of the summary.

    Raises `InputError` if a dataset draws on two sources with a document of one id, as its builder
    would, but before anything is parsed; `names` are the sources' names, for the message.
    """
    # Fix the documents of an earlier division and the prescribed ones.
    table = DocumentTable.read(sources)
    _check_ids(table, sources, names)
    earlier_division = kept or Division.of({})
    fixed = earlier_division.codes(table.documents)
    settled = {name for name in table.datasets if (fixed[table.rows_of(name)] >= 0).any()}
    fixed = np.where(fixed < 0, Division.of(prescribed or {}).codes(table.documents), fixed)
    # A dataset whose documents are all prescribed has none to divide, whatever its shares are.
    settled |= {name for name in table.datasets if (fixed[table.rows_of(name)] >= 0).all()}
    in_no_split = fixed == NOWHERE
    fixed[in_no_split] = -1
    table = replace(table, weights=np.where(in_no_split, 0, table.weights))
    # Divide all other documents.
    split, broken = stratify(table, shares, seed, fixed, settled)
    split[in_no_split] = NOWHERE
    # Describe the division.
    causes = ["whole groups do not fit the shares"] if broken else []
    causes += ["the table divides them"] if table.cuts(fixed) else []
    _, first_rows = np.unique(table.documents, return_index=True)
    kept_count = int((earlier_division.codes(table.documents[first_rows]) >= 0).sum())
    parts = ", ".join(f"{s} {part:g}" for s, part in zip(SPLITS, shares.parts, strict=True))
    reason = (
        f"one division for all datasets of the build ({parts}), in which documents of one group, "
        f"such as the chapters of one novel, are in several splits: {' and '.join(causes)}"
        if causes
        else f"one division for all datasets of the build ({parts}), in which no group is in two "
        "splits"
    )
    reason += f"; {kept_count:,} documents are where a table has them" if kept else ""
    reason += f"; {prescribed_words}" if prescribed_words else ""
    counts = np.bincount(split[first_rows], minlength=len(SPLITS))[: len(SPLITS)].tolist()
    summary = DivisionSummary(
        "document" if causes else "group",
        reason,
        dict(zip(SPLITS, counts, strict=True)),
        kept_count if kept else None,
    )
    _write_division(folder, sources, split, summary)
    return summary


def _write_division(
    folder: Path, sources: Sequence[Served], split: Codes, summary: DivisionSummary
) -> None:
    """Write the documents and their splits, in the order and as often as the sources have them."""
    schema_with_summary = SCHEMA.with_metadata(
        {"division": json.dumps({"by": summary.by, "reason": summary.reason})}
    )
    all_ids = (name for _, documents in sources for name, *_ in documents)
    written = 0
    with (
        replacing(folder / FILE) as partial,
        pq.ParquetWriter(partial, schema_with_summary, **PARQUET) as writer,
    ):
        while ids := list(islice(all_ids, ROWS_PER_GROUP)):
            codes = split[written : written + len(ids)]
            columns = [pa.array(ids), pa.array(_id_hashes(ids)), pa.array(codes)]
            written += len(ids)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema_with_summary))


def dataset_division(
    documents: Mapping[str, tuple[str, int]], shares: Shares, seed: int
) -> Division:
    """Return a division of the documents of one dataset; `documents` maps ids to group and weight.

    Groups stay whole if each split gets at least three groups and comes within 20 % of its share;
    else documents are divided singly. It depends on the documents, not on their order. With three
    or more documents no split of a positive share is empty.
    """
    sizes = ((name, group, weight) for name, (group, weight) in documents.items())
    table = DocumentTable.read([(("dataset",), sizes)])
    split, broken = stratify(table, shares, seed, np.full(len(documents), -1, np.int8))
    reason = "whole groups fit"
    if broken:
        reason = f"{table.groups.max() + 1} groups do not make splits of at least "
        reason += f"{MIN_GROUPS} groups each within {TOLERANCE:.0%} of their shares"
    return Division(table.documents, split, "document" if broken else "group", reason)


def _check_ids(table: DocumentTable, sources: Sequence[Served], names: Sequence[str]) -> None:
    """Raise `InputError` if a dataset draws on two sources with a document of one id."""
    for dataset in table.datasets:
        rows = table.rows_of(dataset)
        _, first = np.unique(table.documents[rows], return_index=True)
        repeated = np.delete(rows, first)  # in another source: ids are unique in one
        if not len(repeated):
            continue
        ids = (id for _, documents in sources for id, *_ in documents)
        id = next(islice(ids, int(repeated[0]), None))
        with_id = table.source[table.documents == table.documents[repeated[0]]].tolist()
        two_sources = [number for number in with_id if dataset in table.served[number]][:2]
        count = len(np.unique(table.documents[repeated]))
        others = f" (one of {count:,} such ids)" if count > 1 else ""
        raise InputError(
            f"two documents have the id {id!r}{others}, and the dataset {dataset!r} draws on both",
            where=", ".join(names[i] if names else f"source {i + 1}" for i in two_sources),
            hint="ids must differ over all sources of a dataset: is a source named twice? Those of "
            'records (jsonl:, parquet:, hub:) do with options = { id_prefix = "NAME/" }, those of '
            "files named alike in two folders with /./ in the path, as in text:books/./emma",
        )


def _id_hashes(names: Sequence[str]) -> Words:
    """Return the 64-bit hash of each document's id, which stands for the document in a division."""
    return np.fromiter(map(stable_id, names), np.uint64, len(names))


class Division:
    """The split of every document of a build, in 9 bytes of memory for each.

    `keys` are the hashes of the documents' ids, `codes` their splits as indices into `PLACES`. `by`
    is the unit that was divided (groups or documents) and `reason` a text for the dataset's card.
    """

    def __init__(self, keys: Words, codes: Codes, by: str = "", reason: str = "") -> None:
        keys, first = np.unique(keys, return_index=True)
        self._keys, self._codes = keys, codes[first]
        self.by, self.reason = by, reason

    @classmethod
    def of(cls, split: Mapping[str, str], reason: str = "as given") -> Division:
        """Return the division that puts each document into the split in `split`, "" for none."""
        codes = [PLACES.index(name) for name in split.values()]
        return cls(_id_hashes(list(split)), np.array(codes, np.int8), "document", reason)

    @classmethod
    def read(cls, folder: Path) -> Division:
        """Read the division that `divide` wrote into `folder`."""
        table = pq.read_table(
            folder / FILE, columns=["key", "split"], page_checksum_verification=True
        )
        about = json.loads((table.schema.metadata or {}).get(b"division", b"{}"))
        return cls(table["key"].to_numpy(), table["split"].to_numpy(), **about)

    def __contains__(self, document: str) -> bool:
        return int(self.codes(_id_hashes([document]))[0]) >= 0

    def splits_of(self, documents: Sequence[str]) -> list[str | None]:
        """Return the split of each document, None for one that prescribed splits leave out.

        Raises `InputError` for a document that was not divided.
        """
        codes = self.codes(_id_hashes(documents))
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            raise InputError(
                f"the document {documents[missing[0]]!r} is in no split",
                hint="the documents were divided before they changed: remove the folder of the "
                "stage `division` and run again",
            )
        return [PLACES[code] or None for code in codes.tolist()]

    def codes(self, keys: Words) -> Codes:
        """Return the index in `PLACES` of each document's split, -1 if it was not divided.

        `keys` are the hashes of the documents' ids.
        """
        if not len(self._keys):
            return np.full(len(keys), -1, np.int8)
        # An id behind all others gets the last place; no key there is equal to it.
        index = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[index] == keys, self._codes[index], np.int8(-1))
