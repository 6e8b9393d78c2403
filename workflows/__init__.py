"""Luigi tasks that run everything: `luigi --module workflows BuildAll`.

Importing it loads no torch, transformers, spacy, stanza or datasets: a stage loads what it
needs when it runs.
"""

from workflows.settings import set_defaults
from workflows.tasks import *  # noqa: F403 (Luigi finds the tasks of the module that it is told)
from workflows.tasks import __all__ as __all__

set_defaults()
