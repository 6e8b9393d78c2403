"""Recipe: the full model, momentum encoder and hard negatives (Jwalapuram et al. 2022, 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from corpora.errors import ConfigError
from zoo.coherence.data import candidates
from zoo.coherence.loop import FullTraining
from zoo.coherence.momentum import PAPER_MOMENTUM
from zoo.coherence.setup import ScorerSettings, leave, prepare, say_cut
from zoo.evaluate.permuted import pairwise_accuracy
from zoo.job import Job


@dataclass(frozen=True, kw_only=True)
class Settings(ScorerSettings):
    """The configurations `documents` and `ranked` of the dataset are read.

    `save_steps` and `eval_steps` count steps, but act between rounds: 0 after each round.
    """

    anneal_steps: int = 1000
    candidates: int = 50
    """Negatives of an instance that are scored; `negatives` of them train (algorithm 1)."""
    mine_every: int = 200
    """Instances in a round: their negatives are mined with the model that the last round left."""
    mining_tokens: int = 16384
    """Tokens in a batch while mining."""
    momentum: float = PAPER_MOMENTUM
    momentum_weight: float = 0.15
    """The share of the momentum loss (1 - lambda of equation 5); 0: no momentum encoder."""
    queue_size: int = 1000
    slices: Literal["contiguous", "prefix"] = "contiguous"
    """Which parts of a document the momentum encoder reads: the paper's, or the authors' code's."""
    shortest_slice: int = 4


LEAST = {"candidates": 1, "mine_every": 1, "mining_tokens": 1, "queue_size": 1, "shortest_slice": 1}
SHARES = ("momentum", "momentum_weight")


def check(s: Settings) -> None:
    """Raise `ConfigError` for a setting outside its range."""
    for key, least in LEAST.items():
        if getattr(s, key) < least:
            raise ConfigError(f"{getattr(s, key)} is too small: {least} or more", where=key)
    for key in SHARES:
        if not 0 <= getattr(s, key) <= 1:
            raise ConfigError(f"{getattr(s, key)} is out of range: from 0 to 1", where=key)


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, loop, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]
    check(s)
    if s.gradient_accumulation != 1 or s.compile:
        raise ConfigError(
            "the full model has neither gradient_accumulation nor compile",
            where=job.recipe.name,
            hint="raise batch_size instead",
        )

    # Data and model
    prepared = prepare(s, s.dataset_config or "ranked")
    texts = prepared.texts["train"]
    rows, fewer, lost = candidates(texts, prepared.chosen["train"], s.candidates)
    if fewer:
        job.note(f"{fewer} of {len(rows)} rows have fewer than {s.candidates} different negatives")
    dropped = {"train": lost}
    say_cut(job, prepared, dropped)

    # Training: rounds of mining and steps
    def validate() -> float:
        part = prepared.texts["validation"], prepared.pairs["validation"]
        found = pairwise_accuracy(prepared.model, *part, s.seed, prepared.batch_tokens(s))
        return float(found["accuracy"]["value"])

    training = FullTraining(job, prepared.model, texts, rows, validate)
    history = training.run()

    # Evaluation and card
    leave(job, prepared, history, dropped)
