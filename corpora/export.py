"""Dataset folders in the layouts of earlier code: the tab-separated files of DiscoEval."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import ConfigError, InputError
from corpora.store.atomic import MANIFEST, is_complete, read_json, replacing

SPLIT_FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
ROWS_A_BATCH = 1_024

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """A task's files: its folder, its columns by which it is known, a row as fields or None."""

    task: str
    columns: frozenset[str]
    fields: Callable[[Row], list[str] | None]


def _bso(row: Row) -> list[str] | None:
    """Only pairs as written: the original code makes the swapped ones when it reads."""
    return [row["sentence1"], row["sentence2"]] if row["label"] == 1 else None


LAYOUTS = (
    Layout("BSO", frozenset({"doc", "label", "sentence1", "sentence2"}), _bso),
    Layout(
        "SP",
        frozenset({"doc", "label", "sentences"}),
        lambda row: [str(row["label"]), *row["sentences"]],
    ),
    Layout(
        "DC",
        frozenset({"doc", "pair", "label", "position", "donor", "found_by", "sentences"}),
        lambda row: [str(row["label"]), *row["sentences"]],
    ),
    Layout(
        "SSP",
        frozenset({"doc", "label", "section", "sentence"}),
        lambda row: [str(row["label"]), row["sentence"]],
    ),
)

_TOKENS = re.compile(
    r"<[^\s<>]+>"  # <user>
    r"|(?:https?://|www\.)\S+"
    r"|(?<!\w)(?:[^\W\d_]\.)+[^\W\d_]\b\.?"  # U.S., e.g.
    r"|(?<!\w)(?:[A-Z]|St|Dr|Mrs?|Ms|Prof|Jr|Sr|No|vs)\.(?=\s+\S)"
    r"|\d+(?:[.,:/]\d+)*(?:[^\W\d_]+)?"
    r"|[^\W_]+(?:[-'’][^\W_]+)*"
    r"|['’](?:s|m|re|ve|ll|d|t)\b"
    r"|\\[A-Za-z]+|\.{2,}|--+|``|''"
    r"|\S"
)
_CLITIC = re.compile(r"(?i)(?<=\w)(n['’]t|['’](?:s|m|re|ve|ll|d))$")


def export_discoeval(folder: Path, out: Path, domain: str = "") -> dict[str, int]:
    """Write a dataset folder of SP, BSO, DC or SSP as DiscoEval's files; lines by file.

    The files are `OUT/TASK/DOMAIN/train.txt`, `valid.txt`, `test.txt`: an example a line, fields
    separated by tabs, tokens by spaces, no header. `domain` is by default the configuration's
    name (`default`; `text` and `chat` of DC); of several configurations the others are then
    `DOMAIN-CONFIG`. A split without rows gives no file, and an older export's file of it is
    removed: its documents may be in another split now. An error leaves an older export as it was.

    Raises `InputError` for a folder that is no whole dataset, or of another task, `ConfigError`
    for a domain that is no folder's name.
    """
    folder, out = Path(folder), Path(out)
    if domain in (".", "..") or any(separator in domain for separator in "/\\"):
        raise ConfigError(
            f"domain {domain!r} is not the name of a folder",
            hint="give a single name, such as wiki; where the export goes is what -o says",
        )
    if not is_complete(folder):
        raise InputError(
            f"no dataset in {str(folder)!r}",
            where=str(folder / MANIFEST),
            hint="a dataset folder has a manifest.json; build it first",
        )
    written: dict[str, int] = {}
    stale: list[Path] = []
    with ExitStack() as files:  # all of them take their names at its end
        for path, shards, layout in _exports(folder, out, domain):
            if shards:
                partial = files.enter_context(replacing(path))
                written[str(path.relative_to(out))] = _write(partial, shards, layout)
            else:
                stale.append(path)
        for path in stale:
            path.unlink(missing_ok=True)
    return written


def _exports(folder: Path, out: Path, domain: str) -> Iterator[tuple[Path, list[Path], Layout]]:
    """Each file of an export, and the shards and layout that its lines come from."""
    configs = _configs(folder)
    for config, entry in configs.items():
        layout = _layout(set(entry["features"]), folder)
        name = domain or config
        if domain and len(configs) > 1 and not entry.get("default"):
            name = f"{domain}-{config}"
        for split, file in SPLIT_FILES.items():
            shards = entry["splits"].get(split, {}).get("shards", [])
            yield out / layout.task / name / file, [folder / s["file"] for s in shards], layout


def _configs(folder: Path) -> dict[str, Any]:
    """The configurations that the manifest of a dataset folder lists."""
    path = folder / MANIFEST
    manifest = read_json(path, "remove the folder and build it again")
    configs = manifest.get("configs") if isinstance(manifest, dict) else None
    if not isinstance(configs, dict):
        raise InputError(
            "is not the manifest of a dataset: it has no 'configs'",
            where=str(path),
            hint="give a folder that a dataset was built in, e.g. build/sample/datasets/sp",
        )
    return configs


def _layout(columns: set[str], folder: Path) -> Layout:
    for layout in LAYOUTS:
        if columns == layout.columns:
            return layout
    raise InputError(
        f"not a dataset that DiscoEval has: its columns are {', '.join(sorted(columns))}",
        where=str(folder),
        hint=f"the layout is known of {', '.join(layout.task for layout in LAYOUTS)}",
    )


def _write(path: Path, shards: list[Path], layout: Layout) -> int:
    lines = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(shards):
            fields = layout.fields(row)
            if fields is not None:
                file.write("\t".join(map(tokenised, fields)) + "\n")
                lines += 1
    return lines


def _rows(shards: list[Path]) -> Iterator[Row]:
    for shard in shards:
        try:
            for batch in pq.ParquetFile(shard).iter_batches(ROWS_A_BATCH):
                yield from batch.to_pylist()
        except pa.ArrowException as error:
            raise InputError(f"cannot be read as Parquet: {error}", where=str(shard)) from error


def tokenised(text: str) -> str:
    """Tokens separated by single spaces, in the manner of the Penn Treebank.

    Punctuation stands alone, clitics (`n't`, `'s`) too; numbers, abbreviations of single
    letters, hyphenated words and addresses stay whole.
    """
    tokens: list[str] = []
    for word in _TOKENS.findall(text):
        found = _CLITIC.search(word)
        if found and found.start():
            tokens += [word[: found.start()], word[found.start() :]]
        else:
            tokens.append(word)
    return " ".join(tokens)
