"""The minimum number of units for a bootstrap interval."""

from __future__ import annotations

FEW = 10
"""With fewer units (documents, rows, pairs) an interval is meaningless: with one it has no width.
"""
