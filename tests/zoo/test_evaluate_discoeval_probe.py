"""The classifier: what it learns, when it stops, and that the grid's members are independent."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from corpora.errors import InputError
from corpora.rng import stream
from zoo.evaluate.discoeval import probe
from zoo.evaluate.discoeval.probe import Settings, fit


def _separable(
    rows: int, seed: int, width: int = 6, classes: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    return random.normal(size=(rows, width)).astype(np.float32) + 8 * np.eye(width)[labels].astype(
        np.float32
    ), labels


def _xor(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    bits = np.random.default_rng(seed).integers(0, 2, (rows, 2))
    return (2 * bits - 1).astype(np.float32), bits[:, 0] ^ bits[:, 1]


def test_a_separable_set_is_learned() -> None:
    found = fit(_separable(400, 1), _separable(200, 2), 3, Settings(max_epochs=40), seed=0)
    features, labels = _separable(300, 3)
    assert found.accuracy > 0.95 and (found.predict(features) == labels).mean() > 0.95


def test_only_hidden_units_solve_what_is_not_linear() -> None:
    sets = _xor(400, 1), _xor(200, 2)
    settings = Settings(hidden=32, learning_rate=0.01, max_epochs=60)
    assert fit(*sets, 2, settings, seed=0).accuracy == 1.0
    assert fit(*sets, 2, replace(settings, hidden=0), seed=0).accuracy < 0.8


def test_a_state_without_a_new_best_is_counted_until_tenacity() -> None:
    watch = probe._Watch(1, tenacity=2)
    looks = [0.5, 0.4, 0.6, 0.6, 0.1, 0.9]
    for number, accuracy in enumerate(looks):
        if watch.stopped:
            break
        watch.look([accuracy], [torch.full((1, 1), float(number))], 4 * (number + 1))
    # Looks 2, 4 and 5 brought nothing new: the third of them ends it, though not in a row.
    assert watch.stopped and number == 5
    best = watch.best_probe((1e-9,))
    assert (best.accuracy, best.epochs, float(best.parameters[0])) == (0.6, 12, 2.0)


def test_training_looks_every_epoch_size_up_to_max_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def look(self: probe._Watch, accuracies: list[float], parameters: object, epoch: int) -> None:
        looked.append(epoch)
        self.states[0] = [p[0] for p in parameters]  # type: ignore[attr-defined]

    monkeypatch.setattr(probe._Watch, "look", look)
    fit(_separable(70, 1), _separable(20, 2), 3, Settings(epoch_size=4, max_epochs=10), seed=0)
    assert looked == [4, 8, 12]


def test_members_of_the_grid_are_as_if_trained_alone() -> None:
    train, validation = _separable(200, 4), _separable(80, 5)
    settings = Settings(l2=(1e-5, 1e-1), epoch_size=1, max_epochs=6)
    both = fit(train, validation, 3, settings, seed=3)
    alone = [fit(train, validation, 3, replace(settings, l2=(l2,)), seed=3) for l2 in settings.l2]
    assert both.grid == {one.l2: one.accuracy for one in alone}
    same = next(one for one in alone if one.l2 == both.l2)
    for mine, its in zip(both.parameters, same.parameters, strict=True):
        torch.testing.assert_close(mine, its, atol=1e-6, rtol=1e-4)


def _by_the_book(
    train: tuple[np.ndarray, np.ndarray],
    held: tuple[np.ndarray, np.ndarray],
    settings: Settings,
    seed: int,
) -> tuple[torch.nn.Module, float]:
    """The released code's loop with torch's own layers and Adam, from the same random draws."""
    random = stream(seed, "zoo.discoeval.probe")
    width, hidden = train[0].shape[1], settings.hidden
    drawn = [p[0] for p in probe._initial(width, 3, hidden, 1, random, torch.device("cpu"))]
    linear = torch.nn.Linear
    parts = [linear(width, hidden), torch.nn.Sigmoid(), linear(hidden, 3)] if hidden else None
    model = torch.nn.Sequential(*(parts or [linear(width, 3)]))
    for parameter, value in zip(model.parameters(), drawn, strict=True):
        parameter.data.copy_(value)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=settings.l2[0])
    (x, y), (held_x, held_y) = ((torch.tensor(a), torch.tensor(b)) for a, b in (train, held))
    best, count, epochs, stop, state = -1.0, 0, 0, False, None
    while not stop and epochs <= settings.max_epochs:
        for _ in range(settings.epoch_size):
            order = random.permutation(len(x))
            for start in range(0, len(x), 64):
                rows = order[start : start + 64]
                loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
                adam.zero_grad()
                loss.backward()
                adam.step()
        epochs += settings.epoch_size
        accuracy = float((model(held_x).argmax(1) == held_y).double().mean())
        if accuracy > best:
            best, state = accuracy, copy.deepcopy(model.state_dict())
        else:
            stop = count >= settings.tenacity
            count += 1
    model.load_state_dict(state)
    return model, best


@pytest.mark.parametrize("hidden", [0, 12])
def test_the_classifier_is_that_of_the_released_code(hidden: int) -> None:
    settings = Settings(hidden=hidden, l2=(1e-2,), tenacity=2, epoch_size=2, max_epochs=60)
    random = np.random.default_rng(8)
    noise = [random.normal(size=(rows, 6)).astype(np.float32) * 6 for rows in (150, 90)]
    train, held = (
        (x + e, y) for (x, y), e in zip((_separable(150, 6), _separable(90, 7)), noise, strict=True)
    )
    found = fit(train, held, 3, settings, seed=4)
    model, accuracy = _by_the_book(train, held, settings, seed=4)
    assert found.accuracy == pytest.approx(accuracy) and accuracy < 0.95
    for mine, its in zip(found.parameters, model.parameters(), strict=True):
        torch.testing.assert_close(mine, its.detach(), atol=1e-5, rtol=1e-3)


def test_the_gradient_written_out_is_that_of_autograd() -> None:
    random = np.random.default_rng(0)
    parameters = probe._initial(5, 3, 0, 2, random, torch.device("cpu"))
    with torch.no_grad():
        parameters[0][1] *= 2
    x, y = torch.randn(7, 5), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    scores = probe._scores(parameters, x)
    sum(torch.nn.functional.cross_entropy(scores[:, m], y) for m in range(2)).backward()
    expected = [p.grad.clone() for p in parameters]
    probe._gradients(parameters, x, y)
    for found, wanted in zip(parameters, expected, strict=True):
        torch.testing.assert_close(found.grad, wanted)


def test_one_seed_gives_one_classifier() -> None:
    sets = _separable(150, 6), _separable(60, 7)
    settings = Settings(hidden=8, max_epochs=8)
    first, again, other = (fit(*sets, 3, settings, seed=seed) for seed in (1, 1, 2))
    assert all(map(torch.equal, first.parameters, again.parameters))
    assert not torch.equal(first.parameters[0], other.parameters[0])


def test_vectors_that_are_no_numbers_are_refused() -> None:
    features, labels = _separable(20, 1)
    features[3, 2] = np.nan
    with pytest.raises(InputError, match="NaN"):
        fit((features, labels), (features, labels), 3, Settings(), seed=0)
    whole = _separable(20, 1)
    probe = fit(whole, whole, 3, Settings(max_epochs=1), seed=0)
    with pytest.raises(InputError, match="NaN"):
        probe.predict(features)  # the first class would be its answer
