"""The small models and datasets of `tests/zoo`, which the campaigns spoil."""

from ..zoo.conftest import (  # noqa: F401 - fixtures
    dissent_models,
    pairs_folder,
    process_settings,
    tiny_bert,
)
