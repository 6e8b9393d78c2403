"""Frozen sentence encoders: any backbone, a function or ready arrays, as texts to vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from corpora.errors import ConfigError, InputError
from zoo.evaluate.backbone_encoder import AUTO, NAMES, BackboneEncoder
from zoo.evaluate.vectors import Text, folder_hash

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "AUTO",
    "NAMES",
    "ArrayEncoder",
    "BackboneEncoder",
    "Encoder",
    "FunctionEncoder",
    "as_encoder",
    "load_encoder",
]


@runtime_checkable
class Encoder(Protocol):
    """Texts to vectors. `encode_pairs` encodes two texts together."""

    def encode(self, texts: Sequence[Any]) -> np.ndarray: ...
    def encode_pairs(self, pairs: Sequence[Any]) -> np.ndarray: ...


class FunctionEncoder:
    """Any function of a list of texts that returns `[texts, dim]`; one for pairs if it has one.

    Without a function for pairs, two texts go to the first one joined by a space.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        pairs: Callable[[list[tuple[str, str]]], Any] | None = None,
        name: str = "",
    ) -> None:
        self.function, self.pairs = function, pairs
        self.name = name or getattr(function, "__qualname__", type(function).__name__)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Each distinct text goes to the function once, the longest first."""
        return _once(self.function, texts, len, self.name)

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        if self.pairs is None:
            return self.encode([" ".join(pair) for pair in pairs])
        return _once(self.pairs, pairs, lambda pair: sum(map(len, pair)), self.name)


class ArrayEncoder:
    """Vectors made elsewhere: a mapping from each text, or pair of texts, to its vector."""

    def __init__(self, vectors: Mapping[Any, Any], name: str = "arrays") -> None:
        self.known, self.name = vectors, name

    def encode(self, texts: Sequence[Text]) -> np.ndarray:
        missing = [text for text in texts if text not in self.known]
        if missing:
            raise InputError(
                f"{len(missing)} texts have no vector; the first: {str(missing[0])[:80]!r}",
                where=self.name,
                hint="give one for every text that zoo.evaluate.discoeval.texts(DATA) lists",
            )
        return np.stack([np.asarray(self.known[text], np.float32) for text in texts])

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return self.encode(pairs)


def load_encoder(
    model: str,
    representation: str = AUTO,
    *,
    cache: Path | str | None = None,
    dtype: str = "float32",
    batch_tokens: int = 4096,
) -> BackboneEncoder:
    """The encoder in a model folder or of a Hub id: any backbone that `AutoModel` loads.

    Of the zoo's own models it is the `backbone` or `encoder` inside. `auto` is the mean of the
    last layer's tokens, or the model's own vector where it has no layers to read. Raises
    `InputError` for a folder without safetensors or tokenizer.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    import zoo
    from zoo.modeling import best_device, check_weights

    zoo.register(model)
    check_weights(model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
        loaded, report = AutoModel.from_pretrained(
            model, use_safetensors=True, dtype=getattr(torch, dtype), output_loading_info=True
        )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"no encoder here: {str(error).splitlines()[0]}",
            where=model,
            hint="give a folder with config.json, safetensors and a tokenizer, or a Hub id",
        ) from error
    _check_loaded(loaded, report["missing_keys"], model)
    # What a model of the zoo saw of a text in training.
    seen = getattr(loaded.config, "vector", getattr(loaded.config, "pooling", ""))
    encoder: Any = inner(loaded)
    return BackboneEncoder(
        encoder.to(best_device()),
        tokenizer,
        representation,
        name=Path(model).name,
        key=model_key(model, loaded),
        cache=cache,
        batch_tokens=batch_tokens,
        trained_with=str(seen),
    )


def _check_loaded(loaded: PreTrainedModel, missing: Collection[str], model: str) -> None:
    """Take away a pooler that the folder has no weights for; they would be drawn at random."""
    other = sorted(key for key in missing if "pooler" not in key.split("."))
    if other:
        raise InputError(
            f"has no weights for {len(other)} parts of the encoder, such as {other[0]}",
            where=model,
            hint="they would be drawn at random: is it a checkpoint of another model class?",
        )
    if missing:
        encoder: Any = inner(loaded)
        encoder.pooler = None


def inner(model: PreTrainedModel) -> PreTrainedModel:
    """The encoder inside a model of the zoo (`backbone`), or the model itself."""
    return getattr(model, "backbone", model)


def model_key(model: str, loaded: PreTrainedModel) -> str:
    """What the vectors depend on: the hash of a folder's files, or the Hub's commit."""
    if Path(model).is_dir():
        return folder_hash(Path(model))
    commit = getattr(loaded.config, "_commit_hash", None)
    return hashlib.sha256(f"{model}@{commit}".encode()).hexdigest() if commit else ""


def as_encoder(what: Any, name: str = "", **options: Any) -> Encoder:
    """A model folder or Hub id, an `Encoder`, a function, or arrays by text, as an encoder."""
    if isinstance(what, str | Path):
        return load_encoder(str(what), **options)
    if isinstance(what, Mapping):
        return ArrayEncoder(what, name or "arrays")
    if isinstance(what, Encoder):
        return what
    if callable(getattr(what, "encode", None)):
        return FunctionEncoder(what.encode, name=name or type(what).__name__)
    if callable(what):
        return FunctionEncoder(what, name=name)
    raise ConfigError(
        f"cannot encode with {type(what).__name__!r}",
        hint="give a model folder, a function of a list of texts, or a mapping of texts to vectors",
    )


def _once(
    function: Callable[[list[Any]], Any], texts: Sequence[Any], size: Any, name: str
) -> np.ndarray:
    distinct = sorted(dict.fromkeys(texts), key=size, reverse=True)
    vectors = np.asarray(function(distinct), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(distinct):
        raise InputError(
            f"{len(distinct)} texts gave an array of shape {vectors.shape}",
            where=name,
            hint="the function must return one vector a text: [texts, dim]",
        )
    row = {text: index for index, text in enumerate(distinct)}
    return vectors[[row[text] for text in texts]]
