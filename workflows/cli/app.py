"""The command line `discorpora`: options, one call into a room, one printed result."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from corpora.errors import DiscorporaError, amount
from workflows import console
from workflows.cli import demo, disk, doctor, look, pages, rate, show, start
from workflows.cli.common import (
    DATASET,
    Check,
    Command,
    Config,
    JsonFile,
    Language,
    Markers,
    Output,
    Parser,
    Patterns,
    build_file,
    give_json,
    reader_options,
    refuse_existing,
)
from workflows.cli.zoo import commands as zoo_commands

app = typer.Typer(
    name="discorpora",
    help="Discourse datasets from raw corpora, and discourse models from the datasets.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Mode = Annotated[
    str,
    typer.Option(help="standalone (pairs whose sides can stand alone) or recall (all pairs)."),
]
Workers = Annotated[int, typer.Option(min=1, help="The number of processes.")]
GoldTokens = Annotated[
    bool, typer.Option("--gold-tokens", help="Parse the tokens of the source, not its raw text.")
]
GoldSentences = Annotated[
    bool, typer.Option("--gold-sentences", help="Keep the sentences of the source.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-O", help="An option of the reader, `key=value`; repeatable."),
]

INTERRUPTED = 130
"""Typer's exit status for Ctrl-C; Typer prints no message."""


def kinds_of_sources() -> list[str]:
    """Return the kinds of sources, each with a colon, for completion in a shell."""
    from corpora.readers import READERS

    return [f"{kind}:" for kind in READERS]


def main() -> None:
    """Run the command line; an expected error is one short message and exit code 1."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    console.escape_unencodable()
    try:
        with console.explained(Path()):  # the current folder may have been removed
            app(prog_name="discorpora")
    except DiscorporaError as error:
        if console.debugging():
            raise
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED and not console.debugging():
            sys.stderr.write(
                "\ninterrupted; nothing is left half-written: run the same command again\n"
            )
        raise


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"discorpora {metadata.version('discorpora')}")
        raise typer.Exit


@app.callback()
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    console.configure(debug=debug)


def extract(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="`kind:PATH`, e.g. `text:book.txt`, `conllu:DIR`; `-` reads a text from stdin.",
            autocompletion=kinds_of_sources,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="OUT.csv, OUT.jsonl or OUT.parquet; `-` prints JSON Lines, and counts on stderr.",
        ),
    ],
    parser: Parser = "embedded",
    markers: Markers = "all15",
    language: Language = "en",
    mode: Mode = "standalone",
    subjects: Annotated[
        str, typer.Option(help="The subject of S2 in the mode standalone: own, restored or shared.")
    ] = "own",
    min_confidence: Annotated[
        float | None,
        typer.Option(help="Minimum confidence of a pair; by default .8, in the mode recall 0."),
    ] = None,
    text: Annotated[
        str, typer.Option(help="S1 and S2 as written, or tokenised: written or tokenised.")
    ] = "written",
    previous: Annotated[
        bool,
        typer.Option(
            " /--no-previous",
            help="S1 is never the sentence before: for treebanks of shuffled sentences.",
        ),
    ] = True,
    gold_sentences: GoldSentences = False,
    gold_tokens: GoldTokens = False,
    check: Check = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Write the rejected candidates to this JSONL file.")
    ] = None,
    patterns: Patterns = None,
    workers: Workers = 1,
    encoding: Annotated[
        str, typer.Option(help="Encoding of the texts: latin-1, cp1252, ...; by default utf-8.")
    ] = "",
    option: Options = None,
    max_bad_share: Annotated[
        float, typer.Option(min=0, max=1, help="Maximum share of bad records in a source.")
    ] = 0.0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing output.")] = False,
) -> None:
    """Extract sentence pairs joined by a discourse marker from one or more sources."""
    from extract.commands import STDOUT, extract_to_file
    from extract.pairs import MEANINGS

    for target in (output, rejects):
        refuse_existing(target, force=force)
    counts = extract_to_file(
        sources,
        output,
        reader_options=reader_options(option, language)
        | ({"encoding": encoding} if encoding else {}),
        rejects=rejects,
        max_bad_share=max_bad_share,
        parser=parser,
        markers=markers,
        language=language,
        mode=mode,
        subjects=subjects,
        min_confidence=min_confidence,
        text=text,
        previous=previous,
        gold_sentences=gold_sentences,
        gold_tokens=gold_tokens,
        check=check,
        patterns=tuple(map(str, patterns or ())),
        workers=workers,
    )
    documents = amount(counts.documents, "document")
    rejected = sum(counts.rejects.values())
    lines = [f"{amount(counts.pairs, 'pair')} from {documents} -> {output}"]
    lines += _count_lines(counts.markers)
    lines += [f"{amount(rejected, 'candidate')} rejected"]
    lines += _count_lines(counts.rejects, MEANINGS)
    if foreign := counts.rejects.get("language"):
        lines += [f"in texts of another language than {language}: {amount(foreign, 'candidate')}"]
    if not counts.pairs and not rejected:
        lines += [f"no sentence has one of the markers of --language {language}"]
    typer.echo("\n".join(lines), err=STDOUT in (output, rejects))


def parse(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="`kind:PATH`, e.g. `text:book.txt`, `conllu:DIR`; `-` reads a text from stdin.",
            autocompletion=kinds_of_sources,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="OUT.jsonl or a new folder; `-` prints JSON Lines, and counts on stderr.",
        ),
    ],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="jsonl, pdtb (gold/ and raw/, 34 fields) or disrpt (.conllu, .tok, .rels).",
        ),
    ] = "jsonl",
    parser: Parser = "embedded",
    language: Language = "en",
    min_probability: Annotated[
        float | None,
        typer.Option(help="Minimum probability of a connective; by default the model's threshold."),
    ] = None,
    gold_sentences: GoldSentences = False,
    gold_tokens: GoldTokens = False,
    check: Check = None,
    workers: Workers = 1,
    encoding: Annotated[
        str, typer.Option(help="Encoding of the texts: latin-1, cp1252, ...; by default utf-8.")
    ] = "",
    option: Options = None,
    max_bad_share: Annotated[
        float, typer.Option(min=0, max=1, help="Maximum share of bad records in a source.")
    ] = 0.0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Find all explicit connectives of English texts, with their senses and arguments."""
    from extract.commands import STDOUT, parse_to_file

    refuse_existing(output, force=force)
    counts = parse_to_file(
        sources,
        output,
        format,
        reader_options=reader_options(option, language)
        | ({"encoding": encoding} if encoding else {}),
        max_bad_share=max_bad_share,
        parser=parser,
        language=language,
        min_probability=min_probability,
        gold_sentences=gold_sentences,
        gold_tokens=gold_tokens,
        check=check,
        workers=workers,
    )
    documents = amount(counts.documents, "document")
    lines = [f"{amount(counts.relations, 'explicit relation')} from {documents} -> {output}"]
    lines += _count_lines(counts.connectives)
    lines += [f"{reason}: {number:,}" for reason, number in counts.left_out.items()]
    if foreign := counts.skipped.get("language"):
        lines += [f"in another language than {language}: {amount(foreign, 'document')}"]
    if long := counts.skipped.get("sentence_too_long"):
        lines += [f"too long to parse: {amount(long, 'sentence')}"]
    typer.echo("\n".join(lines), err=output == STDOUT)


def _count_lines(
    counts: Mapping[str, int], meanings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield counts with their names, the largest first, each with the meaning of its name."""
    for name in sorted(counts, key=lambda name: -counts[name]):
        yield f"  {name:<17}{counts[name]:>6,}  {(meanings or {}).get(name, '')}".rstrip()


def validate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="`kind:PATH`, e.g. `text:book.txt`, `conllu:DIR`.",
            autocompletion=kinds_of_sources,
        ),
    ],
    gold: Annotated[
        str,
        typer.Option(
            help="Gold relations: `pdtb:DIR` with gold/ and raw/. With --relations also "
            "`disrpt:DIR`."
        ),
    ],
    relations: Annotated[
        str,
        typer.Option(
            help="Score these explicit relations of SOURCE, not pairs: what `discorpora parse` "
            "wrote, FILE.jsonl, `pdtb:DIR` or `disrpt:DIR`. Of the other options only "
            "--documents, --json, --language and --option count."
        ),
    ] = "",
    parser: Parser = "embedded",
    markers: Markers = "all15",
    language: Language = "en",
    mode: Mode = "recall",
    documents: Annotated[
        Path | None, typer.Option(help="A file of document ids, one a line: score only these.")
    ] = None,
    gold_tokens: GoldTokens = False,
    gold_sentences: GoldSentences = False,
    check: Check = None,
    json_file: JsonFile = "",
    figures: Annotated[Path | None, typer.Option(help="A folder for figures 2 and 3.")] = None,
    patterns: Patterns = None,
    workers: Workers = 1,
    option: Options = None,
) -> None:
    """Score the extraction on SOURCE against gold discourse relations of the same documents."""
    from extract.commands import validate_relations_of, validate_source
    from extract.validate import relations as of_relations
    from extract.validate import to_markdown

    if relations:
        scores = validate_relations_of(
            source,
            gold,
            relations,
            reader_options=reader_options(option, language),
            document_list=documents,
        )
        if not give_json(scores, json_file):
            typer.echo(of_relations.to_markdown(scores))
        return
    result = validate_source(
        source,
        gold,
        reader_options=reader_options(option, language),
        document_list=documents,
        figures=figures,
        parser=parser,
        markers=markers,
        language=language,
        mode=mode,
        gold_sentences=gold_sentences,
        gold_tokens=gold_tokens,
        check=check,
        patterns=tuple(map(str, patterns or ())),
        workers=workers,
    )
    if not give_json(result, json_file):
        typer.echo(to_markdown(result))


def fetch(
    name: Annotated[str, typer.Argument(help="A source: ewt, irc, discoeval, gdtb.")],
    folder: Annotated[Path, typer.Option(help="The folder for its files.")] = Path("data"),
) -> None:
    """Download an openly licensed source at a pinned revision, with checksums."""
    from corpora.fetch import fetch as fetch_source

    typer.echo(fetch_source(name, folder))


def build(
    config: Config = "",
    output: Output = "build",
    workers: Annotated[int, typer.Option(min=1, help="Stages that run at the same time.")] = 1,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train models again whose code or data have changed.")
    ] = False,
    rehash: Annotated[
        bool, typer.Option("--rehash", help="Read every source, whatever its times say.")
    ] = False,
) -> None:
    """Build everything that a build file names (as `luigi --module workflows BuildAll`)."""
    from workflows.tasks.build import run_build

    config = build_file(config)
    if status := run_build(config, output, workers, retrain=retrain, rehash=rehash):
        raise typer.Exit(status)
    show.status(config, output)


def publish(
    folder: Annotated[Path, typer.Argument(help="A dataset or model folder.")],
    repo: Annotated[str, typer.Argument(help="The repository: NAMESPACE/NAME.")],
    model: Annotated[bool, typer.Option("--model", help="The folder is a model.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make a new one private.")] = False,
    dataset: Annotated[
        str,
        typer.Option(help="The repository of the dataset that the model's figures are of."),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list files and decisions.")
    ] = False,
) -> None:
    """Publish a folder to the Hugging Face Hub (token: HF_TOKEN or `hf auth login`)."""
    from corpora.publish import publish as publish_folder

    kind: Literal["dataset", "model"] = "model" if model else "dataset"
    publication = publish_folder(
        folder, repo, kind=kind, private=private, dataset=dataset, dry_run=dry_run
    )
    typer.echo("\n".join(publication.lines()))
    if dry_run:
        publication.plan.require_licence()


def export(
    folder: Annotated[Path, typer.Argument(help="A dataset folder.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the files go.")],
    layout: Annotated[
        str, typer.Option("--format", help="discoeval, pairs or triplets (sentence-transformers).")
    ] = "discoeval",
    domain: Annotated[str, typer.Option(help="discoeval: the folder's name below the task.")] = "",
) -> None:
    """Write a dataset as DiscoEval's files, or as pairs or triplets for sentence-transformers."""
    from corpora.export import export as export_dataset

    for name, lines in export_dataset(folder, output, layout, domain).items():
        typer.echo(f"{lines:>9,}  {name}")


def audit(
    dataset: Annotated[str, typer.Argument(help=DATASET)],
    kind: Annotated[str, typer.Option(help="What its rows are, if it does not say so.")] = "",
    json_file: JsonFile = "",
) -> None:
    """Audit a dataset: rules that read no meaning, labels, duplicates; ends with a verdict."""
    from tempfile import TemporaryDirectory

    from corpora.audit import audited, rendered, to_json
    from corpora.audit.opening import opened
    from corpora.audit.verdict import verdict

    with TemporaryDirectory() as spill:
        result = audited(opened(dataset, kind), Path(spill))
    lines = verdict(result)
    if not give_json({**to_json(result), "verdict": lines}, json_file):
        typer.echo("\n".join([rendered(result), "", *lines]))


COMMANDS = (
    *(extract, parse, validate, fetch, show.markers, show.plan, build, show.status, look.inspect),
    *(start.init, disk.verify, disk.prune, demo.demo, doctor.doctor),
    *(publish, export, audit, rate.rate, pages.report, pages.browse),
)
for command in COMMANDS:
    app.command(cls=Command)(command)
app.add_typer(zoo_commands)


if __name__ == "__main__":
    main()
