"""Treebanks: the trees of CoNLL-U files as parallel columns over the words of a sentence."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from corpora.document import Tokens
from corpora.readers import open_source

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A tree as parallel columns over its syntactic words.

    `forms` are the words, `deprels` the labels of the arcs to their heads. `heads` are indices into
    the sentence, -1 for the root. `spaces` is true if a blank follows the word. `paragraph` is the
    paragraph's number in `document`, from 0. A value that the file leaves out ("_") is "".
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


def treebank_files(paths: Sequence[Path], split: str) -> list[Path]:
    """Return the CoNLL-U files of a split (`train` or `dev`); a path may be a file or a folder.

    A file in `paths` is taken as it is. In a folder, a file belongs to the split that its parent
    folder is named after, as in GUM (`train/GUM_bio_holt.conllu`), or else to the split in its own
    name, as in UD (`en_ewt-ud-train.conllu`). Raises `FileNotFoundError` for a path without files.
    """
    files: list[Path] = []
    for path in paths:
        candidates = [path] if path.is_file() else sorted(path.rglob("*.conllu"))
        split_files = [file for file in candidates if path.is_file() or _split_of(file) == split]
        if not split_files:
            raise FileNotFoundError(
                f"no treebank at {path}: none of its {len(candidates)} .conllu files belongs to "
                f"the split {split!r} (by its name or its folder's name); give the files themselves"
            )
        files += split_files
    return files


def _split_of(file: Path) -> str:
    """Return the split in the name of a file's folder, else in its own name; "" if in neither."""
    names = (file.parent.name, *re.split(r"[-_.]", file.stem))
    return next((name for name in names if name in SPLITS), "")


def sentences_of(files: Iterable[Path]) -> list[Sentence]:
    """Return the sentences of CoNLL-U files. Raises `InputError` for bad or treeless files."""
    sentences = []
    for document in chain.from_iterable(open_source(f"conllu:{file}") for file in files):
        tokens = document.tokens or Tokens()
        spaces = [start > end for end, start in zip(tokens.end, tokens.start[1:], strict=False)]
        spaces.append(True)
        starts = document.paragraphs.start if document.paragraphs else [0]
        for first, end in pairwise(tokens.offsets):
            words = slice(first, end)
            sentence = Sentence(
                document=document.id,
                paragraph=bisect_right(starts, tokens.start[first]) - 1,
                forms=tuple(tokens.form[words]),
                spaces=tuple(spaces[words]),
                upos=tuple(tokens.upos[words]),
                xpos=tuple(tokens.xpos[words]),
                heads=tuple(head if head < 0 else head - first for head in tokens.head[words]),
                deprels=tuple(tokens.deprel[words]),
            )
            sentences.append(sentence)
    return sentences
