"""The minimum number of units for a bootstrap interval."""

from __future__ import annotations

FEW = 10
"""With fewer units (documents, rows, pairs) an interval says nothing: that of one has no width."""
