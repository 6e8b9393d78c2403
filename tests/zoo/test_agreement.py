"""Krippendorff's alpha with a model as one more annotator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from corpora import errors
from corpora.errors import DiscorporaError
from zoo.evaluate.__main__ import main
from zoo.evaluate.agreement import agreement_on, alpha, vote_counts
from zoo.evaluate.pairwise_sets import PairSet, TextPair

pytest.importorskip("krippendorff", reason="the extra eval is not installed")


def pairs(*votes: tuple[int, ...]) -> PairSet:
    return PairSet(
        "s",
        [TextPair(f"g{i}", (), ("A.",), ("B.",), vote) for i, vote in enumerate(votes)],
    )


def test_alpha_by_hand() -> None:
    # Four pairs, two coders: 1 1, 0 0, 1 0, 0 0. n = 8, three 1 and five 0.
    # Observed disagreement 2 / 8; expected 2 * 3 * 5 / (8 * 7).
    counts = vote_counts([(1, 1), (0, 0), (1, 0), (0, 0)])
    assert counts.tolist() == [[0, 2], [2, 0], [1, 1], [2, 0]]
    assert alpha(counts) == pytest.approx(1 - (2 / 8) / (30 / 56))


def test_a_missing_vote_shifts_nothing_and_a_lone_vote_does_not_count() -> None:
    whole = vote_counts([(1, 1), (0, 0), (1, 0), (0, 0)])
    more = vote_counts([(1, 1), (-1, 0, 0), (1, 0), (0, -1, 0), (1, -1), (-1, -1)])
    assert alpha(more) == pytest.approx(alpha(whole))


def test_agreement_of_all_on_one_value_is_full_agreement() -> None:
    assert alpha(vote_counts([(1, 1), (1, 1)])) == 1.0


def test_the_model_is_one_more_annotator_and_its_ties_are_missing() -> None:
    voted = pairs((1, 1), (0, 0), (1, 0), (0, 0))
    found = agreement_on(voted, np.array([2.0, 1, 1, 1]), np.array([1.0, 2, 1, 0]), seed=0)
    expected = alpha(vote_counts([(1, 1, 1), (0, 0, 0), (1, 0), (0, 0, 1)]))
    assert found["alpha"]["value"] == pytest.approx(expected)
    assert found["people"]["value"] == pytest.approx(1 - (2 / 8) / (30 / 56))
    assert (found["ties"], found["pairs"], found["annotators"]) == (1, 4, 2)
    # Of the three pairs with a majority the model has two.
    assert found["majority_accuracy"] == pytest.approx(2 / 3)
    assert (found["alpha"]["ci"], found["alpha"]["units"]) == (None, 4)  # too few


def test_draws_without_a_pair_that_two_people_judged_are_skipped() -> None:
    """One pair of twelve has two votes: in a third of the draws it does not come."""
    voted = pairs((1, 1), *[(1,), (0,)] * 5, (-1,))
    found = agreement_on(voted, np.ones(12), np.zeros(12), seed=0)
    people = found["people"]
    assert people["value"] == 1.0 and people["ci"] == [1.0, 1.0]
    assert people["skipped"] == pytest.approx(1000 * (11 / 12) ** 12, abs=60)
    assert found["alpha"]["skipped"] < people["skipped"]


def test_one_more_coder_raises_or_lowers_alpha() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 2, 200)
    voted = pairs(
        *[(int(v),) * 3 if i % 5 else (int(v), int(v), 1 - int(v)) for i, v in enumerate(truth)]
    )
    same = agreement_on(voted, truth.astype(float), 1.0 - truth, seed=1)
    other = agreement_on(voted, 1.0 - truth, truth.astype(float), seed=1)
    assert same["alpha"]["value"] > same["people"]["value"] > same["random"]["value"]
    assert other["alpha"]["value"] < other["random"]["value"]
    low, high = same["random"]["range"]
    assert low < same["random"]["value"] < high


def test_both_ways_is_not_misled_when_nearly_all_prefer_pos() -> None:
    # 95 of 100 pairs: both prefer pos. The five others: they disagree.
    found = agreement_on(pairs(*[(1, 1)] * 95, *[(1, 0)] * 5), np.ones(100), np.zeros(100), seed=0)
    assert found["people"]["value"] < 0 < 0.85 < found["people"]["both_ways"]


def test_the_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"pos": ["A longer text.", "It goes on."], "neg": ["Short."], "votes": [1, 1, 1]},
        {"pos": ["Short."], "neg": ["A longer text.", "It goes on."], "votes": [0, 0, 1]},
        {"pos": ["Same."], "neg": ["Come."], "votes": [1, 0, -1]},
    ]
    data, out = tmp_path / "lmvlm.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = ["agreement", "--model", "baseline:longer", "--data", str(data), "--json", str(out)]
    assert main(words) == 0
    found = json.loads(out.read_text(encoding="utf-8"))["metrics"]["sets"]["lmvlm"]
    assert found["ties"] == 1
    # The paper's row has the same name: its 0.84 stands in its own column alone.
    shown = capsys.readouterr().out
    assert shown.count("0.84") == 1 and f"{found['people']['value']:.3f}" in shown
    assert found["alpha"]["value"] == pytest.approx(
        alpha(vote_counts([(1, 1, 1, 1), (0, 0, 1, 0), (1, 0)]))
    )
    for votes in ([], [1], [-1, -1, -1], [1, -1]):
        data.write_text(json.dumps({**rows[0], "votes": votes}) + "\n", encoding="utf-8")
        assert main(words) == 2
        assert "lmvlm.jsonl: no test set here has votes of at least" in capsys.readouterr().err


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(errors, "import_module", absent)
    with pytest.raises(DiscorporaError) as error:
        alpha(vote_counts([(1, 1)]))
    assert "discorpora[eval]" in str(error.value)
