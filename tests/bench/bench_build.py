"""The processor time of the embedded sample's build, all its processes together.

python tests/bench/bench_build.py [--config FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Build from nothing in a new folder, and print wall and processor seconds of each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="sample")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--module", "workflows", "BuildAll", "--config", options.config]
            command = [sys.executable, "-m", "luigi", *words]
            command += ["--discorpora-output", str(Path(folder, "out"))]
            began = time.monotonic()
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"the build failed: {' '.join(command)}")
        seconds = time.monotonic() - began
        processor = used.ru_utime + used.ru_stime
        sys.stdout.write(f"round {number + 1}: {seconds:.1f} s, {processor:.1f} s of processors\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
