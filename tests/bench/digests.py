"""Digests of what the program makes: two trees whose digests agree behave alike.

python tests/bench/digests.py write FILE [--parts sample novels commands] [--books FOLDER]
python tests/bench/digests.py compare FILE OTHER

`write` measures the tree in the current folder: run it there with this file's path to measure an
earlier commit. Parts: `sample`, all Parquet shards, weights and metrics of the embedded sample's
build with every `*_tiny` recipe; `novels`, the Parquet shards of the novels' build; `commands`, the
output of the commands that `tests/test_docs.py` runs (they read `build/sample`: `make run` first).
Weights depend on the machine: compare those of the same machine in the same hour.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TREE = Path.cwd()
STAGE_HASH = re.compile(r"\b[0-9a-f]{16}\b")
VARIES = re.compile(r"\d+:\d\d:\d\d|\d+(?:\.\d+)? (?:s|min|h|[KMG]i?B)\b|\b[0-9a-f]{16}\b")
"""In the output of a command: clock times, durations, sizes of memory, hashes of stages."""
OTHER_RECIPES = """
[models.dissent-transformer]
recipe = "dissent/transformer_tiny"
dataset = "dissent"
config = "all"
settings = { max_steps = 20 }

[models.dissent-pdtb]
recipe = "dissent/pdtb_tiny"
dataset = "pdtb_implicit"

[models.coherence-unc]
recipe = "coherence/unc_tiny"
dataset = "permuted"
config = "pairwise"
"""
NOVELS = """
name = "novels"
threads = 1
[[sources]]
name = "novels"
spec = "jsonl:{books}/*.jsonl"
licence = "CC0-1.0"
options = {{ layout = "paragraph", group = "book", id = "chapter_id", title = "chapter" }}
datasets = ["dissent", "sp", "bso", "permuted", "intrusion", "conpono", "criteria"]
[datasets.dissent]
[datasets.sp]
[datasets.bso]
[datasets.permuted]
[datasets.intrusion]
[datasets.conpono]
merge_above = 10
[datasets.criteria]
"""


def main() -> None:
    """Write the digests of a tree, or compare two files of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    write = commands.add_parser("write")
    write.add_argument("file", type=Path)
    write.add_argument("--parts", nargs="+", default=["sample", "novels", "commands"])
    data = Path(os.environ.get("DISCORPORA_DATA", TREE.parent / "shared" / "data"))
    write.add_argument("--books", type=Path, default=data / "books")
    compare = commands.add_parser("compare")
    compare.add_argument("files", type=Path, nargs=2)
    options = parser.parse_args()
    if options.command == "compare":
        sys.exit(differences(*(json.loads(file.read_text()) for file in options.files)))
    digests = {}
    if "sample" in options.parts:
        sample = (TREE / "workflows/configs/sample.toml").read_text(encoding="utf-8")
        digests["sample"] = dict(built(sample + OTHER_RECIPES))
    if "novels" in options.parts:
        digests["novels"] = dict(built(NOVELS.format(books=options.books)))
    if "commands" in options.parts:
        digests["commands"] = dict(outputs())
    options.file.write_text(json.dumps(digests, indent=1))


def built(table: str) -> Iterator[tuple[str, str]]:
    """Of a build file's text: the digests of what it makes, by path without the stages' hashes."""
    with tempfile.TemporaryDirectory() as place:
        folder, config = Path(place), Path(place, "build.toml")
        config.write_text(table, encoding="utf-8")
        words = ["--config", str(config), "--output", str(folder / "out")]
        run([sys.executable, "-m", "workflows.cli.app", "build", *words], TREE, check=True)
        for path in sorted(folder.glob("out/stages/**/*")):
            name = STAGE_HASH.sub("HASH", str(path.relative_to(folder / "out/stages")))
            if path.suffix in {".parquet", ".safetensors"}:
                yield name, hashlib.sha256(path.read_bytes()).hexdigest()
            elif path.name == "results.json":
                yield name, json.dumps(json.loads(path.read_bytes())["metrics"], sort_keys=True)


def outputs() -> Iterator[tuple[str, str]]:
    """Of each command that a page shows: its status and standard output."""
    sys.path.insert(0, str(TREE))
    from tests.test_docs import USERS_FILES, WRITTEN, blocks, pages_with

    for page in pages_with(""):
        name = str(page.relative_to(TREE))
        with tempfile.TemporaryDirectory() as folder:
            clone = Path(folder)
            for package in ("corpora", "extract", "zoo", "workflows", "docs"):
                (clone / package).symlink_to(TREE / package)
            shutil.copytree(TREE / "build", clone / "build", symlinks=True)
            for path, text in USERS_FILES.items():
                if path not in WRITTEN.get(name, ()):
                    (clone / path).parent.mkdir(exist_ok=True)
                    (clone / path).write_text(text, encoding="utf-8")
            for block in blocks(page):
                if block.mark == "nightly":
                    break
                for command, _ in block.steps() if block.language == "console" else ():
                    if not block.mark:
                        done = run(["bash", "-c", command], clone)
                        text = VARIES.sub("#", done.stdout.replace(str(clone), "CLONE"))
                        yield f"{name}: {command.strip()}", f"{done.returncode}\n{text}"


def run(words: list[str], folder: Path, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command of the tree in `folder`, with its output caught."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"PYTHONPATH": str(TREE), "PATH": path, "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
    environment = {**os.environ, **settings}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        sys.exit(f"{words} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def differences(first: dict[str, dict[str, str]], second: dict[str, dict[str, str]]) -> str | None:
    """What differs, a line each; None if nothing does."""
    lines = []
    for part in first.keys() & second.keys():
        for name in sorted(first[part].keys() | second[part].keys()):
            one, other = first[part].get(name, "absent"), second[part].get(name, "absent")
            if one != other:
                lines.append(f"{part}: {name}\n  {one[:400]}\n  {other[:400]}")
    return "\n".join(lines) or None


if __name__ == "__main__":
    main()
