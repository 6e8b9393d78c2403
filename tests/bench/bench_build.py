"""The embedded sample's build: trainings and evaluations as forks against fresh processes.

    python tests/bench/bench_build.py [--config FILE] [--rounds N]

Builds the same from nothing in both ways in turn, and prints the seconds of each round, their
processor seconds, and the ratios to fresh processes (`accelerate launch`, `python -m
zoo.evaluate`), which is what a build does where an accelerator is.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = """
import sys
from workflows import programs
if {fresh}:
    programs.ACCELERATORS = ("/dev/null",)
import luigi.cmdline
code = 0
try:
    luigi.cmdline.luigi_run({words!r})
except SystemExit as stop:
    code = stop.code or 0
if programs._servers:  # its processor time counts when it has been waited for
    programs._servers[0].channel.close()
    programs._servers[0].process.wait()
sys.exit(code)
"""


def built(fresh: bool, config: str, output: str) -> tuple[float, float]:
    """Wall and processor seconds of one build."""
    words = ["--module", "workflows", "BuildAll", "--config", config]
    words += ["--discorpora-output", output]
    began = time.monotonic()
    command = [sys.executable, "-c", START.format(fresh=fresh, words=words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    if status:
        sys.exit(f"the build failed: {' '.join(command)}")
    return seconds, used.ru_utime + used.ru_stime


def show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="sample")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"fresh processes": [], "forks": []}
    for number in range(options.rounds):
        for name in found:
            with tempfile.TemporaryDirectory() as folder:
                output = str(Path(folder, "out"))
                found[name].append(built(name != "forks", options.config, output))
            wall, processor = found[name][-1]
            show(f"round {number + 1}, {name}: {wall:.1f} s, {processor:.1f} s of processors")
    for which, place in (("seconds", 0), ("processor seconds", 1)):
        ratios = [
            before[place] / after[place]
            for before, after in zip(found["fresh processes"], found["forks"], strict=True)
        ]
        show(f"{which}: fresh processes / forks = {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
