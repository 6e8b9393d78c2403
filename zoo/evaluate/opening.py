"""Opening a model and data by folder or Hub id, as a suite evaluates them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zoo.declared import CLASSIFIES, ENCODES, GOES_ON, SCORES, Suite
from zoo.training.data import open_configs, open_dataset, split_spec


def open_model(suite: Suite, name: str, *, seed: int = 0, batch_size: int = 64) -> Any:
    """The model in a folder or of a Hub id as `suite.needs` says; `baseline:RULE` for a scorer.

    Raises `InputError` for a model of another kind.
    """
    if Path(name).name in ("", ".."):  # no name for the tables
        name = str(Path(name).resolve())
    if SCORES in suite.needs:
        from zoo.evaluate.scorers import load_scorer

        return load_scorer(name, seed)
    if CLASSIFIES in suite.needs:
        from zoo.evaluate.classification import PairClassifier, classifier_class

        if ENCODES not in suite.needs or classifier_class(name):
            return PairClassifier.load(name, batch_size)
    if ENCODES in suite.needs:
        from zoo.evaluate.encoders import load_encoder

        return load_encoder(
            name, **suite.model_dump(include={"representation", "cache", "dtype", "batch_tokens"})
        )
    if GOES_ON in suite.needs:
        from zoo.evaluate.superglue_training import Start

        return Start.load(name, batch_size)
    return name


def open_data(suite: Suite, spec: str, split: str = "test") -> Any:
    """The data of a folder or Hub id, `@CONFIG` for its configuration, as the suite reads it.

    That is what `suite.read` gives, else one dataset, or a mapping of several by configuration.
    """
    data = suite.read(spec)
    if data is not None:
        return data
    if suite.all_configs:
        config, several = open_configs(spec)
        return several[0] if config else {each.config: each for each in several}
    place, config = split_spec(spec)
    opened = open_dataset(place, config or suite.config, {"test": split})
    beside = {name for form in suite.reads for name in form.beside} - {opened.config}
    if not beside:
        return opened
    others = {name: open_dataset(place, name, {"test": split}) for name in sorted(beside)}
    return {opened.config: opened, **others}
