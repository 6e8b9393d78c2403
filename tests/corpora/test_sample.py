"""The embedded sample: what its README says of it holds, and every dataset has a source in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora.document import Document
from corpora.readers import open_source
from corpora.readers.pdtb import read_gold
from corpora.readers.rows import SAMPLE
from corpora.sentences import split_document
from corpora.tasks.discoeval.rst import class_of

README = (SAMPLE / "README.md").read_text(encoding="utf-8")
GOLD = SAMPLE / "gold"


def numbers(row: str) -> list[int]:
    """The numbers in the row of the README that begins with `row`."""
    (line,) = (line for line in README.splitlines() if line.startswith(f"| {row} |"))
    return [int(n.replace(",", "")) for n in re.findall(r"\b\d[\d,]*\b", line)]


@pytest.fixture(scope="module")
def gold() -> list[Document]:
    return [split_document(document) for document in read_gold(GOLD)]


@pytest.mark.parametrize("part", ["articles", "stories", "news", "abstracts", "chat"])
def test_the_readme_counts_documents_and_words(part: str) -> None:
    documents = list(open_source(f"sample:{part}"))
    words = sum(len(document.text.split()) for document in documents)
    assert numbers(f"`{part}.jsonl`")[:2] == [len(documents), words]
    assert all(re.fullmatch(r"sample_[a-z0-9_]+", document.id) for document in documents)


def test_the_gold_texts_are_those_of_the_sample(gold: list[Document]) -> None:
    texts = {document.id: document.text for document in open_source("sample:")}
    assert all(document.text == texts[document.id] for document in gold)
    words = sum(len(document.text.split()) for document in gold)
    kinds = Counter(r.kind for document in gold for r in document.relations or ())
    found = [len(gold), words, kinds["Explicit"], kinds["Implicit"]]
    assert numbers("`gold/`") == found
    assert kinds["Explicit"] >= 150 and kinds["Implicit"] >= 120


def test_connectives_stand_where_the_gold_says(gold: list[Document]) -> None:
    for document in gold:
        for relation in document.relations or ():
            under = " ".join(document.text[a:b] for a, b in relation.connective_spans).lower()
            assert under == (relation.connective if relation.kind == "Explicit" else "")
            assert relation.arg1_spans and relation.arg2_spans, relation.where
            for spans in (relation.arg1_spans, relation.arg2_spans):
                piece = document.text[spans[0][0] : spans[-1][1]]
                assert piece == piece.strip(' "'), relation.where
                assert not piece.endswith(".") or piece.endswith(".m."), relation.where


def test_adjacent_sentences_are_related(gold: list[Document]) -> None:
    """As the guide says: all but those that a phrase such as `until then` links."""
    without = [pair for document in gold for pair in _unrelated(document)]
    assert len(without) <= 3


def _unrelated(document: Document) -> Iterator[tuple[str, int]]:
    sentences, paragraphs = document.sentences, document.paragraphs
    assert sentences is not None and paragraphs is not None
    reached = set()
    for relation in document.relations or ():
        places = [s[0][0] for s in (relation.arg1_spans, relation.arg2_spans)]
        first, last = sorted(bisect_right(sentences.start, place) - 1 for place in places)
        reached |= {last} if first < last else set()
    for i in range(1, len(sentences)):
        places = [sentences.start[i - 1], sentences.start[i]]
        one, two = (bisect_right(paragraphs.start, place) for place in places)
        if one == two and i not in reached:
            yield document.id, i


def test_trees_are_over_the_stories(gold: list[Document]) -> None:
    texts = {document.id: document.text for document in open_source("sample:stories")}
    trees = list(open_source(f"rst:{SAMPLE / 'rst'}"))
    words = sum(len(document.text.split()) for document in trees)
    assert numbers("`rst/`") == [len(trees), words]
    for document in trees:
        assert document.rst is not None and document.text == texts[document.id]
        assert len(document.rst) >= 8 and all(map(class_of, document.rst.relation))


def test_small_test_sets_are_read() -> None:
    endings = list(open_source(f"storycloze:{SAMPLE / 'tests'}"))
    rows = list(open_source(f"superglue:{SAMPLE / 'superglue'}"))
    assert len(endings) >= 20
    assert {row.id.partition("/")[0] for row in rows} == {"rte", "copa", "record"}


def test_nothing_else_lies_in_the_sample() -> None:
    known = {"README.md", "LICENSE", "gold", "rst", "tests", "superglue"}
    parts = {path.name for path in Path(SAMPLE).iterdir()}
    assert parts - known == {
        f"{p}.jsonl" for p in ("articles", "stories", "news", "abstracts", "chat")
    }
