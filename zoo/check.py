"""Whether the settings of evaluations can be used: `python -m zoo.check`.

Reads a JSON list of `{"name", "suite", "options"}` on standard input, the options as
words of a command line; nothing is trained. Ends with 2 and a message at the first value that
its suite refuses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from corpora.errors import DiscorporaError
from zoo.evaluate import Request, options_of, suite
from zoo.evaluate.__main__ import NoOptions
from zoo.presets import parse_options


def main() -> int:
    for one in json.load(sys.stdin):
        try:
            check(one)
        except DiscorporaError as error:
            hint = f"\n  {error.hint}" if error.hint else ""
            sys.stderr.write(f"error: {one['name']}: {error.message}{hint}\n")
            return 2
    return 0


def check(one: Mapping[str, Any]) -> None:
    """Raise `ConfigError` as evaluating would before it begins."""
    kind = getattr(suite(one["suite"]), "Options", NoOptions)
    options_of(Request("", "", options=parse_options(one["options"])), kind)


if __name__ == "__main__":
    sys.exit(main())
