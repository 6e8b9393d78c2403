"""Whether the settings of models can be used: `python -m zoo.check`.

Reads a JSON list of `{"name", "recipe", "options"}` on standard input, the options as
words of a command line; nothing is trained. Ends with 2 and a message at the first value that
its recipe refuses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from corpora.errors import DiscorporaError
from zoo.recipe import make_settings, parse_options, read_recipe


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
    """Raise `ConfigError` as training would before it begins."""
    own = parse_options(one["options"])
    found = read_recipe(one["recipe"])
    needed = {"dataset": "-", "output": "-"}
    make_settings(found, found.load_module().Settings, {**needed, **own})


if __name__ == "__main__":
    sys.exit(main())
