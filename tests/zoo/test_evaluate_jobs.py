"""Several evaluations in one process: `python -m zoo.evaluate --jobs`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from zoo.evaluate.__main__ import main


def test_a_job_that_fails_leaves_the_others(
    dissent_models: dict[str, Path],
    pairs_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def job(name: str, data: str, *more: str) -> list[str]:
        place = str(tmp_path / name / "results.json")
        model = str(dissent_models["ngram"])
        return ["dissent", "--model", model, "--data", data, "--json", place, *more]

    jobs = [
        job("one", str(pairs_folder)),
        job("two", str(tmp_path / "nothing")),
        job("three", str(pairs_folder), "--bins", "3"),
        job("four", str(pairs_folder), "--limit", "6"),
        job("five", str(pairs_folder), "--limit", "six"),
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(jobs)))
    assert main(["--jobs"]) == 0
    reasons = json.loads(capsys.readouterr().out)
    assert reasons[0] == reasons[3] == ""
    assert "no such dataset folder" in reasons[1] and "no option --bins" in reasons[2]
    assert "options are wrong" in reasons[4]
    examples = [
        json.loads((tmp_path / name / "results.json").read_text(encoding="utf-8"))["examples"]
        for name in ("one", "four")
    ]
    assert examples == [24, 6]
    # The same as by itself.
    assert main([*job("alone", str(pairs_folder))]) == 0
    one, alone = (
        (tmp_path / name / "results.json").read_text(encoding="utf-8") for name in ("one", "alone")
    )
    assert one == alone
