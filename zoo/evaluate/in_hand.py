"""What is known of a model in hand: its name, type, folder, transformer and tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def folder_of(model: Any) -> str:
    """The folder or Hub id that a model was loaded from, "" if there is none."""
    return str(getattr(model, "folder", "") or getattr(model, "name_or_path", "") or "")


def name_of(model: Any) -> str:
    """What results call a model: its own name, its folder's, or its class's."""
    name = getattr(model, "name", "") or Path(folder_of(model)).name
    return str(name or type(getattr(model, "model", model)).__name__)


def type_of(model: Any) -> str:
    """The `model_type` of a model, or its class."""
    config = getattr(getattr(model, "model", model), "config", model)
    return str(getattr(model, "model_type", getattr(config, "model_type", type(model).__name__)))


def about(model: Any) -> dict[str, str]:
    """What a result says of a model: no path."""
    return {"name": name_of(model), "type": type_of(model)}


def parts_of(model: Any) -> tuple[Any, Any] | None:
    """The transformer of a model and its tokenizer; None for a model that is none.

    Of a model without a tokenizer beside it, that of the place that it was loaded from.
    """
    from transformers import PreTrainedModel

    from zoo.loading import load_tokenizer

    inner = getattr(model, "model", model)
    if not isinstance(inner, PreTrainedModel):
        return None
    tokenizer = getattr(model, "tokenizer", None) or load_tokenizer(folder_of(model))
    return inner if hasattr(inner, "backbone") else inner.base_model, tokenizer
