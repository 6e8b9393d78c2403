"""Fine-tuning for the suite `superglue`: an encoder of pairs of texts with a head."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from corpora.errors import within_memory
from zoo.backbones import Pooling, load_backbone, max_positions, pooled, pooling_of, warn_of_padding
from zoo.evaluate.encoders import load_frozen
from zoo.evaluate.in_hand import folder_of, name_of, parts_of, type_of
from zoo.evaluate.scores import finite
from zoo.loading import load_tokenizer, model_type
from zoo.modeling import best_device, uses_bf16
from zoo.training.trainer import LogLines, take_one_gpu

if TYPE_CHECKING:
    from zoo.evaluate.superglue import SuperGlue, SuperGlueExample, SuperGlueTask

log = logging.getLogger("zoo")


@dataclass(frozen=True)
class Start:
    """The model from which each training starts.

    `make()` returns a fresh encoder (loaded again, or a copy) and its tokenizer. `relation [width,
    width]` is CONPONO's matrix W for the next segment (k = +1), None if the model has none.
    `batch_size` is that of the evaluation.
    """

    make: Callable[[], tuple[Any, Any]]
    name: str
    model_type: str
    folder: str = ""
    batch_size: int = 64
    relation: Tensor | None = None

    @classmethod
    def load(cls, name: str, batch_size: int = 64) -> Start:
        """Start from a folder or Hub id; each training draws its missing weights at random."""

        def make() -> tuple[Any, Any]:
            backbone = load_backbone(name, {})
            return backbone, load_tokenizer(name, backbone.config)

        kind, relation = model_type(name), None
        if kind.startswith("discorpora-"):
            relation = relation_of(load_frozen(AutoModel, name, optional="pooler")[0])
        return cls(make, Path(name).name, kind, name, batch_size, relation)

    @classmethod
    def of(cls, model: Any) -> Start | None:
        """Start from a model object, such as a `SentenceTransformer`; None if it has no encoder."""
        if isinstance(model, Start):
            return model
        transformer = getattr(model, "transformers_model", None)
        parts = (transformer, model.tokenizer) if transformer is not None else parts_of(model)
        if parts is None:
            return None
        backbone, tokenizer = getattr(parts[0], "backbone", parts[0]), parts[1]
        return cls(
            lambda: (deepcopy(backbone), tokenizer),
            name_of(model),
            type_of(model),
            folder_of(model),
            relation=relation_of(parts[0]),
        )


def relation_of(model: Any) -> Tensor | None:
    """CONPONO's matrix W for the next segment (k = +1), `[width, width]`; None for other models.

    Its `relations.weight [2K, width, width]` has the distances -K .. -1, 1 .. K in this order. The
    uni-encoder has vectors, not matrices.
    """
    weight = getattr(getattr(model, "relations", None), "weight", None)
    if weight is None or weight.dim() != 3:
        return None
    return weight[len(weight) // 2].detach().float().cpu().clone()


def fine_tune(
    task: SuperGlueTask,
    train: Sequence[SuperGlueExample],
    examples: Sequence[SuperGlueExample],
    start: Start,
    options: SuperGlue,
    seed: int,
) -> tuple[list[int], list[dict[str, Any]]]:
    """Fine-tune a fresh copy of `start` on `train`, and judge `examples` at each checkpoint.

    Returns the number of the class or candidate chosen for each example after the last step, and
    the step and accuracy of each checkpoint.
    """
    # Backbone and tokenizer
    torch.manual_seed(seed)
    backbone, tokenizer = start.make()
    if tokenizer.pad_token is None:  # any token will do: padding is masked
        tokenizer.pad_token = tokenizer.eos_token
    warn_of_padding(backbone)
    limit = max_positions(backbone.config) or options.max_length
    pooling = pooling_of(backbone.config, tokenizer)
    # Model: a new head, or the relation matrix of CONPONO
    relation = None
    if options.head == "bilinear" and not task.classes:
        relation = start.relation
        if relation is None:
            width = backbone.config.hidden_size
            relation = nn.init.normal_(torch.empty(width, width), std=0.02)
    length = min(options.max_length, limit)
    collator = PairCollator(tokenizer, length, task.classes, contexts=relation is not None)
    model = PairModel(backbone, pooling, task.classes or 1, relation).to(best_device())
    points: list[dict[str, Any]] = []

    def judge(step: int) -> list[int]:
        """Return the model's choices, and note its accuracy after this step."""
        choices: list[int] = choose(model, examples, collator, start.batch_size).tolist()
        right = [choice in e.right for choice, e in zip(choices, examples, strict=True)]
        points.append({"step": step, "accuracy": float(np.mean(right))})
        log.info("%s, step %d: accuracy %.3f", task.name, step, points[-1]["accuracy"])
        return choices

    with TemporaryDirectory(prefix="superglue-") as folder:
        trainer = Trainer(
            model,
            _arguments(folder, task, seed, options.batch, uses_bf16(options.bf16)),
            data_collator=collator,
            train_dataset=list(train),
            callbacks=[_Checkpoints(task.checkpoint, judge), LogLines()],
        )
        trainer.remove_callback(PrinterCallback)
        with within_memory(f"superglue, {task.name}", "lower --max_length or --max_candidates"):
            trainer.train()
    return judge(trainer.state.global_step), points


def _arguments(
    folder: str, task: SuperGlueTask, seed: int, batch_size: int, bf16: bool
) -> TrainingArguments:
    """The Trainer's arguments: linear warm-up over a tenth of the steps, then linear decay to 0."""
    most = min(task.device_batch, batch_size)
    device_batch = next(size for size in range(most, 0, -1) if batch_size % size == 0)
    arguments = TrainingArguments(
        output_dir=folder,
        seed=seed,
        learning_rate=task.learning_rate,
        weight_decay=0.01,
        max_steps=task.max_steps or -1,
        num_train_epochs=task.epochs or 1.0,
        warmup_steps=0.1,
        per_device_train_batch_size=device_batch,
        gradient_accumulation_steps=batch_size // device_batch,
        bf16=bf16,
        use_cpu=not torch.accelerator.is_available(),
        save_strategy="no",
        logging_steps=100,
        log_level="warning",
        disable_tqdm=not sys.stderr.isatty(),
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    take_one_gpu(arguments)
    return arguments


class _Checkpoints(TrainerCallback):
    """Calls `judge(step)` after each `every` steps (0: each epoch), but not at the last step."""

    def __init__(self, every: int, judge: Callable[[int], Any]) -> None:
        self.every, self.judge = every, judge

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        step = state.global_step
        if self.every and step % self.every == 0 and step < state.max_steps:
            self.judge(step)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self.every and state.global_step < state.max_steps:
            self.judge(state.global_step)


class PairModel(nn.Module):
    """A backbone with a head, which gives `outputs` numbers for each pair of texts.

    The head is a linear layer on the vector of the pair or, with `relation [width, width]`,
    CONPONO's log-bilinear score t^T W c (equation 2): c is the vector of the first text alone, t
    that of the pair, W starts as `relation`. `pooling` says which state of the backbone is the
    vector: the first, the last or the mean.
    """

    # `forward` passes its keyword arguments on to the backbone: the Trainer must not add any.
    accepts_loss_kwargs = False

    def __init__(
        self,
        backbone: PreTrainedModel,
        pooling: Pooling,
        outputs: int,
        relation: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.pooling, self.outputs = backbone, pooling, outputs
        self.dropout = nn.Dropout(getattr(backbone.config, "hidden_dropout_prob", 0.1))
        self.relation = None if relation is None else nn.Parameter(relation.clone())
        if relation is None:
            self.head = nn.Linear(backbone.config.hidden_size, outputs)
            nn.init.normal_(self.head.weight, std=0.02)
            nn.init.zeros_(self.head.bias)

    def vectors(self, encoded: dict[str, Tensor]) -> Tensor:
        """Encode `input_ids` and `attention_mask`, `[texts, tokens]` each, to `[texts, width]`."""
        output = self.backbone(**encoded)
        vectors = getattr(output, "pooler_output", None)
        if vectors is None or self.pooling != "first":
            vectors = pooled(output.last_hidden_state, encoded["attention_mask"], self.pooling)
        return vectors

    def logits(self, encoded: dict[str, Tensor], contexts: Tensor | None = None) -> Tensor:
        """Score encoded pairs, `[pairs, outputs]`.

        The bilinear head also needs `contexts [pairs, width]`, the vectors of their first texts.
        """
        vectors = self.vectors(encoded)
        if self.relation is None or contexts is None:
            return self.head(self.dropout(vectors))
        with torch.autocast(vectors.device.type, enabled=False):
            scores = ((vectors.float() @ self.relation) * contexts.float()).sum(1, keepdim=True)
        return scores

    def forward(
        self,
        sizes: Tensor,
        right: Tensor,
        contexts: dict[str, Tensor] | None = None,
        **encoded: Tensor,
    ) -> dict[str, Tensor]:
        """The mean loss of a batch of examples; `encoded` has the tokens of their pairs of texts.

        Example `i` has `sizes[i]` pairs. With several outputs, `right [pairs]` are the classes, and
        the loss is cross entropy. With one output, the pairs of an example are its candidates,
        `right` is 1 for the right ones, and the loss is -log of their share of the softmax over the
        candidates. `contexts` are the encoded first texts of the examples, for a bilinear head.
        """
        first_texts = None
        if contexts is not None:
            first_texts = self.vectors(contexts).repeat_interleave(sizes, 0)
        logits = self.logits(encoded, first_texts).float()
        if logits.size(1) > 1:
            return {"loss": nn.functional.cross_entropy(logits, right)}
        counts = sizes.tolist()
        losses = [
            torch.logsumexp(scores, 0) - torch.logsumexp(scores[marks > 0], 0)
            for scores, marks in zip(logits[:, 0].split(counts), right.split(counts), strict=True)
        ]
        return {"loss": torch.stack(losses).mean()}


@dataclass(frozen=True)
class PairCollator:
    """Makes batches of examples: tokenised pairs of texts. In a long pair the longer text is cut.

    `classes` is the task's number of classes, 0 if it ranks candidates. With `contexts` a batch
    also has the tokenised first text of each example.
    """

    tokenizer: PreTrainedTokenizerBase
    max_length: int
    classes: int
    contexts: bool = False

    def encode(self, pairs: Iterable[tuple[str, ...]]) -> dict[str, Tensor]:
        """Tokenise pairs of texts, or single texts `(text,)`, to tensors `[pairs, tokens]`."""
        first, *second = map(list, zip(*pairs, strict=True))
        options = {"truncation": "longest_first", "max_length": self.max_length, "padding": True}
        # `pooled` needs padding on the right; XLNet's tokenizer would pad on the left.
        tensors = {"padding_side": "right", "return_tensors": "pt"}
        return dict(self.tokenizer(first, *second, **options, **tensors))

    def __call__(self, examples: Sequence[SuperGlueExample]) -> dict[str, Any]:
        """The arguments of `PairModel.forward` for a batch of examples."""
        marks = [
            example.right[0] if self.classes else int(place in example.right)
            for example in examples
            for place in range(len(example.pairs))
        ]
        sizes = torch.tensor([len(example.pairs) for example in examples])
        encoded = self.encode(pair for example in examples for pair in example.pairs)
        first_texts = self.encode(example.pairs[0][:1] for example in examples)
        contexts = {"contexts": first_texts} if self.contexts else {}
        return {"sizes": sizes, "right": torch.tensor(marks), **contexts, **encoded}


@torch.inference_mode()
def choose(
    model: PairModel, examples: Sequence[SuperGlueExample], collator: PairCollator, batch_size: int
) -> np.ndarray:
    """The number of the class or candidate that the model prefers in each example, `[examples]`."""
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device

    def batches(texts: Sequence[tuple[str, ...]]) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """Yield batches of texts or pairs of similar length: row numbers and the model's input."""
        order = np.argsort([-sum(map(len, text)) for text in texts], kind="stable")
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            encoded = collator.encode([texts[row] for row in rows])
            yield rows, {name: value.to(device) for name, value in encoded.items()}

    # Vectors of first texts alone, which the bilinear head needs
    sizes = [len(example.pairs) for example in examples]
    first_texts = None
    if collator.contexts:
        first_texts = torch.empty(len(examples), model.backbone.config.hidden_size, device=device)
        for rows, inputs in batches([example.pairs[0][:1] for example in examples]):
            first_texts[torch.from_numpy(rows)] = model.vectors(inputs).float()
        first_texts = first_texts.repeat_interleave(torch.tensor(sizes, device=device), 0)
    # Scores of all pairs; then the best of each example
    flat = [pair for example in examples for pair in example.pairs]
    scores = np.zeros((len(flat), model.outputs))
    for rows, inputs in batches(flat):
        contexts = None if first_texts is None else first_texts[torch.from_numpy(rows)]
        scores[rows] = model.logits(inputs, contexts).float().cpu().numpy()
    model.train(was_training)
    finite(scores, "the model gives scores", hint="lower --learning_rate, or --bf16 false")
    if collator.classes:
        return scores.argmax(1)
    return np.array([part.argmax() for part in np.split(scores[:, 0], np.cumsum(sizes)[:-1])])
