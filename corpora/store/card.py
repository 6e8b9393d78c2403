"""The card of a dataset (`README.md`), rendered from its manifest by a template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import pairwise
from string import Template
from typing import Any

from pydantic import BaseModel

from corpora.escape import fenced, line, markdown, table, yaml
from corpora.licences import shown

EXAMPLES = 2


@dataclass(frozen=True, slots=True)
class Card:
    """What a builder says about its dataset beyond the manifest.

    `summary` is what it is, `method` how a row comes about (with the paper's section),
    `fields` maps column names to their meaning, `configurations` those that there may be, where
    there are several, to what they hold; `limits` are known limits, `citation` BibTeX,
    `languages` what is said where no document says its own.
    """

    title: str
    summary: str
    method: str
    fields: Mapping[str, str]
    citation: str
    limits: Sequence[str] = ()
    configurations: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    task_categories: Sequence[str] = ("text-classification",)
    languages: Sequence[str] = ("en",)


def render(
    manifest: Mapping[str, Any],
    card: Card,
    builder: type[BaseModel] | None = None,
    audit: str = "",
) -> str:
    """The text of `README.md`: YAML for the Hub, then Markdown for people.

    What a setting means is said by the field of the `builder`; `audit` is Markdown.
    """
    from huggingface_hub import DatasetCardData

    configs, stage, licence = manifest["configs"], manifest["stage"], manifest["licence"]
    sources = [
        (source_name(s), s.get("revision") or s.get("sha256", "")[:16], shown(s.get("licence", "")))
        for s in manifest["sources"]
    ]
    verdict = "may" if licence["redistributable"] else "**may not**"
    reason = f": {licence['reason']}" if licence["reason"] else ""
    made_by = [f"stage `{stage['name']}`, version {stage['version']}, hash `{stage['hash']}`"]
    made_by += [f"parser `{manifest['parser']}`"] if manifest["parser"] else []
    made_by += [
        f"{name} `{str(value)[:16]}`" for name, value in stage.get("extraction", {}).items()
    ]
    made_by += [f"{library} {version}" for library, version in manifest["versions"].items()]
    # What the builder used, defaults included; what the stage was given, if it does not say.
    settings = manifest["details"].get("settings", stage["settings"])
    fields = {} if builder is None else builder.model_fields
    meanings = {name: " ".join((field.description or "").split()) for name, field in fields.items()}
    meanings["seed"] = "The seed of every random stream."
    default = any(config["default"] for config in configs.values())
    loading = f'"{manifest["name"]}"' + ("" if default else f', "{next(iter(configs))}"')
    counts = [
        (config, split, entry["rows"], entry["distinct"], len(entry["shards"]))
        for config, body in configs.items()
        for split, entry in body["splits"].items()
    ]
    overlap = [
        (config, pair, n)
        for config, pairs in manifest["overlap"].items()
        for pair, n in pairs.items()
    ]
    values = [
        (name, json.dumps(value, ensure_ascii=False), meanings.get(name, ""))
        for name, value in sorted(settings.items())
    ]
    template = resources.files("corpora").joinpath("templates", "dataset.md")
    return Template(template.read_text(encoding="utf-8")).substitute(
        front_matter=yaml(DatasetCardData(**front_matter(manifest, card)).to_dict()),
        title=markdown(stage["title"]) or card.title,
        summary="\n\n".join(filter(None, (markdown(stage["description"]), card.summary))),
        method=card.method,
        loading=f"load_dataset({loading})  # configurations: {', '.join(configs)}",
        fields=table("column, meaning", card.fields.items()),
        counts=table("configuration, split, rows, distinct, files", counts),
        configurations="\n".join(
            f"- `{name}`: {card.configurations[name]}"
            for name in configs
            if name in card.configurations
        ),
        labels=_labels(configs),
        notes=_list(manifest["notes"]),
        groups=table(
            "split, books, files or documents",
            [(split, ", ".join(names)) for split, names in manifest["groups"].items()],
        ),
        publisher=_publisher(stage["publisher"]),
        examples=_examples(configs),
        rejects=table("reason, left out", manifest["rejects"].items()) or "Nothing was left out.",
        extraction=_extraction(manifest["extraction_rejects"]),
        audit=audit or "Not audited.",
        overlap=table("configuration, splits, distinct texts in both", overlap) or "None.",
        sources=table("source, revision, licence", sources) or "No source was named.",
        credits=_credits(manifest),
        build=_folded("The build file", fenced(stage["build"], "toml")) if stage["build"] else "",
        licence=f"{licence['id']}, from sources under {', '.join(licence['sources'])}. "
        f"It {verdict} be passed on{reason}.",
        command=line(stage["command"]) or "(not recorded)",
        settings=table("setting, value, meaning", values),
        stage="; ".join(made_by),
        limits=_list(card.limits),
        citation="\n\n".join(
            fenced(text.strip(), "bibtex")
            for text in (stage["publisher"].get("citation", ""), card.citation)
            if text.strip()
        ),
    )


def front_matter(manifest: Mapping[str, Any], card: Card) -> dict[str, Any]:
    """The card's metadata as the Hub and `datasets` read it.

    Each configuration is described by the stage's hash: the cache of `datasets` is keyed by the
    folder's name and this metadata, so without it a second build under one name would read the
    rows of the first. The size is that of the default configuration, of which others are subsets;
    without one it is that of all together.
    """
    from datasets import Features

    configs, licence = manifest["configs"], manifest["licence"]
    data_files, about, rows = [], [], {False: 0, True: 0}
    for name, config in configs.items():
        # The splits that have rows: the others have no file, and `datasets` must not expect one.
        filled = {split: entry for split, entry in config["splits"].items() if entry["rows"]}
        rows[config["default"]] += sum(entry["rows"] for entry in filled.values())
        files = {
            "config_name": name,
            "description": f"discorpora build {manifest['stage']['hash']}",
            "data_files": [{"split": s, "path": f"{name}/{s}-*.parquet"} for s in filled],
        }
        data_files.append(files | ({"default": True} if config["default"] else {}))
        shards = (shard for entry in filled.values() for shard in entry["shards"])
        about.append(
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
    size = rows[True] or rows[False]
    steps = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B")
    sizes = [f"n<{steps[0]}", *(f"{low}<n<{high}" for low, high in pairwise(steps))]
    return {
        "pretty_name": line(manifest["stage"].get("title", "")) or card.title,
        "license": licence["hub"],
        **({"license_name": licence["id"].lower()} if licence["hub"] == "other" else {}),
        "language": list(manifest["languages"]),
        "task_categories": list(card.task_categories),
        "tags": ["discourse", "discorpora", *card.tags],
        "size_categories": [sizes[min(max(len(str(size)) - 3, 0), len(sizes) - 1)]],
        "configs": data_files,
        "dataset_info": about,
    }


def source_name(source: Mapping[str, Any]) -> str:
    """What a source is called: `kind:place`, with the name of its build file before it."""
    spec = source.get("spec") or f"{source.get('kind', '')}:{source.get('place', '')}"
    return f"{source['name']} ({spec})" if source.get("name") else str(spec)


def _labels(configs: Mapping[str, Any]) -> str:
    blocks = []
    for config, body in configs.items():
        splits = body["splits"]
        for column, names in next(iter(splits.values()))["labels"].items():
            rows = [(name, *(e["labels"][column][name] for e in splits.values())) for name in names]
            shown = table(", ".join(["label", *splits]), rows)
            blocks.append(f"`{config}`, column `{column}`:\n\n{shown}")
    return "\n\n".join(blocks) or "No labels."


def _examples(configs: Mapping[str, Any]) -> str:
    """Two rows of each configuration with other columns than those before it, with labels by
    their names."""
    blocks: list[str] = []
    shown: list[set[str]] = []
    for config, body in configs.items():
        if {*body["features"]} in shown:
            continue
        shown.append({*body["features"]})
        rows = [row for entry in body["splits"].values() for row in entry["examples"]]
        for key, feature in body["features"].items():
            if "names" in feature:
                rows = [{**row, key: feature["names"][row[key]]} for row in rows]
        texts = json.dumps(rows[:EXAMPLES], ensure_ascii=False, indent=1)
        blocks.append(f"`{config}`:\n\n{fenced(texts, 'json')}")
    return "\n\n".join(blocks)


def _credits(manifest: Mapping[str, Any]) -> str:
    """What is said of the sources, and the documents with an author or an address."""
    about = []
    for source in manifest["sources"]:
        title, authors = source.get("title", ""), ", ".join(source.get("authors", ()))
        parts = [f"*{title}*" if title else "", authors, source.get("url", "")]
        said = [", ".join(filter(None, parts)), source.get("description", "")]
        said += [f"To be had: {source['get']}" if source.get("get") else ""]
        if text := ". ".join(part.rstrip(". ") for part in said if part):
            about.append(f"**{source_name(source)}**: {text}.")
    blocks = [_list(about)] if about else []
    if named := manifest["attribution"]:
        keys = ("title", "author", "url", "licence")
        rows = [
            [work[key] or work["id"] * (key == "title") for key in keys] for work in named["first"]
        ]
        head = f"{named['documents']:,} documents behind the rows have an author or an address; "
        head += "`attribution.parquet` lists them"
        head += f", here are the first {len(rows)}" if named["documents"] > len(rows) else ""
        blocks.append(f"{head}.\n\n{_folded('Documents', table(', '.join(keys), rows))}")
    return "\n\n".join(blocks)


def _publisher(said: Mapping[str, str]) -> str:
    names = {"name": "Published by", "contact": "contact"}
    parts = [f"{names[key]} {markdown(said[key])}" for key in names if said.get(key)]
    return f"{', '.join(parts)}." if parts else ""


def _extraction(rejects: Sequence[tuple[str, int, str]]) -> str:
    """The candidates that the extraction of pairs rejected, the most frequent reason first."""
    rows = sorted(rejects, key=lambda row: (-row[1], row[0]))
    shown = table("reason, candidates, meaning", rows)
    return f"### Rejected by the extraction\n\n{shown}" if rows else ""


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {markdown(item)}" for item in items) or "Nothing."
