"""The readers of named corpora: what each one's own files become."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from corpora.errors import ConfigError, InputError
from corpora.readers import open_reader, open_source
from corpora.readers.coherence import read_pairs
from corpora.readers.discoeval import TASKS, read_discoeval
from corpora.readers.irc import read_log
from corpora.readers.stories import read_storycloze
from tests.corpora.conftest import paragraphs, sections

FIXTURES = Path(__file__).resolve().parent.parent / "data" / "readers"
VALIDATE = FIXTURES.parent / "validate"
STORY = ["Ann had a boat.", "It leaked.", "She mended it.", "It rained.", "She sailed home."]


def csv_file(path: Path, *rows: list[str]) -> Path:
    lines = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_chat_log_has_conversations(tmp_path: Path) -> None:
    spec = f"irc:{FIXTURES / 'irc'}"
    skipped: Counter[str] = Counter()
    (log,) = open_source(spec, {"context": 0}, skipped=skipped)
    assert log.turns is not None and log.licence == "CC-BY-4.0"
    rows = list(zip(log.turns.speaker, log.turns.conversation, paragraphs(log), strict=True))
    assert rows[:3] == [
        ("ann", 0, "is the pump broken again?"),
        ("bob", 0, "ann: it is, since monday"),
        ("cleo", 3, "who has the key of the shed?"),
    ]
    assert ("dan", 4, "waves") in rows and skipped["system message"] == 2
    (whole,) = open_source(spec, {"context": 0, "system": True})
    assert whole.turns is not None and whole.turns.speaker.count("") == 2
    files = open_reader(spec)[1].files
    assert [path.name for path in files] == ["pond.annotation.txt", "pond.ascii.txt"]


def test_a_conversation_can_be_a_document() -> None:
    spec = f"irc:{FIXTURES / 'irc' / 'pond.ascii.txt'}"
    pump, key, wave = open_source(spec, {"context": 0, "layout": "conversation"})
    assert (pump.id, pump.group, key.id) == ("pond/000000", "pond", "pond/000003")
    assert paragraphs(pump)[-1] == "bob: can you mend it?"
    assert paragraphs(key)[1:] == ["cleo: I gave it to Eve", "thanks <unconvertable>"]
    assert paragraphs(wave) == ["waves"]


def test_messages_of_no_known_conversation_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.ascii.txt").write_text("[10:00] <ida> hello\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"skipped: message of an unknown conversation \(1\)"):
        list(open_source(f"irc:{tmp_path}", {"layout": "conversation"}))


def test_messages_that_were_only_context_are_left_out() -> None:
    spec = f"irc:{FIXTURES / 'irc'}"
    (log,) = open_source(spec, {"context": 5})
    assert paragraphs(log)[0] == "bob: can you mend it?"
    assert log.turns is not None and log.turns.conversation == [0, 3, 3]
    with pytest.raises(InputError, match="only context: all 10 messages"):
        list(open_source(spec))


def test_a_paper_has_its_abstract_and_sections(tmp_path: Path) -> None:
    paper = {
        "name": "104.pdf",
        "metadata": {
            "title": "On piers",
            "abstractText": "We study piers.",
            "sections": [
                {"heading": None, "text": "000\n001"},
                {"heading": "1 Introduction", "text": "Piers are old.\n017\nThey stand."},
                {"heading": "2.1 Oak and iron", "text": "Oak lasts."},
                {"heading": "Conclusion", "text": ""},
            ],
        },
    }
    path = tmp_path / "acl" / "train" / "parsed_pdfs" / "104.pdf.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(paper), encoding="utf-8")
    (document,) = open_source(f"peerread:{tmp_path}")
    assert (document.id, document.title) == ("acl/train/104", "On piers")
    assert sections(document) == [
        (1, "Abstract", "We study piers."),
        (1, "", ""),
        (2, "1 Introduction", "Piers are old.\n\nThey stand."),
        (3, "2.1 Oak and iron", "Oak lasts."),
        (2, "Conclusion", ""),
    ]


def test_an_arxiv_abstract_is_cc0(tmp_path: Path) -> None:
    record = {
        "id": "hep-th/9901001",
        "title": "On\n  piers",
        "abstract": "  We study piers\nin one dimension.\n",
        "categories": "hep-th math.MP",
    }
    path = tmp_path / "arxiv-metadata-oai-snapshot.json"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (document,) = open_source(f"arxiv:{path}")
    assert document.text == "We study piers in one dimension."
    assert (document.id, document.title, document.licence) == (record["id"], "On piers", "CC0-1.0")
    assert document.categories == ("hep-th", "math.MP")
    assert document.url == "https://arxiv.org/abs/hep-th/9901001"


def test_a_story_has_five_sentences(tmp_path: Path) -> None:
    header = ["storyid", "storytitle", *(f"sentence{i}" for i in range(1, 6))]
    quoted = [*STORY[:4], 'She said "home, at last".']
    path = csv_file(tmp_path / "roc.csv", header, ["s1", "The boat", *quoted])
    (document,) = open_source(f"rocstories:{path}")
    assert document.sentence_texts() == quoted
    assert (document.id, document.title) == ("s1", "The boat")
    assert document.licence == "research-only"


@pytest.fixture
def cloze(tmp_path: Path) -> Path:
    header = ["InputStoryid", *(f"InputSentence{i}" for i in range(1, 5))]
    header += ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"]
    rows = [["s1", *STORY[:4], "She sold bread.", STORY[4], "2"]]
    rows += [["s2", *STORY[:4], STORY[4], "She sold bread.", "1"]]
    return csv_file(tmp_path / "cloze.csv", header, *rows)


def test_a_cloze_story_ends_rightly_or_both_ways(cloze: Path) -> None:
    assert [d.sentence_texts() for d in open_source(f"storycloze:{cloze}")] == [STORY, STORY]
    both = list(open_source(f"storycloze:{cloze}", {"ending": "both"}))
    assert [(d.id, d.group) for d in both[:2]] == [("s1/right", "s1"), ("s1/wrong", "s1")]
    assert both[1].sentence_texts()[-1] == "She sold bread."
    first, _ = read_storycloze(cloze)
    assert first.pos == tuple(STORY)
    with pytest.raises(ConfigError, match=r"ending = 'left': .*'right'"):
        list(open_source(f"storycloze:{cloze}", {"ending": "left"}))


def test_one_story_file_is_not_taken_for_the_other(cloze: Path) -> None:
    with pytest.raises(InputError, match="storycloze:"):
        list(open_source(f"rocstories:{cloze}"))


def test_an_article_of_cnn_loses_its_highlights(tmp_path: Path) -> None:
    text = (
        "A pier fell.\n\nNobody was\nhurt.\n\n@highlight\n\nPier falls\n\n@highlight\n\nNone hurt\n"
    )
    (tmp_path / "0a1b.story").write_text(text, encoding="utf-8")
    (document,) = open_source(str(tmp_path / "0a1b.story"))
    assert (document.id, paragraphs(document)) == ("0a1b", ["A pier fell.", "Nobody was hurt."])


def test_the_journal_has_a_sentence_a_line(tmp_path: Path) -> None:
    path = tmp_path / "00" / "wsj_0001"
    path.parent.mkdir()
    path.write_bytes(b".START \n\nThe mill closed. \nIts caf\xe9 stayed.\n\nPrices rose.\n")
    (tmp_path / "readme").write_text("not an article")
    spec = f"wsj:{tmp_path}"
    with pytest.raises(InputError, match=r"wsj_0001:4: not UTF-8: .*latin-1"):
        list(open_source(spec))
    (document,) = open_source(spec, {"encoding": "latin-1"})
    assert document.sentence_texts() == ["The mill closed.", "Its café stayed.", "Prices rose."]
    assert (document.id, document.licence, len(paragraphs(document))) == ("00/wsj_0001", "LDC", 2)
    with pytest.raises(ConfigError, match="no encoding 'rot13'"):
        next(open_source("wsj:x", {"encoding": "rot13"}))
    with pytest.raises(ConfigError, match="no encoding 'latin-eleven'"):
        list(open_source(spec, {"encoding": "latin-eleven"}))


def test_pdtb_takes_encoding_language_and_licence() -> None:
    options = {"encoding": "latin-1", "language": "en-GB", "licence": "LDC"}
    for document in open_source(f"pdtb:{VALIDATE / 'pdtb3'}", options):
        assert (document.language, document.licence) == ("en-GB", "LDC")


def discoeval_files(folder: Path) -> Path:
    lines = {
        "SP/wiki": "2\t" + "\t".join([STORY[2], *STORY[:2], *STORY[3:]]),
        "BSO/arxiv": "\t".join(STORY[:2]),
        "DC/chat": "0\t" + "\t".join([*STORY, "no"]) + "\n1\t" + "\t".join([*STORY, "yes"]),
        "SSP/abs": f"1\t{STORY[0]}",
    }
    for name, content in lines.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "valid.txt").write_text(content + "\n", encoding="utf-8")
    return folder


def test_discoeval_examples_become_their_texts(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    (tmp_path / "RST").mkdir()
    (tmp_path / "RST" / "RST_DEV.pkl").write_bytes(b"not opened")
    found = {
        d.id: d for d in open_source(f"discoeval:{discoeval_files(tmp_path)}", skipped=skipped)
    }
    assert list(found) == ["BSO/arxiv/valid:000001", "DC/chat/valid:000002", "SP/wiki/valid:000001"]
    assert found["SP/wiki/valid:000001"].sentence_texts() == STORY
    assert found["DC/chat/valid:000002"].sentence_texts()[-1] == "yes"
    assert [d.licence for d in found.values()] == ["CC0-1.0", "CC-BY-4.0", "CC-BY-SA-3.0"]
    assert skipped == {"file of SSP": 1, "file of RST": 1}
    (example,) = read_discoeval("SSP", tmp_path / "SSP" / "abs" / "valid.txt")
    assert (example.label, example.sentences) == (1, (STORY[0],))


@pytest.mark.parametrize(
    ("domain", "licence"), [("rocstory", "research-only"), ("processed", "unknown")]
)
def test_the_domain_gives_the_licence(tmp_path: Path, domain: str, licence: str) -> None:
    path = tmp_path / "BSO" / domain / "train.txt"
    path.parent.mkdir(parents=True)
    path.write_text("\t".join(STORY[:2]), encoding="utf-8")
    (document,) = open_source(f"discoeval:{path}")
    assert document.licence == licence


def test_the_wiki_files_of_sp_are_no_texts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = discoeval_files(tmp_path)
    list(open_source(f"discoeval:{folder}"))
    (warning,) = (message for message in caplog.messages if "are shuffled" in message)
    assert str(Path("SP", "wiki", "valid.txt")) in warning


def test_a_discoeval_file_needs_a_task(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("\t".join(STORY[:2]), encoding="utf-8")
    with pytest.raises(ConfigError, match="does not name a task"):
        list(open_source(f"discoeval:{path}"))
    (document,) = open_source(f"discoeval:{path}", {"task": "BSO"})
    assert document.sentence_texts() == STORY[:2]
    with pytest.raises(ConfigError, match="task = 'BS0': did you mean 'BSO'"):
        list(open_source(f"discoeval:{path}", {"task": "BS0"}))


def test_the_real_conversations_are_the_gold_clusters(discorpora_data: Path) -> None:
    folder = discorpora_data / "irc" / "dev"
    gold: dict[str, set[frozenset[int]]] = {}
    lines = (folder.parent / "gold.dev.clusters.txt").read_text(encoding="utf-8").splitlines()
    for name, numbers in (line.split(":") for line in lines):
        gold.setdefault(name, set()).add(frozenset(map(int, numbers.split())))
    said = 0
    for name, clusters in gold.items():
        found: dict[int, set[int]] = {}
        messages = read_log(folder / f"{name}.ascii.txt", lambda bad: pytest.fail(bad.reason))
        for number, message in enumerate(messages):
            if message.conversation >= 0 and number >= 1000:
                found.setdefault(message.conversation, set()).add(number)
        assert {frozenset(numbers) for numbers in found.values()} == clusters
        said += sum(any(messages[i].text for i in cluster) for cluster in clusters)
    conversations = open_source(f"irc:{folder}", {"layout": "conversation", "system": True})
    assert sum(1 for _ in conversations) == said


def test_the_real_discoeval_files_read_whole(discorpora_data: Path) -> None:
    for path in sorted((discorpora_data / "discoeval").glob("*/*/*.txt")):
        task = path.parts[-3]
        labels = Counter(example.label for example in read_discoeval(task, path))
        lines = path.read_bytes().count(b"\n")
        assert sum(labels.values()) == lines
        assert {str(label) for label in labels} == set(TASKS[task].labels or ("-1",))
        if task == "DC":
            assert labels[0] == labels[1]
            texts = open_source(f"discoeval:{path}")
            assert sum(1 for _ in texts) == labels[1]


def test_the_real_coherence_pairs_differ_in_one_sentence(discorpora_data: Path) -> None:
    for path in sorted((discorpora_data / "coherence").glob("*.jsonl")):
        pairs = list(read_pairs(path))
        assert len(pairs) == path.read_bytes().count(b"\n")
        for pair in pairs:
            different = [a != b for a, b in zip(pair.pos, pair.neg, strict=True)]
            assert sum(different) <= 1 and not (path.stem.startswith("instead") and different[0])
