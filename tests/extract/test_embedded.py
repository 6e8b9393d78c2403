"""The shipped pipeline: size, columns, sentence starts, provenance, and its score on EWT dev."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from extract import embedded

if TYPE_CHECKING:
    from spacy.language import Language

FOLDER = embedded.PATH.parent
MEGABYTES = 20
LEAST_LAS, LEAST_UPOS = 84.5, 94.0
TEXT = "Mira stayed at home because the bus had not come, and her sister wrote a letter."


@pytest.fixture(scope="module")
def nlp() -> Language:
    return embedded.load()


def test_importing_the_module_loads_no_spacy() -> None:
    code = "import extract.embedded, sys; sys.exit('spacy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=FOLDER.parent.parent, check=True)


def test_the_package_data_are_small_and_complete() -> None:
    files = [file for file in FOLDER.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert sum(file.stat().st_size for file in files) < MEGABYTES * 1e6
    assert "CC-BY-SA-4.0" in (FOLDER / "LICENSE").read_text(encoding="utf-8")
    card = (FOLDER / "CARD.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("UD_English-EWT", "gum", "advcl", "Limits"))
    scores = json.loads((FOLDER / "scores.json").read_text(encoding="utf-8"))
    assert set(scores["sets"]) == {"EWT dev", "GUM dev"}


def test_a_placeholder_for_a_word_is_one_token(nlp: Language) -> None:
    words = [token.text for token in nlp.tokenizer("Ask <user> ( Paul <unk> ) if 5 < 6 .")]
    assert words == ["Ask", "<user>", "(", "Paul", "<unk>", ")", "if", "5", "<", "6", "."]


def test_a_plain_sentence_is_parsed_as_ud(nlp: Language) -> None:
    doc = nlp(TEXT)
    words = {token.text: token for token in doc}
    arcs = {text: (words[text].dep_, words[text].head.text) for text in ("because", "come", "and")}
    assert arcs == {
        "because": ("mark", "come"),
        "come": ("advcl", "stayed"),
        "and": ("cc", "wrote"),
    }
    assert words["stayed"].dep_ == "root" and words["wrote"].dep_ == "conj"
    upos = {text: words[text].pos_ for text in ("Mira", "because", "had", "come", "letter", "not")}
    assert upos == {
        "Mira": "PROPN",
        "because": "SCONJ",
        "had": "AUX",
        "come": "VERB",
        "letter": "NOUN",
        "not": "PART",
    }
    assert words["stayed"].tag_ == "VBD"


def test_contractions_and_dashes_are_split(nlp: Language) -> None:
    words = [token.text for token in nlp("She didn’t—couldn’t—stay.")]
    assert words == ["She", "did", "n’t", "—", "could", "n’t", "—", "stay", "."]


def test_preset_sentence_starts_are_kept(nlp: Language) -> None:
    from spacy.tokens import Doc

    words = ["he", "left", "she", "stayed", "and", "then", "it", "rained"]
    for starts in ({0}, {0, 2}, {0, 2, 4}, {0, 3}):
        doc = Doc(nlp.vocab, words=words, sent_starts=[i in starts for i in range(len(words))])
        assert {sent.start for sent in nlp(doc).sents} == starts


def test_odd_texts_do_no_harm(nlp: Language) -> None:
    texts = ["", " ", "\n\n", "🙂", "a" * 500, "No  two   blanks", "。", "\u200b"]
    for text, doc in zip(texts, nlp.pipe(texts), strict=True):
        assert doc.text == text
        assert all(token.pos_ and token.dep_ for token in doc)
    assert [token.pos_ for token in nlp("No  two") if token.is_space] == ["SPACE"]


def test_a_batch_gives_what_single_texts_give(nlp: Language) -> None:
    texts = [TEXT, "It rained.", "We waited, but nobody came."]
    batch = [[(t.tag_, t.pos_, t.dep_, t.head.i) for t in doc] for doc in nlp.pipe(texts)]
    single = [[(t.tag_, t.pos_, t.dep_, t.head.i) for t in nlp(text)] for text in texts]
    assert batch == single


def test_trained_documents_are_named() -> None:
    documents = embedded.trained_documents()
    assert any(name.startswith("GUM_") for name in documents)
    assert len(documents) > 500 and "" not in documents


def test_a_missing_pipeline_is_an_error_that_helps(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"zoo\.parser\.train"):
        embedded.load(tmp_path)


@pytest.fixture(scope="module")
def dev_sentences(discorpora_data: Path) -> list:
    conllu = pytest.importorskip("conllu")
    file = discorpora_data / "treebank" / "en_ewt" / "en_ewt-ud-dev.conllu"
    if not file.is_file():
        pytest.skip(f"no treebank at {file}")
    with file.open(encoding="utf-8") as lines:
        sentences = [
            list(s.filter(id=lambda i: isinstance(i, int))) for s in conllu.parse_incr(lines)
        ]
    return sentences[::4]


def test_scores_on_a_slice_of_ewt_dev(nlp: Language, dev_sentences: list) -> None:
    from spacy.tokens import Doc

    docs = [
        Doc(nlp.vocab, words=[t["form"] for t in s], sent_starts=[i == 0 for i in range(len(s))])
        for s in dev_sentences
    ]
    total = las = upos = 0
    for sentence, doc in zip(dev_sentences, nlp.pipe(docs), strict=True):
        for gold, token in zip(sentence, doc, strict=True):
            head = 0 if token.head.i == token.i else token.head.i + 1
            total += 1
            las += (head, token.dep_) == (gold["head"], gold["deprel"])
            upos += token.pos_ == gold["upos"]
    assert 100 * las / total > LEAST_LAS
    assert 100 * upos / total > LEAST_UPOS


def test_no_dev_document_was_trained_on(discorpora_data: Path) -> None:
    files = sorted((discorpora_data / "treebank").rglob("*dev*.conllu"))
    files += sorted((discorpora_data / "treebank" / "en_gum" / "dev").glob("*.conllu"))
    names = {
        line.partition("=")[2].strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("# newdoc")
    }
    if not names:
        pytest.skip("no treebank in the real data")
    assert not names & embedded.trained_documents()
