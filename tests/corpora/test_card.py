"""The card says what a user of the data asks, and the Hub can read it."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from corpora.declared import Declared
from corpora.publish import plan_publication
from corpora.store.atomic import staged
from corpora.store.card import Card, front_matter, source_name
from corpora.store.documents import write_documents
from corpora.store.folder import DatasetFolder, Stage
from corpora.store.rows import class_label
from corpora.tasks import BUILDERS
from corpora.tasks.builder import Target

SCHEMA = pa.schema([pa.field("text", pa.string()), class_label("label", ["and", "but"])])
CARD = Card(
    title="A test of cards",
    summary="Texts for a test.",
    method="Paper, section 9.",
    fields={"text": "what | was said", "label": "the marker"},
    citation="@misc{test, title = {A $test}}",
    use="Testing cards.",
    limits=("It is small.",),
    tags=("testing",),
    reasons={"too_long": "over 60 | words"},
)
SOURCE = {"spec": "jsonl:novels/*.jsonl", "revision": "c0ffee", "licence": "CC-BY-SA-3.0"}


class Builder(Declared):
    """A builder of texts."""

    min_words: int = 5
    """Sentences of fewer
    words are left out."""


@pytest.fixture
def card(tmp_path) -> DatasetCard:
    command = "luigi --module workflows BuildAll"
    stage = Stage("dissent", 4, "12e4", {"min_words": 5}, {}, [SOURCE], "embedded-1", command)
    with (
        staged(tmp_path / "d") as partial,
        DatasetFolder(partial, "d", stage, CARD, builder=Builder) as data,
    ):
        rows = [{"text": "Long " * 100, "label": 1}, {"text": "Short.", "label": 0}]
        data.writer("all", "train", SCHEMA, texts=("text",)).extend(rows)
        data.writer("all", "test", SCHEMA, texts=("text",)).extend(rows[1:])
        data.count_licences(pa.array([SOURCE["licence"]] * 3))
        data.reject("too_long", 1234)
        data.note("The corpus is too small for more.")
        data.finish("all")
    return DatasetCard.load(tmp_path / "d" / "README.md")


def test_the_metadata_are_what_the_hub_takes(card):
    data = card.data.to_dict()
    assert data["license"] == "cc-by-sa-3.0" and data["language"] == ["en"]
    config = data["configs"][0]
    assert config["config_name"] == "all" and config["default"] is True
    assert config["description"] == "discorpora build 12e4"
    assert [file["split"] for file in config["data_files"]] == ["train", "test"]
    assert data["dataset_info"][0]["splits"][0]["num_examples"] == 2
    assert {"discourse", "testing"} <= set(data["tags"])


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        (1, "n<1K"),
        (999, "n<1K"),
        (1_000, "1K<n<10K"),
        (999_999, "100K<n<1M"),
        (1_000_000, "1M<n<10M"),
        (12_345_678, "10M<n<100M"),
        (2 * 10**9, "1B<n<10B"),
    ],
)
def test_the_size_is_a_category_of_the_hub(rows, size):
    manifest = {"configs": {"all": {"default": True, "features": {}, "splits": {}}}}
    manifest["configs"]["all"]["splits"]["train"] = {"rows": rows, "bytes": 1, "shards": []}
    manifest |= {"stage": {"hash": "0"}, "languages": ["en"], "licence": {"hub": "mit"}}
    assert front_matter(manifest, CARD)["size_categories"] == [size]


def test_subsets_of_the_default_configuration_do_not_count_for_the_size():
    split = {"rows": 800, "bytes": 1, "shards": []}
    part = {"features": {}, "splits": {"train": split}}
    configs = {name: {**part, "default": name == "all"} for name in ("all", "books8", "books5")}
    manifest = {"configs": configs, "stage": {"hash": "0"}, "languages": ["en"]}
    manifest["licence"] = {"hub": "mit"}
    assert front_matter(manifest, CARD)["size_categories"] == ["n<1K"]


def test_a_split_of_few_books_is_named(tmp_path):
    schema = pa.schema([*SCHEMA, pa.field("group", pa.string())])
    stage = Stage("dissent", 4, "12e4", {}, {}, [SOURCE], "embedded-1", "")
    with staged(tmp_path / "d") as partial, DatasetFolder(partial, "d", stage, CARD) as data:
        for split, books in (("train", 30), ("validation", 20), ("test", 2)):
            rows = [
                {"text": f"Row {i} of {split}.", "label": i % 2, "group": f"book-{i}"}
                for i in range(books)
            ]
            data.writer("all", split, schema, texts=("text",)).extend(rows)
            data.count_licences(pa.array([SOURCE["licence"]] * books))
        manifest = data.finish("all")
    assert manifest["groups"] == {} and [n for n in manifest["notes"] if "has few books" in n] == [
        "`test` has few books or files (2): a score on its rows may not hold for other texts."
    ]


def test_a_configuration_with_few_rows_of_a_label_has_a_warning(tmp_path):
    stage = Stage("dissent", 4, "12e4", {}, {}, [SOURCE])
    with staged(tmp_path / "d") as partial, DatasetFolder(partial, "d", stage, CARD) as data:
        for config, most in (("all", 60), ("balanced", 7)):
            for split, count in (("train", most - 2), ("test", 2)):
                rows = [{"text": f"{split} {i}", "label": 0} for i in range(count)]
                data.writer(config, split, SCHEMA).extend(rows)
        data.writer("all", "train", SCHEMA).extend([{"text": "x", "label": 1}] * 50)
        data.count_licence("MIT")
        warnings = [note for note in data.finish("all")["notes"] if note.startswith("Warning")]
    assert warnings == [
        "Warning: too few rows to train on or to compare labels (fewer than 50, all splits "
        "together): `balanced` for 1 of 2 labels (the least, `and`, has 7)."
    ]
    text = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    assert text.index(warnings[0]) < text.index("## Sources and licence")


def test_a_card_says_that_chapters_of_one_novel_are_in_several_splits(build, make_document):
    def notes(name, *groups):
        documents = [make_document(f"{g}/{i}", 8, group=g) for g in groups for i in range(9)]
        settings = {"train": 60, "validation": 20, "test": 20}
        _, manifest = build("bso", documents, name, **settings)
        return [note for note in manifest["notes"] if "chapters" in note]

    assert notes("one", "emma", "dune") == [
        "Documents of one book or file, such as the chapters of one novel, are in all splits "
        "(2 of 2 books or files): a score on `test` may not hold for other books."
    ]
    assert notes("many", *(f"b{i}" for i in range(30))) == []


def test_cards_say_what_blind_readers_found():
    limits = {name: " ".join(BUILDERS.find(name).card.limits) for name in BUILDERS}
    assert "of 20 pairs, readers who did not know the labels could not decide five" in limits["bso"]
    assert "of twelve rows, readers who did not know the labels" in limits["sp"]
    assert "`similarity` is small" in limits["intrusion"]


def test_a_card_says_which_book_is_in_which_split_who_publishes_and_what_was_rejected(tmp_path):
    schema = pa.schema([*SCHEMA, pa.field("group", pa.string())])
    publisher = {"name": "A | B", "contact": "me@example.org", "citation": "@misc{own}"}
    stage = Stage("dissent", 4, "12e4", {}, {}, [SOURCE], "embedded-1", "", publisher=publisher)
    rejects = [("order", 3, "out of order"), ("speech", 1200, "two | speakers")]
    with (
        staged(tmp_path / "d") as partial,
        DatasetFolder(partial, "d", stage, CARD, extraction_rejects=rejects) as data,
    ):
        for split, book in (("train", "emma"), ("train", "jane"), ("test", "dune")):
            rows = [{"text": f"Row of {book}.", "label": 0, "group": book}]
            data.writer("all", split, schema, texts=("text",)).extend(rows)
            data.count_licences(pa.array([SOURCE["licence"]]))
        data.finish("all")
    said = plan_publication(tmp_path / "d", "me/d").lines()
    assert "  the card lacks, from [[sources]]: title of jsonl:novels/*.jsonl" in said
    assert not [line for line in said if "publisher" in line]
    text = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    assert "| train | emma (1), jane (1) |" in text and "| test | dune (1) |" in text
    assert r"Published by A \| B, contact me@example.org." in text
    assert text.index("@misc{own}") < text.index("@misc{test")
    assert text.index(r"| speech | 1,200 | two \| speakers |") < text.index("| order | 3 |")


def test_the_text_answers_the_questions_of_a_user(card):
    for expected in (
        "# A test of cards",
        "| all | train | 2 | 2 | 1 |",
        "| but | 1 | 0 |",
        '"label": "but"',
        "| too_long | 1,234 | over 60 \\| words |",
        "| all | train/test | 1 |",
        "| jsonl:novels/*.jsonl | c0ffee | CC-BY-SA-3.0 |",
        "must stay under CC-BY-SA-3.0",
        "luigi --module workflows BuildAll",
        "| min_words | 5 | Sentences of fewer words are left out. |",
        "parser `embedded-1`",
        "The corpus is too small for more.",
        "It is small.",
        "## Intended use\n\nTesting cards.",
        "language of their time and repeat its stereotypes",
        "A $test",
        r"what \| was said",
    ):
        assert expected in card.text


def test_sources_are_named_as_the_build_file_names_them():
    assert source_name({"name": "novels", "kind": "jsonl", "place": "x"}) == "novels (jsonl:x)"
    assert source_name({"spec": "sample:"}) == "sample:"


def test_long_examples_are_cut(card):
    assert "Long Long" in card.text and "Long " * 40 not in card.text


def test_a_licence_that_the_hub_has_no_name_for_is_named(tmp_path):
    stage = Stage("s", 1, "ab", sources=[{"spec": "pdtb:x", "licence": "LDC"}])
    with staged(tmp_path / "d") as partial, DatasetFolder(partial, "d", stage, CARD) as data:
        data.writer("all", "train", SCHEMA).extend([{"text": "x", "label": 0}])
        data.count_licences(pa.array(["LDC"]))
        data.finish()
    card = DatasetCard.load(tmp_path / "d" / "README.md")
    assert card.data.to_dict()["license_name"] == "ldc"
    assert "**may not** be passed on" in card.text


@pytest.mark.parametrize("name", list(BUILDERS))
def test_a_card_says_what_each_column_and_each_setting_means(name):
    builder = BUILDERS.find(name)
    columns = {column for schema in builder.gives.values() for column in schema.names}
    assert set(builder.card.fields) == columns and builder.card.use
    assert all(field.description for field in builder.model_fields.values())
    several = {*builder.gives} if len(builder.gives) > 1 else set()
    assert {*builder.card.configurations} == several


def test_each_reason_of_a_rejected_candidate_has_a_meaning():
    tasks = Path(__file__).parents[2] / "corpora" / "tasks"
    code = "".join(path.read_text(encoding="utf-8") for path in tasks.rglob("*.py"))
    named = {*re.findall(r'(?:reject\(|return )"([a-z]+_\w+)"', code)}
    named |= {"marker_not_in_set", "no_clauses", "too_short", "too_long", "unlike_lengths"}
    assert len(named) > 40
    every = {name for each in BUILDERS for name in BUILDERS.find(each).card.reasons}
    assert named <= every


def test_the_documents_of_the_rows_are_named(tmp_path, make_document):
    pier = {"title": "On | piers", "url": "https://example.org/pier", "author": "Ada; Ben"}
    documents = [
        make_document("d0", 6, source="papers", **pier),
        make_document("d1", 6, source="papers", title="Without more"),
        make_document("d2", 2, source="papers", author="Too short for a row"),
        make_document("d3", 60, source="papers", author="Cara"),  # named d3#0, d3#1, ...
    ]
    write_documents(documents, read := tmp_path / "source=x**")
    about = {"authors": ["Ada", "Ben"], "description": "Two piers.", "get": "ask Ada"}
    source = {
        "name": "papers",
        "spec": "jsonl:x",
        "title": "Piers",
        "url": "https://e.org",
        **about,
    }
    stage = Stage("permuted", 1, "ab", sources=[source], build='name = "p"')
    with staged(tmp_path / "d") as partial:
        (tmp_path / "table.tsv").write_text("train\td0\n")
        build_files = [tmp_path / "table.tsv"]
        target = Target(partial, stage, 1, documents=[read], build_files=build_files)
        manifest = (
            BUILDERS.find("permuted").of({"test": 0, "validation": 0}).build(documents, target)
        )
    rows = pq.read_table(tmp_path / "d" / "attribution.parquet").to_pylist()
    wanted = {**pier, "source": "papers", "id": "d0", "licence": "CC-BY-4.0"}
    assert rows[0] == wanted and [row["id"] for row in rows] == ["d0", "d3"]
    assert manifest["attribution"] == {"documents": 2, "first": rows}
    plan = plan_publication(tmp_path / "d", "lab/piers")
    published = {file.path for file in plan.data_files}
    assert {"attribution.parquet", "build_files/table.tsv"} <= published
    plan.verify()
    text = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    for expected in (
        "- **papers (jsonl:x)**: *Piers*, Ada, Ben, https://e.org. Two piers. To be had: ask Ada.",
        r"| On \| piers | Ada; Ben | https://example.org/pier | CC-BY-4.0 |",
        "| d3 | Cara |  | CC-BY-4.0 |",
        "put the sources named above, and the files in `build_files/` of this dataset,",
        '```toml\nname = "p"\n```',
        "- `pairwise`: a document and one permutation a row",
    ):
        assert expected in text
    # Each positive has up to 20 rows.
    (pairwise,) = manifest["configs"]["pairwise"]["splits"].values()
    documents_ = manifest["configs"]["documents"]["splits"]["train"]["rows"]
    assert pairwise["distinct"] == documents_ < pairwise["rows"]


def test_rows_with_the_same_texts_in_another_order_are_not_distinct(build, make_document):
    _, manifest = build("bso", [make_document("d", 12)], train=10, validation=0, test=0)
    train = manifest["configs"]["default"]["splits"]["train"]
    assert train["distinct"] * 2 == train["rows"]


def test_examples_differ_in_label_and_document(tmp_path):
    schema = pa.schema([pa.field("doc", pa.string()), *SCHEMA])
    rows = [{"doc": f"d{i // 10}", "text": f"t{i}", "label": int(i >= 30)} for i in range(40)]
    with (
        staged(tmp_path / "d") as partial,
        DatasetFolder(partial, "d", Stage("s", 1, "ab"), CARD) as data,
    ):
        for config in ("one", "two"):
            data.writer(config, "train", schema, texts=("text",)).extend(rows)
        data.count_licence("MIT")
        manifest = data.finish()
    examples = manifest["configs"]["one"]["splits"]["train"]["examples"]
    found = [(row["doc"], row["label"]) for row in examples]
    assert found == [("d0", 0), ("d3", 1), ("d1", 0), ("d2", 0)]
    text = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    # Of configurations with the same columns the first one shows two rows.
    assert [text.count(f'"doc": "d{i}"') for i in range(4)] == [1, 0, 0, 1]
