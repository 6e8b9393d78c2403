"""`export`: our datasets in the layouts of DiscoEval's files and of sentence-transformers."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from corpora.document import Document, Relation, RstTree, Sections, Spans, Turns
from corpora.errors import ConfigError, InputError
from corpora.export import _triplet, export, tokenise
from corpora.readers.discoeval import read_discoeval
from corpora.sentences import split_document
from corpora.store.atomic import staged
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

TASKS = {"sp": "SP", "bso": "BSO", "dc": "DC", "ssp": "SSP"}


def paper(number: int) -> Document:
    parts = [
        " ".join(
            f"In part {part} of text {number} we saw that, on day {i}, the mill didn't turn."
            for i in range(7)
        )
        for part in range(2)
    ]
    first, second = len(parts[0]), len(parts[1])
    sections = Sections(
        [1, 2], ["Abstract", "Methods"], [0, first + 2], [first, first + 2 + second]
    )
    return split_document(
        Document(f"p{number}", "\n\n".join(parts), licence="MIT", sections=sections)
    )


def chat(number: int) -> Document:
    said = [f"Well, the mill of place {number} has door {i}, hasn't it?" for i in range(9)]
    spans = Spans()
    for text in said:
        start = spans.end[-1] + 2 if len(spans) else 0
        spans.add(start, start + len(text))
    turns = Turns(["ann"] * 9, [0] * 9, spans.start, spans.end)
    document = Document(f"log{number}", "\n\n".join(said), licence="MIT", turns=turns)
    return document.with_sentences(spans)


@pytest.fixture
def built(tmp_path, stage):
    def build(dataset: str, name: str = "", **settings) -> Path:
        folder, builder = tmp_path / (name or dataset), BUILDERS.find(dataset)
        documents = [make(i) for i in range(30) for make in (paper, chat)]
        if dataset != "dc":
            documents = documents[::2]
        with staged(folder) as partial:
            builder.of(settings).build(documents, Target(partial, stage, 1))
        return folder

    return build


@pytest.mark.parametrize("dataset", TASKS)
def test_every_row_is_a_line_that_the_reader_of_the_released_files_takes(built, dataset, tmp_path):
    folder, task = built(dataset), TASKS[dataset]
    written = export(folder, tmp_path / "out")
    configs = ["chat", "text"] if dataset == "dc" else ["default"]
    assert sorted(written) == sorted(
        f"{task}/{config}/{file}.txt" for config in configs for file in ("train", "valid", "test")
    )
    for name, lines in written.items():
        config, split = Path(name).parts[1], {"valid": "validation"}.get(Path(name).stem)
        shards = sorted((folder / config).glob(f"{split or Path(name).stem}-*.parquet"))
        rows = [row for shard in shards for row in pq.read_table(shard).to_pylist()]
        examples = list(read_discoeval(task, tmp_path / "out" / name))
        assert len(examples) == lines == (len(rows) // 2 if task == "BSO" else len(rows))
        if task != "BSO":
            assert [e.label for e in examples] == [row["label"] for row in rows]
        first = rows[0].get("sentences") or [rows[0].get("sentence1", rows[0].get("sentence"))]
        ours = "".join("".join(examples[0].sentences[: len(first)]).split())
        assert ours == "".join("".join(first).split())


@pytest.mark.parametrize(
    ("dataset", "released"),
    [
        ("sp", "SP/wiki/valid.txt"),
        ("bso", "BSO/arxiv/valid.txt"),
        ("dc", "DC/wiki/valid.txt"),
        ("ssp", "SSP/abs/valid.txt"),
    ],
)
def test_the_files_have_the_form_of_the_released_ones(
    discorpora_data, built, dataset, released, tmp_path
):
    theirs = (discorpora_data / "discoeval" / released).read_text(encoding="utf-8")
    export(built(dataset), tmp_path / "out", domain="own")
    ours = (tmp_path / "out" / TASKS[dataset] / "own" / "valid.txt").read_text(encoding="utf-8")
    forms = [{line.count("\t") for line in text.splitlines()} for text in (theirs, ours)]
    assert forms[0] == forms[1] and len(forms[1]) == 1
    if dataset != "bso":
        labels = [{line.split("\t")[0] for line in text.splitlines()} for text in (theirs, ours)]
        assert labels[0] == labels[1]
    assert ours.endswith("\n") and "  " not in ours and "\r" not in ours
    assert all(field == field.strip() for line in ours.splitlines() for field in line.split("\t"))


def test_released_tokens_stay_as_they_are(discorpora_data):
    words = changed = 0
    for name in ("SP/wiki/valid.txt", "BSO/wiki/valid.txt", "SSP/abs/valid.txt"):
        text = (discorpora_data / "discoeval" / name).read_text(encoding="utf-8")
        for line in text.splitlines()[:1000]:
            for field in line.split("\t"):
                before, after = field.split(), tokenise(field).split()
                words += len(before)
                changed += len(set(before) ^ set(after))
    assert changed < 0.02 * words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("He didn't go, she's there.", "He did n't go , she 's there ."),
        ("<user>: it cost 3,000.5 pounds!", "<user> : it cost 3,000.5 pounds !"),
        ('"Well," said J. Mill, "no."', '" Well , " said J. Mill , " no . "'),
        ("A well-known part of the U.S. navy", "A well-known part of the U.S. navy"),
        ("in the 1980s (the 19th day)...", "in the 1980s ( the 19th day ) ..."),
    ],
)
def test_punctuation_and_clitics_stand_alone(text, tokens):
    assert tokenise(text) == tokens


def test_other_folders_are_refused(tmp_path, stage, make_document):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        export(tmp_path / "nothing", tmp_path / "out")
    builder = BUILDERS.find("conpono").of({"min_sentences": 2})
    with staged(tmp_path / "c") as partial:
        builder.build([make_document("d")], Target(partial, stage, 1))
    with pytest.raises(InputError, match="the format discoeval has no such dataset"):
        export(tmp_path / "c", tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[1]", "is no manifest"),
        (b'{"model_type": "x"}', "not the manifest of a dataset"),
    ],
)
def test_a_broken_manifest_is_named(content, message, tmp_path):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        export(tmp_path, tmp_path / "out")
    assert error.value.where == str(tmp_path / "manifest.json")


def test_a_broken_shard_is_named(built, tmp_path):
    folder = built("sp")
    shard = next(folder.rglob("train-*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.raises(InputError, match=r"train-.*cannot be read"):
        export(folder, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("train*"))


def test_two_configurations_keep_their_files_under_one_domain(built, tmp_path):
    written = export(built("dc"), tmp_path / "out", domain="own")
    assert {Path(name).parts[1] for name in written} == {"own", "own-chat"}
    plain = export(tmp_path / "dc", tmp_path / "plain")
    assert sorted(written.values()) == sorted(plain.values())


def test_over_an_older_export_no_split_of_it_is_left(built, tmp_path):
    out = tmp_path / "out"
    export(built("sp"), out, domain="wiki")
    others = out / "SP" / "arxiv" / "valid.txt", out / "SP" / "wiki" / "notes.txt"
    others[0].parent.mkdir()
    for path in others:
        path.write_text("mine")
    written = export(built("sp", "no_validation", validation=0), out, domain="wiki")
    assert sorted(written) == ["SP/wiki/test.txt", "SP/wiki/train.txt"]
    assert not (out / "SP" / "wiki" / "valid.txt").exists()
    assert all(path.read_text() == "mine" for path in others)


def test_an_export_that_fails_leaves_the_older_one_as_it_was(built, tmp_path, folder_bytes):
    out = tmp_path / "out"
    export(built("sp"), out)
    before = folder_bytes(out)
    damaged = built("sp", "damaged", validation=0)
    next((damaged / "default").glob("test-*")).write_bytes(b"no Parquet")
    with pytest.raises(InputError, match="Parquet"):
        export(damaged, out)
    assert folder_bytes(out) == before


@pytest.mark.parametrize("domain", [".", "..", "../../x", "/tmp/x", "a/b", "a\\b"])
def test_a_domain_is_the_name_of_a_folder(built, tmp_path, domain):
    with pytest.raises(ConfigError, match="not the name of a folder"):
        export(built("sp"), tmp_path / "out", domain=domain)
    assert not (tmp_path / "out").exists()


# Relations, which have no domain.


def relations(number: int) -> Document:
    one, two = f"The mill {number} didn't turn", f"the river {number} ran dry"
    text = f"{one} because {two}."
    spans = ((0, len(one)),), ((len(one) + 9, len(text) - 1),)
    word = ((len(one) + 1, len(one) + 8),)
    senses = ("Contingency.Cause.Reason",) if number % 2 else ("Temporal.Synchronous",)
    explicit = Relation("Explicit", "because", word, *spans, senses)
    implicit = Relation("Implicit", "then", (), *spans, senses)
    return Document(f"d{number}", text, licence="MIT", relations=[explicit, implicit])


def tree(number: int) -> Document:
    units = [f"Unit {i} of text {number} doesn't end" for i in range(3)]
    starts = [sum(len(unit) + 1 for unit in units[:i]) for i in range(3)]
    ends = [start + len(unit) for start, unit in zip(starts, units, strict=True)]
    columns = {"relation": ["list", "contrast"], "nuclearity": ["NN", "SN"]}
    rst = RstTree(starts, ends, left=[0, 3], right=[1, 2], **columns)
    return Document(f"t{number}", " ".join(units), licence="MIT", rst=rst)


@pytest.mark.parametrize("kind", ["Explicit", "Implicit"])
def test_relations_are_read_back_as_the_released_ones(build, tmp_path, kind):
    from zoo.evaluate.discoeval.data import DiscoEvalData, _read_original

    name = f"pdtb_{kind.lower()}"
    folder, _ = build(name, [relations(i) for i in range(60)], min_count=1)
    rename(folder, name)
    written = export(folder, tmp_path / "out", domain="ignored")
    assert written[f"PDTB/{kind}/labelset.txt"] == 2
    found = DiscoEvalData()
    _read_original(tmp_path / "out", ["PDTB-E", "PDTB-I"], found)
    (task,) = found.tasks
    assert task.labels == ("Contingency.Cause", "Temporal.Synchronous")
    rows = pq.read_table(next(folder.glob("default/test-*.parquet"))).to_pylist()
    assert task.splits["test"].labels.tolist() == [row["label"] for row in rows]
    line = (tmp_path / "out" / "PDTB" / kind / "test.txt").read_text().splitlines()[0]
    number = rows[0]["doc"].removeprefix("d")
    assert line == (
        f"{rows[0]['label']}\tThe mill {number} did n't turn\tthe river {number} ran dry"
    )


def rename(folder: Path, name: str) -> None:
    """What a build calls a dataset; the tests' stage has another name."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"name": name}))


def test_relations_whose_kind_the_name_does_not_say_are_refused(build, tmp_path):
    folder, _ = build("pdtb_explicit", [relations(i) for i in range(60)], min_count=1)
    with pytest.raises(InputError, match="explicit or implicit"):
        export(folder, tmp_path / "out")


def test_trees_become_the_pickles_that_the_original_code_loads(build, tmp_path):
    folder, manifest = build("rst", [tree(i) for i in range(40)])
    written = export(folder, tmp_path / "out")
    assert sorted(written) == ["RST/RST_DEV.pkl", "RST/RST_TEST.pkl", "RST/RST_TRAIN.pkl"]
    nodes = pickle.loads((tmp_path / "out" / "RST" / "RST_TRAIN.pkl").read_bytes())
    rows = pq.read_table(next(folder.glob("default/train-*.parquet"))).to_pylist()
    names = manifest["configs"]["default"]["features"]["label"]["names"]
    label, left, right = nodes[1]
    assert (len(nodes), label) == (len(rows), names[rows[1]["label"]])
    assert left[0].endswith("does n't end") and len(left) + len(right) == 3


# sentence-transformers.


def test_pairs_are_rows_of_two_texts_and_a_label(built, tmp_path):
    folder = built("bso")
    written = export(folder, tmp_path / "out", "pairs")
    assert sorted(written) == [f"default/{s}.jsonl" for s in ("test", "train", "validation")]
    lines = (tmp_path / "out" / "default" / "train.jsonl").read_text().splitlines()
    rows = pq.read_table(next(folder.glob("default/train-*.parquet"))).to_pylist()
    assert len(lines) == len(rows)
    assert json.loads(lines[0]) == {k: rows[0][k] for k in ("sentence1", "sentence2", "label")}
    assert list(json.loads(lines[0])) == ["sentence1", "sentence2", "label"]


def test_the_triplets_of_dc_are_a_context_and_what_stood_in_it(built, tmp_path, load):
    folder = built("dc")
    written = export(folder, tmp_path / "out", "triplets")
    rows = pq.read_table(next(folder.glob("text/train-*.parquet"))).to_pylist()
    assert written["text/train.jsonl"] == len(rows) // 2
    spoilt, whole = rows[:2]
    first = load(tmp_path / "out" / "text")["train"][0]
    assert list(first) == ["anchor", "positive", "negative"]
    at = spoilt["position"]
    assert first["positive"] == whole["sentences"][at]
    assert first["negative"] == spoilt["sentences"][at]
    rest = [text for i, text in enumerate(whole["sentences"]) if i != at]
    assert first["anchor"] == " ".join(rest)


def test_texts_that_share_nothing_are_no_triplet():
    pos, neg = ["One.", "Two.", "Three."], ["One.", "Four.", "Three."]
    assert _triplet({"pos": pos, "neg": neg}) == {
        "anchor": "One. Three.",
        "positive": "Two.",
        "negative": "Four.",
    }
    assert _triplet({"pos": pos, "neg": ["Five."]}) is None
    prompted = _triplet({"prompt": ["Zero."], "pos": pos, "neg": ["Five."]})
    assert prompted is not None and prompted["anchor"] == "Zero."
    assert _triplet({"pos": pos, "neg": pos[:2]}) is None  # nothing stands for the third


def test_a_split_without_a_triplet_has_no_file(build, tmp_path):
    texts = {"pos": ["It rained.", "We left."], "neg": ["The mill stood.", "No door was open."]}
    (tmp_path / "insted.jsonl").write_text(json.dumps(texts))
    folder, _ = build("coherence_tests", [(f"coherence:{tmp_path / 'insted.jsonl'}", {})])
    assert export(folder, tmp_path / "out", "triplets") == {"insted/test.jsonl": 0}
    assert not (tmp_path / "out" / "insted" / "test.jsonl").exists()


@pytest.mark.parametrize(
    ("layout", "message"),
    [("triplets", "the format triplets has no such dataset"), ("triplet", "no format 'triplet'")],
)
def test_a_layout_that_a_dataset_does_not_have(built, tmp_path, layout, message):
    with pytest.raises((InputError, ConfigError), match=message):
        export(built("sp"), tmp_path / "out", layout)
    assert not (tmp_path / "out").exists()
