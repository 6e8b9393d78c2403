"""The DisSent datasets (Nie, Bennett, Goodman 2019, sections 2 and 4), from tables of pairs.

Two passes over the Parquet files that extraction writes: the first decides which pairs stay and
where their documents go, the second copies them, column by column, into the configurations, in an
order that neither the files' nor the documents' changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpora.schemas import PAIRS, dissent
from corpora.splits import SPLITS, Assignment, Shares
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.dissent_survey import COLUMNS, Ints, Mask, Settings, Survey, read_pairs
from corpora.tasks.reordered import Reordered
from corpora.tasks.target import Target

__all__ = ["CARD", "VERSION", "Settings", "build"]

VERSION = 2

CARD = Card(
    title="DisSent: pairs of clauses and the marker that joined them",
    summary=(
        "Two clauses that a discourse marker joined in running text; the label is the marker. "
        "Extracted by dependency patterns, as DisSent did, with its sets of markers: `all` (15), "
        "`books8`, `books5`, and `balanced`, in which no marker is more frequent than the rarest."
    ),
    method=(
        "Nie, Bennett and Goodman 2019. S2 is the clause that the marker introduces, S1 the one "
        "it is joined to, in the same sentence or the one before. Both have 5 to 50 words, and "
        "neither is more than 5 times as long as the other. Exact duplicates (both clauses and "
        "the marker) are left out but for one. The smaller sets are subsets of the larger ones, "
        "in the same splits."
    ),
    fields={
        "doc": "id of the document",
        "group": "the book or file it is from",
        "s1": "the clause that the other is joined to, marker removed",
        "s2": "the clause that the marker introduces, marker removed",
        "label": "the marker",
        "position": "`same_sentence`, or `previous_sentence` if S1 is the sentence before",
        "order": "`s1_first` or `s2_first` in the text",
    },
    citation="""@inproceedings{nie-etal-2019-dissent,
  title = {{DisSent}: Learning Sentence Representations from Explicit Discourse Relations},
  author = {Nie, Allen and Bennett, Erin and Goodman, Noah},
  booktitle = {Proceedings of ACL},
  pages = {4497--4510},
  year = {2019}
}""",
    limits=(
        "Pairs follow a parser's trees; the validation report says how often they agree with "
        "annotated relations.",
        "Several markers can fit a pair: no model, and no reader, can be right on all.",
    ),
    tags=("dissent", "discourse-markers"),
)


def configurations(settings: Settings) -> Iterable[str]:
    """What `Builder.configurations` gives."""
    return settings.configs


def build(inputs: Sequence[Path], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from Parquet files of `PAIRS`; returns the manifest.

    Raises `InputError` for a file that is no table of pairs.
    """
    with target.dataset(CARD) as dataset:
        plan = _plan(inputs, dataset, settings, target)
        _copy(inputs, dataset, settings, *plan)
        return dataset.finish("all")


def _plan(
    inputs: Sequence[Path], dataset: DatasetFolder, settings: Settings, target: Target
) -> tuple[Assignment, Ints, Mask]:
    """The first pass: the splits, the pairs that stay in their order, and what is `balanced`."""
    with Survey(settings, dataset.folder, seed=target.seed, stage=target.stage.name) as survey:
        for batch in read_pairs(inputs):
            survey.add(batch)
        kept = survey.kept(dataset)
    shares = Shares(settings.train, settings.validation, settings.test)
    assignment = target.assign(survey.documents(kept), shares)
    dataset.details |= {"split": assignment.to_dict(), "settings": used(settings, target.seed)}
    return assignment, survey.order(kept), survey.balanced(kept, dataset)


def _copy(
    inputs: Sequence[Path],
    dataset: DatasetFolder,
    settings: Settings,
    assignment: Assignment,
    order: Ints,
    balanced: Mask,
) -> None:
    """The second pass: each kept pair goes to the configurations that it belongs to."""
    start = 0
    for pairs in _in_order(inputs, order, balanced.size, dataset.folder):
        fair = balanced[order[start : start + pairs.num_rows]]
        start += pairs.num_rows
        dataset.count_licences(pairs["licence"])
        splits = np.array([assignment.split[doc] for doc in pairs["doc"].to_pylist()], object)
        for config, markers in settings.configs.items():
            table = _labelled(pairs, markers)
            fits = table["label"].to_numpy() >= 0
            if config == "balanced":
                fits &= fair
            for split in SPLITS:
                # The other configurations are parts of `all`: their overlap is in its.
                texts = ("s1", "s2") if config == "all" else ()
                writer = dataset.writer(config, split, table.schema, texts=texts, long=("s1", "s2"))
                writer.append(table.filter(pa.array(fits & (splits == split))))


def _in_order(
    inputs: Sequence[Path], order: Ints, pairs: int, folder: Path
) -> Iterator[pa.RecordBatch]:
    """The rows `order` of the inputs, which have so many `pairs`, in this order."""
    place = np.full(pairs, -1)
    place[order] = np.arange(order.size)
    schema = pa.schema([PAIRS.field(name) for name in COLUMNS])
    with Reordered(folder, schema, order.size) as rows:
        start = 0
        for batch in read_pairs(inputs):
            part = place[start : start + batch.num_rows]
            start += batch.num_rows
            inside = np.flatnonzero(part >= 0)
            rows.add(batch.take(pa.array(inside)), part[inside])
        yield from rows.read()


def _labelled(pairs: pa.RecordBatch, markers: Sequence[str]) -> pa.RecordBatch:
    """The columns of a dataset, -1 as label where the marker is not one of its labels."""
    schema = dissent(markers)
    found = pc.index_in(pairs["marker"], pa.array(markers, pa.string())).fill_null(-1)
    columns = {name: pairs[name] for name in schema.names if name != "label"}
    columns["label"] = found.cast(pa.int64())
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
