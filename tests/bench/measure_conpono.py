"""The paper's effect on open text: CONPONO on a small backbone, on DiscoEval's SP, BSO and DC.

    python tests/bench/measure_conpono.py --data DATA --backbone MINILM --output OUT \
        [--size smoke|taste|longer|windows|small|full] [--only REGEX] [--seeds N]

Builds the dataset from DATA's novels and GUM (its articles are GUM's own). Trains CONPONO with
K = 2 and K = 1, isolated, without masked words (the brief sizes have none: there with), and the
ordering baseline, on as many segment pairs each, with every seed; evaluates them on DATA's
discoeval (pairs encoded together), and the initialisation under both protocols with three
representations.
What is there is not made again; an evaluation of another size or other settings is refused.
Writes OUT/figures.json and OUT/table.md from the evaluations that are there, with paired
differences from the best initialisation and the ordering baseline.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from corpora.document import Document
from corpora.errors import ConfigError, DiscorporaError
from corpora.readers import open_source
from corpora.sentences import split_document
from corpora.store.atomic import is_complete, staged, write_json, write_text
from corpora.store.folder import Stage
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target
from zoo.evaluate.discoeval import DiscoEval
from zoo.evaluate.discoeval.data import read
from zoo.evaluate.discoeval.protocol import features_of, inputs_of, score, vectors_of
from zoo.evaluate.encoders import load_encoder
from zoo.evaluate.results import read_outcomes, write_outcomes
from zoo.evaluate.scores import Outcomes, differences, mean_outcomes
from zoo.train import train

TASKS = ("SP", "BSO", "DC")
MODELS: dict[str, dict[str, Any]] = {
    "k2": {},
    "bso": {"objective": "bso"},
    "isolated": {"encoder": "isolated"},
    "k1": {"k": 1},
    "no-mlm": {"mlm": "false"},
    "mlm": {"mlm": "true"},
}
"""What each changes of its size's settings; the `BRIEF` have no masked words, the others have."""
_BRIEF: dict[str, Any] = {
    "vector": "mean",
    "batch_size": 16,
    "candidates": 6,
    "max_eval_rows": 64,
    "mlm": "false",
    "warmup": 0.1,
    "bf16": "true",
    "attention_dropout": 0,
    "hidden_dropout": 0,
    "shortest_row": 0.75,
    "block_tokens": 4096,
}
"""For one core: means of tokens (MiniLM's pooler is untrained), few random candidates, and no
masked words (a third of the time; MiniLM has no head for them)."""
SIZES: dict[str, dict[str, Any]] = {
    # Whether everything runs; its figures say nothing.
    "smoke": {
        "max_steps": 2,
        "batch_size": 2,
        "candidates": 6,
        "max_tokens": 48,
        "max_eval_rows": 4,
    },
    # An hour a model on one core: single sentences in place of the paper's 4 and 3.
    "taste": {
        **_BRIEF,
        "max_steps": 1600,
        "max_tokens": 64,
        "anchor_sentences": 1,
        "target_sentences": 1,
    },
    # Three hours: whether more steps help.
    "longer": {
        **_BRIEF,
        "max_steps": 4800,
        "max_tokens": 64,
        "anchor_sentences": 1,
        "target_sentences": 1,
    },
    # As long as `taste`: the paper's 4 and 3 sentences, and fewer anchors.
    "windows": {**_BRIEF, "max_steps": 600, "max_tokens": 192},
    # Hours on a CPU of one's own.
    "small": {"max_steps": 600, "batch_size": 8, "candidates": 16, "max_tokens": 160},
    # A GPU: the paper's lengths and candidates.
    "full": {"epochs": 20, "batch_size": 32, "candidates": 32, "max_tokens": 320},
}
BRIEF = ("taste", "longer", "windows")
"""Sizes evaluated in bfloat16, with one seed of the classifier."""
RATES = dict.fromkeys(SIZES, 1e-4) | {"full": 5e-5}
BSO_RATE = 5e-5
"""At 3e-4 the ordering baseline's loss stays where chance is (0.693), its gradients vanish."""
LIMITS = dict.fromkeys(SIZES, 2000) | {"smoke": 24, "full": 0}
"""Rows of each split of DiscoEval (0: all)."""
PROTOCOLS = ("pairs", "single")
KINDS = ("pooled", "cls", "mean")


def documents(data: Path) -> Iterator[Document]:
    """The novels' chapters and GUM's documents, with sentences."""
    options = {"layout": "paragraph", "group": "book", "id": "chapter_id", "licence": "CC0-1.0"}
    for path in sorted((data / "books").glob("*.jsonl")):
        yield from map(split_document, open_source(f"jsonl:{path}", options))
    yield from open_source(f"conllu:{data / 'treebank' / 'en_gum'}", {"licence": "CC-BY-SA-4.0"})


def build(data: Path, folder: Path) -> None:
    """The dataset, unless it is there: paragraphs of more than 10 sentences, the paper's books."""
    if not is_complete(folder):
        stage = Stage("conpono", 1, "measure-conpono-1")
        with staged(folder) as partial:
            shares = {"train": 0.96, "validation": 0.02, "test": 0.02}
            conpono = BUILDERS.find("conpono").of({"merge_above": 10, **shares})
            conpono.build(documents(data), Target(partial, stage, 13))


@dataclass(frozen=True)
class Place:
    """Where everything of one measurement is."""

    output: Path
    dataset: str
    discoeval: str
    backbone: str
    size: str

    def model(self, name: str, seed: int) -> Path:
        return self.output / "models" / f"{name}-{seed}"

    def evaluation(self, name: str) -> Path:
        return self.output / "evaluations" / f"{name}.json"

    def made_by(self, name: str) -> dict[str, Any]:
        """The size and the settings that an evaluation's figures depend on; paths are left out."""
        chosen: dict[str, Any] = {}
        if not name.startswith("initial-"):
            chosen = settings_of(self.size, name.rpartition("-")[0])
        about = {"backbone": Path(self.backbone).name, "rows": LIMITS[self.size], **chosen}
        return {"size": self.size, "settings": json.loads(json.dumps(about))}

    def read(self, name: str) -> dict[str, float] | None:
        """An evaluation's figures by task; None where there is none yet.

        Raises `ConfigError` for one that was made otherwise, or that does not say how.
        """
        path = self.evaluation(name)
        if not path.is_file():
            return None
        found, wanted = json.loads(path.read_text(encoding="utf-8")), self.made_by(name)
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise ConfigError(
                    f"made with another {key}: {found.get(key)}, now {wanted[key]}",
                    where=str(path),
                    hint="choose another --output, or remove that file and its model",
                )
        return found["tasks"]


def models(size: str) -> list[str]:
    """The models of a size: masked words are left out in one, or added in one."""
    other = "no-mlm" if size in BRIEF else "mlm"
    return [name for name in MODELS if name != other]


def settings_of(size: str, name: str) -> dict[str, Any]:
    """What a model is trained with, but for its seed and paths."""
    rate = BSO_RATE if name == "bso" else RATES[size]
    return {"learning_rate": rate, **SIZES[size], **MODELS[name]}


def trained(place: Place, name: str, seed: int) -> Path:
    """Train one model, or find it made."""
    settings = {
        "dataset": place.dataset,
        "backbone": place.backbone,
        "output": place.model(name, seed),
        "seed": seed,
        **settings_of(place.size, name),
    }
    train(["conpono/minilm", *(str(w) for key, v in settings.items() for w in (f"--{key}", v))])
    return place.model(name, seed)


def evaluated(
    place: Place, names: Mapping[str, str], model: str | Callable[[], Path], protocol: Any
) -> None:
    """DiscoEval's three tasks for one model, all representations from one pass.

    `names` are those of the evaluations by representation; what is there is not made again.
    """
    if None not in [place.read(name) for name in names.values()]:
        return
    path = model if isinstance(model, str) else str(model())
    brief = place.size in BRIEF
    seeds = 1 if brief else 3
    options = DiscoEval(protocol=protocol, second_opinion=False, seeds=seeds)
    encoder = load_encoder(path, dtype="bfloat16" if brief else "float32")
    found: dict[str, dict[str, list[float]]] = {name: {} for name in names.values()}
    outcomes: dict[str, list[Outcomes]] = {name: [] for name in names.values()}
    for data in read(place.discoeval, TASKS, limit=LIMITS[place.size]).tasks:
        inputs = inputs_of(data, options)
        for kind, vectors in vectors_of(encoder, inputs.texts, list(names)).items():
            features = features_of(inputs, vectors)
            scored = score(data, features, options, "test", 0)
            found[names[kind]].setdefault(data.task.name, []).append(scored["value"])
            outcomes[names[kind]].append(scored["outcomes"])
    for name, tasks in found.items():
        means = {task: float(np.mean(values)) for task, values in tasks.items()}
        write_outcomes(place.evaluation(name), outcomes[name])
        write_json(place.evaluation(name), {**place.made_by(name), "tasks": means})


def figures(place: Place, seeds: int) -> dict[str, Any]:
    """Per cent on each task and their mean: of each seed, and with an interval (Student's t)."""
    rows: dict[str, Any] = {}
    for protocol in PROTOCOLS:
        for kind in KINDS:
            rows[f"initialisation, {protocol}, {kind}"] = [f"initial-{protocol}-{kind}"]
    for name in models(place.size):
        rows[name] = [f"{name}-{seed}" for seed in range(seeds)]
    found = {}
    for row, names in rows.items():
        there = [name for name in names if place.read(name) is not None]
        if there:
            values = [tasks for tasks in map(place.read, there) if tasks is not None]
            found[row] = {**_row(values), "evaluations": there}
    return found


def gains(place: Place, found: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Each model's differences from the best initialisation and from the ordering baseline.

    In points, paired on DiscoEval's rows; an example counts by the share of seeds that have it
    right, so that the intervals are over rows, for these trainings.
    """
    initial = [row for row in found if row.startswith("initialisation")]
    best = max(initial, key=lambda row: found[row]["mean"], default="")
    known = {
        row: mean_outcomes([read_outcomes(place.evaluation(name)) for name in about["evaluations"]])
        for row, about in found.items()
    }
    gained: dict[str, dict[str, str]] = {}
    for first in (best, "bso"):
        for row in found:
            if known.get(first) and known[row] and row not in (*initial, first):
                each = differences("discoeval", known[first], known[row])
                gained[f"{row} - {first}"] = {column: one.text for column, one in each.items()}
    return gained


def gain_table(gained: Mapping[str, Mapping[str, str]]) -> str:
    columns = list(dict.fromkeys(column for row in gained.values() for column in row))
    lines = ["", "| difference | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, row in gained.items():
        lines.append(f"| {name} | " + " | ".join(row.get(c, "-") for c in columns) + " |")
    return "\n".join(lines) + "\n" if gained else ""


def _row(values: list[Mapping[str, float]]) -> dict[str, Any]:
    means = np.array([100 * np.mean([one[task] for task in TASKS]) for one in values])
    row: dict[str, Any] = {t: round(100 * float(np.mean([v[t] for v in values])), 2) for t in TASKS}
    row |= {"mean": round(float(means.mean()), 2), "seeds": [round(float(m), 2) for m in means]}
    if len(means) > 1:
        half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
        row["half_interval"] = round(float(half), 2)
    return row


def table(found: Mapping[str, Any]) -> str:
    lines = ["| model | SP | BSO | DC | mean | seeds |", "|---|---:|---:|---:|---:|---|"]
    for name, row in found.items():
        spread = f" ± {row['half_interval']}" if "half_interval" in row else ""
        tasks = " | ".join(f"{row[task]:.1f}" for task in TASKS)
        seeds = ", ".join(f"{seed:.1f}" for seed in row["seeds"])
        lines.append(f"| {name} | {tasks} | {row['mean']:.1f}{spread} | {seeds} |")
    return "\n".join(lines) + "\n"


def work(place: Place, seeds: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every piece of work by name, the most telling first."""
    for protocol in PROTOCOLS:
        names = {kind: f"initial-{protocol}-{kind}" for kind in KINDS}
        yield f"initial-{protocol}", partial(evaluated, place, names, place.backbone, protocol)
    for seed in range(seeds):
        for model in models(place.size):
            name = f"{model}-{seed}"
            source = partial(trained, place, model, seed)
            kind = "mean" if SIZES[place.size].get("vector") == "mean" else "pooled"
            yield name, partial(evaluated, place, {kind: name}, source, "pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--size", choices=SIZES, default="taste")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=".")
    o = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    build(o.data, o.output / "dataset")
    place = Place(
        o.output, str(o.output / "dataset"), str(o.data / "discoeval"), o.backbone, o.size
    )
    for name, task in work(place, o.seeds):
        if re.search(o.only, name):
            task()
    found = figures(place, o.seeds)
    gained = gains(place, found)
    about = {"size": o.size, "settings": SIZES[o.size], "rows": found, "differences": gained}
    write_json(o.output / "figures.json", about)
    text = table(found) + gain_table(gained)
    write_text(o.output / "table.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    try:
        main()
    except DiscorporaError as error:
        sys.exit(f"error: {error}")
