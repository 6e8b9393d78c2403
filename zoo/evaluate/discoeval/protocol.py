"""The suite `discoeval`: vectors, features, classifiers with several seeds, accuracy.

One task in one domain passes `inputs_of` (the texts that it needs), `vectors_of` (the encoder),
`features_of` (an example's features), `classifiers` (one a seed), and `score`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from corpora.errors import ConfigError, InputError
from corpora.progress import track
from zoo.declared import ENCODES, Form, Positive, Suite
from zoo.evaluate.discoeval.data import Found, TaskData, find, read
from zoo.evaluate.discoeval.tasks import TASKS, Protocol
from zoo.evaluate.encoders import AUTO, SentenceEncoder, Text, as_encoder, encoder_of
from zoo.evaluate.opening import open_model
from zoo.evaluate.results import Result, finished, save
from zoo.evaluate.scores import Outcomes, mean_figure
from zoo.evaluate.table import Cell, Cells, Rows, percent
from zoo.training.data import no_split

if TYPE_CHECKING:
    from zoo.evaluate.discoeval.probe import Probe

log = logging.getLogger("zoo")

C_GRID = tuple(2.0**power for power in range(-2, 4))
"""Of scikit-learn's logistic regression, as in the released code; chosen on validation."""

COMBINE: Mapping[str, Callable[[Sequence[np.ndarray]], np.ndarray]] = {
    "position": lambda x: np.hstack([x[0], *(x[0] - other for other in x[1:])]),
    "order": lambda x: np.hstack([x[0], x[1], x[0] - x[1]]),
    "relation": lambda x: np.hstack([x[0], x[1], x[0] * x[1], np.abs(x[0] - x[1])]),
    "concatenate": lambda x: np.hstack(list(x)),
}
"""Features of an example from the vectors of its texts (DiscoEval, section 3)."""


class DiscoEval(Suite):
    """What frozen sentence vectors know of discourse, in seven tasks.

    Without a test split it takes the validation split, and trains on a part of it.
    """

    name = "discoeval"
    paper = "Chen, Chu and Gimpel 2019"
    needs = frozenset({ENCODES})
    reads = tuple(Form(names) for names in dict.fromkeys(t.columns for t in TASKS.values()))
    all_configs = True
    several = True
    splits = ("validation",)
    builders = tuple(task.builder for task in TASKS.values())

    protocol: Protocol = "single"
    """`single`: DiscoEval section 3; `pairs`: CONPONO section 3.1."""
    representation: str = "auto"
    """mean, cls, cls_mean, pooled, mean:LAYER, cls:LAYER; `auto` is what the protocol's paper
    takes: cls_mean (single), pooled (pairs; mean for a model trained with `vector = mean`)."""
    tasks: tuple[Literal["SP", "BSO", "DC", "SSP", "PDTB-E", "PDTB-I", "RST-DT"], ...] = ()
    """Names such as `SP,BSO`; all that the data has if empty."""
    seeds: Positive = 3
    """Classifiers trained a task; the figure is their mean."""
    hidden: Annotated[int, Field(ge=-1)] = -1
    """Hidden units of every classifier in place of the task's own (0: none)."""
    second_opinion: bool = True
    """Also scikit-learn's logistic regression, where the classifier is linear."""
    layers: bool = False
    """Also every layer by itself, and the heat map (figure 8)."""
    layer_vectors: Literal["cls", "mean"] = "cls"
    """The vectors of a layer: its [CLS] token's, or the mean of its tokens."""
    lower: bool = True
    """Lower-case the texts, as the released code does."""
    cache: str = "build/vectors"
    """Where vectors are kept, by model; an empty text for nowhere."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """The precision in which the model runs."""
    batch_tokens: Positive = 4096
    """The most tokens that the model takes at a time, padding included."""

    def check_data(self, datasets: Mapping[str, str]) -> None:
        """The tasks that are chosen, if any are, are those of the datasets.

        Of a folder of datasets the suite takes the tasks that are there and leaves out the rest,
        as it should of a whole build's. But what a build file names is meant to be evaluated.
        """
        tasks = {task.builder: task.name for task in TASKS.values()}
        given = {name: tasks[builder] for name, builder in datasets.items() if builder in tasks}
        extra = [f"the dataset {n!r} is of {t!r}" for n, t in given.items() if t not in self.tasks]
        missing = [f"no dataset is of {t!r}" for t in self.tasks if t not in given.values()]
        if self.tasks and (missing or extra):
            raise ConfigError(
                f"tasks names {', '.join(self.tasks)}, and {', '.join([*missing, *extra])}",
                hint="name the tasks of its datasets: "
                f"{', '.join(dict.fromkeys(given.values()))}; or take the dataset out",
            )

    def read(self, spec: str) -> Any:
        return find(spec, self.tasks)

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Every task that the data have: datasets in hand, or a folder as `read` takes it."""
        encoder = as_encoder(model)
        if encoder is None:
            raise self.unfit(model)
        found = read(data, self.tasks, limit=limit)
        return evaluate_all(encoder, found, self, split=split, seed=seed, limit=limit)

    def write_files(self, result: Result, stem: Path) -> None:
        """With layers `STEM.layers.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write_layers

        if layers := result.metrics.get("layers"):
            write_layers(layers, stem.with_name(f"{stem.name}.layers"))

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """Each task, its domains where it has several, and the average of all seven tasks."""
        alone = result.protocol.get("seeds") == 1

        def cell(found: Mapping[str, Any], domains: Mapping[str, Mapping[str, Any]]) -> Cell:
            n = sum(one.get("rows", {}).get(one.get("split"), 0) for one in domains.values())
            shown = percent(found) if alone else Cell(100 * found["value"], sd=100 * found["sd"])
            return replace(shown, n=n or None, parts=tuple(sorted(domains)))

        cells: Cells = {}
        parts: Cells = {}
        for task, found in result.metrics["tasks"].items():
            domains = found["domains"]
            first, *more = domains.values()
            cells[task] = cell(found if more else first, domains)  # a mean has no interval
            if more:
                parts |= {f"{task} {name}": cell(one, {name: one}) for name, one in domains.items()}
        average = result.metrics["average"]
        if average["complete"]:
            cells["avg"] = percent(average)
        return {"": {**cells, **parts}}


DEFAULTS = DiscoEval(cache="")


def run(
    model: Any,
    data: Any,
    options: DiscoEval = DEFAULTS,
    *,
    name: str = "",
    split: str = "test",
    seed: int = 0,
    limit: int = 0,
    json: str | Path = "",
) -> dict[str, Any]:
    """Evaluate a model (in hand or a folder), a function of texts, or arrays on `data`.

    With `json` the result is written there too, as `discorpora evaluate discoeval --json` does it:
    `discorpora compare` takes it, and tells by how much it differs from another one.

    A function takes a list of texts and returns `[texts, dim]`. Arrays are a mapping from text to
    vector, or one array whose rows are those of `texts(data, options, limit=limit)`.
    """
    found = read(data, options.tasks, limit=limit)
    if isinstance(model, str | Path):
        encoder: SentenceEncoder = open_model(options, str(model))
    else:
        if isinstance(model, list) or hasattr(model, "__array__"):  # torch's tensors have it too
            vectors, rows = np.asarray(model), _texts(found, options)
            if len(vectors) != len(rows):
                hint = "give a row for each of discoeval.texts(DATA, options, limit=...)"
                raise InputError(f"{len(vectors)} vectors for {len(rows)} texts", hint=hint)
            model = dict(zip(rows, vectors, strict=True))
        encoder = encoder_of(model, name)
    result = evaluate_all(encoder, found, options, split=split, seed=seed, limit=limit)
    if name:
        result = replace(result, model={**result.model, "name": name})
    if json:
        save(options, Path(json), result)
    return result.as_json()


def texts(data: Any, options: DiscoEval = DEFAULTS, *, limit: int = 0) -> list[Text]:
    """The distinct texts (and, with the protocol `pairs`, pairs) that the suite has encoded."""
    return _texts(read(data, options.tasks, limit=limit), options)


def _texts(found: Found, options: DiscoEval) -> list[Text]:
    inputs = (inputs_of(data, options) for data in found.tasks)
    return list(dict.fromkeys(text for each in inputs for text in each.texts))


def evaluate_all(
    encoder: SentenceEncoder,
    found: Found,
    options: DiscoEval,
    *,
    split: str,
    seed: int,
    limit: int,
) -> Result:
    """Every task of `found` on one encoder."""
    # Before the first is encoded.
    splits = {split_of(data, split) for data in found.tasks}
    if options.layers and not encoder.layers:
        raise ConfigError(
            "this encoder has no layers to look at",
            hint="set layers = false",
            field="layers",
        )
    for name, reason in found.skipped.items():
        log.warning("%s is left out: %s", name, reason)
    domains: dict[str, dict[str, Any]] = {}
    outcomes, about, notes = [], [], []
    for data in track(found.tasks, "tasks", total=len(found.tasks)):
        one = run_task(data, encoder, options, split, seed)
        log.info("%s: %.1f (%s)", data.name, 100 * one["value"], one["split"])
        outcomes.append(one.pop("outcomes"))
        domains.setdefault(data.task.name, {})[data.domain] = one
        labels = {"task": data.task.name, "labels": list(data.labels)}
        about.append({**labels, **data.describe(), "split": one["split"]})
        notes += [f"{data.name}: {note}" for note in data.notes]
        if one["split"] != split:
            notes.append(f"{data.name}: no test set: the accuracy is that of the validation set")
    metrics = {**summary(domains), "skipped": found.skipped}
    if options.layers:
        metrics["layers"] = per_layer(found.tasks, encoder, options, split, seed)
    result = Result(
        model={**encoder.describe(), "representation": representation_of(encoder, options)},
        dataset=about,
        protocol={
            **options.model_dump(include={"protocol", "seeds", "hidden", "lower"}),
            "limit": limit,
            "split": ", ".join(sorted(splits)),
        },
        examples=sum(each["rows"][each["split"]] for each in about),
        metrics=metrics,
        notes=notes,
        outcomes=outcomes,
    )
    return finished(options, result, encoder, split, seed)


def split_of(data: TaskData, split: str) -> str:
    """The split to score on: the one asked for, or `validation` where there is no `test`.

    Raises `ConfigError` for another split that the task does not have.
    """
    if split not in data.splits and split != "test":
        raise no_split(split, data.splits, data.name)
    return split if split in data.splits else "validation"


def representation_of(encoder: SentenceEncoder, options: DiscoEval) -> str:
    """The representation in full; empty for an encoder that has no choice of them."""
    if options.representation != AUTO or not encoder.layers:
        return encoder.named(options.representation)
    if options.protocol == "single":
        return "cls_mean"
    if encoder.trained_with == "mean":
        return "mean"
    return "pooled" if encoder.has_pooler else "cls"


def run_task(
    data: TaskData, encoder: SentenceEncoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """Encode, train and score one task in one domain."""
    inputs = inputs_of(data, options)
    name = representation_of(encoder, options)
    features = features_of(inputs, vectors_of(encoder, inputs.texts, [name])[name])
    return {
        **score(data, features, options, split, seed),
        **data.describe(),
        "classes": len(data.labels),
        "features": int(features["train"].shape[1]),
        "texts": {"asked": inputs.asked, "distinct": len(inputs.texts)},
        "notes": list(data.notes),
    }


@dataclass(frozen=True)
class Inputs:
    """What a task has encoded: distinct `texts` (and pairs), and which example has which.

    `rows[split][i]` says for input `i` which texts each example has: `flat` row numbers and
    `counts`, how many of them are averaged. `asked` counts the texts before repeated ones were
    merged. `combine` is a key of `COMBINE`.
    """

    texts: list[Text]
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]]
    asked: int
    combine: str


def inputs_of(data: TaskData, options: DiscoEval) -> Inputs:
    """The texts that a task needs under the protocol, each once; lower-cased as released."""
    how = data.task.features[options.protocol]

    def texts_of(parts: Sequence[Sequence[str]]) -> list[Text]:
        """A pair, or a slot's texts, each by itself or as one."""
        if options.lower:
            parts = [[text.lower() for text in part] for part in parts]
        if len(parts) == 2:
            return [(" ".join(parts[0]), " ".join(parts[1]))]
        return [" ".join(parts[0])] if how.joined else [*parts[0]]

    known: dict[Text, int] = {}
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for name, split in data.splits.items():
        rows[name] = []
        for slots in how.inputs:
            parts = zip(*(split.slots[slot] for slot in slots), strict=True)
            texts = [texts_of(each) for each in parts]
            flat = [known.setdefault(text, len(known)) for listed in texts for text in listed]
            rows[name].append((np.array(flat, np.int64), np.array([*map(len, texts)])))
    asked = sum(len(flat) for inputs in rows.values() for flat, _ in inputs)
    return Inputs(list(known), rows, asked, how.combine)


def vectors_of(
    encoder: SentenceEncoder, texts: Sequence[Text], representations: Sequence[str]
) -> dict[str, np.ndarray]:
    """For each representation the vectors of the texts and pairs, `[texts, dim]`."""
    kinds = np.array([isinstance(text, str) for text in texts])
    found: dict[str, np.ndarray] = {}
    for rows in filter(len, (np.flatnonzero(kinds), np.flatnonzero(~kinds))):
        vectors = encoder.vectors([texts[row] for row in rows.tolist()], representations)
        for name, values in vectors.items():
            found.setdefault(name, np.empty((len(texts), values.shape[1]), np.float32))
            found[name][rows] = values
    return found


def features_of(inputs: Inputs, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """The features of each split, `[examples, width]`, from the `vectors [texts, dim]`."""

    def mean(flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The mean vector of each example's texts; `counts` are at least 1."""
        if (counts == 1).all():
            return vectors[flat]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return np.add.reduceat(vectors[flat], starts, axis=0) / counts[:, None].astype(np.float32)

    combine = COMBINE[inputs.combine]
    return {
        split: np.ascontiguousarray(combine([mean(*each) for each in rows]), np.float32)
        for split, rows in inputs.rows.items()
    }


def classifiers(
    data: TaskData, features: Mapping[str, np.ndarray], options: DiscoEval, seed: int
) -> list[Probe]:
    """A task's classifier, trained once for each seed."""
    from zoo.evaluate.discoeval.probe import fit

    train, held = ((features[key], data.splits[key].labels) for key in ("train", "validation"))
    settings = data.task.probes[options.protocol]
    if options.hidden >= 0:
        settings = replace(settings, hidden=options.hidden)
    numbers = range(seed, seed + options.seeds)
    return [fit(train, held, len(data.labels), settings, number) for number in numbers]


def score(
    data: TaskData, features: Mapping[str, np.ndarray], options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """Accuracy of the task's classifier on `split`: mean and deviation over the seeds.

    `outcomes` says of each row what share of the seeds has it right.
    Without a test split it is the validation accuracy, as the released harness reports it beside
    the test's; it is a little too good, since it also chose when training stopped.
    """
    split = split_of(data, split)
    part = {name: (features[name], data.splits[name].labels) for name in features}
    probes = classifiers(data, features, options, seed)
    gold, units = data.splits[split].labels, data.splits[split].units
    right = np.stack([probe.predict(part[split][0]) == gold for probe in probes])
    often = np.bincount(part["train"][1]).argmax()
    found = {
        # Whole units are drawn anew: a text and its altered form.
        **mean_figure(right.mean(0), units, seed, f"discoeval.{data.name}"),
        **_summary(right.mean(1)),
        "split": split,
        "l2": [probe.l2 for probe in probes],
        "epochs": [probe.epochs for probe in probes],
        "majority": float((gold == often).mean()),
        "outcomes": Outcomes(
            data.task.name, units.astype(str).tolist(), right.mean(0), part=data.domain
        ),
    }
    if split != "validation":
        found["validation"] = _summary(np.array([probe.accuracy for probe in probes]))
    if options.second_opinion and len(probes[0].parameters) == 2:  # no hidden layer
        found["sklearn"] = second_opinion(part, split, seed)
    return found


def second_opinion(
    part: Mapping[str, tuple[np.ndarray, np.ndarray]], split: str, seed: int
) -> dict[str, float]:
    """scikit-learn's logistic regression, its C chosen on the validation set."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    models = [LogisticRegression(C=c, random_state=seed) for c in C_GRID]
    with warnings.catch_warnings():
        # 100 steps, its default, as in the released code: most runs end before they converge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = max(models, key=lambda model: model.fit(*part["train"]).score(*part["validation"]))
    return {"value": float(best.score(*part[split])), "c": best.C}


def _summary(values: np.ndarray) -> dict[str, Any]:
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {"value": float(values.mean()), "sd": deviation, "seeds": values.tolist()}


def summary(domains: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """`tasks`: the mean over a task's domains; `average`: the mean over the tasks.

    `domains[task][domain]` is what `run_task` found. `average.complete` says whether all seven
    tasks are in it; only then it can stand beside a published one.
    """
    tasks = {
        task: {
            "value": float(np.mean([one["value"] for one in found.values()])),
            # The seeds of a task's domains are independent of each other.
            "sd": float(np.sqrt(np.sum([one["sd"] ** 2 for one in found.values()])) / len(found)),
            "domains": dict(found),
        }
        for task, found in domains.items()
    }
    value = float(np.mean([one["value"] for one in tasks.values()]))
    average = {"value": value, "tasks": list(tasks), "complete": len(tasks) == len(TASKS)}
    return {"tasks": tasks, "average": average}


def per_layer(
    tasks: Sequence[TaskData], encoder: SentenceEncoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """The accuracy of each task on each layer's vectors, 0 being the embeddings.

    `accuracy[task]` has a figure a layer, the mean over the task's domains; `best` the layer that
    is best for a task, and `mean_best` their average (table 3).
    """
    names = [f"{options.layer_vectors}:{layer}" for layer in range(encoder.layers + 1)]
    quick = options.model_copy(update={"second_opinion": False})
    found: dict[str, list[list[float]]] = {}
    for data in tasks:
        inputs = inputs_of(data, options)
        vectors = vectors_of(encoder, inputs.texts, names)
        column = []
        for name in names:
            features = features_of(inputs, vectors.pop(name))
            column.append(score(data, features, quick, split, seed)["value"])
        found.setdefault(data.task.name, []).append(column)
    accuracy = {task: np.mean(columns, axis=0).tolist() for task, columns in found.items()}
    best = {task: int(np.argmax(column)) for task, column in accuracy.items()}
    return {
        "vectors": options.layer_vectors,
        "layers": list(range(encoder.layers + 1)),
        "accuracy": accuracy,
        "best": best,
        "mean_best": float(np.mean(list(best.values()))),
    }
