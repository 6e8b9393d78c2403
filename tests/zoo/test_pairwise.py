"""Pairwise test sets: reading, scoring, ties, the rules beside a model, McNemar."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpora.errors import ConfigError, InputError
from corpora.schemas import COHERENCE_TESTS
from tests.zoo.opened import sets_of
from zoo.evaluate.__main__ import main
from zoo.evaluate.compare import compare
from zoo.evaluate.pairwise import Pairwise, figures_of
from zoo.evaluate.pairwise_sets import PairSet, TextPair, score_pairs
from zoo.evaluate.results import Result
from zoo.evaluate.scorers import adjacent_vectors, baseline, load_scorer
from zoo.evaluate.scores import McNemar, mcnemar
from zoo.training.data import Dataset

from .conftest import write_dataset

STRINGS = pa.list_(pa.string())
INTRUSION = pa.schema(
    [pa.field("doc", pa.string()), pa.field("pos", STRINGS), pa.field("neg", STRINGS)]
)


def row(number: int, pos: Sequence[str], neg: Sequence[str], **more: Any) -> dict[str, Any]:
    given = {"id": f"p{number}", "group": f"g{number // 2}", "prompt": [], "votes": []}
    return {**given, "pos": list(pos), "neg": list(neg), **more}


ROWS = [
    row(0, ["A cat sat.", "The cat slept."], ["A cat sat.", "Rain fell on the distant hills."]),
    row(1, ["Ann read.", "Ann liked the long book."], ["Ann read.", "Ann ate."]),
    row(2, ["It was.", "So be it."], ["It was.", "So be it."]),
    row(3, ["One.", "Two."], ["Two.", "One."]),
]


@pytest.fixture(scope="module")
def jsonl_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    write_jsonl(folder / "stories.jsonl", ROWS)
    write_jsonl(folder / "probe_x.jsonl", ROWS[:2])
    (folder / "README.md").write_text("not a set", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tests_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = {
        ("insted", "test"): (ROWS, COHERENCE_TESTS),
        ("probe_x", "test"): (ROWS[:2], COHERENCE_TESTS),
    }
    return write_dataset(tmp_path_factory.mktemp("data") / "coherence", "coherence_tests", parts)


def write_jsonl(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    lines = (json.dumps({"pos": r["pos"], "neg": r["neg"], **r}) for r in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class ByLetter:
    """Scores a text by how often `e` is in it."""

    def score(self, texts: Sequence[str | Sequence[str]]) -> list[float]:
        return [float(" ".join(text).count("e")) for text in texts]


def test_mcnemar_by_hand() -> None:
    # b = 1, c = 5: p = 2 (1 + 6) / 2^6.
    found = mcnemar("1" + "0" * 5 + "1100", "0" + "1" * 5 + "1100")
    assert found == McNemar(1, 5, pytest.approx(14 / 64))
    assert mcnemar("1100", "1100").p == 1.0
    # A tie is worse than a hit, and better than an error unless ties are wrong.
    assert mcnemar("1110", "1===") == McNemar(2, 1, 1.0)
    assert mcnemar("1110", "1===", "wrong") == McNemar(2, 0, 0.5)
    # What either left out does not count.
    assert mcnemar("11-", "-00") == McNemar(1, 0, 1.0)


def test_identical_pairs_are_left_out_and_counted(jsonl_folder: Path, tests_folder: Path) -> None:
    for place in (jsonl_folder, tests_folder):
        found = {each.name: each for each in sets_of(place).sets}
        assert [(s.identical, len(s.pairs)) for s in found.values() if s.identical] == [(1, 3)]
    one, two = sets_of(jsonl_folder).sets[1], sets_of(tests_folder).sets[0]
    assert one.digest == two.digest
    assert [pair.group for pair in two.pairs] == ["g0", "g0", "g1"]
    some = {one.name: one for one in sets_of(tests_folder, limit=2).sets}
    assert not any(one.identical for one in some.values())  # nobody knows where those stood


def test_one_configuration_one_file_and_intrusion(
    jsonl_folder: Path, tests_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [s.name for s in sets_of(f"{tests_folder}@probe_x").sets] == ["probe_x"]
    assert [s.name for s in sets_of(jsonl_folder / "stories.jsonl").sets] == ["stories"]
    named = sets_of(jsonl_folder).description
    monkeypatch.chdir(jsonl_folder)
    assert sets_of(".").description == named and named["name"]


def test_the_builders_intrusion_pairs(tmp_path: Path) -> None:
    rows = [{"doc": f"d#{n}", "pos": r["pos"], "neg": r["neg"]} for n, r in enumerate(ROWS[:2])]
    detection = pa.schema([pa.field("doc", pa.string())])
    parts = {
        ("pairwise", "test"): (rows, INTRUSION),
        ("detection", "test"): ([{"doc": "d"}], detection),
    }
    folder = write_dataset(tmp_path / "i", "intrusion", parts)
    for spec in (str(folder), f"{folder}@pairwise"):
        (found,) = sets_of(spec).sets
        assert (found.name, [pair.group for pair in found.pairs]) == ("intrusion", ["d", "d"])


def test_accuracy_and_ties_by_hand() -> None:
    pairs = [TextPair(r["group"], (), tuple(r["pos"]), tuple(r["neg"])) for r in ROWS]
    one = PairSet("s", pairs)
    scores = {"": score_pairs(one, ByLetter()), "shorter": score_pairs(one, baseline("shorter"))}
    found = figures_of(one, scores, seed=0)
    # e: 2 to 2, 3 to 2, equal texts, the same letters: one right, two ties, one left out.
    assert found["accuracy"]["value"] == pytest.approx(2 / 3) and found["accuracy"]["ties"] == 2
    assert (found["outcomes"], found["pairs"], found["identical"]) == ("=1-=", 3, 1)
    # Shorter: right on the first, wrong on the second, a tie on the last.
    assert found["baselines"]["shorter"]["value"] == 0.5
    assert found["baselines"]["shorter"]["ties"] == 1
    wrong = figures_of(one, scores, seed=0, ties="wrong")  # the authors' protocol
    assert wrong["accuracy"]["value"] == wrong["baselines"]["shorter"]["value"] == 1 / 3


def test_the_prompt_stands_before_both_texts() -> None:
    seen: list[list[str]] = []

    class Spy:
        def score(self, texts: Sequence[Any]) -> list[float]:
            seen.extend(texts)
            return [0.0] * len(texts)

    found = PairSet("s", [TextPair("g", ("Once.",), ("A.",), ("B.",))])
    score_pairs(found, Spy())
    assert seen == [["Once.", "A."], ["Once.", "B."]]
    score_pairs(found, Spy(), prompt=False)
    assert seen[2:] == [["A."], ["B."]]


@pytest.mark.parametrize("prompt", [True, False])
def test_a_rule_reads_what_the_model_reads(prompt: bool) -> None:
    pairs = [TextPair("g", ("The cat sat.",), ("The cat slept.",), ("It rained.",))]
    tfidf = baseline("tfidf")
    scores = score_pairs(PairSet("s", pairs), tfidf, prompt)
    found = figures_of(PairSet("s", pairs), {"": scores, "tfidf": scores}, seed=0)
    own = found["accuracy"]
    assert found["baselines"]["tfidf"]["value"] == own["value"] == (1.0 if prompt else 0.5)
    assert own["ties"] == (not prompt)


def test_adjacent_cosines_by_hand() -> None:
    vectors = {"a": [1.0, 0.0], "b": [0.0, 2.0], "c": [3.0, 3.0]}
    scorer = adjacent_vectors(lambda texts: np.array([vectors[text] for text in texts]))
    half = 0.5**0.5
    found = scorer.score([["a", "c", "b"], ["a", "b"], ["c"], ["a", "a", "b"]])
    assert found == pytest.approx([half, 0.0, 0.0, 0.5])
    related, unrelated, alone = baseline("tfidf").score([["x y", "x z"], ["x y", "z w"], ["x"]])
    assert related > unrelated == alone == 0.0
    assert baseline("tfidf").score([["…", "?"], ["!"]]) == [0, 0]


def test_the_suite_with_a_rule_as_its_model(jsonl_folder: Path, tmp_path: Path) -> None:
    out, second = tmp_path / "shorter.json", tmp_path / "longer.json"
    assert run(jsonl_folder, "shorter", out) == 0
    assert run(jsonl_folder, "longer", second) == 0
    found = json.loads(second.read_text(encoding="utf-8"))
    sets = found["metrics"]["sets"]
    assert sets["stories"]["identical"] == 1 and sets["stories"]["pairs"] == 3
    assert "stories: 1 pair of equal texts left out" in found["notes"]
    assert found["metrics"]["means"]["probes"] == {"value": 0.5, "of": 1}
    assert sets["stories"]["accuracy"]["value"] == sets["stories"]["baselines"]["longer"]["value"]
    other = Result.of(json.loads(out.read_text(encoding="utf-8")))
    assert Pairwise.tests(Result.of(found), other)["stories"] == McNemar(1, 1, 1.0)
    assert "McNemar exact p = 1" in compare([second, out]).render()
    assert "notes" in found and str(tmp_path) not in second.read_text(encoding="utf-8")


def test_results_of_other_pairs_are_not_tested_against_each_other(
    jsonl_folder: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "a.json", tmp_path / "b.json"
    assert run(jsonl_folder, "longer", one) == 0
    assert run(jsonl_folder, "shorter", two, "--prompt", "false") == 0
    with pytest.raises(InputError, match=r"prompt = True.*prompt = False"):
        compare([one, two])
    sets = [{"a": {"pairs_digest": digest, "outcomes": ""}} for digest in "xy"]
    with pytest.raises(InputError, match="set 'a': the two results are of different pairs"):
        Pairwise.tests(*(Result({}, {}, 1, {"sets": each}) for each in sets))


def test_bad_input_is_named(
    tmp_path: Path, jsonl_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="no test set here"):
        sets_of(tmp_path)
    write_jsonl(tmp_path / "v.jsonl", [row(0, ["A."], ["B."], votes=[2])])
    with pytest.raises(InputError, match=r"v\.jsonl:1: .*votes"):
        sets_of(tmp_path)
    write_jsonl(tmp_path / "v.jsonl", [])
    with pytest.raises(InputError, match=r"v\.jsonl: holds no pair"):
        sets_of(tmp_path)
    with pytest.raises(ConfigError, match="no baseline 'shortr'"):
        load_scorer("baseline:shortr")
    with pytest.raises(InputError, match="no model here"):
        load_scorer(str(tmp_path))
    assert run(jsonl_folder, "shorter", tmp_path / "o.json", "--encodre", "x") == 2
    assert "did you mean '--encoder'" in capsys.readouterr().err


def test_pairs_of_one_prompt_are_one_unit(tmp_path: Path) -> None:
    given = [("p1", "Once."), ("p2", "Once."), ("p3", ""), ("p4", ""), ("p5", "Then.")]
    rows = [{"id": id, "prompt": prompt, "pos": ["A."], "neg": ["B."]} for id, prompt in given]
    write_jsonl(tmp_path / "v.jsonl", rows)
    (tmp_path / "._v.jsonl").write_bytes(b"\x00\x05\x16\x07")  # macOS leaves such files
    (found,) = sets_of(tmp_path).sets
    assert [pair.group for pair in found.pairs] == ["p1", "p1", "p3", "p4", "p5"]


def test_texts_of_a_dataset_are_lists_of_sentences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def opened(spec: str, config: str = "") -> Dataset:
        table = pa.table({"prompt": ["It rained."], "pos": [pos], "neg": [neg]})
        return Dataset("mine", "default", "r1", {"test": table})

    monkeypatch.setattr("zoo.training.data.open_dataset", opened)
    pos, neg = ["It was wet.", "We left."], ["We left.", "It was wet."]
    (found,) = sets_of("owner/mine").sets
    assert found.pairs[0].prompt == ("It rained.",) and found.pairs[0].pos == tuple(pos)
    pos, neg = "It was wet.", "We left."
    with pytest.raises(InputError, match="mine@default: pos is string, expected a list"):
        sets_of("owner/mine")


def test_two_files_of_one_set_name_are_refused(tmp_path: Path) -> None:
    for name in ("stories.dev.jsonl", "stories.test.jsonl"):
        write_jsonl(tmp_path / name, [row(1, ["It rained."], ["It snowed."])])
    message = r"stories\.dev\.jsonl and stories\.test\.jsonl are both the set 'stories'"
    with pytest.raises(InputError, match=message):
        sets_of(tmp_path)


def test_a_model_that_gives_no_score_is_refused(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    tiny = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    BertModel(tiny).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="'bert', which gives no score"):
        load_scorer(str(tmp_path))


def test_shorter_wins_on_two_probes_of_the_shared_data(discorpora_data: Path) -> None:
    folder = discorpora_data / "coherence"
    if not folder.is_dir():
        pytest.skip("no coherence test sets here")
    found = {each.name: each for each in sets_of(folder).sets}
    shorter = baseline("shorter")
    for name in ("probe_past_to_future_flip", "probe_to_negation"):
        coherent, other, _ = score_pairs(found[name], shorter)
        assert (coherent > other).mean() >= 0.85
    assert found["probe_conjunction_flip"].identical == 1


def run(folder: Path, rule: str, out: Path, *more: str) -> int:
    words = ["pairwise", "--model", f"baseline:{rule}", "--data", str(folder), "--json", str(out)]
    return main([*words, "--encoder", "none", *more])


def test_permuted_documents_with_any_scorer(
    permuted_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.json"
    words = ["permuted", "--model", "baseline:shorter", "--data", str(permuted_folder)]
    assert main([*words, "--json", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    # A permutation has as many characters as its document: the rule only ties.
    accuracy = found["metrics"]["accuracy"]
    assert accuracy["ties"] == found["examples"] == found["metrics"]["pairs"]
    assert (accuracy["value"], accuracy["ci"]) == (0.5, [0.5, 0.5] if accuracy["ci"] else None)
    assert re.search(r"permuted accuracy +│ +50\.0 │.*all ties", capsys.readouterr().out)
    assert main([*words, "--json", str(out), "--ties", "wrong"]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["metrics"]["accuracy"]["value"], found["protocol"]["ties"]) == (0, "wrong")
    assert found["model"] == {"name": "shorter", "type": "baseline"}


def test_the_random_rule_draws_for_each_text() -> None:
    """By place it drew the same outcomes for every test set."""
    texts = [[f"It rained {number} times.", "She stayed."] for number in range(400)]
    scores = np.array(load_scorer("baseline:random", 1).score(texts))
    assert scores[7] == load_scorer("baseline:random", 1).score([texts[7]])[0]
    assert scores.min() >= 0 and scores.max() < 1 and abs(scores.mean() - 0.5) < 0.06
    assert (scores != load_scorer("baseline:random", 2).score(texts)).all()
