"""Every recipe with its real input pipeline: what a step waits for data, or, on a GPU, its profile.

    python -m tests.bench.bench_recipes simulate [--step 0.05] [--steps 60] [--only RE]
    python -m tests.bench.bench_recipes tokens [--rows 20000] [--workers 2]
    python -m tests.bench.bench_recipes profile [--steps 200] [--tiny]
    python -m tests.bench.bench_recipes figures --output FILE [--bf16 auto]

`simulate` takes the processor time that the training process spends on a batch, while a step is a
pause of `--step` seconds, as a share of it (baseline: the pause). `--workers 0` makes batches in
that process, others in processes beside it. `tokens` makes the tokens of each kind of data in one
process and in several (baseline: one). `profile` trains each recipe with a backbone of random
weights and the paper's size, where there is a GPU also with `--compile true`: examples/s, real
tokens/s and share of the GPU's peak in bfloat16 in the second half of the steps, the ratio of the
two, the hours of the paper's run at that speed, and the operations that take most time by
torch.profiler. `--tiny` takes the tiny recipes, for a machine without a GPU. `figures` trains the
tiny recipes for 60 steps and adds their metrics to FILE, by device and precision: called with and
without `CUDA_VISIBLE_DEVICES=` it prints what a GPU changes. The data are made up.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpora import schemas
from corpora.rng import stream
from tests.bench.bench_conpono import LEXICON, documents
from zoo.coherence import loop
from zoo.coherence.data import pad
from zoo.coherence.loop import FullTraining, document_slice
from zoo.coherence.modeling import CoherenceScorer
from zoo.texts import batches_by_length
from zoo.train import train
from zoo.training import mapped
from zoo.training.throughput import Throughput
from zoo.training.trainer import ZooTrainer

PARTS = ("batches", "on the device", "mining")
BERT = {"backbone_config.model_type": "bert", "vocab_size": 8000}
TINY = {"backbone_config.hidden_size": 32, "backbone_config.num_hidden_layers": 1}
TINY |= {"backbone_config.num_attention_heads": 2, "backbone_config.intermediate_size": 32}
XLNET: dict[str, Any] = {"backbone_config.model_type": "xlnet", "vocab_size": 8000}
XLNET |= {"backbone_config.d_model": 768, "backbone_config.n_layer": 12}
XLNET |= {"backbone_config.n_head": 12, "backbone_config.d_inner": 3072}
PAPER = {
    # The preset, its data, the tiny preset, and the examples of the paper's run.
    "dissent/transformer": ("pairs", "dissent/transformer_tiny", 4_706_292),
    "dissent/bilstm": ("pairs", "dissent/bilstm_tiny", 20 * 4_706_292),
    "coherence/contrastive": ("permuted", "coherence/contrastive_tiny", 46_522),
    "coherence/full": ("permuted", "coherence/full_tiny", 46_522),
    "coherence/unc": ("permuted", "coherence/unc_tiny", 46_522),
    "conpono/full": ("conpono", "conpono/tiny", 1_600_000),
    "criteria/bigru": ("criteria", "criteria/bigru_tiny", 0),
}
RECURRENT = ("dissent/bilstm", "criteria/bigru", "coherence/unc")


def lines(random: np.random.Generator, number: int) -> list[str]:
    """Sentences of made-up words, as unlike in length as those of novels."""
    sizes = np.clip(random.lognormal(2.8, 0.6, number), 3, 70).astype(int)
    return [" ".join(random.choice(LEXICON, size)) + "." for size in sizes]


def pairs(number: int, random: np.random.Generator) -> list[dict[str, Any]]:
    more = {"group": "g", "position": "same_sentence", "order": "s1_first", "s2_added": ""}
    more["marker_start"] = 0
    one, two = lines(random, number), lines(random, number)
    return [
        {"doc": f"d{i}", "s1": a, "s2": b, "label": i % 3, "confidence": 0.5, **more}
        for i, (a, b) in enumerate(zip(one, two, strict=True))
    ]


def articles(number: int, random: np.random.Generator) -> Iterator[dict[str, Any]]:
    places = {"section": [0] * 20, "level": [1] * 20, "sentence_bin": [0] * 20}
    for i in range(number):
        sentences = lines(random, 20)
        yield {
            **{"doc": f"d{i}", "group": "g", "title": sentences[0], "sentences": sentences},
            **{"headings": [sentences[1]], "paragraph_bin": [0] * 20, **places},
            **{"paragraph": [0] * 20, "sentence_position": [*range(20)]},
        }


def made(folder: Path, kind: str, size: int) -> Path:
    """A dataset of `kind` with about `size` examples to train on."""
    from tests.zoo.conftest import orders_of, write_dataset  # a GPU machine lacks what they need

    parts: dict[tuple[str, str], Any] = {}
    for split, rows in {"train": size, "validation": 40, "test": 40}.items():
        random = stream(5, "bench.recipes", split)
        if kind == "pairs":
            parts["all", split] = pairs(rows, random), schemas.dissent(["but", "so", "then"])
        elif kind == "conpono":
            found = [{**row, "doc": f"{split}-{row['doc']}"} for row in documents(rows // 5 + 8)]
            parts["default", split] = found, schemas.CONPONO
        elif kind == "criteria":
            parts["default", split] = list(articles(rows // 20 + 2, random)), schemas.CRITERIA
        else:
            texts = [
                {"id": f"{split}{i}", "group": "g", "sentences": lines(random, 15)}
                for i in range(rows // 20 + 2)
            ]
            parts["documents", split] = texts, schemas.PERMUTED_DOCUMENTS
            for config, negatives, schema in (
                ("pairwise", 1, schemas.PERMUTED_PAIRWISE),
                ("contrastive", 5, schemas.PERMUTED_ORDERS),
                ("ranked", 50, schemas.PERMUTED_ORDERS),
            ):
                parts[config, split] = orders_of(texts, negatives, 20), schema
    return write_dataset(folder, kind, parts)


def words(preset: str, data: Path, output: Path, **options: Any) -> list[str]:
    given = {"dataset": data, "output": output, "max_eval_rows": 32, **options}
    return [preset, *(str(word) for key, value in given.items() for word in (f"--{key}", value))]


@contextmanager
def replaced(place: Any, name: str, value: Any) -> Iterator[Any]:
    former = getattr(place, name)
    setattr(place, name, value)
    try:
        yield former
    finally:
        setattr(place, name, former)


def simulate(folder: Path, name: str, options: Any) -> str:
    """Processor time that the recipe's own batch takes to make, beside the pause."""
    kind, _, _ = PAPER[name]
    data, spent = made(folder / "data", kind, options.rows), {part: [] for part in PARTS}
    backbone: dict[str, Any] = {**BERT, **TINY, "backbone": ""}
    backbone["backbone_config.max_position_embeddings"] = 640
    backbone = {
        "dissent/bilstm": {"train_embeddings": "true", "hidden_size": 16},
        "criteria/bigru": {"hidden_size": 16, "embedding_size": 16, "decoder_size": 16},
        "coherence/unc": {"hidden_size": 16, "embedding_size": 16},
    }.get(name, backbone)
    more = {"max_steps": options.steps, "logging_steps": 10_000, "workers": options.workers}

    def timed(part: str, function: Any, *rest: Any, **named: Any) -> Any:
        began = time.thread_time()
        found = function(*rest, **named)
        count = len(found[0]) if part == PARTS[0] and found else 1  # of accumulated ones several
        spent[part].append((time.thread_time() - began) / count)
        return found

    def pause(self: Any, model: Any, inputs: Any, *_: Any, **__: Any) -> torch.Tensor:
        self.throughput.count(inputs)
        timed("on the device", self._prepare_inputs, inputs)
        time.sleep(options.step)
        return torch.zeros(())

    def padded(self: FullTraining, batch: list[Any]) -> None:
        self._padded([text for row in batch for text in self.documents.row_texts(row)])
        seen = self.progress.seen
        self._padded([document_slice(self.documents, name, self.recipe, seen) for name, _ in batch])

    def loss(self: FullTraining, batch: list[Any]) -> torch.Tensor:
        timed("batches", padded, self, batch)
        time.sleep(options.step)
        return sum(p.sum() for p in self.model.parameters()) * 0

    def scored(self: Any, texts: list[Any], size: int = 16384, **_: Any) -> list[float]:
        for rows in batches_by_length([len(text) for text in texts], size):
            pad([texts[row] for row in rows], 0)
        return [0.0] * len(texts)

    batches, mine = ZooTrainer.get_batch_samples, loop.hardest_negatives
    score = scored if name == "coherence/full" else CoherenceScorer.score_ids
    with (
        replaced(ZooTrainer, "training_step", pause),
        replaced(
            ZooTrainer, "get_batch_samples", lambda *a, **k: timed("batches", batches, *a, **k)
        ),
        replaced(loop, "hardest_negatives", lambda *a: timed("mining", mine, *a)),
        replaced(FullTraining, "loss", loss),
        replaced(CoherenceScorer, "score_ids", score),
    ):
        train(words(name, data, folder / "model", **backbone, **more))
    took = 1000 * sum(float(np.median(spent[part])) for part in PARTS[:2] if spent[part])
    said = f"{name:24} {took:7.2f} ms a batch, {took / options.step / 10:5.1f} % of the pause"
    if spent["mining"]:
        said += f"; mining {1000 * np.median(spent['mining']) / 200:.2f} ms an instance"
    return said


def tokens(folder: Path, name: str, options: Any) -> str:
    """Rows a second whose tokens one process makes, and several."""
    kind, tiny, _ = PAPER[name]
    if name == "coherence/unc":
        return f"{name:24} reads words, which no other process makes"
    data, rates = made(folder / "data", kind, options.rows), {}
    tokenized = mapped.tokenized

    def timed(dataset: Any, splits: Any, *rest: Any, **more: Any) -> Any:
        began = time.perf_counter()
        found = tokenized(dataset, splits, *rest, **{**more, "workers": workers})
        rates[workers] = splits["train"].num_rows / (time.perf_counter() - began)
        return found

    mapped.BYTES_A_WORKER = 1 << 17
    for workers in (0, options.workers):
        place = {"pairs": "zoo.dissent.data", "permuted": "zoo.coherence.data"}.get(kind)
        place = place or {"conpono": "zoo.conpono.tokens", "criteria": "zoo.criteria.data"}[kind]
        with replaced(import_module(place), "tokenized", timed):
            train(words(tiny, data, folder / f"w{workers}" / "m", max_steps=1, max_eval_rows=8))
    one, several = rates.values()
    return f"{name:24} {one:9,.0f} rows/s in one process, {several / one:.2f} times in {workers}"


def sized(name: str, tiny: bool = False) -> tuple[str, dict[str, Any]]:
    """The preset of a recipe and its options: random weights of the paper's size, or `tiny`."""
    kind, small, _ = PAPER[name]
    more: dict[str, Any] = {"logging_steps": 10_000}
    if not tiny and name not in RECURRENT:
        more |= {**(XLNET if kind == "permuted" else BERT), "backbone": ""}
        if kind != "permuted":
            more["backbone_config.max_position_embeddings"] = 640
    if name == "dissent/bilstm":
        more["train_embeddings"] = "true"
    return small if tiny else name, more


def speed(name: str, preset: str, data: Path, output: Path, steps: int, **more: Any) -> dict:
    """What the second half of a training's steps was measured at."""
    if name == "coherence/full":  # three rounds: the first is not mined
        more |= {"mine_every": steps // 3, "eval_steps": 0}
    on_step_end = Throughput.on_step_end

    def half(self: Throughput, *rest: Any, **named: Any) -> None:
        on_step_end(self, *rest, **named)
        if self.steps == steps // 2:
            self._add_time(wait=True)
            self.seconds, self.examples, self.tokens = 0.0, 0, 0

    with replaced(Throughput, "on_step_end", half):
        train(words(preset, data, output, max_steps=steps, **more))
    found = json.loads(output.with_name(f"{output.name}.train.json").read_text())
    if name == "coherence/full":
        parts, candidates = found["seconds"], 50
        each = parts["mining"] / max(found["texts_mined"] / candidates, 1)
        found["examples_per_second"] = round(1 / (each + parts["training"] / steps), 2)
    return found


def profile(folder: Path, name: str, options: Any) -> str:
    """The speed of a recipe as it is and compiled, and its dearest operations."""
    kind, _, examples = PAPER[name]
    data = made(folder / "data", kind, options.rows)
    preset, more = sized(name, options.tiny)
    full = name == "coherence/full"
    said, speeds = [], []
    # On a CPU it would be the compiler that is measured.
    both = torch.cuda.is_available() and not full and name not in RECURRENT
    for compiled in (False, True)[: 1 + both]:
        given = {**more, "compile": "true"} if compiled else more
        found = speed(name, preset, data, folder / f"m{compiled}", options.steps, **given)
        speeds.append(found["examples_per_second"])
        share = found.get("share_of_peak_flops")
        hours = 0 if options.tiny else examples / speeds[-1] / 3600
        said.append(
            f"{name:24} {'compiled' if compiled else '':9} {speeds[-1]:9.1f} examples/s "
            f"{found['real_tokens_per_second']:10,.0f} tokens/s, share of peak {share}, "
            f"{speeds[-1] / speeds[0]:.2f} times"
            + (f", waited {found['seconds_waiting_for_data']} s for data" if not full else "")
            + (f", {hours:.1f} h for the paper's run" if hours else "")
        )
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        few = {**more, "max_steps": min(options.steps, 10)}
        train(words(preset, data, folder / "profiled", **few))
    by = "self_device_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    table = profiler.key_averages().table(sort_by=by, row_limit=8, max_name_column_width=48)
    return "\n".join([*said, table])


def trained_figures(
    output: Path, name: str, data: Path, bf16: str = "false", steps: int = 60
) -> dict[str, float]:
    """The metrics of a tiny training."""
    more: dict[str, Any] = {"max_steps": steps, "max_eval_rows": 0, "bf16": bf16}
    if name == "coherence/full":
        more |= {"mine_every": 40, "eval_steps": 0}
    train(words(PAPER[name][1], data, output, **more))
    return dict(numbers(json.loads((output / "results.json").read_text())["metrics"]))


def figures(folder: Path, name: str, options: Any) -> str:
    """The metrics of a tiny training, and their differences from those of other devices."""
    found = trained_figures(
        folder / "model", name, made(folder / "data", PAPER[name][0], options.rows), options.bf16
    )
    path = options.output
    known = json.loads(path.read_text()) if path.is_file() else {}
    device = "a GPU" if torch.cuda.is_available() else "a CPU"
    own = f"{device}, bf16 {options.bf16}"
    known.setdefault(name, {})[own] = found
    path.write_text(json.dumps(known, indent=1) + "\n")
    said = [f"{name:24} {own}: {len(found)} figures"]
    for other, before in known[name].items():
        gap = max(abs(value - before[key]) for key, value in found.items())
        same = sum(value == before[key] for key, value in found.items())
        said.append(f"    {other}: {same} equal, largest difference {gap:.4g}")
    return "\n".join(said)


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in nested tables and lists, by the names of their places."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(one, f"{name}.{key}")
    elif isinstance(value, int | float):
        yield name, float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("way", choices=["simulate", "tokens", "profile", "figures"])
    parser.add_argument("--step", type=float, default=0.05, help="seconds")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--only", default="", help="recipes whose name this matches")
    parser.add_argument("--output", type=Path, default=Path("figures.json"))
    parser.add_argument("--bf16", default="false")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    ways: dict[str, Any] = {"simulate": simulate, "tokens": tokens, "profile": profile}
    ways["figures"] = figures
    for name in PAPER:
        if re.search(options.only, name):
            with tempfile.TemporaryDirectory() as folder:
                sys.stdout.write(ways[options.way](Path(folder), name, options) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
