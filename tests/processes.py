"""Programs that tests run in a process of their own."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn

from corpora.code import parse_code

OURS = ("corpora", "extract", "workflows", "zoo")
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


def ran(command: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[str]:
    """What a command gave back and said, whether it ended well or not."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def forked(
    main: Callable[[], object], *, env: Mapping[str, str], cwd: Path, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """What `main` gave back and said in a fork of this process, which imports nothing again.

    The fork has a folder, an environment and a log of its own, and what this project remembers
    (configurations, hashes, Luigi's tasks) is forgotten in it, but for the hash of a text of code.
    It is killed after `seconds`.
    """
    import luigi

    from workflows import console

    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.environ.clear()
                os.environ.update(env)
                os.chdir(cwd)
                luigi.task_register.Register.clear_instance_cache()
                with suppress(BlockingIOError):
                    os.read(console._read_end, 1 << 20)
                _run_as_new(main, console._print_failures)
            finally:
                os._exit(1)  # never on with the tests
        end = time.monotonic() + (seconds or 0)
        while seconds is not None and not os.waitid(os.P_PID, child, ENDED):
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                break
            time.sleep(0.005)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess([], code, out.read(), err.read())


def _run_as_new(main: Callable[[], object], at_exit: Callable[[], object]) -> NoReturn:
    """Call `main` as a new process would, and end this process."""
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    for logger in (logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)):
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET if logger.parent else logging.WARNING)
        logger.propagate = True
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in OURS:
            for value in vars(module).values():
                if hasattr(value, "cache_clear") and value is not parse_code:
                    value.cache_clear()
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    finally:
        at_exit()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
