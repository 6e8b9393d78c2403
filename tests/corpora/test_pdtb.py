from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpora.align import align
from corpora.document import Document, Relation
from corpora.errors import BadRecord, InputError
from corpora.readers import open_source
from corpora.readers.pdtb import Pdtb, parse_rows, parse_spans, read_gold

FIXTURES = Path(__file__).parent.parent / "data" / "validate"
FORMATS = ("pdtb3", "pdtb2_pipe", "pdtb2_blocks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PDTB-3 folder that a test may spoil."""
    return shutil.copytree(FIXTURES / "pdtb3", tmp_path / "pdtb3")


def read(folder: Path) -> tuple[dict[str, Document], list[BadRecord]]:
    bad: list[BadRecord] = []
    return {document.id: document for document in read_gold(folder, on_bad=bad.append)}, bad


def words(document: Document, relation: Relation) -> tuple[str, ...]:
    parts = (relation.connective_spans, relation.arg1_spans, relation.arg2_spans)
    return tuple(" ... ".join(document.text[a:b] for a, b in spans) for spans in parts)


def add_line(folder: Path, line: str) -> int:
    """Append a line to the ferry's gold; returns its number."""
    path = folder / "gold" / "00" / "ferry"
    path.write_text(path.read_text() + line + "\n")
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_relations(form: str) -> None:
    documents, bad = read(FIXTURES / form)
    assert not bad and list(documents) == ["ferry", "market"]
    ferry = documents["ferry"]
    assert ferry.text == (FIXTURES / form / "raw" / "00" / "ferry").read_text()
    assert ferry.relations is not None
    explicit = [relation for relation in ferry.relations if relation.kind == "Explicit"]
    assert [relation.connective for relation in explicit] == [
        *("because", "although", "if then", "even though", "and", "and")
    ]
    assert words(ferry, explicit[0]) == ("because", "The ferry was late", "the fog had come in")
    assert explicit[0].senses == ("Contingency.Cause.Reason",)
    assert words(ferry, explicit[2]) == ("If ... then", "the crew would sail", "the wind rose")


@pytest.mark.parametrize("form", FORMATS)
def test_the_other_kinds_and_discontinuous_arguments(form: str) -> None:
    documents, _ = read(FIXTURES / form)
    ferry, market = documents["ferry"].relations or [], documents["market"].relations or []
    implicit = next(relation for relation in ferry if relation.kind == "Implicit")
    assert (implicit.connective, implicit.connective_spans) == ("meanwhile", ())
    assert any(relation.kind == "EntRel" for relation in ferry)
    altlex = next(relation for relation in market if relation.kind == "AltLex")
    assert words(documents["market"], altlex)[0] == "grew"
    assert words(documents["market"], market[-1])[1] == "He went home ... when the bells rang"


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_connective_span_is_kept(form: str) -> None:
    documents, _ = read(FIXTURES / form)
    empty = [r for r in documents["ferry"].relations or [] if not r.connective_spans]
    assert [r.connective for r in empty if r.kind == "Explicit"] == ["and"]


def test_only_the_documents_asked_for() -> None:
    assert [d.id for d in read_gold(FIXTURES / "pdtb3", ids={"market", "elsewhere"})] == ["market"]


def test_a_relation_knows_its_line() -> None:
    documents, _ = read(FIXTURES / "pdtb3")
    assert [Path(r.where).name for r in documents["ferry"].relations or []][:2] == [
        "ferry:1",
        "ferry:2",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Explicit|1..2|x", "wrong number of fields: 3 separated by"),
        ("Explicit|1..2||||||so|Cause||||||0..9999||||||3..4||||||||||||||", "outside of the text"),
        ("Explicit|1-2||||||so|Cause||||||0..9||||||3..4|||||||||||||", "not START..END"),
        ("Explicit|7..2||||||so|Cause||||||0..9||||||3..4|||||||||||||", "ends before it starts"),
        ("Explizit|1..2||||||so|Cause||||||0..9||||||3..4|||||||||||||", "unknown relation type"),
    ],
)
def test_a_bad_row_is_left_out_with_its_place(folder: Path, line: str, reason: str) -> None:
    whole, _ = read(folder)
    if "outside" in reason:
        line = line[:-1]
    number = add_line(folder, line)
    documents, bad = read(folder)
    assert documents["ferry"].relations == whole["ferry"].relations
    assert len(bad) == 1 and reason in bad[0].reason
    assert bad[0].where.endswith(f"ferry:{number}")
    with pytest.raises(InputError, match=f"ferry:{number}"):
        list(read_gold(folder))


def test_a_pdtb2_relation_without_its_second_argument(tmp_path: Path) -> None:
    folder = shutil.copytree(FIXTURES / "pdtb2_blocks", tmp_path / "pdtb2")
    path = folder / "gold" / "00" / "market.pdtb"
    lines = path.read_text().splitlines()
    cut = len(lines) - 1 - lines[::-1].index("____Arg2____")
    path.write_text("\n".join(lines[:cut]))
    documents, bad = read(folder)
    assert len(documents["market"].relations or []) == 4
    assert "without its ____Arg2____" in bad[0].reason


def test_a_document_without_raw_text_is_left_out(folder: Path) -> None:
    (folder / "raw" / "00" / "ferry").unlink()
    documents, bad = read(folder)
    assert list(documents) == ["market"]
    assert bad[0].reason.startswith("no raw text: ") and bad[0].where.endswith("raw/00/ferry")


def test_a_missing_folder_says_what_was_expected(folder: Path) -> None:
    shutil.rmtree(folder / "raw")
    with pytest.raises(InputError, match=r"no files in '.*/raw'") as caught:
        list(read_gold(folder))
    assert "DIR/gold/SECTION/ID" in str(caught.value)
    with pytest.raises(InputError, match="no files in"):
        list(read_gold(folder / "nowhere"))


def test_an_empty_folder_and_a_document_twice(folder: Path) -> None:
    (folder / "gold" / "01").mkdir()
    shutil.copy(folder / "gold" / "00" / "ferry", folder / "gold" / "01" / "ferry.pipe")
    with pytest.raises(InputError, match="two files of the document"):
        list(read_gold(folder))
    shutil.rmtree(folder / "gold")
    (folder / "gold").mkdir()
    with pytest.raises(InputError, match="no files in"):
        list(read_gold(folder))


def test_bytes_that_are_not_utf8_name_their_place(folder: Path) -> None:
    raw = folder / "raw" / "00" / "ferry"
    raw.write_bytes(raw.read_bytes().replace(b"Even", b"Ev\xe9n"))
    documents, bad = read(folder)
    assert "ferry" not in documents
    assert bad[0].where.endswith("ferry:5")
    assert bad[0].reason.startswith("not UTF-8: byte 0xe9 at offset ")
    latin = {d.id: d for d in read_gold(folder, encoding="latin-1")}
    assert "Evén though" in latin["ferry"].text


def test_line_ends_and_byte_order_marks_change_nothing(folder: Path) -> None:
    plain, _ = read(folder)
    for path in Pdtb.find(str(folder)):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    documents, bad = read(folder)
    assert not bad
    assert documents["ferry"].relations == plain["ferry"].relations
    assert documents["ferry"].text == plain["ferry"].text


def test_offsets_that_count_both_characters_of_a_line_end(folder: Path) -> None:
    raw, gold = (folder / part / "00" / "market" for part in ("raw", "gold"))
    first, second = raw.read_text().splitlines()
    moved = "Explicit|63..67||||||when|Cause||||||50..62||||||68..82|||||||||||||"
    gold.write_text(moved + "\n")
    raw.write_bytes(f"{first}\r\n{second}\r\n".encode())
    market = read(folder)[0]["market"]
    assert words(market, (market.relations or [])[0])[0] == "when"


def test_spans_are_sorted_and_empty_ones_dropped() -> None:
    assert parse_spans("12..20; 3..9;5..5") == ((3, 9), (12, 20))
    assert parse_spans("") == ()


def test_the_real_gold_reads_whole_and_aligns_with_the_treebank(discorpora_data: Path) -> None:
    treebank = f"conllu:{discorpora_data / 'treebank' / 'en_gum'}"
    texts = {document.id: document.text for document in open_source(treebank)}
    read_so_far = 0
    for document in read_gold(discorpora_data / "gdtb", ids=texts.keys()):
        offsets = align(document.text, texts[document.id], where=document.id)
        assert offsets[-1] == len(texts[document.id])
        for relation in document.relations or []:
            under = words(document, relation)[0].replace(" ... ", " ").lower()
            assert relation.kind != "Explicit" or under == relation.connective
        read_so_far += 1
    assert read_so_far == len(texts)


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    *("____Explicit____", "____Arg1____", "____Arg2____", "____Implicit____"),
                    *("_" * 56, "#### Text ####", "##############", "#### Features ####"),
                    *("3..9", "0,1", "Wr, Comm, Null, Null", "so, Cause", "Explicit" + "|" * 33),
                ]
            ),
            st.text(max_size=40),
        ),
        max_size=30,
    )
)
def test_any_text_gives_rows_or_bad_records(lines: list[str]) -> None:
    for row in parse_rows("\n".join(lines), "gold"):
        assert isinstance(row, (Relation, BadRecord)) and re.fullmatch(r"gold:\d+", row.where)


def test_the_first_line_of_the_wall_street_journal_is_no_paragraph(folder: Path) -> None:
    raw = folder / "raw" / "00" / "market"
    text = raw.read_text()
    raw.write_text(f".START \n\n{text}")
    (folder / "gold" / "00" / "market").write_text("")
    market = next(d for d in open_source(f"pdtb:{folder}") if d.id == "market")
    assert market.paragraphs is not None
    assert market.text[market.paragraphs.start[0] :] == text


PROSE = "The kettle sang although nobody heard it.\nÉva left early, so the stove went cold.\n"
LINKS = (("although", "The kettle sang", "nobody heard it"), ("so", "Éva left early", "the stove"))


def annotator(
    folder: Path, text: str = PROSE, *, raw: str = "", named: bool = False, more: str = ""
) -> Path:
    """A folder of the PDTB Annotator for `LINKS`: offsets count `text`, and `raw` is written."""

    def span(part: str) -> str:
        return f"{text.index(part)}..{text.index(part) + len(part)}"

    rows = []
    for marker, one, two in LINKS:
        fields = {0: "Explicit", 1: span(marker), 8: "Contingency", 14: span(one), 20: span(two)}
        fields |= {7: marker if named else "", 32: "DEFAULT"}
        rows.append("|".join(fields.get(column, "") for column in range(34)))
    for part, content in (("ann", "\n".join(rows) + "\n" + more), ("raw", raw or text)):
        (folder / part / "01").mkdir(parents=True)
        (folder / part / "01" / "kitchen.txt").write_bytes(content.encode())
    return folder


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("lost", [False, True])
def test_what_the_offsets_count_is_told_from_the_words(
    tmp_path: Path, mark: str, end: str, named: bool, lost: bool
) -> None:
    counted = mark + PROSE.replace("\n", end)
    raw = PROSE if lost else counted
    documents, bad = read(annotator(tmp_path, counted, raw=raw, named=named))
    (kitchen,) = documents.values()
    assert not bad and kitchen.relations is not None and "\ufeff" not in kitchen.text
    assert [words(kitchen, relation) for relation in kitchen.relations] == list(LINKS)
    assert [relation.connective for relation in kitchen.relations] == ["although", "so"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marks_and_line_ends_in_the_file_that_no_offset_counts(tmp_path: Path, end: str) -> None:
    raw = "\ufeff" + PROSE.replace("\n", end)
    (kitchen,) = read(annotator(tmp_path, PROSE, raw=raw))[0].values()
    assert [words(kitchen, relation) for relation in kitchen.relations or []] == list(LINKS)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("place", ["although", "so the"])
def test_byte_order_marks_inside_a_text(tmp_path: Path, place: str, counted: bool) -> None:
    raw = PROSE.replace(place, f"\ufeff{place}")
    (kitchen,) = read(annotator(tmp_path, raw if counted else PROSE, raw=raw))[0].values()
    assert [words(kitchen, relation) for relation in kitchen.relations or []] == list(LINKS)


@pytest.mark.parametrize(
    ("columns", "spans", "name"),
    [
        (34, "0..2;17..21", "if then"),
        (27, "0..2;17..21", "if then"),
        (33, "17..22", "then"),
        (35, "17..21", "then"),
    ],
)
def test_an_explicit_relation_is_named_by_its_text(
    tmp_path: Path, columns: int, spans: str, name: str
) -> None:
    line = ["Explicit", spans, *[""] * 12, "3..15", *[""] * 5, "23..32"]
    folder = annotator(tmp_path, raw="If rain falls,   Then, we wait.\n")
    (folder / "ann" / "01" / "kitchen.txt").write_text("|".join(line + [""] * (columns - 21)))
    (relation,) = next(read_gold(folder)).relations or []
    assert relation.connective == name


@pytest.mark.parametrize(
    ("spans", "written", "name"),
    [
        ("0..5", "", "but"),
        ("0..5", "Null", "but"),
        ("16..20", "", "so"),
        ("0..3", "", ""),
        ("6..8", "", "we"),
    ],
)
def test_a_connective_has_no_quotes_and_whole_words(
    tmp_path: Path, spans: str, written: str, name: str
) -> None:
    line = [
        "Explicit",
        spans,
        *[""] * 5,
        written,
        *[""] * 6,
        "6..8",
        *[""] * 5,
        "9..13",
        *[""] * 13,
    ]
    folder = annotator(tmp_path, raw="“But, we wait.\n \ufeffso\ufeff we went.\n")
    (folder / "ann" / "01" / "kitchen.txt").write_text("|".join(line))
    (relation,) = next(read_gold(folder)).relations or []
    assert relation.connective == name


def test_rejected_and_nameless_relations(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = ["Explicit", *[""] * 33]
    rejected = "|".join([*row[:27], "Rejected", *row[28:31], "0..9999", "DEFAULT", ""])
    folder = annotator(tmp_path, more=f"{rejected}\n{'|'.join(row)}\n")
    skipped: Counter[str] = Counter()
    (kitchen,) = open_source(f"pdtb:{folder}", skipped=skipped)
    assert [relation.connective for relation in kitchen.relations or []] == ["although", "so", ""]
    assert skipped == {"relation marked as rejected": 1}
    assert "1 explicit relation without a connective" in caplog.text


def test_offsets_of_another_text_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = annotator(tmp_path, raw=f"Headline\n\n{PROSE}")
    assert len(list(read_gold(folder))) == 1
    assert "kitchen.txt, most explicit connectives are not at their offsets" in caplog.text
