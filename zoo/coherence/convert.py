"""Import of the authors' checkpoints (ntunlp/coherence-paradigm) into a model folder."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer

from corpora.code import versions
from corpora.errors import InputError
from corpora.store.atomic import MANIFEST, sha256, staged, write_json
from zoo.coherence.modeling import CoherenceScorer
from zoo.modeling import save_model
from zoo.training.job import LIBRARIES

ENCODERS = ("main_encoder.", "model.")
"""The prefixes of the encoder's weights: in the full model, and in the two smaller ones."""

HEAD = "conlinear."
LEFT_OUT = ("momentum_encoder.",)
"""Only training needs it."""
BUFFERS = ("position_ids", "token_type_ids")
"""The last part of names that transformers before 4.31 stored too: numbers, not weights."""


def convert(
    checkpoint: Path, output: Path, backbone: str = "xlnet/xlnet-base-cased", max_tokens: int = 600
) -> list[str]:
    """Write the model folder `output` from the state dict in `checkpoint`.

    `backbone` (a folder or Hub id) gives configuration and tokenizer. Returns what was left out.
    Raises `InputError` for a file that is no plain state dict, or names other weights.
    """
    state = read_state(checkpoint)
    encoder, head, left_out = split_state(state, str(checkpoint))
    config = AutoConfig.from_pretrained(backbone)
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    model = CoherenceScorer.from_backbone(
        AutoModel.from_config(config, dtype=torch.float32), max_tokens, tokenizer.pad_token_id
    )
    _load(model.backbone, encoder, checkpoint, backbone)
    _load(model.score_head, head, checkpoint, backbone)
    with staged(output) as partial:
        save_model(model, tokenizer, partial)
        write_json(
            partial / MANIFEST,
            {
                "made_by": "discorpora convert coherence",
                "checkpoint": {"file": checkpoint.name, "sha256": sha256(checkpoint)},
                "backbone": Path(backbone).name if Path(backbone).is_dir() else backbone,
                "left_out": left_out,
                "versions": versions(*LIBRARIES),
            },
        )
    return left_out


def read_state(checkpoint: Path) -> dict[str, Tensor]:
    """The tensors of a `.pt` file; nothing but tensors and plain containers is unpickled."""
    if not checkpoint.is_file():
        raise InputError("no such checkpoint", where=str(checkpoint))
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise InputError(
            f"cannot be read as weights alone: {str(error).splitlines()[0]}",
            where=str(checkpoint),
            hint="it must be a state dict (torch.save(model.state_dict(), ...)); a pickled model "
            "is refused, since loading one can run any code",
        ) from error
    if isinstance(state, Mapping) and "state_dict" in state:
        state = state["state_dict"]
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise InputError("is no state dict: names with tensors", where=str(checkpoint))
    return {str(name).removeprefix("module."): value for name, value in state.items()}


def split_state(
    state: Mapping[str, Tensor], where: str
) -> tuple[dict[str, Tensor], dict[str, Tensor], list[str]]:
    """The encoder's weights, the head's, and the prefixes of those that are left out."""
    prefix = next((p for p in ENCODERS if any(name.startswith(p) for name in state)), None)
    if prefix is None or not any(name.startswith(HEAD) for name in state):
        known = ", ".join(f"{p}*" for p in (*ENCODERS, HEAD))
        raise InputError(
            f"holds neither of the authors' models: its names begin {sorted(state)[:3]}",
            where=where,
            hint=f"expected weights named {known}",
        )
    encoder = {name.removeprefix(prefix): v for name, v in state.items() if name.startswith(prefix)}
    head = {name.removeprefix(HEAD): v for name, v in state.items() if name.startswith(HEAD)}
    others = [name for name in state if not name.startswith((prefix, HEAD))]
    strange = [name for name in others if not name.startswith(LEFT_OUT)]
    if strange:
        raise InputError(f"holds weights that have no place: {strange[:3]}", where=where)
    return encoder, head, sorted({name.partition(".")[0] for name in others})


def _load(module: torch.nn.Module, state: Mapping[str, Tensor], file: Path, backbone: str) -> None:
    state = {name: v for name, v in state.items() if name.rpartition(".")[2] not in BUFFERS}
    wanted = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in state.items()}
    if wanted != found:
        differ = sorted(n for n in {*wanted, *found} if wanted.get(n) != found.get(n))
        name = differ[0]
        raise InputError(
            f"its weights do not fit the backbone {backbone}: {name} is {found.get(name)}, "
            f"expected {wanted.get(name)} ({len(differ)} differ)",
            where=str(file),
            hint="name the backbone that it was trained with: --backbone FOLDER_OR_ID",
        )
    module.load_state_dict(state)
