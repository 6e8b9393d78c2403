"""Reading CoNLL-U: syntactic words with their trees, spaces and paragraphs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora.errors import InputError

COLUMNS = 10
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One tree as parallel columns over its syntactic words.

    `heads` are indices into the sentence, the root's is -1; `spaces` says whether a blank follows;
    `paragraph` counts from 0 within `document`.
    """

    document: str
    paragraph: int
    forms: tuple[str, ...]
    spaces: tuple[bool, ...]
    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    heads: tuple[int, ...]
    deprels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.forms)


def treebank_files(path: Path, split: str) -> list[Path]:
    """The CoNLL-U files of `split` (`train` or `dev`): `path` itself, or those beneath a folder.

    Beneath a folder a file belongs to the split that its own folder is called, as in GUM
    (`train/GUM_bio_holt.conllu`), or else to that in its name, as in UD (`en_ewt-ud-train.conllu`).
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"no treebank at {path}: give a CoNLL-U file or a folder of them")
    found = sorted(path.rglob("*.conllu"))
    chosen = [file for file in found if _split_of(file) == split]
    if not chosen:
        raise FileNotFoundError(
            f"none of the {len(found)} .conllu files under {path} belongs to the split {split!r} "
            f"(by its name or its folder's name); give the files themselves"
        )
    return chosen


def read_treebank(files: Iterable[Path]) -> Iterator[Sentence]:
    """The sentences of `files` in order. Raises `InputError` with file and line for a bad row."""
    for file in files:
        yield from _read_file(file)


def sentences_of(files: Sequence[Path]) -> list[Sentence]:
    """All sentences of `files`; `InputError` if there is none to learn from or to score."""
    found = list(read_treebank(files))
    if not found:
        names = ", ".join(map(str, files))
        raise InputError("there is no sentence", where=names, hint="give CoNLL-U with trees")
    return found


def _split_of(file: Path) -> str:
    """The split that a file's folder says, or else a part of its name; "" if neither says one."""
    names = (file.parent.name, *re.split(r"[-_.]", file.stem))
    return next((name for name in names if name in SPLITS), "")


def _read_file(file: Path) -> Iterator[Sentence]:
    document, paragraph = file.stem, -1
    rows: list[Row] = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            line = line.rstrip("\r\n")
            if line.startswith("# newdoc"):
                document, paragraph = line.partition("=")[2].strip() or file.stem, -1
            elif _starts_paragraph(line):
                paragraph += 1
            elif line and not line.startswith("#"):
                rows.append(Row(f"{file}:{number}", line))
            elif not line and rows:
                yield _sentence(document, max(paragraph, 0), rows)
                rows = []
    if rows:
        yield _sentence(document, max(paragraph, 0), rows)


def _starts_paragraph(line: str) -> bool:
    # GUM repeats each `newpar` in a `newpar_block` with its nesting: only one of them may count.
    return line == "# newpar" or line.startswith(("# newpar ", "# newpar="))


class Row(list[str]):
    """The columns of a line, and where it stands (`file:line`)."""

    def __init__(self, where: str, line: str) -> None:
        super().__init__(line.split("\t"))
        self.where = where
        if len(self) != COLUMNS:
            raise InputError(f"{len(self)} columns, CoNLL-U has {COLUMNS}: {line!r}", where=where)

    def head(self, words: int) -> int:
        """The index of the head among the `words` of the sentence, -1 for the root."""
        if not self[6].isdecimal() or int(self[6]) > words:
            raise InputError(
                f"HEAD is {self[6]!r}, expected 0 to {words}",
                where=self.where,
                hint="every word needs a head: take a treebank with trees",
            )
        return int(self[6]) - 1


def _sentence(document: str, paragraph: int, rows: list[Row]) -> Sentence:
    words = [row for row in rows if row[0].isdigit()]
    if not words:
        raise InputError("a sentence without words", where=rows[0].where)
    inner, after = _multiword_spaces(rows)
    spaces = []
    for row in words:
        identifier = int(row[0])
        misc = after.get(identifier, row[9])
        spaces.append(identifier not in inner and "SpaceAfter=No" not in misc.split("|"))
    return Sentence(
        document=document,
        paragraph=paragraph,
        forms=tuple(row[1] for row in words),
        spaces=tuple(spaces),
        upos=tuple(row[3] for row in words),
        xpos=tuple(row[4] for row in words),
        heads=tuple(row.head(len(words)) for row in words),
        deprels=tuple(row[7] for row in words),
    )


def _multiword_spaces(rows: list[Row]) -> tuple[set[int], dict[int, str]]:
    """Ids of words that another word of their multiword token follows, and the MISC of each last.

    The words of an English multiword token are adjacent substrings of it (do|n't), while
    `SpaceAfter=No` stands on the token's own line: the last word takes it over.
    """
    inner: set[int] = set()
    after: dict[int, str] = {}
    for row in rows:
        if "-" in row[0]:
            first, last = (int(part) for part in row[0].split("-"))
            inner.update(range(first, last))
            after[last] = row[9]
    return inner, after
