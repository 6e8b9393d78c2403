"""The schemas of manifests and results: anybody may have written one, so its types are checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from corpora.licences import Combined
from corpora.outside import parse_json, read_json, record_of

BUILD = "remove the folder and build it again"


def _inside(path: str) -> str:
    """Return a relative path of a manifest; raises `ValueError` if it leads out of its folder."""
    if PurePosixPath(path).is_absolute() or ".." in re.split(r"[/\\]", path):
        raise ValueError("expected a path inside the folder")
    return path


def _text(value: Any) -> Any:
    """Return a number as text and None as ""; other values unchanged."""
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Inside = Annotated[str, AfterValidator(_inside)]
Text = Annotated[str, BeforeValidator(_text)]
"""A text; results of other projects may have a number or null in its place."""


class Shard(BaseModel):
    file: Inside
    sha256: str = ""


class Split(BaseModel):
    rows: int = 0
    shards: tuple[Shard, ...]


class Feature(BaseModel):
    """The type of a column, or of the values of a list; `names` are the names of its labels."""

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


class StageRecord(BaseModel):
    """The keys of a stage's record that are checked."""

    hash: str = ""
    settings: Mapping[str, Any] = {}
    publisher: Mapping[str, str] = {}


class SourceRecord(BaseModel):
    """The keys of a source's record that a publication reads."""

    name: str = ""
    spec: str = ""
    title: str = ""
    url: str = ""


class Details(BaseModel):
    settings: Mapping[str, Any] = {}


class Manifest(BaseModel):
    """A dataset's manifest has `configs` and licences; a model's has `files` with their sha256."""

    name: str = ""
    configs: Mapping[str, Configuration] = {}
    files: Mapping[Inside, str] = {}
    licence: Combined | None = None
    licences: Mapping[str, int] = {}
    languages: tuple[str, ...] = ()
    stage: StageRecord = StageRecord()
    sources: tuple[SourceRecord, ...] = ()
    details: Details = Details()
    rejects: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()


class DatasetRecord(BaseModel):
    """What results record of a dataset."""

    name: Text = ""
    config: Text = ""
    revision: Text = ""


class Model(BaseModel):
    name: Text = ""
    type: Text = ""


class Results(BaseModel):
    """The results of a training or an evaluation.

    `licences` are those of all that a model's weights come from: its data, and the models or
    vectors that it started from. `metrics` are checked by the suite that wrote them.
    """

    suite: Text = ""
    recipe: Text = ""
    headline: Text = ""
    split: Text = ""
    model: Model = Model()
    dataset: Mapping[str, Any] | list[Any] = Field(default_factory=dict)
    started_from: tuple[DatasetRecord, ...] = ()
    protocol: Mapping[str, Any] = {}
    metrics: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    examples: int | None = None
    licences: Mapping[str, tuple[str, ...]] = {}


def read_manifest(path: Path, hint: str = BUILD) -> dict[str, Any]:
    """Return the manifest in a file, unchanged. Raises `InputError` if it breaks the schema."""
    value = read_json(path, hint)
    record_of(Manifest, value, str(path), hint)
    return dict(value)


def read_results(path: Path) -> dict[str, Any]:
    """Return the results in a file, unchanged. Raises `InputError` if they break the schema."""
    value = read_json(path)
    record_of(Results, value, str(path))
    return dict(value)


def label_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """Return the names of the labels of each label column, from a Parquet schema's metadata.

    The Hub's library writes that metadata. Raises `InputError` for metadata of another form.
    """
    where = "the metadata of its schema"
    stored = parse_json((metadata or {}).get(b"huggingface", b"{}"), where=where)
    features = record_of(Described, stored, where).info.features
    return {
        name: [*feature.names]
        for name, feature in features.items()
        if isinstance(feature, Feature) and feature.names is not None
    }
