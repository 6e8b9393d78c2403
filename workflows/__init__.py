"""Luigi tasks that run everything: `luigi --module workflows BuildAll`.

Importing it loads no torch, transformers, spacy, stanza or datasets: a stage loads what it
needs when it runs. docs/explanation/one-document.md follows a document to a row of a dataset.
"""

import sys

if "luigi" in sys.modules:  # it knows only tasks that `--module` has imported
    import workflows.tasks  # noqa: F401
