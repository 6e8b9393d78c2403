"""Documents in groups, and the shards of one worker of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corpora.document import Document

LETTERS_A_WORD = 10
"""Characters that count as a word if spaces are rarer; English prose has 5 to 8 for each space."""


@dataclass(frozen=True, slots=True)
class Part:
    """Which shards a worker of several makes: number `rank`, `rank + of`, `rank + 2 of`, ..."""

    rank: int = 0
    of: int = 1

    def has(self, shard: int) -> bool:
        return shard % self.of == self.rank


WHOLE = Part()


def by_words(documents: Iterable[Document], words: int) -> Iterator[list[Document]]:
    """Documents in groups of about `words` words; the groups depend only on the documents.

    Words are counted by spaces, or by length for scripts without spaces and for one word a line.
    """
    group: list[Document] = []
    filled = 0
    for document in documents:
        group.append(document)
        filled += max(document.text.count(" ") + 1, len(document.text) // LETTERS_A_WORD)
        if filled >= words:
            yield group
            group, filled = [], 0
    if group:
        yield group
