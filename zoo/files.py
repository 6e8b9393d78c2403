"""Files that stand beside a model's weights."""

from __future__ import annotations

from pathlib import Path


def file_of(model: str | Path, name: str) -> Path | None:
    """The file `name` of a model (folder or Hub id), or None where it has none."""
    from transformers.utils.hub import cached_file

    flags = ("missing_entries", "connection_errors", "gated_repo")
    absent = {f"_raise_exceptions_for_{flag}": False for flag in flags}
    try:
        found = cached_file(str(model), name, **absent) if str(model) else None
    except OSError:  # neither a folder nor a model of the Hub
        return None
    return None if found is None else Path(found)
