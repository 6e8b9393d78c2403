"""JSON from outside: manifests, results, scorers' notes and pairs, each spoilt at random."""

from __future__ import annotations

import json
import os
import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from corpora.audit.opening import opened
from corpora.errors import InputError
from corpora.export import export
from corpora.publish.plan import plan_publication
from workflows.cli.inputs import read_records
from workflows.cli.look import inspect
from zoo.coherence.scoring import load_breaks, load_reference, warn_of_chance
from zoo.dissent.prediction import read_pairs
from zoo.evaluate.__main__ import main as evaluate
from zoo.evaluate.compare import compare
from zoo.evaluate.confusions import compare_files
from zoo.presets import catalogue, load_plugins
from zoo.training.data import open_configs
from zoo.training.finishing import _origins_in_results
from zoo.training.results import trained_on

from .campaign import Call, run, sizes, spoilt_json


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory, pairs_folder: Path, dissent_models: dict[str, Path]
) -> Path:
    """The results of a suite."""
    path = tmp_path_factory.mktemp("results") / "one.json"
    words = ["--model", str(dissent_models["ngram"]), "--data", str(pairs_folder)]
    assert evaluate(["dissent", *words, "--json", str(path)]) == 0
    return path


@sizes(150, 20_000)
def test_manifests(
    cases: int, pairs_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(pairs_folder, tmp_path / "data")
    path = folder / "manifest.json"
    text = path.read_text(encoding="utf-8")
    calls: list[Call] = [
        lambda: plan_publication(folder, "a/b"),
        lambda: export(folder, tmp_path / "out", "pairs"),
        lambda: opened(str(folder)),
        lambda: [each.describe() for each in open_configs(str(folder))[1]],
        lambda: inspect(f"{folder}@all"),
        lambda: load_plugins(folder),
    ]

    def case(seed: int) -> tuple[str, Call]:
        path.write_bytes(spoilt_json(text, random.Random(seed)))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        capsys.readouterr()
        return path.read_text(errors="replace")[:200], calls[seed % len(calls)]

    run("JSON: manifests", cases, case)


def test_a_manifest_without_a_licence_is_of_an_unknown_one(
    pairs_folder: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(pairs_folder, tmp_path / "data")
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "licence": None}))
    assert all(not each.describe()["licence"] for each in open_configs(str(folder))[1])


@sizes(150, 20_000)
def test_results(
    cases: int, results: Path, dissent_models: dict[str, Path], tmp_path: Path
) -> None:
    model = dissent_models["bilstm_tiny"] / "results.json"
    texts = [path.read_text(encoding="utf-8") for path in (results, model)]
    place = tmp_path / "model" / "results.json"
    place.parent.mkdir()
    shutil.copy(model.with_name("config.json"), place.parent)
    calls: list[Call] = [
        lambda: compare([place]).render(),
        lambda: compare([place, results]).render("json"),
        lambda: compare_files(place, results, tmp_path / "out"),
        lambda: trained_on(str(place.parent)),
        lambda: _origins_in_results(str(place.parent)),
        lambda: catalogue(place.parent),
        lambda: warn_of_chance(place.parent),
    ]

    def case(seed: int) -> tuple[str, Call]:
        place.write_bytes(spoilt_json(texts[seed % 2], random.Random(seed)))
        return place.read_text(errors="replace")[:200], calls[seed // 2 % len(calls)]

    run("JSON: results", cases, case)


@sizes(150, 20_000)
def test_what_is_beside_a_scorer(cases: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    reference = {"of": "stories", "texts": 3, "quantiles": [0.1, 0.2, 0.3]}
    breaks = {"of": "a", "texts": 9, "least": 0.5, "marked_coherent": 0.1}
    breaks |= {"margins": [0.1, 0.2], "right": [0.5, 0.6]}

    def case(seed: int) -> tuple[str, Call]:
        name, value = (("reference", reference), ("breaks", breaks))[seed % 2]
        data = spoilt_json(json.dumps(value), random.Random(seed))
        (tmp_path / f"{name}.json").write_bytes(data)
        return str(data[:200]), partial(load_breaks if seed % 2 else load_reference, tmp_path)

    run("JSON: beside a scorer", cases, case)


@sizes(150, 20_000)
def test_pairs_and_alternatives(cases: int, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    pair = json.dumps({"s1": "Anna sang.", "s2": "It rained."})
    choice = json.dumps({"id": "x", "prompt": "Anna sang.", "alternatives": ["It rained.", "No."]})
    calls: list[Call] = [lambda: list(read_pairs(path)), lambda: read_records(path)]

    def case(seed: int) -> tuple[str, Call]:
        data = spoilt_json((pair, choice)[seed % 2], random.Random(seed)) + b"\n"
        path.write_bytes(data)
        return str(data[:200]), calls[seed % 2]

    run("JSON: pairs and alternatives", cases, case)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    from corpora.outside import SIZE, read_json

    path = tmp_path / "a.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), SIZE + 1)
    with pytest.raises(InputError, match="longer than"):
        read_json(path)
