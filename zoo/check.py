"""Whether the settings of models and evaluations can be used: `python -m zoo.check`.

Reads a JSON list of `{"name", "recipe" or "suite", "options"}` on standard input, the options as
words of a command line; nothing is trained. Ends with 2 and a message at the first value that
its recipe or suite refuses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from corpora.errors import DiscorporaError
from zoo.evaluate import Request, options_of, suite
from zoo.evaluate.__main__ import NoOptions
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
    """Raise `ConfigError` as training or evaluating would before it begins."""
    own = parse_options(one["options"])
    if "recipe" in one:
        found = read_recipe(one["recipe"])
        needed = {"dataset": "-", "output": "-"}
        make_settings(found, found.load_module().Settings, {**needed, **own})
    else:
        kind = getattr(suite(one["suite"]), "Options", NoOptions)
        options_of(Request("", "", options=own), kind)


if __name__ == "__main__":
    sys.exit(main())
