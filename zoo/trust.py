"""Whether code that comes with a model may run; it does not, unless the user says so."""

from __future__ import annotations

import os

TRUST = "DISCORPORA_TRUST_REMOTE_CODE"
"""Set to 1 by `--trust-remote-code`, for the processes that a command starts too."""


def trust_code() -> None:
    """Let the code run that comes with the models that are loaded: `--trust-remote-code`."""
    os.environ[TRUST] = "1"


def trusts_code() -> bool:
    """Whether the user lets code run that came with a model."""
    return os.environ.get(TRUST) == "1"
