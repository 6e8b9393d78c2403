"""`discorpora init`: a commented build file for a user's own sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count, islice
from pathlib import Path
from string import Template
from typing import Annotated, NamedTuple

import typer

from corpora.errors import BadRecord, ConfigError, DiscorporaError, amount
from workflows.cli.common import DEFAULT, planned, refuse_existing

SAMPLE = "sample:stories"
PROSE = ("dissent", "sp", "bso", "permuted")
"""The datasets that are made from any running text."""
OF_KIND = {
    "pdtb": ("pdtb_explicit", "pdtb_implicit", "pdtb_marked"),
    "rst": ("rst",),
    "irc": ("dissent", "dc_chat"),
}
"""The datasets of certain kinds of sources."""
LOOKED_AT = 20
"""Number of documents that are read to recognise licence and language of a source."""

NO_LICENCE = (
    '# licence = "CC0-1.0"  # or CC-BY-4.0, public-domain-us, PDM-1.0 (public domain everywhere), '
    "...: without one nothing may be published; docs/how-to/publish.md helps to choose"
)
TEMPLATE = Path(__file__).parent.with_name("templates") / "build.toml"


class Guess(NamedTuple):
    """A source `spec` with the licence and language of its first documents ("": unknown).

    `documents` is their number, `LOOKED_AT` also if there are more; `refused` were not readable.
    """

    spec: str
    licence: str
    language: str
    documents: int
    refused: list[BadRecord]


def init(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE.toml] [SOURCE]...",
            help="The build file (default build.toml), and sources such as text:my_books/.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a build file for your sources, with comments; `discorpora plan` accepts it."""
    from corpora.languages import name_of
    from extract.patterns import table_languages

    files = [Path(word) for word in arguments or () if word.endswith(".toml")]
    specs = [word for word in arguments or () if not word.endswith(".toml")]
    if len(files) > 1:
        raise ConfigError(f"two build files are named: {files[0]} and {files[1]}")
    path = files[0] if files else DEFAULT
    refuse_existing(path, force=force)
    guesses = [_guess(spec) for spec in specs or [SAMPLE]]
    recognised = [guess for guess in guesses if guess.language]
    if len({guess.language for guess in recognised}) > 1:
        raise ConfigError(
            "the sources are in several languages: "
            f"{', '.join(f'{guess.spec} ({guess.language})' for guess in recognised)}",
            hint="write a build file for each language: a build has one parser",
        )
    language = recognised[0].language if recognised else "en"
    _write_build_file(path, guesses, language)
    for guess in guesses:
        documents = amount(guess.documents, "document")
        if guess.documents == LOOKED_AT:
            documents = f"{LOOKED_AT} or more documents"
        typer.echo(f"{guess.spec}: {documents}, language {guess.language or 'not recognised'}")
        if not guess.language:
            typer.echo(f'  the file says language = "{language}": correct it if that is wrong')
        if bad := guess.refused:
            typer.echo(f"  not read: {len(bad)}, the first: {bad[0].where}: {bad[0].reason}")
    if language not in table_languages():
        name = name_of(language)
        typer.echo(
            f"no dataset of markers (dissent): there is no pattern table of {name}; "
            "docs/how-to/another-language.md says how to add one"
        )
    if not specs:
        typer.echo("no source was named: the file builds the embedded sample")
    config = "" if path == DEFAULT else f" --config {path}"
    typer.echo(f"wrote {path}; next: discorpora plan{config}")


def _guess(spec: str) -> Guess:
    """Read the first documents of a source, and guess its licence and language.

    A folder without `KIND:` has the kind to which most of its files belong. Raises `InputError` if
    the source cannot be read.
    """
    from corpora.languages import recognise_language
    from corpora.licences import UNKNOWN
    from corpora.readers import BARE, READERS, open_source
    from corpora.readers.files import is_hidden

    folder = Path(spec).expanduser()
    if folder.is_dir():
        names = [path.name for path in folder.rglob("*") if not is_hidden(path.relative_to(folder))]
        suffixes = {kind: READERS.find(kind).suffixes for kind in BARE}
        counts = {kind: sum(name.endswith(suffixes[kind]) for name in names) for kind in BARE}
        spec = f"{max(BARE, key=lambda kind: counts[kind])}:{spec}"
    refused: list[BadRecord] = []  # the build counts them, and stops if there are too many
    documents = list(islice(open_source(spec, on_bad=refused.append), LOOKED_AT))
    licences = {document.licence for document in documents}
    licence = licences.pop() if len(licences) == 1 else UNKNOWN
    language = recognise_language(*(document.text for document in documents))
    return Guess(spec, "" if licence == UNKNOWN else licence, language, len(documents), refused)


def _datasets(spec: str) -> tuple[str, ...]:
    """Return the datasets that a source can give: of builders for just its kind, else `OF_KIND`."""
    from corpora.readers import parse_spec
    from corpora.tasks import BUILDERS

    kind = parse_spec(spec)[0].name
    released = [
        name for name in BUILDERS.built_in if kind in getattr(BUILDERS.find(name), "kinds", ())
    ]
    return tuple(released) or OF_KIND.get(kind, PROSE)


def _write_build_file(path: Path, guesses: list[Guess], language: str) -> None:
    """Write the build file under another name, plan it, then rename it to `path`."""
    from corpora.readers import split_spec
    from corpora.store.atomic import replacing
    from corpora.tasks import BUILDERS
    from corpora.toml import toml_value
    from extract.patterns import resolve_markers, table_languages
    from workflows.tables import NO_BUILDS
    from zoo import lacking

    parts = map(Template, TEMPLATE.read_text().split("#---"))
    top, source, settings, model, too_few, no_extra = parts
    names: list[str] = []
    for guess in guesses:
        place = re.split(r"[*?\[]", split_spec(guess.spec)[1])[0]
        names.append(_unused(_slug(Path(place).stem), names))
    # Of several sources none names the build, but the folder that it is in.
    default_name = names[0] if len(names) == 1 else _slug(Path.cwd().name)
    name = default_name if path == DEFAULT else _slug(path.stem)
    name = _unused(name.replace(".", "-"), NO_BUILDS)
    text = top.substitute(file=path, name=name)
    has_table = language in table_languages()
    datasets: dict[str, str] = {}  # each with its builder
    for source_name, guess in zip(names, guesses, strict=True):
        possible = tuple(name for name in _datasets(guess.spec) if has_table or name != "dissent")
        datasets |= {name: "dc" if name == "dc_chat" else name for name in possible}
        text += source.substitute(
            file=path,
            name=toml_value(source_name),
            spec=toml_value(guess.spec),
            licence=f"licence = {toml_value(guess.licence)}" if guess.licence else NO_LICENCE,
            language=language,
            datasets=toml_value(possible),
        )
    english = language == "en"
    parser, markers = ("embedded", "all15") if english else (f"stanza:{language}", "all")
    text += settings.substitute(parser=parser, markers=markers)
    for name, builder in datasets.items():
        text += f"\n[datasets.{name}]  # {BUILDERS.find(builder).summary()}\n"
        text += f'builder = "{builder}"\n' if builder != name else ""
        text += '# title = ""  # the heading of its card; `description`: a text under it\n'
        if name == "dissent" and not english:
            text += f"markers = {toml_value(resolve_markers('all', language))}  # its labels\n"
    few = sum(guess.documents for guess in guesses) < 3
    if "dissent" in datasets and (few or lacking()):
        text += (too_few if few else no_extra).template
        text += re.sub("^(?=.)", "# ", model.template.strip(), flags=re.M) + "\n"
    elif "dissent" in datasets:
        text += model.template
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
        try:
            planned(str(partial))
        except DiscorporaError as error:  # the partial file is removed
            where = error.where.replace(partial.name, path.name)
            raise type(error)(error.message, where=where, hint=error.hint) from None


def _unused(name: str, used: Sequence[str]) -> str:
    """Return `name`, or the first of `NAME-1`, `NAME-2`, ... that is not used."""
    numbered = (f"{name}-{number}" for number in count(1))
    return next(candidate for candidate in chain([name], numbered) if candidate not in used)


def _slug(name: str) -> str:
    """Return a name that a folder can have: small letters, digits, dots, dashes, underscores."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "texts"
