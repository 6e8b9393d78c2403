"""`discorpora doctor`: whether this machine has what discorpora needs, and what may be added."""

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
"""What each extra of the package is for."""
LITTLE_SPACE = 5 << 30
"""Bytes; a build of novels with a model of 100 million weights takes about as much."""
NO_SPACE = 100 << 20
STYLES = {"ok": "green", "absent": "dim", "warning": "yellow", "broken": "bold red"}


class Found(NamedTuple):
    """One finding; `state` is ok, absent (optional, not there), warning or broken."""

    state: str
    what: str
    said: str


def doctor(output: Output = "build", as_json: Json = False) -> None:
    """Check this machine: versions, extras, parser, GPU, disk, token, data; 1 if one is broken."""
    found = [*_packages(), _parser(), _gpu(), *_places(output), _token()]
    states = {each.what: each.state for each in found}
    broken = [what for what, state in states.items() if state == "broken"]
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        _show(found)
        if broken:
            typer.echo(f"not ready: mend {', '.join(broken)}")
        else:
            device = "a GPU" if states["GPU"] == "ok" else "the CPU"
            work = "extract and build" if lacking() else f"extract, build, and train on {device}"
            publish = "" if states["token"] == "ok" else "; to publish, log in with: hf auth login"
            typer.echo(f"ready to {work}{publish}")
    if broken:
        raise typer.Exit(1)


def _packages() -> Iterator[Found]:
    """Python, the packages that discorpora needs, and those of its extras."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    about = metadata.metadata("discorpora")
    if not about["Requires-Python"]:
        said = "installed without its metadata, so nothing can be compared: install it again"
        yield Found("broken", "discorpora", said)
        return
    supported = SpecifierSet(about["Requires-Python"])
    python = platform.python_version()
    state = "ok" if supported.contains(python, prereleases=True) else "broken"
    yield Found(state, "Python", f"{python} ({sys.prefix}); supported: {supported}")
    needed = [Requirement(line) for line in metadata.requires("discorpora") or ()]
    base = [each for each in needed if _is_for(each, "")]
    if lacking := ", ".join(filter(None, map(_lacking, base))):
        yield Found("broken", "packages", f"{lacking}; pip install -U discorpora")
    else:
        yield Found("ok", "packages", f"{len(base)} installed, versions supported")
    for extra in about.get_all("Provides-Extra") or ():
        own = [each for each in needed if each not in base and _is_for(each, extra)]
        lacking = ", ".join(filter(None, map(_lacking, own)))
        how = f" ({lacking}): pip install 'discorpora[{extra}]'" if lacking else ""
        yield Found("absent" if lacking else "ok", f"extra {extra}", FOR.get(extra, "") + how)


def _is_for(requirement: Any, extra: str) -> bool:
    return requirement.marker is None or bool(requirement.marker.evaluate({"extra": extra}))


def _lacking(requirement: Any) -> str:
    """What of a requirement is not met, in words."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"no {requirement.name}"
    met = requirement.specifier.contains(version, prereleases=True)
    return "" if met else f"{requirement.name} is {version}, supported: {requirement.specifier}"


def _parser() -> Found:
    """Whether the embedded parser and the pattern table give a pair."""
    from extract import Extractor

    try:
        pairs = Extractor().pairs_in("We stayed inside because it rained.")
    except Exception as error:  # whatever a damaged installation raises
        return Found("broken", "parser", f"{type(error).__name__}: {error}; install it again")
    if [pair.marker for pair in pairs] != ["because"]:
        return Found("broken", "parser", "the embedded parser finds no pair; install it again")
    return Found("ok", "parser", "the embedded parser and the pattern table work")


def _gpu() -> Found:
    from workflows.devices import VISIBLE, there

    names = there()
    if not names:
        why = f" ({VISIBLE} is {os.environ[VISIBLE]!r})" if VISIBLE in os.environ else ""
        return Found("absent", "GPU", f"none{why}: models train on the CPU")
    if lacking():
        return Found("absent", "GPU", f"{len(names)}, used by models only: see the extra zoo")
    import torch

    if not torch.cuda.is_available():
        said = f"{len(names)}, but torch {torch.__version__} cannot use them: install a CUDA build"
        return Found("warning", "GPU", said)
    devices = range(torch.cuda.device_count())
    return Found("ok", "GPU", ", ".join(torch.cuda.get_device_name(n) for n in devices))


def _places(output: str) -> Iterator[Found]:
    """The output folder, the cache of Hugging Face, and the data folder."""
    from huggingface_hub.constants import HF_HOME

    from workflows.config import DATA_VARIABLE

    for what, name in (("output", output), ("cache", HF_HOME)):
        place = Path(name).absolute()
        there = next(path for path in (place, *place.parents) if path.exists())
        if not there.is_dir():
            yield Found("broken", what, f"{there} is a file, not a folder")
            continue
        free = shutil.disk_usage(there).free
        state = "ok" if free >= LITTLE_SPACE else "warning" if free >= NO_SPACE else "broken"
        said = f"{place}: {free / 2**30:,.1f} GiB free"
        if not os.access(there, os.W_OK):
            state, said = "broken", f"{there}: no permission to write"
        yield Found(state, what, said)
    data = os.environ.get(DATA_VARIABLE)
    if not data:
        said = f"{DATA_VARIABLE} is not set; build files with {{data}} in a spec need it"
        yield Found("absent", "data", said)
    elif not Path(data).expanduser().is_dir():
        yield Found("broken", "data", f"{DATA_VARIABLE} = {data!r} is not a folder")
    else:
        yield Found("ok", "data", f"{DATA_VARIABLE} = {data}")


def _token() -> Found:
    """Whether there is a token of the Hub; it is not shown, and the Hub is not asked."""
    from huggingface_hub import get_token

    if get_token():
        return Found("ok", "token", "there is one for the Hugging Face Hub")
    return Found("absent", "token", "none: needed to publish, and for closed data of the Hub")


def _show(found: list[Found]) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for state, what, said in found:
        table.add_row(plain(state, STYLES[state]), what, plain(said))
    wide_console().print(table)
