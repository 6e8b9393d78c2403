"""The suite `discoeval`: vectors, features, classifiers with several seeds, accuracy.

The steps for one task in one domain are `inputs_of` (its texts), `vectors_of` (their vectors),
`features_of` (the features of its examples), `classifiers` (one for each seed), and `score`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from corpora.errors import ConfigError, InputError
from corpora.progress import track
from zoo.declared import ENCODES, Form, Positive, Suite
from zoo.evaluate.discoeval.data import RELEASED, DiscoEvalData, TaskData, find, read
from zoo.evaluate.discoeval.tasks import TASKS, WITHOUT_CONTEXT, Protocol
from zoo.evaluate.encoders import (
    AUTO,
    SentenceEncoder,
    Text,
    as_encoder,
    encoder_of,
    layers_to_judge,
)
from zoo.evaluate.opening import open_model
from zoo.evaluate.results import Result, finished, save
from zoo.evaluate.scores import Outcomes, mean_figure
from zoo.evaluate.table import Cell, Cells, Rows, percent
from zoo.training.data import no_split

if TYPE_CHECKING:
    from zoo.evaluate.discoeval.probe import Probe

log = logging.getLogger("zoo")

C_GRID = tuple(2.0**power for power in range(-2, 4))
"""The values of C that scikit-learn's logistic regression tries, as in the released code."""

COMBINE: Mapping[str, Callable[[Sequence[np.ndarray]], np.ndarray]] = {
    "position": lambda x: np.hstack([x[0], *(x[0] - other for other in x[1:])]),
    "order": lambda x: np.hstack([x[0], x[1], x[0] - x[1]]),
    "relation": lambda x: np.hstack([x[0], x[1], x[0] * x[1], np.abs(x[0] - x[1])]),
    "concatenate": lambda x: np.hstack(list(x)),
}
"""How the vectors `[examples, dim]` of an example's inputs become its features (section 3)."""


class DiscoEval(Suite):
    """What frozen sentence vectors know of discourse, in seven tasks.

    Without a test split the validation split is judged; without a training split, a part of it
    trains.
    """

    name, version = "discoeval", 2
    paper = "Chen, Chu and Gimpel 2019"
    needs = frozenset({ENCODES})
    reads = tuple(Form(names) for names in dict.fromkeys(t.columns for t in TASKS.values()))
    all_configs = True
    several = True
    splits = ("validation",)
    builders = (RELEASED, *(task.builder for task in TASKS.values()))

    protocol: Protocol = "single"
    """`single`: DiscoEval section 3; `pairs`: CONPONO section 3.1."""
    representation: str = "auto"
    """mean, cls, cls_mean, pooled, mean:LAYER, cls:LAYER; `auto` is what the protocol's paper
    takes: cls_mean, in `pairs` pooled for SP, BSO and DC (mean for a model trained with it)."""
    tasks: tuple[Literal["SP", "BSO", "DC", "SSP", "PDTB-E", "PDTB-I", "RST-DT"], ...] = ()
    """Names such as `SP,BSO`; all that the data has if empty."""
    seeds: Positive = 3
    """Classifiers trained a task; the figure is their mean."""
    hidden: Annotated[int, Field(ge=-1)] = -1
    """Hidden units of every classifier in place of the task's own (0: none)."""
    context: bool = True
    """Whether the features of SP have the other four sentences too (table 6)."""
    second_opinion: bool = True
    """Also train scikit-learn's logistic regression, where the classifier is linear."""
    layers: bool = False
    """Also judge every layer by itself, [CLS] from layer 1 on, and draw the heat map (figure 8)."""
    layer_vectors: Literal["cls", "mean"] = "cls"
    """The vectors of a layer: its [CLS] token's, or the mean of its tokens."""
    lower: bool = True
    """Lower-case the texts, as the released code does."""
    cache: str = "build/vectors"
    """A folder in which vectors are kept, by model; an empty text keeps none."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """The precision in which the model runs."""
    batch_tokens: Positive = 4096
    """The most tokens that the model takes at a time, padding included."""

    def check_data(self, datasets: Mapping[str, str]) -> None:
        """Raise `ConfigError` if the suite's tasks are not those of the datasets.

        `datasets` has the builder of each dataset that a build file names for this evaluation. The
        user means to evaluate all of them, which is not so for a folder of datasets.
        """
        tasks = {task.builder: task.name for task in TASKS.values()}
        named = {name: tasks[builder] for name, builder in datasets.items() if builder in tasks}
        extra = [f"the dataset {n!r} is of {t!r}" for n, t in named.items() if t not in self.tasks]
        missing = [f"no dataset is of {t!r}" for t in self.tasks if t not in named.values()]
        if self.tasks and (missing or extra):
            raise ConfigError(
                f"tasks names {', '.join(self.tasks)}, and {', '.join([*missing, *extra])}",
                hint="name the tasks of its datasets: "
                f"{', '.join(dict.fromkeys(named.values()))}; or take the dataset out",
            )

    def read(self, spec: str) -> Any:
        """All rows of the suite's tasks in a folder or dataset; see `find`."""
        return find(spec, self.tasks)

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Measure the accuracy on each task in `data`, dataset objects or a folder as in `find`."""
        encoder = as_encoder(model)
        if encoder is None:
            raise self.unfit(model)
        tasks = read(data, self.tasks, limit=limit)
        return evaluate_all(encoder, tasks, self, split=split, seed=seed, limit=limit)

    def write_files(self, result: Result, stem: Path) -> None:
        """Write the accuracy by layer, if any, to `STEM.layers.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write_layers

        if layers := result.metrics.get("layers"):
            write_layers(layers, stem.with_name(f"{stem.name}.layers"))

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """The model's row: tasks, their domains if several, and the average of all seven tasks."""
        one_seed = result.protocol.get("seeds") == 1

        def cell(figure: Mapping[str, Any], domains: Mapping[str, Mapping[str, Any]]) -> Cell:
            """The cell of a figure, in per cent, which is a mean over `domains`."""
            n = sum(each.get("rows", {}).get(each.get("split"), 0) for each in domains.values())
            if one_seed:
                shown = percent(figure)
            else:
                shown = Cell(100 * figure["value"], sd=100 * figure["sd"])
            return replace(shown, n=n or None, parts=tuple(sorted(domains)))

        cells: Cells = {}
        parts: Cells = {}
        for task, figure in result.metrics["tasks"].items():
            domains = figure["domains"]
            first, *others = domains.values()
            cells[task] = cell(figure if others else first, domains)  # a mean has no interval
            if others:
                parts |= {
                    f"{task} {name}": cell(each, {name: each}) for name, each in domains.items()
                }
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
    """Evaluate a model (an object or folder), a function of texts, or arrays on `data`.

    A function takes a list of texts and returns `[texts, dim]`. Arrays are a mapping from text to
    vector, or one array with a row for each of `texts(data, options, limit=limit)`. `name` is the
    model's name in the result. Returns the result's JSON, which is also written to the file `json`
    if it is named, for `discorpora compare`.
    """
    tasks = read(data, options.tasks, limit=limit)
    if isinstance(model, str | Path):
        encoder: SentenceEncoder = open_model(options, str(model))
    else:
        if isinstance(model, list) or hasattr(model, "__array__"):  # torch's tensors have it too
            vectors, texts_of_rows = np.asarray(model), _texts(tasks, options)
            if len(vectors) != len(texts_of_rows):
                hint = "give a row for each of discoeval.texts(DATA, options, limit=...)"
                raise InputError(
                    f"{len(vectors)} vectors for {len(texts_of_rows)} texts", hint=hint
                )
            model = dict(zip(texts_of_rows, vectors, strict=True))
        encoder = encoder_of(model, name)
    result = evaluate_all(encoder, tasks, options, split=split, seed=seed, limit=limit)
    if name:
        result = replace(result, model={**result.model, "name": name})
    if json:
        save(options, Path(json), result)
    return result.as_json()


def texts(data: Any, options: DiscoEval = DEFAULTS, *, limit: int = 0) -> list[Text]:
    """The distinct texts (with the protocol `pairs` also pairs) of `data` to encode."""
    return _texts(read(data, options.tasks, limit=limit), options)


def _texts(data: DiscoEvalData, options: DiscoEval) -> list[Text]:
    """The distinct texts and pairs of all tasks."""
    inputs = (inputs_of(task, options) for task in data.tasks)
    return list(dict.fromkeys(text for each in inputs for text in each.texts))


def evaluate_all(
    encoder: SentenceEncoder,
    data: DiscoEvalData,
    options: DiscoEval,
    *,
    split: str,
    seed: int,
    limit: int,
) -> Result:
    """Evaluate an encoder on every task of `data`."""
    # Called for all tasks at once: a wrong split is an error before texts are encoded.
    splits = {split_of(task, split) for task in data.tasks}
    if options.layers and not encoder.layers:
        raise ConfigError(
            "this encoder has no layers to look at", hint="set layers = false", field="layers"
        )
    for name, reason in data.skipped.items():
        log.warning("%s is left out: %s", name, reason)
    # Train and judge the probes of each task.
    domains: dict[str, dict[str, Any]] = {}
    outcomes, about, notes = [], [], []
    for each in track(data.tasks, "tasks", total=len(data.tasks)):
        figures = run_task(each, encoder, options, split, seed)
        log.info("%s: %.1f (%s)", each.name, 100 * figures["value"], figures["split"])
        outcomes.append(figures.pop("outcomes"))
        domains.setdefault(each.task.name, {})[each.domain] = figures
        labels = {"task": each.task.name, "labels": list(each.labels)}
        about.append({**labels, **each.describe(), "split": figures["split"]})
        notes += [f"{each.name}: {note}" for note in each.notes]
        if figures["split"] != split:
            notes.append(f"{each.name}: no test set: the accuracy is that of the validation set")
    # Averages, as far as they are comparable to the paper's
    metrics = {**summary(domains), "skipped": data.skipped}
    if metrics["average"]["complete"] and not as_published(encoder, options):
        metrics["average"]["complete"] = False
        notes.append("no average: the paper's is of pooled vectors in SP, BSO and DC alone")
    if options.layers:
        metrics["layers"] = per_layer(data.tasks, encoder, options, split, seed)
    result = Result(
        model={**encoder.describe(), "representation": _representations(encoder, options, domains)},
        dataset=about,
        protocol={
            **options.model_dump(include={"protocol", "seeds", "hidden", "lower"}),
            **({} if options.context else {"context": False}),
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
    """The name of the split to judge: `split`, or `validation` if `test` is missing.

    Raises `ConfigError` for another split that the task does not have.
    """
    if split not in data.splits and split != "test":
        raise no_split(split, data.splits, data.name)
    return split if split in data.splits else "validation"


def representation_of(encoder: SentenceEncoder, options: DiscoEval, task: str) -> str:
    """The representation to judge in a task; `auto` becomes that of the protocol's paper.

    CONPONO takes the pooled vector "for the SP, BSO and DC tasks" (3.1), else DiscoEval's. A model
    without a pooler gives [CLS] in its place.
    """
    if options.representation != AUTO or not encoder.layers:
        return encoder.named(options.representation)
    if options.protocol == "pairs" and encoder.trained_with == "mean":
        return "mean"
    vectors = TASKS[task].features[options.protocol].vectors
    return vectors if vectors != "pooled" or encoder.has_pooler else "cls"


def as_published(encoder: SentenceEncoder, options: DiscoEval) -> bool:
    """Whether the representations are those of the protocol's paper; `single` allows any."""
    automatic = options.representation == AUTO and encoder.trained_with != "mean"
    return options.protocol == "single" or not encoder.layers or automatic


def _representations(encoder: SentenceEncoder, options: DiscoEval, tasks: Iterable[str]) -> str:
    """The representations of the tasks as a result states them: `pooled (SP, BSO), cls_mean`."""
    tasks_by_name: dict[str, list[str]] = {}
    for task in tasks:
        tasks_by_name.setdefault(representation_of(encoder, options, task), []).append(task)
    if len(tasks_by_name) == 1:
        return next(iter(tasks_by_name))
    return ", ".join(f"{name} ({', '.join(each)})" for name, each in tasks_by_name.items())


def run_task(
    data: TaskData, encoder: SentenceEncoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """Encode one task in one domain, train its classifiers, and return their figures."""
    inputs = inputs_of(data, options)
    name = representation_of(encoder, options, data.task.name)
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
    """The distinct texts and pairs that a task encodes, and which of them each example has.

    An example has one or more inputs; the vector of an input is the mean over its texts. For input
    `i` of all examples, `rows[split][i]` has the numbers of its texts in `texts`, one example after
    the other, and how many texts each example has there, `[examples]`. `asked` counts the texts of
    all examples, repeated ones too. `combine` is a key of `COMBINE`.
    """

    texts: list[Text]
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]]
    asked: int
    combine: str


def inputs_of(data: TaskData, options: DiscoEval) -> Inputs:
    """The texts that a task encodes under `options.protocol`, in lower case if `options.lower`."""
    settings = data.task.features[options.protocol]
    if data.task.name == "SP" and not options.context:
        settings = WITHOUT_CONTEXT

    def texts_of(slots: Sequence[Sequence[str]]) -> list[Text]:
        """The texts to encode of one example: a pair of two slots, or the texts of one slot."""
        if options.lower:
            slots = [[text.lower() for text in slot] for slot in slots]
        if len(slots) == 2:
            return [(" ".join(slots[0]), " ".join(slots[1]))]
        return [" ".join(slots[0])] if settings.joined else [*slots[0]]

    # Number the distinct texts, and list those of each example.
    number: dict[Text, int] = {}
    rows: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for name, split in data.splits.items():
        rows[name] = []
        for slots in settings.inputs:
            examples = zip(*(split.slots[slot] for slot in slots), strict=True)
            texts = [texts_of(example) for example in examples]
            flat = [number.setdefault(text, len(number)) for each in texts for text in each]
            rows[name].append((np.array(flat, np.int64), np.array([*map(len, texts)])))
    asked = sum(len(flat) for inputs in rows.values() for flat, _ in inputs)
    return Inputs(list(number), rows, asked, settings.combine)


def vectors_of(
    encoder: SentenceEncoder, texts: Sequence[Text], representations: Sequence[str]
) -> dict[str, np.ndarray]:
    """The vectors of texts and pairs by representation, `[texts, dim]` each."""
    single = np.array([isinstance(text, str) for text in texts])
    vectors: dict[str, np.ndarray] = {}
    for rows in filter(len, (np.flatnonzero(single), np.flatnonzero(~single))):
        encoded = encoder.vectors([texts[row] for row in rows.tolist()], representations)
        for name, values in encoded.items():
            vectors.setdefault(name, np.empty((len(texts), values.shape[1]), np.float32))
            vectors[name][rows] = values
    return vectors


def features_of(inputs: Inputs, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """The features of each split's examples, `[examples, width]`, from `vectors [texts, dim]`."""

    def mean(flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The mean vector of each example's texts, which `Inputs.rows` names; `counts >= 1`."""
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
    """Train a task's classifier once for each of `options.seeds` seeds, from `seed` on."""
    from zoo.evaluate.discoeval.probe import fit

    train, validation = ((features[s], data.splits[s].labels) for s in ("train", "validation"))
    settings = data.task.probes[options.protocol]
    if options.hidden >= 0:
        settings = replace(settings, hidden=options.hidden)
    seeds = range(seed, seed + options.seeds)
    return [fit(train, validation, len(data.labels), settings, each) for each in seeds]


def score(
    data: TaskData, features: Mapping[str, np.ndarray], options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """The accuracy of the task's classifier on `split`: mean and deviation over the seeds.

    `outcomes` has for each row the share of the seeds that are right. Without a test split the
    accuracy is that of the validation split. It is a little too high, since it also decided when
    training stopped; the released code reports it beside the test accuracy.
    """
    split = split_of(data, split)
    examples = {name: (features[name], data.splits[name].labels) for name in features}
    probes = classifiers(data, features, options, seed)
    gold, units = data.splits[split].labels, data.splits[split].units
    right = np.stack([probe.predict(features[split]) == gold for probe in probes])
    most_frequent = np.bincount(examples["train"][1]).argmax()
    figures = {
        **mean_figure(right.mean(0), units, seed, f"discoeval.{data.name}"),
        **_over_seeds(right.mean(1)),
        "split": split,
        "l2": [probe.l2 for probe in probes],
        "epochs": [probe.epochs for probe in probes],
        "majority": float((gold == most_frequent).mean()),
        "outcomes": Outcomes(
            data.task.name, units.astype(str).tolist(), right.mean(0), part=data.domain
        ),
    }
    if split != "validation":
        figures["validation"] = _over_seeds(np.array([probe.accuracy for probe in probes]))
    if options.second_opinion and len(probes[0].parameters) == 2:  # no hidden layer
        figures["sklearn"] = second_opinion(examples, split, seed)
    return figures


def second_opinion(
    examples: Mapping[str, tuple[np.ndarray, np.ndarray]], split: str, seed: int
) -> dict[str, float]:
    """The accuracy of scikit-learn's logistic regression on `split`, with the best C.

    `examples` has the features and labels of each split. C is chosen on the validation split.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    models = [LogisticRegression(C=c, random_state=seed) for c in C_GRID]
    with warnings.catch_warnings():
        # It runs 100 steps, the default, as in the released code: too few to converge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model in models:
            model.fit(*examples["train"])
    best = max(models, key=lambda model: model.score(*examples["validation"]))
    return {"value": float(best.score(*examples[split])), "c": best.C}


def _over_seeds(values: np.ndarray) -> dict[str, Any]:
    """Mean, standard deviation and values of a figure over the seeds, `values [seeds]`."""
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {"value": float(values.mean()), "sd": deviation, "seeds": values.tolist()}


def summary(domains: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The mean of each task over its domains (`tasks`), and of all tasks (`average`).

    `domains[task][domain]` has the figures of `run_task`. `average.complete` says whether all seven
    tasks were judged; only then is the average comparable with a published one.
    """
    tasks = {}
    for task, figures in domains.items():
        values = [each["value"] for each in figures.values()]
        variances = [each["sd"] ** 2 for each in figures.values()]
        # The seeds of a task's domains are independent of each other: variances add up.
        deviation = float(np.sqrt(np.sum(variances)) / len(figures))
        mean = float(np.mean(values))
        tasks[task] = {"value": mean, "sd": deviation, "domains": dict(figures)}
    value = float(np.mean([each["value"] for each in tasks.values()]))
    average = {"value": value, "tasks": list(tasks), "complete": len(tasks) == len(TASKS)}
    return {"tasks": tasks, "average": average}


def per_layer(
    tasks: Sequence[TaskData], encoder: SentenceEncoder, options: DiscoEval, split: str, seed: int
) -> dict[str, Any]:
    """The accuracy of each task on the vectors of each layer; layer 0 is the embeddings.

    `layers` are the numbers of the layers. `accuracy[task]` has a figure for each of them, the mean
    over the task's domains; `best[task]` is the layer with the highest one, and `mean_best` the
    mean of these layers (table 3).
    """
    layers = layers_to_judge(encoder, options.layer_vectors)
    names = [f"{options.layer_vectors}:{layer}" for layer in layers]
    quick = options.model_copy(update={"second_opinion": False})
    by_task: dict[str, list[list[float]]] = {}  # for each domain the accuracies by layer
    for data in tasks:
        inputs = inputs_of(data, options)
        vectors = vectors_of(encoder, inputs.texts, names)
        by_layer = []
        for name in names:
            features = features_of(inputs, vectors.pop(name))
            by_layer.append(score(data, features, quick, split, seed)["value"])
        by_task.setdefault(data.task.name, []).append(by_layer)
    accuracy = {task: np.mean(domains, axis=0).tolist() for task, domains in by_task.items()}
    best = {task: layers[int(np.argmax(by_layer))] for task, by_layer in accuracy.items()}
    return {
        "vectors": options.layer_vectors,
        "layers": list(layers),
        "accuracy": accuracy,
        "best": best,
        "mean_best": float(np.mean(list(best.values()))),
    }
