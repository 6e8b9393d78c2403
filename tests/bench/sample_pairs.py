"""Rate pairs blind: draw some of several versions and texts, then score what the raters said.

    python -m tests.bench.sample_pairs draw ROUND.toml --anchors FILE --output FOLDER
    python -m tests.bench.sample_pairs score FOLDER ANSWERS.jsonl ANSWERS.jsonl > round.json

This is `discorpora rate` for pairs that are in no dataset. A round names versions (a checkout of
this repository, and options of `discorpora extract`) and texts (a source, its kind, and options
for the reader and for `extract`):

    items = 180
    [versions.new]
    checkout = "/work/discorpora"
    options = ["--mode", "standalone"]
    [texts.dracula]
    kind = "novels"
    source = "text:dracula.txt"

`draw` extracts every version from every text, keeps the pairs that pass DisSent's length filter
(5 to 50 words, ratio 5), draws equally many of each version and kind, and mixes them with 20 of the
anchors (on which two readers agreed). Raters get `batch.jsonl` or `page.html` of the folder and
nothing else; `manifest.json` says where each item is from.

`score` prints what `discorpora rate --json` does, with a group for each version and kind, and the
good pairs in 10,000 words of each rater. A round counts where each rater's kappa with the anchors
is .8 or more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.ratings.answers import read_answers, score
from corpora.ratings.draw import Draw, Item, read_draw, with_anchors, write_draw
from corpora.ratings.rubrics import rubrics
from corpora.readers import open_source

AROUND = 300
"""Characters of the passage on either side of the marker, as in the anchors."""


def fits(pair: Mapping[str, Any]) -> bool:
    """DisSent's filter of lengths, in words at white space."""
    short, long = sorted(len(pair[side].split()) for side in ("s1", "s2"))
    return short >= 5 and long <= 50 and long <= 5 * short


def extracted(checkout: Path, text: dict[str, Any], options: Sequence[str]) -> list[dict[str, Any]]:
    """The pairs that the code of a checkout makes of a text."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "pairs.jsonl"
        given = [f"{key}={value}" for key, value in text.get("options", {}).items()]
        words = ["extract", text["source"], "-o", str(output), *text.get("extract", []), *options]
        words += [word for option in given for word in ("-O", option)]
        program = "import sys; from workflows.cli.app import main; sys.exit(main())"
        subprocess.run([sys.executable, "-c", program, *words], cwd=checkout, check=True)
        return [json.loads(line) for line in output.open(encoding="utf-8")]


def passage(text: str, spans: Sequence[Sequence[int]]) -> str:
    """The text around a marker, which stands in `[[ ]]`."""
    first, last = max(spans[0][0] - AROUND, 0), spans[-1][1] + AROUND
    shown, at = "", first
    for start, end in spans:
        shown += f"{text[at:start]}[[{text[start:end]}]]"
        at = end
    return shown + text[at:last]


def item_of(pair: Mapping[str, Any], document: Document, version: str, kind: str) -> Item:
    fields = {
        "context": passage(document.text, pair["marker_spans"]),
        **{name: pair[name] for name in ("marker", "s1", "s2")},
    }
    origin = {name: pair[name] for name in ("pattern", "position", "marker_spans")}
    group = f"{version}, {kind}"
    return Item(fields=fields, expected="good", doc=pair["doc"], group=group, origin=origin)


def drawn(plan: Mapping[str, Any]) -> Draw:
    """The items of a round, without anchors; the seed is the commit of its first version."""
    versions = plan["versions"]
    checkouts = {name: Path(version["checkout"]) for name, version in versions.items()}
    commits = {
        name: subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=path, text=True).strip()
        for name, path in checkouts.items()
    }
    pools: defaultdict[str, list[Item]] = defaultdict(list)
    words: Counter[str] = Counter()
    for text in plan["texts"].values():
        kind = text["kind"]
        documents = {d.id: d for d in open_source(text["source"], text.get("options", {}))}
        length = sum(len(d.text.split()) for d in documents.values())
        for version, settings in versions.items():
            words[f"{version}, {kind}"] += length
            for pair in extracted(checkouts[version], text, settings.get("options", [])):
                if fits(pair):
                    item = item_of(pair, documents[pair["doc"]], version, kind)
                    pools[item.group].append(item)
    rng = random.Random(next(iter(commits.values())))
    items: list[Item] = []
    for pool in pools.values():
        items += rng.sample(pool, min(plan["items"] // len(pools), len(pool)))
    rng.shuffle(items)
    return Draw(
        dataset="pairs of " + ", ".join(versions),
        digest=hashlib.sha256(json.dumps([plan, commits], sort_keys=True).encode()).hexdigest(),
        rubric=rubrics()["pairs"],
        items=tuple(items),
        details={
            "commits": commits,
            "pairs_in_10000_words": {
                group: round(len(pool) / words[group] * 10_000, 1) for group, pool in pools.items()
            },
        },
    )


def scored(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    draw = read_draw(folder)
    scores = asdict(score(draw, [read_answers(path, draw) for path in files]))
    for rater in scores["raters"]:
        for group, share in rater["groups"].items():
            density = draw.details["pairs_in_10000_words"][group]
            share["pairs_in_10000_words"] = density
            if share["value"] is not None:
                share["good_pairs_in_10000_words"] = round(share["value"] / 100 * density, 1)
    return {"commits": draw.details["commits"], **scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="draw pairs and write the files for raters")
    drawing.add_argument("round", type=Path)
    drawing.add_argument("--anchors", type=Path, required=True)
    drawing.add_argument("--output", type=Path, required=True)
    scoring = commands.add_parser("score", help="print the table of a rated round as JSON")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("answers", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "draw":
        plan = tomllib.loads(given.round.read_text(encoding="utf-8"))
        write_draw(with_anchors(drawn(plan), given.anchors), given.output)
    else:
        sys.stdout.write(json.dumps(scored(given.folder, given.answers), indent=1) + "\n")


if __name__ == "__main__":
    main()
