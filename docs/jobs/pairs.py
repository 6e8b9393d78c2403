# /// script
# requires-python = ">=3.11"
# dependencies = ["discorpora"]
# ///
"""Make a dataset of sentence pairs and their markers (DisSent) from the texts of a Hub dataset.

uv run pairs.py TEXTS REPOSITORY            # on this machine
hf jobs uv run --secrets HF_TOKEN pairs.py TEXTS REPOSITORY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import discorpora
from corpora.errors import DiscorporaError
from corpora.publish import publish
from corpora.publish.hub import Hub


def main(
    texts: Annotated[str, typer.Argument(help="A dataset of the Hub: ORG/NAME.")],
    repository: Annotated[str, typer.Argument(help="Where the pairs go: NAMESPACE/NAME.")],
    column: Annotated[str, typer.Option(help="The column of the texts.")] = "",
    config: Annotated[str, typer.Option(help="The configuration of the texts.")] = "",
    split: Annotated[str, typer.Option(help="The split of the texts.")] = "train",
    licence: Annotated[str, typer.Option(help="Their licence, if their records name none.")] = "",
    markers: Annotated[str, typer.Option(help="A set, or a list: `because,so`.")] = "all15",
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    output: Annotated[Path, typer.Option(help="The folder of the results.")] = Path("build"),
    private: Annotated[bool, typer.Option("--private", help="Make a private dataset.")] = False,
) -> None:
    """Make pairs of the sentences of TEXTS, and publish them as REPOSITORY."""
    options = {"text": column, "config": config, "split": split}
    source: dict[str, Any] = {
        "name": "texts",
        "spec": f"hub:{texts}",
        "options": {key: value for key, value in options.items() if value},
        "datasets": ["dissent"],
    }
    tables = {
        "name": "job",
        "sources": [source | ({"licence": licence} if licence else {})],
        "extract": {"markers": markers},
        "datasets": {"dissent": {}},
    }
    try:
        hub = Hub()
        hub.require_namespace(repository)  # before the work, not after it
        folder = discorpora.build(tables, output, workers=workers)
        result = publish(folder / "datasets" / "dissent", repository, private=private, hub=hub)
    except DiscorporaError as error:
        sys.exit(f"error: {error}")
    typer.echo("\n".join(result.lines()))


if __name__ == "__main__":
    typer.run(main)
