"""`discorpora init`, `prune`, `demo`, `doctor` and completion, as a user runs them."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from corpora.errors import ConfigError
from corpora.store.atomic import locked
from tests.workflows.test_cli import TEXT, run
from workflows.cli import start
from workflows.cli.doctor import FOR
from workflows.tables import SAMPLE
from workflows.tasks.build import LOCK, run_build

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test runs in a folder of its own, without a data folder."""
    monkeypatch.delenv("DISCORPORA_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "file", "datasets"),
    [
        ((), "build.toml", {"dissent", "sp", "bso", "permuted"}),
        (("books/", "mine.toml"), "mine.toml", {"dissent", "sp", "bso", "permuted"}),
        ((f"pdtb:{SAMPLE}/gold",), "build.toml", {"pdtb_explicit", "pdtb_implicit", "pdtb_marked"}),
        ((f"rst:{SAMPLE}/rst", "sample:chat"), "build.toml", {"rst", "dissent", "sp", "bso"}),
        ((f"storycloze:{SAMPLE}/tests/storycloze.csv",), "build.toml", {"coherence_tests"}),
        ((f"{SAMPLE}/news.jsonl", "books/b1.txt"), "build.toml", {"dissent", "sp"}),
        (("books/b1.txt", "more/b1.txt", "more/b1-1.txt"), "build.toml", {"dissent", "sp"}),
    ],
)
def test_init_writes_what_plan_accepts(
    arguments: tuple[str, ...],
    file: str,
    datasets: set[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (here / "books").mkdir()
    for name in ("b1", "b2", "b3"):
        (here / "books" / f"{name}.txt").write_text(TEXT, encoding="utf-8")
    (here / "more").mkdir()
    for name in ("b1", "b1-1"):
        (here / "more" / f"{name}.txt").write_text(TEXT, encoding="utf-8")
    assert run(monkeypatch, "init", *arguments) == 0
    text = (here / file).read_text(encoding="utf-8")
    table = tomllib.loads(text)
    assert datasets <= table["datasets"].keys()
    assert ("models" in table) is ("dissent" in datasets)
    assert run(monkeypatch, "plan", "--config", file) == 0
    assert "every input is here" in capfd.readouterr().out
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []
    assert run(monkeypatch, "init", *arguments) == 1
    assert "--force overwrites it" in capfd.readouterr().err
    assert run(monkeypatch, "init", *arguments, "--force") == 0


def test_init_knows_another_language(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "El perro quería salir porque la puerta estaba abierta, pero llovía y era tarde.\n"
    (here / "perro.txt").write_text(text, encoding="utf-8")
    assert run(monkeypatch, "init", "perro.txt") == 0
    written = (here / "build.toml").read_text(encoding="utf-8")
    table = tomllib.loads(written)
    assert table["sources"][0]["language"] == "es"
    assert table["parse"]["parser"] == "stanza:es"
    assert "porque" in table["datasets"]["dissent"]["markers"]
    assert "models" not in table and "fewer than three documents" in written


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("Der Hund schlief, und es war nicht mehr hell.\n", "de", "no pattern table of German"),
        ("12 34 x y\n", "en", "language not recognised"),
    ],
)
def test_init_says_which_language_it_cannot_serve(
    text: str,
    language: str,
    said: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (here / "a.txt").write_text(text * 9, encoding="utf-8")
    assert run(monkeypatch, "init", "a.txt") == 0
    assert said in capfd.readouterr().out
    table = tomllib.loads((here / "build.toml").read_text(encoding="utf-8"))
    assert table["sources"][0]["language"] == language
    assert ("dissent" in table["datasets"]) is (language == "en")


def test_init_says_what_it_could_not_read(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "books").mkdir()
    (here / "books" / "a.txt").write_text(TEXT, encoding="utf-8")
    (here / "books" / "b.txt").write_bytes("Café.".encode("latin-1"))
    assert run(monkeypatch, "init", "text:books") == 0
    shown = capfd.readouterr().out
    assert "text:books: 1 document," in shown
    assert "not read: 1, the first: books/b.txt:1: not UTF-8" in shown


def test_init_names_the_build(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("emma.txt", "stages.txt"):
        (here / name).write_text(TEXT, encoding="utf-8")
    names = {}
    for spec in ("emma.txt", "text:stages.txt"):
        assert run(monkeypatch, "init", spec, "--force") == 0
        table = tomllib.loads((here / "build.toml").read_text(encoding="utf-8"))
        names[table["name"]] = table["sources"][0]["name"]
    assert names == {"emma": "emma", "stages-1": "stages"}
    # Several sources: by the folder, as none of them is the build.
    assert run(monkeypatch, "init", "emma.txt", "stages.txt", "--force") == 0
    table = tomllib.loads((here / "build.toml").read_text(encoding="utf-8"))
    assert table["name"] == here.name


def test_init_sees_no_hidden_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "notes" / ".cache").mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (here / "notes" / ".cache" / name).write_text(TEXT, encoding="utf-8")
    line = json.dumps({"id": "x", "text": TEXT})
    (here / "notes" / "x.jsonl").write_text(line, encoding="utf-8")
    assert run(monkeypatch, "init", "notes") == 0
    assert 'spec = "jsonl:notes"' in (here / "build.toml").read_text(encoding="utf-8")


def test_init_takes_sources_of_one_language(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    spanish = "El perro quería salir porque la puerta estaba abierta, pero llovía y era tarde.\n"
    for name, text in (("es.txt", spanish), ("en.txt", TEXT)):
        (here / name).write_text(text, encoding="utf-8")
    assert run(monkeypatch, "init", "text:es.txt", "text:en.txt") == 1
    assert "several languages: text:es.txt (es), text:en.txt (en)" in capfd.readouterr().err
    assert not (here / "build.toml").exists()


def test_init_names_the_file_that_it_cannot_plan(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(config: str) -> None:
        raise ConfigError("is wrong", where=f"{Path(config).absolute()}:28: parse.parser")

    monkeypatch.setattr(start, "planned", refused)
    assert run(monkeypatch, "init", "mine.toml") == 1
    assert capfd.readouterr().err.startswith(f"error: {here}/mine.toml:28: parse.parser: is wrong")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("text:nowhere",), ("nowhere",)),
        (("nowhere",), ("nowhere", "kind:PATH")),
        (("a.toml", "b.toml"), ("a.toml and b.toml",)),
    ],
)
def test_init_writes_nothing_for_a_source_that_it_cannot_read(
    arguments: tuple[str, ...],
    words: tuple[str, ...],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "init", *arguments) == 1
    message = capfd.readouterr().err
    assert all(word in message for word in words)
    assert not list(here.iterdir())


KEPT = """
name = "{name}"
[[sources]]
name = "notes"
spec = "text:{name}.txt"
"""


@pytest.fixture
def two_builds(here: Path) -> Path:
    """The output of two build files without a dataset, `old.toml` and `new.toml`."""
    for name in ("old", "new"):
        (here / f"{name}.toml").write_text(KEPT.format(name=name), encoding="utf-8")
        (here / f"{name}.txt").write_text(f"{TEXT} Then came the {name} boat.", encoding="utf-8")
        assert run_build(f"{name}.toml", "out", workers=1) == 0
    return here / "out"


def test_prune_lists_and_then_removes_what_no_build_file_needs(
    two_builds: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stages = two_builds / "stages"
    foreign = [stages / "mine" / "0123456789abcdef" / "thesis.txt", stages / "notes.txt"]
    foreign.append(stages / "mine" / "0123456789abcdee" / "manifest.json")  # of no JSON
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious", encoding="utf-8")
    (stages / "sentences" / "notes" / "0123456789abcdef.partial").mkdir()
    (old,) = (stages / "report" / "old").glob("*[0-9a-f]")
    old.with_suffix(".train.json").write_text("{}", encoding="utf-8")  # as beside a model
    old.with_suffix(".logs").mkdir()
    (old.with_suffix(".logs") / "events").write_text("losses", encoding="utf-8")

    def files() -> set[Path]:
        return {path for path in two_builds.rglob("*") if path.is_file() or path.is_symlink()}

    before = files()
    assert run(monkeypatch, "prune", "new.toml", "old.toml", "--output", "out") == 0
    assert "new.toml, old.toml: 1" in capfd.readouterr().out, "the partial folder alone"
    assert run(monkeypatch, "prune", "new.toml", "--output", "out") == 0
    shown = capfd.readouterr().out
    assert "(and old/report)" in shown and "nothing was removed" in shown
    assert files() == before
    assert run(monkeypatch, "prune", "new.toml", "--output", "out", "--remove") == 0
    assert all(path.read_text(encoding="utf-8") == "precious" for path in foreign)
    assert not list(stages.rglob("*.partial")) and not list((stages / "report" / "old").iterdir())
    assert len(files()) < len(before) and not list((two_builds / "old").iterdir())
    capfd.readouterr()
    assert run(monkeypatch, "prune", "new.toml", "--output", "out") == 0
    assert "new.toml: 0" in capfd.readouterr().out
    after = files()
    assert run(monkeypatch, "build", "--config", "new.toml", "--output", "out") == 0
    assert files() == after, "everything that the build file needs is there"


def test_prune_counts_a_file_once(
    two_builds: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A hard link takes no space, and one that a needed stage keeps would free none."""
    stages = [*(two_builds / "stages" / "report").glob("*/*[0-9a-f]")]
    new, old = sorted(stages, key=lambda folder: folder.parent.name)
    places = old / "a.bin", two_builds / "old" / "report" / "a.bin", new / "a.bin"
    places[0].write_bytes(bytes(3 << 20))
    for place, size in zip(places[1:], (3, 0), strict=True):
        place.hardlink_to(places[0])
        capfd.readouterr()
        assert run(monkeypatch, "prune", "--config", "new.toml", "--output", "out") == 0
        (total,) = [line for line in capfd.readouterr().out.splitlines() if "in all" in line]
        assert size <= float(total.split()[0]) < size + 1


def test_prune_leaves_an_output_alone_that_it_cannot_judge(
    two_builds: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    prune = ("prune", "new.toml", "--output", "out", "--remove")
    with locked(two_builds / LOCK, "busy"):
        assert run(monkeypatch, *prune) == 1
        assert "another build writes into this folder: process" in capfd.readouterr().err
    (stage,) = (two_builds / "stages" / "report" / "old").glob("*[0-9a-f]")
    with locked(stage.with_name(f".{stage.name}.lock"), "busy"):
        assert run(monkeypatch, *prune) == 0
        assert "another process is making them: 1" in capfd.readouterr().out
        assert (stage / "manifest.json").is_file()
    Path("new.txt").unlink()
    assert run(monkeypatch, *prune) == 1
    assert "no such file" in capfd.readouterr().err, "its stages have other hashes now"


def test_prune_needs_the_vectors_of_a_model(
    two_builds: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = KEPT.format(name="new") + 'datasets = ["dissent"]\n[datasets.dissent]\n'
    text += '[models.sif]\nrecipe = "dissent/sif"\ndataset = "dissent"\nconfig = "all"\n'
    text += 'settings = { vectors = "nowhere.txt" }\n'
    Path("new.toml").write_text(text, encoding="utf-8")
    assert run(monkeypatch, "prune", "new.toml", "--output", "out", "--remove") == 1
    said = capfd.readouterr().err
    assert "models.sif.recipe: vectors nowhere.txt: no such file" in said
    assert (two_builds / "old" / "report").exists()


def test_demo_shows_tree_pattern_pair_and_confidence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = "We stayed inside because it rained, but the cats and dogs went out."
    assert run(monkeypatch, "demo", text) == 0
    shown = capfd.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80 and "\x1b" not in shown
    for word in ("└── stayed  root VERB", "because  mark SCONJ [marker of 1]", "[S2 of 2]"):
        assert word in shown
    for word in ("pair 2: but", "S2          It rained.", "because.subordinate", "no pair: and ("):
        assert word in shown
    assert run(monkeypatch, "demo", text, "--json", "--markers", "because") == 0
    found = json.loads(capfd.readouterr().out)
    (pair,) = found["pairs"]
    assert 0.5 <= pair["confidence"] <= 1
    (sentence,) = found["sentences"]
    heads = [token["head"] for token in sentence["tokens"]]
    assert heads.count(-1) == 1 and max(heads) < len(heads)
    (start, end), *_ = pair["marker_spans"]
    assert text[start:end] == "because"


def test_demo_of_a_text_without_a_marker(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "demo", "It rained [a lot].") == 0
    shown = capfd.readouterr().out
    assert "rained  root" in shown and "[a lot]" in shown and "has none of" in shown
    assert run(monkeypatch, "demo", " ") == 1
    assert "the text is empty" in capfd.readouterr().err


@pytest.fixture
def metadata(here: Path) -> Path:
    """The package's metadata as pip writes them: worktrees of this project have none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    path = here / "site" / "discorpora-0.1.0.dist-info" / "METADATA"
    path.parent.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", "Name: discorpora", f"Version: {project['version']}"]
    lines.append(f"Requires-Python: {project['requires-python']}")
    lines += [f"Requires-Dist: {each}" for each in project["dependencies"]]
    for extra, needed in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {each}; extra == "{extra}"' for each in needed]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert FOR.keys() == project["optional-dependencies"].keys(), "each extra has a purpose"
    return path


def test_doctor_finds_what_is_broken(
    metadata: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(metadata.parents[1]))
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    monkeypatch.setenv("DISCORPORA_DATA", str(metadata.parent))
    assert run(monkeypatch, "doctor") == 0
    shown = capfd.readouterr().out
    assert "secret" not in shown
    for word in ("embedded parser", "GiB free", "token", "extra stanza", str(metadata.parent)):
        assert word in shown
    assert "\nready to extract, build, and train on the CPU" in shown
    text = metadata.read_text(encoding="utf-8").replace("numpy>=2.0", "numpy>=99")
    metadata.write_text(text, encoding="utf-8")
    monkeypatch.setenv("DISCORPORA_DATA", "/nowhere")
    assert run(monkeypatch, "doctor", "--json") == 1
    found = {each["what"]: each for each in json.loads(capfd.readouterr().out)}
    broken = {what for what, each in found.items() if each["state"] == "broken"}
    assert broken == {"packages", "data"}
    assert "supported: <3,>=99" in found["packages"]["said"]
    assert "/nowhere" in found["data"]["said"]
    assert run(monkeypatch, "doctor", "--json", "--output", metadata) == 1
    found = {each["what"]: each for each in json.loads(capfd.readouterr().out)}
    assert found["output"]["state"] == "broken" and "is a file" in found["output"]["said"]


def test_standard_input_that_is_not_utf8_is_said(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "in").write_bytes(b"It rained.\nThe caf\xe9 shut.\n")
    said = {
        ("demo", "-"): "standard input: not UTF-8: byte 0xe9 at 19",
        ("extract", "-", "-o", "o.jsonl"): "standard input:2: not UTF-8: byte 0xe9 at column 8",
    }
    for arguments, message in said.items():
        with Path("in").open(encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert run(monkeypatch, *arguments) == 1
        assert message in capfd.readouterr().err


def test_a_removed_current_folder_is_said(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    assert run(monkeypatch, "status", "--config", "none.toml") == 1
    assert capfd.readouterr().err.startswith("error: ")


def test_status_shows_paths_with_brackets(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = KEPT.format(name="new").replace("text:new.txt", "sample:stories")
    text += 'datasets = ["sp"]\n[datasets.sp]\n'
    (here / "new.toml").write_text(text, encoding="utf-8")
    assert run(monkeypatch, "build", "--config", "new.toml", "--output", "x [old]") == 0
    assert "x [old]/new/datasets/" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("discorpora train dissent/bi", "dissent/bilstm_tiny"),
        ("discorpora evaluate pair", "pairwise"),
        ("discorpora extract conl", "conllu:"),
        ("discorpora extract a.txt --markers because,wh", "because,when"),
        ("discorpora ini", "init"),
    ],
)
def test_shells_complete(
    line: str, completed: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_DISCORPORA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert run(monkeypatch) == 0
    assert completed in capfd.readouterr().out.split()
