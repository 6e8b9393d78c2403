"""Optional dependencies: asked for where they are used, and the message names the extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from corpora.errors import DiscorporaError


def require(module: str, extra: str, purpose: str) -> Any:
    """Import `module`; `DiscorporaError` with the `pip install` line for `extra` without it.

    `purpose` says what cannot be done: "to read a Wikipedia dump".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DiscorporaError(
            f"the package {error.name!r} is needed {purpose}, and is not installed",
            hint=f"pip install 'discorpora[{extra}]'",
        ) from None
