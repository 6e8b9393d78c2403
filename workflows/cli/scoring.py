"""`discorpora score`: texts from files, scores, ranks and explanations as tables or JSONL."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from corpora.errors import BadRecord, ConfigError, DiscorporaError, InputError
from corpora.readers import jsonl, open_source
from corpora.readers.files import read_lines
from corpora.readers.layouts import strings, typed
from corpora.readers.source import Refused, check_unicode
from workflows.cli.show import wide_console

STDIN = "standard input"
RECORD = 'expected {"prompt": "...", "alternatives": ["...", "..."]}'

Choice = tuple[str, str | list[str], list[str], list[str]]
"""Prompt's name, prompt (a text or its sentences), names of the alternatives, alternatives."""


def show_scores(
    model: str,
    files: list[str],
    *,
    reference: list[str],
    explain: bool,
    as_json: bool,
    bf16: bool = False,
) -> None:
    """Print a score, its percentile and the number of windows for each text."""
    from zoo.coherence.scoring import explain as explain_text
    from zoo.coherence.scoring import load_reference, quantiles, score_texts

    named = read_texts(files)
    coherent = [text for _, text in read_texts(reference)]
    scorer = load_scorer(model, bf16=bf16)
    known = quantiles(scorer.score(coherent)) if reference else load_reference(model)
    scored = score_texts(scorer, [text for _, text in named], reference=known)
    rows = [{"text": name, **asdict(s)} for (name, _), s in zip(named, scored, strict=True)]
    if explain:
        for row, (_, text) in zip(rows, named, strict=True):
            row["effects"] = [asdict(effect) for effect in explain_text(scorer, text)]
    if as_json:
        _print_json(rows)
        return
    wide_console().print(_score_table(rows))
    for row in rows if explain else []:
        wide_console().print(_effect_table(row["text"], row["effects"]))


def show_ranks(
    model: str, files: list[str], prompt: str, *, as_json: bool, bf16: bool = False
) -> None:
    """Print the alternatives of each prompt, the most coherent first."""
    from zoo.coherence.scoring import rank

    choices = _choices(files, prompt)
    scorer = load_scorer(model, bf16=bf16)
    rows: list[dict[str, Any]] = [
        {"prompt": name, "rank": place, "alternative": labels[i], "score": score}
        for name, before, labels, texts in choices
        for place, (i, score) in enumerate(rank(scorer, before, texts), 1)
    ]
    if as_json:
        _print_json(rows)
        return
    table = Table("prompt", "rank", "alternative", "score")
    for row in rows:
        names = escape(row["prompt"]), str(row["rank"]), escape(row["alternative"])
        table.add_row(*names, f"{row['score']:.4f}")
    wide_console().print(table)


def load_scorer(model: str, *, bf16: bool = False) -> Any:
    """A coherence scorer by folder or Hub id, on the accelerator if there is one."""
    from transformers.utils import logging

    from zoo.coherence import CoherenceScorer
    from zoo.evaluate.scorers import load_scorer as load

    logging.disable_progress_bar()
    scorer = load(model)
    if not isinstance(scorer, CoherenceScorer):
        raise InputError(
            f"is a {type(scorer).__name__}: percentiles, ranks and explanations are for the "
            "models of coherence/contrastive and coherence/full",
            where=model,
            hint="judge it with: discorpora evaluate pairwise",
        )
    scorer.bf16 = bf16
    return scorer.eval()


def read_texts(files: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of each text file and each record of a JSON Lines file.

    `-` is standard input, read as JSON Lines if its first line is a JSON object.
    """
    found = []
    for name in files:
        with _as_file(name) as path:
            if _is_jsonl(path):
                documents = open_source(f"jsonl:{path}")
                found += [(document.id, document.text) for document in documents]
            else:
                found.append((name, _read(path)))
    return found


def _choices(files: Sequence[str], prompt: str) -> list[Choice]:
    """What is to be ranked: text files are alternatives of one prompt, a record of a JSON Lines
    file holds its own."""
    plain: list[tuple[str, str]] = []
    records: list[Choice] = []
    for name in files:
        with _as_file(name) as path:
            if _is_jsonl(path):
                records += _records(path)
            else:
                plain.append((name, _read(path)))
    if prompt and not plain:
        raise ConfigError(
            "--prompt is for text files: a record of JSON Lines has a prompt of its own",
            hint=f"leave out --prompt; {RECORD}",
        )
    before = _read(_existing(prompt), empty=True) if prompt else ""
    if not plain:
        return records
    names, texts = map(list, zip(*plain, strict=True))
    return [(prompt or "(none)", before, names, texts), *records]


def _records(path: Path) -> list[Choice]:
    found = []
    for where, record in jsonl.records(path):
        try:
            if isinstance(record, BadRecord):
                raise Refused(record.reason)
            found.append(_choice(record, where.rpartition(":")[2]))
        except Refused as refusal:
            raise InputError(str(refusal), where=where, hint=RECORD) from None
    if not found:
        raise InputError("holds no record to rank", where=str(path), hint=RECORD)
    return found


def _choice(record: Mapping[str, Any], line: str) -> Choice:
    """One record to rank; `line` is its name where it has no `id`. Raises `Refused`."""
    sentences = strings(record.get("prompt"), "prompt")
    prompt = record["prompt"] if isinstance(record.get("prompt"), str) else sentences
    name, texts = record.get("id"), record.get("alternatives")
    if not isinstance(name, str | int | None):
        raise Refused(f"wrong type: field 'id' is {typed(name)}, expected a string")
    name = line if name is None else str(name)
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise Refused(
            f"wrong type: field 'alternatives' is {typed(texts)}, expected a list of texts"
        )
    if not all(map(str.strip, texts)):
        raise Refused("no text: an alternative is blank")
    check_unicode("".join((name, *sentences, *texts)))
    return name, prompt, [str(i) for i in range(1, len(texts) + 1)], texts


@contextmanager
def _as_file(name: str) -> Iterator[Path]:
    """The file `name`; standard input (`-`) or a pipe as one: its suffix tells what it holds."""
    if name != "-" and not Path(name).is_fifo():
        yield _existing(name)
        return
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("stdin.jsonl" if _begins_with_object(data) else "stdin.txt")
        path.write_bytes(data)
        try:
            yield path
        except DiscorporaError as error:
            where = error.where.replace(str(path), STDIN if name == "-" else name)
            raise type(error)(error.message, where=where, hint=error.hint) from None


def _begins_with_object(data: bytes) -> bool:
    """Whether the first line that is not blank is a JSON object: so begin JSON Lines."""
    first = data.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _is_jsonl(path: Path) -> bool:
    return path.name.lower().endswith(jsonl.SUFFIXES)


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        problem = "is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(problem, where=name, hint="give text or JSONL files, or -")
    return path


def _read(path: Path, *, empty: bool = False) -> str:
    """The text of a file (also `.gz`, `.bz2`); `empty` says whether it may hold none."""
    lines = []
    for line in read_lines(path):
        if isinstance(line, BadRecord):
            raise InputError(line.reason, where=line.where, hint="save the file as UTF-8")
        lines.append(line)
    text = "\n".join(lines)
    if not empty and not text.strip():
        raise InputError("holds no text", where=str(path))
    return text


def _print_json(rows: Sequence[Any]) -> None:
    for row in rows:
        typer.echo(json.dumps(row, ensure_ascii=False))


def _score_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("text", "score", "percentile", "sentences", "windows")
    for row in rows:
        rank = "" if row["percentile"] is None else f"{row['percentile']:.0f}"
        table.add_row(
            escape(row["text"]),
            f"{row['score']:.4f}",
            rank,
            str(row["sentences"]),
            str(row["windows"]),
        )
    return table


def _effect_table(name: str, effects: Sequence[dict[str, Any]]) -> Table:
    """The sentence without which the text gains most, and that which had better come later, stand
    out by their sign: a positive change means that the text is better off so."""
    table = Table(
        "sentence", "left out", "swapped with next", title=escape(name), title_justify="left"
    )
    for effect in effects:
        cells = ("" if v is None else f"{v:+.4f}" for v in (effect["left_out"], effect["swapped"]))
        table.add_row(escape(effect["sentence"]), *cells)
    return table
