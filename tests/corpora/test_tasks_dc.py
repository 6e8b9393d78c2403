"""DC: what is replaced and by what, pairs and splits, chat, that order changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.document import Document, Sections, Spans, Turns
from corpora.errors import InputError
from corpora.prose import passages_of
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.tasks.discoeval.chat import Nicknames, conversations, why_refused
from corpora.tasks.discoeval.dc import Dc
from tests.corpora import conftest


@pytest.fixture
def documents(make_document):
    topics = [("Rivers",), ("Clocks", "Towers"), ("Bread",), ()]
    return [make_document(f"d{i}", 14, 2, categories=topics[i % 4]) for i in range(80)]


@pytest.fixture
def built(build, documents):
    def built(name="x", documents=documents, **settings):
        return build("dc", documents, name, **settings)

    return built


def rows_of(folder: Path, config: str = "text") -> dict[str, list[dict]]:
    return conftest.rows_of(folder, config)


def chat(name: str, conversations: int, turns: int) -> Document:
    """A log in which the conversations take turns."""
    texts, of = [], []
    for i in range(turns):
        for c in range(conversations):
            texts.append(f"well {name} has shelf number {c * 100 + i} by the door")
            of.append(c)
    text = "\n\n".join(texts)
    spans = Spans()
    at = 0
    for said in texts:
        spans.add(at, at + len(said))
        at += len(said) + 2
    layer = Turns([f"nick{i % 3}" for i in range(len(texts))], of, spans.start, spans.end)
    document = Document(name, text, licence="CC-BY-4.0", paragraphs=spans, turns=layer)
    return document.with_sentences(spans)


def test_one_inner_sentence_is_replaced_by_one_of_a_document_of_the_same_split(built, documents):
    text = {document.id: " ".join(document.text.split()) for document in documents}
    members = []
    for split in rows_of(built()[0]).values():
        members.append({row["doc"] for row in split} | {row["donor"] for row in split} - {""})
        for changed, original in zip(split[::2], split[1::2], strict=True):
            assert (changed["label"], original["label"]) == (0, 1)
            assert changed["pair"] == original["pair"]
            pairs = zip(changed["sentences"], original["sentences"], strict=True)
            differing = [i for i, (one, two) in enumerate(pairs) if one != two]
            assert differing == [changed["position"]] and 1 <= differing[0] <= 4
            assert " ".join(original["sentences"]) in text[original["doc"]]
            assert changed["sentences"][differing[0]] in text[changed["donor"]]
            assert changed["donor"] != changed["doc"]
            assert original["position"] == -1 and original["donor"] == ""
    assert len(members) == 3 and sum(map(len, members)) == len(set.union(*members))


def test_positions_are_balanced_in_every_split(built):
    for split in rows_of(built()[0]).values():
        counts = Counter(row["position"] for row in split if row["label"] == 0)
        assert max(counts.values()) - min(counts.values()) <= 1 and set(counts) == {1, 2, 3, 4}


def test_donors_share_categories_or_are_found_by_text(built, documents):
    of = {document.id: set(document.categories) for document in documents}
    folder, manifest = built()
    for split in rows_of(folder).values():
        for row in split[::2]:
            if row["found_by"] == "categories":
                assert of[row["doc"]] == of[row["donor"]]
            else:
                assert row["found_by"] == "tfidf" and not of[row["doc"]]
    said = [note for note in manifest["notes"] if "were found by" in note]
    assert [note.rsplit(" ", 1)[1] for note in said] == ["categories.", "tfidf."]


def test_the_largest_share_of_categories_wins(built, make_document):
    near = ("Rivers", "Floods", "Mills")
    sets = [near, near, ("Rivers", "Ports"), ("Rivers", "Ports"), ("Clocks",), ("Clocks",)]
    documents = [make_document(f"d{i}", 8, categories=c) for i, c in enumerate(sets)]
    folder, _ = built(documents=documents, validation=0, test=0)
    donors = {row["doc"]: row["donor"] for row in rows_of(folder)["train"][::2]}
    assert donors == {"d0": "d1", "d1": "d0", "d2": "d3", "d3": "d2", "d4": "d5", "d5": "d4"}


def test_without_categories_the_donor_has_a_similar_text(built):
    def about(words: str, name: str) -> Document:
        text = " ".join(f"The {words} stood near {name} number {i} today." for i in range(8))
        return split_document(Document(name, text, licence="MIT"))

    topics = ["old stone lighthouse", "brass village clock", "rye bread oven"]
    documents = [about(topics[i % 3], f"place{i}") for i in range(30)]
    folder, _ = built(documents=documents, validation=0, test=0)
    for row in rows_of(folder)["train"][::2]:
        assert int(row["doc"][5:]) % 3 == int(row["donor"][5:]) % 3


def test_no_document_and_no_conversation_is_in_two_splits(built, documents):
    logs = [chat(f"log{i}", 6, 9) for i in range(6)]
    folder, manifest = built(documents=[*documents, *logs])
    for config in ("text", "chat"):
        splits = [
            {row["doc"] for row in rows} | {row["donor"] for row in rows} - {""}
            for rows in rows_of(folder, config).values()
        ]
        assert len(splits) == 3
        assert sum(map(len, splits)) == len(set.union(*splits))
    assert manifest["configs"]["text"]["default"]
    assert manifest["overlap"]["chat"] == dict.fromkeys(manifest["overlap"]["chat"], 0)


def test_chat_windows_are_turns_of_one_conversation(built):
    logs = [chat(f"log{i}", 4, 9) for i in range(8)]
    folder, manifest = built(documents=logs, validation=0, test=0, chat_step=3)
    for row in rows_of(folder, "chat")["train"][1::2]:
        numbers = [int(turn.split()[5]) for turn in row["sentences"]]
        assert numbers == list(range(numbers[0], numbers[0] + 6))
        assert row["doc"].endswith(f"#{numbers[0] // 100}")
    assert manifest["configs"]["chat"]["default"] and "text" not in manifest["configs"]


def test_sizes_count_rows_and_what_is_missing_is_said(built):
    _, manifest = built(train=40, validation=10, test=10)
    splits = manifest["configs"]["text"]["splits"]
    assert [splits[s]["rows"] for s in ("train", "validation", "test")] == [40, 10, 10]
    for split in splits.values():
        assert len(set(split["labels"]["label"].values())) == 1
    _, manifest = built("small")
    assert any("10,000 rows were asked for" in note for note in manifest["notes"])


def test_each_window_is_a_pair_or_counted_once(built, documents):
    stems = ["Zyx", "qwv", "prt", "wqa", "tkl", "mnx", "psd", "lkj", "hgf", "was"]
    text = " ".join(" ".join(f"{stem}{i}" for stem in stems) + "." for i in range(120))
    lonely = split_document(Document("lonely", text, licence="MIT"))
    windows = []
    for rows in (600, 10**6):
        sizes = {"train": rows, "validation": 0, "test": 0}
        _, manifest = built(f"of-{rows}", [*documents, lonely], **sizes)
        left_out = Counter(manifest["rejects"])
        assert left_out["no_similar_document"]
        pairs = manifest["configs"]["text"]["splits"]["train"]["rows"] // 2
        reasons = ("no_similar_document", "no_other_sentence", "not_needed")
        assert not left_out["too_few_words"] + left_out["short_sentence_replaced"]
        windows.append(pairs + sum(left_out[reason] for reason in reasons))
    assert windows[0] == windows[1]


def test_order_changes_no_byte_and_the_seed_does(built, documents, folder_bytes):
    logs = [chat(f"log{i}", 6, 9) for i in range(6)]
    one = folder_bytes(built("one", [*documents, *logs])[0])
    assert one == folder_bytes(built("two", [*logs[::-1], *documents[::-1]])[0])
    assert one != folder_bytes(built("three", [*documents, *logs], seed=2)[0])


def test_lonely_documents_give_no_row(built, make_document):
    with pytest.raises(InputError, match="not one row"):
        built(documents=[make_document("only", 6)])


# --- chat ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ("so what did you do after that?", ""),
        ("<user>: it isn't there, I'm afraid", ""),
        ("ok", "turn_too_short"),
        (":) !! ...", "turn_too_short"),
        ("please run /usr/bin/foo and then tell me more", "turn_technical"),
        ("look at http://example.org if you want it", "turn_technical"),
        ("$ ls and then you will see the file", "turn_technical"),
        ("set the thing x=1 y=2 z=3 w=4 then go", "turn_technical"),
    ],
)
def test_technical_and_empty_turns_are_refused(turn, reason):
    assert why_refused(turn, 3, 0.7) == reason


@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        ("Mira: have you seen it?", "<user>: have you seen it?"),
        ("mira2, tom_ - have you seen it?", "<user>: have you seen it?"),
        ("Mira have you seen it?", "<user>: have you seen it?"),
        ("<mira>...have you seen it?", "<user>: have you seen it?"),
        ("ask tom, or use Mira's.", "ask <user>, or use <user>'s."),
        ("Silent_One: have you seen it?", "<user>: have you seen it?"),
        ("light: it goes on", "<user>: it goes on"),
        ("the light goes on", "the light goes on"),
        ("right, it goes on", "right, it goes on"),
        ("note: this is long", "note: this is long"),
        ("http://example.org is long", "http://example.org is long"),
        ("it is 10:30", "it is 10:30"),
    ],
)
def test_nicknames_are_masked_in_all_spellings_and_words_are_not(turn, shown):
    said = ["a note on it", "the light is off", "no light here", "lots of light, right"]
    assert Nicknames(["Mira", "Tom|away", "light"], [*said, turn]).mask(turn) == shown


def test_a_log_of_unknown_conversations_has_no_windows():
    log = chat("log", 2, 8)
    log.turns.conversation = [-1] * 16
    rejects = Counter()
    assert not list(Dc().candidates(log, lambda reason: rejects.update([reason])))
    assert rejects == {"no_conversation": 16}


def test_a_turn_said_before_in_its_conversation_is_left_out():
    log = chat("log", 2, 8)
    first, second = log.paragraphs[0], log.paragraphs[4]
    text = log.text[: second[0]] + log.text[slice(*first)].upper() + log.text[second[1] :]
    rejects = Counter()
    found = dict(conversations(replace(log, text=text), 3, 100, 0.7, lambda r: rejects.update([r])))
    assert [len(turns) for turns in found.values()] == [7, 8]
    assert rejects == {"turn_repeated": 1}


@pytest.mark.parametrize(
    ("name", "is_program"),
    [("ubottu", True), ("ubotu", True), ("FloodBot2", True), ("bottiger", False), ("ann", False)],
)
def test_turns_of_programs_are_left_out(name, is_program):
    log = chat("log", 1, 8)
    speakers = [name if said == "nick2" else said for said in log.turns.speaker]
    rejects = Counter()
    turns = replace(log.turns, speaker=speakers)
    list(conversations(replace(log, turns=turns), 3, 100, 0.7, lambda r: rejects.update([r])))
    assert rejects == ({"turn_of_a_program": 2} if is_program else {})


# --- real data -----------------------------------------------------------------------------------


def test_the_shared_logs_give_coherence_rows(discorpora_data, built):
    bad = []
    spec = f"irc:{discorpora_data / 'irc' / 'train'}"
    logs = map(split_document, open_source(spec, on_bad=bad.append))
    folder, manifest = built(documents=logs)
    rows = rows_of(folder, "chat")
    assert set(rows) == {"train", "validation", "test"}
    assert all(len(row["sentences"]) == 6 for split in rows.values() for row in split)
    assert manifest["rejects"]["turn_technical"] > 0


def test_the_licence_of_the_donor_counts_too(built, make_document):
    documents = [make_document(name, 6, licence=name) for name in ("CC0-1.0", "LDC")]
    _, manifest = built(documents=documents, train=2, validation=0, test=0)
    assert set(manifest["licences"]) == {"CC0-1.0", "LDC"}
    assert not manifest["licence"]["redistributable"]


def test_a_heading_between_two_sections_is_in_neither():
    blocks = ["The lead of the guide .", "Getting there", "Take the bus ."]
    starts = [0, len(blocks[0]) + 2, len(blocks[0]) + len(blocks[1]) + 4]
    ends = [start + len(block) for start, block in zip(starts, blocks, strict=True)]
    sections = Sections([1, 2], ["", blocks[1]], [0, ends[1]], [ends[0], ends[2]])
    spans = Spans(starts, ends)
    document = Document("d", "\n\n".join(blocks), sections=sections, paragraphs=spans)
    document = document.with_sentences(spans)
    texts = document.sentence_texts()
    assert list(passages_of(document, texts, "section")) == [[blocks[0]], [blocks[2]]]
    assert list(passages_of(document, texts, "document")) == [blocks]


def test_a_copy_or_another_version_of_the_document_is_no_donor(built, make_document):
    """Half of the articles have a later version, one a mirror with much around it."""
    articles = [make_document(f"d{i}", 14, 1, categories=("Mills",)) for i in range(40)]
    versions = [
        split_document(replace(d, id=f"{d.id}-v2", text=f"Now it is told again. {d.text}"))
        for d in (replace(a, paragraphs=None) for a in articles[::2])
    ]
    around = make_document("around", 60).text
    mirror = split_document(
        Document("mirror", f"{articles[1].text} {around}", categories=("Mills",), licence="MIT")
    )
    every = [*articles, *versions, mirror]
    said = {d.id: set(d.sentence_texts()) for d in every}
    rows = [row for split in rows_of(built(documents=every)[0]).values() for row in split]
    changed = [row for row in rows if row["label"] == 0]
    assert len(changed) > 40
    assert all(row["sentences"][row["position"]] not in said[row["doc"]] for row in changed)
    assert all(row["donor"].split("-")[0] != row["doc"].split("-")[0] for row in changed)


def test_an_intruder_has_the_marks_of_its_window(built, documents):
    texts = []
    for i, document in enumerate(documents):
        told = document.text.replace(".", " -- all day." if i % 2 else " — all day.")
        texts.append(split_document(replace(document, text=told, paragraphs=None, sentences=None)))
    rows = [row for split in rows_of(built("marks", texts)[0]).values() for row in split]
    assert len(rows) > 40
    assert not [row for row in rows if {"-", "—"} <= set(" ".join(row["sentences"]))]


def test_an_intruder_stands_nowhere_in_the_document(built, make_document):
    """Every document has the same refrain, though not in the same window."""
    refrain = "And so the long day came to its end."
    documents = []
    for i in range(40):
        texts = make_document(f"d{i}", 24).sentence_texts()
        texts.insert(i % 20, refrain)
        text = " ".join(texts)
        documents.append(split_document(Document(f"d{i}", text, licence="MIT")))
    rows = [row for split in rows_of(built(documents=documents)[0]).values() for row in split]
    changed = [row for row in rows if row["label"] == 0]
    assert changed
    assert refrain not in {row["sentences"][row["position"]] for row in changed}
