"""The spaCy component: pairs and connectives are those of the command line on the same trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

import extract.pipeline  # noqa: F401  (registers the factory)
from corpora.document import Document, Spans, Tokens
from corpora.errors import ConfigError, InputError
from extract import Extractor, embedded
from extract.connectives import connectives
from extract.parsers import get_parser

TEXTS = (
    "The ferry left early because the wind had dropped. However, nobody on the pier was ready.",
    "  We waited for an hour,\nbut the gate stayed shut.\n\nThen a guard came, and he opened it.  ",
    "",
    "If the bread is stale, then we toast it. She likes it although it burns. “So do I,” he said.",
    "We stayed inside be\u00adcause it rained. The dogs slept, so the house was quiet.",
)


@pytest.fixture(scope="module")
def nlp() -> Language:
    pipeline = embedded.load()
    pipeline.add_pipe("discorpora", config={"min_confidence": 0.3})
    return pipeline


def as_gold(doc: Doc) -> Document:
    """The trees of a `Doc` as a gold document, token by token without white space."""
    tokens, spans = Tokens(), Spans()
    kept = {t.i: n for n, t in enumerate(t for t in doc if not t.is_space)}
    for sentence in doc.sents:
        words = [t for t in sentence if not t.is_space]
        if not words:
            continue
        for t in words:
            head = t.head
            while head.is_space and head.head.i != head.i:
                head = head.head
            is_root = head.i == t.i or head.is_space
            tokens.form.append(t.text.replace("\u00ad", ""))
            tokens.start.append(t.idx)
            tokens.end.append(t.idx + len(t))
            tokens.upos.append(t.pos_)
            tokens.xpos.append(t.tag_)
            tokens.feats.append(str(t.morph))
            tokens.deprel.append(t.dep_)
            tokens.head.append(-1 if is_root else kept[head.i])
        tokens.offsets.append(len(tokens))
        spans.add(words[0].idx, words[-1].idx + len(words[-1]))
    return Document("d", doc.text, tokens=tokens, sentences=spans)


def test_pairs_and_connectives_are_those_of_the_same_trees(nlp: Language) -> None:
    docs = list(nlp.pipe(TEXTS))
    gold = [as_gold(doc) for doc in docs]
    expected = list(Extractor("gold", min_confidence=0.3).pairs(gold))
    pairs = [pair for doc in docs for pair in doc._.pairs]
    blank = {"doc": "", "group": "", "sentence": 0}
    assert [replace(p, **blank) for p in pairs] == [replace(p, **blank) for p in expected]
    assert {"because", "but", "although", "so"} <= {pair.marker for pair in pairs}
    lists = list(connectives(gold, get_parser("gold").parse(gold)))
    for doc, items in zip(docs, lists, strict=True):
        assert [(c.spans, c.sense, c.probability) for c in doc._.connectives] == [
            (c.spans, c.sense, c.probability) for c in items
        ]
        for item in doc._.connectives:
            words = "".join(doc[t].text for t in item.tokens)
            assert words == "".join(doc.text[a:b].replace(" ", "") for a, b in item.spans)
        for item in (*doc._.connectives, *doc._.pairs):
            start, _ = (item.spans if hasattr(item, "spans") else item.marker_spans)[0]
            sentence = list(doc.sents)[item.sentence]
            assert sentence.start_char <= start < sentence.end_char
    assert [c.text for c in docs[0]._.connectives] == ["because", "however"]


def test_a_batch_changes_nothing_and_one_text_is_enough(nlp: Language) -> None:
    batches = [list(nlp.pipe(TEXTS, batch_size=size)) for size in (2, 100)]
    for one, two, text in zip(*batches, TEXTS, strict=True):
        assert one._.pairs == two._.pairs == nlp(text)._.pairs
        assert one._.connectives == two._.connectives


def test_trees_and_sentences_stay_as_they_are(nlp: Language) -> None:
    with nlp.select_pipes(disable="discorpora"):
        plain = list(nlp.pipe(TEXTS))
    for before, after in zip(plain, nlp.pipe(TEXTS), strict=True):
        assert before.to_bytes(exclude=["user_data"]) == after.to_bytes(exclude=["user_data"])
        assert before._.pairs == before._.connectives == []


def test_results_survive_bytes_and_processes(nlp: Language, tmp_path: Path) -> None:
    doc = nlp(TEXTS[0])
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert again._.pairs == doc._.pairs != []
    assert again._.connectives == doc._.connectives


def with_parser(*labels: str, tagger: bool = True) -> Language:
    pipeline = spacy.blank("en")
    if tagger:
        pipeline.add_pipe("tagger")
    parser: Any = pipeline.add_pipe("parser")
    for label in labels:
        parser.add_label(label)
    return pipeline


def clear_doc(pipeline: Language) -> Doc:
    words = ["The", "ferry", "left", "because", "the", "wind", "dropped", "."]
    return Doc(
        pipeline.vocab,
        words=words,
        tags=["DT", "NN", "VBD", "IN", "DT", "NN", "VBD", "."],
        pos=["DET", "NOUN", "VERB", "SCONJ", "DET", "NOUN", "VERB", "PUNCT"],
        heads=[1, 2, 2, 6, 5, 6, 2, 2],
        deps=["det", "nsubj", "ROOT", "mark", "det", "nsubj", "advcl", "punct"],
    )


def test_clear_labels_are_recognised_and_an_option_overrides() -> None:
    pipeline = with_parser("nsubj", "dobj")
    component: Any = pipeline.add_pipe("discorpora")
    assert component.scheme == "clear"
    doc = component(clear_doc(pipeline))
    assert [(p.s1, p.marker, p.s2) for p in doc._.pairs] == [
        ("The ferry left.", "because", "The wind dropped.")
    ]
    override: Any = pipeline.add_pipe("discorpora", name="other", config={"scheme": "ud"})
    assert override.scheme == "ud"


def test_a_saved_pipeline_loads_with_its_settings(tmp_path: Path) -> None:
    pipeline = with_parser("nsubj", "dobj")
    tagger: Any = pipeline.get_pipe("tagger")
    tagger.add_label("NN")
    pipeline.add_pipe("discorpora", config={"min_confidence": 0.3})
    pipeline.initialize()
    pipeline.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    component: Any = loaded.get_pipe("discorpora")
    assert component.settings.min_confidence == 0.3
    assert [p.marker for p in component(clear_doc(loaded))._.pairs] == ["because"]
    assert component.scheme == "clear"


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        (lambda: spacy.blank("en"), "no parser before discorpora"),
        (lambda: with_parser("obj", tagger=False), "trained tagger first"),
        (lambda: spacy.blank("de"), "language of this one is 'de'"),
        (lambda: with_parser("SB", "OA"), "neither UD's nor CLEAR's: .*SB"),
    ],
)
def test_add_pipe_says_what_the_pipeline_lacks(pipeline: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        pipeline().add_pipe("discorpora")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"scheme": "sud"}, "no scheme 'sud'"),
        ({"markers": "wheras"}, "no pattern for 'wheras'"),
        ({"mode": "all"}, "standalone"),
        ({"min_probability": 7.0}, "min_probability = 7"),
    ],
)
def test_add_pipe_refuses_wrong_settings(nlp: Language, config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        nlp.add_pipe("discorpora", name="other", config=config)


def test_a_document_without_trees_is_an_error(nlp: Language) -> None:
    with nlp.select_pipes(disable="parser"), pytest.raises(InputError, match="enable the parser"):
        nlp("It rained because it was autumn.")


def test_heads_in_white_space_or_another_sentence_are_roots(nlp: Language) -> None:
    component: Any = nlp.get_pipe("discorpora")
    doc = Doc(
        nlp.vocab,
        words=["\n", "We", "left", "because", "it", "rained", "."],
        tags=["_SP", "PRP", "VBD", "IN", "PRP", "VBD", "."],
        pos=["SPACE", "PRON", "VERB", "SCONJ", "PRON", "VERB", "PUNCT"],
        heads=[0, 2, 0, 5, 5, 2, 2],
        deps=["root", "nsubj", "dep", "mark", "nsubj", "advcl", "punct"],
    )
    assert [p.marker for p in component(doc)._.pairs] == ["because"]
