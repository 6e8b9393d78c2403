"""Tables as LaTeX: a `tabular` that a paper can include."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "–": "--",
    "…": r"\dots{}",
    "λ": r"$\lambda$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "×": r"$\times$",
    "²": r"\texttwosuperior{}",
    "→": r"\textrightarrow{}",
}
"""LaTeX for characters that mean something else in it, or that it lacks."""


def latex_of(value: str) -> str:
    """Return a text as LaTeX."""
    return "".join(SPECIAL.get(character, character) for character in value)


def tabular(
    columns: str, rows: Sequence[Sequence[str]], before: Iterable[str], after: Iterable[str] = ()
) -> str:
    """Return a `tabular` with `columns` such as `llr`; a rule follows the first row, the header.

    `rows` are cells in LaTeX. The texts `before` and `after` become comments around the table.
    """
    head, *rest = (f"{' & '.join(row)} \\\\" for row in rows)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", head, r"\hline", *rest, r"\hline"]
    lines = [*_comments(before), *lines, r"\end{tabular}", *_comments(after)]
    return "\n".join(lines) + "\n"


def _comments(texts: Iterable[str]) -> list[str]:
    return [f"% {' '.join(text.split())}" for text in texts]
