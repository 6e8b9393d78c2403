"""What a run cost: seconds, memory, host. It goes beside the results, never into them."""

from __future__ import annotations

import os
import platform
import resource
from datetime import datetime
from typing import Any

_forked_kib = [0]
"""The largest of the programs that another process forked for this one."""
# As with the kernel's own count of children, a fork of this process begins anew.
os.register_at_fork(after_in_child=lambda: _forked_kib.__setitem__(0, 0))


def note_child(peak_kib: int) -> None:
    """Count a program that another process forked for this one."""
    _forked_kib[0] = max(_forked_kib[0], peak_kib)


def snapshot(seconds: float, began: datetime) -> dict[str, Any]:
    """Time and peak memory of this process and of its largest child, in MiB."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "seconds": round(seconds, 3),
        "began": began.isoformat(timespec="seconds"),
        "peak_memory_mib": round(max(own, children, *_forked_kib) / 1024, 1),
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
