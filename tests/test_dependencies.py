"""The pinned versions: known advisories, asked for each night."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"


@pytest.mark.nightly
def test_no_advisory_is_open_for_a_pinned_version() -> None:
    pytest.importorskip("pip_audit", reason="pip-audit is not installed: make nightly installs it")
    words = ["--no-deps", "--disable-pip", "--format", "json", "-r", str(CONSTRAINTS)]
    command = [sys.executable, "-m", "pip_audit", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.strip()
    if not said.startswith("{"):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        pytest.skip(f"the database of advisories cannot be reached: {last[:200]}")
    found = json.loads(said)["dependencies"]
    asked = [each for each in found if "skip_reason" not in each]
    if not asked:
        reason = found[0]["skip_reason"]
        pytest.skip(f"the database of advisories knows none of {len(found)} packages: {reason}")
    known = {each["name"]: [vuln["id"] for vuln in each["vulns"]] for each in asked}
    assert not {name: ids for name, ids in known.items() if ids}
