"""The scripts for jobs of the Hub, each in its own process, with a small Hub on this machine."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.hub_server import HubServer
from tests.hub_state import Blob
from tests.processes import ran

JOBS = Path(__file__).resolve().parents[1] / "docs" / "jobs"
TOKEN = "hf_" + "Secret3" * 5
WHO = ("The miller", "A carter", "My aunt", "The pilot", "Our cook", "The clerk")
DID = ("closed the gate", "sold the grey horse", "left the old boat", "lit a small fire")
WHY = ("the river had risen", "a storm was coming", "nobody had paid", "the road was long")


def texts() -> list[str]:
    """Stories of three sentences; the markers tell what joins the clauses."""
    stories = []
    for i in range(48):
        who, did, why = WHO[i % 6], DID[i % 4], WHY[i // 4 % 4]
        other = WHO[(i + 1) % 6].lower()
        stories.append(
            f"{who} {did} at dawn because {why} again. {who} {did} in year {i}, but {other} stayed "
            f"at home that day. When {why} once more, {other} {did} without a word."
        )
    return stories


@pytest.fixture
def hub() -> Iterator[HubServer]:
    server = HubServer()
    server.add_user(TOKEN, "ana")
    table = io.BytesIO()
    pq.write_table(pa.table({"text": texts()}), table)
    repository = server.make("ana/stories")
    card = Blob(b"---\nlicense: cc-by-4.0\n---\n\n# Stories\n", False)
    files = {"README.md": card, "data/train-00000-of-00001.parquet": Blob(table.getvalue(), False)}
    repository.commit("stories", {**repository.files, **files})
    with server.running():
        yield server


def job(
    hub: HubServer, place: Path, script: str, *arguments: str, token: str = TOKEN
) -> subprocess.CompletedProcess[str]:
    environment = {
        **{**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": token, "HF_HUB_OFFLINE": "0"},
        **{"HF_HOME": str(place / "home"), "HF_HUB_DISABLE_XET": "1", "HF_DATASETS_OFFLINE": "0"},
        "PYTHONPATH": str(JOBS.parents[1]),
    }
    command = [sys.executable, str(JOBS / script), *arguments]
    return ran(command, env=environment, cwd=place, timeout=300)


@pytest.mark.parametrize("script", ["pairs.py", "train.py"])
def test_a_script_names_what_it_needs(script: str) -> None:
    """The header of PEP 723: an extra that is not declared would be ignored with a warning."""
    text = (JOBS / script).read_text("utf-8")
    header = re.search(r"(?m)^# /// script$\n((?:#.*\n)+?)# ///$", text)
    assert header
    table = tomllib.loads(re.sub(r"(?m)^# ?", "", header[1]))
    (name,) = table["dependencies"]
    found = re.fullmatch(r"discorpora(?:\[(\w+)\])?", name)
    assert found and table["requires-python"] == ">=3.11"
    assert not found[1] or any(f'extra == "{found[1]}"' in r for r in requires("discorpora") or ())
    ours = {"corpora", "discorpora", "extract", "workflows", "zoo", "typer"}
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    froms = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    modules = {alias.name for node in imports for alias in node.names}
    modules |= {str(node.module) for node in froms}
    assert {module.partition(".")[0] for module in modules} - {*sys.stdlib_module_names} <= ours


@pytest.mark.nightly
def test_pairs_of_a_dataset_and_a_recipe_on_them(hub: HubServer, tmp_path: Path) -> None:
    refused = job(hub, tmp_path, "pairs.py", "ana/stories", "ben/pairs")
    assert refused.returncode == 1 and "namespace 'ben'" in refused.stderr
    assert not (tmp_path / "build").exists()
    made = job(hub, tmp_path, "pairs.py", "ana/stories", "ana/pairs", "--licence", "CC-BY-4.0")
    assert made.returncode == 0, made.stderr
    files = hub.repository("ana/pairs").files
    assert "all/train-00000-of-00001.parquet" in files
    trained = job(hub, tmp_path, "train.py", "dissent/ngram", "ana/pairs@all", "ana/markers")
    assert trained.returncode == 0, trained.stderr
    files = hub.repository("ana/markers", "model").files
    (result,) = yaml.safe_load(files[".eval_results/discorpora.yaml"].data)
    commit = hub.repository("ana/pairs").head
    assert result["dataset"] == {"id": "ana/pairs", "task_id": "all", "revision": commit}
    assert result["notes"] == "test accuracy" and 0 <= result["value"] <= 1
    assert TOKEN not in made.stdout + made.stderr + trained.stdout + trained.stderr
