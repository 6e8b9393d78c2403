"""Programs that tests run in a process of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(command: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[str]:
    """What a command gave back and said, whether it ended well or not."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)
