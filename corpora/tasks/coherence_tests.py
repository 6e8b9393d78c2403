"""Coherence test sets (Jwalapuram, Joty, Lin 2022, sections 2.2 and 2.3), from the user's files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from corpora.card import Card
from corpora.document import paragraph_spans
from corpora.errors import BadRecord, ConfigError, InputError, nearest
from corpora.readers.coherence import is_annotations, read_pairs
from corpora.readers.source import SeenIds, Source
from corpora.readers.storycloze import read_storycloze
from corpora.readers.summeval import Summary, read_summaries
from corpora.readers.whole import encoding_of
from corpora.schemas import COHERENCE_TESTS
from corpora.sentences import SPLITTERS, split
from corpora.store import DatasetFolder, used
from corpora.tasks.given import Given, Unique, opened_sources
from corpora.tasks.target import Target

VERSION = 1
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

CARD = Card(
    title="Coherence test sets",
    summary=(
        "Pairs of texts of which one reads better: sentence intrusion (INSteD), linguistic probes, "
        "story endings, rated summaries, and continuations by language models with the votes of "
        "annotators. A coherence model should score `pos` higher."
    ),
    method=(
        "Jwalapuram et al. 2022, sections 2.2 and 2.3. INSteD and the probes (Shen et al. 2021), "
        "LMvLM and its votes are the authors' files, unchanged. StoryCloze: four sentences with "
        "the right and with the wrong ending. SummEval: each two systems' summaries of an "
        "article; `pos` has the higher mean rating of coherence, pairs of equal mean are left "
        "out, and each expert votes by the two ratings given. Pairs of equal texts are left out."
    ),
    fields={
        "id": "id of the pair",
        "group": "what pairs have in common: the document, the story, the article",
        "prompt": "sentences that both texts go on from; empty for most",
        "pos": "the sentences of the text that reads better",
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
    limits=(
        "The texts of different sets overlap: the probes were made from texts of INSteD.",
        "Summaries are split into sentences by a program.",
    ),
    tags=("coherence", "evaluation"),
)

Test = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """`splitter`: what splits summaries into sentences (`corpora.sentences.SPLITTERS`)."""

    splitter: str = "rules"

    def __post_init__(self) -> None:
        if self.splitter not in SPLITTERS:
            raise ConfigError(
                f"splitter = {self.splitter!r}", hint=f"one of {', '.join(sorted(SPLITTERS))}"
            )


def configurations(settings: Settings) -> Iterable[str]:
    """What `Builder.configurations` gives."""
    return SETS


def build(
    sources: Iterable[Given], settings: Settings, target: Target, *, max_bad_share: float = 1.0
) -> dict[str, Any]:
    """Build one configuration a test set, all in the split `test`; returns the manifest.

    `sources` are `(spec, options)` of the kinds `coherence`, `storycloze` and `summeval`. Raises
    `InputError` for an id that comes twice in a set, where a file's name does not tell its set,
    and where more than `max_bad_share` of a source's records are bad.
    """
    with target.dataset(CARD) as dataset:
        ids, texts = Unique(), dict[str, SeenIds]()
        found: dict[str, int] = {}
        for source, licence in opened_sources(sources, READS, dataset, max_bad_share):
            for name, where, tests in READS[source.kind](source, settings, dataset):
                kept = _kept(tests, name, where, ids, dataset)
                rows = _counted(kept, name, texts.setdefault(name, SeenIds()), dataset)
                columns = ("pos", "neg")
                number = dataset.write(name, "test", rows, COHERENCE_TESTS, texts=columns)
                dataset.licences[licence] += number - found.get(name, 0)
                found[name] = number
        dataset.details |= {"settings": used(settings, target.seed)}
        return dataset.finish(next((name for name in SETS if found.get(name)), None))


def _kept(
    tests: Iterable[Test], name: str, where: str, ids: Unique, dataset: DatasetFolder
) -> Iterator[Test]:
    """The tests but for those of two equal texts."""
    for test in tests:
        if test["pos"] == test["neg"]:
            dataset.reject(f"identical_{name}")
            continue
        ids.check(name, test["id"], where)
        yield test


def _counted(
    tests: Iterable[Test], name: str, seen: SeenIds, dataset: DatasetFolder
) -> Iterator[Test]:
    """The tests as they are; those that repeat an earlier one of the set are counted."""
    repeated = dataset.details.setdefault("exact_duplicates", {})
    repeated.setdefault(name, 0)
    for test in tests:
        repeated[name] += not seen.add("\n".join((*test["pos"], "", *test["neg"])))
        yield test


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


Sets = Iterator[tuple[str, str, Iterator[Test]]]
"""Name of the set, place, and its tests."""


def _of_pairs(source: Source, settings: Settings, dataset: DatasetFolder) -> Sets:
    """The authors' pickles, or JSON Lines of `pos` and `neg`."""

    def tests(path: Path) -> Iterator[Test]:
        last = ""
        for pair in read_pairs(path, _refusing(source)):
            source.good += pair.where != last
            last = pair.where
            group = pair.reference or pair.text
            rest = {"prompt": list(pair.prompt), "votes": list(pair.votes)}
            yield _test(pair.id, group, pair.pos, pair.neg) | rest

    for path in source.files:
        if not is_annotations(path):
            yield set_of(source, path), str(path), tests(path)


def _of_stories(source: Source, settings: Settings, dataset: DatasetFolder) -> Sets:
    def tests(path: Path) -> Iterator[Test]:
        for story in read_storycloze(path, _refusing(source), encoding=encoding_of(source)):
            source.good += 1
            pos, neg = ((*story.context, end) for end in (story.right, story.wrong))
            yield _test(story.id, story.id, pos, neg)

    for path in source.files:
        yield "storycloze", str(path), tests(path)


def _of_summaries(source: Source, settings: Settings, dataset: DatasetFolder) -> Sets:
    """Each two summaries of an article; all summaries (1,600 in the release) are held."""

    def tests(path: Path) -> Iterator[Test]:
        articles: dict[str, list[Summary]] = {}
        for summary in read_summaries(path, _refusing(source)):
            source.good += 1
            articles.setdefault(summary.document, []).append(summary)
        for summaries in articles.values():
            for one, two in combinations(sorted(summaries, key=lambda s: s.system), 2):
                if (test := _rated(one, two, settings, source, dataset)) is not None:
                    yield test

    for path in source.files:
        yield "summeval", str(path), tests(path)


READS: dict[str, Callable[[Source, Settings, DatasetFolder], Sets]] = {
    "coherence": _of_pairs,
    "storycloze": _of_stories,
    "summeval": _of_summaries,
}


def _rated(
    one: Summary, two: Summary, settings: Settings, source: Source, dataset: DatasetFolder
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
    texts = (_sentences(s.text, settings, source.language) for s in (pos, neg))
    name = f"{one.document}/{one.system}-{two.system}"
    return _test(name, one.document, *texts) | {"votes": votes}


def _sentences(text: str, settings: Settings, language: str) -> list[str]:
    folded = " ".join(text.split())
    return [
        folded[a:b] for a, b in split(folded, paragraph_spans(folded), settings.splitter, language)
    ]


def _test(id: str, group: str, pos: Sequence[str], neg: Sequence[str]) -> Test:
    texts = {"pos": list(pos), "neg": list(neg)}
    return {"id": id, "group": group, "prompt": [], **texts, "votes": []}


def _refusing(source: Source) -> Callable[[BadRecord], None]:
    def on_bad(record: BadRecord) -> None:
        source.refuse(record.where, record.reason, record.value)

    return on_bad
