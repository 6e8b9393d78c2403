"""Opening the model and the data of an evaluation by folder or Hub id, as its suite needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpora.outside import split_config
from zoo.declared import CLASSIFIES, ENCODES, GOES_ON, SCORES, Suite
from zoo.evaluate.scorers import BASELINE
from zoo.pretrained import KINDS
from zoo.training.data import open_configs, open_dataset


def open_model(suite: Suite, name: str, *, seed: int = 0, batch_size: int = 64) -> Any:
    """Load the model in a folder or of a Hub id as the kind of object that `suite` needs.

    `name` may also be a rule, `baseline:RULE`, if the suite needs a scorer or vectors; if it needs
    vectors, a file as `load_vectors` takes it. Raises `InputError` for a model of another kind.
    """
    if Path(name).name in ("", ".."):  # tables need a name
        name = str(Path(name).resolve())
    if ENCODES in suite.needs and name.startswith(BASELINE):
        from zoo.evaluate.encoders import baseline_encoder

        return baseline_encoder(name.removeprefix(BASELINE))
    if ENCODES in suite.needs and name.endswith(KINDS) and Path(name).is_file():
        from zoo.evaluate.encoders import load_vectors

        return load_vectors(Path(name))
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
    if GOES_ON in suite.needs:  # the suite trains the model further
        from zoo.evaluate.superglue_training import Start

        return Start.load(name, batch_size)
    return name


def open_data(suite: Suite, spec: str, split: str = "test") -> Any:
    """Open the data of a folder or Hub id as `suite` reads them; `@CONFIG` names a configuration.

    Returns what the suite's own `read` returns, if that is not None; otherwise a dataset, or a
    mapping of datasets by configuration if the suite reads several.
    """
    data = suite.read(spec)
    if data is not None:
        return data
    if suite.all_configs:
        config, datasets = open_configs(spec)
        return datasets[0] if config else {each.config: each for each in datasets}
    folder, config = split_config(spec)
    dataset = open_dataset(folder, config or suite.config, {"test": split})
    other_configs = {name for form in suite.reads for name in form.beside} - {dataset.config}
    if not other_configs:
        return dataset
    others = {name: open_dataset(folder, name, {"test": split}) for name in sorted(other_configs)}
    return {dataset.config: dataset, **others}
