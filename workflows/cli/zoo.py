"""The commands of `discorpora` that work with models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corpora.terminal import print_table
from workflows.cli.common import Command, Json
from workflows.cli.scoring import predict_marker, score
from zoo import require_extra

commands = typer.Typer()
converters = typer.Typer(
    name="convert", help="Convert the checkpoint of a paper's authors.", no_args_is_help=True
)
commands.add_typer(converters)

PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
"""Settings of a command whose arguments the zoo reads, `--help` included."""


def recipes() -> list[str]:
    """Return the names of the shipped recipes, for completion in a shell."""
    from zoo.presets import shipped

    return [*shipped()]


def suites() -> list[str]:
    """Return the names of the suites, for completion in a shell."""
    from zoo.evaluate import SUITES

    return [*SUITES]


@commands.command(context_settings=PASSED_ON)
def train(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(autocompletion=recipes)] = "",
) -> None:
    """Train a model with RECIPE; `train RECIPE --help` lists its settings."""
    from zoo.train import main

    raise typer.Exit(main([recipe, *context.args] if recipe else context.args))


@commands.command(context_settings=PASSED_ON)
def evaluate(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(autocompletion=suites)] = "",
) -> None:
    """Evaluate a model with SUITE; `evaluate SUITE --help` lists its options."""
    from zoo.evaluate.__main__ import main

    raise typer.Exit(main([suite, *context.args] if suite else context.args))


@commands.command(cls=Command)
def compare(
    paths: Annotated[
        list[str], typer.Argument(help="Results (JSON), or evaluation and model folders.")
    ],
    layout: Annotated[str, typer.Option("--format", help="markdown, csv or json.")] = "markdown",
    as_json: Json = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the tables to this file.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published/--no-published", help="Add the rows of the papers.")
    ] = True,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="Average results of one name over their seeds.")
    ] = False,
) -> None:
    """Compare the results of several models in one table; other data or protocols are an error."""
    from corpora.store.atomic import write_text
    from zoo.evaluate.compare import compare as compare_results

    comparison = compare_results(paths, published=published, seeds=seeds)
    text = comparison.render("json" if as_json else layout)
    if output is None:
        typer.echo(text)
    else:
        write_text(output, text)


@commands.command(cls=Command)
def confusions(
    unbalanced: Annotated[Path, typer.Argument(help="Results of the suite `dissent` (JSON).")],
    balanced: Annotated[
        Path, typer.Argument(help="The results of a model trained on balanced data.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The name of the output files, without suffix.")
    ],
) -> None:
    """Compare two models' confusions by regression (DisSent, appendix A.4): R2 with p, plots."""
    from zoo.evaluate.confusions import compare_files

    compare_files(unbalanced, balanced, output)


commands.command(cls=Command)(score)
commands.command("predict-marker", cls=Command)(predict_marker)


@commands.command(cls=Command)
def zoo(
    results: Annotated[
        Path | None, typer.Option(help="A folder of trained models: show their figures.")
    ] = None,
) -> None:
    """List the recipes: objective, data, size, time on a CPU, published and measured figures."""
    from zoo.presets import catalogue

    rows = []
    for entry in catalogue(results):
        about = entry.about
        facts = (entry.size, entry.time, about.published, entry.measured)
        rows.append([entry.name, about.paper, about.objective, about.dataset, *facts])
    figure = "measured" if results else "measured here"
    columns = ("name", "paper", "objective", "dataset", "size", "CPU", "published", figure)
    caption = "size: weights; CPU: a training on one busy core; docs/results/zoo.md says more"
    print_table(columns, rows, caption=caption, whole=("name", "CPU"))


@converters.command("coherence", cls=Command)
def convert_coherence(
    checkpoint: Annotated[Path, typer.Argument(help="CHECKPOINT.pt of ntunlp/coherence-paradigm.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model folder.")],
    backbone: Annotated[
        str, typer.Option(help="The encoder it was trained with: folder or Hub id.")
    ] = "xlnet/xlnet-base-cased",
    max_tokens: Annotated[
        int, typer.Option(min=8, help="The maximum length of a text, in tokens.")
    ] = 600,
) -> None:
    """Convert a coherence model: state dicts with main_encoder.* or model.*, and conlinear.*."""
    require_extra("to convert a model")
    from zoo.coherence.convert import convert

    left_out = convert(checkpoint, output, backbone, max_tokens)
    typer.echo(f"{output}" + (f" (left out: {', '.join(left_out)})" if left_out else ""))


@converters.command("conpono", cls=Command)
def convert_conpono(
    checkpoint: Annotated[Path, typer.Argument(help="The TensorFlow checkpoint's prefix.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model folder.")],
    encoder: Annotated[
        str, typer.Option(help="The encoding of targets: full or isolated.")
    ] = "full",
    vocabulary: Annotated[
        Path | None, typer.Option(help="vocab.txt (default: beside the checkpoint).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="bert_config.json (default: beside the checkpoint).")
    ] = None,
    lower: Annotated[bool, typer.Option("--lower/--no-lower", help="Lower-case texts.")] = True,
) -> None:
    """Convert the released CONPONO checkpoint (needs TensorFlow: the extra `tensorflow`)."""
    require_extra("to convert a model")
    from zoo.conpono.convert import convert

    convert(checkpoint, output, encoder=encoder, vocabulary=vocabulary, config=config, lower=lower)
    typer.echo(str(output))
