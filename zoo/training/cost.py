"""The cost of a training before it runs, from the settings of its recipe; loads no torch.

    FLOPs = 6 * weights * tokens        hours = FLOPs / (0.4 * peak * 3600)

Kaplan et al. 2020, section 2.1: 2 operations forward and 4 backward for each weight that a token
meets. Tables of embeddings, biases and attention's own products are left out. Every text counts
with the most tokens that the settings allow, so costs are upper bounds. `zoo.training.throughput`
counts the same of a training that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.errors import ConfigError
from corpora.outside import read_json
from zoo.declared import BackboneRecipe, Recipe, StepRecipe

H200 = 989e12
"""Operations a second in bfloat16, dense: the maker's data sheet."""
REACHED = 0.4
"""The share of the peak that a training is assumed to reach."""
SIZES = {
    # layers, hidden size, intermediate size
    "google-bert/bert-base-uncased": (12, 768, 3072),
    "google-bert/bert-base-cased": (12, 768, 3072),
    "google-bert/bert-large-uncased": (24, 1024, 4096),
    "FacebookAI/roberta-base": (12, 768, 3072),
    "xlnet/xlnet-base-cased": (12, 768, 3072),
    "google/bert_uncased_L-2_H-128_A-2": (2, 128, 512),
    "sentence-transformers/all-MiniLM-L6-v2": (6, 384, 1536),
}
"""The sizes of encoders of the Hub, so that their cost is known without a download."""


@dataclass(frozen=True)
class Cost:
    """The upper bound of the cost of a training."""

    examples: int
    """Examples that are trained on, over all epochs."""
    weights: int
    """Weights that each token meets."""
    flops: float

    @property
    def hours(self) -> float:
        """The hours that the training takes on one H200, at the share `REACHED` of its peak."""
        return self.flops / (REACHED * H200 * 3600)


def cost_of(recipe: Recipe, rows: int) -> Cost:
    """Return the cost of a training with a recipe's settings on `rows` training examples.

    Raises `ConfigError` for a recipe without a formula, and for an encoder of unknown size.
    """
    if not isinstance(recipe, StepRecipe):
        raise ConfigError(f"{type(recipe).__name__} takes no optimizer steps, so it has no FLOPs")
    rows = min(rows, recipe.max_train_rows or rows)
    steps, work = recipe.max_steps, recipe.work()
    examples = steps * recipe.batch_size if steps > 0 else round(recipe.epochs * rows)
    return Cost(examples, work.weights, 6 * examples * (work.weights * work.tokens + work.heads))


def encoder_weights(recipe: BackboneRecipe) -> int:
    """Return the number of weights in the layers of a recipe's encoder, without embeddings. A layer
    has the four matrices of attention and the two of the MLP. Sizes are from `SIZES`, a folder's
    config.json, or `backbone_config`. Raises `ConfigError` if they are unknown."""
    sizes = SIZES.get(recipe.backbone)
    if sizes is None:
        config: Mapping[str, Any] = recipe.backbone_config
        file = Path(recipe.backbone, "config.json")
        if recipe.backbone and not file.is_file():
            raise ConfigError(
                f"the size of the encoder {recipe.backbone!r} is not known",
                hint="give a folder, or add it to zoo.training.cost.SIZES",
            )
        config = read_json(file) if recipe.backbone else config
        keys = ("num_hidden_layers", "n_layer"), ("hidden_size", "d_model")
        layers, hidden = (next(int(config[k]) for k in names if k in config) for names in keys)
        inner = int(config.get("intermediate_size", config.get("d_inner", 4 * hidden)))
        sizes = layers, hidden, inner
    layers, hidden, inner = sizes
    return layers * (4 * hidden * hidden + 2 * hidden * inner)
