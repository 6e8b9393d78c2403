"""Several trainings at a time on the GPUs of a machine, which are made up here."""

from __future__ import annotations

import json
import os
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import luigi
import pytest

from corpora.errors import ConfigError
from corpora.store.atomic import MANIFEST, staged, write_json
from workflows import devices, training
from workflows.settings import options
from workflows.tasks.datasets import Dataset
from workflows.tasks.models import Train
from zoo.options import Assignment
from zoo.presets import read_preset

WANTED = {"a": 4, "b": 2, "c": 2, "d": 1}
BUILD = """
name = "gpus"
[[sources]]
name = "stories"
spec = "sample:stories"
datasets = ["dissent"]
[datasets.dissent]
"""
MODEL = """
[models.{name}]
recipe = "dissent/bilstm_tiny"
dataset = "dissent"
devices = {devices}
"""


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(devices.VISIBLE, "0,1,2,3,4,5,6,7")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def written(folder: Path, wanted: dict[str, int]) -> str:
    tables = (MODEL.format(name=name, devices=number) for name, number in wanted.items())
    path = folder / "gpus.toml"
    path.write_text(BUILD + "".join(tables), encoding="utf-8")
    return str(path)


def test_devices_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(devices.available_gpus()) == 8
    named = {"3,5": ("3", "5"), "": (), "-1": (), "0,-1,2": ("0",), "1,1": ("1",)}
    for visible, found in named.items():
        monkeypatch.setenv(devices.VISIBLE, visible)
        assert devices.available_gpus() == found


def test_a_training_takes_what_divides_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(wanted: int, **settings: Any) -> int:
        preset = read_preset("dissent/bilstm_tiny")
        return devices.process_count(
            preset.recipe({"dataset": "", "output": "", **settings}), wanted
        )

    assert taken(8, batch_size=16) == 8 and taken(7, batch_size=16) == 4
    assert taken(8, batch_size=16, gradient_accumulation=4) == 4
    assert taken(20, batch_size=9) == 3 and taken(8, batch_size=1) == 1
    monkeypatch.setenv(devices.VISIBLE, "")
    assert taken(8, batch_size=16) == 1


def test_eight_devices_are_shared_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each training has its devices to itself, and several run at a time."""
    log = tmp_path / "log"
    log.mkdir()

    def run(module: str, assignments: list[Assignment], threads: int, gpus: int) -> Any:
        with devices.locked_gpus(gpus) as variables:
            began = time.monotonic()
            time.sleep(0.7)
            mine, ended = variables[devices.VISIBLE].split(","), time.monotonic()
        settings = assignments[0].settings
        (log / str(os.getpid())).write_text(json.dumps([began, ended, mine, settings["processes"]]))
        with staged(Path(settings["output"])) as partial:
            write_json(partial / MANIFEST, {})
        return [None]

    monkeypatch.setattr(training, "_run", run)
    config = written(tmp_path, WANTED)
    with options(config, str(tmp_path / "out"), 4):
        dataset = Dataset(config=config, name="dissent").folder
        dataset.mkdir(parents=True)
        write_json(dataset / MANIFEST, {})
        tasks = [Train(config=config, name=name) for name in WANTED]
        assert luigi.build(tasks, local_scheduler=True, workers=4)
    runs = [json.loads(path.read_text()) for path in log.iterdir()]
    assert sorted(len(mine) for _, _, mine, _ in runs) == sorted(WANTED.values())
    assert all(len(mine) == together for _, _, mine, together in runs)
    at_once = 0
    for one, two in combinations(runs, 2):
        if one[0] < two[1] and two[0] < one[1]:
            at_once += 1
            assert not set(one[2]) & set(two[2])
    assert at_once


def test_devices_change_no_model(tmp_path: Path) -> None:
    folders = []
    for number in (1, 8):
        config = written(tmp_path, {"a": number})
        with options(config, str(tmp_path / "out")):
            folders.append(Train(config=config, name="a").folder)
    assert folders[0] == folders[1]


def test_processes_are_the_builds_to_choose(tmp_path: Path) -> None:
    config = Path(written(tmp_path, {"a": 1}))
    config.write_text(config.read_text() + "settings = { processes = 2 }\n")
    refused = pytest.raises(ConfigError, match="it follows from `devices` of the model")
    with options(str(config), str(tmp_path / "out")), refused:
        _ = Train(config=str(config), name="a").choice
