"""Recipe: a pretrained encoder fine-tuned on pairs of texts (Nie et al. 2019, section 3.2).

On DisSent's markers, on NLI as the paper's comparison (table 7), or on the PDTB tasks of its
section 6; the backbone may be the model that one of the others left (base, DisSent, PDTB).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, Field

from zoo.backbones import (
    backbone_of,
    pooling_of,
    set_attention,
    tokenizer_of,
    training_attention,
)
from zoo.callbacks import EarlyStop
from zoo.dissent.labelled import Columns, Labelled, load
from zoo.dissent.pairs import PairTexts, encode_pairs
from zoo.dissent.results import finish
from zoo.dissent.transformer_modeling import PairTransformer
from zoo.evaluate.classification import predict, report
from zoo.job import Job, is_main_process
from zoo.modeling import parameter_count, save_model
from zoo.settings import Above0, AtLeast0, BackboneSettings, Count, Dropout, Positive
from zoo.trainer import ZooTrainer, fit, history, training_arguments


def _none_or_two(classes: int) -> int:
    if classes != 0 and classes < 2:
        raise ValueError("0 for all, or at least 2: there is nothing to tell apart")
    return classes


@dataclass(frozen=True, kw_only=True)
class Settings(BackboneSettings):
    """The paper's learning rate and epoch; what it does not say is BERT's own fine-tuning."""

    learning_rate: Above0 = 2e-5
    epochs: Above0 = 1
    batch_size: Positive = 32
    weight_decay: AtLeast0 = 0.01
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """The share of the steps over which the learning rate rises; then it falls to 0."""
    bf16: bool | Literal["auto"] = "auto"
    dropout: Dropout = 0.1
    max_tokens: Annotated[int, Field(ge=8)] = 128
    """Of a pair; a longer one loses the end of its longer text."""
    max_validation_rows: Count = 0
    """Validate on so many rows, spread evenly over the split (0: as `max_eval_rows`)."""
    patience: Count = 0
    """Stop after so many validations without a new best accuracy (0: never)."""
    pooling: Literal["auto", "first", "last", "mean"] = "auto"
    """Where the pair's vector stands (auto: at [CLS], without one at the last token)."""
    columns: Columns = ()
    """The two columns of texts; found by their usual names if not given."""
    validation_split: str = "validation"
    test_split: str = "test"
    classes: Annotated[int, AfterValidator(_none_or_two)] = 0
    """Keep so many labels, those with most training rows (0: all)."""
    empty_classes: Literal["error", "warn"] = "error"


def train(job: Job) -> None:
    """Train into `job.folder`: data, model, objective and Trainer, evaluation, card."""
    s: Settings = job.settings  # type: ignore[assignment]

    # Data
    data = load(
        s.dataset,
        s.dataset_config,
        splits={"validation": s.validation_split, "test": s.test_split},
        columns=s.columns,
        classes=s.classes,
        max_train_rows=s.max_train_rows,
        max_eval_rows=s.max_eval_rows,
        max_validation_rows=s.max_validation_rows,
        empty=s.empty_classes,
    )
    for note in data.notes:
        job.note(note)
    tokenizer = tokenizer_of(
        s.backbone,
        data.all_texts("train"),
        pad_token=s.pad_token,
        vocab_size=s.vocab_size,
        lower=s.lower,
        limit=s.max_tokens,
    )

    # Model
    torch.manual_seed(s.seed)
    backbone = backbone_of(s, tokenizer)
    model = PairTransformer.from_backbone(
        backbone,
        s.max_tokens,
        pooling=pooling_of(backbone.config, tokenizer) if s.pooling == "auto" else s.pooling,
        dropout=s.dropout,
        pad_token_id=tokenizer.pad_token_id,
        id2label=dict(enumerate(data.labels)),
        label2id={label: index for index, label in enumerate(data.labels)},
    )
    set_attention(model.backbone, s.attention)
    tokenizer.model_max_length = model.config.max_tokens

    # Data as the model takes it
    rows = _encode(data, tokenizer, model.config.max_tokens)
    truncated = {split: part.truncated for split, part in rows.items()}
    if any(truncated.values()):
        cut = ", ".join(f"{split} {count}" for split, count in truncated.items())
        job.note(f"pairs cut at {model.config.max_tokens} tokens: {cut}")

    # Objective (the model's cross-entropy) and Trainer
    trainer = ZooTrainer(
        model,
        training_arguments(
            job,
            warmup_steps=s.warmup,
            metric_for_best_model="accuracy",
            load_best_model_at_end=True,
        ),
        job=job,
        lengths=rows["train"].lengths(),
        data_collator=rows["train"].collate,
        train_dataset=rows["train"],
        eval_dataset=rows["validation"],
        compute_metrics=_accuracy,
        preprocess_logits_for_metrics=lambda logits, _: logits.argmax(-1),
    )
    with training_attention(model.backbone, s):
        state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation (the Trainer has validated already)
    split = "test" if "test" in rows else "validation"
    predicted = predict(model, rows[split], s.eval_batch_size)
    metrics = {split: report(rows[split].labels, predicted, data.labels, s.seed)}

    # Card
    save_model(model, tokenizer, job.folder)
    finish(
        job,
        data,
        model_type=model.config.model_type,
        parameters=parameter_count(model),
        metrics=metrics,
        details={"truncated": truncated},
        training=history(state),
    )


def _encode(data: Labelled, tokenizer: Any, max_tokens: int) -> dict[str, PairTexts]:
    return {
        split: encode_pairs(*data.texts(split), tokenizer, max_tokens, data.gold(split))
        for split in data.tables
    }


def _accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions == prediction.label_ids).mean())}
