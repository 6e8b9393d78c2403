"""The stages parse and extract: shards, resuming, the same bytes again."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpora.document import Document
from corpora.errors import ConfigError, DiscorporaError, InputError
from corpora.processes import in_order
from corpora.sentences import split
from extract import Extractor
from extract.parse import by_words
from extract.settings import PairSettings, ParseSettings
from extract.shards import iter_parses
from extract.stages import extract, parse
from tests.processes import ran

TEXT = "The bus was late, so we walked. {} Anna laughed because the dog ran away. But it came back."


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    names = ("Paul", "Marie", "Omar", "Ines", "Noor")
    plain = [Document(id=n, text=TEXT.format(f"Then {n} sang and we danced.")) for n in names]
    return [d.with_sentences(split(d.text, d.paragraphs)) for d in plain]


PARSE = ParseSettings(words_per_shard=40)
PAIRS = PairSettings(mode="recall")


@pytest.fixture(scope="module")
def parses(documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parses")
    counts = parse(documents, folder, PARSE)
    assert counts.documents == len(documents)
    assert counts.sentences == 4 * len(documents)
    return folder


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def test_stored_parses_give_the_same_pairs(
    documents: list[Document], parses: Path, tmp_path: Path
) -> None:
    counts = extract(documents, parses, tmp_path, PAIRS, words_per_shard=60)
    rows = [r for p in sorted(tmp_path.glob("pairs-*")) for r in pq.read_table(p).to_pylist()]
    straight = list(Extractor(mode="recall").pairs(documents))
    assert counts.pairs == len(rows) == len(straight)
    assert [(r["doc"], r["marker"], r["s1"], r["s2"]) for r in rows] == [
        (p.doc, p.marker, p.s1, p.s2) for p in straight
    ]
    assert [tuple(map(tuple, r["s1_spans"])) for r in rows] == [p.s1_spans for p in straight]
    assert json.loads((tmp_path / "rejects.json").read_text()) == counts.rejects.model_dump()
    assert sum(counts.markers.values()) == counts.pairs


def test_finished_shards_are_kept_and_bytes_are_the_same(
    documents: list[Document], parses: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    parse(documents, again, PARSE)
    assert bytes_of(again) == bytes_of(parses)
    first, second = sorted(again.glob("*.parquet"))[:2]
    kept = first.stat().st_mtime_ns
    second.unlink()
    counts = parse(documents, again, PARSE)
    assert first.stat().st_mtime_ns == kept
    assert bytes_of(again) == bytes_of(parses)
    assert counts.documents == len(documents)


@pytest.mark.slow
def test_workers_change_no_byte(documents: list[Document], parses: Path, tmp_path: Path) -> None:
    parse(documents, tmp_path, PARSE, workers=2)
    assert bytes_of(tmp_path) == bytes_of(parses)


def test_parses_of_other_documents_are_refused(
    documents: list[Document], parses: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"expected the parse of document 'Marie'"):
        extract(documents[1:], parses, tmp_path)


def test_parses_that_are_left_over_are_refused(
    documents: list[Document], parses: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        InputError, match=r"there is a parse of document 'Omar', but no such document"
    ):
        extract(documents[:2], parses, tmp_path)


def test_markers_that_were_not_parsed_for_are_refused(
    documents: list[Document], parses: Path, tmp_path: Path
) -> None:
    few = ParseSettings(markers="because,but")
    parse(documents, tmp_path / "few", few)
    settings = PairSettings(markers="but,so")
    with pytest.raises(ConfigError, match="not made for the markers so"):
        extract(documents, tmp_path / "few", tmp_path / "pairs", settings)
    parse(documents, tmp_path / "all", ParseSettings(markers=(), prefilter=False))
    assert extract(documents, tmp_path / "all", tmp_path / "pairs", settings).pairs


def test_documents_without_blanks_are_grouped_by_their_length() -> None:
    chinese = [Document(id=str(i), text="他因为下雨所以没有来。" * 100) for i in range(50)]
    lines = [Document(id=str(i), text="word\n" * 200) for i in range(50)]
    for documents in (chinese, lines):
        sizes = [sum(len(d.text) for d in group) for group in by_words(documents, 500)]
        assert len(sizes) > 5 and max(sizes) <= 6100
    english = [Document(id=str(i), text="extraordinarily " * 5 + TEXT) for i in range(20)]
    blanks = english[0].text.count(" ") + 1
    assert {len(group) for group in by_words(english, 4 * blanks)} == {4}


def test_no_parses_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no parses-\*\.parquet"):
        list(iter_parses(tmp_path))


def end_at(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_is_an_error() -> None:
    with pytest.raises(DiscorporaError, match="a worker process was killed"):
        list(in_order(end_at, [(number,) for number in range(6)], workers=2))


def threads(number: int) -> str:
    return os.environ["MKL_NUM_THREADS"]


def test_the_threads_of_the_parent_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert list(in_order(threads, [(1,)], workers=2)) == ["1"]
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert "MKL_NUM_THREADS" not in os.environ


SCRIPT = """
from corpora.document import Document, Spans
from extract import Extractor
print(list(Extractor(workers=2).pairs([Document(id="a", text="He left because it rained.")])))
"""


def test_a_script_without_a_guard_is_told_of_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = ran([sys.executable, script], env=environment)
    assert done.returncode != 0
    assert "a worker process tried to start workers itself" in done.stderr
    assert 'under `if __name__ == "__main__":`' in done.stderr.partition("was killed")[2]


def test_a_sentence_that_was_not_parsed_has_its_words_as_tokens() -> None:
    text = "We saw " + "a red house , " * 200 + "by the road. But he left the town early."
    document = Document("long", text)
    document = document.with_sentences(split(document.text, document.paragraphs))
    found = list(Extractor(text="tokenised", mode="recall").pairs([document]))
    (pair,) = [pair for pair in found if pair.position == "previous_sentence"]
    assert pair.s1.startswith("We saw a red house , a red house")
    assert pair.s2 == "He left the town early ."
