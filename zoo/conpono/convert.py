"""The released TensorFlow checkpoint as a model folder of this zoo.

TensorFlow is asked for here alone: `pip install 'discorpora[tensorflow]'`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoModel, BertConfig, BertTokenizer

from corpora.errors import ConfigError, InputError, nearest
from corpora.store.atomic import MANIFEST, staged, write_json
from zoo.conpono.modeling import ConponoModel
from zoo.modeling import parameter_count, save_model

UNI = "cpc_loss/softmax_weights"
"""The uni-encoder's `[width, 2K]`; the other encoders have cpc_weights `[2K, width, width]`."""

PLAIN = {
    "bert/embeddings/word_embeddings": "backbone.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "backbone.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "backbone.embeddings.token_type_embeddings.weight",
    "cls/predictions/output_bias": "masked_words.bias",
    "cpc_loss/cpc_weights": "relations.weight",
    "cpc_weights": "relations.weight",
    UNI: "relations.weight",
}
RENAMED = (
    (re.compile(r"^bert/encoder/layer_(\d+)/"), r"backbone.encoder.layer.\1."),
    (re.compile(r"^bert/"), "backbone."),
    (re.compile(r"^cls/predictions/transform/LayerNorm/"), "masked_words.norm."),
    (re.compile(r"^cls/predictions/transform/"), "masked_words."),
)
ENDINGS = {"gamma": "weight", "beta": "bias", "bias": "bias", "kernel": "weight"}
TURNED = re.compile(rf"/kernel$|^{UNI}$")
"""Matrices that the checkpoint has the other way round."""
ENCODERS = ("full", "isolated")
LEFT_OUT = re.compile(r"adam_[mv]|Adam|global_step|cls/seq_relationship|_CHECKPOINTABLE")
"""The optimizer's state, and BERT's head for the next sentence, which CONPONO does not use."""


class Reader(Protocol):
    """What `tf.train.load_checkpoint` returns."""

    def get_variable_to_shape_map(self) -> dict[str, list[int]]: ...

    def get_tensor(self, name: str) -> np.ndarray: ...


def open_checkpoint(checkpoint: Path) -> Reader:
    """TensorFlow's reader of a checkpoint (`model.ckpt-50000`, or a folder that holds one).

    Raises `ConfigError` without TensorFlow, `InputError` where no checkpoint is.
    """
    try:
        import tensorflow
    except ImportError as error:
        raise ConfigError(
            "reading a TensorFlow checkpoint needs TensorFlow",
            hint="pip install 'discorpora[tensorflow]'",
        ) from error
    try:
        return tensorflow.train.load_checkpoint(str(checkpoint))
    except (ValueError, tensorflow.errors.OpError) as error:
        raise InputError(
            f"no TensorFlow checkpoint: {str(error).splitlines()[0]}",
            where=str(checkpoint),
            hint="give the path without .index or .data-00000-of-00001",
        ) from error


def convert(
    checkpoint: Path,
    folder: Path,
    *,
    encoder: str = "full",
    vocabulary: Path | None = None,
    config: Path | None = None,
    lower: bool = True,
) -> dict[str, Any]:
    """Write the model folder `folder` from a released checkpoint; returns what it holds.

    `config` is BERT's `bert_config.json` and `vocabulary` its `vocab.txt`, looked for beside the
    checkpoint. Full and isolated encoders have the same weights: `encoder` says which it was; a
    uni-encoder's are others, and are known by their name.

    Raises `ConfigError` for another `encoder`, `InputError` for files that are absent, broken or
    do not belong together.
    """
    if encoder not in ENCODERS:
        raise ConfigError(
            f"no encoder {encoder!r}",
            where="encoder",
            hint=f"{nearest(encoder, ENCODERS)}give one of {', '.join(ENCODERS)}; a uni-encoder is "
            "known by its weights",
        )
    checkpoint = Path(checkpoint)
    if not checkpoint.is_dir() and not checkpoint.with_name(f"{checkpoint.name}.index").is_file():
        raise InputError(
            "no TensorFlow checkpoint is there",
            where=str(checkpoint),
            hint="give the path without .index or .data-00000-of-00001, or the folder",
        )
    beside = checkpoint if checkpoint.is_dir() else checkpoint.parent
    settings = read_config(_found(config, beside / "bert_config.json", "config"))
    words = _found(vocabulary, beside / "vocab.txt", "vocabulary")
    ids = read_vocabulary(words, settings.vocab_size)
    model = to_model(open_checkpoint(checkpoint), settings, encoder, where=str(checkpoint))
    tokenizer = BertTokenizer(vocab=ids, do_lower_case=lower)
    tokenizer.model_max_length = settings.max_position_embeddings
    about = {
        "converted_from": checkpoint.name,
        "model_type": model.config.model_type,
        "encoder": model.config.encoder,
        "k": model.config.k,
        "parameters": parameter_count(model),
    }
    with staged(Path(folder)) as partial:
        save_model(model, tokenizer, partial)
        write_json(partial / MANIFEST, about)
    return about


def read_config(path: Path) -> BertConfig:
    """BERT's configuration. Raises `InputError` for a file that is none."""
    try:
        return BertConfig(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, StrictDataclassError) as error:
        raise InputError(
            f"is no configuration of a BERT: {str(error).strip().splitlines()[0]}",
            where=str(path),
            hint="take bert_config.json from the files of the BERT that was trained on",
        ) from error


def read_vocabulary(path: Path, size: int) -> dict[str, int]:
    """The id of each word of a `vocab.txt`, one a line.

    Raises `InputError` unless there are `size` of them, all distinct.
    """
    try:
        # Not splitlines: it would also part at characters that are words of a vocabulary.
        words = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"is no vocabulary in UTF-8: {error}", where=str(path)) from error
    problem = ""
    if len(words) != size:
        problem = f"{len(words)} words, the configuration has vocab_size = {size}"
    elif len(set(words)) != size:
        problem = f"{Counter(words).most_common(1)[0][0]!r} stands there twice"
    if problem:
        raise InputError(
            problem,
            where=str(path),
            hint="take the vocab.txt that lies beside the bert_config.json of that checkpoint",
        )
    return {word: number for number, word in enumerate(words)}


def to_model(reader: Reader, config: BertConfig, encoder: str, where: str) -> ConponoModel:
    """The model with a checkpoint's weights.

    Raises `InputError` for a variable that is missing, has another shape, or is not known.
    """
    found = dict(_weights(reader, where))
    if "relations.weight" not in found:
        raise InputError(
            "this checkpoint has no cpc_weights or softmax_weights: it is no CONPONO model",
            where=where,
            hint="a plain BERT is loaded by AutoModel, and needs no conversion",
        )
    uni = UNI in reader.get_variable_to_shape_map()
    if uni and encoder == "isolated":
        raise ConfigError(
            "this checkpoint's encoder is the uni-encoder, not the isolated one",
            where=where,
            hint="leave out --encoder",
        )
    model = ConponoModel.from_backbone(
        AutoModel.from_config(config),
        encoder="uni" if uni else encoder,
        k=max(1, len(found["relations.weight"]) // 2),
        max_tokens=config.max_position_embeddings,
        mlm="masked_words.dense.weight" in found,
        pad_token_id=config.pad_token_id,
    )
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items()}
    for name in sorted({*wanted, *found}):
        if name not in found or name not in wanted or found[name].shape != wanted[name]:
            shapes = [tuple(s) if s else "none" for s in (wanted.get(name), _shape(found, name))]
            raise InputError(
                f"{name}: the configuration asks for {shapes[0]}, the checkpoint has {shapes[1]}",
                where=where,
                hint="is this the bert_config.json of that checkpoint?",
            )
    model.load_state_dict(found)
    return model


def _weights(reader: Reader, where: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The checkpoint's variables under this model's names, kernels turned."""
    for name in sorted(reader.get_variable_to_shape_map()):
        if LEFT_OUT.search(name):
            continue
        tensor = torch.from_numpy(np.array(reader.get_tensor(name)))
        yield rename(name, where), tensor.T.contiguous() if TURNED.search(name) else tensor


def rename(name: str, where: str = "") -> str:
    """The name in this model of a variable of the released code. Raises `InputError`."""
    if name in PLAIN:
        return PLAIN[name]
    path, _, ending = name.rpartition("/")
    for pattern, replacement in RENAMED:
        if ending in ENDINGS and pattern.match(f"{path}/"):
            known = pattern.sub(replacement, f"{path}/").rstrip("/.")
            return f"{known.replace('/', '.')}.{ENDINGS[ending]}"
    raise InputError(
        f"the checkpoint has a variable that is not known: {name!r}",
        where=where,
        hint="only CONPONO's own checkpoints are read (BERT, pooler, cpc_weights)",
    )


def _shape(found: dict[str, torch.Tensor], name: str) -> torch.Size | None:
    return found[name].shape if name in found else None


def _found(given: Path | None, beside: Path, option: str) -> Path:
    path = Path(given) if given else beside
    if not path.is_file():
        raise InputError(
            f"no {beside.name}",
            where=str(path),
            hint=f"give it with --{option}: it is among the files of the BERT that was trained on",
        )
    return path
