"""Sentences tokenised once, as memory-mapped arrays that every run and worker shares."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from transformers import PreTrainedTokenizerBase

from corpora.errors import InputError
from corpora.rng import stable_id
from zoo.conpono.segments import Geometry
from zoo.texts import TextEncoder
from zoo.training.data import Dataset
from zoo.training.mapped import Part, Texts, bounds_of, mapped, tokenized


class TokenStore:
    """The token ids of one split, mapped from its folder, and where its texts begin.

    Sentence `i` is `tokens[sentences[i]:sentences[i + 1]]`; paragraph `p` has the sentences
    `paragraphs[p, 0]` to `paragraphs[p, 1]`; document `d` the paragraphs `documents[d]` to
    `documents[d + 1]`. Documents are ordered by `keys`, a hash of their ids, so that samples do not
    depend on the dataset's order. `examples` are the paragraphs that are long enough; `segments`
    and `windows` count, before each paragraph, the possible starts of a target, or of an anchor
    with a target.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arrays = mapped(folder)
        self.tokens, self.sentences = arrays["tokens"].ids, arrays["tokens"].bounds
        self.documents, self.paragraphs = arrays["documents"], arrays["paragraphs"]
        self.keys, self.examples = arrays["keys"], arrays["examples"]
        self.segments, self.windows = arrays["segments"], arrays["windows"]

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker that does not share this process's memory maps the same files.
        return TokenStore, (self.folder,)

    def ids(self, first: int, count: int) -> np.ndarray:
        """Return the token ids `[tokens]` of `count` sentences from the sentence `first` on."""
        return self.tokens[self.sentences[first] : self.sentences[first + count]]

    def starting(self, counts: np.ndarray, number: int) -> int:
        """Return the first sentence of a segment or window by its `number`. `counts` are `segments`
        or `windows`: how many begin before each paragraph."""
        # The last paragraph before which at most `number` of them begin
        paragraph = int(np.searchsorted(counts, number, side="right")) - 1
        return int(self.paragraphs[paragraph, 0]) + number - int(counts[paragraph])


def token_stores(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    geometry: Geometry,
    output: str | Path,
    workers: int = -1,
) -> dict[str, TokenStore]:
    """Return the stores of a dataset's splits, made once while a run works on `output`.

    Raises `InputError` for a document whose bounds do not divide its sentences, and for a split
    without a paragraph for an anchor and a target.
    """
    folders = tokenized(
        dataset,
        dataset.splits,
        tokenizer,
        output,
        ("conpono", geometry.anchor, geometry.target),
        ("doc", "sentences", "bounds"),
        # Sentences stay whole here; segments are cut later.
        partial(_encode_documents, TextEncoder(tokenizer, 1 << 30)),
        finish=partial(_index_paragraphs, geometry),
        workers=workers,
    )
    return {split: TokenStore(folder) for split, folder in folders.items()}


def _encode_documents(encoder: TextEncoder, rows: pa.RecordBatch) -> Part:
    """Return the sentences as tokens, the sizes of paragraphs, and keys and counts of documents."""
    sentences: list[str] = []
    sizes: list[int] = []
    documents = []
    for row in rows.to_pylist():
        ends = row["bounds"]
        if len(ends) < 2 or (ends[0], ends[-1]) != (0, len(row["sentences"])):
            raise InputError(
                f"bounds {ends} do not divide its {len(row['sentences'])} sentences",
                where=f"document {row['doc']}",
                hint="build the dataset again",
            )
        sentences += row["sentences"]
        sizes += np.diff(ends).tolist()
        documents.append((stable_id(row["doc"]), len(ends) - 1))
    keys, counts = zip(*documents, strict=True)
    return {
        "tokens": Texts.of(encoder.sentences(sentences)),
        "sizes": np.array(sizes, np.int64),
        "counts": np.array(counts, np.int64),
        "read_keys": np.array(keys, np.uint64),
    }


def _index_paragraphs(geometry: Geometry, split: str, arrays: dict[str, Any]) -> Part:
    """Return the further arrays of a `TokenStore`: documents by key, and counts of possible starts.

    It takes about 50 bytes of memory for each paragraph.
    """
    keys, counts, ends = arrays["read_keys"], arrays["counts"], np.cumsum(arrays["sizes"])
    order = np.argsort(keys, kind="stable")
    spans = np.stack([ends - arrays["sizes"], ends], 1)
    paragraphs = spans[np.argsort(np.repeat(keys, counts), kind="stable")]
    lengths = paragraphs[:, 1] - paragraphs[:, 0]
    examples = np.flatnonzero(lengths >= geometry.window)
    if not len(examples):
        raise InputError(
            f"no paragraph has {geometry.window} sentences (an anchor and a target)",
            where=split,
            hint="build the dataset with merge_above, or lower anchor_sentences",
            field="anchor_sentences",
        )
    segments, windows = (
        bounds_of(np.maximum(lengths - width + 1, 0))
        for width in (geometry.target, geometry.window)
    )
    return {
        "keys": keys[order],
        "documents": bounds_of(counts[order]),
        "paragraphs": paragraphs,
        "examples": examples,
        "segments": segments,
        "windows": windows,
    }
