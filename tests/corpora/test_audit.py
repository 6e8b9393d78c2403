"""The audit finds what tells labels apart, says so, and agrees with released figures."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from corpora import schemas
from corpora.audit import RULES, Audited, audited, released, rendered
from corpora.audit.features import clean, open_quotes, shape_of
from corpora.audit.opening import opened
from corpora.audit.verdict import ADVICE, verdict
from corpora.errors import ConfigError, InputError
from corpora.store.atomic import staged
from corpora.store.card import Card
from corpora.store.folder import DatasetFolder, Stage

CARD = Card(title="T", summary="S.", method="M.", fields={}, citation="")
SUBJECTS = ["The miller", "A tall boat", "Her brother", "This old map", "The second train"]
VERBS = ["carried", "forgot", "followed", "painted", "sold", "counted", "lost"]
ENDS = ["the keys", "nine stones", "a letter from the coast", "some bread", "her coat", "it all"]


def sentence(draw: random.Random) -> str:
    return f"{draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(ENDS)} at {draw.random()}."


def pairs(split: str, number: int, shortcut: str) -> list[dict]:
    """Pairs and their swaps; the shortcut ends the first sentence of the original."""
    draw, rows = random.Random(split), []
    for i in range(number):
        one, two = sentence(draw)[:-1] + shortcut, sentence(draw)
        for label, first, second in ((1, one, two), (0, two, one)):
            row = {"doc": f"{split}-{i // 2}", "label": label}
            rows.append({**row, "sentence1": first, "sentence2": second})
    return rows


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, stage: Stage) -> Make:
    def make(splits: Mapping[str, list[dict]], schema: pa.Schema = schemas.BSO) -> Path:
        folder = tmp_path / "data"
        with staged(folder) as partial, DatasetFolder(partial, "x", stage, CARD) as dataset:
            for split, rows in splits.items():
                dataset.writer("default", split, schema).extend(rows)
            dataset.count_licence("CC0-1.0", 1)
            dataset.finish("default")
        return folder

    return make


def read(folder: Path, tmp_path: Path, kind: str = "") -> Audited:
    return audited(opened(str(folder), kind=kind), tmp_path)["default"]


def value(found: Audited, rule: str, measure: str = "accuracy") -> float:
    (one,) = (each for each in found.rules if (each.rule, each.measure) == (rule, measure))
    return one.value


def test_a_shortcut_is_found_warned_of_and_shown(make, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        folder = make({"train": pairs("train", 150, "?"), "test": pairs("test", 60, "?")})
    assert "further above chance than released" in caplog.text and "surface" in caplog.text
    told = json.loads((folder / "audit.json").read_text())["configs"]["default"]
    rules = {rule["rule"]: rule for rule in told["rules"]}
    assert rules["surface"]["value"] > 95 and rules["surface"]["low"] > 90
    assert rules["majority"]["value"] == rules["surface"]["chance"] == 50.0
    assert told["train"], told["test"] == (300, 120)
    card = (folder / "README.md").read_text()
    assert "## How far simple rules get" in card
    assert f"| surface | accuracy | {rules['surface']['value']} |" in card
    assert "**Further above chance than on released data:**" in card
    again = read(folder, tmp_path)
    assert asdict(again) == told
    title, *findings, ending = verdict({"default": again})
    assert "look at before you train" in title and "audit it again" in ending
    surface = rules["surface"]
    said = f"- default: surface {surface['value']} [{surface['low']}, {surface['high']}], 54.7 on "
    (line,) = (line for line in findings if line.startswith(said))
    assert "DiscoEval, Wikipedia" in line and "make them alike" in line


def test_without_a_shortcut_rules_stay_at_chance_and_nothing_is_warned_of(make, tmp_path, caplog):
    folder = make({"train": pairs("train", 150, "."), "test": pairs("test", 60, ".")})
    found = read(folder, tmp_path)
    assert all(rule.low <= 50 <= rule.high for rule in found.rules)
    assert not found.above and "further above" not in caplog.text
    (line,) = verdict({"default": found})
    assert line.startswith("Verdict: no finding")


def test_too_few_rows_are_said(make):
    folder = make({"train": pairs("train", 3, "."), "test": pairs("test", 2, ".")})
    assert "`default`: no rule was fitted: 6 training rows and 4 test rows of other documents" in (
        folder / "README.md"
    ).read_text(encoding="utf-8")


def test_rows_of_documents_that_train_are_not_scored(make, tmp_path):
    test = pairs("test", 60, ".")
    for row in test[:40]:
        row["doc"] = "train-0#7"
    found = read(make({"train": pairs("train", 100, "."), "test": test}), tmp_path)
    assert (found.train, found.test) == (200, 80)


def test_an_unknown_kind_has_its_labels_and_duplicates_counted(make, tmp_path):
    schema = schemas.schema(doc=schemas.STRING, words=schemas.STRING, label=["a", "b"])
    rows = [{"words": f"It rained on day {i}.", "label": int(i < 10)} for i in range(50)]
    # These differ in a vowel sign only, which is no letter.
    rows += [{"words": f"{word} \u092c", "label": 0} for word in ("\u0915\u0940", "\u0915\u093f")]
    same = [{"words": "IT RAINED, on day 3", "label": 0}]
    splits = {"train": [*rows, *same], "test": same * 4}
    for split, own in splits.items():  # names of several words make no row another one
        splits[split] = [{"doc": f"The {split} Book {i}", **row} for i, row in enumerate(own)]
    found = read(make(splits, schema), tmp_path)
    assert not found.rules and found.left_out == "no rule is for such rows"
    shares = {(each.split, each.what): (each.value, each.n) for each in found.duplicates}
    assert shares["train", "equal to an earlier row"] == (1.9, 53)
    assert shares["test", "equal to an earlier row"] == (75.0, 4)
    assert shares["test", "equal to a row of train"] == (100.0, 4)
    train = found.labels[0]
    assert (train.split, train.what, train.value) == ("train", "label `a`", 81.1)
    assert train.low < train.value < train.high and train.chance == 50.0


def test_rows_without_blanks_are_read_by_character(make, tmp_path):
    """Chinese: equal rows are counted, and the rules see characters as words."""
    places = "河山海村城园店校桥路江湖岛谷林田院街市港"
    pairs = [
        {"doc": f"{split}-{i // 2}", "label": i % 2, "sentence1": one, "sentence2": two}
        for split, count in (("train", 60), ("test", 30))
        for i in range(count)
        for rained in [f"昨天{places[i % 20]}{places[i // 20]}边下了很大的雨。"]
        for stayed in [f"所以我们在{places[i % 20]}里没有出门。"]
        for one, two in [(stayed, rained) if i % 2 else (rained, stayed)]
    ]
    train, test = pairs[:60], [*pairs[60:], pairs[0]]
    found = read(make({"train": train, "test": test}), tmp_path)
    shares = {(each.split, each.what): (each.value, each.n) for each in found.duplicates}
    assert shares["test", "equal to a row of train"] == (100.0, 31)
    assert shares["scored", "nearly equal to a training row"][0] > 0
    assert value(found, "bag") == 100.0


def test_near_duplicates_of_other_items_are_counted(make, tmp_path):
    train, test = pairs("train", 100, "."), pairs("test", 40, ".")
    for i in range(0, 20, 2):
        one, two = f"Now {train[i]['sentence1']}", train[i]["sentence2"]
        test[i] |= {"sentence1": one, "sentence2": two}
        test[i + 1] |= {"sentence1": two, "sentence2": one}
    found = read(make({"train": train, "test": test}), tmp_path)
    shares = {each.what: each.value for each in found.duplicates if each.split == "scored"}
    assert shares["nearly equal to a training row"] == 25.0
    assert shares["nearly equal to another scored row"] == 0.0


def test_the_place_of_the_intruder_is_a_rule(make, tmp_path):
    def rows(split: str, number: int) -> list[dict]:
        draw = random.Random(split)
        made = []
        for i in range(number):
            pos = [sentence(draw) for _ in range(4)]
            at = 2 if i % 8 else 1
            neg = [*pos[:at], sentence(draw), *pos[at + 1 :]]
            alike = {"similarity": 0.1, "replaced_similarity": 0.1}
            row = {"doc": f"{split}{i}", "donor": "d", "position": at, **alike}
            made.append({**row, "pos": pos, "neg": neg})
        return made

    folder = make({"train": rows("train", 80), "test": rows("t", 40)}, schemas.INTRUSION_PAIRWISE)
    found = read(folder, tmp_path)
    position = next(rule for rule in found.rules if rule.rule == "position")
    assert (position.value, position.chance) == (87.5, 50.0)
    assert {rule.measure for rule in found.rules} == {"pairwise", "accuracy"}


def test_uneven_labels_are_judged_balanced_too(make, tmp_path):
    def rows(split: str, number: int) -> list[dict]:
        draw = random.Random(split)
        return [
            {"doc": f"{split}{i}", "label": int(i % 4 == 0)}
            | {"arg1": sentence(draw), "arg2": sentence(draw)[: -1 if i % 4 else None]}
            for i in range(number)
        ]

    folder = make({"train": rows("train", 200), "test": rows("t", 80)}, schemas.PDTB_MARKED)
    found = read(folder, tmp_path)
    assert value(found, "majority") == 75.0
    assert value(found, "surface", "balanced") > 95
    chances = {(rule.rule, rule.measure): rule.chance for rule in found.rules}
    assert chances["surface", "accuracy"] == 75.0 and chances["surface", "balanced"] == 50.0
    _, line = verdict({"default": found})
    assert "(balanced), chance 50.0; no released data" in line and "letter case" in line


def test_a_subset_has_the_kind_that_the_whole_declares(tmp_path, stage):
    folder = tmp_path / "data"
    schema = schemas.schema(audit="labelled", text=schemas.STRING, label=["a", "b"])
    titles = schemas.schema(title=schemas.STRING)
    with staged(folder) as partial, DatasetFolder(partial, "x", stage, CARD) as dataset:
        rows = [{"text": f"It rained on day {i}.", "label": i % 2} for i in range(8)]
        dataset.writer("all", "train", schema).extend(rows)
        dataset.writer("some", "train", schema.remove_metadata()).extend(rows[:4])
        dataset.writer("titles", "train", titles).extend([{"title": "Rain"}])
        dataset.count_licence("CC0-1.0", 8)
        dataset.finish("all")
    kinds = {name: config.kind for name, config in opened(str(folder)).items()}
    assert kinds == {"all": "labelled", "some": "labelled", "titles": ""}
    remarks = verdict(audited({"titles": opened(str(folder))["titles"]}, tmp_path))
    assert "- titles: not judged: no rule is for such rows" in remarks


def test_a_schema_with_a_kind_that_does_not_fit_is_refused(make):
    schema = schemas.schema(audit="dc", words=schemas.STRING, label=["a", "b"])
    with pytest.raises(ConfigError, match="has the kind 'dc'"):
        make({"train": [{"words": "a b", "label": 0}]}, schema)


def rows_as_files(folder: Path, **splits: list[dict]) -> Path:
    folder.mkdir()
    for split, rows in splits.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_texts_that_are_no_lists_are_texts_of_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    draw = random.Random(3)
    rows = [{"pos": sentence(draw), "neg": sentence(draw)} for _ in range(120)]
    folder = rows_as_files(tmp_path / "texts", train=[*rows, {"pos": None, "neg": "It rained."}])
    assert read(folder, tmp_path, "pairs").test == 120
    assert value(read(folder, tmp_path, "permuted"), "bag", "pairwise") < 75


def test_a_sentence_that_is_null_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [{"label": i % 2, "sentences": ["It rained.", None]} for i in range(4)]
    found = read(rows_as_files(tmp_path / "gaps", train=rows), tmp_path)
    assert [share.value for share in found.duplicates] == [75.0]


def test_a_column_may_have_a_quotation_mark_in_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = rows_as_files(tmp_path / "odd", train=[{'the "text"': "It rained."}] * 4)
    assert [share.value for share in read(folder, tmp_path).duplicates] == [75.0]


def test_what_the_rules_cannot_read_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    draw = random.Random(3)
    rows = [
        {"label": i % 2, "sentences": [sentence(draw) for _ in range(3 + i % 2)]} for i in range(80)
    ]
    found = read(rows_as_files(tmp_path / "uneven", train=rows), tmp_path, "sp")
    assert found.left_out == "its texts have 3 to 4 sentences, where sp needs one number"
    orders = [{"document": "a", "orders": [[1, 0]]}]
    folder = rows_as_files(tmp_path / "orders", train=orders)
    with pytest.raises(InputError, match="but not their documents"):
        read(folder, tmp_path, "permuted")


def test_a_test_split_of_single_sentences_has_the_rules_of_the_training_split(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    draw = random.Random(3)

    def rows(size: int, number: int) -> list[dict]:
        def text(of: int) -> list[str]:
            return [sentence(draw) for _ in range(of)]

        return [{"pos": text(size), "neg": text(2)} for _ in range(number)]

    folder = rows_as_files(tmp_path / "single", train=rows(2, 120), test=rows(1, 60))
    assert {rule.rule for rule in read(folder, tmp_path, "pairs").rules} >= {"surface", "cohesion"}


@pytest.mark.parametrize("task", ["bso", "labelled"])
def test_an_empty_file_of_discoeval_is_no_split(task, tmp_path):
    lines = {"bso": "It rained.\tWe left.\n", "labelled": "1\tIt rained.\n"}
    folder = tmp_path / "released"
    folder.mkdir()
    (folder / "train.txt").write_text(lines[task] * 4, encoding="utf-8")
    (folder / "valid.txt").touch()
    assert set(opened(str(folder), kind=task)["default"].splits) == {"train"}


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder of JSON Lines, without a word about what it is."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    draw = random.Random(3)
    rows = [
        {"pos": [sentence(draw) for _ in range(3)], "neg": [sentence(draw)[3:] for _ in range(3)]}
        for _ in range(120)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "pairs.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_a_foreign_dataset_is_read_by_its_kind(foreign, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    found = read(foreign, tmp_path, "intrusion")
    assert found.divisions == 4 and found.test == 120  # no split to train on: each quarter once
    assert value(found, "surface", "pairwise") > 95
    assert "each quarter of the rows is scored once" in rendered({"default": found})
    with pytest.raises(InputError, match="not of the kind sp: it has no column label"):
        opened(str(foreign), kind="sp")
    several = rows_as_files(tmp_path / "several", train=[{"text": "It rained.", "label": [1, 2]}])
    with pytest.raises(InputError, match="it has no column label of single values"):
        opened(str(several), kind="labelled")
    with pytest.raises(InputError, match="is a file, expected a folder"):
        opened(str(next(path for path in foreign.rglob("*") if path.is_file())))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("", "intrution"), "did you mean 'intrusion'"),
        (("@two", ""), "no configuration 'two'"),
    ],
)
def test_bad_names_are_errors(make, arguments, said):
    folder = make({"train": pairs("train", 2, ".")})
    with pytest.raises(ConfigError) as error:
        opened(f"{folder}{arguments[0]}", arguments[1])
    assert said in str(error.value)


def test_what_is_counted_in_a_sentence():
    assert clean('`` Yes , \'\' he said - "no" ("so")') == "“ Yes , ” he said - “no” (“so”)"
    shape = shape_of("“But why, Tom?”")
    assert shape[:2] == [15, 3] and shape[4:14] == [5, 1, 1, 0, 1, 0, 0, 1, 0, 0]
    assert shape[14:] == [1, 0, 0, 0, 2]
    assert open_quotes(["He said.” “Go", "on.” “No”", "“A “b"]) == [1, 1, 1]


RELEASED = [
    ("bso", "BSO/wiki", "Wikipedia"),
    ("dc", "DC/chat", "chat"),
    *(
        pytest.param(kind, f"{kind.upper()}/{name}", data, marks=pytest.mark.nightly)
        for kind, name, data in (
            ("bso", "arxiv", "arXiv"),
            ("dc", "wiki", "Wikipedia"),
            ("sp", "wiki", "Wikipedia"),
            ("sp", "arxiv", "arXiv"),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place", "data"), RELEASED)
def test_released_data_give_the_figures_of_the_table(discorpora_data, tmp_path, kind, place, data):
    """The table is of another program with the same protocol."""
    folder = discorpora_data / "discoeval" / place
    if not folder.is_dir():
        pytest.skip(f"no released files at {folder}")
    found = read(folder, tmp_path, kind)
    reached = {rule.rule: rule for rule in found.rules}
    assert not found.above
    for rule, figures in released()[kind].items():
        if f"DiscoEval, {data}" in figures:
            low, high = reached[rule].low, reached[rule].high
            # A rule that is right on nearly all rows or none has an interval without a width.
            assert low - 0.2 <= figures[f"DiscoEval, {data}"] <= high + 0.2, rule


@pytest.mark.slow
def test_insted_gives_the_figures_of_the_table(discorpora_data, tmp_path, monkeypatch):
    file = discorpora_data / "coherence" / "instead_wikipedia.jsonl"
    if not file.is_file():
        pytest.skip(f"no {file}")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "insted").mkdir()
    (tmp_path / "insted" / file.name).symlink_to(file)
    found = read(tmp_path / "insted", tmp_path, "intrusion")
    for rule in found.rules:
        assert rule.low <= released()["intrusion"][rule.rule]["INSteD, Wikipedia"] <= rule.high


def test_every_rule_has_advice():
    assert ADVICE.keys() == RULES.keys()


def test_every_kind_of_our_schemas_is_declared():
    own = [value for value in vars(schemas).values() if isinstance(value, pa.Schema)]
    kinds = {(each.metadata or {}).get(schemas.AUDIT, b"").decode() for each in own}
    assert kinds == {"", "bso", "sp", "dc", "intrusion", "permuted", "pairs", "labelled"}
