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


@dataclass(frozen=True)
class Settings:
    """How a classifier is trained. `hidden` units with sigmoid (0: none)."""

    hidden: int = 0
    l2: tuple[float, ...] = (1e-9,)
    """1e-9 is what the released code takes where it has no grid."""
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
    `combine` is a key of `zoo.evaluate.discoeval.protocol.COMBINE`. A slot of several texts (a
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

    `labels` are the names of the classes in the released data, empty where it names them itself.
    """

    name: str
    builder: str
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    folder: str
    features: Mapping[Protocol, Features]
    probes: Mapping[Protocol, Settings]
    labels: tuple[str, ...] = ()
    alone: bool = False
    unit: str = ""
    unit_rows: int = 1

    @property
    def slots(self) -> int:
        """How many texts, or lists of texts, an example has."""
        return 1 + max(slot for slots in self.features["single"].inputs for slot in slots)


def _each(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple((slot,) for slot in range(count))


def _relations(
    name: str, builder: str, columns: tuple[str, ...], folder: str, *, joined: bool = False
) -> Task:
    """A task of section 3.1: the relation between two spans of text."""
    features: dict[Protocol, Features] = {
        "single": Features(_each(2), "relation"),
        "pairs": Features(_each(2), "relation", joined),
    }
    probes: dict[Protocol, Settings] = {"single": RELATIONS, "pairs": RELATIONS}
    return Task(name, builder, (*columns, "label"), columns[:2], folder, features, probes)


_PDTB = ("arg1", "arg2", "sense")

TASKS = {
    task.name: task
    for task in (
        Task(  # 3.2: which place the first sentence had
            "SP",
            builder="sp",
            columns=("doc", "label", "sentences"),
            texts=("sentences",),
            folder="SP",
            features={
                "single": Features(_each(5), "position"),
                "pairs": Features(((0,), (0, 1), (0, 2), (0, 3), (0, 4)), "concatenate"),
            },
            # The hidden units are those of CONPONO's released code.
            probes={"single": TUNED, "pairs": Settings(hidden=50, l2=L2_GRID)},
            labels=("0", "1", "2", "3", "4"),
            alone=True,
        ),
        Task(  # 3.3: whether two sentences stand in their order
            "BSO",
            builder="bso",
            columns=("sentence1", "sentence2", "label"),
            texts=("sentence1", "sentence2"),
            folder="BSO",
            features={
                "single": Features(_each(2), "order"),
                "pairs": Features(((0, 1),), "concatenate"),
            },
            probes={"single": TUNED, "pairs": TUNED},
            labels=("swapped", "original"),
            unit_rows=2,
        ),
        Task(  # 3.4: whether one of six sentences is another text's
            "DC",
            builder="dc",
            columns=("sentences", "donor", "found_by", "label"),
            texts=("sentences",),
            folder="DC",
            features={
                "single": Features(_each(6), "concatenate"),
                "pairs": Features(((0, 1), (2, 3), (4, 5)), "concatenate"),
            },
            probes={"single": HIDDEN, "pairs": HIDDEN},
            labels=("incoherent", "coherent"),
            unit="pair",
        ),
        Task(  # 3.5: whether a sentence is of the abstract
            "SSP",
            builder="ssp",
            columns=("sentence", "section", "label"),
            texts=("sentence",),
            folder="SSP",
            features=dict.fromkeys(("single", "pairs"), Features(_each(1), "concatenate")),
            probes={"single": LINEAR, "pairs": LINEAR},
            labels=("body", "abstract"),
        ),
        _relations("PDTB-E", "pdtb_explicit", _PDTB, "PDTB/Explicit"),
        _relations("PDTB-I", "pdtb_implicit", _PDTB, "PDTB/Implicit"),
        _relations("RST-DT", "rst", ("left", "right", "relation"), "RST", joined=True),
    )
}
