# /// script
# requires-python = ">=3.11"
# dependencies = ["discorpora[zoo]"]
# ///
"""Train a recipe on a dataset of the Hub, and publish the model with its card and figures.

uv run train.py RECIPE DATASET REPOSITORY   # on this machine
hf jobs uv run --flavor t4-small --secrets HF_TOKEN train.py RECIPE DATASET REPOSITORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import discorpora
from corpora.errors import DiscorporaError
from corpora.publish import publish
from corpora.publish.hub import Hub


def setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of `NAME=VALUE`; a value may be JSON."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r}: write NAME=VALUE, such as epochs=2")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main(
    recipe: Annotated[str, typer.Argument(help="Such as `dissent/bilstm`: see discorpora zoo.")],
    dataset: Annotated[str, typer.Argument(help="A dataset of the Hub: ORG/NAME[@CONFIG].")],
    repository: Annotated[str, typer.Argument(help="Where the model goes: NAMESPACE/NAME.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, NAME=VALUE; repeatable.")
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder of the model.")] = Path("model"),
    private: Annotated[bool, typer.Option("--private", help="Make a private model.")] = False,
) -> None:
    """Train RECIPE on DATASET, and publish the model as REPOSITORY."""
    values = dict(map(setting, settings or ()))
    try:
        hub = Hub()
        hub.require_namespace(repository)  # before the work, not after it
        folder = discorpora.train(recipe, dataset, output, **values)
        result = publish(folder, repository, kind="model", private=private, hub=hub)
    except DiscorporaError as error:
        sys.exit(f"error: {error}")
    typer.echo("\n".join(result.lines()))


if __name__ == "__main__":
    typer.run(main)
