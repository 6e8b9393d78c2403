"""Short log lines and errors for the terminal; tracebacks are shown with `--debug` only."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from corpora.errors import DiscorporaError
from corpora.processes import collect_rarely

DEBUG_VARIABLE = "DISCORPORA_DEBUG"


class PlainFormatter(logging.Formatter):
    """Formats a record as `12:00:01 message`, and an expected error as its message alone."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, DiscorporaError) and not debugging():
            return f"error: {error}"
        return super().format(record)


def configure(*, debug: bool = False) -> None:
    """Send the log, and Luigi's warnings, to standard error; a later call only turns on `debug`."""
    collect_rarely()
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    if logging.getLogger("discorpora").handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainFormatter("%(asctime)s %(message)s", "%H:%M:%S"))
    handler.addFilter(
        lambda r: r.name == "discorpora" or r.levelno >= logging.WARNING or debugging()
    )
    for name in ("discorpora", "luigi", "luigi-interface", "luigi.scheduler"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)
    sys.excepthook = _excepthook


def escape_unencodable() -> None:
    """Print characters that the encoding of standard output lacks as `\\xe9`, as on stderr."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Show no traceback for Ctrl-C."""
    if issubclass(kind, KeyboardInterrupt) and not debugging():
        sys.stderr.write("\ninterrupted; the same command continues from here\n")
    else:
        sys.__excepthook__(kind, error, trace)


# A pipe, since with several workers a stage fails in a fork of this process.
_read_end, _write_end = os.pipe()
os.set_blocking(_read_end, False)
os.set_blocking(_write_end, False)


def remember_failure(stage: str, error: BaseException) -> None:
    """Have the failure of a stage printed once more at the end of the build, below the log."""
    message = str(error).splitlines()[0] if str(error) else repr(error)
    with suppress(BlockingIOError):  # the pipe holds some hundred failures
        os.write(_write_end, f"failed: {stage}: {message}\n".encode())


@atexit.register
def _print_failures() -> None:
    """Print the remembered failures, if there are any."""
    with suppress(BlockingIOError):
        failures = os.read(_read_end, 1 << 20).decode(errors="replace")
        sys.stderr.write(f"\n{failures}the same command continues from here\n")


def debugging() -> bool:
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Raise `DiscorporaError` for an error of the operating system, such as a full disk."""
    try:
        yield
    except OSError as error:
        where, problem, hint = str(error.filename or place), error.strerror or str(error), ""
        if error.errno == errno.ENOSPC:
            problem, hint = "no space is left on the device", "free some space and run it again"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            problem, hint = "no permission to write here", "choose another output folder"
            if Path(where).exists() and not os.access(where, os.R_OK):
                problem, hint = "no permission to read it", "change the file's permissions"
        raise DiscorporaError(problem, where=where, hint=hint) from error
