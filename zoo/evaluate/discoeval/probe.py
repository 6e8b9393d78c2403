"""The classifier of the released DiscoEval code: logistic regression, or one hidden layer.

Adam on batches of 64; every `epoch_size` epochs the validation accuracy is taken, the best state
is kept, and training ends after more than `tenacity` looks without a new best (counted in all,
not in a row, as released) or after `max_epochs`. L2 is Adam's own (coupled) weight decay.

All values of the L2 grid are trained at once: they share the initial weights and the batches, as
they do where each run starts from the same seed, so they only differ in the decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

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
) -> Probe:
    """Train on `(features [rows, width], labels [rows])` of train and validation.

    Raises `InputError` if the features hold NaN or infinity.
    """
    device = best_device()
    for features in (train[0], validation[0]):
        finite(features, FEATURES, hint=HINT)
    x, y = _on(train[0], device), _on(train[1].astype(np.int64), device)
    held = _on(validation[0], device), _on(validation[1].astype(np.int64), device)
    random = stream(seed, "zoo.discoeval.probe")
    members = len(settings.l2)
    parameters = [
        start.repeat(members, *[1] * start.dim()).to(device).requires_grad_()
        for start in initial(x.shape[1], classes, settings.hidden, random)
    ]
    # Adam's own weight decay where all members have the same, else one of its own for each.
    one = settings.l2[0] if len(set(settings.l2)) == 1 else None
    decay = parameters[0].new_tensor(settings.l2) if one is None else None
    adam = torch.optim.Adam(
        parameters, lr=settings.learning_rate, weight_decay=one or 0.0, fused=True
    )
    best = [Probe([], l2, -1.0, 0) for l2 in settings.l2]
    worse = [0] * members
    epoch = 0
    while min(worse) <= settings.tenacity and epoch <= settings.max_epochs:
        for _ in range(settings.epoch_size):
            order = torch.from_numpy(random.permutation(len(x))).to(device)
            for rows in order.split(settings.batch_size):
                _gradients(parameters, x[rows], y[rows])
                for p in parameters if decay is not None else ():
                    assert p.grad is not None and decay is not None
                    p.grad.addcmul_(p.detach(), decay.view(-1, *[1] * (p.dim() - 1)))
                adam.step()
        epoch += settings.epoch_size
        for member, accuracy in enumerate(_accuracies(parameters, *held)):
            if worse[member] <= settings.tenacity and accuracy > best[member].accuracy:
                state = [p[member].detach().clone() for p in parameters]
                best[member] = Probe(state, settings.l2[member], accuracy, epoch)
            else:
                worse[member] += 1
    # Rounded to a hundredth of a point, as released: of equals the smallest decay wins.
    chosen = max(best, key=lambda each: round(100 * each.accuracy, 2))
    return replace(chosen, grid={each.l2: each.accuracy for each in best})


def initial(width: int, classes: int, hidden: int, random: np.random.Generator) -> list[Tensor]:
    """Weights `[out, in]` and biases `[out]` of each layer, drawn as torch's Linear does."""
    found = []
    for rows, columns in [(hidden, width), (classes, hidden)] if hidden else [(classes, width)]:
        bound = 1 / math.sqrt(columns)
        for shape in ((rows, columns), (rows,)):
            found.append(torch.from_numpy(random.uniform(-bound, bound, shape).astype(np.float32)))
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
