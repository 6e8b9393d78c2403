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
from corpora.readers.source import Reader, SeenIds, Source
from corpora.readers.stories import StoryCloze, read_storycloze
from corpora.schemas import COHERENCE_TESTS
from corpora.sentences import SplitterName, split
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder
from corpora.tasks.from_sources import FromSources, Opened, Part, Rows

Test = dict[str, Any]
"""A row of `COHERENCE_TESTS`."""

CARD = Card(
    title="Coherence test sets",
    summary=(
        "Pairs of texts of which one reads better: sentence intrusion (INSteD), linguistic probes, "
        "story endings, rated summaries, and continuations by language models with the votes of "
        "annotators. A coherence model should score `pos` higher, but in `lmvlm`, where it should "
        "agree with the votes."
    ),
    method=(
        "Jwalapuram et al. 2022, sections 2.2 and 2.3. INSteD and the probes (Shen et al. 2021), "
        "LMvLM and its votes are the authors' files, unchanged: two continuations of a prompt by "
        "language models. StoryCloze: four sentences with the right and with the wrong ending. "
        "SummEval: each two systems' summaries of an article; `pos` has the higher mean rating of "
        "coherence, pairs of equal mean are left out, and each expert votes by the two ratings "
        "given. Pairs of equal texts are left out."
    ),
    fields={
        "id": "id of the pair",
        "group": "what pairs have in common: the document, the story, the article, the prompt",
        "prompt": "sentences that both texts go on from; empty for most",
        "pos": "the sentences of the text that reads better; in `lmvlm` of the text that the "
        "authors' file calls `pos`, which the annotators need not prefer: see `votes`",
        "neg": "the sentences of the other one",
        "votes": "one an annotator: 1 prefers `pos`, 0 `neg`, -1 neither; empty without annotators",
    },
    citation="""@inproceedings{jwalapuram-etal-2022-rethinking,
  title = {Rethinking Self-Supervision Objectives for Generalizable Coherence Modeling},
  author = {Jwalapuram, Prathyusha and Joty, Shafiq and Lin, Xiang},
  booktitle = {Proceedings of ACL},
  year = {2022}
}
@article{shen-etal-2021-evaluating,
  title = {Evaluating Document Coherence Modeling},
  author = {Shen, Aili and Mistica, Meladel and Salehi, Bahar and Li, Hang and Baldwin, Timothy
            and Qi, Jianzhong},
  journal = {Transactions of the ACL},
  year = {2021}
}""",
    configurations={
        "insted": "a text of Wikipedia, and the same with a sentence of another one",
        "insted_cnn": "a news article, and the same with a sentence of another one",
        "probe_animacy_pronoun_downgrade": "a personal pronoun turned to `it`",
        "probe_animacy_pronoun_upgrade": "`it` turned to a personal pronoun",
        "probe_gender_pronoun_flip": "a pronoun turned to the other gender",
        "probe_past_to_future_flip": "a past tense turned to the future",
        "probe_singular_determiner_flip": "a determiner turned from singular to plural",
        "probe_number_exaggerate": "a number made larger",
        "probe_conjunction_flip": "a conjunction exchanged for another",
        "probe_to_negation": "a verb negated",
        "storycloze": "four sentences with the right and with the wrong ending",
        "summeval": "two summaries of an article, of which experts rate `pos` higher",
        "lmvlm": "two continuations of a prompt by language models, with the annotators' votes",
    },
    limits=(
        "The texts of different sets overlap: the probes were made from texts of INSteD.",
        "Summaries are split into sentences by a program.",
    ),
    tags=("coherence", "evaluation"),
)


class CoherenceTests(FromSources):
    """Test sets of pairs of texts, of which one reads better."""

    name, version = "coherence_tests", 2
    paper = "Jwalapuram, Joty and Lin 2022, sections 2.2 and 2.3"
    card = CARD
    kinds = ("coherence", "storycloze", "summeval")
    gives = dict.fromkeys(SETS, COHERENCE_TESTS)
    texts = dict.fromkeys(SETS, ("pos", "neg"))

    splitter: SplitterName = "rules"
    """What splits summaries into sentences (`corpora.sentences.SPLITTERS`)."""

    def parts(self, sources: Iterable[Opened], dataset: DatasetFolder) -> Iterator[Part]:
        """The tests of each file, all in the split `test`; those that repeat one are counted."""
        seen: dict[str, SeenIds] = {}
        repeated = dataset.details.setdefault("exact_duplicates", {})

        def differing(name: str, place: str, tests: Iterator[Test]) -> Rows:
            for test in tests:
                if test["pos"] == test["neg"]:
                    dataset.reject(f"identical_{name}")
                    continue
                text = "\n".join((*test["pos"], "", *test["neg"]))
                repeated[name] += not seen[name].add(text)
                yield place, test

        for reader, source in sources:
            for name, place, tests in sets_of(reader, source, self.splitter, dataset):
                seen.setdefault(name, SeenIds())
                repeated.setdefault(name, 0)
                licence = reader.licence_of(name)
                yield Part(name, "test", licence, differing(name, place, tests))


def sets_of(
    reader: Reader, source: Source, splitter: str, dataset: DatasetFolder
) -> Iterator[tuple[str, str, Iterator[Test]]]:
    """Name, place and tests of each set of a source, one a file; `splitter` splits summaries."""
    for path in source.files:
        if isinstance(reader, Coherence):
            if not is_annotations(path):
                yield reader.set_of(path), str(path), _pairs(path, source)
        elif isinstance(reader, StoryCloze):
            yield "storycloze", str(path), _stories(path, reader, source)
        elif isinstance(reader, SummEval):
            yield "summeval", str(path), _summaries(path, reader, source, splitter, dataset)


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


def _summaries(
    path: Path, reader: SummEval, source: Source, splitter: str, dataset: DatasetFolder
) -> Iterator[Test]:
    """Each two summaries of an article; all summaries (1,600 in the release) are held."""
    articles: dict[str, list[Test]] = {}
    for _, _, row, _ in reader.examples(path, "", source):
        source.good += 1
        articles.setdefault(row["group"], []).append(row)
    for summaries in articles.values():
        for one, two in combinations(sorted(summaries, key=itemgetter("id")), 2):
            if (test := _rated(one, two, splitter, source, dataset)) is not None:
                yield test


def _rated(
    one: Test, two: Test, splitter: str, source: Source, dataset: DatasetFolder
) -> Test | None:
    """The pair of two summaries, the better rated first; none for equal means."""
    if len(one["ratings"]) != len(two["ratings"]):
        dataset.reject("other_number_of_experts")
        return None
    if sum(one["ratings"]) == sum(two["ratings"]):
        dataset.reject("equal_rating")
        return None
    pos, neg = (one, two) if sum(one["ratings"]) > sum(two["ratings"]) else (two, one)
    votes = [(a > b) - (a == b) for a, b in zip(pos["ratings"], neg["ratings"], strict=True)]
    texts = (_sentences(s["text"], splitter, source.language) for s in (pos, neg))
    group = one["group"]
    name = f"{one['id']}-{two['id'].removeprefix(f'{group}/')}"
    return _test(name, group, *texts) | {"votes": votes}


def _sentences(text: str, splitter: str, language: str) -> list[str]:
    folded = " ".join(text.split())
    return [folded[a:b] for a, b in split(folded, paragraph_spans(folded), splitter, language)]


def _test(id: str, group: str, pos: Sequence[str], neg: Sequence[str]) -> Test:
    texts = {"pos": list(pos), "neg": list(neg)}
    return {"id": id, "group": group, "prompt": [], **texts, "votes": []}
