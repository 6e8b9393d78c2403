"""Which licence a derived dataset carries, and whether it may be passed on.

The table says what each licence allows; `combine` says what follows for a dataset made from
sources under several of them. This is a cautious reading for engineers, not legal advice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from corpora.errors import ConfigError, nearest

UNKNOWN = "unknown"
MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Licence:
    """One row of the table. `hub` is the licence name in the Hub's card metadata.

    `rank` orders what a licence asks for: the strictest of the sources' is the dataset's.
    """

    id: str
    hub: str
    rank: int
    reason: str = ""
    redistributable: bool = True
    share_alike: bool = False

    @property
    def family(self) -> str:
        """Share-alike licences of one kind: the id without its version."""
        return self.id.rpartition("-")[0]

    @property
    def version(self) -> str:
        """Of a share-alike licence; others are not told apart by it."""
        return self.id.rpartition("-")[2] if self.share_alike else ""


@dataclass(frozen=True, slots=True)
class Combined:
    """The licence of a derived dataset.

    `sources` are the licences it follows from, `incompatible` those that cannot stand together,
    `reason` why it may not be passed on (or what to heed if it may).
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {
            "sources": list(self.sources),
            "incompatible": list(self.incompatible),
        }


def _alike(id: str, hub: str, rank: int = 4, reason: str = "") -> Licence:
    return Licence(id, hub, rank, reason, share_alike=True)


def _closed(id: str, reason: str) -> Licence:
    return Licence(id, "other", 9, reason, redistributable=False)


_US = "in the public domain in the United States; other countries may still protect it"
_NC = "for non-commercial use only"
_ROWS = (
    Licence("CC0-1.0", "cc0-1.0", 0),
    Licence("PDM-1.0", "pddl", 0),
    Licence("public-domain-us", "other", 1, _US),
    Licence("MIT", "mit", 1),
    Licence("BSD-2-Clause", "bsd-2-clause", 1),
    Licence("BSD-3-Clause", "bsd-3-clause", 1),
    Licence("Apache-2.0", "apache-2.0", 1),
    Licence("ODC-By-1.0", "odc-by", 2),
    Licence("CC-BY-2.0", "cc-by-2.0", 2),
    Licence("CC-BY-2.5", "cc-by-2.5", 2),
    Licence("CC-BY-3.0", "cc-by-3.0", 2),
    Licence("CC-BY-4.0", "cc-by-4.0", 2),
    _alike("CC-BY-SA-2.5", "other"),  # the Hub's list has no 2.5
    _alike("CC-BY-SA-3.0", "cc-by-sa-3.0"),
    _alike("CC-BY-SA-4.0", "cc-by-sa-4.0"),
    _alike("ODbL-1.0", "odbl"),
    _alike("GFDL-1.3", "gfdl"),
    Licence("CC-BY-NC-4.0", "cc-by-nc-4.0", 3, _NC),
    _alike("CC-BY-NC-SA-4.0", "cc-by-nc-sa-4.0", 5, _NC),
    _closed("CC-BY-ND-4.0", "CC-BY-ND-4.0 forbids passing on derived works, and a dataset is one"),
    _closed("LDC", "the LDC User Agreement forbids passing on its texts and what contains them"),
    _closed(
        "research-only", "its owner gives it out on request only (e.g. ROCStories, BookCorpus)"
    ),
    _closed(
        UNKNOWN, "the licence of a source is unknown: name it in the build file (`licence = ...`)"
    ),
    _closed(MIXED, "its documents are under different licences: give each document its own"),
)

TABLE: dict[str, Licence] = {row.id: row for row in _ROWS}


def get(id: str) -> Licence:
    """The row of a licence id, letter case and `_` aside; raises `ConfigError` if none."""
    folded = {key.lower(): row for key, row in TABLE.items()}
    row = folded.get((id or UNKNOWN).lower().replace("_", "-"))
    if row is None:
        known = ", ".join(sorted(TABLE))
        raise ConfigError(
            f"no licence {id!r} in the table",
            hint=f"{nearest(id, TABLE)}known: {known}",
        )
    return row


def shown(licence: str) -> str:
    """The licences of a source as a table shows them: of an unknown one what is to be done.

    `licence` is an SPDX expression; nothing, as a source made in Python may have it, is unknown.
    """
    unknown = UNKNOWN in (licence or UNKNOWN).split(" AND ")
    return f"{licence or UNKNOWN}: set `licence` of the source" if unknown else licence


def combine(ids: Iterable[str]) -> Combined:
    """The licence of a dataset made from sources under `ids`.

    Closed sources close the dataset. Among open ones the strictest is the dataset's; of two
    versions of one share-alike licence the later (CC BY-SA 3.0 allows 4.0 for what is derived
    from it); share-alike licences of different families cannot be combined, nor can one that
    allows commercial use with a source that does not.
    Raises `ConfigError` for an id that is not in the table.
    """
    rows = sorted({get(id) for id in ids} or {TABLE[UNKNOWN]}, key=lambda row: row.id)
    sources = tuple(row.id for row in rows)
    closed = [row for row in rows if not row.redistributable]
    if closed:
        reason = "; ".join(f"{row.id}: {row.reason}" for row in closed)
        id = closed[0].id if len(rows) == 1 else "other"
        return Combined(id, "other", False, reason, sources)
    clash = _clash(rows)
    if clash:
        reason = f"{' and '.join(clash)} cannot be combined in one dataset: build one from each"
        return Combined("other", "other", False, reason, sources, clash)
    strictest = max(rows, key=lambda row: (row.rank, row.version, row.id))
    return Combined(strictest.id, strictest.hub, True, _heed(rows, strictest), sources)


def _clash(rows: list[Licence]) -> tuple[str, ...]:
    """The ids that cannot stand together, or nothing."""
    alike = [row for row in rows if row.share_alike]
    noncommercial = [row for row in rows if "-NC" in row.id]
    if len({row.family for row in alike}) > 1:
        return tuple(row.id for row in alike)
    if noncommercial and any("-NC" not in row.id for row in alike):
        return tuple(row.id for row in rows if row in alike or row in noncommercial)
    return ()


def _heed(rows: list[Licence], strictest: Licence) -> str:
    """What a user of the dataset has to heed, beyond the licence's own text."""
    parts = [row.reason for row in rows if row.reason]
    if strictest.share_alike:
        parts.append(f"derived works must stay under {strictest.id} (share alike)")
    if any(row.rank >= 2 for row in rows):
        parts.append("name the sources (attribution)")
    return "; ".join(parts)
