"""`discorpora score` and `predict-marker`: scores of texts as tables or JSON Lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from corpora.errors import ConfigError, InputError, within_memory
from corpora.terminal import print_table
from workflows.cli.common import print_json_lines
from workflows.cli.foreign import ForeignTexts
from zoo import require_extra

ON_CPU = (
    "end other programs, or if it is a GPU's memory, run it on the CPU: put CUDA_VISIBLE_DEVICES= "
    "before the command"
)
"""The hint when memory runs out."""
TABLE_ROWS = 100_000
"""Maximum texts of a table."""
MEANS = {
    "equal": "as if all markers were equally frequent; --prior corpus: as in the training pairs",
    "corpus": "markers are as frequent as in the training pairs",
}
"""The explanation of each prior of markers."""

TrustCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code that comes with the model.")
]


def score(
    files: Annotated[list[str], typer.Argument(help="Text or JSONL files; `-` reads from stdin.")],
    model: Annotated[
        str,
        typer.Option(help="A coherence scorer: folder or Hub id; by default the shipped one."),
    ] = "",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the effect of each sentence on the score.")
    ] = False,
    rank: Annotated[
        bool, typer.Option("--rank", help="Order the files, or a record's alternatives.")
    ] = False,
    prompt: Annotated[str, typer.Option(help="With --rank: the text before each file.")] = "",
    reference: Annotated[
        list[str] | None,
        typer.Option(help="Coherent texts; scores get percentiles among them. Repeatable."),
    ] = None,
    bf16: Annotated[
        bool,
        typer.Option("--bf16", help="Compute in bfloat16, faster where the hardware supports it."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
    trust_remote_code: TrustCode = False,
) -> None:
    """Print a coherence score for each text (higher is more coherent)."""
    from zoo.coherence import SHIPPED
    from zoo.presets import trust_code

    model = model or str(SHIPPED)
    _prepare(model, bf16=bf16)

    if trust_remote_code:
        trust_code()
    for value, name in ((explain, "--explain"), (reference, "--reference")):
        if rank and value:
            raise ConfigError(
                f"{name} cannot be combined with --rank, which prints only ranks and scores",
                hint=f"omit {name} or --rank",
            )
    if prompt and not rank:
        raise ConfigError(
            "--prompt needs --rank: it is the text before the alternatives",
            hint="add --rank, or omit --prompt",
        )
    with within_memory("score", ON_CPU):
        if rank:
            _rank(model, files, prompt, as_json=as_json, bf16=bf16)
        else:
            _score(model, files, reference or [], explain=explain, as_json=as_json, bf16=bf16)


def _score(
    model: str, files: list[str], reference: list[str], *, explain: bool, as_json: bool, bf16: bool
) -> None:
    """Print the score of each text, its percentile, and the effect of each sentence."""
    from workflows.cli.inputs import read_documents, read_each, read_parts
    from zoo.coherence import scoring

    parts, reference_parts = (
        read_parts(read_each(names, read_documents)) for names in (files, reference)
    )
    scorer = scoring.load_scorer(model, bf16=bf16)
    scoring.warn_of_chance(model)
    foreign, foreign_reference = ForeignTexts(model), ForeignTexts(model)
    reference_scores = []
    for part in reference_parts:
        reference_scores += scorer.score([text for _, text in part])
        for name, text in part:
            foreign_reference.check(name, text)
    foreign_reference.warn("text of --reference", "percentiles say little")
    if not reference:
        reference_texts = scoring.load_reference(model)
    else:
        reference_texts = scoring.Reference.among(", ".join(reference), reference_scores)
    quantiles = reference_texts.quantiles if reference_texts else None
    breaks = scoring.load_breaks(model) if explain else None
    rows: list[dict[str, Any]] = []
    for part in parts:
        scores = scoring.score_texts(scorer, [text for _, text in part], reference=quantiles)
        part_rows = [{"text": name, **asdict(s)} for (name, _), s in zip(part, scores, strict=True)]
        for row, (name, text) in zip(part_rows, part, strict=True):
            if language := foreign.check(name, text):
                row |= {"percentile": None, "foreign": language}
            if reference_texts and row["percentile"] is not None:
                row["reference"] = {"of": reference_texts.of, "texts": reference_texts.texts}
            if explain:
                effects = scoring.explain(scorer, text)
                mark = scoring.find_break(effects, breaks)
                row["effects"] = [asdict(effect) for effect in effects]
                row["break"] = asdict(mark) if mark else None
        if as_json:
            print_json_lines(part_rows)
            continue
        rows += part_rows
        if len(rows) > TABLE_ROWS:
            raise InputError(
                f"more than {TABLE_ROWS:,} texts for one table",
                hint="use --json: it prints each text once it is scored",
            )
    if not as_json:
        _print_scores(rows, reference_texts, breaks)
    foreign.warn("text", "such a score says nothing, and it gets no percentile")


def _print_scores(rows: Sequence[dict[str, Any]], reference: Any, breaks: Any) -> None:
    """Print a table of scores, then for each text with effects a table of its sentences."""
    caption, lines = "", []
    for row in rows:
        percentile = "" if row["percentile"] is None else f"{row['percentile']:.0f}"
        if percentile:
            caption = f"percentile: among {reference.texts:,} texts ({reference.of})"
        counts = str(row["sentences"]), str(row["windows"])
        lines.append([row["text"], f"{row['score']:.4f}", percentile, *counts])
    right = ("score", "percentile", "sentences", "windows")
    print_table(("text", *right), lines, caption=caption, right=right)
    for row in rows:
        if "effects" not in row:
            continue
        lines = []
        for number, effect in enumerate(row["effects"], 1):
            changes = (effect["left_out"], effect["swapped"])
            cells = ("" if value is None else f"{value:+.4f}" for value in changes)
            mark = ">" if row["break"] and row["break"]["sentence"] == number else ""
            lines.append([mark, effect["sentence"], *cells])
        columns = ("", "sentence", "left out", "swapped with next")
        caption = "change of the score; +: the text scores higher so\n"
        caption += _describe_mark(row["break"], breaks)
        print_table(columns, lines, title=row["text"], caption=caption, right=columns[2:])


def _describe_mark(mark: dict[str, Any] | None, breaks: Any) -> str:
    """Describe the sentence with the mark "fits least", and how often marks are right.

    `mark` is None for a text without a mark, `breaks` None for a model without measured marks.
    """
    if mark is None:
        return "no sentence stands out"
    place = f"sentence {mark['sentence']} fits least"
    if breaks is None:
        return f"{place}; the accuracy of such marks was not measured for this model"
    right, wrong = 100 * mark["right"], 100 * breaks.marked_coherent
    return (
        f"{place}. Of such marks in {breaks.texts} texts with an intruder ({breaks.of}), "
        f"{right:.0f} % were on the intruder; {wrong:.0f} % of coherent texts have a mark too"
    )


def _rank(model: str, files: list[str], prompt: str, *, as_json: bool, bf16: bool) -> None:
    """Print the alternatives of each prompt, the most coherent first."""
    from workflows.cli.inputs import read_choices
    from zoo.coherence.scoring import load_scorer, rank, warn_of_chance

    choices = read_choices(files, prompt)
    scorer = load_scorer(model, bf16=bf16)
    warn_of_chance(model)
    foreign = ForeignTexts(model)
    for choice in choices:
        prompt_text = choice.prompt if isinstance(choice.prompt, str) else " ".join(choice.prompt)
        for name, text in zip(choice.names, choice.texts, strict=True):
            foreign.check(f"{choice.name}: {name}", f"{prompt_text} {text}")
    rows: list[dict[str, Any]] = [
        {"prompt": choice.name, "rank": place, "alternative": choice.names[i], "score": score}
        for choice in choices
        for place, (i, score) in enumerate(rank(scorer, choice.prompt, choice.texts), 1)
    ]
    foreign.warn("alternative", "the order says nothing")
    if as_json:
        print_json_lines(rows)
        return
    lines = [(r["prompt"], str(r["rank"]), r["alternative"], f"{r['score']:.4f}") for r in rows]
    print_table(("prompt", "rank", "alternative", "score"), lines, right=("rank", "score"))


def predict_marker(
    s1: Annotated[str, typer.Argument(help="The first sentence, or a file of pairs.")],
    s2: Annotated[str, typer.Argument(help="The second sentence; omit it with a file.")] = "",
    model: Annotated[
        str, typer.Option(help="A DisSent model: folder or Hub id; by default the shipped one.")
    ] = "",
    top: Annotated[int, typer.Option(min=0, help="The number of markers to show (0: all).")] = 0,
    prior: Annotated[
        str,
        typer.Option(help="equal, or corpus: markers are as frequent as in the training pairs."),
    ] = "equal",
    trust_remote_code: TrustCode = False,
) -> None:
    """Print the probability of each marker between S1 and S2, or for the pairs of a file.

    A file is TSV (two columns) or JSONL (`s1`, `s2`); the output is JSON Lines. The output names
    the prior.
    """
    from zoo.dissent import SHIPPED

    model = model or str(SHIPPED)
    _prepare(model)
    from zoo.dissent.prediction import load_classifier, predict, predictions, read_pairs
    from zoo.presets import trust_code

    if trust_remote_code:
        trust_code()
    if s2 and not (s1.strip() and s2.strip()):
        which = "second" if s1.strip() else "first"
        raise InputError(f"the {which} sentence is empty", hint='give "S1" "S2"')
    # A sentence may be too long for the name of a file, which `Path` refuses.
    if s2 and os.path.isdir(s1):  # noqa: PTH112
        raise InputError("a folder, not a sentence", where=s1, hint="a model is named by --model")
    if not s2 and not os.path.isfile(s1):  # noqa: PTH113
        raise InputError(
            "neither two sentences nor a file of pairs",
            where=s1,
            hint='give "S1" "S2", or a TSV or JSONL file',
        )
    foreign = ForeignTexts(model)

    def checked(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for number, pair in enumerate(pairs, 1):
            foreign.check(f"pair {number}", " ".join(pair))
            yield pair

    with within_memory(model, ON_CPU):
        classifier = load_classifier(model)
        if s2:
            [markers] = predict(classifier, checked([(s1, s2)]), prior=prior)
            for marker, probability in islice(markers.items(), top or None):
                typer.echo(f"{probability:.4f}  {marker}")
            typer.echo(f"prior: {prior} ({MEANS[prior]})")
        else:
            for markers in predictions(classifier, checked(read_pairs(Path(s1))), prior=prior):
                first = islice(markers.items(), top or None)
                print_json_lines([{**{m: round(value, 6) for m, value in first}, "prior": prior}])
    foreign.warn("pair", "such probabilities say nothing")


def _prepare(model: str, *, bf16: bool = False) -> None:
    """Stop if a model needs the extra `zoo`, and it is missing; hide the bars of transformers."""
    from zoo.packed import is_packed

    if bf16 or not is_packed(model):
        require_extra("to compute in bfloat16" if bf16 else f"to run the model {model!r}")
        from transformers.utils import logging

        logging.disable_progress_bar()
