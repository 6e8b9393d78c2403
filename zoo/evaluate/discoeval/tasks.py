"""The seven tasks of DiscoEval as declarations (Chen et al. 2019, section 3; released code).

A task says which datasets are of it, which texts are encoded, how their vectors become features,
and how its classifier is trained, under each of two protocols:

    single   DiscoEval section 3: each sentence by itself
    pairs    CONPONO section 3.1: two sentences together where the task compares sentences
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Protocol = Literal["single", "pairs"]

NO_L2 = 1e-9
"""What the released code takes where it has no grid."""


@dataclass(frozen=True)
class Settings:
    """How a classifier is trained. `hidden` units with sigmoid (0: none)."""

    hidden: int = 0
    l2: tuple[float, ...] = (NO_L2,)
    tenacity: int = 5
    epoch_size: int = 4
    max_epochs: int = 200
    batch_size: int = 64
    learning_rate: float = 1e-3


L2_GRID = (1e-5, 1e-4, 1e-3, 1e-2)
LINEAR = Settings()
TUNED = Settings(l2=L2_GRID)
HIDDEN = Settings(hidden=2000, tenacity=8, epoch_size=15)
RELATIONS = Settings(epoch_size=1, max_epochs=15)
"""PDTB and RST: the released code looks at the validation set after each epoch; its loop's bound of
15 is inclusive and counts from 0, so that it looks 16 times at most."""


@dataclass(frozen=True)
class Features:
    """What is encoded, and how it becomes features.

    Each of `inputs` names the slots of an example that are encoded as one text, or as one pair.
    `combine` is a function of `zoo.evaluate.discoeval.features`. A slot of several texts (a
    subtree's EDUs) is the mean of their vectors, or one text where `joined`.
    """

    inputs: tuple[tuple[int, ...], ...]
    combine: str
    joined: bool = False


@dataclass(frozen=True)
class Task:
    """One task: its data, and its features and classifier under each protocol.

    `builder` makes its datasets. `columns` tell them from other data (`alone`: they have no
    further columns); the texts of an example are in the columns `texts`, or in one column that
    lists them. Examples belong together that are equal in `unit`, a column, or else `unit_rows`
    rows that stand one after the other. `folder` is its own in the released data.

    `classes` 0: as many as the data has; `labels` are their names in the released data, where it
    does not name them. `domains` are those that the paper averages over; `sizes` the paper's
    table 1, training, validation and test. `score`: the main figure.
    """

    name: str
    title: str
    section: str
    builder: str
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    folder: str
    slots: int
    classes: int
    features: Mapping[str, Features]
    probes: Mapping[str, Settings]
    domains: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int, int]]
    licence: str
    score: str = "accuracy"
    labels: tuple[str, ...] = ()
    alone: bool = False
    unit: str = ""
    unit_rows: int = 1

    @property
    def linear(self) -> bool:
        """Whether the paper's own classifier has no hidden layer."""
        return not self.probes["single"].hidden


def _each(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple((slot,) for slot in range(count))


_COMMON = (10000, 4000, 4000)
_RELATION = Features(_each(2), "relation")

TASKS = {
    task.name: task
    for task in (
        Task(
            "SP",
            "sentence position",
            "3.2",
            builder="sp",
            columns=("doc", "label", "sentences"),
            texts=("sentences",),
            folder="SP",
            slots=5,
            classes=5,
            features={
                "single": Features(_each(5), "position"),
                "pairs": Features(((0,), (0, 1), (0, 2), (0, 3), (0, 4)), "concatenate"),
            },
            # The hidden units are those of CONPONO's released code.
            probes={"single": TUNED, "pairs": Settings(hidden=50, l2=L2_GRID)},
            domains=("wiki", "roc", "arxiv"),
            sizes={"": _COMMON},
            licence="CC-BY-SA-3.0 (wiki), CC0-1.0 (arxiv); ROCStories on request only",
            labels=("0", "1", "2", "3", "4"),
            alone=True,
        ),
        Task(
            "BSO",
            "binary sentence ordering",
            "3.3",
            builder="bso",
            columns=("sentence1", "sentence2", "label"),
            texts=("sentence1", "sentence2"),
            folder="BSO",
            slots=2,
            classes=2,
            features={
                "single": Features(_each(2), "order"),
                "pairs": Features(((0, 1),), "concatenate"),
            },
            probes={"single": TUNED, "pairs": TUNED},
            domains=("wiki", "roc", "arxiv"),
            sizes={"": _COMMON},
            licence="CC-BY-SA-3.0 (wiki), CC0-1.0 (arxiv); ROCStories on request only",
            labels=("swapped", "original"),
            unit_rows=2,
        ),
        Task(
            "DC",
            "discourse coherence",
            "3.4",
            builder="dc",
            columns=("sentences", "donor", "found_by", "label"),
            texts=("sentences",),
            folder="DC",
            slots=6,
            classes=2,
            features={
                "single": Features(_each(6), "concatenate"),
                "pairs": Features(((0, 1), (2, 3), (4, 5)), "concatenate"),
            },
            probes={"single": HIDDEN, "pairs": HIDDEN},
            domains=("wiki", "chat"),
            sizes={"": _COMMON, "chat": (5816, 1834, 2418)},
            licence="CC-BY-SA-3.0 (wiki), CC-BY-4.0 (chat)",
            labels=("incoherent", "coherent"),
            unit="pair",
        ),
        Task(
            "SSP",
            "sentence section prediction",
            "3.5",
            builder="ssp",
            columns=("sentence", "section", "label"),
            texts=("sentence",),
            folder="SSP",
            slots=1,
            classes=2,
            features={
                "single": Features(_each(1), "concatenate"),
                "pairs": Features(_each(1), "concatenate"),
            },
            probes={"single": LINEAR, "pairs": LINEAR},
            domains=("abs",),
            sizes={"": _COMMON},
            licence="of the papers in PeerRead",
            labels=("body", "abstract"),
        ),
        Task(
            "PDTB-E",
            "explicit discourse relations",
            "3.1",
            builder="pdtb_explicit",
            columns=("arg1", "arg2", "sense", "label"),
            texts=("arg1", "arg2"),
            folder="PDTB/Explicit",
            slots=2,
            classes=0,
            features={"single": _RELATION, "pairs": _RELATION},
            probes={"single": RELATIONS, "pairs": RELATIONS},
            domains=("pdtb",),
            sizes={"": (9383, 3613, 3758)},
            licence="LDC (PDTB 2)",
        ),
        Task(
            "PDTB-I",
            "implicit discourse relations",
            "3.1",
            builder="pdtb_implicit",
            columns=("arg1", "arg2", "sense", "label"),
            texts=("arg1", "arg2"),
            folder="PDTB/Implicit",
            slots=2,
            classes=0,
            features={"single": _RELATION, "pairs": _RELATION},
            probes={"single": RELATIONS, "pairs": RELATIONS},
            domains=("pdtb",),
            sizes={"": (8693, 2972, 3024)},
            licence="LDC (PDTB 2)",
        ),
        Task(
            "RST-DT",
            "rhetorical relations",
            "3.1",
            builder="rst",
            columns=("left", "right", "relation", "label"),
            texts=("left", "right"),
            folder="RST",
            slots=2,
            classes=0,
            features={"single": _RELATION, "pairs": Features(_each(2), "relation", joined=True)},
            probes={"single": RELATIONS, "pairs": RELATIONS},
            domains=("rst",),
            sizes={"": (17051, 2045, 2308)},
            licence="LDC (RST-DT)",
        ),
    )
}
