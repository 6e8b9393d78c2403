"""Snippets of README and docs: how a page is read, and how a command is checked without running.

A block of commands or Python runs as printed, and prints what it shows. An HTML comment before it
says otherwise, with a reason:

    <!-- checked: REASON -->    not run: programs, files, commands and options have to exist
    <!-- nightly -->            runs in `make nightly` alone, with all blocks after it on the page
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>checked|nightly)(?:: (?P<reason>.+?))? -->\n)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
ANY_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?: {4}|\t)\S.*\n?)+", re.MULTILINE)
INLINE = re.compile(r"`((?:discorpora|luigi|python -m) [^`\n]+)`")
SHELL = {
    *(
        "accelerate",
        "cat",
        "cp",
        "docker",
        "export",
        "git",
        "head",
        "hf",
        "mkdir",
        "pip",
        "printf",
        "sed",
    ),
    *("sort", "source", "tail", "uv", "uvx"),
}
"""Programs that are not ours."""
ASSIGNMENT = re.compile(r"\w+=\S*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, line, language, text, and how it is tested."""

    page: Path
    line: int
    language: str
    text: str
    mark: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def steps(self) -> list[tuple[str, str]]:
        """Of a console: each command, and the output below it."""
        steps = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [_command_and_output(step) for step in steps]


def _command_and_output(step: str) -> tuple[str, str]:
    lines = step.splitlines(keepends=True)
    last = next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
    return "".join(lines[: last + 1]), "".join(lines[last + 1 :])


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page that have a language."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found["language"],
            found["text"],
            found["mark"] or "",
            found["reason"] or "",
        )
        for found in FENCE.finditer(text)
    ]


def loose_commands(page: Path) -> Iterator[str]:
    """Commands of a page outside of console blocks: indented ones, and those in a sentence."""
    text = ANY_FENCE.sub("", page.read_text(encoding="utf-8"))
    for block in INDENTED.findall(text):
        joined = re.sub(r"\\\n\s*", "", block)
        yield from (line.strip() for line in joined.splitlines())
    yield from INLINE.findall(text)


def faults(line: str) -> Iterator[str]:
    """What is wrong with a command line that is not run."""
    words = shlex.split(re.sub(r"[\[\]]", "", line), comments=True)
    command: list[str] = []
    for word in [*words, ";"]:
        if word in {"|", "&&", ";", ">"}:
            yield from _faults_of(command)
            command = ["cat"] if word == ">" else []
        else:
            command.append(word)


def _faults_of(words: list[str]) -> Iterator[str]:
    while words and ASSIGNMENT.match(words[0]):
        words = words[1:]
    words = [word for word in words if word.strip(".")]
    if not words:
        return
    program, rest = Path(words[0]).name, words[1:]
    if program == "discorpora":
        yield from _of_discorpora(rest)
    elif program == "luigi":
        yield from _of_luigi(rest)
    elif program == "make":
        yield from (
            f"no target {word}" for word in rest if word.partition("=")[0] not in _targets()
        )
    elif "-m" in rest and (program.startswith("python") or program == "accelerate"):
        yield from _of_module(rest[rest.index("-m") + 1 :])
    elif program.startswith("python") or program == "bash":
        yield from (f"no file {word}" for word in rest[:1] if _absent(word))
    elif program not in SHELL:
        yield f"unknown program {words[0]}"


def _absent(word: str) -> bool:
    return "/" in word and not (ROOT / word).is_file()


def _targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    variables = re.findall(r"^(\w+) [?:]?=", text, re.MULTILINE)
    return {*re.findall(r"^([a-z-]+):", text, re.MULTILINE), *variables}


def _of_module(words: list[str]) -> Iterator[str]:
    module, rest = words[0], words[1:]
    if find_spec(module) is None:
        yield f"no module {module}"
    elif module in {"zoo.train", "zoo.evaluate"}:
        yield from _of_own_options("train" if module == "zoo.train" else "evaluate", rest)


def _of_luigi(words: list[str]) -> Iterator[str]:
    import luigi

    import workflows.tasks  # noqa: F401  registers the tasks

    names = [word for word in words if re.match(r"[A-Z][a-z]+[A-Z]?\w*$", word)]
    known = {"module", "workers", "scheduler-host", "local-scheduler", "discorpora-debug", "help"}
    for name in names[:1]:
        if name in luigi.task_register.Register.task_names():
            task = luigi.task_register.Register.get_task_cls(name)
            known |= {each.replace("_", "-") for each in task.get_param_names(True)}
            options = [word[2:] for word in words if word.startswith("--")]
            yield from (f"{name} has no option --{each}" for each in options if each not in known)


def _of_discorpora(words: list[str]) -> Iterator[str]:
    from typer.main import get_command

    from workflows.cli.app import app

    group: Any = get_command(app)
    context = group.make_context("discorpora", ["markers"])
    known = {*_options(group, context), "--help", "-h"}
    while words and words[0] in known:
        words = words[1:]
    path = "discorpora"
    while words and hasattr(group, "list_commands"):
        if words[0] not in group.list_commands(context):
            if words[0] != "COMMAND":
                yield f"{path} has no command {words[0]}"
            return
        path, group = f"{path} {words[0]}", group.get_command(context, words[0])
        words = words[1:]
    if path.split()[-1] in {"train", "evaluate"}:
        yield from _of_own_options(path.split()[-1], words)
        return
    known = {*_options(group, context), "--help", "-h"}
    yield from (
        f"{path} has no option {word}"
        for word in words
        if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known
    )


def _options(command: Any, context: Any) -> set[str]:
    parameters = command.get_params(context)
    return {name for each in parameters for name in (*each.opts, *each.secondary_opts)}


def _of_own_options(command: str, words: list[str]) -> Iterator[str]:
    """Options of `train` and `evaluate`: of the recipe or suite; of any, if none is named."""
    from zoo.declared import RECIPES
    from zoo.evaluate import SUITES
    from zoo.evaluate.__main__ import Options
    from zoo.presets import read_preset, shipped

    name = words[0] if words and not words[0].startswith("-") else ""
    known = {"help", "debug", "trust_remote_code", "key"}
    if command == "evaluate":
        known |= {"json", *Options.model_fields}
        kinds = [SUITES.find(each) for each in SUITES.built_in if name in {each, "SUITE", ""}]
    elif name in shipped():
        kinds = [read_preset(name).kind]
    else:
        kinds = [RECIPES.find(each) for each in RECIPES.built_in]
    if not kinds and ":" not in name:
        yield f"no suite {name}"
    known |= {field for kind in kinds for field in kind.model_fields}
    options = [word[2:].partition("=")[0] for word in words if word.startswith("--")]
    for option in options:
        if option.partition(".")[0].replace("-", "_") not in known:
            yield f"{command} {name} has no option --{option}"
