"""Build files with types swapped and odd paths: each is planned, or refused in one message."""

from __future__ import annotations

import copy
import errno
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from corpora.errors import DiscorporaError
from corpora.store.atomic import replacing
from corpora.toml import toml_lines
from workflows.cli.show import plan
from workflows.console import explained

from .campaign import Call, places, run, sizes

GOOD: dict[str, Any] = {
    "name": "x",
    "seed": 3,
    "threads": 2,
    "max_bad_share": 0.1,
    "sources": [
        {
            "name": "stories",
            "spec": "sample:stories",
            "licence": "CC-BY-4.0",
            "language": "en",
            "splitter": "rules",
            "datasets": ["dissent", "bso", "permuted"],
            "title": "Stories",
            "authors": ["Anna"],
            "options": {},
        }
    ],
    "splits": {"train": 0.8, "validation": 0.1, "test": 0.1, "largest_group": 0.5},
    "sentences": {"splitter": "rules"},
    "parse": {"parser": "embedded", "prefilter": True},
    "extract": {"markers": "all15", "mode": "standalone", "patterns": []},
    "engine": {"kind": "here", "tasks": 2, "options": {}},
    "validation": [{"name": "v", "sources": ["stories"], "gold": "pdtb:none", "mode": "recall"}],
    "datasets": {"dissent": {}, "bso": {"builder": "bso"}, "permuted": {}},
    "models": {
        "scorer": {
            "recipe": "coherence/contrastive_tiny",
            "dataset": "permuted",
            "suite": "permuted",
            "settings": {"max_steps": 2},
        }
    },
    "evaluations": {"e": {"suite": "permuted", "models": ["scorer"], "dataset": "permuted"}},
}
VALUES: list[Any] = [
    *(0, -1, 10**30, 1.5, float("nan"), float("inf"), True, "", " ", "x", [], {}, ["a"], [["a"]]),
    *({"a": 1}, [1], "a\nb", "\x00", "\u202e", "x" * 5000, "{data}/x", "{sample}", "{x}", "{"),
    *("../x", "~nobody/*", "/etc/shadow", "~", "*", "[", "text:~nobody/*", "text:", "text:[", ":"),
    *("~no-such-user/x", "text:~no-such-user/*", "pdtb:~no-such-user", "~no-such-user/x.py:X"),
    *("text:\x00", "sample:x", "hub:a/b", "hub:", "conllu:/", "x.py:X", "os:system", "../x.py:X"),
    *(
        "spacy:../x",
        "spacy:",
        "stanza:../x",
        "stanza:xx",
        "gold",
        "gold:x",
        "embedded:x",
        "@",
        "a@b",
    ),
    *("sp@x", "coherence", "dissent/ngram", "recall", "1e5", "nan", "-", "--debug", "en", "EN-us"),
]


def spoilt(seed: int) -> tuple[str, dict[str, Any]]:
    """A build file with one value changed, lost, or beside an unknown key."""
    draw, value = random.Random(seed), copy.deepcopy(GOOD)
    place = draw.choice(list(places(value)))
    inner: Any = value
    for key in place[:-1]:
        inner = inner[key]
    way, new = draw.randrange(10), draw.choice(VALUES)
    if way == 0:
        del inner[place[-1]]
    elif way == 1 and isinstance(inner, dict):
        inner[draw.choice(["nme", "builder", "a b", "../x", "a\nb", ""])] = new
    else:
        inner[place[-1]] = new
    return f"{'.'.join(map(str, place))} = {new!r:.60}", value


@sizes(60, 10_000)
def test_a_build_file_is_planned_or_refused(
    cases: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "build.toml"

    def read() -> None:
        with suppress(typer.Exit):  # inputs are missing
            plan(str(path), str(tmp_path / "out"))

    def case(seed: int) -> tuple[str, Call]:
        done, table = spoilt(seed)
        path.write_text("\n".join(toml_lines(table)), encoding="utf-8")
        capsys.readouterr()  # plans would fill the memory
        return done, read

    run("build files", cases, case)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("datasets", "bso", "builder"), ["a"], "builder = ['a']: expected a text in quotes"),
        (("parse", "parser"), "spacy:../x", "cannot be the name of a spaCy pipeline"),
        (("validation", 0, "gold"), "text:~nobody/*", "gold relations are named pdtb:DIR"),
        (("validation", 0, "parser"), "stanza:../x", "cannot be the name of a language"),
    ],
    ids=json.dumps,
)
def test_what_no_stage_could_take_is_refused_when_the_file_is_read(
    place: tuple[Any, ...], value: Any, message: str, tmp_path: Path
) -> None:
    table: Any = copy.deepcopy(GOOD)
    inner = table
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = tmp_path / "build.toml"
    path.write_text("\n".join(toml_lines(table)), encoding="utf-8")
    with pytest.raises(DiscorporaError) as caught:
        plan(str(path), str(tmp_path / "out"))
    assert message in str(caught.value) and "build.toml:" in str(caught.value)


def test_a_misspelt_table_of_a_dataset_is_named(tmp_path: Path) -> None:
    table = copy.deepcopy(GOOD)
    table["datasets"]["disent"] = table["datasets"].pop("dissent")
    path = tmp_path / "build.toml"
    path.write_text("\n".join(toml_lines(table)), encoding="utf-8")
    with pytest.raises(DiscorporaError, match=r"datasets.disent.*did you mean 'dissent'"):
        plan(str(path), str(tmp_path / "out"))


def test_an_unreadable_source_is_not_said_to_be_unwritable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.txt"
    source.write_text("Anna sang.\n")
    monkeypatch.setattr("os.access", lambda *_: False)  # a test may be root, who reads everything
    denied = PermissionError(errno.EACCES, "Permission denied", str(source))
    with pytest.raises(DiscorporaError, match="no permission to read it"), explained(tmp_path):
        raise denied
    with pytest.raises(PermissionError), replacing(tmp_path / "out.jsonl"):
        raise denied  # the output is beside it
