"""The linear models of connectives: log-odds as sums of weights that hashed features look up."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from extract.connectives.features import Features, Lexicon, Places

Keys = NDArray[np.uint64]
BITS = 19
"""A table has 2 to the power of `BITS` weights."""
PAIRS = (
    ("c_deprel", "h_deprel"),
    ("c_deprel", "h_shape"),
    ("h_deprel", "k_clause"),
    ("prev1_xpos", "next1_xpos"),
    ("f_shape", "h_shape"),
    ("f_xpos", "h_xpos"),
    ("words_before", "next1_xpos"),
    ("c_deprel", "next1_xpos"),
    ("c_deprel", "prev1_xpos"),
    ("h_xpos", "h_deprel"),
    ("prev1_form", "next1_xpos"),
    ("c_deprel", "words_before"),
    ("h_shape", "subject_side"),
    ("next1_xpos", "next2_xpos"),
    ("h_distance", "h_xpos"),
    ("g_form", "h_deprel"),
    ("c_xpos", "c_deprel"),
    ("h_shape", "words_before"),
    ("h_right", "h_shape"),
    ("f_shape", "f_size"),
    ("h_shape", "h_size"),
    ("h_left", "words_before"),
    ("prev1_xpos", "h_shape"),
    ("f_distance", "h_size"),
)
"""Categories that are features together, beside each alone."""


def mixed(*parts: Keys | int) -> Keys:
    """Return one hash of several."""
    value: Keys = np.array(1469598103934665603, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            value = (value ^ np.asarray(part, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            value = value ^ (value >> np.uint64(29))
    return value


def keys(features: Features, places: Places, lexicon: Lexicon) -> Keys:
    """Return the features of candidates as hashes [candidates, features].

    Each category stands alone, with the class of the connective, and with the connective.
    """
    words = np.array([crc32(word.encode()) for word in lexicon.words], dtype=np.uint64)
    kinds = np.array([crc32(kind.encode()) for kind in lexicon.classes], dtype=np.uint64)
    word, kind = words[places.entry], kinds[places.entry]
    columns = {name: value.astype(np.uint64) for name, value in features.categories.items()}
    columns |= {f"{a}+{b}": mixed(columns[a], columns[b]) for a, b in PAIRS}
    rows = [mixed(word)]
    for name, column in columns.items():
        seed = crc32(name.encode())
        rows += [mixed(seed, column), mixed(seed + 1, column, kind), mixed(seed + 2, column, word)]
    return np.stack(rows, axis=1)


def slots(table: Keys) -> NDArray[np.intp]:
    """Return the places of hashes in a table of weights."""
    return (table & np.uint64((1 << BITS) - 1)).astype(np.intp)
