"""Datasets for the command `audit`: built folders, the Hub, other files, DiscoEval's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.audit.data import Configuration, built, missing_column
from corpora.audit.features import KINDS, SIDES
from corpora.errors import (
    ConfigError,
    DiscorporaError,
    InputError,
    check_choice,
    expand_home,
    unreadable,
)
from corpora.outside import HUB_ID, split_config
from corpora.readers.discoeval import TASKS, read_discoeval
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import read_manifest

WHAT_TO_GIVE = "give a dataset folder (build/sample/datasets/sp), or OWNER/NAME on the Hub"
RELEASED = {"train.txt": "train", "valid.txt": "validation", "test.txt": "test"}


def opened(spec: str, kind: str = "") -> dict[str, Configuration]:
    """Open the configurations of a dataset: a folder, or `OWNER/NAME` on the Hub.

    With `@CONFIG` at the end of `spec`, only that one is opened. A dataset that discorpora built or
    published declares the kind of each configuration; of another dataset only the default one is
    opened, and `kind` gives its kind.

    Raises `InputError` for a dataset that cannot be read or lacks the columns of the kind, and
    `ConfigError` for an unknown kind or configuration.
    """
    # Open the configurations.
    kind = kind and check_choice("kind", kind, KINDS)
    spec, config = split_config(spec)
    folder = expand_home(spec)
    if not folder.exists() and not HUB_ID.fullmatch(spec):
        raise InputError("no such folder", where=spec, hint=WHAT_TO_GIVE)
    if folder.is_file():
        raise InputError("is a file, expected a folder", where=spec, hint="give its folder")
    if folder.is_dir() and any((folder / name).is_file() for name in RELEASED):
        configs = {"default": _open_discoeval(folder, kind)}
    else:
        configs = _open_dataset(folder if folder.is_dir() else spec, config)
    if config:
        configs = {config: configs[check_choice("configuration", config, configs)]}
    # Give the kind to those with its columns.
    if kind:
        missing_columns = {name: missing_column(c.schema, kind) for name, c in configs.items()}
        if all(missing_columns.values()):
            column = next(iter(missing_columns.values()), "label")
            single = " of single values" if column == "label" else ""
            problem = f"is not of the kind {kind}: it has no column {column}{single}"
            raise InputError(problem, where=spec)
        of_kind = (name for name, column in missing_columns.items() if not column)
        configs |= {name: replace(configs[name], kind=kind) for name in of_kind}
    return configs


def _open_dataset(place: Path | str, config: str) -> dict[str, Configuration]:
    """Open a built folder, a dataset of the Hub, or files that the Hub's library reads."""
    import pyarrow.dataset as pads

    try:
        from huggingface_hub import HfApi, snapshot_download

        if isinstance(place, str) and HfApi().file_exists(place, MANIFEST, repo_type="dataset"):
            files = [MANIFEST, "*.parquet"]
            place = Path(snapshot_download(place, repo_type="dataset", allow_patterns=files))
        if isinstance(place, Path) and (place / MANIFEST).is_file():
            return _with_kinds(built(place, read_manifest(place / MANIFEST).get("configs", {})))

        from datasets import load_dataset  # a folder that was built needs no such heavy import

        loaded = load_dataset(str(place), config or None)
    except DiscorporaError:
        raise
    except Exception as error:  # the library raises whatever lies below: network, Arrow, ...
        raise unreadable(error, place, f"{WHAT_TO_GIVE}; build a damaged folder again") from error
    splits = {}
    for split, part in loaded.items():
        metadata = part.features.arrow_schema.metadata
        splits[str(split)] = pads.dataset(part.data.table.replace_schema_metadata(metadata))
    return {config or "default": Configuration(splits)}


def _with_kinds(configs: dict[str, Configuration]) -> dict[str, Configuration]:
    """Give the kind that other configurations declare to those without one that have its columns.

    A build declares none for a subset of another configuration, whose rules it has fitted.
    """
    declared = list(dict.fromkeys(config.kind for config in configs.values() if config.kind))
    return {
        name: replace(
            config,
            kind=config.kind
            or next((kind for kind in declared if not missing_column(config.schema, kind)), ""),
        )
        for name, config in configs.items()
    }


def _open_discoeval(folder: Path, kind: str) -> Configuration:
    """Open a folder with the files of one task of DiscoEval; each line of BSO gives both orders."""
    import pyarrow.dataset as pads

    task = {"labelled": "SSP"}.get(kind, kind.upper())
    if task not in TASKS:
        hint = "give --kind bso, sp or dc, or labelled for SSP"
        raise ConfigError(
            "cannot tell which task of DiscoEval this is", where=str(folder), hint=hint
        )
    splits = {}
    for name, split in RELEASED.items():
        if (folder / name).is_file():
            rows = list(read_discoeval(task, folder / name))
            if not rows:
                continue
            columns: dict[str, Any] = {"label": [row.label for row in rows]}
            if task == "BSO":
                orders = [order for row in rows for order in (row.sentences, row.sentences[::-1])]
                columns = {"label": [1, 0] * len(rows)}
                columns |= zip(SIDES[0], zip(*orders, strict=True), strict=True)
            elif task == "SSP":
                columns["sentence"] = [row.sentences[0] for row in rows]
            else:
                columns["sentences"] = [row.sentences for row in rows]
            splits[split] = pads.dataset(pa.table(columns))
    if not splits:
        raise InputError("its files hold no rows", where=str(folder), hint=WHAT_TO_GIVE)
    return Configuration(splits, kind)
