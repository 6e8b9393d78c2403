"""The Trainer: loss parts, the share of real tokens, and what the input pipeline costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler, SequentialSampler

from zoo.conpono.examples import as_tensors
from zoo.conpono.modeling import ConponoOutput
from zoo.training.throughput import Throughput
from zoo.training.trainer import EpochSampler, ZooTrainer

PARTS = ("objective_loss", "mlm_loss")
"""The parts of the loss, as they are logged."""


class EpochRows(Sampler[tuple[int, int]]):
    """Yields pairs `(row, epoch)`, so that a worker process knows the epoch of its examples."""

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
    """Measures the speed of training, the share of real tokens, and the parts of the loss."""

    slots = 0

    def count(self, inputs: Mapping[str, Any]) -> None:
        self.examples += len(inputs["labels"])
        self.tokens += inputs["real_tokens"]
        self.slots += len(inputs["slots"])

    @property
    def real_share(self) -> float:
        """The share of real tokens among all places of the encoder's input so far."""
        return round(float(self.tokens) / max(self.slots, 1), 4)

    def more(self, state: Any) -> dict[str, Any]:
        """Return the share of real tokens, and the mean losses between log lines."""
        losses = [
            {key: entry[key] for key in ("step", "loss", *PARTS)}
            for entry in state.log_history
            if PARTS[0] in entry
        ]
        return {"real_token_share": self.real_share, "losses": losses}


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
        return super()._prepare_inputs(as_tensors(inputs, self.args.device))

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, *args: Any, **kwargs: Any
    ) -> Any:
        outputs: ConponoOutput = model(**inputs)
        if model.training:
            # Kept on the device: reading them here would stop it at every step.
            self._parts.append(outputs.parts[0].detach())
        return (outputs.loss, outputs) if return_outputs else outputs.loss

    def log(self, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Add the mean parts of the loss and the share of real tokens to a report of the loss."""
        if self._parts and "loss" in logs:
            # Every process has its share of the batch and of the loss.
            process_means = torch.stack(self._parts).mean(0)
            means = self.accelerator.reduce(process_means, reduction="mean").tolist()
            logs |= {name: round(value, 4) for name, value in zip(PARTS, means, strict=True)}
            logs["real_token_share"] = self.throughput.real_share
            self._parts.clear()
        super().log(logs, *args, **kwargs)
