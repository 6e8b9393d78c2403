"""Luigi tasks that run everything: `luigi --module workflows BuildAll`.

Importing it loads no torch, transformers, spacy, stanza or datasets: a stage loads what it
needs when it runs. docs/explanation/one-document.md follows a document to a row of a dataset.
"""

import sys

if "luigi" in sys.modules:  # it finds only tasks that exist once `--module` is imported
    import workflows.tasks  # noqa: F401
