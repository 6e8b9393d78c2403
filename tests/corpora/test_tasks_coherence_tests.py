"""Coherence test sets from the user's files: pairs, votes, what is left out and what is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.readers.coherence import SETS
from corpora.store.atomic import staged
from corpora.tasks.builder import Target
from corpora.tasks.coherence_tests import CoherenceTests

PROBES = [name.removeprefix("probe_") for name in SETS if name.startswith("probe_")]
TEXT = ["Ada opened the gate.", "The goat walked out.", "She ran after it."]
OTHER = ["Ada opened the gate.", "The soup was cold.", "She ran after it."]
CLOZE = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\n"
    "s1,One.,Two.,Three.,Four.,Wrong.,Right.,2\n"
    "s2,One.,Two.,Three.,Four.,Good.,Bad.,1\n"
)


@pytest.fixture
def built(tmp_path, stage) -> Callable[..., tuple[dict[str, list[dict]], dict[str, Any]]]:
    def build(*sources: tuple[str, dict], max_bad_share: float = 1.0):
        folder = tmp_path / f"built{len(list(tmp_path.glob('built*')))}" / "data"
        with staged(folder) as partial:
            target = Target(partial, stage, 1, max_bad_share=max_bad_share)
            manifest = CoherenceTests().build(sources, target)
        paths = folder.glob("*/test-*.parquet")
        return {path.parent.name: pq.read_table(path).to_pylist() for path in paths}, manifest

    return build


def jsonl(path: Path, *records: dict) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def pickled(path: Path, value: Any) -> Path:
    path.write_bytes(pickle.dumps(value))
    return path


def test_the_builder_reads_sources():
    assert CoherenceTests.reads == "sources"
    assert len(PROBES) == 8 and {f"probe_{name}" for name in PROBES} < set(SETS)


def test_the_authors_files_by_their_names(built, tmp_path):
    pair = {"pos": TEXT, "neg": OTHER}
    for name in PROBES:
        pickled(tmp_path / f"lingprobe_insted_{name}.pkl", [pair])
    pickled(tmp_path / "INSteD_intrusion_test_wikipedia.pkl", [pair | {"reference_file": 7}, pair])
    pickled(tmp_path / "StoryCloze.pkl", [pair])
    rows, manifest = built((f"coherence:{tmp_path}", {}))
    assert set(rows) == {"insted", "storycloze", *(f"probe_{name}" for name in PROBES)}
    assert rows["insted"][0] | {"id": ""} == {
        "id": "",
        "group": "7",
        "prompt": [],
        "pos": TEXT,
        "neg": OTHER,
        "votes": [],
    }
    assert manifest["details"]["exact_duplicates"]["insted"] == 1
    assert manifest["configs"]["insted"]["default"]
    assert manifest["licence"]["id"] == "unknown" and not manifest["licence"]["redistributable"]


def test_each_set_has_its_licence_of_a_table(built, tmp_path, stage):
    pickled(tmp_path / "INSteD_intrusion_test_wikipedia.pkl", [{"pos": TEXT, "neg": OTHER}])
    licence = {"storycloze": "research-only", "default": "CC-BY-SA-3.0"}
    stage.sources[0]["name"] = "tests"
    given = (f"coherence:{tmp_path}", {"licence": licence, "name": "tests"})
    _, manifest = built(given)
    assert manifest["licence"]["id"] == "CC-BY-SA-3.0"
    pickled(tmp_path / "StoryCloze.pkl", [{"pos": TEXT, "neg": OTHER}])
    _, manifest = built(given)
    assert manifest["licences"] == {"CC-BY-SA-3.0": 1, "research-only": 1}
    assert not manifest["licence"]["redistributable"]
    assert manifest["sources"][0]["licence"] == "CC-BY-SA-3.0 AND research-only"
    document = next(open_source(*given))
    assert document.licence == "CC-BY-SA-3.0"
    with pytest.raises(ConfigError, match="no test set 'story_cloze'") as caught:
        built((given[0], {"licence": {"story_cloze": "research-only", "default": "MIT"}}))
    assert "did you mean 'storycloze'" in caught.value.hint


def test_identical_pairs_are_left_out_and_counted(built, tmp_path):
    path = tmp_path / "probe_conjunction_flip.jsonl"
    jsonl(path, {"pos": TEXT, "neg": TEXT}, {"pos": TEXT, "neg": OTHER}, {"pos": "x", "neg": []})
    rows, manifest = built((f"coherence:{path}", {}))
    assert [row["neg"] for row in rows["probe_conjunction_flip"]] == [OTHER]
    assert manifest["rejects"] == {"bad_record": 1, "identical_probe_conjunction_flip": 1}
    (bad,) = manifest["details"]["bad_records"]
    assert bad.startswith("probe_conjunction_flip.jsonl:3: no text")


def test_votes_stand_in_a_file_of_their_own(built, tmp_path):
    pairs = [{"pos": TEXT, "neg": OTHER, "prompt": "Write on."}, {"pos": OTHER, "neg": TEXT}]
    pickled(tmp_path / "LMvLM.pkl", pairs)
    pickled(tmp_path / "LMvLM_Annotations.pkl", [["0", "1"], ["0", "0"], ["1", "2"]])
    rows, _ = built((f"coherence:{tmp_path}", {"licence": "MIT"}))
    assert [row["votes"] for row in rows["lmvlm"]] == [[1, 1, 0], [0, 1, -1]]
    assert [row["prompt"] for row in rows["lmvlm"]] == [["Write on."], []]


def test_pairs_of_one_prompt_are_one_group(built, tmp_path):
    path = tmp_path / "lmvlm.jsonl"
    given = {"pos": TEXT, "neg": OTHER}
    jsonl(path, *({"id": id, "prompt": prompt} | given for prompt, id in ("a1", "a2", "b3")))
    rows, _ = built((f"coherence:{path}", {}))
    assert [row["group"] for row in rows["lmvlm"]] == ["1", "1", "3"]


def test_votes_and_prompts_of_json_lines(built, tmp_path):
    path = jsonl(
        tmp_path / "mine.jsonl",
        {"id": "a", "pos": TEXT, "neg": OTHER, "votes": [1, 0, -1], "prompt": ["One.", "Two."]},
        {"id": "b", "pos": TEXT, "neg": OTHER, "votes": ["yes"]},
    )
    rows, manifest = built((f"coherence:{path}", {"set": "lmvlm"}))
    assert [(r["votes"], len(r["prompt"])) for r in rows["lmvlm"]] == [([1, 0, -1], 2)]
    assert manifest["rejects"] == {"bad_record": 1}


@pytest.mark.parametrize("votes", [[["0"]], [["0", "1", "0"]], {"a": 1}, ["0", "1"]])
def test_annotations_of_another_file_are_an_error(built, tmp_path, votes):
    pickled(tmp_path / "LMvLM.pkl", [{"pos": TEXT, "neg": OTHER}] * 2)
    pickled(tmp_path / "LMvLM_Annotations.pkl", votes)
    with pytest.raises(InputError, match=r"LMvLM|votes"):
        built((f"coherence:{tmp_path}", {}))


def test_storycloze(built, tmp_path):
    (tmp_path / "val.csv").write_text(CLOZE, encoding="utf-8")
    rows, manifest = built((f"storycloze:{tmp_path}", {}))
    assert [(r["id"], r["pos"][-1], r["neg"][-1]) for r in rows["storycloze"]] == [
        ("s1", "Right.", "Wrong."),
        ("s2", "Good.", "Bad."),
    ]
    assert rows["storycloze"][0]["pos"][:4] == ["One.", "Two.", "Three.", "Four."]
    assert not manifest["licence"]["redistributable"]


def test_a_pair_of_two_files_comes_once(built, tmp_path):
    """The authors' pickle of a set, and the release that it was made from."""
    (tmp_path / "val.csv").write_text(CLOZE, encoding="utf-8")
    begin = ["One.", "Two.", "Three.", "Four."]
    endings = (("Right.", "Wrong."), ("Good.", "Bad."), ("Other.", "Odd."))
    pairs = [{"pos": [*begin, right], "neg": [" ".join(begin), wrong]} for right, wrong in endings]
    pickles = tmp_path / "independent_test_sets"
    pickles.mkdir()
    pickled(pickles / "StoryCloze.pkl", pairs)
    release = jsonl(tmp_path / "s.jsonl", *(summary("d1", f"M{n}", 1 + n) for n in range(3)))
    (first, *rest), _ = (built((f"summeval:{release}", {}))[0]["summeval"], None)
    texts = [{side: test[side] for side in ("pos", "neg")} for test in (first, *rest)]
    pickled(pickles / "SummEval.pkl", [*texts, texts[0], {"pos": TEXT, "neg": OTHER}])
    released = (f"coherence:{pickles}", {})
    sources = [released, (f"storycloze:{tmp_path / 'val.csv'}", {}), (f"summeval:{release}", {})]
    rows, manifest = built(*sources)
    assert [row["id"] for row in rows["storycloze"]] == [f"StoryCloze-000{n}" for n in range(3)]
    assert len(rows["summeval"]) == 5 and manifest["details"]["exact_duplicates"]["summeval"] == 1
    assert manifest["rejects"] == {"in_another_file_storycloze": 2, "in_another_file_summeval": 3}
    rows, _ = built(*sources[::-1])
    assert [row["id"] for row in rows["storycloze"]] == ["s1", "s2", "StoryCloze-0002"]
    assert [len(row["votes"]) for row in rows["summeval"]] == [1, 1, 1, 0]


@pytest.mark.parametrize("bad", [1, 3])
def test_too_many_bad_records_of_one_source_are_an_error(built, tmp_path, bad):
    (tmp_path / "good.csv").write_text(CLOZE, encoding="utf-8")
    broken = CLOZE.replace("s1,One", "t1,Once").replace("s2,One", "t2,Once") + "short,One.\n" * bad
    (tmp_path / "bad.csv").write_text(broken, encoding="utf-8")
    sources = [(f"storycloze:{tmp_path / name}", {}) for name in ("good.csv", "bad.csv")]
    rows, manifest = built(*sources, max_bad_share=bad / (bad + 2))
    assert len(rows["storycloze"]) == 4 and manifest["rejects"] == {"bad_record": bad}
    with pytest.raises(
        InputError, match=rf"bad\.csv: {bad} bad records? beside 2 good rec"
    ) as error:
        built(*sources, max_bad_share=0.3)
    assert "bad.csv:4: wrong number of fields" in error.value.message


def test_a_source_without_a_good_record_is_an_error(built, tmp_path):
    (tmp_path / "good.csv").write_text(CLOZE, encoding="utf-8")
    (tmp_path / "none.csv").write_text(CLOZE.splitlines()[0], encoding="utf-8")
    with pytest.raises(InputError, match=r"none\.csv: no record could be read"):
        built(*((f"storycloze:{tmp_path / name}", {}) for name in ("good.csv", "none.csv")))


def test_good_and_bad_are_counted_by_record(built, tmp_path):
    summaries = [summary("d1", f"M{number}", 1 + number) for number in range(4)]
    several = {"pos": TEXT, "negs": [OTHER] * 8}
    files = {
        "summeval": jsonl(tmp_path / "s.jsonl", *summaries, *[{}] * 120),  # 6 pairs of 4 records
        "coherence": jsonl(tmp_path / "insted.jsonl", several, {}),  # 8 pairs of 1 record
    }
    for kind, expected in (
        ("summeval", "120 bad records beside 4"),
        ("coherence", "1 .* beside 1"),
    ):
        with pytest.raises(InputError, match=expected):
            built((f"{kind}:{files[kind]}", {}), max_bad_share=0.3)


def summary(document: str, system: str, *ratings: int) -> dict:
    text = f"The council met on Monday. System {system} wrote this about {document}."
    experts = [{"coherence": r, "fluency": 5} for r in ratings]
    return {"id": document, "model_id": system, "decoded": text, "expert_annotations": experts}


def test_summaries_are_paired_within_their_article(built, tmp_path):
    path = jsonl(
        tmp_path / "model_annotations.aligned.jsonl",
        summary("d1", "M0", 2, 2, 3),
        summary("d2", "M0", 5, 5, 5),
        summary("d1", "M1", 4, 2, 2),
        summary("d1", "M2", 3, 2, 2),
        summary("d2", "M1", 1, 5, 4),
        summary("d2", "M2", 1, 9, 4),
        {"id": "d2", "model_id": "M3", "decoded": "Text."},
    )
    rows, manifest = built((f"summeval:{path}", {"licence": "MIT"}))
    assert [(r["id"], r["votes"]) for r in rows["summeval"]] == [
        ("d1/M0-M1", [1, -1, 0]),
        ("d1/M1-M2", [1, -1, -1]),
        ("d2/M0-M1", [1, -1, 1]),
    ]
    first = rows["summeval"][0]
    assert first["group"] == "d1" and first["pos"][1].startswith("System M1 wrote")
    assert len(first["pos"]) == len(first["neg"]) == 2
    assert manifest["rejects"] == {"bad_record": 2, "equal_rating": 1}


def test_a_name_that_tells_no_set_asks_for_one(built, tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", {"pos": TEXT, "neg": OTHER})
    with pytest.raises(InputError, match=r"pairs\.jsonl.*cannot tell the test set"):
        built((f"coherence:{path}", {}))
    with pytest.raises(ConfigError, match="set = 'instead': did you mean 'insted'"):
        built((f"coherence:{path}", {"set": "instead"}))


def test_a_source_of_another_kind_or_named_twice_is_an_error(built, tmp_path):
    path = jsonl(tmp_path / "insted.jsonl", {"id": "a", "pos": TEXT, "neg": OTHER})
    with pytest.raises(InputError, match="two rows of 'insted/test' have the id 'a'"):
        built((f"coherence:{path}", {}), (f"coherence:{path}", {}))
    with pytest.raises(ConfigError, match="jsonl: is not a source of"):
        built((f"jsonl:{path}", {}))


def test_the_folder_loads_and_is_the_same_each_time(tmp_path, stage, load, folder_bytes):
    path = jsonl(tmp_path / "insted.jsonl", {"id": "a", "pos": TEXT, "neg": OTHER})
    folders = [tmp_path / "one" / "x", tmp_path / "two" / "x"]
    for folder in folders:
        with staged(folder) as partial:
            given = [(f"coherence:{path}", {})]
            CoherenceTests().build(given, Target(partial, stage, 1))
    assert folder_bytes(folders[0]) == folder_bytes(folders[1])
    assert load(folders[0], "insted")["test"][0]["pos"] == TEXT


@pytest.mark.usefixtures("small_audits")
def test_the_shared_sets(built, discorpora_data):
    rows, manifest = built((f"coherence:{discorpora_data / 'coherence'}", {}))
    assert "insted" in rows and sum(name.startswith("probe_") for name in rows) >= 4
    for name, tests in rows.items():
        whole = (discorpora_data / "coherence").glob(f"*{name.replace('insted', 'instead')}*")
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in whole)
        assert len(tests) + manifest["rejects"].get(f"identical_{name}", 0) == lines
        assert all(len(t["pos"]) == len(t["neg"]) and t["pos"] != t["neg"] for t in tests)
    assert manifest["rejects"]["identical_probe_conjunction_flip"] >= 1
