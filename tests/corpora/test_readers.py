"""Readers: what a user's files become."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from corpora.document import Document
from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers import READERS, open_source, parse_spec, source_files
from corpora.readers.source import SeenIds

FIXTURES = Path(__file__).resolve().parent.parent / "data" / "readers"


def paragraphs(document: Document) -> list[str]:
    assert document.paragraphs is not None
    return [document.text[a:b] for a, b in document.paragraphs]


def write_jsonl(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_text_has_a_document_a_file_and_paragraphs_by_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_bytes(
        b"\xef\xbb\xbfFirst line,\r\nsecond line.\r\n \r\nNext."
    )
    (tmp_path / "two.txt").write_text("zero\u200bwidth  kept\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not text", encoding="utf-8")
    one, two = open_source(f"text:{tmp_path}", {"licence": "CC0-1.0", "language": "nl"})
    assert (one.id, one.group, two.id) == ("a/one", "a/one", "two")
    assert paragraphs(one) == ["First line, second line.", "Next."]
    assert two.text == "zero\u200bwidth  kept"
    assert (one.licence, one.language, one.source) == ("CC0-1.0", "nl", f"text:{tmp_path.name}")


def test_text_with_one_sentence_a_line(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("It rained .\nWe left .\n\nNobody spoke .\n", encoding="utf-8")
    (document,) = open_source(str(path), {"layout": "lines"})
    assert document.sentence_texts() == ["It rained .", "We left .", "Nobody spoke ."]
    assert paragraphs(document) == ["It rained . We left .", "Nobody spoke ."]
    first, second = open_source(str(path), {"layout": "lines", "document_lines": 2})
    as_text = {"layout": "lines", "document_lines": "2"}  # from the command line
    assert [d.text for d in open_source(str(path), as_text)] == [first.text, second.text]
    with pytest.raises(ConfigError, match="document_lines = 'two': expected a whole number"):
        list(open_source(str(path), {"layout": "lines", "document_lines": "two"}))
    with pytest.raises(ConfigError, match="cuts the layout 'lines' alone"):
        list(open_source(str(path), {"document_lines": 2}))
    records = path.with_suffix(".jsonl")
    records.write_text('{"text": "It rained."}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="this is 'document'"):
        list(open_source(str(records), {"layout": "document", "document_lines": 2}))
    assert (first.id, first.group, second.id) == ("book:000001", "book", "book:000002")
    assert second.sentence_texts() == ["Nobody spoke ."]


def test_chapters_of_a_folder_are_a_group(tmp_path: Path) -> None:
    for name in ("emma/01", "emma/02", "saki/tales/01", "loose"):
        path = tmp_path / "novels" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("It rained .\nWe left .\n", encoding="utf-8")

    def groups(spec: str, **options: object) -> dict[str, str]:
        return {d.id: d.group for d in open_source(spec, {"group": "folder", **options})}

    novels = f"text:{tmp_path / 'novels'}"
    assert groups(novels) == {
        "emma/01": "emma",
        "emma/02": "emma",
        "loose": "novels",
        "saki/tales/01": "saki/tales",
    }
    assert groups(f"{novels}/emma") == {"01": "emma", "02": "emma"}
    assert groups(f"{novels}/emma/01.txt") == {"01": "emma"}
    cut = groups(f"{novels}/emma", layout="lines", document_lines=1)
    assert set(cut.values()) == {"emma"} and len(cut) == 4
    by_file = groups(novels, group="file")
    assert by_file == {name: name for name in by_file}
    with pytest.raises(ConfigError, match=r"source text: group = 'foldr': did you mean 'folder'"):
        groups(novels, group="foldr")


def test_a_novel_has_a_document_a_chapter_and_a_group_a_book() -> None:
    first, second, third = open_source(f"jsonl:{FIXTURES / 'novel.jsonl'}")
    assert first.id == "ann-bell_the-mill/chapter-1"
    assert (first.group, first.title) == ("ann-bell_the-mill", "I")
    assert len(paragraphs(first)) == 2
    assert (second.id, third.id) == ("ann-bell_the-mill/chapter-2", "ann-bell_the-weir/chapter-1")


def test_an_article_keeps_its_sections() -> None:
    (kelp,) = open_source(f"jsonl:{FIXTURES / 'articles.jsonl'}")
    assert kelp.sections is not None
    rows = zip(kelp.sections.start, kelp.sections.end, strict=True)
    assert [kelp.text[a:b] for a, b in rows] == [
        "Kelp is a large brown alga. It grows fast.",
        "",
        "Some kelp is eaten.\n\nMost of it is dried first.",
    ]
    assert (kelp.sections.level, kelp.sections.heading) == ([1, 2, 3], ["", "Uses", "Food"])
    assert (kelp.title, kelp.categories) == ("Kelp", ("Algae", "Coasts"))


def test_an_abstract_is_the_first_section(tmp_path: Path) -> None:
    section = {"heading": "Method", "text": "We asked.\n\nThey answered."}
    path = write_jsonl(
        tmp_path / "p.jsonl", {"id": "p", "abstract": "In short.", "sections": [section]}
    )
    (paper,) = open_source(f"jsonl:{path}")
    assert paper.sections is not None
    assert paper.sections.heading == ["Abstract", "Method"]
    assert paragraphs(paper) == ["In short.", "We asked.", "They answered."]


def test_turns_are_paragraphs_with_speakers(tmp_path: Path) -> None:
    (shed,) = open_source(f"jsonl:{FIXTURES / 'chat.jsonl'}")
    assert shed.turns is not None
    assert (shed.turns.speaker, shed.turns.conversation) == (["ida", "bo", "cy"], [0, 1, 0])
    assert shed.text[shed.turns.start[2] : shed.turns.end[2]] == "It is, but we are out of tea."
    path = write_jsonl(
        tmp_path / "log.jsonl",
        {"speaker": "ida", "text": "Hello."},
        {"speaker": "bo", "text": "Hello to you."},
    )
    (log,) = open_source(f"jsonl:{path}")
    assert log.id == "log"
    assert log.turns is not None
    assert log.turns.speaker == ["ida", "bo"]


def test_a_story_of_sentences_brings_its_sentence_layer(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "s.jsonl", {"sentences": ["Sam ran.", " ", "He fell."]})
    (story,) = open_source(f"jsonl:{path}")
    assert story.text == "Sam ran. He fell."
    assert story.sentence_texts() == ["Sam ran.", "He fell."]
    assert story.id == "s:000001"


def test_fields_are_mapped_by_options(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "x.jsonl",
        {"key": 7, "body": "One.\n\nTwo.", "work": "w", "lang": "fr", "licence": "CC0-1.0"},
    )
    options = {"layout": "document", "id": "key", "text": "body", "group": "work"}
    (document,) = open_source(f"jsonl:{path}", {**options, "licence": "unused"})
    assert (document.id, document.group, document.language) == ("7", "w", "fr")
    assert document.licence == "CC0-1.0"
    assert len(paragraphs(document)) == 2


def test_gzipped_files_and_globs(tmp_path: Path) -> None:
    for name in "ab":
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write(json.dumps({"id": name, "text": f"Text of {name}."}))
    assert [d.id for d in open_source(f"jsonl:{tmp_path}/*.gz")] == ["a", "b"]
    assert source_files(f"jsonl:{tmp_path}") == sorted(tmp_path.iterdir())


def test_a_mark_in_a_path_says_below_which_folder_ids_begin(tmp_path: Path) -> None:
    (tmp_path / "novels" / "emma").mkdir(parents=True)
    (tmp_path / "novels" / "emma" / "01.txt").write_text("Text.", encoding="utf-8")
    specs = ["novels/./emma", "novels/./emma/01.txt", "novels/./*/01.txt", "./novels/emma"]
    found = [next(open_source(f"text:{tmp_path}/{spec}", {"group": "folder"})) for spec in specs]
    assert [d.id for d in found] == ["emma/01", "emma/01", "emma/01", "novels/emma/01"]
    assert [d.group for d in found] == ["emma", "emma", "emma", "novels/emma"]
    assert found[0].source == "text:emma"


def test_the_sample_is_read_by_part_or_whole() -> None:
    articles = list(open_source("sample:articles"))
    everything = list(open_source("sample:"))
    assert {d.id for d in articles} < {d.id for d in everything}
    assert {d.licence for d in everything} == {"CC-BY-4.0"}
    assert all(d.sections for d in articles)
    with pytest.raises(InputError, match="articles"):
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
    with pytest.raises(InputError, match=r"\[dev\]"):
        list(open_source(f"hub:{folder}", {"split": "dev"}))


def test_no_network_is_a_short_error(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def unreachable(*args: object, **kwargs: object) -> None:
        raise ConnectionError("Couldn't reach the Hub\nlong traceback")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(InputError, match="Couldn't reach the Hub") as caught:
        list(open_source("hub:someone/something"))
    assert "long traceback" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "options", "error", "words"),
    [
        ("jsnl:x", {}, InputError, ["'jsnl'", "'jsonl'"]),
        ("somewhere/notes.pdf", {}, InputError, ["kind:PATH"]),
        ("text:", {}, InputError, ["no path"]),
        ("text:{tmp}/nowhere/a.txt", {}, InputError, ["no such file", "has no 'nowhere'"]),
        ("text:{tmp}/bok.txt", {}, InputError, ["did you mean 'book.txt'"]),
        ("text:{tmp}/*.text", {}, InputError, ["no file matches"]),
        ("conllu:{tmp}", {}, InputError, ["no *.conllu", "book.txt"]),
        ("text:{tmp}/book.txt/x", {}, InputError, ["is a file"]),
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


def test_a_document_that_comes_back_names_its_line(tmp_path: Path) -> None:
    rows = [{"document": d, "paragraph": 1, "text": "Text."} for d in ("a", "b", "a")]
    path = write_jsonl(tmp_path / "x.jsonl", *rows)
    with pytest.raises(InputError, match=r"x\.jsonl:3: document 'a' comes back"):
        list(open_source(f"jsonl:{path}"))


def test_an_id_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", {"id": "a", "text": "A."}, {"id": "a", "text": "B."})
    with pytest.raises(InputError, match="two documents have the id 'a'"):
        list(open_source(f"jsonl:{path}"))


def test_rows_of_one_document_are_told_the_layout(tmp_path: Path) -> None:
    """A table with a paragraph a row, and no column that says so."""
    rows = [{"doc": "a", "text": "One."}, {"doc": "a", "text": "Two."}, {"doc": "b", "text": "B."}]
    path = write_jsonl(tmp_path / "x.jsonl", *rows)
    with pytest.raises(InputError, match='layout = "paragraph"'):
        list(open_source(f"jsonl:{path}"))
    read = open_source(f"jsonl:{path}", {"layout": "paragraph"})
    assert [document.text for document in read] == ["One.\n\nTwo.", "B."]


def test_seen_ids_are_known_after_they_settle() -> None:
    seen = SeenIds()
    assert all(seen.add(f"id {n}") for n in range(80_000))
    assert not any(seen.add(f"id {n}") for n in (0, 40_000, 79_999))


def test_a_document_never_has_a_hole(tmp_path: Path) -> None:
    row = '{{"document": "{}", "paragraph": 1, "text": "Text."}}\n'
    broken = "{broken\n"
    path = tmp_path / "x.jsonl"
    path.write_text(
        row.format("a") + broken + row.format("a")  # a hole: left out
        + row.format("b") + broken  # the end of b or the begin of c: no hole
        + row.format("c"),
        encoding="utf-8",
    )  # fmt: skip
    bad: list[BadRecord] = []
    assert [d.id for d in open_source(f"jsonl:{path}", on_bad=bad.append)] == ["b", "c"]
    assert [b.reason.partition(":")[0] for b in bad] == ["not JSON", "hole", "not JSON"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(chapters: int) -> int:
        path = tmp_path / f"{chapters}.jsonl"
        text = "The river ran past the mill. " * 40
        with path.open("w", encoding="utf-8") as file:
            for chapter in range(chapters):
                for number in range(30):
                    row = {
                        "book": "b",
                        "chapter_id": f"c{chapter}",
                        "paragraph": number,
                        "text": text,
                    }
                    file.write(json.dumps(row) + "\n")
        tracemalloc.start()
        for _ in open_source(f"jsonl:{path}"):
            pass
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(600) < 1.2 * peak(60)


def test_the_shared_novels_and_articles(discorpora_data: Path) -> None:
    novel = sorted((discorpora_data / "books").glob("*.jsonl"))[0]
    chapters = list(open_source(f"jsonl:{novel}"))
    assert {d.group for d in chapters} == {novel.stem}
    with novel.open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert [p for d in chapters for p in paragraphs(d)] == texts
    for article in open_source(f"jsonl:{discorpora_data / 'wiki' / 'articles.jsonl'}"):
        assert article.sections and article.url and article.title


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ([None, None], [0, 0]),
        ([4, None, 2], [4, -1, 2]),
        (["t1", "t2", None, "t1"], [0, 1, -1, 0]),
        ([7, "7", "x"], [0, 0, 1]),
    ],
)
def test_conversations_are_numbered(given: list[object], numbers: list[int]) -> None:
    from corpora.readers.layouts import _conversations

    assert _conversations([{"thread": value} for value in given], "thread") == numbers


def test_a_conversation_of_another_type_is_refused() -> None:
    from corpora.readers.layouts import _conversations
    from corpora.readers.source import Refused

    with pytest.raises(Refused, match="'thread'"):
        _conversations([{"thread": 1.5}], "thread")
