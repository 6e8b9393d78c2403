"""The evaluation suites as declarations; importing them loads no torch, no transformers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from corpora.errors import ConfigError
from zoo.declared import (
    CLASSIFIES,
    ENCODES,
    GOES_ON,
    LABELLED,
    SCORES,
    AtLeast0,
    Count,
    Form,
    Positive,
    Suite,
)
from zoo.evaluate import Request
from zoo.evaluate.discoeval.tasks import TASKS, Protocol
from zoo.evaluate.outcomes import PROBES
from zoo.evaluate.superglue_data import TASKS as SUPERGLUE_TASKS
from zoo.evaluate.table import Cell, Cells, Rows, percent, plain

if TYPE_CHECKING:
    from zoo.evaluate.results import Result
    from zoo.evaluate.scores import McNemar


class DisSent(Suite):
    """Predicting the marker that joined two sentences."""

    name = "dissent"
    paper = "Nie, Bennett and Goodman 2019, tables 5 and 8 to 10"
    needs = frozenset({CLASSIFIES})
    reads = LABELLED

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.classification import evaluate

        return evaluate(request)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        metrics, config = result["metrics"], result["dataset"]["config"]

        def cells(figures: Mapping[str, Any]) -> Cells:
            n = metrics.get("rows")
            return {
                f"{config} F1": percent(figures["f1"], n),
                f"{config} accuracy": percent(figures["accuracy"], n),
            }

        return {"": cells(metrics), "rule: majority": cells(metrics["majority"])}

    def write_files(self, result: Mapping[str, Any], stem: Path) -> None:
        """`STEM.confusion.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write

        write(stem.with_name(f"{stem.name}.confusion"), result["metrics"]["confusion"])


class Pdtb(Suite):
    """Implicit relations, and marked against unmarked ones.

    The dataset says which: `pdtb_implicit` (the 11 most frequent senses) or `pdtb_marked`. A model
    that was fine-tuned on it (recipe `dissent/pdtb`) is asked for its labels. Of every other model
    the frozen vectors go to a logistic regression, whose penalty the validation split chooses.
    """

    name = "pdtb"
    paper = "Nie, Bennett and Goodman 2019, section 6 and table 7"
    needs = frozenset({CLASSIFIES, ENCODES})
    reads = (Form(("arg1", "arg2", "label")),)

    protocol: Literal["sentences", "pair", "both"] = "both"
    """`sentences`: [x1, x2, x1 * x2, |x1 - x2|], each argument encoded by itself; `pair`: the
    vector of both arguments encoded as one input."""
    representation: str = "auto"
    """How the frozen vectors are read off the model: see `zoo.evaluate.encoders`."""
    classes: Count = 11
    """The most labels: those with most training rows (section 6); 0: all."""
    cache: str = ""
    """A folder in which the vectors are kept for the next run."""

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.classification import evaluate_pdtb

        return evaluate_pdtb(self, request)

    @staticmethod
    def column(task: str, protocol: str) -> str:
        """Implicit relations (IMP) or marked against unmarked (MVU); `pair`: encoded together."""
        return ("MVU" if task == "marked" else "IMP") + (" (pair)" if protocol == "pair" else "")

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        metrics = result["metrics"]
        own = {
            cls.column(result["task"], name): percent(found["accuracy"], found.get("rows"))
            for name, found in metrics.items()
        }
        majority = percent(next(iter(metrics.values()))["majority"]["accuracy"])
        return {"": own, "rule: majority": dict.fromkeys(own, majority)}

    def write_files(self, result: Mapping[str, Any], stem: Path) -> None:
        """The confusion matrix of each protocol: `STEM.PROTOCOL.csv`, `.svg`, `.png`."""
        from zoo.evaluate.confusions import write

        for name, metrics in result["metrics"].items():
            write(stem.with_name(f"{stem.name}.{name}"), metrics["confusion"])


def _of_sets(
    sets: Mapping[str, Any], figure: str, show: Callable[..., Cell], n: str = "pairs"
) -> Rows:
    """The model's `figure` of each test set, over its `n` examples; the rules' beside it."""
    rows: Rows = {"": {name: show(found[figure], found.get(n)) for name, found in sets.items()}}
    for name, found in sets.items():
        for rule, value in found.get("baselines", {}).items():
            rows.setdefault(f"rule: {rule}", {})[name] = show(value)
    return rows


class OfScorers(Suite):
    """What the suites of coherence scorers share."""

    needs = frozenset({SCORES})

    beside: tuple[str, ...] = ()
    """More rules beside the model, of language models: `perplexity:MODEL`, `conditional:MODEL`,
    `nsp:MODEL`; each MODEL a folder or Hub id."""


class Permuted(OfScorers):
    """A document against its permutations: the coherence scorer's own task."""

    name = "permuted"
    paper = "Jwalapuram, Joty and Lin 2022"
    reads = (Form(("document", "orders"), {"documents": ("id", "sentences")}),)
    config = "pairwise"

    def evaluate(self, request: Request) -> Result:
        """Pairwise accuracy on one split (configuration `pairwise` unless `@CONFIG` says else)."""
        from zoo.evaluate.pairwise import evaluate_permuted

        return evaluate_permuted(self, request)

    @staticmethod
    def column(config: str) -> str:
        """The configuration is in the name, unless it is the usual one."""
        return "permuted accuracy" + ("" if config == Permuted.config else f" ({config})")

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        column = cls.column(result["dataset"]["config"])
        return _of_sets({column: result["metrics"]}, "accuracy", percent)


class Pairwise(OfScorers):
    """Which of two texts scores higher, with trivial rules beside every model.

    A tie counts as wrong, for each test set and each probe.
    """

    name = "pairwise"
    paper = "Jwalapuram, Joty and Lin 2022, tables 1 to 3"
    reads = (Form(("pos", "neg")),)
    all_configs = True

    encoder: str = ""
    """Of the rule `cosine`: a backbone (MiniLM if it is installed); `none` leaves the rule out."""
    prompt: bool = True
    """Whether a pair's prompt is part of both texts."""

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.pairwise import evaluate_pairwise

        return evaluate_pairwise(self, request)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        sets = result["metrics"]["sets"]
        cosine = "rule: cosine"
        named = {cosine: f"{cosine} ({result.get('encoder')})"}
        found = _of_sets(sets, "accuracy", percent)
        rows = {named.get(name, name): cells for name, cells in found.items()}
        if means := result["metrics"].get("means", {}):
            probes = tuple(sorted(name for name in sets if name.startswith(PROBES)))
            for cells in rows.values():
                mean = sum(cells[name].value for name in sets if name in probes) / len(probes)
                cells[f"mean of {means['probes']['of']} probes"] = Cell(mean, of=probes)
        return rows

    @classmethod
    def tests(cls, one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, McNemar]:
        from zoo.evaluate.pairwise import mcnemar_of_sets

        return mcnemar_of_sets(one, two)


class Agreement(OfScorers):
    """Whether the model chooses as people do: Krippendorff's alpha with and without the model."""

    name = "agreement"
    paper = "Jwalapuram, Joty and Lin 2022, section 2.2"
    percent = False
    reads = (Form(("pos", "neg", "votes")),)
    all_configs = True

    prompt: bool = True
    """Whether a pair's prompt is part of both texts."""

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.pairwise import evaluate_agreement

        return evaluate_agreement(self, request)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        sets = result["metrics"]["sets"]
        random = {name: plain(found["random"]["value"]) for name, found in sets.items()}
        return {
            "": {},
            "annotators alone": {name: plain(found["people"]) for name, found in sets.items()},
            "annotators and a random coder": random,
            **_of_sets(sets, "alpha", plain),
        }


class Ratings(OfScorers):
    """Whether the scores agree with people's ratings of coherence.

    Spearman's correlation with the mean ratings; accuracy on the consensus classes (GCDC's three,
    CoheSentia's five), which a logistic regression of the score learns on the training split.
    """

    name = "ratings"
    paper = "Lai and Tetreault 2018; Maimon and Tsarfaty 2023"
    percent = False
    reads = (Form(("group", "text", "ratings")),)
    all_configs = True

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.ratings import evaluate

        return evaluate(self, request)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        sets = result["metrics"]["sets"]
        rows: Rows = {}
        for name, found in sets.items():
            parts = [_of_sets({name: found}, "rho", plain, "texts")]
            if "accuracy" in found:
                learnt = {**found, "baselines": found["accuracies"]}
                parts.append(_of_sets({f"{name} accuracy": learnt}, "accuracy", percent, "texts"))
            for rule, cells in (row for part in parts for row in part.items()):
                rows.setdefault(rule, {}).update(cells)
        return rows


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
        for wanted in self.tasks:
            if wanted not in given.values():
                raise ConfigError(
                    f"tasks names {wanted!r}, and no dataset of it is of that task",
                    hint="its datasets are of the tasks: "
                    f"{', '.join(dict.fromkeys(given.values()))}",
                )
        for name, task in given.items():
            if self.tasks and task not in self.tasks:
                raise ConfigError(
                    f"names the dataset {name!r}, and its tasks leave out {task!r}",
                    hint="take the dataset out, or add its task",
                )

    def evaluate(self, request: Request) -> Result:
        """Every task that the data has."""
        from zoo.evaluate.discoeval.protocol import evaluate

        return evaluate(self, request)

    def write_files(self, result: Mapping[str, Any], stem: Path) -> None:
        """With layers `STEM.layers.csv`, `.svg` and `.png`."""
        from zoo.evaluate.confusions import write_layers

        write_layers(result, stem)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        """Each task, its domains where it has several, and the average of all seven tasks."""
        alone = result["protocol"].get("seeds") == 1

        def cell(found: Mapping[str, Any], domains: Mapping[str, Mapping[str, Any]]) -> Cell:
            n = sum(one.get("rows", {}).get(one.get("split"), 0) for one in domains.values())
            shown = percent(found) if alone else Cell(100 * found["value"], sd=100 * found["sd"])
            return replace(shown, n=n or None, of=tuple(sorted(domains)))

        cells: Cells = {}
        parts: Cells = {}
        for task, found in result["metrics"]["tasks"].items():
            domains = found["domains"]
            cells[task] = cell(found, domains)
            if len(domains) > 1:
                parts |= {f"{task} {name}": cell(one, {name: one}) for name, one in domains.items()}
        average = result["metrics"]["average"]
        if average["complete"]:
            cells["avg"] = percent(average)
        return {"": {**cells, **parts}}


class SuperGlue(Suite):
    """RTE, COPA and ReCoRD by fine-tuning: accuracy on the validation set (ReCoRD: EM and F1 too).

    Steps, epochs, learning rates, warm-up and length are the paper's; the batch (32) and the limit
    of 25 candidates in training are those of its released code, since the paper has none.
    """

    name = "superglue"
    paper = "Iter et al. 2020, 3.2 and A.4"
    needs = frozenset({GOES_ON})
    reads = tuple(Form(task.columns) for task in SUPERGLUE_TASKS.values())
    all_configs = True

    tasks: tuple[Literal["rte", "copa", "record"], ...] = ()
    """Names among rte, copa, record, with commas (all that the dataset has)."""
    seeds: Positive = 1
    """Trainings with the seeds `--seed` and the following ones: mean and deviation."""
    batch: Positive = 32
    """Examples of an optimizer step."""
    max_length: Annotated[int, Field(ge=8)] = 512
    """Tokens of a pair of texts; the longer text is cut."""
    max_candidates: Annotated[int, Field(ge=2)] = 25
    """Of an example in training; evaluation ranks all of them."""
    max_steps: Count = 0
    """In place of the paper's steps and epochs, for a try."""
    learning_rate: AtLeast0 = 0.0
    """In place of the paper's."""
    copa_question: bool = False
    """Append the question (cause or effect) to the premise; the paper's table 2 shows none."""
    bf16: bool | Literal["auto"] = "auto"
    """bfloat16 in the forward pass; `auto`: on a GPU that has it."""

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.superglue import evaluate

        return evaluate(self, request)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        cells = {}
        for task, found in result["metrics"]["tasks"].items():
            for key, name in (("accuracy", task), ("em", f"{task} EM"), ("f1", f"{task} F1")):
                if key in found:
                    cells[name] = percent(found[key], found.get("examples"))
        return {"": cells}


class SentEval(Suite):
    """What of SentEval the library mteb has, in the columns of DiscoEval's table 2.

    mteb runs its tasks with its own protocol and data: `--data hub`.
    """

    name = "senteval"
    paper = "Chen, Chu and Gimpel 2019, table 2"
    needs = frozenset({ENCODES})

    representation: str = "auto"
    """As in `load_encoder`: mean, cls, cls_mean, pooled, mean:LAYER."""

    def evaluate(self, request: Request) -> Result:
        from zoo.evaluate.senteval import evaluate

        return evaluate(self, request)

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        columns = result["metrics"]["columns"]
        return {"": {name: percent(found) for name, found in columns.items() if found["complete"]}}
