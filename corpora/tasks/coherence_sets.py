"""The coherence test sets by name, and how the tests of each are read from its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from corpora.document import paragraph_spans
from corpora.readers.coherence import (
    Coherence,
    Summary,
    is_annotations,
    read_pairs,
    read_summaries,
    with_group,
)
from corpora.readers.source import Reader, Source
from corpora.readers.stories import StoryCloze, read_storycloze
from corpora.sentences import split
from corpora.store.folder import DatasetFolder

Test = dict[str, Any]
"""A row of `COHERENCE_TESTS`."""

Sets = Iterator[tuple[str, str, Iterator[Test]]]
"""Name of the set, place, and its tests."""


KINDS = ("coherence", "storycloze", "summeval")
"""The kinds of sources that have such sets."""


def sets_of(reader: Reader, source: Source, splitter: str, dataset: DatasetFolder) -> Sets:
    """The sets of a source, one a file; `splitter` splits summaries."""
    for path in source.files:
        if isinstance(reader, Coherence):
            if not is_annotations(path):
                yield reader.set_of(path), str(path), _pairs(path, source)
        elif isinstance(reader, StoryCloze):
            yield "storycloze", str(path), _stories(path, reader, source)
        else:
            yield "summeval", str(path), _summaries(path, source, splitter, dataset)


def _pairs(path: Path, source: Source) -> Iterator[Test]:
    """Of the authors' pickles, or JSON Lines of `pos` and `neg`."""
    last = ""
    for group, pair in with_group(read_pairs(path, source.refuse)):
        source.good += pair.where != last
        last = pair.where
        rest = {"prompt": list(pair.prompt), "votes": list(pair.votes)}
        yield _test(pair.id, group, pair.pos, pair.neg) | rest


def _stories(path: Path, reader: StoryCloze, source: Source) -> Iterator[Test]:
    for story in read_storycloze(path, source.refuse, encoding=reader.encoding):
        source.good += 1
        pos, neg = ((*story.context, end) for end in (story.right, story.wrong))
        yield _test(story.id, story.id, pos, neg)


def _summaries(path: Path, source: Source, splitter: str, dataset: DatasetFolder) -> Iterator[Test]:
    """Each two summaries of an article; all summaries (1,600 in the release) are held."""
    articles: dict[str, list[Summary]] = {}
    for summary in read_summaries(path, source.refuse):
        source.good += 1
        articles.setdefault(summary.document, []).append(summary)
    for summaries in articles.values():
        for one, two in combinations(sorted(summaries, key=lambda s: s.system), 2):
            if (test := _rated(one, two, splitter, source, dataset)) is not None:
                yield test


def _rated(
    one: Summary, two: Summary, splitter: str, source: Source, dataset: DatasetFolder
) -> Test | None:
    """The pair of two summaries, the better rated first; none for equal means."""
    if len(one.ratings) != len(two.ratings):
        dataset.reject("other_number_of_experts")
        return None
    if sum(one.ratings) == sum(two.ratings):
        dataset.reject("equal_rating")
        return None
    pos, neg = (one, two) if sum(one.ratings) > sum(two.ratings) else (two, one)
    votes = [(a > b) - (a == b) for a, b in zip(pos.ratings, neg.ratings, strict=True)]
    texts = (_sentences(s.text, splitter, source.language) for s in (pos, neg))
    name = f"{one.document}/{one.system}-{two.system}"
    return _test(name, one.document, *texts) | {"votes": votes}


def _sentences(text: str, splitter: str, language: str) -> list[str]:
    folded = " ".join(text.split())
    return [folded[a:b] for a, b in split(folded, paragraph_spans(folded), splitter, language)]


def _test(id: str, group: str, pos: Sequence[str], neg: Sequence[str]) -> Test:
    texts = {"pos": list(pos), "neg": list(neg)}
    return {"id": id, "group": group, "prompt": [], **texts, "votes": []}
