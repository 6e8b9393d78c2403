"""Models trained from the corpora: recipes, objectives, evaluations.

`import zoo` loads neither torch nor transformers. `zoo.register()` registers the models with the
Auto classes of transformers, as importing one does (`from zoo.coherence import CoherenceScorer`):

    import zoo; zoo.register()
    AutoModel.from_pretrained("build/models/coherence")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from corpora.errors import require

EXTRA = ("torch", "transformers", "accelerate")
"""The packages of the extra `zoo`: without them models are planned and compared, but only those
that come with the package are run (`zoo.packed`)."""
MODELS = (
    "zoo.dissent.modeling",
    "zoo.coherence.modeling",
    "zoo.coherence.links",
    "zoo.coherence.unc_modeling",
    "zoo.conpono.modeling",
    "zoo.criteria.modeling",
)
"""Modules that define model classes; importing one registers its classes with transformers."""

__all__ = ["MODELS", "file_of", "lacking", "lazily", "register", "require_extra"]


def lacking() -> list[str]:
    """Return the names of the packages of the extra `zoo` that are not installed."""
    return [name for name in EXTRA if find_spec(name) is None]


def require_extra(purpose: str) -> None:
    """Raise `DiscorporaError` if the extra `zoo` is missing; `purpose` says what needs it."""
    for name in lacking():
        require(name, "zoo", purpose)


def register(model: str | Path = "") -> None:
    """Register every `model_type` of this package with `AutoConfig` and the `AutoModel` classes.

    If `model` is a model folder, import also the plug-ins that trained it. Raises `InputError` if
    one of them defines the model's type and is not installed.
    """
    for module in MODELS:
        import_module(module)
    if model:
        from zoo.presets import load_plugins

        load_plugins(Path(model))


def lazily(package: str, places: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return a `__getattr__` for `package` that imports its public names on first use. `places`
    gives the names that each module defines; the module's name is relative to the package."""
    module_of = {name: module for module, names in places.items() for name in names}

    def attribute(name: str) -> Any:
        if name in module_of:
            return getattr(import_module(f".{module_of[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute


def file_of(model: str | Path, name: str) -> Path | None:
    """Return the path of the file `name` of a model (folder or Hub id); None if it has none. The
    file of a Hub model is downloaded."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    if not str(model):
        return None
    try:
        if Path(model).is_dir():
            path = Path(model, name)
            return path if path.is_file() else None
        return Path(hf_hub_download(str(model), name))
    except (OSError, EntryNotFoundError, HFValidationError):
        return None
