"""Frozen encoders of texts to vectors: any backbone, a function, or a table of vectors.

A frozen transformer or BiLSTM gives several representations of a text from one pass. `K` is a
layer, 0 the embeddings:

    mean, mean:K    the mean over the real tokens of the last layer, or of layer K
    cls, cls:K      the vector of the [CLS] token
    cls_mean        the mean of the [CLS] token's vectors over all layers and the embeddings
                    (DiscoEval, section 5.1)
    pooled          the model's own sentence vector: BERT's pooler, the BiLSTM's max-pool
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.declared import import_object
from corpora.errors import ConfigError, InputError, check_choice, nearest
from corpora.progress import Loop, show_progress
from corpora.store.atomic import replacing, sha256
from zoo.evaluate.in_hand import folder_of, name_of, parts_of
from zoo.evaluate.scores import finite
from zoo.texts import batches_by_length

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

Text = str | tuple[str, str]
"""One text, or a pair of texts that are encoded together."""

NAMES = ("mean", "cls", "cls_mean", "pooled")
AUTO = "auto"
EMPTY = "."
"""The text that replaces an empty one, as in the released DiscoEval code."""
HASHED = 1024
"""The dimension of the vectors of hashed words."""
SHARD = 4096
"""The number of texts that are encoded before their vectors are written."""
LENGTH = "length"
"""The name in the cache of a text's number of tokens before it was cut, `[texts, 1]`."""


class Vectors:
    """Wraps a function of a list of texts, which returns `[texts, dim]`, as an encoder.

    The function gets a pair of texts joined by a space, or as a tuple if it `takes_pairs`. `name`
    is the encoder's name in results, by default the function's name.
    """

    representation = ""

    def __init__(
        self, function: Callable[[list[Any]], Any], name: str = "", *, takes_pairs: bool = False
    ) -> None:
        self.function, self.takes_pairs = function, takes_pairs
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.layers, self.trained_with, self.has_pooler = 0, "", False

    def describe(self) -> dict[str, Any]:
        """The description of the model for a result: its name alone, since it is a function."""
        return {"name": self.name}

    def named(self, representation: str) -> str:
        """Return "", the name of the function's only representation."""
        return ""

    def vectors(
        self, texts: Sequence[Text], representations: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """The function's vectors, `[texts, dim]`, the same for each representation."""
        return dict.fromkeys(representations, self.encode(texts))

    def encode(self, texts: Sequence[Any]) -> np.ndarray:
        """The vectors of `texts`, `[texts, dim]`; the function gets each distinct text once."""
        if not self.takes_pairs:
            texts = [text if isinstance(text, str) else " ".join(text) for text in texts]
        distinct = sorted(dict.fromkeys(texts), key=len, reverse=True)
        output = self.function(distinct)
        if hasattr(output, "detach"):  # a tensor, which may have a gradient or be on a GPU
            output = output.detach().float().cpu()
        vectors = np.asarray(output, np.float32)
        if vectors.ndim != 2 or len(vectors) != len(distinct):
            raise InputError(
                f"{len(distinct)} texts gave an array of shape {vectors.shape}",
                where=self.name,
                hint="the function must return one vector a text: [texts, dim]",
            )
        row = {text: index for index, text in enumerate(distinct)}
        return vectors[[row[text] for text in texts]]


def as_encoder(model: Any) -> SentenceEncoder | None:
    """Convert a model object to an encoder; None if it gives no vectors.

    It may be an encoder of this module, a `SentenceTransformer` (or another object with `encode`),
    or a model with a backbone: of transformers, of the zoo, or in a `PairClassifier`.
    """
    if isinstance(model, BackboneEncoder | Vectors):
        return model
    if parts := parts_of(model):
        return BackboneEncoder(*parts, name=name_of(model), folder=folder_of(model))
    encode = getattr(model, "encode", None)
    return Vectors(encode, name_of(model)) if callable(encode) else None


def encoder_of(model: Any, name: str = "") -> SentenceEncoder:
    """Make an encoder of a model object, a function of texts, or a mapping of texts to vectors."""
    if isinstance(model, Mapping):  # a vector for each of `zoo.evaluate.discoeval.texts`
        name = name or "arrays"

        def vector(text: Any) -> Any:
            """Return the vector of a text in the mapping `model`."""
            if text not in model:
                hint = "give a vector for each of discoeval.texts(DATA, options, limit=...)"
                raise InputError(f"no vector for the text {text!r}", where=name, hint=hint)
            return model[text]

        return Vectors(lambda texts: [*map(vector, texts)], name, takes_pairs=True)
    return as_encoder(model) or Vectors(model, name)


def load_vectors(path: Path) -> SentenceEncoder:
    """Load an encoder from a file: the function `encode` of FILE.py, or a table FILE.parquet.

    The table has the columns `text` and `vector`. Raises `ConfigError` for a Python file without
    the function, `InputError` for a table without these columns.
    """
    if path.suffix == ".py":
        return Vectors(import_object(f"{path}:encode"), path.stem)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["text", "vector"], page_checksum_verification=True)
        texts = table["text"].cast(pa.string()).to_pylist()
        rows = table["vector"].cast(pa.list_(pa.float32())).combine_chunks()
        if len(rows.value_lengths().unique()) != 1 or None in texts:
            raise ValueError("rows of different lengths, or without a text or a vector")
        matrix = rows.flatten().to_numpy(zero_copy_only=False).reshape(len(texts), -1)
    except (pa.ArrowException, OSError, ValueError) as error:
        hint = "write the columns text and vector, lists of numbers of one length, without nulls"
        raise InputError(f"holds no vectors: {error}", where=str(path), hint=hint) from error
    finite(matrix, "the file gives vectors", str(path))
    return encoder_of(dict(zip(texts, matrix, strict=True)), path.stem)


def baseline_encoder(name: str) -> Vectors:
    """Make the encoder of a rule, `surface` or `words`, whose vectors hold no meaning.

    `surface`: the audit's numbers of a sentence without its words (lengths, marks, digits), each as
    log(1 + n). `words`: its words and marks, hashed to `HASHED` places. They tell how much of a
    task needs no encoder. Raises `ConfigError` for another name.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    from corpora.audit.features import WORD, clean, shape_of

    def surface(texts: list[str]) -> np.ndarray:
        """The numbers of each text, `[texts, 19]`."""
        numbers = np.array([shape_of(clean(text) or EMPTY) for text in texts])
        return np.sign(numbers) * np.log1p(np.abs(numbers))

    hashed = HashingVectorizer(n_features=HASHED, alternate_sign=False, token_pattern=WORD)
    rules = {"surface": surface, "words": lambda texts: hashed.transform(texts).toarray()}
    return Vectors(rules[check_choice("baseline", name, rules)], f"baseline:{name}")


def load_frozen(
    kind: Any, name: str, dtype: str = "float32", *, optional: str = ""
) -> tuple[Any, Any, list[str]]:
    """Load a model of the Auto class `kind` for evaluation.

    Returns the model, its tokenizer, and the names of the weights that its files lack. Only weights
    of the module named `optional`, such as "pooler", may be missing. Raises `InputError` if others
    are, for a model of another class, and for weights in a pickle.
    """
    import torch

    import zoo
    from zoo.loading import load_tokenizer, opening
    from zoo.modeling import check_whole

    zoo.register(name)
    with opening(name, by=kind.__name__) as options:
        model, report = kind.from_pretrained(
            name, dtype=getattr(torch, dtype), output_loading_info=True, **options
        )
        missing = check_whole(model, report, name, optional)
    return model.eval(), load_tokenizer(name, model.config), missing


def class_with(method: str, auto: Any, name: str) -> Any:
    """The class of the model `name` in the Auto class `auto`; None if it lacks `method`."""
    from transformers import CONFIG_MAPPING

    import zoo
    from zoo.loading import model_type

    zoo.register(name)
    type_name = model_type(name)
    if type_name not in CONFIG_MAPPING:
        return None
    kind = auto._model_mapping.get(CONFIG_MAPPING[type_name], None)
    return kind if hasattr(kind, method) else None


class BackboneEncoder:
    """A frozen transformer or BiLSTM with its tokenizer; `load_encoder` opens one.

    `model` is any backbone that `AutoModel` loads, the `backbone` or `encoder` inside a model of
    the zoo, or the encoder of T5. The representation `auto` is the mean of the last layer's tokens,
    or the model's own vector if it has no layers to read. `name` and `folder` are what results say
    of the model, `cache` is a folder for its vectors, `batch_tokens` the tokens of a batch.

    `tokens` counts the tokens encoded so far, without padding and vectors from the cache.
    `trained_with` is "mean" for a model of the zoo that was trained on the mean of a text's tokens.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        representation: str = AUTO,
        *,
        name: str = "",
        folder: str = "",
        cache: Path | None = None,
        batch_tokens: int = 4096,
    ) -> None:
        from zoo.backbones import max_positions, pooling_of, warn_of_padding
        from zoo.modeling import best_device

        encoder: Any = getattr(model, "backbone", model)
        self.tokenizer, self.folder = tokenizer, folder
        self.model_type = str(model.config.model_type)
        self.model: PreTrainedModel = encoder.eval().to(best_device())
        self.trained_with = getattr(model.config, "vector", getattr(model.config, "pooling", ""))
        limits = (max_positions(encoder.config) or 0, self.tokenizer.model_max_length)
        self.max_tokens = min(limit for limit in limits if limit)
        self.representation = self.named(representation)
        self.name, self.batch_tokens = name or type(model).__name__, batch_tokens
        self.pooling = pooling_of(encoder.config, self.tokenizer)
        variant = cache and cache.with_name(f"{cache.name}-{encoder.dtype}-{self.max_tokens}")
        self.cache = VectorCache(variant)
        self.tokens = 0
        self._cut: set[bytes] = set()
        warn_of_padding(self.model)

    @property
    def truncated(self) -> int:
        """The number of distinct texts that were cut to the model's `max_tokens`."""
        return len(self._cut)

    def describe(self) -> dict[str, Any]:
        """The model in a result: name, type, precision, limit of tokens, number of texts cut."""
        return {
            "name": self.name,
            "type": self.model.config.model_type,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "max_tokens": self.max_tokens,
            "truncated": self.truncated,
        }

    @property
    def has_pooler(self) -> bool:
        """Whether the model has a sentence vector of its own, `pooled`."""
        return getattr(self.model, "pooler", None) is not None

    @property
    def layers(self) -> int:
        """The number of layers with hidden states to read, the embeddings not counted."""
        return int(getattr(self.model.config, "num_hidden_layers", 0) or 0)

    def named(self, representation: str) -> str:
        """The name of a representation; `auto` is replaced by `mean` or `pooled`.

        Raises `ConfigError` for a representation that the model does not have.
        """
        if representation == AUTO:
            return "mean" if self.layers else "pooled"
        layers = [f"{name}:{layer}" for name in ("mean", "cls") for layer in range(self.layers + 1)]
        if representation not in (*NAMES, *(layers if self.layers else ())):
            name = representation.partition(":")[0]
            raise ConfigError(
                f"no representation {representation!r}: the model has {self.layers} layers",
                hint=f"{nearest(name, NAMES)}they are: {', '.join(NAMES)}, mean:LAYER, cls:LAYER "
                "(0: the embeddings)",
            )
        return representation

    def encode(self, texts: Sequence[Text]) -> np.ndarray:
        """The float32 vectors of `texts`, `[texts, dim]`; a pair is encoded as one input."""
        return self.vectors(texts, [self.representation])[self.representation]

    def vectors(
        self, texts: Sequence[Text], representations: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Compute several representations of `texts` in one pass, `[texts, dim]` each.

        Each distinct text that the cache does not have is encoded once, in shards and batches of
        texts of similar length, and its vectors are added to the cache.
        """
        names = [self.named(name) for name in representations]
        keys = {text: digest(text) for text in dict.fromkeys(texts)}
        cached = {name: self.cache.read(name) for name in (*names, LENGTH)}
        missing = [
            text for text, key in keys.items() if any(key not in each for each in cached.values())
        ]
        ids, lengths = self.tokenize(missing)
        order = np.argsort(lengths, kind="stable").tolist()
        with show_progress("texts", len(order)) as progress:
            for start in range(0, len(order), SHARD):
                rows = order[start : start + SHARD]
                encoded = self.encode_ids([ids[row] for row in rows], names, progress)
                new_vectors = {**encoded, LENGTH: lengths[rows, None]}
                new_keys = [keys[missing[row]] for row in rows]
                for name, vectors in new_vectors.items():
                    cached[name].update(zip(new_keys, vectors, strict=True))
                self.cache.write(new_keys, new_vectors)
        self._cut.update(key for key in keys.values() if cached[LENGTH][key][0] > self.max_tokens)
        return {name: np.array([cached[name][keys[text]] for text in texts]) for name in names}

    def tokenize(self, texts: Sequence[Text]) -> tuple[list[dict[str, list[int]]], np.ndarray]:
        """Tokenise texts (all single or all pairs) and cut them to `max_tokens` ids.

        Returns the tokenizer's values of each text, and the lengths before the cut, `[texts]`.
        """
        if not texts:
            return [], np.zeros(0, np.float32)
        first = [_not_empty(text if isinstance(text, str) else text[0]) for text in texts]
        second = None if isinstance(texts[0], str) else [_not_empty(text[1]) for text in texts]
        columns = self.tokenizer(first, second, verbose=False)
        lengths = np.array([len(ids) for ids in columns["input_ids"]], np.float32)
        rows = [{name: columns[name][row] for name in columns} for row in range(len(texts))]
        for row in np.flatnonzero(lengths > self.max_tokens).tolist():
            second_text = second[row] if second else None
            limit = {"truncation": True, "max_length": self.max_tokens}
            rows[row] = dict(self.tokenizer(first[row], second_text, **limit))
        return rows, lengths

    def encode_ids(
        self,
        ids: Sequence[Mapping[str, Sequence[int]]],
        names: Sequence[str],
        progress: Loop | None = None,
    ) -> dict[str, np.ndarray]:
        """Encode tokenised texts; return their vectors by representation, `[texts, dim]` each.

        `ids` are the tokenizer's values of each text, `names` the representations. A batch has at
        most `batch_tokens` ids with padding. Raises `InputError` for vectors with NaN or infinity.
        """
        import torch
        from torch.nn.utils.rnn import pad_sequence

        lengths = [len(text["input_ids"]) for text in ids]
        self.tokens += sum(lengths)
        all_layers = any(name == "cls_mean" or ":" in name for name in names)
        options = {"output_hidden_states": True} if all_layers else {}
        vectors: dict[str, np.ndarray] = {}
        for rows in batches_by_length(lengths, self.batch_tokens, progress):
            inputs = {}
            for key in ids[0]:  # padded on the right
                padding = (self.tokenizer.pad_token_id or 0) if key == "input_ids" else 0
                values = [torch.tensor(ids[row][key]) for row in rows]
                inputs[key] = pad_sequence(values, True, padding).to(self.model.device)
            with torch.inference_mode():
                output = self.model(**inputs, **options)
                for name in names:
                    tensor = self._representation(output, inputs["attention_mask"], name)
                    batch = tensor.float().cpu().numpy()
                    finite(batch, f"the model gives vectors ({name})", self.name)
                    vectors.setdefault(name, np.empty((len(ids), batch.shape[1]), np.float32))
                    vectors[name][rows] = batch
        return vectors

    def _representation(self, output: Any, mask: Tensor, name: str) -> Tensor:
        """The representation `name` of a batch, `[batch, dim]`, from the model's output."""
        import torch

        from zoo.backbones import pooled

        kind, _, number = name.partition(":")
        needed = "hidden_states" if kind == "cls_mean" or number else "last_hidden_state"
        states = getattr(output, "pooler_output" if kind == "pooled" else needed, None)
        if states is None:
            lacking = {"pooled": "pooled vector", "mean": "vectors of tokens"}.get(kind, "layers")
            raise ConfigError(
                f"the model has no {lacking}",
                where=f"{self.name}, representation {name}",
                hint=f"choose another representation: {', '.join(NAMES)}",
                field="representation",
            )
        if kind == "pooled":
            return states
        if kind == "cls_mean":
            layers = [pooled(layer.float(), mask, self.pooling) for layer in states]
            return torch.stack(layers).mean(0)
        states = states[int(number)] if number else states
        return pooled(states.float(), mask, "mean" if kind == "mean" else self.pooling)


def load_encoder(
    name: str,
    representation: str = AUTO,
    *,
    cache: Path | str | None = None,
    dtype: str = "float32",
    batch_tokens: int = 4096,
) -> BackboneEncoder:
    """Load the frozen encoder in a model folder or of a Hub id.

    `cache` is a folder for vectors, with a subfolder for each model; `batch_tokens` is the most
    tokens of a batch, padding included. Raises `InputError` for a model folder without safetensors
    or tokenizer.
    """
    import zoo
    from zoo.backbones import text_encoding
    from zoo.loading import load_config

    zoo.register(name)
    kind = text_encoding(load_config(name))
    model, tokenizer, missing = load_frozen(kind, name, dtype, optional="pooler")
    if missing:  # the pooler, whose weights were drawn at random
        getattr(model, "backbone", model).pooler = None
    key = model_key(name, getattr(model.config, "_commit_hash", None))
    return BackboneEncoder(
        model,
        tokenizer,
        representation,
        name=Path(name).name,
        folder=name,
        cache=Path(cache) / key[:24] if cache and key else None,
        batch_tokens=batch_tokens,
    )


SentenceEncoder = BackboneEncoder | Vectors
"""An encoder of texts to vectors `[texts, dim]`; the texts are all single, or all pairs."""


def layers_to_judge(encoder: SentenceEncoder, vectors: str) -> range:
    """The layers of an encoder to judge one by one, by the vector `mean` (of the tokens) or `cls`.

    With `mean` they begin with 0, the embeddings. With `cls` they begin with 1: the embedding of
    [CLS] is the same vector in every text.
    """
    return range(1 if vectors == "cls" else 0, encoder.layers + 1)


def _not_empty(text: str) -> str:
    return text if text.strip() else EMPTY


# Vectors on disk: an encoder encodes each text once for all suites.

DIGEST = 16
"""The number of bytes of a text's key."""
SUFFIX = ".safetensors"
DEFINING = ("*.safetensors", "config.json", "tokenizer*", "vocab*", "merges*", "*.model")
"""The files of a model folder on which its vectors depend."""


def digest(text: Text) -> bytes:
    """The key of a text, or of a pair of texts, in the cache: a hash of 16 bytes."""
    parts = [text] if isinstance(text, str) else text
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    # Each part starts with its length, so that no two lists of parts give the same bytes.
    content = b"".join(b"%d:" % len(part) + part for part in encoded)
    return hashlib.sha256(content).digest()[:DIGEST]


def model_key(model: str, commit: str | None) -> str:
    """A hash of a model folder's files, or of a Hub id and its commit; "" without a commit."""
    if not Path(model).is_dir():
        return hashlib.sha256(f"{model}@{commit}".encode()).hexdigest() if commit else ""
    files = sorted({file for pattern in DEFINING for file in Path(model).glob(pattern)})
    lines = [f"{file.name} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class VectorCache:
    """The vectors of one model on disk, by representation and text; without `folder` it is empty.

    A representation is a folder of shards, each written by one rename. A shard has `keys
    [texts, 16]`, the digests of the texts, and `vectors [texts, dim]`.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._vectors: dict[str, dict[bytes, np.ndarray]] = {}

    def read(self, representation: str) -> dict[bytes, np.ndarray]:
        """Read the vectors of a representation, `[dim]` each, by the digests of their texts."""
        from safetensors.numpy import load_file

        if self.folder is None:
            return {}
        vectors = self._vectors.setdefault(representation, {})
        folder = self.folder / representation.replace(":", "-")
        for path in sorted(folder.glob(f"*{SUFFIX}")) if not vectors else ():
            shard = load_file(path)
            vectors.update(zip(map(bytes, shard["keys"]), shard["vectors"], strict=True))
        return vectors

    def write(self, keys: Sequence[bytes], vectors: Mapping[str, np.ndarray]) -> None:
        """Write a shard of each representation's vectors `[texts, dim]` for the texts of `keys`."""
        from safetensors.numpy import save

        if self.folder is None:
            return
        key_bytes = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), DIGEST)
        name = f"{hashlib.sha256(key_bytes.tobytes()).hexdigest()[:24]}{SUFFIX}"
        for representation, values in vectors.items():
            with replacing(self.folder / representation.replace(":", "-") / name) as partial:
                content = np.ascontiguousarray(values, np.float32)
                partial.write_bytes(save({"keys": key_bytes, "vectors": content}))
