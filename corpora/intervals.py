"""From how many units on a bootstrap interval is given."""

from __future__ import annotations

FEW = 10
"""Of fewer units (documents, rows, pairs) an interval says nothing: of one it has no width."""
