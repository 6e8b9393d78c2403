"""Training and evaluation of a build: processes of their own, their words, logs and failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from corpora.errors import DiscorporaError
from tests.workflows.conftest import living, until
from workflows import training, usage
from workflows.tables import Evaluation
from workflows.training import Judged, evaluate


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in it, from which programs are started."""
    monkeypatch.chdir(tmp_path)
    text = """
        import json, os, sys
        said = {"words": sys.argv[1:], "text": sys.stdin.read(), "threads": os.environ["OMP_NUM_THREADS"]}
        said |= {"folder": os.getcwd(), "name": __name__, "build": os.environ["DISCORPORA_BUILD_PID"]}
        open(f"{sys.argv[1]}.json", "w").write(json.dumps(said, sort_keys=True))
        print("12:34:56 a line of its log", file=sys.stderr)
        print("to nobody")
        if "--raise" in sys.argv:
            raise ValueError("of the program")
        if "--say" in sys.argv:
            print("error: this is\\n  why", file=sys.stderr)
            sys.exit(2)
        if "--words" in sys.argv:
            sys.exit("the last words")
        if "--long" in sys.argv:
            print("error: " + "why\\n" * 61, file=sys.stderr)
            sys.exit(2)
        if "--empty" in sys.argv:
            sys.exit("")
        if "--large" in sys.argv:
            sys.exit(2**9 + 3)
        if "--closed" in sys.argv:
            sys.stdout.close()
        if "--hook" in sys.argv:
            sys.excepthook = lambda *_: print("error: by the hook", file=sys.stderr)
            raise KeyError
        if "--kill" in sys.argv:
            os.kill(os.getpid(), 9)
    """  # noqa: E501
    (tmp_path / "small_program.py").write_text(textwrap.dedent(text))
    return tmp_path


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("", ""),
        ("--raise", "ValueError: of the program"),
        ("--say", "this is\n  why"),
        ("--words", "the last words"),
        ("--empty", "12:34:56 a line of its log"),
        ("--large", "12:34:56 a line of its log"),
        ("--long", "\n".join(["why"] * 61)),
        (
            "--kill",
            "the process was killed by signal 9 (often for too little memory)\n"
            "12:34:56 a line of its log",
        ),
    ],
)
def test_a_program_says_why_it_failed(
    place: Path, option: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="discorpora")
    usage._forked_kib[0] = 0
    command, said, answer = training._run("small_program", ["said", option], 3, "héllo")
    assert said.endswith(reason) and bool(said) == bool(reason)
    assert "  a line of its log" in caplog.messages and "to nobody" in answer
    found = json.loads((place / "said.json").read_text())
    assert (found["text"], found["threads"], found["build"]) == ("héllo", "3", str(os.getpid()))
    assert command[1:] == ["-m", "small_program", "said", option]
    assert usage._forked_kib[0] > 5_000


def test_evaluations_of_a_model_share_a_process(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own folder; one that fails leaves the others, and names its settings."""
    (place / "zoo_evaluate.py").write_text(
        "import json, sys\nassert sys.argv[1:] == ['--jobs']\njobs = json.load(sys.stdin)\n"
        "for job in jobs:\n"
        "    place = job[job.index('--json') + 1]\n"
        "    json.dump({'examples': 7}, open(place, 'w'))\n"
        "said = 'limit = 0: is wrong\\n  set --encoder to another'\n"
        "print(json.dumps([said if job[0] == 'pairwise' else '' for job in jobs]))\n"
    )
    run = training._run
    monkeypatch.setattr(training, "_run", lambda _, *more: run("zoo_evaluate", *more))
    plans = [
        Evaluation(suite=suite, models=("m",), dataset="d", settings=settings)
        for suite, settings in (("permuted", {}), ("pairwise", {"encoder": "random"}))
    ]
    jobs = []
    for plan in plans:
        (place / plan.suite).mkdir()
        jobs.append(Judged(plan, "data", place / plan.suite))
    build = SimpleNamespace(threads=1, seed=3, evaluations={"other": plans[1]}, folder=place)
    good, bad = evaluate(jobs, "m", place / "model", build)  # type: ignore[arg-type]
    assert good == {"examples": 7}
    assert isinstance(bad, DiscorporaError) and bad.message == "limit = 0: is wrong"
    assert "in the build file: encoder among the settings of [evaluations.other]" in str(bad)
    assert "zoo.evaluate pairwise --model" in str(bad)


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
    ("advice", "keys"),
    [
        ('choose others, or set empty_classes = "warn"', "empty_classes"),
        ("set --bins to the number that it was built with", "bins"),
        ("set negatives = 5, or --bins 3", "negatives, bins"),
        ('name two: --columns \'["premise", "hypothesis"]\'', "columns"),
        ("the same command then goes to another --output", ""),
    ],
)
def test_a_failed_program_says_its_cause_first_and_its_command_last(advice: str, keys: str) -> None:
    known = {"empty_classes", "bins", "negatives", "columns"}
    command = ["/usr/bin/python3", "-m", "zoo.train", "a recipe"]
    error = training._failure(f"a row is bad\n  {advice}", command, "models.m", known)
    first, *more, last = str(error).splitlines()
    assert first == "a row is bad" and more[0].strip() == advice
    assert last.endswith("python -m zoo.train 'a recipe'")
    wanted = [f"  in the build file: {keys} among the settings of [models.m]"] if keys else []
    assert more[1:] == wanted
