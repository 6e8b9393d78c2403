"""`wikipedia:`: what is read of a dump, and what no dump can do to the reader."""

from __future__ import annotations

import bz2
import gc
import gzip
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
from corpora.readers.wikipedia import unclosed

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
    def write(*pages: str, end: str = "</mediawiki>") -> str:
        (tmp_path / "x.xml").write_text(HEAD + "".join(pages) + end, encoding="utf-8")
        return f"wikipedia:{tmp_path / 'x.xml'}"

    return write


def texts(document: Document) -> list[tuple[int, str, str]]:
    layer = document.sections
    assert layer is not None
    rows = zip(layer.level, layer.heading, layer.start, layer.end, strict=True)
    return [(level, heading, document.text[a:b]) for level, heading, a, b in rows]


def test_an_article_has_sections_and_categories() -> None:
    skipped: Counter[str] = Counter()
    pier, gull = open_source(str(DUMP), skipped=skipped)
    assert texts(pier) == [
        (
            1,
            "",
            "The old pier (built 1871) is a landing place in the harbour. It is made of"
            " oak\u00a0and iron.\n\nA storm broke it in two; see the report.\n\n"
            "It was mended in a year.",
        ),
        (2, "History", ""),
        (
            3,
            "Storms",
            "Three storms are known:\n\none of 1880,\n\none of 1901.\n\nNobody was hurt.",
        ),
        (2, "See also", "Shelf:Piers"),
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


def test_a_title_with_a_colon_is_no_link_to_another_wiki(dump: Write) -> None:
    text = (
        "She was in [[CSI: Oslo]], [[CSI: Rome|a later one]] and [[Re:Zero]].[[fr:Taupe]][[de:M|n]]"
    )
    (article,) = open_source(dump(page(text)))
    assert article.text == "She was in CSI: Oslo, a later one and Re:Zero."


def test_what_is_not_closed_is_counted() -> None:
    assert unclosed("{{a|{{b}}}} [[c]] <i>d</i> <br> <!-- {{ --> <math>{{</math> <ref/>", 50) == 0
    assert unclosed("{| a\n| {{b|}}\n|}", 50) == 0
    assert unclosed("{{a [[b}} c]] <i>d <b>e</b>", 50) == 2
    assert unclosed("<!-- a", 50) == 1


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
