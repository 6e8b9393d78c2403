"""Prose: which sentences are some, where a lead ends, and quotation marks in pairs."""

from __future__ import annotations

import re

import pytest

from corpora.document import NO_CHAT, Document, Sections, Turns
from corpora.prose import (
    ends_in_punctuation,
    foreign_marks,
    lead,
    prose,
    style_bits,
)
from corpora.quotes import balance_quotes
from corpora.readers import open_source
from corpora.sentences import split_document

VERSE = (
    "The tide came up across the sand, And took the little boat away; It never came to any land, "
    "Nor was it seen another day."
)
PROSE = (
    "He read “The Tide And The Boat” to us, then A Song Of The Sea. And when he closed the book, "
    "the old man said: The boat is gone. In the end I believed in Him, and He knew it."
)


def test_verse_is_no_prose() -> None:
    """Two lines of a couplet, one sentence each: only together they tell."""
    couplet = ("We left the harbour and the town Before the sun was high.", *VERSE.split("; "))
    document = of(PROSE, VERSE, " ".join(couplet))
    texts = prose(document)
    assert [text for text in texts if text] == document.sentence_texts()[: len(PROSE.split(". "))]


def of(*paragraphs: str, **layers: object) -> Document:
    return split_document(Document("d", "\n\n".join(paragraphs), **layers))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained.", True),
        ("“Did it?”", True),
        ("(It rained.)", True),
        ("It rained in May.[3] [14]", True),
        ("He wrote three things:", True),
        ("I thought that --", True),
        ("雨が降った。", True),
        ("Early life", False),
        ("By Ann Bell", False),
        ("Ann Bell, University of the Coast", False),
        ("Friday, March 3, 2006", False),
        ("The old pier (2014)", False),
        ("Turnout: 54%", False),
        ("", False),
    ],
)
def test_a_sentence_ends_in_punctuation_a_heading_does_not(text, expected):
    assert ends_in_punctuation(text) is expected


def test_headings_captions_and_author_lines_are_no_prose():
    document = of(
        "The Pier",
        "By Ann Bell",
        "The pier is old. It burnt twice.",
        "Figure 2. The pier in May. Seen from the north.",
        "Figure 2 shows the pier. It stands (credit: Ann Bell)",
    )
    kept = [text for text in prose(document) if text]
    assert kept == ["The pier is old.", "It burnt twice.", "Figure 2 shows the pier."]
    assert len(prose(document)) == len(document.sentence_texts())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It closed in 1902.[8]", "It closed in 1902."),
        ("It closed [12] and opened [ 13 ] again. ([3])", "It closed and opened again."),
        ("It closed[a] for good.[citation needed]", "It closed for good."),
        ("It closed.[better source needed]", "It closed."),
        ("He gave it [the key] back.", "He gave it [the key] back."),
        ("The year [1902] was dry.", "The year [1902] was dry."),
    ],
)
def test_marks_of_notes_are_removed(written, read):
    assert [text for text in prose(of(written)) if text] == [read]


@pytest.mark.parametrize(
    "entry",
    ["5 Long Pier, built late.", "2. The pier is long.", "Ponta do Sol: a pier with lights."],
)
def test_entries_of_lists_are_no_prose(entry):
    kept = [
        text for text in prose(of(f"{entry} It is lit.", "It burnt: nobody knows why.")) if text
    ]
    assert kept == ["It burnt: nobody knows why."]


def test_turns_need_no_punctuation():
    turns = Turns(["a", "b"], [0, 0], [0, 8], [6, 14])
    assert prose(of("hi all", "hello a", turns=turns)) == ["hi all", "hello a"]
    turns.conversation = [-1, -1]  # a log without annotation
    assert prose(of("hi all", "hello a", turns=turns)) == ["hi all", "hello a"]
    turns.conversation = [NO_CHAT, NO_CHAT]  # an interview
    assert prose(of("hi all", "hello a", turns=turns)) == ["", ""]


def test_the_lead_ends_where_a_heading_is_a_bare_paragraph():
    paragraphs = ["The Pier", "The pier is old. It burnt.", "It was mended.", "History", "Ah. So."]
    article = of(*paragraphs)
    expected = ["The pier is old.", "It burnt.", "It was mended."]
    assert lead(article, article.sentence_texts()) == expected
    assert lead(article, prose(article)) == expected
    plain = of("It rained. It poured.", "It cleared.")
    assert lead(plain, prose(plain)) == plain.sentence_texts()


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        (["“It rained.", "It poured.", "We ran.”", "So."], ["“{}.”", "“{}.”", "“{}.”", "{}."]),
        (["“It rained,” he said, “and", "we ran.”"], ["“{},” he said, “{}”", "“{}.”"]),
        (["“It rained,” he said.", "“We ran.”"], ["“{},” {}.", "“{}.”"]),
        (["“It rained.", "We ran."], ["“{}.”", "“{}.”"]),  # the speech goes on in a new paragraph
        (["“It rained.", "He left.", "“We ran.”"], ["“{}.”", "{}.", "“{}.”"]),  # not closed
        (["He left.", "We ran.”"], ["{}.", "“{}.”"]),
        (['"It rained.', 'We ran," he said.'], ['"{}."', '"{}," {}.']),
        (['The board is 10" long.', "We ran."], ['{}10" long.', "{}."]),
        (["«It rained.", "We ran.»"], ["«{}.»", "«{}.»"]),
        (["„Es regnet.", "Wir gehen.“"], ["„{}.“", "„{}.“"]),
        (["``It rained.", "We ran.''"], ["``{}.''", "``{}.''"]),
        (["“He cried “Fire!” once.", "We ran.”"], ["“{} “{}!” {}.”", "“{}.”"]),
        (["‘It’s late,’ he said.", "We ran."], ["‘It’s late,’ {}.", "{}."]),
        (
            ["“He said, ‘Come.", "It rains.", "Run.’ So I ran.”"],
            ["“{}‘{}.’”", "“‘{}.’”", "“‘{}.’{}.”"],
        ),
        (["“She cried ‘Fire!” and ran.", "We ran."], ["“{}‘Fire!’” {}.", "{}."]),
        (
            ["“The boys’ house,” he said, “‘Oak Lodge.", "It’s old.’”"],
            ["“{},” {}, “‘{}.’”", "“‘{}.’”"],
        ),
        (["“I told ‘em so.", "They went.”"], ["“I told ‘em so.”", "“{}.”"]),
    ],
)
def test_each_sentence_gets_its_own_pair_of_marks(paragraph, expected):
    result = balance_quotes(paragraph)
    for text, form in zip(result, expected, strict=True):
        pattern = r"[^“”„«»`\"]*".join(map(re.escape, form.split("{}")))
        assert re.fullmatch(pattern, text), (text, form)
    assert balance_quotes(result) == result
    assert [balance_quotes([text])[0] for text in result] == result


def test_balanced_novels_have_no_mark_without_a_partner(discorpora_data):
    """Read in any order: a closing mark never comes first, and none stays open."""
    books = sorted((discorpora_data / "books").glob("*.jsonl"))[3:5]
    marks = 0
    for book in books:
        options = {"layout": "paragraph", "group": "book", "id": "chapter_id"}
        for document in open_source(f"jsonl:{book}", options):
            for text in prose(split_document(document), "balance"):
                found = re.findall("[“”]", text or "")
                marks += len(found)
                depth = 0
                for mark in found:
                    depth += 1 if mark == "“" else -1
                    assert depth >= 0, text
                assert depth == 0, text
    assert marks > 1000


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (["Ann rose.", "She replied:", "“It rained.”"], ["Ann rose.", "She replied: “It rained.”"]),
        (["She said—", "“It rained.”", "We ran."], ["She said— “It rained.”", "We ran."]),
        (["“He said:", "“‘It rained.’”"], ["“He said: ‘It rained.’”"]),
        (["He read:", "She said:—", "“No.”"], ["He read: She said:— “No.”"]),
        (["“If you would—”", "She rose."], ["“If you would—”", "She rose."]),
        (["We ran.", "He read:"], ["We ran.", ""]),
        (["He read:", "Figure 1: A pier.", "We ran."], ["", "", "We ran."]),
    ],
)
def test_what_announces_the_next_sentence_is_a_part_of_it(sentences, expected):
    assert [text for text in prose(of(*sentences), "balance") if text is not None] == expected


def test_what_a_section_announces_is_not_in_the_next_one():
    text = "We read:\n\nThe pier is old."
    sections = Sections(["Harbour", "Pier"], [1, 1], [0, 10], [8, 26])
    document = split_document(Document("d", text, sections=sections))
    assert prose(document) == ["", "The pier is old."]


@pytest.mark.parametrize(
    ("sentence", "is_prose"),
    [
        ("Old Harbour Tours, Pier Street 6, ☏ +45 12345, ✉ ann@harbour.org.", False),
        ("The office answers at ann@harbour.org.", False),
        ("See www.harbour.org for the times of the boats.", False),
        ("The ferry office, tel: 555 12 34.", False),
        ("The ferry office is at 944-3737.", False),
        ("The ferry ran from 1914-1918 only.", True),
        ("Statue of Ann Bell.", False),
        ("The Keeper of the Pier.", False),
        ("Ann Bell, March 16, 1897.", False),
        ("7 Pier Street.", False),
        ("Go on, Ann Bell.", True),
        ("Ann Bell slept.", True),
        ("Ann Bell!", True),
        ("“Dear Ann Bell.”", True),
        ("Only Ann.", True),
        ("Bell (the keeper slept.", False),
        ("It rained [for days.", False),
        ("It rained (for days).", True),
    ],
)
def test_pieces_titles_and_entries_of_directories_are_not_prose(sentence, is_prose):
    assert prose(of("It rained.", sentence)) == ["It rained.", sentence if is_prose else ""]


@pytest.mark.parametrize(
    ("intruder", "text", "tells"),
    [
        ("It's late.", "He’s here.", True),
        ("It’s late.", "He's here.", True),
        ("It's late.", "He’s here. It's not.", False),
        ("It's late.", "No mark is here.", False),
        ("It is late.", "He’s here.", False),
        ('"Late," he said.', "“Here,” she said.", True),
        ('"Late," he said.', "He’s here.", False),
        ("Late -- he said", "Here — she said", True),
        ("Late...", "Here…", True),
        ("Late. . .", "Here...", False),
    ],
)
def test_marks_that_only_another_typesetter_uses(intruder, text, tells):
    assert bool(style_bits(intruder) & foreign_marks(style_bits(text))) == tells
