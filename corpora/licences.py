"""The licence of a derived dataset, and whether it may be passed on.

The table (`licences.toml`) says what each licence allows; `combine` gives the licence of a dataset
made from sources under several of them. This is a cautious reading for engineers, not legal advice.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.errors import check_choice

UNKNOWN = "unknown"
ATTRIBUTION_RANK = 2
"""The lowest `rank` of a licence that asks for the sources to be named."""


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence, as one row of the table of licences.

    `id` is its SPDX identifier, `hub` its name in the Hub's card metadata. `rank` orders licences
    by strictness: a dataset gets the strictest licence of its sources. `reason` says why data may
    not be passed on (if not `redistributable`), or on which conditions. `names` are its other
    names, in the spelling of `_normalize_name`.
    """

    id: str
    hub: str
    rank: int
    reason: str = ""
    redistributable: bool = True
    share_alike: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Combined:
    """The licence of a derived dataset.

    `sources` are the licences it is derived from, `incompatible` those that cannot be combined,
    `reason` why it may not be passed on (or the conditions if it may).
    """

    id: str
    hub: str
    redistributable: bool
    reason: str
    sources: tuple[str, ...]
    incompatible: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "may be published" if self.redistributable else "may NOT be published"
        return f"{self.id}: {verdict}" + (f" ({self.reason})" if self.reason else "")


_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TABLE = {
    id: Licence(id, **row | {"names": tuple(row.get("names", ()))}) for id, row in _ROWS.items()
}


_BY_NAME = {name: row for row in TABLE.values() for name in (row.hub, *row.names, row.id.lower())}
_BY_NAME["other"] = TABLE[UNKNOWN]  # the Hub's name for all that it does not know
_ADDRESS = re.compile(
    r"(?:https?://)?(?:www\.)?(?:creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)/([\d.]+)"
    # A jurisdiction, and the page of the summary or of the whole text.
    r"(?:/[a-z]{2,3}|/igo|/scotland)?(?:/(?:legalcode|deed)(?:[.-][a-z_-]+)?)?/?(?:[?#]\S*)?$"
    r"|apache\.org/licenses/license-([\d.]+?)(?:\.txt|\.html)?$"
    r"|(?:spdx\.org/licenses|opensource\.org/licenses?)/([\w.-]+?)(?:\.html)?$)"
)
_PUBLIC_DOMAIN = {"zero": "cc0", "mark": "pdm"}
_SHORTER = (
    (r"^licen[cs]e:", ""),
    (r"public licen[cs]e$", ""),
    (r"creative commons", "cc"),
    (r"attribution", "by"),
    (r"non[- ]?commercial", "nc"),
    (r"share[- ]?alike", "sa"),
    (r"no[- ]?(?:derivs|derivatives)", "nd"),
    (r"\b(?:the|licen[cs]ed?|version|international|unported|generic|universal|deed)\b", ""),
    (r"\bv(?=\d)", ""),
    (r"[\s_,-]+", "-"),
    (r"^by-", "cc-by-"),
    (r"^(cc-by[a-z-]*-\d)-?$", r"\1.0"),
)


def _normalize_name(name: str) -> str:
    """Return a licence's name or address in one spelling: `cc-by-4.0` for `CC BY 4.0 Unported`."""
    name = re.sub("[\u2010-\u2015]", "-", name.strip().lower()).rstrip("./")  # hyphens and dashes
    if address := _ADDRESS.match(name):
        kind, number, apache, spdx = address.groups()
        if kind:
            return f"{_PUBLIC_DOMAIN.get(kind, f'cc-{kind}')}-{number}"
        return spdx or f"apache-{apache}"
    for pattern, short in _SHORTER:
        name = re.sub(pattern, short, name)
    return name.strip("-")


def licence_id(name: str) -> str | None:
    """Return the id of the licence with this name or address; None if it is not in the table.

    A text in brackets at the end either repeats the name, as in `MIT License (MIT)`, or is read as
    a part of it, as in `Public domain (in the USA)`.
    """
    head, bracket, in_brackets = name.strip().rstrip(".").removesuffix(")").partition("(")
    if bracket and "(" not in in_brackets and (id := licence_id(in_brackets)):
        return id if licence_id(head) == id else None
    if bracket:
        name = f"{head} {in_brackets}"
    row = _BY_NAME.get(name.lower()) or _BY_NAME.get(_normalize_name(name))
    return row.id if row else None


def lookup(name: str) -> Licence:
    """Return the licence with this name; raises `ConfigError` if it is not in the table."""
    return TABLE[licence_id(name or UNKNOWN) or check_choice("licence", name, sorted(TABLE))]


def known(names: Iterable[str]) -> list[str]:
    """Return the names of licences, with `unknown` in place of each that is not in the table."""
    return [name if name and licence_id(name) else UNKNOWN for name in names]


def of_card(metadata: Mapping[str, Any]) -> str:
    """Return the licence in the metadata of a card on the Hub; `unknown` if not in the table."""
    name = metadata.get("license")
    if isinstance(name, list) and len(name) == 1:
        name = name[0]
    return licence_id(str(metadata.get("license_name") if name == "other" else name)) or UNKNOWN


def shown(licence: str) -> str:
    """Return the licences of a source for display; an unknown one comes with advice.

    `licence` is an SPDX expression; an empty one (a source made in Python) is unknown.
    """
    unknown = UNKNOWN in (licence or UNKNOWN).split(" AND ")
    return f"{licence or UNKNOWN}: set `licence` of the source" if unknown else licence


def combine(ids: Iterable[str]) -> Combined:
    """Return the licence of a dataset made from sources whose licences are `ids`.

    - A source that may not be passed on closes the dataset.
    - Among open licences the strictest is the dataset's; among versions of one share-alike licence
      the latest (CC BY-SA 3.0 allows 4.0 for derived works).
    - Share-alike licences of different families cannot be combined. A share-alike licence that
      allows commercial use cannot be combined with a source that does not.

    Raises `ConfigError` for an id that is not in the table.
    """
    rows = sorted({lookup(id) for id in ids} or {TABLE[UNKNOWN]}, key=lambda row: row.id)
    sources = tuple(row.id for row in rows)
    # A source that may not be passed on
    closed = [row for row in rows if not row.redistributable]
    if closed:
        reason = "; ".join(f"{row.id}: {row.reason}" for row in closed)
        id = closed[0].id if len(rows) == 1 else "other"
        return Combined(id, "other", False, reason, sources)
    # Share-alike licences of one kind differ in their versions only: CC-BY-SA-3.0, CC-BY-SA-4.0.
    share_alike = [row for row in rows if row.share_alike]
    # Licences that cannot be combined
    noncommercial = [row for row in rows if "-NC" in row.id]
    incompatible: tuple[str, ...] = ()
    if len({row.id.rpartition("-")[0] for row in share_alike}) > 1:
        incompatible = tuple(row.id for row in share_alike)
    elif noncommercial and any(row not in noncommercial for row in share_alike):
        incompatible = tuple(row.id for row in rows if row in share_alike or row in noncommercial)
    if incompatible:
        names = " and ".join(incompatible)
        reason = f"{names} cannot be combined in one dataset: build one from each"
        return Combined("other", "other", False, reason, sources, incompatible)
    # The strictest licence, with the conditions of all
    strictest = max(rows, key=lambda row: (row.rank, row.id))
    conditions = list(dict.fromkeys(row.reason for row in rows if row.reason))
    if strictest.share_alike:
        conditions.append(f"derived works must stay under {strictest.id} (share alike)")
    if any(row.rank >= ATTRIBUTION_RANK for row in rows):
        conditions.append("name the sources (attribution)")
    return Combined(strictest.id, strictest.hub, True, "; ".join(conditions), sources)
