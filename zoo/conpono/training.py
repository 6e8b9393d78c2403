"""The Trainer: loss parts, the share of real tokens, and what the input pipeline costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import Sampler, SequentialSampler

from corpora.store.atomic import write_json
from zoo.conpono.examples import Collator, Example
from zoo.conpono.modeling import ConponoOutput
from zoo.training.throughput import Throughput
from zoo.training.trainer import EpochSampler, ZooTrainer

PARTS = ("objective_loss", "mlm_loss")


class EpochRows(Sampler[tuple[int, int]]):
    """Pairs `(row, epoch)`: a worker then draws the epoch's examples without being told of it."""

    def __init__(self, rows: EpochSampler) -> None:
        self.rows = rows

    def set_epoch(self, epoch: int) -> None:
        self.rows.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        epoch = self.rows.epoch
        return ((int(row), epoch) for row in self.rows.order(epoch))


class PipelineThroughput(Throughput):
    """Also the share of places that held an id, and the parts of the loss."""

    slots = 0

    def count(self, inputs: Mapping[str, Any]) -> None:
        self.examples += len(inputs["labels"])
        self.tokens += inputs["real_tokens"]
        self.slots += inputs["slots"]

    @property
    def real_share(self) -> float:
        """Real tokens among all places of the encoder's input so far."""
        return round(float(self.tokens) / max(self.slots, 1), 4)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        super().on_train_end(args, state, control, **kwargs)
        if state.is_world_process_zero:
            figures = json.loads(self.path.read_text(encoding="utf-8"))
            figures["real_token_share"] = self.real_share
            # Means since the last log, or since the run was resumed: they belong to this run.
            figures["losses"] = [
                {key: entry[key] for key in ("step", "loss", *PARTS)}
                for entry in state.log_history
                if PARTS[0] in entry
            ]
            write_json(self.path, figures)


class ConponoTrainer(ZooTrainer):
    """A `ZooTrainer` over `Examples`; it logs both parts of the loss."""

    measure = PipelineThroughput
    throughput: PipelineThroughput

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parts: list[Tensor] = []

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return EpochRows(self.sampler)

    def _get_eval_sampler(self, eval_dataset: Any) -> Any:
        return SequentialSampler(eval_dataset)

    def _prepare_inputs(self, inputs: Any) -> Any:
        return unflattened(super()._prepare_inputs(inputs))

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, *args: Any, **kwargs: Any
    ) -> Any:
        outputs: ConponoOutput = model(**inputs)
        if model.training:
            # Kept on the device: reading them here would stop it at every step.
            self._parts.append(_parts_of(outputs).detach())
        return (outputs.loss, outputs) if return_outputs else outputs.loss

    def prediction_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The loss, its parts for each example, the scores and the labels of one batch."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            outputs: ConponoOutput = model(**inputs)
        parts = _parts_of(outputs).expand(len(inputs["labels"]), len(PARTS))
        return outputs.loss, (outputs.scores, parts), inputs["labels"]

    def log(self, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        if self._parts and "loss" in logs:
            # Every process comes here, and has its share of the batch, as of the loss itself.
            own = torch.stack(self._parts).mean(0)
            means = self.accelerator.reduce(own, reduction="mean").tolist()
            logs |= {name: round(value, 4) for name, value in zip(PARTS, means, strict=True)}
            logs["real_token_share"] = self.throughput.real_share
            self._parts.clear()
        super().log(logs, *args, **kwargs)


def flattened(collator: Collator, examples: Sequence[Example]) -> dict[str, Any]:
    """A batch with all its numbers in one tensor, `flat`, and what stands where in it.

    A batch has some hundred small tensors: to hand over each takes as long as to draw them.
    """
    inputs = collator(examples)
    tensors = [leaf.flatten() for leaf in tree_leaves(inputs) if isinstance(leaf, Tensor)]
    shapes = tree_map(lambda leaf: leaf.shape if isinstance(leaf, Tensor) else leaf, inputs)
    counted = {name: inputs[name] for name in ("labels", "real_tokens", "slots")}
    return {**counted, "flat": torch.cat(tensors), "shapes": shapes}


def unflattened(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The batch that `flattened` had, in views of its one tensor."""

    def is_shape(part: Any) -> bool:
        return isinstance(part, torch.Size)

    shapes = tree_leaves(inputs["shapes"], is_leaf=is_shape)
    tensors = iter(inputs["flat"].split([shape.numel() for shape in shapes if is_shape(shape)]))

    def view(part: Any) -> Any:
        return next(tensors).view(part) if is_shape(part) else part

    return tree_map(view, inputs["shapes"], is_leaf=is_shape)


def _parts_of(outputs: ConponoOutput) -> Tensor:
    return torch.stack([getattr(outputs, part) for part in PARTS])
