"""What a model got right, example by example: what two models are compared by.

A suite puts a list of `Outcomes` into its result under `outcomes`; with `--json OUT.json` they go
to `OUT.outcomes.parquet`, a row an example: column, part, unit, right, gold, predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import InputError
from corpora.store.atomic import write_parquet

SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("part", pa.string()),
        ("unit", pa.string()),
        ("right", pa.float32()),
        ("gold", pa.int32()),
        ("predicted", pa.int32()),
    ]
)


@dataclass(frozen=True)
class Outcomes:
    """The examples behind one figure.

    `column` is the figure's in `discorpora compare`; the mean of its `part`s (domains) if it has
    several. Examples of one unit (a document with its permutations) are drawn together. Either
    `right [examples]`, the share of the classifiers that are right, whose mean is the figure; or
    the classes `gold` and `predicted`, whose unweighted F1 is.
    """

    column: str
    units: Sequence[str]
    right: np.ndarray | None = None
    gold: np.ndarray | None = None
    predicted: np.ndarray | None = None
    part: str = ""

    def table(self) -> pa.Table:
        """The rows of `SCHEMA`."""
        size = len(self.units)
        columns = {
            "column": [self.column] * size,
            "part": [self.part] * size,
            "unit": list(self.units),
            **{name: getattr(self, name) for name in ("right", "gold", "predicted")},
        }
        arrays = [
            pa.nulls(size, field.type)
            if columns[field.name] is None
            else pa.array(columns[field.name], field.type)
            for field in SCHEMA
        ]
        return pa.Table.from_arrays(arrays, schema=SCHEMA)


def numbered(rows: int) -> list[str]:
    """Units for examples that are independent of each other."""
    return [str(row) for row in range(rows)]


def stem_of(result: Path) -> Path:
    """The result's path without `.json`; any other ending stays."""
    return result.with_name(result.name.removesuffix(".json"))


def place_of(result: Path) -> Path:
    """Where the outcomes of the result `result` lie."""
    stem = stem_of(result)
    return stem.with_name(f"{stem.name}.outcomes.parquet")


def write_outcomes(result: Path, found: Iterable[Outcomes]) -> None:
    """Write the outcomes beside the result, or remove those that another run has left there."""
    place, tables = place_of(result), [one.table() for one in found]
    if not tables:
        place.unlink(missing_ok=True)
        return
    write_parquet(place, pa.concat_tables(tables).to_batches(), SCHEMA)


Columns = Mapping[str, Mapping[str, Outcomes]]
"""Outcomes by column and part."""


def joined(trainings: Sequence[Columns]) -> dict[str, dict[str, Outcomes]]:
    """Those of several trainings as one: an example counts by the share that has it right.

    Only the parts that all have, on the same examples; classes have no mean and are left out.
    """
    found: dict[str, dict[str, Outcomes]] = {}
    for column, parts in trainings[0].items():
        for part, one in parts.items():
            same = [other.get(column, {}).get(part) for other in trainings]
            shares = [o.right for o in same if o is not None and list(o.units) == list(one.units)]
            known = [share for share in shares if share is not None]
            if len(known) == len(trainings):
                right = np.mean(known, axis=0)
                found.setdefault(column, {})[part] = replace(one, right=right)
    return found


def read_outcomes(result: Path) -> dict[str, dict[str, Outcomes]]:
    """The outcomes beside a result by column and part; none where the file is not there.

    Raises `InputError` for a file that is no such table.
    """
    place = place_of(result)
    if not place.is_file():
        return {}
    try:
        table = pq.read_table(place)
        if table.schema.names != SCHEMA.names:
            raise pa.ArrowInvalid(f"its columns are {', '.join(table.schema.names)}")
        table = table.cast(SCHEMA)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"is no table of outcomes: {error}",
            where=str(place),
            hint="evaluate the model again, or remove the file",
        ) from error
    found: dict[str, dict[str, Outcomes]] = {}
    columns: Mapping[str, np.ndarray] = {
        name: table[name].to_numpy(zero_copy_only=False) for name in SCHEMA.names
    }
    keys = list(zip(columns["column"], columns["part"], strict=True))
    for column, part in dict.fromkeys(keys):
        rows = (columns["column"] == column) & (columns["part"] == part)
        units = columns["unit"][rows].tolist()
        right, gold, predicted = (columns[n][rows] for n in ("right", "gold", "predicted"))
        classes = np.isnan(right).all()
        found.setdefault(column, {})[part] = Outcomes(
            column,
            units,
            None if classes else right.astype(np.float64),
            gold.astype(np.int64) if classes else None,
            predicted.astype(np.int64) if classes else None,
            part,
        )
    return found
