"""The card of a dataset (`README.md`), rendered from its manifest by a template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from string import Template
from typing import Any

from corpora.licences import shown


@dataclass(frozen=True, slots=True)
class Card:
    """What a builder says about its dataset beyond the manifest.

    `summary` is what it is, `method` how a row comes about (with the paper's section),
    `fields` maps column names to their meaning, `limits` are known limits, `citation` BibTeX,
    `languages` what is said where no document says its own.
    """

    title: str
    summary: str
    method: str
    fields: Mapping[str, str]
    citation: str
    limits: Sequence[str] = ()
    tags: Sequence[str] = ()
    task_categories: Sequence[str] = ("text-classification",)
    languages: Sequence[str] = ("en",)


def render(manifest: Mapping[str, Any], card: Card) -> str:
    """The text of `README.md`: YAML for the Hub, then Markdown for people."""
    template = resources.files("corpora").joinpath("templates", "dataset.md")
    return Template(template.read_text(encoding="utf-8")).substitute(
        front_matter=_yaml(front_matter(manifest, card)),
        title=card.title,
        summary=card.summary,
        method=card.method,
        loading=_loading(manifest),
        fields=_table(["column", "meaning"], card.fields.items()),
        counts=_counts(manifest),
        labels=_labels(manifest),
        notes=_list(manifest["notes"]),
        examples=_examples(manifest),
        rejects=_rejects(manifest),
        overlap=_overlap(manifest),
        sources=_sources(manifest),
        licence=_licence(manifest),
        command=manifest["stage"]["command"] or "(not recorded)",
        settings=_settings(manifest),
        stage=_stage(manifest),
        limits=_list(card.limits),
        citation=card.citation.strip(),
    )


def front_matter(manifest: Mapping[str, Any], card: Card) -> dict[str, Any]:
    """The card's metadata as the Hub and `datasets` read it.

    Each configuration is described by the stage's hash: the cache of `datasets` is keyed by the
    folder's name and this metadata, so without it a second build under one name would read the
    rows of the first.
    """
    configs = manifest["configs"]
    rows = sum(split["rows"] for config in configs.values() for split in config["splits"].values())
    return {
        "pretty_name": card.title,
        "license": manifest["licence"]["hub"],
        **_licence_name(manifest),
        "language": list(manifest["languages"]),
        "task_categories": list(card.task_categories),
        "tags": ["discourse", "discorpora", *card.tags],
        "size_categories": [_size_category(rows)],
        "configs": [_config(name, c, manifest["stage"]["hash"]) for name, c in configs.items()],
        "dataset_info": [_info(name, config) for name, config in configs.items()],
    }


def _licence_name(manifest: Mapping[str, Any]) -> dict[str, str]:
    licence = manifest["licence"]
    return {"license_name": licence["id"].lower()} if licence["hub"] == "other" else {}


def _config(name: str, config: Mapping[str, Any], stage_hash: str) -> dict[str, Any]:
    files = [{"split": s, "path": f"{name}/{s}-*.parquet"} for s in _filled(config)]
    default = {"default": True} if config["default"] else {}
    return {"config_name": name, "description": stage_hash, "data_files": files, **default}


def _info(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    from datasets import Features

    features = Features.from_dict(config["features"])
    splits = [
        {"name": split, "num_bytes": entry["bytes"], "num_examples": entry["rows"]}
        for split, entry in _filled(config).items()
    ]
    size = sum(shard["bytes"] for s in config["splits"].values() for shard in s["shards"])
    return {
        "config_name": name,
        "features": features._to_yaml_list(),
        "splits": splits,
        "download_size": size,
        "dataset_size": sum(split["num_bytes"] for split in splits),
    }


def _filled(config: Mapping[str, Any]) -> dict[str, Any]:
    """The splits that have rows; the others have no file, and `datasets` must not expect one."""
    return {split: entry for split, entry in config["splits"].items() if entry["rows"]}


def _size_category(rows: int) -> str:
    steps = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B")
    names = [f"n<{steps[0]}", *(f"{low}<n<{high}" for low, high in pairwise(steps))]
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def _yaml(value: Mapping[str, Any]) -> str:
    from huggingface_hub import DatasetCardData

    return str(DatasetCardData(**value).to_yaml()).strip()


def _loading(manifest: Mapping[str, Any]) -> str:
    configs = manifest["configs"]
    default = [name for name, config in configs.items() if config["default"]]
    name = (default or list(configs))[0]
    named = "" if default else f', "{name}"'
    return f'load_dataset("{manifest["name"]}"{named})  # configurations: {", ".join(configs)}'


def _counts(manifest: Mapping[str, Any]) -> str:
    rows = [
        (config, split, f"{entry['rows']:,}", len(entry["shards"]))
        for config, body in manifest["configs"].items()
        for split, entry in body["splits"].items()
    ]
    return _table(["configuration", "split", "rows", "files"], rows)


def _labels(manifest: Mapping[str, Any]) -> str:
    blocks = []
    for config, body in manifest["configs"].items():
        splits = body["splits"]
        for column in next(iter(splits.values()))["labels"]:
            table = {split: entry["labels"][column] for split, entry in splits.items()}
            names = next(iter(table.values()))
            rows = [(n, *(f"{table[split][n]:,}" for split in table)) for n in names]
            blocks.append(f"`{config}`, column `{column}`:\n\n{_table(['label', *table], rows)}")
    return "\n\n".join(blocks) or "No labels."


def _examples(manifest: Mapping[str, Any]) -> str:
    blocks = []
    for config, body in manifest["configs"].items():
        entries = body["splits"].values()
        first = next((e["examples"][0] for e in entries if e["examples"]), None)
        if first is not None:
            named = {key: _named(value, body["features"][key]) for key, value in first.items()}
            text = json.dumps(named, ensure_ascii=False, indent=1)
            blocks.append(f"`{config}`:\n\n```json\n{text}\n```")
    return "\n\n".join(blocks) or "No rows."


def _named(value: Any, feature: Mapping[str, Any]) -> Any:
    """A label by its name, so that an example can be read without the table of labels."""
    return feature["names"][value] if "names" in feature else value


def _rejects(manifest: Mapping[str, Any]) -> str:
    rows = [(reason, f"{n:,}") for reason, n in manifest["rejects"].items()]
    return _table(["reason", "left out"], rows) if rows else "Nothing was left out."


def _overlap(manifest: Mapping[str, Any]) -> str:
    rows = [
        (config, pair, f"{n:,}")
        for config, pairs in manifest["overlap"].items()
        for pair, n in pairs.items()
    ]
    return _table(["configuration", "splits", "distinct texts in both"], rows) if rows else "None."


def _sources(manifest: Mapping[str, Any]) -> str:
    rows = [
        (source_name(s), s.get("revision") or s.get("sha256", "")[:16], shown(s.get("licence", "")))
        for s in manifest["sources"]
    ]
    return _table(["source", "revision", "licence"], rows) if rows else "No source was named."


def source_name(source: Mapping[str, Any]) -> str:
    """What a source is called: `kind:place`, with the name of its build file before it."""
    spec = source.get("spec") or f"{source.get('kind', '')}:{source.get('place', '')}"
    return f"{source['name']} ({spec})" if source.get("name") else str(spec)


def _licence(manifest: Mapping[str, Any]) -> str:
    licence = manifest["licence"]
    verdict = "may" if licence["redistributable"] else "**may not**"
    reason = f": {licence['reason']}" if licence["reason"] else ""
    found = ", ".join(licence["sources"])
    return f"{licence['id']}, from sources under {found}. It {verdict} be passed on{reason}."


def _settings(manifest: Mapping[str, Any]) -> str:
    """What the builder used, defaults included; what the stage was given, if it does not say."""
    settings = manifest["details"].get("settings", manifest["stage"]["settings"])
    return json.dumps(settings, indent=2, sort_keys=True, ensure_ascii=False)


def _stage(manifest: Mapping[str, Any]) -> str:
    stage = manifest["stage"]
    parts = [f"stage `{stage['name']}`, version {stage['version']}, hash `{stage['hash']}`"]
    parts += [f"parser `{manifest['parser']}`"] if manifest["parser"] else []
    parts += [f"{library} {version}" for library, version in manifest["versions"].items()]
    return "; ".join(parts)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items) or "Nothing."


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"
