"""Shared by the commands that train the shipped models: command line, results and card."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from corpora.store.atomic import write_json, write_text
from zoo.training.job import RESULTS

log = logging.getLogger("zoo")


def command(
    run: Callable[[Namespace], None], parser: ArgumentParser, arguments: Sequence[str] | None
) -> int:
    """Parse `arguments`, call `run` with the options, and return the exit code.

    An error is one message in the log and exit code 2. The path `--output` must be new.
    """
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        if "output" in options and options.output.exists():
            raise FileExistsError(f"{options.output} exists: remove it or give another --output")
        run(options)
    except (OSError, ValueError) as error:
        log.error("error: %s", error)
        return 2
    return 0


def write_shipped_files(
    folder: Path,
    recipe: str,
    seed: int,
    model: Any,
    metrics: Mapping[str, Any],
    template: Path,
    data: Mapping[str, Any] | None = None,
    **texts: str,
) -> None:
    """Write `results.json` and the card (README.md) into the `folder` of a model to be shipped. The
    results have the recipe, the seed, the model's size, its `metrics`, and `data`: facts about the
    training data. The card is the file `template`, with `texts` in place of its placeholders."""
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    results = {
        "recipe": recipe,
        "seed": seed,
        "megabytes": round(size, 2),
        "parameters": sum(p.numel() for p in model.parameters()),
        "metrics": metrics,
        **({"data": data} if data else {}),
    }
    write_json(folder / RESULTS, results)
    card = Template(template.read_text(encoding="utf-8"))
    write_text(folder / "README.md", card.substitute(texts, megabytes=f"{size:.1f}"))
    log.info("%s: %.1f MB", folder, size)
