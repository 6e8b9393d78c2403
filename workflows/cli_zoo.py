"""The commands of `discoforge` that work with models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(help="A recipe: a TOML file or a shipped name.")],
) -> None:
    """Train a model with RECIPE; `--key value` changes any of its settings."""
    from workflows.training import train_command

    raise typer.Exit(train_command(recipe, context.args))


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def evaluate(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(help="A suite: dissent, permuted.")],
    model: Annotated[str, typer.Option(help="A model folder or Hub id.")],
    data: Annotated[str, typer.Option(help="A dataset folder or Hub id.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures.")] = None,
) -> None:
    """Evaluate a model with SUITE."""
    from workflows.training import evaluate_command

    raise typer.Exit(evaluate_command(suite, model, data, json_file, context.args))


@commands.command()
def score(
    files: Annotated[list[str], typer.Argument(help="Text or JSONL files; `-` reads from stdin.")],
    model: Annotated[str, typer.Option(help="A coherence scorer: folder or Hub id.")],
) -> None:
    """Print a coherence score for each text (higher is more coherent)."""
    from workflows.show import show_scores

    show_scores(model, files)


@commands.command()
def zoo(
    results: Annotated[Path | None, typer.Option(help="A folder of trained models.")] = None,
) -> None:
    """List the recipes: paper, objective, dataset, published figure, figure measured here."""
    from workflows.show import show_recipes

    show_recipes(results)
