"""Models with weights of four bits, run by ONNX Runtime: without torch and transformers.

`zoo.compact` writes such a folder: weights, and the graph of the encoder, which has none. They are
unpacked, perhaps changed, and given to the graph.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from pydantic import BaseModel

from corpora.errors import InputError
from corpora.outside import read_record
from zoo.loading import AGAIN, CONFIG, WEIGHTS, checked, explained

GRAPH = "encoder.onnx"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""The inputs of the graph, each `[texts, tokens]`."""
BACKBONE = re.compile(r"backbone\.(?!pooler\.)")
"""Matches the weights in the graph."""
RUNTIME = "ONNX Runtime"
DAMAGED_WEIGHTS = "its weights are damaged: copy or download the model again"
TOKENS = "tokenizer.json"

C = TypeVar("C", bound=BaseModel)


def is_packed(model: str | Path) -> bool:
    """Return True for the folder of a model that ONNX Runtime can run."""
    return Path(model, GRAPH).is_file()


def unpack(packed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights of four bits as float32, as `zoo.modeling_discorpora.unpack` does."""
    weights = {}
    for name, stored in packed.items():
        if (scales := packed.get(f"{name}.scale")) is not None:
            levels = np.stack([stored & 15, stored >> 4], -1).astype(np.float32) - 8
            groups = levels.reshape(*scales.shape, -1) * scales[..., None].astype(np.float32)
            weights[name] = groups.reshape(len(stored), -1)
        elif not name.endswith(".scale"):
            weights[name] = stored
    return weights


class PackedModel(Generic[C]):
    """A model in a folder: its configuration, a record `kind`, and its weights in float32.

    Raises `InputError` for a damaged file, and for a model of another type.
    """

    def __init__(self, folder: str | Path, kind: type[C]) -> None:
        from safetensors.numpy import load_file

        self.folder = str(folder)
        with checked(self.folder, RUNTIME):
            self.config = read_record(kind, Path(folder, CONFIG), AGAIN)
            self.weights = unpack(load_file(Path(folder, WEIGHTS)))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(Path(self.folder, TOKENS))

    def weight(self, name: str) -> np.ndarray:
        """Return a weight; raises `InputError` if it is not there."""
        if name in self.weights:
            return self.weights[name]
        where, problem = f"{self.folder}/{WEIGHTS}", f"has no weight {name!r}"
        raise InputError(problem, where=where, hint=AGAIN)

    def encoder(self, change: Callable[[str], np.ndarray] | None = None) -> Encoder:
        """Return the encoder; `change` gives for the name of a weight what is added to it."""
        with explained(f"{self.folder}/{WEIGHTS}", RUNTIME):
            weights = {name: part for name, part in self.weights.items() if BACKBONE.match(name)}
            if change:
                weights = {name: part + change(name) for name, part in weights.items()}
            return Encoder(self.folder, weights)


class Tokenizer:
    """A `tokenizer.json`, which is called like a tokenizer of transformers."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer as Backend

        with explained(str(path), "the tokenizers library"):
            self.backend = Backend.from_file(str(path))
            self.backend.no_truncation()
            self.backend.no_padding()
            self.backend.encode("word")  # a damaged `post_processor` fails only here

    def __call__(self, texts: Any, add_special_tokens: bool = True, **_: Any) -> dict[str, Any]:
        """Return the `input_ids` of a text, or of each text of a list."""
        if isinstance(texts, str):
            return {"input_ids": self.backend.encode(texts, None, False, add_special_tokens).ids}
        encodings = self.backend.encode_batch(list(texts), False, add_special_tokens)
        return {"input_ids": [encoding.ids for encoding in encodings]}


class Encoder:
    """The graph in a folder with `weights`; gives one vector a text. It uses as many threads as
    OMP_NUM_THREADS says, or else one for each core."""

    def __init__(self, folder: str, weights: Mapping[str, np.ndarray]) -> None:
        import onnxruntime

        self.folder = folder
        options = onnxruntime.SessionOptions()
        threads = os.environ.get("OMP_NUM_THREADS", "")
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else 0
        options.log_severity_level = 4  # errors become exceptions
        with explained(f"{folder}/{GRAPH}", RUNTIME):
            values = map(onnxruntime.OrtValue.ortvalue_from_numpy, weights.values())
            options.add_external_initializers([*weights], [*values])
            graph = Path(folder, GRAPH).read_bytes()
            providers = ["CPUExecutionProvider"]
            self.session = onnxruntime.InferenceSession(graph, options, providers=providers)

    def vectors(
        self,
        texts: Sequence[Any],
        batches: Iterable[Sequence[int]],
        types: Sequence[Sequence[int]] | None = None,
    ) -> np.ndarray:
        """Return the vectors `[texts, size]` of texts as token ids, which `batches` divide by their
        numbers. `types` are the segments of the tokens, by default 0."""
        parts, order = [], list[int]()
        for rows in batches:
            shape = len(rows), max(len(texts[row]) for row in rows)
            ids, mask, segments = (np.zeros(shape, np.int64) for _ in INPUTS)
            for place, row in enumerate(rows):
                size = len(texts[row])
                ids[place, :size], mask[place, :size] = texts[row], 1
                if types:
                    segments[place, :size] = types[row]
            with explained(f"{self.folder}/{GRAPH}", RUNTIME):
                inputs = dict(zip(INPUTS, (ids, mask, segments), strict=True))
                parts += self.session.run(None, inputs)
            order += rows
        return np.concatenate(parts)[np.argsort(order)]
