"""A pretrained encoder as it is, so that a build judges it beside the models that it trains."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from zoo.declared import ENCODES, GOES_ON, Mark, Place, Positive, Recipe

if TYPE_CHECKING:
    from zoo.training.job import Job

FILES = ("*.safetensors", "*.json", "tokenizer*", "vocab*", "merges*", "*.model")
"""What an encoder is loaded from."""


class Pretrained(Recipe):
    """A pretrained encoder without training: its files are copied, and it has no dataset."""

    trains: ClassVar[bool] = False
    splits: ClassVar[tuple[str, ...]] = ()
    can: ClassVar[frozenset[str]] = frozenset({ENCODES, GOES_ON})
    paper: ClassVar[str] = "the encoder's own"

    backbone: Place
    """A pretrained encoder: a folder or a Hub id that `AutoModel` loads."""
    dataset: Annotated[str, Mark.NOT_COUNTED] = ""
    """Nothing: it does not train."""
    seed: Annotated[int, Mark.NOT_COUNTED] = 0
    """Changes nothing."""
    threads: Annotated[Positive, Mark.NOT_COUNTED] = 1
    """Changes nothing."""

    def train(self, job: Job) -> None:
        """Copy the encoder's files into `job.folder`, and say in results.json what it is.

        Raises `ConfigError` or `InputError` for a backbone that is not an encoder of texts, or
        cannot be loaded.
        """
        from huggingface_hub import snapshot_download

        from corpora.code import versions
        from corpora.store.atomic import MANIFEST, write_json
        from zoo.backbones import load_backbone, tokenizer_of
        from zoo.modeling import parameter_count
        from zoo.training.finishing import origins_of
        from zoo.training.job import LIBRARIES, RESULTS

        encoder = load_backbone(self.backbone, {})
        tokenizer_of(self.backbone)
        folder = Path(self.backbone)
        if not folder.is_dir():
            folder = Path(snapshot_download(self.backbone, allow_patterns=[*FILES]))
        for path in sorted({path for pattern in FILES for path in folder.glob(pattern)}):
            if path.is_file() and path.name not in (MANIFEST, RESULTS):
                shutil.copyfile(path, job.folder / path.name)
        results = {
            "recipe": job.name,
            "settings": {"backbone": job.identity["backbone"]},
            "trained_on": 0,
            "versions": versions(*LIBRARIES),
            "model_type": encoder.config.model_type,
            "licences": origins_of(self),
            "parameters": parameter_count(encoder),
        }
        write_json(job.folder / RESULTS, results)
