"""No old result for new input or code: hashes, what readers open, sources that change meanwhile."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import code
from corpora.errors import DiscorporaError, InputError
from corpora.readers import READERS, open_source, parse_spec
from corpora.store.atomic import partial_path
from corpora.store.documents import iter_documents
from tests.corpora.test_bad_input import KINDS
from tests.corpora.test_publish import edit, folder, made, send, server  # noqa: F401 (fixtures)
from tests.hub_server import HubServer
from tests.processes import ran
from tests.workflows.conftest import ROOT, luigi_command, luigi_environment, run_build_file
from workflows import sources, stage
from workflows.settings import options
from workflows.tasks import BuildAll, Documents
from workflows.tasks import sources as tasks

FIXTURES = ROOT / "tests" / "data" / "readers"
SAMPLE = ROOT / "corpora" / "sample"

OPENED: list[Path] | None = None


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if OPENED is not None and event == "open" and isinstance(arguments[0], str | bytes):
        OPENED.append(Path(os.fsdecode(arguments[0])))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file that this process opens from here on; an audit hook cannot be removed."""
    found: list[Path] = []
    if not getattr(sys, "_discorpora_hook", False):
        sys.addaudithook(_hook)
        monkeypatch.setattr(sys, "_discorpora_hook", True, raising=False)
    monkeypatch.setattr(sys.modules[__name__], "OPENED", found)
    return found


def files_of(name: str, place: Path) -> str:
    """Write two good files of a reader, and what lies beside them; its spec."""
    if name == "hub":
        place.mkdir(parents=True)
        pq.write_table(pa.table({"text": ["One text.", "Another."]}), place / "train.parquet")
    elif name == "sample":
        return "sample:"
    elif name in ("dis", "logs"):
        kind, part = ("rst", "rst") if name == "dis" else ("irc", "irc")
        shutil.copytree(FIXTURES / part, place)
        return f"{kind}:{place / ('market.out.dis' if name == 'dis' else 'pond.ascii.txt')}"
    elif name == "pickles":
        place.mkdir(parents=True)
        pairs = [{"pos": ["One.", "Two."], "neg": ["Two.", "One."]}]
        for file, value in (
            ("lmvlm", pairs),
            ("LMvLM_Annotations", [["0"]]),
            ("x_Annotations", []),
        ):
            (place / f"{file}.pkl").write_bytes(pickle.dumps(value))
        return f"coherence:{place / 'lmvlm.pkl'}"
    else:
        kind = KINDS[name]
        for number in range(2):
            records = (
                (kind.good(number),)
                if kind.whole
                else (kind.good(2 * number), kind.good(2 * number + 1))
            )
            written = {kind.name: kind.file(*records)} | {
                file: text.encode() for file, text in kind.beside.items()
            }
            for file, data in written.items():
                path = place / file.format(number)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return f"{name.partition(' ')[0]}:{place}"


READ = [*KINDS, "hub", "sample", "dis", "logs", "pickles"]


def test_every_reader_is_listened_to() -> None:
    kinds = {name.partition(" ")[0] for name in READ}
    assert kinds >= set(READERS.built_in) - {"senteval"}  # the suite reads its files


@pytest.mark.parametrize("name", READ)
def test_a_reader_opens_no_file_that_it_does_not_declare(
    name: str, tmp_path: Path, opened: list[Path]
) -> None:
    place = tmp_path / "in"
    spec = files_of(name, place)
    reader, target = parse_spec(spec)
    declared = set(reader.find(target))
    given = dict(KINDS[name].options) if name in KINDS else {"context": 0} if name == "logs" else {}
    opened.clear()
    assert list(open_source(spec, given))
    read = {path for path in opened if path.is_relative_to(SAMPLE if name == "sample" else place)}
    assert read == declared
    assert len(declared) > 1 or name == "hub"


# Ways to change what a result is made of.

WORLD = """
name = "world"
[[sources]]
name = "novel"
spec = "text:{data}/novel"
datasets = ["sp", "dissent"]
[[sources]]
name = "chat"
spec = "irc:{data}/irc"
datasets = ["permuted"]
[[sources]]
name = "trees"
spec = "rst:{data}/rst"
licence = "CC-BY-4.0"
datasets = ["rst"]
[[sources]]
name = "pairs"
spec = "coherence:{data}/pairs/lmvlm.pkl"
licence = "CC-BY-4.0"
datasets = ["coherence_tests"]
[[sources]]
name = "rows"
spec = "hub:{data}/rows"
datasets = ["sp"]
[[sources]]
name = "own"
spec = "reader.py:Own:{data}/own.txt"
datasets = ["sp"]
[splits]
table = "{data}/splits.tsv"
[parse]
parser = "spacy:world_pipeline"
[extract]
patterns = ["patterns.toml"]
[[validation]]
name = "novel"
sources = ["novel"]
gold = "pdtb:{data}/gold"
[[validation]]
name = "stanza"
sources = ["novel"]
parser = "stanza:en"
gold = "pdtb:{data}/gold"
[datasets.sp]
[datasets.dissent]
[datasets.permuted]
[datasets.rst]
[datasets.coherence_tests]
[models.sif]
recipe = "dissent/sif"
dataset = "dissent"
config = "all"
settings = { vectors = "{data}/vectors.txt" }
"""

READER = """
from corpora.readers.text import Text
class Own(Text):
    name = "own"
    def read_file(self, path, stem, source):
        for document in super().read_file(path, stem, source):
            yield document
"""


class World:
    """A build file with sources of many kinds, and the hash of all that it builds."""

    def __init__(self, place: Path) -> None:
        self.place, self.config = place, place / "world.toml"
        self.data = place / "data"
        self.write("world.toml", WORLD.replace("{data}", str(self.data)))
        self.write("reader.py", READER)
        self.write("patterns.toml", '[sets]\nworld = ["because"]\n')
        self.write("data/novel/one.txt", "It rained. We stayed inside because it rained.")
        self.write("data/novel/two.txt", "The sun came out. They went to the harbour.")
        self.write("data/own.txt", "A text of one's own. It has two sentences.")
        self.write("data/splits.tsv", "train\tone\n")
        self.write("data/vectors.txt", "rain 0.1 0.2\nsun 0.3 0.4\n")
        self.write("packages/world_pipeline/__init__.py", "__version__ = '1.0'\n")
        self.write("packages/world_pipeline/meta.json", '{"version": "1.0"}\n')
        self.write("stanza/resources.json", "{}\n")
        self.write("stanza/en/depparse/model.pt", "weights\n")
        shutil.copytree(FIXTURES / "irc", self.data / "irc")
        shutil.copytree(FIXTURES / "rst", self.data / "rst")
        files_of("pickles", self.data / "pairs")
        files_of("hub", self.data / "rows")
        shutil.copytree(SAMPLE / "gold", self.data / "gold")

    def write(self, name: str, text: str) -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def edit(self, name: str) -> None:
        """Another byte in a file, of the same size and time."""
        path = self.place / name
        data, about = bytearray(path.read_bytes()), path.stat()
        data[-2] ^= 1
        path.write_bytes(data)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))

    def replace(self, name: str) -> None:
        """Another file moved to its place, of the same size and time."""
        path, other = self.place / name, self.place / "other"
        data, about = bytearray(path.read_bytes()), path.stat()
        data[-2] ^= 1
        other.write_bytes(data)
        os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))
        other.replace(path)

    def hash(self) -> str:
        with options(str(self.config), str(self.place / "out"), looking=True):
            task = BuildAll(config=str(self.config))
            assert {one.problem for one in task.all_sources} == {""}
            return task.hash


@pytest.fixture(scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture
def world(_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.syspath_prepend(str(_world.place / "packages"))
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(_world.place / "stanza"))
    monkeypatch.setattr(sources, "SETTLED", 0.0)  # files of this second are taken as settled
    return _world


def _move(world: World, name: str, to: str) -> None:
    (world.place / name).rename(world.place / to)


def _code(world: World) -> None:
    """Another reader; a process reads its code once."""
    world.write("reader.py", READER.replace("yield", "yield 0 or"))
    for cached in (code.code_hash, code._read_code):
        cached.cache_clear()


def _link(world: World) -> None:
    world.write("elsewhere.txt", "The sun came out. They went to the theatre.")
    path = world.data / "novel" / "two.txt"
    path.unlink()
    path.symlink_to(world.place / "elsewhere.txt")


def _setting(old: str, new: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        text = world.config.read_text(encoding="utf-8")
        assert old in text
        world.config.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


WAYS: dict[str, Callable[[World], None]] = {
    "an edit with size and time kept": lambda world: world.edit("data/novel/one.txt"),
    "another file moved there": lambda world: world.replace("data/novel/one.txt"),
    "a new file": lambda world: world.write("data/novel/three.txt", "A third. It is short."),
    "another name": lambda world: _move(world, "data/novel/three.txt", "data/novel/four.txt"),
    "a file less": lambda world: (world.data / "novel" / "four.txt").unlink(),
    "a link to another file": _link,
    "annotations beside a chat": lambda world: world.edit("data/irc/pond.annotation.txt"),
    "EDUs beside a tree": lambda world: world.edit("data/rst/market.out.edus"),
    "the raw text beside a tree": lambda world: world.edit("data/rst/market.out"),
    "votes beside pairs": lambda world: (
        world.data / "pairs" / "LMvLM_Annotations.pkl"
    ).write_bytes(pickle.dumps([["1"]])),
    "a local folder of the Hub's kind": lambda world: world.edit("data/rows/train.parquet"),
    "gold relations": lambda world: world.edit(
        str(next((world.data / "gold" / "gold").glob("*/*")).relative_to(world.place))
    ),
    "texts of gold relations": lambda world: world.edit(
        str(next((world.data / "gold" / "raw").glob("*/*")).relative_to(world.place))
    ),
    "a table of splits": lambda world: world.write("data/splits.tsv", "test\tone\n"),
    "patterns": lambda world: world.write("patterns.toml", '[sets]\nworld = ["but"]\n'),
    "a spaCy model": lambda world: world.edit("packages/world_pipeline/meta.json"),
    "stanza's models": lambda world: world.edit("stanza/en/depparse/model.pt"),
    "stanza's resources": lambda world: world.write("stanza/resources.json", '{"en": {}}\n'),
    "vectors": lambda world: world.edit("data/vectors.txt"),
    "code of a reader": _code,
    "a seed": _setting("name =", "seed = 2\nname ="),
    "a licence": _setting("CC-BY-4.0", "CC0-1.0"),
    "a language": _setting('datasets = ["sp"]', 'language = "de"\ndatasets = ["sp"]'),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_change_makes_another_hash(way: str, world: World) -> None:
    before = world.hash()
    assert world.hash() == before
    time.sleep(0.02)  # the clock of files is coarse
    WAYS[way](world)
    assert world.hash() != before


def test_touching_a_file_changes_no_hash(world: World) -> None:
    before = world.hash()
    (world.data / "novel" / "one.txt").touch()
    assert world.hash() == before


def test_code_of_a_stage_makes_another_hash(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = world.hash()
    monkeypatch.setattr(stage, "FORMAT", stage.FORMAT + 1)
    other = world.hash()
    assert other != before
    monkeypatch.setattr(stage, "code_hash", lambda module: f"edited {module}")
    assert world.hash() not in (before, other)


HUB = """
name = "hub"
[[sources]]
name = "far"
spec = "hub:ana/sentences"
datasets = ["sp"]
[datasets.sp]
"""


def test_a_commit_on_the_hub_makes_another_hash(
    send: Callable,  # noqa: F811
    server: HubServer,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from huggingface_hub import constants

    send()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    config = tmp_path / "hub.toml"
    config.write_text(HUB, encoding="utf-8")

    def planned() -> Documents:
        sources._commit_on_hub.cache_clear()
        with options(str(config), str(tmp_path / "out")):
            return Documents(config=str(config), source="far")

    first = planned()
    (source,) = first.own_sources
    assert source.revision == server.repository("ana/sentences").at("main")[0]
    assert source.options["revision"] == source.revision
    edit(server, "notes.md", b"# Notes")
    second = planned()
    assert second.hash != first.hash
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert planned().hash == second.hash  # as of the last build, and it says so
    assert second.own_sources[0].revision in caplog.text or "taken as of" in caplog.text
    shutil.rmtree(tmp_path / "out")
    unknown = planned()
    with pytest.raises(DiscorporaError, match="commit on the Hub is not known"):
        unknown.run()
    assert not unknown.folder.exists()


NOTES = """
name = "notes"
[[sources]]
name = "notes"
spec = "text:{place}"
"""


@pytest.fixture
def documents(tmp_path: Path) -> Iterator[Documents]:
    """A stage that has hashed its source, and has not read it yet."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("It rained all day.", encoding="utf-8")
    config = tmp_path / "notes.toml"
    config.write_text(NOTES.replace("{place}", str(tmp_path / "in")), encoding="utf-8")
    with options(str(config), str(tmp_path / "out")):
        yield Documents(config=str(config), source="notes")


@pytest.mark.parametrize("how", ["edited", "added", "removed", "times kept"])
def test_a_source_that_changes_while_it_is_read_is_not_stored(
    how: str, documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, really = tmp_path / "in" / "a.txt", tasks.ingest

    def reading(*arguments: object, **keywords: object) -> object:
        counts = really(*arguments, **keywords)  # type: ignore[arg-type]
        about = path.stat()
        if how == "added":
            (tmp_path / "in" / "b.txt").write_text("More.", encoding="utf-8")
        elif how == "removed":
            path.unlink()
        else:
            path.write_text("It snowed all day.", encoding="utf-8")
        if how == "times kept":
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        return counts

    monkeypatch.setattr(tasks, "ingest", reading)
    with pytest.raises(InputError, match=r"was changed while it was read|no .* in folder"):
        documents.run()
    assert not documents.folder.exists()
    assert not list(partial_path(documents.folder).rglob("*.parquet"))


def test_a_shard_of_a_broken_run_that_read_another_text_is_not_kept(
    documents: Documents, tmp_path: Path
) -> None:
    """The source changed, a run was killed, and the source was put back."""
    path = tmp_path / "in" / "a.txt"
    good = path.read_text(encoding="utf-8")
    path.write_text("It snowed all day.", encoding="utf-8")
    tasks.ingest(f"text:{tmp_path / 'in'}", {"name": "notes"}, partial_path(documents.folder))
    path.write_text(good, encoding="utf-8")
    documents.run()
    assert [document.text for document in iter_documents(documents.folder)] == [good]


def test_rehash_reads_every_source(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file system whose times do not tell of a change, only the bytes do."""
    root, path = tmp_path / "out", tmp_path / "in" / "a.txt"
    monkeypatch.setattr(sources, "_state_of", lambda path: (1, 2, 3, 4, 5))
    before = sources.files_hash(path, root)
    path.write_text("It snowed all day.", encoding="utf-8")
    assert sources.files_hash(path, root) == before
    with options("sample", str(root), rehash=True):
        after = sources.files_hash(path, root)
    assert after != before
    sources._stored_hash.cache_clear()
    assert sources.files_hash(path, root) == after  # the note is a new one


def test_a_damaged_note_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SETTLED", 0.0)
    path, root = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("It rained all day.", encoding="utf-8")
    time.sleep(0.02)
    good = sources.files_hash(path, root)
    (note,) = (each for each in (root / "fingerprints").rglob("*") if each.is_file())
    kept = note.read_bytes()
    for spoilt in (b"", b"[]", b'{"sha256": 7}', kept.replace(good[:4].encode(), b"0123", 1)):
        note.write_bytes(spoilt)
        sources._stored_hash.cache_clear()
        assert sources.files_hash(path, root) == good
        assert note.read_bytes() == kept


# Equal bytes from another place.


def _sample(place: Path, name: str, every: int = 1) -> Path:
    """The sample's build file without its models, of a copy of the sample in `place`.

    Of files of many documents it has one in `every`.
    """
    shutil.copytree(SAMPLE, place / name)
    for file in ("articles.jsonl", "stories.jsonl"):
        documents = (SAMPLE / file).read_text(encoding="utf-8").splitlines(keepends=True)
        (place / name / file).write_text("".join(documents[::every]), encoding="utf-8")
    text = (ROOT / "workflows" / "configs" / "sample.toml").read_text(encoding="utf-8")
    text = text.partition("[models.")[0].replace("{sample}", str(place / name))
    for part in SAMPLE.glob("*.jsonl"):
        text = text.replace(
            f'"sample:{part.stem}"', f'"jsonl:{place / name}/{part.name}"\nlicence = "CC-BY-4.0"'
        )
    config = place / f"{name}.toml"
    config.write_text(text, encoding="utf-8")
    return config


def built_files(output: Path) -> dict[str, bytes]:
    """All files of all stages, but for what says how long they took."""
    stages = output / "stages"
    return {
        str(path.relative_to(stages)): path.read_bytes()
        for path in sorted(stages.rglob("*"))
        if path.is_file() and not path.name.endswith(".run.json") and "report/" not in str(path)
    }


@pytest.mark.slow
def test_equal_bytes_from_another_path_and_name_with_other_workers(tmp_path: Path) -> None:
    one = _sample(tmp_path / "here", "sample-a", every=2)
    two = _sample(tmp_path / "some" / "where" / "else", "b", every=2)
    run_build_file(one, tmp_path / "out", "--workers", "1")
    # A program of its own, since a fork hashes strings as this process does.
    command = luigi_command(two, tmp_path / "another" / "out", "--workers", "2")
    done = ran(command, env=luigi_environment(), cwd=two.parent)
    assert done.returncode == 0, done.stderr
    first, second = built_files(tmp_path / "out"), built_files(tmp_path / "another" / "out")
    assert first.keys() == second.keys() and len(first) > 150
    assert [name for name in first if first[name] != second[name]] == []
    assert not [name for name, data in first.items() if str(tmp_path).encode() in data]


@pytest.mark.nightly
def test_equal_bytes_with_four_workers_on_a_third_path(tmp_path: Path) -> None:
    one, two = _sample(tmp_path / "x", "x"), _sample(tmp_path / "y y", "data")
    run_build_file(one, tmp_path / "out1", "--workers", "1")
    done = ran(luigi_command(two, tmp_path / "out4", "--workers", "4"), env=luigi_environment())
    assert done.returncode == 0, done.stderr
    assert built_files(tmp_path / "out1") == built_files(tmp_path / "out4")
