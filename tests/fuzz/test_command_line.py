"""Words on the command line: each command does its work, or refuses them in one message."""

from __future__ import annotations

import logging
import os
import random
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from corpora.errors import DiscorporaError
from workflows import console
from workflows.cli.app import app

from ..test_architecture import HEAVY
from .campaign import Call, run, sizes

TEXT = "The bridge was closed because the river had risen. Nobody complained.\n"
TREE = "1\tAnna\t_\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n2\tsang\t_\tVERB\tVBD\t_\t0\troot\t_\t_\n\n"
BUILD = """
name = "small"
[[sources]]
name = "tree"
spec = "conllu:tree.conllu"
licence = "CC0-1.0"
[parse]
parser = "gold"
"""
FILES = ["text.txt", "tree.conllu", "build.toml", "pairs.jsonl", "empty.txt", "binary", "data"]
FILES += ["model", "model/results.json", "data/manifest.json", "none.txt", "new/out.jsonl", "."]
ODD = ["", " ", "-", "--", "x", "0", "-1", "3", "1e9", "nan", str(10**30), "9" * 5000, "a=b", "="]
ODD += ["text:text.txt", "text:", "text:[", "text:~nobody/*", "conllu:tree.conllu", "hub:a/b", ":"]
ODD += ["sample:stories", "sample:x", "pdtb:data", "{data}/x", "x.py:X", "a/b", "../x", "~nobody/x"]
ODD += ["a\nb", "\u202e", "\udcff", "é", "x" * 5000, "/dev/null", "/proc/self/mem", "data@x", "*"]
LIKELY = {
    "builds": ["build.toml"],
    "config": ["build.toml", "all"],
    "encoding": ["utf-8", "latin-1", "rot13", "hex"],
    "gold": ["pdtb:data"],
    "kind": ["dissent", "sp"],
    "language": ["en", "de", "xx"],
    "layout": ["pairs", "discoeval", "markdown", "csv", "json"],
    "markers": ["because", "all15", "because,so"],
    "mode": ["recall", "standalone"],
    "model": ["model"],
    "option": ["encoding=latin-1", "text=x", "licence=CC0-1.0"],
    "parser": ["embedded", "gold", "spacy:x", "stanza:xx"],
    "paths": ["model/results.json", "model"],
    "recipe": ["dissent/ngram", "dissent/bilstm_tiny", "coherence/contrastive_tiny"],
    "repo": ["anna/x"],
    "split": ["train", "test"],
    "suite": ["dissent", "permuted", "discoeval"],
}
for same in (
    (("sources", "source", "files", "reference"), ["text:text.txt", "text.txt"]),
    (("output", "json_file", "rejects"), ["out.jsonl", "out.parquet", "out"]),
    (("folder", "dataset", "data", "path"), ["data", "data", "model"]),
    (("workers", "rows", "top"), ["1", "2"]),
):
    LIKELY |= dict.fromkeys(same[0], same[1])
MORE = ["--dataset", "data", "--output", "out", "--epochs", "1", "--seed", "--limit", "--grid"]


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that name it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


COMMANDS = list(commands(typer.main.get_command(app)))


def value(name: str, draw: random.Random) -> str:
    """A likely value of an option, or any."""
    if name in LIKELY and draw.random() < 0.6:
        return draw.choice(LIKELY[name])
    return draw.choice([*FILES, *ODD])


def words(seed: int) -> list[str]:
    """A command with some of its options, and a few words more or fewer."""
    draw = random.Random(seed)
    named, command = COMMANDS[seed % len(COMMANDS)]
    given: list[list[str]] = []
    for parameter in command.params:
        name = parameter.name
        if parameter.param_type_name == "argument":
            given += [[value(name, draw)] for _ in range(draw.choice([1, 1, 1, 2]))]
        elif parameter.required or draw.random() < 0.2:
            option = draw.choice([*parameter.opts, *parameter.secondary_opts])
            given.append([option] if parameter.is_flag else [option, value(name, draw)])
    if named[0] in ("train", "evaluate"):
        given += [[draw.choice([*MORE, *ODD])] for _ in range(draw.randrange(6))]
    if draw.random() < 0.1:
        given.append([draw.choice(ODD)])
    if given and draw.random() < 0.1:
        given.pop(draw.randrange(len(given)))
    return [*named, *(word for part in given for word in part)]


def called(given: list[str], folder: Path) -> None:
    """`discorpora WORDS` in a folder; a usage error or exit status is a refusal."""
    os.chdir(folder)
    for number in (1, 2):
        os.dup2(os.open("said", os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    os.dup2(os.open("text.txt", os.O_RDONLY), 0)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace")  # as Python does
    sys.argv = ["discorpora", *given]
    logging.getLogger("discorpora").handlers.clear()  # as in a new process
    status: object = 0
    try:
        with console.explained(folder):
            app(prog_name="discorpora")
    except SystemExit as stop:
        status = stop.code
    sys.stderr.flush()
    said = Path("said").read_text(errors="replace")
    assert "Traceback (most recent" not in said, said[-1500:]
    if status:
        raise DiscorporaError(f"ended with {status}")


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, pairs_folder: Path, dissent_models: dict[str, Path]
) -> Path:
    """A folder of small files of all kinds."""
    folder = tmp_path_factory.mktemp("place")
    texts = {"text.txt": TEXT, "tree.conllu": TREE, "build.toml": BUILD, "empty.txt": ""}
    texts["pairs.jsonl"] = '{"s1": "Anna sang.", "s2": "It rained."}\n'
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "binary").write_bytes(random.Random(0).randbytes(1000))
    shutil.copytree(pairs_folder, folder / "data")
    shutil.copytree(dissent_models["ngram"], folder / "model")
    return folder


@sizes(40, 1_500)
def test_a_command_works_or_refuses_its_words(
    cases: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network: what asks for it ends in a message too."""
    for module in (*HEAVY, "workflows.tasks", "zoo.train", "zoo.evaluate.__main__"):
        import_module(module)  # once, not in each process
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", "hf_none")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "a" / "b" / "c"

    def case(seed: int) -> tuple[str, Call]:
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        shutil.copytree(place, folder)
        given = words(seed)
        return f"{given}"[:600], partial(called, given, folder)

    run("command line", cases, case, forked=True)
