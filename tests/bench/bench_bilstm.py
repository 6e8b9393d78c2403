"""Speed of the BiLSTM's training: batches of like length, packed, against padding to the longest.

    python tests/bench/bench_bilstm.py DATASET[@CONFIG] [--hidden 128] [--batches 40]

The plain loop draws batches at random and pads each to the corpus's longest sentence, without
packing. Both train the same model on the same pairs; processor time, one thread, so that other
jobs of the machine do not count. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from zoo.dissent.data import EncodedPairs, encode_texts
from zoo.dissent.modeling import BiLstmConfig, BiLstmForMarkers, pair_features
from zoo.training.data import open_dataset, spread
from zoo.training.trainer import EpochSampler
from zoo.vocabularies import train_words

BATCH = 64


class Padded(torch.nn.Module):
    """The same layers without packing: padding goes through the LSTM, and is masked after it."""

    def __init__(self, model: BiLstmForMarkers) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        batch, two, width = ids.shape
        encoder = self.model.encoder
        states, _ = encoder.lstm(encoder.embeddings(ids.reshape(-1, width)))
        hidden = mask.reshape(-1, width, 1) == 0
        vectors = states.masked_fill(hidden, float("-inf")).amax(1)
        s1, s2 = vectors.reshape(batch, two, -1).unbind(1)
        logits = self.model.classifier(self.model.projection(pair_features(s1, s2)))
        return cross_entropy(logits, labels)


def ours(pairs: EncodedPairs) -> Iterator[dict[str, Any]]:
    """Batches as the recipe draws them."""
    order = EpochSampler(pairs.lengths(), BATCH, seed=0).order(0)
    for start in range(0, len(order) - BATCH + 1, BATCH):
        yield pairs.collate([pairs[int(row)] for row in order[start : start + BATCH]])


def plain(pairs: EncodedPairs) -> Iterator[dict[str, Any]]:
    """Batches at random, each as wide as the longest sentence of all."""
    widest = int(pairs.lengths().max())
    order = np.random.default_rng(0).permutation(len(pairs))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        batch = pairs.collate([pairs[int(row)] for row in order[start : start + BATCH]])
        missing = widest - batch["input_ids"].shape[2]
        for name in ("input_ids", "attention_mask"):
            batch[name] = torch.nn.functional.pad(batch[name], (0, missing))
        yield batch


def seconds(model: BiLstmForMarkers, batches: Iterator[dict[str, Any]], packed: bool) -> float:
    """Processor time of training on `batches`, the first two of them left out."""
    padded = Padded(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = 0.0
    for number, batch in enumerate(batches):
        if number == 2:
            start = time.process_time()
        if packed:
            loss = model(**batch).loss
        else:
            loss = padded(batch["input_ids"], batch["attention_mask"], batch["labels"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batches", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = open_dataset(options.dataset)
    table = spread(data["train"], (options.batches + 2) * BATCH)
    one, two = (table[side].to_pylist() for side in ("s1", "s2"))
    tokenizer = train_words([*one, *two], 20_000)
    pairs = encode_texts(one, two, tokenizer, 64, table["label"].to_numpy())
    config = BiLstmConfig(
        vocab_size=len(tokenizer),
        embedding_size=100,
        hidden_size=options.hidden,
        projection_size=512,
        num_labels=len(data.labels()),
    )
    found = {}
    for name, batches, packed in (("plain", plain, False), ("ours", ours, True)):
        torch.manual_seed(0)
        found[name] = seconds(BiLstmForMarkers(config), batches(pairs), packed)
    lengths = pairs.texts.lengths()
    result = {
        "seconds": {name: round(value, 2) for name, value in found.items()},
        "ratio": round(found["plain"] / found["ours"], 2),
        "longest": int(lengths.max()),
        "mean_length": round(float(lengths.mean()), 1),
        "pairs": len(pairs),
        "hidden_size": options.hidden,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
