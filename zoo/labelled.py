"""Labelled pairs of texts from any dataset that has two columns of texts and a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.errors import ConfigError, InputError, amount
from zoo.declared import ClassifierRecipe, LabelledRecipe
from zoo.training.data import SPLITS, Dataset, batches, open_dataset, spread, text_columns
from zoo.training.job import Job


@dataclass(frozen=True)
class Labelled:
    """The splits of a dataset of labelled pairs of texts, prepared for a classifier.

    `columns` are the two columns of texts, `labels` the names of the labels, and `tables` has the
    rows of each split. `notes` says which rows were left out, and `empty_classes`
    are labels without a training row.
    """

    data: Dataset
    columns: tuple[str, str]
    labels: list[str]
    tables: dict[str, pa.Table]
    notes: list[str] = field(default_factory=list)
    empty_classes: list[str] = field(default_factory=list)

    def texts(self, split: str) -> tuple[list[str], list[str]]:
        """Return the first texts and the second texts of a split, `[rows]` each."""
        first, second = (self.tables[split][column].to_pylist() for column in self.columns)
        return first, second

    def gold(self, split: str) -> np.ndarray:
        """Return the number of each row's label, `[rows]`."""
        return self.tables[split]["label"].to_numpy().astype(np.int64)

    def label_counts(self, split: str) -> dict[str, int]:
        """Return how many rows of a split have each label, by the label's name."""
        counts = np.bincount(self.gold(split), minlength=len(self.labels))
        return dict(zip(self.labels, counts.tolist(), strict=True))

    def all_texts(self, split: str) -> Iterator[str]:
        """Yield all first texts of a split, then all second ones."""
        for column in self.columns:
            for batch in batches(self.tables[split], (column,), 10_000):
                yield from batch.column(0).to_pylist()

    def free_texts(self) -> None:
        """Drop the texts and keep the labels, to free memory when the texts are tokenised."""
        for tables in (self.tables, self.data.splits):
            tables |= {split: table.select(["label"]) for split, table in tables.items()}

    @property
    def names(self) -> dict[str, Any]:
        """The labels as two entries of a model's configuration, `id2label` and `label2id`."""
        id2label = dict(enumerate(self.labels))
        return {"id2label": id2label, "label2id": {label: i for i, label in id2label.items()}}


def load_for(
    recipe: ClassifierRecipe, job: Job, columns: Sequence[str] = (), **more: Any
) -> Labelled:
    """Return the labelled pairs that a classifier's recipe names, as `load` prepares them. `job`
    notes the rows that were left out. `more` are further arguments of `load`."""
    data = load(
        recipe.dataset,
        recipe.dataset_config,
        columns=recipe.columns if isinstance(recipe, LabelledRecipe) else columns,
        required=recipe.splits,
        max_train_rows=recipe.max_train_rows,
        max_eval_rows=recipe.max_eval_rows,
        empty=recipe.empty_classes,
        **more,
    )
    for note in data.notes:
        job.note(note)
    job.trained_on = data.tables["train"].num_rows
    return data


def load(
    spec: str | Dataset,
    config: str = "",
    *,
    splits: Mapping[str, str] | None = None,
    required: Sequence[str] = SPLITS[:2],
    columns: Sequence[str] = (),
    classes: int = 0,
    max_train_rows: int = 0,
    max_eval_rows: int = 0,
    max_validation_rows: int = 0,
    empty: str = "error",
) -> Labelled:
    """Return a dataset prepared for a classifier; `spec` is an open `Dataset`, or names one.

    `config`, `splits` and `columns` are the dataset's names of the configuration, of the splits
    (`open_dataset`) and of the two columns of texts (`text_columns`).
    Rows without a label (-1, as in SNLI and in hidden test sets) are left out. If `classes` is set,
    the labels are those `classes` with most training rows (DisSent, section 6: 11). The `max_*`
    limit the rows of a split (0: all).

    Raises `ConfigError` if the two columns are missing, or a label has no training row and `empty`
    is not `warn`, and `InputError` if one of the `required` splits has no labelled row.
    """
    data = spec if isinstance(spec, Dataset) else open_dataset(spec, config, splits)
    texts = text_columns(data["train"], columns, data.where)
    names, notes = data.need(*texts).labels(hidden=True), []
    # Rows with a label, of the most frequent labels
    tables = {}
    for split in [name for name in SPLITS if name in {*required, *data.splits}]:
        table = data[split]
        labelled = table["label"].to_numpy() >= 0
        if not labelled.all():
            notes.append(f"{split}: {amount(int((~labelled).sum()), 'row')} without a label")
            table = table.filter(pa.array(labelled))
        tables[split] = table
    if classes:
        names, tables, removed = _keep_most_frequent(names, tables, classes)
        notes += [
            f"{split}: {amount(rows, 'row')} of rarer labels left out" for split, rows in removed
        ]
    # Splits and labels must have rows.
    empty_splits = [split for split, table in tables.items() if not table.num_rows]
    for split in empty_splits:
        if split in required:
            raise InputError(
                f"the split {split!r} has no row with a label",
                where=data.where,
                hint="name a split with labels, or choose another dataset",
            )
        notes.append("test: no rows are left, so the validation split is reported")
        del tables[split]
    limits = {"train": max_train_rows, "validation": max_validation_rows or max_eval_rows}
    for split, table in tables.items():
        tables[split] = spread(table, limits.get(split, max_eval_rows))
    counts = np.bincount(tables["train"]["label"].to_numpy(), minlength=len(names))
    empty_classes = [name for name, count in zip(names, counts, strict=True) if not count]
    if empty_classes and empty != "warn":
        raise ConfigError(
            f"no training row has the label {', '.join(empty_classes)}",
            where=data.name,
            hint="add sources, choose a configuration with fewer markers, or set "
            'empty_classes = "warn"',
            field="empty_classes",
        )
    if empty_classes:
        notes.append(f"labels without a training row, never predicted: {', '.join(empty_classes)}")
    return Labelled(data, texts, names, tables, notes, empty_classes)


def _keep_most_frequent(
    names: list[str], tables: Mapping[str, pa.Table], classes: int
) -> tuple[list[str], dict[str, pa.Table], list[tuple[str, int]]]:
    """Keep only the rows whose label is one of the `classes` labels with most training rows.
    Returns the names of these labels, the tables with labels numbered anew, and the number of rows
    that each split lost."""
    counts = np.bincount(tables["train"]["label"].to_numpy(), minlength=len(names))
    frequent = sorted(np.argsort(-counts, kind="stable")[:classes].tolist())
    new_number = np.full(len(names), -1)
    new_number[frequent] = np.arange(len(frequent))
    new_tables, removed = {}, []
    for split, table in tables.items():
        labels = new_number[table["label"].to_numpy()]
        column = table.column_names.index("label")
        renumbered = table.set_column(column, "label", pa.array(labels))
        new_tables[split] = renumbered.filter(pa.array(labels >= 0))
        if lost := table.num_rows - new_tables[split].num_rows:
            removed.append((split, lost))
    return [names[i] for i in frequent], new_tables, removed
