"""Whether a finished folder may be published: what follows from its sources' licences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora import licences
from corpora.errors import ConfigError, InputError

RESULTS = "results.json"


@dataclass(frozen=True, slots=True)
class LicenceDecision:
    """Whether a folder may be published, under which licence, and why (not).

    `hub` is the licence's name in the card's metadata, `sources` the licences it follows from.
    """

    id: str
    hub: str
    allowed: bool
    reason: str
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "may be published" if self.allowed else "may NOT be published"
        return f"{self.id}: {verdict}" + (f" ({self.reason})" if self.reason else "")


def dataset_licence(manifest: Mapping[str, Any]) -> LicenceDecision:
    """The manifest's licence, derived again from its sources: the stricter of both counts."""
    stored = manifest.get("licence")
    if not isinstance(stored, Mapping):
        return _decide([licences.UNKNOWN])
    decision = _decide([*stored.get("sources", ()), *manifest.get("licences", ())])
    if decision.allowed and stored.get("redistributable") is not True:
        reason = str(stored.get("reason") or "its manifest says that it may not be passed on")
        return LicenceDecision(decision.id, "other", False, reason, decision.sources)
    return decision


def model_licence(folder: Path) -> LicenceDecision:
    """The licence of the text that a model was trained on, from its results.json."""
    path = folder / RESULTS
    if not path.is_file():
        raise InputError("is missing", where=str(path), hint="train the model to its end")
    try:
        dataset = json.loads(path.read_text(encoding="utf-8")).get("dataset") or {}
    except (ValueError, AttributeError) as error:
        raise InputError(f"is not a model's results: {error}", where=str(path)) from error
    return _decide([str(dataset.get("licence") or licences.UNKNOWN)])


def _decide(ids: list[str]) -> LicenceDecision:
    try:
        combined = licences.combine(ids)
    except ConfigError:
        names = ", ".join(sorted(set(ids)))
        reason = f"no licence {names} is known: some of its sources are closed or incompatible"
        return LicenceDecision("other", "other", False, reason, tuple(sorted(set(ids))))
    return LicenceDecision(
        combined.id, combined.hub, combined.redistributable, combined.reason, combined.sources
    )
