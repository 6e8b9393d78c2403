"""Parsers: what they give for the same text, and what they say when something is missing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from corpora.document import Document, Spans
from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.sentences import split
from extract import Extractor, Reject
from extract.parsers import check_language, get_parser
from extract.parsers.gold import GoldParser
from extract.parsers.stanza import StanzaParser
from extract.patterns import load_patterns
from extract.prefilter import Prefilter
from extract.seen import parser_text
from tests.extract.trees import document

DATA = Path(__file__).parents[1] / "data"
CONLL = """
# text = Don't go because it rains.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\tMood=Imp|VerbForm=Fin\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\tVerbForm=Inf\t0\troot\t_\t_
4\tbecause\tbecause\tSCONJ\tIN\t_\t6\tmark\t_\t_
5\tit\tit\tPRON\tPRP\t_\t6\tnsubj\t_\t_
6\trains\train\tVERB\tVBZ\tVerbForm=Fin\t3\tadvcl\t_\tSpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

"""


def test_an_unknown_abbreviation_before_its_noun_has_no_stop_for_the_parser() -> None:
    assert parser_text("The neg. result of Dr. Lee fell.")[0] == "The neg result of Dr. Lee fell."
    for known in (
        "It is the approx. size of it.",
        "We saw the pond. and left.",
        "An etc. follows.",
    ):
        assert parser_text(known)[0] == known


def test_the_embedded_parser_keeps_sentences_and_offsets() -> None:
    text = "It rained.  We   stayed\nindoors, so it went."
    plain = Document(id="d", text=text, sentences=Spans([0, 12], [10, len(text)]))
    (parsed,) = get_parser("embedded").parse([plain])
    assert parsed.sentence.tolist() == [0, 1]
    forms = [parsed.strings.strings[c] for c in parsed.form]
    spans = zip(parsed.start, parsed.end, strict=True)
    assert forms == [text[a:b] for a, b in spans]
    roots = np.flatnonzero(parsed.head < 0)
    assert len(roots) == 2
    assert {int(np.searchsorted(parsed.offsets, r, side="right")) for r in roots} == {1, 2}


def test_gold_tokens_are_kept() -> None:
    gold = document("Can/X/aux/3 not/R/advmod/3 go/V/root/0 today/R/advmod/3")
    (parsed,) = get_parser("embedded", gold_tokens=True).parse([gold])
    assert parsed.start.tolist() == gold.tokens.start


def test_only_chosen_sentences_are_parsed() -> None:
    gold = document(*["It/P/nsubj/2 rained/V!/root/0"] * 3, "And/CCONJ/cc/2 stopped/V!/root/0")
    (parsed,) = get_parser("embedded", prefilter=Prefilter(("and",), load_patterns())).parse([gold])
    assert parsed.sentence.tolist() == [3]


def test_multiword_tokens_and_empty_nodes_of_a_treebank() -> None:
    documents = list(open_source(f"conllu:{DATA / 'readers' / 'harbour.conllu'}"))
    pairs = list(Extractor("gold", mode="recall").pairs(documents))
    assert ("and", "She sails.", "He rows.") in [(p.marker, p.s1, p.s2) for p in pairs]


def test_words_of_one_token_stay_on_one_side() -> None:
    gold = document(
        "I/P/nsubj/2 go/V!/root/0 because/SCONJ/mark/5 wan/V/xcomp/2 na/PART/advcl/2",
        text="I go because wanna",
    )
    tokens = gold.tokens
    assert tokens is not None
    tokens.start[3:], tokens.end[3:] = [13, 13], [18, 18]
    extractor = Extractor("gold", mode="recall")
    assert list(extractor.pairs([gold])) == []
    assert extractor.reject_counts == {"s2_empty": 1}


def test_gold_trees_must_fit_the_sentences() -> None:
    gold = document("It/P/nsubj/2 rained/V!/root/0").with_sentences(Spans([0, 3], [2, 9]))
    with pytest.raises(ValueError, match="2 sentences but 1 tree;"):
        list(GoldParser().parse([gold]))


@pytest.mark.slow
def test_stanzas_words_become_columns() -> None:
    conll = pytest.importorskip("stanza.utils.conll")
    from extract.parsers.base import GoldTokens
    from extract.parsers.stanza import _words

    result = conll.CoNLL.conll2doc(input_str=CONLL)
    starts, ends = [0, 0, 6, 9, 17, 20, 25], [5, 5, 8, 16, 19, 25, 26]
    rows = list(_words(result.sentences, 10, [], GoldTokens([], starts, ends)))
    assert [r[3] for r in rows] == ["Do", "n't", "go", "because", "it", "rains", "."]
    assert [r[2] for r in rows] == [12, 12, -1, 15, 15, 12, 12]
    assert rows[0][:2] == rows[1][:2] == (0, 5)


@pytest.mark.slow
def test_stanza_without_models_says_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("stanza")
    parser = get_parser("stanza:en", dir=str(tmp_path))
    with pytest.raises(ConfigError, match=r"stanza\.download"):
        list(parser.parse([document("It/P/nsubj/2 rained/V!/root/0")]))


@pytest.mark.slow
def test_a_setting_of_stanza_may_be_a_table_for_several_workers(tmp_path: Path) -> None:
    pytest.importorskip("stanza")
    settings = {"dir": str(tmp_path), "processors": {"tokenize": "ewt"}}
    extractor = Extractor("stanza:en", workers=2, **settings)
    with pytest.raises(ConfigError, match=r"stanza\.download"):
        list(extractor.pairs([lamp()]))


class Silent:
    """Stands for a stanza pipeline: it notes what it gets, and finds nothing in it."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def bulk_process(self, texts: list[str]) -> list[Any]:
        self.seen += texts
        return [SimpleNamespace(sentences=[]) for _ in texts]


def test_a_parser_takes_texts_of_its_language() -> None:
    for parser, language in (("stanza:zh-hans", "zh"), ("stanza:en", "en"), ("gold", "es")):
        check_language(parser, language)
    with pytest.raises(ConfigError, match=r"'stanza:es' is for texts in 'es', .* in 'en'"):
        check_language("stanza:es", "en")


def test_stanza_takes_no_raw_text_for_gold_tokens() -> None:
    parser = StanzaParser("en", gold_tokens=True)
    plain = Document(id="d", text="It rained.", sentences=Spans([0], [10]))
    with pytest.raises(InputError, match="document 'd' has no gold tokens"):
        list(parser.parse([plain]))


def test_stanza_leaves_out_sentences_of_too_many_tokens() -> None:
    rejects: list[Reject] = []
    parser = StanzaParser("en", on_skip=rejects.append)
    parser.nlp = Silent()
    text = "go " * 501 + "go"
    spans = Spans([0, 1500], [1499, len(text)])
    (parsed,) = parser.parse([Document(id="d", text=text, sentences=spans)])
    assert parsed.sentence.tolist() == [0, 1]
    whole = Document(id="e", text=text, sentences=Spans([0], [len(text)]))
    (parsed,) = parser.parse([whole])
    assert parsed.sentence.tolist() == []
    assert [(r.reason, r.doc) for r in rejects] == [("sentence_too_long", "e")]
    assert len(parser.nlp.seen) == 2


# The prefilter: sentences that may hold a marker, and those before them that may be its S1.

SENTENCES = (
    "The lamp was lit.",
    "He read because he could not sleep.",
    "A clock struck.",
    "It was cold outside.",
    "But the room was warm.",
    "Sand covered the band.",
    "The floor was also clean.",
    "He had some bread and butter.",
)


def lamp() -> Document:
    plain = Document(id="d", text=" ".join(SENTENCES))
    return plain.with_sentences(split(plain.text, plain.paragraphs))


@pytest.mark.parametrize(
    ("markers", "previous", "chosen"),
    [
        (("because",), False, [1]),
        (("but", "and"), False, [4, 7]),
        (("but", "and"), True, [3, 4, 7]),
        (("also",), True, [5, 6]),
        (("although",), True, []),
    ],
)
def test_sentences_are_chosen(markers: tuple[str, ...], previous: bool, chosen: list[int]) -> None:
    assert Prefilter(markers, load_patterns(), previous).choose(lamp()).tolist() == chosen


def test_marks_before_the_first_word_are_no_words() -> None:
    text = "The lamp was lit. A clock struck. ' \" ( - But he left. It rained and rained."
    cuts = ["The lamp was lit.", "A clock struck.", "' \" ( - But he left."]
    starts = [text.index(cut) for cut in cuts]
    spans = Spans(starts, [s + len(cut) for s, cut in zip(starts, cuts, strict=True)])
    found = Prefilter(("but",), load_patterns(), previous=True).choose(
        Document(id="d", text=text, sentences=spans)
    )
    assert found.tolist() == [1, 2]


def test_two_sentences_are_parsed_whole() -> None:
    plain = Document(id="d", text="The lamp was lit. A clock struck.")
    short = plain.with_sentences(split(plain.text, plain.paragraphs))
    assert Prefilter(("and",), load_patterns()).choose(short).tolist() == [0, 1]


def test_a_sentence_layer_is_needed() -> None:
    with pytest.raises(ValueError, match="split it first"):
        Prefilter(("and",), load_patterns()).choose(Document(id="d", text="One and two."))


def test_words_between_underscores_are_found() -> None:
    text = "He wondered. _But_ he said nothing. She smiled _and_ he left. The dog slept. It rained."
    with_it, without = Extractor(mode="recall"), Extractor(mode="recall", prefilter=None)
    found = [
        list(extractor.pairs([Document(id="d", text=text)])) for extractor in (with_it, without)
    ]
    assert [pair.marker for pair in found[0]] == ["but", "and"]
    assert [(p.marker, p.s1, p.s2) for p in found[0]] == [(p.marker, p.s1, p.s2) for p in found[1]]
    assert with_it.reject_counts == without.reject_counts


# Stanza for real, with a tagger and a parser trained here on a few sentences.

TREES = Path(__file__).parents[1] / "data" / "parser" / "tiny.conllu"
SMALL = {
    **{"hidden_dim": 32, "word_emb_dim": 16, "transformed_dim": 16, "tag_emb_dim": 8},
    **{"deep_biaff_hidden_dim": 16, "batch_size": 200, "max_steps": 60, "eval_interval": 30},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings of `stanza:en` with models of its own; they have learnt next to nothing."""
    tagger = pytest.importorskip("stanza.models.tagger")
    parser = pytest.importorskip("stanza.models.parser")
    folder = tmp_path_factory.mktemp("stanza")
    (folder / "resources.json").write_text("{}", encoding="utf-8")
    given = {"train_file": TREES, "eval_file": TREES, "save_dir": folder, "lang": "en", **SMALL}
    common = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
    common += ["--shorthand", "en_tiny", "--mode", "train", "--no_pretrain", "--cpu", "--seed", "1"]
    tagger.main([*common, "--save_name", "pos.pt"])
    parser.main([*common, "--save_name", "depparse.pt", "--no_checkpoint"])
    return {
        "dir": str(folder),
        "processors": "tokenize,pos,lemma,depparse",
        "tokenize_with_spacy": True,
        "lemma_use_identity": True,
        "pos_model_path": str(folder / "pos.pt"),
        "depparse_model_path": str(folder / "depparse.pt"),
        "allow_unknown_language": True,
        "use_gpu": False,
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_raw_text_is_parsed_within_its_sentences(models: dict[str, Any]) -> None:
    text = "(a) The kettle sang because the stove glowed. It rained,[1]\nso we stayed."
    plain = Document(id="d", text=text, sentences=Spans([0, 46], [45, len(text)]))
    (parsed,) = get_parser("stanza:en", **models).parse([plain])
    forms = [parsed.strings.strings[code] for code in parsed.form]
    spans = list(zip(parsed.start.tolist(), parsed.end.tolist(), strict=True))
    assert forms == [text[a:b].removesuffix("[1]") for a, b in spans]
    assert (forms[0], spans[0]) == ("The", (4, 7))
    assert parsed.sentence.tolist() == [0, 1]
    begin, end = parsed.offsets[1:].tolist()
    assert (parsed.head[:begin] < begin).all()
    assert ((parsed.head[begin:end] < 0) | (parsed.head[begin:end] >= begin)).all()
    assert parsed.head.min() == -1


@pytest.mark.nightly
@pytest.mark.slow
def test_gold_tokens_are_kept_and_long_sentences_left_out(models: dict[str, Any]) -> None:
    documents = list(open_source(f"conllu:{TREES}"))
    settings = {k: v for k, v in models.items() if k != "tokenize_with_spacy"}
    rejects: list[Reject] = []
    given = {"gold_tokens": True, "prefilter": None, "max_chars": 40, **settings}
    extractor = Extractor("stanza:en", "all15", "recall", on_reject=rejects.append, **given)
    list(extractor.columns(documents))
    long = [span for d in documents for span in d.sentences if span[1] - span[0] > 40]
    assert long and [r.span for r in rejects if r.reason == "sentence_too_long"] == long
    (parsed, *_) = get_parser("stanza:en", gold_tokens=True, **settings).parse(documents)
    assert parsed.start.tolist() == documents[0].tokens.start
