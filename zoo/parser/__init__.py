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
    """Run one of the commands; an error is one message in the log and the exit code 2.

    An `--output` must be new: it appears by one rename when all is done.
    """
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        if "output" in options and options.output.exists():
            raise FileExistsError(f"{options.output} exists: remove it or give another --output")
        run(options)
    except (OSError, ValueError) as error:
        log.error("error: %s", error)
        return 2
    return 0
