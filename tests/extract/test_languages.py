"""Spanish and Chinese by their tables alone, and the labels of spaCy's English pipelines."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from corpora.document import Document, Spans
from corpora.readers import open_source
from extract import Extractor, Pair
from extract.parse import ParsedDocument
from extract.parsers.gold import GoldParser
from extract.patterns import load_patterns, resolve_markers, table_languages
from extract.prefilter import Prefilter
from tests.extract.trees import document

DATA = Path(__file__).parents[1] / "data" / "extract"


def pairs(language: str, subjects: str = "shared") -> list[tuple[str, str, str]]:
    documents = open_source(f"conllu:{DATA / language}.conllu")
    extractor = Extractor("gold", "all", "standalone", language, subjects=subjects)
    return [(p.marker, p.s1, p.s2) for p in extractor.pairs(documents)]


def test_spanish() -> None:
    assert pairs("es") == [
        ("cuando", "Subieron todos.", "Llegó el tren."),
        ("y", "Cuando llegó el tren, subieron todos.", "Ana abrió la ventana."),
        (
            "pero",
            "Cuando llegó el tren, subieron todos y Ana abrió la ventana.",
            "Llovía porque era invierno.",
        ),
        ("porque", "Llovía.", "Era invierno."),
        ("sin embargo", "Pero llovía porque era invierno.", "Cantaron."),
        ("si", "Comemos.", "Vienes."),
    ]


def test_spanish_modifiers_and_verbs_side_by_side() -> None:
    def found(source: str) -> list[tuple[str, str, str]]:
        extractor = Extractor("gold", "all", "recall", "es")
        return [(p.marker, p.s1, p.s2) for p in extractor.pairs([document(source)])]

    # "just when", as in English "right after": the adverb is not of the clause's text.
    assert found(
        "Subieron/V!/root/0 justo/R/advmod/4 cuando/SCONJ/mark/4 llegó/V!/advcl/1 Ana/N/nsubj/4"
    ) == [("cuando", "Subieron.", "Llegó Ana.")]
    assert found("Rió/V!/root/0 y/CCONJ/cc/3 cerró/V!/conj/1 puertas/N/obj/3") == [
        ("y", "Rió.", "Cerró puertas.")
    ]
    assert found("Peló/V!/root/0 y/CCONJ/cc/3 cortó/V!/conj/1 cebollas/N/obj/1") == []


def test_chinese() -> None:
    assert pairs("zh") == [
        ("因为", "我们没有出门。", "下雨。"),
        ("但是", "他很累。", "他没有休息。"),
        ("虽然", "他游泳。", "天很冷。"),
        ("所以", "虽然天很冷，但是他游泳。", "他病了。"),
    ]


def test_a_chinese_correlative_is_one_connective() -> None:
    documents = list(open_source(f"conllu:{DATA}/zh.conllu"))
    (pair,) = Extractor("gold", "虽然 ... 但是", "recall", language="zh").pairs(documents)
    text = documents[0].text
    assert [text[a:b] for a, b in pair.marker_spans] == ["虽然", "但是"]
    assert (pair.s1, pair.s2) == ("他游泳。", "天很冷。")


GSD = {
    # Adverbs that link clauses are `mark`; the clause before with the same subject is an `advcl`.
    "他/P/nsubj/2 喝/V/advcl/6 茶/N/obj/2 ，/PUNCT/punct/2 也/SCONJ/mark/6 喝/V/root/0 "
    "酒/N/obj/6": ("也", "他 喝 茶。", "喝 酒。"),
    "船/N/nsubj/3 都/SCONJ/mark/3 旧/A/root/0 ，/PUNCT/punct/7 但/SCONJ/mark/7 "
    "港/N/nsubj/7 新/A/parataxis/3": ("但", "船 都 旧。", "港 新。"),
    # Subordinators are `case`, their clauses complements in front of their governor.
    "我/P/nsubj/6 如果/ADP/case/3 病/V/xcomp/6 ，/PUNCT/punct/3 就/SCONJ/mark/6 睡/V/root/0": (
        ("如果", "我就 睡。", "病。")
    ),
    "虽/ADP/case/3 天/N/nsubj/3 冷/A/xcomp/7 ，/PUNCT/punct/3 但/SCONJ/mark/7 她/P/nsubj/7 "
    "游泳/V/root/0": ("虽然", "她 游泳。", "天 冷。"),
    "这/P/nsubj/2 是/V/root/0 因为/ADP/case/5 他/P/nsubj/5 病/V/ccomp/2": None,
    # "When he came he also laughed": no clause before, only a frame of this one.
    "他/P/nsubj/5 来/V/advcl/5 时/ADP/mark/2 也/SCONJ/mark/5 笑/V/root/0": None,
}


@pytest.mark.parametrize("sentence", GSD)
def test_the_labels_of_the_chinese_treebanks(sentence: str) -> None:
    extractor = Extractor("gold", "all", "standalone", "zh", subjects="shared")
    pairs = [(p.marker, p.s1, p.s2) for p in extractor.pairs([document(sentence)])]
    expected = GSD[sentence]
    assert pairs == ([expected] if expected else [])


def test_of_several_clauses_before_the_nearest_is_s1() -> None:
    sentence = (
        "他/P/nsubj/6 起床/V/advcl/6 ，/PUNCT/punct/2 吃饭/V/advcl/6 然后/SCONJ/mark/6 走/V/root/0"
    )
    (pair,) = Extractor("gold", "然后", "recall", "zh").pairs([document(sentence)])
    assert (pair.s1, pair.s2) == ("吃饭。", "他走。")


def test_shuffled_sentences_do_not_look_back() -> None:
    """The markers inside a sentence stay."""
    sentences = (
        "Llovía/V!/root/0 porque/SCONJ/mark/4 era/X!/cop/4 invierno/N/advcl/1 ././punct/1",
        "Entonces/R/advmod/2 cantaron/V!/root/0 ././punct/2",
    )
    found = {}
    for previous in (True, False):
        extractor = Extractor("gold", "all", "standalone", "es", previous=previous)
        found[previous] = [p.marker for p in extractor.pairs([document(*sentences)])]
        assert extractor.reject_counts["s1_head"] == (not previous)
    assert found == {True: ["porque", "entonces"], False: ["porque"]}


class ClearGold(GoldParser):
    """Trees written by hand in the labels of spaCy's English pipelines."""

    scheme = "clear"

    def parse(self, documents: Iterable[Document]) -> Iterator[ParsedDocument]:
        return super().parse(documents)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "He/P/nsubj/2 sang/V!/ROOT/0 and/CCONJ/cc/2 she/P/nsubj/5 danced/V!/conj/2 ././punct/2",
            ("and", "He sang.", "She danced."),
        ),
        (
            "It/P/nsubj/2 was/X!/ROOT/0 late/A/acomp/2 but/CCONJ/cc/2 we/P/nsubj/6 "
            "stayed/V!/conj/2 ././punct/2",
            ("but", "It was late.", "We stayed."),
        ),
        (
            "After/ADP/prep/5 eating/V/pcomp/1 ,/PUNCT/punct/5 he/P/nsubj/5 slept/V!/ROOT/0",
            ("after", "He slept.", "Eating."),
        ),
        (
            "We/P/nsubj/2 stayed/V!/ROOT/0 because/SCONJ/mark/5 it/P/nsubj/5 rained/V!/advcl/2",
            ("because", "We stayed.", "It rained."),
        ),
        (
            "She/P/nsubjpass/3 was/X!/auxpass/3 asked/V/ROOT/0 for/ADP/prep/3 help/N/pobj/4 "
            "after/SCONJ/mark/9 the/DET/det/8 boat/N/nsubj/9 sank/V!/advcl/3 ././punct/3",
            ("after", "She was asked for help.", "The boat sank."),
        ),
        (
            "Oh/INTJ/intj/7 ,/PUNCT/punct/7 although/SCONJ/mark/5 it/P/nsubj/5 rained/V!/advcl/7 "
            "they/P/nsubj/7 kept/V!/ROOT/0 on/PART/prt/7 playing/V/xcomp/7 ././punct/7",
            ("although", "Oh they kept on playing.", "It rained."),
        ),
        (
            "He/P/nsubj/2 gave/V!/ROOT/0 us/P/dative/2 tea/N/dobj/2 and/CCONJ/cc/2 then/R/advmod/7 "
            "told/V!/conj/2 us/P/dative/7 that/SCONJ/mark/11 he/P/nsubj/11 was/X!/ccomp/7 "
            "a/DET/det/13 smith/N/attr/11 ././punct/2",
            ("and", "He gave us tea.", "Then told us that he was a smith."),
        ),
        (
            "The/DET/det/2 man/N/nsubj/8 who/P/nsubj/4 came/V!/relcl/2 last/A/amod/6 "
            "week/N/npadvmod/4 will/X!/aux/8 leave/V/ROOT/0 if/SCONJ/mark/11 you/P/nsubj/11 "
            "ask/V!/advcl/8 him/P/dobj/11 ././punct/8",
            ("if", "The man who came last week will leave.", "You ask him."),
        ),
    ],
)
def test_the_labels_of_spacy(sentence: str, expected: tuple[str, str, str]) -> None:
    marker = expected[0]
    (pair,) = Extractor(ClearGold(), marker, "recall").pairs([document(sentence)])
    assert isinstance(pair, Pair)
    assert (pair.marker, pair.s1, pair.s2) == expected


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_may_be_written_in_two_ways(form: str) -> None:
    sentence = "Vine/V!/root/0 y/CCONJ/cc/4 también/R/advmod/4 canté/V!/conj/1 coplas/N/obj/4"
    written = document(unicodedata.normalize(form, sentence))
    found = Extractor("gold", "también", "recall", "es").pairs([written])
    assert [p.marker for p in found] == ["también"]
    chosen = Prefilter(["también"], load_patterns("es")).choose(
        Document(
            id="d",
            text=(text := unicodedata.normalize(form, "Llovía. Vine. También canté.")),
            sentences=Spans([0, text.index("V"), text.index("T")], [7, len(text) - 14, len(text)]),
        )
    )
    assert chosen.tolist() == [2]


@pytest.mark.parametrize("language", table_languages())
def test_every_language_has_the_set_of_all_markers(language: str) -> None:
    assert set(load_patterns(language).markers) >= set(resolve_markers("all", language))
    assert len(resolve_markers("all", language)) > 5
