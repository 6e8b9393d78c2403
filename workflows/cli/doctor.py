"""`discorpora doctor`: a check of this machine, for what discorpora needs and for its extras."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import typer

from corpora.terminal import plain, wide_console
from workflows.cli.common import Json, Output, print_json
from zoo import lacking

FOR = {
    "zoo": "training, evaluating and running models",
    "stanza": "the parsers stanza:LANG, also for other languages than English",
    "wikipedia": "reading Wikipedia dumps",
    "slurm": "builds on a Slurm cluster",
    "ray": "builds on a Ray cluster",
    "dedup": "finding near-duplicates",
    "eval": "agreement between annotators",
    "report": "watching a training with TensorBoard",
    "trackio": "watching a training with Trackio",
    "wandb": "watching a training with Weights & Biases",
    "mteb": "the suites of MTEB",
    "lora": "training with LoRA",
    "tensorflow": "converting the released CONPONO checkpoint",
    "audit": "asking for advisories about the installed packages",
    "docs": "building the documentation",
    "dev": "developing discorpora",
}
"""The purpose of each extra of the package."""
LITTLE_SPACE = 5 << 30
"""Free bytes below which there is a warning: a build of novels with a model takes about as much."""
NO_SPACE = 100 << 20
"""Free bytes below which nothing can be built."""
STYLES = {"ok": "green", "absent": "dim", "warning": "yellow", "broken": "bold red"}


class Finding(NamedTuple):
    """The result of a check: `state` is ok, absent (optional), warning or broken; a message."""

    state: str
    what: str
    said: str


def doctor(output: Output = "build", as_json: Json = False) -> None:
    """Check this machine: versions, extras, parser, GPU, disk, token, data; 1 if one is broken."""
    findings = [*_packages(), _parser(), _gpu(), *_folders(output), _token()]
    states = {finding.what: finding.state for finding in findings}
    broken = [what for what, state in states.items() if state == "broken"]
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        _show(findings)
        if broken:
            typer.echo(f"not ready: mend {', '.join(broken)}")
        else:
            device = "a GPU" if states["GPU"] == "ok" else "the CPU"
            work = "extract and build" if lacking() else f"extract, build, and train on {device}"
            publish = "" if states["token"] == "ok" else "; to publish, log in with: hf auth login"
            typer.echo(f"ready to {work}{publish}")
    if broken:
        raise typer.Exit(1)


def _packages() -> Iterator[Finding]:
    """Check Python, the packages that discorpora needs, and those of its extras."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    package = metadata.metadata("discorpora")
    if not package["Requires-Python"]:
        message = "installed without its metadata, so nothing can be compared: install it again"
        yield Finding("broken", "discorpora", message)
        return
    supported = SpecifierSet(package["Requires-Python"])
    python = platform.python_version()
    state = "ok" if supported.contains(python, prereleases=True) else "broken"
    yield Finding(state, "Python", f"{python} ({sys.prefix}); supported: {supported}")
    requirements = [Requirement(line) for line in metadata.requires("discorpora") or ()]
    base = [requirement for requirement in requirements if _is_for(requirement, "")]
    if problems := ", ".join(filter(None, map(_problem_of, base))):
        yield Finding("broken", "packages", f"{problems}; pip install -U discorpora")
    else:
        yield Finding("ok", "packages", f"{len(base)} installed, versions supported")
    for extra in package.get_all("Provides-Extra") or ():
        of_extra = [r for r in requirements if r not in base and _is_for(r, extra)]
        problems = ", ".join(filter(None, map(_problem_of, of_extra)))
        install = f" ({problems}): pip install 'discorpora[{extra}]'" if problems else ""
        state = "absent" if problems else "ok"
        yield Finding(state, f"extra {extra}", FOR.get(extra, "") + install)


def _is_for(requirement: Any, extra: str) -> bool:
    """Tell whether a requirement belongs to an extra; "" means the package without extras."""
    return requirement.marker is None or bool(requirement.marker.evaluate({"extra": extra}))


def _problem_of(requirement: Any) -> str:
    """Return why a requirement is not met; "" if it is met."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"no {requirement.name}"
    is_met = requirement.specifier.contains(version, prereleases=True)
    return "" if is_met else f"{requirement.name} is {version}, supported: {requirement.specifier}"


def _parser() -> Finding:
    """Check that the embedded parser and the pattern table extract a pair."""
    from extract import Extractor

    try:
        pairs = Extractor().pairs_in("We stayed inside because it rained.")
    except Exception as error:  # a damaged installation may raise any kind of error
        return Finding("broken", "parser", f"{type(error).__name__}: {error}; install it again")
    if [pair.marker for pair in pairs] != ["because"]:
        return Finding("broken", "parser", "the embedded parser finds no pair; install it again")
    return Finding("ok", "parser", "the embedded parser and the pattern table work")


def _gpu() -> Finding:
    """Check that torch can use the GPUs of this machine."""
    from workflows.devices import VISIBLE, available_gpus

    names = available_gpus()
    if not names:
        reason = f" ({VISIBLE} is {os.environ[VISIBLE]!r})" if VISIBLE in os.environ else ""
        return Finding("absent", "GPU", f"none{reason}: models train on the CPU")
    if lacking():
        return Finding("absent", "GPU", f"{len(names)}, used by models only: see the extra zoo")
    import torch

    if not torch.cuda.is_available():
        problem = f"but torch {torch.__version__} cannot use them: install a CUDA build"
        return Finding("warning", "GPU", f"{len(names)}, {problem}")
    devices = range(torch.cuda.device_count())
    return Finding("ok", "GPU", ", ".join(torch.cuda.get_device_name(n) for n in devices))


def _folders(output: str) -> Iterator[Finding]:
    """Check the output folder, the cache of Hugging Face, and the data folder."""
    from huggingface_hub.constants import HF_HOME

    from workflows.config import DATA_VARIABLE

    for what, name in (("output", output), ("cache", HF_HOME)):
        folder = Path(name).absolute()
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if not existing.is_dir():
            yield Finding("broken", what, f"{existing} is a file, not a folder")
            continue
        free = shutil.disk_usage(existing).free
        state = "ok" if free >= LITTLE_SPACE else "warning" if free >= NO_SPACE else "broken"
        message = f"{folder}: {free / 2**30:,.1f} GiB free"
        if not os.access(existing, os.W_OK):
            state, message = "broken", f"{existing}: no permission to write"
        yield Finding(state, what, message)
    data = os.environ.get(DATA_VARIABLE)
    if not data:
        message = f"{DATA_VARIABLE} is not set; build files with {{data}} in a spec need it"
        yield Finding("absent", "data", message)
    elif not Path(data).expanduser().is_dir():
        yield Finding("broken", "data", f"{DATA_VARIABLE} = {data!r} is not a folder")
    else:
        yield Finding("ok", "data", f"{DATA_VARIABLE} = {data}")


def _token() -> Finding:
    """Check that there is a token of the Hub, without showing or using it."""
    from huggingface_hub import get_token

    if get_token():
        return Finding("ok", "token", "there is one for the Hugging Face Hub")
    return Finding("absent", "token", "none: needed to publish, and for closed data of the Hub")


def _show(findings: list[Finding]) -> None:
    """Print the findings as a table."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for state, what, message in findings:
        table.add_row(plain(state, STYLES[state]), what, plain(message))
    wide_console().print(table)
