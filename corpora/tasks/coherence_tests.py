"""Coherence test sets (Jwalapuram, Joty, Lin 2022, sections 2.2 and 2.3), from the user's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from corpora.errors import ConfigError
from corpora.readers.coherence import SETS
from corpora.readers.source import SeenIds
from corpora.schemas import COHERENCE_TESTS
from corpora.sentences import SPLITTERS
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, used
from corpora.tasks.coherence_sets import READS, Test
from corpora.tasks.given import Given, Unique, opened_sources
from corpora.tasks.target import Target

VERSION = 2

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
        "group": "what pairs have in common: the document, the story, the article, the prompt",
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
        for reader, source, licence in opened_sources(sources, READS, dataset, max_bad_share):
            sets = READS[source.kind](reader, source, settings.splitter, dataset)
            for name, where, tests in sets:
                kept = _kept(tests, name, where, ids, dataset)
                rows = _counted(kept, name, texts.setdefault(name, SeenIds()), dataset)
                columns = ("pos", "neg")
                number = dataset.write(name, "test", rows, COHERENCE_TESTS, texts=columns)
                dataset.count_licence(licence, number - found.get(name, 0))
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
