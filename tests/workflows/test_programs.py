"""The zoo's programs of a build: forks of one process and processes of their own do the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora.errors import DiscorporaError
from tests.workflows.conftest import living, until
from workflows import programs, usage
from workflows.programs import Program
from workflows.training import _run
from zoo import serve

needs_fork = pytest.mark.skipif(
    not programs.forks_are_safe(), reason="an accelerator is here: nothing is forked"
)


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[programs._Server]]:
    """A server of this test alone, which loads next to nothing."""
    servers: list[programs._Server] = []
    monkeypatch.setattr(programs, "_servers", servers)
    monkeypatch.setattr(programs, "LOADED", ("colorsys", "no_such_module"))
    yield servers
    for server in servers:
        server.channel.close()
        server.process.wait(30)


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


@needs_fork
@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("", ""),
        ("--raise", "ValueError: of the program"),
        ("--say", "this is\n  why"),
        ("--words", "the last words"),
        ("--empty", "12:34:56 a line of its log"),
        ("--large", "12:34:56 a line of its log"),
        ("--closed", ""),
        ("--hook", "by the hook"),
        ("--long", "\n".join(["why"] * 61)),
        ("--kill", "12:34:56 a line of its log"),
    ],
)
def test_a_fork_is_the_program(
    place: Path, option: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for way in ("forked", "fresh"):
        with monkeypatch.context() as patch:
            patch.setattr(programs, "_fresh" if way == "forked" else "_forked", None)
            if way == "fresh":
                patch.setattr(programs, "ACCELERATORS", ("/dev/null",))
            program = Program("small_program", ["said", option], 3, "héllo")
            said = program.run()
        assert said.endswith(reason) and bool(said) == bool(reason)
        made[way] = json.loads((place / "said.json").read_text())
        (place / "said.json").unlink()
    assert made["forked"] == made["fresh"]
    assert made["forked"]["text"] == "héllo" and made["forked"]["threads"] == "3"
    assert made["forked"]["build"] == str(os.getpid())


@needs_fork
def test_threads_and_exit_functions_end_their_work(place: Path) -> None:
    (place / "ends.py").write_text(
        "import atexit, threading, time\natexit.register(open, 'atexit', 'w')\n"
        "work = lambda: (time.sleep(0.3), open('thread', 'w'))\n"
        "threading.Thread(target=work).start()\n"
    )
    assert Program("ends", [], 1).run() == ""
    assert (place / "thread").exists() and (place / "atexit").exists()


@needs_fork
def test_the_libraries_are_loaded_once(place: Path, own_server: list) -> None:
    (place / "loads.py").write_text(
        "import sys\nassert 'colorsys' in sys.modules\nopen('loaded', 'a').write('x')\n"
    )
    usage._forked_kib[0] = 0
    assert [Program("loads", [], 1).run() for _ in range(3)] == [""] * 3
    assert (place / "loaded").read_text() == "xxx"
    assert len(own_server) == 1 and usage._forked_kib[0] > 5_000


@needs_fork
def test_without_its_server_a_program_runs_by_itself(place: Path, own_server: list) -> None:
    assert Program("small_program", ["one"], 1).run() == ""
    own_server[0].process.kill()
    own_server[0].process.wait()
    assert Program("small_program", ["two"], 1).run() == ""
    assert (place / "two.json").is_file()


@needs_fork
@pytest.mark.parametrize(("options", "forked"), [(6_000, True), (9_000, False), (40_000, False)])
def test_too_long_a_message_is_no_failure(
    place: Path, options: int, forked: bool, own_server: list
) -> None:
    words = ["long", *(f"--option{number}" for number in range(options))]
    assert Program("small_program", words, 1).run() == ""
    assert bool(own_server) == forked
    assert json.loads((place / "long.json").read_text())["words"] == words


@needs_fork
def test_the_threads_are_those_that_the_libraries_have(place: Path, own_server: list) -> None:
    for threads in (1, 2):
        assert Program("small_program", ["threads"], threads).run() == ""
        assert json.loads((place / "threads.json").read_text())["threads"] == str(threads)
    assert [server.threads for server in own_server] == [1]


@needs_fork
def test_a_program_that_began_is_not_run_again(place: Path) -> None:
    (place / "alone.py").write_text(
        "import os\nopen('began', 'a').write('x')\n"
        f"if os.getppid() != {os.getpid()}: os.kill(os.getppid(), 9)\n"
    )
    assert "how it ended is not known" in Program("alone", [], 1).run()
    assert (place / "began").read_text() == "x"


@needs_fork
def test_a_program_waiting_for_the_libraries_ends_with_its_build(place: Path) -> None:
    (place / "slow.py").write_text("import time\nopen('loads', 'w').close()\ntime.sleep(2)\n")
    mark = f"PROGRAMS_TEST={place.name}"
    build = started(place, "small_program", ["late"], loaded=("slow",))
    until((place / "loads").exists)
    build.kill()
    build.wait()
    until(lambda: not living(mark))
    assert not (place / "late.json").exists()


def test_a_fork_of_the_build_counts_anew() -> None:
    usage.note_child(1 << 40)
    child = os.fork()
    if child == 0:
        os._exit(usage._forked_kib[0] != 0)
    usage._forked_kib[0] = 0
    assert os.waitpid(child, 0)[1] == 0


@needs_fork
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_build(place: Path, way: int) -> None:
    (place / "waits.py").write_text(
        "import time\nfrom corpora.processes import stop_with_build\nstop_with_build()\n"
        "open('waiting', 'w').close()\ntime.sleep(300)\n"
    )
    mark = f"PROGRAMS_TEST={place.name}"
    build = started(place, "waits", [])
    try:
        until((place / "waiting").exists)
        assert len(living(mark)) == 4  # the build, the server, who waits, the program
        build.send_signal(way)
        build.wait(30)
        until(lambda: not living(mark))
    finally:
        build.kill()
        build.wait()


def started(place: Path, module: str, words: list[str], loaded: tuple = ()) -> subprocess.Popen:
    """A build that runs a program; all its processes have the name of `place`."""
    # A test that runs in the background has Ctrl-C ignored, and so have its children.
    code = (
        f"import signal\nfrom workflows import programs\nprograms.LOADED = {loaded}\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"programs.Program({module!r}, {words}, 1).run()"
    )
    environment = dict(os.environ, PROGRAMS_TEST=place.name, PYTHONPATH=os.pathsep.join(sys.path))
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def test_an_accelerator_is_left_to_fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "ACCELERATORS", ("/dev/no such device",))
    assert programs.forks_are_safe() == (sys.platform == "linux")
    monkeypatch.setattr(programs, "ACCELERATORS", ("/dev/no such device", "/dev/null"))
    assert not programs.forks_are_safe()


@pytest.mark.parametrize("arguments", [[], ["model"], ["987"]])
def test_the_server_is_not_for_people(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main(arguments) == 2
    assert "builds start this" in capsys.readouterr().err


def test_the_command_does_the_same_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert Program("zoo.train", [], 1).environment["ACCELERATE_MIXED_PRECISION"] == "no"
    train = Program("zoo.train", ["dissent/bilstm_tiny", "--seed", "1"], 2).command
    assert train[1:3] == ["-m", "accelerate.commands.launch"]
    assert train[-4:] == ["zoo.train", "dissent/bilstm_tiny", "--seed", "1"]
    assert Program("zoo.evaluate", ["senteval"], 2).command[1:] == [
        "-m",
        "zoo.evaluate",
        "senteval",
    ]


class Failed:
    """A program that fails, saying `reason`."""

    command = ("python", "-m", "zoo.train", "a recipe")

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def run(self) -> str:
        return self.reason


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
    with pytest.raises(DiscorporaError) as error:
        _run(Failed(f"a row is bad\n  {advice}"), "models.m", known.__contains__)  # type: ignore[arg-type]
    first, *more, last = str(error.value).splitlines()
    assert first == "a row is bad" and more[0].strip() == advice
    assert last.endswith("python -m zoo.train 'a recipe'")
    wanted = [f"  in the build file: {keys} among the settings of [models.m]"] if keys else []
    assert more[1:] == wanted
