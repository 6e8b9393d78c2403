"""Explicit relations in PDTB-3 and DISRPT: read back, they are the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corpora.document import Document, Span, Spans
from corpora.errors import DiscorporaError, InputError
from corpora.readers import open_source
from corpora.readers.disrpt import read_disrpt
from corpora.readers.pdtb import read_gold
from extract.connectives import Connective, load_model
from extract.discourse import ExplicitRelation, ParsedText
from extract.formats import CORPUS, LABELS, RELS, file_name, new_writer
from extract.parse import NAMES, ParsedDocument, StringTable

TEXT = (
    "If the kiln | cools, then the glaze cracks. (b) Vera waited[2] because it rained.\n\n"
    "However, she couldn't stay."
)
UNREAD = ("(b)", "[2]")


def spans_of(text: str, *parts: str) -> tuple[Span, ...]:
    """The spans of parts that follow each other in a text."""
    spans, at = [], 0
    for part in parts:
        start = text.index(part, at)
        at = start + len(part)
        spans.append((start, at))
    return tuple(spans)


SENTENCES = spans_of(TEXT, *re.split(r"(?<=[.])\s+", TEXT))


def parse_of(text: str, sentences: Sequence[Span]) -> ParsedDocument:
    """Flat trees: the first word of a sentence is its root. Labels and notes are not read."""
    table = StringTable()
    starts, ends, heads, offsets = [], [], [], [0]
    for begin, end in sentences:
        first = len(starts)
        for match in re.finditer(r"\(b\)|\[2\]|n't|\w+?(?=n't)|\w+|[^\w\s]", text[begin:end]):
            if match[0] not in UNREAD:
                heads.append(first if len(starts) > first else -1)
                starts.append(begin + match.start())
                ends.append(begin + match.end())
        offsets.append(len(starts))
    forms = table.codes(text[a:b] for a, b in zip(starts, ends, strict=True))
    columns = {name: table.codes(["X"] * len(starts)) for name in NAMES} | {"form": forms}
    numbers = (np.arange(len(sentences)), offsets, starts, ends, heads)
    return ParsedDocument("", table, *(np.array(n, dtype=np.int32) for n in numbers), **columns)


def relation(
    parse: ParsedDocument,
    text: str,
    sense: str,
    marks: tuple[Span, ...],
    arg1: tuple[Span, ...],
    arg2: tuple[Span, ...],
) -> ExplicitRelation:
    starts = parse.start.tolist()
    tokens = tuple(token for token, at in enumerate(starts) if any(a <= at < b for a, b in marks))
    return ExplicitRelation(
        Connective("", 0, tokens, marks, text, "x", 0.9, sense, 0.8), arg1, arg2
    )


@pytest.fixture
def parsed() -> ParsedText:
    parse = parse_of(TEXT, SENTENCES)
    if_arg, then_arg = spans_of(TEXT, "the kiln | cools", "the glaze cracks")
    fog, rain = spans_of(TEXT, "Vera waited[2]", "it rained")
    relations = [
        relation(
            parse,
            "if ... then",
            "Contingency.Condition",
            spans_of(TEXT, "If", "then"),
            (then_arg,),
            (if_arg,),
        ),
        relation(parse, "because", "Contingency.Cause", spans_of(TEXT, "because"), (fog,), (rain,)),
        relation(
            parse,
            "however",
            "Comparison.Concession",
            spans_of(TEXT, "However"),
            (),
            spans_of(TEXT, "she", "n't stay"),
        ),
    ]
    sentences = Spans(*map(list, zip(*SENTENCES, strict=True)))
    document = Document("kilns/1.txt", TEXT, source="text:kilns", sentences=sentences)
    return ParsedText(document, parse, relations)


def written(parsed: ParsedText, folder: Path, format: str) -> tuple[Path, dict[str, int]]:
    output = folder / "out"
    with new_writer(output, format) as writer:
        writer.write(parsed)
    return output, dict(writer.left_out)


def test_pdtb_reads_back_the_same_relations(parsed: ParsedText, tmp_path: Path) -> None:
    output, left_out = written(parsed, tmp_path, "pdtb")
    (document,) = read_gold(output)
    assert (document.id, document.text) == (file_name("kilns/1.txt"), TEXT)
    assert file_name("kilns/1.txt") == "kilns%2F1%2Etxt"
    expected = [r.to_relation() for r in parsed.relations]
    for one, other in zip(document.relations or [], expected, strict=True):
        assert (one.kind, one.connective, one.senses) == (
            "Explicit",
            other.connective,
            other.senses,
        )
        assert one.connective_spans == other.connective_spans
        assert (one.arg1_spans, one.arg2_spans) == (other.arg1_spans, other.arg2_spans)
    lines = (output / "gold" / "00" / "kilns%2F1%2Etxt").read_text().splitlines()
    assert [line.count("|") for line in lines] == [33] * 3
    assert lines[0].startswith("Explicit|0..2;21..25||||||if then|Contingency.Condition|")
    assert not left_out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The tide fell.\r\nWe left.", "U+000D at offset 14"),
        ("\ufeffThe tide.", "U+FEFF at offset 0"),
    ],
)
def test_pdtb_refuses_what_readers_would_not_count(text: str, reason: str, tmp_path: Path) -> None:
    document = Document("tide", text, source="jsonl:tides.jsonl", sentences=Spans([0], [4]))
    with pytest.raises(InputError, match=re.escape(f"tides.jsonl: document 'tide': {reason}")):
        written(ParsedText(document, parse_of(text, [(0, 4)]), []), tmp_path, "pdtb")
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_way_stays(parsed: ParsedText, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    with pytest.raises(DiscorporaError, match="in the way"):
        written(parsed, tmp_path, "disrpt")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "notes"]


def test_an_id_too_long_for_a_file_is_refused() -> None:
    with pytest.raises(InputError, match="270 bytes, at most 255"):
        file_name("é" * 135)


def test_disrpt_reads_back_the_same_relations(parsed: ParsedText, tmp_path: Path) -> None:
    output, left_out = written(parsed, tmp_path, "disrpt")
    (document,) = read_disrpt(str(output))
    assert (document.id, document.text) == ("kilns/1.txt", TEXT)

    def texts(spans: Sequence[Span]) -> list[str]:
        return [document.text[start:end] for start, end in spans]

    first, then, because, however = document.relations or []
    assert texts(first.connective_spans) == ["If"] and texts(then.connective_spans) == ["then"]
    assert texts(first.arg1_spans) == ["the glaze cracks"]
    assert texts(first.arg2_spans)[0].startswith("the kiln | cools")
    assert texts(because.arg1_spans) == ["Vera waited[2]"]
    assert texts(because.arg2_spans) == ["it rained"]
    assert first.senses == ("contingency.condition",) and because.senses == ("contingency.cause",)
    assert however.connective == "however" and not however.arg2_spans
    assert left_out == {"relation without an argument: not in .rels": 1}


def test_the_files_of_disrpt(parsed: ParsedText, tmp_path: Path) -> None:
    output, _ = written(parsed, tmp_path, "disrpt")
    header, condition, cause = (output / f"{CORPUS}.rels").read_text().splitlines()
    assert header.split("\t") == list(RELS)
    row = dict(zip(RELS, cause.split("\t"), strict=True))
    assert (row["unit1_toks"], row["unit2_toks"]) == ("13-15", "16-18")
    assert row["unit1_txt"] == "Vera waited [2]" and row["u1_raw"] == "Vera waited[2]"
    assert row["u2_raw"] == "because it rained" and row["unit2_sent"] == row["unit1_sent"]
    assert (row["dir"], row["rel_type"], row["label"]) == ("1<2", "explicit", "causal")
    # A connective in two parts is in the unit of Arg2, with a gap.
    row = dict(zip(RELS, condition.split("\t"), strict=True))
    assert row["unit1_txt"] == "If the kiln | cools , then"
    assert (row["unit1_toks"], row["unit2_toks"], row["dir"]) == ("1-7", "8-10", "1>2")
    tok = [line.split("\t") for line in (output / f"{CORPUS}.tok").read_text().splitlines()[1:-1]]
    assert [row[0] for row in tok] == [str(number) for number in range(1, len(tok) + 1)]
    assert [row[1] for row in tok if row[9] != "Conn=O"] == ["If", "then", "because", "However"]
    (document,) = open_source(f"conllu:{output / CORPUS}.conllu")
    assert document.text == TEXT and len(document.sentences or ()) == 3
    assert document.tokens is not None and document.tokens.form[11:15] == [
        "(b)",
        "Vera",
        "waited",
        "[2]",
    ]


def test_words_that_share_a_span_are_a_multiword_token(tmp_path: Path) -> None:
    text = "Voy al mar."
    parse = parse_of("Voy a l mar.", [(0, 12)])
    for name, values in (("start", [0, 4, 4, 7, 10]), ("end", [3, 6, 6, 10, 11])):
        getattr(parse, name)[:] = values
    document = Document("mar", text, sentences=Spans([0], [len(text)]))
    output, _ = written(ParsedText(document, parse, []), tmp_path, "disrpt")
    lines = (output / f"{CORPUS}.conllu").read_text().splitlines()
    assert "2-3\tal\t_\t_\t_\t_\t_\t_\t_\t_" in lines
    (document,) = open_source(f"conllu:{output}")
    assert document.text == text and document.tokens is not None
    assert document.tokens.form == ["Voy", "a", "l", "mar", "."]


def test_every_sense_has_a_label_of_disrpt() -> None:
    assert set(load_model().senses) <= set(LABELS)


def test_a_sentence_that_was_not_parsed_keeps_its_words(tmp_path: Path) -> None:
    parse = parse_of(TEXT, (SENTENCES[0], SENTENCES[2]))
    parse.sentence[:] = (0, 2)
    sentences = Spans(*map(list, zip(*SENTENCES, strict=True)))
    parsed = ParsedText(Document("kilns", TEXT, sentences=sentences), parse, [])
    output, _ = written(parsed, tmp_path, "disrpt")
    (document,) = open_source(f"conllu:{output}")
    assert document.text == TEXT and document.tokens is not None
    assert document.tokens.offsets == [0, 11, 17, 24]
    assert document.tokens.deprel[12:17] == ["dep"] * 5
