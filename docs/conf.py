"""The documentation as a site: `make docs`, then open build/docs/index.html."""

project = "discorpora"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "discorpora"
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
