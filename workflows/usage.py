"""The cost of a stage: seconds, memory, host. It is stored beside the results, never in them."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Written to `CLEAR_REFS`, it resets the peak memory of the process (proc(5))."""

_program_kib = [0]
"""The largest peak memory given to `note_child`."""
# As with the kernel's count of children, a fork of this process starts at 0.
os.register_at_fork(after_in_child=lambda: _program_kib.__setitem__(0, 0))


def note_child(peak_kib: int) -> None:
    """Record the peak memory of a program that a child process ran, in KiB."""
    _program_kib[0] = max(_program_kib[0], peak_kib)


class Meter:
    """Measures seconds and peak memory of a stage, from its construction until `read`.

    On Linux the peak of this process is reset first; elsewhere it includes earlier stages. The
    kernel tells only the largest peak of all children so far: a child that `note_child` does not
    record counts only if its peak is above those of all earlier children.
    """

    def __init__(self) -> None:
        self.began, self._start = datetime.now(UTC), time.perf_counter()
        self._earlier_children_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        _program_kib[0] = 0
        with suppress(OSError):
            CLEAR_REFS.write_text(RESET_PEAK)

    def read(self) -> dict[str, Any]:
        """Return seconds, peak memory in MiB (of the largest process), and facts of the machine."""
        process_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # `getrusage` keeps a peak that was reset, and that of the program before an `exec`.
        with suppress(OSError):
            if peak := re.search(r"^VmHWM:\s+(\d+) kB", STATUS.read_text(), re.M):
                process_kib = int(peak[1])
        children_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        child_kib = children_kib if children_kib > self._earlier_children_kib else 0
        peak_kib = max(process_kib, child_kib, *_program_kib)
        return {
            "seconds": round(time.perf_counter() - self._start, 3),
            "began": self.began.isoformat(timespec="seconds"),
            "peak_memory_mib": round(peak_kib / 1024, 1),
            "host": platform.node(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "commit": commit(),
        }


@cache
def commit() -> str:
    """Return the git commit of the code that runs, with `-dirty` if files differ from it; "" if it
    is not known, as with a package from an index."""
    if (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
        with suppress(OSError, subprocess.SubprocessError):
            return subprocess.check_output(
                [*command, "--abbrev=12"], stderr=subprocess.DEVNULL, text=True, timeout=20
            ).strip()
    with suppress(metadata.PackageNotFoundError):  # installed from a repository's address: PEP 610
        origin = metadata.distribution("discorpora").read_text("direct_url.json") or "{}"
        return str(json.loads(origin).get("vcs_info", {}).get("commit_id", ""))[:12]
    return ""
