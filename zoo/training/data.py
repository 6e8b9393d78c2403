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

from corpora.errors import ConfigError, InputError, nearest, unreadable
from corpora.prose import Quotes
from corpora.splits import SPLITS as SPLITS
from corpora.store import manifest as manifests
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import read_manifest
from zoo.declared import TEXTS

ROWS_PER_BATCH = 64
UNBUILT = "without one it is no dataset folder, or its build did not finish: run the build again"
"""What to do about a folder without a manifest."""


@dataclass(frozen=True)
class Shards:
    """The Parquet files of one split; like a table it has `num_rows` and `nbytes`."""

    files: tuple[Path, ...]
    num_rows: int
    nbytes: int


def text_columns(table: pa.Table, wanted: Sequence[str], where: str) -> tuple[str, str]:
    """The names of the two columns of texts: those `wanted`, or the first of `zoo.declared.TEXTS`.

    Raises `ConfigError` if they are not there.
    """
    kinds = (pa.string(), pa.large_string())
    texts = [field.name for field in table.schema if field.type in kinds]
    for one, two in (tuple(wanted),) if wanted else TEXTS:
        if one in texts and two in texts:
            return one, two
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
    """The rows of a split in order, `rows` at a time: memory holds one batch of `Shards`."""
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
    """One configuration of a dataset: its splits as tables, and what is known about it.

    `revision` is the stage hash of a built folder, or the commit of a Hub dataset. `names` are
    what its splits are called where not train, validation and test.
    """

    name: str
    config: str
    revision: str
    splits: dict[str, pa.Table]
    manifest: Mapping[str, Any] = field(default_factory=dict, repr=False)
    names: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, split: str) -> pa.Table:
        """Raises `ConfigError` for a name that is no split's, `InputError` for an empty split."""
        split = next((key for key, name in self.names.items() if name == split), split)
        named = self.names.get(split, split)
        configs = self.manifest.get("configs", {})
        there = configs.get(self.config, {}).get("splits", self.splits)
        if split not in self.splits and named not in {*SPLITS, *there}:
            raise no_split(named, there, self.where)
        if split not in self.splits or not self.splits[split].num_rows:
            raise InputError(
                f"the split {named!r} has no rows",
                where=self.where,
                hint="the corpus is too small for it: add sources, and build again",
            )
        return self.splits[split]

    @property
    def where(self) -> str:
        return f"{self.name}@{self.config}"

    def judged_on(self, split: str) -> Dataset:
        """This dataset with the split of that name as its test split."""
        if split == self.names.get("test", "test"):
            return self
        splits = {name: table for name, table in self.splits.items() if name != "test"}
        if split in splits:
            splits["test"] = splits[split]
        return replace(self, splits=splits, names={**self.names, "test": split})

    def need(self, *columns: str) -> Dataset:
        """This dataset, if its splits have these columns, a value in every row.

        Raises `InputError` that names the column that is missing, or the row.
        """
        for split, table in self.splits.items():
            check_columns(table.column_names, columns, self.where)
            for name in columns:
                check_rows(table[name].is_valid(), split, f"no {name}", self.where)
        return self

    def labels(self, *, hidden: bool = False) -> list[str]:
        """The names of the `ClassLabel` column `label`.

        Raises `InputError` if there is no such column, the splits disagree, or a row's label is
        none of them. With `hidden` it may be -1, which says that there is none.
        """
        self.need("label")
        named = {s: label_names(table.schema, self.where) for s, table in self.splits.items()}
        first, names = next(iter(named.items()))
        for split, others in named.items():
            check_labels(names, others, self.where, first, split)
        lowest = -1 if hidden else 0
        for split, table in self.splits.items():
            found = table["label"]
            inside = pc.and_(pc.greater_equal(found, lowest), pc.less(found, len(names)))
            check_rows(inside, split, f"a label that is none of its {len(names)}", self.where)
        return names

    @property
    def quotes(self) -> Quotes:
        """The setting `quotes` that it was built with; `keep` where nothing is known of it."""
        return quotes_of(self.manifest)

    def describe(self) -> dict[str, Any]:
        """What results.json and a card say of the data: no path, nothing that varies."""
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
    """A dataset in hand: a `Dataset` as it is, or what `datasets.load_dataset` gives.

    A single split, a `datasets.Dataset`, is the test split. `name` is what results call it, by
    default as its builder. Its revision is a digest of the rows. Raises `ConfigError` for
    something else.
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
    """A dataset in hand, or a mapping of several, whose keys are their configurations."""
    if several(data):
        named = {config: as_dataset(each) for config, each in data.items()}
        return [replace(each, config=str(config)) for config, each in named.items()]
    return [as_dataset(data)]


def several(data: Any) -> bool:
    """Whether data in hand are a mapping of datasets."""
    return isinstance(data, Mapping) and bool(data) and not is_splits(data)


def is_splits(data: Any) -> bool:
    """Whether it is a `datasets.DatasetDict`, or a mapping of such splits by their usual names."""
    import datasets

    if not isinstance(data, Mapping) or not data:
        return False
    usual = isinstance(data, datasets.DatasetDict) or {*data} <= {*SPLITS}
    return usual and all(isinstance(rows, datasets.Dataset) for rows in data.values())


def rows_digest(tables: Mapping[str, pa.Table]) -> str:
    """The same for splits of the same names with the same columns and rows."""
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
    """Open `FOLDER` or a Hub id `OWNER/NAME`, with `@CONFIG` or `config` for its configuration.

    `splits` says what its splits are called where not train, validation and test:
    `{"validation": "validation_matched"}`. The `streamed` splits of a folder are `Shards`, read
    batch by batch; a dataset of the Hub comes as tables, which its library maps into memory.

    Raises `InputError` for a folder that is absent, has no manifest or lacks files, and
    `ConfigError` for a configuration that it does not have.
    """
    spec, config = split_spec(spec, config)
    folder, names = Path(spec), splits or {}
    if not folder.is_dir():
        return _open_on_hub(spec, config, names)
    manifest = read_manifest(folder / MANIFEST, UNBUILT)
    configs = manifest.get("configs", {})
    if not config:
        flagged = [name for name, entry in configs.items() if entry.get("default")]
        only = configs if len(configs) == 1 else ()
        config = next((name for name in (*flagged, *only, "default") if name in configs), "")
    if config not in configs:
        raise ConfigError(
            f"no configuration {config!r}" if config else "which configuration?",
            where=str(folder),
            hint=f"{nearest(config, configs)}name one with @CONFIG: {', '.join(configs)}",
        )
    entries = configs[config].get("splits", {})
    found: dict[str, Any] = {}
    for split in SPLITS:
        shards = entries.get(names.get(split, split), {}).get("shards", ())
        files = tuple(folder / shard["file"] for shard in shards)
        try:
            if files and streamed:
                read = [pq.read_metadata(file) for file in files]
                groups = [each.row_group(i) for each in read for i in range(each.num_row_groups)]
                size = sum(group.total_byte_size for group in groups)
                found[split] = Shards(files, sum(each.num_rows for each in read), size)
            elif files:
                found[split] = pa.concat_tables(
                    [pq.read_table(file, page_checksum_verification=True) for file in files]
                )
        except (pa.ArrowException, OSError) as error:
            hint = "the folder was damaged after it was built: remove it and build it again"
            raise unreadable(error, ", ".join(map(str, files)), hint) from error
    name, revision = manifest.get("name", folder.name), manifest.get("stage", {}).get("hash", "")
    return Dataset(name, config, revision, found, manifest, names)


def _open_on_hub(name: str, config: str, names: Mapping[str, str]) -> Dataset:
    revision = _hub_revision(name)
    import datasets

    try:
        loaded = datasets.load_dataset(name, config or None, revision=revision)
    except Exception as error:  # the library raises whatever the Hub's answers come to
        raise InputError(f"cannot load it from the Hub: {error}", where=name) from error
    return Dataset(name, config or "default", revision, tables_of(loaded, names), names=names)


def no_split(split: str, there: Iterable[str], where: str) -> ConfigError:
    """The error for a split that is not there, with the nearest one that is."""
    return ConfigError(
        f"no split {split!r}",
        where=where,
        hint=f"{nearest(split, there)}it has: {', '.join(there)}",
    )


def split_spec(spec: str, config: str = "") -> tuple[str, str]:
    """`FOLDER@CONFIG` as folder and configuration; an explicit `config` wins."""
    if not Path(spec).exists() and "@" in spec:
        spec, _, named = spec.rpartition("@")
        return spec, config or named
    return spec, config


def open_configs(spec: str) -> tuple[str, list[Dataset]]:
    """The configuration that `spec` names ("": none), and it or all that its folder has.

    Of a Hub id without one it is the default configuration.
    """
    folder, config = split_spec(spec)
    if config or not Path(folder).is_dir():
        return config, [open_dataset(folder, config)]
    manifest = read_manifest(Path(folder, MANIFEST), UNBUILT)
    return config, [open_dataset(folder, name) for name in manifest.get("configs", ())]


def revision_of(spec: str) -> str:
    """The revision of a dataset folder (its stage hash) or of a Hub dataset (its commit)."""
    spec, _ = split_spec(spec)
    if not Path(spec).is_dir():
        return _hub_revision(spec)
    manifest = read_manifest(Path(spec, MANIFEST), UNBUILT)
    return str(manifest.get("stage", {}).get("hash", ""))


def quotes_of(manifest: Mapping[str, Any]) -> Quotes:
    quotes = manifest.get("details", {}).get("settings", {}).get("quotes")
    return "balance" if quotes == "balance" else "keep"


def facts_of(spec: str) -> dict[str, Any]:
    """All that a model takes from a dataset folder, or says of it; its rows by their digest.

    Empty for a dataset of the Hub, and for one without a digest, as earlier versions built it.
    """
    spec, _ = split_spec(spec)
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


def check_columns(there: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Raise `InputError` if a dataset lacks a column: it is one of another task."""
    missing = [name for name in wanted if name not in there]
    if missing:
        raise InputError(
            f"it has no column {missing[0]!r}; its columns are {', '.join(there)}",
            where=where,
            hint=f"give a dataset with the columns {', '.join(wanted)}",
        )


def check_rows(good: pa.ChunkedArray, split: str, problem: str, where: str) -> None:
    """Raise `InputError` for the first row of a split that is not `good`."""
    row = pc.index(pc.fill_null(good, False), False).as_py()
    if row >= 0:
        raise InputError(
            f"row {row} of the split {split!r} has {problem}",
            where=where,
            hint="mend the data, or leave such rows out",
        )


def label_names(schema: pa.Schema, where: str) -> list[str]:
    """The names of the labels, from the metadata that the Hub's library writes too."""
    names = manifests.label_names(schema.metadata).get("label")
    if names is None:
        raise InputError(
            "the column 'label' has no names of labels",
            where=where,
            hint="make it a ClassLabel of the library datasets: class_encode_column('label')",
        )
    return names


def check_labels(
    expected: list[str], found: list[str], where: str, one: str = "model", two: str = "dataset"
) -> None:
    """Raise `InputError` if two label sets differ in names or order."""
    if expected == found:
        return
    only_one = ", ".join(sorted(set(expected) - set(found))) or "-"
    only_two = ", ".join(sorted(set(found) - set(expected))) or "-"
    difference = f"only in the {one}: {only_one}; only in the {two}: {only_two}"
    if set(expected) == set(found):
        difference = "the names are the same, but their order differs"
    raise InputError(
        f"the label sets of {one} and {two} differ",
        where=where,
        hint=f"{difference}; choose the dataset's configuration with @CONFIG",
    )


def evenly(there: int, rows: int) -> np.ndarray:
    """The numbers of `rows` things spread evenly over those `there` (0, or more: all of them).

    Rows of one document stand together, so the first ones would be of few documents.
    """
    return np.linspace(0, there - 1, rows if 0 < rows < there else there).astype(np.int64)


def spread(table: pa.Table, rows: int) -> pa.Table:
    """The rows of `table` that `evenly` numbers."""
    return table.take(evenly(table.num_rows, rows)) if 0 < rows < table.num_rows else table


def _hub_revision(name: str) -> str:
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
    except Exception as error:  # whatever the Hub's answer comes to
        raise InputError(
            f"no such dataset folder, and not found on the Hub: {error}",
            where=name,
            hint="build it first (discorpora build), or give a Hub id OWNER/NAME",
        ) from error


def tables_of(found: Any, names: Mapping[str, str] | None = None) -> dict[str, pa.Table]:
    """The splits of a `datasets.DatasetDict` as tables, label names included."""
    tables = {}
    for split in SPLITS:
        named = (names or {}).get(split, split)
        if named in found:
            tables[split] = table_of(found[named])
    return tables


def table_of(rows: Any) -> pa.Table:
    """A split, a `datasets.Dataset`, as a table with the names of its labels."""
    features = {"info": {"features": rows.features.to_dict()}}
    metadata = {b"huggingface": json.dumps(features).encode()}
    return rows.with_format("arrow")[:].replace_schema_metadata(metadata)
