"""Recipe: the full model, hard negatives and a momentum encoder (Jwalapuram et al. 2022, 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.coherence.contrastive import evaluate_and_save, note_cuts, prepare
from zoo.coherence.data import candidate_rows
from zoo.coherence.loop import FullTraining
from zoo.training.job import Job, is_main_process

if TYPE_CHECKING:
    from zoo.coherence.recipes import Full


def train(recipe: Full, job: Job) -> None:
    """Train into `job.folder`: data, model, loop, evaluation, card."""
    prepared = prepare(recipe)
    documents, table = prepared.documents["train"], prepared.rows["train"]
    rows, fewer, dropped = candidate_rows(documents, table, recipe.candidates)
    if fewer:
        job.note(
            f"{fewer} of {len(rows)} rows have fewer than {recipe.candidates} different negatives"
        )
    prepared.dropped = {"train": dropped}
    note_cuts(job, prepared)
    history = FullTraining(recipe, job, prepared, rows).run()
    if is_main_process():
        evaluate_and_save(job, prepared, history)
