"""`hub:` a dataset of the Hugging Face Hub (or a local folder of one), streamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.errors import InputError
from corpora.readers.fields import ROLES
from corpora.readers.records import Place, documents
from corpora.readers.source import Source

OPTIONS = ROLES | {"layout", "document_lines", "config", "split", "revision"}


def find(target: str) -> list[Path]:
    """No files: a Hub source is known by its revision. A local folder lends its own."""
    if not target:
        raise InputError("hub: names no dataset", hint="write hub:ORG/NAME")
    folder = Path(target).expanduser()
    if folder.is_dir():
        return sorted(path for path in folder.rglob("*") if path.is_file())
    return []


def read(source: Source) -> Iterator[Document]:
    """The documents of one split (by default `train`), rows mapped as those of `jsonl:`.

    Raises `InputError` if the dataset, its configuration or split is not there, or without
    network.
    """
    split = source.option("split", str, "train")
    stem = source.target.rstrip("/").rpartition("/")[2]
    yield from documents(records(source, split), source, stem)


def records(source: Source, split: str, config: str | None = None) -> Iterator[Place]:
    """The rows of one split of a configuration (by default the option `config`), streamed.

    Raises `InputError` as `read` does.
    """
    where = f"hub:{source.target}[{split}]"
    rows = iter(_open(source, split, config or source.option("config", str), where))
    number = 0
    while True:
        try:
            row = next(rows, None)
        except Exception as error:  # the library raises whatever lies below: network, Arrow, ...
            raise _refused(error, f"{where}:{number + 1}") from error
        if row is None:
            return
        number += 1
        yield f"{where}:{number}", row


def _open(source: Source, split: str, config: str | None, where: str) -> Iterable[dict[str, Any]]:
    import datasets

    folder = Path(source.target).expanduser()
    try:
        rows: Iterable[dict[str, Any]] = datasets.load_dataset(
            str(folder) if folder.is_dir() else source.target,
            config,
            split=split,
            revision=source.option("revision", str),
            streaming=True,
        )
    except Exception as error:
        raise _refused(error, where) from error
    return rows


def _refused(error: Exception, where: str) -> InputError:
    reason = str(error).strip().splitlines() or [""]
    return InputError(
        f"cannot be read: {type(error).__name__}: {reason[0][:300]}",
        where=where,
        hint="check the name, config, split and revision, the network, and HF_TOKEN if it is gated",
    )
