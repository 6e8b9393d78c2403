"""Trains the marker predictor that is shipped in the package.

    python -m zoo.dissent.ship novels --train FILE ... --validation FILE ... --test FILE ... \\
        --output NOVELS                                       # a build file, of whole novels
    discorpora build --config NOVELS/novels.toml --output BUILD
    python -m zoo.dissent.ship ship BUILD/novels/datasets/dissent --backbone MINILM --output FOLDER

`make predictor` runs all steps. The pairs are those of the configuration `books8` of the dataset
`dissent`, `MINILM` is all-MiniLM-L6-v2. Its lowest five layers, with the word pieces that are most
frequent in the training pairs, are fine-tuned on the two sentences of a pair as one text. Frequent
markers are sampled less often than they occur. In the last steps the weights are rounded to four
bits before each forward pass, so that they learn to be stored so. Two numbers are fitted on the
validation split: a temperature, and how far the frequencies of the markers count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zoo.extra  # noqa: F401 (first: without torch it ends the command)

# isort: split
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from corpora.readers.rows import json_rows
from corpora.store.atomic import write_text
from zoo.backbones import load_backbone, set_attention
from zoo.commands import command, log, write_shipped_files
from zoo.compact import is_packed, rounded, scales_of
from zoo.dissent.data import EncodedPairs
from zoo.dissent.modeling import PairTransformer
from zoo.evaluate.classification import PairClassifier, logits, report
from zoo.evaluate.scores import calibration_error, confusion_matrix, macro_f1
from zoo.labelled import load
from zoo.loading import load_tokenizer
from zoo.modeling import save_model
from zoo.vocabularies import keep_frequent_pieces

LAYERS, PIECES, TOKENS = 5, 11_000, 128
"""The layers that are kept, from the lowest; the word pieces; the most tokens of a pair."""
STEPS, BATCH, RATE, WARMUP, DECAY, DROPOUT, SMOOTHING = 1600, 32, 1e-4, 0.1, 0.01, 0.1, 0.1
ROUNDED, REFRESH = 300, 20
"""The last steps, in which the weights are rounded; the scales are new at each `REFRESH`th."""
FLATTENED = 0.5
"""Markers are sampled in proportion to their frequency to the power of this."""
POOL = 16
"""Batches that are drawn together, and sorted by length."""
SEED = 27
SPLITS = ("train", "validation", "test")
BUILD = """\
name = "novels"
{sources}
[splits]
table = "{table}"
largest_group = 0.25

[datasets.dissent]
"""
SOURCE = """
[[sources]]
name = "{name}"
spec = "jsonl:{path}"
licence = "CC0-1.0"
datasets = ["dissent"]
options = {{ layout = "paragraph", group = "book", id = "chapter_id", title = "chapter" }}
"""


def novels(options: argparse.Namespace) -> None:
    """Write a build file of novels, each a JSONL file of paragraphs that is wholly in one split."""
    sources, lines = [], []
    for split in SPLITS:
        for path in getattr(options, split):
            sources.append(SOURCE.format(name=path.stem.rpartition("_")[2], path=path.resolve()))
            chapters = {
                f"{row['book']}/{row['chapter_id']}": None
                for _, row in json_rows(path)
                if isinstance(row, dict)
            }
            lines += [f"{split}\t{chapter}\n" for chapter in chapters]
    options.output.mkdir(parents=True)
    table = options.output.resolve() / "splits.tsv"
    write_text(table, "".join(lines))
    build = BUILD.format(sources="".join(sources), table=table)
    write_text(options.output / "novels.toml", build)


def batches(rows: EncodedPairs, shares: np.ndarray, seed: int) -> Iterator[list[int]]:
    """Yield batches of row numbers without end; the labels' expected shares are `shares [labels]`.

    Each label's rows come in random order, all before one comes again. The rows of a batch have
    similar lengths.
    """
    random = np.random.default_rng(seed)

    def cycle(numbers: np.ndarray) -> Iterator[int]:
        while True:
            yield from random.permutation(numbers).tolist()

    cycles = [cycle(np.flatnonzero(rows.labels == label)) for label in range(len(shares))]
    lengths = rows.lengths()
    while True:
        labels = random.choice(len(shares), POOL * BATCH, p=shares)
        pool = sorted((next(cycles[label]) for label in labels), key=lengths.__getitem__)
        for start in random.permutation(POOL):
            yield pool[start * BATCH : (start + 1) * BATCH]


def train(model: PairTransformer, rows: EncodedPairs, shares: np.ndarray) -> None:
    """Fine-tune a model; `shares [labels]` are the labels' shares of `rows`.

    The loss adds the logarithms of the labels' shares in the batches to the logits (Menon et al.
    2021, equation 10), which are so those of labels that are equally frequent.
    """
    sampled = shares**FLATTENED / (shares**FLATTENED).sum()
    added = torch.from_numpy(np.log(sampled)).float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (WARMUP * STEPS), (STEPS - step) / STEPS)
    )
    matrices = [weight for weight in model.parameters() if is_packed(weight)]
    scales: list[Tensor] = []
    model.train()
    total = 0.0
    for step, numbers in zip(range(STEPS), batches(rows, sampled, SEED), strict=False):
        # The last steps: the forward pass has rounded weights, the update exact ones
        exact = [weight.data for weight in matrices]
        if step >= STEPS - ROUNDED:
            if not scales or step % REFRESH == 0:
                scales = [scales_of(weight) for weight in exact]
            for weight, weight_scales in zip(matrices, scales, strict=True):
                weight.data = rounded(weight.data, weight_scales)
        batch = rows.collate([rows[number] for number in numbers])
        labels = batch.pop("labels")
        with torch.autocast("cpu", torch.bfloat16):
            scores = model(**batch).logits
        loss = cross_entropy(scores.float() + added, labels, label_smoothing=SMOOTHING)
        loss.backward()
        for weight, values in zip(matrices, exact, strict=True):
            weight.data = values
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        total += float(loss.detach())
        if (step + 1) % 100 == 0:
            log.info("step %d of %d: loss %.3f", step + 1, STEPS, total / 100)
            total = 0.0


def log_probabilities(scores: np.ndarray, temperature: float, added: np.ndarray) -> np.ndarray:
    """Return log softmax(scores / temperature + added), `[rows, labels]`."""
    values = torch.from_numpy(scores).double() / temperature + torch.from_numpy(added)
    return values.log_softmax(-1).numpy()


def fit_temperature(scores: np.ndarray, gold: np.ndarray, log_shares: np.ndarray) -> float:
    """Return the temperature at which `gold [rows]` has the highest likelihood (Guo et al. 2017).

    `scores [rows, labels]` are logits of labels that are equally frequent; the probabilities are
    those under the frequencies exp(`log_shares`).
    """

    def mean_loss(temperature: float) -> float:
        values = log_probabilities(scores, temperature, log_shares)
        return -float(values[np.arange(len(gold)), gold].mean())

    return min((round(0.02 * step, 2) for step in range(20, 151)), key=mean_loss)


def fit_weight(scores: np.ndarray, gold: np.ndarray, log_shares: np.ndarray) -> float:
    """Return how far the markers' frequencies count, 0 to 1, for the highest macro F1: the weight
    of `log_shares [labels]` in the sum with the logits `scores [rows, labels]`."""

    def f1(weight: float) -> float:
        predicted = (scores + weight * log_shares).argmax(-1)
        return macro_f1(confusion_matrix(gold, predicted, len(log_shares)))

    return max((round(0.1 * step, 1) for step in range(11)), key=f1)


def ship(options: argparse.Namespace) -> None:
    """Train the predictor on a dataset, and write its folder with results and card."""
    data = load(str(options.dataset), options.config)
    # The encoder: the lowest layers, and the most frequent word pieces of the training pairs
    backbone: Any = load_backbone(options.backbone, {})
    pieces = load_tokenizer(options.backbone)
    tokenizer = keep_frequent_pieces(backbone, pieces, [*data.all_texts("train")], PIECES)
    tokenizer.model_max_length = TOKENS
    backbone.encoder.layer = backbone.encoder.layer[:LAYERS]
    backbone.config.num_hidden_layers = LAYERS
    positions = backbone.embeddings.position_embeddings
    positions.weight.data = positions.weight.data[:TOKENS].clone()
    backbone.config.max_position_embeddings = TOKENS
    # The model, and the pairs as token ids
    torch.manual_seed(SEED)
    model = PairTransformer.from_backbone(
        backbone, TOKENS, tokenizer.pad_token_id, pooling="mean", dropout=DROPOUT, **data.names
    )
    rows = {
        split: model.encode_pairs(*data.texts(split), tokenizer, TOKENS, labels=data.gold(split))
        for split in data.tables
    }
    counts = np.bincount(rows["train"].labels, minlength=len(data.labels))
    shares = counts / counts.sum()
    set_attention(model.backbone, "bf16")
    train(model, rows["train"], shares)
    set_attention(model.backbone, "sdpa")
    # The temperature and the weight of the frequencies, which become part of the linear layer
    with torch.no_grad():
        for matrix in model.parameters():
            if is_packed(matrix):
                matrix.copy_(rounded(matrix, scales_of(matrix)))
        validation = logits(model, rows["validation"])
        gold, log_shares = rows["validation"].labels, np.log(shares)
        temperature = fit_temperature(validation, gold, log_shares)
        weight = fit_weight(validation / temperature, gold, log_shares)
        log.info("temperature %.2f, weight of the frequencies %.1f", temperature, weight)
        model.classifier.weight.div_(temperature)
        model.classifier.bias.div_(temperature)
        model.classifier.bias.add_(torch.from_numpy(weight * log_shares).float())
    # The folder; the figures are those of the weights as they are stored there
    options.output.mkdir(parents=True)
    save_model(model, tokenizer, options.output, packed=True)
    stored = PairClassifier.load(options.output)
    assumed = shares**weight / (shares**weight).sum()
    metrics = {}
    for split in ("validation", "test"):
        gold, scores = rows[split].labels, logits(stored.model, rows[split])
        metrics[split] = report(gold, scores.argmax(-1), data.labels, SEED)
        for prior, wanted in (("equal", np.ones_like(shares)), ("corpus", shares)):
            values = np.exp(log_probabilities(scores, 1.0, np.log(wanted / assumed)))
            figures = report(gold, values.argmax(-1), data.labels, SEED)
            metrics[split][prior] = {key: figures[key] for key in ("accuracy", "f1", "per_class")}
            metrics[split][prior]["calibration_error"] = calibration_error(values, gold)
    test = metrics["test"]
    write_shipped_files(
        options.output,
        "zoo.dissent.ship",
        SEED,
        stored.model,
        metrics,
        Path(__file__).with_name("shipped.md"),
        data={
            "train_labels": data.label_counts("train"),
            "assumed_shares": dict(zip(data.labels, assumed.round(6).tolist(), strict=True)),
        },
        trained=f"{len(rows['train']):,}",
        rows=f"{test['rows']:,}",
        layers=str(LAYERS),
        pieces=f"{PIECES:,}",
        weight=str(weight),
        markers=", ".join(data.labels),
        **card_figures(test),
    )


def card_figures(test: dict[str, Any]) -> dict[str, str]:
    """Return the figures of the card as text, in per cent, from the metrics of the test split."""

    def percent(figure: dict[str, Any]) -> str:
        low, high = figure["ci"]
        return f"{100 * figure['value']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"

    # The majority has an F1 of its own only for the marker that it always says
    majority = dict.fromkeys(test["per_class"], 0.0)
    majority[test["majority"]["class"]] = test["majority"]["f1"] * len(majority)
    table = [
        f"| {name} | {part['gold']:,} | {100 * part['f1']:.1f} "
        f"| {100 * (part['f1'] - majority[name]):+.1f} | {100 * part['precision']:.1f} "
        f"| {100 * part['recall']:.1f} | {100 * test['equal']['per_class'][name]['recall']:.1f} |"
        for name, part in test["per_class"].items()
    ]
    return {
        "accuracy": percent(test["accuracy"]),
        "f1": percent(test["f1"]),
        "lift": f"{100 * (test['f1']['value'] - test['majority']['f1']):+.1f}",
        "table": "\n".join(table),
        "majority": f"{100 * test['majority']['accuracy']:.1f}",
        "majority_f1": f"{100 * test['majority']['f1']:.1f}",
        "equal_f1": percent(test["equal"]["f1"]),
        "equal_accuracy": percent(test["equal"]["accuracy"]),
        "corpus_f1": percent(test["corpus"]["f1"]),
        "corpus_accuracy": percent(test["corpus"]["accuracy"]),
        "calibration": f"{100 * test['corpus']['calibration_error']:.1f}",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    parsers = {run: commands.add_parser(run.__name__) for run in (novels, ship)}
    for split in SPLITS:
        parsers[novels].add_argument(f"--{split}", type=Path, nargs="+", required=True)
    parsers[ship].add_argument("dataset", type=Path)
    parsers[ship].add_argument("--config", default="books8")
    parsers[ship].add_argument("--backbone", required=True, help="a folder or Hub id")
    for run, subparser in parsers.items():
        subparser.add_argument("--output", type=Path, required=True)
        subparser.set_defaults(run=run)
    return command(lambda options: options.run(options), parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
