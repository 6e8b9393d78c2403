"""Recipe: the full model, momentum encoder and hard negatives (Jwalapuram et al. 2022, 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.coherence.data import candidates
from zoo.coherence.loop import FullTraining
from zoo.coherence.setup import leave, prepare, say_cut
from zoo.evaluate.permuted import pairwise_accuracy
from zoo.training.job import Job

if TYPE_CHECKING:
    from zoo.coherence.recipes import Full


def train(recipe: Full, job: Job) -> None:
    """Train into `job.folder`: data, model, loop, evaluation, card."""
    # Data and model
    prepared = prepare(recipe)
    texts = prepared.texts["train"]
    rows, fewer, lost = candidates(texts, prepared.chosen["train"], recipe.candidates)
    if fewer:
        job.note(
            f"{fewer} of {len(rows)} rows have fewer than {recipe.candidates} different negatives"
        )
    dropped = {"train": lost}
    say_cut(job, prepared, dropped)

    # Training: rounds of mining and steps
    def validate() -> float:
        part = prepared.texts["validation"], prepared.pairs["validation"]
        found = pairwise_accuracy(prepared.model, *part, recipe.seed, prepared.batch_tokens(recipe))
        return float(found["accuracy"]["value"])

    training = FullTraining(recipe, job, prepared.model, texts, rows, validate)
    history = training.run()

    # Evaluation and card
    leave(recipe, job, prepared, history, dropped)
