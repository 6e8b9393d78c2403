"""The classifier of the released DiscoEval code: logistic regression, or one hidden layer.

Training uses Adam on batches of 64. Every `epoch_size` epochs the validation accuracy is measured
and the best state is kept. Training ends after more than `tenacity` measurements without a new best
(counted in all, not in a row, as in the released code) or after `max_epochs`. L2 is Adam's own
(coupled) weight decay.

The classifiers for all values of the L2 grid, its members, are trained at once. They share the
initial weights and the batches, as runs from the same seed would, and only differ in the decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from corpora.rng import stream
from zoo.evaluate.discoeval.tasks import ProbeSettings
from zoo.evaluate.scores import finite
from zoo.modeling import best_device

FEATURES, HINT = "features", "look at the encoder's vectors"


@dataclass
class Probe:
    """A trained classifier, with the L2 of the grid that was best on the validation set."""

    parameters: list[Tensor]
    l2: float
    accuracy: float
    """The accuracy on the validation set, by which the state and the L2 were chosen."""
    epochs: int
    grid: dict[float, float] = field(default_factory=dict)
    """The accuracy on the validation set for each L2."""

    @torch.inference_mode()
    def predict(self, features: np.ndarray, batch: int = 4096) -> np.ndarray:
        """The class of each row of `features [rows, width]`, `[rows]`.

        Raises `InputError` as `fit` does.
        """
        finite(features, FEATURES, hint=HINT)
        parameters = [parameter[None] for parameter in self.parameters]  # a grid of one member
        device = parameters[0].device
        classes = [
            _scores(parameters, _on(part, device))[:, 0].argmax(1).cpu()
            for part in np.array_split(features, max(1, math.ceil(len(features) / batch)))
        ]
        return torch.cat(classes).numpy()


def fit(
    train: tuple[np.ndarray, np.ndarray],
    validation: tuple[np.ndarray, np.ndarray],
    classes: int,
    settings: ProbeSettings,
    seed: int,
) -> Probe:
    """Train a classifier; `train` and `validation` are features `[rows, width]`, labels `[rows]`.

    Raises `InputError` if the features hold NaN or infinity.
    """
    device = best_device()
    for features in (train[0], validation[0]):
        finite(features, FEATURES, hint=HINT)
    x, y = _on(train[0], device), _on(train[1].astype(np.int64), device)
    held_out = _on(validation[0], device), _on(validation[1].astype(np.int64), device)
    random = stream(seed, "zoo.discoeval.probe")
    members = len(settings.l2)
    parameters = [
        start.repeat(members, *[1] * start.dim()).to(device).requires_grad_()
        for start in initial(x.shape[1], classes, settings.hidden, random)
    ]
    # Adam has one weight decay. Where the members' differ, theirs are added to the gradients here.
    equal = len(set(settings.l2)) == 1
    decays = None if equal else parameters[0].new_tensor(settings.l2)
    adam_decay = settings.l2[0] if equal else 0.0
    adam = torch.optim.Adam(
        parameters, lr=settings.learning_rate, weight_decay=adam_decay, fused=True
    )
    best = [Probe([], l2, -1.0, 0) for l2 in settings.l2]
    worse = [0] * members
    epoch = 0
    while min(worse) <= settings.tenacity and epoch <= settings.max_epochs:
        for _ in range(settings.epoch_size):
            order = torch.from_numpy(random.permutation(len(x))).to(device)
            for rows in order.split(settings.batch_size):
                _gradients(parameters, x[rows], y[rows])
                for p in parameters if decays is not None else ():
                    assert p.grad is not None and decays is not None
                    p.grad.addcmul_(p.detach(), decays.view(-1, *[1] * (p.dim() - 1)))
                adam.step()
        epoch += settings.epoch_size
        for member, accuracy in enumerate(_accuracies(parameters, *held_out)):
            if worse[member] <= settings.tenacity and accuracy > best[member].accuracy:
                state = [p[member].detach().clone() for p in parameters]
                best[member] = Probe(state, settings.l2[member], accuracy, epoch)
            else:
                worse[member] += 1
    # As in the released code accuracies are rounded to a hundredth of a point, and among equal ones
    # the smallest decay wins.
    chosen = max(best, key=lambda each: round(100 * each.accuracy, 2))
    return replace(chosen, grid={each.l2: each.accuracy for each in best})


def initial(width: int, classes: int, hidden: int, random: np.random.Generator) -> list[Tensor]:
    """Draw initial weights `[out, in]` and biases `[out]` of each layer, as torch's Linear does.

    `width` is that of the features, `hidden` the number of hidden units (0: no hidden layer).
    """
    parameters = []
    for rows, columns in [(hidden, width), (classes, hidden)] if hidden else [(classes, width)]:
        bound = 1 / math.sqrt(columns)
        for shape in ((rows, columns), (rows,)):
            values = random.uniform(-bound, bound, shape).astype(np.float32)
            parameters.append(torch.from_numpy(values))
    return parameters


def _scores(parameters: list[Tensor], x: Tensor) -> Tensor:
    """Score `x [rows, width]` with the classifier (member) of each L2, `[rows, members, classes]`.

    `parameters` are the weights `[members, out, in]` and biases `[members, out]` of each layer.
    """
    weight, bias = parameters[0], parameters[1]
    members, out, width = weight.shape
    first = torch.addmm(bias.reshape(-1), x, weight.reshape(members * out, width).t())
    first = first.view(len(x), members, out)
    if len(parameters) == 2:
        return first
    states = torch.sigmoid(first).transpose(0, 1)
    return torch.baddbmm(parameters[3][:, None], states, parameters[2].mT).transpose(0, 1)


def _gradients(parameters: list[Tensor], x: Tensor, y: Tensor) -> None:
    """Set the gradients of each L2's classifier on the batch `x [rows, width]`, `y [rows]`."""
    if len(parameters) == 4:  # with a hidden layer
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
    """The accuracy of each L2's classifier on `x [rows, width]` with the classes `y [rows]`."""
    right = torch.zeros(parameters[0].shape[0], device=x.device)
    for rows, labels in zip(x.split(4096), y.split(4096), strict=True):
        right += (_scores(parameters, rows).argmax(2) == labels[:, None]).sum(0)
    return [float(count) / len(x) for count in right.tolist()]


def _on(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)
