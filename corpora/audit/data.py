"""The rows that are audited: the splits of a configuration, and a sample of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpora.audit.features import KINDS, clean
from corpora.audit.rules import SEED, AuditedRow
from corpora.errors import ConfigError, InputError
from corpora.schemas import AUDIT
from corpora.splits import SPLITS
from corpora.store.manifest import label_names

if TYPE_CHECKING:
    import pyarrow.dataset as pads

ORDER = ("position", "order")
UNITS = ("doc", "document", "reference_file", "group")
"""Columns that name a row's document; a number after `#` names a part of it."""
HIDDEN = -1
"""The label of a row whose label was not released."""
NAMES = {*UNITS, "donor", "id"}
"""Columns of names, such as `My First Book`, which are not texts."""


@dataclass(frozen=True)
class Configuration:
    """One configuration: its splits, and its kind ("" if unknown).

    `documents` are the splits of the configuration with the texts, if a row has only orders of
    their sentences (`permuted`).
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

    def sample(self, split: str, limit: int) -> list[AuditedRow]:
        """Return about `limit` rows of a split, drawn with a fixed seed, in their order.

        Two adjacent rows are sampled together, since they may be the two forms of a text. Rows with
        an empty text or a hidden label are left out.
        """
        # Draw pairs of adjacent rows.
        total = self.splits[split].count_rows()
        pairs, limit_of_pairs = -(-total // 2), -(-limit // 2)  # rounded up
        drawn_pairs = np.random.default_rng(SEED).permutation(pairs)[:limit_of_pairs]
        numbers = np.add.outer(2 * np.sort(drawn_pairs), [0, 1]).ravel()
        numbers = numbers[numbers < total]
        table = self.splits[split].take(pa.array(numbers))
        # Find the columns of texts; orders of sentences also need the documents.
        columns, has_pairs = {*table.schema.names}, self.kind in ("bso", "dc")
        names = columns_of(table.schema, self.kind)
        unit_column = next((name for name in UNITS if name in columns), "")
        texts: dict[str, list[str]] = {}  # of documents, by their ids
        if names == ("document", "orders"):
            if not self.documents:
                raise InputError(
                    "has orders of sentences, but not their documents",
                    hint="give the folder of the whole dataset, with its configuration documents",
                )
            in_table = pc.field("id").isin(table["document"])
            for part in self.documents.values():
                documents = part.to_table(columns=["id", "sentences"], filter=in_table)
                texts |= zip(*documents.to_pydict().values(), strict=True)
        # Make a record of each row.
        rows = []
        for number, values in zip(numbers.tolist(), table.to_pylist(), strict=True):
            # One text, or the better and the worse one, each a list of sentences or sides.
            if texts:
                original = texts[values["document"]]
                variants = [original, [original[i] for i in values["orders"][0]]]
            elif KINDS[self.kind].ranked:
                prompt = _as_list(values.get("prompt"))
                variants = [[*prompt, *_as_list(values[name])] for name in names]
            elif names == ("sentences",):
                variants = [values["sentences"]]
            else:
                sides = [values[name] for name in names]
                variants = [[" ".join(s) if isinstance(s, list) else s for s in sides]]
            item = number // 2 if has_pairs else number
            position = values.get("position") if self.kind in ("dc", "intrusion") else None
            row = AuditedRow(
                texts=tuple(tuple(clean(sentence or "") for sentence in text) for text in variants),
                label=0 if KINDS[self.kind].ranked else values["label"],
                unit=str(values[unit_column]).split("#")[0] if unit_column else f"{split} {item}",
                item=(split, item),
                tenth=10 * number // total,
                columns=tuple(map(values.get, ORDER)) if {*ORDER} <= columns else None,
                place=None if position is None or position < 0 else (len(variants[0]), position),
            )
            has_text = all(all(text) and text for text in row.texts)
            if has_text and row.label not in (None, HIDDEN):
                rows.append(row)
        return rows


def _as_list(text: str | list[str] | None) -> list[str]:
    """Return a text, or its sentences, as a list."""
    return [text] if isinstance(text, str) else text or []


def built(folder: Path, configs: Mapping[str, Any]) -> dict[str, Configuration]:
    """Return the configurations of a built folder; `configs` are the entries of its manifest.

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
        for file in chain.from_iterable(files.values()):
            if not Path(file).is_file():
                hint = "remove the folder and build it again, or copy all of it"
                raise InputError("is missing: the folder is incomplete", where=file, hint=hint)
        splits[name] = {split: pads.dataset(paths) for split, paths in files.items() if paths}
    configurations = {}
    for name, of_config in splits.items():
        if of_config:
            schema = next(iter(of_config.values())).schema
            kind = (schema.metadata or {}).get(AUDIT, b"").decode()
            if kind and (kind not in KINDS or missing_column(schema, kind)):
                raise ConfigError(
                    f"a schema of the columns {', '.join(schema.names)} has the kind {kind!r}",
                    hint=f"the kinds are: {', '.join(KINDS)}; docs/explanation/audit.md says what "
                    "columns each has",
                )
            documents = splits.get("documents", {})
            configurations[name] = Configuration(of_config, kind, documents)
    return configurations


def columns_of(schema: pa.Schema, kind: str) -> tuple[str, ...]:
    """Return a kind's columns of text: the first choice that the schema has, else the first one."""
    choices = KINDS[kind].columns
    return next((names for names in choices if {*names} <= {*schema.names}), choices[0])


def missing_column(schema: pa.Schema, kind: str) -> str:
    """Return a column that the kind needs and the schema lacks, or ""; a `label` is not a list."""
    needed = (*(() if KINDS[kind].ranked else ("label",)), *columns_of(schema, kind))
    names = {f.name for f in schema if f.name != "label" or not pa.types.is_nested(f.type)}
    return next((name for name in needed if name not in names), "")
