"""The house rules that no review should have to watch: who imports whom, and what stays light."""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("corpora", "extract", "zoo", "workflows")
ALLOWED = {
    "corpora": set(),
    "extract": {"corpora"},
    "zoo": {"corpora"},
    "workflows": {"corpora", "extract", "zoo"},
}
FAMILIES = ("coherence", "conpono", "criteria", "dissent", "parser")
HEAVY = ("torch", "transformers", "spacy", "stanza", "datasets")


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports from anywhere in it, lazily or not."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found & set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_go_one_way(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        others = imported_rooms(path) - {room}
        assert others <= ALLOWED[room], f"{path} imports {sorted(others - ALLOWED[room])}"


def test_nothing_imports_the_functions_for_users() -> None:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            assert "discorpora" not in imported_modules(path), path


def imported_modules(path: Path) -> set[str]:
    """The modules that a file imports from anywhere in it, lazily or not."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    return named | {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}


@pytest.mark.parametrize("folder", ["evaluate", "training", *FAMILIES])
def test_no_family_of_models_is_known_outside_it(folder: str) -> None:
    others = tuple(f"zoo.{family}" for family in FAMILIES if family != folder)
    for path in (ROOT / "zoo" / folder).rglob("*.py"):
        known = {m for m in imported_modules(path) if m.startswith(others)}
        assert not known, f"{path} imports {sorted(known)}"


@pytest.mark.parametrize(
    ("place", "other"),
    [
        ("zoo/training", "zoo.evaluate"),
        ("zoo/evaluate", "zoo.training.finishing"),
        ("zoo/__init__.py", "transformers"),
        ("workflows/engines.py", "workflows.tasks"),
    ],
)
def test_a_room_does_without(place: str, other: str) -> None:
    """Training knows no evaluation, and evaluation ends no training; engines know no stage."""
    path = ROOT / place
    for file in path.rglob("*.py") if path.is_dir() else [path]:
        assert not [m for m in imported_modules(file) if f"{m}.".startswith(f"{other}.")], file
        assert not other.startswith("workflows") or other not in file.read_text("utf-8"), file


def imported_files(path: Path, modules: dict[str, Path]) -> set[Path]:
    """The files of the rooms that a file imports, lazily or not, but for type checking alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guards = [n for n in ast.walk(tree) if isinstance(n, ast.If) and is_type_checking(n.test)]
    for guard in guards:
        guard.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {modules.get(name.name) for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                found.add(modules.get(f"{node.module}.{name.name}") or modules.get(node.module))
    return {file for file in found if file and file != path}


def is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def test_files_do_not_import_in_a_circle() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    modules = {}
    for path in files:
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = path
    graph = {path: imported_files(path, modules) for path in files}
    assert sum(map(len, graph.values())) > len(files)
    TopologicalSorter(graph).prepare()  # CycleError names the files of a circle


def test_the_files_of_the_rooms_are_found() -> None:
    for room in ROOMS:
        assert len(list((ROOT / room).rglob("*.py"))) > 3


ABSENT = {"datasets", "duckdb", "luigi", "spacy"}
"""Libraries of building and parsing, which a machine that trains and evaluates need not have."""
NEED_THEM = ("zoo/parser/", "zoo/evaluate/mteb_tasks.py")


def imported_at_once(node: ast.AST) -> set[str]:
    """The packages that a module imports when it is imported itself."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            found |= {name.name.split(".")[0] for name in child.names}
        elif isinstance(child, ast.ImportFrom) and child.module:
            found.add(child.module.split(".")[0])
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found |= (
                set()
                if isinstance(child, ast.If) and is_type_checking(child.test)
                else (imported_at_once(child))
            )
    return found


def test_training_and_evaluation_load_no_library_of_building() -> None:
    for path in [*(ROOT / "zoo").rglob("*.py"), *(ROOT / "corpora").rglob("*.py")]:
        if not path.relative_to(ROOT).as_posix().startswith(NEED_THEM):
            loaded = imported_at_once(ast.parse(path.read_text(encoding="utf-8"))) & ABSENT
            assert not loaded, f"{path} imports {sorted(loaded)} outside a function"


def loaded_after(code: str) -> set[str]:
    """The heavy libraries that are loaded after running `code` in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(ast.literal_eval(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "room",
    [*ROOMS, "discorpora", "workflows.cli.app", "extract.embedded", "zoo.presets"],
)
def test_importing_a_room_loads_nothing_heavy(room: str) -> None:
    assert loaded_after(f"import {room}") == set()


def test_the_declarations_of_suites_load_nothing_heavy() -> None:
    find_all = "all(SUITES.find(name) for name in SUITES.built_in)"
    assert loaded_after(f"from zoo.evaluate import SUITES\nassert {find_all}") == set()


def test_the_hashes_of_a_whole_build_load_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "from workflows.settings import options\n"
        "from workflows.tasks import BuildAll\n"
        f"with options('sample', {str(tmp_path)!r}):\n"
        "    assert len(BuildAll(config='sample').hash) == 16\n"
    )
    assert loaded_after(code) == set()


def test_luigi_help_loads_nothing_heavy() -> None:
    code = (
        "import luigi.cmdline, sys\n"
        "try:\n"
        "    luigi.cmdline.luigi_run(['--module', 'workflows', 'BuildAll', '--help'])\n"
        "except SystemExit as stop:\n"
        "    assert not stop.code, stop.code\n"
    )
    assert loaded_after(code) == set()


def test_help_takes_at_most_five_times_the_imports_of_its_libraries() -> None:
    """Half a second of processor time where these imports take a tenth."""

    def spent(*words: str) -> float:
        times = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], capture_output=True, check=True, cwd=ROOT)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    imports = spent("-c", "import typer, rich.table, pydantic")
    assert spent("-m", "workflows.cli.app", "--help") <= 5 * imports


def test_the_repository_and_its_weights_stay_small() -> None:
    """A GPU machine takes 64 MiB of working tree in all, with what `tests/gpu` carries."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git repository")
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    sizes = {file: file.stat().st_size for file in files if file.is_file()}
    assert sum(sizes.values()) <= 57 * 2**20
    weights = {file: n for file, n in sizes.items() if file.name in ("model", "model.safetensors")}
    assert len(weights) >= 8 and sum(weights.values()) <= 53e6
