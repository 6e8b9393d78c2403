"""The card of a dataset (`README.md`), rendered from its manifest by a template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from corpora.escape import fenced, line, markdown, markdown_cell, markdown_table, yaml
from corpora.licences import shown

if TYPE_CHECKING:
    from jinja2 import Environment

EXAMPLES = 2
EVAL_FILE = "eval.yaml"
"""Makes a dataset repository a benchmark on the Hub."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a builder says about its dataset beyond the manifest.

    - `summary`: what the dataset is
    - `use`: what it is good for, and what it is not for
    - `method`: how a row is made, with the paper's section
    - `fields`: the meaning of each column, by name
    - `configurations`: the content of each possible configuration, if there are several
    - `reasons`: the meaning of each reason for rejecting candidates, in one line
    - `limits`: known limits
    - `citation`: BibTeX
    - `languages`: the languages if no document names its own
    - `benchmark`: whether the dataset is to judge models on, not to train them
    """

    title: str
    summary: str
    method: str
    fields: Mapping[str, str]
    citation: str
    use: str = ""
    limits: Sequence[str] = ()
    configurations: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    task_categories: Sequence[str] = ("text-classification",)
    languages: Sequence[str] = ("en",)
    benchmark: bool = False


def render(
    manifest: Mapping[str, Any],
    card: Card,
    builder: type[BaseModel] | None = None,
    audit: str = "",
) -> str:
    """Return the text of `README.md`: YAML for the Hub, then Markdown for people.

    The meanings of the settings are those of the fields of `builder`; `audit` is Markdown.
    """
    from huggingface_hub import DatasetCardData

    fields = {} if builder is None else builder.model_fields
    values = {
        "card": card,
        "audit": audit,
        "front_matter": yaml(DatasetCardData(**front_matter(manifest, card)).to_dict()),
        "credits": [*_credits(manifest["sources"])],
        "examples": [*_examples(manifest["configs"])],
        # The builder's settings, defaults included; those of the stage if the builder has none.
        "settings": manifest["details"].get("settings", manifest["stage"]["settings"]),
        "build_files": any(file.startswith("build_files/") for file in manifest["files"]),
        "meanings": {
            name: " ".join((field.description or "").split()) for name, field in fields.items()
        }
        | {"seed": "The seed of every random stream."},
    }
    return from_template("dataset.md", {**manifest, **values})


def benchmark_of(manifest: Mapping[str, Any], card: Card) -> dict[str, Any] | None:
    """Return the contents of `eval.yaml` in the Hub's form: each configuration with test rows is a
    task, whose id is its name. None for a dataset that is no benchmark, or without test rows.
    """
    tasks = [
        {"id": name, "config": name, "split": "test"}
        for name, config in manifest["configs"].items()
        if config["splits"].get("test", {}).get("rows")
    ]
    if not card.benchmark or not tasks:
        return None
    return {
        "name": line(manifest["stage"].get("title", "")) or card.title,
        "description": card.summary,
        "evaluation_framework": "discorpora",
        "tasks": tasks,
    }


def from_template(name: str, values: Mapping[str, Any]) -> str:
    """Return the Markdown that a template gives with these values; filters escape foreign text."""
    text = _environment().get_template(name).render(values)
    return re.sub(r"\n{3,}", "\n\n", text)  # a part without content leaves blank lines


@cache
def _environment() -> Environment:
    """Return the environment of the templates, each compiled once in a process."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("corpora"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "markdown": markdown,
        "cell": markdown_cell,
        "line": line,
        "table": markdown_table,
    }
    environment.filters |= {"fenced": fenced, "source_name": source_name, "licence": shown}
    environment.filters["json"] = partial(json.dumps, ensure_ascii=False)
    return environment


def front_matter(manifest: Mapping[str, Any], card: Card) -> dict[str, Any]:
    """Return the card's metadata, as the Hub and `datasets` read it.

    The description of a configuration has the stage's hash: the cache of `datasets` is keyed by the
    folder's name and this metadata, so without it a second build under one name would read the
    rows of the first. The size is that of the default configuration, of which others are subsets;
    without a default it is that of all configurations.
    """
    from datasets import Features

    # The files, features and sizes of each configuration
    configs, licence = manifest["configs"], manifest["licence"]
    data_files, dataset_info = [], []
    rows_by_default = {True: 0, False: 0}  # of the default configuration, and of the others
    for name, config in configs.items():
        # Only splits with rows: the others have no file, and `datasets` must not expect one.
        filled = {split: entry for split, entry in config["splits"].items() if entry["rows"]}
        rows_by_default[config["default"]] += sum(entry["rows"] for entry in filled.values())
        files = {
            "config_name": name,
            "description": f"discorpora build {manifest['stage']['hash']}",
            "data_files": [{"split": s, "path": f"{name}/{s}-*.parquet"} for s in filled],
        }
        data_files.append(files | ({"default": True} if config["default"] else {}))
        shards = (shard for entry in filled.values() for shard in entry["shards"])
        dataset_info.append(
            {
                "config_name": name,
                "features": Features.from_dict(config["features"])._to_yaml_list(),
                "splits": [
                    {"name": split, "num_bytes": entry["bytes"], "num_examples": entry["rows"]}
                    for split, entry in filled.items()
                ],
                "download_size": sum(shard["bytes"] for shard in shards),
                "dataset_size": sum(entry["bytes"] for entry in filled.values()),
            }
        )
    # The Hub's size class
    size = rows_by_default[True] or rows_by_default[False]
    sizes = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M"]
    sizes += ["1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B"]
    return {
        "pretty_name": line(manifest["stage"].get("title", "")) or card.title,
        "license": licence["hub"],
        **({"license_name": licence["id"].lower()} if licence["hub"] == "other" else {}),
        "language": list(manifest["languages"]),
        "task_categories": list(card.task_categories),
        "tags": ["discourse", "discorpora", *card.tags],
        "size_categories": [sizes[min(max(len(str(size)) - 3, 0), len(sizes) - 1)]],
        "configs": data_files,
        "dataset_info": dataset_info,
    }


def source_name(source: Mapping[str, Any]) -> str:
    """Return the name of a source for people: `kind:place`, or `NAME (kind:place)`."""
    spec = source.get("spec") or f"{source.get('kind', '')}:{source.get('place', '')}"
    return f"{source['name']} ({spec})" if source.get("name") else str(spec)


def _examples(configs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and two rows, as JSON, of each configuration whose columns are new."""
    shown_columns: list[set[str]] = []
    for config, body in configs.items():
        if {*body["features"]} in shown_columns:
            continue
        shown_columns.append({*body["features"]})
        rows = [row for entry in body["splits"].values() for row in entry["examples"]]
        for key, feature in body["features"].items():
            if "names" in feature:
                rows = [{**row, key: feature["names"][row[key]]} for row in rows]
        yield config, json.dumps(rows[:EXAMPLES], ensure_ascii=False, indent=1)


def _credits(sources: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line of Markdown for each source that has a title, authors or other details."""
    for source in sources:
        title, get = source.get("title"), source.get("get")
        work = (f"*{title}*" if title else "", *source.get("authors", ()), source.get("url"))
        access = f"To be had: {get}" if get else ""
        sentences = (", ".join(filter(None, work)), source.get("description"), access)
        if text := ". ".join(sentence.rstrip(". ") for sentence in sentences if sentence):
            yield f"**{source_name(source)}**: {text}."
