"""`discorpora score` and `predict-marker`: what models say of texts, as tables or JSON Lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich.markup import escape
from rich.table import Table

from corpora.errors import BadRecord, ConfigError, DiscorporaError, InputError
from corpora.readers import open_source
from corpora.readers.files import Refused, read_lines, read_whole
from corpora.readers.records import strings, wrong_type
from corpora.readers.rows import JSON_LINES, json_rows
from corpora.readers.source import check_unicode
from workflows.cli.show import wide_console
from zoo.trust import trust_code

STDIN = "standard input"
RECORD = 'expected {"prompt": "...", "alternatives": ["...", "..."]}'
ON_CPU = "run it on the CPU: set CUDA_VISIBLE_DEVICES to nothing before the command"

TEXT_LIMIT = 4 << 20
"""Longest text scored, in characters: "War and Peace" has 3.2 million."""
STDIN_LIMIT = 1 << 30
"""Most bytes of standard input, which is kept on the disk."""
TABLE_ROWS = 100_000

Read = TypeVar("Read")


TrustCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code that comes with the model.")
]


class Choice(NamedTuple):
    """A prompt with its name, and the alternatives that may go on from it with theirs."""

    name: str
    prompt: str | list[str]
    """A text, or its sentences."""
    names: list[str]
    texts: list[str]


def score(
    files: Annotated[list[str], typer.Argument(help="Text or JSONL files; `-` reads from stdin.")],
    model: Annotated[
        str,
        typer.Option(help="A coherence scorer: folder or Hub id. The shipped one if not given."),
    ] = "",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each sentence does to the score.")
    ] = False,
    rank: Annotated[
        bool, typer.Option("--rank", help="Order the files, or a record's alternatives.")
    ] = False,
    prompt: Annotated[str, typer.Option(help="With --rank: the text that all files go on.")] = "",
    reference: Annotated[
        list[str] | None, typer.Option(help="Coherent texts to take percentiles in; repeatable.")
    ] = None,
    bf16: Annotated[
        bool, typer.Option("--bf16", help="In bfloat16: faster on hardware that has it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
    trust_remote_code: TrustCode = False,
) -> None:
    """Print a coherence score for each text (higher is more coherent)."""
    if trust_remote_code:
        trust_code()
    for given, name in ((explain, "--explain"), (reference, "--reference")):
        if rank and given:
            raise ConfigError(
                f"{name} does not go with --rank, which prints places and scores alone",
                hint=f"leave out {name}, or leave out --rank",
            )
    if prompt and not rank:
        raise ConfigError(
            "--prompt goes with --rank alone: it is what the alternatives go on from",
            hint="add --rank, or leave out --prompt",
        )
    from zoo.modeling import within_memory

    with within_memory("score", ON_CPU):
        if rank:
            _rank(model, files, prompt, as_json=as_json, bf16=bf16)
        else:
            _score(model, files, reference or [], explain=explain, as_json=as_json, bf16=bf16)


def _score(
    model: str, files: list[str], reference: list[str], *, explain: bool, as_json: bool, bf16: bool
) -> None:
    """Print the score of each text, with its percentile and what each sentence does."""
    from zoo.coherence import scoring

    parts, coherent = (_in_parts(_read_each(each, _documents)) for each in (files, reference))
    scorer, folder = _load_scorer(model, bf16=bf16)
    scores = [score for part in coherent for score in scorer.score([text for _, text in part])]
    known = scoring.load_reference(folder) if not reference else None
    if reference:
        named = ", ".join(reference)
        known = scoring.Reference(
            of=named, texts=len(scores), quantiles=tuple(scoring.quantiles(scores))
        )
    measured = scoring.load_breaks(folder) if explain else None
    rows: list[dict[str, Any]] = []
    for part in parts:
        scored = scoring.score_texts(
            scorer, [text for _, text in part], reference=known.quantiles if known else None
        )
        new = [{"text": name, **asdict(s)} for (name, _), s in zip(part, scored, strict=True)]
        for row, (_, text) in zip(new, part, strict=True):
            if known and row["percentile"] is not None:
                row["reference"] = {"of": known.of, "texts": known.texts}
            if explain:
                effects = scoring.explain(scorer, text)
                found = scoring.find_break(effects, measured)
                row["effects"] = [asdict(effect) for effect in effects]
                row["break"] = asdict(found) if found else None
        if as_json:
            _print_json(new)
            continue
        rows += new
        if len(rows) > TABLE_ROWS:
            raise InputError(
                f"more than {TABLE_ROWS:,} texts for one table",
                hint="with --json each is printed when it is scored",
            )
    if not as_json:
        _print_scores(rows, known, measured)


def _in_parts(texts: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Named texts, so many at a time that memory does not depend on how many there are.

    The first are read at once: what is wrong with them is said before a model is loaded.
    """
    from zoo.texts import in_parts

    parts = in_parts(texts, lambda named: len(named[1]))
    return chain(list(islice(parts, 1)), parts)


def _print_scores(rows: Sequence[dict[str, Any]], known: Any, measured: Any) -> None:
    table = Table("text", "score", "percentile", "sentences", "windows")
    if any(row["percentile"] is not None for row in rows):
        table.caption = f"percentile: among {known.texts:,} texts ({escape(known.of)})"
        table.caption_justify = "left"
    for row in rows:
        percentile = "" if row["percentile"] is None else f"{row['percentile']:.0f}"
        counts = str(row["sentences"]), str(row["windows"])
        table.add_row(escape(row["text"]), f"{row['score']:.4f}", percentile, *counts)
    wide_console().print(table)
    for row in rows:
        if "effects" not in row:
            continue
        table = Table("", "sentence", "left out", "swapped with next", title=escape(row["text"]))
        table.title_justify = table.caption_justify = "left"
        table.caption = _said_of(row["break"], measured)
        for number, effect in enumerate(row["effects"], 1):
            changes = (effect["left_out"], effect["swapped"])
            cells = ("" if value is None else f"{value:+.4f}" for value in changes)
            mark = ">" if row["break"] and row["break"]["sentence"] == number else ""
            table.add_row(mark, escape(effect["sentence"]), *cells)
        wide_console().print(table)


def _said_of(found: dict[str, Any] | None, measured: Any) -> str:
    """Where a text breaks, and how often such a mark is right."""
    if found is None:
        return "no sentence stands out"
    said = f"sentence {found['sentence']} fits least"
    if measured is None:
        return f"{said}; how often that is right was not measured for this model"
    right, wrong = 100 * found["right"], 100 * measured.marked_coherent
    return (
        f"{said}: so marked, {right:.0f} in 100 of held-out texts with an intruder were marked "
        f"rightly; {wrong:.0f} in 100 of coherent texts have a mark too"
    )


def _rank(model: str, files: list[str], prompt: str, *, as_json: bool, bf16: bool) -> None:
    """Print the alternatives of each prompt, the most coherent first."""
    from zoo.coherence.scoring import rank

    choices = _choices(files, prompt)
    scorer, _ = _load_scorer(model, bf16=bf16)
    rows: list[dict[str, Any]] = [
        {"prompt": choice.name, "rank": place, "alternative": choice.names[i], "score": score}
        for choice in choices
        for place, (i, score) in enumerate(rank(scorer, choice.prompt, choice.texts), 1)
    ]
    if as_json:
        _print_json(rows)
        return
    table = Table("prompt", "rank", "alternative", "score")
    for row in rows:
        names = escape(row["prompt"]), str(row["rank"]), escape(row["alternative"])
        table.add_row(*names, f"{row['score']:.4f}")
    wide_console().print(table)


def predict_marker(
    model: Annotated[str, typer.Argument(help="A DisSent model: folder or Hub id.")],
    s1: Annotated[str, typer.Argument(help="The first sentence, or a file of pairs.")],
    s2: Annotated[str, typer.Argument(help="The second sentence (none with a file).")] = "",
    top: Annotated[int, typer.Option(min=0, help="Show so many markers (0: all).")] = 0,
    trust_remote_code: TrustCode = False,
) -> None:
    """Print the probability of each marker between S1 and S2, or for the pairs of a file.

    A file is TSV (two columns) or JSONL (`s1`, `s2`); its answers are printed as JSON Lines.
    """
    from transformers.utils import logging

    from zoo.dissent.prediction import predict, predictions, read_pairs
    from zoo.modeling import within_memory

    if trust_remote_code:
        trust_code()
    if s2 and not s1.strip():
        raise InputError("the first sentence is empty", hint='give "S1" "S2"')
    if not s2 and not Path(s1).is_file():
        raise InputError(
            "neither two sentences nor a file of pairs",
            where=s1,
            hint='give "S1" "S2", or a TSV or JSONL file',
        )
    logging.disable_progress_bar()
    with within_memory(model, ON_CPU):
        if s2:
            [markers] = predict(model, [(s1, s2)])
            for marker, probability in islice(markers.items(), top or None):
                typer.echo(f"{probability:.4f}  {marker}")
            return
        for markers in predictions(model, read_pairs(Path(s1))):
            first = islice(markers.items(), top or None)
            _print_json([{marker: round(value, 6) for marker, value in first}])


def _load_scorer(model: str, *, bf16: bool) -> tuple[Any, str]:
    """A coherence scorer by folder or Hub id, on the accelerator if there is one; its folder.

    Without a name it is the shipped one.
    """
    from transformers.utils import logging

    from zoo.coherence import SHIPPED, CoherenceScorer, LinkScorer
    from zoo.coherence.scoring import warn_of_chance
    from zoo.evaluate.scorers import load_scorer

    logging.disable_progress_bar()
    model = model or str(SHIPPED)
    scorer = load_scorer(model)
    if not isinstance(scorer, CoherenceScorer | LinkScorer):
        raise InputError(
            f"is a {type(scorer).__name__}: percentiles, ranks and explanations are for the "
            "shipped scorer and the models of coherence/contrastive and coherence/full",
            where=model,
            hint="judge it with: discorpora evaluate pairwise",
        )
    warn_of_chance(model)
    scorer.bf16 = bf16
    return scorer.eval(), model


def _print_json(rows: Sequence[Any]) -> None:
    for row in rows:
        typer.echo(json.dumps(row, ensure_ascii=False))


# What is given to read


def _read_each(
    files: Sequence[str], records: Callable[[Path], Iterable[Read]]
) -> Iterator[tuple[str, str] | Read]:
    """Name and text of each text file, and the `records` of each JSON Lines file.

    `-` is standard input, read as JSON Lines if its first line is a JSON object. Raises
    `InputError` for a file that is not there before the first one is read.
    """
    for name in files:
        if name != "-" and not Path(name).is_fifo():
            _existing(name)
    for name in files:
        with _as_file(name) as path:
            if path.name.lower().endswith(JSON_LINES):
                yield from records(path)
            else:
                yield name, _text(path)


def _documents(path: Path) -> Iterator[tuple[str, str]]:
    for document in open_source(f"jsonl:{path}"):
        yield document.id, _bounded(document.text, document.id)


def _bounded(text: str, where: str) -> str:
    if len(text) > TEXT_LIMIT:
        raise InputError(
            f"too long: more than {TEXT_LIMIT:,} characters",
            where=where,
            hint="score its chapters by themselves",
        )
    return text


def _choices(files: list[str], prompt: str) -> list[Choice]:
    """What is ranked: text files are alternatives of one prompt, a record of a JSON Lines file
    holds its own."""
    read = [*_read_each(files, _records)]
    records = [each for each in read if isinstance(each, Choice)]
    plain = [each for each in read if not isinstance(each, Choice)]
    if prompt and not plain:
        raise ConfigError(
            "--prompt is for text files: a record of JSON Lines has a prompt of its own",
            hint=f"leave out --prompt; {RECORD}",
        )
    before = _text(_existing(prompt), empty=True) if prompt else ""
    if not plain:
        return records
    names, texts = map(list, zip(*plain, strict=True))
    return [Choice(prompt or "(none)", before, names, texts), *records]


def _records(path: Path) -> list[Choice]:
    """The records of a file to rank; one without an `id` is named by its line."""
    choices, size = [], 0
    for where, record in json_rows(path):
        try:
            if isinstance(record, BadRecord):
                raise Refused(record.reason)
            prompt, name, texts = (record.get(key) for key in ("prompt", "id", "alternatives"))
            sentences = strings(record, "prompt")
            if not isinstance(name, str | int | None):
                raise wrong_type(record, "id", "a string")
            if not isinstance(texts, list) or {*map(type, texts)} != {str}:
                raise wrong_type(record, "alternatives", "a list of texts")
            if not all(map(str.strip, texts)):
                raise Refused("no text: an alternative is blank")
            name = where.rpartition(":")[2] if name is None else str(name)
            check_unicode("".join((name, *sentences, *texts)))
            size += sum(map(len, (*sentences, *texts)))
            if size > TEXT_LIMIT:
                raise Refused(f"too long: more than {TEXT_LIMIT:,} characters in one file")
        except Refused as refusal:
            raise InputError(str(refusal), where=where, hint=RECORD) from None
        before = prompt if isinstance(prompt, str) else sentences
        choices.append(Choice(name, before, [str(i + 1) for i in range(len(texts))], texts))
    if not choices:
        raise InputError("holds no record to rank", where=str(path), hint=RECORD)
    return choices


@contextmanager
def _as_file(name: str) -> Iterator[Path]:
    """The file `name`; standard input (`-`) or a pipe as one: its suffix tells what it holds."""
    if name != "-" and not Path(name).is_fifo():
        yield _existing(name)
        return
    with TemporaryDirectory() as folder:
        path, size = Path(folder) / "stdin", 0
        with ExitStack() as files:
            kept = files.enter_context(path.open("wb"))
            own = files.enter_context(Path(name).open("rb")) if name != "-" else None
            opened = own or sys.stdin.buffer  # which stays open
            while chunk := opened.read(1 << 20):
                kept.write(chunk)
                size += len(chunk)
                if size > STDIN_LIMIT:
                    problem = f"longer than {STDIN_LIMIT >> 20} MiB"
                    raise InputError(problem, where=STDIN, hint="save it in a file")
        # JSON Lines begin with a JSON object in the first line that is not blank.
        suffix = "txt"
        with suppress(ValueError, RecursionError):
            first = next((line for line in read_lines(path) if str(line).strip()), "")
            suffix = "jsonl" if isinstance(json.loads(str(first)), dict) else "txt"
        path = path.rename(path.with_suffix(f".{suffix}"))
        try:
            yield path
        except DiscorporaError as error:
            where = error.where.replace(str(path), STDIN if name == "-" else name)
            raise type(error)(error.message, where=where, hint=error.hint) from None


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        problem = "is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(problem, where=name, hint="give text or JSONL files, or -")
    return path


def _text(path: Path, *, empty: bool = False) -> str:
    """The text of a file (also `.gz`, `.bz2`); `empty` says whether it may hold none."""
    try:
        text = _bounded(read_whole(path), str(path))
    except Refused as refusal:
        where = refusal.where or str(path)
        raise InputError(str(refusal), where=where, hint="give whole texts in UTF-8") from None
    if not empty and not text.strip():
        raise InputError("holds no text", where=str(path))
    return text
