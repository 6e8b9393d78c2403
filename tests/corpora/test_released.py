"""Released datasets: their formats, the rows that builders make of them, splits and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpora.errors import ConfigError, InputError
from corpora.readers import open_source
from corpora.readers.released import DisSent
from corpora.readers.source import Source
from corpora.schemas import marker_pairs
from corpora.store.rows import write_parquet
from tests.corpora.conftest import rows_of

TEXT = ["The ferry was late.", "We sat on the pier.", "A gull took the bread."]


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def names(manifest: dict[str, Any], config: str) -> list[str]:
    return manifest["configs"][config]["features"]["label"]["names"]


@pytest.fixture
def discovery(tmp_path: Path) -> Path:
    folder = tmp_path / "discovery"
    rows = [f'He had {i} "good boats .\tIt rained on day {i} .\thowever,' for i in range(30)]
    write(folder / "train.tsv", "s1\ts2\ty", *rows)
    write(folder / "dev.tsv", "s1\ts2\ty", "The pump broke .\tWe waited .\tsadly,")
    write(folder / "test.tsv", "s1\ts2\ty", "The pump ran .\tWe left .\tas_a_result,")
    return folder


def test_discovery_has_one_set_of_labels_in_all_its_files(build, discovery):
    folder, manifest = build("marker_pairs", [(f"discovery:{discovery}", {})])
    rows = rows_of(folder, "discovery")
    assert {split: len(found) for split, found in rows.items()} == {
        "train": 30,
        "validation": 1,
        "test": 1,
    }
    assert names(manifest, "discovery") == ["as_a_result,", "however,", "sadly,"]
    assert rows["validation"][0] == {
        "id": "dev:0000002",
        "s1": "The pump broke .",
        "s2": "We waited .",
        "label": 2,
    }
    # A quotation mark is text: nothing in these files is quoted.
    assert rows["train"][0]["s1"] == 'He had 0 "good boats .'
    assert not manifest["licence"]["redistributable"]


def test_two_releases_of_nli_are_one_dataset(build, tmp_path):
    rows = [
        {"sentence1": f"It rained on day {i}.", "sentence2": "We waited.", "gold_label": label}
        for i, label in enumerate(("entailment", "neutral", "contradiction", "-"))
    ]
    files = ("snli_1.0_train", "snli_1.0_dev", "snli_1.0_test", "multinli_1.0_train")
    files += ("multinli_1.0_dev_matched", "multinli_1.0_dev_mismatched")
    for name in files:
        path = tmp_path / name.partition("_")[0] / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    specs = [(f"nli:{tmp_path / name}", {}) for name in ("snli", "multinli")]
    folder, manifest = build("nli", specs)
    found = rows_of(folder, "default")
    assert {split: len(part) for split, part in found.items()} == {
        "train": 6,
        "validation": 6,
        "test": 6,
    }
    assert {row["id"].partition(":")[0] for row in found["test"]} == {files[2], files[-1]}
    assert names(manifest, "default") == ["entailment", "neutral", "contradiction"]
    assert found["train"][0]["label"] == 0 and found["train"][0]["hypothesis"] == "We waited."


def test_discovery_of_the_hub_names_its_labels_in_the_metadata(build, tmp_path):
    schema = pa.schema(
        [
            field.with_name(name)
            for field, name in zip(
                marker_pairs(["but", "[no-conn]"], ()),
                ("sentence1", "sentence2", "label"),
                strict=True,
            )
        ]
    )
    rows = {"sentence1": ["It rained.", "It poured."], "sentence2": ["We left.", "We stayed."]}
    batch = pa.RecordBatch.from_pydict({**rows, "label": [1, 0]}, schema=schema)
    write_parquet(tmp_path / "train-00000-of-00001.parquet", [batch], schema)
    folder, manifest = build("marker_pairs", [(f"discovery:{tmp_path}", {})], held_out=0)
    (first, second) = rows_of(folder, "discovery")["train"]
    labels = names(manifest, "discovery")
    assert (labels[first["label"]], labels[second["label"]]) == ("[no-conn]", "but")


def test_dissent_has_no_header(build, tmp_path):
    write(tmp_path / "all_train.tsv", "She left .\tIt rained .\tbecause", "He ate .\tHe ran .\tand")
    write(tmp_path / "all_valid.tsv", "He sat .\tShe stood .\tbut")
    folder, manifest = build("marker_pairs", [(f"dissent:{tmp_path}", {})])
    rows = rows_of(folder, "dissent")
    assert (len(rows["train"]), len(rows["validation"])) == (2, 1)
    assert names(manifest, "dissent") == ["and", "because", "but"]
    assert manifest["licences"] == {"research-only": 3}
    (document, *_) = open_source(f"dissent:{tmp_path}")
    assert document.sentence_texts() == ["She left .", "It rained ."]


def test_sources_with_other_labels_are_refused_and_not_mixed(build, discovery):
    train, test = (f"discovery:{discovery}/{name}.tsv" for name in ("train", "test"))
    message = "discovery:test.tsv: it has other labels of 'discovery' than the sources before it"
    with pytest.raises(ConfigError, match=message):
        build("marker_pairs", [(train, {}), (test, {})])
    write(discovery / "more" / "new_train.tsv", "s1\ts2\ty", "She slept .\tHe left .\thowever,")
    _, manifest = build("marker_pairs", [(train, {}), (f"discovery:{discovery}/more", {})])
    assert names(manifest, "discovery") == ["however,"]


def test_a_bad_line_is_counted_once_and_the_rest_is_read(build, discovery):
    with (discovery / "train.tsv").open("a", encoding="utf-8") as file:
        file.write("only one field\nA .\t \tyet,\n")
    folder, manifest = build("marker_pairs", [(f"discovery:{discovery}", {})])
    assert manifest["rejects"] == {"bad_record": 2}
    assert len(rows_of(folder, "discovery")["train"]) == 30
    assert "yet," not in names(manifest, "discovery")


def test_a_header_of_other_columns_is_an_error(build, tmp_path):
    write(tmp_path / "train.tsv", "a\tb\tc", "One .\tTwo .\tbut")
    with pytest.raises(InputError, match="expected the field 's1'"):
        build("marker_pairs", [(f"discovery:{tmp_path}", {})])


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("Clinton_train.csv", "train"),
        ("TestData.json", "test"),
        ("eng.pdtb.gum_dev.rels", "validation"),
        ("validation-00000-of-00001.parquet", "validation"),
        ("the_latest.tsv", "train"),
    ],
)
def test_a_files_name_says_its_split(name, split, tmp_path):
    path = write(tmp_path / name, "She left .\tIt rained .\tbecause")
    (row,) = DisSent().rows(path, "x", Source("dissent", str(path), [path]))
    assert (row.split, row.columns["id"]) == (split, "x:0000001")


# INSteD.


def insted(number: int, position: int = -1, train: int = 1, **fields: Any) -> str:
    text = [f"{sentence} ({number})" for sentence in TEXT]
    old = text[position] if position >= 0 else ""
    record = {"file_id": f"f{number}", "ctx": text, "to_be_replaced": old}
    record |= {"replace_with": "The soup was cold.", "sen_position": position, "train": train}
    return json.dumps(record | fields)


def test_insted_gives_texts_to_judge_and_pairs(build, tmp_path):
    path = write(
        tmp_path / "official_wikipedia.jsonl",
        *(insted(i, i % 2 or -1) for i in range(40)),
        insted(90, 2, train=0),
        insted(91, train=0),
    )
    folder, _ = build("insted", [(f"insted:{path}", {})], held_out=0.2)
    detection, pairs = rows_of(folder, "detection"), rows_of(folder, "pairwise")
    train, held = len(detection["train"]), len(detection["validation"])
    assert (train + held, held > 0, train > held) == (40, True, True)
    spoilt, whole = detection["test"]
    assert spoilt["sentences"] == [
        "The ferry was late. (90)",
        "We sat on the pier. (90)",
        "The soup was cold.",
    ]
    assert (spoilt["label"], spoilt["position"], whole["label"], whole["position"]) == (1, 2, 0, -1)
    (pair,) = pairs["test"]
    assert (pair["pos"][2], pair["neg"]) == ("A gull took the bread. (90)", spoilt["sentences"])
    # A text and its pair are in one split.
    held_out = {row["doc"] for row in detection["validation"]}
    assert {row["doc"] for row in pairs["validation"]} <= held_out
    # As documents they have the same splits: `splits = "own"` of a source.
    documents = open_source(f"insted:{path}", {"held_out": 0.2})
    split_of_text = {document.group: document.split for document in documents}
    parts = [(split, row["doc"]) for split, rows in detection.items() for row in rows]
    assert split_of_text == {doc: split for split, doc in parts}
    again, _ = build("insted", [(f"insted:{path}", {})], "again", held_out=0.2)
    assert rows_of(again, "detection") == detection


def test_insted_with_texts_in_one_piece(build, tmp_path):
    line = insted(
        1,
        1,
        ctx="The ferry was late. We sat on the pier. A gull took the bread.",
        to_be_replaced="We sat on the pier.",
    )
    path = write(tmp_path / "official_cnn.jsonl", line)
    (row,) = rows_of(build("insted", [(f"insted:{path}", {})], held_out=0)[0], "pairwise")["train"]
    assert row["pos"] == TEXT
    assert row["neg"] == [TEXT[0], "The soup was cold.", TEXT[2]]
    (document,) = open_source(f"insted:{path}")
    assert document.sentence_texts() == TEXT


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sen_position": 9}, "is not sentence 9"),
        ({"sen_position": "x"}, "field 'sen_position' is 'x'"),
        ({"train": None}, "field 'train' is 'None', expected '0' or '1'"),
        ({"ctx": [" "]}, "'ctx' has none"),
        ({"replace_with": ""}, "'replace_with' is empty"),
    ],
)
def test_an_insted_record_that_does_not_hold_together(fields, reason, build, tmp_path):
    path = write(tmp_path / "official_cnn.jsonl", insted(1, 1, **fields))
    with pytest.raises(InputError, match=reason):
        build("insted", [(f"insted:{path}", {})])


# DISRPT.

RELS = (
    "doc\tunit1_toks\tunit2_toks\tunit1_txt\tunit2_txt\tu1_raw\tu2_raw\ts1_toks\ts2_toks\t"
    "unit1_sent\tunit2_sent\tdir\trel_type\torig_label\tlabel"
)


def relation(one: str, two: str, label: str = "contrast", doc: str = "harbour") -> str:
    fields = [doc, "1-4", "5-9", f"{one} .", f"{two} .", f"{one}.", f"{two}.", "1-4", "5-9"]
    fields += [one, two, "1<2", "implicit", f"comparison.{label}", label]
    return "\t".join(fields)


def sentence(tags: list[tuple[str, str]], key: str = "Conn") -> str:
    rows = [
        f"{i}\t{form}\t_\tX\tX\t_\t0\troot\t_\t{key}={tag}|SpaceAfter=No"
        for i, (form, tag) in enumerate(tags, 1)
    ]
    return "\n".join(["1-2\tmulti\t_\t_\t_\t_\t_\t_\t_\t_", *rows]) + "\n"


@pytest.fixture
def shared_task(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "eng.pdtb.mine"
    for split, text in (("train", "It rained"), ("dev", "It snowed"), ("test", "It cleared")):
        write(folder / f"eng.pdtb.mine_{split}.rels", RELS, relation(text, "We left"))
    tags = [("However", "B-conn"), (",", "O"), ("as", "B-conn"), ("if", "I-conn")]
    write(folder / "eng.pdtb.mine_train.conllu", "# newdoc id = harbour", sentence(tags))
    units = sentence([("Rain", "B-seg"), ("fell", "O")], "Seg")
    write(folder / "eng.rst.mine_test.conllu", "# newdoc id = pier", units)
    return folder.parent


def test_disrpt_has_relations_connectives_and_units(build, shared_task):
    folder, manifest = build("disrpt", [(f"disrpt:{shared_task}", {})])
    relations = rows_of(folder, "relations")
    assert relations["validation"] == [
        {
            "id": "eng.pdtb.mine/eng.pdtb.mine_dev:0000002",
            "doc": "harbour",
            "corpus": "eng.pdtb.mine",
            "arg1": "It snowed.",
            "arg2": "We left.",
            "direction": "1<2",
            "kind": "implicit",
            "original": "comparison.contrast",
            "label": 0,
        }
    ]
    assert names(manifest, "relations") == ["contrast"]
    (row,) = rows_of(folder, "connectives")["train"]
    assert row["tokens"] == ["However", ",", "as", "if"]
    assert row["tags"] == ["B-conn", "O", "B-conn", "I-conn"]
    assert (row["doc"], row["corpus"]) == ("harbour", "eng.pdtb.mine")
    (unit,) = rows_of(folder, "units")["test"]
    assert (unit["tags"], unit["corpus"]) == (["B-seg", "O"], "eng.rst.mine")


def test_the_licence_of_a_source_is_that_of_its_documents(shared_task):
    documents = list(open_source(f"disrpt:{shared_task}", {"licence": "CC-BY-4.0"}))
    assert documents and {document.licence for document in documents} == {"CC-BY-4.0"}


def test_disrpt_leaves_masked_text_out_and_says_so(build, shared_task):
    place = shared_task / "eng.pdtb.mine" / "eng.pdtb.mine_train.rels"
    write(
        place,
        RELS,
        relation("___ _", "__ __").replace("_.", "__").replace("_ .", "_ _"),
        relation("It rained", "We left"),
    )
    _, manifest = build("disrpt", [(f"disrpt:{shared_task}", {})])
    assert [n for reason, n in manifest["rejects"].items() if "masked" in reason] == [1]
    assert manifest["configs"]["relations"]["splits"]["train"]["rows"] == 1


def row(number: int | str, form: str, head: int | str, misc: str = "_") -> str:
    return f"{number}\t{form}\t_\tX\tX\t_\t{head}\tdep\t_\t{misc}"


OLD_TAGS = {
    "units": (
        ["BeginSeg=Yes", "SpaceAfter=No", "_", "SpaceAfter=No|BeginSeg=Yes"],
        ["B-seg", "O", "O", "B-seg"],
    ),
    "connectives": (
        ["_", "Seg=B-Conn", "Seg=I-Conn|SpaceAfter=No", "_"],
        ["O", "B-conn", "I-conn", "O"],
    ),
}


@pytest.mark.parametrize("suffix", ["conllu", "conll"])
@pytest.mark.parametrize("config", list(OLD_TAGS))
def test_the_tags_of_disrpt_until_2023(build, tmp_path, config, suffix):
    tags, expected = OLD_TAGS[config]
    words = list(zip(("Fog", "even", "if", "late"), tags, strict=True))
    plain = "\n".join(row(n, word, n - 1) for n, (word, _) in enumerate(words, 1))
    tagged = "\n".join(row(n, word, n - 1, misc) for n, (word, misc) in enumerate(words, 1))
    # Until 2023 a sentence without a connective has no tag at all, the first one neither.
    write(tmp_path / f"eng.x.mine_train.{suffix}", "# newdoc_id = pier", plain, "", tagged, "")
    folder, manifest = build("disrpt", [(f"disrpt:{tmp_path}", {})])
    assert set(manifest["configs"]) == {config}
    rows = [row for part in rows_of(folder, config).values() for row in part]
    assert sorted(row["tags"] for row in rows) == sorted([["O"] * 4, expected])


def test_a_file_of_disrpt_with_both_kinds_of_tags_gives_both(build, tmp_path):
    tags = ["Seg=B-seg|Conn=B-conn", "Conn=O", "Conn=B-conn|Seg=B-seg", "Seg=O"]
    lines = [
        row(n, word, n - 1, tag) for n, (word, tag) in enumerate(zip("abcd", tags, strict=True), 1)
    ]
    write(tmp_path / "eng.x.mine_train.conllu", "# newdoc id = pier", *lines, "")
    folder, _ = build("disrpt", [(f"disrpt:{tmp_path}", {})])
    for config, name in (("connectives", "conn"), ("units", "seg")):
        (parts,) = rows_of(folder, config).values()
        assert [row["tags"] for row in parts] == [[f"B-{name}", "O", f"B-{name}", "O"]]


def test_disrpt_counts_a_masked_multiword_token_as_one_word(build, tmp_path):
    masked = [row("1-2", "_____", "_"), row(1, "fog", 0, "Seg=B-Conn"), row(2, "gy", 1)]
    written = [row(1, "Fog", 0, "Seg=B-Conn"), row(2, "____", 1)]
    lines = ["# newdoc id = pier", *masked, "", *written, ""]
    write(tmp_path / "eng.x.mine_train.conllu", *lines)
    folder, manifest = build("disrpt", [(f"disrpt:{tmp_path}", {})])
    assert [n for reason, n in manifest["rejects"].items() if "masked" in reason] == [1]
    (parts,) = rows_of(folder, "connectives").values()
    assert [row["tokens"] for row in parts] == [["Fog", "____"]]


@pytest.mark.parametrize(
    ("last", "whole"),
    [
        (row(3, "late", 1).rpartition("\t")[0], True),
        (row(3, "late", 9), False),
        (row(3, "late", "_"), False),
        (row(3, "late", 3), False),
    ],
    ids=["nine columns", "head outside", "no head", "own head"],
)
def test_disrpt_needs_no_trees(build, tmp_path, caplog, last, whole):
    good = [row(1, "Rain", 0, "BeginSeg=Yes"), row(2, "fell", 1)]
    path = tmp_path / "eng.x.mine_train.conllu"
    write(path, "# newdoc id = a", *good, "", *good, last, "", "# newdoc id = b", *good, "")
    a, b = open_source(f"disrpt:{tmp_path}")
    assert (a.text, len(a.sentences or ())) == ("Rain fell Rain fell late", 2)
    assert b.tokens is not None and (a.tokens is not None) == whole
    assert ("1 document: broken trees" in caplog.text) != whole
    with pytest.raises(InputError, match="columns: 9" if whole else "head|cycle"):
        list(open_source(f"conllu:{tmp_path}"))
    folder, _ = build("disrpt", [(f"disrpt:{tmp_path}", {})])
    (rows,) = rows_of(folder, "units").values()
    assert [row["tags"][:2] for row in rows] == [["B-seg", "O"]] * 3


def test_the_texts_of_disrpt_are_those_of_its_treebank(shared_task):
    texts = {document.id: document for document in open_source(f"disrpt:{shared_task}")}
    assert set(texts) == {"harbour", "pier"} and texts["pier"].tokens is not None


# Ratings.


def gcdc(folder: Path, name: str, *texts: str) -> Path:
    head = "text_id,subject,text,ratingA1,ratingA2,ratingA3,labelA,ratingM1,ratingM2,labelM"
    rows = [f'{i},Boats,"{text}",1,2,3,2,{1 + i % 3},3,3' for i, text in enumerate(texts)]
    return write(folder / name, head, *rows)


def story(number: int, title: str = "The boat") -> dict[str, Any]:
    rated = {"num_annotators": 2, "scores": {"annot0": 4.0, "annot1": 2.0}, "consensus_score": 3}
    sentences = {"sentences": TEXT, "reasons": {}}
    text = {"Title": title, "Text": f"{TEXT[0]}\n{' '.join(TEXT[1:])} {number}"}
    return {"storyID": number, **text, "HolisticData": rated, "IncrementalData": rated | sentences}


def test_gcdc_has_the_ratings_of_experts_and_of_the_crowd(build, tmp_path):
    gcdc(tmp_path, "Clinton_train.csv", *(f"Text {i}." for i in range(30)))
    gcdc(tmp_path, "Clinton_test.csv", 'A first ""paragraph"".\n\nA second one.')
    folder, _ = build("rated", [(f"gcdc:{tmp_path}", {})])
    experts, crowd = rows_of(folder, "gcdc"), rows_of(folder, "gcdc_crowd")
    assert experts["test"] == [
        {
            "id": "Clinton_test:0000004",
            "group": "Clinton_test:0000004",
            "title": "Boats",
            "text": 'A first "paragraph".\n\nA second one.',
            "ratings": [1.0, 2.0, 3.0],
            "rating": 2.0,
        }
    ]
    assert (crowd["test"][0]["ratings"], crowd["test"][0]["rating"]) == ([1.0, 3.0], 3.0)
    assert 0 < len(experts["validation"]) < len(experts["train"])
    assert {r["id"] for r in experts["validation"]} == {r["id"] for r in crowd["validation"]}
    (document,) = open_source(f"gcdc:{tmp_path / 'Clinton_test.csv'}")
    assert document.paragraphs is not None and len(document.paragraphs) == 2


def test_cohesentia_keeps_the_stories_of_a_title_together(build, tmp_path):
    stories = {str(i): story(i, f"Title {i // 2}") for i in range(60)}
    write(tmp_path / "TrainData.json", json.dumps(stories))
    write(tmp_path / "TestData.json", json.dumps({"77": story(77)}))
    folder, _ = build("rated", [(f"cohesentia:{tmp_path}", {})])
    rows = rows_of(folder, "cohesentia_incremental")
    (row,) = rows["test"]
    assert (row["id"], row["title"], row["ratings"]) == ("TestData:77", "The boat", [4.0, 2.0])
    assert row["text"].startswith("The ferry was late.\n\nWe sat")
    titles = [{row["title"] for row in rows[split]} for split in ("train", "validation")]
    assert titles[1] and not titles[0] & titles[1]


def test_summeval_is_rated_too(build, tmp_path):
    lines = [
        json.dumps(
            {
                "id": "d1",
                "model_id": f"M{i}",
                "decoded": f"A boat {i}.",
                "expert_annotations": [{"coherence": i}, {"coherence": i + 1}],
            }
        )
        for i in (1, 3)
    ]
    path = write(tmp_path / "model_annotations.aligned.jsonl", *lines)
    folder, _ = build("rated", [(f"summeval:{path}", {})])
    rows = rows_of(folder, "summeval")["test"]
    assert [(row["group"], row["rating"]) for row in rows] == [("d1", 1.5), ("d1", 3.5)]


def test_a_source_of_another_kind_is_an_error(build, tmp_path):
    write(tmp_path / "a.txt", "Text.")
    with pytest.raises(ConfigError, match="is not a source of"):
        build("rated", [(f"text:{tmp_path}", {})])


# The form of Discovery, from running text.


def test_the_marker_that_begins_a_sentence_is_the_label(build, make_document):
    from corpora.document import Document
    from corpora.sentences import split_document

    def text(number: int) -> Document:
        body = (
            f"The mill of place {number} stood still. However, the river rose on day {number}. "
            f"Nobody saw it in year {number}. As a result, ﬂoodgate {number} broke. "
            f'The "old miller {number} left. Then, he came back with {number} men. '
            f"He saw house {number}. However hard he tried, he found no door {number}. "
            f"It was late on day {number}. Then, too, the dog {number} barked. "
            f"It was cold on day {number}. Then, however, the bell {number} rang twice. "
            f"So it went for {number} days. Finally, no.\n\nBesides, it rained in town {number}."
        )
        return split_document(Document(f"d{number}", body, licence="MIT"))

    folder, manifest = build("discovery", [text(i) for i in range(40)], min_count=40)
    rows = rows_of(folder)
    labels = names(manifest, "default")
    assert labels == ["as a result", "however"]
    found = {(labels[r["label"]], r["doc"]): r for part in rows.values() for r in part}
    assert len(found) == 80 and set(rows) == {"train", "validation", "test"}
    assert found["however", "d3"]["s1"] == "The mill of place 3 stood still."
    assert found["however", "d3"]["s2"] == "The river rose on day 3."
    assert found["as a result", "d3"]["s2"] == "Floodgate 3 broke."  # of a ligature
    # Neither over a paragraph's end, nor without a comma, nor with an open quotation.
    assert manifest["rejects"] == {
        "open_quotation_or_bracket": 40,
        "sentence_too_short": 40,
        "two_markers": 80,
    }
    capped, few = build("discovery", [text(i) for i in range(40)], "few", per_marker=5)
    assert sum(map(len, rows_of(capped).values())) == 10
    assert few["rejects"]["not_needed"] == 70


def test_markers_of_ones_own(build):
    from corpora.document import Document
    from corpora.sentences import split_document

    body = " ".join(f"Es regnete am Tag {i}. Trotzdem, wir gingen {i} Mal." for i in range(12))
    document = split_document(Document("d", body, licence="MIT", language="de"))
    _, manifest = build("discovery", [document], markers=("Trotzdem",))
    assert names(manifest, "default") == ["trotzdem"]
    with pytest.raises(ConfigError, match="name each marker once"):
        build("discovery", [document], markers=("also", "Also"))
