"""LoRA (Hu et al. 2022): training small matrices beside an encoder's frozen ones, by `peft`."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from corpora.errors import require
from zoo.declared import BackboneRecipe


def add_lora(backbone: PreTrainedModel, recipe: BackboneRecipe) -> None:
    """Freeze the encoder, and add LoRA matrices of rank `lora_rank` to each linear layer.

    Raises `DiscorporaError` if `peft` is not installed.
    """
    peft = require("peft", "lora", f"for lora_rank = {recipe.lora_rank}")
    config = peft.LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=recipe.lora_dropout,
        target_modules="all-linear",
    )
    peft.inject_adapter_in_model(config, backbone)


def merge_lora(model: nn.Module) -> None:
    """Merge the LoRA matrices into the frozen weights; the model has its own classes again."""
    if not any(".lora_" in name for name, _ in model.named_parameters()):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            model.set_submodule(name, module.get_base_layer())
    model.requires_grad_(True)
