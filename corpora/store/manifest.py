"""What is read of a manifest or of results, whoever wrote them: of other types neither is taken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from corpora.licences import Combined
from corpora.outside import parsed, read_json, record_of

BUILD = "remove the folder and build it again"


def _inside(path: str) -> str:
    """A path in the manifest's own folder: with the folder put before it, nothing else is read."""
    if PurePosixPath(path).is_absolute() or ".." in re.split(r"[/\\]", path):
        raise ValueError("expected a path inside the folder")
    return path


def _text(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Inside = Annotated[str, AfterValidator(_inside)]
Text = Annotated[str, BeforeValidator(_text)]
"""A text, or what stands for one in results of other projects: a number, or null."""


class Shard(BaseModel):
    file: Inside
    sha256: str = ""


class Split(BaseModel):
    rows: int = 0
    shards: tuple[Shard, ...]


class Feature(BaseModel):
    """A column, or the values in it; of a column of labels `names` are their names."""

    names: tuple[str, ...] | None = None


class Info(BaseModel):
    features: Mapping[str, Feature | list[Any]] = {}


class Described(BaseModel):
    """The key `huggingface` of a schema's metadata."""

    info: Info = Info()


class Configuration(BaseModel):
    splits: Mapping[str, Split]
    features: Mapping[str, Feature | list[Any]]
    default: bool = False


class Made(BaseModel):
    hash: str = ""
    settings: Mapping[str, Any] = {}
    publisher: Mapping[str, str] = {}


class Read(BaseModel):
    """A source, as far as a publication reads it."""

    name: str = ""
    spec: str = ""
    title: str = ""
    url: str = ""


class Details(BaseModel):
    settings: Mapping[str, Any] = {}


class Manifest(BaseModel):
    """A dataset's has `configs` and licences; a model's has `files`, each with its sha256."""

    name: str = ""
    configs: Mapping[str, Configuration] = {}
    files: Mapping[Inside, str] = {}
    licence: Combined | None = None
    licences: Mapping[str, int] = {}
    languages: tuple[str, ...] = ()
    stage: Made = Made()
    sources: tuple[Read, ...] = ()
    details: Details = Details()
    rejects: Mapping[str, int] = {}


class About(BaseModel):
    """What results say of a dataset."""

    name: Text = ""
    config: Text = ""
    revision: Text = ""


class Model(BaseModel):
    name: Text = ""
    type: Text = ""


class Results(BaseModel):
    """The results of a training or an evaluation.

    `licences` are those of all that a model's weights come from: its data, and the models or
    vectors that it started from. `metrics` is read further by the suite that made them.
    """

    suite: Text = ""
    recipe: Text = ""
    headline: Text = ""
    split: Text = ""
    model: Model = Model()
    dataset: Mapping[str, Any] | list[Any] = Field(default_factory=dict)
    started_from: tuple[About, ...] = ()
    protocol: Mapping[str, Any] = {}
    metrics: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    examples: int | None = None
    licences: Mapping[str, tuple[str, ...]] = {}


def read_manifest(path: Path, hint: str = BUILD) -> dict[str, Any]:
    """A manifest as it stands in its file. Raises `InputError` for one of another form."""
    value = read_json(path, hint)
    record_of(Manifest, value, str(path), hint)
    return dict(value)


def read_results(path: Path) -> dict[str, Any]:
    """Results as they stand in their file. Raises `InputError` for what has another form."""
    value = read_json(path)
    record_of(Results, value, str(path))
    return dict(value)


def label_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names of each column of labels, from the metadata that the Hub's library writes.

    Raises `InputError` for metadata of another form.
    """
    stored = parsed((metadata or {}).get(b"huggingface", b"{}"), where="the metadata of its schema")
    features = record_of(Described, stored, "the metadata of its schema").info.features
    named = {name: about for name, about in features.items() if isinstance(about, Feature)}
    return {name: [*about.names] for name, about in named.items() if about.names is not None}
