"""Dataset folders in the layouts of earlier code: the tab-separated files of DiscoEval."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import ConfigError, InputError
from corpora.store.atomic import MANIFEST, is_complete, read_json, replacing

SPLIT_FILES = {"train": "train.txt", "validation": "valid.txt", "test": "test.txt"}
ROWS_A_BATCH = 1_024

Row = dict[str, Any]


class Layout(NamedTuple):
    """A task's files: its folder, its columns by which it is known, a row as fields or None."""

    task: str
    columns: str
    fields: Callable[[Row], list[str] | None]


LAYOUTS = (
    # Only pairs as written: the original code makes the swapped ones when it reads.
    Layout(
        "BSO",
        "doc, label, sentence1, sentence2",
        lambda row: [row["sentence1"], row["sentence2"]] if row["label"] == 1 else None,
    ),
    Layout("SP", "doc, label, sentences", lambda row: [str(row["label"]), *row["sentences"]]),
    Layout(
        "DC",
        "doc, donor, found_by, label, pair, position, sentences",
        lambda row: [str(row["label"]), *row["sentences"]],
    ),
    Layout(
        "SSP",
        "doc, label, section, sentence",
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
    manifest = read_json(folder / MANIFEST, "remove the folder and build it again")
    configs = manifest.get("configs") if isinstance(manifest, dict) else None
    if not isinstance(configs, dict):
        raise InputError(
            "is not the manifest of a dataset: it has no 'configs'",
            where=str(folder / MANIFEST),
            hint="give a folder that a dataset was built in, e.g. build/sample/datasets/sp",
        )
    written: dict[str, int] = {}
    stale: list[Path] = []
    with ExitStack() as files:  # all of them take their names at its end
        for config, entry in configs.items():
            columns = ", ".join(sorted(entry["features"]))
            layout = next((layout for layout in LAYOUTS if layout.columns == columns), None)
            if layout is None:
                raise InputError(
                    f"not a dataset that DiscoEval has: its columns are {columns}",
                    where=str(folder),
                    hint=f"the layout is known of {', '.join(layout.task for layout in LAYOUTS)}",
                )
            several = domain and len(configs) > 1 and not entry.get("default")
            name = f"{domain}-{config}" if several else domain or config
            for split, file in SPLIT_FILES.items():
                path = out / layout.task / name / file
                shards = entry["splits"].get(split, {}).get("shards", [])
                if shards:
                    partial = files.enter_context(replacing(path))
                    places = [folder / shard["file"] for shard in shards]
                    written[str(path.relative_to(out))] = _write(partial, places, layout)
                else:
                    stale.append(path)
        for path in stale:
            path.unlink(missing_ok=True)
    return written


def _write(path: Path, shards: list[Path], layout: Layout) -> int:
    lines = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for shard in shards:
            try:
                for batch in pq.ParquetFile(shard).iter_batches(ROWS_A_BATCH):
                    for fields in filter(None, map(layout.fields, batch.to_pylist())):
                        file.write("\t".join(map(tokenised, fields)) + "\n")
                        lines += 1
            except pa.ArrowException as error:
                raise InputError(f"cannot be read as Parquet: {error}", where=str(shard)) from error
    return lines


def tokenised(text: str) -> str:
    """Tokens separated by single spaces, in the manner of the Penn Treebank.

    Punctuation stands alone, clitics (`n't`, `'s`) too; numbers, abbreviations of single
    letters, hyphenated words and addresses stay whole.
    """
    tokens: list[str] = []
    for word in _TOKENS.findall(text):
        clitic = _CLITIC.search(word)
        if clitic and clitic.start():
            tokens += [word[: clitic.start()], word[clitic.start() :]]
        else:
            tokens.append(word)
    return " ".join(tokens)
