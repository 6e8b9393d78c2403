"""Dataset folders in the layouts of others: DiscoEval's files, sentence-transformers' rows."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from corpora.errors import ConfigError, InputError, check_choice
from corpora.store.atomic import MANIFEST, replacing
from corpora.store.manifest import read_manifest
from corpora.store.rows import parquet_batches

ROWS_A_BATCH = 1_024
BUILT = "give a folder that a dataset was built in, e.g. build/sample/datasets/sp"

Row = dict[str, Any]
Manifest = Mapping[str, Any]
Write = Callable[[Path, Iterator[Row]], int]


class Layout(NamedTuple):
    """The paths of a configuration's files, by split, and the function that writes each of them.

    The paths are relative to the output folder. `write` takes a path and rows, and returns the
    number of lines or rows written. `labels` is the path of the file of label names, one in each
    line, in the order of their numbers; "" for no such file.
    """

    files: Mapping[str, str]
    write: Write
    labels: str = ""


LINES = {
    # Only pairs as written: the original code makes the swapped ones when it reads.
    "doc, label, sentence1, sentence2": ("BSO", ("sentence1", "sentence2")),
    "doc, label, sentences": ("SP", ("label", "sentences")),
    "doc, donor, found_by, label, pair, position, sentences": ("DC", ("label", "sentences")),
    "doc, label, section, sentence": ("SSP", ("label", "sentence")),
    "arg1, arg2, connective, doc, label, sense": ("PDTB", ("label", "arg1", "arg2")),
}
"""DiscoEval's tasks by the columns of a dataset, and the columns that are the fields of a line."""
RST = "doc, label, left, relation, right"

TWO_TEXTS = (("s1", "s2"), ("arg1", "arg2"), ("sentence1", "sentence2"), ("premise", "hypothesis"))

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


def export(folder: Path, out: Path, layout: str = "discoeval", domain: str = "") -> dict[str, int]:
    """Write a dataset folder in another layout; return the number of lines (or rows) by file.

    `discoeval`: a folder of SP, BSO, DC, SSP, PDTB or RST as DiscoEval's files. They are
    `OUT/TASK/DOMAIN/train.txt`, `valid.txt`, `test.txt`: one example in each line, fields separated
    by tabs, tokens by spaces, no header. `domain` is by default the name of the configuration
    (`default`; `text` and `chat` of DC). If it is set, a configuration that is not the default one
    goes to `DOMAIN-CONFIG`. Relations have no domain: `OUT/PDTB/Explicit/train.txt` with
    `labelset.txt`, `OUT/RST/RST_TRAIN.pkl`. `pairs` and `triplets`: `OUT/CONFIG/SPLIT.jsonl`, whose
    columns are in the order that sentence-transformers expects.

    A split without rows, or without a triplet, gives no file: `datasets` cannot read an empty one.
    Its file of an older export is removed, since its documents may now be in another split. An
    error leaves an older export unchanged.

    Raises `InputError` for a folder that is not a complete dataset, or has no data for this layout,
    `ConfigError` for an unknown layout and for a domain that is not a folder name.
    """
    # Check the arguments and the folder.
    folder, out = Path(folder), Path(out)
    layout_of, hint = LAYOUTS[check_choice("format", layout, LAYOUTS)]
    if domain in (".", "..") or any(separator in domain for separator in "/\\"):
        raise ConfigError(
            f"domain {domain!r} is not the name of a folder",
            hint="give a single name, such as wiki; -o names the output folder",
        )
    manifest = read_manifest(folder / MANIFEST, BUILT)
    if "configs" not in manifest:
        problem = "is not the manifest of a dataset: it has no 'configs'"
        raise InputError(problem, where=str(folder / MANIFEST), hint=BUILT)
    # Write the file of each split and the list of labels.
    written: dict[str, int] = {}
    stale: list[Path] = []
    with ExitStack() as files:  # all files take their names at its end
        for config, entry in manifest["configs"].items():
            files_of_config = layout_of(manifest, config, domain)
            if files_of_config is None:
                continue
            for split, name in files_of_config.files.items():
                shards = entry["splits"].get(split, {}).get("shards", [])
                if shards:
                    partial = files.enter_context(replacing(out / name))
                    paths = [folder / shard["file"] for shard in shards]
                    written[name] = files_of_config.write(partial, _rows_of_shards(paths))
                if not written.get(name):
                    stale.append(out / name)
            if labels := files_of_config.labels:
                partial = files.enter_context(replacing(out / labels))
                written[labels] = _write_lines(partial, entry["features"]["label"]["names"])
        if not written:
            columns = (", ".join(sorted(e["features"])) for e in manifest["configs"].values())
            raise InputError(
                f"the format {layout} has no such dataset: its columns are {'; '.join(columns)}",
                where=str(folder),
                hint=hint,
            )
    # All files are written: remove those of an older export whose splits are empty now.
    for path in stale:
        path.unlink(missing_ok=True)
    return written


def _rows_of_shards(shards: list[Path]) -> Iterator[Row]:
    for shard in shards:
        for batch in parquet_batches(shard, batch_size=ROWS_A_BATCH):
            yield from batch.to_pylist()


def _write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines to a file; return how many there were."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        return sum(bool(file.write(line + "\n")) for line in lines)


# The layouts: each function returns the files of a configuration, or None for other columns.


def _discoeval_layout(manifest: Manifest, config: str, domain: str) -> Layout | None:
    """Return the layout of DiscoEval's files for a configuration, whose columns tell the task. None
    if they are those of no task."""
    configs = manifest["configs"]
    features = configs[config]["features"]
    columns = ", ".join(sorted(features))
    # RST: a pickle of nodes for each split
    if columns == RST:
        names = features["label"]["names"]

        def write_nodes(path: Path, rows: Iterator[Row]) -> int:
            """Write a pickle of lists: label, tokenised EDUs on the left, and on the right."""
            nodes = []
            for row in rows:
                left, right = (list(map(tokenise, row[side])) for side in ("left", "right"))
                nodes.append([names[row["label"]], left, right])
            path.write_bytes(pickle.dumps(nodes, protocol=2))
            return len(nodes)

        splits = {"train": "TRAIN", "validation": "DEV", "test": "TEST"}
        files = {split: f"RST/RST_{name}.pkl" for split, name in splits.items()}
        return Layout(files, write_nodes)
    # All other tasks: lines of text for each split
    if columns not in LINES:
        return None
    task, columns_of_line = LINES[columns]
    is_not_default = len(configs) > 1 and not configs[config].get("default")
    subfolder = f"{domain}-{config}" if domain and is_not_default else domain or config
    if task == "PDTB":
        subfolder = _kind_of_relations(str(manifest.get("name", "")))

    def line(row: Row) -> str:
        """Return the line of a row: its fields, and the texts of lists, tokenised, between tabs."""
        cells = (row[name] for name in columns_of_line)
        lists = (cell if isinstance(cell, list) else [str(cell)] for cell in cells)
        return "\t".join(map(tokenise, chain.from_iterable(lists)))

    def write(path: Path, rows: Iterator[Row]) -> int:
        return _write_lines(path, (line(row) for row in rows if task != "BSO" or row["label"] == 1))

    splits = {"train": "train", "validation": "valid", "test": "test"}
    files = {split: f"{task}/{subfolder}/{name}.txt" for split, name in splits.items()}
    return Layout(files, write, f"{task}/{subfolder}/labelset.txt" if task == "PDTB" else "")


def _kind_of_relations(name: str) -> str:
    """Return `Explicit` or `Implicit`, whichever the name of a PDTB dataset contains. Both kinds
    have the same columns, so only the name tells. Raises `InputError` if it does not."""
    kinds = [kind for kind in ("Explicit", "Implicit") if kind.lower() in name.lower()]
    if len(kinds) != 1:
        raise InputError(
            f"the name {name!r} does not say whether its relations are explicit or implicit",
            where=MANIFEST,
            hint="build it under a name with that word, such as pdtb_implicit",
        )
    return kinds[0]


def _pairs_layout(manifest: Manifest, config: str, domain: str) -> Layout | None:
    """Return the layout of labelled pairs: JSON lines of `sentence1, sentence2, label`. None if the
    configuration does not have two texts and a label."""
    features = manifest["configs"][config]["features"]
    texts = next((columns for columns in TWO_TEXTS if {*columns, "label"} <= features.keys()), None)
    if texts is None:
        return None
    names = dict(zip(("sentence1", "sentence2", "label"), (*texts, "label"), strict=True))
    return _json_lines_layout(
        config, lambda rows: ({new: row[old] for new, old in names.items()} for row in rows)
    )


def _triplets_layout(manifest: Manifest, config: str, domain: str) -> Layout | None:
    """Return the layout of triplets: JSON lines of `anchor, positive, negative`. The anchor has the
    beginning and the end that a good and a worse text share; `positive` is the middle of the good
    text, `negative` that of the worse text. None if the rows do not have two texts to compare."""
    features = manifest["configs"][config]["features"]
    if {"pos", "neg"} <= features.keys():
        return _json_lines_layout(config, lambda rows: filter(None, map(_triplet, rows)))
    if {"pair", "sentences"} <= features.keys():
        return _json_lines_layout(
            config, lambda rows: filter(None, map(_triplet, _side_by_side(rows)))
        )
    return None


def _side_by_side(rows: Iterator[Row]) -> Iterator[Row]:
    """Join the two rows of each pair, the incoherent text first, into one with `pos` and `neg`."""
    for neg, pos in pairwise(rows):
        if neg["pair"] == pos["pair"]:
            yield {"pos": pos["sentences"], "neg": neg["sentences"]}


def _triplet(row: Row) -> Row | None:
    """Return the texts of a triplet from a row with the sentences of `pos` and of `neg`. The anchor
    is the prompt, and the sentences with which both texts begin and end; `positive` is the middle
    of `pos`, `negative` that of `neg`. None if one of them is empty."""
    pos, neg = row["pos"], row["neg"]
    start = _count_common_start(pos, neg)
    end = _count_common_start(pos[start:][::-1], neg[start:][::-1])
    anchor = [*row.get("prompt", []), *pos[:start], *pos[len(pos) - end :]]
    texts = {"anchor": anchor, "positive": pos[start : len(pos) - end]}
    texts["negative"] = neg[start : len(neg) - end]
    return {name: " ".join(text) for name, text in texts.items()} if all(texts.values()) else None


def _count_common_start(first: list[str], second: list[str]) -> int:
    """Return the number of sentences at the beginning of both lists that are equal."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))))


def _json_lines_layout(config: str, rows_of: Callable[[Iterator[Row]], Iterable[Row]]) -> Layout:
    """Return a layout of JSON lines, a file for each split; `rows_of` converts a split's rows."""

    def write(path: Path, rows: Iterator[Row]) -> int:
        return _write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows_of(rows)))

    splits = ("train", "validation", "test")
    return Layout({split: f"{config}/{split}.jsonl" for split in splits}, write)


LAYOUTS: dict[str, tuple[Callable[[Manifest, str, str], Layout | None], str]] = {
    "discoeval": (_discoeval_layout, "DiscoEval has SP, BSO, DC, SSP, PDTB-E, PDTB-I and RST-DT"),
    "pairs": (
        _pairs_layout,
        "a pair is two texts and a label, as in dissent, discovery, bso and pdtb_implicit",
    ),
    "triplets": (
        _triplets_layout,
        "a triplet comes from a text and a worse one, as in intrusion, insted and dc",
    ),
}
"""The layouts by name, and the hint for a dataset that does not fit."""


def tokenise(text: str) -> str:
    """Return the text with its tokens, as in the Penn Treebank, separated by single spaces.

    Punctuation and clitics (`n't`, `'s`) are separate tokens; numbers, abbreviations of single
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
