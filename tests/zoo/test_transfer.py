"""`measure_transfer`: folds keep documents whole, and a finished part is not run again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corpora.store.atomic import read_json
from tests.bench import measure_transfer
from tests.bench.measure_transfer import CHOSEN, Experiment, Relations, folds, main

from .conftest import write_tiny_bert

SECOND = {
    "Comparison.Contrast": "Her sister kept to the old road.",
    "Contingency.Cause.Reason": "The river had risen in the night.",
    "Expansion.Conjunction": "The boys carried water to the horses.",
    "Temporal.Asynchronous": "They ate supper in the barn.",
}
FIRST = "Mara {} the bridge at dawn."
VERBS = ("left", "crossed", "watched", "repaired", "painted", "avoided")


@pytest.fixture(scope="module")
def gdtb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve documents in PDTB's layout, each with six implicit relations of four senses."""
    folder = tmp_path_factory.mktemp("gdtb")
    for part in ("raw", "gold"):
        (folder / part / "00").mkdir(parents=True)
    for number in range(12):
        text, lines = "", []
        for place, verb in enumerate(VERBS):
            sense, second = [*SECOND.items()][(number + place) % 4]
            fields = [""] * 34
            fields[0], fields[7], fields[8] = "Implicit", "then", sense
            for column, argument in ((14, FIRST.format(verb)), (20, second)):
                text += " " if text else ""
                fields[column] = f"{len(text)}..{len(text) + len(argument)}"
                text += argument
            lines.append("|".join(fields))
        name = f"00/story_{number:02}"
        (folder / "raw" / name).write_text(text, encoding="utf-8")
        (folder / "gold" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_document_is_in_one_fold(gdtb: Path) -> None:
    relations = Relations.read(gdtb, "pdtb_implicit")
    assert len(relations.docs) == 72
    parts = folds(relations, 5)
    assert sorted(np.concatenate([test for _, test in parts])) == [*range(72)]
    for training, test in parts:
        assert len(training) + len(test) == 72
        assert set(relations.docs[training]).isdisjoint(relations.docs[test])
        inner = folds(relations.of(training), 3, seed=1)
        for rows, held in inner:
            docs = relations.docs[training]
            assert set(docs[rows]).isdisjoint(docs[held])


def test_a_finished_part_is_not_run_again(
    gdtb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*SECOND.values(), *map(FIRST.format, VERBS)]
    backbone = write_tiny_bert(tmp_path / "bert", texts, num_hidden_layers=2)
    output = tmp_path / "out"
    words = ["--gdtb", str(gdtb), "--backbone", str(backbone), "--output", str(output)]
    words += ["--frozen", "--folds", "2", "--seeds", "1", "--conditions", "a"]
    monkeypatch.setattr(measure_transfer, "PENALTIES", (1e-2,))
    assert main([*words, "--only", "fold0"]) == 0
    (part,) = (output / "parts").iterdir()
    assert (part.name, read_json(output / "figures.json")) == ("frozen-a-seed0-fold0.json", [])
    # The other fold is judged now, and the finished one keeps its bytes and its time.
    before = part.read_bytes(), part.stat().st_mtime_ns
    judged = []
    frozen = Experiment.frozen
    monkeypatch.setattr(
        Experiment, "frozen", lambda self, part: judged.append(part.fold) or frozen(self, part)
    )
    assert main(words) == 0 and judged == [1]
    assert before == (part.read_bytes(), part.stat().st_mtime_ns)
    # Each relation is predicted once, in the fold whose documents were not trained on.
    (row,) = read_json(output / "figures.json")
    assert (row["condition"], row["seeds"]) == ("a", 1) and row["condition"] != CHOSEN
    # The second arguments show the sense, so that vectors of any encoder tell it.
    assert row["f1"]["value"] > 0.9
    assert main(words) == 0 and judged == [1]
