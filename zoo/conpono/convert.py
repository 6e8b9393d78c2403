"""Convert the released TensorFlow checkpoint to a model folder of this zoo.

Only this module needs TensorFlow: `pip install 'discorpora[tensorflow]'`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoModel, BertConfig, BertTokenizer

from corpora.errors import ConfigError, InputError, nearest, require, unreadable
from corpora.outside import read_json
from corpora.store.atomic import MANIFEST, staged, write_json
from zoo.conpono.modeling import ConponoModel
from zoo.modeling import parameter_count, save_model

UNI = "cpc_loss/softmax_weights"
"""The uni-encoder's `[width, 2K]`; the other encoders have cpc_weights `[2K, width, width]`."""
RENAMES = (
    (r"^bert/embeddings/(word|position|token_type)_embeddings$", r"\g<0>/kernel"),
    (rf"^({UNI}|(cpc_loss/)?cpc_weights)$", "relations/kernel"),
    (r"^cls/predictions/output_bias$", "masked_words/bias"),
    (r"^cls/predictions/transform/LayerNorm/", "masked_words/norm/"),
    (r"^cls/predictions/transform/", "masked_words/"),
    (r"^bert/encoder/layer_(\d+)/", r"backbone/encoder/layer/\1/"),
    (r"^bert/", "backbone/"),
)
"""Patterns in the released code's names, and what replaces them: `bert/encoder/layer_3/attention`
becomes `backbone/encoder/layer/3/attention`.
"""
ENDINGS = {"gamma": "weight", "beta": "bias", "bias": "bias", "kernel": "weight"}
"""The last part of the released code's names, and ours."""
TRANSPOSED = re.compile(rf"/kernel$|^{UNI}$")
"""Matrices that are transposed in the checkpoint: `cls/predictions/transform/dense/kernel`."""
ENCODERS = ("full", "isolated")
LEFT_OUT = re.compile(r"adam_[mv]|Adam|global_step|cls/seq_relationship|_CHECKPOINTABLE")
"""The optimizer's state, and BERT's head for the next sentence, which CONPONO does not use."""
BERT_HINT = "it is a file of the original BERT: give it with --config or --vocabulary"


def convert(
    checkpoint: Path,
    folder: Path,
    *,
    encoder: str = "full",
    vocabulary: Path | None = None,
    config: Path | None = None,
    lower: bool = True,
) -> dict[str, Any]:
    """Write the model folder `folder` from a released checkpoint; returns its manifest.

    `config` is BERT's `bert_config.json` and `vocabulary` its `vocab.txt`, by default beside the
    checkpoint. Full and isolated encoders have the same weights: `encoder` says which it was; a
    uni-encoder is recognised by its weights.

    Raises `ConfigError` for another `encoder`, `InputError` for files that are missing, damaged or
    do not fit together.
    """
    if encoder not in ENCODERS:
        raise ConfigError(
            f"no encoder {encoder!r}",
            where="encoder",
            hint=f"{nearest(encoder, ENCODERS)}give one of {', '.join(ENCODERS)}; a uni-encoder is "
            "recognised by its weights",
        )
    # Configuration, vocabulary, model
    directory = checkpoint if checkpoint.is_dir() else checkpoint.parent
    config = config or directory / "bert_config.json"
    try:
        settings = BertConfig(**read_json(config, BERT_HINT))
    except (TypeError, StrictDataclassError) as error:
        problem = f"is not a configuration of BERT: {str(error).strip().splitlines()[0]}"
        raise InputError(problem, where=str(config), hint=BERT_HINT) from error
    ids = read_vocabulary(vocabulary or directory / "vocab.txt", settings.vocab_size)
    model = to_model(open_checkpoint(checkpoint), settings, encoder, str(checkpoint))
    tokenizer = BertTokenizer(vocab=ids, do_lower_case=lower)
    tokenizer.model_max_length = settings.max_position_embeddings
    # The folder
    manifest = {
        "converted_from": checkpoint.name,
        "model_type": model.config.model_type,
        "encoder": model.config.encoder,
        "k": model.config.k,
        "parameters": parameter_count(model),
    }
    with staged(folder) as partial:
        save_model(model, tokenizer, partial)
        write_json(partial / MANIFEST, manifest)
    return manifest


def open_checkpoint(checkpoint: Path) -> Any:
    """Return TensorFlow's reader of a checkpoint (`model.ckpt-50000`, or its folder).

    Raises `DiscorporaError` without TensorFlow, `InputError` if there is no checkpoint.
    """
    tensorflow = require("tensorflow", "tensorflow", "to read a TensorFlow checkpoint")
    try:
        return tensorflow.train.load_checkpoint(str(checkpoint))
    except (ValueError, tensorflow.errors.OpError) as error:
        hint = "give a checkpoint's path without .index or .data-00000-of-00001, or its folder"
        raise unreadable(error, checkpoint, hint) from error


def read_vocabulary(path: Path, size: int) -> dict[str, int]:
    """Return the id of each word of a `vocab.txt`, which has one word in each line.

    Raises `InputError` unless there are `size` distinct words.
    """
    try:
        # Not splitlines, which also splits at characters that are words of a vocabulary.
        words = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if not len(set(words)) == len(words) == size:
            counts = f"{len(words)} words, {len(set(words))} different ones"
            raise ValueError(f"{counts}: the configuration has vocab_size = {size}")
    except (OSError, ValueError) as error:  # also if it is not UTF-8
        raise InputError(str(error), where=str(path), hint=BERT_HINT) from error
    return {word: number for number, word in enumerate(words)}


def to_model(reader: Any, config: BertConfig, encoder: str, where: str) -> ConponoModel:
    """Return the model with the weights of a checkpoint that TensorFlow's `reader` has opened.

    Raises `InputError` for a variable that is missing, unknown, or of another shape.
    """
    # Weights under the names of this model
    weights: dict[str, torch.Tensor] = {}
    names = [name for name in reader.get_variable_to_shape_map() if not LEFT_OUT.search(name)]
    for name in sorted(names):
        tensor = torch.from_numpy(np.array(reader.get_tensor(name)))
        weights[new_name(name)] = tensor.T.contiguous() if TRANSPOSED.search(name) else tensor
    if "relations.weight" not in weights:
        raise InputError(
            "this checkpoint has no cpc_weights or softmax_weights, so it is not a CONPONO model",
            where=where,
            hint="AutoModel loads a plain BERT without conversion",
        )
    if UNI in names and encoder == "isolated":
        raise ConfigError(
            "this checkpoint's encoder is the uni-encoder, not the isolated one",
            where=where,
            hint="leave out --encoder",
        )
    # The model; its settings follow from the weights.
    model = ConponoModel.from_backbone(
        AutoModel.from_config(config),
        encoder="uni" if UNI in names else encoder,
        k=max(1, len(weights["relations.weight"]) // 2),
        max_tokens=config.max_position_embeddings,
        mlm="masked_words.dense.weight" in weights,
        pad_token_id=config.pad_token_id,
    )
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        hint = "give the bert_config.json of this checkpoint; only CONPONO's checkpoints are read"
        raise InputError(" ".join(str(error).split()), where=where, hint=hint) from error
    return model


def new_name(name: str) -> str:
    """Return our name of the weight that is the variable `name` in the released code."""
    for pattern, replacement in RENAMES:
        name = re.sub(pattern, replacement, name)
    path, _, ending = name.rpartition("/")
    return f"{path.replace('/', '.')}.{ENDINGS.get(ending, ending)}"
