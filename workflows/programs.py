"""The zoo's programs in processes of their own, as a build starts them.

Where a fork is safe they are forks of one process that has loaded torch and transformers once
(`zoo.serve`; docs/decisions/028-one-loading-of-torch.md), else processes as a user would start
them. What they write is the same.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from corpora.processes import BUILD_VARIABLE
from workflows import usage
from zoo.serve import BEGUN, MESSAGE_BYTES

log = logging.getLogger("discorpora")

LOG_LINE = re.compile(r"\d\d:\d\d:\d\d (.*)")
"""A line of the recipe's own log, which is passed on: what libraries print is not."""
LAST_LINES = 40
LAUNCH = (
    *("-m", "accelerate.commands.launch", "--quiet", "--num_processes", "1", "--num_machines", "1"),
    *("--mixed_precision", "no", "--dynamo_backend", "no"),
)
ACCELERATORS = (
    *("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/kfd", "/dev/dxg", "/dev/accel"),
    *("/dev/accel0", "/dev/vfio/0", "/dev/hl0", "/dev/neuron0", "/dev/davinci_manager"),
)
"""The drivers of NVIDIA, AMD, Windows' Linux, Gaudi, TPU, Neuron, Ascend. They survive no fork."""
LOADED = (
    *("zoo.training.trainer", "zoo.training.data", "zoo.evaluate.encoders"),
    *("matplotlib.figure", "matplotlib.backends.backend_svg", "sklearn.linear_model"),
)
"""What nearly every program of the zoo loads, but for those programs; some are of extras."""


@dataclass(frozen=True)
class Program:
    """`python -m module words`; `text` is its standard input."""

    module: str
    words: Sequence[str]
    threads: int
    text: str = ""

    @property
    def command(self) -> list[str]:
        """The command that does the same by itself."""
        launch: tuple[str, ...] = ()
        if self.module == "zoo.train":
            launch = (*LAUNCH, "--num_cpu_threads_per_process", str(self.threads))
        return [sys.executable, *launch, "-m", self.module, *self.words]

    @property
    def environment(self) -> dict[str, str]:
        # What `LAUNCH` sets for a training, whatever the user's own environment says.
        launch = {"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_DYNAMO_BACKEND": "NO"}
        return {
            **os.environ,
            **(launch if self.module == "zoo.train" else {}),
            BUILD_VARIABLE: str(os.getpid()),
            "OMP_NUM_THREADS": str(self.threads),
            # Threads that wait for each other must not spin on cores that others use.
            "OMP_WAIT_POLICY": "PASSIVE",
            "TOKENIZERS_PARALLELISM": "false",
        }

    def run(self) -> str:
        """Run it; its own log goes through. Why it failed, empty if it did not."""
        log.debug("%s", " ".join(self.command))
        with tempfile.TemporaryFile("w+") as source:
            source.write(self.text)
            source.seek(0)
            found = _forked(self, source.fileno()) if forks_are_safe() else None
            if found is None:
                source.seek(0)
                found = _fresh(self, source.fileno())
        status, said = found
        return _reason(said) if status else ""


def forks_are_safe() -> bool:
    """Whether this is Linux and no accelerator's driver is there."""
    return sys.platform == "linux" and not any(Path(name).exists() for name in ACCELERATORS)


def prepare(threads: int) -> None:
    """Let the libraries be loaded while the build does something else, for all its workers."""
    if forks_are_safe():
        with suppress(OSError):
            _server(Program("", [], threads))


def _fresh(program: Program, source: int) -> tuple[int, list[str]]:
    with subprocess.Popen(
        program.command,
        env=program.environment,
        stdin=source,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None
        said = _follow(process.stderr)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    usage.note_child(used.ru_maxrss)
    return process.returncode, said


class _Server:
    """The process that forks programs; one end of its socket pair is here.

    Its libraries took the number of threads from its environment: it is for programs of as many.
    """

    def __init__(self, threads: int, environment: dict[str, str]) -> None:
        self.threads = threads
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "zoo.serve", str(theirs.fileno()), *LOADED],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )


_servers: list[_Server] = []
"""One at most in a process. Luigi's workers are forks of the build and ask the build's, if any."""


def _server(program: Program) -> _Server:
    if not _servers:
        _servers.append(_Server(program.threads, program.environment))
    return _servers[0]


def _forked(program: Program, source: int) -> tuple[int, list[str]] | None:
    """Run it as a fork of the server; None if it has not begun and will not."""
    about = {"module": program.module, "words": [*program.words]}
    with ExitStack() as files:
        try:
            message = json.dumps(
                {**about, "environment": program.environment, "folder": str(Path.cwd())}
            ).encode()
            if len(message) > MESSAGE_BYTES or _server(program).threads != program.threads:
                return None
            errors, theirs = os.pipe()
            lines = files.enter_context(os.fdopen(errors, encoding="utf-8", errors="replace"))
            with os.fdopen(theirs, "wb"):
                answer, ends = os.pipe()
                ended = files.enter_context(os.fdopen(answer, "rb"))
                with os.fdopen(ends, "wb"):
                    socket.send_fds(_server(program).channel, [message], [source, theirs, ends])
        except OSError as error:  # it is gone, or nothing more can be opened
            log.debug("no fork: %s", error)
            return None
        said = _follow(lines)
        end = ended.read()
    if not end:
        return None
    if end == BEGUN:
        return 1, ["error: how it ended is not known: the process that waited is gone", *said]
    found = json.loads(end.removeprefix(BEGUN))
    usage.note_child(found["peak_kib"])
    return found["status"], said


def _follow(lines: Iterable[str]) -> list[str]:
    """Pass a program's own log on; its error message, or its last lines."""
    tail: list[str] = []
    for line in lines:
        if line.startswith("error: "):
            tail.clear()
        tail.append(line.rstrip())
        if len(tail) > LAST_LINES and not tail[0].startswith("error: "):
            del tail[0]
        if said := LOG_LINE.match(line):
            log.info("  %s", said[1].rstrip())
    return tail


def _reason(said: Sequence[str]) -> str:
    """What `_follow` kept of a failed program, as one message."""
    lines = [line for line in said if line.strip()]
    if lines and lines[0].startswith("error: "):
        return "\n".join(lines).removeprefix("error: ")
    return "\n".join(lines[-5:]) or "the process was stopped"
