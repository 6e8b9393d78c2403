"""Import of the authors' checkpoints (ntunlp/coherence-paradigm) into a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModel

from corpora.code import versions
from corpora.errors import InputError, unreadable
from corpora.store.atomic import MANIFEST, sha256, staged, write_json
from zoo.coherence.modeling import CoherenceScorer
from zoo.loading import load_config, load_tokenizer
from zoo.modeling import save_model
from zoo.training.job import LIBRARIES

PARTS = {"main_encoder.": "backbone.", "model.": "backbone.", "conlinear.": "score_head."}
"""How the authors' names of weights begin, and ours: the encoder of the full model, that of the two
smaller models, and the scoring layer.
"""

LEFT_OUT = "momentum_encoder."
"""Prefix of the weights that only training needs."""
BUFFERS = ("position_ids", "token_type_ids")
"""Last parts of the names of buffers that transformers before 4.31 stored beside the weights."""


def convert(
    checkpoint: Path, output: Path, backbone: str = "xlnet/xlnet-base-cased", max_tokens: int = 600
) -> list[str]:
    """Convert the authors' `checkpoint`, a state dict, to a model folder `output`.

    `backbone` (a folder or Hub id) gives configuration and tokenizer. Returns the names of parts
    that only training needs and that were left out. Raises `InputError` for a file that is not a
    plain state dict, or has other weights.
    """
    # Weights under the names of this model
    state = read_state(checkpoint)
    weights: dict[str, Tensor] = {}
    for name, value in state.items():
        if name.rpartition(".")[2] not in BUFFERS and not name.startswith(LEFT_OUT):
            part = next((part for part in PARTS if name.startswith(part)), "")
            weights[PARTS.get(part, "") + name.removeprefix(part)] = value
    # Model and tokenizer
    config = load_config(backbone)
    tokenizer = load_tokenizer(backbone, config)
    model = CoherenceScorer.from_backbone(
        AutoModel.from_config(config, dtype=torch.float32), max_tokens, tokenizer.pad_token_id
    )
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:  # it names each weight that is missing, or of another shape
        raise InputError(
            f"its weights do not fit the backbone {backbone}: {' '.join(str(error).split())[:300]}",
            where=str(checkpoint),
            hint="name the backbone that it was trained with, --backbone FOLDER_OR_ID; expected "
            f"weights named {', '.join(f'{part}*' for part in PARTS)}",
        ) from error
    # The folder
    left_out = [LEFT_OUT.rstrip(".")] if any(name.startswith(LEFT_OUT) for name in state) else []
    with staged(output) as partial:
        save_model(model, tokenizer, partial)
        write_json(
            partial / MANIFEST,
            {
                "made_by": "discorpora convert coherence",
                "checkpoint": {"file": checkpoint.name, "sha256": sha256(checkpoint)},
                "backbone": Path(backbone).absolute().name if Path(backbone).is_dir() else backbone,
                "left_out": left_out,
                "versions": versions(*LIBRARIES),
            },
        )
    return left_out


def read_state(checkpoint: Path) -> dict[str, Tensor]:
    """Return the tensors in a `.pt` file by name; it is unpickled without running code. Raises
    `InputError` for a file that has more than tensors and plain containers."""
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:  # bytes that are not a pickle raise many kinds of errors
        hint = "it must be a state dict (torch.save(model.state_dict(), ...)); a pickled model is "
        hint += "rejected, because loading one can run any code"
        raise unreadable(error, checkpoint, hint) from error
    if isinstance(state, Mapping) and "state_dict" in state:
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise InputError("is not a state dict (names with tensors)", where=str(checkpoint))
    return {str(name).removeprefix("module."): value for name, value in state.items()}
