"""Texts in another language than a model's: `score` and `predict-marker` name them."""

from __future__ import annotations

import typer

from corpora.errors import amount
from corpora.languages import name_of, other_language

NAMED = 5
"""The texts that a warning names."""


class ForeignTexts:
    """Counts the texts that are not in a language of `model` (folder or Hub id).

    The languages are those of the model's card; of a card without one, no text is foreign.
    """

    def __init__(self, model: str) -> None:
        from zoo.folders import languages_of

        self.languages = languages_of(model)
        self.count = 0
        self.names: list[str] = []

    def check(self, name: str, text: str) -> str:
        """The language of a text that is not in one of the model's ("another language"), or ""."""
        others = [other_language(text, language) for language in self.languages]
        if not others or not all(others):
            return ""
        self.count += 1
        if self.count <= NAMED:
            self.names.append(f"{name} ({others[0]})")
        return others[0]

    def warn(self, what: str, so: str) -> None:
        """Name what was foreign (`what`: "text"), and what follows; nothing if nothing was."""
        if self.count:
            more = [f"{self.count - NAMED:,} more"] if self.count > NAMED else []
            verb = "is" if self.count == 1 else "are"
            typer.echo(
                f"warning: {amount(self.count, what)} {verb} not in "
                f"{' or '.join(map(name_of, self.languages))}, which the model is for: "
                f"{', '.join([*self.names, *more])}; {so}",
                err=True,
            )
