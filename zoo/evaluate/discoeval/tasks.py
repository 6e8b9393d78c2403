"""The seven tasks of DiscoEval as declarations (Chen et al. 2019, section 3; released code).

A task declares which datasets it reads, which texts are encoded, how their vectors become features,
and how its classifier is trained, under each of two protocols:

    single   DiscoEval section 3: each sentence is encoded by itself
    pairs    CONPONO section 3.1: two sentences are encoded together where a task compares them
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Protocol = Literal["single", "pairs"]


@dataclass(frozen=True)
class ProbeSettings:
    """How a task's classifier is trained; see `zoo.evaluate.discoeval.probe`."""

    hidden: int = 0
    """The number of hidden units, with sigmoid (0: no hidden layer)."""
    l2: tuple[float, ...] = (1e-9,)
    """The values to try. Without a grid the released code takes 1e-9."""
    tenacity: int = 5
    """The most measurements without a new best validation accuracy."""
    epoch_size: int = 4
    """The number of epochs between two measurements."""
    max_epochs: int = 200
    batch_size: int = 64
    learning_rate: float = 1e-3


L2_GRID = (1e-5, 1e-4, 1e-3, 1e-2)
LINEAR = ProbeSettings()
TUNED = ProbeSettings(l2=L2_GRID)
HIDDEN = ProbeSettings(hidden=2000, tenacity=8, epoch_size=15)
RELATIONS = ProbeSettings(epoch_size=1, max_epochs=15)
"""PDTB and RST: the released code measures after each epoch. Its loop counts the epochs from 0 to
15 inclusive, which makes 16 at most."""
LONGER = ProbeSettings(epoch_size=1, max_epochs=55)
"""PDTB in CONPONO's released code; all classifiers of `pairs` are its own, without an L2 grid."""


@dataclass(frozen=True)
class Features:
    """Which texts of an example are encoded, and how their vectors become its features.

    A slot is one of an example's texts. Each of `inputs` has one slot that is encoded by itself, or
    two slots that are encoded as a pair. `combine` is a key of `protocol.COMBINE`. A slot of
    several texts (a subtree's EDUs) has the mean of their vectors, or with `joined` the vector of
    the texts as one. `vectors` is the representation that the protocol's paper takes.
    """

    inputs: tuple[tuple[int, ...], ...]
    combine: str
    joined: bool = False
    vectors: Literal["cls_mean", "pooled"] = "cls_mean"


@dataclass(frozen=True)
class Task:
    """One task of DiscoEval: its data, and its features and classifier under each protocol.

    `builder` makes its datasets, which have the columns `columns` (and if `alone` no others but
    names of rows and places). An
    example's texts are in the columns `texts`, or in one column that lists them. Examples with the
    same value in the column `unit` depend on each other, or without it each `unit_rows` adjacent
    rows. `folder` is the task's folder in the released data, `labels` the names of its classes
    there, empty if the data names them in a file.
    """

    name: str
    builder: str
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    folder: str
    features: Mapping[Protocol, Features]
    probes: Mapping[Protocol, ProbeSettings]
    labels: tuple[str, ...] = ()
    alone: bool = False
    unit: str = ""
    unit_rows: int = 1

    @property
    def slots(self) -> int:
        """The number of texts, or lists of texts, of an example."""
        return 1 + max(slot for slots in self.features["single"].inputs for slot in slots)


def _each(count: int) -> tuple[tuple[int, ...], ...]:
    """The inputs that encode each of `count` slots by itself: ((0,), (1,), ...)."""
    return tuple((slot,) for slot in range(count))


def _relations(
    name: str,
    builder: str,
    columns: tuple[str, ...],
    folder: str,
    *,
    joined: bool = False,
    pairs: ProbeSettings = RELATIONS,
) -> Task:
    """A task of section 3.1, to predict the relation between two spans of text."""
    features: dict[Protocol, Features] = {
        "single": Features(_each(2), "relation"),
        "pairs": Features(_each(2), "relation", joined),
    }
    probes: dict[Protocol, ProbeSettings] = {"single": RELATIONS, "pairs": pairs}
    return Task(name, builder, (*columns, "label"), columns[:2], folder, features, probes)


WITHOUT_CONTEXT = Features(((0,),), "concatenate")
"""SP by the moved sentence alone (table 6)."""

_PDTB = ("arg1", "arg2", "sense")

TASKS = {
    task.name: task
    for task in (
        Task(  # 3.2: at which place the first of five sentences stood
            "SP",
            builder="sp",
            columns=("label", "sentences"),
            texts=("sentences",),
            folder="SP",
            features={
                "single": Features(_each(5), "position"),
                "pairs": Features(
                    ((0,), (0, 1), (0, 2), (0, 3), (0, 4)), "concatenate", vectors="pooled"
                ),
            },
            probes={
                "single": TUNED,
                "pairs": ProbeSettings(hidden=50, tenacity=20, epoch_size=1, max_epochs=20),
            },
            labels=("0", "1", "2", "3", "4"),
            alone=True,
        ),
        Task(  # 3.3: whether two sentences are in their original order
            "BSO",
            builder="bso",
            columns=("sentence1", "sentence2", "label"),
            texts=("sentence1", "sentence2"),
            folder="BSO",
            features={
                "single": Features(_each(2), "order"),
                "pairs": Features(((0, 1),), "concatenate", vectors="pooled"),
            },
            probes={"single": TUNED, "pairs": LINEAR},
            labels=("swapped", "original"),
            unit_rows=2,
        ),
        Task(  # 3.4: whether one of six sentences is from another text
            "DC",
            builder="dc",
            columns=("sentences", "pair", "label"),
            texts=("sentences",),
            folder="DC",
            features={
                "single": Features(_each(6), "concatenate"),
                "pairs": Features(((0, 1), (2, 3), (4, 5)), "concatenate", vectors="pooled"),
            },
            probes={
                "single": HIDDEN,
                "pairs": ProbeSettings(hidden=2000, tenacity=80, max_epochs=40),
            },
            labels=("incoherent", "coherent"),
            unit="pair",
        ),
        Task(  # 3.5: whether a sentence is from the abstract of a paper
            "SSP",
            builder="ssp",
            columns=("sentence", "label"),
            texts=("sentence",),
            folder="SSP",
            features=dict.fromkeys(("single", "pairs"), Features(_each(1), "concatenate")),
            probes={"single": LINEAR, "pairs": LINEAR},
            labels=("body", "abstract"),
            alone=True,
        ),
        _relations("PDTB-E", "pdtb_explicit", _PDTB, "PDTB/Explicit", pairs=LONGER),
        _relations("PDTB-I", "pdtb_implicit", _PDTB, "PDTB/Implicit", pairs=LONGER),
        _relations("RST-DT", "rst", ("left", "right", "relation"), "RST", joined=True),
    )
}
