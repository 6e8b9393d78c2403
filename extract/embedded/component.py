"""The last component of the embedded pipeline: UPOS from a table, and UD's name for roots."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import DEP, IS_SPACE, LOWER, POS, PREFIX, TAG
from spacy.lang.en import English
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab

Hashes = NDArray[np.uint64]
_MIX = np.uint64(0x9E3779B97F4A7C15)


def prefix_of(form: str) -> str:
    """The first four letters in lower case, for words too rare for their own vector.

    spaCy uses one letter. Letter case is in `SHAPE`.
    """
    return form[:4].lower()


@registry.languages("en_ud")
class EnglishUd(English):
    """`English` with another `PREFIX`, which the embeddings hash."""

    lang = "en_ud"

    class Defaults(English.Defaults):  # type: ignore[misc, valid-type]
        lex_attr_getters: ClassVar = {**English.Defaults.lex_attr_getters, PREFIX: prefix_of}


class UposTable:
    """Sets `token.pos_` from `xpos`, `xpos deprel` and `xpos deprel form`: the longest key counts.

    spaCy's name `ROOT` becomes UD's `root`. `table` maps keys, their parts separated by one
    blank, to UPOS. It takes about 1 µs a token.
    """

    def __init__(self, vocab: Vocab, table: dict[str, str]) -> None:
        self._levels = [_level(vocab, table, parts) for parts in (1, 2, 3)]
        self._unknown, self._space = (np.uint64(_symbol(vocab, name)) for name in ("X", "SPACE"))
        self._spacy_root = np.uint64(vocab.strings.add("ROOT"))
        self._ud_root = np.uint64(vocab.strings.add("root"))

    def __call__(self, doc: Doc) -> Doc:
        """Set UPOS and the name of the root in a tagged and parsed `doc`; return the same `doc`.

        Level `n` of the table has the keys of `n + 1` parts as hashes in ascending order. A token
        gets the value of the last level that has its key, so the longest key counts.
        """
        columns = np.asarray(doc.to_array([TAG, DEP, LOWER, IS_SPACE]), dtype=np.uint64)
        columns[columns[:, 1] == self._spacy_root, 1] = self._ud_root
        upos: Hashes = np.full(len(doc), self._unknown, dtype=np.uint64)
        key = np.zeros(len(doc), dtype=np.uint64)
        for column, (keys, values) in enumerate(self._levels):
            key = key * _MIX + columns[:, column]
            # A key behind all others would have the index `len(keys)`; no key is equal to it.
            at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            upos = np.where(keys[at] == key, values[at], upos)
        upos[columns[:, 3] != 0] = self._space
        annotation: Any = np.stack([upos, columns[:, 1]], axis=1)
        doc.from_array([POS, DEP], annotation)
        return doc


@Language.factory("discorpora_upos", assigns=["token.pos", "token.dep"])
def make_upos(nlp: Language, name: str, table: dict[str, str]) -> UposTable:
    return UposTable(nlp.vocab, table)


def _level(vocab: Vocab, table: dict[str, str], parts: int) -> tuple[Hashes, Hashes]:
    """Sorted keys of `parts` parts and their values. A zero key stands in for an empty level."""
    rows = {0: 0}
    for names, upos in table.items():
        if names.count(" ") + 1 == parts:
            key = np.zeros(1, dtype=np.uint64)  # no scalar: its overflow would be a warning
            for name in names.split(" "):
                key = key * _MIX + np.uint64(vocab.strings.add(name))
            rows[int(key[0])] = _symbol(vocab, upos)
    keys, values = zip(*sorted(rows.items()), strict=True)
    return np.array(keys, dtype=np.uint64), np.array(values, dtype=np.uint64)


def _symbol(vocab: Vocab, name: str) -> int:
    # UPOS names are spaCy symbols: small integers, not hashes, and `Doc.from_array` takes these.
    return int(vocab.strings[name])
