"""The recipe of the embedded parser: a compact UD English pipeline trained from CoNLL-U files.

`python -m zoo.parser.train` makes the pipeline, `python -m zoo.parser.evaluate` scores one.
The trained product is package data of `extract` (`extract/embedded/`).
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence

log = logging.getLogger("zoo.parser")


def command(
    run: Callable[[Namespace], None], parser: ArgumentParser, arguments: Sequence[str] | None
) -> int:
    """Run one of the commands; an error is one message in the log and the exit code 2."""
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        run(options)
    except (OSError, ValueError) as error:
        log.error("error: %s", error)
        return 2
    return 0
