"""What a recipe, an objective and a suite state of themselves; nothing here loads torch.

Subclasses of `Recipe`, `Objective` and `Suite` declare what they read and what their models can
do. A method imports torch when it runs. Ours and plug-ins are found by `RECIPES`, `OBJECTIVES` and
`SUITES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corpora.declared import Declared, Registry, portable
from corpora.errors import ConfigError
from corpora.splits import SPLITS

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from zoo.evaluate import Request
    from zoo.evaluate.results import Result
    from zoo.evaluate.scores import McNemar
    from zoo.evaluate.table import Rows
    from zoo.training.job import Job

CLASSIFIES, SCORES, ENCODES, GOES_ON = (
    "predicts the label of two texts",
    "scores a text",
    "gives vectors of texts",
    "has a backbone that a training can start from",
)
"""What a model can do."""

TEXTS = (("s1", "s2"), ("arg1", "arg2"), ("premise", "hypothesis"), ("sentence1", "sentence2"))
"""Names of the columns of the two texts of a labelled pair, looked for in this order."""


@dataclass(frozen=True)
class Form:
    """One form that data may have: columns, and those of the configurations read beside it."""

    columns: tuple[str, ...]
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


LABELLED = tuple(Form((*two, "label")) for two in TEXTS)
PERMUTED = Form(
    ("document", "orders"),
    {"documents": ("id", "sentences"), "pairwise": ("document", "orders")},
)
INTRUDED = Form(("doc", "position", "pos", "neg"))

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Above0 = Annotated[float, Field(gt=0)]
AtLeast0 = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Words = Annotated[int, Field(ge=3)]
"""Of a vocabulary: padding, the unknown word, and one more."""


class Objective(Declared):
    """A training objective: its settings, and the module that computes it."""

    config: ClassVar[str] = ""
    """The configuration of the data that is made for it; "": the recipe's own."""
    negatives: ClassVar[int] = 0
    """Negatives of an example that it takes; 0: as many as the recipe's setting says."""

    def module(self) -> nn.Module:
        """The loss as a module; its docstring gives the equation and the shapes."""
        raise NotImplementedError


class Recipe(Declared):
    """A training recipe: what every run needs. Each field is a key of the TOML and `--name`."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # a folder may be called 2026

    reads: ClassVar[tuple[Form, ...]] = ()
    """Forms of data; a dataset's configuration must have one of them."""
    can: ClassVar[frozenset[str]] = frozenset()
    """What a model trained by it can do."""
    config: ClassVar[str] = ""
    """The configuration that is read where none is named; "": the dataset's default one."""
    splits: ClassVar[tuple[str, ...]] = SPLITS
    """The splits that must have rows."""
    differs: ClassVar[tuple[str, ...]] = ()
    """Where it differs from the paper, a sentence each: for the card and the page in docs/."""
    not_identity: ClassVar[frozenset[str]] = frozenset(
        {
            *("dataset", "dataset_config", "output", "logging_steps", "report_to"),
            *("keep_checkpoints", "processes"),
        }
    )
    """Settings that change no weight. The dataset counts by its revision and configuration."""

    dataset: str
    """A dataset folder, or a Hub id; `@CONFIG` at the end names its configuration."""
    output: str
    """The model folder; it appears by one rename when everything in it is written."""
    dataset_config: str = ""
    """The dataset's configuration; empty: the recipe's own, or the dataset's default."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of weights, order, dropout and samples."""
    threads: Positive = 1
    """Threads of torch on a CPU. Rounding depends on it, so it is part of the run."""
    deterministic: bool = True
    """Deterministic kernels where torch has them; on a GPU its fused attention stays as it is."""
    max_train_rows: Count = 0
    """The most training rows, spread evenly over the split (0: all)."""
    max_eval_rows: Count = 0
    """The most rows of a split to evaluate on, spread evenly over it (0: all)."""

    def configuration(self) -> str:
        """The configuration that is read with these settings; "": the dataset's default one."""
        return self.dataset_config or self.config

    def forms(self) -> tuple[Form, ...]:
        """The forms of data that are read with these settings."""
        return self.reads

    def train(self, job: Job) -> None:
        """Train into `job.folder`: data, model, objective, Trainer, evaluation, card."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """The settings on which the weights depend, as plain JSON values."""
        values = self.model_dump(mode="json", exclude=set(self.not_identity))
        return {key: values[key] for key in sorted(values)}


class StepRecipe(Recipe):
    """A recipe that takes one optimizer step after the other."""

    epochs: Above0 = 1.0
    """Passes over the training split."""
    max_steps: Annotated[int, Field(ge=-1)] = -1
    """The number of optimizer steps; when positive it replaces `epochs`."""
    batch_size: Positive = 32
    """Examples of an optimizer step, of all `processes` and parts (`gradient_accumulation`)."""
    eval_batch_size: Positive = 64
    """Examples at a time in validation and test."""
    gradient_accumulation: Positive = 1
    """Parts of a batch that are computed one after the other, which takes less memory."""
    learning_rate: Above0 = 2e-5
    """The highest learning rate of the schedule."""
    weight_decay: AtLeast0 = 0.0
    """Weight decay of AdamW."""
    max_grad_norm: AtLeast0 = 1.0
    """Maximum gradient norm; 0 disables clipping."""
    processes: Positive = 1
    """Processes that train together, each on a GPU of its own (`accelerate launch`)."""
    bf16: bool | Literal["auto"] = False
    """bfloat16 in the forward pass; `auto`: on a GPU that has it."""
    compile: bool = False
    """Compile the model with `torch.compile`: pays on a GPU and over many steps."""
    save_steps: Count = 0
    """Steps between checkpoints inside an epoch (0: a checkpoint at its end only)."""
    eval_steps: Count = 0
    """Steps between validations, each with a checkpoint, inside an epoch (0: at its end only)."""
    keep_checkpoints: Positive = 2
    """Checkpoints kept while training: the newest."""
    logging_steps: Positive = 50
    """Steps between two lines of the log."""
    report_to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    """Trackers of losses and validations; tensorboard's files go to `OUTPUT.logs/`."""

    @model_validator(mode="after")
    def _batch_divides(self) -> Self:
        self.share_of_batch(self.processes)
        return self

    def share_of_batch(self, processes: int) -> int:
        """Examples at a time in each of `processes`. Raises `ConfigError` for a rest."""
        parts = processes * self.gradient_accumulation
        if self.batch_size % parts:
            raise ConfigError(
                f"batch_size = {self.batch_size} is not a multiple of processes = {processes} "
                f"times gradient_accumulation = {self.gradient_accumulation}",
                hint=f"batch_size counts the examples of all of them: take a multiple of {parts}",
            )
        return self.batch_size // parts


class BackboneRecipe(StepRecipe):
    """A recipe with an encoder of transformers."""

    backbone: str = ""
    """A pretrained encoder: a folder or a Hub id that `AutoModel` loads, or a model of this zoo."""
    backbone_config: dict[str, Any] = Field(default_factory=dict)
    """In place of `backbone`: a configuration with its model_type; weights start at random."""
    attention_dropout: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """Dropout of the attention weights; -1: the backbone's own. On a CPU 0 trains faster."""
    hidden_dropout: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """Dropout of the states between layers; -1: the backbone's own."""
    attention: Literal["auto", "eager", "sdpa", "flash_attention_2", "bf16"] = "auto"
    """How attention is computed; `auto`: `bf16` (`zoo.attention`) while training in bfloat16 on a
    CPU, where torch's fused kernel is slow backward (`eager` for a backbone that cannot), and else
    the backbone's own way."""
    pad_token: str = ""
    """A token of the vocabulary to pad with, for a tokenizer that has no pad token."""
    vocab_size: Words = 8000
    """Words of the tokenizer trained on the texts, where there is no pretrained backbone."""
    lower: bool = True
    """Lower-case the words of the tokenizer trained on the texts."""


def _two(columns: tuple[str, ...]) -> tuple[str, ...]:
    if len(columns) not in (0, 2):
        raise ValueError(f"two columns of texts, not {len(columns)}")
    return columns


class ClassifierRecipe(Recipe):
    """A recipe for pairs of texts with a label."""

    empty_classes: Literal["error", "warn"] = "error"
    """What to do with a label that no training row has."""


class LabelledRecipe(ClassifierRecipe):
    """A recipe for labelled pairs in any two columns of texts."""

    reads = LABELLED
    splits = ("train", "validation")

    columns: Annotated[tuple[str, ...], AfterValidator(_two)] = ()
    """The two columns of texts; found by their usual names if not given."""

    def forms(self) -> tuple[Form, ...]:
        return (Form((*self.columns, "label")),) if self.columns else self.reads


class WordRecipe(Recipe):
    """A recipe with a vocabulary of whole words and word vectors."""

    vectors: str = ""
    """A GloVe text file; without one the embeddings are trained from scratch."""
    vocab_size: Words = 50000
    """Words of the vocabulary, the most frequent ones."""
    min_frequency: Positive = 2
    """Words that are rarer in the training split are unknown."""
    lower: bool = True
    """Take words without letter case."""
    max_tokens: Positive = 64
    """Words of a sentence; the rest is cut."""


class RankingRecipe(Recipe):
    """A recipe that trains a scorer to rank a text above its negatives, by an objective."""

    objective: str = "contrastive"
    """The loss: a name (contrastive, pairwise), `package.module:Class` or `FILE.py:Class`."""
    margin: AtLeast0 = 0.1
    """The distance that a document keeps from its negatives (equations 1 and 2)."""
    objective_settings: dict[str, Any] = Field(default_factory=dict, validate_default=True)
    """Settings of the objective other than `margin`."""

    @field_validator("objective")
    @classmethod
    def _is_an_objective(cls, name: str) -> str:
        OBJECTIVES.find(name)
        return name

    @field_validator("objective_settings")
    @classmethod
    def _are_its_settings(cls, table: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if {"objective", "margin"} <= info.data.keys():
            _objective(info.data["objective"], info.data["margin"], table)
        return table

    @property
    def loss(self) -> Objective:
        """The objective with its settings."""
        return _objective(self.objective, self.margin, self.objective_settings)

    def configuration(self) -> str:
        return self.dataset_config or self.loss.config or self.config

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), "objective": portable(self.objective)}


def _objective(name: str, margin: float, settings: Mapping[str, Any]) -> Objective:
    kind = OBJECTIVES.find(name)
    own = {"margin": margin} if "margin" in kind.model_fields else {}
    return kind.of({**own, **settings})


class Suite(Declared):
    """An evaluation suite: what it needs of a model and of data. Its fields are its options."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """What a model must be able to do: one of these."""
    reads: ClassVar[tuple[Form, ...]] = ()
    """Forms of data; empty: it reads no dataset of a build."""
    config: ClassVar[str] = ""
    """The configuration that is read where none is named; "": the dataset's default one."""
    all_configs: ClassVar[bool] = False
    """Whether it reads every configuration that has one of the forms."""
    several: ClassVar[bool] = False
    """Whether it takes a list of datasets."""
    splits: ClassVar[tuple[str, ...]] = ("test",)
    """The splits that must have rows."""
    builders: ClassVar[tuple[str, ...]] = ()
    """The builders whose datasets it takes; empty: all with the right columns."""
    percent: ClassVar[bool] = True
    """Whether papers print its figures as percentages."""

    def check_data(self, datasets: Mapping[str, str]) -> None:
        """Raise `ConfigError` if these datasets (name and builder) do not go with the options."""

    def evaluate(self, request: Request) -> Result:
        """What the model got right."""
        raise NotImplementedError

    def write_files(self, result: Mapping[str, Any], stem: Path) -> None:
        """Write what the suite draws or tabulates beside the result's JSON."""

    @classmethod
    def rows(cls, result: Mapping[str, Any]) -> Rows:
        """The rows that a result's JSON gives in a table: the model's own, named "", and those of
        the rules beside it. By default every figure in percent, under the names on its way."""
        from zoo.evaluate.table import every_figure

        return {"": dict(every_figure(result["metrics"]))}

    @classmethod
    def tests(cls, one: Mapping[str, Any], two: Mapping[str, Any]) -> Mapping[str, McNemar]:
        """Tests of two results against each other, by the figure that is tested."""
        return {}


RECIPES = Registry(
    "recipe",
    Recipe,
    {
        "dissent.bilstm": "zoo.dissent.recipes:Bilstm",
        "dissent.ngram": "zoo.dissent.recipes:Ngram",
        "dissent.sif": "zoo.dissent.recipes:Sif",
        "dissent.transformer": "zoo.dissent.recipes:Transformer",
        "coherence.contrastive": "zoo.coherence.recipes:Contrastive",
        "coherence.full": "zoo.coherence.recipes:Full",
        "coherence.unc": "zoo.coherence.recipes:Unc",
        "conpono.conpono": "zoo.conpono.recipes:Conpono",
        "criteria.bigru": "zoo.criteria.recipes:Bigru",
    },
)
OBJECTIVES = Registry(
    "objective",
    Objective,
    {
        "contrastive": "zoo.coherence.recipes:ContrastiveRanking",
        "pairwise": "zoo.coherence.recipes:PairwiseRanking",
    },
)
