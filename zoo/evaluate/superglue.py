"""Suite `superglue`: RTE, COPA and ReCoRD by fine-tuning (Iter et al. 2020, 3.2 and A.4).

Steps, epochs, learning rates, warm-up and length are the paper's; the batch (32) and the limit of
25 candidates in training are those of its released code, since the paper has none.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from corpora.errors import DiscorporaError, InputError
from zoo.backbones import Pooling, max_positions, pooled, pooling_of, warn_of_padding
from zoo.evaluate import bootstrap
from zoo.evaluate.classification import model_type
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.evaluate.superglue_data import (
    TASKS,
    Example,
    Task,
    exact_match,
    examples_of,
    fewer_candidates,
    tasks_named,
    word_f1,
)
from zoo.modeling import best_device, load_backbone, uses_bf16
from zoo.training.data import (
    SPLITS,
    Dataset,
    no_split,
    open_dataset,
    read_manifest,
    split_spec,
    spread,
)
from zoo.training.trainer import LogLines, take_one_gpu

if TYPE_CHECKING:
    from zoo.evaluate import Request
    from zoo.evaluate.suites import SuperGlue

log = logging.getLogger("zoo")


def evaluate(options: SuperGlue, request: Request) -> Result:
    """Accuracy (ReCoRD: exact match and F1 too) on the validation set, as the paper reports."""
    folder, config = split_spec(request.data)
    opened = {name: open_dataset(folder, name) for name in _tasks(folder, config, options.tasks)}
    splits = {name: _split(data, request.split) for name, data in opened.items()}
    found = {
        TASKS[name].name: _task(TASKS[name], data, splits[name], request, options)
        for name, data in opened.items()
    }
    outcomes = [one for task in found.values() for one in task.pop("outcomes")]
    first = next(iter(opened.values()))
    rows = {name: dict(data.describe()["rows"]) for name, data in opened.items()}
    return Result(
        model={"name": Path(request.model).name, "type": model_type(request.model)},
        dataset={**first.describe(), "config": config, "rows": rows},
        protocol=options.model_dump(exclude={"tasks", "bf16"}) | {"limit": request.limit},
        examples=sum(task["examples"] for task in found.values()),
        metrics={"tasks": found, "resampled": "rows"},
        outcomes=outcomes,
        more={"split": " ".join(dict.fromkeys(splits.values()))},
    )


def _tasks(folder: str, config: str, asked: Sequence[str]) -> list[str]:
    """The configurations to evaluate: those asked for, or all that are there."""
    if asked or config:
        return tasks_named(asked or (config,))
    if not Path(folder).is_dir():
        return list(TASKS)
    there = read_manifest(Path(folder))["configs"]
    found = [name for name in TASKS if name in there]
    if not found:
        raise InputError(
            "none of rte, copa, record is in this dataset",
            where=folder,
            hint="build it with the builder superglue",
        )
    return found


def _split(data: Dataset, asked: str) -> str:
    """`asked` if it has labels to be had; the tests of SuperGLUE have none.

    Raises `ConfigError` for a split that no dataset has.
    """
    if asked not in SPLITS:
        raise no_split(asked, data.splits, data.where)
    table = data.splits.get(asked)
    return asked if asked != "test" and table is not None and table.num_rows else "validation"


def _task(
    task: Task, data: Dataset, split: str, request: Request, options: SuperGlue
) -> dict[str, Any]:
    """Train once for each seed, and score."""
    changed = {name: getattr(options, name) for name in ("max_steps", "learning_rate")}
    task = replace(task, **{name: value for name, value in changed.items() if value})
    question = options.copa_question
    train = [
        fewer_candidates(example, options.max_candidates)
        for example in examples_of(task.config, data["train"], copa_question=question)
    ]
    rows = spread(data[split], request.limit)
    examples = examples_of(task.config, rows, copa_question=question)
    runs = [
        _run(task, train, examples, request, options, request.seed + number)
        for number in range(options.seeds)
    ]
    return {"examples": len(examples), **_scores(task, examples, runs, request.seed)}


def _scores(
    task: Task, examples: Sequence[Example], runs: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, Any]:
    """The last step's figures; the best checkpoint beside it, picked on these same examples."""
    right = np.array(
        [[c in e.right for c, e in zip(r["chosen"], examples, strict=True)] for r in runs], float
    )
    if len(examples[0].pairs) == 1:  # of the most frequent class
        classes = np.array([example.right[0] for example in examples])
        chance = float(np.bincount(classes).max() / len(classes))
    else:  # of a candidate chosen at random
        chance = float(np.mean([len(set(e.right)) / len(e.pairs) for e in examples]))
    found: dict[str, Any] = {
        "accuracy": _figure(right, seed, task.name),
        "chance": chance,
        "outcomes": [Outcomes(task.name, numbered(len(examples)), right.mean(0))],
    }
    if task.config == "record":
        for name, measure in (("em", exact_match), ("f1", word_f1)):
            each = [
                [measure(e.texts[c], e.answers) for c, e in zip(r["chosen"], examples, strict=True)]
                for r in runs
            ]
            values, column = np.array(each), f"{task.name} {name.upper()}"
            found[name] = _figure(values, seed, f"{task.name}.{name}")
            found["outcomes"].append(Outcomes(column, numbered(len(examples)), values.mean(0)))
    best = [max(point["accuracy"] for point in run["checkpoints"]) for run in runs]
    found["best_checkpoint"] = float(np.mean(best))
    found["runs"] = [{"seed": run["seed"], "checkpoints": run["checkpoints"]} for run in runs]
    return found


def _figure(each: np.ndarray, seed: int, name: str) -> dict[str, Any]:
    """Mean over seeds and examples of `each [seeds, examples]`; the interval is over examples."""
    means = each.mean(1)
    ones = np.ones(each.shape[1])
    return {
        "value": float(means.mean()),
        **bootstrap.of_ratio(each.mean(0), ones, seed=seed, name=name),
        "deviation": float(means.std(ddof=1)) if len(means) > 1 else None,
    }


# Fine-tuning an encoder with a linear layer on pairs of texts.


def _run(
    task: Task,
    train: Sequence[Example],
    examples: Sequence[Example],
    request: Request,
    options: SuperGlue,
    seed: int,
) -> dict[str, Any]:
    """Train once: what is chosen at the last step, and the accuracy at each checkpoint."""
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(request.model)
    backbone = load_backbone(request.model, {})
    warn_of_padding(backbone)
    limit = max_positions(backbone.config) or options.max_length
    pairs = Pairs(tokenizer, min(options.max_length, limit), task.classes)
    pooling = pooling_of(backbone.config, tokenizer)
    model = PairModel(backbone, pooling, task.classes or 1).to(best_device())

    def accuracy() -> float:
        chosen = choose(model, examples, pairs, request.batch_size).tolist()
        return float(np.mean([c in e.right for c, e in zip(chosen, examples, strict=True)]))

    watch = _Checkpoints(task, accuracy)
    with TemporaryDirectory(prefix="superglue-") as folder:
        trainer = Trainer(
            model,
            _arguments(folder, task, seed, options.batch, uses_bf16(options.bf16)),
            data_collator=pairs,
            train_dataset=list(train),
            callbacks=[watch, LogLines()],
        )
        trainer.remove_callback(PrinterCallback)
        try:
            trainer.train()
        except torch.cuda.OutOfMemoryError as error:
            raise DiscorporaError(
                "out of memory on the GPU",
                where=f"superglue, {task.name}",
                hint="lower --max_length or --max_candidates",
            ) from error
    chosen = choose(model, examples, pairs, request.batch_size)
    return {"chosen": chosen, "checkpoints": watch.found, "seed": seed}


def _arguments(
    folder: str, task: Task, seed: int, batch_size: int, bf16: bool
) -> TrainingArguments:
    """Linear warm-up over the first tenth of the steps, then linear to 0 (BERT's schedule)."""
    at_once = min(task.device_batch, batch_size)
    arguments = TrainingArguments(
        output_dir=folder,
        seed=seed,
        learning_rate=task.learning_rate,
        weight_decay=0.01,
        max_steps=task.max_steps or -1,
        num_train_epochs=task.epochs or 1.0,
        warmup_steps=0.1,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=math.ceil(batch_size / at_once),
        bf16=bf16,
        use_cpu=not torch.accelerator.is_available(),
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        logging_steps=100,
        log_level="warning",
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    take_one_gpu(arguments)
    return arguments


class _Checkpoints(TrainerCallback):
    """Keeps the step and the `accuracy()` where the paper kept a checkpoint, and at the end."""

    def __init__(self, task: Task, accuracy: Callable[[], float]) -> None:
        self.task, self.accuracy = task, accuracy
        self.found: list[dict[str, Any]] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        at = state.global_step
        if self.task.checkpoint and at % self.task.checkpoint == 0 and at < state.max_steps:
            self.on_train_end(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.task.checkpoint and state.global_step < state.max_steps:
            self.on_train_end(args, state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        accuracy = self.accuracy()
        self.found.append({"step": state.global_step, "accuracy": accuracy})
        log.info("%s, step %d: accuracy %.3f", self.task.name, state.global_step, accuracy)


class PairModel(nn.Module):
    """A backbone and one linear layer: `outputs` numbers for each pair of texts."""

    # Keyword arguments of `forward` are the encoded texts: the Trainer must add nothing to them.
    accepts_loss_kwargs = False

    def __init__(self, backbone: PreTrainedModel, pooling: Pooling, outputs: int) -> None:
        super().__init__()
        self.backbone, self.pooling = backbone, pooling
        self.dropout = nn.Dropout(getattr(backbone.config, "hidden_dropout_prob", 0.1))
        self.head = nn.Linear(backbone.config.hidden_size, outputs)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def logits(self, encoded: dict[str, Tensor]) -> Tensor:
        """`[pairs, outputs]` from `input_ids` and `attention_mask [pairs, tokens]`."""
        found = self.backbone(**encoded)
        vectors = getattr(found, "pooler_output", None)
        if vectors is None or self.pooling != "first":
            vectors = pooled(found.last_hidden_state, encoded["attention_mask"], self.pooling)
        return self.head(self.dropout(vectors))

    def forward(self, sizes: Tensor, right: Tensor, **encoded: Tensor) -> dict[str, Tensor]:
        """The mean loss of a batch: `sizes [examples]` pairs each, `right [pairs]` marks.

        With several outputs, `right` is the class of each pair (cross entropy). With one, the
        pairs of an example are its candidates: -log of the share of the softmax that falls on
        right ones.
        """
        logits = self.logits(encoded).float()
        if logits.size(1) > 1:
            return {"loss": nn.functional.cross_entropy(logits, right)}
        losses = [
            torch.logsumexp(scores, 0) - torch.logsumexp(scores[marks > 0], 0)
            for scores, marks in zip(
                logits[:, 0].split(sizes.tolist()), right.split(sizes.tolist()), strict=True
            )
        ]
        return {"loss": torch.stack(losses).mean()}


@dataclass(frozen=True)
class Pairs:
    """Makes batches: pairs of texts as ids; where both are too long, the longer one is cut."""

    tokenizer: PreTrainedTokenizerBase
    max_length: int
    classes: int

    def encode(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        first, second = zip(*(pair for example in examples for pair in example.pairs), strict=True)
        return dict(
            self.tokenizer(
                list(first),
                list(second),
                truncation="longest_first",
                max_length=self.max_length,
                padding=True,
                padding_side="right",  # as `pooled` takes it; XLNet's own side is the left
                return_tensors="pt",
            )
        )

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        marks = [
            example.right[0] if self.classes else int(place in example.right)
            for example in examples
            for place in range(len(example.pairs))
        ]
        sizes = torch.tensor([len(example.pairs) for example in examples])
        return {"sizes": sizes, "right": torch.tensor(marks), **self.encode(examples)}


@torch.inference_mode()
def choose(
    model: PairModel, examples: Sequence[Example], pairs: Pairs, batch_size: int
) -> np.ndarray:
    """The class, or the candidate, that the model prefers in each example, `[examples]`."""
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    flat = [Example((pair,), (0,)) for example in examples for pair in example.pairs]
    order = np.argsort([-len(e.pairs[0][0]) - len(e.pairs[0][1]) for e in flat], kind="stable")
    scores = np.zeros((len(flat), model.head.out_features))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        encoded = pairs.encode([flat[row] for row in rows])
        inputs = {name: value.to(device) for name, value in encoded.items()}
        scores[rows] = model.logits(inputs).float().cpu().numpy()
    model.train(was_training)
    if np.isnan(scores).any():
        raise DiscorporaError("the model gives NaN", hint="lower --learning_rate, or --bf16 false")
    if pairs.classes:
        return scores.argmax(1)
    ends = np.cumsum([len(example.pairs) for example in examples])
    return np.array([part.argmax() for part in np.split(scores[:, 0], ends[:-1])])
