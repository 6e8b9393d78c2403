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
from zoo.training.job import Job
from zoo.training.settings import Positive, Share


@dataclass(frozen=True, kw_only=True)
class Settings(ScorerSettings):
    """The configurations `documents` and `ranked` of the dataset are read.

    `save_steps` and `eval_steps` count steps, but act between rounds: 0 after each round.
    """

    anneal_steps: Positive = 1000
    candidates: Positive = 50
    """Negatives of an instance that are scored; `negatives` of them train (algorithm 1)."""
    mine_every: Positive = 200
    """Instances in a round: their negatives are mined with the model that the last round left."""
    mining_tokens: Positive = 16384
    """Tokens in a batch while mining."""
    momentum: Share = PAPER_MOMENTUM
    momentum_weight: Share = 0.15
    """The share of the momentum loss (1 - lambda of equation 5); 0: no momentum encoder."""
    queue_size: Positive = 1000
    slices: Literal["contiguous", "prefix"] = "contiguous"
    """Which parts of a document the momentum encoder reads: the paper's, or the authors' code's."""
    shortest_slice: Positive = 4


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, loop, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]
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
