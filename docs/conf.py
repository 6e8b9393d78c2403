"""The documentation as a site: `make docs`, then open build/docs/index.html."""

from __future__ import annotations

import re
from typing import Any

project = "discorpora"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "discorpora"
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["ref.python"]  # types of equal names in several modules
# Docstrings are plain text with Markdown's backticks.
default_role = "code"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}


def commands(app: Any, page: str, source: list[str]) -> None:
    """Put the commands, as Typer describes them, in the place of `<!-- commands -->`."""
    if page != "reference/commands":
        return
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from workflows.cli.app import app as program

    context = get_command(program).make_context("discorpora", ["markers"])
    text = get_docs_for_click(obj=get_command(program), ctx=context, name="discorpora")
    text = re.sub(r"^# .*$", "", text, count=1, flags=re.MULTILINE)
    source[0] = source[0].replace("<!-- commands -->", text)


def setup(app: Any) -> None:
    app.connect("source-read", commands)
