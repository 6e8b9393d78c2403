"""Models trained from the corpora: recipes, objectives, evaluations.

`import zoo` loads neither torch nor transformers. `zoo.register()` makes the Auto classes of
transformers know the models, as importing one does (`from zoo.coherence import CoherenceScorer`):

    import zoo; zoo.register()
    AutoModel.from_pretrained("build/models/coherence")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

MODELS = (
    "zoo.dissent.modeling",
    "zoo.coherence.modeling",
    "zoo.coherence.unc_modeling",
    "zoo.conpono.modeling",
    "zoo.criteria.modeling",
)
"""The modules of the model classes; each registers its own."""

__all__ = ["MODELS", "lazily", "register"]


def register(model: str | Path = "") -> None:
    """Register every `model_type` with `AutoConfig` and the `AutoModel` classes.

    With a model folder also those of the plug-ins that it needs; raises `InputError` for one that
    is missing.
    """
    for module in MODELS:
        import_module(module)
    if model:
        from zoo import plugins

        plugins.load(Path(model))


def lazily(package: str, places: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """A package's `__getattr__`: the public names of its modules, imported when asked for."""
    modules = {name: module for module, names in places.items() for name in names}

    def attribute(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
