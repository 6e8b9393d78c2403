"""Coherence test sets (Jwalapuram, Joty, Lin 2022, sections 2.2 and 2.3), from the user's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any

from corpora.document import paragraph_spans
from corpora.readers.coherence import (
    SETS,
    Coherence,
    SummEval,
    is_annotations,
    read_pairs,
    with_group,
)
from corpora.readers.source import Source
from corpora.readers.stories import StoryCloze, read_storycloze
from corpora.rng import stable_id
from corpora.schemas import COHERENCE_TESTS
from corpora.sentences import SplitterName, split
from corpora.store.folder import DatasetFolder
from corpora.tasks.cards import card_beside
from corpora.tasks.from_sources import FromSources, Opened, PlacedRows, SplitRows

Test = dict[str, Any]
"""A row of `COHERENCE_TESTS`."""


class CoherenceTests(FromSources):
    """Test sets of pairs of texts, of which one reads better."""

    name, version = "coherence_tests", 3
    paper = "Jwalapuram, Joty and Lin 2022, sections 2.2 and 2.3"
    card = card_beside(__file__, "coherence_tests")
    kinds = ("coherence", "storycloze", "summeval")
    gives = dict.fromkeys(SETS, COHERENCE_TESTS)
    texts = dict.fromkeys(SETS, ("pos", "neg"))

    splitter: SplitterName = "rules"
    """What splits summaries into sentences (`corpora.sentences.SPLITTERS`)."""

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[SplitRows]:
        """Yield the tests of each file, all in the split `test`.

        A test that repeats within a file is counted as a duplicate. A test with the texts of one in
        an earlier file is left out: a set may come both as the authors' pickle and as the release
        that it was made from, with sentences split differently.
        """
        ids_by_set: dict[str, dict[int, str]] = {}  # of earlier files, by a hash of the texts
        duplicates = dataset.details.setdefault("exact_duplicates", {})

        def new_tests(name: str, place: str, tests: Iterator[Test]) -> PlacedRows:
            """Yield the tests of a file of the set `name` that no earlier file of the set has."""
            earlier_ids, ids_of_file = ids_by_set.setdefault(name, {}), dict[int, str]()
            duplicates.setdefault(name, 0)
            for test in tests:
                if test["pos"] == test["neg"]:
                    dataset.reject(f"identical_{name}")
                    continue
                texts = ("".join("".join(test[side]).split()) for side in ("pos", "neg"))
                texts_hash = stable_id("\n".join(texts))
                if earlier_ids.get(texts_hash, test["id"]) != test["id"]:
                    dataset.reject(f"in_another_file_{name}")
                    continue
                duplicates[name] += texts_hash in ids_of_file
                ids_of_file[texts_hash] = test["id"]
                yield place, test
            earlier_ids |= ids_of_file

        for reader, source in sources:
            for path in source.files:
                if isinstance(reader, StoryCloze):
                    name, tests = "storycloze", _story_tests(path, reader, source)
                elif isinstance(reader, SummEval):
                    tests = _summary_tests(path, reader, source, self.splitter, dataset)
                    name = "summeval"
                elif isinstance(reader, Coherence) and not is_annotations(path):
                    name, tests = reader.set_of(path), _pair_tests(path, source)
                else:
                    continue  # votes, which go with the pairs
                rows = new_tests(name, str(path), tests)
                yield SplitRows(name, "test", reader.licence_of(name), rows)


def _pair_tests(path: Path, source: Source) -> Iterator[Test]:
    """Yield the tests of a pickle of the authors, or of JSON Lines with `pos` and `neg`."""
    last_place = ""
    for group, pair in with_group(read_pairs(path, source.refuse)):
        source.good += pair.where != last_place
        last_place = pair.where
        columns = {"prompt": list(pair.prompt), "votes": list(pair.votes)}
        yield _test_row(pair.id, group, pair.pos, pair.neg) | columns


def _story_tests(path: Path, reader: StoryCloze, source: Source) -> Iterator[Test]:
    """Yield a test for each story of a StoryCloze file: the right ending against the wrong one."""
    for story in read_storycloze(path, source.refuse, encoding=reader.encoding):
        source.good += 1
        yield _test_row(story.id, story.id, story.pos, story.neg)


def _summary_tests(
    path: Path, reader: SummEval, source: Source, splitter: str, dataset: DatasetFolder
) -> Iterator[Test]:
    """Yield a test for each pair of summaries of an article, the better rated one as `pos`. Two
    summaries of equal rating give no test. All summaries (1,600 in the release) are in memory."""

    def sentences(text: str) -> list[str]:
        folded = " ".join(text.split())
        spans = split(folded, paragraph_spans(folded), splitter, source.language)
        return [folded[a:b] for a, b in spans]

    articles: dict[str, list[Test]] = {}
    for _, _, row, _ in reader.rows(path, "", source):
        source.good += 1
        articles.setdefault(row["group"], []).append(row)
    for group, summaries in articles.items():
        for first, second in combinations(sorted(summaries, key=itemgetter("id")), 2):
            pos, neg = sorted((first, second), key=lambda row: sum(row["ratings"]), reverse=True)
            if len(first["ratings"]) != len(second["ratings"]):
                dataset.reject("other_number_of_experts")
            elif sum(first["ratings"]) == sum(second["ratings"]):
                dataset.reject("equal_rating")
            else:
                ratings = zip(pos["ratings"], neg["ratings"], strict=True)
                votes = [(a > b) - (a == b) for a, b in ratings]  # for 1, against 0, neither -1
                name = f"{first['id']}-{second['id'].removeprefix(f'{group}/')}"
                texts = sentences(pos["text"]), sentences(neg["text"])
                yield _test_row(name, group, *texts) | {"votes": votes}


def _test_row(id: str, group: str, pos: Sequence[str], neg: Sequence[str]) -> Test:
    """Return a row of `COHERENCE_TESTS` without a prompt or votes."""
    texts = {"pos": list(pos), "neg": list(neg)}
    return {"id": id, "group": group, "prompt": [], **texts, "votes": []}
