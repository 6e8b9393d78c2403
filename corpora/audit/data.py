"""The rows that are audited: the splits of a configuration, and a sample of them as examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpora.audit.features import KINDS, clean
from corpora.audit.rules import SEED, Example
from corpora.errors import ConfigError, InputError
from corpora.schemas import AUDIT
from corpora.splits import SPLITS
from corpora.store.manifest import label_names

if TYPE_CHECKING:
    import pyarrow.dataset as pads

ORDER = ("position", "order")
UNITS = ("doc", "document", "reference_file", "group")
"""Columns that name a row's document; a number after `#` is a part of it."""
NAMES = {*UNITS, "donor", "id"}
"""Columns that name documents, which may be called `My First Book`: they are not texts."""


@dataclass(frozen=True)
class Configuration:
    """One configuration: its splits, and its kind ("" if unknown).

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
        return label_names(self.schema.metadata)

    def examples(self, split: str, limit: int) -> list[Example]:
        """About `limit` rows of a split, drawn with a fixed seed, in their order.

        Adjacent rows are sampled together: they are the two forms of a text.
        """
        total = self.splits[split].count_rows()
        blocks = np.random.default_rng(SEED).permutation(-(-total // 2))[: -(-limit // 2)]
        numbers = np.add.outer(2 * np.sort(blocks), [0, 1]).ravel()
        numbers = numbers[numbers < total]
        table = self.splits[split].take(pa.array(numbers))
        columns, pair = {*table.schema.names}, self.kind in ("bso", "dc")
        names = columns_of(table.schema, self.kind)
        unit_column = next((name for name in UNITS if name in columns), "")
        texts: dict[str, list[str]] = {}  # of documents, by their ids
        if names == ("document", "orders"):
            if not self.documents:
                raise InputError(
                    "has orders of sentences, but not their documents",
                    hint="give the folder of the whole dataset, with its configuration documents",
                )
            wanted = pc.field("id").isin(table["document"])
            for part in self.documents.values():
                chosen = part.to_table(columns=["id", "sentences"], filter=wanted)
                texts |= zip(*chosen.to_pydict().values(), strict=True)
        examples = []
        for number, row in zip(numbers.tolist(), table.to_pylist(), strict=True):
            if texts:
                pos = texts[row["document"]]
                both = [pos, [pos[i] for i in row["orders"][0]]]
            elif KINDS[self.kind].ranked:
                both = [[*_listed(row.get("prompt")), *_listed(row[name])] for name in names]
            else:
                own = row["sentences"] if names == ("sentences",) else [row[name] for name in names]
                both = [[" ".join(side) if isinstance(side, list) else side for side in own]]
            unit = str(row[unit_column]).split("#")[0] if unit_column else f"{split} {number}"
            at = row.get("position") if self.kind in ("dc", "intrusion") else None
            example = Example(
                texts=tuple(tuple(clean(sentence or "") for sentence in text) for text in both),
                label=0 if KINDS[self.kind].ranked else row["label"],
                unit=unit if unit_column or not pair else f"{split} {number // 2}",
                item=(split, number // 2 if pair else number),
                tenth=10 * number // total,
                columns=tuple(map(row.get, ORDER)) if {*ORDER} <= columns else None,
                place=None if at is None or at < 0 else (len(both[0]), at),
            )
            # A label of -1 is hidden.
            if all(all(text) and text for text in example.texts) and example.label not in (
                None,
                -1,
            ):
                examples.append(example)
        return examples


def _listed(text: str | list[str] | None) -> list[str]:
    """A text or the list of its sentences, as a list."""
    return [text] if isinstance(text, str) else text or []


def built(folder: Path, configs: Mapping[str, Any]) -> dict[str, Configuration]:
    """The configurations of a built folder, whose manifest has these entries.

    Raises `ConfigError` for files whose declared kind does not fit their columns, and `InputError`
    for a file that is missing.
    """
    import pyarrow.dataset as pads  # it loads pandas

    splits: dict[str, dict[str, pads.Dataset]] = {}
    for name, entry in configs.items():
        files = {
            split: [str(folder / shard["file"]) for shard in entry["splits"][split]["shards"]]
            for split in sorted(entry["splits"], key=[*SPLITS, *entry["splits"]].index)
        }
        for file in [file for own in files.values() for file in own if not Path(file).is_file()]:
            hint = "remove the folder and build it again, or copy all of it"
            raise InputError("is missing: the folder is incomplete", where=file, hint=hint)
        splits[name] = {split: pads.dataset(own) for split, own in files.items() if own}
    found = {}
    for name, own in splits.items():
        if own:
            schema = next(iter(own.values())).schema
            kind = (schema.metadata or {}).get(AUDIT, b"").decode()
            if kind and (kind not in KINDS or missing(schema, kind)):
                raise ConfigError(
                    f"a schema of the columns {', '.join(schema.names)} has the kind {kind!r}",
                    hint=f"the kinds are: {', '.join(KINDS)}; docs/explanation/audit.md says what "
                    "columns each has",
                )
            found[name] = Configuration(own, kind, splits.get("documents", {}))
    return found


def columns_of(schema: pa.Schema, kind: str) -> tuple[str, ...]:
    """The columns of text of a kind: the first choice that a schema has, else the first one."""
    choices = KINDS[kind].columns
    return next((names for names in choices if {*names} <= {*schema.names}), choices[0])


def missing(schema: pa.Schema, kind: str) -> str:
    """Which column of a kind's a schema lacks, or an empty string."""
    wanted = (*(() if KINDS[kind].ranked else ("label",)), *columns_of(schema, kind))
    names = {f.name for f in schema if f.name != "label" or not pa.types.is_nested(f.type)}
    return next((name for name in wanted if name not in names), "")
