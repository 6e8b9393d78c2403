"""What a stage cost: seconds, memory, host. It goes beside the results, never into them."""

from __future__ import annotations

import os
import platform
import re
import resource
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
RESET_PEAK = "5"

_forked_kib = [0]
"""The largest of the programs whose own peak was told."""
# As with the kernel's own count of children, a fork of this process starts again.
os.register_at_fork(after_in_child=lambda: _forked_kib.__setitem__(0, 0))


def note_child(peak_kib: int) -> None:
    """Count a program by its own peak memory, as the process that waited for it was told."""
    _forked_kib[0] = max(_forked_kib[0], peak_kib)


class Meter:
    """Seconds and peak memory from here on.

    The kernel keeps a process's peak over its whole life; Linux can reset it. Elsewhere the
    stages before count too. The peak of children that were not told by `note_child` is known only
    where it is above that of all children before.
    """

    def __init__(self) -> None:
        self.began, self._start = datetime.now(UTC), time.perf_counter()
        self._children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        _forked_kib[0] = 0
        with suppress(OSError):
            CLEAR_REFS.write_text(RESET_PEAK)

    def read(self) -> dict[str, Any]:
        """What it was, in seconds and MiB: of this process, or of its largest child if larger."""
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # `getrusage` keeps a peak that was reset, and that of the program before an `exec`.
        with suppress(OSError):
            if peak := re.search(r"^VmHWM:\s+(\d+) kB", STATUS.read_text(), re.M):
                own = int(peak[1])
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        kib = max(own, children if children > self._children else 0, *_forked_kib)
        return {
            "seconds": round(time.perf_counter() - self._start, 3),
            "began": self.began.isoformat(timespec="seconds"),
            "peak_memory_mib": round(kib / 1024, 1),
            "host": platform.node(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        }
