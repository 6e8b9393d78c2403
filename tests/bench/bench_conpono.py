"""CONPONO's training and input pipeline: `python tests/bench/bench_conpono.py [--size base]`

Throughput of buckets against a straightforward implementation, in turn, in one
process: pad to the batch's longest, no packing, candidates tokenised on the fly, fp32 (TF32 on a
GPU). The same model, objective, examples and masked-word head in all. Then the memory of the
input pipeline over 1 x and 10 x a made-up corpus, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase

from corpora.rng import stream
from corpora.schemas import CONPONO
from corpora.store.atomic import staged
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage
from zoo.backbones import set_attention
from zoo.conpono import ConponoModel
from zoo.conpono.examples import Candidates, Collator, as_tensors
from zoo.conpono.segments import Geometry, Masking, Template
from zoo.conpono.tokens import TokenStore, token_stores
from zoo.training.data import Dataset, batches, open_dataset
from zoo.vocabularies import train_subwords

UNIT = 200
ROWS_PER_GROUP = 64
"""Long rows, small row groups: one is in memory while it is read."""
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
    "small": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2},
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12},
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12},
}
LEXICON = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in ("a", "e", "io", "u") for c in "klmnrstvz"]


def documents(number: int) -> Iterator[dict[str, Any]]:
    """Chapters of five paragraphs of 12 sentences, as unlike in length as those of novels."""
    share = 1 / np.arange(1, len(LEXICON) + 1)
    for i in range(number):
        random = stream(1, "bench", f"d{i}")
        sizes = np.clip(random.lognormal(2.8, 0.6, 60), 3, 70).astype(int)
        lines = [
            f"{' '.join(random.choice(LEXICON, size, p=share / share.sum()))} {i}."
            for size in sizes
        ]
        yield {
            "doc": f"d{i}",
            "group": f"g{i}",
            "sentences": lines,
            "bounds": list(range(0, 61, 12)),
        }


def write(folder: Path, number: int) -> Path:
    """A dataset folder of `number` documents to train on."""
    card = Card("conpono", "made by a benchmark", "none", {}, "none")
    stage = Stage("conpono", 1, f"bench-{number}")
    with staged(folder) as partial, DatasetFolder(partial, "conpono", stage, card) as dataset:
        writer = dataset.writer("default", "train", CONPONO, rows_per_group=ROWS_PER_GROUP)
        writer.extend(documents(number))
        dataset.licences["MIT"] += number
        dataset.finish()
    return folder


class TextStore(TokenStore):
    """Tokenises every text when it is asked for, as a straightforward implementation does."""

    def __init__(self, folder: Path, dataset: Dataset, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(folder)
        self.tokenizer = tokenizer
        self.texts = [
            text
            for batch in batches(dataset["train"], ("sentences",))
            for row in batch["sentences"].to_pylist()
            for text in row
        ]

    def ids(self, first: int, count: int) -> np.ndarray:
        text = " ".join(self.texts[first : first + count])
        found = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.asarray(found, np.int64)


@dataclass
class Way:
    """One way to train: its examples, its collator and its precision."""

    name: str
    examples: Candidates
    collator: Collator
    model: ConponoModel
    bf16: bool = False
    data: float = 0.0
    step: float = 0.0
    real: int = 0
    slots: int = 0
    anchors: int = 0

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)

    def run(self, rows: Sequence[int], epoch: int, device: torch.device, count: bool) -> None:
        """One optimizer step on the examples of `rows`."""
        # A CPU may be shared: there the process's own time counts. A GPU works beside it.
        clock = time.perf_counter if device.type == "cuda" else time.process_time
        begin = clock()
        inputs = as_tensors(self.collator([self.examples[row, epoch] for row in rows]))
        fetched = clock()
        inputs = {k: v.to(device) if torch.is_tensor(v) else v for k, v in inputs.items()}
        with torch.autocast(device.type, torch.bfloat16) if self.bf16 else nullcontext():
            loss = self.model(**inputs).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if count:
            self.data += fetched - begin
            self.step += clock() - fetched
            self.real += inputs["real_tokens"]
            self.slots += len(inputs["slots"])
            self.anchors += len(rows)

    def figures(self) -> dict[str, Any]:
        seconds = self.data + self.step
        return {
            "anchors_per_second": round(self.anchors / seconds, 2),
            "real_tokens": self.real,
            "real_tokens_per_second": round(self.real / seconds),
            "real_token_share": round(self.real / self.slots, 3),
            "data_seconds": round(self.data, 2),
            "step_seconds": round(self.step, 2),
        }


def throughput(folder: Path, size: str, anchors: int, steps: int, candidates: int) -> dict:
    """Each way `steps` optimizer steps on the same examples, in turn."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    dataset = open_dataset(str(folder), streamed=True)
    tokenizer = train_subwords(
        (text for row in documents(50) for text in row["sentences"]), 8000, max_length=512
    )
    geometry = Geometry()
    store = token_stores(dataset, tokenizer, geometry, folder.parent / "m")["train"]
    naive = TextStore(store.folder, dataset, tokenizer)
    template, masking = Template.of(tokenizer, 512), Masking.of(tokenizer, 0.15)
    shape = SIZES[size]
    config = BertConfig(
        vocab_size=30522 if size == "base" else 8192,
        intermediate_size=4 * shape["hidden_size"],
        pad_token_id=0,
        **shape,
    )

    def way(name: str, source: TokenStore, block: int, bf16: bool) -> Way:
        torch.manual_seed(0)
        model = ConponoModel.from_backbone(BertModel(config)).to(device).train()
        examples = Candidates(source, source, template, masking, geometry, candidates)
        collator = Collator(0, block, shortest=0.9 if block < 1 << 40 else 0.0)
        return Way(name, examples, collator, model, bf16)

    gpu = device.type == "cuda"
    block = 65536 if gpu else 8192
    ways = [
        way("straightforward", naive, 1 << 40, False),
        way("buckets", store, block, gpu),
    ]
    if gpu:
        ways.append(way("buckets, compiled", store, block, True))
        ways[-1].model.backbone.compile()  # as the recipe does
    elif torch.ops.mkldnn._is_mkldnn_bf16_supported():
        # As `attention = "auto"` has it there.
        ways.append(way("buckets, bf16", store, block, True))
        set_attention(ways[-1].model.backbone, "bf16")
    order = stream(0, "bench.rows").permutation(len(store.examples))
    for number in range(-2, steps):
        rows = np.take(order, range(number * anchors, (number + 1) * anchors), mode="wrap")
        for each in ways:
            each.run(rows.tolist(), max(number, 0), device, count=number >= 0)
    found = {each.name: each.figures() for each in ways}
    first = found["straightforward"]["anchors_per_second"]
    for figures in found.values():
        figures["times"] = round(figures["anchors_per_second"] / first, 2)
    if gpu or ways[-1].bf16:
        peak = matrix_throughput(device)
        weights = sum(p.numel() for p in ways[1].model.backbone.encoder.parameters())
        for figures in found.values():
            rate = figures["real_tokens"] / figures["step_seconds"]
            figures["share_of_bf16_peak"] = round(6 * weights * rate / peak, 3)
    return found


def matrix_throughput(device: torch.device) -> float:
    """Operations a second of bf16 matrix products on this device."""
    gpu = device.type == "cuda"
    size, rounds = (8192, 50) if gpu else (2048, 10)
    clock = time.perf_counter if gpu else time.process_time
    one, two = (torch.randn(size, size, dtype=torch.bfloat16, device=device) for _ in range(2))
    for _ in range(5):
        one @ two
    if gpu:
        torch.cuda.synchronize()
    begin = clock()
    for _ in range(rounds):
        one @ two
    if gpu:
        torch.cuda.synchronize()
    return 2 * size**3 * rounds / (clock() - begin)


def memory(folder: Path, candidates: int) -> dict[str, float]:
    """Private memory (MiB) of tokenising the corpus and drawing 300 examples, beyond the start."""
    tokenizer = train_subwords(
        (text for row in documents(50) for text in row["sentences"]), 8000, max_length=512
    )
    begin = private()
    dataset = open_dataset(str(folder), streamed=True)
    store = token_stores(dataset, tokenizer, Geometry(), folder.parent / "memory")["train"]
    tokenised = private()
    template, masking = Template.of(tokenizer, 512), Masking.of(tokenizer, 0.15)
    examples = Candidates(store, store, template, masking, Geometry(), candidates)
    collate, highest = Collator(0), tokenised
    for start in range(0, 296, 8):
        rows = np.linspace(0, len(examples) - 1, 300).astype(int)[start : start + 8]
        collate([examples[row] for row in rows.tolist()])
        highest = max(highest, private())
    disk = sum(path.stat().st_size for path in store.folder.iterdir()) / 2**20
    return {
        "documents": len(store.keys),
        "store_on_disk": round(disk, 1),
        "tokenising": round(tokenised - begin, 1),
        "drawing": round(highest - begin, 1),
    }


def private() -> float:
    """This process's private memory in MiB: pages of mapped files do not count."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise OSError("no RssAnon in /proc/self/status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--anchors", type=int, default=4, help="a step")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--candidates", type=int, default=32)
    parser.add_argument("--part", choices=["all", "throughput", "memory"], default="all")
    parser.add_argument("--memory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        sys.stdout.write(json.dumps(memory(options.memory, options.candidates)))
        return
    with tempfile.TemporaryDirectory() as folder:
        one = write(Path(folder) / "one" / "data", UNIT)
        found: dict[str, Any] = {"threads": torch.get_num_threads(), "size": options.size}
        if options.part != "memory":
            found["throughput"] = throughput(
                one, options.size, options.anchors, options.steps, options.candidates
            )
        if options.part != "throughput":
            ten = write(Path(folder) / "ten" / "data", 10 * UNIT)
            command = [sys.executable, __file__, "--memory"]
            found["memory"] = [
                json.loads(subprocess.run([*command, data], check=True, capture_output=True).stdout)
                for data in (one, ten)
            ]
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
