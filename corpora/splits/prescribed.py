"""Splits that a table, a source's files or sections of the Wall Street Journal prescribe."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.errors import ConfigError, InputError
from corpora.splits import SPLIT_NAMES, SPLITS, split_of
from corpora.splits.division import Division

SECTIONS = {
    "discoeval": {"train": range(2, 15), "validation": range(15, 19), "test": range(19, 24)},
    "dissent": {"train": range(2, 23), "validation": range(2), "test": range(23, 25)},
    "lin": {"train": range(2, 22), "validation": range(22, 23), "test": range(23, 24)},
    "ji": {"train": range(2, 21), "validation": range(2), "test": range(21, 23)},
    "coherence": {"train": range(14), "test": range(14, 25)},
}
"""DiscoEval 3.1; DisSent A.3; Lin, Kan and Ng 2009; Ji and Eisenstein 2015; coherence models."""

TENTHS = ("coherence",)
"""Names in `SECTIONS` of which every tenth training article, by number, is for validation."""
COUNTED = {"coherence": {"train": 1240, "validation": 138, "test": 1053}}
"""The articles of each split that a paper counts (Jwalapuram et al. 2022, section 2.1)."""

OWN = "own"
PRESCRIBED = (OWN, *SECTIONS)
"""What a source's `splits` may be."""

_WSJ = re.compile(r"(?:.*/)?wsj_(\d\d)\d\d$", re.IGNORECASE)


def splits_by_section(documents: Iterable[str], sections: str) -> dict[str, str | None]:
    """Return the split of each article of the Wall Street Journal, such as `wsj_0207`.

    `sections` is a name in `SECTIONS`. The split is "" for an article in none of its sections, None
    for a document that is not such an article. By `coherence`, every tenth training article is for
    validation.
    """
    parts, splits = SECTIONS[sections].items(), dict[str, str | None]()
    for name in documents:
        article = _WSJ.match(name)
        in_parts = (split for split, numbers in parts if article and int(article[1]) in numbers)
        splits[name] = next(in_parts, "" if article else None)
    if sections in TENTHS:
        training = sorted(name for name, split in splits.items() if split == "train")
        splits |= dict.fromkeys(training[::10], "validation")
    return splits


def count_difference(splits: Iterable[str], sections: str) -> str:
    """Return a text on how the numbers of articles differ from the paper's; "" if they are equal.

    `splits` has the split of each article, `sections` is a name in `SECTIONS`.
    """
    if sections not in COUNTED:
        return ""
    counts, paper = Counter(splits), COUNTED[sections]
    if all(counts[split] == number for split, number in paper.items()):
        return ""
    ours, theirs = (" / ".join(f"{n[split]:,}" for split in paper) for n in (counts, paper))
    return f"{ours} documents ({' / '.join(paper)}), where the paper counts {theirs}"


def prescribed_splits(documents: Iterable[tuple[str, str]], how: str) -> dict[str, str]:
    """Return the prescribed split of each document by its id, "" for no split.

    `documents` are ids, each with the split that its file's path names, or "". `how` is one of
    `PRESCRIBED`: by that path, or by sections. Raises `InputError` for a document without a split.
    """
    by_path = {name: split_in_path or None for name, split_in_path in documents}
    splits: dict[str, str] = {}
    for name, split in (by_path if how == OWN else splits_by_section(by_path, how)).items():
        if split is None:
            reason = "its file's path names none of train, dev and test"
            raise InputError(
                f"no split of the document {name!r} is prescribed: "
                f"{reason if how == OWN else 'it is no article wsj_NNNN'}",
                hint="leave out `splits` of the source: its documents are then divided by [splits]",
            )
        splits[name] = split
    return splits


def prescribed_division(
    documents: Mapping[str, tuple[str, int]], sections: str, table: str
) -> Division | None:
    """Return the division that a table or sections prescribe for documents; None if neither does.

    `documents` maps ids to group and weight. `table` is a path for `read_table`, or ""; a document
    may be named there without the folders in its id, or by its group. Without a table the division
    goes by `sections`, a name in `SECTIONS` or "", if all documents are Wall Street Journal
    articles. Raises `ConfigError` for a table that cannot be read.
    """
    if table:
        splits = read_table(Path(table))
        split = {
            name: splits.get(name) or splits.get(_file_name(name)) or splits.get(group, "")
            for name, (group, _) in documents.items()
        }
        reason = f"as {Path(table).name} says"
    elif sections and documents and all(map(_WSJ.match, documents)):
        split = {name: part or "" for name, part in splits_by_section(documents, sections).items()}
        parts = SECTIONS[sections].items()
        reason = ", ".join(f"{part} sections {r.start}-{r.stop - 1}" for part, r in parts)
    else:
        return None
    return Division.of(split, reason)


def table_hash(table: str) -> str:
    """Return a hash of the table of splits at the path `table`; "" if the path is empty.

    Settings contain it, so that they change with the table. Raises `ConfigError` for a table that
    cannot be read.
    """
    if not table:
        return ""
    return hashlib.sha256(repr(sorted(read_table(Path(table)).items())).encode()).hexdigest()


def read_table(path: Path) -> dict[str, str]:
    """Return the split of each document, by the document's id, from a table or a folder of lists.

    The table is a text file of lines `SPLIT<TAB>DOCUMENT` (a group's name stands for its documents
    that have no line of their own), or the `division.parquet` of a build.
    The folder has one list for each split, as in the coherence papers that divide the Wall Street
    Journal. The file name of a list contains the split (`list.train`, `dev.txt`); each line of the
    list names the file of a document. The document's id is the name of that file without folders
    and suffixes. Raises `ConfigError` for any other file, and for a document in two splits.
    """
    try:
        entries = list(_table_lines(path))
    except (OSError, ValueError, pa.ArrowException, TypeError, IndexError) as error:
        raise ConfigError(f"no table of splits: {error}", where=str(path), hint=_TABLE) from error
    if path.is_dir() and not entries:
        raise ConfigError("no list of files in this folder", where=str(path), hint=_TABLE)
    splits: dict[str, str] = {}
    for split, name, where in entries:
        if split not in SPLITS or splits.setdefault(name, split) != split:
            twice = f"in two splits, {splits.get(name)} and {split}"
            problem = twice if split in SPLITS else f"in no split: {split!r}"
            raise ConfigError(f"the document {name!r} is {problem}", where=where, hint=_TABLE)
    return splits


_TABLE = (
    "a table has lines SPLIT<TAB>DOCUMENT (train, validation or dev, test), each document, or a "
    "whole book by the name of its group, once, or "
    "is the division.parquet of a build; in a folder the lists train, dev and test (list.train, "
    "test.txt) name a file a line"
)


_SUFFIXES = re.compile(r"(?:\.(?:txt|out|dis|edus|mrg|pos|prd|pdtb|pipe|conllu|gz))+$")
"""Suffixes of the files in lists; an id may have other dots."""


def _table_lines(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the split and the document of each line of a table, and its place, `file:line`."""
    if path.suffix == ".parquet":
        table = pq.read_table(path, columns=["doc", "split"])
        codes = zip(table["doc"].to_pylist(), table["split"].to_pylist(), strict=True)
        yield from ((SPLITS[code], doc, str(path)) for doc, code in codes if code < len(SPLITS))
        return
    # A table of lines `SPLIT tab DOCUMENT`, or a folder with a list of documents for each split
    is_folder = path.is_dir()
    for file in sorted(path.iterdir()) if is_folder else [path]:
        split_of_list = split_of(file.name) if is_folder else ""
        if is_folder and not (split_of_list and file.is_file()):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), 1):
            split, tab, name = line.strip().partition("\t")
            if split_of_list:
                split, tab = split_of_list, "\t"
                name = _SUFFIXES.sub("", _file_name(line.strip()))
            if name or (not tab and split):
                split = SPLIT_NAMES.get(split, split) if tab else repr(split)
                yield split, name, f"{file}:{number}"


def _file_name(name: str) -> str:
    """Return the part of a path or id behind the last slash, or behind Windows's backslash."""
    return name.replace("\\", "/").rpartition("/")[2]
