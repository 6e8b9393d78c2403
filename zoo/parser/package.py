"""What the recipe leaves on disk: one folder with pipeline, document ids and provenance."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from spacy.about import __version__ as spacy_version
from spacy.language import Language
from thinc.api import Config

from zoo.parser.treebank import Sentence
from zoo.parser.upos import learn_upos

NAME = "en_ud_compact"
SECTIONS = ("components", "training", "regularisation", "finishing", "recipe")
META = {"name": "ud_compact", "version": "1.1.1", "license": "CC-BY-SA-4.0"}


def write_output(
    nlp: Language, train: Sequence[Sentence], record: dict[str, object], output: Path
) -> None:
    """`output` with `en_ud_compact/`, `documents.txt`, `training.json`; appears by one rename."""
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        save(nlp, learn_upos(train), temporary / NAME)
        names = dict.fromkeys(sentence.document for sentence in train)
        (temporary / "documents.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
        write_json(temporary / "training.json", record)
        temporary.chmod(0o755)
        temporary.replace(output)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def save(nlp: Language, upos: dict[str, str], folder: Path) -> None:
    """`nlp.to_disk` with the UPOS table beside it, and only the strings that loading needs."""
    nlp.meta.update(META)
    nlp.to_disk(folder)
    labels = {label for name in ("tagger", "parser") for label in nlp.pipe_labels[name]}
    names = labels | {part for key, value in upos.items() for part in (*key.split(" "), value)}
    # Hashed embeddings need no word list; what the tokenizer needs it adds itself.
    write_json(folder / "vocab" / "strings.json", sorted(names | {"ROOT", "root", "dep"}))
    write_json(folder / "upos.json", upos)


def provenance(files: Sequence[Path], seed: int, config: Config) -> dict[str, object]:
    """What made the pipeline: seed, configuration, versions, treebank files with their sha256."""
    hashes = {
        f"{file.parent.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }
    settings = {section: config[section] for section in SECTIONS}
    versions = {"spacy": spacy_version, "numpy": np.__version__}
    return {"seed": seed, "config": settings, "versions": versions, "files": hashes}


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
