"""Validation of extracted pairs against gold discourse relations (PDTB 2.0, PDTB 3.0, GDTB)."""

from extract.validate.report import plot, to_markdown
from extract.validate.scoring import Validation, tree_source, validate

__all__ = ["Validation", "plot", "to_markdown", "tree_source", "validate"]
