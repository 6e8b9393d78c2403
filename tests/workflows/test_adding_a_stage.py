"""The stage that docs/how-to/add-a-stage.md shows is one, from a module outside of the package."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from tests.processes import ran
from tests.workflows.conftest import ROOT, luigi_environment


def test_the_stage_of_the_page_runs_from_a_file_of_its_own(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "add-a-stage.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    whole = next(block for block in blocks if "class Lengths(" in block)
    (tmp_path / "lengths.py").write_text(whole, encoding="utf-8")
    (line,) = re.findall(r"luigi (--module lengths .*)", page)
    places = os.pathsep.join(map(str, [tmp_path, ROOT]))
    done = ran(
        [sys.executable, "-m", "luigi", *line.split(), "--discorpora-output", str(tmp_path)],
        env={**luigi_environment(), "PYTHONPATH": places},
        cwd=tmp_path,
    )
    assert not done.returncode, done.stderr
    (folder,) = (p for p in (tmp_path / "stages/lengths/stories").iterdir() if p.is_dir())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    lengths = json.loads((folder / "lengths.json").read_text(encoding="utf-8"))
    assert manifest["counts"] == {"sentences": sum(lengths.values())}
    assert manifest["settings"] == {"longest": 60}
    assert manifest["command"].startswith("luigi --module lengths Lengths ")
