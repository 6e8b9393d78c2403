"""Luigi tasks that run everything: `luigi --module workflows BuildAll`.

Importing it loads no torch, transformers, spacy, stanza or datasets: a stage loads what it
needs when it runs. The tasks are loaded on first use, so that the command line starts quickly.
"""

import sys

from zoo import lazily

__all__ = [
    "BuildAll",
    "Dataset",
    "Divide",
    "Documents",
    "Evaluate",
    "Pairs",
    "Parse",
    "PublishAll",
    "Report",
    "Sentences",
    "Train",
    "Validate",
]

__getattr__ = lazily("workflows", {"tasks": tuple(__all__)})

if "luigi" in sys.modules:  # it finds only tasks that exist once `--module` is imported
    import workflows.tasks  # noqa: F401
