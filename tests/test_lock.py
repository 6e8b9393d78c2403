"""`requirements.lock`: the versions of `constraints.txt`, with hashes; the Dockerfile."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.processes import ran

ROOT = Path(__file__).resolve().parents[1]
LOCKED = re.findall(
    r"^([\w.-]+)==([^\s+]+)(?:\+cpu)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    (ROOT / "requirements.lock").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_each_locked_version_is_the_one_of_the_constraints() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    pinned = {canonicalize_name(name): version for name, version in pairs}
    assert {name: version for name, version, _ in LOCKED if pinned.get(name) != version} == {}


def test_every_line_is_a_requirement_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert len(LOCKED) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)) > 100


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["zoo"]
    names = {canonicalize_name(Requirement(each).name) for each in needed}
    assert names <= {canonicalize_name(name) for name, _, _ in LOCKED}


def test_the_dockerfile_is_sound_and_installs_the_lock_with_hashes() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "pip install --no-cache-dir --require-hashes -r requirements.lock" in text
    copied = [
        place for line in re.findall(r"^COPY (.+) \S+$", text, re.M) for place in line.split()
    ]
    assert copied and all((ROOT / place).exists() for place in copied)
    hadolint = Path(sys.executable).parent / "hadolint"
    command = [hadolint, ROOT / "Dockerfile"]
    said = ran(command)
    assert said.returncode == 0, said.stdout
