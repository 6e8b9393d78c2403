"""Warnings of `score` and `predict-marker` for texts in another language than the model's."""

from __future__ import annotations

from pathlib import Path

import typer

from corpora.errors import amount
from corpora.languages import is_code, name_of, other_language
from zoo import file_of

NAMED = 5
"""Maximum number of texts that a warning names."""


class ForeignTexts:
    """Counts foreign texts: those in none of the languages of `model` (a folder or Hub id).

    The languages are those on the model's card; if it names none, no text is foreign.
    """

    def __init__(self, model: str) -> None:
        self.languages = languages_of(model)
        self.count = 0
        self.names: list[str] = []

    def check(self, name: str, text: str) -> str:
        """Count a foreign text; returns its language, or "another language", but "" for others."""
        others = [other_language(text, language) for language in self.languages]
        if not others or not all(others):
            return ""
        self.count += 1
        if self.count <= NAMED:
            self.names.append(f"{name} ({others[0]})")
        return others[0]

    def warn(self, what: str, consequence: str) -> None:
        """Print a warning of foreign texts, called `what`, if any; it ends with `consequence`."""
        if self.count:
            more = [f"{self.count - NAMED:,} more"] if self.count > NAMED else []
            verb = "is" if self.count == 1 else "are"
            typer.echo(
                f"warning: {amount(self.count, what)} {verb} not in "
                f"{' or '.join(map(name_of, self.languages))}, which the model is for: "
                f"{', '.join([*self.names, *more])}; {consequence}",
                err=True,
            )


def languages_of(model: str | Path) -> list[str]:
    """Return the codes of the languages on the card of a model, which is a folder or a Hub id."""
    import yaml
    from huggingface_hub import RepoCard

    path = file_of(model, "README.md")
    try:
        card = RepoCard.load(path, ignore_metadata_errors=True).data.to_dict() if path else {}
    except (yaml.YAMLError, ValueError):  # not a card of the Hub's form
        return []
    language = card.get("language") or []
    codes = [language] if isinstance(language, str) else language
    return [code for code in codes if isinstance(code, str) and is_code(code)]
