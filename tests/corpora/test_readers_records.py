"""Records of JSON Lines and Parquet: layouts and roles."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.errors import BadRecord, ConfigError, InputError
from corpora.readers import open_source
from corpora.readers.records import conversation_numbers
from corpora.readers.source import without_folder
from tests.corpora.conftest import paragraphs, write_jsonl

FIXTURES = Path(__file__).resolve().parent.parent / "data" / "readers"


def test_a_novel_has_a_document_a_chapter_and_a_group_a_book():
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


@pytest.mark.parametrize(
    ("record", "options"),
    [
        ({"abstract": "We sail."}, {"text": "abstract"}),
        ({"abstract": "We sail."}, {"text": "abstract", "layout": "article"}),
        ({"abstract": ["We sail."]}, {"paragraphs": "abstract"}),
        ({"text": "We sail."}, {"abstract": "text"}),
    ],
)
def test_a_field_of_two_roles_is_read_once(
    tmp_path: Path, record: dict[str, object], options: dict[str, str]
) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", record)
    assert [document.text for document in open_source(str(path), options)] == ["We sail."]


@pytest.mark.parametrize("field", ["sections", "sentences", "paragraphs"])
def test_an_empty_list_leaves_the_text(tmp_path: Path, field: str) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", {"id": "a", field: [], "text": "One.\n\nTwo."})
    (document,) = open_source(f"jsonl:{path}")
    assert paragraphs(document) == ["One.", "Two."] and document.sentences is None


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
    (document,) = open_source(f"jsonl:{path}", {**options, "licence": "MIT"})
    assert (document.id, document.group, document.language) == ("7", "w", "fr")
    assert document.licence == "CC0-1.0"
    assert len(paragraphs(document)) == 2


@pytest.mark.parametrize(
    ("record", "layout"),
    [
        ({"id": "a", "messages": [{"from": "ida", "body": "Hello."}]}, "turns"),
        ({"from": "ida", "body": "Hello."}, "document"),
        ({"from": "ida", "body": "Hello.", "doc": ""}, "turns"),
    ],
)
def test_a_text_under_another_name_is_asked_for(
    tmp_path: Path, record: dict[str, object], layout: str
) -> None:
    path = write_jsonl(tmp_path / "x.jsonl", record)
    with pytest.raises(InputError, match=r"no field 'text', only from, body.*the option text"):
        list(open_source(f"jsonl:{path}", {"layout": layout}))
    (document,) = open_source(f"jsonl:{path}", {"layout": layout, "text": "body"})
    assert document.text == "Hello."


@pytest.mark.parametrize("field", ["license", "licence"])
def test_a_licence_that_is_not_known_is_found_at_its_record(tmp_path: Path, field: str) -> None:
    written = ["CC BY 4.0", "Public Domain", "Other", None, "rail-7", "cc-by-sa"]
    records = [{"id": n, "text": "It rained.", field: name} for n, name in enumerate(written)]
    spec = f"jsonl:{write_jsonl(tmp_path / 'x.jsonl', *records)}"
    bad: list[BadRecord] = []
    found = open_source(spec, {"licence": "mit"}, on_bad=bad.append)
    assert [document.licence for document in found] == ["CC-BY-4.0", "PDM-1.0", "unknown", "MIT"]
    assert [record.where.partition(": ")[0] for record in bad] == [
        f"{tmp_path / 'x.jsonl'}:{line}" for line in (5, 6)
    ]
    assert bad[0].reason.startswith("bad licence: 'rail-7' is not known: with replace_licences")
    assert "did you mean 'cc-by-sa-4.0'" in bad[1].reason
    # The way out that the message names.
    replaced = open_source(spec, {"licence": "mit", "replace_licences": "true"})
    assert {document.licence for document in replaced} == {"MIT"}
    with pytest.raises(ConfigError, match="no licence 'rail-7'"):
        open_source(spec, {"licence": "rail-7"})


def test_files_that_number_their_documents_alike_are_told_apart(tmp_path: Path) -> None:
    for name in ("east", "west"):
        rows = [{"id": 0, "text": f"It rained in the {name}."}, {"id": 1, "text": "It stopped."}]
        write_jsonl(tmp_path / f"{name}.jsonl", *rows)
    with pytest.raises(InputError, match="two documents have the id '0'") as caught:
        list(open_source(f"jsonl:{tmp_path}"))
    assert 'id_prefix = "{file}/"' in caught.value.hint
    found = list(open_source(f"jsonl:{tmp_path}", {"id_prefix": "{file}/"}))
    assert [document.id for document in found] == ["east/0", "east/1", "west/0", "west/1"]
    assert found[0].group == "east/0"
    with pytest.raises(ConfigError, match=r"unknown placeholder \{files\}"):
        open_source(f"jsonl:{tmp_path}", {"id_prefix": "{files}/"})
    (first, _) = open_source(f"jsonl:{tmp_path / 'west.jsonl'}", {"id_prefix": "news-"})
    assert first.id == "news-0"


def test_a_document_that_comes_back_names_its_line(tmp_path: Path) -> None:
    rows = [{"document": d, "paragraph": 1, "text": "Text."} for d in ("a", "b", "a")]
    path = write_jsonl(tmp_path / "x.jsonl", *rows)
    with pytest.raises(InputError, match=r"x\.jsonl:3: document 'a' comes back"):
        list(open_source(f"jsonl:{path}"))


def test_rows_of_one_document_are_told_the_layout(tmp_path: Path) -> None:
    """A table with a paragraph a row, and no column that says so."""
    rows = [{"doc": "a", "text": "One."}, {"doc": "a", "text": "Two."}, {"doc": "b", "text": "B."}]
    path = write_jsonl(tmp_path / "x.jsonl", *rows)
    with pytest.raises(InputError, match='layout = "paragraph"'):
        list(open_source(f"jsonl:{path}"))
    read = open_source(f"jsonl:{path}", {"layout": "paragraph"})
    assert [document.text for document in read] == ["One.\n\nTwo.", "B."]


def test_flat_turns_of_a_chat_are_told_the_layout(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"role": "user", "content": "It rained."}, {"role": "tool", "content": "It did."}]
    path = write_jsonl(tmp_path / "x.jsonl", *rows)
    assert len(list(open_source(str(path)))) == 2 and 'layout = "turns"' in caplog.text
    path = write_jsonl(tmp_path / "x.jsonl", *({"id": "a", **row} for row in rows))
    with pytest.raises(InputError, match='turns of a conversation: layout = "turns"'):
        list(open_source(str(path)))
    (chat,) = open_source(str(path), {"layout": "turns"})
    assert chat.turns is not None and chat.turns.speaker == ["user", "tool"]


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
    assert [b.reason.partition(":")[0] for b in bad] == ["not JSON", "not JSON"]
    assert [b.where.rpartition(":")[2] for b in bad if "(document 'a'" in b.reason] == ["2"]


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

    assert peak(150) < 1 << 20  # of a file of 5 MB


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
        ([1234567890123, None, 7], [0, -1, 1]),
    ],
)
def test_conversations_are_numbered(given: list[int | str | None], numbers: list[int]) -> None:
    assert conversation_numbers(given) == numbers


@pytest.mark.parametrize("options", [{}, {"text": "said"}])
def test_the_fields_of_turns_are_found_in_the_turns(tmp_path: Path, options: dict) -> None:
    field = options.get("text", "content")
    turns = [
        {"nick": "ida", "thread": 1, field: "Hello."},
        {"nick": "bo", "thread": 2, field: "No."},
    ]
    path = write_jsonl(tmp_path / "log.jsonl", {"id": "a", "messages": turns})
    (document,) = open_source(f"jsonl:{path}", options)
    assert document.turns is not None and paragraphs(document) == ["Hello.", "No."]
    assert (document.turns.speaker, document.turns.conversation) == (["ida", "bo"], [1, 2])


@pytest.mark.parametrize("turn", [5, None, "Hello."])
def test_a_turn_that_is_no_object_is_refused(tmp_path: Path, turn: object) -> None:
    path = write_jsonl(tmp_path / "log.jsonl", {"turns": [turn]})
    with pytest.raises(InputError, match=r"log\.jsonl:1: .*'turns\.0' is .*, expected an object"):
        list(open_source(f"jsonl:{path}"))


def test_a_gap_of_a_table_is_no_text(tmp_path: Path) -> None:
    gap = float("nan")  # as json.dumps and pandas write a value that is not there
    rows = [{"id": n, "text": "Hello.", "group": gap, "title": gap} for n in "ab"]
    path = write_jsonl(tmp_path / "x.jsonl", *rows, {"id": "c", "text": gap})
    bad: list[BadRecord] = []
    found = list(open_source(f"jsonl:{path}", on_bad=bad.append))
    assert [(d.id, d.group, d.title) for d in found] == [("a", "a", ""), ("b", "b", "")]
    assert [record.where for record in bad] == [f"{path}:3"]


def test_a_place_loses_its_folder_and_no_word_of_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").mkdir()
    said = f"no folder {tmp_path}: {tmp_path}/x.jsonl"
    assert without_folder(str(tmp_path), said) == "no folder : x.jsonl"
    assert without_folder("text", "text/mytext/x.jsonl:3: no text: there is none") == (
        "mytext/x.jsonl:3: no text: there is none"
    )


def test_a_conversation_of_another_type_is_refused(tmp_path: Path) -> None:
    turns = [{"speaker": "ida", "text": "Hello.", "thread": 1.5}]
    with pytest.raises(InputError, match=r"log\.jsonl:1: .*field 'thread' is a number"):
        list(open_source(f"jsonl:{write_jsonl(tmp_path / 'log.jsonl', *turns)}"))


def test_parquet_reads_what_jsonl_reads(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "title": "I", "text": "First.\n\nSecond.", "tags": ["x", "y"], "n": 1},
        {"id": "b", "title": None, "text": "Third.", "tags": [], "n": 2},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=1)
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"categories": "tags", "name": "x", "licence": "CC0-1.0"}
    found = list(open_source(str(tmp_path / "x.parquet"), options))
    assert found == list(open_source(str(tmp_path / "x.jsonl"), options))
    assert (found[0].categories, paragraphs(found[0])) == (("x", "y"), ["First.", "Second."])


def test_parquet_has_the_layouts_of_jsonl(tmp_path: Path) -> None:
    rows = [
        {"book": "b", "chapter_id": "b/1", "text": "One."},
        {"book": "b", "chapter_id": "b/1", "text": "Two."},
        {"book": "b", "chapter_id": "b/2", "text": "Three."},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    first, second = open_source(f"parquet:{tmp_path}")
    assert (first.id, paragraphs(first), second.group) == ("b/1", ["One.", "Two."], "b")


LONG_TEXT = "The ferry left late because of the storm, and nobody on board had slept well. "


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("record", "options", "unread"),
    [
        ({"body": LONG_TEXT * 9, "abstract": LONG_TEXT}, {}, "'body'"),
        ({"text": LONG_TEXT, "reply": [LONG_TEXT], "note": "short"}, {}, "'reply'"),
        ({"text": LONG_TEXT, "content": LONG_TEXT, "b": {"c": LONG_TEXT}}, {}, "'b' and 'content'"),
        ({"text": LONG_TEXT, "body": LONG_TEXT}, {"text": "text"}, ""),
        ({"body": LONG_TEXT, "abstract": LONG_TEXT}, {"abstract": "abstract"}, ""),
        ({"text": LONG_TEXT * 9, "summary": LONG_TEXT, "title": LONG_TEXT}, {}, ""),
        ({"text": LONG_TEXT, "keywords": "ferry, storm"}, {}, ""),
    ],
)
def test_long_texts_that_no_role_reads_are_named(
    kind: str,
    record: dict[str, object],
    options: dict[str, str],
    unread: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = [record] * 12
    for name in ("a", "b"):
        if kind == "jsonl":
            write_jsonl(tmp_path / f"{name}.jsonl", *records)
        else:
            pq.write_table(pa.Table.from_pylist(records), tmp_path / f"{name}.parquet")
    with caplog.at_level("WARNING", logger="discorpora"):
        documents = list(open_source(f"{kind}:{tmp_path}", options))
    assert len(documents) == 24
    assert len(caplog.messages) == bool(unread)  # one for both files
    if unread:
        assert f"of {unread};" in caplog.text and 'option text = "' in caplog.text


def test_the_speaker_of_a_message_is_its_name_or_role(tmp_path: Path) -> None:
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "name": "Ann", "content": "It rained."},
        {"role": "user", "name": None, "content": "We left."},
    ]
    path = write_jsonl(tmp_path / "chat.jsonl", {"id": "a", "messages": messages})
    for options, expected in (({}, ["system", "Ann", "user"]), ({"speaker": "role"}, None)):
        (chat,) = open_source(f"jsonl:{path}", options)
        assert chat.turns is not None
        assert chat.turns.speaker == (expected or ["system", "user", "user"])
    for key in ("user", "author"):
        turns = [{key: name, "text": "It rained."} for name in ("Ann", "Bob")]
        write_jsonl(path, {"id": "a", "turns": turns})
        (chat,) = open_source(f"jsonl:{path}")
        assert chat.turns is not None and chat.turns.speaker == ["Ann", "Bob"]
    named = [{"name": "emma", "text": "It rained."}, {"name": "saki", "text": "We left."}]
    write_jsonl(path, *named)
    assert [document.turns for document in open_source(f"jsonl:{path}")] == [None, None]
    (chat,) = open_source(f"jsonl:{path}", {"layout": "turns"})
    assert chat.turns is not None and chat.turns.speaker == ["emma", "saki"]
