"""Training and evaluation of a build: processes of their own, their files, logs and failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from corpora.errors import DiscorporaError
from tests.workflows.conftest import living, until
from workflows import console, training, usage
from workflows.config import load_build
from workflows.tables import BuildFile, Evaluation
from workflows.training import EvaluationJob, chosen_recipe, evaluate, train
from zoo.options import Assignment, Fault, assigned
from zoo.presets import read_preset
from zoo.train import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in it, from which programs are started."""
    monkeypatch.chdir(tmp_path)
    text = """
        import json, os, sys
        said = {"threads": os.environ["OMP_NUM_THREADS"], "text": sys.stdin.read()}
        said |= {"build": os.environ["DISCORPORA_BUILD_PID"]}
        open("said.json", "w").write(json.dumps(said, sort_keys=True))
        print("12:34:56 a line of its log", file=sys.stderr)
        print("to nobody")
        (file,) = sys.argv[1:]
        (assignment,) = json.load(open(file))
        match assignment["reference"]:
            case "raise": raise ValueError("of the program")
            case "words": sys.exit("the last words")
            case "long": sys.exit("why\\n\\n" * 61)
            case "empty": sys.exit("")
            case "large": sys.exit(2**9 + 3)
            case "kill": os.kill(os.getpid(), 9)
            case "fault":
                json.dump([{**assignment, "fault": {"problem": "bad rows"}}], open(file, "w"))
                sys.exit(2)
    """
    (tmp_path / "small_program.py").write_text(textwrap.dedent(text))
    return tmp_path


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("", ""),
        ("raise", "ValueError: of the program"),
        ("words", "the last words"),
        ("empty", "12:34:56 a line of its log"),
        ("large", "12:34:56 a line of its log"),
        ("long", "\n".join(["why"] * 5)),
        ("fault", "bad rows"),
        (
            "kill",
            "the process was killed by signal 9 (often for too little memory)\n"
            "12:34:56 a line of its log",
        ),
    ],
)
def test_a_program_says_why_it_failed(
    place: Path, way: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="discorpora")
    usage._program_kib[0] = 0
    (fault,) = training._run("small_program", [Assignment(reference=way, settings={})], 3)
    assert (fault.problem if fault else "").endswith(reason) and bool(fault) == bool(reason)
    assert caplog.messages == ["  a line of its log"]
    said = json.loads((place / "said.json").read_text())
    assert said == {"text": "", "threads": "3", "build": str(os.getpid())}
    assert usage._program_kib[0] > 5_000


def test_all_of_a_log_is_shown_for_debugging(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="discorpora")
    monkeypatch.setenv(console.DEBUG_VARIABLE, "1")
    training._run("small_program", [Assignment(reference="raise", settings={})], 1)
    assert "  Traceback (most recent call last):" in caplog.messages


BUILD = """
name = "b"
[[sources]]
name = "s"
spec = "sample:stories"
datasets = ["dissent"]
[datasets.dissent]
[models.m]
recipe = "dissent/bilstm_tiny"
dataset = "dissent"
settings = { max_tokens = 9, empty_classes = "error" }
[evaluations.other]
suite = "pairwise"
models = ["m"]
dataset = "dissent"
settings = { encoder = "random" }
"""


@pytest.fixture
def build(tmp_path: Path) -> BuildFile:
    (tmp_path / "b.toml").write_text(BUILD)
    return load_build(str(tmp_path / "b.toml"))


def line(key: str) -> str:
    number = next(n for n, text in enumerate(BUILD.splitlines(), 1) if text.startswith(key))
    return f"b.toml:{number}: "


def test_evaluations_of_a_model_share_a_process(
    place: Path, monkeypatch: pytest.MonkeyPatch, build: BuildFile
) -> None:
    """Each has its own folder; one that fails leaves the others, and names its setting's line."""
    (place / "zoo_evaluate.py").write_text(
        "import json, sys\n"
        "assignments = json.load(open(sys.argv[1]))\n"
        "for one in assignments:\n"
        "    json.dump({'examples': 7}, open(one['request']['json'], 'w'))\n"
        "    value, hint = one['settings'].get('encoder'), 'set --encoder to another'\n"
        "    if one['reference'] == 'pairwise':\n"
        "        one['fault'] = {'problem': 'no model', 'hint': hint}\n"
        "        one['fault'] |= {'field': 'encoder', 'value': value}\n"
        "json.dump(assignments, open(sys.argv[1], 'w'))\n"
        "sys.exit(2)\n"
    )
    run = training._run
    monkeypatch.setattr(training, "_run", lambda _, *more: run("zoo_evaluate", *more))
    own = Evaluation(suite="permuted", models=("m",), dataset="dissent")
    plans = {("models", "m"): own, ("evaluations", "other"): build.evaluations["other"]}
    jobs = []
    for keys, plan in plans.items():
        (place / plan.suite).mkdir()
        jobs.append(EvaluationJob(plan, keys, "data", place / plan.suite))
    good, bad = evaluate(jobs, "m", place / "model", build)
    assert good == {"examples": 7} and isinstance(bad, DiscorporaError)
    first, hint = str(bad).splitlines()
    where = f"{place}/{line('settings = { encoder')}evaluations.other.settings"
    assert first == f"{where}: encoder = 'random': no model"
    assert hint == "  set encoder to another"  # as a build file writes it


def test_a_fork_of_the_build_counts_anew() -> None:
    usage.note_child(1 << 40)
    child = os.fork()
    if child == 0:
        os._exit(usage._program_kib[0] != 0)
    usage._program_kib[0] = 0
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_build(place: Path, way: int) -> None:
    (place / "waits.py").write_text(
        "import time\nfrom corpora.processes import stop_with_build\nstop_with_build()\n"
        "open('waiting', 'w').close()\ntime.sleep(300)\n"
    )
    mark = f"PROGRAMS_TEST={place.name}"
    # A test that runs in the background has Ctrl-C ignored, and so have its children.
    code = (
        "import signal\nfrom workflows import training\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "training._run('waits', [], 1)"
    )
    environment = dict(os.environ, PROGRAMS_TEST=place.name, PYTHONPATH=os.pathsep.join(sys.path))
    build = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        until((place / "waiting").exists)
        assert len(living(mark)) == 2  # the build, the program
        build.send_signal(way)
        build.wait(30)
        until(lambda: not living(mark))
    finally:
        build.kill()
        build.wait()


@pytest.mark.parametrize(
    ("fault", "first", "hint"),
    [
        (
            Fault(
                field="empty_classes",
                value="error",
                problem="d: no row has the label so",
                hint='choose others, or set empty_classes = "warn"',
            ),
            f"{line('settings = { max')}models.m.settings: empty_classes = 'error': d: no row has "
            "the label so",
            'choose others, or set empty_classes = "warn"',
        ),
        (
            Fault(field="max_tokens", value=9, problem="max_tokens = 9: no", hint="raise --seed 4"),
            f"{line('settings = { max')}models.m.settings: max_tokens = 9: no",
            "raise seed = 4",
        ),
        (
            Fault(field="dataset", value="d", problem="has no rows"),
            f"{line('dataset = ')}models.m: dataset = 'd': has no rows",
            "to see all of its log: discorpora --debug build ...",
        ),
        (Fault(field="seed", value=3, problem="seed: odd", hint="x"), "s: seed = 3: odd", "x"),
        (Fault(problem="a row is bad\nat its end"), "a row is bad", "at its end"),
    ],
)
def test_a_failed_training_names_the_line_of_the_setting(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    build: BuildFile,
    fault: Fault,
    first: str,
    hint: str,
) -> None:
    monkeypatch.setattr(training, "_run", lambda *_, **__: [fault])
    with pytest.raises(DiscorporaError) as caught:
        train(build, "m", place / "data", None, place / "out", chosen_recipe(build, "m"))
    cause, *more = str(caught.value).splitlines()
    assert cause.endswith(first) and more[0].strip() == hint


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "dissent/transformer_tiny",
            "{ columns = ['s2', 's1'], backbone_config.hidden_size = 32 }",
        ),
        ("coherence/contrastive_tiny", "{ objective = 'pairwise', learning_rate = 0.1 }"),
        ("dissent/ngram", "{ grid = '0.5', threads = 3 }"),
    ],
)
def test_a_training_reads_the_settings_that_the_build_checked(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, settings: str
) -> None:
    text = BUILD.replace("dissent/bilstm_tiny", name)
    old = 'settings = { max_tokens = 9, empty_classes = "error" }'
    (place / "b.toml").write_text(text.replace(old, f"settings = {settings}"))
    build = load_build(str(place / "b.toml"))
    chosen, read = chosen_recipe(build, "m"), list[Assignment]()

    def run(_: str, assignments: list[Assignment], *__: int, **___: int) -> list[Fault | None]:
        with assigned(assignments) as file:
            return [None][: 1 - main([str(file)])]

    monkeypatch.setattr("zoo.train.train_assignment", read.append)
    monkeypatch.setattr(training, "_run", run)
    train(build, "m", place / "data", None, place / "out", chosen)
    (assignment,) = read
    preset = read_preset(assignment.reference)
    recipe = preset.kind.of(assignment.settings)
    assert preset == chosen.preset and recipe.identity() == chosen.recipe.identity()
    assert (recipe.dataset, recipe.output) == (str(place / "data"), str(place / "out"))
