"""`PublishAll`: what a build made, on the Hub, through the real client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub_server import HubServer
from tests.processes import ran
from tests.workflows.conftest import TINY, luigi_command, luigi_environment, run_forked

TOKEN = "hf_" + "Secret9" * 5
DATASETS = ("bso", "dissent", "permuted", "sp")


def publish_all(
    config: Path, folder: Path, *more: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "luigi", "--module", "workflows", "PublishAll"]
    options = ["--config", str(config), "--discorpora-output", str(folder / "out"), *more]
    known = luigi_environment()
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN"):
        known.pop(name, None)
    home = {"HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_XET": "1", "HF_ENDPOINT": ""}
    return ran([*command, *options], env={**known, **home, **environment}, cwd=folder, timeout=300)


@pytest.mark.slow
def test_a_build_is_published_once(write_config: Callable[[str], Path], tmp_path: Path) -> None:
    """Seen first, then refused without a token, then published, then left as it is."""
    config, server = write_config(TINY), HubServer()
    server.add_user(TOKEN, "ana")
    words = ("--namespace", "ana", "--dry-run")
    seen = run_forked(luigi_command(config, tmp_path / "out", *words, task="PublishAll"), tmp_path)
    assert seen.returncode == 0, seen.stderr
    for name in DATASETS:
        assert f"ana/tiny-{name}" in seen.stdout
    assert seen.stdout.count("may be published") == len(DATASETS)
    refused = publish_all(config, tmp_path, "--namespace", "ana")
    assert refused.returncode != 0
    assert "token" in refused.stderr
    assert "Traceback" not in refused.stderr
    with server.running():
        hub = {"HF_ENDPOINT": server.url, "HF_TOKEN": TOKEN}
        first = publish_all(config, tmp_path, "--namespace", "ana", **hub)
        assert first.returncode == 0, first.stderr
        commits = server.count("POST .*/commit/")
        again = publish_all(config, tmp_path, "--namespace", "ana", **hub)
        assert again.returncode == 0, again.stderr
        assert server.count("POST .*/commit/") == commits == len(DATASETS)
    for name in DATASETS:
        assert "manifest.json" in server.repository(f"ana/tiny-{name}").files
    assert TOKEN not in first.stdout + first.stderr + again.stdout + again.stderr
