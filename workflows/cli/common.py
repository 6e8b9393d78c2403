"""Options and JSON output that the commands share. Importing it loads no large library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from corpora.errors import ConfigError

if TYPE_CHECKING:
    from workflows.tasks import BuildAll


def complete_markers(incomplete: str) -> list[str]:
    """Return a list of English markers, without its last word, with each marker or set after it.

    Typer shows those that begin with `incomplete`.
    """
    from extract.patterns import load_patterns

    table = load_patterns("en")
    finished, comma, _ = incomplete.rpartition(",")
    return [f"{finished}{comma}{name}" for name in (*table.sets, *table.markers)]


DEFAULT = Path("build.toml")


class UsageError(typer.BadParameter):
    """A wrong use of a command; only its message is printed, and the exit code is 2."""

    def format_message(self) -> str:
        return str(self.message)


def build_file(config: str, argument: str = "") -> str:
    """Return the build file that `--config` or the argument names, else `build.toml`.

    Raises `UsageError` if both name one, or if neither does and there is no `build.toml`.
    """
    if config and argument:
        raise UsageError(f"both {argument} and --config {config} are given: give one of them")
    name = config or argument
    if not name and not DEFAULT.is_file():
        raise UsageError(
            f"No build file is named, and there is no {DEFAULT} in this folder.\n"
            "Name one:                   --config FILE\n"
            "Take the embedded sample:   --config sample\n"
            "Write one for your sources: discorpora init"
        )
    return name or str(DEFAULT)


Config = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        help=f"A build file: path or shipped name; by default {DEFAULT}.",
        show_default=False,
    ),
]
Output = Annotated[str, typer.Option("--output", help="The folder that holds the builds.")]
Language = Annotated[str, typer.Option(help="The language of the texts and of the pattern table.")]
Parser = Annotated[str, typer.Option("--parser", help="embedded, gold, spacy:NAME or stanza:LANG.")]
Check = Annotated[
    str | None,
    typer.Option(help="second: a second parser checks the embedded one (the default), or none."),
]
Markers = Annotated[
    str,
    typer.Option(
        help="all15, books8, books5, or a list: `because,so`.", autocompletion=complete_markers
    ),
]
Patterns = Annotated[
    list[Path] | None,
    typer.Option(
        "--patterns",
        help="A pattern file that adds or replaces markers, or `dissent2019`; repeatable.",
    ),
]
DATASET = "A dataset's FOLDER, or OWNER/NAME on the Hub; @CONFIG at its end names a configuration."
"""The help on an argument that names a dataset."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonFile = Annotated[
    str,
    typer.Option("--json", metavar="FILE", help="Write all figures to FILE; `-` prints them."),
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the web browser.")]


class Command(TyperCommand):
    """A command that answers an unknown option with the valid ones."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if hasattr(error, "possibilities"):  # typer's class for this error has no public name
                flags = [flag for parameter in self.get_params(ctx) for flag in parameter.opts]
                error.possibilities = [flag for flag in flags if flag.startswith("--")]
            raise


def planned(config: str, output: str = "build") -> BuildAll:
    """Plan a build file, without running or writing anything; returns the task of all stages."""
    from workflows.settings import options
    from workflows.tasks import BuildAll

    with options(config, output, looking=True):
        return BuildAll(config=config)


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=_lacks_characters(), default=str))


def print_json_lines(rows: Iterable[Any]) -> None:
    """Print each row as one line of JSON."""
    for row in rows:
        typer.echo(json.dumps(row, ensure_ascii=_lacks_characters(), default=str))


def _lacks_characters() -> bool:
    """Tell whether standard output is not in a UTF encoding, so that JSON escapes characters."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")


def give_json(value: Any, file: str) -> bool:
    """Write `value` as JSON to `file`, or print it for "-"; returns whether it was printed."""
    from corpora.store.atomic import write_json

    if file == "-":
        print_json(value)
    elif file:
        write_json(Path(file), value)
    return file == "-"


def refuse_existing(path: Path | None, *, force: bool) -> None:
    """Raise `ConfigError` for an output file that exists, unless `force` is set."""
    if path is not None and path.is_file() and not force:
        raise ConfigError(f"{path} exists already", hint="--force overwrites it")


def reader_options(pairs: Sequence[str] | None, language: str) -> dict[str, Any]:
    """Return the options of a reader: those of `--option key=value`, and the language."""
    options: dict[str, Any] = {"language": language}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--option {pair!r}: expected key=value")
        options[key] = value
    return options
