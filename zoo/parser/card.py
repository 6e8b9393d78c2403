"""The model card of the embedded parser, written from its provenance and its scores.

    python -m zoo.parser.card --pipeline OUTPUT --dev EWT.conllu --dev GUM_FOLDER [--loader M:F]

`OUTPUT` is what `zoo.parser.train` left; `scores.json` and `CARD.md` are added to it.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zoo.parser.evaluate import LABELS, evaluate, loader
from zoo.parser.package import NAME, write_json
from zoo.parser.treebank import sentences_of, treebank_files

TEMPLATE = Path(__file__).with_name("card.md")
WAYS = {
    "gold_sentences": "gold tokens, gold sentences",
    "own_sentences": "gold tokens, own sentences (whole documents)",
    "raw_paragraphs": "raw paragraph text (own tokens and sentences)",
}
MEASURES = ("las", "uas", "upos", "xpos", "sentences", "words")
log = logging.getLogger("zoo.parser")


def measure(output: Path, dev: Sequence[Path], load: str) -> dict[str, Any]:
    """Scores on each of `dev`, CPU seconds to load, and bytes on disk."""
    folder = output / NAME
    loader(load)(folder)  # the first load pays for spaCy's own imports
    start = time.process_time()
    nlp = loader(load)(folder)
    seconds = time.process_time() - start
    sets = {
        treebank_name(path): evaluate(nlp, sentences_of(treebank_files(path, "dev")))
        for path in dev
    }
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"bytes": size, "load_seconds": round(seconds, 2), "sets": sets}


def treebank_name(path: Path) -> str:
    """`EWT dev` for `en_ewt-ud-dev.conllu`, `GUM dev` for the folder `en_gum`."""
    return f"{path.stem.removeprefix('en_').partition('-')[0].upper()} dev"


def render(training: dict[str, Any], scores: dict[str, Any]) -> str:
    """The card's Markdown: the template with the tables and numbers filled in."""
    sets = scores["sets"]
    values = {
        "scores": score_table(sets),
        "labels": label_table(sets),
        "megabytes": f"{scores['bytes'] / 1e6:.1f}",
        "load": scores["load_seconds"],
        "speed": ", ".join(f"{s['tokens_per_second']:,} ({name})" for name, s in sets.items()),
        "seed": training["seed"],
        "stage": training["selected"]["stage"],
        "step": training["selected"]["step"],
        "first": training["config"]["training"],
        "second": training["config"]["regularisation"],
        "third": training["config"]["finishing"],
        "spacy": training["versions"]["spacy"],
        "numpy": training["versions"]["numpy"],
        "note": training.get("note", ""),
        "files": len(training["files"]),
        "silver": f"{training['words']['silver']:,}",
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**values)


def score_table(sets: dict[str, Any]) -> str:
    rows = [["documents", "input", "LAS", "UAS", "UPOS", "XPOS", "sentences", "words"]]
    for name, scores in sets.items():
        for way, words in WAYS.items():
            rows.append([name, words, *(f"{scores[way][key]:.1f}" for key in MEASURES)])
    return markdown(rows)


def label_table(sets: dict[str, Any]) -> str:
    rows = [["label", *(f"{name}, {way.partition('_')[0]}" for name in sets for way in WAYS)]]
    for label in LABELS:
        cells = (f"{scores[way]['labels'][label]:.1f}" for scores in sets.values() for way in WAYS)
        rows.append([f"`{label}`", *cells])
    return markdown(rows)


def markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", type=Path, required=True, help="output of zoo.parser.train")
    parser.add_argument("--dev", type=Path, action="append", required=True)
    parser.add_argument("--loader", default="extract.embedded:load", metavar="MODULE:FUNCTION")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        training = json.loads((options.pipeline / "training.json").read_text(encoding="utf-8"))
        scores = measure(options.pipeline, options.dev, options.loader)
    except (OSError, ValueError) as error:
        log.error("error: %s", error)
        return 2
    write_json(options.pipeline / "scores.json", scores)
    (options.pipeline / "CARD.md").write_text(render(training, scores), encoding="utf-8")
    log.info("wrote scores.json and CARD.md in %s", options.pipeline)
    return 0


if __name__ == "__main__":
    sys.exit(main())
