"""Recipe: a pretrained encoder fine-tuned on pairs of texts (Nie et al. 2019, section 3.2).

On DisSent's markers, on NLI as the paper's comparison (table 7), or on the PDTB tasks of its
section 6; the backbone may be the model that one of the others left (base, DisSent, PDTB).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import AfterValidator, Field
from transformers import PreTrainedTokenizerBase

from zoo.backbones import (
    backbone_of,
    pooling_of,
    set_attention,
    tokenizer_for,
    training_attention,
)
from zoo.dissent.pairs import encode_pairs
from zoo.dissent.results import leave
from zoo.dissent.transformer_modeling import PairTransformer
from zoo.labelled import Columns, Labelled, load_for
from zoo.training.callbacks import EarlyStop
from zoo.training.job import Job, is_main_process
from zoo.training.settings import Above0, AtLeast0, BackboneSettings, Count, Dropout, Positive
from zoo.training.trainer import (
    KEEP_BEST,
    class_accuracy,
    fit,
    history,
    most_probable,
    trainer_over,
)


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
    data = load_for(
        job,
        splits={"validation": s.validation_split, "test": s.test_split},
        classes=s.classes,
        max_validation_rows=s.max_validation_rows,
    )
    tokenizer = tokenizer_for(s, data.all_texts("train"), s.max_tokens)

    # Model
    model = _model(s, tokenizer, data)
    limit = tokenizer.model_max_length = model.config.max_tokens

    # Data as the model takes it
    rows = {
        split: encode_pairs(*data.texts(split), tokenizer, limit, data.gold(split))
        for split in data.tables
    }
    truncated = {split: part.truncated for split, part in rows.items()}
    job.note_counts(f"pairs cut at {limit} tokens", truncated)

    # Objective (the model's cross-entropy) and Trainer
    trainer = trainer_over(
        job,
        model,
        rows,
        arguments={**KEEP_BEST, "warmup_steps": s.warmup},
        compute_metrics=class_accuracy,
        preprocess_logits_for_metrics=most_probable,
    )
    with training_attention(model.backbone, s):
        state = fit(trainer, early_stop=EarlyStop("accuracy", s.patience))
    if not is_main_process():
        return

    # Evaluation (the Trainer has validated already) and card
    details, steps = {"truncated": truncated}, history(state)
    batch = s.eval_batch_size
    leave(job, data, model, tokenizer, rows, details=details, training=steps, batch_size=batch)


def _model(s: Settings, tokenizer: PreTrainedTokenizerBase, data: Labelled) -> PairTransformer:
    """The backbone with a classifier of the dataset's labels on top."""
    torch.manual_seed(s.seed)
    backbone = backbone_of(s, tokenizer)
    model = PairTransformer.from_backbone(
        backbone,
        s.max_tokens,
        pooling=pooling_of(backbone.config, tokenizer) if s.pooling == "auto" else s.pooling,
        dropout=s.dropout,
        pad_token_id=tokenizer.pad_token_id,
        **data.names,
    )
    set_attention(model.backbone, s.attention)
    return model
