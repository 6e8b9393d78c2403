"""The tables of settings in docs/reference/datasets.md, made from the builders' declarations.

python docs/settings.py        # writes the tables between `<!-- settings: BUILDERS -->` marks
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic.fields import FieldInfo

from corpora.tasks import BUILDERS

PAGE = Path(__file__).parent / "reference" / "datasets.md"
MARKED = re.compile(r"(<!-- settings: ([\w, ]+) -->\n\n)(?:\|.*\n)*")
LONGEST_LIST = 5
"""A longer list is described by its length."""


def written(text: str) -> str:
    """A page with its tables made anew."""
    return MARKED.sub(lambda found: found[1] + table(found[2].split(", ")), text)


def table(names: Sequence[str]) -> str:
    """The settings of builders that share most of them; a column of defaults for each.

    Neighbours with one meaning (the shares of the splits) share a row.
    """
    fields = [BUILDERS.find(name).model_fields for name in names]
    merged: list[tuple[list[str], str]] = []
    for key in dict.fromkeys(key for some in fields for key in some):
        meaning = " ".join(next(f[key].description or "" for f in fields if key in f).split())
        if merged and merged[-1][1] == meaning:
            merged[-1][0].append(key)
        else:
            merged.append(([key], meaning))
    heads = [f"`{name}`" for name in names] if len(names) > 1 else ["default"]
    lines = [f"| setting | {' | '.join(heads)} | |", "|---" * (len(names) + 2) + "|"]
    for keys, meaning in merged:
        shown = ", ".join(f"`{key}`" for key in keys)
        values = [", ".join(default(some, key) for key in keys if key in some) for some in fields]
        lines.append(f"| {shown} | {' | '.join(values)} | {meaning.replace('|', '&#124;')} |")
    return "\n".join(lines) + "\n"


def default(fields: Mapping[str, FieldInfo], key: str) -> str:
    """A setting's default as a build file has it."""
    value = fields[key].get_default(call_default_factory=True)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    if isinstance(value, tuple):
        few = len(value) <= LONGEST_LIST
        return ", ".join(f"`{one}`" for one in value) if few else f"{len(value)} markers"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
