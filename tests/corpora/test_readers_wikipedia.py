"""`wikipedia:`: what is read of a dump, and what no dump can do to the reader."""

from __future__ import annotations

import bz2
import gc
import gzip
import json
import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from corpora import errors
from corpora.document import Document
from corpora.errors import BadRecord, DiscorporaError, InputError
from corpora.readers import files, guarded, open_source, wikipedia
from corpora.readers.source import Source
from corpora.readers.wikipedia import count_unclosed
from corpora.sentences import split_document
from tests.corpora.conftest import sections

pytest.importorskip("mwxml")
pytest.importorskip("mwparserfromhell")

DUMP = Path(__file__).resolve().parent.parent / "data" / "readers" / "harbour-wiki.xml"
HEAD = '<mediawiki xml:lang="de"><siteinfo><dbname>w</dbname></siteinfo>'
Write = Callable[..., str]


def page(text: str, number: int = 1, title: str = "Mole", extra: str = "") -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id>{extra}<revision><id>7</id>"
        f"<timestamp>2026-01-02T03:04:05Z</timestamp><text>{text}</text></revision></page>\n"
    )


@pytest.fixture
def dump(tmp_path: Path) -> Write:
    def write(*pages: str, end: str = "</mediawiki>", language: str = "de") -> str:
        head = HEAD.replace("de", language)
        (tmp_path / "x.xml").write_text(head + "".join(pages) + end, encoding="utf-8")
        return f"wikipedia:{tmp_path / 'x.xml'}"

    return write


def test_an_article_has_sections_and_categories():
    skipped: Counter[str] = Counter()
    pier, gull = open_source(str(DUMP), skipped=skipped)
    assert sections(pier) == [
        (
            1,
            "",
            "The old pier (oude pier; built 1871) is a landing place in the harbour. It is made of"
            " oak\u00a0and iron.\n\nA storm broke it in two; see the report.\n\n"
            "It was mended in a year.",
        ),
        (2, "History", ""),
        (3, "Storms", "Nobody was hurt."),
    ]
    assert (pier.id, pier.title, pier.licence) == ("harbourwiki:12", "Old pier", "CC-BY-SA-4.0")
    assert pier.url == "https://harbour.example/wiki/Old_pier"
    assert pier.categories == ("Piers", "Oak buildings")
    assert gull.text == "A gull is a bird of the coast."
    assert skipped == {"redirect": 1, "other namespace": 1, "disambiguation": 1}


@pytest.mark.parametrize(("suffix", "pack"), [(".bz2", bz2.compress), (".gz", gzip.compress)])
def test_a_packed_dump_reads_the_same(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    whole = DUMP.read_bytes()
    # Wikipedia's own dumps are several bzip2 streams, one after the other.
    half = len(whole) // 2
    (tmp_path / f"harbour-wiki.xml{suffix}").write_bytes(pack(whole[:half]) + pack(whole[half:]))
    options = {"name": "x"}
    packed = list(open_source(str(tmp_path / f"harbour-wiki.xml{suffix}"), options))
    assert packed == list(open_source(str(DUMP), options))


def test_a_truncated_archive_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.xml.bz2"
    path.write_bytes(bz2.compress(DUMP.read_bytes())[:-20])
    with pytest.raises(InputError, match="bzip2 archive ends too early"):
        list(open_source(str(path), on_bad=list[BadRecord]().append))
    path.write_bytes(b"no archive at all")
    with pytest.raises(InputError, match="bzip2 archive is damaged"):
        list(open_source(str(path)))


def test_a_truncated_dump_gives_what_was_whole_and_then_an_error(dump: Write) -> None:
    documents = open_source(dump(page("First."), page("Second.", 2)[:-40], end=""))
    with pytest.raises(InputError, match=r"x\.xml:3: not well-formed XML|x\.xml:2: not well-form"):
        list(documents)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (page("{{only|a template}}"), "no text"),
        (page(""), "no text"),
        (page("x", extra="<surprise/>"), "bad page"),
        ("<page><title>x</title><ns>a</ns></page>\n", "bad page"),
        (page("[[" * 100), "not wikitext"),
        (page("a" * (2 << 20) + "b"), "too long"),
        (page("Text.").replace("<id>1</id>", ""), "bad page"),
        (page("Text.").replace("2026-01-02T03:04:05Z", "yesterday"), "bad page"),
    ],
)
def test_one_bad_page_among_good_ones(bad: str, reason: str, dump: Write) -> None:
    spec = dump(page("First.", 1), bad, page("Last.", 3))
    found: list[BadRecord] = []
    assert [d.text for d in open_source(spec, on_bad=found.append)] == ["First.", "Last."]
    assert [b.reason.partition(":")[0] for b in found] == [reason]
    assert found[0].where.endswith("x.xml:2")


def test_ids_come_from_the_dump_but_lead_nowhere(tmp_path: Path) -> None:
    wild = HEAD.replace("<dbname>w<", "<dbname>../../w<") + page("Text.") + "</mediawiki>"
    (tmp_path / "x.xml").write_text(wild, encoding="utf-8")
    found: list[BadRecord] = []
    with pytest.raises(InputError, match="no document in it"):
        list(open_source(f"wikipedia:{tmp_path / 'x.xml'}", on_bad=found.append))
    assert "leads out of its folder" in found[0].reason


BOMBS = {
    "entities": (
        '<!DOCTYPE m [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><mediawiki>&b;</mediawiki>',
        "document type",
    ),
    "external entity": (
        '<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]><mediawiki>&a;</mediawiki>',
        "document type",
    ),
    "a million tags deep": ("<mediawiki>" + "<a>" * 1_000_000, "nested more than"),
    "a brace in the namespace": ('<mediawiki xmlns="a}b"></mediawiki>', "not well-formed"),
    "an encoding of its own": ('<?xml version="1.0" encoding="UTFU8"?><mediawiki/>', "UTFU8"),
    "another root": ("<html><body/></html>", "its root is <html>"),
    "prose": ("It was a dark night.", "not well-formed"),
    "JSON": ('{"a": 1}', "not well-formed"),
    "Parquet": ("PAR1" + "x" * 99, "Parquet"),
}


@pytest.mark.parametrize(("content", "reason"), BOMBS.values(), ids=BOMBS.keys())
def test_no_dump_at_all_is_refused(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(content, encoding="utf-8")
    tracemalloc.start()
    with pytest.raises(InputError, match=reason):
        list(open_source(f"wikipedia:{path}", on_bad=list[BadRecord]().append))
    assert tracemalloc.get_traced_memory()[1] < 24 << 20
    tracemalloc.stop()


def test_an_absurdly_long_text_is_refused_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "GAP_LIMIT", 2 << 20)
    path = tmp_path / "x.xml.bz2"
    with bz2.open(path, "wb", 1) as file:
        file.write((HEAD + page("First.") + "<page><title>").encode())
        for _ in range(24):
            file.write(b"x" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(InputError, match="2 MiB between two tags"):
        list(open_source(f"wikipedia:{path}"))
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


HOSTILE = ("{{a|", "{{{a|", "[[", "<div>", "{|\n|-\n", "<ref>", '<b a="', "[http://a ", "<!--")


@pytest.mark.parametrize("opening", [*HOSTILE, "[[a|<b> ]] </b>", '<ref name="a>x</ref>', "<math>"])
def test_wikitext_that_the_parser_would_choke_on_is_refused_soon(opening: str, dump: Write) -> None:
    spec = dump(page(opening * 20_000), page("Good.", 2))
    started = time.monotonic()
    found: list[BadRecord] = []
    assert [d.text for d in open_source(spec, on_bad=found.append)] == ["Good."]
    assert found[0].reason.startswith("not wikitext")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "text", ["{{" + " " * 200_000, "(" + ", " * 100_000, "_" * 200_000, "*#" * 9]
)
def test_long_runs_take_no_time(text: str, dump: Write) -> None:
    spec = dump(page(text + "\n\nText."), page("Good.", 2))
    started = time.monotonic()
    assert list(open_source(spec, on_bad=list[BadRecord]().append))[-1].text == "Good."
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("It is {{convert|1200|km|mi|1}} long.", "It is 1,200 km long."),
        ("A {{convert|5|-|12|m2|adj=on}} field.", "A 5–12 m² field."),
        (
            "A {{cvt|12|km|adj=on}} road, {{convert|6|ft|2|in|cm}} wide.",
            "A 12-km road, 6 ft 2 in wide.",
        ),
        ("A {{convert|12|km|mi|0|adj=mid|-long}} wall.", "A 12-km-long wall."),
        ("A {{convert|6|ft|2|in|adj=mid|-high}} wall.", "A 6 ft 2 in-high wall."),
        ("A {{convert|12|km|mi|adj=mid}} wall.", "A 12-km wall."),
        (
            "Some {{formatnum:1234567}} came in {{c.|1850}} ({{circa}} 1860).",
            "Some 1,234,567 came in c. 1850 (c. 1860).",
        ),
        ("Born {{birth date and age|1950|5|4}}.", "Born May 4, 1950."),
        (
            "Until {{End date|1950|5|4|df=yes}}, {{as of|2010|3|lc=y}}.",
            "Until 4 May 1950, as of March 2010.",
        ),
        ("By {{nowrap|J. {{lang|fr|[[Roi|Leroi]]}}}}{{'s}} friend.", "By J. Leroi's friend."),
        (
            "It cost {{US$|5 million|2010}}{{snd}}{{frac|1|2}} of it.",
            "It cost US$5 million – 1/2 of it.",
        ),
        ("The {{HMS|Kite|1805|6}}{{sfn|Bell|p=3}} sank{{when|date=May}}.", "The HMS Kite sank."),
        ("{{quote|It was {{em|late}}.|Ann}}", "It was late."),
        ("He said.{{unheard of}} She left.", "He said. She left."),
        ("It (also {{lang-nl|Mol}}, {{IPA|x}}; a mole) digs.", "It (a mole) digs."),
        ("''Mole'''s den.", "Mole's den."),
        # Notes of editors on words, and what keeps programs from correcting them.
        ('A sign said "{{sic|Fish|es}}" and {{sic|?|offen}}.', 'A sign said "Fishes" and offen.'),
        ("It is {{dubious span|old|date=May}}{{dubious|Age}}{{sic}}.", "It is old."),
        ("{{clarify span|1=Most}} {{update span|text=left}}.", "Most left."),
        ("She sang {{audio|x.ogg|Home}} ({{audio|y.ogg|listen}}).", "She sang Home."),
        ("Sir {{not a typo|Jo|n}} {{post-nominals|country=GBR|OBE|FRS}}.", "Sir Jon OBE FRS."),
        # Fractions and numbers.
        ("Add {{frac|4}} or {{sfrac|2|1|8}} cups.", "Add 1/4 or 2 1/8 cups."),
        ("Add 5{{frac|1|2}} or 3{{3/4}} cups.", "Add 5 1/2 or 3 3/4 cups."),
        ("It has 10<sup>6</sup> or 10{{sup|-3}} parts.", "It has 10⁶ or 10⁻³ parts."),
        ("Some {{formatnum:-1234567.89}} ({{formatnum:999}}).", "Some -1,234,567.89 (999)."),
        ("It is {{val|1.5|0.2|u=m}}, {{val|1200}}.", "It is 1.5±0.2 m, 1200."),
        ("It is {{convert|5+1/2|ft|m}} wide.", "It is 5 1/2 ft wide."),
        # A number with a unit after it is no precision.
        ("It is {{convert|6|foot|4|inch|cm}}.", "It is 6 foot 4 inch."),
        ("It is {{convert|5|pounds|6|ounces|kg|1}}.", "It is 5 pounds 6 ounces."),
        ("It is {{convert|1|mi|3|chain}} or {{convert|1|mi|3}}.", "It is 1 mi 3 chain or 1 mi."),
        ("It is {{convert|5|USgal}}, {{convert|5|m3/h}}.", "It is 5 US gal, 5 m³/h."),
        # Blanks around unnamed values stay.
        ("It{{nowrap| ran }}12{{nowrap| km}}{{nowrap|1= . }}", "It ran 12 km."),
        ("A {{linktext|wet| |day}} of {{frac| 1 | 2 }}.", "A wet day of 1/2."),
        # Names, dates, signs.
        ("The {{HMS|Kite|1805}} met {{ship|USS|Owl|CV-6|2}}.", "The HMS Kite (1805) met Owl."),
        ("Open {{as of|2010|alt=since 2010}}.", "Open since 2010."),
        ("From {{circa|1850|1860}}.", "From c. 1850 – c. 1860."),
        ("A {{angbr|b}}, {{thinsp|5|kg}}.", "A ⟨b⟩, 5 kg."),
        ("It -{ran}- and -{R|sat}- -{zh-hans:up;zh-hant:up}-.", "It ran and sat up."),
    ],
)
def test_a_template_with_a_value_keeps_it(written: str, shown: str, dump: Write) -> None:
    (article,) = open_source(dump(page(written), language="en"))
    assert article.text == shown


@pytest.mark.parametrize(
    "missing",
    [
        "{{age in parsecs|9}}",
        "<math>x^2</math>",
        "{{convert|a}}",
        "{{coord|5|N}}",
        "{{dts|1990|13}}",
        "{{start date|1990|13}}",
        "{{harvtxt|Bell|1990}}",
        "{{IPA|x}}",
        "{{cn|text=old}}",
        "{{wrap|old}}",
        "{{lang|de}}",
        "{{nihongo||x|y}}",
        "{{frac|1||2}}",
        "{{convert|2|e6km}}",
        "{{convert|2|km|disp=out}}",
        "{{convert|2|km|mi|order=flip}}",
        "{{convert|2|km|mi|disp=flip}}",
        "{{convert|2|km|mi|adj=mid|deep}}",
        "{{convert|2|m|spell=in}}",
        "{{convert|5|LT}}",
        "{{convert|6|ft|2|fooish}}",
        "{{formatnum:1234|R}}",
        "{{formatnum:a{{b}}}}",
        "-{zh-hans:old;zh-hant:aged}-",
        "-{A|zh:old}-",
        "-{|zh-hans:old;zh-hant:aged}-",
    ],
)
def test_a_sentence_in_which_something_is_missing_is_left_out(missing: str, dump: Write) -> None:
    text = f"It ran. It was {missing} long. It fell. {missing} was Mr. Bell. It rose.\n\n{missing}"
    (article,) = open_source(dump(page(text), language="en"))
    # No paragraph joins what was not beside each other.
    assert article.text == "It ran.\n\nIt fell.\n\nIt rose."


@pytest.mark.parametrize(
    ("language", "written", "shown"),
    [
        ("de", "{{formatnum:1234567.5}}", "1.234.567,5"),
        ("fr", "{{formatnum:1234}}", "1\u202f234"),
        ("es", "{{formatnum:1234}}", "1234"),
        ("es", "{{formatnum:12345}}", "12\u00a0345"),
        ("it", "{{formatnum:1234}}", ""),  # it is not known whether it is grouped
        ("fa", "{{formatnum:12345}}", ""),
        ("de", "{{convert|12|km|mi}}", ""),
        ("de", "{{sic|x}}", ""),
        ("fr", "{{date|4|mai|2001}}", ""),
        ("fr", "{{sfn|Bell|1990}}", " "),
    ],
)
def test_names_of_templates_mean_other_things_in_other_languages(
    language: str, written: str, shown: str, dump: Write
) -> None:
    (article,) = open_source(dump(page(f"Eins. Zwei {written} drei."), language=language))
    whole = f" Zwei {shown} drei.".replace("   ", " ") if shown else ""
    assert article.text == f"Eins.{whole}"


def test_boxes_lists_and_bibliographies_are_no_prose(dump: Write) -> None:
    text = """{{Box
| a = {{convert|a}}
}}'''Moles''' dig. {{Unknown note}}
{{Another}} {{box}}

They live in:
# earth
#* dry
:; and
: wet
<ul><li>sand.</li></ul>
and so on. They eat worms. These are:
* long ones.

==Notes and references==
Bell, A. (1990). Moles. Town Press.
===Books===
Bell, A. (1991). More moles.
==Life==
They sleep."""
    (article,) = open_source(dump(page(text)))
    assert sections(article) == [
        (1, "", "Moles dig.\n\nand so on. They eat worms."),
        (2, "Life", "They sleep."),
    ]


def as_wikitext(paragraph: str) -> str:
    """A paragraph with its citation marks, dates, numbers and some of its names as markup."""
    rules = [
        (r" ?\[\d+\]", r"<ref>{{cite book|title=A book. Of two}}</ref>"),
        (r"\b([A-Z][a-z]+) (\d{1,2}), (\d{4})", dated),
        (r"(?<![\d|,.])(\d{1,3}),(\d{3})\b(?!,)", r"{{formatnum:\1\2}}"),
        (r"(?<![\d,.])(\d{1,3}) (km|mi|ft)\b", r"{{convert|\1|\2|m}}"),
        (r" – ", r"{{snd}}"),
        (r"\b(The [A-Z][a-z]+)\b", r"{{nowrap|[[A page|\1]]}}"),
        (r"\b(in [A-Z][a-z]+)\b", r"{{lang|en|''\1''}}"),
    ]
    for pattern, markup in rules:
        paragraph = re.sub(pattern, markup, paragraph)
    return paragraph


def dated(match: re.Match[str]) -> str:
    months = "January February March April May June July August September October November December"
    names = months.split()
    if match[1] not in names:
        return match[0]
    return f"{{{{start date|{match[3]}|{names.index(match[1]) + 1}|{match[2]}}}}}"


def test_the_shared_articles_come_back_from_their_wikitext(
    discorpora_data: Path, dump: Write
) -> None:
    lines = (discorpora_data / "wiki" / "articles.jsonl").read_text(encoding="utf-8").splitlines()
    pages, expected = [], []
    for number, article in enumerate(map(json.loads, lines), 1):
        paragraphs = [p for section in article["sections"] for p in section["paragraphs"]]
        bodies = [
            f"=={s['heading'] or 'Life'}==\n" + "\n\n".join(map(as_wikitext, s["paragraphs"]))
            for s in article["sections"]
        ]
        end = "==References==\n{{reflist}}\n* Bell, A. (1990). Moles. Town Press.\n{{Navbox}}"
        pages.append(page("\n\n".join([*bodies, end]), number))
        plain = "\n\n".join(re.sub(r" ?\[\d+\]", "", p) for p in paragraphs)
        expected.append(Counter(split_document(Document("a", plain)).sentence_texts()))
    spec = dump(*pages, language="en")
    found = [Counter(split_document(d).sentence_texts()) for d in open_source(spec)]
    same = sum((a & b).total() for a, b in zip(expected, found, strict=True))
    assert sum(text.count("{{") for text in pages) > 300
    assert same > 0.98 * sum(c.total() for c in expected)
    assert same > 0.98 * sum(c.total() for c in found)


def test_a_title_with_a_colon_is_no_link_to_another_wiki(dump: Write) -> None:
    text = (
        "She was in [[CSI: Oslo]], [[CSI: Rome|a later one]] and [[Re:Zero]].[[fr:Taupe]][[de:M|n]]"
    )
    (article,) = open_source(dump(page(text)))
    assert article.text == "She was in CSI: Oslo, a later one and Re:Zero."


def test_what_is_not_closed_is_counted() -> None:
    assert (
        count_unclosed("{{a|{{b}}}} [[c]] <i>d</i> <br> <!-- {{ --> <math>{{</math> <ref/>", 50)
        == 0
    )
    assert count_unclosed("{| a\n| {{b|}}\n|}", 50) == 0
    assert count_unclosed("{{a [[b}} c]] <i>d <b>e</b>", 50) == 2
    assert count_unclosed("<!-- a", 50) == 1


def test_memory_does_not_grow_with_the_dump(dump: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 1 << 16)

    def held(count: int) -> int:
        """What is held when all pages but the last few have gone by."""
        path = Path(dump(*(page(f"Text {i}.", i + 1) for i in range(count))).partition(":")[2])
        documents = wikipedia.Wikipedia().read(Source("wikipedia", str(path), [path]))
        tracemalloc.start()
        assert sum(1 for _ in islice(documents, count - 5)) == count - 5
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return used

    held(10)
    assert held(2_000) - held(1_000) < 1_000 * 45


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(errors, "import_module", missing)
    with pytest.raises(DiscorporaError, match=r"pip install 'discorpora\[wikipedia\]'"):
        list(open_source(str(DUMP)))
