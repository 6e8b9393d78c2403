"""Recipes that train nothing: a build evaluates existing encoders beside the models it trains."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import field_validator

from zoo.declared import ENCODES, GOES_ON, Mark, Place, Positive, Recipe

if TYPE_CHECKING:
    from zoo.training.job import Job

FILES = ("*.safetensors", "*.json", "tokenizer*", "vocab*", "merges*", "*.model")
"""Patterns of the files from which an encoder is loaded."""
KINDS = (".py", ".parquet")
"""The suffixes of files that give vectors."""


class Untrained(Recipe):
    """A model without training, which has no dataset."""

    trains: ClassVar[bool] = False
    splits: ClassVar[tuple[str, ...]] = ()
    paper: ClassVar[str] = "the encoder's own"

    dataset: Annotated[str, Mark.NOT_COUNTED] = ""
    """Nothing: it does not train."""
    seed: Annotated[int, Mark.NOT_COUNTED] = 0
    """Changes nothing."""
    threads: Annotated[Positive, Mark.NOT_COUNTED] = 1
    """Changes nothing."""

    def write_results(self, job: Job, **more: Any) -> None:
        """Write results.json, with the recipe, its files, their licences, and `more` entries."""
        from corpora.code import versions
        from corpora.store.atomic import write_json
        from zoo.training.finishing import origins_of
        from zoo.training.job import LIBRARIES, RESULTS

        places = {key: job.identity[key] for key in self.marked(Mark.PLACE)}
        results = {
            "recipe": job.name,
            "settings": places,
            "trained_on": 0,
            "versions": versions(*LIBRARIES),
            "licences": origins_of(self),
        }
        write_json(job.folder / RESULTS, {**results, **more})


class Pretrained(Untrained):
    """A pretrained encoder without training: its files are copied, and it has no dataset."""

    can: ClassVar[frozenset[str]] = frozenset({ENCODES, GOES_ON})

    backbone: Place
    """A pretrained encoder: a folder or a Hub id that `AutoModel` loads."""

    def train(self, job: Job) -> None:
        """Copy the encoder's files into `job.folder`; write its type and size to results.json.

        Raises `ConfigError` or `InputError` for a backbone that is not an encoder of texts, or
        cannot be loaded.
        """
        from huggingface_hub import snapshot_download

        from corpora.store.atomic import MANIFEST
        from zoo.backbones import load_backbone, tokenizer_of
        from zoo.modeling import parameter_count
        from zoo.training.job import RESULTS

        encoder = load_backbone(self.backbone, {})
        tokenizer_of(self.backbone)
        folder = Path(self.backbone)
        if not folder.is_dir():
            folder = Path(snapshot_download(self.backbone, allow_patterns=[*FILES]))
        for path in sorted({path for pattern in FILES for path in folder.glob(pattern)}):
            if path.is_file() and path.name not in (MANIFEST, RESULTS):
                shutil.copyfile(path, job.folder / path.name)
        model_type, parameters = encoder.config.model_type, parameter_count(encoder)
        self.write_results(job, model_type=model_type, parameters=parameters)


class GivenVectors(Untrained):
    """The vectors of another program: a function of texts, or a file of texts and vectors."""

    can: ClassVar[frozenset[str]] = frozenset({ENCODES})

    vectors: Place
    """A Python file with a function `encode`, from a list of texts to vectors `[texts, dim]`; or a
    Parquet file with the columns `text` and `vector`."""

    @field_validator("vectors")
    @classmethod
    def _check_suffix(cls, name: str) -> str:
        if not name.endswith(KINDS):
            raise ValueError("expected a file *.py with a function `encode`, or *.parquet")
        return name

    @property
    def file(self) -> str:
        return f"vectors{Path(self.vectors).suffix}"

    def train(self, job: Job) -> None:
        """Copy the file of vectors into `job.folder`, under the name that suites open.

        Raises `ConfigError` or `InputError` for a file without a function `encode` or vectors.
        """
        from zoo.evaluate.encoders import load_vectors

        load_vectors(Path(self.vectors))
        shutil.copyfile(self.vectors, job.folder / self.file)
        self.write_results(job, model_type="vectors")
