"""Marked or not: is a relation explicit or implicit? (DisSent, section 6 and A.3)"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from corpora.document import Document
from corpora.schemas import PDTB_MARKED
from corpora.splits import SPLITS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.pool import Pool
from corpora.tasks.relations import PDTB_CITATION, Splitting, relations_of, split_rows
from corpora.tasks.target import Target

VERSION = 1
LABELS = {"Implicit": "0", "Explicit": "1"}

CARD = Card(
    title="Marked or unmarked relations",
    summary=(
        "Two arguments of an annotated discourse relation, without the connective: was the "
        "relation marked by one? From PDTB or GDTB, after DisSent."
    ),
    method=(
        "Nie, Bennett and Goodman 2019, section 6 and appendix A.3: sections 2-22 of the Wall "
        "Street Journal for training, 0-1 for validation, 23-24 for test. Documents of other "
        "sources are split by a given table or by shares. Labels are not balanced."
    ),
    fields={
        "doc": "id of the document",
        "label": "`marked` (1, an explicit relation) or `unmarked` (0, an implicit one)",
        "arg1": "text of the first argument; the parts of a discontinuous one are joined",
        "arg2": "text of the second argument, without the connective",
    },
    citation=f"""@inproceedings{{nie-etal-2019-dissent,
  title = {{{{D}}is{{S}}ent: Learning Sentence Representations from Explicit Discourse Relations}},
  author = {{Nie, Allen and Bennett, Erin and Goodman, Noah}},
  booktitle = {{Proceedings of ACL}},
  pages = {{4497--4510}},
  year = {{2019}}
}}
{PDTB_CITATION}""",
    limits=(
        "The Penn Discourse Treebank may not be passed on: publishing a dataset made from it is "
        "refused.",
        "Explicit relations are more often within one sentence: their arguments are shorter, and "
        "begin less often with a capital.",
    ),
    tags=("dissent", "discourse-relations", "pdtb"),
)


@dataclass(frozen=True, slots=True)
class Settings(Splitting):
    """As `Splitting`, with the sections of DisSent."""

    sections: Literal["discoeval", "dissent"] = "dissent"


def build(documents: Iterable[Document], settings: Settings, target: Target) -> dict[str, Any]:
    """Build the dataset from documents with gold relations; returns the manifest."""
    with target.dataset(CARD) as dataset, target.pool() as pool:
        for document in documents:
            found = relations_of(document, LABELS, dataset)
            pool.add(document, [[one, two, LABELS[r.kind]] for r, one, two in found])
        split, rows = split_rows(pool, settings, dataset)
        for part in SPLITS:
            own = [row for row in rows.tolist() if split[pool.document_of(row)] == part]
            _write(part, own, pool, dataset)
        return dataset.finish("default")


def _write(split: str, rows: list[int], pool: Pool, dataset: DatasetFolder) -> None:
    writer = dataset.writer("default", split, PDTB_MARKED, texts=("arg1", "arg2"))
    for batch in pool.read(np.array(sorted(rows, key=pool.place), np.int64)):
        dataset.count_licences(batch["licence"])
        parts = batch["sentences"].flatten()
        one, two, label = (
            parts.take(pa.array(np.arange(k, 3 * batch.num_rows, 3))) for k in range(3)
        )
        columns = [batch["doc"], label.cast(pa.int64()), one, two]
        writer.append(pa.RecordBatch.from_arrays(columns, schema=PDTB_MARKED))
