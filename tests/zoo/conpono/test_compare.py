"""Section 3.4: markers in the examples that one model alone gets right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.errors import InputError
from zoo.conpono.compare import analyse, examples_of, main

TRAINING = [("But it rained.", "So they left."), ("It was dry.", "Then it rained, but not long.")]


def test_changes_by_hand() -> None:
    # but: 2 in 2 training examples, so: 1, then: 1.
    examples = [("But she sang.", "But he slept."), ("He ate.", "She left."), ("So.", "Butter.")]
    found = analyse(TRAINING, examples, np.array([1, 1, 0]) > 0, np.array([0, 1, 1]) > 0)
    one = found["one"]
    assert (one["n"], found["two"]["n"]) == (1, 1)
    # In the first example alone: but 2 against 1 an example (+100 %), so and then gone (-100 %).
    assert one["both"]["markers"]["but"] == pytest.approx(1.0)
    assert one["both"]["change"] == pytest.approx((2 * 1.0 + 1 * -1.0 + 1 * -1.0) / 4)
    # First sentences: but 1 in 2 training examples; 1 in the set.
    assert one["first"]["change"] == pytest.approx(1.0)
    assert found["two"]["first"]["change"] == pytest.approx(-1.0)
    assert found["two"]["both"]["markers"]["so"] == pytest.approx(1.0)  # "Butter" is no marker


def test_examples_have_a_marker_in_the_first_sentence() -> None:
    texts = [("But she sang.", "He slept."), ("She sang.", "But he slept."), ("He slept.", "But.")]
    pairs = [pair for text in texts for pair in (text, text[::-1])]  # BSO: original and swapped
    labels, right = np.tile([1, 0], 3), np.array([1, 1, 1, 1, 0, 0]) > 0
    (example,) = examples_of(pairs, labels, right, 5)
    assert example == {"sentences": ("But she sang.", "He slept."), "markers": ["but"]}


def test_random_samples_scatter_around_the_whole_set() -> None:
    examples = [("But.", "Yes.") if i % 2 else ("No.", "Yes.") for i in range(200)]
    right = np.arange(200) < 100
    found = analyse(TRAINING, examples, right, ~right)
    both = found["one"]["both"]
    assert both["random_mean"] == pytest.approx(both["change"], abs=3 * both["random_deviation"])
    assert 0 < both["random_deviation"] < 0.1
    assert found == analyse(TRAINING, examples, right, ~right)


def test_training_data_without_a_marker_are_refused() -> None:
    with pytest.raises(InputError, match="no marker"):
        analyse([("a", "b")], [("a", "b")], np.array([True]), np.array([False]))


def test_two_models_on_the_ordering_task(
    tmp_path: Path,
    tiny_model: Any,
    tokenizer: Any,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    from zoo.modeling import save_model

    for name, width in {"one": 32, "two": 16}.items():
        save_model(tiny_model(width=width), tokenizer, tmp_path / name)
    folder = tmp_path / "data" / "BSO" / "wiki"
    folder.mkdir(parents=True)
    for split, rows in {"train": 16, "valid": 12}.items():
        lines = [
            f"The baker {i} wakes{', but' * (i % 3 == 0)} late.\tSo the miller eats {i}."
            for i in range(rows)
        ]
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    models = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert main([*models, "--data", str(tmp_path / "data"), "--examples", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["published"]["CONPONO"] == {"both": 15, "first": 12}
    for pairs in found["examples"].values():
        assert all(pair["sentences"][0].startswith("The baker") for pair in pairs)
    assert found["split"] in ("test", "validation")
    rows = found["rows"]
    for name, other in (("one", "two"), ("two", "one")):
        assert 0 <= found["accuracy"][name] <= 1
        assert found[name]["n"] - found[other]["n"] == pytest.approx(
            rows * (found["accuracy"][name] - found["accuracy"][other])
        )
    assert main([*models, "--data", str(tmp_path / "data"), "--domain", "roc"]) == 2
    assert "no BSO data of the domain 'roc'\n  give --domain " in caplog.text
