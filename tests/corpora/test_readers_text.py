"""Plain text: what a user's files become."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from tests.corpora.conftest import paragraphs


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


def test_a_carriage_return_ends_a_line_where_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes(b"\xef\xbb\xbfIt rained.\rWe left.\r\rNobody spoke.\r")
    (document,) = open_source(str(path), {"layout": "lines"})
    assert paragraphs(document) == ["It rained. We left.", "Nobody spoke."]
    assert document.sentence_texts() == ["It rained.", "We left.", "Nobody spoke."]
    path.write_bytes(b"It rained.\r\rWe \xff left.\r")
    with pytest.raises(InputError, match=r"old\.txt:3: not UTF-8: byte 0xff at column 4"):
        list(open_source(str(path)))
    path.write_bytes(b"It\rrained.\nWe left.\n")
    assert [document.text for document in open_source(str(path))] == ["It\rrained. We left."]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Hyphens at line ends.
        ("They con-|tinued. It continued.", ["They continued. It continued."]),
        ("A two-|or three-year-|old lean-|to-go.", ["A two- or three-year-old lean-to-go."]),
        ("He left--|we ate - |and Anglo-|Irish.", ["He left-- we ate - and Anglo-Irish."]),
        (
            "In 1914-|18 a pre-|1900 boat of 20-|foot size.",
            ["In 1914-18 a pre-1900 boat of 20-foot size."],
        ),
        ("He left -|Ann ate--|5 pm.", ["He left - Ann ate-- 5 pm."]),
        ("A Neo\u2010|Gothic X\u2011|Ray con\u00ad|tinued.", ["A Neo-Gothic X-Ray continued."]),
        # Subtitles: a line with a dash is of another speaker.
        (
            "2|0:1 --> 0:2|It is|late.|- So?|–Go|on.",
            ["2 0:1 --> 0:2", "It is late.", "- So?", "–Go on."],
        ),
        ("He ate|- and left.", ["He ate - and left."]),
        # Quoted mail.
        ("Ann wrote:|> We sold|> it.|>|>> It leaks.|We did.", None),
        (">> We sold it.|>> It leaks.|We did.", ["We sold it. It leaks.", "We did."]),
        # Captions.
        (
            ">> Good evening. It|rained.|>> Did|it?|>> It did.|>>> NOW THE NEWS.",
            ["Good evening. It rained.", "Did it?", "It did.", "NOW THE NEWS."],
        ),
        ("It grew to|> 5 mm, <i>n</i>|> = 3.", ["It grew to > 5 mm, <i>n</i> > = 3."]),
        # Lines without a small letter.
        ("ALICE|It is late|THE GATE 17|for us.", ["ALICE", "It is late", "THE GATE 17", "for us."]),
        ("7|00:01,5 --> 00:03,0|It is late.", ["7 00:01,5 --> 00:03,0", "It is late."]),
        ("IN MEMORY OF|THE CREW", ["IN MEMORY OF THE CREW"]),
        ("He joined|NATO.", ["He joined NATO."]),
        ("他加入|NBA|队。", ["他加入 NBA 队。"]),
    ],
)
def test_lines_of_running_text(tmp_path: Path, lines: str, expected: list[str] | None) -> None:
    path = tmp_path / "a.txt"
    path.write_text(lines.replace("|", "\n"), encoding="utf-8")
    (document,) = open_source(str(path))
    expected = expected or ["Ann wrote:", "We sold it.", "It leaks.", "We did."]
    assert paragraphs(document) == expected
    kept = open_source(str(path), {"layout": "lines"})
    assert [d.text for d in kept] == [" ".join(map(str.strip, lines.split("|")))]


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
    with pytest.raises(ConfigError, match="needs the layout 'lines'"):
        list(open_source(str(path), {"document_lines": 2}))
    records = path.with_suffix(".jsonl")
    records.write_text('{"text": "It rained."}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="not 'document'"):
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
    whole = {
        "emma/01": "emma",
        "emma/02": "emma",
        "loose": "novels",
        "saki/tales/01": "saki/tales",
    }
    assert groups(novels) == whole
    (tmp_path / "[old]").symlink_to(tmp_path)
    assert groups(f"text:{tmp_path}/[old]/novels") == whole
    assert groups(f"{novels}/emma") == {"01": "emma", "02": "emma"}
    assert groups(f"{novels}/emma/01.txt") == {"01": "emma"}
    cut = groups(f"{novels}/emma", layout="lines", document_lines=1)
    assert set(cut.values()) == {"emma"} and len(cut) == 4
    by_file = groups(novels, group="file")
    assert by_file == {name: name for name in by_file}
    with pytest.raises(ConfigError, match=r"source text: group = 'foldr': did you mean 'folder'"):
        groups(novels, group="foldr")


def test_a_book_is_cut_at_its_headings(tmp_path: Path) -> None:
    path = tmp_path / "emma.txt"
    contents = "CHAPTER I\nCHAPTER II\n\n"
    book = f"Emma, a novel.\n\n{contents}CHAPTER I\n\nIt rained.\n\n  CHAPTER II  \nWe left.\n"
    path.write_text(book, encoding="utf-8")
    options = {"chapters": "CHAPTER [IVXLC]+"}
    documents = list(open_source(f"text:{path}", options))
    assert [(d.id, d.group, d.title, d.text) for d in documents] == [
        ("emma/0", "emma", "", "Emma, a novel."),
        ("emma/1", "emma", "CHAPTER I", "It rained."),
        ("emma/2", "emma", "CHAPTER II", "We left."),
    ]
    (whole,) = open_source(f"text:{path}", {"chapters": "PART .*"})
    assert whole.id == "emma/0" and "CHAPTER I" in whole.text
    path.write_text(contents, encoding="utf-8")
    with pytest.raises(InputError, match="no text"):
        list(open_source(f"text:{path}", options))
    with pytest.raises(ConfigError, match=r"'\(' is not a regular expression"):
        list(open_source(f"text:{path}", {"chapters": "("}))


def test_notes_and_styles_of_webvtt_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.vtt"
    note = "NOTE\nIt is bad, but\nit is short.\n\nSTYLE\n::cue { color: red }"
    path.write_text(
        f"WEBVTT Kind: film\nLanguage: en\n\n{note}\n\nopening\n0:01 --> 0:02\nWe left.\n"
    )
    (document,) = open_source(f"text:{path}")
    assert paragraphs(document) == ["0:01 --> 0:02", "We left."]


BOOK = "THE MILL\n\nThe wheel stopped.\n\nThe pond\nwas dry.\n\nIt rained.\n\nWe left."
HEAD = "The Project Gutenberg eBook of The Mill\n\nThis ebook is for the use of anyone anywhere in"
ABOUT = "Title: The Mill\n\nLanguage: English"
TERMS = "Updated editions will replace the previous one.\n\nYou can copy this eBook, not its name."
SMALL_PRINT = (
    "Title: Mill\n\n***START**THE SMALL PRINT!**\nYou know.\n\nWe disclaim it because we can."
)


@pytest.mark.parametrize(
    ("before", "after", "left_out"),
    [
        (
            f"{HEAD}\n\n{ABOUT}\n\n*** START OF THE PROJECT GUTENBERG EBOOK THE MILL ***",
            f"*** END OF THE PROJECT GUTENBERG EBOOK THE MILL ***\n\n{TERMS}",
            8,
        ),
        (
            "Any words.\n\n***START OF THIS PROJECT GUTENBERG EBOOK A\nMILL***\n\nProduced by Orr",
            "End of Project Gutenberg's The Mill, by Ann Orr\n\nThis file should be named mill.txt",
            5,
        ),
        (
            f"{HEAD}\n\n* * * START OF THE PROJECT GUTENBERG EBOOK THE MILL * * *\n\n"
            "Note: Project Gutenberg also has an HTML version, but it is large.",
            f"* * * END OF THE PROJECT GUTENBERG EBOOK THE MILL * * *\n\n{TERMS}",
            7,
        ),
        (f"{SMALL_PRINT}\n\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04*END*", "", 4),
        # Without the marks.
        (f"{HEAD}\n\n{ABOUT}", TERMS, 6),
        ("", "START: FULL LICENSE\n\nPlease read it, or leave it.", 2),
        ("", "1.E.8. You may charge for Project Gutenberg™ works, but not much.", 1),
    ],
)
def test_the_licence_of_project_gutenberg_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str, after: str, left_out: int
) -> None:
    path, skipped = tmp_path / "mill.txt", Counter[str]()
    whole = f"{before}\n\n{BOOK}\n\n{after}"
    path.write_text(whole, encoding="utf-8")
    (document,) = open_source(f"text:{path}", skipped=skipped)
    expected = [part.replace("\n", " ") for part in BOOK.split("\n\n")]
    assert paragraphs(document) == expected
    assert list(skipped.values()) == [left_out]
    assert f"left out {left_out} paragraph" in caplog.text
    records = path.with_suffix(".jsonl")
    records.write_text(json.dumps({"id": "mill", "text": whole}))
    assert [paragraphs(document) for document in open_source(str(records))] == [expected]


def test_two_books_in_one_file_and_a_text_about_project_gutenberg(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    start, end = (f"*** {mark} OF THE PROJECT GUTENBERG EBOOK ***" for mark in ("START", "END"))
    path.write_text(f"{start}\n\nOne.\n\n{end}\n\nTerms.\n\n{start}\n\nTwo.\n\n{end}\n\nTerms.")
    assert [document.text for document in open_source(str(path))] == ["One.\n\nTwo."]
    text = "He saw the\nend of Project Gutenberg.\n\nThe Project Gutenberg eBook of Emma is old."
    path.write_text(text)
    (document,) = open_source(str(path))
    assert document.text == text.replace("the\n", "the ")
    text = "Updated editions will replace the previous one.\n\nThe sea was calm.\n\nWe slept."
    path.write_text(f"{start}\n\n{text}\n\n{end}\n\n{TERMS}")
    assert [document.text for document in open_source(str(path))] == [text]
    path.write_text(f"{HEAD}\n\n{ABOUT}")
    with pytest.raises(InputError, match="no text: only Project Gutenberg's header or licence"):
        list(open_source(str(path)))
