"""The model card of the embedded parser, written from its provenance and its scores.

    python -m zoo.parser.card --pipeline OUTPUT --dev EWT.conllu --dev GUM_FOLDER [--loader M:F]

`OUTPUT` is what `zoo.parser.train` left; `scores.json` and `CARD.md` are added to it.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpora.store.atomic import write_json
from zoo.parser import command, log
from zoo.parser.evaluate import evaluate, loader, tables
from zoo.parser.train import NAME
from zoo.parser.treebank import sentences_of, treebank_files

TEMPLATE = Path(__file__).with_name("card.md")


def measure(output: Path, dev: Sequence[Path], load: str) -> dict[str, Any]:
    """Scores on each of `dev`, CPU seconds to load, and bytes on disk.

    The sets are called `EWT dev` for `en_ewt-ud-dev.conllu`, `GUM dev` for the folder `en_gum`.
    """
    folder = output / NAME
    loader(load)(folder)  # the first load pays for spaCy's own imports
    start = time.process_time()
    nlp = loader(load)(folder)
    seconds = time.process_time() - start
    sets = {
        f"{path.stem.removeprefix('en_').partition('-')[0].upper()} dev": evaluate(
            nlp, sentences_of(treebank_files([path], "dev"))
        )
        for path in dev
    }
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"bytes": size, "load_seconds": round(seconds, 2), "sets": sets}


def render(training: dict[str, Any], scores: dict[str, Any]) -> str:
    """The card's Markdown: the template with the tables and numbers filled in."""
    sets = scores["sets"]
    of_scores, of_labels = tables(sets)
    values = {
        "scores": "\n".join(of_scores),
        "labels": "\n".join(of_labels),
        "megabytes": f"{scores['bytes'] / 1e6:.1f}",
        "load": scores["load_seconds"],
        "speed": ", ".join(f"{s['tokens_per_second']:,} ({name})" for name, s in sets.items()),
        "seed": training["seed"],
        "first": training["config"]["training"],
        "second": training["config"]["regularisation"],
        "third": training["config"]["finishing"],
        **training["versions"],
        **training["selected"],
        "note": training.get("note", ""),
        "files": len(training["files"]),
        "silver": f"{training['words']['silver']:,}",
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**values)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", type=Path, required=True, help="output of zoo.parser.train")
    parser.add_argument("--dev", type=Path, action="append", required=True)
    parser.add_argument("--loader", default="extract.embedded:load", metavar="MODULE:FUNCTION")
    return command(run, parser, arguments)


def run(options: argparse.Namespace) -> None:
    training = json.loads((options.pipeline / "training.json").read_text(encoding="utf-8"))
    scores = measure(options.pipeline, options.dev, options.loader)
    write_json(options.pipeline / "scores.json", scores)
    (options.pipeline / "CARD.md").write_text(render(training, scores), encoding="utf-8")
    log.info("wrote scores.json and CARD.md in %s", options.pipeline)


if __name__ == "__main__":
    sys.exit(main())
