"""The section "Blind ratings" of a dataset's card."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from corpora.errors import InputError
from corpora.ratings.answers import Scores
from corpora.store.atomic import MANIFEST, beside, locked, read_json, seal, write_json, write_text
from corpora.store.card import from_template
from corpora.store.copies import replacing_folder
from corpora.store.damage import damages
from corpora.store.manifest import read_manifest

CARD = "README.md"
TITLE = "Blind ratings"
_SECTION = re.compile(rf"^## {TITLE}$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_NEXT = re.compile(r"^## (?:How far simple rules get|How it was made|Citation)$|\Z", re.MULTILINE)
"""The section stands before the first of these, or at the end."""


def put_on_card(folder: Path, scores: Scores) -> None:
    """Put scores on the card of a built dataset, and into its manifest under `ratings`.

    Scores of the same draw are replaced, those of other rows dropped. The folder changes by one
    rename. Raises `InputError` for a folder that was not built, or was edited or damaged since.
    """
    if not (folder / MANIFEST).is_file():
        hint = "--card is for a folder that discorpora built; --json writes the figures elsewhere"
        raise InputError(f"has no {MANIFEST}", where=str(folder), hint=hint)
    with locked(beside(folder, "lock"), "another process makes this folder"):
        read_manifest(folder / MANIFEST)
        for damage in damages(folder):
            hint = "build it again, then put the ratings on its card"
            raise InputError(damage.problem, where=str(damage.path), hint=hint)
        with replacing_folder(folder) as copy:
            manifest = read_json(copy / MANIFEST)
            entry = asdict(scores)
            others = [
                earlier
                for earlier in manifest.get("ratings", [])
                if earlier["draw"] != entry["draw"]
                and (earlier["config"] != entry["config"] or earlier["digest"] == entry["digest"])
            ]
            rounds = sorted([*others, entry], key=lambda each: (each["config"], each["draw"]))
            section = from_template("ratings.md", {"rounds": rounds}).strip()
            text = _SECTION.sub("", (copy / CARD).read_text(encoding="utf-8"))
            place = _NEXT.search(text)
            at = place.start() if place else len(text)
            card = f"{text[:at].rstrip()}\n\n{section}\n\n{text[at:]}".rstrip() + "\n"
            write_text(copy / CARD, card)
            write_json(copy / MANIFEST, {**manifest, "ratings": rounds})
            seal(copy)
