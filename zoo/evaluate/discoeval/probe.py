"""The classifier of the released DiscoEval code: logistic regression, or one hidden layer.

Adam on batches of 64; every `epoch_size` epochs the validation accuracy is taken, the best state
is kept, and training ends after more than `tenacity` looks without a new best (counted in all,
not in a row, as released) or after `max_epochs`. L2 is Adam's own (coupled) weight decay.

All values of the L2 grid are trained at once: they share the initial weights and the batches, as
they do where each run starts from the same seed, so they only differ in the decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from corpora.rng import stream
from zoo.evaluate.discoeval.tasks import Settings
from zoo.evaluate.scores import finite
from zoo.modeling import best_device

FEATURES, HINT = "features", "look at the encoder's vectors"


@dataclass
class Probe:
    """A trained classifier: the one of the grid that was best on the validation set."""

    parameters: list[Tensor]
    l2: float
    accuracy: float
    """On the validation set, which chose the state and the L2."""
    epochs: int
    grid: dict[float, float] = field(default_factory=dict)

    @property
    def linear(self) -> bool:
        """Whether it has no hidden layer."""
        return len(self.parameters) == 2

    @torch.inference_mode()
    def predict(self, features: np.ndarray, batch: int = 4096) -> np.ndarray:
        """The class of each row, `[rows]`. Raises `InputError` as `fit` does."""
        finite(features, FEATURES, hint=HINT)
        device = self.parameters[0].device
        found = [
            _scores([p[None] for p in self.parameters], _on(part, device))[:, 0].argmax(1).cpu()
            for part in np.array_split(features, max(1, math.ceil(len(features) / batch)))
        ]
        return torch.cat(found).numpy()


def fit(
    train: tuple[np.ndarray, np.ndarray],
    validation: tuple[np.ndarray, np.ndarray],
    classes: int,
    settings: Settings,
    seed: int,
    device: torch.device | None = None,
) -> Probe:
    """Train on `(features [rows, width], labels [rows])` of train and validation.

    Raises `InputError` if the features hold NaN or infinity.
    """
    device = device or best_device()
    for features in (train[0], validation[0]):
        finite(features, FEATURES, hint=HINT)
    x, y = _on(train[0], device), _on(train[1].astype(np.int64), device)
    held = _on(validation[0], device), _on(validation[1].astype(np.int64), device)
    members = len(settings.l2)
    random = stream(seed, "zoo.discoeval.probe")
    parameters = _initial(x.shape[1], classes, settings.hidden, members, random, device)
    # Adam's own weight decay where all members have the same, else one of its own for each.
    one = settings.l2[0] if len(set(settings.l2)) == 1 else None
    decay = None if one is not None else parameters[0].new_tensor(settings.l2)
    adam = torch.optim.Adam(
        parameters, lr=settings.learning_rate, weight_decay=one or 0.0, fused=True
    )
    watch = _Watch(members, settings.tenacity)
    epoch = 0
    while not watch.stopped and epoch <= settings.max_epochs:
        for _ in range(settings.epoch_size):
            order = torch.from_numpy(random.permutation(len(x))).to(device)
            for rows in order.split(settings.batch_size):
                _gradients(parameters, x[rows], y[rows])
                for p in parameters if decay is not None else ():
                    assert p.grad is not None and decay is not None
                    p.grad.addcmul_(p.detach(), decay.view(-1, *[1] * (p.dim() - 1)))
                adam.step()
        epoch += settings.epoch_size
        watch.look(_accuracies(parameters, *held), parameters, epoch)
    return watch.best_probe(settings.l2)


class _Watch:
    """Early stopping, for each member of the grid by itself."""

    def __init__(self, members: int, tenacity: int) -> None:
        self.tenacity = tenacity
        self.accuracy = [-1.0] * members
        self.states: list[list[Tensor]] = [[] for _ in range(members)]
        self.epochs = [0] * members
        self.worse = [0] * members
        self.done = [False] * members

    @property
    def stopped(self) -> bool:
        return all(self.done)

    def look(self, accuracies: list[float], parameters: list[Tensor], epoch: int) -> None:
        """Keep a new best state; count a look without one, and stop after too many."""
        for member, accuracy in enumerate(accuracies):
            if self.done[member]:
                continue
            if accuracy > self.accuracy[member]:
                self.accuracy[member], self.epochs[member] = accuracy, epoch
                self.states[member] = [p[member].detach().clone() for p in parameters]
            else:
                self.done[member] = self.worse[member] >= self.tenacity
                self.worse[member] += 1

    def best_probe(self, l2: tuple[float, ...]) -> Probe:
        # Rounded to a hundredth of a point, as released: of equals the smallest decay wins.
        best = int(np.argmax([round(100 * accuracy, 2) for accuracy in self.accuracy]))
        grid = dict(zip(l2, self.accuracy, strict=True))
        return Probe(self.states[best], l2[best], self.accuracy[best], self.epochs[best], grid)


def _initial(
    width: int,
    classes: int,
    hidden: int,
    members: int,
    random: np.random.Generator,
    device: torch.device,
) -> list[Tensor]:
    """Weights `[members, out, in]` and biases `[members, out]` of each layer, as torch's Linear.

    Members start equal.
    """
    shapes = [(hidden, width), (classes, hidden)] if hidden else [(classes, width)]
    found = []
    for rows, columns in shapes:
        bound = 1 / math.sqrt(columns)
        for shape in ((rows, columns), (rows,)):
            one = torch.from_numpy(random.uniform(-bound, bound, shape).astype(np.float32))
            found.append(one.repeat(members, *[1] * len(shape)).to(device).requires_grad_())
    return found


def _scores(parameters: list[Tensor], x: Tensor) -> Tensor:
    """`[rows, members, classes]` from `x [rows, width]`."""
    weight, bias = parameters[0], parameters[1]
    members, out, width = weight.shape
    first = torch.addmm(bias.reshape(-1), x, weight.reshape(members * out, width).t())
    first = first.view(len(x), members, out)
    if len(parameters) == 2:
        return first
    states = torch.sigmoid(first).transpose(0, 1)
    return torch.baddbmm(parameters[3][:, None], states, parameters[2].mT).transpose(0, 1)


def _gradients(parameters: list[Tensor], x: Tensor, y: Tensor) -> None:
    """Set the gradients of each member's mean cross-entropy over `x [rows, width]`, `y [rows]`."""
    if len(parameters) == 4:
        for parameter in parameters:
            parameter.grad = None
        scores = _scores(parameters, x)
        members = scores.shape[1]
        labels = y.repeat_interleave(members)
        # Times the members, since the mean of the loss is over them too.
        (members * cross_entropy(scores.reshape(len(labels), -1), labels)).backward()
        return
    # Without a hidden layer the gradient is known, and autograd would take most of the time.
    weight, bias = parameters
    with torch.no_grad():
        error = _scores(parameters, x).softmax(2)
        error[torch.arange(len(y), device=y.device), :, y] -= 1
        error = error.reshape(len(y), -1) / len(y)
        weight.grad = (error.t() @ x).view_as(weight)
        bias.grad = error.sum(0).view_as(bias)


@torch.inference_mode()
def _accuracies(parameters: list[Tensor], x: Tensor, y: Tensor) -> list[float]:
    """The share of right answers of each member."""
    right = torch.zeros(parameters[0].shape[0], device=x.device)
    for rows, labels in zip(x.split(4096), y.split(4096), strict=True):
        right += (_scores(parameters, rows).argmax(2) == labels[:, None]).sum(0)
    return [float(count) / len(x) for count in right.tolist()]


def _on(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
