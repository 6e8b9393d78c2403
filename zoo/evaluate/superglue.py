"""Suite `superglue`: RTE, COPA and ReCoRD by fine-tuning."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from corpora.errors import DiscorporaError, InputError
from zoo.backbones import Pooling, max_positions, pooled, pooling_of, warn_of_padding
from zoo.evaluate.outcomes import Outcomes, numbered
from zoo.evaluate.results import Result
from zoo.evaluate.scores import of_ratio
from zoo.evaluate.superglue_data import (
    TASKS,
    Example,
    Task,
    exact_match,
    examples_of,
    fewer_candidates,
    word_f1,
)
from zoo.loading import load_tokenizer, model_type
from zoo.modeling import best_device, load_backbone, uses_bf16
from zoo.training.data import open_dataset, read_manifest, split_spec, spread
from zoo.training.trainer import LogLines, take_one_gpu

if TYPE_CHECKING:
    from zoo.evaluate import Request
    from zoo.evaluate.suites import SuperGlue

log = logging.getLogger("zoo")


def evaluate(options: SuperGlue, request: Request) -> Result:
    """Accuracy (ReCoRD: exact match and F1 too) on the validation set, as the paper reports."""
    folder, config = split_spec(request.data)
    there: Collection[str] = TASKS
    if config or Path(folder).is_dir():
        there = (config,) if config else read_manifest(Path(folder))["configs"]
    names = options.tasks or [name for name in TASKS if name in there]
    if not names:
        raise InputError(
            "none of rte, copa, record is in this dataset",
            where=request.data,
            hint="build it with the builder superglue",
        )
    opened = {TASKS[name]: open_dataset(folder, name) for name in names}
    judged = {}
    for task, data in opened.items():
        tests = data.splits.get("test")  # those of SuperGLUE have no labels
        hidden = request.split == "test" and (tests is None or not tests.num_rows)
        split = "validation" if hidden else request.split
        judged[task] = split, spread(data[split], request.limit)
    tasks, outcomes = {}, []
    for task, (_, table) in judged.items():
        tasks[task.name], own = _task(task, opened[task]["train"], table, request, options)
        outcomes += own
    rows = {task.config: data.describe()["rows"] for task, data in opened.items()}
    return Result(
        model={"name": Path(request.model).name, "type": model_type(request.model)},
        dataset={**opened[TASKS[names[0]]].describe(), "config": config, "rows": rows},
        protocol=options.model_dump(exclude={"tasks", "bf16"}) | {"limit": request.limit},
        examples=sum(task["examples"] for task in tasks.values()),
        metrics={"tasks": tasks, "resampled": "rows"},
        outcomes=outcomes,
        more={"split": " ".join(dict.fromkeys(split for split, _ in judged.values()))},
    )


def _task(
    task: Task, train: pa.Table, judged: pa.Table, request: Request, options: SuperGlue
) -> tuple[dict[str, Any], list[Outcomes]]:
    """Train once for each seed, and score.

    The figures are the last step's; the best checkpoint beside them is picked on the same examples.
    """
    given: dict[str, Any] = {"max_steps": options.max_steps, "learning_rate": options.learning_rate}
    task = replace(task, **{name: value for name, value in given.items() if value})
    learnt, examples = (
        examples_of(task.config, rows, copa_question=options.copa_question)
        for rows in (train, judged)
    )
    learnt = [fewer_candidates(example, options.max_candidates) for example in learnt]
    seeds = range(request.seed, request.seed + options.seeds)
    runs = [_run(task, learnt, examples, request, options, seed) for seed in seeds]
    if task.classes:  # of the most frequent class
        chance = np.bincount([example.right[0] for example in examples]).max() / len(examples)
    else:  # of a candidate chosen at random
        chance = np.mean([len(set(e.right)) / len(e.pairs) for e in examples])
    best = [max(point["accuracy"] for point in points) for _, points in runs]
    figures: dict[str, Any] = {
        "examples": len(examples),
        "chance": float(chance),
        "best_checkpoint": float(np.mean(best)),
        "runs": [
            {"seed": seed, "checkpoints": points}
            for seed, (_, points) in zip(seeds, runs, strict=True)
        ],
    }
    # Each figure's column, the name of its random stream, and what an example's choice counts.
    measures: dict[str, tuple[str, str, Callable[[Example, int], float]]] = {
        "accuracy": (task.name, task.name, lambda e, choice: choice in e.right)
    }
    if task.config == "record":
        measures |= {
            "em": ("ReCoRD EM", "ReCoRD.em", lambda e, at: exact_match(e.texts[at], e.answers)),
            "f1": ("ReCoRD F1", "ReCoRD.f1", lambda e, at: word_f1(e.texts[at], e.answers)),
        }
    outcomes = []
    for key, (column, name, measure) in measures.items():
        each = np.array([list(map(measure, examples, chosen)) for chosen, _ in runs], float)
        means, ones = each.mean(1), np.ones(len(examples))
        figures[key] = {
            "value": float(means.mean()),
            **of_ratio(each.mean(0), ones, seed=request.seed, name=name),
            "deviation": float(means.std(ddof=1)) if len(means) > 1 else None,
        }
        outcomes.append(Outcomes(column, numbered(len(examples)), each.mean(0)))
    return figures, outcomes


# Fine-tuning an encoder with a linear layer on pairs of texts.


def _run(
    task: Task,
    train: Sequence[Example],
    examples: Sequence[Example],
    request: Request,
    options: SuperGlue,
    seed: int,
) -> tuple[list[int], list[dict[str, Any]]]:
    """Train once: what is chosen at the last step, and the accuracy at each checkpoint."""
    torch.manual_seed(seed)
    backbone = load_backbone(request.model, {})
    tokenizer = load_tokenizer(request.model, backbone.config)
    warn_of_padding(backbone)
    limit = max_positions(backbone.config) or options.max_length
    pairs = Pairs(tokenizer, min(options.max_length, limit), task.classes)
    pooling = pooling_of(backbone.config, tokenizer)
    model = PairModel(backbone, pooling, task.classes or 1).to(best_device())
    points: list[dict[str, Any]] = []

    def look(step: int) -> list[int]:
        chosen: list[int] = choose(model, examples, pairs, request.batch_size).tolist()
        right = [choice in e.right for choice, e in zip(chosen, examples, strict=True)]
        points.append({"step": step, "accuracy": float(np.mean(right))})
        log.info("%s, step %d: accuracy %.3f", task.name, step, points[-1]["accuracy"])
        return chosen

    with TemporaryDirectory(prefix="superglue-") as folder:
        trainer = Trainer(
            model,
            _arguments(folder, task, seed, options.batch, uses_bf16(options.bf16)),
            data_collator=pairs,
            train_dataset=list(train),
            callbacks=[_Checkpoints(task.checkpoint, look), LogLines()],
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
    return look(trainer.state.global_step), points


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
    """Calls `look(step)` where the paper kept a checkpoint: `every` so many steps (0: epochs)."""

    def __init__(self, every: int, look: Callable[[int], Any]) -> None:
        self.every, self.look = every, look

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        at = state.global_step
        if self.every and at % self.every == 0 and at < state.max_steps:
            self.look(at)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.every and state.global_step < state.max_steps:
            self.look(state.global_step)


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
        parts = (part.split(sizes.tolist()) for part in (logits[:, 0], right))
        losses = [
            torch.logsumexp(scores, 0) - torch.logsumexp(scores[marks > 0], 0)
            for scores, marks in zip(*parts, strict=True)
        ]
        return {"loss": torch.stack(losses).mean()}


@dataclass(frozen=True)
class Pairs:
    """Makes batches: pairs of texts as ids; where both are too long, the longer one is cut."""

    tokenizer: PreTrainedTokenizerBase
    max_length: int
    classes: int

    def encode(self, pairs: Iterable[tuple[str, str]]) -> dict[str, Tensor]:
        first, second = map(list, zip(*pairs, strict=True))
        options = {"truncation": "longest_first", "max_length": self.max_length, "padding": True}
        # Padded as `pooled` takes it; XLNet's own side is the left.
        sides = {"padding_side": "right", "return_tensors": "pt"}
        return dict(self.tokenizer(first, second, **options, **sides))

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        marks = [
            example.right[0] if self.classes else int(place in example.right)
            for example in examples
            for place in range(len(example.pairs))
        ]
        sizes = torch.tensor([len(example.pairs) for example in examples])
        encoded = self.encode(pair for example in examples for pair in example.pairs)
        return {"sizes": sizes, "right": torch.tensor(marks), **encoded}


@torch.inference_mode()
def choose(
    model: PairModel, examples: Sequence[Example], pairs: Pairs, batch_size: int
) -> np.ndarray:
    """The class, or the candidate, that the model prefers in each example, `[examples]`."""
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    flat = [pair for example in examples for pair in example.pairs]
    order = np.argsort([-len(one) - len(two) for one, two in flat], kind="stable")
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
