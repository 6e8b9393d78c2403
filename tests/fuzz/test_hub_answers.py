"""Answers of the Hub with status 200 that a proxy or a broken Hub could give."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from corpora.publish import publish
from corpora.publish.hub import Hub, PublishSettings

from ..hub_server import HubServer
from .campaign import Call, run, sizes, spoilt_json

ANSWERS = {
    "whoami-v2": {},  # the server's own user is filled in
    "GET /api/datasets/anna/sample$": {
        "id": "anna/sample",
        "sha": "0" * 40,
        "private": False,
        "siblings": [],
    },
    "/tree/": [{"type": "file", "path": "README.md", "size": 3, "oid": "0" * 40}],
    "/preupload/": {
        "files": [{"path": "README.md", "uploadMode": "regular", "shouldIgnore": False}]
    },
    "/commit/": {"commitUrl": "x", "commitOid": "0" * 40, "success": True},
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # tests/zoo sets it
    server = HubServer()
    with server.running():
        yield server


@sizes(30, 5_000)
def test_publishing_ends_in_a_message_or_is_whole(
    cases: int, server: HubServer, pairs_folder: Path
) -> None:
    server.add_user("hf_anna", "anna", role="write", group="admin")
    answers = ANSWERS | {"whoami-v2": {**server.users["hf_anna"], "type": "user"}}
    hub = Hub("hf_anna", endpoint=server.url, settings=PublishSettings(attempts=1))

    def case(seed: int) -> tuple[str, Call]:
        route = list(answers)[seed % len(answers)]
        body = spoilt_json(json.dumps(answers[route]), random.Random(seed))
        server.faults.clear()
        server.repositories.clear()
        if "preupload" not in route and "commit" not in route:
            server.make("anna/sample")
        server.fail(route, status=200, times=1, body=body)
        return f"{route} {body[:200]!r}", partial(publish, pairs_folder, "anna/sample", hub=hub)

    run("answers of the Hub", cases, case)
