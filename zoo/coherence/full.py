"""Recipe: the full model, hard negatives and a momentum encoder (Jwalapuram et al. 2022, 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.coherence.contrastive import leave, note_lost, prepare
from zoo.coherence.data import candidates
from zoo.coherence.loop import FullTraining
from zoo.training.job import Job, is_main_process

if TYPE_CHECKING:
    from zoo.coherence.recipes import Full


def train(recipe: Full, job: Job) -> None:
    """Train into `job.folder`: data, model, loop, evaluation, card."""
    prepared = prepare(recipe)
    documents, table = prepared.documents["train"], prepared.rows["train"]
    rows, fewer, lost = candidates(documents, table, recipe.candidates)
    if fewer:
        job.note(
            f"{fewer} of {len(rows)} rows have fewer than {recipe.candidates} different negatives"
        )
    prepared.dropped = {"train": lost}
    note_lost(job, prepared)
    history = FullTraining(recipe, job, prepared, rows).run()
    if is_main_process():
        leave(job, prepared, history)
