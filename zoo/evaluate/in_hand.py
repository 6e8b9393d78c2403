"""Facts about a model object: its name, type, folder, transformer and tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def folder_of(model: Any) -> str:
    """The folder or Hub id that a model object was loaded from, "" if there is none."""
    return str(getattr(model, "folder", "") or getattr(model, "name_or_path", "") or "")


def name_of(model: Any) -> str:
    """The name of a model object in results: its `name`, its folder's name, or its class's."""
    name = getattr(model, "name", "") or Path(folder_of(model)).name
    return str(name or type(getattr(model, "model", model)).__name__)


def type_of(model: Any) -> str:
    """The `model_type` of a model object or of its configuration, or else the name of its class."""
    config = getattr(getattr(model, "model", model), "config", model)
    return str(getattr(model, "model_type", getattr(config, "model_type", type(model).__name__)))


def about(model: Any) -> dict[str, str]:
    """The name and type of a model object, as a result states them, without any path."""
    return {"name": name_of(model), "type": type_of(model)}


def parts_of(model: Any) -> tuple[Any, Any] | None:
    """The transformer inside a model object and its tokenizer; None if it has no transformer.

    A model without a `tokenizer` gets that of the folder or Hub id that it was loaded from.
    """
    from transformers import PreTrainedModel

    from zoo.loading import load_tokenizer

    inner = getattr(model, "model", model)
    if not isinstance(inner, PreTrainedModel):
        return None
    tokenizer = getattr(model, "tokenizer", None) or load_tokenizer(folder_of(model))
    return inner if hasattr(inner, "backbone") else inner.base_model, tokenizer
