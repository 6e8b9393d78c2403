"""The commands of `discorpora` that work with models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from corpora.store.atomic import write_text
from workflows.cli import complete
from workflows.cli.scoring import TrustCode, predict_marker, score
from workflows.cli.show import wide_console
from zoo.evaluate import SUITES
from zoo.evaluate.compare import compare as compare_results
from zoo.presets import catalogue

commands = typer.Typer()
converters = typer.Typer(
    name="convert", help="Convert the checkpoint of a paper's authors.", no_args_is_help=True
)
commands.add_typer(converters)


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(
    context: typer.Context,
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe: a TOML file or a shipped name.", autocompletion=complete.recipes
        ),
    ],
) -> None:
    """Train a model with RECIPE; `--key value` changes any of its settings.

    `python -m zoo.train RECIPE --help` explains each of them. `--trust-remote-code` runs the code
    that comes with the backbone.
    """
    from zoo.train import main

    raise typer.Exit(main([recipe, *context.args]))


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def evaluate(
    context: typer.Context,
    suite: Annotated[
        str,
        typer.Argument(
            help=f"A suite: {', '.join(sorted(SUITES))}.", autocompletion=complete.suites
        ),
    ],
    model: Annotated[str, typer.Option(help="A model folder or Hub id.")],
    data: Annotated[str, typer.Option(help="A dataset folder or Hub id.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures.")] = None,
    trust_remote_code: TrustCode = False,
) -> None:
    """Evaluate a model with SUITE; further `--key value` are the suite's own options."""
    from zoo.evaluate.__main__ import main

    out = ["--json", str(json_file)] if json_file else []
    out += ["--trust-remote-code"] if trust_remote_code else []
    raise typer.Exit(main([suite, "--model", model, "--data", data, *out, *context.args]))


@commands.command()
def compare(
    paths: Annotated[
        list[str], typer.Argument(help="Results (JSON), or evaluation and model folders.")
    ],
    layout: Annotated[str, typer.Option("--format", help="markdown, csv or json.")] = "markdown",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it here.")] = None,
    published: Annotated[
        bool, typer.Option("--published/--no-published", help="The papers' rows beside ours.")
    ] = True,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="Results of one name are trainings: show their mean.")
    ] = False,
) -> None:
    """Show several models' results in one table; refuses to mix data or protocols."""
    text = compare_results(paths, published=published, seeds=seeds).render(layout)
    if output is None:
        typer.echo(text)
    else:
        write_text(output, text)


@commands.command()
def confusions(
    unbalanced: Annotated[Path, typer.Argument(help="Results of the suite `dissent` (JSON).")],
    balanced: Annotated[Path, typer.Argument(help="The same of a model of balanced data.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The files' name, no ending.")],
) -> None:
    """Compare two models' confusions by regression (DisSent, appendix A.4): R2 with p, plots."""
    from zoo.evaluate.confusions import compare_files

    compare_files(unbalanced, balanced, output)


commands.command()(score)
commands.command("predict-marker")(predict_marker)


@commands.command()
def zoo(
    results: Annotated[Path | None, typer.Option(help="A folder of trained models.")] = None,
) -> None:
    """List the recipes: paper, objective, dataset, published figure, figure measured here."""
    columns = ("name", "paper", "objective", "dataset", "published", "measured")
    out = Table(*columns)
    for entry in catalogue(results):
        about = entry.about.model_dump()
        out.add_row(entry.name, *(about[key] for key in columns[1:-1]), entry.measured)
    wide_console().print(out)


@converters.command("coherence")
def convert_coherence(
    checkpoint: Annotated[Path, typer.Argument(help="CHECKPOINT.pt of ntunlp/coherence-paradigm.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model folder.")],
    backbone: Annotated[
        str, typer.Option(help="The encoder that it was trained with: folder or Hub id.")
    ] = "xlnet/xlnet-base-cased",
    max_tokens: Annotated[int, typer.Option(min=8, help="The longest text.")] = 600,
) -> None:
    """Convert a coherence model: state dicts with main_encoder.* or model.*, and conlinear.*."""
    from zoo.coherence.convert import convert

    left_out = convert(checkpoint, output, backbone, max_tokens)
    typer.echo(f"{output}" + (f" (left out: {', '.join(left_out)})" if left_out else ""))


@converters.command("conpono")
def convert_conpono(
    checkpoint: Annotated[Path, typer.Argument(help="The TensorFlow checkpoint's prefix.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model folder.")],
    encoder: Annotated[
        str, typer.Option(help="How targets are encoded: full or isolated.")
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
    from zoo.conpono.convert import convert

    convert(checkpoint, output, encoder=encoder, vocabulary=vocabulary, config=config, lower=lower)
    typer.echo(str(output))
