"""README and docs: snippets run as printed and print what they show; other commands exist.

`tests/snippets.py` describes the comments that mark a snippet. Blocks that read `build/sample` need
`make run` before.
"""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from corpora.schemas import PAIRS
from tests.processes import forked, ran
from tests.snippets import PAGES, ROOT, Block, blocks, faults, loose_commands
from workflows.cli import app

BLOCKS = [block for page in PAGES for block in blocks(page)]
OURS = {"discorpora", "luigi", "make", "accelerate", "python", ".venv/bin/python"}
SHELL = re.compile(r"[|&;<>$`*?~(){}\[\]]")
"""Characters that mean something to a shell."""
NEEDS_BUILD = "build/sample"
STORY = "She missed the ferry. She ate her sandwich on the pier. The lights slid away."
LATER = "It rained all day. We stayed inside because the roof was new."
STORIES = [
    json.loads(line)
    for line in (ROOT / "corpora/sample/stories.jsonl").read_text(encoding="utf-8").splitlines()
]
USERS_FILES = {
    **dict.fromkeys(("a.txt", "one.txt", "draft.txt", "chapter.txt", "more.txt", "old.txt"), STORY),
    **dict.fromkeys(("b.txt", "two.txt", "prompt.txt"), LATER),
    **{f"my_books/{story['id']}.txt": story["text"] for story in STORIES},
    "texts.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in (STORY, LATER)),
    "known.jsonl": "".join(json.dumps({"text": f"{STORY} {n}"}) + "\n" for n in range(100)),
    "choices.jsonl": json.dumps({"prompt": STORY, "alternatives": [LATER, STORY]}) + "\n",
    "pairs.tsv": "It rained.\tWe stayed inside.\n",
    "pairs.jsonl": json.dumps({"s1": "It rained.", "s2": "We stayed inside."}) + "\n",
}
"""Texts that a page takes for the reader's own."""
WRITTEN = {"docs/start.md": ("pairs.jsonl",), "README.md": ("pairs.jsonl",)}
"""Files that the commands of a page write themselves."""


def pages_with(*marks: str) -> list[Path]:
    """The pages of which something runs, of blocks with these marks."""
    found = {
        block.page
        for block in BLOCKS
        if block.mark in marks and block.language in {"console", "python"}
    }
    return sorted(found)


@pytest.fixture
def clone(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a clone after `make run`, with the reader's own files."""
    for name in ("corpora", "extract", "zoo", "workflows", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").mkdir()
    for name in ("sample", "stages"):
        if (ROOT / "build" / name).is_dir():
            shutil.copytree(ROOT / "build" / name, tmp_path / "build" / name, symlinks=True)
    page = str(request.node.callspec.params["page"].relative_to(ROOT))
    for name, text in USERS_FILES.items():
        if name not in WRITTEN.get(page, ()) and not (page.endswith("books.md") and "/" in name):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCORPORA_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("page", pages_with(""), ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run_as_printed(page: Path, clone: Path) -> None:
    run_page(page, nightly=False)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "page", pages_with("nightly"), ids=lambda page: str(page.relative_to(ROOT))
)
def test_longer_snippets_run_as_printed(page: Path, clone: Path) -> None:
    run_page(page, nightly=True)


def run_page(page: Path, *, nightly: bool) -> None:
    """Run a page's blocks in order; the first nightly one ends the daily run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    built = (ROOT / NEEDS_BUILD).is_dir()
    for block in blocks(page):
        if block.mark == "nightly" and not nightly:
            return
        if block.mark == "checked":
            continue
        if NEEDS_BUILD in block.text and not built:
            pytest.skip(f"{block} reads {NEEDS_BUILD}: `make run` first")
        if block.language == "console":
            run_console(block)
        elif block.language == "python" and block.text.startswith(">>>"):
            run_session(block, names)
        elif block.language == "python":
            exec(compile(block.text, str(block), "exec"), names)


def run_console(block: Block) -> None:
    checker = doctest.OutputChecker()
    for command, shown in block.steps():
        done = as_printed(command)
        said = f"{block}: {command}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, said
        assert not shown or checker.check_output(shown, done.stdout, doctest.ELLIPSIS), said


def as_printed(command: str) -> subprocess.CompletedProcess[str]:
    """What a command gives back and says; `discorpora` runs in a fork, also before a pipe."""
    first, _, rest = command.partition(" #")[0].partition(" | ")
    words = shlex.split(first)
    if words[0] != "discorpora" or SHELL.search(first):
        return ran(["bash", "-c", command])

    def main() -> None:
        sys.argv = words
        app.main()

    done = forked(main, env=os.environ, cwd=Path.cwd())
    return ran(["bash", "-c", rest], input=done.stdout) if rest and not done.returncode else done


def run_session(block: Block, names: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.text, names, str(block), None, 0)
    assert session.examples
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    names |= session.globs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_the_options_that_a_page_gives_them(page: Path) -> None:
    commands = [
        line for line in loose_commands(page) if line.split()[:1] and line.split()[0] in OURS
    ]
    for block in blocks(page):
        if block.language == "console":
            assert block.steps(), f"{block}: no line begins with $"
            commands += [command for command, _ in block.steps()]
    if page.name != "CHANGELOG.md":  # it names commands of earlier versions
        assert not [(line, fault) for line in commands for fault in faults(line)]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("discorpora plam", "discorpora has no command plam"),
        ("discorpora plan --konfig x", "discorpora plan has no option --konfig"),
        (
            "X=1 discorpora convert conpono F --bogus 1 | head",
            "convert conpono has no option --bogus",
        ),
        ("discorpora train dissent/bilstm --hiden 3", "has no option --hiden"),
        ("python -m zoo.evaluate pairwise --bogus 3", "has no option --bogus"),
        ("discorpora evaluate nothing --model M", "no suite nothing"),
        ("luigi --module workflows BuildAll --worker 2", "BuildAll has no option --worker"),
        ("make everything", "no target everything"),
        ("python -m zoo.nothing", "no module zoo.nothing"),
        ("python tests/nothing.py", "no file tests/nothing.py"),
        ("discorporate", "unknown program discorporate"),
    ],
)
def test_a_wrong_command_is_found(line: str, fault: str) -> None:
    assert any(fault in found for found in faults(line))


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.mark == "checked"], ids=str)
def test_what_does_not_run_says_why_and_is_sound(block: Block) -> None:
    assert block.reason
    for word in block.reason.split():
        assert not word.startswith("tests/") or (ROOT / word).is_file(), word
    if block.language == "python":
        for module, name in imported(ast.parse(block.text)):
            found = import_module(module)
            assert hasattr(found, name) or import_module(f"{module}.{name}"), f"{module}.{name}"


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that code imports from this project."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if node.module.partition(".")[0] in {"corpora", "extract", "zoo", "workflows"}:
                    yield node.module, alias.name


@pytest.mark.parametrize(
    "block",
    [each for each in BLOCKS if each.language in {"toml", "json"} and not each.mark],
    ids=str,
)
def test_tables_can_be_read(block: Block) -> None:
    assert tomllib.loads(block.text) if block.language == "toml" else json.loads(block.text)


def test_tables_of_settings_are_those_of_builders_and_recipes() -> None:
    spec = spec_from_file_location("settings_of_docs", ROOT / "docs" / "settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {page.stem for page in module.pages()}
    assert names == {
        "build-file",
        "coherence",
        "conpono",
        "criteria",
        "datasets",
        "extraction",
        "papers",
        "recipes",
    }
    for page in module.pages():
        text = page.read_text(encoding="utf-8")
        assert module.written(text) == text, f"{page.name}: run: python docs/settings.py"


def test_every_field_of_a_pair_is_explained() -> None:
    page = (ROOT / "docs/reference/extraction.md").read_text(encoding="utf-8")
    section = page.partition("## A pair\n")[2].partition("\n## ")[0]
    rows = [row.partition(" |")[0] for row in section.splitlines() if row.startswith("| `")]
    explained = re.findall(r"`(\w+)`", "".join(rows))
    printed = re.findall(r'^ "(\w+)": ', section, re.MULTILINE)
    assert sorted([*explained, "marker"]) == sorted(printed) == sorted(PAIRS.names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_tests_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    roots = "corpora|extract|zoo|workflows|docs|tests"
    for path, name in re.findall(rf"`((?:{roots})/[\w/.-]+\.\w+)(?:::(\w+))?", text):
        if not re.search(
            "[A-Z]{2}", Path(path).parent.name + Path(path).stem
        ):  # NAME stands for one
            assert (ROOT / path).is_file(), path
            assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_the_way_of_a_row_names_functions_of_its_files() -> None:
    page = (ROOT / "docs/explanation/one-document.md").read_text(encoding="utf-8")
    steps = re.split(r"^\d\. ", page.partition("## A row becomes a scorer")[2], flags=re.MULTILINE)
    for step in steps[1:]:
        step = step.partition("\n\n")[0]
        paths = re.findall(r"`(zoo/[\w/]+\.py)`", step)
        code = "".join((ROOT / path).read_text(encoding="utf-8") for path in paths)
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", step):
            assert re.search(rf"(def|class) {name}\b", code), (name, paths)


def test_the_page_of_papers_lists_what_each_paper_leaves_unsaid() -> None:
    from zoo.evaluate.published import papers

    page = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    for paper in papers():
        file = ROOT / f"workflows/configs/papers/{paper}.toml"
        assert "docs/reference/papers.md" in file.read_text(encoding="utf-8")
        name = {"dissent": "DisSent", "discoeval": "DiscoEval", "conpono": "CONPONO"}.get(paper)
        section = page.partition(f"\n## {name or paper.capitalize()}\n")[2].partition("\n## ")[0]
        listed = section.partition("\nUnsaid, and chosen:\n\n")[2].partition("\n\n")[0]
        assert listed.count("\n- ") > 3, paper


def test_the_page_of_papers_has_every_table() -> None:
    from zoo.evaluate.published import paper_tables, papers

    page = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `(\w+:[\w.-]+)` \| ([^|]+) \| ([^|]+) \|$", page, re.M)
    others = {
        f"{paper}:{number}": (title, "no results")
        for paper, about in papers().items()
        for number, title in about.without_results.items()
    }
    results = {t.name: (t.title, ", ".join(t.columns)) for t in paper_tables().values()}
    shown = {name: (title, columns) for name, title, columns in names}
    shown["coherence:6"] = (shown["coherence:6"][0], "no results")  # "results of others"
    assert shown == {**results, **others}
    assert len(names) == len(results) + len(others)
