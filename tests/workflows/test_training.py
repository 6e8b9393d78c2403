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
from workflows import training, usage
from workflows.config import load_build
from workflows.tables import BuildFile, Evaluation
from workflows.training import Judged, chosen_recipe, chosen_suite, evaluate, train
from zoo.options import Fault
from zoo.train import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in it, from which programs are started."""
    monkeypatch.chdir(tmp_path)
    text = """
        import json, os, sys
        said = {"file": sys.argv[1:], "threads": os.environ["OMP_NUM_THREADS"]}
        said |= {"text": sys.stdin.read(), "build": os.environ["DISCORPORA_BUILD_PID"]}
        open("said.json", "w").write(json.dumps(said, sort_keys=True))
        print("12:34:56 a line of its log", file=sys.stderr)
        print("to nobody")
        match open(sys.argv[1]).read():
            case "raise": raise ValueError("of the program")
            case "words": sys.exit("the last words")
            case "long": sys.exit("why\\n\\n" * 61)
            case "empty": sys.exit("")
            case "large": sys.exit(2**9 + 3)
            case "kill": os.kill(os.getpid(), 9)
            case "fault":
                json.dump({"faults": [{"problem": "bad rows"}]}, open("x.faults.json", "w"))
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
    usage._forked_kib[0] = 0
    Path("x.json").write_text(way)
    (fault,) = training._run("small_program", Path("x.json"), 3, 1)
    assert (fault.problem if fault else "").endswith(reason) and bool(fault) == bool(reason)
    assert "  a line of its log" in caplog.messages
    said = json.loads((place / "said.json").read_text())
    assert said == {"file": ["x.json"], "text": "", "threads": "3", "build": str(os.getpid())}
    assert usage._forked_kib[0] > 5_000


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
        "faults = []\n"
        "for one in json.load(open(sys.argv[1]))['assignments']:\n"
        "    json.dump({'examples': 7}, open(one['request']['json'], 'w'))\n"
        "    value = one['settings'].get('encoder')\n"
        "    fault = {'problem': 'no model', 'hint': 'set --encoder to another'}\n"
        "    fault = {**fault, 'field': 'encoder', 'value': value}\n"
        "    faults.append(fault if one['reference'] == 'pairwise' else None)\n"
        "json.dump({'faults': faults}, open(sys.argv[1].replace('.json', '.faults.json'), 'w'))\n"
        "sys.exit(2)\n"
    )
    run = training._run
    monkeypatch.setattr(training, "_run", lambda _, *more: run("zoo_evaluate", *more))
    own = Evaluation(suite="permuted", models=("m",), dataset="dissent")
    plans = {("models", "m"): own, ("evaluations", "other"): build.evaluations["other"]}
    jobs = []
    for keys, plan in plans.items():
        (place / plan.suite).mkdir()
        suite = chosen_suite(build, plan, *keys)
        kept = place / f"{plan.suite}.settings.json"
        jobs.append(Judged(plan, suite, keys, "data", place / plan.suite, kept))
    good, bad = evaluate(jobs, "m", place / "model", build)
    assert good == {"examples": 7} and not jobs[0].settings.exists()
    assert isinstance(bad, DiscorporaError)
    first, hint, last = str(bad).splitlines()
    where = f"{place}/{line('settings = { encoder')}evaluations.other.settings"
    assert first == f"{where}: encoder = 'random': no model"
    assert hint == "  set encoder to another"  # as a build file writes it
    assert last.endswith(f"python -m zoo.evaluate {jobs[1].settings}")
    (again,) = json.loads(jobs[1].settings.read_text())["assignments"]
    assert again["settings"]["encoder"] == "random" and again["request"]["json"] == ""


def test_a_fork_of_the_build_counts_anew() -> None:
    usage.note_child(1 << 40)
    child = os.fork()
    if child == 0:
        os._exit(usage._forked_kib[0] != 0)
    usage._forked_kib[0] = 0
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
        "import signal\nfrom pathlib import Path\nfrom workflows import training\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "training._run('waits', Path('x'), 1, 1)"
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
            "",
        ),
        (Fault(field="seed", value=3, problem="odd"), "models.m.settings: seed = 3: odd", ""),
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
    """The cause comes first, the command that shows all of it last."""
    monkeypatch.setattr(training, "_run", lambda *_, **__: [fault])
    output, chosen = place / "0123456789abcdef", chosen_recipe(build, "m")
    with pytest.raises(DiscorporaError) as caught:
        train(build, "m", place / "data", None, output, chosen)
    cause, *more, last = str(caught.value).splitlines()
    assert cause.endswith(first) and [text.strip() for text in more] == [hint] * bool(hint)
    file = place / "0123456789abcdef.settings.json"
    assert last.endswith(f"python -m zoo.train {file}")
    monkeypatch.setattr(training, "_run", lambda *_, **__: [None])
    train(build, "m", place / "data", None, output, chosen)
    assert not file.exists()


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
    chosen, read = chosen_recipe(build, "m"), []
    monkeypatch.setattr("zoo.train._train", lambda *both: read.append(both))
    monkeypatch.setattr(training, "_run", lambda _, file, *__, **___: [main([str(file)]) or None])
    train(build, "m", place / "data", None, place / "out", chosen)
    ((preset, recipe),) = read
    assert preset == chosen.preset and recipe.identity() == chosen.recipe.identity()
    assert (recipe.dataset, recipe.output) == (str(place / "data"), str(place / "out"))
