"""What `tests/gpu/run` measures, in parts; each item of a part gives a table of results."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback

from corpora.errors import DiscorporaError
from corpora.rng import stream
from tests.bench import bench_coherence
from tests.bench.bench_conpono import SIZES, matrix_throughput
from tests.bench.bench_recipes import (
    BERT,
    PAPER,
    RECURRENT,
    replaced,
    sized,
    speed,
    trained_figures,
    words,
)
from zoo.coherence.loop import FullTraining
from zoo.train import train
from zoo.training.trainer import ZooTrainer

ROOT = Path(__file__).resolve().parent.parent.parent
CARRIED = ROOT / "build" / "gpu"
SHIPPED = ROOT / "zoo" / "coherence" / "shipped"
FULL = "coherence/full"
PLAIN = {
    # The modules whose `fit` trains them; the full model has a loop of its own.
    "dissent/transformer": "zoo.dissent.transformer",
    "dissent/bilstm": "zoo.dissent.bilstm",
    "coherence/contrastive": "zoo.coherence.contrastive",
    "coherence/unc": "zoo.coherence.unc",
    "conpono/full": "zoo.conpono.pretraining",
    "criteria/bigru": "zoo.criteria.bigru",
}
AIMS = {FULL: 20, "conpono/full": 3, "coherence/contrastive on BERT": 1.3}
"""Times the speed of the authors' way or of a plain loop."""
SHARE = 0.4
"""The aim for the share of the bf16 peak."""
Item = tuple[str, Callable[[Path], Mapping[str, Any]]]


@dataclass
class Session:
    """The sizes of a run, on a GPU or, tiny, on a CPU; and what earlier items found."""

    tiny: bool
    results: Path

    @property
    def device(self) -> str:
        return "cpu" if self.tiny else "cuda"

    def data(self, name: str, small: bool = False) -> Path:
        return CARRIED / "data" / ("small" if small or self.tiny else "large") / PAPER[name][0]

    def found(self, part: str) -> dict[str, Mapping[str, Any]]:
        """By name the items of a part that are done."""
        return {row["item"]: row for row in results(self.results) if row["part"] == part}

    @cached_property
    def peak(self) -> float:
        """Operations a second of bf16 matrix products, measured."""
        return matrix_throughput(torch.device(self.device))

    def options(self, name: str) -> tuple[str, dict[str, Any]]:
        """The preset and options of a recipe's speed: the paper's size and batch."""
        preset, more = sized(name, self.tiny)
        more["bf16"] = "true"
        if name == "conpono/full":  # the paper's batch in parts that fit
            more |= {"gradient_accumulation": 1, "batch_size": 2 if self.tiny else 8}
        if name == FULL and self.tiny:
            more["candidates"] = 10
        return preset, more


def results(path: Path) -> list[dict[str, Any]]:
    """The rows of finished items."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return [row for row in map(json.loads, lines) if "item" in row and "error" not in row]


# (a) Does every recipe learn on this device, and as on a CPU?


def recipes(session: Session) -> Iterator[Item]:
    for name in PAPER:
        yield name, partial(learns, session, name)
    for name in PAPER:
        yield f"{name}, tiny", partial(like_a_cpu, session, name)


def learns(session: Session, name: str, folder: Path) -> Mapping[str, Any]:
    """30 steps in bfloat16 on one repeated batch, from the shipped encoder where there is one."""
    preset, more = sized(name, session.tiny) if name in RECURRENT else (name, {})
    more |= {"max_steps": 30, "logging_steps": 1, "bf16": "true", "max_eval_rows": 8}
    more |= {"learning_rate": 1e-4, "batch_size": 8, "eval_steps": 0}
    if name == "dissent/bilstm":
        more["learning_rate"] = 0.1  # its optimizer is SGD
    if name not in RECURRENT:
        more |= {"backbone": SHIPPED, "max_tokens": 64, "gradient_accumulation": 1}
        more |= {"attention_dropout": 0.0, "hidden_dropout": 0.0}
    if name == "conpono/full":
        more |= {"candidates": 8, "batch_size": 2, "warmup": 0.0, "max_eval_rows": 2}
    elif PAPER[name][0] == "permuted":
        more["batch_size"] = 2
    if name in (FULL, "coherence/contrastive"):
        more |= {"final_learning_rate": 1e-4}
    if name == FULL:  # a full queue from the first step on: else the loss grows with it
        more |= {"queue_size": 10, "candidates": 10, "mine_every": 60}
    sampled, loss = ZooTrainer.get_batch_samples, FullTraining.loss

    def once(self: Any, *rest: Any, **named: Any) -> Any:
        batches, count = sampled(self, *rest, **named)
        kept = self.__dict__.setdefault("repeated", [dict(batch) for batch in batches])
        return [dict(batch) for batch in kept], count

    def of_one_batch(self: Any, batch: Any) -> Any:
        return loss(self, self.__dict__.setdefault("repeated", batch))

    with (
        replaced(ZooTrainer, "get_batch_samples", once),
        replaced(FullTraining, "loss", of_one_batch),
    ):
        train(words(preset, session.data(name, small=True), folder / "m", **more))
    training = json.loads((folder / "m" / "results.json").read_text())["training"]
    losses = [loss for _, loss in training["losses"]]
    first, last = mean(losses[:5]), mean(losses[-5:])
    if not last < first:  # NaN too
        raise AssertionError(f"nothing is learnt: first {first:.4g}, last {last:.4g}, of {losses}")
    return {"steps": len(losses), "first_losses": first, "last_losses": last}


def like_a_cpu(session: Session, name: str, folder: Path) -> Mapping[str, Any]:
    """The figures of the tiny preset in float32, beside those that `prepare` got on a CPU."""
    there = json.loads((CARRIED / "figures.json").read_text())[name]
    here = trained_figures(folder / "m", name, session.data(name, small=True), steps=FIGURES)
    gaps = {key: abs(value - there[key]) for key, value in here.items()}
    widest = max(gaps, key=lambda key: gaps[key])
    return {
        "figures": len(gaps),
        "equal": sum(gap == 0 for gap in gaps.values()),
        "largest_difference": {"of": widest, "cpu": there[widest], "here": here[widest]},
    }


FIGURES = 30
"""Steps of the tiny presets whose figures are compared."""

# (b) How fast, against a plain loop of the same model, and of what this device can do?


def rates(session: Session) -> Iterator[Item]:
    yield FULL, partial(against_authors, session)
    for name in ("conpono/full", "coherence/contrastive on BERT"):
        yield name, partial(against_plain, session, name)
    for name in PAPER:
        if name != "conpono/full":
            yield f"{name}, paper", partial(against_plain, session, name)
    large = ("dissent/transformer", "coherence/contrastive on BERT", "conpono/full")
    for name in large[: 1 if session.tiny else None]:
        yield f"{name}, share of peak", partial(share_of_peak, session, name)


def recipe_options(session: Session, name: str) -> tuple[str, str, dict[str, Any]]:
    """The recipe of an item, its preset and options; the scorer's paper has XLNet."""
    name, _, on_bert = name.partition(" on ")
    preset, more = session.options(name)
    if on_bert:
        table = {} if session.tiny else {**BERT, "backbone_config.max_position_embeddings": 640}
        kept = {k: v for k, v in more.items() if not k.startswith("backbone_config")}
        more = {**(more if session.tiny else kept), **table, "batch_size": 8}
    return name, preset, more


def against_authors(session: Session, folder: Path) -> Mapping[str, Any]:
    """The full model's instances a second, mined and trained on, beside the authors' way."""
    way, instances = bench_coherence, 1 if session.tiny else 8
    sizes = SIZES["tiny" if session.tiny else "base"]
    documents, rows = way.made_up(4 * instances)
    texts = [documents.original(name) for name, _ in rows[:4]]
    one: Any = way.Authors(documents, way.backbone("", sizes), 512, session.device)
    baseline = way.timed(one, rows[:instances], texts[:1])
    two = way.Ours(documents, way.backbone("", sizes), 8, session.device, bf16=True)
    ours = way.timed(two, rows, texts)
    return {
        "seconds_an_instance": ours.both,
        "times": baseline.both / ours.both,
        "aim": AIMS[FULL],
        "mining_share": ours.mining / ours.both,
        "scoring_times": baseline.scoring / ours.scoring,
    }


def against_plain(session: Session, name: str, folder: Path) -> Mapping[str, Any]:
    """Examples a second of a recipe, and times those of a plain loop over its model."""
    recipe, preset, more = recipe_options(session, name)
    steps = 6 if session.tiny else 40
    baseline = []

    def first_plain(fit: Callable[..., Any], trainer: ZooTrainer, **named: Any) -> Any:
        baseline.append(plain(trainer, steps))
        return fit(trainer, **named)

    with hooked(recipe, first_plain):
        found = speed(recipe, preset, session.data(recipe), folder / "m", steps, **more)
    table = figures_of(found, session)
    if baseline:
        table |= {"plain": baseline[0], "times": table["examples_per_second"] / baseline[0]}
        table |= {"aim": AIMS[name]} if name in AIMS else {}
    return table


def figures_of(found: Mapping[str, Any], session: Session) -> dict[str, Any]:
    kept = ("examples_per_second", "real_tokens_per_second", "seconds_waiting_for_data")
    table = {key: found[key] for key in kept if key in found}
    if "tflops" in found:
        table |= {"tflops": found["tflops"], "share_of_peak": found["tflops"] * 1e12 / session.peak}
    return table


@contextmanager
def hooked(recipe: str, instead: Callable[..., Any]) -> Iterator[None]:
    """`instead(fit, trainer)` where a recipe calls `fit(trainer)`."""
    place = import_module(PLAIN[recipe]) if recipe in PLAIN else SimpleNamespace(fit=None)
    with replaced(place, "fit", partial(instead, place.fit)):
        yield


def plain(trainer: ZooTrainer, steps: int) -> float:
    """Examples a second of a loop as one writes it first: random batches, padded to their longest,
    bfloat16 by autocast, AdamW as it is by default, each loss read.
    """
    device, rows, size = trainer.args.device, trainer.train_dataset, trainer.job.steps.batch_size
    collate: Any = trainer.data_collator
    if hasattr(collate, "block_tokens"):  # CONPONO: every sequence in one block
        collate = replace(collate, block_tokens=1 << 40, shortest=1e-9)
    model: Any = trainer.model
    model.to(device).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-6)
    random = stream(0, "tests.gpu.plain")
    begin = 0.0
    for step in range(-steps // 4, steps):
        if not step:
            synchronize()
            begin = time.perf_counter()
        picked = random.choice(len(rows), size, replace=False).tolist()
        inputs = trainer._prepare_inputs(collate([rows[row] for row in picked]))
        with torch.autocast(device.type, torch.bfloat16):
            loss = trainer.compute_loss(model, inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
    synchronize()
    trainer.__dict__.get("_parts", []).clear()
    return size * steps / (time.perf_counter() - begin)


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def share_of_peak(session: Session, name: str, folder: Path) -> Mapping[str, Any]:
    """The share of the peak at the recipe's batch, and at larger ones until the aim is reached."""
    recipe, preset, more = recipe_options(session, name)
    first = int(more.get("batch_size", 32))
    shares: dict[int, Any] = {}
    for times in (1, 2) if session.tiny else (1, 2, 4, 16):
        batch = times * first
        given, output = {**more, "batch_size": batch}, folder / f"m{batch}"
        steps = 4 if session.tiny else 12
        try:
            found = speed(recipe, preset, session.data(recipe), output, steps, **given)
        except DiscorporaError as error:  # out of memory
            shares[batch] = str(error).splitlines()[0]
            break
        shares[batch] = figures_of(found, session)["share_of_peak"]
        if shares[batch] >= SHARE:
            break
    return {"peak_tflops": session.peak / 1e12, "share_by_batch": shares, "aim": SHARE}


# (c) Where does the time go?


def profile(session: Session) -> Iterator[Item]:
    for name in ("conpono/full", "coherence/contrastive", FULL, "dissent/transformer"):
        yield name, partial(profiled, session, name)


def profiled(session: Session, name: str, folder: Path) -> Mapping[str, Any]:
    """The three operations that take longest, and each place that waits for the device."""
    preset, more = session.options(name)
    watch = Watch()
    if name == FULL:
        more |= {"mine_every": 4 if session.tiny else 20, "eval_steps": 0}

    def watching(fit: Callable[..., Any], trainer: ZooTrainer, **named: Any) -> Any:
        trainer.add_callback(watch)
        return fit(trainer, **named)

    def round_watched(self: FullTraining) -> None:
        with watch if self.progress.round == 1 else nullcontext():
            one_round(self)

    one_round = FullTraining._round
    steps = 8 if name != FULL else 2 * more["mine_every"]
    with hooked(name, watching), replaced(FullTraining, "_round", round_watched):
        train(words(preset, session.data(name), folder / "m", max_steps=steps, **more))
    return watch.found


class Watch(TrainerCallback):
    """Profiles the steps from the fifth on, or what runs inside it."""

    def __init__(self) -> None:
        kinds = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        self.profiler = torch.profiler.profile(activities=kinds)
        self.found: dict[str, Any] = {}

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 4:
            self.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 7:
            self.__exit__()

    def __enter__(self) -> None:
        self.caught = warnings.catch_warnings(record=True)
        self.waits = self.caught.__enter__()
        warnings.simplefilter("always")
        if torch.cuda.is_available():
            torch.cuda.set_sync_debug_mode("warn")  # a warning at each wait, with its line
        self.profiler.__enter__()

    def __exit__(self, *error: Any) -> None:
        synchronize()
        self.profiler.__exit__(None, None, None)
        if torch.cuda.is_available():
            torch.cuda.set_sync_debug_mode("default")
        self.caught.__exit__(None, None, None)
        by = "device" if torch.cuda.is_available() else "cpu"
        took = {
            event.key: getattr(event, f"self_{by}_time_total")
            for event in self.profiler.key_averages()
        }
        longest = sorted(took, key=lambda key: -took[key])[:3]
        places = Counter(
            f"{wait.filename}:{wait.lineno}"
            for wait in self.waits
            if "synchroniz" in str(wait.message)
        )
        total = sum(took.values()) or 1
        self.found = {
            "longest": {key: round(took[key] / total, 3) for key in longest},
            "waits": dict(places.most_common()),
        }


# (d) What does a scorer learn in a hundred seconds?


def scorer(session: Session) -> Iterator[Item]:
    yield "contrastive, from the shipped encoder", partial(scorer_for, session)


def scorer_for(session: Session, folder: Path) -> Mapping[str, Any]:
    """Accuracy on permutations by step; at the end on one text against one."""
    seconds, tiny = (6, True) if session.tiny else (100, False)
    more: dict[str, Any] = {"objective": "contrastive", "backbone": SHIPPED, "bf16": "true"}
    more |= {"batch_size": 4 if tiny else 32, "max_tokens": 64 if tiny else 256, "negatives": 3}
    more |= {"max_steps": 1000 if tiny else 20_000, "eval_steps": 4 if tiny else 250}
    more |= {"anneal_calls": 4000, "anneal_every": more["batch_size"], "learning_rate": 1e-4}
    more |= {"max_eval_rows": 16 if tiny else 500, "max_train_rows": 400 if tiny else 0}
    data = f"{CARRIED / 'data' / 'orders'}@contrastive"

    def for_a_while(fit: Callable[..., Any], trainer: ZooTrainer, **named: Any) -> Any:
        trainer.add_callback(Until(time.perf_counter() + seconds))
        return fit(trainer, **named)

    with hooked("coherence/contrastive", for_a_while):
        train(words("coherence/minilm", Path(data), folder / "m", **more))
    found = json.loads((folder / "m" / "results.json").read_text())
    of_test = found["metrics"]["test"]["accuracy"]
    steps = {row["step"]: row["accuracy"] for row in found["training"]["validations"]}
    return {"accuracy_by_step": steps, "test": of_test}


class Until(TrainerCallback):
    """Ends a training at a time of the clock."""

    def __init__(self, end: float) -> None:
        self.end = end

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop |= time.perf_counter() > self.end


# (e) Does compiling pay?


def compiled(session: Session) -> Iterator[Item]:
    for name in (
        ("dissent/transformer",) if session.tiny else ("dissent/transformer", "conpono/full")
    ):
        yield name, partial(compiling, session, name)


def compiling(session: Session, name: str, folder: Path) -> Mapping[str, Any]:
    """Examples a second compiled, in the second half of the steps, beside those as it is."""
    preset, more = session.options(name)
    steps, data = 4 if session.tiny else 60, session.data(name)
    more["bf16"] = "false" if session.tiny else "true"  # compiled for a CPU, bfloat16 gives NaN
    began = time.perf_counter()
    made = speed(name, preset, data, folder / "c", steps, **more, compile="true")
    took = time.perf_counter() - began
    without = speed(name, preset, data, folder / "m", steps, **more)["examples_per_second"]
    each = made["examples_per_second"]
    return {"examples_per_second": each, "times": each / without, "whole_run_seconds": took}


# (f) How long would the papers' runs take?


def hours(session: Session) -> Iterator[Item]:
    yield "hours of the papers' runs", partial(hours_of, session)


def hours_of(session: Session, folder: Path) -> Mapping[str, Any]:
    rates = session.found("rates")
    found = {}
    for name, (_, _, examples) in PAPER.items():
        row = rates.get(f"{name}, paper") or rates.get(name)
        if row and examples and "examples_per_second" in row:
            found[name] = examples / row["examples_per_second"] / 3600
    return {"hours": found}


PARTS: dict[str, Callable[[Session], Iterator[Item]]] = {
    "recipes": recipes,
    "rates": rates,
    "profile": profile,
    "scorer": scorer,
    "compile": compiled,
    "hours": hours,
}


def rounded(value: Any) -> Any:
    """Numbers to four digits, in tables and lists too."""
    if isinstance(value, dict):
        return {str(key): rounded(one) for key, one in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float | np.floating) else value
