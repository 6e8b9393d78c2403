"""The full coherence model against a loop as the authors wrote theirs, in one run.

    python tests/bench/bench_coherence.py [--instances 4] [--batch 8] [--documents 32]
        [--limit 512] [--device cpu] [--backbone FOLDER]

The baseline takes one instance at a time, pads every text to the backbone's limit, keeps the queue
as a Python list of vectors, mines one instance after another, and scores one document at a time.
Both start from the same backbone (`--backbone`, else one of MiniLM's size with random weights) and
see the same made-up documents of ten sentences, with 50 ranked negatives each. Ours runs in float32
and in bfloat16. Prints seconds and ratios: processor time on a CPU, on a GPU (`--device cuda`) wall
time up to the end of its work, after a first round that is not timed.
"""

from __future__ import annotations

import argparse
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from transformers import AutoModel, BertConfig, BertModel

from zoo.backbones import training_attention
from zoo.coherence.data import Documents, pad
from zoo.coherence.loop import document_slice, hardest_negatives
from zoo.coherence.modeling import CoherenceScorer
from zoo.coherence.objectives import (
    ContrastiveMargin,
    MomentumContrast,
    MomentumEncoder,
    NegativeQueue,
)
from zoo.coherence.recipes import Full
from zoo.training.mapped import Texts

NEGATIVES, CANDIDATES, SENTENCES, QUEUE = 5, 50, 10, 1000


class Tokens:
    """Stands where the text encoder stands: documents here are ids already."""

    def assemble(self, sentences: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([[101], *sentences, [102]]).astype(np.int32)


MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}


def backbone(folder: str, sizes: dict[str, int] = MINILM) -> Any:
    torch.manual_seed(0)
    if folder:
        return AutoModel.from_pretrained(folder)
    inner = 4 * sizes["hidden_size"]
    return BertModel(BertConfig(vocab_size=30522, intermediate_size=inner, **sizes))


def made_up(count: int) -> tuple[Documents, list[tuple[str, list[list[int]]]]]:
    """Documents of ten sentences of 8 to 32 tokens, and 50 orders each."""
    random = np.random.default_rng(3)
    names = [str(number) for number in range(count)]
    tokens = Texts.of(
        random.integers(1000, 30000, random.integers(8, 33)) for _ in range(count * SENTENCES)
    )
    arrays = {"tokens": tokens, "sizes": [SENTENCES] * count, "cut": np.zeros(1)}
    rows = [
        (name, [random.permutation(SENTENCES).tolist() for _ in range(CANDIDATES)])
        for name in names
    ]
    return Documents(pa.table({"id": names}), Tokens(), arrays), rows  # type: ignore[arg-type]


class Ours:
    """The product's parts, in batches of like length."""

    def __init__(
        self, documents: Documents, encoder: Any, batch: int, device: str, bf16: bool
    ) -> None:
        self.documents, self.batch, self.device, self.bf16 = documents, batch, device, bf16
        self.model = CoherenceScorer.from_backbone(encoder, 512, 0).to(device)
        self.settings = Full(dataset="", output="", bf16=bf16)
        self.momentum = MomentumEncoder(self.model.backbone, 0.9999999)
        self.queue = NegativeQueue(QUEUE, self.model.config.backbone_config.hidden_size, device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-6)
        self.contrast, self.follow = ContrastiveMargin(), MomentumContrast()

    def score(self, texts: list[np.ndarray]) -> list[float]:
        return self.model.score_ids(texts, bf16=self.bf16)

    def mine(self, rows: list[Any]) -> list[Any]:
        return hardest_negatives(self.model, self.documents, rows, NEGATIVES, bf16=self.bf16)

    def train(self, rows: list[Any]) -> None:
        self.model.train()
        rows = sorted(rows, key=lambda row: -sum(map(len, self.documents.sentences(row[0]))))
        with training_attention(self.model.backbone, self.settings):
            for start in range(0, len(rows), self.batch):
                self._step(rows[start : start + self.batch])

    def _step(self, batch: list[Any]) -> None:
        documents = self.documents
        texts = [
            text
            for name, orders in batch
            for text in (documents.original(name), *(documents.permuted(name, o) for o in orders))
        ]
        ids, mask = self._padded(texts)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            vectors = self.model.vectors(ids, mask)
            scores = self.model.heads(vectors).view(len(batch), -1).float()
            negative = torch.arange(len(texts)) % scores.size(1) > 0
            with torch.no_grad():
                encoder = self.momentum.encoder
                self.queue.push(self.model.vectors(ids[negative], mask[negative], encoder))
                slices = self._padded(
                    [document_slice(documents, name, self.settings, 0) for name, _ in batch]
                )
                followed = self.model.vectors(*slices, encoder)
            own = vectors.view(len(batch), -1, vectors.size(-1))[:, 0]
            loss = 0.85 * self.contrast(scores) + 0.15 * self.follow(own, followed, self.queue())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.momentum.update(self.model.backbone)

    def _padded(self, texts: list[np.ndarray]) -> tuple[Tensor, Tensor]:
        ids, mask = pad(texts, 0)
        return ids.to(self.device), mask.to(self.device)


class Authors:
    """One instance at a time, every text padded to the limit, the queue a list."""

    def __init__(self, documents: Documents, encoder: Any, limit: int, device: str) -> None:
        self.documents, self.limit, self.device = documents, limit, device
        self.model = CoherenceScorer.from_backbone(encoder, 512, 0).to(device)
        self.momentum = MomentumEncoder(self.model.backbone, 0.9999999)
        self.queue: list[Tensor] = []
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-6)

    def padded(self, text: np.ndarray) -> tuple[Tensor, Tensor]:
        ids = torch.zeros(1, self.limit, dtype=torch.long)
        ids[0, : len(text)] = torch.as_tensor(text)
        return ids, (torch.arange(self.limit) < len(text)).long()[None]

    def stack(self, texts: list[np.ndarray]) -> tuple[Tensor, Tensor]:
        parts = [self.padded(text) for text in texts]
        ids, mask = torch.cat([ids for ids, _ in parts]), torch.cat([mask for _, mask in parts])
        return ids.to(self.device), mask.to(self.device)

    @torch.no_grad()
    def score(self, texts: list[np.ndarray]) -> list[float]:
        self.model.eval()
        return [float(self.model(*self.stack([text])).scores) for text in texts]

    @torch.no_grad()
    def mine(self, rows: list[Any]) -> list[Any]:
        self.model.eval()
        chosen = []
        for name, orders in rows:
            texts = [self.documents.permuted(name, order) for order in orders]
            scores = torch.cat(
                [
                    self.model(*self.stack(texts[i : i + 10])).scores
                    for i in range(0, len(texts), 10)
                ]
            )
            chosen.append((name, [orders[i] for i in scores.topk(NEGATIVES).indices.tolist()]))
        return chosen

    def train(self, rows: list[Any]) -> None:
        self.model.train()
        for name, orders in rows:
            self._step(name, orders)

    def _step(self, name: str, orders: list[list[int]]) -> None:
        texts = [self.documents.original(name)]
        texts += [self.documents.permuted(name, order) for order in orders]
        ids, mask = self.stack(texts)
        vectors = self.model.vectors(ids, mask)
        scores = self.model.heads(vectors)
        contrast = -torch.log(scores[0].exp() / (scores[0].exp() + (scores[1:] - 0.1).exp().sum()))
        with torch.no_grad():
            followed = self.model.vectors(ids, mask, self.momentum.encoder)
        self.queue += list(followed[1:])
        del self.queue[:-QUEUE]
        positive = cosine_similarity(vectors[0], followed[0], dim=0).exp()
        others = sum((cosine_similarity(vectors[0], q, dim=0) - 0.1).exp() for q in self.queue)
        loss = 0.85 * contrast - 0.15 * torch.log(positive / (positive + others))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        with torch.no_grad():
            for own, theta in zip(
                self.momentum.encoder.parameters(), self.model.backbone.parameters(), strict=True
            ):
                own.mul_(0.9999999).add_(theta, alpha=1e-7)


def now(device: str) -> float:
    """Seconds: of this process's processor time, or on a GPU of the clock when its work is done."""
    if device == "cpu":
        return time.process_time()
    torch.accelerator.synchronize()
    return time.perf_counter()


def timed(system: Any, rows: list[Any], texts: list[np.ndarray]) -> SimpleNamespace:
    """Seconds an instance: mining, training, both; and seconds a document that is scored."""
    device = system.device
    if device != "cpu":
        system.train(system.mine(rows[:1]))
        system.score(texts[:1])
    start = now(device)
    chosen = system.mine(rows)
    mined = now(device)
    system.train(chosen)
    trained = now(device)
    system.score(texts)
    scoring = (now(device) - trained) / len(texts)
    mining, training = (mined - start) / len(rows), (trained - mined) / len(rows)
    return SimpleNamespace(
        mining=mining, training=training, both=mining + training, scoring=scoring
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=4, help="of the baseline; ours sees 4 x")
    parser.add_argument("--documents", type=int, default=32, help="scored by ours; baseline: 1/4")
    parser.add_argument("--limit", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--backbone", default="", help="folder of an encoder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    documents, rows = made_up(max(4 * options.instances, options.documents))
    texts = [documents.original(name) for name, _ in rows[: options.documents]]
    device = options.device
    system: Any = Authors(documents, backbone(options.backbone), options.limit, device)
    few = texts[: max(1, options.documents // 4)]
    baseline = timed(system, rows[: options.instances], few)
    tokens = np.mean([len(text) for text in texts])
    sys.stdout.write(
        f"texts of {tokens:.0f} tokens; baseline {baseline.both:.3g} s an instance, "
        f"{baseline.scoring:.3g} s a document scored\n"
    )
    for bf16 in (False, True):
        system = Ours(documents, backbone(options.backbone), options.batch, device, bf16)
        ours = timed(system, rows[: 4 * options.instances], texts)
        for part in ("mining", "training", "both", "scoring"):
            before, after = getattr(baseline, part), getattr(ours, part)
            unit = "a document" if part == "scoring" else "an instance"
            sys.stdout.write(
                f"{'bf16' if bf16 else 'fp32'} {part:9}{after:9.3g} s {unit}, "
                f"{before / after:5.1f} times the baseline\n"
            )
        sys.stdout.write(f"     mining's share {ours.mining / ours.both:.0%}\n")


if __name__ == "__main__":
    main()
