"""Rate pairs blind: draw some of several versions and texts, then score what the raters said.

    python -m tests.bench.sample_pairs draw ROUND.toml --anchors FILE --output FOLDER
    python -m tests.bench.sample_pairs score FOLDER RATINGS.jsonl RATINGS.jsonl > round.json

A round names versions (a checkout of this repository, and options of `discorpora extract`) and
texts (a source, its kind, and options for the reader and for `extract`); `docs/results/pairs`
has the rounds that were rated. `draw` extracts every version from every text, keeps the pairs that
pass DisSent's length filter (5 to 50 words, ratio 5), draws equally many of each version and kind,
adds 20 items of the anchors (on which two readers agreed), and mixes all. `blind.jsonl` is what a
rater gets, with the rubric and nothing else; `key.json` says where each item is from. The seed is
the commit of the first version. A rater writes a line `{"item": 1, "rating": "good"}` an item.

`score` prints each rater's share of good pairs by version and kind, with bootstrap intervals over
documents, the good pairs in 10,000 words, and Cohen's kappa between the raters and with the
anchors: a round counts where each rater agrees with the anchors at .8 or more.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

from corpora.document import Document
from corpora.readers import open_source

ANCHORS = 20
AROUND = 300
"""Characters of the passage on either side of the marker, as in the anchors."""
RESAMPLES = 2_000


def fits(pair: dict[str, Any]) -> bool:
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


def draw(round_file: Path, anchors: Path, output: Path) -> None:
    plan = tomllib.loads(round_file.read_text(encoding="utf-8"))
    versions, texts = plan["versions"], plan["texts"]
    checkouts = {name: Path(version["checkout"]) for name, version in versions.items()}
    commits = {
        name: subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=path, text=True).strip()
        for name, path in checkouts.items()
    }
    rng = random.Random(next(iter(commits.values())))
    pools: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    words: Counter[str] = Counter()
    for name, text in texts.items():
        documents: dict[str, Document] = {
            d.id: d for d in open_source(text["source"], text.get("options", {}))
        }
        words[text["kind"]] += sum(len(d.text.split()) for d in documents.values())
        for version, settings in versions.items():
            for pair in extracted(checkouts[version], text, settings.get("options", [])):
                if fits(pair):
                    spans = pair["marker_spans"]
                    pools[version, text["kind"]].append(
                        {
                            "blind": {
                                "context": passage(documents[pair["doc"]].text, spans),
                                "marker": pair["marker"],
                                "s1": pair["s1"],
                                "s2": pair["s2"],
                            },
                            "key": {
                                "version": version,
                                "kind": text["kind"],
                                "text": name,
                                "doc": pair["doc"],
                                "pattern": pair["pattern"],
                                "position": pair["position"],
                                "marker_spans": spans,
                            },
                        }
                    )
    items: list[dict[str, Any]] = []
    for pool in pools.values():
        items += rng.sample(pool, min(plan["items"] // len(pools), len(pool)))
    lines = anchors.read_text(encoding="utf-8").splitlines()
    for number in sorted(rng.sample(range(len(lines)), ANCHORS)):
        anchor = json.loads(lines[number])
        items.append({"key": {"anchor": anchor.pop("rating"), "line": number}, "blind": anchor})
    rng.shuffle(items)
    output.mkdir(parents=True, exist_ok=True)
    with (output / "blind.jsonl").open("w", encoding="utf-8") as file:
        for number, item in enumerate(items, start=1):
            file.write(json.dumps({"item": number, **item["blind"]}, ensure_ascii=False) + "\n")
    key = {
        "commits": commits,
        "words": dict(words),
        "pairs": {f"{version} {kind}": len(pool) for (version, kind), pool in pools.items()},
        "items": [item["key"] for item in items],
    }
    (output / "key.json").write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")


def read_ratings(path: Path, items: int) -> list[str]:
    """A rater's ratings in the order of the items."""
    given = [json.loads(line) for line in path.open(encoding="utf-8") if line.strip()]
    ratings = {record["item"]: record["rating"] for record in given}
    if sorted(ratings) != list(range(1, items + 1)):
        raise SystemExit(f"{path}: expected one rating for each of the items 1 to {items}")
    return [ratings[number] for number in range(1, items + 1)]


def kappa(one: Iterable[str], other: Iterable[str]) -> float:
    """Cohen's kappa of good against bad."""
    same = [[rating == "good" for rating in ratings] for ratings in (one, other)]
    return round(float(cohen_kappa_score(*same)), 3)


def interval(good: Sequence[bool], documents: Sequence[str]) -> list[float]:
    """The 95 % bootstrap interval of a share, over documents."""
    of_document: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for is_good, document in zip(good, documents, strict=True):
        of_document[document][0] += is_good
        of_document[document][1] += 1
    counts = np.array(list(of_document.values()))
    drawn = np.random.default_rng(0).integers(len(counts), size=(RESAMPLES, len(counts)))
    hits, total = counts[drawn].sum(axis=1).T
    return [round(float(x), 3) for x in np.quantile(hits / total, [0.025, 0.975])]


def score(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    items = key["items"]
    raters = [read_ratings(path, len(items)) for path in files]
    anchors = [i for i, item in enumerate(items) if "anchor" in item]
    told = [items[i]["anchor"] for i in anchors]
    drawn = [i for i, item in enumerate(items) if "anchor" not in item]
    result: dict[str, Any] = {
        "commits": key["commits"],
        "items": len(drawn),
        "kappa_with_anchors": [kappa([r[i] for i in anchors], told) for r in raters],
        "kappa_between_raters": [
            kappa([raters[0][i] for i in drawn], [r[i] for i in drawn]) for r in raters[1:]
        ],
        "groups": {},
    }
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for i in drawn:
        groups[items[i]["version"], items[i]["kind"]].append(i)
    for (version, kind), members in sorted(groups.items()):
        pairs = key["pairs"][f"{version} {kind}"]
        documents = [items[i]["doc"] for i in members]
        density = pairs / key["words"][kind] * 10_000
        rated = []
        for rater in raters:
            good = [rater[i] == "good" for i in members]
            share = sum(good) / len(good)
            rated.append(
                {
                    "good": round(share, 3),
                    "interval": interval(good, documents),
                    "good_pairs_in_10000_words": round(share * density, 1),
                    "causes": dict(Counter(rater[i] for i in members).most_common()),
                }
            )
        result["groups"][f"{version}, {kind}"] = {
            "items": len(members),
            "pairs_in_10000_words": round(density, 1),
            "raters": rated,
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="draw pairs and write the blind file and the key")
    drawing.add_argument("round", type=Path)
    drawing.add_argument("--anchors", type=Path, required=True)
    drawing.add_argument("--output", type=Path, required=True)
    scoring = commands.add_parser("score", help="print the table of a rated round as JSON")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("ratings", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "draw":
        draw(given.round, given.anchors, given.output)
    else:
        sys.stdout.write(json.dumps(score(given.folder, given.ratings), indent=1) + "\n")


if __name__ == "__main__":
    main()
