"""Frozen sentence encoders: any backbone, a function or ready arrays, as texts to vectors.

A frozen transformer or BiLSTM gives several representations from one pass. `K` is a layer, 0 the
embeddings:

    mean, mean:K    the mean over the real tokens of the last layer, or of layer K
    cls, cls:K      the vector of the [CLS] token
    cls_mean        the [CLS] token's, averaged over all layers and the embeddings (DiscoEval 5.1)
    pooled          the model's own sentence vector: BERT's pooler, the BiLSTM's max-pool
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from corpora.errors import ConfigError, InputError, nearest
from corpora.store.atomic import replacing, sha256
from zoo.texts import batches_by_length

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger("zoo")

Text = str | tuple[str, str]
"""One text, or two that are encoded together."""

NAMES = ("mean", "cls", "cls_mean", "pooled")
AUTO = "auto"
EMPTY = "."
"""What stands in for a text without a word, as in the released DiscoEval code."""
SHARD = 4096
"""Texts that are encoded before their vectors are written."""
LENGTH = "length"
"""Kept beside the vectors: a text's tokens before it was cut, `[texts, 1]`."""


@runtime_checkable
class Encoder(Protocol):
    """Texts to vectors. `encode_pairs` encodes two texts together."""

    def encode(self, texts: Sequence[Any]) -> np.ndarray: ...
    def encode_pairs(self, pairs: Sequence[Any]) -> np.ndarray: ...


class FunctionEncoder:
    """Any function of a list of texts that returns `[texts, dim]`.

    Two texts go to it joined by a space, or as they are where it `takes_pairs`.
    """

    def __init__(
        self, function: Callable[[list[Any]], Any], name: str = "", *, takes_pairs: bool = False
    ) -> None:
        self.function, self.takes_pairs = function, takes_pairs
        self.name = name or getattr(function, "__qualname__", type(function).__name__)

    def encode(self, texts: Sequence[Any]) -> np.ndarray:
        """Each distinct text goes to the function once, the longest first."""
        distinct = sorted(dict.fromkeys(texts), key=len, reverse=True)
        vectors = np.asarray(self.function(distinct), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(distinct):
            raise InputError(
                f"{len(distinct)} texts gave an array of shape {vectors.shape}",
                where=self.name,
                hint="the function must return one vector a text: [texts, dim]",
            )
        row = {text: index for index, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]

    def encode_pairs(self, pairs: Sequence[Any]) -> np.ndarray:
        return self.encode(pairs if self.takes_pairs else [" ".join(pair) for pair in pairs])


def as_encoder(what: Any, name: str = "") -> Encoder:
    """A model folder or Hub id, an `Encoder`, a function, or arrays by text, as an encoder."""
    if isinstance(what, str | Path):
        return load_encoder(str(what))
    if isinstance(what, Mapping):

        def known(texts: list[Any]) -> list[Any]:
            missing = [text for text in texts if text not in what]
            if missing:
                raise InputError(
                    f"{len(missing)} texts have no vector; the first: {str(missing[0])[:80]!r}",
                    where=name or "arrays",
                    hint="give one for every text that zoo.evaluate.discoeval.texts(DATA) lists",
                )
            return [what[text] for text in texts]

        return FunctionEncoder(known, name or "arrays", takes_pairs=True)
    if isinstance(what, Encoder):
        return what
    function = getattr(what, "encode", what)
    if callable(function):
        return FunctionEncoder(function, name or ("" if function is what else type(what).__name__))
    raise ConfigError(
        f"cannot encode with {type(what).__name__!r}",
        hint="give a model folder, a function of a list of texts, or a mapping of texts to vectors",
    )


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
    encoder: Any = getattr(loaded, "backbone", loaded)
    missing = report["missing_keys"]
    if other := sorted(key for key in missing if "pooler" not in key.split(".")):
        raise InputError(
            f"has no weights for {len(other)} parts of the encoder, such as {other[0]}",
            where=model,
            hint="they would be drawn at random: is it a checkpoint of another model class?",
        )
    if missing:  # the pooler's weights were drawn at random
        encoder.pooler = None
    # What a model of the zoo saw of a text in training.
    seen = getattr(loaded.config, "vector", getattr(loaded.config, "pooling", ""))
    return BackboneEncoder(
        encoder.to(best_device()),
        tokenizer,
        representation,
        name=Path(model).name,
        key=model_key(model, getattr(loaded.config, "_commit_hash", None)),
        cache=cache,
        batch_tokens=batch_tokens,
        trained_with=str(seen),
    )


class BackboneEncoder:
    """A frozen transformer or BiLSTM with its tokenizer.

    `key` names what made the vectors in `cache`. `tokens` counts the real tokens that were encoded
    (not those of vectors from the cache). `trained_with`: "mean" for a model of the zoo whose
    objective saw the mean of a text's tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        representation: str = AUTO,
        *,
        name: str = "",
        key: str = "",
        cache: Path | str | None = None,
        batch_tokens: int = 4096,
        trained_with: str = "",
    ) -> None:
        from zoo.backbones import max_positions, pooling_of, warn_of_padding

        self.model, self.tokenizer = model.eval(), tokenizer
        limits = (max_positions(model.config) or 0, tokenizer.model_max_length)
        self.max_tokens = min(limit for limit in limits if limit)
        self.representation = self.named(representation)
        self.trained_with = trained_with
        self.name, self.batch_tokens = name or model.config.model_type, batch_tokens
        self.pooling = pooling_of(model.config, tokenizer)
        self.cache = VectorCache(
            cache, f"{key[:24]}-{model.dtype}-{self.max_tokens}" if key else ""
        )
        self.tokens = 0
        self._cut: set[bytes] = set()
        warn_of_padding(self.model)

    @property
    def truncated(self) -> int:
        """How many distinct texts were longer than the model takes; the rest of each is lost."""
        return len(self._cut)

    @property
    def layers(self) -> int:
        """How many layers have hidden states to read, besides the embeddings (0: none)."""
        return int(getattr(self.model.config, "num_hidden_layers", 0) or 0)

    def named(self, representation: str) -> str:
        """The representation in full. Raises `ConfigError` for one that the model has not."""
        if representation == AUTO:
            return "mean" if self.layers else "pooled"
        name, _, layer = representation.partition(":")
        if name not in NAMES or (layer and (name not in ("mean", "cls") or not layer.isdigit())):
            raise ConfigError(
                f"no representation {representation!r}",
                hint=f"{nearest(name, NAMES)}they are: {', '.join(NAMES)}, mean:LAYER, cls:LAYER",
            )
        if layer and int(layer) > self.layers:
            raise ConfigError(
                f"no layer {layer}: the model has {self.layers}, and 0 is its embeddings",
                where=f"representation {representation}",
            )
        return representation

    def encode(self, texts: Sequence[Text]) -> np.ndarray:
        """The vectors of `texts`, `[texts, dim]`, as float32."""
        return self.vectors(texts, [self.representation])[self.representation]

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """The vectors of pairs of texts, each pair encoded as one input: `[pairs, dim]`."""
        return self.encode(pairs)

    def vectors(
        self, texts: Sequence[Text], representations: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Several representations from one pass: `[texts, dim]` each.

        Every distinct text that the cache does not know is encoded once, in shards and batches of
        texts of like length.
        """
        names = [self.named(name) for name in representations]
        distinct = list(dict.fromkeys(texts))
        keys = [digest(text) for text in distinct]
        known = {name: self.cache.of(name) for name in (*names, LENGTH)}
        missing = [i for i, key in enumerate(keys) if any(key not in of for of in known.values())]
        ids, lengths = self.tokenize([distinct[i] for i in missing])
        order = np.argsort(lengths, kind="stable").tolist()
        for start in range(0, len(order), SHARD):
            part = order[start : start + SHARD]
            new = self.encode_ids([ids[at] for at in part], names)
            new[LENGTH] = lengths[part, None]
            coded = [keys[missing[at]] for at in part]
            for name, vectors in new.items():
                known[name].update(zip(coded, vectors, strict=True))
            self.cache.put(coded, new)
            log.debug("encoded %d of %d texts", start + len(part), len(order))
        self._cut.update(key for key in keys if known[LENGTH][key][0] > self.max_tokens)
        key_of = dict(zip(distinct, keys, strict=True))
        return {name: np.array([known[name][key_of[text]] for text in texts]) for name in names}

    def tokenize(self, texts: Sequence[Text]) -> tuple[list[dict[str, list[int]]], np.ndarray]:
        """The ids of each text with special tokens, and their number before long ones are cut."""
        if not texts:
            return [], np.zeros(0, np.float32)
        first = [_filled(text if isinstance(text, str) else text[0]) for text in texts]
        second = None if isinstance(texts[0], str) else [_filled(text[1]) for text in texts]
        found = self.tokenizer(first, second, verbose=False)
        lengths = np.array([len(ids) for ids in found["input_ids"]], np.float32)
        rows = [{name: found[name][row] for name in found} for row in range(len(texts))]
        for row in np.flatnonzero(lengths > self.max_tokens).tolist():
            other = second[row] if second else None
            limit = {"truncation": True, "max_length": self.max_tokens}
            rows[row] = dict(self.tokenizer(first[row], other, **limit))
        return rows, lengths

    def encode_ids(
        self, ids: Sequence[Mapping[str, Sequence[int]]], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Vectors of tokenised texts, in batches of at most `batch_tokens` ids with padding.

        Raises `InputError` for vectors with NaN or infinity.
        """
        lengths = [len(one["input_ids"]) for one in ids]
        self.tokens += sum(lengths)
        found: dict[str, np.ndarray] = {}
        for rows in batches_by_length(lengths, self.batch_tokens):
            for name, vectors in self._batch([ids[row] for row in rows], names).items():
                if not vectors.isfinite().all():
                    raise InputError(
                        f"the model gives vectors with NaN or infinity ({name})", where=self.name
                    )
                empty = np.empty((len(ids), vectors.shape[1]), np.float32)
                found.setdefault(name, empty)[rows] = vectors.float().cpu().numpy()
        return found

    def _batch(
        self, batch: Sequence[Mapping[str, Sequence[int]]], names: Sequence[str]
    ) -> dict[str, Tensor]:
        """One pass over texts of like length, padded on the right."""
        import torch

        width = max(len(one["input_ids"]) for one in batch)
        inputs = {}
        for key in batch[0]:
            fill = (self.tokenizer.pad_token_id or 0) if key == "input_ids" else 0
            rows = [[*one[key], *[fill] * (width - len(one[key]))] for one in batch]
            inputs[key] = torch.tensor(rows, device=self.model.device)
        deep = any(name == "cls_mean" or ":" in name for name in names)
        extra = {"output_hidden_states": True} if deep else {}
        with torch.inference_mode():
            output = self.model(**inputs, **extra)
        return {name: self._read(output, inputs["attention_mask"], name) for name in names}

    def _read(self, output: Any, mask: Tensor, name: str) -> Tensor:
        """One representation from a model's output: `[batch, dim]`."""
        import torch

        from zoo.backbones import pooled

        kind, _, layer = name.partition(":")
        needed, what = "last_hidden_state", "vectors of tokens"
        if name == "pooled":
            needed, what = "pooler_output", "pooled vector"
        elif name == "cls_mean" or layer:
            needed, what = "hidden_states", "hidden states of its layers"
        states = getattr(output, needed, None)
        if states is None:
            raise ConfigError(
                f"the model has no {what}",
                where=f"{self.name}, representation {name}",
                hint=f"choose another representation: {', '.join(NAMES)}",
            )
        if name == "pooled":
            return states
        if name == "cls_mean":
            read = [pooled(layer.float(), mask, self.pooling) for layer in states]
            return torch.stack(read).mean(0)
        states = states[int(layer)] if layer else states
        return pooled(states.float(), mask, "mean" if kind == "mean" else self.pooling)


def _filled(text: str) -> str:
    return text if text.strip() else EMPTY


# Vectors on disk: each text of an encoder is encoded once, whichever suite asks for it.

DIGEST = 16
SUFFIX = ".safetensors"
DEFINING = ("*.safetensors", "config.json", "tokenizer*", "vocab*", "merges*", "*.model")
"""The files of a model folder on which its vectors depend."""


def digest(text: Text) -> bytes:
    """The key of a text, 16 bytes; a pair's differs from that of any single text."""
    parts = [text] if isinstance(text, str) else text
    coded = [part.encode("utf-8", "surrogatepass") for part in parts]
    # The length goes first, so that no two lists of parts give the same bytes.
    content = b"".join(b"%d:" % len(part) + part for part in coded)
    return hashlib.sha256(content).digest()[:DIGEST]


def model_key(model: str, commit: str | None) -> str:
    """What the vectors depend on: the hash of a folder's files, or the Hub's commit."""
    if not Path(model).is_dir():
        return hashlib.sha256(f"{model}@{commit}".encode()).hexdigest() if commit else ""
    files = sorted({file for pattern in DEFINING for file in Path(model).glob(pattern)})
    lines = [f"{file.name} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class VectorCache:
    """Vectors by representation and text, under `FOLDER/KEY/`. Without a folder it keeps none.

    `KEY` says what made the vectors. A representation is a folder of shards, each written by one
    rename: `keys [texts, 16]`, the digests of the texts, and `vectors [texts, dim]`.
    """

    def __init__(self, folder: Path | str | None, key: str) -> None:
        self.folder = Path(folder) / key if folder and key else None
        self._read: dict[str, dict[bytes, np.ndarray]] = {}

    def of(self, representation: str) -> dict[bytes, np.ndarray]:
        """The known vectors of a representation by their texts' digests."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        if self.folder is None:
            return {}
        known = self._read.setdefault(representation, {})
        place = self.folder / representation.replace(":", "-")
        for path in sorted(place.glob(f"*{SUFFIX}")) if not known else ():
            try:
                shard = load_file(path)
            except SafetensorError as error:
                raise InputError(
                    f"a damaged file of cached vectors: {error}",
                    where=str(path),
                    hint="remove it; its texts are encoded again",
                ) from error
            known.update(zip(map(bytes, shard["keys"]), shard["vectors"], strict=True))
        return known

    def put(self, keys: Sequence[bytes], vectors: Mapping[str, np.ndarray]) -> None:
        """Write `vectors[representation] [texts, dim]`; a killed run keeps the shards it wrote."""
        from safetensors.numpy import save

        if self.folder is None:
            return
        coded = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), DIGEST)
        for representation, values in vectors.items():
            place = self.folder / representation.replace(":", "-")
            name = f"{hashlib.sha256(coded.tobytes()).hexdigest()[:24]}{SUFFIX}"
            with replacing(place / name) as partial:
                content = np.ascontiguousarray(values, np.float32)
                partial.write_bytes(save({"keys": coded, "vectors": content}))
