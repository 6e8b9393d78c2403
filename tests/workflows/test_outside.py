"""JSON from outside: manifests, results, pairs and answers of the Hub, each spoilt at random."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corpora.audit.opening import opened
from corpora.errors import DiscorporaError, InputError
from corpora.export import export
from corpora.publish import publish
from corpora.publish.hub import Hub, PublishSettings
from corpora.publish.plan import plan_publication
from workflows.cli.look import inspect
from workflows.cli.scoring import _records
from zoo.coherence.scoring import load_breaks, load_reference, warn_of_chance
from zoo.dissent.prediction import read_pairs
from zoo.evaluate.__main__ import main as evaluate
from zoo.evaluate.compare import compare
from zoo.evaluate.confusions import compare_files
from zoo.evaluate.results import trained_on
from zoo.presets import catalogue, load_plugins
from zoo.training.data import open_configs
from zoo.training.finishing import _of_results

from ..hub_server import HubServer
from ..zoo.conftest import (  # noqa: F401 - fixtures
    dissent_models,
    pairs_folder,
    process_settings,
)
from ..zoo.test_strangers import VALUES, places

VALUES = [*VALUES, "x" * 1000, "a\nb", "../../etc/passwd", "<img src=x onerror=alert(1)>"]
CASES = [150, pytest.param(20_000, marks=pytest.mark.nightly)]


def spoilt(text: str, draw: random.Random) -> bytes:
    """The JSON with a value changed, a key lost, or its bytes cut or flipped."""
    way, data = draw.randrange(10), text.encode()
    at = draw.randrange(len(data))
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if way == 2:
        return draw.choice([b"[" * 10**5, b"9" * 10**4, b"\xff\xfe{}", b'{"a":' * 500, b"null"])
    value = inner = json.loads(text)
    place = draw.choice(list(places(value)))
    for key in place[:-1]:
        inner = inner[key]
    if way == 3:
        del inner[place[-1]]
    else:
        inner[place[-1]] = draw.choice(VALUES)
    return json.dumps(value).encode()


def taken(function: Callable[[], object]) -> str:
    """How a call ends: an error for people has at most two lines."""
    try:
        function()
    except DiscorporaError as error:
        assert str(error).count("\n") <= 2, error
        return "one message"
    except Exception:
        return traceback.format_exc()
    return "read"


def told(found: Counter[str]) -> None:
    """Fail with the tracebacks, each once."""
    bad = {said: count for said, count in found.items() if said.startswith("Traceback")}
    counts = {said: count for said, count in found.items() if said not in bad}
    sys.stderr.write(f"\n{counts}, {sum(bad.values())} tracebacks\n")
    shown = [f"{count} times: {''.join(said.splitlines(True)[-5:])}" for said, count in bad.items()]
    assert not bad, "\n".join(shown[:12])


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory,
    pairs_folder: Path,  # noqa: F811
    dissent_models: dict[str, Path],  # noqa: F811
) -> Path:
    """The results of a suite."""
    path = tmp_path_factory.mktemp("results") / "one.json"
    words = ["--model", str(dissent_models["ngram"]), "--data", str(pairs_folder)]
    assert evaluate(["dissent", *words, "--json", str(path)]) == 0
    return path


@pytest.mark.parametrize("cases", CASES)
def test_manifests(cases: int, pairs_folder: Path, tmp_path: Path) -> None:  # noqa: F811
    folder = shutil.copytree(pairs_folder, tmp_path / "data")
    path, draw, found = folder / "manifest.json", random.Random(0), Counter[str]()
    text = path.read_text(encoding="utf-8")
    for number in range(cases):
        path.write_bytes(spoilt(text, draw))
        calls: list[Callable[[], object]] = [
            lambda: plan_publication(folder, "a/b"),
            lambda: export(folder, tmp_path / "out", "pairs"),
            lambda: opened(str(folder)),
            lambda: [each.describe() for each in open_configs(str(folder))[1]],
            lambda: inspect(str(folder), config="all"),
            lambda: load_plugins(folder),
        ]
        found[taken(calls[number % len(calls)])] += 1
    told(found)


@pytest.mark.parametrize("cases", CASES)
def test_results(
    cases: int,
    results: Path,
    dissent_models: dict[str, Path],  # noqa: F811
    tmp_path: Path,
) -> None:
    draw, found = random.Random(0), Counter[str]()
    model = dissent_models["bilstm_tiny"] / "results.json"
    texts = [path.read_text(encoding="utf-8") for path in (results, model)]
    place = tmp_path / "model" / "results.json"
    place.parent.mkdir()
    shutil.copy(model.with_name("config.json"), place.parent)
    for number in range(cases):
        place.write_bytes(spoilt(texts[number % 2], draw))
        calls: list[Callable[[], object]] = [
            lambda: compare([place]).render(),
            lambda: compare([place, results]).render("json"),
            lambda: compare_files(place, results, tmp_path / "out"),
            lambda: trained_on(str(place.parent)),
            lambda: _of_results(str(place.parent)),
            lambda: catalogue(place.parent),
            lambda: warn_of_chance(place.parent),
        ]
        found[taken(calls[number // 2 % len(calls)])] += 1
    told(found)


@pytest.mark.parametrize("cases", CASES)
def test_what_is_beside_a_scorer(cases: int, tmp_path: Path) -> None:
    draw, found = random.Random(0), Counter[str]()
    (tmp_path / "config.json").write_text("{}")
    reference = {"of": "stories", "texts": 3, "quantiles": [0.1, 0.2, 0.3]}
    breaks = {"of": "a", "texts": 9, "least": 0.5, "marked_coherent": 0.1}
    breaks |= {"margins": [0.1, 0.2], "right": [0.5, 0.6]}
    for number in range(cases):
        name, value = (("reference", reference), ("breaks", breaks))[number % 2]
        (tmp_path / f"{name}.json").write_bytes(spoilt(json.dumps(value), draw))
        load: Callable[[Any], object] = load_breaks if number % 2 else load_reference
        found[taken(partial(load, tmp_path))] += 1
    told(found)


@pytest.mark.parametrize("cases", CASES)
def test_pairs_and_alternatives(cases: int, tmp_path: Path) -> None:
    draw, found, path = random.Random(0), Counter[str](), tmp_path / "pairs.jsonl"
    pair = json.dumps({"s1": "Anna sang.", "s2": "It rained."})
    choice = json.dumps({"id": "x", "prompt": "Anna sang.", "alternatives": ["It rained.", "No."]})
    for number in range(cases):
        path.write_bytes(spoilt((pair, choice)[number % 2], draw) + b"\n")
        found[taken((lambda: list(read_pairs(path)), lambda: _records(path))[number % 2])] += 1
    told(found)


ANSWERS = ("whoami-v2", "GET /api/datasets/anna/sample$", "/tree/", "/preupload/", "/commit/")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # tests/zoo sets it
    server = HubServer()
    with server.running():
        yield server


@pytest.mark.parametrize("cases", [30, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_answers_of_the_hub_with_status_200(
    cases: int,
    server: HubServer,
    pairs_folder: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Whatever a proxy or a broken Hub answers with, publishing ends in a message or is whole."""
    draw, found = random.Random(0), Counter[str]()
    server.add_user("hf_anna", "anna", role="write", group="admin")
    whoami = {**server.users["hf_anna"], "type": "user"}
    info = {"id": "anna/sample", "sha": "0" * 40, "private": False, "siblings": []}
    tree = [{"type": "file", "path": "README.md", "size": 3, "oid": "0" * 40}]
    uploads = {"files": [{"path": "README.md", "uploadMode": "regular", "shouldIgnore": False}]}
    commit = {"commitUrl": "x", "commitOid": "0" * 40, "success": True}
    answers = dict(zip(ANSWERS, (whoami, info, tree, uploads, commit), strict=True))
    settings = PublishSettings(attempts=1)
    for number in range(cases):
        route = ANSWERS[number % len(ANSWERS)]
        body = spoilt(json.dumps(answers[route]), draw)
        server.faults.clear()
        server.repositories.clear()
        if "preupload" not in route and "commit" not in route:
            server.make("anna/sample")
        server.fail(route, status=200, times=1, body=body)
        hub = Hub("hf_anna", endpoint=server.url, settings=settings)
        found[taken(partial(publish, pairs_folder, "anna/sample", hub=hub))] += 1
    told(found)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    from corpora.outside import SIZE, read_json

    path = tmp_path / "a.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), SIZE + 1)
    with pytest.raises(InputError, match="longer than"):
        read_json(path)
