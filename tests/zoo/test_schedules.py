"""Learning rates, step by step."""

from __future__ import annotations

import pytest
import torch
from torch.optim.swa_utils import SWALR

from zoo.coherence.contrastive import annealing_schedule
from zoo.coherence.recipes import Contrastive, Full
from zoo.dissent.bilstm import AccuracySchedule
from zoo.training.trainer import EpochSampler


def optimizer(rate: float) -> torch.optim.SGD:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


def rate(made: torch.optim.Optimizer) -> float:
    return float(made.param_groups[0]["lr"])


def test_decay_each_epoch_and_a_fifth_when_accuracy_falls() -> None:
    sgd = optimizer(0.1)
    schedule = AccuracySchedule(sgd, steps=2)
    seen = []
    for accuracy in (0.5, 0.6, 0.55, 0.58):
        for _ in range(2):
            sgd.step()
            schedule.step()
        schedule.validated(accuracy)
        seen.append(rate(sgd))
    expected = [0.1 * 0.99, 0.1 * 0.99**2, 0.1 * 0.99**3 / 5, 0.1 * 0.99**4 / 5]
    assert seen == pytest.approx(expected)


def test_the_schedule_goes_on_from_its_state() -> None:
    sgd = optimizer(0.1)
    schedule = AccuracySchedule(sgd, steps=1)
    sgd.step()
    schedule.step()
    schedule.validated(0.6)
    schedule.validated(0.5)
    other = AccuracySchedule(optimizer(0.1), steps=1)
    other.load_state_dict(schedule.state_dict())
    assert other.get_lr() == schedule.get_lr()
    assert (other.falls, other.previous) == (1, 0.5)


def test_annealing_is_swalr_called_at_each_stair() -> None:
    """Two instances a step, a stair each six: SWALR is called after every third step."""
    settings = {"anneal_calls": 4, "anneal_every": 6, "batch_size": 2}
    sgd, theirs = optimizer(5e-6), optimizer(5e-6)
    schedule = annealing_schedule(Full(dataset="d", output="o", **settings), sgd)
    swalr = SWALR(theirs, swa_lr=1e-6, anneal_epochs=4, anneal_strategy="linear")
    for step in range(1, 19):
        assert rate(sgd) == pytest.approx(rate(theirs))
        sgd.step()
        schedule.step()
        theirs.step()
        if step % 3 == 0:
            swalr.step()
    assert rate(sgd) == pytest.approx(1e-6)


def test_the_papers_rows_end_where_the_papers_schedule_does() -> None:
    """46,522 instances (table 5): 46 of 50 calls of the full model, 9 of 10 of the others."""
    for kind, calls in ((Full, 46 / 50), (Contrastive, 9 / 10)):
        sgd = optimizer(5e-6)
        schedule = annealing_schedule(kind(dataset="d", output="o"), sgd)
        (factor,) = schedule.lr_lambdas
        assert 5e-6 * factor(46_522) == pytest.approx(5e-6 - 4e-6 * calls)


def test_batches_hold_rows_of_like_length_and_no_row_twice() -> None:
    """The rows of an epoch that fill no batch are left out, others in the next one."""
    lengths = [row % 40 + 1 for row in range(403)]
    sampler = EpochSampler(lengths, batch_size=8, seed=3)
    order = list(sampler)
    assert len(order) == len(set(order)) == len(sampler) == 400
    assert {*range(403)} - {*order} != {*range(403)} - {*sampler.order(1).tolist()}
    assert sorted(EpochSampler(lengths[:5], batch_size=8, seed=3)) == list(range(5))
    batches = [order[i : i + 8] for i in range(0, 400, 8)]
    spread = [max(lengths[r] for r in b) - min(lengths[r] for r in b) for b in batches]
    assert sum(spread) / len(spread) < 3


def test_the_order_depends_on_the_epoch_and_the_seed_alone() -> None:
    lengths = list(range(1, 100))
    sampler, other = EpochSampler(lengths, 4, seed=1), EpochSampler(lengths, 4, seed=2)
    first = list(sampler)
    torch.manual_seed(99)
    assert list(sampler) == first
    assert list(other) != first
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first
