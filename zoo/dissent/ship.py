"""Trains the marker predictor that is shipped in the package.

    python -m zoo.dissent.ship DATASET --backbone SCORER --output FOLDER

`DATASET` is a `dissent` dataset (its configuration `books8`). The encoder is the lowest two layers
of the shipped coherence scorer's: all-MiniLM-L6-v2, with its word pieces and weights of four bits.
`make predictor` runs it.
Only the network on top is trained, on vectors that are computed once. The number of epochs, the
learning rate and the layers were chosen on two of the training novels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import torch
from torch.nn.functional import cross_entropy, dropout

from zoo.backbones import load_backbone
from zoo.commands import command, log, write_shipped_files
from zoo.compact import pack, pack_folder, unpack
from zoo.dissent.student import StudentConfig, StudentForMarkers
from zoo.evaluate.classification import PairClassifier, batches_of, predict, report
from zoo.labelled import load
from zoo.loading import load_tokenizer
from zoo.modeling import save_model

LAYERS = 2
"""The layers of the encoder that are kept, from the lowest."""
EPOCHS, BATCH, RATE, DECAY, DROPOUT = 10, 128, 5e-4, 1e-2, 0.5
SEED = 27


def train(model: StudentForMarkers, features: torch.Tensor, gold: torch.Tensor) -> None:
    """Train the network on `features [rows, width]` and the labels `gold [rows]`.

    The features are standardised. AdamW has a learning rate that rises and falls once (Smith and
    Topin 2018).
    """
    model.mean.copy_(features.mean(0))
    model.spread.copy_(features.std(0).clamp(min=1e-3))
    features = (features - model.mean) / model.spread
    parameters = [*model.projection.parameters(), *model.classifier.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY)
    random = torch.Generator().manual_seed(SEED)
    steps = EPOCHS * -(-len(gold) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for epoch in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(gold), generator=random).split(BATCH):
            hidden = model.projection(dropout(features[rows], DROPOUT / 2))
            scores = model.classifier(dropout(torch.nn.functional.gelu(hidden), DROPOUT))
            loss = cross_entropy(scores, gold[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        log.info("epoch %d: loss %.3f", epoch + 1, total / len(gold))


def ship(options: argparse.Namespace) -> None:
    """Train the predictor on a dataset, and write its folder with results and card."""
    data = load(str(options.dataset), options.config)
    tokenizer = load_tokenizer(options.backbone)
    # The lowest layers of the encoder and a new network
    backbone: Any = load_backbone(options.backbone, {})
    backbone.encoder.layer = backbone.encoder.layer[:LAYERS]
    backbone.config.num_hidden_layers = LAYERS
    backbone.load_state_dict(unpack(pack(backbone.state_dict())))  # as it will be stored
    torch.manual_seed(SEED)
    model = StudentForMarkers(StudentConfig(backbone_config=backbone.config, **data.names))
    model.backbone = backbone
    model.eval()
    rows = {
        split: model.encode_pairs(*data.texts(split), tokenizer, 512, labels=data.gold(split))
        for split in data.tables
    }
    # The network's input `[rows, width]` is computed once; then only the network is trained
    features = torch.empty(len(rows["train"]), model.projection.in_features)
    with torch.inference_mode():
        for numbers, batch in batches_of(rows["train"], BATCH, model.device):
            vectors = model.features(batch["input_ids"], batch["attention_mask"])
            features[torch.from_numpy(numbers)] = vectors
    train(model, features, torch.from_numpy(rows["train"].labels))
    # The folder; the figures are those of the weights as they are stored there
    options.output.mkdir(parents=True)
    save_model(model, tokenizer, options.output)
    pack_folder(options.output)
    packed = PairClassifier.load(options.output).model
    metrics = {
        split: report(rows[split].labels, predict(packed, rows[split]), data.labels, SEED)
        for split in ("validation", "test")
    }
    test = metrics["test"]

    def percent(figure: dict[str, Any]) -> str:
        low, high = figure["ci"]
        return f"{100 * figure['value']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"

    write_shipped_files(
        options.output,
        "zoo.dissent.ship",
        SEED,
        packed,
        metrics,
        Path(__file__).with_name("shipped.md"),
        data={"train_labels": data.label_counts("train")},
        trained=f"{data.tables['train'].num_rows:,}",
        rows=f"{test['rows']:,}",
        accuracy=percent(test["accuracy"]),
        f1=percent(test["f1"]),
        majority=f"{100 * test['majority']['accuracy']:.1f}",
        markers=", ".join(data.labels),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--config", default="books8")
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--output", type=Path, required=True)
    return command(ship, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
