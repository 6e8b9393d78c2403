"""The model card of the embedded parser, written from its provenance and its scores.

    python -m zoo.parser.card --pipeline OUTPUT --dev EWT.conllu --dev GUM_FOLDER [--loader M:F]

`OUTPUT` is the folder that `zoo.parser.train` wrote; `scores.json` and `CARD.md` are added to it.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpora.store.atomic import read_json, write_json, write_text
from zoo.commands import command, log
from zoo.parser.evaluate import evaluate, loader, tables
from zoo.parser.train import NAME
from zoo.parser.treebank import sentences_of, treebank_files

TEMPLATE = Path(__file__).with_name("card.md")


def run(options: argparse.Namespace) -> None:
    """Measure a pipeline's scores, CPU seconds to load and bytes on disk; write them and the card.

    The scores of a dev set are named after its path: `EWT dev` for `en_ewt-ud-dev.conllu`.
    """
    # Measure.
    training = read_json(options.pipeline / "training.json")
    load, folder = loader(options.loader), options.pipeline / NAME
    load(folder)  # the first load pays for spaCy's own imports
    start = time.process_time()
    nlp = load(folder)
    scores: dict[str, Any] = {
        "load_seconds": round(time.process_time() - start, 2),
        "bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        "sets": {
            f"{path.stem.removeprefix('en_').partition('-')[0].upper()} dev": evaluate(
                nlp, sentences_of(treebank_files([path], "dev"))
            )
            for path in options.dev
        },
    }
    write_json(options.pipeline / "scores.json", scores)
    # Fill in the card.
    sets = scores["sets"]
    score_table, label_table = tables(sets)
    values = {
        "note": "",
        **training,
        "scores": score_table,
        "labels": label_table,
        "megabytes": f"{scores['bytes'] / 1e6:.1f}",
        "load_seconds": scores["load_seconds"],
        "speed": ", ".join(f"{s['tokens_per_second']:,} ({name})" for name, s in sets.items()),
        "file_count": len(training["files"]),
    }
    card = TEMPLATE.read_text(encoding="utf-8").format(**values)
    write_text(options.pipeline / "CARD.md", card)
    log.info("wrote scores.json and CARD.md in %s", options.pipeline)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the card of the pipeline that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", type=Path, required=True, help="output of zoo.parser.train")
    parser.add_argument("--dev", type=Path, action="append", required=True)
    parser.add_argument("--loader", default="extract.embedded:load", metavar="MODULE:FUNCTION")
    return command(run, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
