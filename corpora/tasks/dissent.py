"""The DisSent datasets (Nie, Bennett, Goodman 2019, sections 2 and 4), from tables of pairs.

Each Parquet file that extraction writes becomes a shard of candidates, column by column: the
pairs of fitting lengths with a marker that is asked for. Queries then leave out duplicates, split
the documents and put the pairs into an order that neither the files' nor the documents' changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from corpora.errors import InputError
from corpora.lengths import MAX_RATIO, MAX_WORDS, MIN_WORDS, unfit_lengths
from corpora.rng import stable_id, stream
from corpora.schemas import DISSENT, MARKERS_5, MARKERS_8, MARKERS_ALL, PAIRS, dissent
from corpora.splits import SPLITS
from corpora.store.folder import DatasetFolder
from corpora.store.rows import parquet_batches
from corpora.tasks.builder import Builder, Part, Shard, Target, check_markers
from corpora.tasks.candidates import Candidates, text_key
from corpora.tasks.cards import card_beside

ROWS_PER_BATCH = 16_384

COLUMNS = (
    *("doc", "group", "source", "licence", "language", "marker", "marker_spans"),
    *("s1", "s2", "position", "order", "has_clauses", "s2_added", "confidence"),
)

PAIR_COLUMNS = ("marker", "s1", "s2", "position", "order", "s2_added", "confidence")


class Dissent(Builder):
    """DisSent: pairs of clauses and the marker that joined them, in four sets of markers."""

    name, version = "dissent", 4
    paper = "Nie, Bennett and Goodman 2019, sections 2 and 4"
    reads = "pairs"
    card = card_beside(__file__, "dissent")
    gives = dict.fromkeys(("all", "books8", "books5", "balanced"), DISSENT)
    default = "all"
    columns = pa.schema([PAIRS.field(name) for name in PAIR_COLUMNS]).append(
        DISSENT.field("marker_start")
    )
    equal = ("marker", "s1", "s2")

    markers: Annotated[tuple[str, ...], AfterValidator(check_markers)] = MARKERS_ALL
    """Labels of `all`, in this order; pairs with other markers are rejected (`marker_not_in_set`).
    """
    require_clauses: bool = True
    """Both sides need a finite verb or copula and a subject (section 2): the pair's `has_clauses`.
    """
    min_words: int = MIN_WORDS
    """Minimum words of each side, split at white space. The paper's script counts tokens with
    punctuation, so a side of four words and a comma passes there."""
    max_words: int = MAX_WORDS
    """Maximum words of each side."""
    max_ratio: float = MAX_RATIO
    """Maximum ratio of the two lengths."""
    near_duplicates: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Maximum Jaccard similarity (below 1) of two pairs, estimated by MinHash (128 values, error
    about .04); 0 disables it. It needs the extra `dedup`. Exact duplicates are always removed."""
    balanced_cap: Annotated[int, Field(ge=0)] = 0
    """Maximum pairs of each marker in `balanced`; 0: as many as the rarest marker has."""
    train: Part = 0.9  # in a build `[splits]` counts instead
    """The share of the training split (section 4.3)."""
    validation: Part = 0.05
    """The share of the validation split."""
    test: Part = 0.05
    """The share of the test split."""

    def sets(self) -> Mapping[str, Sequence[str]]:
        """Return the label names of each configuration whose markers are all in `markers`."""
        smaller = {"books8": MARKERS_8, "books5": MARKERS_5}
        subsets = {name: names for name, names in smaller.items() if {*names} <= {*self.markers}}
        return {"all": self.markers, **subsets, "balanced": self.markers}

    def configurations(self) -> tuple[str, ...]:
        return tuple(self.sets())

    def candidate_batches(
        self, path: Path, target: Target, shard: Shard
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of the table `path` that pass the filters, as rows of candidates.

        Adds the documents and the rejected pairs to `shard`. The priority of a pair is a raw number
        of the random stream of its document. Raises `InputError` for a file without `COLUMNS`.
        """
        schema = self.candidate_schema()
        documents: dict[tuple[str, str], dict[str, Any]] = {}
        pairs_before: Counter[tuple[str, str]] = Counter()  # by document, in earlier batches
        for batch in parquet_batches(path, batch_size=ROWS_PER_BATCH, columns=list(COLUMNS)):
            if missing := sorted({*COLUMNS} - {*batch.schema.names}):
                hint = f"a table of pairs has the columns {', '.join(PAIRS.names)}"
                raise InputError(f"has no column {', '.join(missing)}", where=str(path), hint=hint)
            # Filter the pairs, and draw the number and priority of each within its document.
            passes = self._passing_filters(batch, shard.rejects)
            number = np.empty(batch.num_rows, np.int32)
            priority = np.empty(batch.num_rows, np.int64)
            # The rows of a document follow each other; `starts` has the first row of each document.
            codes = batch["doc"].dictionary_encode().indices.to_numpy()
            starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
            first_rows = batch.select(["doc", "source", "group", "language"]).take(pa.array(starts))
            ends = [*starts[1:], batch.num_rows]
            for first, start, end in zip(first_rows.to_pylist(), starts, ends, strict=True):
                doc = first["doc"]
                key = (doc, first["source"])
                columns = {"part": "", "whole": doc, "doc_key": stable_id(doc), "candidates": 0}
                documents.setdefault(key, {**first, **columns})
                documents[key]["candidates"] += int(passes[start:end].sum())
                # Raw numbers, so that a document cut by a batch goes on where it stopped.
                first_number, pairs = pairs_before[key], end - start
                random = stream(target.seed, target.stage.name, doc).bit_generator
                random.advance(first_number)  # type: ignore[attr-defined]
                priority[start:end] = random.random_raw(pairs) >> np.uint64(1)
                number[start:end] = np.arange(first_number, first_number + pairs)
                pairs_before[key] += pairs
            # Make the rows of candidates from the pairs that pass.
            passing = batch.filter(pa.array(passes))
            texts = zip(*(passing[name].to_pylist() for name in self.equal), strict=True)
            values = {
                **{name: passing[name] for name in passing.schema.names},
                "marker_start": pc.list_element(pc.list_element(passing["marker_spans"], 0), 0),
                "part": pa.repeat("", passing.num_rows),
                "number": number[passes],
                "priority": priority[passes],
                "key": np.fromiter(map(text_key, texts), np.uint64, passing.num_rows),
            }
            arrays = [pa.array(values[name]) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        shard.documents += documents.values()

    def _passing_filters(self, batch: pa.RecordBatch, rejects: Counter[str]) -> NDArray[np.bool_]:
        """Return a mask [rows] of pairs that pass the filters; count the others in `rejects`."""
        s1, s2 = _word_counts(batch["s1"]), _word_counts(batch["s2"])
        is_label = pc.is_in(batch["marker"], pa.array(self.markers, pa.string()))
        clauses = batch["has_clauses"].to_numpy(zero_copy_only=False)
        tests = {
            "marker_not_in_set": ~is_label.to_numpy(zero_copy_only=False),
            "no_clauses": ~clauses & self.require_clauses,
            **unfit_lengths(s1, s2, self.min_words, self.max_words, self.max_ratio),
        }
        rejected = np.zeros(batch.num_rows, bool)
        for reason, failed in tests.items():
            rejects[reason] += int((failed & ~rejected).sum())
            rejected |= failed
        return ~rejected

    def select(self, candidates: Candidates) -> None:
        """Remove near-duplicate pairs, then split the documents by the number of pairs left."""
        if self.near_duplicates:
            from corpora.tasks.near_duplicates import near_duplicates

            rows = (row for batch in candidates.engine.batches(_TEXTS) for row in batch.to_pylist())
            folder = candidates.folder
            near_copies = list(near_duplicates(rows, self.markers, self.near_duplicates, folder))
            candidates.engine.run("create table alike (doc varchar, number integer)")
            docs, numbers = zip(*near_copies, strict=True) if near_copies else ((), ())
            candidates.engine.insert("alike", pa.table({"doc": docs, "number": numbers}))
            candidates.engine.run(_WITHOUT_ALIKE)
            candidates.dataset.reject("near_duplicate", len(near_copies))
        candidates.split(weigh="single")

    def write(self, candidates: Candidates, dataset: DatasetFolder) -> None:
        """Write each pair to the configurations that have its marker.

        `balanced` takes an equal number of each marker, those of lowest priority.
        """
        # Notes on the card: markers without pairs, copied subjects, the size of `balanced`
        counts = dict(candidates.engine.rows("select marker, count(*) from chosen group by marker"))
        absent = [marker for marker in self.markers if marker not in counts]
        if absent:
            dataset.note(f"No pair was found for: {', '.join(absent)}.")
        query = "select count(*), count(*) filter (where marker = 'and') from chosen"
        copy_count, and_count = candidates.engine.rows(f"{query} where s2_added <> ''")[0]
        if copy_count:
            dataset.note(
                f"In {copy_count:,} pairs S2 begins with a copy of S1's subject; “and” joined "
                f"{and_count:,} of them ({and_count / copy_count:.0%}), which the copy alone gives "
                "away."
            )
        cap = self.balanced_cap or min(counts.values(), default=0)
        dataset.note(f"Maximum number of pairs of each marker in `balanced`: {cap:,}.")
        dataset.details["balanced_cap"] = cap
        # Write the rows of each configuration and split.
        for pairs in candidates.engine.batches(_IN_ORDER, {"cap": cap}, ROWS_PER_BATCH):
            dataset.count_licences(pairs["licence"])
            for config, markers in self.sets().items():
                rows = _with_labels(pairs, markers)
                is_in_config = pc.greater_equal(rows["label"], 0)
                if config == "balanced":
                    is_in_config = pc.and_(is_in_config, pairs["fair"])
                for split in SPLITS:
                    # Only `all` is audited and checked for overlap: the others are parts of it.
                    is_all = config == "all"
                    writer = dataset.writer(
                        config,
                        split,
                        rows.schema if is_all else rows.schema.remove_metadata(),
                        texts=("s1", "s2") if is_all else (),
                        long=("s1", "s2"),
                    )
                    writer.append(
                        rows.filter(pc.and_(is_in_config, pc.equal(pairs["split"], split)))
                    )


_TEXTS = """
select doc, number, marker, s1, s2
from single join candidate using (part, doc, number)
order by single.priority, doc, number
"""

_WITHOUT_ALIKE = """
delete from single using alike
where single.doc = alike.doc and single.number = alike.number
"""

_IN_ORDER = """
with ranked as (
    select doc, number, split,
        row_number() over (partition by marker order by kept.priority, doc, number) as place
    from kept join candidate using (part, doc, number)
)
select candidate.*, split, place <= $cap as fair
from ranked join candidate using (doc, number)
order by priority, doc, number
"""


def _word_counts(column: pa.Array) -> NDArray[np.int64]:
    """Return the number of words of each text, split at white space."""
    parts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(column))
    return pc.list_value_length(parts).to_numpy(zero_copy_only=False).astype(np.int64)


def _with_labels(pairs: pa.RecordBatch, markers: Sequence[str]) -> pa.RecordBatch:
    """Return pairs as rows of a DisSent dataset; the label is -1 if `markers` lacks the marker."""
    schema = dissent(markers)
    label = pc.index_in(pairs["marker"], pa.array(markers, pa.string())).fill_null(-1)
    columns = {name: pairs[name] for name in schema.names if name != "label"}
    columns["label"] = label.cast(pa.int64())
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
