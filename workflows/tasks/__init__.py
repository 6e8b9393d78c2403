"""The stages of a build as Luigi tasks: parameters, requires, output, one call into a room.

In the order of the data: `sources` (documents, sentences, parses and pairs: one task for each
source), `datasets` (and validation), `models` (and evaluations), `build` (the report, the whole
build, its publication).
"""

from workflows.settings import set_defaults
from workflows.tasks.build import BuildAll, PublishAll, Report
from workflows.tasks.datasets import Dataset, Divide, Validate
from workflows.tasks.models import Evaluate, Train
from workflows.tasks.sources import Documents, Pairs, Parse, Sentences

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

set_defaults()
