"""The coherence test sets by name, and how the tests of each are read from its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from corpora.document import paragraph_spans
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.coherence import is_annotations, read_pairs, with_group
from corpora.readers.source import Source
from corpora.readers.storycloze import read_storycloze
from corpora.readers.summeval import Summary, read_summaries
from corpora.readers.whole import encoding_of
from corpora.sentences import split
from corpora.store.folder import DatasetFolder

PROBES = (
    "animacy_pronoun_downgrade",
    "animacy_pronoun_upgrade",
    "gender_pronoun_flip",
    "past_to_future_flip",
    "singular_determiner_flip",
    "number_exaggerate",
    "conjunction_flip",
    "to_negation",
)
"""The linguistic probes of Shen et al. 2021, in the order of the paper's table 3."""

SETS = (
    "insted",
    "insted_cnn",
    *(f"probe_{name}" for name in PROBES),
    "storycloze",
    "summeval",
    "lmvlm",
)

Test = dict[str, Any]
"""A row of `COHERENCE_TESTS`."""

Sets = Iterator[tuple[str, str, Iterator[Test]]]
"""Name of the set, place, and its tests."""


def set_of(source: Source, path: Path) -> str:
    """Which test set a file is: the option `set`, else by its name, the authors' or ours.

    Raises `ConfigError` for a set that is not known, `InputError` where the name does not tell.
    """
    wanted = source.option("set", str)
    if wanted is not None and wanted not in SETS:
        raise ConfigError(
            f"unknown test set {wanted!r}",
            where=f"{source.kind}: set",
            hint=f"{nearest(wanted, SETS)}sets are {', '.join(SETS)}",
        )
    name = path.name.lower()
    probes = [f"probe_{probe}" for probe in PROBES if probe in name]
    if wanted or probes:
        return wanted or probes[0]
    if "insted" in name or "instead" in name:
        return "insted_cnn" if "cnn" in name else "insted"
    for known in ("storycloze", "lmvlm"):
        if known in name.replace("_", ""):
            return known
    raise InputError(
        "its name does not say which test set it is",
        where=str(path),
        hint=f'set = "NAME" in the source\'s options says it; sets are {", ".join(SETS)}',
    )


def _of_pairs(source: Source, splitter: str, dataset: DatasetFolder) -> Sets:
    """The authors' pickles, or JSON Lines of `pos` and `neg`."""

    def tests(path: Path) -> Iterator[Test]:
        last = ""
        for group, pair in with_group(read_pairs(path, _refusing(source))):
            source.good += pair.where != last
            last = pair.where
            rest = {"prompt": list(pair.prompt), "votes": list(pair.votes)}
            yield _test(pair.id, group, pair.pos, pair.neg) | rest

    for path in source.files:
        if not is_annotations(path):
            yield set_of(source, path), str(path), tests(path)


def _of_stories(source: Source, splitter: str, dataset: DatasetFolder) -> Sets:
    def tests(path: Path) -> Iterator[Test]:
        for story in read_storycloze(path, _refusing(source), encoding=encoding_of(source)):
            source.good += 1
            pos, neg = ((*story.context, end) for end in (story.right, story.wrong))
            yield _test(story.id, story.id, pos, neg)

    for path in source.files:
        yield "storycloze", str(path), tests(path)


def _of_summaries(source: Source, splitter: str, dataset: DatasetFolder) -> Sets:
    """Each two summaries of an article; all summaries (1,600 in the release) are held."""

    def tests(path: Path) -> Iterator[Test]:
        articles: dict[str, list[Summary]] = {}
        for summary in read_summaries(path, _refusing(source)):
            source.good += 1
            articles.setdefault(summary.document, []).append(summary)
        for summaries in articles.values():
            for one, two in combinations(sorted(summaries, key=lambda s: s.system), 2):
                if (test := _rated(one, two, splitter, source, dataset)) is not None:
                    yield test

    for path in source.files:
        yield "summeval", str(path), tests(path)


READS: dict[str, Callable[[Source, str, DatasetFolder], Sets]] = {
    "coherence": _of_pairs,
    "storycloze": _of_stories,
    "summeval": _of_summaries,
}


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


def _refusing(source: Source) -> Callable[[BadRecord], None]:
    def on_bad(record: BadRecord) -> None:
        source.refuse(record.where, record.reason, record.value)

    return on_bad
