"""Models trained from the corpora: recipes, objectives, evaluations.

`import zoo` loads neither torch nor transformers. `zoo.register()` (or importing the family,
`import zoo.dissent`) makes the Auto classes of transformers know the models:

    import zoo; zoo.register()
    AutoModel.from_pretrained("build/models/coherence")
"""

from __future__ import annotations

from importlib import import_module

FAMILIES = ("zoo.dissent", "zoo.coherence", "zoo.conpono", "zoo.criteria")

__all__ = ["FAMILIES", "register"]


def register() -> None:
    """Register every family's `model_type` with `AutoConfig` and the `AutoModel` classes."""
    for family in FAMILIES:
        import_module(family)
