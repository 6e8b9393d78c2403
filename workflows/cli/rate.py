"""`discorpora rate`: random rows of a dataset for raters, and what raters said of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corpora.errors import ConfigError, amount
from corpora.terminal import print_table
from workflows.cli.common import JsonFile, UsageError, give_json

if TYPE_CHECKING:
    from corpora.audit.data import Configuration
    from corpora.ratings.answers import Scores
    from corpora.ratings.draw import Draw


def rate(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET[@CONFIG]", help="A dataset's FOLDER, or OWNER/NAME on the Hub."
        ),
    ],
    answers: Annotated[
        list[Path] | None,
        typer.Option("--answers", "-a", help="A rater's answers (JSONL) to score; repeatable."),
    ] = None,
    endpoint: Annotated[
        str, typer.Option(help="Send the items to this API (`http://localhost:8000/v1`).")
    ] = "",
    model: Annotated[str, typer.Option(help="The model that the requests name.")] = "",
    key_variable: Annotated[
        str, typer.Option(help="The environment variable with the endpoint's key.")
    ] = "OPENAI_API_KEY",
    card: Annotated[bool, typer.Option("--card", help="Put the scores on the card.")] = False,
    items: Annotated[
        int | None, typer.Option("-n", "--items", min=1, help="Rows to draw; by default 100.")
    ] = None,
    split: Annotated[str, typer.Option(help="Draw from this split; by default from all.")] = "",
    rubric: Annotated[
        str, typer.Option(help="pairs, order, position or intrusion; it follows from the rows.")
    ] = "",
    anchors: Annotated[
        Path | None, typer.Option(help="JSONL of rated items to mix in; at most 20 are taken.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of the draw.")] = None,
    kind: Annotated[str, typer.Option(help="What its rows are, if it does not say so.")] = "",
    to: Annotated[
        Path | None, typer.Option(help="The draw's folder; by default build/rate/NAME.")
    ] = None,
    json_file: JsonFile = "",
) -> None:
    """Draw rows to be rated blind by people or a model; score answers with --answers."""
    from corpora.outside import split_config
    from corpora.ratings.answers import read_answers, score
    from corpora.ratings.draw import read_draw, rows_digest, write_draw
    from corpora.ratings.endpoint import Endpoint, send
    from corpora.store.atomic import is_complete

    dataset, config = split_config(dataset)
    if endpoint and not model:
        raise UsageError("--endpoint needs --model NAME")
    target = Endpoint(endpoint, model, key_variable) if endpoint else None
    config, configuration = _one_configuration(dataset, config, kind)
    name = Path(dataset).resolve().name if Path(dataset).exists() else dataset.replace("/", "--")
    folder = to or Path("build", "rate", name if config == "default" else f"{name}@{config}")
    scoring = bool(answers) or (endpoint and is_complete(folder))
    if scoring and (items, split, rubric, anchors, seed) != (None, "", "", None, None):
        raise UsageError(
            f"{folder} has a draw, which --items, --split, --rubric, --anchors and --seed would "
            "change: omit them, or draw into another folder with --to"
        )
    if not scoring:
        if is_complete(folder):
            hint = "score it with --answers, or draw into another folder with --to"
            raise ConfigError("has a draw already", where=str(folder), hint=hint)
        draw = _drawn(dataset, configuration, config, items, split, rubric, anchors, seed)
        write_draw(draw, folder, model)
        if not endpoint:
            _explain(draw, folder, f"{dataset}@{config}", to)
            return
    draw = read_draw(folder)
    if draw.config != config or draw.digest != rows_digest(configuration):
        raise ConfigError(
            f"its rows were drawn from {draw.dataset}@{draw.config} as it was then; the dataset "
            "has changed, or is another one",
            where=str(folder),
            hint="draw again into another folder: --to FOLDER",
        )
    files = [*(answers or ()), *([send(draw, target, folder)] if target else ())]
    scores = score(draw, [read_answers(path, draw) for path in files])
    if not give_json(asdict(scores), json_file):
        _print_scores(scores)
    if card:
        _put_on_cards(Path(dataset), scores)


def _one_configuration(dataset: str, config: str, kind: str) -> tuple[str, Configuration]:
    """Open a configuration: the one named, else the first with rows that can be rated."""
    from corpora.audit.opening import opened
    from corpora.errors import InputError
    from corpora.ratings.rubrics import form_of

    configurations = opened(f"{dataset}@{config}" if config else dataset, kind)
    for name, configuration in configurations.items():
        try:
            form_of(configuration, f"{dataset}@{name}")
        except InputError:
            if len(configurations) == 1:
                raise
        else:
            return name, configuration
    raise InputError(
        f"no rubric fits a configuration: {', '.join(configurations)}",
        where=dataset,
        hint="rated are pairs (s1, s2), orders (bso, sp) and intruders (dc, intrusion)",
    )


def _drawn(
    dataset: str,
    configuration: Configuration,
    config: str,
    items: int | None,
    split: str,
    rubric: str,
    anchors: Path | None,
    seed: int | None,
) -> Draw:
    """Draw rows; pairs get their passages if the build that made them is there."""
    from corpora.ratings.draw import ITEMS, draw_rows, with_anchors, with_contexts
    from workflows.report.browser import contexts
    from workflows.report.page import dataset_at

    draw = draw_rows(
        dataset,
        configuration,
        config,
        rubric=rubric,
        split=split,
        items=items or ITEMS,
        seed=seed or 0,
    )
    if draw.rubric.name == "pairs":
        lineage = dataset_at(dataset, {config: configuration}).lineage
        keys = [
            (str(item.origin["doc"]), *map(item.fields.__getitem__, ("marker", "s1", "s2")))
            for item in draw.items
        ]
        draw = with_contexts(draw, contexts(lineage, keys))
    return with_anchors(draw, anchors) if anchors else draw


def _explain(draw: Draw, folder: Path, dataset: str, to: Path | None) -> None:
    """Print what was drawn and where, and what to do with it."""
    from corpora.ratings.draw import BATCH, PAGE

    where = f" --to {to}" if to else ""
    typer.echo(f"{amount(len(draw.items), 'item')}, rubric {draw.rubric.name}, draw {draw.name}")
    typer.echo(f"  {folder / PAGE}  for people: it gives a file of answers")
    typer.echo(f"  {folder / BATCH}  for an endpoint's batches")
    typer.echo(f"then: discorpora rate {dataset}{where} --answers FILE.jsonl")


def _print_scores(scores: Scores) -> None:
    """Print a line for each rater, and how far they agree."""
    rows = []
    for rater in scores.raters:
        share = rater.share
        value = "none" if share.value is None else f"{share.value}"
        interval = "{} to {}".format(*share.interval) if share.interval else ""
        anchors = "" if rater.kappa_with_anchors is None else f"{rater.kappa_with_anchors}"
        unusable = ", ".join(f"{kind} {n}" for kind, n in rater.unusable.items())
        ratings = ", ".join(f"{rating} {n}" for rating, n in rater.ratings.items())
        usable = f"{share.usable} of {share.items}"
        rows.append([rater.name, usable, value, interval, anchors, unusable, ratings])
    columns = ("rater", "usable", "share", "interval", "kappa, anchors", "not usable", "ratings")
    captions = [
        f"share: {scores.measures}, in per cent; interval: 95 %, over documents",
        *(
            f"kappa of {' and '.join(pair.raters)}: "
            f"{'not defined' if pair.kappa is None else pair.kappa}"
            for pair in scores.agreement
        ),
    ]
    if any(rater.share.value is None for rater in scores.raters):
        captions.append("none: fewer than 90 % of the items have a usable answer")
    title = f"{scores.dataset}@{scores.config}: rubric {scores.rubric}, draw {scores.draw}"
    print_table(columns, rows, title=title, caption="\n".join(captions), right=columns[1:3])


def _put_on_cards(folder: Path, scores: Scores) -> None:
    """Put scores on a dataset's card; the stage that it is a copy of, if it is one, comes first.

    Otherwise the next build would replace the folder by the stage's.
    """
    from corpora.ratings.card import put_on_card
    from workflows.results import stage_folder

    for place in dict.fromkeys((stage_folder(folder), folder)):
        put_on_card(place, scores)
    typer.echo(f"on the card: {folder / 'README.md'}")
