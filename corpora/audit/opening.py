"""Datasets for the command `audit`: built folders, the Hub, other files, DiscoEval's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.audit.data import Configuration, built, missing
from corpora.audit.features import KINDS, SIDES
from corpora.errors import ConfigError, InputError, expanded, nearest
from corpora.readers.discoeval import TASKS, read_discoeval
from corpora.store.atomic import MANIFEST
from corpora.store.manifest import read_manifest

RELEASED = {"train.txt": "train", "valid.txt": "validation", "test.txt": "test"}


def opened(spec: str, config: str = "", kind: str = "") -> dict[str, Configuration]:
    """The configurations of `FOLDER`, `OWNER/NAME` on the Hub, or one of them.

    A folder that discorpora built or published declares their kinds; of another dataset the default
    configuration is opened, and `kind` gives its kind.

    Raises `InputError` for a dataset that cannot be read or lacks the columns of the kind, and
    `ConfigError` for an unknown kind or configuration.
    """
    if kind and kind not in KINDS:
        raise ConfigError(
            f"no kind {kind!r}; {nearest(kind, KINDS)}".rstrip("; "),
            hint=f"the kinds are: {', '.join(KINDS)}",
        )
    folder = expanded(spec)
    if folder.is_dir() and any((folder / name).is_file() for name in RELEASED):
        found = {"default": _released(folder, kind)}
    elif folder.is_dir() and (folder / MANIFEST).is_file():
        found = _built(folder)
    else:
        found = _loaded(str(folder) if folder.is_dir() else spec, config)
    if config:
        if config not in found:
            hint = f"{nearest(config, found)}it has: {', '.join(found)}"
            raise ConfigError(f"no configuration {config!r}", where=spec, hint=hint)
        found = {config: found[config]}
    if kind:
        fitting = {name: c for name, c in found.items() if not missing(c.schema, kind)}
        if not found:
            raise InputError("holds no dataset", where=spec, hint="give a dataset's folder")
        if not fitting:
            columns = missing(next(iter(found.values())).schema, kind)
            raise InputError(f"is not of the kind {kind}: it has no column {columns}", where=spec)
        found |= {name: replace(c, kind=kind) for name, c in fitting.items()}
    return found


def _built(folder: Path) -> dict[str, Configuration]:
    configs = read_manifest(folder / MANIFEST).get("configs", {})
    try:
        return built(folder, configs)
    except ConfigError:
        raise
    except (OSError, pa.ArrowException, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"cannot be read: {str(error).splitlines()[0]}",
            where=str(folder),
            hint="the folder was damaged after it was built: remove it and build it again",
        ) from error


def _loaded(spec: str, config: str) -> dict[str, Configuration]:
    """A dataset of the Hub, or a folder of files that its library reads."""
    import datasets
    import pyarrow.dataset as pads
    from huggingface_hub import HfApi, snapshot_download

    try:
        if not Path(spec).is_dir() and HfApi().file_exists(spec, MANIFEST, repo_type="dataset"):
            files = [MANIFEST, "*.parquet"]
            return _built(Path(snapshot_download(spec, repo_type="dataset", allow_patterns=files)))
        loaded = datasets.load_dataset(spec, config or None)
    except Exception as error:  # the library raises whatever lies below: network, Arrow, ...
        reason = (str(error).strip().splitlines() or [""])[0][:300]
        raise InputError(
            f"cannot be read: {type(error).__name__}: {reason}",
            where=spec,
            hint="give a dataset folder (build/sample/datasets/sp), or OWNER/NAME on the Hub",
        ) from error
    splits = {}
    for split, part in loaded.items():
        metadata = part.features.arrow_schema.metadata
        splits[str(split)] = pads.dataset(part.data.table.replace_schema_metadata(metadata))
    return {config or "default": Configuration(splits)}


def _released(folder: Path, kind: str) -> Configuration:
    """DiscoEval's files. BSO has no negatives: each line gives both orders."""
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
    return Configuration(splits, kind)
