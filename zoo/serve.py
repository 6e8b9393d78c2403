"""The zoo's programs as forks of one process that has loaded their libraries.

`python -m zoo.serve FD MODULE...` loads the modules that are there. FD is one end of a socket pair
(`SOCK_SEQPACKET`). A message is a JSON object with `module`, `words`, `environment` and `folder`,
and three file descriptors: standard input and error of the program, and a pipe for its end: a full
stop when it has begun, then `{"status", "peak_kib"}` (the status as `subprocess` has it, the peak
memory in KiB). This process ends when nobody holds the other end any more.

torch and transformers take seconds to load, a fork of a process that has them nothing. A fork
of a process that has used an accelerator's driver cannot use it: so nothing here may touch one,
and whoever starts this has looked that there is none.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

MESSAGE_BYTES = 1 << 17
"""The longest message that is read."""
BEGUN = b"."
"""What the pipe for a program's end says first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the other end is closed."""
    number, *modules = (sys.argv[1:] if arguments is None else arguments) or [""]
    try:
        channel = socket.socket(fileno=int(number))
    except (ValueError, OSError):
        sys.stderr.write(f"error: {number!r} is no open socket: builds start this, not people\n")
        return 2
    # Ctrl-C goes to every process of the terminal: the build ends, then this one.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in modules:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # a fork's collector leaves the pages alone that it shares with this process
    end = select.poll()
    end.register(channel, 0)
    while True:
        message, files, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 3)
        with suppress(ChildProcessError):  # the forks that have ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not message or end.poll(0):  # a build that is gone wants nothing any more
            return 0
        if os.fork() == 0:
            channel.close()
            _watched(json.loads(message), interrupt, *files)
        for file in files:
            os.close(file)


def _watched(
    program: dict[str, Any], interrupt: Any, source: int, errors: int, answer: int
) -> NoReturn:
    """Run the program in a fork of its own and report that it began, and how it ended."""
    with suppress(OSError):  # the build is gone
        os.write(answer, BEGUN)  # before the program can do anything
    child = os.fork()
    if child == 0:
        os.close(answer)
        signal.signal(signal.SIGINT, interrupt)
        for file, place in ((source, 0), (errors, 2)):
            os.dup2(file, place)
            os.close(file)
        _run(program)
    os.close(errors)
    _, status, used = os.wait4(child, 0)
    end = {"status": os.waitstatus_to_exitcode(status), "peak_kib": used.ru_maxrss}
    with suppress(OSError):
        os.write(answer, json.dumps(end).encode())
    os._exit(0)


def _run(program: dict[str, Any]) -> NoReturn:
    """`python -m MODULE WORDS`, in this process, which ends here.

    As `multiprocessing` does it with its forks, nothing is taken apart at the end: that would
    touch, and so copy, all that was loaded before the fork.
    """
    os.chdir(program["folder"])
    os.environ.clear()
    os.environ.update(program["environment"])
    sys.argv[1:] = program["words"]
    if not sys.flags.safe_path:  # as `python -m`: modules are looked for where it is started
        sys.path[0] = program["folder"]
    status = 0
    try:
        runpy.run_module(program["module"], run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        status = stop.code & 0xFF if isinstance(stop.code, int) else int(stop.code is not None)
        if status and not isinstance(stop.code, int):
            sys.stderr.write(f"{stop.code}\n")
    except BaseException:
        status = 1
        sys.excepthook(*sys.exc_info())
    for last in (threading._shutdown, atexit._run_exitfuncs, _flush):  # type: ignore[attr-defined]
        with suppress(Exception):
            last()
    os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream and not stream.closed:
            stream.flush()


if __name__ == "__main__":
    sys.exit(main())
