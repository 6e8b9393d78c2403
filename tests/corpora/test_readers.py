"""Specs, options, files, ids: what all readers share."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from corpora.errors import ConfigError, InputError
from corpora.licences import TABLE
from corpora.readers import READERS, open_source, parse_spec
from corpora.readers.source import SeenIds
from tests.corpora.conftest import write_jsonl


def test_gzipped_files_and_globs(tmp_path: Path) -> None:
    for name in "ab":
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write(json.dumps({"id": name, "text": f"Text of {name}."}))
    assert [d.id for d in open_source(f"jsonl:{tmp_path}/*.gz")] == ["a", "b"]
    assert READERS.find("jsonl").find(str(tmp_path)) == sorted(tmp_path.iterdir())


def test_a_mark_in_a_path_says_below_which_folder_ids_begin(tmp_path: Path) -> None:
    (tmp_path / "novels" / "emma").mkdir(parents=True)
    (tmp_path / "novels" / "emma" / "01.txt").write_text("Text.", encoding="utf-8")
    specs = ["novels/./emma", "novels/./emma/01.txt", "novels/./*/01.txt", "./novels/emma"]
    found = [next(open_source(f"text:{tmp_path}/{spec}", {"group": "folder"})) for spec in specs]
    assert [d.id for d in found] == ["emma/01", "emma/01", "emma/01", "novels/emma/01"]
    assert [d.group for d in found] == ["emma", "emma", "emma", "novels/emma"]
    assert found[0].source == "text:emma"


def test_brackets_in_the_name_of_a_file_or_folder_are_no_wildcard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("emma [1816]", "one").mkdir(parents=True)
    Path("emma [1816]", "one", "01.txt").write_text("Text.", encoding="utf-8")
    for place in ("emma [1816]", "emma [1816]/one/01.txt", f"{tmp_path}/emma [1816]/one"):
        (found,) = open_source(f"text:{place}")
        expected = "one/01" if place == "emma [1816]" else "01"
        assert (found.id, found.source) == (expected, f"text:{Path(place).name}")
    monkeypatch.chdir(Path("emma [1816]", "one"))
    for spec in ("text:.", "text:*.txt"):
        assert next(open_source(spec)).source == spec


def test_hidden_files_and_folders_are_not_read(tmp_path: Path) -> None:
    for place in (".notes/emma", "book/.ipynb_checkpoints/emma", "book/._emma", "book/emma"):
        file = tmp_path / ".texts" / f"{place}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Text.", encoding="utf-8")
    assert [d.id for d in open_source(f"text:{tmp_path}/.texts")] == ["book/emma"]


def test_beside_a_wildcard_brackets_are_a_pattern(tmp_path: Path) -> None:
    essays = tmp_path / "mine [old]" / "essays [2024]"
    essays.mkdir(parents=True)
    (essays / "a.txt").write_text("Text.", encoding="utf-8")
    with pytest.raises(InputError, match="no file matches"):
        open_source(f"text:{essays}/*.txt")
    (document,) = open_source(f"text:{str(essays).replace('[', '[[]')}/*.txt")
    assert document.text == "Text."


def test_the_sample_is_read_by_part_or_whole() -> None:
    articles = list(open_source("sample:articles"))
    everything = list(open_source("sample:"))
    assert {d.id for d in articles} < {d.id for d in everything}
    assert {d.licence for d in everything} == {"CC-BY-4.0"}
    assert all(d.sections for d in articles)
    with pytest.raises(ConfigError, match="articles"):
        list(open_source("sample:artcles"))


def test_a_hub_dataset_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = tmp_path / "tales"
    folder.mkdir()
    write_jsonl(folder / "train.jsonl", {"title": "Fox", "text": "A fox ran.\n\nIt hid."})
    write_jsonl(folder / "test.jsonl", {"title": "Owl", "text": "An owl slept."})
    (fox,) = open_source(f"hub:{folder}", {"licence": "CC0-1.0"})
    assert (fox.id, fox.title, fox.text) == ("tales:000001", "Fox", "A fox ran.\n\nIt hid.")
    (owl,) = open_source(f"hub:{folder}", {"split": "test", "layout": "lines"})
    assert owl.sentence_texts() == ["An owl slept."]
    with pytest.raises(InputError, match=r"\[dev\]") as caught:
        list(open_source(f"hub:{folder}", {"split": "dev"}))
    assert "the Hub cannot be reached" not in str(caught.value)  # it was never asked


@pytest.mark.parametrize(
    ("offline", "said"), [(True, "HF_HUB_OFFLINE is set"), (False, "reached: Name not known")]
)
def test_no_network_is_a_short_error(
    offline: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    hub = pytest.importorskip("huggingface_hub")

    def unreachable(*args: object, **kwargs: object) -> None:
        raise OSError(-2, "Name not known")

    def load(*args: object, **kwargs: object) -> None:
        assert offline  # else half a minute of retries
        raise ConnectionError("Couldn't reach the Hub\nlong traceback")

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(hub, "is_offline_mode", lambda: offline)
    monkeypatch.setattr(hub.HfApi, "dataset_info", unreachable)
    with pytest.raises(InputError, match="the Hub cannot be reached") as caught:
        list(open_source("hub:someone/something", {"revision": "old"}))
    assert said in str(caught.value) and "hub:FOLDER" in str(caught.value)
    assert "someone/something --revision old --local-dir" in str(caught.value)
    assert "Errno" not in str(caught.value) and "traceback" not in str(caught.value)


def test_a_dataset_that_the_hub_lacks_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "is_offline_mode", lambda: False)
    with pytest.raises(InputError, match=r"(?s)cannot be read: .*check name") as caught:
        list(open_source("hub:a/b/c/d"))
    assert "reached" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "options", "error", "words"),
    [
        ("jsnl:x", {}, InputError, ["'jsnl'", "'jsonl'"]),
        ("somewhere/notes.pdf", {}, InputError, ["kind:PATH"]),
        ("text:", {}, InputError, ["needs a path"]),
        ("text:{tmp}/nowhere/a.txt", {}, InputError, ["no such file", "check the path"]),
        ("text:{tmp}/bok.txt", {}, InputError, ["did you mean 'book.txt'"]),
        ("text:{tmp}/*.text", {}, InputError, ["no file matches"]),
        ("conllu:{tmp}", {}, InputError, ["no *.conllu", "another kind of source"]),
        ("text:{tmp}/book.txt", {"layuot": "lines"}, ConfigError, ["did you mean 'layout'"]),
        ("text:{tmp}/book.txt", {"layout": "line"}, ConfigError, ["did you mean 'lines'"]),
        ("text:{tmp}/book.txt", {"licence": 3}, ConfigError, ["licence = 3", "a text"]),
        ("jsonl:{tmp}/x.jsonl", {"layout": "documents"}, ConfigError, ["'document'"]),
        ("jsonl:{tmp}/x.jsonl", {"text": "txt"}, InputError, ["did you mean 'text'", "x.jsonl:1"]),
        ("jsonl:{tmp}/odd.jsonl", {}, InputError, ["no known field", "foo", "odd.jsonl:1"]),
        ("hub:", {}, InputError, ["hub:ORG/NAME"]),
        ("pdtb:{tmp}", {}, InputError, ["gold"]),
    ],
)
def test_mistakes_get_the_value_the_place_and_the_next_step(
    spec: str, options: dict[str, object], error: type[Exception], words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "book.txt").write_text("Text.", encoding="utf-8")
    write_jsonl(tmp_path / "x.jsonl", {"text": "Text."})
    write_jsonl(tmp_path / "odd.jsonl", {"foo": 1})
    with pytest.raises(error) as caught:
        list(open_source(spec.format(tmp=tmp_path), options))
    for word in words:
        assert word in str(caught.value)


def test_options_and_paths_are_checked_before_the_first_document(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        open_source(f"text:{tmp_path / 'missing.txt'}")


def test_a_bare_path_tells_its_kind() -> None:
    assert parse_spec("books/a.jsonl.gz")[0] is READERS.find("jsonl")
    assert parse_spec("x/y.conllu") == (READERS.find("conllu"), "x/y.conllu")


def test_a_kind_that_is_misspelt_is_not_taken_for_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.conllu").touch()
    with pytest.raises(InputError, match=r"unknown kind of source 'conlu'.*\n.*mean 'conllu'"):
        parse_spec("conlu:x.conllu")
    Path("Part 1: dawn.txt").touch()
    assert parse_spec("Part 1: dawn.txt") == (READERS.find("text"), "Part 1: dawn.txt")


def test_a_bad_language_names_its_document(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", {"id": "a", "text": "A.", "language": "klingon"})
    with pytest.raises(InputError, match=r"x\.jsonl:1: document 'a': bad language: 'klingon'"):
        list(open_source(f"jsonl:{path}"))


@pytest.mark.parametrize("text", ["We stayed because it rained", "It rained. She said: we stay. "])
def test_a_text_in_place_of_a_path_asks_for_a_kind(text: str) -> None:
    with pytest.raises(InputError, match="no kind of source"):
        parse_spec(text * 20)


def test_seen_ids_are_known_after_they_settle() -> None:
    seen = SeenIds()
    assert all(seen.add(f"id {n}") for n in range(80_000))
    assert not any(seen.add(f"id {n}") for n in (0, 40_000, 79_999))


def test_every_kind_has_a_licence_of_the_table_and_a_summary() -> None:
    for kind in READERS.built_in:
        reader = READERS.find(kind)
        assert reader.name == kind
        assert reader.own_licence in TABLE and reader.summary()


def test_only_the_named_reader_is_imported() -> None:
    code = (
        "import sys; from corpora.readers import parse_spec; parse_spec('text:x');"
        "readers = [m for m in sys.modules if m.startswith('corpora.readers.')];"
        "print(*sorted(m.rpartition('.')[2] for m in readers))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shared = {"fields", "files", "guarded", "gutenberg", "records", "rows", "source"}
    assert set(done.stdout.split()) == {"text", *shared}


def test_no_reader_imports_anything_heavy() -> None:
    """What only one of them needs is imported when it reads."""
    code = (
        "import sys; from corpora.readers import READERS;"
        "[READERS.find(kind) for kind in READERS.built_in]; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"datasets", "pyarrow", "mwxml", "mwparserfromhell", "torch", "spacy", "pandas"}
    assert not heavy & set(done.stdout.split())
