"""Reading a built dataset folder, or a dataset of the Hub, as Arrow tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpora import licences
from corpora.errors import ConfigError, InputError, nearest, unreadable
from corpora.outside import split_config
from corpora.prose import Quotes
from corpora.splits import SPLITS as SPLITS
from corpora.store import manifest as manifests
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import read_manifest
from zoo.declared import TEXTS

ROWS_PER_BATCH = 64
UNBUILT = "without one it is no dataset folder, or its build did not finish: run the build again"
"""The hint for a folder without a manifest."""


@dataclass(frozen=True)
class Shards:
    """The Parquet files of one split; like a table it has `num_rows` and `nbytes`."""

    files: tuple[Path, ...]
    num_rows: int
    nbytes: int


def text_columns(table: pa.Table, wanted: Sequence[str], where: str) -> tuple[str, str]:
    """Return the names of a table's two columns of texts. They are the two `wanted` ones or, if
    that is empty, the first usual pair that the table has (`zoo.declared.TEXTS`). Raises
    `ConfigError`, which names the dataset `where`, without them."""
    kinds = (pa.string(), pa.large_string())
    texts = [field.name for field in table.schema if field.type in kinds]
    for first, second in (tuple(wanted),) if wanted else TEXTS:
        if first in texts and second in texts:
            return first, second
    missing = next((name for name in wanted if name not in texts), "")
    columns = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
    raise ConfigError(
        f"no column {missing!r} of texts" if missing else "no two columns of texts were recognised",
        where=where,
        hint=f"{nearest(missing, texts)}its columns are: {columns}; call two of them "
        "s1 and s2, or name them by the setting columns of a recipe that has it: "
        '--columns \'["premise", "hypothesis"]\'',
    )


def batches(
    split: Shards | pa.Table, columns: Sequence[str], rows: int = ROWS_PER_BATCH
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split in order, `rows` at a time; `Shards` are read batch by batch."""
    if isinstance(split, Shards):
        for path in split.files:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                check_columns(file.schema_arrow.names, columns, str(path))
                yield from file.iter_batches(rows, columns=list(columns))
        return
    check_columns(split.column_names, columns, "dataset")
    yield from split.select(columns).to_batches(rows)


@dataclass(frozen=True)
class Dataset:
    """One configuration of a dataset: its splits as tables, and its manifest if it was built here.

    `revision` is the stage hash of a built folder, or the commit of a Hub dataset. `names` maps
    train, validation and test to the dataset's names of these splits, where they differ.
    """

    name: str
    config: str
    revision: str
    splits: dict[str, pa.Table]
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False)
    names: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, split: str) -> pa.Table:
        """Return the table of a split: train, validation or test, or the dataset's name for one.
        Raises `ConfigError` for a split that it does not have, `InputError` for an empty split."""
        split = next((key for key, name in self.names.items() if name == split), split)
        split_name = self.names.get(split, split)
        configs = self.manifest.get("configs", {})
        split_names = configs.get(self.config, {}).get("splits", self.splits)
        if split not in self.splits and split_name not in {*SPLITS, *split_names}:
            raise no_split(split_name, split_names, self.where)
        if split not in self.splits or not self.splits[split].num_rows:
            raise InputError(
                f"the split {split_name!r} has no rows",
                where=self.where,
                hint="the corpus is too small for it: add sources, and build again",
            )
        return self.splits[split]

    @property
    def where(self) -> str:
        """The dataset's name in messages, `NAME@CONFIG`."""
        return f"{self.name}@{self.config}"

    def judged_on(self, split: str) -> Dataset:
        """Return this dataset with `split` in place of its test split, to evaluate a model on it.
        Without a split of that name the result has no test split."""
        if split == self.names.get("test", "test"):
            return self
        splits = {name: table for name, table in self.splits.items() if name != "test"}
        if split in splits:
            splits["test"] = splits[split]
        return replace(self, splits=splits, names={**self.names, "test": split})

    def need(self, *columns: str) -> Dataset:
        """Return this dataset if its splits have a value in every row of these columns.

        Otherwise raises `InputError`, which names the missing column or the row.
        """
        for split, table in self.splits.items():
            check_columns(table.column_names, columns, self.where)
            for name in columns:
                check_rows(table[name].is_valid(), split, f"no {name}", self.where)
        return self

    def labels(self, *, hidden: bool = False) -> list[str]:
        """Return the names of the labels in the column `label`, in the order of their numbers.

        Raises `InputError` if a split lacks the column or has other names than the first split, or
        if a row's number has no name. With `hidden` a row may have -1, which stands for no label.
        """
        self.need("label")
        label_sets = {s: label_names(table.schema, self.where) for s, table in self.splits.items()}
        first, names = next(iter(label_sets.items()))
        for split, split_names in label_sets.items():
            check_labels(names, split_names, self.where, first, split)
        lowest = -1 if hidden else 0
        for split, table in self.splits.items():
            numbers = table["label"]
            valid = pc.and_(pc.greater_equal(numbers, lowest), pc.less(numbers, len(names)))
            check_rows(valid, split, f"a label that is none of its {len(names)}", self.where)
        return names

    @property
    def quotes(self) -> Quotes:
        """The setting `quotes` that the dataset was built with; "keep" if it was not built here."""
        return quotes_of(self.manifest)

    def describe(self) -> dict[str, Any]:
        """Return what results.json and a card say of the data, without paths and times."""
        rows = {split: table.num_rows for split, table in self.splits.items()}
        licence = self.manifest.get("licence") or {}
        return {
            "name": self.name,
            "config": self.config,
            "revision": self.revision,
            "licence": licence.get("id", ""),
            "licence_hub": licence.get("hub", ""),
            "rows": rows,
        }


def as_dataset(data: Any, name: str = "") -> Dataset:
    """Return an object of the library `datasets` as our `Dataset`; ours is returned unchanged.

    A single split, a `datasets.Dataset`, becomes the test split. `name` is the dataset's name in
    results, by default that of its builder. Its revision is a digest of the rows. Raises
    `ConfigError` for an object of another kind.
    """
    if isinstance(data, Dataset):
        return data
    import datasets

    splits = {"test": data} if isinstance(data, datasets.Dataset) else data
    if not is_splits(splits):
        raise ConfigError(
            f"a {type(data).__name__} is no dataset",
            hint="give what datasets.load_dataset(...) or zoo.training.data.open_dataset(FOLDER) "
            "returns",
        )
    info = next(iter(splits.values())).info
    tables = {str(split): table_of(rows) for split, rows in splits.items()}
    return Dataset(
        name or info.dataset_name or info.builder_name or "data",
        info.config_name or "default",
        rows_digest(tables),
        tables,
    )


def as_datasets(data: Any) -> list[Dataset]:
    """Return a list of `Dataset`s: one, or all in a mapping from configurations to datasets."""
    if not several(data):
        return [as_dataset(data)]
    return [replace(as_dataset(part), config=str(config)) for config, part in data.items()]


def several(data: Any) -> bool:
    """Return True if `data` is a mapping of several datasets, not of the splits of one."""
    return isinstance(data, Mapping) and bool(data) and not is_splits(data)


def is_splits(data: Any) -> bool:
    """Return True for a `datasets.DatasetDict`, or a mapping of the usual splits to their rows."""
    import datasets

    if not isinstance(data, Mapping) or not data:
        return False
    names_splits = isinstance(data, datasets.DatasetDict) or {*data} <= {*SPLITS}
    return names_splits and all(isinstance(rows, datasets.Dataset) for rows in data.values())


def rows_digest(tables: Mapping[str, pa.Table]) -> str:
    """Return a digest of all names, columns and rows of the splits, in place of a revision."""
    digest = hashlib.sha256()
    for split, table in sorted(tables.items()):
        digest.update(repr((split, table.column_names, table.num_rows)).encode())
        for batch in table.to_batches(10_000):
            digest.update("".join(map(repr, batch.to_pylist())).encode("utf-8", "surrogatepass"))
    return f"rows {digest.hexdigest()[:12]}"


def open_dataset(
    spec: str,
    config: str = "",
    splits: Mapping[str, str] | None = None,
    *,
    streamed: bool = False,
) -> Dataset:
    """Open one configuration of a dataset: `spec` is `FOLDER` or a Hub id, `OWNER/NAME`.

    `@CONFIG` at the end of `spec`, or `config`, names the configuration. `splits` maps
    train, validation and test to the dataset's names of these splits, where they differ:
    `{"validation": "validation_matched"}`. If `streamed`, the splits of a folder are `Shards`, read
    batch by batch; a dataset of the Hub comes as tables, which its library maps into memory.

    Raises `InputError` for a folder that is absent, has no manifest or lacks files, and
    `ConfigError` for a configuration that it does not have.
    """
    # Find the configuration.
    spec, config = split_config(spec, config)
    folder, names = Path(spec), splits or {}
    if not folder.is_dir():
        return _open_on_hub(spec, config, names)
    manifest = read_manifest(folder / MANIFEST, UNBUILT)
    configs = manifest.get("configs", {})
    if not config:  # the one marked as default, the only one, or the one called "default"
        marked = [name for name, entry in configs.items() if entry.get("default")]
        single = configs if len(configs) == 1 else ()
        config = next((name for name in (*marked, *single, "default") if name in configs), "")
    if config not in configs:
        raise ConfigError(
            f"no configuration {config!r}" if config else "which configuration?",
            where=str(folder),
            hint=f"{nearest(config, configs)}name one with @CONFIG: {', '.join(configs)}",
        )
    # Open its splits.
    entries = configs[config].get("splits", {})
    tables: dict[str, Any] = {}
    for split in SPLITS:
        shards = entries.get(names.get(split, split), {}).get("shards", ())
        files = tuple(folder / shard["file"] for shard in shards)
        try:
            if files and streamed:
                tables[split] = _describe_shards(files)
            elif files:
                tables[split] = pa.concat_tables(
                    [pq.read_table(file, page_checksum_verification=True) for file in files]
                )
        except (pa.ArrowException, OSError) as error:
            hint = "the folder was damaged after it was built: remove it and build it again"
            raise unreadable(error, ", ".join(map(str, files)), hint) from error
    name, revision = manifest.get("name", folder.name), manifest.get("stage", {}).get("hash", "")
    return Dataset(name, config, revision, tables, manifest, names)


def _describe_shards(files: tuple[Path, ...]) -> Shards:
    """Return the Parquet files of a split with their number of rows and bytes."""
    heads = [pq.read_metadata(file) for file in files]
    groups = [head.row_group(i) for head in heads for i in range(head.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    return Shards(files, sum(head.num_rows for head in heads), size)


def _open_on_hub(name: str, config: str, names: Mapping[str, str]) -> Dataset:
    """Open a configuration of a Hub dataset at its present commit."""
    revision = _hub_revision(name)
    import datasets

    try:
        loaded = datasets.load_dataset(name, config or None, revision=revision)
    except Exception as error:  # the library raises errors of many kinds
        raise InputError(f"cannot load it from the Hub: {error}", where=name) from error
    manifest = {"licence": {"id": _licence_on_hub(name, revision)}}
    tables = tables_of(loaded, names)
    return Dataset(name, config or "default", revision, tables, manifest, names)


def _licence_on_hub(name: str, revision: str) -> str:
    """Return the licence in the card of a Hub dataset; "" if it has no card, or none is at hand."""
    from huggingface_hub import RepoCard, hf_hub_download

    try:
        card = hf_hub_download(name, "README.md", repo_type="dataset", revision=revision)
        return licences.of_card(RepoCard.load(card, ignore_metadata_errors=True).data)
    except (OSError, ValueError):
        return ""


def no_split(split: str, splits: Iterable[str], where: str) -> ConfigError:
    """Return the error for a split that is not among `splits`, with the most similar name."""
    return ConfigError(
        f"no split {split!r}",
        where=where,
        hint=f"{nearest(split, splits)}it has: {', '.join(splits)}",
    )


def open_configs(spec: str) -> tuple[str, list[Dataset]]:
    """Open the configuration in `FOLDER@CONFIG`, or without `@CONFIG` all those of the folder.

    Returns the configuration's name, "" if `spec` has none, and the datasets. A Hub id without
    `@CONFIG` opens its default configuration only.
    """
    folder, config = split_config(spec)
    if config or not Path(folder).is_dir():
        return config, [open_dataset(folder, config)]
    manifest = read_manifest(Path(folder, MANIFEST), UNBUILT)
    return config, [open_dataset(folder, name) for name in manifest.get("configs", ())]


def revision_of(spec: str) -> str:
    """Return the revision of a dataset folder (its stage hash) or Hub dataset (its commit)."""
    spec, _ = split_config(spec)
    if not Path(spec).is_dir():
        return _hub_revision(spec)
    manifest = read_manifest(Path(spec, MANIFEST), UNBUILT)
    return str(manifest.get("stage", {}).get("hash", ""))


def quotes_of(manifest: Mapping[str, Any]) -> Quotes:
    """Return the setting `quotes` in a dataset's manifest; "keep" if it has none."""
    quotes = manifest.get("details", {}).get("settings", {}).get("quotes")
    return "balance" if quotes == "balance" else "keep"


def facts_of(spec: str) -> dict[str, Any]:
    """Return the facts about a dataset folder that a model's manifest and its card contain.

    They are names, languages, licences, and a digest of the rows. The result is empty for a dataset
    of the Hub, and for a folder of an earlier version, which has no digest.
    """
    spec, _ = split_config(spec)
    manifest = read_manifest(Path(spec, MANIFEST), UNBUILT) if Path(spec).is_dir() else {}
    if not manifest.get("digest"):
        return {}
    stage = manifest.get("stage", {})
    return {
        "revision": stage.get("hash", ""),
        "name": manifest.get("name", ""),
        "builder": stage.get("settings", {}).get("builder", ""),
        "digest": manifest["digest"],
        "languages": manifest.get("languages", []),
        "licences": sorted(manifest.get("licences", ())),
        "quotes": quotes_of(manifest),
    }


def check_columns(columns: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Raise `InputError` if a `wanted` column is missing: the dataset is for another task."""
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(
            f"it has no column {missing[0]!r}; its columns are {', '.join(columns)}",
            where=where,
            hint=f"give a dataset with the columns {', '.join(wanted)}",
        )


def check_rows(valid: pa.ChunkedArray, split: str, problem: str, where: str) -> None:
    """Raise `InputError` for the first row of a split where `valid`, `[rows]`, is false or null."""
    row = pc.index(pc.fill_null(valid, False), False).as_py()
    if row >= 0:
        raise InputError(
            f"row {row} of the split {split!r} has {problem}",
            where=where,
            hint="mend the data, or leave such rows out",
        )


def label_names(schema: pa.Schema, where: str) -> list[str]:
    """Return the names of the labels, which the library `datasets` stores in a schema's metadata.
    Raises `InputError`, which names the dataset `where`, if there are none."""
    names = manifests.label_names(schema.metadata).get("label")
    if names is None:
        raise InputError(
            "the column 'label' has no names of labels",
            where=where,
            hint="make it a ClassLabel of the library datasets: class_encode_column('label')",
        )
    return names


def check_labels(
    expected: list[str], labels: list[str], where: str, first: str = "model", other: str = "dataset"
) -> None:
    """Raise `InputError` unless `labels` are the `expected` ones in the same order. The message
    says that `first` has the expected labels and `other` has `labels`."""
    if expected == labels:
        return
    only_first = ", ".join(sorted(set(expected) - set(labels))) or "-"
    only_other = ", ".join(sorted(set(labels) - set(expected))) or "-"
    difference = f"only in the {first}: {only_first}; only in the {other}: {only_other}"
    if set(expected) == set(labels):
        difference = "the names are the same, but their order differs"
    raise InputError(
        f"the label sets of {first} and {other} differ",
        where=where,
        hint=f"{difference}; choose the dataset's configuration with @CONFIG",
    )


def evenly(total: int, rows: int) -> np.ndarray:
    """Return `rows` row numbers, evenly spread over `total` rows; all row numbers if `rows` is 0.

    The first rows would come from few documents, since the rows of a document are neighbours.
    """
    return np.linspace(0, total - 1, rows if 0 < rows < total else total).astype(np.int64)


def spread(table: pa.Table, rows: int) -> pa.Table:
    """Return a table of `rows` rows, evenly spread over `table`; all of them if `rows` is 0.

    If there are labels, the rows are evenly spread over those of each label: where labels
    alternate, every second row of the table would have the same one.
    """
    if not 0 < rows < table.num_rows:
        return table
    numbers = evenly(table.num_rows, rows)
    if "label" in table.column_names:
        numbers = np.sort(pc.sort_indices(table["label"]).to_numpy()[numbers])
    return table.take(numbers)


def _hub_revision(name: str) -> str:
    """Return the latest commit of a Hub dataset. Raises `InputError` for a file or unknown name."""
    from huggingface_hub import HfApi

    if Path(name).is_file():
        raise InputError(
            "is a file, expected a dataset folder (as discorpora build writes it) or a Hub id",
            where=name,
            hint=f"from texts: discorpora init mine.toml {name}, then discorpora build --config "
            "mine.toml; from rows with labels: publish them with the library datasets "
            '(load_dataset("json", data_files=...), class_encode_column("label"), push_to_hub) and '
            "give OWNER/NAME",
        )
    try:
        return str(HfApi().dataset_info(name).sha)
    except Exception as error:  # the library raises errors of many kinds
        raise InputError(
            f"no such dataset folder, and not found on the Hub: {error}",
            where=name,
            hint="build it first (discorpora build), or give a Hub id OWNER/NAME",
        ) from error


def tables_of(splits: Any, names: Mapping[str, str] | None = None) -> dict[str, pa.Table]:
    """Return the splits of a `datasets.DatasetDict` as tables; `names` are its names of splits."""
    names = {split: (names or {}).get(split, split) for split in SPLITS}
    return {split: table_of(splits[name]) for split, name in names.items() if name in splits}


def table_of(rows: Any) -> pa.Table:
    """Return a split, a `datasets.Dataset`, as a table with the names of its labels."""
    features = {"info": {"features": rows.features.to_dict()}}
    metadata = {b"huggingface": json.dumps(features).encode()}
    return rows.with_format("arrow")[:].replace_schema_metadata(metadata)
