"""Convert the released TensorFlow checkpoint to a model folder of this zoo.

Only this module needs TensorFlow: `pip install 'discorpora[tensorflow]'`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

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
RENAMED = (
    (r"^bert/embeddings/(word|position|token_type)_embeddings$", r"\g<0>/kernel"),
    (rf"^({UNI}|(cpc_loss/)?cpc_weights)$", "relations/kernel"),
    (r"^cls/predictions/output_bias$", "masked_words/bias"),
    (r"^cls/predictions/transform/LayerNorm/", "masked_words/norm/"),
    (r"^cls/predictions/transform/", "masked_words/"),
    (r"^bert/encoder/layer_(\d+)/", r"backbone/encoder/layer/\1/"),
    (r"^bert/", "backbone/"),
)
"""Prefixes of the released code's names, and ours."""
ENDINGS = {"gamma": "weight", "beta": "bias", "bias": "bias", "kernel": "weight"}
TURNED = re.compile(rf"/kernel$|^{UNI}$")
"""Matrices that are transposed in the checkpoint."""
ENCODERS = ("full", "isolated")
LEFT_OUT = re.compile(r"adam_[mv]|Adam|global_step|cls/seq_relationship|_CHECKPOINTABLE")
"""The optimizer's state, and BERT's head for the next sentence, which CONPONO does not use."""
PATH_HINT = "give the path without .index or .data-00000-of-00001, or the folder"
BERT_HINT = "it is a file of the original BERT; vocab.txt is beside its config"


def convert(
    checkpoint: Path,
    folder: Path,
    *,
    encoder: str = "full",
    vocabulary: Path | None = None,
    config: Path | None = None,
    lower: bool = True,
) -> dict[str, Any]:
    """Write the model folder `folder` from a released checkpoint; returns its content.

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
    where = str(checkpoint)
    if not checkpoint.is_dir() and not checkpoint.with_name(f"{checkpoint.name}.index").is_file():
        raise InputError("there is no TensorFlow checkpoint", where=where, hint=PATH_HINT)
    beside = checkpoint if checkpoint.is_dir() else checkpoint.parent
    config, vocabulary = config or beside / "bert_config.json", vocabulary or beside / "vocab.txt"
    for option, path in {"config": config, "vocabulary": vocabulary}.items():
        if not path.is_file():
            hint = f"give it with --{option}: {BERT_HINT}"
            raise InputError("no such file", where=str(path), hint=hint)
    settings = read_config(config)
    ids = read_vocabulary(vocabulary, settings.vocab_size)
    model = to_model(open_checkpoint(checkpoint), settings, encoder, where)
    tokenizer = BertTokenizer(vocab=ids, do_lower_case=lower)
    tokenizer.model_max_length = settings.max_position_embeddings
    about = {
        "converted_from": checkpoint.name,
        "model_type": model.config.model_type,
        "encoder": model.config.encoder,
        "k": model.config.k,
        "parameters": parameter_count(model),
    }
    with staged(folder) as partial:
        save_model(model, tokenizer, partial)
        write_json(partial / MANIFEST, about)
    return about


def open_checkpoint(checkpoint: Path) -> Any:
    """TensorFlow's reader of a checkpoint (`model.ckpt-50000`, or its folder).

    Raises `ConfigError` without TensorFlow, `InputError` if there is no checkpoint.
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
        problem = f"no TensorFlow checkpoint: {str(error).splitlines()[0]}"
        raise InputError(problem, where=str(checkpoint), hint=PATH_HINT) from error


def read_config(path: Path) -> BertConfig:
    """BERT's configuration. Raises `InputError` for an invalid file."""
    try:
        return BertConfig(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, StrictDataclassError) as error:
        problem = f"is not a configuration of BERT: {str(error).strip().splitlines()[0]}"
        raise InputError(problem, where=str(path), hint=BERT_HINT) from error


def read_vocabulary(path: Path, size: int) -> dict[str, int]:
    """The id of each word of a `vocab.txt` (one word in each line).

    Raises `InputError` unless there are `size` distinct words.
    """
    try:
        # Not splitlines, which also splits at characters that are words of a vocabulary.
        words = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        if len(words) != size:
            raise ValueError(f"{len(words)} words, the configuration has vocab_size = {size}")
        word, count = Counter(words).most_common(1)[0]
        if count > 1:
            raise ValueError(f"{word!r} occurs twice")
    except ValueError as error:  # also if it is not UTF-8
        raise InputError(str(error), where=str(path), hint=BERT_HINT) from error
    return {word: number for number, word in enumerate(words)}


def to_model(reader: Any, config: BertConfig, encoder: str, where: str) -> ConponoModel:
    """The model with the weights of a checkpoint that TensorFlow's `reader` has opened.

    Raises `InputError` for a variable that is missing, unknown, or of another shape.
    """
    weights: dict[str, torch.Tensor] = {}
    names = [name for name in reader.get_variable_to_shape_map() if not LEFT_OUT.search(name)]
    for name in sorted(names):
        tensor = torch.from_numpy(np.array(reader.get_tensor(name)))
        turned = tensor.T.contiguous() if TURNED.search(name) else tensor
        weights[rename(name, where)] = turned
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
    model = ConponoModel.from_backbone(
        AutoModel.from_config(config),
        encoder="uni" if UNI in names else encoder,
        k=max(1, len(weights["relations.weight"]) // 2),
        max_tokens=config.max_position_embeddings,
        mlm="masked_words.dense.weight" in weights,
        pad_token_id=config.pad_token_id,
    )
    asked, there = (
        {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        for tensors in (model.state_dict(), weights)
    )
    for name in sorted({*asked, *there}):
        if asked.get(name) != there.get(name):
            one, two = asked.get(name, "none"), there.get(name, "none")
            raise InputError(
                f"{name}: expected {one} by the configuration, found {two} in the checkpoint",
                where=where,
                hint="give the bert_config.json of this checkpoint",
            )
    model.load_state_dict(weights)
    return model


def rename(name: str, where: str = "") -> str:
    """The name in this model of a variable of the released code. Raises `InputError`."""
    known = name
    for pattern, replacement in RENAMED:
        known = re.sub(pattern, replacement, known)
    path, _, ending = known.rpartition("/")
    if known == name or ending not in ENDINGS:
        raise InputError(
            f"the checkpoint has an unknown variable: {name!r}",
            where=where,
            hint="only CONPONO's checkpoints are read (BERT, pooler, cpc_weights)",
        )
    return f"{path.replace('/', '.')}.{ENDINGS[ending]}"
