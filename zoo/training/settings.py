"""The settings that every recipe shares; a recipe's own `Settings` adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

NOT_IDENTITY = frozenset(
    {"dataset", "dataset_config", "output", "logging_steps", "report_to", "keep_checkpoints"}
)
"""Settings that change no weight. The dataset counts by its revision and its configuration."""


Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeast0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Words = Annotated[int, Field(ge=3)]
"""Of a vocabulary: padding, the unknown word, and one more."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What every run needs. Every name is a key of the TOML and an option `--name value`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"coerce_numbers_to_str": True}
    """A folder may be called 2026."""

    dataset: str
    """A dataset folder, or a Hub id; `@CONFIG` at the end names its configuration."""
    output: str
    """The model folder; it appears by one rename when everything in it is written."""
    dataset_config: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    threads: Positive = 1
    """Threads of torch on CPU. A sum's rounding depends on it, so it is part of the run."""
    deterministic: bool = True
    """Deterministic kernels where torch has them; on a GPU its fused attention stays as it is."""
    max_train_rows: Count = 0
    """Train on so many rows only, spread evenly over the split (0: all)."""
    max_eval_rows: Count = 0
    """Evaluate on so many rows of a split, spread evenly over it (0: all)."""


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """What a run needs that takes one optimizer step after the other."""

    epochs: Above0 = 1.0
    max_steps: Annotated[int, Field(ge=-1)] = -1
    """Optimizer steps in all; when positive it replaces `epochs`."""
    batch_size: Positive = 32
    eval_batch_size: Positive = 64
    gradient_accumulation: Positive = 1
    learning_rate: Above0 = 2e-5
    weight_decay: AtLeast0 = 0.0
    max_grad_norm: AtLeast0 = 1.0
    bf16: bool | Literal["auto"] = False
    """bfloat16 in the forward pass; `auto`: on a GPU that has it."""
    compile: bool = False
    """Compile the model with `torch.compile`: pays on a GPU and over many steps."""
    save_steps: Count = 0
    """Also keep a checkpoint every so many steps inside an epoch (0: at its end only)."""
    eval_steps: Count = 0
    """Also validate (and keep a checkpoint) every so many steps inside an epoch."""
    keep_checkpoints: Positive = 2
    logging_steps: Positive = 50
    report_to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    """Who else hears of losses and validations; tensorboard's files go to `OUTPUT.logs/`."""


@dataclass(frozen=True, kw_only=True)
class BackboneSettings(Settings):
    """What a recipe with an encoder of transformers needs besides."""

    backbone: str = ""
    """A pretrained encoder: a folder or a Hub id that `AutoModel` loads, or a model of this zoo."""
    backbone_config: Mapping[str, Any] = field(default_factory=dict)
    """In place of `backbone`: a configuration with its model_type; weights drawn at random."""
    attention_dropout: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """Of the attention's weights; -1: the backbone's own. On a CPU 0 trains faster."""
    hidden_dropout: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """Of the states between layers; -1: the backbone's own."""
    attention: Literal["auto", "eager", "sdpa", "flash_attention_2", "bf16"] = "auto"
    """How attention is computed; `auto`: `bf16` (`zoo.attention`) while training in bfloat16 on a

    CPU, where torch's fused kernel is slow backward (`eager` for a backbone that cannot), and else
    the backbone's own way.
    """
    pad_token: str = ""
    """A token of the vocabulary to pad with, for a tokenizer that has no pad token."""
    vocab_size: Words = 8000
    """Of the tokenizer trained on the texts, where there is no pretrained backbone."""
    lower: bool = True


def identity(settings: RunSettings) -> dict[str, Any]:
    """The settings on which the weights depend, as plain JSON values."""
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    return {key: _plain(values[key]) for key in sorted(values) if key not in NOT_IDENTITY}


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
