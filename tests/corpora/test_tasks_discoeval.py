"""SP and BSO: what the rows are, how they are split, that order and batches change nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from corpora.document import Document, Sections
from corpora.errors import InputError
from corpora.prose import lead, passages_of
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.tasks import BUILDERS
from tests.corpora.conftest import rows_of

TASKS = ["sp", "bso"]


@pytest.fixture
def documents(make_document):
    return [make_document(f"d{i}", 5, 4, group=f"book{i % 12}") for i in range(48)]


@pytest.fixture
def built(build, documents):
    def built(task, name="x", documents=documents, **settings):
        return build(task, documents, name, **settings)

    return built


def test_moving_the_first_sentence_back_gives_the_document(built, documents):
    text = {document.id: " ".join(document.text.split()) for document in documents}
    for split in rows_of(built("sp")[0]).values():
        for row in split:
            first, *others = row["sentences"]
            others.insert(row["label"], first)
            assert " ".join(others) in text[row["doc"]]


def test_sp_labels_are_balanced_in_every_split(built):
    for split in rows_of(built("sp")[0]).values():
        counts = Counter(row["label"] for row in split)
        assert max(counts.values()) - min(counts.values()) <= 1 and len(counts) == 5


def test_bso_gives_each_pair_in_both_orders(built, documents):
    text = {document.id: " ".join(document.text.split()) for document in documents}
    for split in rows_of(built("bso")[0]).values():
        for one, two in zip(split[::2], split[1::2], strict=True):
            assert (one["label"], two["label"]) == (1, 0)
            assert f"{one['sentence1']} {one['sentence2']}" in text[one["doc"]]
            assert (two["sentence1"], two["sentence2"]) == (one["sentence2"], one["sentence1"])


@pytest.mark.parametrize("task", TASKS)
def test_another_seed_gives_other_rows(built, task):
    assert rows_of(built(task, "one")[0]) != rows_of(built(task, "two", seed=2)[0])


def test_sizes_are_kept_and_what_is_missing_is_said(built):
    _, manifest = built("bso", train=20, validation=9, test=9)
    splits = manifest["configs"]["default"]["splits"]
    assert [splits[s]["rows"] for s in ("train", "validation", "test")] == [40, 18, 18]
    assert manifest["rejects"]["not_needed"] > 0
    _, manifest = built("bso", "small")
    assert any("train: 10,000 pairs were asked for" in note for note in manifest["notes"])
    assert manifest["details"]["settings"]["train"] == 10_000


def test_windows_stay_within_a_paragraph_and_do_not_overlap(built, make_document, stage):
    document = make_document("d", sentences=7, paragraphs=3)
    inside = {"within": "paragraph", "validation": 0, "test": 0}
    folder, manifest = built("sp", documents=[document], **inside)
    rows = rows_of(folder)["train"]
    paragraphs = document.text.split("\n\n")
    assert len(rows) == 3 and manifest["rejects"].get("unit_too_short") is None
    for row in rows:
        assert any(all(s in paragraph for s in row["sentences"]) for paragraph in paragraphs)
    folder, _ = built("sp", "whole", [document], validation=0, test=0)
    rows = rows_of(folder)["train"]
    used = [sentence for row in rows for sentence in row["sentences"]]
    assert len(rows) in (3, 4) and len(set(used)) == len(used)


@pytest.mark.parametrize("task", TASKS)
def test_windows_begin_anywhere_in_a_document(task, make_document):
    """Else the beginning of a paragraph tells the first sentence of a window from the others."""
    builder = BUILDERS.find(task)()
    firsts = Counter[int]()
    for number in range(60):
        document = make_document(f"d{number}", sentences=10, paragraphs=2)
        windows = [row.values[0] for row in builder.candidates(document, lambda _: None)]
        firsts[document.sentence_texts().index(windows[0][0])] += 1
    assert set(firsts) == set(range(builder.LENGTH)) and min(firsts.values()) > 4


def test_the_lead_of_bso_gives_any_two_neighbours_of_its_five(make_document):
    """The released pairs stand at each of the four places equally often."""
    builder = BUILDERS.find("bso").of({"take": "lead"})
    pairs = Counter[tuple[int, ...]]()
    for number in range(60):
        document = make_document(f"d{number}", sentences=9)
        texts = document.sentence_texts()
        for row in builder.candidates(document, lambda _: None):
            pairs[tuple(map(texts.index, row.values[0]))] += 1
    assert set(pairs) == {(0, 1), (1, 2), (2, 3), (3, 4)} and min(pairs.values()) > 15


def test_quotes_are_balanced_or_kept(built):
    text = " ".join(f"He came at {i}. “It rained at {i}. We ran at {i}.”" for i in range(40, 60))
    documents = [split_document(Document("d", text, licence="MIT"))]
    settings = {"documents": documents, "mean_words": 0, "validation": 0, "test": 0}
    folder, manifest = built("sp", **settings)
    said = {s for row in rows_of(folder)["train"] for s in row["sentences"]}
    assert all((s[0], s[-1]) in (("“", "”"), ("H", ".")) for s in said)
    assert any("sentences got quotation marks of their own" in note for note in manifest["notes"])
    folder, manifest = built("bso", "two", quotes="keep", min_words=2, **settings)
    said = {row["sentence1"] for row in rows_of(folder)["train"]}
    assert {(s[0], s[-1]) for s in said} == {("“", "."), ("W", "”"), ("H", ".")}
    assert not any("quotation marks" in note for note in manifest["notes"])


def test_pairs_are_of_one_speaker_and_no_short_replies(built):
    """Narration, then speech of two in paragraphs of their own, one of them a reply."""
    talk = "\n\n".join(
        f"Ann walked along the pier at {i} and looked for her brother’s boat. "
        f"Nobody had seen the boat since the storm of the {i}th of May.\n\n"
        f"“Have you looked behind the lighthouse at {i} o’clock, when the tide is low?”\n\n"
        f"“I have asked the keeper about the rocks there {i} times since Monday.”\n\n"
        f"“Indeed.”"
        for i in range(20, 60)
    )
    document = split_document(Document("d", talk, licence="MIT"))
    settings = {"documents": [document], "validation": 0, "test": 0}
    folder, manifest = built("bso", **settings)
    pairs = [[r["sentence1"], r["sentence2"]] for r in rows_of(folder)["train"]]
    assert pairs and not any(all("“" in text for text in pair) for pair in pairs)
    assert not any("Indeed" in text for pair in pairs for text in pair)
    assert manifest["rejects"]["sentence_too_short"] == 40
    folder, _ = built("bso", "any", one_speaker=False, **settings)
    both = [r for r in rows_of(folder)["train"] if "“" in r["sentence1"] and "“" in r["sentence2"]]
    assert both
    with pytest.raises(InputError, match="too_few_words"):
        built("bso", "long", mean_words=20, **settings)


def test_the_lead_is_the_first_section_or_the_whole_document(built, make_document):
    plain = make_document("plain", sentences=6, paragraphs=2)
    end = plain.text.index("\n\n")
    sections = Sections([1, 2], ["", "History"], [0, end + 2], [end, len(plain.text)])
    article = replace(make_document("other", 6, 2), id="article", sections=sections)
    short = make_document("short", sentences=4)
    settings = {"take": "lead", "validation": 0, "test": 0}
    folder, manifest = built("sp", documents=[plain, article, short], **settings)
    rows = rows_of(folder)["train"]
    assert manifest["rejects"] == {"unit_too_short": 1}
    assert len(rows) == 2 and {row["doc"] for row in rows} == {"plain", "article"}
    (of_article,) = (row["sentences"] for row in rows if row["doc"] == "article")
    assert all(sentence in article.text[:end] for sentence in of_article)


def test_bad_sentences_end_a_window(built, make_document):
    text = make_document("d", sentences=12).text
    at = text.index(" day 5 of d.") + len(" day 5 of d.")
    spoilt = split_document(Document("d", f"{text[:at]} Oh dear.{text[at:]}", licence="MIT"))
    folder, manifest = built("sp", documents=[spoilt], min_words=3, validation=0, test=0)
    used = {s for row in rows_of(folder)["train"] for s in row["sentences"]}
    assert manifest["rejects"] == {"sentence_too_short": 1}
    assert len(used) in (5, 10) and "Oh dear." not in used


def test_exact_duplicates_are_left_out_and_counted(built, make_document):
    document = make_document("a")
    copies = [document, replace(document, id="b"), replace(document, id="c")]
    folder, manifest = built("sp", documents=copies, validation=0, test=0)
    assert len(rows_of(folder)["train"]) == 1 and manifest["rejects"]["exact_duplicate"] == 2


def test_a_build_that_fails_leaves_no_target_and_the_next_one_is_the_same(
    built, documents, tmp_path, folder_bytes
):
    def broken():
        yield from documents[:40]
        raise OSError("the source went away")

    with pytest.raises(OSError, match="went away"):
        built("sp", "one", broken())
    assert not (tmp_path / "one" / "data").exists()
    assert folder_bytes(built("sp", "one")[0]) == folder_bytes(built("sp", "two")[0])


def test_a_build_killed_at_any_document_is_made_anew(tmp_path, folder_bytes):
    code = """
        import os, signal, sys
        from pathlib import Path
        from corpora.document import Document
        from corpora.sentences import split_document
        from corpora.store.atomic import staged
        from corpora.store.folder import Stage
        from corpora.tasks import BUILDERS
        from corpora.tasks.builder import Target

        def documents(last):
            for i in range(30):
                if i == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                line = "The ferry of the old line left pier {} at hour {}."
                text = " ".join(line.format(i, j) for j in range(25))
                yield split_document(Document(f"d{i}", text, licence="MIT"))

        with staged(Path(sys.argv[1])) as partial:
            source = documents(int(sys.argv[2]))
            target = Target(partial, Stage("sp", 1, "ab"), 1)
            BUILDERS.find("sp")().build(source, target)
    """

    def run(folder: str, last: int) -> int:
        command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / folder), str(last)]
        return subprocess.run(command, check=False).returncode

    assert run("whole", -1) == 0
    assert run("killed", 17) == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    assert run("killed", -1) == 0
    assert folder_bytes(tmp_path / "killed") == folder_bytes(tmp_path / "whole")


def test_licences_and_languages_come_from_the_documents(built, make_document):
    documents = [make_document("a"), make_document("b", licence="CC-BY-SA-3.0", language="es")]
    _, manifest = built("bso", documents=documents, validation=0, test=0)
    assert manifest["licence"]["id"] == "CC-BY-SA-3.0"
    rows = sum(part["rows"] for part in manifest["configs"]["default"]["splits"].values())
    assert rows == 8 and manifest["licences"] == {"CC-BY-4.0": 4, "CC-BY-SA-3.0": 4}
    assert manifest["languages"] == ["en", "es"]


# --- the released files have the same form ------------------------------------------------------


def test_a_window_with_equal_sentences_is_left_out(built, make_document):
    text = make_document("d", sentences=4).text
    cry = "Pieces of eight, said he."
    spoilt = split_document(Document("d", f"{cry} {cry} {cry} {text}", licence="MIT"))
    folder, manifest = built("bso", documents=[spoilt], validation=0, test=0)
    assert manifest["rejects"] == {"equal_sentences": 1}
    assert all(row["sentence1"] != row["sentence2"] for row in rows_of(folder)["train"])
    text = make_document("e", sentences=10).text
    same = split_document(Document("d", " ".join([cry] * 9 + [text]), licence="MIT"))
    folder, manifest = built("sp", "sp", [same], validation=0, test=0)
    assert manifest["rejects"]["equal_sentences"] > 0
    assert {len(set(row["sentences"])) for row in rows_of(folder)["train"]} == {5}


def test_a_dataset_may_have_a_test_split_alone(built):
    folder, _ = built("sp", train=0, validation=0, test=10)
    assert list(rows_of(folder)) == ["test"] and len(rows_of(folder)["test"]) == 10


HARBOUR = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour.conllu"


def test_a_title_in_the_text_is_no_part_of_the_lead():
    """CoNLL-U has titles and headings as paragraphs of the text, outside of the sections."""
    harbour = next(iter(open_source(f"conllu:{HARBOUR}", {})))
    texts = harbour.sentence_texts()
    assert texts[0] == harbour.title == "The Harbour" and "Boats" in texts
    assert lead(harbour, texts) == ["Don't go (yet).", "She sails and he rows."]
    assert list(passages_of(harbour, texts, "section")) == [lead(harbour, texts), ["Vamos al mar."]]


def test_the_lead_of_an_article_whose_headings_are_not_in_the_text_is_whole(tmp_path):
    """As Wikipedia is read: the lead has no heading, sections cover the text from its beginning."""
    sections = [
        {"heading": "", "level": 1, "paragraphs": ["It rained. It poured."]},
        {"heading": "Later", "level": 2, "paragraphs": ["It cleared."]},
    ]
    path = tmp_path / "articles.jsonl"
    path.write_text(json.dumps({"title": "Rain", "sections": sections}) + "\n", encoding="utf-8")
    (article,) = map(split_document, open_source(f"jsonl:{path}", {"layout": "article"}))
    texts = article.sentence_texts()
    assert lead(article, texts) == ["It rained.", "It poured."]
    assert list(passages_of(article, texts, "section")) == [texts[:2], texts[2:]]
