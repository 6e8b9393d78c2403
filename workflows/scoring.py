"""`discoforge score`: texts from files, scores, ranks and explanations as tables or JSONL."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from corpora.errors import InputError
from workflows.show import wide_console

BATCH_TOKENS = 16384


def show_scores(
    model: str, files: list[str], *, reference: list[str], explain: bool, as_json: bool
) -> None:
    """Print a score, its percentile and the number of windows for each text."""
    from zoo.coherence.scoring import explain as explain_text
    from zoo.coherence.scoring import percentile, quantiles, score_texts

    scorer = load_scorer(model)
    named = list(read_texts(files))
    scored = score_texts(scorer, [text for _, text in named], BATCH_TOKENS)
    rows = [{"text": name, **asdict(s)} for (name, _), s in zip(named, scored, strict=True)]
    if reference:
        texts = [text for _, text in read_texts(reference)]
        known = quantiles([s.score for s in score_texts(scorer, texts, BATCH_TOKENS)])
        for row in rows:
            row["percentile"] = percentile(row["score"], known)
    if explain:
        for row, (_, text) in zip(rows, named, strict=True):
            row["effects"] = [asdict(effect) for effect in explain_text(scorer, text)]
    if as_json:
        _print_json(rows)
        return
    wide_console().print(_score_table(rows))
    for row in rows if explain else []:
        wide_console().print(_effect_table(row["text"], row["effects"]))


def show_ranks(model: str, files: list[str], prompt: str, *, as_json: bool) -> None:
    """Print the alternatives of each prompt, the most coherent first."""
    from zoo.coherence.scoring import rank

    scorer = load_scorer(model)
    rows = [
        {"prompt": name, "rank": place, "alternative": labels[i], "score": score}
        for name, before, labels, texts in _choices(files, prompt)
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


def load_scorer(model: str) -> Any:
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
            hint="judge it with: discoforge evaluate pairwise",
        )
    return scorer.eval()


def read_texts(files: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Name and text of each text file, each record of a JSONL file, and of standard input (`-`)."""
    for name in files:
        if name == "-":
            yield "-", _not_empty(sys.stdin.read(), "standard input")
        elif _existing(name).suffix == ".jsonl":
            from corpora.readers import open_source

            yield from ((document.id, document.text) for document in open_source(f"jsonl:{name}"))
        else:
            yield name, _not_empty(_read(name), name)


def _choices(files: Sequence[str], prompt: str) -> Iterable[tuple[str, str, list[str], list[str]]]:
    """Prompt's name, prompt, names of the alternatives, alternatives.

    Text files are alternatives of one prompt; a record of a JSONL file holds its own.
    """
    plain = [name for name in files if not name.endswith(".jsonl")]
    if plain:
        named = list(read_texts(plain))
        before = _read(prompt) if prompt else ""
        yield prompt or "(none)", before, [n for n, _ in named], [text for _, text in named]
    for name in files:
        if name.endswith(".jsonl"):
            yield from _records(_existing(name))


def _records(path: Path) -> Iterable[tuple[str, str, list[str], list[str]]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            try:
                record = json.loads(line)
                texts = record["alternatives"]
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise InputError(
                    f"no record to rank: {error!r}",
                    where=where,
                    hint='expected {"prompt": "...", "alternatives": ["...", "..."]}',
                ) from error
            if not isinstance(texts, list) or not all(isinstance(t, str) and t for t in texts):
                raise InputError("alternatives must be a list of texts", where=where)
            labels = [str(i) for i in range(len(texts))]
            yield str(record.get("id", number)), str(record.get("prompt", "")), labels, texts


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise InputError("no such file", where=name, hint="give text or JSONL files, or -")
    return path


def _read(name: str) -> str:
    path = _existing(name)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text: {error}", where=name) from error


def _not_empty(text: str, where: str) -> str:
    if not text.strip():
        raise InputError("holds no text", where=where)
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
