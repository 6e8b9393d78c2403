"""The licence of a derived dataset, and whether it may be passed on.

The table says what each licence allows; `combine` gives the licence of a dataset made from sources
under several of them. This is a cautious reading for engineers, not legal advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from corpora.errors import chosen

UNKNOWN = "unknown"
MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Licence:
    """One row of the table. `hub` is the licence name in the Hub's card metadata.

    `rank` orders licences by strictness: the strictest of the sources' is the dataset's.
    """

    id: str
    hub: str
    rank: int
    reason: str = ""
    redistributable: bool = True
    share_alike: bool = False


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


_US = "in the public domain in the United States; other countries may still protect it"
_NC = "for non-commercial use only"
_ND = "CC-BY-ND-4.0 forbids passing on derived works, and a dataset is one"
_LDC = "the LDC User Agreement forbids passing on its texts and what contains them"
_REQUEST = "its owner gives it out on request only (e.g. ROCStories, BookCorpus)"
_UNKNOWN = "the licence of a source is unknown: name it in the build file (`licence = ...`)"
_MIXED = "its documents are under different licences: give each document its own"
_ALIKE = {"share_alike": True}
_CLOSED = {"redistributable": False}
_ROWS: tuple[tuple[str, str, int, str, dict[str, bool]], ...] = (
    ("CC0-1.0", "cc0-1.0", 0, "", {}),
    ("PDM-1.0", "pddl", 0, "", {}),
    ("public-domain-us", "other", 1, _US, {}),
    ("MIT", "mit", 1, "", {}),
    ("BSD-2-Clause", "bsd-2-clause", 1, "", {}),
    ("BSD-3-Clause", "bsd-3-clause", 1, "", {}),
    ("Apache-2.0", "apache-2.0", 1, "", {}),
    ("ODC-By-1.0", "odc-by", 2, "", {}),
    ("CC-BY-2.0", "cc-by-2.0", 2, "", {}),
    ("CC-BY-2.5", "cc-by-2.5", 2, "", {}),
    ("CC-BY-3.0", "cc-by-3.0", 2, "", {}),
    ("CC-BY-4.0", "cc-by-4.0", 2, "", {}),
    ("CC-BY-SA-2.5", "other", 4, "", _ALIKE),  # the Hub's list has no 2.5
    ("CC-BY-SA-3.0", "cc-by-sa-3.0", 4, "", _ALIKE),
    ("CC-BY-SA-4.0", "cc-by-sa-4.0", 4, "", _ALIKE),
    ("ODbL-1.0", "odbl", 4, "", _ALIKE),
    ("GFDL-1.3", "gfdl", 4, "", _ALIKE),
    ("CC-BY-NC-4.0", "cc-by-nc-4.0", 3, _NC, {}),
    ("CC-BY-NC-SA-4.0", "cc-by-nc-sa-4.0", 5, _NC, _ALIKE),
    ("CC-BY-ND-4.0", "other", 9, _ND, _CLOSED),
    ("LDC", "other", 9, _LDC, _CLOSED),
    ("research-only", "other", 9, _REQUEST, _CLOSED),
    (UNKNOWN, "other", 9, _UNKNOWN, _CLOSED),
    (MIXED, "other", 9, _MIXED, _CLOSED),
)

TABLE = {id: Licence(id, hub, rank, why, **flags) for id, hub, rank, why, flags in _ROWS}


def get(id: str) -> Licence:
    """The row of a licence id, letter case and `_` aside; raises `ConfigError` if none."""
    folded = {key.lower(): row for key, row in TABLE.items()}
    row = folded.get((id or UNKNOWN).lower().replace("_", "-"))
    return row or TABLE[chosen("licence", id, sorted(TABLE))]


def known(ids: Iterable[str]) -> list[str]:
    """The ids, unknown for those that are not in the table: anybody may have written them."""
    folded = {key.lower() for key in TABLE}
    return [id if id.lower().replace("_", "-") in folded else UNKNOWN for id in ids]


def of_card(metadata: Mapping[str, Any]) -> str:
    """The licence named in a card's metadata on the Hub; unknown if it is not in the table."""
    own = metadata.get("license")
    named = str(metadata.get("license_name") if own == "other" else own).lower()
    rows = TABLE.values()
    ids = (row.id for row in rows if named in {row.hub, row.id.lower()} - {"other"})
    return next(ids, UNKNOWN)


def shown(licence: str) -> str:
    """The licences of a source for display; an unknown one comes with advice.

    `licence` is an SPDX expression; an empty one (a source made in Python) is unknown.
    """
    unknown = UNKNOWN in (licence or UNKNOWN).split(" AND ")
    return f"{licence or UNKNOWN}: set `licence` of the source" if unknown else licence


def combine(ids: Iterable[str]) -> Combined:
    """The licence of a dataset made from sources under `ids`.

    Closed sources close the dataset. Among open ones the strictest is the dataset's; of two
    versions of one share-alike licence, the later (CC BY-SA 3.0 allows 4.0 for derived works);
    share-alike licences of different families cannot be combined, nor can one that allows
    commercial use with a source that does not. Raises `ConfigError` for an id that is not in the
    table.
    """
    rows = sorted({get(id) for id in ids} or {TABLE[UNKNOWN]}, key=lambda row: row.id)
    sources = tuple(row.id for row in rows)
    closed = [row for row in rows if not row.redistributable]
    if closed:
        reason = "; ".join(f"{row.id}: {row.reason}" for row in closed)
        id = closed[0].id if len(rows) == 1 else "other"
        return Combined(id, "other", False, reason, sources)
    # Share-alike licences of one kind differ in their versions only: CC-BY-SA-3.0, CC-BY-SA-4.0.
    alike = [row for row in rows if row.share_alike]
    noncommercial = [row for row in rows if "-NC" in row.id]
    clash: tuple[str, ...] = ()
    if len({row.id.rpartition("-")[0] for row in alike}) > 1:
        clash = tuple(row.id for row in alike)
    elif noncommercial and any(row not in noncommercial for row in alike):
        clash = tuple(row.id for row in rows if row in alike or row in noncommercial)
    if clash:
        reason = f"{' and '.join(clash)} cannot be combined in one dataset: build one from each"
        return Combined("other", "other", False, reason, sources, clash)
    strictest = max(rows, key=lambda row: (row.rank, row.id))
    heed = [row.reason for row in rows if row.reason]
    if strictest.share_alike:
        heed.append(f"derived works must stay under {strictest.id} (share alike)")
    if any(row.rank >= 2 for row in rows):
        heed.append("name the sources (attribution)")
    return Combined(strictest.id, strictest.hub, True, "; ".join(heed), sources)
