"""The rows that are audited: the splits of a configuration, and a sample of them as examples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpora.audit.features import KINDS, clean
from corpora.audit.rules import SEED, Example
from corpora.errors import ConfigError
from corpora.schemas import AUDIT
from corpora.splits import SPLITS

if TYPE_CHECKING:
    import pyarrow.dataset as pads

SIDES = (
    ("sentence1", "sentence2"),
    ("s1", "s2"),
    ("arg1", "arg2"),
    ("left", "right"),
    ("premise", "hypothesis"),
    ("sentence",),
    ("text",),
)
"""Columns of one or two texts with a label."""
ORDER = ("position", "order")
UNITS = ("doc", "document", "reference_file", "group")
"""Columns that name a row's document; what follows a `#` is the number of a part of it."""


@dataclass(frozen=True)
class Configuration:
    """One configuration: its splits, and its kind ("" if it is not known).

    `documents`: the texts of which a row's orders are (`permuted`).
    """

    splits: Mapping[str, pads.Dataset]
    kind: str = ""
    documents: Mapping[str, pads.Dataset] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        return next(iter(self.splits.values())).schema

    @property
    def classes(self) -> dict[str, list[str]]:
        """The names of the classes of each column of labels."""
        stored = json.loads((self.schema.metadata or {}).get(b"huggingface", b"{}"))
        features = stored.get("info", {}).get("features", {})
        return {column: about["names"] for column, about in features.items() if "names" in about}

    def examples(self, split: str, limit: int) -> list[Example]:
        """At most `limit` rows of a split, drawn with a fixed seed, in their order.

        Two rows that stand together are drawn together: the two forms of a text.
        """
        rows = self.splits[split]
        total = rows.count_rows()
        blocks = np.random.default_rng(SEED).permutation(-(-total // 2))[: -(-limit // 2)]
        numbers = np.add.outer(2 * np.sort(blocks), [0, 1]).ravel()
        numbers = numbers[numbers < total]
        found = _examples(self, split, numbers.tolist(), rows.take(pa.array(numbers)), total)
        whole = (row for row in found if all(all(text) and text for text in row.texts))
        return [row for row in whole if row.label not in (None, -1)]  # -1: a hidden label


def _examples(
    config: Configuration, split: str, numbers: Sequence[int], table: pa.Table, total: int
) -> Iterator[Example]:
    kind, columns = config.kind, table.schema.names
    sides = next((names for names in SIDES if {*names} <= {*columns}), ())
    unit_column = next((name for name in UNITS if name in columns), "")
    texts: dict[str, list[str]] = {}
    if kind == "permuted" and "orders" in columns:
        wanted = pc.field("id").isin(table["document"])
        for part in config.documents.values():
            chosen = part.to_table(columns=["id", "sentences"], filter=wanted)
            texts |= zip(*chosen.to_pydict().values(), strict=True)
    for number, row in zip(numbers, table.to_pylist(), strict=True):
        label: Any = 0
        if texts:
            pos = texts[row["document"]]
            both = [pos, [pos[i] for i in row["orders"][0]]]
        elif KINDS[kind].ranked:
            both = [[*row.get("prompt", ()), *row[name]] for name in ("pos", "neg")]
        else:
            own = [row[name] for name in sides] if kind in ("bso", "labelled") else row["sentences"]
            both = [[" ".join(side) if isinstance(side, list) else side for side in own]]
            label = row["label"]
        unit = str(row[unit_column]).split("#")[0] if unit_column else f"{split} {number}"
        pair = kind in ("bso", "dc")
        at = row.get("position") if kind in ("dc", "intrusion") else None
        yield Example(
            texts=tuple(tuple(clean(sentence or "") for sentence in text) for text in both),
            label=label,
            unit=unit if unit_column or not pair else f"{split} {number // 2}",
            item=(split, number // 2 if pair else number),
            tenth=10 * number // total,
            columns=tuple(map(row.get, ORDER)) if {*ORDER} <= {*columns} else None,
            place=None if at is None or at < 0 else (len(both[0]), at),
        )


def built(folder: Path, configs: Mapping[str, Any]) -> dict[str, Configuration]:
    """The configurations of a built folder, whose manifest has these entries."""
    import pyarrow.dataset as pads  # it loads pandas

    splits: dict[str, dict[str, pads.Dataset]] = {}
    for name, entry in configs.items():
        files = {
            split: [str(folder / shard["file"]) for shard in entry["splits"][split]["shards"]]
            for split in sorted(entry["splits"], key=[*SPLITS, *entry["splits"]].index)
        }
        splits[name] = {split: pads.dataset(own) for split, own in files.items() if own}
    documents = splits.get("documents", {})
    return {
        name: Configuration(own, _kind(next(iter(own.values())).schema), documents)
        for name, own in splits.items()
        if own
    }


def _kind(schema: pa.Schema) -> str:
    """What the files say of themselves (`corpora.schemas.AUDIT`)."""
    kind = (schema.metadata or {}).get(AUDIT, b"").decode()
    if kind and (kind not in KINDS or missing(schema, kind)):
        raise ConfigError(
            f"a schema of the columns {', '.join(schema.names)} has the kind {kind!r}",
            hint=f"the kinds are: {', '.join(KINDS)}; docs/audit.md says what columns each has",
        )
    return kind


def missing(schema: pa.Schema, kind: str) -> str:
    """Which column of a kind's a schema lacks, or an empty string."""
    there = {*schema.names}
    if KINDS[kind].ranked and not {"document", "orders"} <= there:
        wanted: tuple[str, ...] = ("pos", "neg")
    elif kind in ("bso", "labelled"):
        pairs = SIDES[:-2] if kind == "bso" else SIDES
        wanted = ("label", *next((names for names in pairs if {*names} <= there), pairs[0]))
    else:
        wanted = () if KINDS[kind].ranked else ("label", "sentences")
    return next((name for name in wanted if name not in there), "")
