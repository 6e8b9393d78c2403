"""Declarations of recipes, objectives and suites; nothing here loads torch.

Subclasses of `Recipe` and `Suite` declare which data they read and what their models can do; those
of `Objective` declare a loss. Methods import torch when they run. `RECIPES`, `OBJECTIVES` and
`SUITES` find a class by its name, built in or of a plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corpora.declared import Declared, Registry, without_folders
from corpora.errors import ConfigError, amount
from corpora.splits import SPLITS

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from zoo.evaluate.results import Result
    from zoo.evaluate.scores import McNemar
    from zoo.evaluate.table import Rows
    from zoo.presets import About
    from zoo.training.job import Job

CLASSIFIES, SCORES, ENCODES, GOES_ON = (
    "predicts the label of two texts",
    "scores a text",
    "gives vectors of texts",
    "has a backbone that a training can start from",
)
"""The capabilities of models, as `Recipe.can` and `Suite.needs` list them; messages quote them."""

TEXTS = (("s1", "s2"), ("arg1", "arg2"), ("premise", "hypothesis"), ("sentence1", "sentence2"))
"""Column names of the two texts of a labelled pair, tried in this order."""


@dataclass(frozen=True)
class Form:
    """The columns that a configuration of a dataset must have for a recipe or suite to read it."""

    columns: tuple[str, ...]
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other configurations of the dataset that are read too, with the columns of each."""


LABELLED = tuple(Form((*texts, "label")) for texts in TEXTS)
"""Pairs of texts with a label."""
PERMUTED = Form(
    ("document", "orders"),
    {"documents": ("id", "sentences"), "pairwise": ("document", "orders")},
)
"""Documents, each with permuted orders of its sentences."""
INTRUDED = Form(("doc", "position", "pos", "neg"))
"""Texts, each with a copy in which a sentence of another document replaces one."""


class Mark(Enum):
    """How a setting enters the identity of a model. One without a mark enters by its value."""

    NOT_COUNTED = "it does not change the weights, or counts in another form"
    PLACE = "it may name a file or a folder, which counts by its name and its contents"
    CLASS = "it names a class, which counts without the folders of its file"


Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Above0 = Annotated[float, Field(gt=0)]
AtLeast0 = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Words = Annotated[int, Field(ge=3)]
"""Minimum size of a vocabulary: padding, the unknown word, and one more."""
Place = Annotated[str, Mark.PLACE]
"""A folder, a file, or an id of the Hub."""


class Objective(Declared):
    """A training objective: its settings, and the module that computes it."""

    config: ClassVar[str] = ""
    """The configuration of the dataset that it reads; "": the recipe's."""
    negatives: ClassVar[int] = 0
    """The number of negatives of each example; 0: the recipe's setting."""
    says: ClassVar[str] = ""
    """The card's sentence on it, with `{negatives}` for their number; "": the class's summary."""

    def module(self) -> nn.Module:
        """Return the loss as a module, whose docstring gives the equation and the shapes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Work:
    """The cost of a training example: `weights * tokens + heads` products in a forward pass."""

    weights: int
    """The number of weights that each token is multiplied with."""
    tokens: float
    """The most tokens of an example; a token without a backward pass counts as a third of one."""
    heads: float = 0
    """The number of weights that are used once for an example, such as a classifier's."""


class Recipe(Declared):
    """A training recipe. Each field is a key of the TOML file and an option `--name`."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # a folder's name may be a number

    trains: ClassVar[bool] = True
    """Whether it trains on a dataset; otherwise its models are another's, as they are."""
    reads: ClassVar[tuple[Form, ...]] = ()
    """Forms of data; the configuration that is read must have one of them."""
    can: ClassVar[frozenset[str]] = frozenset()
    """The capabilities of the models that it trains."""
    config: ClassVar[str] = ""
    """The configuration that is read where none is named; "": the dataset's default one."""
    splits: ClassVar[tuple[str, ...]] = SPLITS
    """The splits that must have rows."""
    differs: ClassVar[tuple[str, ...]] = ()
    """Differences from the paper, one sentence each, for the card and the page in docs/."""

    dataset: Annotated[str, Mark.NOT_COUNTED]
    """A dataset folder or Hub id; `@CONFIG` at the end names the configuration."""
    output: Annotated[str, Mark.NOT_COUNTED]
    """The model folder; it appears when it is complete."""
    dataset_config: Annotated[str, Mark.NOT_COUNTED] = ""
    """The dataset's configuration; default: the recipe's, else the dataset's."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Random seed of weights, order, dropout and samples."""
    threads: Positive = 1
    """Threads of torch on a CPU; part of the run, since rounding depends on it."""
    deterministic: bool = True
    """Use deterministic kernels if torch has them; fused attention on a GPU is not changed."""
    max_train_rows: Count = 0
    """Maximum training rows, spread evenly over the split (0: all)."""
    max_eval_rows: Count = 0
    """Maximum rows of a split in evaluation, spread evenly over it (0: all)."""

    def configuration(self) -> str:
        """Return the name of the configuration to read; "" for the dataset's default one."""
        return self.dataset_config or self.config

    def forms(self) -> tuple[Form, ...]:
        """Return the forms of data that a recipe with these settings can read."""
        return self.reads

    def described(self, about: About, preset: Mapping[str, Any]) -> About:
        """Return the card's description of the recipe: `about`, which describes the `preset`. A
        subclass changes it where these settings differ from the preset's."""
        return about

    @property
    def file(self) -> str:
        """Return the name of the file in the model folder that suites open; "": the folder."""
        return ""

    def work(self) -> Work:
        """Return the cost of an example with these settings; `zoo.training.cost` estimates FLOPs.

        Raises `ConfigError` for a recipe without a formula.
        """
        raise ConfigError(f"no formula for the FLOPs of {type(self).__name__}")

    def train(self, job: Job) -> None:
        """Train a model and write it to `job.folder`, with its results and its card."""
        raise NotImplementedError

    @classmethod
    def marked(cls, mark: Mark) -> list[str]:
        """Return the names of the settings that have `mark` in this class or in one of its bases.
        So a setting that a subclass declares again, with another default, keeps its mark."""
        bases = [base.model_fields for base in cls.__mro__ if issubclass(base, Recipe)]
        fields = [field for base in bases for field in base.items()]
        marked = {name for name, field in fields if mark in field.metadata}
        return [name for name in cls.model_fields if name in marked]

    @classmethod
    def counted(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of `settings` that determines a model's weights, sorted by name. A
        setting that names a class, `FILE.py:Class`, loses the folder of the file."""
        classes, not_counted = cls.marked(Mark.CLASS), cls.marked(Mark.NOT_COUNTED)
        return {
            name: without_folders(value) if name in classes else value
            for name, value in sorted(settings.items())
            if name not in not_counted
        }

    def identity(self) -> dict[str, Any]:
        """Return the settings that determine the weights, as JSON values."""
        return self.counted(self.model_dump(mode="json"))


class StepRecipe(Recipe):
    """A recipe that trains by gradient descent: its batches, optimizer, precision and devices."""

    epochs: Above0 = 1.0
    """Passes over the training split."""
    max_steps: Annotated[int, Field(ge=-1)] = -1
    """Number of optimizer steps; a positive number replaces `epochs`."""
    batch_size: Positive = 32
    """Examples of an optimizer step, over all `processes` and `gradient_accumulation`."""
    eval_batch_size: Positive = 64
    """Batch size in validation and test."""
    gradient_accumulation: Positive = 1
    """Parts of a batch that are computed one after another, to save memory."""
    learning_rate: Above0 = 2e-5
    """Maximum learning rate."""
    weight_decay: AtLeast0 = 0.0
    """Weight decay of AdamW."""
    max_grad_norm: AtLeast0 = 1.0
    """Maximum gradient norm; 0 disables clipping."""
    processes: Annotated[Positive, Mark.NOT_COUNTED] = 1
    """Processes that train together, each on its own GPU (`accelerate launch`)."""
    bf16: bool | Literal["auto"] = "auto"
    """Use bfloat16 in the forward pass; `auto`: on a GPU that supports it."""
    compile: bool = False
    """Compile the model with `torch.compile`: faster on a GPU over many steps."""
    workers: Annotated[int, Field(ge=-1), Mark.NOT_COUNTED] = -1
    """Processes that tokenise; -1: one for each core. In CONPONO also processes that sample
    examples for each training process; -1: 4 on a GPU, none on a CPU.
    """
    save_steps: Count = 0
    """Steps between checkpoints within an epoch (0: only at its end)."""
    eval_steps: Count = 0
    """Steps between validations, each with a checkpoint, within an epoch (0: only at its end)."""
    keep_checkpoints: Annotated[Positive, Mark.NOT_COUNTED] = 2
    """Number of newest checkpoints to keep while training."""
    logging_steps: Annotated[Positive, Mark.NOT_COUNTED] = 50
    """Steps between log lines."""
    report_to: Annotated[
        tuple[Literal["tensorboard", "trackio", "wandb"], ...], Mark.NOT_COUNTED
    ] = ()
    """Trackers of losses and validations; tensorboard writes to `OUTPUT.logs/`."""

    @model_validator(mode="after")
    def _check_batch_size(self) -> Self:
        self.share_of_batch(self.processes)
        return self

    def share_of_batch(self, processes: int) -> int:
        """Return the number of examples that each of `processes` takes in one forward pass. Raises
        `ConfigError` unless `processes` times `gradient_accumulation` divides `batch_size`."""
        parts = processes * self.gradient_accumulation
        if self.batch_size % parts:
            next_multiple = (self.batch_size // parts + 1) * parts
            raise ConfigError(
                f"batch_size = {self.batch_size} is not a multiple of processes = {processes} "
                f"times gradient_accumulation = {self.gradient_accumulation}",
                hint="batch_size counts the examples of all of them: give "
                f"--batch_size {next_multiple}, or another multiple of {parts}",
            )
        return self.batch_size // parts


class BackboneRecipe(StepRecipe):
    """A recipe with an encoder of transformers."""

    backbone: Place = ""
    """A pretrained encoder: a folder or a Hub id that `AutoModel` loads, or a model of this zoo."""
    backbone_config: dict[str, Any] = Field(default_factory=dict)
    """Instead of `backbone`: a configuration with its model_type; weights are random."""
    attention_dropout: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """Dropout of the attention weights; -1: the backbone's. On a CPU, 0 trains faster."""
    hidden_dropout: Annotated[float, Field(ge=-1, le=1)] = -1.0
    """Dropout of the states between layers; -1: the backbone's."""
    attention: str = "auto"
    """Attention implementation: any that transformers knows (`eager`, `sdpa`, `flash_attention_2`,
    `flash_attention_3`, `flex_attention`, a kernel of the Hub), or `bf16` (`zoo.attention`);
    `auto`: `bf16` in training in bfloat16 on a CPU, where the backward pass of torch's fused kernel
    is slow (`eager` for other backbones), else the backbone's default.
    """
    recompute: Annotated[bool, Mark.NOT_COUNTED] = False
    """Gradient checkpointing: recompute activations in the backward pass, for a third more time and
    a fraction of the memory.
    """
    lora_rank: Count = 0
    """Rank of LoRA (by `peft`), merged into the encoder at the end; 0: train all weights."""
    lora_alpha: Positive = 16
    """LoRA's alpha: updates are scaled by alpha / rank."""
    lora_dropout: Dropout = 0.0
    """Dropout of LoRA's input."""
    pad_token: str = ""
    """Padding token for a tokenizer without one."""
    vocab_size: Words = 8000
    """Vocabulary size of the tokenizer trained on the texts without a pretrained backbone."""
    lower: bool = True
    """Lower-case words in the tokenizer trained on the texts."""


def _check_two_columns(columns: tuple[str, ...]) -> tuple[str, ...]:
    if columns and (len(columns) != 2 or columns[0] == columns[1]):
        raise ValueError(f"expected two columns of texts, got {', '.join(columns)}")
    return columns


class ClassifierRecipe(Recipe):
    """A recipe for pairs of texts with a label."""

    empty_classes: Literal["error", "warn"] = "error"
    """What to do with a label without training rows."""


class LabelledRecipe(ClassifierRecipe):
    """A recipe for labelled pairs in any two columns of texts."""

    reads = LABELLED
    splits = ("train", "validation")

    columns: Annotated[tuple[str, ...], AfterValidator(_check_two_columns)] = ()
    """The two columns of texts; default: detected by their usual names."""

    def forms(self) -> tuple[Form, ...]:
        return (Form((*self.columns, "label")),) if self.columns else self.reads


class WordRecipe(Recipe):
    """A recipe with a vocabulary of whole words and word vectors."""

    vectors: Place = ""
    """A GloVe text file; default: embeddings are trained from scratch."""
    vocab_size: Words = 50000
    """Size of the vocabulary (the most frequent words)."""
    min_frequency: Positive = 2
    """Words with fewer occurrences in the training split are unknown."""
    lower: bool = True
    """Lower-case all words."""
    max_tokens: Positive = 64
    """Maximum words of a sentence; the rest is cut."""


class RankingRecipe(Recipe):
    """A recipe that trains a scorer to rank a text above its negatives, by an objective."""

    objective: Annotated[str, Mark.CLASS] = "contrastive"
    """The loss: a name (contrastive, pairwise), `package.module:Class` or `FILE.py:Class`."""
    margin: AtLeast0 = 0.1
    """The margin between a document and its negatives (equations 1 and 2)."""
    objective_settings: dict[str, Any] = Field(default_factory=dict, validate_default=True)
    """Settings of the objective other than `margin`."""

    @field_validator("objective")
    @classmethod
    def _check_objective(cls, name: str) -> str:
        OBJECTIVES.find(name)
        return name

    @field_validator("objective_settings")
    @classmethod
    def _check_objective_settings(
        cls, settings: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        """Return `settings` if the objective accepts them beside the recipe's margin; else raise.
        They are not checked if `objective` or `margin` is wrong, which is an error of its own."""
        if "margin" in settings:
            raise ValueError("margin is a setting of the recipe: set it there")
        if {"objective", "margin"} <= info.data.keys():
            _objective(info.data["objective"], info.data["margin"], settings)
        return settings

    def described(self, about: About, preset: Mapping[str, Any]) -> About:
        """Return `about` with the text on the objective that these settings name. If it is another
        one than the preset's, title, paper and published figure change too."""
        loss = self.loss
        negatives = amount(loss.negatives or getattr(self, "negatives", 0), "negative")
        sentence = loss.says or type(loss).summary()
        changes = {"objective": sentence.replace("{negatives}", negatives)}
        preset_objective = preset.get("objective", self.objective)
        if self.objective != preset_objective:
            changes["title"] = about.title.replace(
                preset_objective, without_folders(self.objective)
            )
            changes["paper"] = loss.paper or about.paper
            if about.tier == "paper":  # the row of the preset's own objective
                changes["published"] = ""
        return about.model_copy(update=changes)

    @property
    def loss(self) -> Objective:
        """The objective that the settings name, with `margin` and `objective_settings`."""
        return _objective(self.objective, self.margin, self.objective_settings)

    def configuration(self) -> str:
        return self.dataset_config or self.loss.config or self.config


def _objective(name: str, margin: float, settings: Mapping[str, Any]) -> Objective:
    """Return the objective called `name` with `settings`, and with `margin` if it has a margin."""
    objective = OBJECTIVES.find(name)
    margins = {"margin": margin} if "margin" in objective.model_fields else {}
    return objective.of({**margins, **settings})


class Suite(Declared):
    """An evaluation suite: its requirements on models and data. Its fields are its options."""

    needs: ClassVar[frozenset[str]] = frozenset()
    """Capabilities, one of which a model must have."""
    reads: ClassVar[tuple[Form, ...]] = ()
    """Forms of data; empty: it reads no built dataset."""
    config: ClassVar[str] = ""
    """The configuration that is read where none is named; "": the dataset's default one."""
    all_configs: ClassVar[bool] = False
    """True if it reads every configuration of a dataset that has one of the forms."""
    several: ClassVar[bool] = False
    """True if it reads a list of datasets."""
    splits: ClassVar[tuple[str, ...]] = ("test",)
    """The splits that must have rows."""
    builders: ClassVar[tuple[str, ...]] = ()
    """The builders of its datasets; empty: all with the right columns."""
    percent: ClassVar[bool] = True
    """True if its figures are shown as percentages."""

    def check_data(self, datasets: Mapping[str, str]) -> None:
        """Raise `ConfigError` if the options do not fit `datasets`, the builder of each by name."""

    def read(self, spec: str) -> Any:
        """Return the data at `spec` if the suite reads files itself; None if it is a dataset."""
        return None

    def evaluate(
        self, model: Any, data: Any, *, split: str = "test", seed: int = 0, limit: int = 0
    ) -> Result:
        """Return the result of a loaded model on loaded data: `limit` rows of a split (0: all).

        `zoo.evaluate.opening` loads both by folder or Hub id. `model` is what `needs` says: a
        `PairClassifier`, a `Scorer`, or an encoder. `data` is a `zoo.training.data.Dataset`, a
        mapping of several by configuration where the suite reads several, or what `read` returns.
        """
        raise NotImplementedError

    def unfit(self, model: Any) -> ConfigError:
        """Return the error for an object that lacks the capabilities which the suite needs."""
        kind = type(model).__name__
        hint = "give a model, a SentenceTransformer, Vectors(function) or Scores(function)"
        if isinstance(model, str | PurePath):
            hint = f"open it: zoo.evaluate.opening.open_model(suite, {str(model)!r})"
        return ConfigError(
            f"the suite {self.name or type(self).__name__} needs a model that "
            f"{' or '.join(sorted(self.needs))}; this is a {kind}",
            where=str(getattr(model, "name", kind)),
            hint=hint,
        )

    def write_files(self, result: Result, stem: Path) -> None:
        """Write the suite's pictures and tables, whose paths start with `stem` as the JSON's."""

    @classmethod
    def rows(cls, result: Result) -> Rows:
        """Return the rows of a table: the model's, named "", and those of its baselines.

        By default the model's row has every figure of the metrics, named by its path of keys.
        """
        from zoo.evaluate.table import every_cell

        return {"": every_cell(result.metrics)}

    @classmethod
    def tests(cls, one: Result, two: Result) -> Mapping[str, McNemar]:
        """Return the significance tests between two models' results, by the name of the figure."""
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
        "pretrained": "zoo.pretrained:Pretrained",
        "vectors": "zoo.pretrained:GivenVectors",
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
