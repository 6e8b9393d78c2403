"""Log lines and errors as a person wants to see them: short, and no traceback unless asked."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpora.errors import DiscorporaError

DEBUG_VARIABLE = "DISCORPORA_DEBUG"


class PlainFormatter(logging.Formatter):
    """`12:00:01 message`; an expected error shows as its message alone."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, DiscorporaError) and not debugging():
            return f"error: {error}"
        return super().format(record)


class LuigiFilter(logging.Filter):
    """Keep of luigi's own log what a user can act on."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or debugging()


def configure(*, debug: bool = False) -> None:
    """Send the log to standard error, once a process."""
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    root = logging.getLogger("discorpora")
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainFormatter("%(asctime)s %(message)s", "%H:%M:%S"))
    for name in ("discorpora", "luigi", "luigi-interface", "luigi.scheduler"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)
    sys.excepthook = _excepthook
    handler.addFilter(lambda r: not r.name.startswith("luigi") or LuigiFilter().filter(r))


def _excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Ctrl-C is no defect: no traceback."""
    if issubclass(kind, KeyboardInterrupt) and not debugging():
        sys.stderr.write("\ninterrupted; run it again to go on from here\n")
    else:
        sys.__excepthook__(kind, error, trace)


_failures: list[str] = []


def remember_failure(stage: str, error: BaseException) -> None:
    """Say at the end of the process which stages failed, below all that came after."""
    if not _failures:
        atexit.register(_say_failures)
    _failures.append(f"failed: {stage}: {str(error).splitlines()[0] if str(error) else error!r}")


def _say_failures() -> None:
    sys.stderr.write("\n".join(["", *_failures, "run it again to go on from here", ""]))


def debugging() -> bool:
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Turn an operating system's error into one made for people."""
    try:
        yield
    except DiscorporaError:
        raise
    except OSError as error:
        raise from_os_error(error, place) from error


def from_os_error(error: OSError, place: Path) -> DiscorporaError:
    """A full disk, a missing permission and their kin, said in a sentence."""
    where = str(error.filename or place)
    if error.errno == errno.ENOSPC:
        return DiscorporaError(
            "no space is left on the device", where=where, hint="free some space and run it again"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return DiscorporaError(
            "no permission to write here", where=where, hint="choose another output folder"
        )
    return DiscorporaError(error.strerror or str(error), where=where)
