"""`discorpora predict-marker`: which marker joins two sentences."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import typer

from corpora.errors import InputError


def show_markers(model: str, s1: str, s2: str, top: int) -> None:
    """Print a line a marker: its probability, the most probable first."""
    from zoo.dissent.prediction import predict

    if not s1.strip():
        raise InputError("the first sentence is empty", hint='give "S1" "S2"')
    _quiet()
    [found] = predict(model, [(s1, s2)])
    for marker, probability in _first(found, top):
        typer.echo(f"{probability:.4f}  {marker}")


def show_markers_of_file(model: str, path: Path, top: int) -> None:
    """Print a JSON line a pair: the markers with their probabilities."""
    from zoo.dissent.prediction import predictions, read_pairs

    if not path.is_file():
        raise InputError(
            "neither two sentences nor a file of pairs",
            where=str(path),
            hint='give "S1" "S2", or a TSV or JSONL file',
        )
    _quiet()
    for found in predictions(model, read_pairs(path)):
        rounded = {marker: round(value, 6) for marker, value in _first(found, top)}
        typer.echo(json.dumps(rounded, ensure_ascii=False))


def _first(found: dict[str, float], top: int) -> list[tuple[str, float]]:
    return list(islice(found.items(), top or None))


def _quiet() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
