"""Engines share shards out to processes and clusters; what is built does not depend on them."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpora.document import Document
from corpora.errors import ConfigError, DiscorporaError
from corpora.sentences import split_document
from extract.settings import ParseSettings
from extract.shards import ParseCounts
from extract.stages import Part, extract, parse
from tests.workflows.conftest import (
    living,
    luigi_command,
    luigi_environment,
    run_forked,
    until,
)
from workflows.cli.show import plan as show_plan
from workflows.engines import _check_no_job, check
from workflows.slurm import JOB
from workflows.stage import Share
from workflows.tables import Engine
from workflows.tasks.sources import Parse

# Gold trees: no process loads a parser. A word of so many letters fills a shard by itself.
TREE = """
1	Anna	_	PROPN	NNP	_	2	nsubj	_	_
2	stayed	_	VERB	VBD	VerbForm=Fin	0	root	_	_
3	{number}	_	NUM	CD	_	4	nummod	_	_
4	days	_	NOUN	NNS	_	2	obl	_	_
5	because	_	SCONJ	IN	_	7	mark	_	_
6	it	_	PRON	PRP	_	7	nsubj	_	_
7	rained	_	VERB	VBD	VerbForm=Fin	2	advcl	_	_
8	.	_	PUNCT	.	_	2	punct	_	_
"""
FILLER = f"\n1\t{'a' * 600_000}\t_\tX\tFW\t_\t0\troot\t_\t_\n"
MARKED = "Anna stayed inside {number} days because it rained on all the roads. "
BUILD = """
name = "shared"
threads = 1

[[sources]]
name = "long"
spec = "conllu:{folder}"
licence = "CC0-1.0"

[parse]
parser = "gold"
"""
Run = Callable[..., subprocess.CompletedProcess[str]]

# What stands for Slurm's programs: an array's tasks run as processes of this machine.
SBATCH = r"""#!{python}
import os, re, subprocess, sys
script = open(sys.argv[-1]).read()
here = os.path.dirname(os.path.abspath(__file__))
array = re.search(r"--array=0-(\d+)", script)
if array:
    for number in range(int(array.group(1)) + 1):
        if str(number) in open(here + "/lost").read().split():
            continue
        more = dict(SLURM_ARRAY_TASK_ID=str(number), SLURM_JOB_ID="7", SLURM_NODELIST="n1")
        log = open(f"{{here}}/task{{number}}.log", "w")
        child = subprocess.Popen(
            ["bash", "-c", script], env={{**os.environ, **more}}, stdout=log, stderr=log
        )
        open(here + "/pids", "a").write(f"{{child.pid}}\n")
print("Submitted batch job 7")
"""
SQUEUE = r"""#!{python}
import os
here = os.path.dirname(os.path.abspath(__file__))
for pid in open(here + "/pids").read().split():
    status = f"/proc/{{pid}}/stat"
    if os.path.exists(status) and open(status).read().rsplit(")", 1)[1].split()[0] != "Z":
        print("7 cpu task R")
"""
SCONTROL = "#!/bin/sh\necho n1\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents of a shard each."""
    folder = tmp_path_factory.mktemp("texts")
    for name in ("a", "b", "c"):
        trees = "".join(TREE.format(number=number) for number in range(4))
        text = f"# newdoc id = {name}{trees}{FILLER}"
        (folder / f"{name}.conllu").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def run(tmp_path: Path, texts: Path) -> Run:
    """Run the stages with an `[engine]` table into `tmp_path / output`."""

    def build(
        output: str, engine: str, stage: str = "Parse", **more: str
    ) -> subprocess.CompletedProcess[str]:
        return built(tmp_path / output, texts, engine, stage, **more)

    return build


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> dict[str, bytes]:
    """What is built without an engine: its shards of parses and pairs."""
    output = tmp_path_factory.mktemp("here") / "out"
    done = built(output, texts, "", "Pairs")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "logs in" not in done.stderr
    found = shards(output)
    assert len(parses_of(found)) == 3 < len(found)
    return found


def built(
    output: Path, texts: Path, engine: str, stage: str, **more: str
) -> subprocess.CompletedProcess[str]:
    config = output.with_suffix(".toml")
    config.write_text(BUILD.replace("{folder}", str(texts)) + engine, encoding="utf-8")
    return run_forked(command_of(config, output, stage), output.parent, **more)


def command_of(config: Path, output: Path, stage: str = "Parse") -> list[str]:
    """The stages over one source, up to its parses or pairs."""
    options = ("--source", "long", "--config", str(config), "--discorpora-output", str(output))
    return [sys.executable, "-m", "luigi", "--module", "workflows", stage, *options]


def shards(output: Path) -> dict[str, bytes]:
    found = sorted(output.glob("stages/*/*/**/*.parquet"))
    return {str(path.relative_to(output)): path.read_bytes() for path in found}


def parses_of(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: shard for name, shard in found.items() if "parses-" in name}


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """A folder of programs with the names of Slurm's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scontrol", SCONTROL)):
        path = folder / name
        path.write_text(text.format(python=sys.executable), encoding="utf-8")
        path.chmod(0o755)
    for name in ("pids", "lost"):
        (folder / name).touch()
    return folder


def documents() -> list[Document]:
    texts = [MARKED.format(number=number) * 3 for number in range(7)]
    return [split_document(Document(f"d{n}", text)) for n, text in enumerate(texts)]


def test_parts_make_the_shards_of_the_whole(tmp_path: Path) -> None:
    settings = ParseSettings(words_per_shard=60)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    counts: dict[str, Any] = {}
    for folder in (whole, parts):
        for rank in range(3 if folder == parts else 0):
            parse(documents(), folder, settings, part=Part(rank, 3))
        counts[folder.name, "parse"] = parse(documents(), folder, settings)
        for rank in range(3 if folder == parts else 0):
            extract(documents(), folder, folder, words_per_shard=60, part=Part(rank, 3))
            assert not (folder / "rejects.json").exists()
        counts[folder.name, "pairs"] = extract(documents(), folder, folder, words_per_shard=60)
    assert {p.name: p.read_bytes() for p in whole.iterdir()} == {
        p.name: p.read_bytes() for p in parts.iterdir()
    }
    assert len(list(whole.glob("parses-*"))) > 3
    assert counts["whole", "parse"] == counts["parts", "parse"]
    assert counts["whole", "pairs"] == counts["parts", "pairs"]
    assert counts["whole", "pairs"].pairs == 21


def test_a_part_makes_its_shards_alone(tmp_path: Path) -> None:
    found = parse(documents(), tmp_path, ParseSettings(words_per_shard=60), part=Part(1, 3))
    numbers = [int(path.stem.split("-")[1]) for path in sorted(tmp_path.glob("*.parquet"))]
    assert numbers and all(number % 3 == 1 for number in numbers)
    assert 0 < found.documents < 7
    assert parse(documents(), tmp_path, part=Part(5, 6)) == ParseCounts()


def test_a_worker_elsewhere_finds_relative_paths(tmp_path: Path, texts: Path) -> None:
    """A worker of Ray starts in a folder of its own, without the build's environment."""
    (tmp_path / "texts").symlink_to(texts)
    config, output, folder = tmp_path / "build.toml", tmp_path / "out", tmp_path / "part"
    config.write_text(BUILD.replace("{folder}", "{data}/."), encoding="utf-8")
    environment = luigi_environment() | {"DISCORPORA_DATA": "texts"}
    subprocess.run(command_of(config, output), cwd=tmp_path, env=environment, check=True)
    folder.mkdir()
    share = Share(
        kind=Parse,
        parameters={"config": str(config), "source": "long", "parser": "", "mode": ""},
        config=str(config),
        output=str(output),
        folder=str(folder),
        data=str(tmp_path / "texts"),
        place=str(tmp_path),
    )
    program = f"import pickle\npickle.loads({pickle.dumps(share)!r})(None, 1, 3)"
    environment.pop("DISCORPORA_DATA")
    subprocess.run([sys.executable, "-c", program], cwd="/", env=environment, check=True)
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert list(made) == ["parses-00001.parquet"]
    (whole,) = output.glob("stages/parse/**/parses-00001.parquet")
    assert made == {whole.name: whole.read_bytes()}


def test_every_engine_builds_the_same(
    run: Run, tmp_path: Path, slurm: Path, here: dict[str, bytes]
) -> None:
    pytest.importorskip("datatrove")
    path = os.pathsep.join([str(slurm), str(Path(sys.executable).parent), os.environ["PATH"]])
    engines = {
        "local": ('[engine]\nkind = "local"\ntasks = 3\nworkers = 2\n', {}),
        "slurm": (
            '[engine]\nkind = "slurm"\ntasks = 2\npoll_seconds = 0.2\n'
            'options = { partition = "cpu", time = "1:00:00", with_srun = false }\n',
            {"PATH": path},
        ),
    }
    for name, (engine, more) in engines.items():
        done = run(name, engine, "Pairs", **more)
        assert done.returncode == 0, done.stderr[-3000:]
        assert shards(tmp_path / name) == here
        assert "logs in" in done.stderr
        assert "datatrove" not in done.stdout + done.stderr
        assert not list((tmp_path / name).glob("stages/**/*.engine"))
    script = (slurm / "task1.log").read_text()
    assert "launch_pickled_pipeline" in script


def test_a_task_that_is_lost_is_named_and_the_others_are_kept(
    run: Run, tmp_path: Path, slurm: Path, here: dict[str, bytes]
) -> None:
    pytest.importorskip("datatrove")
    path = os.pathsep.join([str(slurm), str(Path(sys.executable).parent), os.environ["PATH"]])
    engine = (
        '[engine]\nkind = "slurm"\ntasks = 2\npoll_seconds = 0.2\n'
        'options = { partition = "cpu", time = "1:00:00", with_srun = false }\n'
    )
    (slurm / "lost").write_text("1")
    done = run("out", engine, PATH=path)
    assert done.returncode != 0
    assert "1 of 2 tasks did not end well" in done.stderr
    assert "task_00001.log" in done.stderr
    kept = sorted(p.name for p in (tmp_path / "out").glob("stages/parse/**/parses-*.parquet"))
    assert kept == ["parses-00000.parquet", "parses-00002.parquet"]
    (slurm / "lost").write_text("")
    again = run("out", engine, PATH=path)
    assert again.returncode == 0, again.stderr[-3000:]
    assert parses_of(shards(tmp_path / "out")) == parses_of(here)


def test_a_job_of_a_killed_build_is_not_joined(
    tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(slurm), os.environ["PATH"]]))
    logs = tmp_path / "abc.engine"
    _check_no_job(logs)
    logs.mkdir()
    (logs / JOB).write_text("7")
    _check_no_job(logs)
    (slurm / "pids").write_text(str(os.getpid()))
    with pytest.raises(DiscorporaError, match="still has job 7") as error:
        _check_no_job(logs)
    assert "scancel 7" in error.value.hint


def test_workers_end_with_a_killed_build(tmp_path: Path, texts: Path) -> None:
    config, output = tmp_path / "build.toml", tmp_path / "out"
    engine = '[engine]\nkind = "local"\ntasks = 3\nworkers = 2\n'
    # A parser to load, so that the workers live long enough to be seen.
    text = BUILD.replace("{folder}", str(texts)).replace('"gold"', '"embedded"')
    config.write_text(text + engine, encoding="utf-8")
    environment = luigi_environment() | {"ENGINE_TEST": tmp_path.name}
    build = subprocess.Popen(command_of(config, output), env=environment, stderr=subprocess.DEVNULL)
    mark = f"ENGINE_TEST={tmp_path.name}"
    until(lambda: build.poll() is not None or list(output.glob("stages/**/*.engine/logs/task_*")))
    assert build.poll() is None and len(living(mark)) > 1
    build.kill()
    build.wait()
    until(lambda: not living(mark))
    config.write_text(text, encoding="utf-8")  # here, where a parser loads faster
    done = run_forked(command_of(config, output), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


def test_ray_builds_the_same(run: Run, tmp_path: Path, here: dict[str, bytes]) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    engine = '[engine]\nkind = "ray"\ntasks = 2\noptions = { mem_per_cpu_gb = 0.5 }\n'
    done = run("ray", engine, RAY_AUTH_MODE="disabled")
    assert done.returncode == 0, done.stderr[-3000:]
    assert parses_of(shards(tmp_path / "ray")) == parses_of(here)


@pytest.mark.parametrize(
    ("kind", "written", "message"),
    [
        ("slurm", 'time = "1:00:00"', "'engine.options.partition' is missing"),
        ("slurm", 'partitoin = "cpu"', "did you mean 'partition'"),
        ("slurm", "tasks = 3", "unknown key 'engine.options.tasks'"),
        ("local", 'time = "1:00:00"', "unknown key 'engine.options.time'"),
    ],
)
def test_the_plan_names_bad_options(
    tmp_path: Path, texts: Path, kind: str, written: str, message: str
) -> None:
    if kind == "slurm":
        pytest.importorskip("datatrove")
    config = tmp_path / "build.toml"
    engine = f'[engine]\nkind = "{kind}"\noptions = {{ {written} }}\n'
    config.write_text(BUILD.replace("{folder}", str(texts)) + engine, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(message)):
        show_plan(str(config), str(tmp_path / "out"))


def test_without_slurm_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datatrove")
    monkeypatch.setenv("PATH", str(tmp_path))
    engine = Engine(kind="slurm", options={"partition": "cpu", "time": "1:00:00"})
    with pytest.raises(ConfigError, match="there is no sbatch"):
        check(engine, "build.toml")


def test_a_whole_build_says_it_before_anything_runs(tmp_path: Path, texts: Path) -> None:
    config, output = tmp_path / "build.toml", tmp_path / "out"
    engine = '[engine]\nkind = "local"\noptions = { partition = "cpu" }\n'
    config.write_text(BUILD.replace("{folder}", str(texts)) + engine, encoding="utf-8")
    done = run_forked(luigi_command(config, output), tmp_path)
    assert done.returncode != 0 and "unknown key 'engine.options.partition'" in done.stderr
    assert not list(output.glob("stages/*"))
