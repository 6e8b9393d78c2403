"""The tables of settings in docs/reference, made from the declarations of builders and recipes.

python docs/settings.py        # writes the tables below the marks `<!-- settings: NAMES -->`

Below `<!-- keys: CLASS -->` are the keys of a table of a build file (`workflows.tables`), below
`<!-- reasons: MODE -->` the reasons of candidates that extraction rejects (`extract.pairs`).
Below `<!-- cost: WHAT ROWS, ... -->` is the cost of trainings on ROWS rows (`zoo.training.cost`).
WHAT is a shipped recipe (`conpono/full`), or a model of a paper's build file (`conpono:bso`), with
all its seeds and values of a sweep.
NAMES are builders (`sp, bso`), shipped recipes (`conpono/full, conpono/small`), or the class of
`zoo.declared` with settings that recipes share (`StepRecipe`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from corpora.declared import type_name
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Builder
from extract.clauses import REFUSALS
from extract.pairs import MEANINGS
from workflows import tables
from workflows.config import load_build
from workflows.training import chosen_recipe
from zoo import declared
from zoo.presets import read_preset
from zoo.training.cost import cost_of

FOLDER = Path(__file__).parent / "reference"
MARKED = re.compile(r"(<!-- (settings|keys|reasons|cost): ([\w/:., -]+) -->\n\n)(?:\|.*\n)*\n*")
SHARED = (declared.Recipe, declared.StepRecipe, declared.BackboneRecipe)
"""Their settings have a table each; a recipe's table has them only where it changes them."""
LONGEST_LIST = 7
"""A longer list is described by its length."""

Fields = Mapping[str, FieldInfo]
Values = Mapping[str, Any]


def pages() -> list[Path]:
    """The pages with tables of settings."""
    return [page for page in sorted(FOLDER.glob("*.md")) if MARKED.search(page.read_text("utf-8"))]


def written(text: str) -> str:
    """A page with its tables made anew."""
    made = {
        "settings": lambda names: table(names.split(", ")),
        "keys": keys,
        "reasons": reasons,
        "cost": costs,
    }
    return MARKED.sub(lambda found: f"{found[1]}{made[found[2]](found[3])}\n", text)


def keys(name: str) -> str:
    """The keys of a table of a build file; those that are tables themselves are left out."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    kind = getattr(tables, name)
    inherited_last = sorted(kind.model_fields, key=lambda key: key not in kind.__annotations__)
    for key in inherited_last:
        field = kind.model_fields[key]
        if field.description:
            shown = _cell(_defaults({key: field})[key])
            meaning = _meaning(field).replace("|", "&#124;")
            lines.append(f"| `{key}` | {type_name(field.annotation)} | {shown} | {meaning} |")
    return "\n".join(lines) + "\n"


def reasons(name: str) -> str:
    """Why extraction rejects candidates: only in the mode `standalone`, or in `every` mode."""
    own = {*REFUSALS} - {"s1_empty", "s2_empty"}
    some = {key: text for key, text in MEANINGS.items() if (key in own) == (name == "standalone")}
    lines = [f"| `{reason}` | {meaning} |" for reason, meaning in some.items()]
    return "\n".join(["| reason | meaning |", "|---|---|", *lines]) + "\n"


def costs(entries: str) -> str:
    """The cost of trainings at most: FLOPs, and hours on one H200."""
    lines = ["| training | times | examples | weights | FLOPs | hours |", "|---|" + "---:|" * 5]
    for name, rows in (entry.rsplit(" ", 1) for entry in entries.split(", ")):
        paper, model_of_paper, model = name.partition(":")
        if model_of_paper:
            build = load_build(f"papers/{paper}")
            recipes = [chosen_recipe(build, each).recipe for each in build.variants(model)]
        else:
            preset = read_preset(name)
            places = {"dataset": "-", "output": "-"}
            places |= {"vectors": "-"} if "vectors" in preset.kind.model_fields else {}
            recipes = [preset.recipe(places)]
        every = [cost_of(recipe, int(rows)) for recipe in recipes]
        flops, hours = sum(one.flops for one in every), sum(one.hours for one in every)
        figures = f"{every[0].examples:,} | {every[0].weights / 1e6:,.1f} M | {flops:.2g}"
        lines.append(f"| `{name}` | {len(every)} | {figures} | {hours:,.2g} |")
    return "\n".join(lines) + "\n"


def table(names: Sequence[str]) -> str:
    """The settings of builders or recipes that share most of them; a column of values for each.

    Neighbours with one meaning (the shares of the splits) share a row.
    """
    tables = [settings_of(name) for name in names]
    hidden = _unchanged(tables) if "/" in names[0] else set()
    merged: list[tuple[list[str], str]] = []
    for key in dict.fromkeys(key for fields, _ in tables for key in fields):
        if key in hidden:
            continue
        meaning = next(_meaning(fields[key]) for fields, _ in tables if key in fields)
        if merged and merged[-1][1] == meaning:
            merged[-1][0].append(key)
        else:
            merged.append(([key], meaning))
    heads = [f"`{name}`" for name in names] if len(names) > 1 else ["default"]
    lines = [f"| setting | {' | '.join(heads)} | |", "|---" * (len(names) + 2) + "|"]
    for keys, meaning in merged:
        shown = ", ".join(f"`{key}`" for key in keys)
        values = [", ".join(_cell(own[key]) for key in keys if key in own) for _, own in tables]
        lines.append(f"| {shown} | {' | '.join(values)} | {meaning.replace('|', '&#124;')} |")
    return "\n".join(lines) + "\n"


def settings_of(name: str) -> tuple[Fields, Values]:
    """The fields of a builder, recipe or shared class, and the value of each field."""
    if "/" in name:
        preset = read_preset(name)
        fields = preset.kind.model_fields
        return fields, {**_defaults(fields), **preset.settings}
    if name in {kind.__name__ for kind in SHARED}:
        kind = getattr(declared, name)
        above = [base.model_fields for base in SHARED[: SHARED.index(kind)]]
        fields = {k: f for k, f in kind.model_fields.items() if not any(k in a for a in above)}
        return fields, _defaults(fields)
    every = BUILDERS.find(name).model_fields
    fields = {key: every[key] for key in every if key not in Builder.model_fields}
    return fields, _defaults(fields)


def _defaults(fields: Fields) -> dict[str, Any]:
    return {
        key: ... if field.is_required() else field.get_default(call_default_factory=True)
        for key, field in fields.items()
    }


def _unchanged(recipes: Sequence[tuple[Fields, Values]]) -> set[str]:
    """The shared settings that none of these recipes changes."""
    shared = SHARED[-1].model_fields
    return {
        key
        for key, value in _defaults(shared).items()
        if all(
            key not in fields or (own[key], _meaning(fields[key])) == (value, _meaning(shared[key]))
            for fields, own in recipes
        )
    }


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _cell(value: Any) -> str:
    """A value as a build file has it."""
    if value is ...:
        return "required"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    if isinstance(value, tuple | list):
        if not value:
            return "empty"
        few = len(value) <= LONGEST_LIST
        return ", ".join(f"`{one}`" for one in value) if few else f"{len(value)} markers"
    if isinstance(value, Mapping):
        return ", ".join(f"`{key} = {one}`" for key, one in value.items()) or "empty"
    return f"{value:,.12g}" if isinstance(value, float) else f"{value:,}"


if __name__ == "__main__":
    for page in pages():
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
